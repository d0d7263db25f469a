"""The script of a reproducer, which runs with ``uv run`` at either release and knows nothing of this project.

It imposes the state as the dumper does (``dumper/registered.py``, ``on_mujoco.py``, ``scene.py``, ``suite.py``,
``adapter.py``) and takes the step, or resets from the seed, and says which of the two recorded outcomes came of it.
What both releases have in common is pinned in the script; what moved between them is on the command line.
"""

from __future__ import annotations

import ast
import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from audit.asked.attachments import Attachment
from audit.asked.environment_rows import EnvironmentRow
from audit.explanations import reproducer_edits as edits
from audit.explanations import reproducer_templates as templates
from audit.explanations.reproducer_case import (
    CannotReproduce,
    Case,
    Outcome,
    Reset,
    Side,
    Step,
    commands,
    labels,
    minor,
    moved,
)
from audit.planning import plan

SEED = 0
"""As in the dumper: a state is imposed after a reset from this seed."""

SCENE_FOLDER = "scene"
"""Beside the script, where the scene needs other files."""

ADAPTER = "audited_adapter"
"""The adapter's module beside the script, called as in the dumper: its own name may be that of what it imports."""

_WIDTH = 120
_WATCHED = ("gymnasium", "gym", "dm-control", "mujoco", "numpy")


def script(case: Case) -> str:
    """The whole script."""
    older, newer = labels(case)
    older_command, newer_command = commands(case)
    one_sided = any(name in watched(case) and None in versions for name, *versions in moved(case))
    return templates.SCRIPT.substitute(
        python=_python_range(case),
        dependencies=_dependencies(case),
        about=_about(case, older, newer),
        told=_told(case),
        older_command=older_command,
        newer_command=newer_command,
        imports=_imports(case),
        packages=json.dumps(watched(case)),
        given=(_given(case.given) + edits.constants(case)).rstrip("\n"),
        before=edits.functions(case) + (templates.IMPOSE if _imposes_on_mujoco(case) else ""),
        function="start" if isinstance(case.given, Reset) else "take_step",
        body=_body(case),
        installed=templates.INSTALLED if one_sided else "",
        version="installed" if one_sided else "metadata.version",
        recorded="".join(
            f"    {json.dumps(label)}: {{\n{_recorded(side.outcome)}    }},\n"
            for label, side in zip((older, newer), case.sides, strict=True)
        ),
        scene=_embedded(case),
    )


def _about(case: Case, older: str, newer: str) -> str:
    title = case.environment.title
    if isinstance(case.given, Reset):
        return f"A reset of {title} from one seed, after which {older} and {newer} do not start alike."
    return f"One step of {title} from one state, which {older} and {newer} do not take alike."


def _told(case: Case) -> str:
    if isinstance(case.given, Reset):
        return "A new environment is reset from the seed"
    return "The state is imposed on a new environment and one action is taken"


def _imposes_on_mujoco(case: Case) -> bool:
    return case.kind == "mujoco" and isinstance(case.given, Step)


def _python_range(case: Case) -> str:
    first, last = sorted((minor(side) for side in case.sides), key=lambda text: [int(part) for part in text.split(".")])
    return f"=={first}.*" if first == last else f">={first}"


def _dependencies(case: Case) -> str:
    """What both have, pinned: a few to a line."""
    same = sorted(set(case.older.packages) & set(case.newer.packages))
    text = " ".join(f'"{name}=={version}",' for name, version in same)
    return "".join(f"#     {line}\n" for line in _filled(text, _WIDTH - 6))


def _imports(case: Case) -> str:
    kind = case.environment.kind
    standard = ["import platform", "from importlib import metadata"]
    others = ["import numpy as np"]
    after = ""
    standard += edits.imports(case)
    if _imposes_on_mujoco(case) or kind == "mjcf" or edits.has_in_file(case):
        others.insert(0, "import mujoco")
    if kind == "dm_control":
        standard.append("import os")
        after = templates.IMPORT_SUITE
    elif kind == "mjcf" and has_files(case):
        standard.append("from pathlib import Path")
    elif kind == "adapter":
        others += ["", f"import {ADAPTER} as adapter"]
    elif kind == "registered":
        apis = {_api(side) for side in case.sides}
        if apis == {"gymnasium"}:
            others.insert(0, "import gymnasium as gym")
        else:
            standard.append("import inspect")
            others, after = (["import gym", *others], "") if apis == {"gym"} else (others, templates.IMPORT_EITHER)
    standard = sorted(set(standard), key=lambda line: (line.startswith("from"), line))
    return "\n".join([*standard, "", *others]) + after


def _api(side: Side) -> str:
    have = dict(side.packages)
    return next((api for api in plan.APIS if api in have), plan.APIS[0])


def watched(case: Case) -> list[str]:
    """The distributions whose versions are printed: what the step is computed with, and what moved."""
    have = {name for side in case.sides for name, _ in side.packages}
    changed = [name for name, *versions in moved(case) if None not in versions]
    return list(dict.fromkeys([*(name for name in _WATCHED if name in have), *changed]))


def _given(given: Step | Reset) -> str:
    if isinstance(given, Reset):
        return f"SEED = {given.seed}\n"
    return _listed("STATE = [", given.state, "]") + "\n" + _action(given) + "\n"


def _action(given: Step) -> str:
    if isinstance(given.action, int):
        return f"ACTION = {given.action}"
    return _listed("ACTION = np.array([", given.action, f'], dtype="{given.action_dtype}")')


def _body(case: Case) -> str:
    return _BODIES[case.environment.kind](case, arguments_of(case.environment))


def _scene(case: Case, arguments: dict[str, Any]) -> str:
    body = templates.SCENE_RESET if isinstance(case.given, Reset) else templates.SCENE_STEP
    return body.substitute(
        make=edits.made(case, templates.MAKE_SCENE.substitute(model=_model(case))),
        clear=_clear(arguments.get("keyframe")),
        frame_skip=arguments.get("frame_skip", 1),
    )


def _task(case: Case, arguments: dict[str, Any]) -> str:
    domain, _, task = case.environment.source.partition("/")
    keywords = {**arguments, "task_kwargs": {**arguments.get("task_kwargs", {}), "random": SEED}}
    make = templates.MAKE_TASK.substitute(
        domain=json.dumps(domain), task=json.dumps(task), keywords=_keywords(keywords)
    )
    body = templates.SUITE_RESET if isinstance(case.given, Reset) else templates.SUITE_STEP
    return body.substitute(make=edits.made(case, make), seed=SEED)


def _adapted(case: Case, arguments: dict[str, Any]) -> str:
    make = templates.MAKE_ADAPTED.substitute(keywords=_keywords(arguments).removeprefix(", "))
    body = templates.ADAPTED_RESET if isinstance(case.given, Reset) else templates.ADAPTED_STEP
    return body.substitute(make=edits.made(case, make), edits=edits.set_otherwise(case))


def _registered(case: Case, arguments: dict[str, Any]) -> str:
    old = any(_api(side) == "gym" for side in case.sides)
    make = templates.MAKE_EITHER if old else templates.MAKE
    reset = (templates.RESET_EITHER if old else templates.RESET).substitute(seed=SEED)
    body = templates.REGISTERED_RESET if isinstance(case.given, Reset) else templates.REGISTERED_STEP
    return body.substitute(
        make=edits.made(case, make.substitute(id=json.dumps(case.environment.source), keywords=_keywords(arguments))),
        edits=edits.set_otherwise(case, reset),
        reset=reset,
        start=templates.START_EITHER if old else templates.START,
        impose=templates.IMPOSE_MUJOCO if case.kind == "mujoco" else templates.IMPOSE_STATE,
        world="    world = env.unwrapped\n" if case.kind in templates.READ else "",
        read=templates.READ.get(case.kind, "[]"),
    )


_BODIES = {"registered": _registered, "mjcf": _scene, "dm_control": _task, "adapter": _adapted}


def arguments_of(row: EnvironmentRow) -> dict[str, Any]:
    """As the dumper gets them, which is through JSON."""
    arguments: dict[str, Any] = json.loads(plan.arguments_text(row))
    try:
        ast.literal_eval(repr(arguments))
    except ValueError:
        raise CannotReproduce(f"the arguments of {row.title} hold a number that is not finite") from None
    return arguments


def _keywords(arguments: dict[str, Any]) -> str:
    plain = all(name.isidentifier() for name in arguments)
    text = ", ".join(f"{name}={value!r}" for name, value in arguments.items()) if plain else f"**{arguments!r}"
    return f", {text}" if arguments else ""


def has_files(case: Case) -> bool:
    """Whether the scene needs other files beside it."""
    return isinstance(case.attached, Attachment) and len(case.attached.files) > 1


def _model(case: Case) -> str:
    if isinstance(case.attached, Attachment) and has_files(case):
        return f'from_xml_path(str(Path(__file__).with_name("{SCENE_FOLDER}") / {json.dumps(case.attached.main)}))'
    return "from_xml_string(SCENE)"


def _clear(keyframe: str | int | None) -> str:
    if keyframe is None:
        return "mujoco.mj_resetData(model, data)"
    number = f"mujoco.mj_name2id(model, int(mujoco.mjtObj.mjOBJ_KEY), {json.dumps(keyframe)})"
    return f"mujoco.mj_resetDataKeyframe(model, data, {number if isinstance(keyframe, str) else keyframe})"


def _embedded(case: Case) -> str:
    scene = case.attached
    if case.environment.kind != "mjcf" or has_files(case):
        return ""
    text = scene.files[scene.main].decode() if isinstance(scene, Attachment) else str(scene)
    quoted = repr(text) if '"""' in text or "\\" in text else f'"""{text.strip()}\n"""'
    return f"\nSCENE = {quoted}\n"


def _recorded(outcome: Outcome) -> str:
    return "".join(
        _listed(f'        "{name}": [', values, "],", indent=12) + "\n" for name, values in outcome.outputs.items()
    )


def _listed(before: str, values: Sequence[float], after: str, indent: int = 4) -> str:
    """Numbers on one line where they fit, else on lines of their own. ``repr`` reads back to the same bits."""
    text = ", ".join(_number(value) for value in values)
    if len(before) + len(text) + len(after) <= _WIDTH:
        return before + text + after
    lines = "\n".join(" " * indent + line for line in _filled(text + ",", _WIDTH - indent))
    return f"{before}\n{lines}\n{' ' * (indent - 4)}{after}"


def _number(value: float) -> str:
    return repr(float(value)) if math.isfinite(value) else f'float("{value}")'


def _filled(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
