"""What a recovered law says of a specification. Apart, because who reads stored verdicts needs no algebra."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What a recovered law says of the specification."""

    PARAMETER_FAULT = "parameter fault"
    CONSISTENT = "consistent with specification"
    NOT_EXPLICABLE = "not explicable as a parameter fault"
