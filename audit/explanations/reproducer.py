"""The reproducer: a changed step or reset as a script that runs with ``uv run`` at either release, and an issue."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from audit import folders
from audit.asked.attachments import Attachment
from audit.digests import digest
from audit.explanations.reproducer_case import (
    SCRIPT,
    CannotReproduce,
    Case,
    Reset,
    apart,
    commands,
    edited_apart,
    labels,
    moved,
    same_python,
)
from audit.explanations.reproducer_issue import issue
from audit.explanations.reproducer_script import ADAPTER, SCENE_FOLDER, SEED, arguments_of, has_files, script
from audit.planning import plan

ISSUE, CASE = "ISSUE.md", "case.json"
WHY_NOT = "NO-SCRIPT.txt"
"""The sentence that says why there is no script."""
FORMAT = 2
"""Of ``case.json``."""

_LONGEST_NAME = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9._@+-]+")
_OWN_FILE = re.compile(r'"(/|~|[A-Za-z]:\\)')
_IN_A_STEP = "step of {} state, observation and reward"
_OTHER_FILE = re.compile(r"<[^!>]*\bfile\w*\s*=")


def folder_name(environment: str, older: str, newer: str, behaviours: tuple[str, str]) -> str:
    """A name for the folder of a change that every file system takes; two changes never share one.

    Matrices may have the same names for different things, which then behave otherwise.

    >>> folder_name("Pusher-v4", "mujoco-2.3.7", "mujoco-3.0.0", ("5c", "a1"))
    'Pusher-v4__mujoco-2.3.7__mujoco-3.0.0-3a1d6ff2'
    """
    names = environment, older, newer
    safe = _UNSAFE.sub("-", "__".join(names)).lstrip(".-")[:_LONGEST_NAME]
    return f"{safe}-{digest(*names, *behaviours)[:8]}"


def write(folder: Path, case: Case) -> Path:
    """Write script, issue and case into ``folder``; return the path of the script.

    Raises:
        CannotReproduce: with a sentence that says why.
    """
    _check(case)
    files = {SCRIPT: script(case), ISSUE: issue(case), CASE: case_json(case)}
    for place, content in _carried(case).items():
        folders.write_whole(folder / place, content)
    for name, text in files.items():
        folders.write_whole(folder / name, text.encode())
    (folder / WHY_NOT).unlink(missing_ok=True)
    return folder / SCRIPT


def _carried(case: Case) -> dict[str, bytes]:
    """Files of the user's that the script needs beside it."""
    if not isinstance(case.attached, Attachment):
        return {}
    if case.environment.kind == "adapter":
        return {f"{ADAPTER}.py": case.attached.files[case.attached.main]}
    files = case.attached.files if has_files(case) else {}
    return {f"{SCENE_FOLDER}/{name}": content for name, content in files.items()}


def write_why_not(folder: Path, sentence: str) -> None:
    """Leave the sentence where the script would be; one of an earlier audit shows something else."""
    folders.write_whole(folder / WHY_NOT, f"{sentence}\n".encode())
    for name in (SCRIPT, ISSUE, CASE):
        (folder / name).unlink(missing_ok=True)


def told(folder: Path) -> str:
    """Where the script is, or why there is none; nothing where none was to be written."""
    if (folder / SCRIPT).is_file():
        return str(folder / SCRIPT)
    return (folder / WHY_NOT).read_text(encoding="utf-8").strip() if (folder / WHY_NOT).is_file() else ""


def _check(case: Case) -> None:
    """Raise where a script could not show the change."""
    row = case.environment
    title = row.title
    if row.kind == "adapter" and not isinstance(case.attached, Attachment):
        raise CannotReproduce(f"the adapter of {title} is not at hand")
    if case.kind not in ("mujoco", "state", "adapter") and not isinstance(case.given, Reset):
        raise CannotReproduce(f"no state can be imposed on {title} (it is of kind {case.kind!r}), so one step is none")
    if not moved(case) and same_python(case) and not edited_apart(case):
        raise CannotReproduce(
            f"{case.older.name} and {case.newer.name} install the same, so no command tells them apart"
        )
    if not apart(case):
        shown = "reset of {} state and observation" if isinstance(case.given, Reset) else _IN_A_STEP
        raise CannotReproduce(f"in this {shown.format(title)} are the same in both releases")
    if _OWN_FILE.search(plan.arguments_text(row)):
        raise CannotReproduce(f"the arguments of {title} name a file of this machine, which a script would not find")
    if any(_OWN_FILE.search(plan.edits_text(side.edits)) for side in case.sides):
        raise CannotReproduce(f"the edits of {title} name a file of this machine, which a script would not find")
    if row.kind == "mjcf":
        if case.attached is None:
            raise CannotReproduce(f"the scene of {title} is not at hand")
        if isinstance(case.attached, str) and _OTHER_FILE.search(case.attached):
            raise CannotReproduce(f"the scene of {title} refers to other files, and they are not at hand")


def case_json(case: Case) -> str:
    """The case as JSON. Its numbers read back to the same bits; those that are not finite are text."""
    row = case.environment
    given: dict[str, Any] = {
        "format": FORMAT,
        "environment": {
            "title": row.title,
            "kind": row.kind,
            "source": row.title if row.kind in ("mjcf", "adapter") else row.source,
            "arguments": arguments_of(row),
        },
        "state_kind": case.kind,
        **_given(case),
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
            "edits": json.loads(plan.edits_text(side.edits)),
            "outcome": {name: _plain(values) for name, values in side.outcome.outputs.items()},
        }
    return json.dumps(given, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _given(case: Case) -> dict[str, Any]:
    given = case.given
    if isinstance(given, Reset):
        return {"shows": "reset", "seed": given.seed, "seeds_beyond": case.beyond, "seeds_tried": case.tried}
    return {
        "shows": "step",
        "state": _plain(given.state),
        "action": given.action if isinstance(given.action, int) else _plain(given.action),
        "action_dtype": given.action_dtype,
        "seed": SEED,
        "states_beyond": case.beyond,
        "states_forced": case.tried,
    }


def _plain(values: Iterable[float]) -> list[float | str]:
    return [float(value) if math.isfinite(value) else str(value) for value in values]
