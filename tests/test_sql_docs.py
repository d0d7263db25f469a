"""``docs/sql.md`` tells of every view, every column and every named query as they are, and of nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from audit.storage import named_queries
from audit.storage.named_queries import NamedQuery
from audit.storage.store import Store
from tests.stored_runs import VIEWS

ROOT = Path(__file__).resolve().parent.parent
QUERIES = named_queries.every()
FEWEST_QUERIES = 10

Columns = list[tuple[str, str]]


@cache
def documentation() -> str:
    return (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")


@cache
def documented() -> dict[str, Columns]:
    """Columns and their types by view, as they stand in the page, each with a meaning."""
    found: dict[str, Columns] = {}
    for section in re.split(r"(?m)^### ", documentation().split("\n## Views\n")[1])[1:]:
        heading, _, rest = section.partition("\n")
        columns = re.findall(r"(?m)^\| `(\w+)` \| (\S+) \| (.+) \|$", rest.split("\n## ")[0])
        assert all(len(meaning.strip()) > 2 for *_, meaning in columns), heading
        for view in re.findall(r"`(\w+)`", heading):
            assert view not in found, view
            found[view] = [(name, kind) for name, kind, _ in columns]
    return found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("empty") / "audit.duckdb") as opened:
        yield opened


def test_every_view_is_documented_and_nothing_else() -> None:
    assert set(documented()) == VIEWS


def test_every_column_is_documented_with_its_type_and_nothing_else(empty: Store) -> None:
    rows = empty.query(
        "SELECT table_name, column_name, data_type FROM duckdb_columns()"
        " WHERE schema_name = 'main' AND database_name = current_database() ORDER BY table_name, column_index"
    ).rows
    there: dict[str, Columns] = {}
    for view, column, kind in rows:
        there.setdefault(view, []).append((column, kind))
    assert documented() == there


def test_the_page_shows_the_very_text_of_every_named_query() -> None:
    section = documentation().split("\n## Queries by name\n")[1].split("\n## Views\n")[0]
    shown = dict(re.findall(r"(?ms)^### ([\w-]+)\n\n```sql\n(.+?)^```$", section))
    assert shown == {query.name: query.sql for query in QUERIES}
    assert len(shown) >= FEWEST_QUERIES


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: str(query.name))
def test_a_named_query_says_in_a_line_what_it_answers_and_takes_what_it_uses(query: NamedQuery, empty: Store) -> None:
    assert re.fullmatch(r"[A-Z].{10,110}\.", query.description)
    assert set(query.defaults) == set(re.findall(r"\$(\w+)", query.sql))
    assert "internal." not in query.sql, "people may use it as a start for their own"
    assert empty.query(query.sql, query.values([])).rows == ()


def test_named_queries_are_in_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert {f"audit/storage/queries/{query.name}.sql" for query in QUERIES} <= set(zipfile.ZipFile(wheel).namelist())
