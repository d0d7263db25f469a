"""What the store keeps of laws: which ones broke, and which constants broke them."""

from __future__ import annotations

from collections.abc import Sequence

from audit.storage.database import Database
from audit.storage.records import AttributionRecord, ScreeningRecord


class StoredLaws:
    """Screenings and attributions, by behaviours and reference sets, and which of these sets each run asked."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def screened(self) -> set[str]:
        """The keys of all screenings that are there, and kept by the content of their reference set."""
        return self._keys("screenings")

    def attributed(self) -> set[str]:
        """The keys of all attributions that are there, likewise."""
        return self._keys("attributions")

    def hold(self, run_id: str, digests: Sequence[str]) -> None:
        """Say which reference sets a run is held against: what these found is what it shows."""
        with self._database.transaction():
            rows = [(run_id, digest) for digest in digests]
            self._database.insert("run_laws", ["run_id", "laws_digest"], rows, replace=True)

    def put_screenings(self, records: Sequence[ScreeningRecord]) -> None:
        """Keep what laws showed, in place of what was known of the same before."""
        self._database.replace_records("screenings", records)

    def put_attributions(self, records: Sequence[AttributionRecord]) -> None:
        """Keep which constants explain laws, in place of what was known of the same before."""
        self._database.replace_records("attributions", records)

    def _keys(self, table: str) -> set[str]:
        rows = self._database.rows(f"SELECT DISTINCT key FROM internal.{table} WHERE laws_digest <> ''")
        return {key for (key,) in rows}
