"""``blame`` through the command line: which distribution of two locks brought a change, with real uv."""

from __future__ import annotations

import datetime
import re
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from audit.errors import UsageError
from audit.explanations import adhoc, blaming
from audit.explanations.blaming import Move
from audit.explanations.session import Quiet, ReleaseBehaviour, Session
from audit.installing.interpreters import Interpreter
from audit.installing.locks import Lock, Release
from audit.storage.store import Store
from tests import stored_runs, tinychain
from tests.asked_releases import request
from tests.conftest import Finished, write_matrix
from tests.tinychain import ONLINE, Desk, identifier

OLDER = "tinychain==0.29 tinymath==1.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search for the culprit printed."""

    blamed: list[str]
    suspects: int
    tried: dict[str, str]
    """By the distributions that were moved: the answer."""

    @classmethod
    def of(cls, finished: Finished) -> Found:
        assert finished.code == 0, finished.stderr
        assert finished.stderr == ""
        table, _, told = f"\n{finished.stdout}".partition("\nof ")
        lines = table.partition("moved")[2].splitlines()[1:]  # there is no table where the answer was known
        found = [re.match(r"(\S+(?:, \S+)*) +(same|changed|unresolved)\b", line) for line in lines]
        return cls(
            blamed=[line.strip() for line in told.splitlines()[1:]],
            suspects=int(told.split()[0]),
            tried={match[1]: match[2] for match in found if match is not None},
        )


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Desk:
    return tinychain.desk(tmp_path_factory.mktemp("blame"), shared_cache)


@pytest.fixture(scope="module")
def gone_round(desk: Desk) -> Finished:
    """The newer one requires a tinymath that the older one does not have."""
    return desk.search("blame", "Narrow", OLDER, "tinychain==0.38")


def test_what_the_resolver_moved_is_blamed_and_not_what_the_user_upgraded(desk: Desk) -> None:
    found = Found.of(desk.search("blame", "Narrow", OLDER, "tinychain==0.30"))
    assert found.blamed == ["tinymath 1.2 → 1.5"]
    assert found.suspects == 2
    assert found.tried == {"tinychain": "same", "tinymath": "changed"}


def test_a_mixture_that_does_not_resolve_is_gone_round(gone_round: Finished) -> None:
    found = Found.of(gone_round)
    assert found.blamed == ["tinymath 1.2 → 1.5"]
    assert found.tried == {"tinyglue, tinychain": "unresolved", "tinymath": "changed"}
    assert "tinychain==0.38 depends on tinymath>=1.3" in gone_round.stdout


def test_two_that_bring_it_only_together(desk: Desk) -> None:
    found = Found.of(desk.search("blame", "Both", OLDER, "tinychain==0.32"))
    assert found.blamed == ["tinychain 0.29 → 0.32", "tinymath 1.2 → 1.5"]
    assert found.tried == {"tinychain": "same", "tinymath": "same"}


def test_the_users_own_upgrade_is_blamed_where_it_is_to_blame(desk: Desk) -> None:
    found = Found.of(desk.search("blame", "Seen", OLDER, "tinychain==0.32"))
    assert found.blamed == ["tinychain 0.29 → 0.32"]


@pytest.mark.parametrize("newer", ["tinychain==0.32 tinyglue==1.0", "tinychain==0.35"], ids=["named", "brought along"])
def test_what_came_new_is_blamed_and_not_what_was_upgraded_beside_it(desk: Desk, newer: str) -> None:
    found = Found.of(desk.search("blame", "Glued", OLDER, newer))
    assert found.blamed == ["tinyglue absent → 1.0"]
    assert found.suspects == 3


def test_what_a_new_requirement_moved_is_blamed_and_not_that_requirement(desk: Desk) -> None:
    """The mixture that is named like the newer release is another one, and does not resolve."""
    found = Found.of(desk.search("blame", "Narrow", "tinychain==0.29", "tinychain==0.29 tinyglue==0.9"))
    assert found.blamed == ["tinymath 1.5 → 1.2"]
    assert found.tried == {"tinyglue": "unresolved", "tinymath": "changed"}


def test_what_is_gone_stays_where_it_is_still_required(desk: Desk) -> None:
    found = Found.of(desk.search("blame", "Glued", "tinychain==0.35", OLDER))
    assert found.blamed == ["tinychain 0.35 → 0.29"]
    assert found.suspects == 3


def test_every_dump_is_used_again(desk: Desk, gone_round: Finished) -> None:
    before = desk.dumped()
    told = Found.of(desk.search("blame", "Narrow", OLDER, "tinychain==0.38"))
    assert (told.blamed, told.suspects) == (Found.of(gone_round).blamed, Found.of(gone_round).suspects)
    assert desk.dumped() == before, "what is known is told"
    searched = desk.search("blame", "Narrow", OLDER, "tinychain==0.38", "--fresh")
    assert Found.of(searched) == Found.of(gone_round)
    assert desk.dumped() == before


def test_releases_of_an_audit_are_named_by_their_ids(desk: Desk) -> None:
    small: dict[str, Any] = {
        "exclude-newer": None,
        "stimulus": {"trajectories": 2, "steps": 5},
        "bank": {"states": 8, "budget": 50},
    }
    releases = [
        {"id": "before", "requires": ["tinychain==0.29"], "pins": ["tinymath==1.2"]},
        {"id": "after", "requires": ["tinychain==0.38"]},
    ]
    matrix = write_matrix(desk.program.folder / "small.yaml", releases, [{"id": identifier("Narrow")}], **small)
    audited = desk.program("run", matrix, "--db", desk.database)
    assert audited.code == 0, audited.stdout + audited.stderr
    found = Found.of(desk.search("blame", "Narrow", "before", "after"))
    assert found.blamed == ["tinymath 1.2 → 1.5"]
    dumped = desk.dumped()
    same = Found.of(desk.search("blame", "Narrow", "before", "tinychain==0.38"))
    assert same.blamed == found.blamed
    assert desk.dumped() == dumped, "the same locks by another name"


def test_interrupted_it_goes_on_where_it_was(desk: Desk) -> None:
    own = replace(desk, database=desk.program.folder / "interrupted.duckdb")
    command = own.command("blame", "Both", OLDER, "tinychain==0.38")
    with own.program.started(*command) as harness:
        harness.wait_for("blaming 1/")
        harness.process.send_signal(signal.SIGINT)
        finished = harness.finish()
    assert (finished.code, "the same command continues" in finished.sentence) == (130, True)
    before = own.dumped()
    assert len(before) >= 2
    found = Found.of(own.program(*command))
    assert found.blamed == ["tinychain 0.29 → 0.38", "tinymath 1.2 → 1.5"]
    assert before < own.dumped()


@pytest.mark.parametrize(
    ("name", "older", "newer", "said"),
    [
        ("Narrow", OLDER, "tinychain==0.99", "tinychain==0.99 cannot be resolved: .*no version of tinychain==0.99"),
        ("Narrow", "tinychain==0.99", OLDER, "tinychain==0.99 cannot be resolved: .*no version of tinychain==0.99"),
        ("Narrow", OLDER, "tinychain=0.30", "'tinychain=0.30' is not a requirement"),
        ("Narrow", OLDER, "", "a release needs a requirement"),
        ("Narrow", OLDER, "nothing-of-release-audit", "nothing-of-release-audit was not found in the package registry"),
        ("Narrow", OLDER, OLDER, "there is nothing between a release and itself"),
        ("Damped", OLDER, "tinychain==0.30", "are the same but for rounding"),
        ("None", OLDER, "tinychain==0.30", "does not offer .*: NameNotFound"),
        ("Narrow", OLDER, "tinychain==0.20", "tinychain-0.20.* cannot be looked at: RuntimeError: this version does"),
    ],
)
def test_mistakes_are_a_clear_sentence(desk: Desk, name: str, older: str, newer: str, said: str) -> None:
    finished = desk.program(*desk.command("blame", name, older, newer), **ONLINE)
    assert finished.code == 2
    assert re.search(said, finished.sentence), finished.sentence


# Without a world


def lock(**versions: str) -> Lock:
    return Lock.from_text("".join(f"{name}=={version}\n" for name, version in versions.items()))


def shown(release: Release, behaviour: str) -> ReleaseBehaviour:
    return ReleaseBehaviour(release=release, behaviour=behaviour)


def release(name: str, python: str, **versions: str) -> Release:
    interpreter = Interpreter(path=Path("/p"), implementation="CPython", version=python)
    return Release(request=replace(request("a"), id=name), interpreter=interpreter, lock=lock(**versions))


def test_suspects_are_what_differs_what_came_first_then_what_was_named() -> None:
    older, newer = lock(a="1", b="1", d="1", z="1"), lock(a="2", b="1", c="1", z="2")
    assert blaming.moves(older, newer, ["Z[extra]>=1"]) == (
        Move(package="c", older=None, newer="1"),
        Move(package="z", older="1", newer="2"),
        Move(package="a", older="1", newer="2"),
        Move(package="d", older="1", newer=None),
    )


@pytest.mark.parametrize(
    ("newer", "said"),
    [
        (release("newer", "3.11.7", a="1"), "older and newer differ, but not in their distributions"),
        (release("newer", "3.12.1", a="2"), "older ran on Python 3.11.7 and newer on 3.12.1"),
    ],
)
def test_what_is_not_in_the_distributions_cannot_be_blamed(newer: Release, said: str) -> None:
    older = release("older", "3.11.7", a="1")
    ends = {"older": shown(older, "1"), "newer": shown(newer, "2")}
    session = SimpleNamespace(
        reference=older, show=lambda asked: ends[asked.id], changed=lambda one, other: one is not other
    )
    with pytest.raises(UsageError, match=said):
        blaming.blame(cast("Session", session), newer.request, Quiet())


def test_a_mixture_is_the_older_release_in_all_that_did_not_move() -> None:
    def end(name: str, day: datetime.date | None, **changes: Any) -> Release:
        each = release(name, "3.11.7", a=changes.pop("version"))
        return replace(each, request=replace(each.request, exclude_newer=day, **changes))

    one, other = datetime.date(2026, 1, 1), datetime.date(2026, 2, 1)
    older = end("older", one, version="1", edits={"g": 1}, source=("a",), like="known")
    newer = end("newer", other, version="2", edits={"g": 2}, source=("b",))
    asked = []

    def show(request: Any) -> ReleaseBehaviour:
        if request.id not in ("older", "newer"):
            asked.append(request)
        return shown(newer if request.id == "newer" else older, str(request.edits["g"]))

    session = SimpleNamespace(
        reference=older, show=show, changed=lambda first, second: first.behaviour != second.behaviour
    )
    found = blaming.blame(cast("Session", session), newer.request, Quiet())
    assert [move.told for move in found.blamed] == ["edits: g = 1 → g = 2"]
    assert {each.known_as for each in asked} == {"known"}, "what the matrix says of the older one holds"
    assert {(each.exclude_newer, each.source) for each in asked} == {(other, ("a", "b"))}
    assert [dict(each.edits) for each in asked] == [{"g": 1}, {"g": 2}]
    assert [each.pins for each in asked] == [("a==2",), ("a==1",)]


def keep(store: Store, name: str, requires: str, *, matrix: str = "m", environment: str = "E", **versions: str) -> None:
    """A release of an audit."""
    locked = lock(**versions)
    store.put_locks({locked.digest: (locked.text, locked.packages)})
    row = replace(stored_runs.release(name, 0, requires=requires), lock_digest=locked.digest)
    run = replace(stored_runs.RUN, run_id=matrix, matrix=matrix)
    stored_runs.finish(store, run, [row], [stored_runs.cell(name, 0, None, environment=environment)])


def test_a_stored_release_is_everything_at_the_versions_of_its_lock(store: Store) -> None:
    keep(store, "r", "a[x, y]>=1, <2, b, c==3", a="1.5", b="2", d="4")
    found = adhoc.stored(store, "r")
    assert found is not None
    assert found.lock == lock(a="1.5", b="2", d="4").text
    assert found.row == {
        "id": "r",
        "requires": ["a[x, y]>=1, <2", "b", "c==3"],
        "pins": ["a==1.5", "b==2", "d==4"],
        "python": "3.11.7",
    }
    assert adhoc.stored(store, "other") is None


def test_a_stored_release_that_was_edited_cannot_be_repeated(store: Store) -> None:
    keep(store, "r", "a==1, with gravity = 9.8", a="1")
    with pytest.raises(UsageError, match="r was edited"):
        adhoc.stored(store, "r")


def test_an_id_of_two_matrices_is_that_of_the_one_that_had_the_environment(store: Store) -> None:
    keep(store, "r", "a==1", matrix="one", environment="E", a="1")
    keep(store, "r", "a==2", matrix="two", environment="F", a="2")
    found = adhoc.stored(store, "r", "F")
    assert found is not None
    assert found.row["requires"] == ["a==2"]
    with pytest.raises(UsageError, match="r is another release in one and two: give its requirements instead"):
        adhoc.stored(store, "r")
    with pytest.raises(UsageError, match=r"no audit in .* has dumped G"):
        adhoc.stored(store, "r", "G")
    keep(store, "s", "a==1", matrix="three", environment="E", a="1")
    keep(store, "s", "a==1", matrix="four", environment="F", a="1")
    assert adhoc.stored(store, "s") is not None, "the same release in both"


def test_an_id_that_no_audit_has_is_told_as_one(store: Store) -> None:
    with pytest.raises(UsageError, match=r"no audit in .* has a release a-9.9.1; .* written like 'a==9.9.1'"):
        adhoc.named(store, "a-9.9.1", "E", [], None)
    assert adhoc.named(store, "a-b", "E", [], None).row["requires"] == ["a-b"], "a package may be called so"


@pytest.mark.parametrize(
    ("requires", "name"),
    [
        (["gymnasium[mujoco]==1.3.0", "mujoco==3.1.6"], "gymnasium-1.3.0+mujoco-3.1.6"),
        (["mujoco<4,>=3"], "mujoco-below-4-from-3"),
        (["mujoco>3"], "mujoco-above-3"),
        (["mujoco"], "mujoco"),
        (["torch==2.0+cpu"], "torch-2.0-cpu"),
    ],
)
def test_requirements_have_a_name_of_their_own(requires: list[str], name: str) -> None:
    row = adhoc.release_row(requires, [])
    assert row["id"] == name
    file = adhoc.matrix("m", [row], [{"id": "E"}], None)
    assert (file.matrix.name, file.path.name) == ("m", "m")
