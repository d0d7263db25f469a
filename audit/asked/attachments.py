"""Files that an environment is made of: a scene with everything it includes, or an adapter.

They are read once, travel with the cell to whichever machine runs it, and are part of the cell's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from audit.digests import digest
from audit.errors import UsageError

if TYPE_CHECKING:  # an attachment travels to nodes that read no matrix, and have nothing to read one with
    from audit.asked.environment_rows import EnvironmentRow
    from audit.asked.matrix_file import MatrixFile

_KINDS = ("mjcf", "adapter")
"""Kinds of environments that are made of files."""

_FOLDERS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir"}
"""Which setting of MuJoCo's compiler says where an element's files lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """The files by their place below a common folder, and the one that is opened."""

    main: str
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """Of names and contents."""
        return digest(self.main, *(part for name in sorted(self.files) for part in (name, self.files[name])))


def read(file: MatrixFile) -> dict[str, Attachment]:
    """The attachments of a matrix's environments, by title."""
    return {
        row.title: _read(row, file.path.parent / row.source) for row in file.matrix.environments if row.kind in _KINDS
    }


def digests(file: MatrixFile, attached: Mapping[str, Attachment]) -> dict[str, str]:
    """Of all files that an environment is made of, or stepped from, by title; one that needs none is left out."""
    found: dict[str, str] = {}
    for row in file.matrix.environments:
        own = (row.bank or file.matrix.bank).file
        made_of = [attached[row.title].digest] if row.title in attached else []
        stepped_from = [digest(_kept(file.path.parent / own, {}))] if own is not None else []
        if made_of or stepped_from:
            found[row.title] = digest(*made_of, *stepped_from)
    return found


def needed(file: MatrixFile, row: EnvironmentRow) -> bool:
    """Whether an environment is made of files, or stepped from states in one."""
    return row.kind in _KINDS or (row.bank or file.matrix.bank).file is not None


def _read(row: EnvironmentRow, path: Path) -> Attachment:
    found: dict[Path, bytes] = {}
    if row.kind == "mjcf":
        _collect_scene(path, found)
    else:
        _compile(path, _kept(path, found))
    common = _common_folder(list(found))
    return Attachment(
        main=_place(path.resolve(), common), files={_place(each, common): data for each, data in found.items()}
    )


def _kept(path: Path, found: dict[Path, bytes]) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    found[path.resolve()] = data
    return data


def _collect_scene(main: Path, found: dict[Path, bytes]) -> None:
    """A scene and all that it refers to.

    MuJoCo merges included files as text: names in them are relative to the scene itself (newer releases also look
    beside the file they stand in), and what any of them tells the compiler holds for all. A model that is attached is
    a scene of its own.
    """
    roots: dict[Path, Element] = {}
    _collect_included(main, main.parent, roots, found)
    settings = {
        key: value for root in roots.values() for each in root.iter("compiler") for key, value in each.attrib.items()
    }
    for path, root in roots.items():
        for element in root.iter():
            for name in _files_of(element):
                folder = settings.get(_FOLDERS.get(element.tag, ""), settings.get("assetdir", ""))
                target = _first_there(main.parent / folder / name, path.parent / folder / name, path.parent / name)
                if element.tag == "model" and target.resolve() not in found:
                    _collect_scene(target, found)
                elif element.tag != "include" and target.resolve() not in found:
                    _kept(target, found)


def _collect_included(path: Path, folder: Path, roots: dict[Path, Element], found: dict[Path, bytes]) -> None:
    try:
        roots[path] = root = ElementTree.fromstring(_kept(path, found))
    except ElementTree.ParseError as error:
        raise UsageError(f"{path} is not XML: {error}") from None
    for element in root.iter("include"):
        for name in _files_of(element):
            target = _first_there(folder / name, path.parent / name)
            if target.resolve() not in found:
                _collect_included(target, folder, roots, found)


def _files_of(element: Element) -> list[str]:
    """What it refers to: a cube texture names six files, others one."""
    return [value for key, value in element.attrib.items() if key.startswith("file")]


def _first_there(*places: Path) -> Path:
    return next((place for place in places if place.is_file()), places[0])


def _compile(path: Path, source: bytes) -> None:
    """A mistake in an adapter is told before any work."""
    try:
        compile(source, str(path), "exec")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path} is not Python: {error}") from None


def _common_folder(paths: list[Path]) -> Path:
    folder = paths[0].parent
    while not all(path.is_relative_to(folder) for path in paths):
        folder = folder.parent
    return folder


def _place(path: Path, common: Path) -> str:
    return str(PurePosixPath(path.relative_to(common)))
