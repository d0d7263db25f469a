"""What a user may say of a question besides its names: the same options for every verb that answers one."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from typing import Any

from audit.explanations.between import QuestionOptions
from audit.verbs import options


def question_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Give a verb these options, and hand them to it as ``given``."""

    @options.matrix
    @options.beside
    @options.python
    @options.exclude_newer
    @options.allow_source
    @functools.wraps(verb)
    def asked(
        *arguments: Any, matrix: str | None, beside: tuple[str, ...], python: str | None,
        day: datetime.datetime | None, allow_source: bool, **rest: Any,
    ) -> int:  # fmt: skip
        given = QuestionOptions(
            matrix=matrix, beside=beside, python=python, day=day.date() if day else None, source=allow_source
        )
        return verb(*arguments, given=given, **rest)

    return asked
