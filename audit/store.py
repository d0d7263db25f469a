"""The store: one DuckDB file, one writer, every cell committed as it finishes. The only file that imports duckdb."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from numpy.typing import NDArray

from analysis.anatomy import ConstantDifference
from analysis.stages import Difference
from analysis.verdicts import Evidence, Judgement
from audit import migrating
from audit.arrays import ArrayFiles
from audit.bank import COVERAGE, Bank
from audit.digests import digest as digest_of
from audit.errors import StoreError, UsageError
from audit.failures import Failure
from audit.records import (
    AttributionRecord,
    CertificateRecord,
    DumpRecord,
    Examination,
    ExplanationRecord,
    NewDump,
    ProbeRecord,
    ReproductionRecord,
    RunCell,
    RunEnvironment,
    RunRecord,
    RunRelease,
    ScreeningRecord,
    SensitivityRecord,
    StoredArray,
    Table,
    now,
)
from audit.stimulus import Stimulus, packed, unpacked

# No extension is fetched behind the user's back, as one would be on opening another kind of database.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


class Store:
    """An open database with its arrays beside it. Use as a context manager."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.arrays = ArrayFiles(folder=path.parent / "arrays")
        if read_only and not path.is_file():
            raise UsageError(f"there is no database at {path} yet: run an audit first, or give another with --db")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = duckdb.connect(str(path), read_only=read_only, config=_CONFIG)
        except (duckdb.Error, OSError) as error:
            raise _unusable(path, error) from None
        try:
            migrating.migrate(self._connection, path, read_only=read_only)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._connection.close()
        except duckdb.Error as error:
            raise _unusable(self.path, error) from None

    # Runs

    def begin_run(self, run: RunRecord) -> None:
        """Record that a run has begun."""
        with self._transaction():
            columns = list(run.__dataclass_fields__)
            self._insert("runs", columns, [tuple(getattr(run, name) for name in columns)])

    def put_locks(self, locks: Mapping[str, tuple[str, Sequence[tuple[str, str]]]]) -> None:
        """Keep locks (by digest: text and packages) that the store does not have yet."""
        known = {row[0] for row in self._rows("SELECT lock_digest FROM internal.locks")}
        new = {digest: lock for digest, lock in locks.items() if digest not in known}
        with self._transaction():
            self._insert("locks", ["lock_digest", "text"], [(digest, text) for digest, (text, _) in new.items()])
            packages = [(digest, *package) for digest, (_, packages) in new.items() for package in packages]
            self._insert("lock_packages", ["lock_digest", "package", "version"], packages)

    def finish_run(
        self,
        run_id: str,
        exit_code: int,
        releases: Sequence[RunRelease],
        cells: Sequence[RunCell],
        environments: Sequence[RunEnvironment],
        failures: Sequence[Failure],
    ) -> None:
        """Record what a run came to, all of it or nothing."""
        with self._transaction():
            self._insert_records("run_releases", run_id, releases)
            self._insert_records("run_cells", run_id, cells)
            self._insert_records("run_environments", run_id, environments)
            self._insert_records("failures", run_id, failures)
            self._execute(
                "UPDATE internal.runs SET finished = ?, exit_code = ? WHERE run_id = ?",
                [now(), exit_code, run_id],
            )

    # Probes, stimuli and dumps

    def probe(self, key: str) -> ProbeRecord | None:
        """The probe under that key."""
        for status, reason, layout in self._rows(
            "SELECT status, reason, layout FROM internal.probes WHERE probe_key = ?", [key]
        ):
            return ProbeRecord(status=status, reason=reason, layout=json.loads(layout) if layout else None)
        return None

    def put_probe(self, key: str, probe: ProbeRecord) -> None:
        """Keep a probe."""
        layout = json.dumps(probe.layout) if probe.layout is not None else None
        with self._transaction():
            self._replace("probes", (key, probe.status, probe.reason, layout))

    def put_stimuli(self, stimuli: Iterable[Stimulus]) -> None:
        """Keep stimuli, as the very bytes that the releases are given."""
        known = {row[0] for row in self._rows("SELECT stimulus_digest FROM internal.stimuli")}
        new = {stimulus.digest: stimulus for stimulus in stimuli if stimulus.digest not in known}
        rows = []
        for stimulus in new.values():
            path = self.arrays.put_bytes(stimulus.digest, stimulus.payload, ".stimulus.npz")
            trajectories, _ = stimulus.batches.get("horizon", (0, 0))
            rows.append((stimulus.digest, trajectories, stimulus.steps, str(path.relative_to(self.path.parent))))
        with self._transaction():
            self._insert("stimuli", ["stimulus_digest", "trajectories", "steps", "file"], rows)

    def bank(self, key: str) -> Bank | tuple[str, str] | None:
        """The bank under that key, or the status and reason for which there is none; nothing where its file is gone."""
        found = self._rows("SELECT status, reason, file, coverage FROM internal.banks WHERE bank_key = ?", [key])
        for status, reason, file, coverage in found:
            if file is None:
                return status, reason
            path = self.path.parent / file
            if path.is_file():
                arrays = unpacked(path.read_bytes())
                return Bank(
                    states=arrays["states"],
                    actions=arrays["actions"],
                    source=arrays["source"],
                    coverage=COVERAGE.validate_json(coverage),
                )
        return None

    def put_bank(self, key: str, bank: Bank | tuple[str, str]) -> None:
        """Keep a bank, or why there is none."""
        if isinstance(bank, Bank):
            payload = packed({"states": bank.states, "actions": bank.actions, "source": bank.source})
            path = self.arrays.put_bytes(digest_of(payload), payload, ".bank.npz")
            coverage = COVERAGE.dump_json(bank.coverage).decode()
            row: tuple[str | None, ...] = (key, "ok", "", str(path.relative_to(self.path.parent)), coverage)
        else:
            row = (key, *bank, None, None)
        with self._transaction():
            self._replace("banks", row)

    def dumps(self, keys: Iterable[str]) -> dict[str, DumpRecord]:
        """The dumps under those keys whose arrays are all still there."""
        rows = self._rows(
            "SELECT cell_key, status, reason, behaviour, coalesce(description->>'detail', '') FROM internal.dumps"
            " WHERE cell_key IN (SELECT unnest(?::VARCHAR[]))",
            [list(keys)],
        )
        whole: dict[str | None, bool] = {None: True}
        for behaviour in {row[3] for row in rows} - {None}:
            whole[behaviour] = all(self.arrays.has(each.digest) for each in self.outputs(behaviour).values())
        return {
            key: DumpRecord(status=status, reason=reason, behaviour=behaviour, detail=detail)
            for key, status, reason, behaviour, detail in rows
            if whole[behaviour]
        }

    def put_dump(self, dump: NewDump) -> None:
        """Keep a dump, in one transaction. Its arrays are in their files already."""
        record = dump.record
        row = (
            dump.key, record.status, record.reason, record.behaviour, dump.machine, dump.stimulus,
            json.dumps({**dump.description, "detail": record.detail}), dump.steps, dump.seconds, now(),
        )  # fmt: skip
        with self._transaction():
            self._replace("dumps", row)
            if record.behaviour is not None and not self.outputs(record.behaviour):
                outputs = [
                    (record.behaviour, output, array.digest, array.dtype, json.dumps(array.shape))
                    for output, array in dump.outputs.items()
                ]
                self._insert("behaviour_outputs", ["behaviour", "output", "array_digest", "dtype", "shape"], outputs)
                self._insert("behaviours", ["behaviour", "null_ratio"], [(record.behaviour, dump.null_ratio)])

    def outputs(self, behaviour: str) -> dict[str, StoredArray]:
        """The arrays that a behaviour consists of."""
        rows = self._rows(
            "SELECT output, array_digest, dtype, shape FROM internal.behaviour_outputs WHERE behaviour = ?", [behaviour]
        )
        return {
            output: StoredArray(digest=digest, dtype=dtype, shape=tuple(json.loads(shape)))
            for output, digest, dtype, shape in rows
        }

    def description(self, key: str) -> dict[str, Any]:
        """What a release said of the environment when it was dumped."""
        found = self._rows("SELECT description FROM internal.dumps WHERE cell_key = ?", [key])
        return dict(json.loads(found[0][0])) if found else {}

    def stimulus_of(self, behaviour: str) -> dict[str, NDArray[Any]]:
        """What a release was given when it showed a behaviour; nothing where the file is gone."""
        found = self._rows(
            "SELECT file FROM internal.stimuli JOIN internal.dumps USING (stimulus_digest) WHERE behaviour = ? LIMIT 1",
            [behaviour],
        )
        path = self.path.parent / found[0][0] if found else None
        return unpacked(path.read_bytes()) if path is not None and path.is_file() else {}

    def machine_of(self, behaviour: str) -> str:
        """The kind of machine that a behaviour was shown on; it is part of the behaviour's digest."""
        return str(self._rows("SELECT machine FROM internal.dumps WHERE behaviour = ? LIMIT 1", [behaviour])[0][0])

    # Comparisons

    def compared(self, reads: str) -> set[tuple[str, str]]:
        """The pairs of behaviours that have been judged in that way."""
        found = self._rows("SELECT first, second FROM internal.comparisons WHERE reads = ?", [reads])
        return {(first, second) for first, second in found}

    def put_comparison(
        self, first: str, second: str, reads: str, judgement: Judgement, evidence: Sequence[Evidence]
    ) -> None:
        """Keep a judgement and what it was read from, in place of an earlier one."""
        with self._transaction():
            for table in ("comparisons", "evidence"):
                self._execute(
                    f"DELETE FROM internal.{table} WHERE first = ? AND second = ? AND reads = ?", [first, second, reads]
                )
            self._insert(
                "comparisons",
                [
                    "first", "second", "reads", "verdict", "reason", "first_step_separation", "first_step_ulps",
                    "horizon_separation", "paper_verdict", "first_step_ratio", "states_forced", "states_beyond",
                    "outputs_changed", "beyond",
                ],
                [
                    (
                        first, second, reads, str(judgement.verdict), judgement.reason, judgement.first_step,
                        judgement.first_step_ulps, judgement.horizon, str(judgement.paper_verdict),
                        judgement.first_step_ratio, judgement.states_forced, judgement.states_beyond,
                        judgement.outputs_changed, list(judgement.beyond),
                    )
                ],
            )  # fmt: skip
            columns = [
                "first", "second", "reads", "output", "same_bits", "first_step_separation", "first_step_ulps",
                "horizon_separation", "horizon_ulps", "interface", "first_step_ratio", "states_beyond",
            ]  # fmt: skip
            rows = [(first, second, reads, *_evidence_row(each)) for each in evidence]
            self._insert("evidence", columns, rows)

    def verdicts(self, reads: str) -> dict[tuple[str, str], str]:
        """The verdicts on all pairs of behaviours that have been judged in that way."""
        found = self._rows("SELECT first, second, verdict FROM internal.comparisons WHERE reads = ?", [reads])
        return {(first, second): verdict for first, second, verdict in found}

    def unexplained(self, reads: str) -> set[tuple[str, str]]:
        """The amplified pairs of behaviours whose growth no twin explains."""
        found = self._rows(
            "SELECT first, second FROM internal.certificates WHERE reads = ? AND certificate = 'unexplained'", [reads]
        )
        return {(first, second) for first, second in found}

    def certified(self, reads: str) -> set[tuple[str, str]]:
        """The pairs of behaviours whose growth has been held against twins."""
        found = self._rows("SELECT first, second FROM internal.certificates WHERE reads = ?", [reads])
        return {(first, second) for first, second in found}

    def put_certificate(self, record: CertificateRecord) -> None:
        """Keep a certificate with the curves it was read from."""
        with self._transaction():
            self._replace("certificates", [getattr(record, name) for name in record.__dataclass_fields__])

    def put_sensitivity(self, records: Sequence[SensitivityRecord]) -> None:
        """Keep what planted faults showed, in place of what was known of the same before."""
        self._replace_records("sensitivity", records)

    # Laws

    def screened(self) -> set[str]:
        """The keys of all screenings that are there."""
        return {row[0] for row in self._rows("SELECT DISTINCT key FROM internal.screenings")}

    def attributed(self) -> set[str]:
        """The keys of all attributions that are there."""
        return {row[0] for row in self._rows("SELECT DISTINCT key FROM internal.attributions")}

    def forget_laws(self, behaviours: Sequence[str], names: Sequence[str]) -> None:
        """Let go of what reference sets of other names than these said of behaviours: nobody asks them any more."""
        given = [list(behaviours), list(names)]
        with self._transaction():
            for table, columns in (
                ("screenings", ("reference_behaviour", "tested_behaviour")),
                ("attributions", ("behaviour",)),
            ):
                for column in columns:
                    self._execute(
                        f"DELETE FROM internal.{table} WHERE {column} IN (SELECT unnest(?::VARCHAR[]))"
                        " AND laws NOT IN (SELECT unnest(?::VARCHAR[]))",
                        given,
                    )

    def put_screenings(self, records: Sequence[ScreeningRecord]) -> None:
        """Keep what laws showed, in place of what was known of the same before."""
        self._replace_records("screenings", records)

    def put_attributions(self, records: Sequence[AttributionRecord]) -> None:
        """Keep which constants explain laws, in place of what was known of the same before."""
        self._replace_records("attributions", records)

    # Explanations

    def examination(self, key: str) -> Examination | None:
        """What was answered under that key, if all of it is still there."""
        for status, reason, meta, arrays in self._rows(
            "SELECT status, reason, meta, arrays FROM internal.examinations WHERE key = ?", [key]
        ):
            digests = json.loads(arrays)
            if all(self.arrays.has(digest) for digest in digests.values()):
                found = {name: self.arrays.get(digest) for name, digest in digests.items()}
                return Examination(status=status, reason=reason, meta=json.loads(meta), arrays=found)
        return None

    def put_examination(self, key: str, found: Examination) -> None:
        """Keep an answer. Its arrays go into their files first."""
        digests = {name: self.arrays.put(array) for name, array in found.arrays.items()}
        with self._transaction():
            self._replace(
                "examinations", (key, found.status, found.reason, json.dumps(found.meta), json.dumps(digests))
            )

    def explained(self) -> dict[tuple[str, str], str]:
        """The keys of all explanations that are there, by the older and the newer behaviour."""
        found = self._rows("SELECT older_behaviour, newer_behaviour, key FROM internal.explanations")
        return {(older, newer): key for older, newer, key in found}

    def put_explanation(
        self,
        record: ExplanationRecord,
        constants: Sequence[ConstantDifference],
        stages: Sequence[Difference],
    ) -> None:
        """Keep an explanation and what it rests on, in place of an earlier one."""
        pair = [record.older_behaviour, record.newer_behaviour]
        with self._transaction():
            for table in ("explanations", "constant_differences", "stage_differences"):
                self._execute(f"DELETE FROM internal.{table} WHERE older_behaviour = ? AND newer_behaviour = ?", pair)
            columns = list(record.__dataclass_fields__)
            self._insert("explanations", columns, [tuple(getattr(record, name) for name in columns)])
            self._insert(
                "constant_differences",
                ["older_behaviour", "newer_behaviour", "place", "kind", "field", "entry", "older_value", "newer_value",
                 "size"],
                [
                    (*pair, place, str(each.kind), each.field, each.entry, each.older, each.newer, each.size)
                    for place, each in enumerate(constants)
                ],
            )  # fmt: skip
            self._insert(
                "stage_differences",
                ["older_behaviour", "newer_behaviour", "place", "stage", "field", "states", "ratio", "separation",
                 "dtypes"],
                [
                    (*pair, each.place, each.stage, each.field, each.states, each.ratio, each.separation,
                     " → ".join(each.dtypes) if each.dtypes else "")
                    for each in stages
                ],
            )  # fmt: skip

    def blamed(self, environment: str, older_lock: str, newer_lock: str) -> tuple[str, ...] | None:
        """The distributions that bring a change between two locks, in words; nothing where nobody searched."""
        found = self._rows(
            "SELECT blamed FROM internal.blames WHERE environment = ? AND older_lock = ? AND newer_lock = ?",
            [environment, older_lock, newer_lock],
        )
        return tuple(found[0][0]) if found else None

    def put_blame(
        self, environment: str, locks: tuple[str, str], blamed: Sequence[str], suspects: int, tried: int
    ) -> None:
        """Keep what a search for the distribution came to."""
        with self._transaction():
            self._replace("blames", (environment, *locks, list(blamed), suspects, tried))

    def put_reproductions(self, records: Sequence[ReproductionRecord]) -> None:
        """Keep figures of the paper measured again, in place of those measured before."""
        self._replace_records("reproductions", records)

    # Queries

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Table:
        """Run one query."""
        try:
            answer = self._connection.execute(sql, list(parameters))
            columns = tuple(each[0] for each in answer.description or ()) if answer is not None else ()
            return Table(columns=columns, rows=tuple(answer.fetchall()) if columns else ())
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {_first_lines(error)}") from None

    def write_parquet(self, sql: str, path: Path) -> None:
        """Run one query and write its answer to a Parquet file."""
        try:
            self._connection.sql(sql).write_parquet(str(path))
        except (duckdb.Error, AttributeError) as error:
            raise UsageError(f"the query could not be written to {path}: {_first_lines(error)}") from None

    # How

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._connection.begin()
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()
        except duckdb.Error as error:
            raise _unusable(self.path, error) from error

    def _execute(self, sql: str, parameters: Sequence[Any]) -> None:
        self._connection.execute(sql, list(parameters))

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, list(parameters)).fetchall()

    def _insert_records(self, table: str, run_id: str, records: Sequence[Any]) -> None:
        if records:
            columns = list(records[0].__dataclass_fields__)
            rows = [(run_id, *(getattr(record, name) for name in columns)) for record in records]
            self._insert(table, ["run_id", *columns], rows)

    def _replace(self, table: str, row: Sequence[Any]) -> None:
        """Insert a whole row in place of the one with its key."""
        places = ", ".join("?" for _ in row)
        self._execute(f"INSERT OR REPLACE INTO internal.{table} VALUES ({places})", row)

    def _replace_records(self, table: str, records: Sequence[Any]) -> None:
        """All of them or nothing."""
        with self._transaction():
            for record in records:
                self._replace(table, [getattr(record, name) for name in record.__dataclass_fields__])

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert all rows in one statement: column by column, as DuckDB likes it."""
        if rows:
            unnested = ", ".join("unnest(?)" for _ in columns)
            by_column = [list(values) for values in zip(*rows, strict=True)]
            self._execute(f"INSERT INTO internal.{table} ({', '.join(columns)}) SELECT {unnested}", by_column)


def read_parquet(path: Path) -> dict[str, list[Any]]:
    """The columns of a Parquet file, by name."""
    try:
        with duckdb.connect(config=_CONFIG) as connection:
            answer = connection.read_parquet(str(path))
            rows = answer.fetchall()
            return {name: [row[place] for row in rows] for place, name in enumerate(answer.columns)}
    except duckdb.Error as error:
        raise UsageError(f"{path} cannot be read: {_first_lines(error)}") from None


def _evidence_row(each: Evidence) -> tuple[Any, ...]:
    apart = each.horizon
    return (
        each.output,
        each.same_bits,
        each.first_step,
        each.first_step_ulps if not each.same_bits else 0.0,
        apart.horizon if apart is not None else 0.0,
        apart.horizon_ulps if apart is not None else 0.0,
        each.interface,
        each.ratio,
        int(each.reading.beyond.sum()) if each.reading is not None else 0,
    )


def _unusable(path: Path, error: Exception) -> StoreError:
    text = _first_lines(error)
    holder = re.search(r"PID (\d+)", str(error))
    if "lock" in text.lower() and holder:
        return StoreError(
            f"{path} is in use by process {holder[1]}: wait until that audit has ended, or give another file with --db"
        )
    if "No space left" in text or "not enough space" in text.lower():
        return StoreError(f"the disk is full: {path} could not be written. Make room and run the same command again")
    return StoreError(f"{path} cannot be used as a database: {text}")


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split("\n\n")[0].split())[:600]
