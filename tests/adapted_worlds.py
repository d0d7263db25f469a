"""Worlds of a user's own: the example that is shipped, and a smallest one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dumper.adapter import Adapted

PENDULUM = Path(__file__).parent / "adapters" / "pendulum.py"

SMALL = """
def make(): return {"x": 1.0}
def layout(handle): return {"state_size": 1}
def actions(handle): return {"n": 3}
def impose(handle, state): handle["x"] = float(state[0])
def read(handle): return [handle["x"]]
def step(handle, action):
    handle["x"] += action
    return [handle["x"]], 0.0, False, False
"""


def adapted(folder: Path, source: str = SMALL, **arguments: Any) -> Adapted:
    path = folder / "adapter.py"
    path.write_text(source, encoding="utf-8")
    return Adapted(str(path), arguments)


def pendulum(**arguments: Any) -> Adapted:
    return Adapted(str(PENDULUM), arguments)
