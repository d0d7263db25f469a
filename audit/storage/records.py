"""Rows of the store, as values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numpy.typing import NDArray

from audit.failures import Status
from audit.processes.answers import CellAnswer


def now() -> datetime.datetime:
    """The time as the store keeps it: UTC, without saying so."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRecord:
    """What a release said of an environment's states and actions."""

    status: Status
    reason: str
    layout: dict[str, Any] | None

    @classmethod
    def of(cls, answer: CellAnswer) -> ProbeRecord:
        """The record of an answer to a probe."""
        return cls(status=answer.status, reason=answer.reason, layout=answer.meta.get("layout"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRecord:
    """A dump as the store knows it. ``behaviour`` is ``None`` unless the status is ``ok``."""

    status: Status
    reason: str
    behaviour: str | None
    detail: str = ""
    """The traceback where the release raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDump:
    """A dump about to be stored: the record, and what it is made of."""

    record: DumpRecord
    key: str
    machine: str
    stimulus: str
    outputs: Mapping[str, StoredArray]
    description: Mapping[str, Any]
    steps: int
    seconds: float
    null_ratio: float | None = None
    """The release against its own nudged copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArray:
    """Where an output's array is, and what it looks like."""

    digest: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """An audit: what was asked, on which machine, with which tools."""

    run_id: str
    matrix: str
    matrix_text: str
    pairing: str
    against: str | None
    reads: str
    """The verdict's rule and the outputs it reads."""
    started: datetime.datetime
    harness_version: str
    python_version: str
    uv_version: str
    host: str
    cpu_model: str
    cpu_flags: str
    libc: str
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRelease:
    """A release's place in a run."""

    release: str
    position: int
    series: str
    requires: str
    python: str
    lock_digest: str | None
    status: Status
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCell:
    """A cell's place in a run."""

    environment: str
    release: str
    position: int
    cell_key: str | None
    status: Status
    reason: str
    behaviour: str | None
    reused: bool

    @property
    def identifier(self) -> str:
        """``release/environment``."""
        return f"{self.release}/{self.environment}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """What holds for all releases of a run on one environment: what was exercised, and what the controls showed."""

    environment: str
    baseline: str | None
    evidence: str
    states: int
    coverage: str
    features: str | None
    reproduced: Repeated
    planted: PlantedFault
    constant: str
    planted_ratio: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRecord:
    """How the separation of two behaviours grew, beside that of a release and its own twins."""

    first: str
    second: str
    reads: str
    certificate: str
    """``holds`` or ``unexplained``."""
    reason: str
    steps_per_decade: float | None
    twin_slowest: float | None
    twin_fastest: float | None
    curve: list[float]
    twin_curves: list[list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityRecord:
    """How one constant, moved by so much, showed on an environment's forced states."""

    matrix: str
    environment: str
    release: str
    constant: str
    relative: float
    ratio: float
    states_beyond: int
    states: int
    detected: bool
    measured: datetime.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningRecord:
    """What one law showed of a behaviour, held against another."""

    reference_behaviour: str
    tested_behaviour: str
    laws: str
    """Name of the reference set."""
    laws_digest: str
    """Of its content."""
    setting: str
    """``shipped``, or the edits under which the law is resolved."""
    law: str
    reference_residual: float
    tested_residual: float
    ratio: float
    p: float
    broken: bool
    attainable: float
    key: str
    """Everything that decides it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionRecord:
    """Which constant explains a law that was recovered from a behaviour."""

    behaviour: str
    laws: str
    laws_digest: str
    setting: str
    law: str
    verdict: str
    explanation: str
    parameters: list[str]
    fitted: list[float]
    specified: list[float]
    residual: float | None
    gap: float
    reason: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What a release answered when it was examined."""

    status: Status
    reason: str
    meta: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRecord:
    """Where in a step two behaviours part, in which states, and how many constants differ."""

    older_behaviour: str
    newer_behaviour: str
    environment: str
    key: str
    states: int
    stage: str
    fields: str
    before: list[str]
    """Stages before it, in which nothing differs."""
    ratio: float | None
    interface: str
    constants: int
    unsteady: list[str]
    reason: str


class Repeated(StrEnum):
    """Whether a release reproduces itself in another process."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class PlantedFault(StrEnum):
    """Whether a fault that was planted came out as changed."""

    SEEN = "seen"
    MISSED = "missed"
    UNKNOWN = "unknown"
    """None could be planted."""


class Standing(StrEnum):
    """Whether anybody has to be told of a change."""

    NEW = "new"
    KNOWN = "known"
    """It was met before, or came with a release that is not due."""
    WAIVED = "waived"
    """It is accepted."""


class Finding(StrEnum):
    """What is said of a newer release beside an older one that has a behaviour."""

    CHANGED = "changed"
    BROKEN = "broken"
    """It fails at what the older one can run."""
    INCOMPARABLE = "incomparable"
    """Its state is another, or does not read back as it was imposed."""
    NONDETERMINISTIC = "nondeterministic"
    """It does not reproduce itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightChange:
    """A change, or a breakage, that a night met."""

    environment: str
    older: str
    newer: str
    verdict: Finding
    standing: Standing
    reason: str
    waiver: str | None = None
    """Why it is accepted, and who says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRecord:
    """What a night came to."""

    matrix: str
    night: str
    exit_code: int
    run_id: str | None
    news: tuple[str, ...]
    new_changes: int
    waived_changes: int
    known_changes: int
    not_audited: int
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionRecord:
    """A figure of the paper, and the same measured here."""

    experiment: str
    figure: str
    paper: str
    measured: str
    rule: str
    agrees: bool
    exact: bool
    note: str
    place: str
    reproduced: datetime.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRecord:
    """What a search for the distribution that brings a change came to."""

    blamed: tuple[str, ...]
    """In words."""
    suspects: int
    tried: int
    """Mixtures."""
