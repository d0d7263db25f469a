"""Releases that mean harm are audited beside well-behaved ones: each attempt fails, is told, and harms nobody else."""

from __future__ import annotations

import os
import pty
import re
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from audit.confining import protections
from audit.installing import uv
from tests import hostile
from tests.conftest import CHAOS, PINS, SPRING, Finished, Program, dumpers, release, rows, write_matrix
from tests.hostile import Attempt, Targets

GOOD = ["1.0", "1.1", "1.3"]
_PATIENCE_SECONDS = 840.0
"""For an audit of 30 releases; with 26 the whole file took 212 s on two cores at a load of 40."""

TOKEN = "s3cret-that-nobody-may-see"


class Listener:
    """Listens on this machine and counts who calls."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.calls = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                self._socket.accept()[0].close()
            except OSError:
                return
            self.calls += 1

    def close(self) -> None:
        self._socket.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """An audit with hostile releases, and one of the same others without them."""

    alone: Path
    database: Path
    finished: Finished
    targets: Targets
    attempts: tuple[Attempt, ...]
    listener: Listener
    before: bytes
    left_behind: list[int]
    doctor: str

    def row(self, attempt: Attempt) -> tuple[str, str, str]:
        """Status, reason and last lines of the one failure of a release."""
        name = f"hostile-{self.attempts.index(attempt)}"
        sql = "SELECT status, reason, stderr_tail FROM failures WHERE subject IN (?, ?)"
        ((status, reason, tail),) = rows(self.database, sql, name, f"{name}/Spring")
        return status, reason, tail


def _good_pairs(database: Path) -> list[tuple[Any, ...]]:
    return rows(
        database,
        "SELECT * EXCLUDE (matrix, run_id, finished) FROM pairs"
        " WHERE older NOT LIKE 'hostile%' AND newer NOT LIKE 'hostile%' ORDER BY ALL",
    )


@pytest.fixture(scope="module")
def audited(module_audit: Program, shared_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = module_audit.folder
    good = list(map(release, GOOD))
    alone, database = folder / "alone.duckdb", folder / "hostile.duckdb"
    first = module_audit("run", write_matrix(folder / "alone.yaml", good, [SPRING]), "--db", alone, "--no-explain")
    assert first.code == 0, first.stderr
    listener = Listener()
    typed, terminal = pty.openpty()
    os.write(typed, f"{TOKEN}\n".encode())
    targets = _targets(database, shared_cache, listener.port, os.ttyname(terminal))
    attempts = hostile.attempts(targets)
    wheels = tmp_path_factory.mktemp("hostile")
    hostile.build(wheels, attempts)
    bad = [
        {"id": f"hostile-{number}", "requires": [f"tinysim==66.{number}"], "pins": [*PINS, "tinydep==1.0"]}
        for number in range(len(attempts))
    ]
    matrix = write_matrix(folder / "hostile.yaml", [*good, *bad], [SPRING])
    before = targets.other_release.read_bytes()
    targets.secret_file.write_text(TOKEN)
    try:
        links = f"{module_audit.environment['UV_FIND_LINKS']},{wheels}"
        more = {"UV_FIND_LINKS": links, "AUDIT_TEST_TOKEN": TOKEN, hostile.PASSWORD: TOKEN}
        with module_audit.started("run", matrix, "--db", database, "--no-explain", **more) as program:
            finished = program.finish(within=_PATIENCE_SECONDS)
        yield Audited(
            alone=alone,
            database=database,
            finished=finished,
            targets=targets,
            attempts=attempts,
            listener=listener,
            before=before,
            left_behind=dumpers(shared_cache),
            doctor=module_audit("doctor").stdout,
        )
    finally:
        listener.close()
        os.close(typed)
        os.close(terminal)
        targets.secret_file.unlink()
        (targets.home / "owned").unlink(missing_ok=True)
        (targets.uv_cache / "owned").unlink(missing_ok=True)


def _targets(store: Path, cache: Path, port: int, terminal: str) -> Targets:
    listed = subprocess.run([uv.executable(), "cache", "dir"], capture_output=True, text=True, check=True)
    return Targets(
        port=port,
        home=Path.home(),
        store=store,
        other_release=next(cache.glob("venvs/*/lib/python*/site-packages/tinydep/__init__.py")),
        uv_cache=Path(listed.stdout.strip()),
        secret_file=Path.home() / f".release-audit-test-{uuid.uuid4().hex}",
        terminal=terminal,
    )


def _attempts() -> list[str]:
    nowhere = Path("/nowhere")
    targets = Targets(
        port=0, home=nowhere, store=nowhere, other_release=nowhere, uv_cache=nowhere, secret_file=nowhere, terminal=""
    )
    return [each.name for each in hostile.attempts(targets)]


def _is_prevented(audited: Audited, name: str) -> bool:
    """Whether this system has the protection; where it has not, doctor and the run must say so."""
    (protection,) = [each for each in protections.all_here() if each.name == name]
    if not protection.on:
        assert f"NOT PROTECTED: {name}" in audited.finished.stderr
        assert re.search(rf"^OFF +{name} ", audited.doctor, re.M)
    return protection.on


@pytest.mark.parametrize("name", _attempts())
def test_an_attempt_fails_and_is_told(audited: Audited, name: str) -> None:
    attempt = next(each for each in audited.attempts if each.name == name)
    if not _is_prevented(audited, attempt.needs):
        return
    status, reason, tail = audited.row(attempt)
    assert (status, bool(re.search(attempt.told, f"{reason}\n{tail}", re.M))) == (attempt.status, True), reason + tail


def test_the_audit_is_complete(audited: Audited) -> None:
    assert audited.finished.code == 0, audited.finished.stdout + audited.finished.stderr
    assert "hostile-0/Spring: raised" in audited.finished.stdout
    told = [line for line in audited.finished.stderr.splitlines() if line.startswith("NOT PROTECTED")]
    assert len(told) == len(protections.missing())


def test_the_others_are_unharmed_to_the_last_byte(audited: Audited) -> None:
    found = _good_pairs(audited.database)
    assert found == _good_pairs(audited.alone)
    assert len(found) == 3


def test_nobody_called_and_nothing_was_written(audited: Audited) -> None:
    if _is_prevented(audited, "network"):
        assert audited.listener.calls == 0
    if _is_prevented(audited, "writing"):
        assert not (audited.targets.home / "owned").exists()
        assert not (audited.targets.uv_cache / "owned").exists()
        assert audited.targets.other_release.read_bytes() == audited.before


def test_no_secret_is_anywhere(audited: Audited) -> None:
    texts = [str(row) for row in rows(audited.database, "SELECT reason, stderr_tail FROM failures")]
    assert TOKEN not in "\n".join([audited.finished.stdout, audited.finished.stderr, *texts])


def test_no_process_is_left(audited: Audited) -> None:
    assert audited.left_behind == []
    if not _is_prevented(audited, "left behind"):
        return
    assert not [each for each in psutil.process_iter(["cmdline"]) if "hostile-daemon" in (each.info["cmdline"] or [])]


def test_no_code_reaches_the_terminal_or_the_store(audited: Audited) -> None:
    texts = [str(value) for row in rows(audited.database, "SELECT reason, stderr_tail FROM failures") for value in row]
    for text in (audited.finished.stdout, audited.finished.stderr, *texts):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text)


def test_an_odd_answer_costs_its_own_pairs_and_ends_no_audit(
    release_audit: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each of them is the one whose twins and controls are asked; what is stored of it is met by every later run."""
    wheels = tmp_path_factory.mktemp("liars")
    hostile.build_liars(wheels)
    rows_of = [release("67.1"), release("1.7"), release("67.0")]
    matrix = write_matrix(release_audit.folder / "odd.yaml", rows_of, [CHAOS, SPRING])
    more = {"UV_FIND_LINKS": f"{release_audit.environment['UV_FIND_LINKS']},{wheels}"}
    for _ in range(2):
        finished = release_audit("run", matrix, "--db", "odd.duckdb", **more)
        assert finished.code == 0, finished.stdout + finished.stderr
    database = release_audit.folder / "odd.duckdb"
    sql = "SELECT newer, verdict FROM pairs WHERE older = 'tinysim-67.1' AND environment = 'Chaos' ORDER BY newer"
    assert rows(database, sql) == [("tinysim-1.7", "amplified"), ("tinysim-67.0", "changed")]
    assert rows(database, "SELECT DISTINCT reason FROM changes") == [("spaces: they differ",)]
    ((certificate, reason),) = rows(database, "SELECT certificate, reason FROM certificates")
    assert (certificate, reason.split(" than")[0]) == ("unexplained", "the twins have recordings of another shape")
    ((planted, told),) = rows(database, "SELECT planted, reason FROM environments WHERE environment = 'Spring'")
    assert (planted, "records another shape" in told) == ("unknown", True)
