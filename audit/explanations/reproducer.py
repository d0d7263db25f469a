"""The reproducer: a changed step as one script that runs with ``uv run`` at either release, and an issue text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from audit import folders
from audit.asked import plan
from audit.asked.attachments import Attachment
from audit.digests import digest
from audit.explanations.reproducer_case import (
    SCRIPT,
    CannotReproduce,
    Case,
    apart,
    commands,
    labels,
    moved,
    same_python,
)
from audit.explanations.reproducer_issue import issue
from audit.explanations.reproducer_script import SCENE_FOLDER, SEED, arguments_of, has_files, script

ISSUE, CASE = "ISSUE.md", "case.json"
FORMAT = 1
"""Of ``case.json``."""

_LONGEST_NAME = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9._@+-]+")
_OWN_FILE = re.compile(r'"(/|~|[A-Za-z]:\\)')
_OTHER_FILE = re.compile(r"<[^!>]*\bfile\w*\s*=")


def folder_name(environment: str, older: str, newer: str) -> str:
    """A name for the folder of a change that every file system takes; two changes never share one.

    >>> folder_name("Pusher-v4", "mujoco-2.3.7", "mujoco-3.0.0")
    'Pusher-v4__mujoco-2.3.7__mujoco-3.0.0'
    """
    plain = "__".join((environment, older, newer))
    safe = _UNSAFE.sub("-", plain).lstrip(".-")[:_LONGEST_NAME]
    return plain if safe == plain else f"{safe}-{digest(environment, older, newer)[:8]}"


def write(folder: Path, case: Case) -> Path:
    """Write script, issue and case into ``folder``; return the path of the script.

    Raises:
        CannotReproduce: with a sentence that says why.
    """
    _check(case)
    files = {SCRIPT: script(case), ISSUE: issue(case), CASE: case_json(case)}
    if isinstance(case.scene, Attachment) and has_files(case):
        for name, content in case.scene.files.items():
            folders.write_whole(folder / SCENE_FOLDER / name, content)
    for name, text in files.items():
        folders.write_whole(folder / name, text.encode())
    return folder / SCRIPT


def _check(case: Case) -> None:
    """Raise where a script could not show the change."""
    row = case.environment
    title = row.title
    if row.kind == "adapter":
        raise CannotReproduce(f"{title} is stepped by an adapter of your own, which a script would have to contain")
    if case.kind not in ("mujoco", "state"):
        raise CannotReproduce(f"no state can be imposed on {title} (it is of kind {case.kind!r}), so one step is none")
    if row.edits:
        raise CannotReproduce(f"{title} is edited ({', '.join(row.edits)}), which is not how its release has it")
    if not moved(case) and same_python(case):
        raise CannotReproduce(
            f"{case.older.name} and {case.newer.name} install the same, so no command tells them apart"
        )
    if not apart(case):
        raise CannotReproduce(f"in this step of {title} state, observation and reward are the same in both releases")
    if _OWN_FILE.search(plan.arguments_text(row)):
        raise CannotReproduce(f"the arguments of {title} name a file of this machine, which a script would not find")
    if row.kind == "mjcf":
        if case.scene is None:
            raise CannotReproduce(f"the scene of {title} is not at hand")
        if isinstance(case.scene, str) and _OTHER_FILE.search(case.scene):
            raise CannotReproduce(f"the scene of {title} refers to other files, and they are not at hand")


def case_json(case: Case) -> str:
    """The case as JSON. Its numbers read back to the same bits; those that are not finite are text."""
    row = case.environment
    given: dict[str, Any] = {
        "format": FORMAT,
        "environment": {
            "title": row.title,
            "kind": row.kind,
            "source": row.title if row.kind == "mjcf" else row.source,
            "arguments": arguments_of(row),
        },
        "state_kind": case.kind,
        "state": _plain(case.state),
        "action": case.action if isinstance(case.action, int) else _plain(case.action),
        "action_dtype": case.action_dtype,
        "seed": SEED,
        "states_beyond": case.states_beyond,
        "states_forced": case.states_forced,
        "ratio": _plain([case.ratio])[0],
        "told": case.told,
    }
    for key, side, label, command in zip(("older", "newer"), case.sides, labels(case), commands(case), strict=True):
        given[key] = {
            "name": side.name,
            "label": label,
            "command": command,
            "python": side.python,
            "requires": side.requires,
            "packages": dict(side.packages),
            "outcome": {name: _plain(values) for name, values in side.outcome.outputs.items()},
        }
    return json.dumps(given, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(values: Iterable[float]) -> list[float | str]:
    return [float(value) if math.isfinite(value) else str(value) for value in values]
