"""A store in which everything that a package or a matrix can name is markup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.anatomy import ConstantDifference, Kind
from audit.failures import Failure, Status
from audit.storage.database import Database
from audit.storage.records import ExplanationRecord
from audit.storage.store import Store
from tests.stored_runs import RUN, cell, exercised, judgement, release

EVIL = """</script><img src=x onerror="window.pwned=1">'{{script}}&amp;<!--\u2028"""
PLACES = ("reason", "coverage", "failure", "tail", "stage", "constant", "night", "waiver", "package")


def make(path: Path, separation: float = 0.5) -> None:
    """Write it: two releases that differ, one that fails, a night."""
    run = replace(RUN, matrix=EVIL)
    releases = [release(f"{name}{EVIL}", place) for place, name in enumerate("abc")]
    releases = [replace(each, lock_digest=f"lock{place}") for place, each in enumerate(releases)]
    cells = [
        cell(each.release, each.position, behaviour, EVIL) for each, behaviour in zip(releases, "xy-", strict=True)
    ]
    cells[2] = replace(cells[2], behaviour=None, status=Status.RAISED, reason=f"failure {EVIL}")
    failure = Failure(subject=cells[2].identifier, stage="dump", status=Status.RAISED, reason=f"failure {EVIL}",
                      stderr_tail=f"tail {EVIL}")  # fmt: skip
    found = replace(judgement(first=separation), reason=f"reason {EVIL}")
    with Store(path) as store:
        store.begin_run(run)
        store.put_locks({f"lock{place}": (EVIL, [(f"package {EVIL}", str(place))]) for place in range(3)})
        store.comparisons.put_comparison("x", "y", run.reads, found, [])
        store.explanations.put_explanation(_explanation(), [_constant()], [])
        environment = exercised(EVIL, coverage=f"coverage {EVIL}")
        store.finish_run(run.run_id, 0, releases, cells, [environment], [failure])
    database = Database(path)
    _night(database)
    database.close()


def _explanation() -> ExplanationRecord:
    return ExplanationRecord(
        older_behaviour="x", newer_behaviour="y", environment=EVIL, key="key", states=1, stage=f"stage {EVIL}",
        fields=EVIL, before=[], ratio=1e9, interface="", constants=1, unsteady=[], reason="",
    )  # fmt: skip


def _constant() -> ConstantDifference:
    return ConstantDifference(kind=Kind.CHANGED, field=f"constant {EVIL}", entry="", older="1", newer="2", size=1.0)


def _night(database: Database) -> None:
    with database.transaction():
        database.execute(
            "INSERT INTO internal.nights (matrix, night, started, exit_code, first, news, new_changes, waived_changes,"
            " known_changes, not_audited, summary, question)"
            " VALUES (?, '2026-01-01', '2026-01-01', 1, false, ?, 1, 0, 0, 0, '', '')",
            [EVIL, [f"night {EVIL}"]],
        )
        database.execute(
            "INSERT INTO internal.night_changes VALUES (?, '2026-01-01', ?, ?, ?, 'changed', 'waived', '', ?)",
            [EVIL, EVIL, f"a{EVIL}", f"b{EVIL}", f"waiver {EVIL}"],
        )
