"""Standard streams as other programs leave them: closed, with nobody at the other end, full, of another encoding."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from audit.storage.store import Store
from tests.conftest import Program

NOBODY_READS = (
    "release-audit: nobody reads any more what is printed; what was dumped is stored, the same command continues\n"
)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_neither_what_happens_nor_the_exit_code(release_audit: Program, closed: str) -> None:
    """What is opened next would take its place: the pipe to the guard, or those of the launcher before a release."""
    in_shell = replace(release_audit, prefix=("sh", "-c", f'exec "$0" "$@" {closed}'))
    for arguments, code in (("run", "missing.yaml"), 2), (("doctor",), 0):
        done = in_shell(*arguments)
        assert (done.code, "Traceback" in done.stderr) == (code, False), done.stderr


@pytest.mark.parametrize("call", ["schema", "--help", "plan --help", "query --named list", "doctor"])
def test_nobody_reads_what_a_verb_prints(release_audit: Program, call: str) -> None:
    """As in `release-audit schema | true`."""
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = _called(release_audit, call, theirs)
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (3, NOBODY_READS)


def test_a_table_that_could_not_be_written_is_not_told_as_done(release_audit: Program) -> None:
    with Store(release_audit.folder / "audit.duckdb"):
        pass
    with Path("/dev/full").open("wb") as full:
        done = _called(release_audit, "query --named nights --db audit.duckdb", full.fileno())
    assert done.returncode == 3
    assert done.stderr.startswith("release-audit: No space left on device")


def test_signs_that_an_encoding_lacks_are_spelled_out(release_audit: Program) -> None:
    database = release_audit.folder / "audit.duckdb"
    with Store(database):
        pass
    done = release_audit("query", "SELECT '→ ✗' AS signs", "--db", database, PYTHONIOENCODING="latin-1")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.split() == ["signs", "\\u2192", "\\u2717"]


def _called(program: Program, call: str, out: int) -> subprocess.CompletedProcess[str]:
    """With what is printed kept back until there is enough of it, as Python does where it is not told otherwise."""
    return subprocess.run(
        [sys.executable, "-m", "audit", *call.split()], cwd=program.folder, stdout=out, stderr=subprocess.PIPE,
        env={**program.environment, "PYTHONUNBUFFERED": ""}, text=True, check=False, timeout=300,
    )  # fmt: skip
