"""What the store keeps of nights: the releases they know with their locks, what each night met, what it came to."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from audit.storage.database import Database
from audit.storage.records import NightChange, NightRecord, now
from audit.storage.watched_release import Watched, request_of


class StoredNights:
    """The nights of every matrix."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, matrix: str) -> dict[str, Watched]:
        """The releases that the nights of a matrix know, by id."""
        found = self._database.rows(
            "SELECT request, asked, listing, package, version, lock_digest, news, found, audited, yanked"
            " FROM internal.watched_releases WHERE matrix = ? ORDER BY rowid",
            [matrix],
        )
        fields = ("asked", "listing", "package", "version", "lock_digest", "news", "found", "audited", "yanked")
        read = [Watched(request=request_of(request), **dict(zip(fields, row, strict=True))) for request, *row in found]
        return {each.id: each for each in read}

    def known_to(self, run_id: str) -> dict[str, Watched]:
        """The releases that the night of a run knows, by id; none where the run was not a night's."""
        found = self._database.rows("SELECT matrix FROM internal.nights WHERE run_id = ?", [run_id])
        return self.known(str(found[0][0])) if found else {}

    def keep(self, matrix: str, releases: Iterable[Watched]) -> None:
        """Keep releases, each in place of what was known of it, all of them or none."""
        with self._database.transaction():
            for each in releases:
                row = (
                    matrix, each.id, each.asked, each.listing, each.package, each.version, each.request_text,
                    each.lock_digest, each.news, each.found, each.audited, each.yanked,
                )  # fmt: skip
                self._database.replace("watched_releases", row)

    def locks(self, digests: Iterable[str]) -> dict[str, str]:
        """The texts of locks."""
        found = self._database.rows(
            "SELECT lock_digest, text FROM internal.locks WHERE lock_digest IN (SELECT unnest(?::VARCHAR[]))",
            [sorted(set(digests))],
        )
        return dict(found)

    def begin(self, matrix: str, day: datetime.date, question: str) -> str:
        """Record that a night has begun; its id is the day, with a number where that day has one already."""
        found = self._database.rows("SELECT night FROM internal.nights WHERE matrix = ?", [matrix])
        taken = {night for (night,) in found}
        names = (f"{day}.{number}" if number > 1 else str(day) for number in range(1, len(taken) + 2))
        night = next(name for name in names if name not in taken)
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO internal.nights VALUES (?, ?, ?, NULL, NULL, ?, NULL, [], 0, 0, 0, 0, '', ?)",
                [matrix, night, now(), self.is_first(matrix), question],
            )
        return night

    def is_first(self, matrix: str) -> bool:
        """Whether no night has audited the matrix yet."""
        return not self._database.rows(
            "SELECT 1 FROM internal.nights WHERE matrix = ? AND run_id IS NOT NULL LIMIT 1", [matrix]
        )

    def last_question(self, matrix: str) -> str:
        """The question of the last night that audited something."""
        found = self._database.rows(
            "SELECT question FROM internal.nights WHERE matrix = ? AND run_id IS NOT NULL"
            " ORDER BY started DESC LIMIT 1",
            [matrix],
        )
        return str(found[0][0]) if found else ""

    def last_summary(self, matrix: str) -> str:
        """What the last night that came to an end told."""
        found = self._database.rows(
            "SELECT summary FROM internal.nights WHERE matrix = ? AND finished IS NOT NULL"
            " ORDER BY started DESC LIMIT 1",
            [matrix],
        )
        return str(found[0][0]) if found else ""

    def failed(self, matrix: str) -> set[str]:
        """Releases that the last audit of a night could not resolve or build."""
        found = self._database.rows(
            "SELECT release FROM internal.run_releases WHERE status <> 'ready' AND run_id = (SELECT run_id FROM"
            " internal.nights WHERE matrix = ? AND run_id IS NOT NULL ORDER BY started DESC LIMIT 1)",
            [matrix],
        )
        return {release for (release,) in found}

    def reported(self, matrix: str = "") -> set[tuple[str, str, str]]:
        """Environment and boundary of all that nights have reported, of one matrix or of all."""
        found = self._database.rows(
            "SELECT DISTINCT environment, older, newer FROM internal.night_changes WHERE matrix = ? OR ? = ''",
            [matrix, matrix],
        )
        return {(environment, older, newer) for environment, older, newer in found}

    def finish(self, record: NightRecord, changes: Sequence[NightChange], releases: Iterable[str]) -> None:
        """Record what a night came to, all of it or nothing: what is not recorded is still new on the next."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE internal.nights SET finished = ?, exit_code = ?, run_id = ?, news = ?, new_changes = ?,"
                " waived_changes = ?, known_changes = ?, not_audited = ?, summary = ? WHERE matrix = ? AND night = ?",
                [
                    now(), record.exit_code, record.run_id, list(record.news), record.new_changes,
                    record.waived_changes, record.known_changes, record.not_audited, record.summary,
                    record.matrix, record.night,
                ],
            )  # fmt: skip
            columns = ["matrix", "night", *NightChange.__dataclass_fields__]
            rows = [
                (record.matrix, record.night, *(getattr(each, name) for name in NightChange.__dataclass_fields__))
                for each in changes
            ]
            self._database.insert("night_changes", columns, rows)
            for each in releases:
                self._database.execute(
                    "UPDATE internal.watched_releases SET audited = ? WHERE matrix = ? AND release = ?",
                    [record.night, record.matrix, each],
                )
