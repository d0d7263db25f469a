"""The plan: one cell per release and environment, each with the key under which its dump is found again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from audit import machine
from audit.asked import releases
from audit.asked.attachments import Attachment
from audit.asked.environment_rows import EnvironmentRow
from audit.asked.fields import Edit
from audit.asked.matrix import Matrix
from audit.asked.releases import ReleaseRequest
from audit.digests import digest
from audit.installing.locks import Release
from audit.installing.venvs import Recipe
from audit.processes.dumper_process import DumpJob
from audit.processes.dumper_request import CellTask, Plant, dumper_digest
from audit.stimuli.stimulus import Stimulus

APIS = ("gymnasium", "gym")
"""Packages that register environments, the one to prefer first where a release has both."""

_MODULES = {"mjcf": "mujoco", "dm_control": "dm_control", "adapter": None}
"""What an environment of another kind is made with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One release on one environment."""

    release: Release
    environment: EnvironmentRow
    position: int
    attachment: Attachment | None = None
    further_edits: Mapping[str, Edit] = field(default_factory=dict)
    """Over those of the environment and of the release."""
    machine: str = field(default_factory=lambda: machine.here().digest)
    """The class of machines that it is dumped on: one for all releases of the environment."""

    def edited(self, edits: Mapping[str, Edit]) -> Cell:
        """The same cell with something more set otherwise; a recording of it needs a purpose that tells it apart."""
        return replace(self, further_edits={**self.further_edits, **edits})

    @property
    def edits(self) -> dict[str, Edit]:
        """What is set otherwise before anything is stepped."""
        return {**self.environment.edits, **self.release.request.edits, **self.further_edits}

    @property
    def identifier(self) -> str:
        """``release/environment``: its name in logs, selectors and the store."""
        return f"{self.release.id}/{self.environment.title}"

    @property
    def api(self) -> str | None:
        """The module through which the environment is made."""
        kind = self.environment.kind
        return api_of(self.release) if kind == "registered" else _MODULES[kind]

    @property
    def _subject(self) -> tuple[str, ...]:
        """Who is asked about what, by which dumper."""
        row = self.environment
        attached = self.attachment.digest if self.attachment is not None else ""
        asked = row.kind, row.source_in(self.release.request.known_as), arguments_text(row), edits_text(self.edits)
        return self.release.key, dumper_digest(), *asked, attached

    @property
    def probe_key(self) -> str:
        """Everything that decides what a release says of the environment's states and actions."""
        return digest("probe", *self._subject)

    def bank_key(self, given: bytes) -> str:
        """Everything that decides which states a bank holds. It is made here, wherever the cell is dumped."""
        return digest("bank", *self._subject, given, machine.here().digest)

    def examination_key(self, task: str, given: bytes) -> str:
        """Everything that decides what an examination finds."""
        return digest(task, *self._subject, given, self.machine)

    def key(self, stimulus: Stimulus, what: str = "dump") -> str:
        """All that decides what the release does: lock, Python, environment, edits, stimulus, dumper, machine."""
        return digest(what, *self._subject, stimulus.digest, self.machine)

    def asked(self, task: str, given: bytes | None = None) -> CellTask:
        """A question to the release about the environment."""
        row = self.environment
        return CellTask(
            task=task,
            label=row.title,
            environment=row.title,
            kind=str(self.api) if row.kind == "registered" else row.kind,
            source=row.source_in(self.release.request.known_as),
            arguments=arguments_text(row),
            edits=edits_text(self.edits),
            attachment=self.attachment,
            given=given,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A dump that is to be made: a cell, what it is given, and a fault to plant before."""

    cell: Cell
    stimulus: Stimulus
    purpose: str = ""
    """Empty for the audit itself; a control or a twin run says what it is."""
    plant: Plant | None = None
    apart: bool = False
    """Whether it must run in another process than the audit itself."""

    @property
    def label(self) -> str:
        """Its name within the release."""
        title = self.cell.environment.title
        return f"{title} ({self.purpose})" if self.purpose else title

    @property
    def identifier(self) -> str:
        """``release/label``."""
        return f"{self.cell.release.id}/{self.label}"

    @property
    def key(self) -> str:
        """What the dump is found again by."""
        return self.cell.key(self.stimulus, f"dump {self.purpose} {self.plant}" if self.purpose else "dump")

    def asked(self) -> CellTask:
        """The question that it is for a dumper."""
        question = self.cell.asked("dump", self.stimulus.payload)
        return replace(question, label=self.label, stimulus=self.stimulus, plant=self.plant, apart=self.apart)


def arguments_text(environment: EnvironmentRow) -> str:
    """The constructor's arguments as JSON."""
    return json.dumps(environment.arguments, sort_keys=True, default=str)


def edits_text(edits: Mapping[str, Edit]) -> str:
    """The edits as JSON, in the order in which they are made: that of their names, whoever wrote them first."""
    return json.dumps(edits, sort_keys=True)


def cells(
    matrix: Matrix,
    requests: Sequence[ReleaseRequest],
    resolved: Mapping[str, Release],
    attachments: Mapping[str, Attachment],
) -> tuple[Cell, ...]:
    """All cells of the matrix whose release has been resolved, environment by environment, in the matrix's order."""
    positions = {request.id: position for position, request in enumerate(requests)}
    return tuple(
        Cell(
            release=resolved[request.id],
            environment=environment,
            position=positions[request.id],
            attachment=attachments.get(environment.title),
        )
        for environment in matrix.environments
        for request in releases.selected(requests, environment.releases)
        if request.id in resolved
    )


def recordings(planned: Iterable[Cell], stimuli: Mapping[str, Stimulus]) -> list[Recording]:
    """What is recorded for the audit itself: every cell whose environment has a stimulus."""
    return [
        Recording(cell=cell, stimulus=stimuli[cell.environment.title])
        for cell in planned
        if cell.environment.title in stimuli
    ]


def jobs(asked: Iterable[tuple[Cell, CellTask]], timeout: float) -> tuple[DumpJob, ...]:
    """One job per release and class of machines, the longest first so that no worker has a long one at the end.

    A task that has to be apart, because it controls another, is in a job of its own.
    """
    grouped: dict[tuple[str, str | None, str, bool], list[tuple[Cell, CellTask]]] = {}
    for cell, task in asked:
        grouped.setdefault((cell.release.id, cell.api, cell.machine, task.apart), []).append((cell, task))
    made = [job(group[0][0], [task for _, task in group], timeout) for group in grouped.values()]
    return tuple(sorted(made, key=_size, reverse=True))


def job(cell: Cell, asked: Sequence[CellTask], timeout: float) -> DumpJob:
    """What one process of the cell's release is asked."""
    release = cell.release
    watched = (name for name in (cell.api, "mujoco") if name is not None)
    versions = {name: version for name in watched if (version := release.lock.version_of(name)) is not None}
    return DumpJob(
        release=release.id,
        recipe=Recipe.of(release),
        api=cell.api,
        expect={**release.required, **versions},
        cells=tuple(asked),
        timeout=timeout,
        machine=cell.machine,
    )


def api_of(release: Release) -> str:
    """The package through which a release's environments are made."""
    return next((api for api in APIS if release.lock.version_of(api)), APIS[0])


def _size(made: DumpJob) -> tuple[int, int]:
    return sum(cell.steps for cell in made.cells), len(made.recipe.lock)  # between equals, the one with more to import
