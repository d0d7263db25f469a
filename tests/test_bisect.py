"""``bisect`` through the command line: forty versions with gaps on an index that real uv reads, known changes."""

from __future__ import annotations

import math
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from audit.explanations import bisecting
from audit.installing import changelogs
from audit.installing.interpreters import Interpreter
from audit.installing.locks import Lock, Release
from audit.installing.venvs import Recipe
from tests import tinychain
from tests.asked_releases import request
from tests.conftest import Finished, dumpers, wait_until
from tests.tinychain import ONLINE, Desk, between, identifier

FIRST, LAST = "0.1", "0.40"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a bisection printed."""

    boundaries: list[tuple[str, str, tuple[str, ...]]]
    """The last that is the same, the first that is changed, those between."""
    skipped: dict[str, str]
    classes: list[tuple[str, int, str]]
    looked_at: int
    listed: int
    address: str

    @classmethod
    def of(cls, finished: Finished) -> Found:
        assert finished.code == 0, finished.stderr
        assert finished.stderr == ""
        text = finished.stdout
        changed = re.findall(r"^changed between \S+ (\S+) and (\S+?)(?:, or in (.*), which .*)?$", text, re.M)
        (counted,) = re.findall(r"^(\d+) of (\d+) versions looked at(?:; (.*))?$", text, re.M)
        return cls(
            boundaries=[(last, first, tuple(filter(None, unknown.split(", ")))) for last, first, unknown in changed],
            skipped=dict(re.findall(r"^skipped \S+ (\S+): (.*)$", text, re.M)),
            classes=[
                (versions.strip(), int(count), digest)
                for versions, count, digest in re.findall(r"^(\S+(?: to \S+)?) +(\d+) +([0-9a-f]{12}) *$", text, re.M)
            ],
            looked_at=int(counted[0]),
            listed=int(counted[1]),
            address=counted[2],
        )

    @property
    def probes(self) -> int:
        """Versions that were looked at beside the two ends."""
        return self.looked_at - 2


def bisect(desk: Desk, name: str, good: str, bad: str, *options: str, package: str = "tinychain") -> Finished:
    return desk.search("bisect", name, "--package", package, "--good", good, "--bad", bad, *options)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Desk:
    return tinychain.desk(tmp_path_factory.mktemp("chain"), shared_cache)


@pytest.fixture(scope="module")
def everything(desk: Desk) -> Finished:
    """All versions, on the environment in which all changes show."""
    return bisect(desk, "Chain", FIRST, LAST, "--all")


@pytest.fixture(scope="module")
def pushed(desk: Desk) -> Finished:
    """A short range, halved."""
    return bisect(desk, "Pushed", "0.25", "0.28")


# All versions


def test_all_finds_every_change_also_those_that_cancel_out(everything: Finished) -> None:
    assert Found.of(everything).boundaries == [
        ("0.12", "0.13", ()),
        ("0.19", "0.22", ("0.20", "0.21")),
        ("0.27", "0.28", ()),
        ("0.29", "0.30", ()),
        ("0.30", "0.31", ()),
    ]


def test_versions_that_do_the_same_are_a_class(everything: Finished) -> None:
    """The order of a sum is no reason for another one, and what is reverted is the same to the last bit."""
    found = Found.of(everything)
    assert [(versions, count) for versions, count, _ in found.classes] == [
        ("0.1 to 0.12", 10),
        ("0.13 to 0.19", 6),
        ("0.22 to 0.27", 4),
        ("0.28 to 0.29", 2),
        ("0.30", 1),
        ("0.31 to 0.40", 9),
    ]
    digests = [digest for *_, digest in found.classes]
    assert digests[4] == digests[2]
    assert len(set(digests)) == 5


def test_what_cannot_be_looked_at_is_skipped_and_said(everything: Finished) -> None:
    found = Found.of(everything)
    gaps = {version: gap for version, gap in tinychain.GAPS.items() if version not in tinychain.SOURCES}
    assert list(found.skipped) == list(gaps)
    for version, gap in gaps.items():
        assert gap.said in found.skipped[version], gap.what


def test_neither_yanked_nor_pre_releases_are_looked_at(everything: Finished) -> None:
    assert tinychain.YANKED not in everything.stdout
    assert tinychain.PRE_RELEASE not in everything.stdout
    found = Found.of(everything)
    assert found.looked_at == found.listed == len(tinychain.listed()) == 36


def test_sources_are_looked_at_where_building_is_allowed(desk: Desk) -> None:
    """Listing them runs nothing of theirs: both fail as soon as somebody does."""
    asked = ("--package", "tinychain", "--good", "0.6", "--bad", "0.13", "--all", "--allow-source")
    found = Found.of(desk.program(*desk.command("bisect", "Damped", *asked), **ONLINE))
    assert found.looked_at == found.listed == len(between("0.6", "0.13")) + len(tinychain.SOURCES)
    assert list(found.skipped) == list(tinychain.SOURCES)
    for version in tinychain.SOURCES:
        assert tinychain.GAPS[version].said in found.skipped[version]
    assert found.boundaries == [("0.12", "0.13", ())]


def test_the_change_logs_address_is_told_though_the_good_version_does_not_have_it(everything: Finished) -> None:
    assert Found.of(everything).address == tinychain.CHANGE_LOG


# Halving


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Damped", ("0.12", "0.13", ())),
        ("Solved", ("0.19", "0.22", ("0.20", "0.21"))),
        ("Seen", ("0.30", "0.31", ())),
    ],
    ids=["a constant", "a solver's tolerance", "the order of an observation"],
)
@pytest.mark.usefixtures("everything")  # which has built the virtualenvs
def test_each_change_is_found_among_forty_versions(
    desk: Desk, name: str, expected: tuple[str, str, tuple[str, ...]]
) -> None:
    found = Found.of(bisect(desk, name, FIRST, LAST))
    assert found.boundaries == [expected]
    assert found.listed == 36
    assert found.probes <= math.ceil(math.log2(found.listed)) + len(found.skipped)
    assert set(expected[2]) <= set(found.skipped) <= set(tinychain.GAPS)
    assert [versions for versions, *_ in found.classes] == [f"{FIRST} to {expected[0]}", f"{expected[1]} to {LAST}"]
    assert found.address == tinychain.CHANGE_LOG


def test_a_dependency_is_searched_while_the_simulator_stays(desk: Desk) -> None:
    found = Found.of(bisect(desk, "Narrow", "1.0", "1.5", "--with", "tinychain==0.5", package="tinymath"))
    assert found.boundaries == [("1.2", tinychain.NARROWED, ())]
    assert found.listed == len(tinychain.MATHS)
    assert found.probes <= math.ceil(math.log2(found.listed))
    assert found.address == ""


def test_backwards_from_good_to_older(desk: Desk) -> None:
    found = Found.of(bisect(desk, "Solved", "0.25", "0.16"))
    assert found.boundaries == [("0.22", "0.19", ("0.21", "0.20"))]
    assert found.listed == len(between("0.25", "0.16"))
    assert found.probes <= math.ceil(math.log2(found.listed)) + len(found.skipped)
    assert [versions for versions, *_ in found.classes] == ["0.25 to 0.22", "0.19 to 0.16"]


def test_what_is_reverted_cancels_out_unless_all_are_looked_at(desk: Desk) -> None:
    halved = bisect(desk, "Pushed", "0.27", "0.30")
    assert halved.code == 2
    assert halved.sentence.endswith(
        "tinychain 0.27 and 0.30 are the same but for rounding on this environment: there is nothing to find, or it "
        "cancels out (try --all)"
    )
    found = Found.of(bisect(desk, "Pushed", "0.27", "0.30", "--all"))
    assert found.boundaries == [("0.27", "0.28", ()), ("0.29", "0.30", ())]
    assert [versions for versions, *_ in found.classes] == ["0.27", "0.28 to 0.29", "0.30"]


def test_rounding_is_no_change(desk: Desk) -> None:
    finished = bisect(desk, "Seen", "0.16", "0.18", "--all")
    found = Found.of(finished)
    assert "all 3 versions are the same but for rounding" in finished.stdout
    assert (found.boundaries, [versions for versions, *_ in found.classes]) == ([], ["0.16 to 0.18"])


def test_pre_releases_count_when_asked_for(desk: Desk, pushed: Finished) -> None:
    without = Found.of(pushed)
    assert (without.boundaries, without.listed) == ([("0.27", "0.28", ())], 3)
    finished = bisect(desk, "Pushed", "0.25", "0.28", "--all", "--prereleases")
    assert Found.of(finished).listed == 4
    assert f"tinychain {tinychain.PRE_RELEASE}" in finished.stdout


def test_a_package_moves_with_its_extras_and_the_rest_stays() -> None:
    asked = request("tiny-chain==1", "tinymath<2", "Tiny_Chain[glue,all]", pins=("numpy<2",))
    moved = bisecting.moved(asked, "tiny-chain", "2")
    assert moved == replace(asked, id="tiny-chain-2", requires=("tiny-chain[all,glue]==2", "tinymath<2"))
    assert bisecting.moved(request("other"), "tiny-chain", "2").requires == ("tiny-chain==2", "other")


# Again


def test_what_was_dumped_is_not_dumped_again(desk: Desk, pushed: Finished) -> None:
    before = desk.dumped()
    assert Found.of(bisect(desk, "Pushed", "0.25", "0.28")) == Found.of(pushed)
    assert desk.dumped() == before


def test_interrupted_it_goes_on_where_it_was(desk: Desk, everything: Finished, shared_cache: Path) -> None:
    own = replace(desk, database=desk.program.folder / "interrupted.duckdb")
    command = own.command("bisect", "Chain", "--package", "tinychain", "--good", FIRST, "--bad", "0.27")
    with own.program.started(*command) as harness:
        harness.wait_for("bisecting 4/")
        harness.process.send_signal(signal.SIGINT)
        finished = harness.finish()
        wait_until(lambda: not dumpers(shared_cache), "dumpers end with the program")
    assert finished.code == 130
    assert "interrupted; what was dumped is stored, the same command continues from there" in finished.sentence
    before = own.dumped()
    assert len(before) >= len(re.findall(r"(?m)^bisecting .*tinychain \S+  ", finished.stdout)) >= 3
    found = Found.of(own.program(*command))
    assert before < own.dumped()
    assert len(own.dumped()) <= found.looked_at, "what does not resolve or build is not dumped"
    assert found.boundaries == Found.of(everything).boundaries[:1]


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--good", "0.38", "--bad", "0.99"), "no tinychain 0.99 for Python 3.11: it has from 0.38 to 0.40"),
        (("--good", "0.22", "--bad", "0.23"), "no tinychain 0.23 for Python 3.11: it has from 0.22 to 0.22"),
        (("--good", "0.25", "--bad", "0.26rc1"), "no tinychain 0.26rc1 .*; pre-releases count with --prereleases"),
        (("--good", "0.5", "--bad", "newest"), "'newest' is not a version"),
        (("--good", "0.*", "--bad", "0.5"), r"'0\.\*' is not a version"),
        (("--good", "0.5", "--bad", "0.5.0"), "is one version: there is nothing to search"),
        (("--good", "0.5", "--bad", "0.6", "--with", "tinymath=1"), "'tinymath=1' is not a requirement"),
        (("--good", "0.19", "--bad", "0.20"), "tinychain 0.20 cannot be looked at: RuntimeError: this version does"),
        (("--good", "0.11", "--bad", "0.12"), "no tinychain 0.11 for Python 3.11: it has from 0.12 to 0.12"),
    ],
)
def test_a_wrong_range_is_a_clear_sentence(desk: Desk, arguments: tuple[str, ...], said: str) -> None:
    finished = desk.search("bisect", "Damped", "--package", "tinychain", *arguments)
    assert finished.code == 2
    assert re.search(said, finished.sentence), finished.sentence


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((identifier("None"), "--package", "tinychain"), "tinychain-0.5 does not offer .*: NameNotFound"),
        (("--package", "tinychain"), "give an environment by its id, or a scene with --mjcf"),
        ((identifier("Damped"), "--package", "nothing-of-release-audit"), "the index has no nothing-of-release-audit"),
        ((identifier("Damped"), "--package", "tinychain[all]"), r"'tinychain\[all\]' is not the name of a package"),
    ],
)
def test_what_is_not_there_is_a_clear_sentence(desk: Desk, arguments: tuple[str, ...], said: str) -> None:
    finished = desk.program("bisect", *arguments, "--good", "0.5", "--bad", "0.6", "--db", desk.database, **ONLINE)
    assert finished.code == 2
    assert re.search(said, finished.sentence), finished.sentence


# Change logs


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ("Project-URL: Homepage, https://h\nProject-URL: Changelog, https://c", "https://c"),
        ("Project-URL: What's New?, https://n", "https://n"),
        ("Project-URL: Release notes,https://n", "https://n"),
        ("Project-URL: Donate, https://d\nHome-page: https://h", "https://h"),
        ("Project-URL: Donate, https://d", ""),
        ("", ""),
    ],
)
def test_where_a_package_says_what_it_changed(own_cache: Path, headers: str, address: str) -> None:
    interpreter = Interpreter(path=Path("/p"), implementation="CPython", version="3.11.7")
    release = Release(request=request("Some.Thing"), interpreter=interpreter, lock=Lock.from_text("some-thing==1.0\n"))
    assert changelogs.address(release, "some-thing") == "", "there is no virtualenv yet"
    for name, text in {"some.thing-1.0": headers, "some_thing_else-1.0": "Home-page: https://wrong"}.items():
        file = Recipe.of(release).folder / "lib/python3.11/site-packages" / f"{name}.dist-info" / "METADATA"
        file.parent.mkdir(parents=True)
        file.write_text(f"Metadata-Version: 2.1\nName: {name}\n{text}\n")
    assert changelogs.address(release, "Some_Thing") == address
    earlier = replace(release, lock=Lock.from_text("some-thing==0.9\n"))
    without = replace(release, lock=Lock.from_text("other==3\n"))
    for ends in ((release, earlier), (earlier, release), (without, release), (release, without)):
        assert changelogs.of_the_later(ends, "Some_Thing") == address


def _put_a_pipe(file: Path) -> None:
    os.mkfifo(file)


def _put_a_link(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _put_too_much(file: Path) -> None:
    file.write_bytes(b"x" * 2**21)


@pytest.mark.parametrize("put", [_put_a_pipe, _put_a_link, _put_too_much])
def test_a_change_log_is_read_from_a_file_and_nothing_else(own_cache: Path, put: Callable[[Path], None]) -> None:
    """A build may have put anything there: a pipe is waited for, and a link may lead to a file without end."""
    interpreter = Interpreter(path=Path("/p"), implementation="CPython", version="3.11.7")
    release = Release(request=request("thing"), interpreter=interpreter, lock=Lock.from_text("thing==1.0\n"))
    file = Recipe.of(release).folder / "lib/python3.11/site-packages/thing-1.0.dist-info/METADATA"
    file.parent.mkdir(parents=True)
    put(file)
    assert changelogs.address(release, "thing") == ""
