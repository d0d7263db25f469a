"""An environment and its releases as an audit in the store had them, whatever the matrix says now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from audit.asked import attachments, matrix_file, releases
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.matrix import Matrix
from audit.asked.matrix_file import MatrixFile
from audit.asked.release_rows import ExplicitRow
from audit.asked.releases import ReleaseRequest
from audit.errors import UsageError
from audit.planning import plan
from audit.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRelease:
    """A release of a run that could be resolved."""

    request: ReleaseRequest
    """On the very Python that it ran on."""
    lock: str
    """Its text."""
    cell: str | None
    """Key of its cell on the environment; nothing where it was not dumped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One environment of a run."""

    run_id: str
    file: MatrixFile
    """The matrix as it was, with this environment alone."""
    releases: Mapping[str, AuditedRelease]
    """By id: those that are asked about, and the one on which the bank was made."""
    baseline: str
    """The id of that one; empty where the run had none."""
    files: str
    """Digest of the files that the environment is made of; empty where it needs none, or nobody knows."""

    @property
    def environment(self) -> EnvironmentRow:
        """The row of the matrix."""
        return self.file.matrix.environments[0]

    def require_known_files(self) -> None:
        """Refuse what an earlier version audited without writing down where its files are.

        Raises:
            UsageError: with what to do.
        """
        if not self.files and attachments.needed(self.file, self.environment):
            raise UsageError(
                f"the audit of {self.file.matrix.name} did not keep which files {self.environment.title} is made of: "
                "run it again, what is dumped is used again"
            )

    def subject(self, ends: Sequence[str]) -> tuple[object, ...]:
        """What is asked about these releases, but for the states they are asked in: equal ones ask the same."""
        row = self.environment
        found = [self.releases[each] for each in ends if each in self.releases]
        sides = [
            (row.source_in(each.request.known_as), each.request.text, each.request.python, each.lock) for each in found
        ]
        return row.kind, plan.arguments_text(row), plan.edits_text(row.edits), self.files, *sides


def find(store: Store, environment: str, ends: Sequence[str], matrix: str | None) -> Audited | None:
    """The latest audit that has the environment with both releases, or with one of them; nothing where none has.

    Raises:
        UsageError: where audits of several matrices ask about different things by these names, where the named matrix
            does not have them, or where one of the releases could not be installed.
    """
    rows = store.query(
        "SELECT run_id, matrix_text, count(DISTINCT release) AS ends"
        " FROM internal.latest_runs AS run JOIN internal.run_cells USING (run_id)"
        " WHERE environment = ? AND release IN (?, ?) AND matrix = coalesce(?, matrix)"
        " GROUP BY ALL ORDER BY max(finished) DESC",
        [environment, *ends, matrix],
    ).rows
    if matrix is not None and not rows:
        raise UsageError(f"no audit of {matrix} in {store.path} has {environment} with {' or '.join(ends)}")
    most = max((count for *_, count in rows), default=0)
    found = [_read(store, run_id, text, environment, ends) for run_id, text, count in rows if count == most]
    if len({each.subject(ends) for each in found}) > 1:
        named = " and ".join(sorted(each.file.matrix.name for each in found))
        raise UsageError(f"{environment} with {' and '.join(ends)} is not the same in {named}: add --matrix NAME")
    if not found:
        return None
    _require_installed(store, found[0], ends)
    return found[0]


def _read(store: Store, run_id: str, text: str, title: str, ends: Sequence[str]) -> Audited:
    kept = store.query(
        "SELECT folder, digest FROM internal.run_files WHERE run_id = ? AND environment = ?", [run_id, title]
    ).rows
    folder, files = kept[0] if kept else ("", "")
    drawn = store.query(
        "SELECT baseline FROM internal.run_environments WHERE run_id = ? AND environment = ?", [run_id, title]
    ).rows
    baseline = str(drawn[0][0] or "") if drawn else ""
    file = matrix_file.of_text(Path(folder) / "matrix", text)
    row = next(each for each in file.matrix.environments if each.title == title)
    alone = file.matrix.model_copy(update={"environments": (row,)})
    return Audited(
        run_id=run_id,
        file=replace(file, matrix=alone),
        releases=_releases(store, run_id, title, file.matrix, [*ends, baseline]),
        baseline=baseline,
        files=files,
    )


def _releases(
    store: Store, run_id: str, title: str, matrix: Matrix, wanted: Sequence[str]
) -> dict[str, AuditedRelease]:
    rows = store.query(
        "SELECT listed.release, listed.requires, listed.python, locks.text, cell.cell_key"
        " FROM internal.run_releases AS listed JOIN internal.locks USING (lock_digest)"
        " LEFT JOIN internal.run_cells AS cell"
        "   ON cell.run_id = listed.run_id AND cell.release = listed.release AND cell.environment = ?"
        " WHERE listed.run_id = ? AND listed.release IN (SELECT unnest(?::VARCHAR[])) ORDER BY listed.position",
        [title, run_id, list(wanted)],
    ).rows
    nightly = {name: each.request for name, each in store.nights.known_to(run_id).items()}
    found = {}
    for name, requires, python, lock, cell in rows:
        candidates = [*([nightly[name]] if name in nightly else []), *_written(matrix, name)]
        request = next((each for each in candidates if each.text == requires), None)
        if request is not None:
            found[name] = AuditedRelease(request=replace(request, python=python), lock=lock, cell=cell)
    return found


def _written(matrix: Matrix, name: str) -> Iterator[ReleaseRequest]:
    """What rows of a matrix ask for under a name."""
    for row in matrix.releases:
        if isinstance(row, ExplicitRow):
            if row.id == name:
                yield releases.request(matrix, row, name, row.requires)
            continue
        before, _, after = row.id_template.partition("{version}")
        match = re.fullmatch(f"{re.escape(before)}(.+){re.escape(after)}", name)
        if match is not None:
            yield releases.request(matrix, row, name, (f"{row.package}=={match[1]}", *row.with_))


def _require_installed(store: Store, audited: Audited, ends: Sequence[str]) -> None:
    for release, reason in store.query(
        "SELECT release, reason FROM internal.run_releases WHERE run_id = ? AND release IN (?, ?) ORDER BY position",
        [audited.run_id, *ends],
    ).rows:
        if release not in audited.releases:
            told = reason or "its row in the matrix is not known"
            raise UsageError(f"{release} cannot be looked at as {audited.file.matrix.name} has it: {told}")
