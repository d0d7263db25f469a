"""What an environment's states and actions look like, as a release told it. Read from a file that is not trusted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass


class BadLayout(ValueError):
    """The description of a layout is incomplete or contradicts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpace:
    """Actions are arrays of numbers between bounds."""

    type: Literal["Box"]
    shape: tuple[Annotated[int, Field(ge=0)], ...]
    dtype: Literal["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"]
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    """``None`` where there are too many to have been told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteSpace:
    """Actions are the integers from ``start`` on, ``n`` of them."""

    type: Literal["Discrete"]
    n: Annotated[int, Field(ge=1, le=2**31)]
    start: Annotated[int, Field(ge=-(2**31), le=2**31)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSpace:
    """Actions of another kind, described in words: none can be drawn."""

    type: str
    text: str


def _space_kind(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return kind if kind in ("Box", "Discrete") else "other"


ActionSpace = Annotated[
    Annotated[BoxSpace, Tag("Box")] | Annotated[DiscreteSpace, Tag("Discrete")] | Annotated[OtherSpace, Tag("other")],
    Discriminator(_space_kind),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A state vector (positions first, then velocities) and an action space."""

    kind: str
    state_size: Annotated[int, Field(ge=0)]
    positions: int
    quaternions: tuple[Annotated[int, Field(ge=0)], ...]
    """Where in the state a unit quaternion begins."""
    reference: tuple[float, ...]
    """The state that the environment starts from."""
    action: ActionSpace
    evidence: Literal["forced", "replayed", "table"] = "forced"
    """How its state is handed over: imposed, or only by a seed, or not needed because all transitions are told."""
    rows: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Transitions of a table."""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Layout:
        if len(self.reference) != self.state_size or not 0 <= self.positions <= self.state_size:
            raise ValueError(f"a state of {self.state_size} entries, a reference of {len(self.reference)}")
        if self.state_size == 0 and self.evidence == "forced":
            raise ValueError("a state without entries cannot be imposed")
        if any(first + 4 > self.state_size for first in self.quaternions):
            raise ValueError("a quaternion reaches beyond the state")
        return self

    @classmethod
    def from_json(cls, data: Any) -> Layout:
        """Read what a dumper wrote."""
        try:
            return _READER.validate_python(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BadLayout(f"{where or 'layout'}: {first['msg']}") from None


_READER: TypeAdapter[Layout] = TypeAdapter(Layout)
