"""What the store keeps of laws: which ones broke, and which constants broke them."""

from __future__ import annotations

from collections.abc import Sequence

from audit.storage.database import Database
from audit.storage.records import AttributionRecord, ScreeningRecord


class StoredLaws:
    """Screenings and attributions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def screened(self) -> set[str]:
        """The keys of all screenings that are there."""
        return {row[0] for row in self._database.rows("SELECT DISTINCT key FROM internal.screenings")}

    def attributed(self) -> set[str]:
        """The keys of all attributions that are there."""
        return {row[0] for row in self._database.rows("SELECT DISTINCT key FROM internal.attributions")}

    def forget_laws(self, behaviours: Sequence[str], names: Sequence[str]) -> None:
        """Let go of what reference sets of other names than these said of behaviours: nobody asks them any more."""
        given = [list(behaviours), list(names)]
        with self._database.transaction():
            for table, columns in (
                ("screenings", ("reference_behaviour", "tested_behaviour")),
                ("attributions", ("behaviour",)),
            ):
                for column in columns:
                    self._database.execute(
                        f"DELETE FROM internal.{table} WHERE {column} IN (SELECT unnest(?::VARCHAR[]))"
                        " AND laws NOT IN (SELECT unnest(?::VARCHAR[]))",
                        given,
                    )

    def put_screenings(self, records: Sequence[ScreeningRecord]) -> None:
        """Keep what laws showed, in place of what was known of the same before."""
        self._database.replace_records("screenings", records)

    def put_attributions(self, records: Sequence[AttributionRecord]) -> None:
        """Keep which constants explain laws, in place of what was known of the same before."""
        self._database.replace_records("attributions", records)
