"""What the page is made of. Pairs cost nothing here either: cells carry behaviours, pairs of behaviours carry verdicts.

What every reader needs is in the page as it is; what is looked up for one pair is in ``Details``, compressed.
"""

from __future__ import annotations

from dataclasses import dataclass

NOT_COMPARED = " "
"""The sign of two behaviours that no pair of the matrix asks for."""

Number = float | str | None
"""JSON has no infinity and no not-a-number: they are the texts ``inf``, ``-inf`` and ``nan``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release, at its place in the matrix."""

    name: str
    series: str
    requires: str
    lock: int
    """Which of the matrix's locks it has; -1 where it has none."""
    reason: str
    """Why it could not be installed, empty where it could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Why a release has no behaviour on an environment."""

    verdict: str
    """The sign of every pair that it is part of."""
    status: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Releases that are comparable pair by pair."""

    series: str
    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment of a matrix, with every release on it."""

    name: str
    evidence: str
    coverage: str
    controls: str
    blind: bool
    """Whether a planted fault was not seen."""
    cells: tuple[tuple[int, int], ...]
    """Along the releases: a behaviour and how many have it in a row. Below 0: missing, for the reason -1 - it."""
    behaviours: int
    """How many are distinct; they are numbered in order of appearance."""
    missing: tuple[Missing, ...]
    verdicts: str
    """Signs of pairs of behaviours: (1, 0), (2, 0), (2, 1), (3, 0) …"""
    null_ratios: tuple[Number, ...]
    neighbours: tuple[tuple[int, int, str], ...]
    """Neighbouring releases that are not identical: older, newer, sign."""
    trajectories: tuple[Span, ...]
    """Ranges on which results are comparable: identical or rounding, pair by pair."""
    steps: tuple[Span, ...]
    """Ranges on which the physics is the same; trajectories may part, as a release and its twins do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What one output showed of a pair."""

    output: str
    same_bits: bool
    separation: Number
    ratio: Number
    beyond: int | None
    horizon: Number
    interface: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How trajectories of a pair part, beside a release and its own twins."""

    certificate: str
    reason: str
    steps_per_decade: Number
    twin_slowest: Number
    twin_fastest: Number
    steps: tuple[int, ...]
    curve: tuple[float, ...]
    twin_low: tuple[float, ...]
    twin_high: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What is known of two behaviours, whichever is the older."""

    reason: str
    paper: str
    separation: Number
    ulps: Number
    ratio: Number
    horizon: Number
    forced: int | None
    beyond: int | None
    changed: str
    near: bool
    """Whether two neighbouring releases show them: what people ask for first."""
    outputs: tuple[Output, ...] = ()
    growth: Growth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an older behaviour became a newer one."""

    stage: str = ""
    fields: str = ""
    before: tuple[str, ...] = ()
    states: int = 0
    ratio: Number = None
    interface: str = ""
    left_open: str = ""
    constants: tuple[str, ...] = ()
    more_constants: int = 0
    stages: tuple[tuple[str, str, int, Number], ...] = ()
    """Stage, quantity, states, ratio."""
    laws: str = ""
    script: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What is looked up for one pair of releases on one environment."""

    pairs: dict[str, Pair]
    """By the two behaviours, the lesser first: ``0-3``."""
    explanations: dict[str, Explanation]
    """By the older and the newer behaviour: ``3-0`` is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Which distributions bring a change between two releases, by their places."""

    environment: str
    older: int
    newer: int
    blamed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What could not be done, for one and the same reason."""

    stage: str
    status: str
    reason: str
    subjects: tuple[str, ...]
    more: int
    """Subjects that are not listed."""
    broke: int
    """Cells that an older release of the same series can run."""
    tail: str
    """What the first of them printed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightChange:
    """A change that a night met."""

    environment: str
    older: str
    newer: str
    standing: str
    reason: str
    waiver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One nightly audit."""

    night: str
    exit_code: int | None
    news: tuple[str, ...]
    summary: str
    new: int
    waived: int
    known: int
    not_audited: int
    changes: tuple[NightChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The latest finished audit of a matrix."""

    name: str
    run: str
    finished: str
    machine: str
    reads: str
    releases: tuple[Release, ...]
    environments: tuple[Environment, ...]
    failures: tuple[Failures, ...]
    nights: tuple[Night, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixDetails:
    """What is looked up, of all environments of a matrix in their order."""

    locks: tuple[dict[str, str], ...]
    """Versions of the distributions in each."""
    blames: tuple[Blame, ...]
    environments: tuple[Details, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All of it."""

    version: str
    threshold: float
    """Ratios from here on are a change."""
    matrices: tuple[Matrix, ...]
    details: tuple[MatrixDetails, ...]
