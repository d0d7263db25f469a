"""What the store keeps of why behaviours differ: answers of releases that were examined, explanations, blames."""

from __future__ import annotations

import json
from collections.abc import Sequence

from analysis.anatomy import ConstantDifference
from analysis.stages import Difference
from audit.failures import Status
from audit.storage.arrays import ArrayFiles
from audit.storage.database import Database
from audit.storage.records import BlameRecord, Examination, ExplanationRecord


class StoredExplanations:
    """Examinations of releases, and what came of them."""

    def __init__(self, database: Database, arrays: ArrayFiles) -> None:
        self._database = database
        self._arrays = arrays

    def examined(self, key: str) -> Status | None:
        """The status of what :meth:`examination` has, without its arrays; nothing where it has none."""
        found = self._database.rows("SELECT status, arrays FROM internal.examinations WHERE key = ?", [key])
        whole = (status for status, arrays in found if all(map(self._arrays.has, json.loads(arrays).values())))
        return next(map(Status, whole), None)

    def examination(self, key: str) -> Examination | None:
        """What was answered under that key, if all of it is still there."""
        for status, reason, meta, arrays in self._database.rows(
            "SELECT status, reason, meta, arrays FROM internal.examinations WHERE key = ?", [key]
        ):
            digests = json.loads(arrays)
            if all(self._arrays.has(digest) for digest in digests.values()):
                found = {name: self._arrays.get(digest) for name, digest in digests.items()}
                return Examination(status=Status(status), reason=reason, meta=json.loads(meta), arrays=found)
        return None

    def put_examination(self, key: str, found: Examination) -> None:
        """Keep an answer. Its arrays go into their files first."""
        digests = {name: self._arrays.put(array) for name, array in found.arrays.items()}
        with self._database.transaction():
            self._database.replace(
                "examinations", (key, found.status, found.reason, json.dumps(found.meta), json.dumps(digests))
            )

    def explained(self) -> dict[tuple[str, str], str]:
        """The keys of all explanations that are there, by the older and the newer behaviour."""
        found = self._database.rows("SELECT older_behaviour, newer_behaviour, key FROM internal.explanations")
        return {(older, newer): key for older, newer, key in found}

    def put_explanation(
        self,
        record: ExplanationRecord,
        constants: Sequence[ConstantDifference],
        stages: Sequence[Difference],
    ) -> None:
        """Keep an explanation and what it rests on, in place of an earlier one."""
        pair = [record.older_behaviour, record.newer_behaviour]
        with self._database.transaction():
            for table in ("explanations", "constant_differences", "stage_differences"):
                self._database.execute(
                    f"DELETE FROM internal.{table} WHERE older_behaviour = ? AND newer_behaviour = ?", pair
                )
            columns = list(record.__dataclass_fields__)
            self._database.insert("explanations", columns, [tuple(getattr(record, name) for name in columns)])
            self._database.insert(
                "constant_differences",
                ["older_behaviour", "newer_behaviour", "place", "kind", "field", "entry", "older_value", "newer_value",
                 "size"],
                [
                    (*pair, place, str(each.kind), each.field, each.entry, each.older, each.newer, each.size)
                    for place, each in enumerate(constants)
                ],
            )  # fmt: skip
            self._database.insert(
                "stage_differences",
                ["older_behaviour", "newer_behaviour", "place", "stage", "field", "states", "ratio", "separation",
                 "dtypes"],
                [
                    (*pair, each.place, each.stage, each.field, each.states, each.ratio, each.separation,
                     " → ".join(each.dtypes) if each.dtypes else "")
                    for each in stages
                ],
            )  # fmt: skip

    def blamed(self, cells: tuple[str, str], reads: str) -> BlameRecord | None:
        """What a search between two cells, by their keys, came to; nothing where nobody searched."""
        found = self._database.rows(
            "SELECT blamed, suspects, tried FROM internal.blames WHERE older_cell = ? AND newer_cell = ? AND reads = ?",
            [*cells, reads],
        )
        return BlameRecord(blamed=tuple(found[0][0]), suspects=found[0][1], tried=found[0][2]) if found else None

    def put_blame(self, cells: tuple[str, str], reads: str, found: BlameRecord) -> None:
        """Keep what a search for the distribution came to."""
        with self._database.transaction():
            row = (*cells, reads, list(found.blamed), found.suspects, found.tried)
            self._database.replace("blames", row)
