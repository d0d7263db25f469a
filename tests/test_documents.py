"""The documents are true: links lead somewhere, commands and files are understood, nothing is left out."""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from audit import cli, errors
from audit.asked import matrix_file
from audit.asked.matrix import Matrix
from audit.confining import confinement
from audit.failures import Status
from audit.laws import reference_file
from audit.laws.reference_file import ReferenceRow
from audit.nights import waivers
from audit.storage import named_queries
from audit.storage.store import Store

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
VERBS = cli.commands.commands

SMALL_MATRIX = """
name: small
python: "3.11"
releases: [{id: one, requires: ["gymnasium==1.3.0"]}]
environments: [{id: CartPole-v1}]
"""

FENCE = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")
FEWEST = {"links": 60, "commands": 15, "yaml": 5, "queries": 6, "named": 5, "spans": 20}
"""Of each kind, so that a pattern that finds nothing any more is noticed."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(language: str) -> list[tuple[str, str]]:
    """Fenced blocks, each with the name of its document."""
    return [
        (name_of(path), body) for path in DOCUMENTS for found, body in FENCE.findall(text_of(path)) if found == language
    ]


def prose(path: Path) -> str:
    """A document without its fenced blocks."""
    return FENCE.sub("", text_of(path))


def spans() -> list[tuple[str, str]]:
    """Code within sentences and tables, on one line each."""
    return [
        (name_of(path), " ".join(span.replace(r"\|", "|").split()))
        for path in DOCUMENTS
        for span in re.findall(r"`([^`]+)`", prose(path))
    ]


def table_rows(text: str) -> list[list[str]]:
    """Cells of all rows of all tables, headings among them."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


# Links


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading.

    >>> slug("Why `paper.yaml` reads only observations")
    'why-paperyaml-reads-only-observations'
    """
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")


@cache
def anchors(path: Path) -> frozenset[str]:
    found: dict[str, int] = {}
    every = []
    for heading in re.findall(r"(?m)^#{1,6} (.+)$", prose(path)):
        plain = slug(heading)
        times = found.get(plain, 0)
        found[plain] = times + 1
        every.append(f"{plain}-{times}" if times else plain)
    return frozenset(every)


def links() -> list[tuple[Path, str]]:
    found = [(path, link) for path in DOCUMENTS for link in re.findall(r"\]\(([^)\s]+)\)", prose(path))]
    return [(path, link) for path, link in found if not re.match(r"[a-z]+:", link)]


def test_every_relative_link_leads_to_a_file_and_a_heading() -> None:
    assert len(links()) >= FEWEST["links"]
    for path, link in links():
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{name_of(path)}: {link}"
        assert target.is_relative_to(ROOT), f"{name_of(path)}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(path)}: {link}"


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached, left = set(), [ROOT / "README.md"]
    while left:
        path = left.pop()
        if path not in reached:
            reached.add(path)
            files = {(path.parent / link.partition("#")[0]).resolve() for each, link in links() if each == path}
            left += [file for file in files if file.suffix == ".md"]
    assert set(DOCUMENTS) <= reached


# Commands


def commands() -> Iterator[tuple[str, list[str]]]:
    """Command lines in consoles, one for each program, without variables set before it and without redirections."""
    for name, body in blocks("console"):
        for line in re.findall(r"(?m)^\$ (.+)$", body):
            for command in re.split(r" && | \| ", re.sub(r"\s> .*", "", line)):
                words = shlex.split(command, comments=True)
                while re.fullmatch(r"\w+=.*", words[0]):
                    words = words[1:]
                yield name, words


def test_every_command_of_this_program_is_understood() -> None:
    ours = [(name, words) for name, words in commands() if Path(words[0]).name == "release-audit"]
    assert len(ours) >= FEWEST["commands"]
    for name, words in ours:
        try:
            VERBS[words[1]].make_context(words[1], list(words[2:]))
        except (click.ClickException, errors.UsageError, KeyError) as error:
            pytest.fail(f"{name}: {shlex.join(words)}: {error}")


def test_every_target_of_make_that_is_named_is_there() -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    named = [(name, words) for name, words in commands() if words[0] == "make"]
    named += [(name, span.split()) for name, span in spans() if re.match(r"make [a-z]", span)]
    assert len(named) >= FEWEST["spans"]
    for name, words in named:
        assert words[1] in targets, f"{name}: {' '.join(words)}"


def test_every_option_that_a_sentence_gives_to_a_verb_is_there() -> None:
    mentioned = [(name, span) for name, span in spans() if span.startswith("release-audit ")]
    assert len(mentioned) >= FEWEST["spans"]
    for name, span in mentioned:
        _, verb, *words = span.split()
        if verb == "VERB":
            continue
        assert verb in VERBS, f"{name}: {span}"
        known = {"--help", *(option for each in VERBS[verb].params for option in (*each.opts, *each.secondary_opts))}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, f"{name}: {span}"


def test_every_option_in_a_sentence_is_one_of_some_verb() -> None:
    named = [(name, span) for name, span in spans() if span.startswith("--")]
    assert len(named) >= FEWEST["spans"]
    known = {option for verb in VERBS.values() for each in verb.params for option in (*each.opts, *each.secondary_opts)}
    others = {"--help", "--num-cpus", "--version"}  # of Ray too
    for name, span in named:
        assert span.split()[0].partition("=")[0] in known | others, f"{name}: {span}"


# Files


def placed(text: str, folder: Path) -> Path:
    path = folder / "shown.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "text"), blocks("yaml"))
def test_every_file_that_is_shown_is_valid(name: str, text: str, tmp_path: Path) -> None:
    """A part of a matrix is read within a small one."""
    keys = set(YAML(typ="safe").load(text))
    if {"releases", "environments"} <= keys:
        assert matrix_file.read(placed(text, tmp_path)).matrix.releases
    elif "waivers" in keys:
        assert waivers.read(placed(text, tmp_path), datetime.date(2026, 1, 1)).waivers
    elif "variables" in keys:
        assert reference_file.read(placed(text, tmp_path)).laws
    else:
        assert matrix_file.read(placed(SMALL_MATRIX + text, tmp_path)).matrix


def test_there_are_files_that_are_shown() -> None:
    assert len(blocks("yaml")) >= FEWEST["yaml"]
    shown = {key for name, text in blocks("yaml") if name == "README.md" for key in YAML(typ="safe").load(text)}
    assert {"releases", "environments"} <= shown


# Queries


def queries() -> list[tuple[str, str]]:
    found = [(name, words[-1].removeprefix("SQL=")) for name, words in commands() if "SELECT " in words[-1]]
    found += [(name, span) for name, span in spans() if span.startswith("SELECT ")]
    within = r'(?:SQL=|query )"(SELECT [^"]+)"'
    return found + [(name, sql) for name, span in spans() for sql in re.findall(within, span)]


def test_every_query_can_be_run(tmp_path: Path) -> None:
    assert len(queries()) >= FEWEST["queries"]
    with Store(tmp_path / "audit.duckdb") as store:
        for name, sql in queries():
            assert store.query(sql).columns, f"{name}: {sql}"


def named_queries_run() -> Iterator[tuple[str, list[str]]]:
    """Names of queries in consoles and sentences, each with what it is given."""
    for words in [*(words for _, words in commands()), *(span.split() for _, span in spans())]:
        settings = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
        yield from ((word.removeprefix("NAMED="), settings) for word in words if word.startswith("NAMED="))
        if "--named" in words[:-1]:
            yield words[words.index("--named") + 1], settings


def test_every_query_that_is_named_can_be_run(tmp_path: Path) -> None:
    named = list(named_queries_run())
    assert len(named) >= FEWEST["named"]
    with Store(tmp_path / "audit.duckdb") as store:
        for name, settings in named:
            query = named_queries.find(name)
            assert store.query(query.sql, query.values(settings)).columns, name


# What must not be left out


def test_there_are_verbs() -> None:
    assert {"run", "plan", "query", "doctor", "schema"} <= set(VERBS)
    assert all(isinstance(command, click.Command) and command.help for command in VERBS.values())


def test_the_readme_lists_every_verb_and_nothing_else() -> None:
    firsts = [row[0] for row in table_rows(text_of(ROOT / "README.md"))]
    listed = [match[1] for first in firsts if (match := re.match(r"`release-audit ([a-z]+)", first))]
    assert sorted(listed) == sorted(VERBS)


def test_the_readme_lists_every_exit_code_and_nothing_else() -> None:
    section = text_of(ROOT / "README.md").partition("\n| exit code |")[2].partition("\n\n")[0]
    listed = {int(row[0]) for row in table_rows(section) if row[0].isdigit()}
    assert listed == {getattr(errors, name) for name in dir(errors) if name.startswith("EXIT_")}


def test_the_page_on_security_lists_every_variable_that_is_handed_on_and_nothing_else() -> None:
    (told,) = [row[1] for row in table_rows(text_of(ROOT / "SECURITY.md")) if row[0] == "environment"]
    assert re.findall("`([^`]+)`", told.partition(" and constants")[0]) == list(confinement.HANDED_ON)


@pytest.mark.parametrize("form", ["cron", "systemd", "github"])
def test_the_readme_shows_every_form_of_schedule(form: str) -> None:
    assert any(
        name == "README.md" and words[1:2] == ["schedule"] and f"--{form}" in words for name, words in commands()
    )


def test_every_status_of_a_failure_is_explained() -> None:
    page = text_of(ROOT / "docs" / "troubleshooting.md").partition("## What is tried again")[0]
    explained = {row[0].strip("`") for row in table_rows(page)} - {"status"}
    assert explained == set(Status) - {Status.READY, Status.OK}
    section = text_of(ROOT / "ARCHITECTURE.md").partition("\n## Failures\n")[2].partition("\n## ")[0]
    assert explained <= set(re.findall(r"`([a-z-]+)`", section))


def places() -> list[str]:
    """Patterns of all files that the table of modules names. One for a folder that nothing is listed of ends in /*."""
    section = text_of(ROOT / "ARCHITECTURE.md").partition("\n## Where things are\n")[2].partition("\n## ")[0]
    _, *listed = table_rows(section)
    parts = [
        (base, part)
        for _, ours, elsewhere in listed
        for base, cell in (("audit/", ours), ("", elsewhere))
        for part in cell.split(";")
    ]
    found = []
    for base, part in parts:
        folder = re.match(r"\s*`([\w/]+/)`: ", part)
        names = re.findall(r"`([\w/*]+(?:/|\.py))`", part[folder.end() :] if folder else part)
        found += [base + (folder[1] if folder else "") + name + "*" * name.endswith("/") for name in names]
    return found


def test_the_table_of_modules_names_every_module_and_nothing_else() -> None:
    modules = [
        name_of(path)
        for room in ("audit", "analysis", "dumper", "confine")
        for path in (ROOT / room).rglob("*.py")
        if not path.stem.startswith("__")
    ]
    assert len(modules) > 150
    assert [name for name in sorted(modules) if not any(fnmatchcase(name, place) for place in places())] == []
    assert [place for place in places() if not list(ROOT.glob(place))] == []


def keys_of(schema: Mapping[str, Any]) -> set[str]:
    parts = [schema, *schema.get("$defs", {}).values()]
    return {key for part in parts for key in part.get("properties", {})}


def test_every_key_of_a_matrix_is_explained() -> None:
    pages = "".join(text_of(ROOT / "docs" / name) for name in ("matrix.md", "nightly.md"))
    explained = {key for row in table_rows(pages) for key in re.findall(r"`([\w-]+)`", row[0])}
    elsewhere = {"against", "low", "high", "position", "velocity"}  # within the row of their key
    assert keys_of(Matrix.model_json_schema(by_alias=True)) - explained == elsewhere
    assert all(f"`{key}`" in pages or f"{{{key}: " in pages for key in elsewhere)


def test_every_key_of_a_file_of_laws_is_explained() -> None:
    page = text_of(ROOT / "docs" / "laws.md")
    names = {field.alias or name for name, field in ReferenceRow.model_fields.items()}
    assert {name for name in names if not re.search(rf"(?m)^{name}:|`{name}`", page)} == set()


def test_every_shipped_matrix_is_in_the_readme() -> None:
    firsts = {row[0] for row in table_rows(text_of(ROOT / "README.md"))}
    assert {f"`{path.name}`" for path in matrix_file.shipped()} <= firsts
