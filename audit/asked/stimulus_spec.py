"""What releases are given, as a matrix says it: initial states, actions, and the bank of forced states."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from audit.asked.fields import Finite, Steps, Trajectories
from audit.asked.yaml_models import FileModel


class BoundedStart(FileModel):
    """Initial states drawn uniformly between bounds. Entries of the state beyond the bounds given are zero."""

    low: tuple[Finite, ...] = Field(min_length=1)
    high: tuple[Finite, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ordered(self) -> BoundedStart:
        if len(self.low) != len(self.high):
            raise ValueError(f"low has {len(self.low)} entries, high {len(self.high)}")
        if any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("an entry of low is above its entry of high")
        if any(math.isinf(high - low) for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("low and high are further apart than the largest number")
        return self


class NearStart(FileModel):
    """Initial states drawn around the environment's own: positions and velocities within plus or minus these."""

    position: Finite = Field(ge=0)
    velocity: Finite = Field(ge=0)


def _start_kind(value: Any) -> str:
    return "near" if isinstance(value, dict) and {"position", "velocity"} & set(value) else "bounded"


Start = Annotated[
    Annotated[BoundedStart, Tag("bounded")] | Annotated[NearStart, Tag("near")], Discriminator(_start_kind)
]


class StimulusSpec(FileModel):
    """What every release is given: states and actions, drawn once from a seed."""

    seed: int = Field(default=0, ge=0)
    trajectories: Trajectories = 8
    steps: Steps = 500
    actions: Literal["zero", "uniform"] = Field(
        default="zero", description="zero: no action (or `coast`). uniform: drawn over the action space."
    )
    start: Start = Field(default=NearStart(position=0.05, velocity=0.05))


class BankSpec(FileModel):
    """The states from which single steps are forced, made on the baseline release."""

    states: int = Field(
        default=512,
        ge=0,
        le=100_000,
        description="Visited, in range and sought; 0: only those that trajectories start from.",
    )
    seed: int = Field(default=0, ge=0)
    nudges: int = Field(default=4, ge=2, le=64, description="Copies of each state, moved by one last place.")
    budget: int = Field(default=20_000, ge=0, description="States that the search may look at, per environment.")
    file: str | None = Field(default=None, description="Your own states: an npz with `states` and perhaps `actions`.")


def _bank(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


Bank = Annotated[BankSpec, BeforeValidator(_bank)]
