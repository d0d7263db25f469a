"""Nights of a user, one after the other, over an index to which versions are published in between."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import PINS, SPRING, Finished, Program, rows, write_matrix
from tests.package_index import PackageIndex

FIRST = datetime.date(2026, 10, 1)
HOOK = "cat >> told.md"


def day(number: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=number)


@dataclass(kw_only=True)
class Nights:
    """Matrices, an index, and the nights that have been."""

    program: Program
    index: PackageIndex
    matrices: tuple[Path, ...]
    results: dict[int, Finished] = field(default_factory=dict)
    told: dict[int, str] = field(default_factory=dict)
    """What the hook got on each night."""

    @property
    def database(self) -> Path:
        return self.program.folder / "results" / "audit.duckdb"

    def arguments(self, number: int) -> list[str]:
        names = [str(each) for each in self.matrices]
        return ["nightly", *names, "--day", str(day(number)), "--notify", HOOK, "--no-explain"]

    def night(self, number: int, *more: str, **environment: str) -> Finished:
        """The night after ``number`` days; uploads of the day before count."""
        hooked = self.program.folder / "told.md"
        hooked.unlink(missing_ok=True)
        done = self.program(*self.arguments(number), *more, **environment)
        self.results[number] = done
        self.told[number] = hooked.read_text(encoding="utf-8") if hooked.exists() else ""
        return done

    def publish(self, version: str, like: str, number: int) -> None:
        self.index.publish(version, like, day(number - 1))

    def record(self, number: int, matrix: str = "tiny") -> dict[str, Any]:
        """The night as the view has it; the last of that day."""
        columns = "exit_code, first, news, new_changes, waived_changes, known_changes, not_audited, summary, run_id"
        found = rows(
            self.database,
            f"SELECT {columns} FROM nights WHERE night LIKE ? AND matrix = ? ORDER BY started DESC LIMIT 1",
            f"{day(number)}%",
            matrix,
        )
        return dict(zip(columns.split(", "), found[0], strict=True))

    def dumped(self, number: int, matrix: str = "tiny") -> list[str]:
        """The releases that were dumped on a night, and not taken from an earlier one."""
        found = rows(
            self.database,
            "SELECT DISTINCT cell.release FROM internal.run_cells AS cell JOIN nights USING (run_id)"
            " WHERE night LIKE ? AND matrix = ? AND NOT cell.reused AND cell.behaviour IS NOT NULL ORDER BY ALL",
            f"{day(number)}%",
            matrix,
        )
        return [release for (release,) in found]

    def changes(self, number: int, matrix: str = "tiny") -> list[tuple[Any, ...]]:
        return rows(
            self.database,
            "SELECT older, newer, verdict, standing FROM night_changes WHERE night LIKE ? AND matrix = ? ORDER BY ALL",
            f"{day(number)}%",
            matrix,
        )


def write(path: Path, versions: str, **more: Any) -> Path:
    """A matrix of the versions of tinysim in a range."""
    row = {"package": "tinysim", "versions": versions, "pins": PINS}
    return write_matrix(path, [row], [SPRING], **{"exclude-newer": str(day(0)), **more})


def made(
    folder: Path, index: PackageIndex, environment: Mapping[str, str], versions: str = ">=1", **more: Any
) -> Nights:
    """The program of a user whose uv knows the index, with a matrix of the versions of tinysim in a range."""
    program = program_with(index, folder, environment)
    return Nights(program=program, index=index, matrices=(write(folder / "tiny.yaml", versions, **more),))


def program_with(index: PackageIndex, folder: Path, environment: Mapping[str, str]) -> Program:
    """The program of a user whose uv knows the index."""
    own = {key: value for key, value in environment.items() if key != "UV_FIND_LINKS"}
    return Program(folder=folder, environment={**own, "UV_INDEX": f"{index.address}/simple"})
