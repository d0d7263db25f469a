"""Where summaries go: into files, or to standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from audit import named_files
from audit.errors import AuditError, UsageError
from audit.named_files import STANDARD_OUTPUT
from audit.reports.summaries import as_json, junit, markdown
from audit.reports.summaries.value import AuditSummary

RENDERERS: dict[str, Callable[[Sequence[AuditSummary]], str]] = {
    "markdown": markdown.render,
    "json": as_json.render,
    "junit": junit.render,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What is wanted in which form, and in which file, or on standard output."""

    wanted: tuple[tuple[str, Path], ...] = ()

    @classmethod
    def of(cls, **places: Path | None) -> Outputs:
        """From the values of the options.

        Raises:
            UsageError: where two of them would be mixed on standard output, or a file cannot be written.
        """
        wanted = tuple((form, place) for form, place in places.items() if place is not None)
        if sum(place == STANDARD_OUTPUT for _, place in wanted) > 1:
            raise UsageError("only one summary can go to standard output: give the others a file, as in --json FILE")
        return cls(wanted=wanted)

    @property
    def takes_standard_output(self) -> bool:
        """Whether what people read has to go elsewhere."""
        return any(place == STANDARD_OUTPUT for _, place in self.wanted)

    def write(self, summaries: Sequence[AuditSummary]) -> None:
        """Write all of them, also where one cannot be written.

        Raises:
            AuditError: which could not, and why.
        """
        troubles = []
        for form, place in self.wanted:
            try:
                named_files.put(place, RENDERERS[form](summaries))
            except OSError as error:
                troubles.append(f"the summary --{form} {place} could not be written: {error.strerror}")
            except UsageError as error:
                troubles.append(f"the summary --{form} {error}")
        if troubles:
            raise AuditError("; ".join(troubles))
