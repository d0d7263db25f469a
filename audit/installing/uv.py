"""Calling the ``uv`` program. The user's index settings are uv's own: nothing here names or changes an index."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from audit.digests import digest
from audit.errors import IndexUnreachable, ToolMissing
from audit.failures import Failure, Status, readable, signal_name
from audit.installing import uv_variables

TIMEOUT_SECONDS = 1800
"""For one call: building a large source distribution on a slow machine is the longest thing uv is asked to do."""

_UNREACHABLE = re.compile(
    r"^(?:error|[ ]{2}(?:cause|Caused by)): (?:"
    r"Failed to fetch|Request failed after|error sending request|dns error|tcp connect error|operation timed out|"
    r"Failed to download distribution due to network timeout|error decoding response body|"
    r"request or response body error)|^hint: Packages were unavailable because the network was disabled",
    re.I | re.M,
)
"""Where uv's sentences begin: in a hint it may show what a package wrote among its metadata, and further in what an
uploader wrote who withdrew a version."""

TIME, ROOM = "time", "room"
"""What a call may take too much of."""

_LONGEST_ERROR = 500
"""Characters of a build's last error that are told beside what uv says."""

_DECIDES = re.compile(
    r"UV_.*(INDEX|LINKS|CONFIG|PRERELEASE|RESOLUTION|CONSTRAINT|OVERRIDE|EXCLUDE|BINARY|BUILD|OFFLINE)"
)
_QUOTED = re.compile(r"^[ \t]*\[(?:stdout|stderr)\][ \t]*$", re.M)
_FULL_DISK = re.compile(
    r"^(?:error|[ ]{2}(?:cause|Caused by)): .*(?:No space left on device|Disk quota exceeded) \(os error", re.I | re.M
)


_running: set[subprocess.Popen[str]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one call of uv came to."""

    ok: bool
    output: str
    errors: str
    """What uv said, to be read by this program. What is told of it is without the ``secrets`` that it may hold."""
    exit_code: int
    secrets: tuple[str, ...] = field(default=(), repr=False)
    refused: Status | None = None
    """The machine's fault that kept uv from doing it, where who called it saw one."""
    ended_by: str = ""
    """What ended uv, where that was neither uv itself nor a package that it built."""

    offline: bool = False
    """Whether it was to use no network: that it missed something then says nothing about the index."""
    known: str = ""
    """The sentence that says why, where that is known from an earlier call."""
    overran: str = ""
    """What it took too much of, so that it was ended."""
    is_own_fault: bool = False
    """Whether a build failed by itself: neither by the machine nor by what it lacked."""

    def failure(self, subject: str, stage: str, status: Status, seconds: float) -> Failure:
        """The call as a failure of a release. What is not the packages' fault has a status of its own."""
        if self.refused:
            status = self.refused
        elif self.ended_by:
            status = Status.WORKER_LOST
        elif not self.known and (self.unreachable or self.full_disk):
            status = Status.UNREACHABLE if self.unreachable else Status.DISK_FULL
        return Failure(
            subject=subject,
            stage=stage,
            status=status,
            reason=readable(self.reason),
            exit_code=self.exit_code,
            stderr_tail=readable(uv_variables.without(self.secrets, self.errors)),
            seconds=seconds,
        )

    @property
    def reason(self) -> str:
        """The sentence in uv's errors that says why: its first error with its causes, without build logs."""
        if self.known or self.ended_by:
            return self.known or f"uv was ended by {self.ended_by}"
        return uv_variables.without(self.secrets, self._reason)

    @property
    def _reason(self) -> str:
        told: list[str] = []
        for line in self.errors.splitlines():
            if line.strip() == "[stderr]":
                told.append(_last_error(self.errors))
                break
            if line.startswith(("error:", "  cause:")):
                told.append(line.split(":", 1)[1].strip())
            elif line.startswith("         ") and told:
                told[-1] += " " + line.strip()
        silence = f"uv ended with exit code {self.exit_code} and said nothing"
        return ": ".join(filter(None, told)) or " ".join(self.errors.split())[-500:] or silence

    @property
    def unreachable(self) -> bool:
        """Whether the index did not answer, which says nothing about the packages."""
        return not self.ok and not self.offline and bool(_UNREACHABLE.search(self.own_words))

    @property
    def unsatisfiable(self) -> bool:
        """Whether the resolver looked and found that there is nothing that fits."""
        return not self.ok and "No solution found" in self.own_words

    @property
    def full_disk(self) -> bool:
        """Whether the disk was full, which says nothing about the packages either."""
        return not self.ok and bool(_FULL_DISK.search(self.own_words))

    @property
    def own_words(self) -> str:
        """What uv itself said, up to where it quotes a build, which may say anything."""
        return _QUOTED.split(self.errors, maxsplit=1)[0]


def _last_error(text: str) -> str:
    """What a build said last of an error, or last of all: an exception stands at the end, and a compiler goes on."""
    said = textwrap.dedent(_QUOTED.split(text)[-1].partition("\nhint:")[0])
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line[0].isspace()]
    errors = [line for line in lines if re.search(r"\berror\b", line, re.I)]
    return next(reversed(errors or lines), "").removeprefix("error:").strip()[:_LONGEST_ERROR]


def executable() -> Path:
    """The uv beside this interpreter, else the one on the PATH."""
    beside = Path(sys.executable).parent / "uv"
    if beside.is_file():
        return beside
    found = shutil.which("uv")
    if found is None:
        raise ToolMissing("uv is not installed: `pip install uv`, or run through `make`, which installs it")
    return Path(found)


def call(
    *arguments: str,
    given: str = "",
    quiet: bool = True,
    before: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
    folder: Path | None = None,
) -> Answer:
    """Run uv, quietly, with ``given`` on its standard input. Some verbs, when quiet, do not even answer.

    ``before`` is a command that starts it, ``variables`` are set besides those that it reads, ``folder`` is where it
    looks for a project's settings, if not here.
    """
    asked = [*arguments, *(["--quiet"] if quiet else []), "--color", "never", "--no-progress"]
    command = [*before, str(executable()), *asked]
    environment = uv_variables.handed_on() | dict(variables)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, text=True, cwd=folder
    ) as child:
        _running.add(child)
        try:
            output, errors = child.communicate(given, timeout=TIMEOUT_SECONDS)
            took_too_long = False
        except subprocess.TimeoutExpired:
            child.kill()
            output, errors = "", ""
            took_too_long = True
        finally:
            _running.discard(child)
    code = child.returncode
    ended_by = signal_name(-code) if code < 0 else ""
    if took_too_long:
        ended_by = f"this program, as it was not done within {TIMEOUT_SECONDS} s"
    secrets = uv_variables.secrets(environment)
    return Answer(
        ok=code == 0, output=output, errors=errors, exit_code=code, secrets=secrets, ended_by=ended_by,
        overran=TIME if took_too_long else "",
    )  # fmt: skip


def stop() -> None:
    """End every call that is under way: nobody waits for its answer any more."""
    for child in tuple(_running):
        child.kill()


def require_index(answer: Answer) -> None:
    """Raise when ``answer`` failed because the index is away."""
    if answer.unreachable:
        raise IndexUnreachable.because(answer.reason)


def settings_digest() -> str:
    """Digest of what decides where uv looks and what it takes: its variables and its configuration files."""
    variables = sorted((key, value) for key, value in os.environ.items() if _DECIDES.match(key))
    around = (Path.cwd(), *Path.cwd().parents)
    places = [Path("/etc/uv/uv.toml"), user_settings(), *(folder / "uv.toml" for folder in around)]
    files = [place.read_text(encoding="utf-8", errors="replace") for place in places if place.is_file()]
    files += [_tool_table(folder / "pyproject.toml") for folder in around]
    return digest(*(text for pair in variables for text in pair), *filter(None, files))


def user_settings() -> Path:
    """The user's configuration file, whether or not there is one."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(os.environ.get("UV_CONFIG_FILE") or config / "uv" / "uv.toml")


def project_settings() -> Path | None:
    """The configuration file that uv finds from the folder that it is called in."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "uv.toml").is_file():
            return folder / "uv.toml"
        if _tool_table(folder / "pyproject.toml"):
            return folder / "pyproject.toml"
    return None


def _tool_table(project: Path) -> str:
    """What a project says to uv in its ``pyproject.toml``; nothing where there is none."""
    try:
        tools = tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError):
        return ""
    return json.dumps(tools["uv"], sort_keys=True, default=str) if "uv" in tools else ""


def version() -> str:
    """Uv's own version."""
    done = subprocess.run([str(executable()), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().removeprefix("uv ").split(" ")[0]
