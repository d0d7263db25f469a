"""Accepted changes: what is valid, what they cover, when they end."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from audit.asked.matrix_file import SHIPPED, WAIVERS
from audit.errors import MatrixError
from audit.nights import waivers
from audit.nights.waivers import Waivers

DAY = datetime.date(2026, 11, 18)
TEXT = """\
waivers:
  - environment: Hop*
    older: mujoco-3.4.0
    newer: mujoco-3.5.*
    reason: the new solver
    who: ada
    until: 2026-11-18
"""


def read(folder: Path, text: str, day: datetime.date = DAY) -> Waivers:
    path = folder / WAIVERS
    path.write_text(text, encoding="utf-8")
    return waivers.read(path, day)


def test_the_shipped_file_accepts_nothing() -> None:
    assert waivers.read(SHIPPED / WAIVERS, DAY).waivers == ()


def test_the_example_in_the_shipped_file_is_valid(tmp_path: Path) -> None:
    text = (SHIPPED / WAIVERS).read_text(encoding="utf-8")
    (waiver,) = read(tmp_path, text.replace("waivers: []", "waivers:").replace("\n#  ", "\n  ")).waivers
    assert waiver.boundary == "Hopper-v5: mujoco-3.4.0 → mujoco-3.5.0"


def test_a_waiver_covers_what_its_patterns_match_until_its_day(tmp_path: Path) -> None:
    accepted = read(tmp_path, TEXT)
    (waiver,) = accepted.waivers
    assert accepted.accepting(("Hopper-v5", "mujoco-3.4.0", "mujoco-3.5.1")) is waiver
    assert waiver.told == "the new solver (ada, until 2026-11-18)"
    assert accepted.accepting(("Ant-v5", "mujoco-3.4.0", "mujoco-3.5.1")) is None
    assert accepted.accepting(("Hopper-v5", "mujoco-3.3.0", "mujoco-3.5.1")) is None
    later = read(tmp_path, TEXT, DAY + datetime.timedelta(days=1))
    assert later.accepting(("Hopper-v5", "mujoco-3.4.0", "mujoco-3.5.1")) is None


def test_expired_and_unused_waivers_are_told(tmp_path: Path) -> None:
    met = [("Hopper-v5", "mujoco-3.4.0", "mujoco-3.5.1")]
    assert read(tmp_path, TEXT).notes(met) == ()
    (unused,) = read(tmp_path, TEXT).notes([])
    assert "is not used" in unused
    (expired,) = read(tmp_path, TEXT, DAY + datetime.timedelta(days=1)).notes(met)
    assert "expired on 2026-11-18" in expired


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    who: ada\n", "", "waivers[0].who, line 2: is missing"),
        ("ada", "' '", "waivers[0].who, line 6: should say something"),
        ("2026-11-18", "soon", "waivers[0].until, line 7: "),
        ("reason:", "why:", "waivers[0].why, line 5: there is no such key here"),
        ("waivers:", "accepted:", "accepted, line 1: there is no such key here"),
    ],
)
def test_mistakes_are_told_with_path_and_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(MatrixError) as caught:
        read(tmp_path, TEXT.replace(old, new))
    assert any(each.startswith(problem) for each in caught.value.problems), caught.value.problems


def test_the_file_beside_the_matrix_is_the_default(tmp_path: Path) -> None:
    assert waivers.beside(tmp_path / "m.yaml", None, DAY).waivers == ()
    read(tmp_path, TEXT)
    assert len(waivers.beside(tmp_path / "m.yaml", None, DAY).waivers) == 1
    (tmp_path / "none.yaml").write_text("waivers: []\n")
    assert waivers.beside(tmp_path / "m.yaml", tmp_path / "none.yaml", DAY).waivers == ()
