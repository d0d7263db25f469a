"""Which environments two releases both have, by asking their registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audit.errors import UsageError
from audit.explanations import adhoc, examining
from audit.explanations.examining import Question
from audit.explanations.resolving import Resolver
from audit.failures import Status
from audit.installing import listing
from audit.planning import plan
from audit.tools import Tools

REGISTRY = "registry"

_ELSEWHERE = ("phys2d/", "tabular/", "GymV")
"""Ids that need a library of their own (JAX, Shimmy), which nobody means who names no environment."""


def shared(
    rows: Sequence[Mapping[str, Any]], python: str | None, tools: Tools, *, source: bool = False
) -> list[dict[str, Any]]:
    """Rows for the environments that all of these releases have.

    Raises:
        UsageError: where a release cannot be asked, or they have none in common.
    """
    file = adhoc.matrix(REGISTRY, rows, [{"id": REGISTRY}], python, source=source)
    found_releases = Resolver(tools.store).ends(listing.expand(file))
    cells = [plan.Cell(release=each, environment=file.matrix.environments[0], position=0) for each in found_releases]
    questions = [Question(cell=cell, task=REGISTRY) for cell in cells]
    failed = examining.examine(questions, tools)
    found: set[str] | None = None
    for question in questions:
        answer = tools.store.explanations.examination(question.key)
        if answer is None or answer.status is not Status.OK:
            told = answer.reason if answer is not None else failed[question.key].reason
            raise UsageError(f"{question.cell.release.id} cannot tell its environments: {told}")
        ids = set(answer.meta["ids"])
        found = ids if found is None else found & ids
    common = sorted(each for each in found or () if not each.startswith(_ELSEWHERE))
    if not common:
        raise UsageError("the two have no environment in common: give one with --env, or a scene with --mjcf")
    return [{"id": each} for each in common]
