"""Tools of an audit that show nothing and run nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from audit.cluster.jobs import Job, Outcome


class Silent:
    """A runner and a reporter that do nothing."""

    @property
    def is_elsewhere(self) -> bool:
        return False

    def classes(self) -> Mapping[str, int]:
        return {"": 1}

    def prepare(self) -> None:
        pass

    def finish(self) -> None:
        pass

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        raise AssertionError("questions are not asked by the workers")

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[str], None]]:
        yield lambda _: None
