"""Read the file with which a dumper answered a cell. It was written by code under audit: nothing in it is trusted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from audit.failures import Failure, Status, of_the_machine, readable
from audit.processes import answer_file
from audit.processes.answer_file import KINDS, Arrays, DamagedAnswer
from audit.stimuli.layout import Layout
from audit.stimuli.stimulus import Stimulus

LARGEST_DESCRIPTION = 2**22
"""Bytes of what stands beside the arrays: a hundred times what the names of all constants of MuJoCo's Humanoid take."""

LARGEST_TEXT = 2**20
"""Bytes of the text that describes an observation or the spaces. Those of Humanoid take less than 4 KB."""

SOURCES = 4
"""Where a state of a bank may come from: given, visited, in range, sought."""

MOST_PARTS = 5000
"""Quantities of a step, constants or ids in one answer. A large MuJoCo model has some 300 constants."""

LARGEST_CONSTANT = 100_000
"""Entries of a constant; of a larger one a dumper tells the digest."""

_PLACE = re.compile(r"\d\d\.[^.]+\..+", re.DOTALL)  # which substep, which stage, which field

_SAID = {"failed": Status.RAISED}
"""A dumper's word for a status where it is another."""

_Text = Annotated[str, StringConstraints(max_length=10_000)]
_Count = Annotated[int, Field(ge=0, le=2**62)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAnswer:
    """What a dumper says it did."""

    status: Status
    reason: str
    detail: str = ""
    seconds: float = 0.0
    steps: int = 0
    meta: dict[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)
    description_bytes: int = 0
    """Of the text that reason, detail and meta were read from."""

    @classmethod
    def of_failure(cls, failure: Failure) -> CellAnswer:
        """What a release raised, as the answer that it is: the store remembers it like any other."""
        return cls(status=failure.status, reason=failure.reason, detail=failure.stderr_tail)


class _Head(BaseModel):
    """What stands beside the arrays. Everything else in it is kept as it is."""

    model_config = ConfigDict(extra="allow", strict=True)

    format: Literal[1]
    environment: str
    status: Literal["ok", "unavailable", "incomparable", "nondeterministic", "failed"]
    reason: str
    detail: str
    arrays: list[str]
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    steps: int = Field(default=0, ge=0, le=2**62)


class _Registry(BaseModel):
    """What stands in the answer about a registry."""

    model_config = ConfigDict(strict=True)

    ids: list[_Text] = Field(max_length=MOST_PARTS)


class _Anatomy(BaseModel):
    """What stands beside the constants of an environment: names of their entries, and constants that are no numbers."""

    model_config = ConfigDict(strict=True)

    names: dict[_Text, list[_Text] | None]
    texts: dict[_Text, _Text] = Field(max_length=MOST_PARTS)


class _Stages(BaseModel):
    """What stands beside the quantities of a step."""

    model_config = ConfigDict(strict=True)

    order: list[_Text] = Field(min_length=1, max_length=MOST_PARTS)
    counts: dict[_Text, _Text]
    discrete: list[_Text] = Field(max_length=MOST_PARTS)
    unseen: _Text
    dtypes: dict[_Text, _Text]
    lines: dict[_Text, _Text]
    names: dict[_Text, list[_Text]] = Field(max_length=MOST_PARTS)
    geoms: list[_Text]
    left_out: dict[_Text, _Count] = Field(max_length=MOST_PARTS)
    substeps: int = Field(ge=1, le=2**31)
    recorded: int = Field(ge=1, le=99)


def read(path: Path, task: str, environment: str, stimulus: Stimulus | None, rows: int = 0) -> CellAnswer:
    """Read the answer about ``environment`` and validate it; raise :class:`DamagedAnswer` rather than believe half.

    ``rows`` are the states whose stages were asked for.
    """
    try:
        arrays = answer_file.arrays(path)
        description = arrays.pop("meta").tobytes()
        if len(description) > LARGEST_DESCRIPTION:
            raise DamagedAnswer(f"the answer describes itself in {len(description)} bytes")
        head = _Head.model_validate_json(description)
        meta: dict[str, Any] = answer_file.without_codes(head.model_extra or {})
        if head.environment != environment or sorted(arrays) != head.arrays:
            raise DamagedAnswer("the answer is about something else")
        if head.status != "ok" or not _check_arrays(task, arrays, meta, stimulus, rows):
            _check_empty(arrays)
        if head.status == "ok" and task == "probe":
            Layout.from_json(meta["layout"])
        if head.status == "ok" and task == "registry":
            _check_registry(_Registry.model_validate(meta))
    except DamagedAnswer:
        raise
    except Exception as error:  # whatever the readers of zip, npy and JSON raise on bytes that somebody else wrote
        if of_the_machine(error):
            raise
        raise DamagedAnswer(readable(f"the answer cannot be read: {type(error).__name__}: {error}")) from None
    return CellAnswer(
        status=_SAID.get(head.status) or Status(head.status),
        reason=readable(head.reason),
        detail=readable(head.detail),
        seconds=head.seconds,
        steps=head.steps,
        meta=meta,
        arrays=arrays,
        description_bytes=len(description),
    )


def _check_arrays(task: str, arrays: Arrays, meta: dict[str, Any], stimulus: Stimulus | None, rows: int) -> bool:
    """Check an answer that holds arrays; say whether it is one."""
    if task == "bank":
        _check_bank(arrays, meta["features"])
    elif task == "anatomy":
        _check_anatomy(arrays, _Anatomy.model_validate(meta))
    elif task == "stages":
        _check_stages(arrays, _Stages.model_validate(meta), rows)
    elif stimulus is not None:
        _check_dump(arrays, stimulus)
    else:
        return False
    return True


def _check_empty(arrays: Arrays) -> None:
    if arrays:
        raise DamagedAnswer("the answer holds arrays, and nothing was recorded")


def _check_registry(registry: _Registry) -> None:
    if registry.ids != sorted(set(registry.ids)):
        raise DamagedAnswer("the ids are out of order, or some are there twice")


def _check_anatomy(arrays: Arrays, told: _Anatomy) -> None:
    fields = {f"constant.{field}" for field in told.names}
    if set(arrays) != fields or len(fields) > MOST_PARTS or set(told.names) & set(told.texts):
        raise DamagedAnswer("the constants are not those that are named")
    for field_name, names in told.names.items():
        array = _numbers(f"constant.{field_name}", arrays)
        if array.size > LARGEST_CONSTANT or (names is not None and array.shape[:1] != (len(names),)):
            raise DamagedAnswer(f"{field_name} has the shape {array.shape}, and not a name for each entry")


def _check_stages(arrays: Arrays, told: _Stages, rows: int) -> None:
    if sorted(told.order) != sorted(arrays) or not all(_PLACE.fullmatch(name) for name in arrays):
        raise DamagedAnswer("the quantities are not those that are in order")
    if not {*told.counts, *told.counts.values(), *told.dtypes, *told.lines, *told.discrete} <= set(arrays):
        raise DamagedAnswer("something is said of quantities that are not there")
    for name in told.order:
        array = _numbers(name, arrays)
        if array.shape[:1] != (rows,):
            raise DamagedAnswer(f"{name} has the shape {array.shape}, and {rows} states were asked for")
        names = told.names.get(name.split(".", 2)[2])
        if names is not None and array.shape[1:2] != (len(names),):
            raise DamagedAnswer(f"{name} has the shape {array.shape}, and not a name for each entry")
    for name, count in told.counts.items():
        _check_count(name, arrays[name], arrays[count])


def _check_count(name: str, array: NDArray[Any], count: NDArray[Any]) -> None:
    """A list in each row, filled up to the longest."""
    if array.ndim < 2 or array.dtype != np.float64 or count.ndim != 1 or count.dtype != np.int64:
        raise DamagedAnswer(f"{name} is not a list for each state")
    if (count < 0).any() or count.max(initial=0) != array.shape[1]:
        raise DamagedAnswer(f"{name} does not have the length that is said")


def _numbers(name: str, arrays: Arrays) -> NDArray[Any]:
    array = arrays[name]
    if array.dtype.kind not in KINDS:
        raise DamagedAnswer(f"{name} has the dtype {array.dtype}")
    return array


def _check_bank(arrays: Arrays, features: Any) -> None:
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise DamagedAnswer("the features are not a list of names")
    states = arrays.get("states", np.empty(()))
    if states.ndim != 2 or not len(states) or states.dtype != np.float64 or not np.isfinite(states).all():
        raise DamagedAnswer("the states are not finite numbers")
    one = states.shape[:1]
    _check_shapes(arrays, {"states": states.shape, "source": one, "kept": one, "acting": (*one, len(features))})
    kept = arrays["kept"]
    if kept.dtype != np.int64 or kept[0] < 0 or (np.diff(kept) <= 0).any():
        raise DamagedAnswer("the bank's states are out of order")
    if arrays["acting"].dtype != np.bool_ or arrays["source"].dtype != np.uint8 or arrays["source"].max() >= SOURCES:
        raise DamagedAnswer("the bank does not say where its states come from and what acts in them")


def _check_dump(arrays: Arrays, stimulus: Stimulus) -> None:
    """Shapes follow from the stimulus, but for the entries of states and observations, which only the release knows."""
    batch = next(iter(stimulus.batches), "reset")
    entries = arrays.get(f"{batch}.state", np.empty(())).shape[2:3]
    observed = arrays.get(f"{batch}.observation", np.empty(())).shape[2:]
    expected: dict[str, tuple[int, ...]] = {
        name: (arrays[name].size,) for name in ("structure", "spaces") if name in arrays
    }
    batches = dict(stimulus.batches)
    if stimulus.is_table:  # a release may have more transitions than the one that was asked, or fewer
        batches["forced"] = (len(arrays.get("forced.reward", ())), 1)
    for name, horizon in batches.items():
        expected |= {f"{name}.{output}": horizon for output in ("reward", "terminated", "truncated")}
        expected[f"{name}.state"] = (*horizon, *entries)
        expected[f"{name}.observation"] = (*horizon, *observed)
        if name != "nudged":
            expected[f"{name}.imposed"] = (horizon[0], *entries)
    if stimulus.resets:
        expected["reset.state"] = (stimulus.resets, *arrays.get("reset.state", np.empty(())).shape[1:2])
        observation = arrays.get("reset.observation", np.empty(()))
        expected["reset.observation"] = (stimulus.resets, *observation.shape[1:])
    if not {"structure", "spaces"} <= set(arrays):
        raise DamagedAnswer("the answer does not describe its observation and spaces")
    if max(arrays[name].nbytes for name in ("structure", "spaces")) > LARGEST_TEXT:
        raise DamagedAnswer(f"the answer describes its observation or spaces in more than {LARGEST_TEXT} bytes")
    _check_shapes(arrays, expected)


def _check_shapes(arrays: Arrays, expected: dict[str, tuple[int, ...]]) -> None:
    if set(arrays) != set(expected):
        raise DamagedAnswer(f"the answer holds {readable(', '.join(sorted(arrays))) or 'nothing'}")
    for name in sorted(arrays):
        array = _numbers(name, arrays)
        if array.shape != expected[name]:
            raise DamagedAnswer(f"{name} has the shape {array.shape}, and {expected[name]} was asked for")
