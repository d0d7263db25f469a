"""The files that make a machine audit every night, checked by their own tools; the cron line is run as printed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import time
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from audit.asked.matrix_file import SHIPPED
from audit.errors import UsageError
from audit.nights import schedule
from audit.nights.schedule import Plan
from tests.conftest import SPRING, Program, release, write_matrix

BARE = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
"""All that cron gives a command, but for HOME and the user's name."""


def plan(folder: Path, **more: Any) -> Plan:
    return Plan(matrices=(SHIPPED / "mujoco.yaml",), at=time(3, 5), database=folder / "audit.duckdb", **more)


def cron_line(text: str) -> tuple[list[str], str]:
    """The five fields and the command, as cron would hand it to the shell."""
    (line,) = [line for line in text.splitlines() if line and not line.startswith("#")]
    fields = line.split(" ", 5)
    return fields[:5], fields[5].replace(r"\%", "%")


def test_the_cron_line_runs_as_it_is_printed(
    release_audit: Program, environment: dict[str, str], tmp_path: Path
) -> None:
    """With cron's bare environment, and what the verb said has to be set there."""
    matrix = write_matrix(tmp_path / "one % two's.yaml", [release("1.0"), release("1.16")], [SPRING], name="one")
    printed = release_audit("schedule", "--cron", matrix, "--at", "4:07", "--db", tmp_path / "results" / "audit.duckdb")
    assert printed.code == 0, printed.stderr
    fields, command = cron_line(printed.stdout)
    assert fields == ["7", "4", "*", "*", "*"]
    assert "UV_FIND_LINKS" in printed.stderr, "what cron would not have"
    assert environment["UV_FIND_LINKS"] not in printed.stderr + printed.stdout
    names = printed.stderr.strip().rpartition(": ")[2].split(", ")
    told = {"HOME": str(Path.home()), **{name: environment[name] for name in names}}
    done = subprocess.run(["sh", "-c", command], env={**BARE, **told}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, ""), f"cron would mail this: {done.stdout}"
    log = (tmp_path / "results" / "nightly.log").read_text(encoding="utf-8")
    assert "The first night: 2 releases are recorded as they are" in log
    matrix.write_text("name: one\n")
    done = subprocess.run(["sh", "-c", command], env={**BARE, **told}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith("release-audit ended with 2\n")
    assert "is missing" in done.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")
@pytest.mark.parametrize("notify", ["", "mail -s \"50% of 'it'\" $USER; true"])
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path, notify: str) -> None:
    made = schedule.files("systemd", plan(tmp_path / "with 100% $HOME", notify=notify))
    assert set(made) == {"release-audit.service", "release-audit.timer"}
    for name, text in made.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in made)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    calendar = subprocess.run(
        ["systemd-analyze", "calendar", "*-*-* 03:05:00"], capture_output=True, text=True, check=True
    )
    assert "03:05:00" in calendar.stdout
    assert "OnCalendar=*-*-* 03:05:00\n" in made["release-audit.timer"]


def test_systemd_would_find_a_mistake(tmp_path: Path) -> None:
    """The check above can fail."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed here")
    made = schedule.files("systemd", plan(tmp_path))
    wrong = tmp_path / "release-audit.service"
    wrong.write_text(made["release-audit.service"].replace("Type=exec", "Type=exe"), encoding="utf-8")
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", wrong], capture_output=True, text=True, check=False
    )
    assert "exe" in checked.stderr


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    beside = Path(sys.executable).parent / "check-jsonschema"
    command = [str(beside), "--builtin-schema", "vendor.github-workflows", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_workflow_is_one_by_githubs_schema(tmp_path: Path) -> None:
    ((name, text),) = schedule.files("github", plan(tmp_path)).items()
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    checked = lint(path)
    assert checked.returncode == 0, checked.stdout
    assert 'cron: "5 3 * * *"' in text
    assert "release-audit nightly matrices/mujoco.yaml" in text
    path.write_text(text.replace("runs-on:", "runs-at:"), encoding="utf-8")
    assert lint(path).returncode == 1, "the check can fail"


def test_the_steps_of_the_workflow_are_shell(tmp_path: Path) -> None:
    """Every script of it is read by the shell, with what GitHub puts in place of its expressions."""

    (text,) = schedule.files("github", plan(tmp_path, notify="curl -d @- 'https://example.org/$x'")).values()
    steps = YAML(typ="safe").load(text)["jobs"]["nightly"]["steps"]
    scripts = [step["run"].replace("${{ steps.nightly.outputs.code }}", "1") for step in steps if "run" in step]
    assert len(scripts) == 3
    for script in scripts:
        subprocess.run(["sh", "-n", "-c", script], check=True)
    told = subprocess.run(["sh", "-c", scripts[-1]], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert told.stdout.startswith("::error::A new release changed something")


@pytest.mark.parametrize("form", schedule.FILES)
def test_every_schedule_can_refuse_to_run_without_protection(tmp_path: Path, form: str) -> None:
    for required in (True, False):
        made = schedule.files(form, plan(tmp_path, options=("--require-sandbox",) if required else ()))
        (command,) = [line for text in made.values() for line in text.splitlines() if " nightly " in line]
        assert ("--require-sandbox" in command) == required


def test_what_cannot_be_scheduled_is_refused(release_audit: Program, tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "own.yaml", [release("1.0")], [SPRING])
    for forms in ((), ("--cron", "--systemd")):
        assert "either --cron, --systemd or --github" in release_audit("schedule", matrix, *forms).sentence
    assert "'25:00' is not a time of day" in release_audit("schedule", "--cron", matrix, "--at", "25:00").sentence
    assert "GitHub has only what is in the repository" in release_audit("schedule", "--github", matrix).sentence
    assert "there is no matrix 'absent'" in release_audit("schedule", "--cron", "absent").sentence
    with pytest.raises(UsageError, match="line break"):
        schedule.files("systemd", plan(tmp_path, notify="one\ntwo"))
    with pytest.raises(UsageError, match="cron reads 998: use --systemd"):
        schedule.files("cron", plan(tmp_path, notify="true " * 200))
    assert "two of the matrices are called own" in release_audit("schedule", "--cron", matrix, matrix).sentence
    with pytest.raises(UsageError, match=r"waivers\.yaml is not in"):
        schedule.files("github", plan(tmp_path, waivers=tmp_path / "waivers.yaml"))


def test_options_are_handed_on(release_audit: Program, tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text("waivers: []\n")
    options = ("--jobs", "3", "--timeout", "60", "--address", "auto", "--waivers", "ours.yaml")
    printed = release_audit("schedule", "--cron", "smoke.yaml", *options)
    assert f" --waivers={tmp_path}/ours.yaml --jobs=3 --timeout=60.0 --address=auto >> " in printed.stdout
    (tmp_path / "ours.yaml").write_text("accepted: []\n")
    wrong = release_audit("schedule", "--cron", "smoke.yaml", *options)
    assert (wrong.code, "there is no such key here" in wrong.stderr) == (2, True)


def test_units_are_written_where_they_are_wanted(release_audit: Program, tmp_path: Path) -> None:
    done = release_audit("schedule", "--systemd", "smoke.yaml", "--output", tmp_path / "units")
    assert done.code == 0
    assert sorted(path.name for path in (tmp_path / "units").iterdir()) == [
        "release-audit.service",
        "release-audit.timer",
    ]
    printed = release_audit("schedule", "--systemd", "smoke.yaml").stdout
    assert "# ---- release-audit.service ----\n[Unit]\n" in printed
    assert "# ---- release-audit.timer ----\n[Unit]\n" in printed
    assert "`loginctl enable-linger`" in printed
