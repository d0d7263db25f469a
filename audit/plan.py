"""The plan: one cell per release and environment, each with the key under which its dump is found again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from audit import machine, releases
from audit.digests import digest
from audit.dumper_process import CellTask, DumpJob, dumper_digest
from audit.locks import Release
from audit.matrix import EnvironmentRow, Matrix
from audit.releases import ReleaseRequest
from audit.stimulus import Stimulus
from audit.venvs import Recipe

APIS = ("gymnasium", "gym")
"""Packages that register environments, the one to prefer first where a release has both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One release on one environment."""

    release: Release
    environment: EnvironmentRow
    position: int

    @property
    def identifier(self) -> str:
        """``release/environment``: its name in logs, selectors and the store."""
        return f"{self.release.id}/{self.environment.title}"

    @property
    def probe_key(self) -> str:
        """Everything that decides what a release says of the environment's states and actions."""
        return digest("probe", self.release.key, dumper_digest(), self.environment.id, arguments_text(self.environment))

    def key(self, stimulus: Stimulus) -> str:
        """Everything that decides what the release does: lock, Python, environment, stimulus, dumper, machine."""
        return digest(
            "dump",
            self.release.key,
            dumper_digest(),
            self.environment.id,
            arguments_text(self.environment),
            stimulus.digest,
            machine.here().digest,
        )


def arguments_text(environment: EnvironmentRow) -> str:
    """The constructor's arguments as JSON."""
    return json.dumps(environment.arguments, sort_keys=True, default=str)


def cells(matrix: Matrix, requests: Sequence[ReleaseRequest], resolved: Mapping[str, Release]) -> tuple[Cell, ...]:
    """All cells of the matrix whose release has been resolved, environment by environment, in the matrix's order."""
    positions = {request.id: position for position, request in enumerate(requests)}
    return tuple(
        Cell(release=resolved[request.id], environment=environment, position=positions[request.id])
        for environment in matrix.environments
        for request in releases.selected(requests, environment.releases)
        if request.id in resolved
    )


def jobs(task: str, wanted: Sequence[Cell], stimuli: Mapping[str, Stimulus], timeout: float) -> tuple[DumpJob, ...]:
    """One job per release, the longest first so that no worker is left with a long one at the end."""
    by_release: dict[str, list[Cell]] = {}
    for cell in wanted:
        by_release.setdefault(cell.release.id, []).append(cell)
    made = [_job(task, group, stimuli, timeout) for group in by_release.values()]
    return tuple(sorted(made, key=_size, reverse=True))


def _job(task: str, group: Sequence[Cell], stimuli: Mapping[str, Stimulus], timeout: float) -> DumpJob:
    release = group[0].release
    api = api_of(release)
    watched = {name: version for name in (api, "mujoco") if (version := release.lock.version_of(name)) is not None}
    return DumpJob(
        release=release.id,
        recipe=Recipe.of(release),
        api=api,
        expect={**release.required, **watched},
        task=task,
        cells=tuple(
            CellTask(
                environment=cell.environment.title,
                id=cell.environment.id,
                arguments=arguments_text(cell.environment),
                stimulus=stimuli[cell.environment.title] if task == "dump" else None,
            )
            for cell in group
        ),
        timeout=timeout,
    )


def api_of(release: Release) -> str:
    """The package through which a release's environments are made."""
    return next((api for api in APIS if release.lock.version_of(api)), APIS[0])


def _size(job: DumpJob) -> tuple[int, int]:
    steps = sum(cell.stimulus.trajectories * cell.stimulus.steps for cell in job.cells if cell.stimulus is not None)
    return steps, len(job.recipe.lock)  # between equals, the release with more to import
