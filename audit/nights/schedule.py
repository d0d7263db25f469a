"""The files that make a machine audit every night: a line for cron, units for systemd, a workflow for GitHub."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from pathlib import Path
from string import Template

from audit import folders
from audit.errors import UsageError

TEMPLATES = Path(__file__).parent / "schedules"
CHECKOUT = folders.ROOT

FILES = {
    "cron": ("release-audit.cron",),
    "systemd": ("release-audit.service", "release-audit.timer"),
    "github": ("release-audit.yml",),
}
"""Templates of each form; the names are those that the files should have."""

CRON_LINE = 998
"""Bytes of a line that every cron reads: that of Debian refuses a command of a thousand."""

_DECIDING = re.compile(
    r"UV_\w+|SSL_CERT_\w+|(https?|all|no)_proxy|(HTTPS?|ALL|NO)_PROXY|RELEASE_AUDIT_CACHE|RAY_ADDRESS"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run every night, and when."""

    matrices: tuple[Path, ...]
    at: time
    database: Path
    waivers: Path | None = None
    """Accepted changes; nothing for those beside each matrix."""
    notify: str = ""
    options: tuple[str, ...] = ()
    """Of `nightly`, as they are written."""


def time_of_day(text: str) -> time:
    """A time written as ``03:30``."""
    if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", text):
        raise UsageError(f"{text!r} is not a time of day; write it like 03:30")
    hour, minute = text.split(":")
    return time(int(hour), int(minute))


def files(form: str, plan: Plan) -> dict[str, str]:
    """The files of a form, by name."""
    values = {"cron": _for_cron, "systemd": _for_systemd, "github": _for_github}[form](plan)
    made = {name: Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(values) for name in FILES[form]}
    if form == "cron":
        _check_length(max(made["release-audit.cron"].splitlines(), key=len))
    return made


def _check_length(line: str) -> None:
    size = len(line.encode())
    if size > CRON_LINE:
        raise UsageError(
            f"the line for cron would have {size} bytes, and cron reads {CRON_LINE}: use --systemd, schedule fewer "
            "matrices in a line, or put the command of --notify into a script"
        )


def together(made: Mapping[str, str]) -> str:
    """All files in one text; where there are several, each under its name."""
    if len(made) == 1:
        return next(iter(made.values()))
    return "\n".join(f"# ---- {name} ----\n{text}" for name, text in made.items())


def program() -> list[str]:
    """The command that starts this program, wherever it is called from."""
    beside = Path(sys.executable).parent / "release-audit"
    return [str(beside)] if beside.is_file() else [sys.executable, "-m", "audit"]


def variables() -> list[str]:
    """Variables of this shell that decide how an index is reached, which no scheduler has; their values stay here."""
    return sorted(name for name in os.environ if _DECIDING.fullmatch(name))


def folder() -> Path:
    """Where it is run: in the checkout, where uv finds its settings; here where it is installed as a package."""
    return CHECKOUT if (CHECKOUT / "pyproject.toml").is_file() else Path.cwd()


def _arguments(plan: Plan, matrices: list[str], database: str, summary: str, waivers: str) -> list[str]:
    accepted = [f"--waivers={waivers}"] if waivers else []
    hook = [f"--notify={plan.notify}"] if plan.notify else []
    return ["nightly", *matrices, f"--db={database}", f"--markdown={summary}", *accepted, *plan.options, *hook]


def _command(plan: Plan) -> list[str]:
    results = plan.database.parent
    matrices, waivers = [str(path) for path in plan.matrices], str(plan.waivers or "")
    return [*program(), *_arguments(plan, matrices, str(plan.database), str(results / "nightly.md"), waivers)]


def _for_cron(plan: Plan) -> dict[str, str]:
    results = plan.database.parent
    values = {
        "folder": shlex.quote(str(folder())),
        "results": shlex.quote(str(results)),
        "command": shlex.join(_command(plan)),
        "log": shlex.quote(str(results / "nightly.log")),
        "summary": shlex.quote(str(results / "nightly.md")),
    }
    escaped = {name: _one_line(value).replace("%", r"\%") for name, value in values.items()}  # % ends cron's command
    return {**escaped, "hour": str(plan.at.hour), "minute": str(plan.at.minute), "at": f"{plan.at:%H:%M}"}


def _for_systemd(plan: Plan) -> dict[str, str]:
    results = plan.database.parent
    return {
        "folder": _one_line(str(folder())).replace("%", "%%"),
        "command": " ".join(_unit_quoted(part) for part in _command(plan)),
        "log": _one_line(str(results / "nightly.log")).replace("%", "%%"),
        "at": f"{plan.at:%H:%M}",
    }


def _for_github(plan: Plan) -> dict[str, str]:
    matrices = [_in_the_repository(path) for path in plan.matrices]
    waivers = _in_the_repository(plan.waivers) if plan.waivers is not None else ""
    arguments = _arguments(plan, matrices, "results/audit.duckdb", "SUMMARY", waivers)
    command = shlex.join([".venv/bin/release-audit", *arguments])
    return {
        "command": _one_line(command).replace("=SUMMARY", '="$GITHUB_STEP_SUMMARY"'),
        "hour": str(plan.at.hour),
        "minute": str(plan.at.minute),
    }


def _in_the_repository(path: Path) -> str:
    if not path.is_relative_to(CHECKOUT):
        raise UsageError(f"{path} is not in {CHECKOUT}: GitHub has only what is in the repository")
    return path.relative_to(CHECKOUT).as_posix()


def _unit_quoted(text: str) -> str:
    """A word of a command in a unit: systemd has its own quotes, variables and specifiers."""
    marked = _one_line(text).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{marked}"' if re.search(r"[\s\"'\\;]", text) or not text else marked


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise UsageError(f"{text!r} has a line break: such a path or command cannot be scheduled")
    return text
