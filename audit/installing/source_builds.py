"""Calls of uv that may build a source distribution, which runs the code of whoever uploaded it.

Nothing is built unless the matrix allows it. Where it does, uv is called in turns. In one it has the network and its
credentials, and cannot start a program: it fetches what it can. In the other it is offline, without credentials and
confined like a dumper, and builds what was fetched. What a build says of its own requirements goes back to the first.
"""

from __future__ import annotations

import datetime
import email
import json
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from audit import folders
from audit.confining import protections
from audit.installing import failed_builds, source_cache, uv, uv_turns
from audit.installing.uv import Answer
from audit.installing.uv_turns import was_denied

EVERYTHING = ":all:"
"""Stands for all packages, to uv too."""

MOST_TURNS = 12
"""A turn is needed wherever a build asks for something new: its backend, what that needs, the next source."""

WHOLE_FETCHES = 2
"""Times that all is fetched again: the first program that uv may not start ends its other downloads."""

LARGEST_METADATA = 2**20
"""Bytes. Those of a distribution with a long description and many extras have some 100 000."""

_TO_BUILD = re.compile(r"build `([A-Za-z0-9][\w.-]*)==([\w.+!-]+)`")
_MISSING = (
    re.compile(r"(?<![\w.-])([A-Za-z][\w.-]*) was not found in the cache"),
    re.compile(r"(?<![\w.-])([A-Za-z][\w.-]*==[\w.+!-]+) needs to be downloaded"),
    re.compile(r"Failed to install requirements from[^\n]*\n *cause: Failed to download `([^`\n]+)`"),
)
_ALL_MISSING = re.compile(r"No solution found when resolving: (`[^\n]+`)")
_FAILED = "The build backend returned an error"
"""What uv says of a build that had what it asked for."""
_OFFLINE = "the network was disabled"
"""What it says where it lacks something that it may not name."""

_RESOLVING = ["pip", "compile", "-", "--no-header", "--no-annotate"]
_INSTALLING = ["pip", "install", "--no-deps", "--no-compile-bytecode"]
_DECIDING = ("--constraints", "--exclude-newer", "--prerelease", "--only-binary", "--no-binary", "--python")


def resolve(*arguments: str, source: Sequence[str], python: Path | None = None, given: str) -> Answer:
    """Call uv to resolve what is ``given``; only the packages in ``source`` may be built on the way."""
    asked = [*arguments, *_options(source)]
    if not source:
        return _advised(uv.call(*asked, given=given))
    if not protections.parts_builds():
        read = (Path(each).read_text(encoding="utf-8") for each in _deciding(asked, "--constraints")[1::2])
        what = "resolve", *_deciding(asked, "--prerelease", "--python"), given, *source, *read, _week(asked)
        return failed_builds.patiently(lambda: _together(asked, given), *what)
    with source_cache.in_use(), tempfile.TemporaryDirectory() as name:
        settings = Path(name)
        known: dict[tuple[str, str], dict[str, object]] = {}
        for _ in range(MOST_TURNS):
            _write_settings(settings, known.values())
            fetched = uv_turns.fetch(asked, given, settings)
            if not was_denied(fetched):
                unhashed = fetched.ok and "--generate-hashes" in asked and not _has_hashes(fetched.output, known)
                # Once more, where all has been fetched: what is built there is hashed too.
                return uv_turns.build(asked, given, python) if unhashed else fetched
            wanted = _TO_BUILD.search(fetched.errors)
            if wanted is None:  # not to build, but to ask the Python who it is, which is remembered
                told = uv_turns.build([*_RESOLVING, *_deciding(asked, "--python")], "", python)
                if told.refused or told.overran:  # what else is wrong with it, the next turn tells
                    return told
            elif wanted.groups() in known:
                break
            else:
                built, metadata = _metadata(asked, "==".join(wanted.groups()), python)
                if not built.ok:
                    return built
                known[wanted[1], wanted[2]] = {"name": wanted[1], "version": wanted[2], **metadata}
    return fetched


def _has_hashes(lock: str, known: Collection[tuple[str, str]]) -> bool:
    """Whether the index told the hashes of what was not looked into; a folder of files does not."""
    return all(f"{name}=={version} \\" in lock for name, version in known)


def install(*arguments: str, source: Sequence[str], python: Path, writable: Sequence[Path], key: str) -> Answer:
    """Call uv to install; only the packages in ``source`` may be built, which may write to ``writable``.

    What has the same ``key`` is the same to install: where it failed to build too often, it is not tried again.
    """
    asked = [*arguments, *_options(source)]
    if not source:
        return _advised(uv.call(*asked))
    return failed_builds.patiently(lambda: _installed(asked, python, writable), "install", key, _week(asked))


def _installed(asked: Sequence[str], python: Path, writable: Sequence[Path]) -> Answer:
    if not protections.parts_builds():
        return _together(asked, "")
    with source_cache.in_use():
        fetched = uv_turns.fetch(asked, "", writable=writable)
        return _built(asked, python, writable) if was_denied(fetched) else fetched


def _together(asked: Sequence[str], given: str) -> Answer:
    """Fetch and build in one call, where the system cannot part the two; whatever ends it may be a build."""
    answer = uv.call(*asked, given=given, variables=uv_turns.toolchain())
    if answer.ended_by:
        answer = replace(answer, errors=f"error: it was ended by {answer.ended_by}\n{answer.errors}", ended_by="")
    has_failed = answer.overran == uv.TIME or _FAILED in answer.own_words
    machines = answer.ok or answer.unreachable or answer.full_disk
    return replace(answer, is_own_fault=has_failed and not machines)


def _built(asked: Sequence[str], python: Path | None, writable: Sequence[Path]) -> Answer:
    """Build offline; fetch what was missing, and again, until it is done or nothing new is missing."""
    looked_for: set[str] = set()
    patience = WHOLE_FETCHES
    for _ in range(MOST_TURNS):
        built = uv_turns.build(asked, "", python, writable)
        missing = _missing(built) - looked_for
        patience -= not missing
        if _is_final(built) or patience < 0:
            return replace(built, is_own_fault=_is_own_fault(built))
        fetched = _fetch_more(asked, missing, writable)
        if not was_denied(fetched) and not (fetched.ok and missing):
            return fetched  # all of it is done, or cannot be had
        looked_for |= missing
    return built


def _week(asked: Sequence[str]) -> str:
    """That of the index which is asked: by the next, what builds need may have a newer version."""
    (day,) = _deciding(asked, "--exclude-newer")[1:] or [datetime.datetime.now(datetime.UTC).date().isoformat()]
    return "-".join(map(str, datetime.date.fromisoformat(day[: len("2026-11-01")]).isocalendar()[:2]))


def _is_final(built: Answer) -> bool:
    """Whether it is done, or would come to the same with all there is: what it lacks is not the reason."""
    return bool(built.ok or built.refused or built.overran) or _FAILED in built.own_words


def _is_own_fault(built: Answer) -> bool:
    """Whether it failed by itself: not by the machine, nor by what it lacks, nor perhaps by what others wrote."""
    machines = built.refused is not None or built.full_disk or built.overran == uv.ROOM
    lacks = bool(_missing(built)) or _OFFLINE in built.own_words
    return not (built.ok or machines or lacks)


def _missing(built: Answer) -> set[str]:
    """What uv itself says that it lacks. A build says what it likes: nobody is called because of that."""
    found = {each for pattern in _MISSING for each in pattern.findall(built.own_words)}
    for listed in _ALL_MISSING.findall(built.own_words):
        found.update(re.findall(r"`([^`]+)`", listed))
    return set(filter(_is_requirement, found))


def _fetch_more(asked: Sequence[str], missing: Collection[str], writable: Sequence[Path]) -> Answer:
    """Fetch what a build asked for in vain; where it named nothing, as much as the whole question needs."""
    if not missing:
        return uv_turns.fetch(asked, "", writable=writable)
    answer = uv_turns.fetch([*_RESOLVING, *_deciding(asked, *_DECIDING)], "\n".join(sorted(missing)) + "\n")
    if not answer.ok:
        return answer
    with _target() as target:  # their metadata do not suffice: they are to be installed
        where = _deciding(asked, "--python", "--only-binary", "--no-binary")
        pinned = filter(_is_requirement, answer.output.splitlines())
        return uv_turns.fetch([*_INSTALLING, "--target", str(target), *pinned, *where], "", writable=[target])


@contextmanager
def _target() -> Iterator[Path]:
    """A folder to install into for the moment; what a package puts there may be too deep for Python to remove."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "target"
        target.mkdir()
        try:
            yield target
        finally:
            folders.remove(target)


def _metadata(asked: Sequence[str], pinned: str, python: Path | None) -> tuple[Answer, dict[str, object]]:
    """Build one distribution, and read what it requires."""
    options = [name for name in _DECIDING if name != "--constraints"]
    with _target() as target:
        install = [*_INSTALLING, "--target", str(target), pinned, *_deciding(asked, *options)]
        built = failed_builds.patiently(lambda: _built(install, python, [target]), pinned, str(python), _week(asked))
        if not built.ok:
            return built, {}
        try:
            (file,) = target.glob("*.dist-info/METADATA")
            return built, _told(folders.read_plain(file, LARGEST_METADATA).decode("utf-8", errors="replace"))
        except (OSError, ValueError):
            return replace(built, ok=False, errors="error: it leaves no metadata"), {}


def _told(metadata: str) -> dict[str, object]:
    headers = email.message_from_string(metadata)
    return {
        "requires-dist": [text for text in headers.get_all("Requires-Dist", []) if _is_requirement(text)],
        "provides-extra": headers.get_all("Provides-Extra", []),
        **({"requires-python": headers["Requires-Python"]} if headers["Requires-Python"] else {}),
    }


def _is_requirement(text: str) -> bool:
    try:
        return Requirement(text).url is None  # an address would be fetched past the index and its hashes
    except InvalidRequirement:
        return False


def _write_settings(folder: Path, known: Collection[dict[str, object]]) -> None:
    """The project's own settings, and what is known of distributions that need not be built again."""
    place = uv.project_settings()
    within = "tool.uv." if place is not None and place.name == "pyproject.toml" else ""
    text = place.read_text(encoding="utf-8") if place is not None else ""
    for each in known:
        values = "".join(f"{key} = {json.dumps(value)}\n" for key, value in each.items())
        text += f"\n[[{within}dependency-metadata]]\n{values}"
    (folder / (place.name if place is not None else "uv.toml")).write_text(text, encoding="utf-8")


def _deciding(asked: Sequence[str], *names: str) -> list[str]:
    """Of the options those with such a name, and what is given to them."""
    return [part for name, value in pairwise(asked) if name in names for part in (name, value)]


def _options(source: Sequence[str]) -> Iterator[str]:
    if EVERYTHING in source:
        return
    yield from ("--only-binary", EVERYTHING)
    for name in source:
        yield from ("--no-binary", name)


def _advised(answer: Answer) -> Answer:
    """Say what to do where only the rule about sources is in the way."""
    if answer.ok or not ("building from source is disabled" in answer.errors or "no usable wheels" in answer.errors):
        return answer
    advice = (
        "error: it has no wheel that fits, and a source distribution runs its uploader's code when it is built: "
        "allow that with `source: true` in the matrix, or --allow-source"
    )
    return replace(answer, errors=f"{answer.errors}\n{advice}\n")
