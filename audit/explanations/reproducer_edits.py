"""How a reproducer's script sets otherwise what is edited: as the dumper does, right after making or in the file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from audit.explanations import reproducer_templates as templates
from audit.explanations.reproducer_case import Case, Side, edited_apart
from audit.planning import plan

IN_FILE = "@"
"""In the name of an edit of a model's file, as in ``dumper/worlds.py``."""

SIDE = '''\
def side():
    """Which of the two is meant, as the command says."""
    if len(sys.argv) != 2 or sys.argv[1] not in RECORDED:
        sys.exit("say which one is meant: " + " or ".join(RECORDED))
    return sys.argv[1]


'''
"""Where the two are edited otherwise."""

EDIT = '''\
def edit(world, name, value):
    """Set an attribute otherwise, in the type that it has."""
    *owners, attribute = name.split(".")
    for owner in owners:
        world = getattr(world, owner)
    now = getattr(world, attribute)
    if isinstance(now, (np.ndarray, np.generic)):
        value = np.broadcast_to(value, np.shape(now)).astype(now.dtype, casting="same_kind")[()]
    elif isinstance(now, (float, tuple)):
        value = type(now)(value)
    setattr(world, attribute, value)


'''
"""For attributes of a registered environment."""

EDITED_FILES = '''\
@contextmanager
def edited_files(edits):
    """While an environment is made, compile its model from a file in which attributes have other values."""
    compiler = mujoco.MjModel
    from_path, from_text = compiler.from_xml_path, compiler.from_xml_string

    def edited(text):
        root = ElementTree.fromstring(text)
        for name, value in edits.items():
            path, _, attribute = name.rpartition("@")
            for element in root.findall(".//" + path):
                element.set(attribute, value)
        return ElementTree.tostring(root).decode("ascii")

    def compile_path(filename, *more, **keywords):
        # In the same folder for a moment: a model names its meshes by paths relative to itself.
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(os.path.abspath(filename)), suffix=".xml") as copy:
            with open(filename, "rb") as file:
                copy.write(edited(file.read()))
            copy.flush()
            return from_path(copy.name, *more, **keywords)

    compiler.from_xml_path = staticmethod(compile_path)
    compiler.from_xml_string = staticmethod(lambda xml, *more, **keywords: from_text(edited(xml), *more, **keywords))
    try:
        yield
    finally:
        compiler.from_xml_path, compiler.from_xml_string = staticmethod(from_path), staticmethod(from_text)


'''
"""For attributes in a model's file."""


def attributes_of(side: Side) -> dict[str, Any]:
    """What is set right after making, in the order in which the dumper does."""
    return {name: value for name, value in _all_of(side).items() if IN_FILE not in name}


def in_file_of(side: Side) -> dict[str, str]:
    """What is written into the model's file, as text."""
    return {name: _as_text(value) for name, value in _all_of(side).items() if IN_FILE in name}


def _all_of(side: Side) -> dict[str, Any]:
    """As the dumper gets them, which is through JSON."""
    edits: dict[str, Any] = json.loads(plan.edits_text(side.edits))
    return edits


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(map(repr, value)) if isinstance(value, list) else str(value)


def has_attributes(case: Case) -> bool:
    """Whether an attribute is set otherwise in one of the two."""
    return any(attributes_of(side) for side in case.sides)


def has_in_file(case: Case) -> bool:
    """Whether a model's file is edited in one of the two."""
    return any(in_file_of(side) for side in case.sides)


def constants(case: Case) -> str:
    """What is edited, as lines of the script; by the names of the two where it is not the same in both."""
    lines = [_constant("EDITS", case, [attributes_of(side) for side in case.sides])] if has_attributes(case) else []
    if has_in_file(case):
        lines.append(_constant("FILE_EDITS", case, [in_file_of(side) for side in case.sides]))
    return "".join(lines)


def _constant(name: str, case: Case, edits: list[dict[str, Any]]) -> str:
    if not edited_apart(case):
        return f"{name} = {_literal(edits[0])}\n"
    rows = (f"    {json.dumps(side.name)}: {_literal(each)},\n" for side, each in zip(case.sides, edits, strict=True))
    return f"{name} = {{\n{''.join(rows)}}}\n"


def _literal(edits: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {value!r}" for name, value in edits.items()) + "}"


def functions(case: Case) -> str:
    """What the script needs to set them."""
    parts = [SIDE] if edited_apart(case) else []
    if has_attributes(case) and case.environment.kind == "registered":
        parts.append(EDIT)
    if has_in_file(case):
        parts.append(EDITED_FILES)
    return "".join(parts)


def imports(case: Case) -> list[str]:
    """Of the standard library, for these functions."""
    found = ["import sys"] if edited_apart(case) else []
    if has_in_file(case):
        found += ["import os", "import tempfile", "from contextlib import contextmanager"]
        found.append("from xml.etree import ElementTree")
    return found


def made(case: Case, make: str) -> str:
    """The lines that make the environment, within those that edit its files."""
    if not has_in_file(case):
        return make
    return f"    with edited_files({_chosen('FILE_EDITS', case)}):\n{textwrap.indent(make, ' ' * 4)}"


def set_otherwise(case: Case, reset: str = "") -> str:
    """The lines that set attributes; a registered environment has been reset before, and has them all."""
    if not has_attributes(case):
        return ""
    call = "edit(env.unwrapped" if case.environment.kind == "registered" else "adapter.edit(handle"
    loop = templates.SET_OTHERWISE.substitute(edits=_chosen("EDITS", case), call=call)
    return f"{reset}\n{loop}" if reset else loop


def _chosen(name: str, case: Case) -> str:
    return f"{name}[side()]" if edited_apart(case) else name


def sentence(case: Case) -> str:
    """What is edited, in words: nobody should take it for how a distribution has it."""
    told = [
        f"in {side.name} {_told(_all_of(side))}" if edited_apart(case) else _told(_all_of(side))
        for side in case.sides
        if side.edits
    ]
    if not told:
        return ""
    both = "" if edited_apart(case) else " in both"
    return (
        f"Set otherwise by the script{both}: {'; '.join(dict.fromkeys(told))}. "
        "This is not how the distributions that are installed have it."
    )


def _told(edits: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}` = {value}" for name, value in edits.items())
