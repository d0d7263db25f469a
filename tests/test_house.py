"""Rules of the house that no linter knows: who may import what, who may exit, what must not be in the repository."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from audit.cluster import outfitting
from tests.stored_runs import VIEWS

ROOT = Path(__file__).resolve().parent.parent
HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (("pypi", "org"), ("pythonhosted", "org"), ("anaconda", "org"), ("pypi", "python", "org"))
    )
)
HOMES = re.compile("/(?:" + "|".join(["home", "Users"]) + r")/[a-z]|/" + r"root\b(?!\.)|[A-Z]:\\Users")


@cache
def tracked() -> tuple[Path, ...]:
    """Files that are, or are about to be, in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return tuple(path for name in sorted(filter(None, listed.split("\0"))) if (path := ROOT / name).is_file())


def sources(room: str = "") -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / room)]


def imports(path: Path) -> Iterator[str]:
    """Top-level names of everything that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0] if not node.level else "."


def importers(module: str, room: str = "") -> list[str]:
    return [str(path.relative_to(ROOT)) for path in sources(room) if module in imports(path)]


def texts() -> Iterator[tuple[str, str]]:
    for path in tracked():
        try:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_there_is_something_to_look_at() -> None:
    names = {path.name for path in tracked()}
    assert {"README.md", "Makefile", "cli.py", "store.py", "serve.py", "separation.py"} <= names


def test_ray_is_imported_in_one_file() -> None:
    assert importers("ray") == ["audit/cluster/workers.py"]


def test_ray_is_imported_only_when_something_has_to_be_run() -> None:
    script = "import sys, audit.cli, audit.pipeline; sys.exit('ray' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_a_node_that_has_only_ray_can_start_a_worker() -> None:
    """What it lacks is installed by the worker, which therefore has to be imported without it."""
    absent = dict.fromkeys([*outfitting.IMPORTED, "duckdb", "rich"])
    script = f"import sys; sys.modules.update({absent}); import audit.cluster.workers"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_all_that_a_worker_imports_is_installed_on_a_node() -> None:
    """Of what is neither the standard library's nor ours, when the jobs' modules are imported."""
    script = (
        "import sys, audit.processes.dumper_process, audit.cluster.workers; "
        "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    pinned = {*outfitting.IMPORTED, *(name for each in outfitting.IMPORTED for name in required_by(each))}
    ours = {"audit", "analysis", "dumper", "__main__", "__mp_main__"}
    found = {name for name in done.stdout.split() if not name.startswith("_")} - ours
    assert found <= pinned
    assert "numpy" in found


def required_by(distribution: str) -> set[str]:
    """The names under which what it requires is imported."""
    found = filter(None, map(Requirement, importlib.metadata.requires(distribution) or ()))
    names = {each.name for each in found if each.marker is None or each.marker.evaluate({"extra": ""})}
    return {name.replace("-", "_") for name in names}


ROOMS = [
    *("errors", "failures", "markup", "digests", "folders", "machine", "named_files"),
    *("confining", "asked", "installing", "cluster", "stimuli", "processes", "storage", "tools", "planning", "dumps"),
    *("comparisons", "run_rows", "laws", "explanations", "pipeline", "reproducing", "reports"),
    *("nights", "terminal", "doctor", "verbs", "cli", "guard", "__main__"),
]
"""Rooms and single files of the orchestrator. Each may import those before it: data goes in one direction."""


def test_rooms_import_only_those_below_them() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources("audit")
        for name in rooms_imported(path)
        if ROOMS.index(name) > ROOMS.index(room(path)) and (room(path), name) != ("cli", "guard")  # it tells its code
    ]
    assert wrong == []


def test_the_rooms_are_drawn_in_the_order_that_holds() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("each room imports only those")[2]
    drawn = section.partition("\n    ")[2].partition("\n\n")[0].replace("─", " ").split()
    assert drawn == [name for name in ROOMS if name in drawn]
    assert {path.parent.name for path in (ROOT / "audit").glob("*/__init__.py")} <= set(drawn)


def room(path: Path) -> str:
    first = path.relative_to(ROOT / "audit").parts[0].removesuffix(".py")
    return first if first != "__init__" else ROOMS[0]


def rooms_imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "audit":
            named = (node.module or "").split(".")[1:2] or [alias.name for alias in node.names]
            yield from (name for name in named if not name.startswith("__version"))


def test_the_demonstration_is_not_made_of_the_harness() -> None:
    """It starts nodes as a user does."""
    assert sources("demo")
    for path in sources("demo"):
        assert not {"audit", "analysis", "dumper", "tests", "bench"} & set(imports(path)), path


def test_duckdb_is_imported_in_one_file() -> None:
    assert importers("duckdb", "audit") == ["audit/storage/database.py"]
    assert importers("duckdb", "analysis") == []


def test_rich_is_imported_in_one_room() -> None:
    assert {Path(each).parent for each in importers("rich", "audit")} == {Path("audit/terminal")}


def test_analysis_knows_neither_the_orchestrator_nor_ray() -> None:
    assert sources("analysis")
    for path in sources("analysis"):
        assert not {"audit", "ray", "dumper", "tests", "bench"} & set(imports(path)), path


def public_functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods of a file that others may call, but for properties, which are values and not decisions."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inside = [(f"{node.name}.", each) for each in node.body] if isinstance(node, ast.ClassDef) else [("", node)]
        if isinstance(node, ast.ClassDef) and node.name.startswith("_"):
            continue
        for prefix, each in inside:
            if not isinstance(each, ast.FunctionDef) or each.name.startswith("_"):
                continue
            if not any("property" in ast.unparse(decorator) for decorator in each.decorator_list):
                yield f"{path.relative_to(ROOT)}: {prefix}{each.name}", each


def limits(function: ast.FunctionDef) -> tuple[str, str]:
    """What a docstring says that a function is for, and the paragraph that says what it does not decide."""
    said, *paragraphs = (ast.get_docstring(function) or "").split("\n\n")
    found = [" ".join(each.split()) for each in paragraphs if each.startswith("Limits: ")]
    return said, found[0].removeprefix("Limits: ") if found else ""


def test_every_public_function_of_the_analysis_says_what_it_does_not_decide() -> None:
    functions = [each for path in sources("analysis") for each in public_functions(path)]
    assert len(functions) > 100
    assert [name for name, each in functions if not all(len(said.split()) >= 3 for said in limits(each))] == []


def test_no_two_functions_of_the_analysis_have_the_same_limits() -> None:
    """What is true of many functions says nothing about any."""
    told = Counter(limits(each)[1] for path in sources("analysis") for _, each in public_functions(path))
    assert [text for text, count in told.items() if count > 1] == []


def test_the_dumper_imports_nothing_of_the_project_but_itself() -> None:
    assert sources("dumper")
    for path in sources("dumper"):
        assert not {"audit", "analysis", "tests", "bench"} & set(imports(path)), path


def test_the_launcher_imports_only_itself_and_what_is_quick_to_import() -> None:
    assert sources("confine")
    quick = {"__future__", "confine", "ctypes", "os", "resource", "select", "stat", "struct", "sys", "time"}
    for path in sources("confine"):
        hinted = {"collections", "typing"}  # for types, and never run
        assert set(imports(path)) <= quick | hinted, path
    script = "import sys; sys.path.append(sys.argv[1]); import confine.supervising; sys.exit('typing' in sys.modules)"
    subprocess.run([sys.executable, "-I", "-S", "-c", script, str(ROOT)], check=True)


def test_the_orchestrator_does_not_import_the_dumper() -> None:
    assert importers("dumper", "audit") == []
    assert importers("confine", "audit") == []


def exits(path: Path) -> list[int]:
    """Lines that end the process: ``sys.exit``, ``exit``, ``quit``, ``os._exit``, ``raise SystemExit``."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("sys.exit", "exit", "quit", "os._exit", "os.abort"):
                found.append(node.lineno)
        elif isinstance(node, ast.Raise) and node.exc is not None and "SystemExit" in ast.unparse(node.exc):
            found.append(node.lineno)
    return found


def test_only_the_command_line_exits() -> None:
    exiting = [path.name for room in ("audit", "analysis") for path in sources(room) if exits(path)]
    assert sorted(exiting) == ["cli.py", "guard.py"], "and who stands in front of it"


def test_no_file_names_the_host_of_a_registry() -> None:
    assert [name for name, text in texts() if HOSTS.search(text)] == []


def test_no_file_names_somebodys_home() -> None:
    assert [name for name, text in texts() if HOMES.search(text)] == []


def test_no_lock_file_that_records_hosts() -> None:
    assert not [path for path in tracked() if path.name in {"uv.lock", "pylock.toml", "poetry.lock", "Pipfile.lock"}]


def test_the_locked_dependencies_have_hashes_and_no_index() -> None:
    locks = [path for path in tracked() if path.parent == ROOT / "requirements"]
    assert {path.name for path in locks} == {"all.txt", "uv.txt"}
    for path in locks:
        text = path.read_text(encoding="utf-8")
        assert "://" not in text
        entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
        assert entries
        assert all("--hash=sha256:" in entry for entry in entries)


def test_no_drawers() -> None:
    drawers = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
    assert not [path for path in tracked() if path.name in drawers]


@pytest.mark.parametrize(
    "name",
    [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "FINDINGS.md",
        "LICENSE",
        "README.md",
        "SECURITY.md",
        "docs/sql.md",
        "docs/troubleshooting.md",
        ".ci/run",
    ],
)
def test_what_a_newcomer_looks_for_is_there(name: str) -> None:
    assert (ROOT / name).is_file()


def test_the_views_listed_here_are_those_there_are() -> None:
    created = re.findall(
        r"CREATE (?:OR REPLACE )?VIEW ([a-z_]+) AS",
        "".join(path.read_text() for path in (ROOT / "audit" / "storage" / "migrations").glob("*.sql")),
    )
    assert sorted(set(created)) == sorted(VIEWS)


def test_every_target_of_make_is_explained_by_make_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"(?m)^([a-z-]+):", makefile)
    explained = re.findall(r"(?m)^([a-z-]+):.*## ", makefile)
    assert targets == explained
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(f"make {target} " in told for target in targets)
