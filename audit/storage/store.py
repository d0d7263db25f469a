"""The store: one DuckDB file with arrays beside it, one writer, every cell committed as it finishes.

What is kept of comparisons, laws, explanations, nights and the index's answers has a file each; the rest is here: runs,
stimuli and dumps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from audit.digests import digest as digest_of
from audit.failures import Failure, Status
from audit.stimuli.bank import COVERAGE, Bank
from audit.stimuli.stimulus import Stimulus, packed
from audit.storage.arrays import ArrayFiles
from audit.storage.database import Database, Parameters
from audit.storage.records import (
    DumpRecord,
    NewDump,
    ProbeRecord,
    ReproductionRecord,
    RunCell,
    RunEnvironment,
    RunRecord,
    RunRelease,
    StoredArray,
    Table,
    now,
)
from audit.storage.stored_answers import StoredAnswers
from audit.storage.stored_attempts import StoredAttempts
from audit.storage.stored_comparisons import StoredComparisons
from audit.storage.stored_explanations import StoredExplanations
from audit.storage.stored_laws import StoredLaws
from audit.storage.stored_nights import StoredNights


class Store:
    """An open database with its arrays beside it. Use as a context manager."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.arrays = ArrayFiles(folder=path.parent / "arrays")
        self._database = Database(path, read_only=read_only)
        self.comparisons = StoredComparisons(self._database)
        self.laws = StoredLaws(self._database)
        self.answers = StoredAnswers(self._database)
        self.attempts = StoredAttempts(self._database)
        self.explanations = StoredExplanations(self._database, self.arrays)
        self.nights = StoredNights(self._database)
        self._origins: dict[str, tuple[str, str | None]] = {}

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def query(self, sql: str, parameters: Parameters = ()) -> Table:
        """Run one query."""
        return self._database.query(sql, parameters)

    def write_parquet(self, sql: str, path: Path, parameters: Parameters = ()) -> None:
        """Run one query and write its answer to a Parquet file."""
        self._database.write_parquet(sql, path, parameters)

    # Runs

    def begin_run(self, run: RunRecord) -> None:
        """Record that a run has begun."""
        with self._database.transaction():
            columns = list(run.__dataclass_fields__)
            self._database.insert("runs", columns, [tuple(getattr(run, name) for name in columns)])

    def put_run_files(self, run_id: str, folder: Path, digests: Mapping[str, str]) -> None:
        """Keep where the files lie that environments of a run are made of, and what they were, by environment."""
        with self._database.transaction():
            rows = [(run_id, environment, str(folder), digest) for environment, digest in digests.items()]
            self._database.insert("run_files", ["run_id", "environment", "folder", "digest"], rows)

    def put_locks(self, locks: Mapping[str, tuple[str, Sequence[tuple[str, str]]]]) -> None:
        """Keep locks (by digest: text and packages) that the store does not have yet."""
        known = {row[0] for row in self._database.rows("SELECT lock_digest FROM internal.locks")}
        new = {digest: lock for digest, lock in locks.items() if digest not in known}
        with self._database.transaction():
            self._database.insert(
                "locks", ["lock_digest", "text"], [(digest, text) for digest, (text, _) in new.items()]
            )
            packages = [(digest, *package) for digest, (_, packages) in new.items() for package in packages]
            self._database.insert("lock_packages", ["lock_digest", "package", "version"], packages)

    def finish_run(
        self,
        run_id: str,
        exit_code: int,
        releases: Sequence[RunRelease],
        cells: Sequence[RunCell],
        environments: Sequence[RunEnvironment],
        failures: Sequence[Failure],
    ) -> None:
        """Record what a run came to, all of it or nothing.

        It is later than every other, also where the clock was set back in between: the last run is the latest.
        """
        with self._database.transaction():
            self._database.insert_records("run_releases", run_id, releases)
            self._database.insert_records("run_cells", run_id, cells)
            self._database.insert_records("run_environments", run_id, environments)
            self._database.insert_records("failures", run_id, failures)
            self._database.execute(
                "UPDATE internal.runs SET exit_code = ?, finished = greatest(?,"
                " (SELECT max(finished) FROM internal.runs) + INTERVAL 1 MICROSECOND) WHERE run_id = ?",
                [exit_code, now(), run_id],
            )

    def amend_run(self, run_id: str, exit_code: int, failures: Sequence[Failure]) -> None:
        """Record what failed after the run was finished."""
        with self._database.transaction():
            self._database.insert_records("failures", run_id, failures)
            self._database.execute("UPDATE internal.runs SET exit_code = ? WHERE run_id = ?", [exit_code, run_id])

    # Probes, stimuli and dumps

    def probe(self, key: str) -> ProbeRecord | None:
        """The probe under that key."""
        for status, reason, layout in self._database.rows(
            "SELECT status, reason, layout FROM internal.probes WHERE probe_key = ?", [key]
        ):
            return ProbeRecord(status=Status(status), reason=reason, layout=json.loads(layout) if layout else None)
        return None

    def put_probe(self, key: str, probe: ProbeRecord) -> None:
        """Keep a probe."""
        layout = json.dumps(probe.layout) if probe.layout is not None else None
        with self._database.transaction():
            self._database.replace("probes", (key, probe.status, probe.reason, layout))

    def put_stimuli(self, stimuli: Iterable[Stimulus]) -> None:
        """Keep stimuli, as the very bytes that the releases are given. A file that is gone is written anew."""
        known = {row[0] for row in self._database.rows("SELECT stimulus_digest FROM internal.stimuli")}
        rows = []
        for stimulus in {each.digest: each for each in stimuli}.values():
            path = self.arrays.put_bytes(stimulus.digest, stimulus.payload, ".stimulus.npz")
            if stimulus.digest in known:
                continue
            trajectories, _ = stimulus.batches.get("horizon", (0, 0))
            rows.append((stimulus.digest, trajectories, stimulus.steps, str(path.relative_to(self.path.parent))))
        with self._database.transaction():
            self._database.insert("stimuli", ["stimulus_digest", "trajectories", "steps", "file"], rows)

    def bank(self, key: str) -> Bank | tuple[Status, str] | None:
        """The bank under that key, or the status and reason for which there is none; nothing where its file is gone.

        One whose file is damaged is gone too.
        """
        found = self._database.rows(
            "SELECT status, reason, file, coverage FROM internal.banks WHERE bank_key = ?", [key]
        )
        for status, reason, file, coverage in found:
            if file is None:
                return Status(status), reason
            arrays = self.arrays.unpacked(self.path.parent / file) or {}
            if {"states", "actions", "source"} <= set(arrays):
                return Bank(
                    states=arrays["states"],
                    actions=arrays["actions"],
                    source=arrays["source"],
                    coverage=COVERAGE.validate_json(coverage),
                )
        return None

    def put_bank(self, key: str, bank: Bank | tuple[Status, str]) -> None:
        """Keep a bank, or why there is none."""
        if isinstance(bank, Bank):
            payload = packed({"states": bank.states, "actions": bank.actions, "source": bank.source})
            path = self.arrays.put_bytes(digest_of(payload), payload, ".bank.npz")
            coverage = COVERAGE.dump_json(bank.coverage).decode()
            row: tuple[str | None, ...] = (key, Status.OK, "", str(path.relative_to(self.path.parent)), coverage)
        else:
            row = (key, *bank, None, None)
        with self._database.transaction():
            self._database.replace("banks", row)

    def machines(self, stimulus: str) -> list[str]:
        """The classes of machines on which something was dumped with that stimulus."""
        rows = self._database.rows(
            "SELECT DISTINCT machine FROM internal.dumps WHERE stimulus_digest = ? ORDER BY ALL", [stimulus]
        )
        return [name for (name,) in rows]

    def dumps(self, keys: Iterable[str]) -> dict[str, DumpRecord]:
        """The dumps under those keys whose arrays are all still there."""
        rows = self._database.rows(
            "SELECT cell_key, status, reason, behaviour, coalesce(description->>'detail', '') FROM internal.dumps"
            " WHERE cell_key IN (SELECT unnest(?::VARCHAR[]))",
            [list(keys)],
        )
        whole: dict[str | None, bool] = {None: True}
        for behaviour in {row[3] for row in rows} - {None}:
            whole[behaviour] = all(self.arrays.has(each.digest) for each in self.outputs(behaviour).values())
        return {
            key: DumpRecord(status=Status(status), reason=reason, behaviour=behaviour, detail=detail)
            for key, status, reason, behaviour, detail in rows
            if whole[behaviour]
        }

    def known_behaviours(self, behaviours: Iterable[str]) -> set[str]:
        """Those among them whose outputs are kept."""
        rows = self._database.rows(
            "SELECT behaviour FROM internal.behaviours WHERE behaviour IN (SELECT unnest(?::VARCHAR[]))",
            [list(behaviours)],
        )
        return {row[0] for row in rows}

    def put_dumps(self, dumps: Sequence[NewDump]) -> None:
        """Keep dumps, all of them in one transaction. Their arrays are in their files already.

        Of a behaviour that is known, the outputs are there already.
        """
        new = {each.record.behaviour: each for each in reversed(dumps) if each.outputs and each.record.behaviour}
        for behaviour in self.known_behaviours(str(each) for each in new):
            del new[behaviour]
        outputs = [
            (behaviour, output, array.digest, array.dtype, json.dumps(array.shape))
            for behaviour, each in new.items()
            for output, array in each.outputs.items()
        ]
        with self._database.transaction():
            self._database.insert("dumps", _DUMP_COLUMNS, [_dump_row(each) for each in dumps], replace=True)
            self._database.insert(
                "behaviour_outputs", ["behaviour", "output", "array_digest", "dtype", "shape"], outputs
            )
            ratios = [(behaviour, each.null_ratio) for behaviour, each in new.items()]
            self._database.insert("behaviours", ["behaviour", "null_ratio"], ratios)

    def outputs(self, behaviour: str) -> dict[str, StoredArray]:
        """The arrays that a behaviour consists of."""
        rows = self._database.rows(
            "SELECT output, array_digest, dtype, shape FROM internal.behaviour_outputs WHERE behaviour = ?", [behaviour]
        )
        return {
            output: StoredArray(digest=digest, dtype=dtype, shape=tuple(json.loads(shape)))
            for output, digest, dtype, shape in rows
        }

    def description(self, key: str) -> dict[str, Any]:
        """What a release said of the environment when it was dumped."""
        found = self._database.rows("SELECT description FROM internal.dumps WHERE cell_key = ?", [key])
        return dict(json.loads(found[0][0])) if found else {}

    def stimulus_of(self, behaviour: str) -> dict[str, NDArray[Any]]:
        """What a release was given when it showed a behaviour; nothing where the file is gone or damaged."""
        self.look_up([behaviour])
        _, file = self._origins.get(behaviour, (None, None))
        return (self.arrays.unpacked(self.path.parent / file) if file is not None else None) or {}

    def machine_of(self, behaviour: str) -> str:
        """The kind of machine that a behaviour was shown on; it is part of the behaviour's digest."""
        self.look_up([behaviour])
        return self._origins[behaviour][0]

    def look_up(self, behaviours: Iterable[str]) -> None:
        """Find out where behaviours were shown, which does not change: one look through the dumps serves them all."""
        unknown = [each for each in behaviours if each not in self._origins]
        if unknown:
            rows = self._database.rows(
                "SELECT behaviour, any_value(machine), any_value(file) FROM internal.dumps"
                " LEFT JOIN internal.stimuli USING (stimulus_digest)"
                " WHERE behaviour IN (SELECT unnest(?::VARCHAR[])) GROUP BY behaviour",
                [unknown],
            )
            self._origins |= {behaviour: (machine, file) for behaviour, machine, file in rows}

    # The paper's figures

    def put_reproductions(self, records: Sequence[ReproductionRecord]) -> None:
        """Keep figures of the paper measured again, in place of those measured before."""
        self._database.replace_records("reproductions", records)


_DUMP_COLUMNS = (
    "cell_key", "status", "reason", "behaviour", "machine", "stimulus_digest", "description", "steps", "seconds",
    "dumped",
)  # fmt: skip


def _dump_row(dump: NewDump) -> tuple[Any, ...]:
    record = dump.record
    return (
        dump.key, record.status, record.reason, record.behaviour, dump.machine, dump.stimulus,
        json.dumps({**dump.description, "detail": record.detail}), dump.steps, dump.seconds, now(),
    )  # fmt: skip
