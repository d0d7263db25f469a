"""What a command may do, as the orchestrator says it on the command line: ``OPTION=VALUE…  -- COMMAND…``."""

from __future__ import annotations


class Spec:
    """Everything that is not said here is denied, as far as the system can deny it.

    A plain class and no JSON: this is read before every dump, and those modules take longer to import than all else.
    """

    def __init__(self, arguments: list[str]) -> None:
        end = arguments.index("--")
        self._given = [each.partition("=") for each in arguments[:end]]
        self.command = arguments[end + 1 :]
        """With its full path; empty to try the confinement without one."""
        self.writable = self._all("write")
        """Folders that it may write to."""
        self.readable = self._all("read")
        """What it may read; folders stand for all that lies in them."""
        self.needed = self._all("need")
        """What it may read though it lies in a hidden folder."""
        self.hidden = self._all("hide")
        """Folders that are shown empty."""
        self.limits = {name: int(most) for name, _, most in (each.partition(":") for each in self._all("limit"))}
        """Limits of the system by their names: ``AS``, ``NOFILE``…"""
        self.processes = self._number("processes", 0)
        """How many it may have at a time, threads among them; 0 for any number."""
        self.executable = self._all("execute")
        """Of a trusted command that must not start anything else: what it may execute. But for ``write``, nothing else
        applies to it."""
        self.required = self._all("require")
        """Protections without which the command is not started, by the names under which they are told."""
        self.lifeline = self._number("lifeline", -1)
        """A pipe that ends when the orchestrator is gone."""
        self.report = self._number("report", -1)
        """A pipe for what the orchestrator should know: lines of a name, a tab, and why not or how many."""

    def _all(self, option: str) -> list[str]:
        return [value for name, _, value in self._given if name == option]

    def _number(self, option: str, default: int) -> int:
        return int((self._all(option) or [str(default)])[-1])
