"""The building stage: virtualenvs for the releases that have something to do."""

from __future__ import annotations

from collections.abc import Sequence

from audit.failures import Failure
from audit.installing.locks import Release
from audit.installing.venvs import Recipe, ensure, ready
from audit.tools import Reporter, Tools, at_once


def build_for_workers(releases: Sequence[Release], tools: Tools) -> dict[str, Failure]:
    """Build what the workers will need, unless they are elsewhere: there each builds its own when it needs it."""
    return {} if tools.runner.is_elsewhere else build(releases, tools.reporter)


def build(releases: Sequence[Release], reporter: Reporter) -> dict[str, Failure]:
    """Build what is not ready here; return the failures by release."""
    recipes = {release.id: Recipe.of(release) for release in releases}
    missing = [
        (name, recipes[name]) for name, there in at_once(lambda name: ready(recipes[name]), list(recipes)) if not there
    ]
    failures: dict[str, Failure] = {}
    if missing:
        with reporter.stage("building", len(missing)) as done:
            for (name, _), failure in at_once(lambda each: ensure(each[1], each[0]), missing):
                if failure is not None:
                    failures[name] = failure
                done(name if failure is None else f"{name}: {failure.status}")
    return failures
