"""``release-audit reproduce``: the paper's figures measured again, kept, and held against what they should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from analysis.paper.experiment import Experiment, Figure, Recordings, Rule, ShippedExperiment
from analysis.paper.experiments import EXPERIMENTS, SHIPPED
from audit import cli, reproducing
from audit.cluster.jobs import Job, Outcome
from audit.errors import AuditError, UsageError
from audit.reproducing import PartJob, StoredRecordings
from audit.storage.store import Store
from audit.tools import Tools
from tests.conftest import SPRING, Program, release, rows, write_matrix
from tests.silent import Silent
from tests.stored_runs import RUN, audited


class Inline(Silent):
    """A runner that runs every job here, or loses it, and a reporter that says nothing."""

    def __init__(self, lost: str = "") -> None:
        self.finished, self._lost = 0, lost

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def finish(self) -> None:
        self.finished += 1

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        for job in jobs:
            yield from job.lost(self._lost) if self._lost else job.run()


def squares(part: int) -> int:
    return part**2


def made_up(**figure: Any) -> Experiment:
    """The sum of three squares."""
    return Experiment(
        name="made-up",
        title="squares",
        parts=(3, 2, 1),
        run=squares,
        figures=lambda results: [
            Figure(name="sum", paper=14.0, measured=float(sum(results)), where="nowhere", rule=Rule.SAME),
            Figure(name="first", paper=8.0, measured=float(results[0]), note="another first", **figure),
        ],
    )


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Callable[[Experiment], None]:
    return lambda each: monkeypatch.setitem(EXPERIMENTS, each.name, each)


Add = Callable[[Experiment], None]


def tools(store: Store, runner: Inline | None = None) -> Tools:
    chosen = runner or Inline()
    return Tools(store=store, runner=chosen, reporter=chosen, timeout=60.0)


# On the command line


def test_an_experiment_is_measured_and_kept(release_audit: Program) -> None:
    finished = release_audit("reproduce", "drift", "--jobs", "1")
    assert (finished.code, finished.stderr) == (0, "")
    assert "drift: drift and convergence order of the energy, power balance under torque" in finished.stdout
    assert "10 figures: 10 agree; of the 10 exact ones 10 do." in finished.stdout
    database = release_audit.folder / "results" / "audit.duckdb"
    found = rows(
        database, "SELECT experiment, agrees, exact, rule, place <> '', count(*) FROM reproductions GROUP BY ALL"
    )
    assert found == [("drift", True, True, "within 5%", True, 10)]
    ((paper, measured),) = rows(
        database, "SELECT paper, measured FROM reproductions WHERE figure = 'order of the drift'"
    )
    assert paper == "4.95"
    assert abs(float(measured) - 4.95) < 0.01


def test_an_unknown_name_is_told_before_anything_is_opened(release_audit: Program) -> None:
    finished = release_audit("reproduce", "drift", "draft")
    assert (finished.code, finished.stdout) == (2, "")
    assert f"there is no experiment draft; there are {', '.join([*EXPERIMENTS, *SHIPPED])}" in finished.sentence
    assert list(release_audit.folder.iterdir()) == []


@pytest.mark.parametrize(("exact", "code", "sign"), [(True, 1, "✗"), (False, 0, "≠")])
def test_only_an_exact_figure_that_disagrees_makes_the_exit_code_one(
    exact: bool,
    code: int,
    sign: str,
    experiment: Add,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    experiment(made_up(exact=exact))
    monkeypatch.setattr(cli, "Workers", lambda *_: Inline())
    database = str(tmp_path / "audit.duckdb")
    assert cli.commands.main(["reproduce", "made-up", "--db", database], standalone_mode=False) == code
    told = capsys.readouterr().out
    assert [line.split() for line in told.splitlines() if "first" in line] == [
        [sign, "first", "8", "9", "another", "first"]
    ]
    exactly = f"of the {1 + exact} exact ones 1 do"
    assert f"2 figures: 1 agree; {exactly}." in told


# In this process


def test_parts_are_put_together_in_their_order(store: Store, experiment: Add) -> None:
    experiment(made_up())
    runner = Inline()
    (found,) = reproducing.reproduce(["made-up"], tools(store, runner))
    assert (found.experiment, found.title) == ("made-up", "squares")
    assert [(figure.name, figure.measured) for figure in found.figures] == [("sum", 14.0), ("first", 9.0)]
    assert [figure.name for figure in found.wrong] == ["first"]
    assert runner.finished == 1


def test_every_figure_is_kept_in_place_of_the_one_before(store: Store, experiment: Add) -> None:
    for _ in range(2):
        experiment(made_up())
        reproducing.reproduce(["made-up"], tools(store))
    columns = "experiment, figure, paper, measured, rule, agrees, exact, note, place"
    assert store.query(f"SELECT {columns} FROM reproductions ORDER BY figure DESC").rows == (
        ("made-up", "sum", "14", "14", "the same", True, True, "", "nowhere"),
        ("made-up", "first", "8", "9", "within 5%", False, True, "another first", ""),
    )


def test_a_part_that_is_lost_is_told_in_one_sentence(store: Store, experiment: Add) -> None:
    experiment(made_up())
    with pytest.raises(AuditError, match=r"^made-up could not be measured: the worker was lost twice$"):
        reproducing.reproduce(["made-up"], tools(store, Inline(lost="the worker was lost twice")))
    assert store.query("SELECT * FROM reproductions").rows == ()


class Impatient(Inline):
    """Somebody interrupts it after some outcomes."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        for number, outcome in enumerate(super().run(jobs)):
            if number == self._after:
                raise KeyboardInterrupt
            yield outcome


@pytest.mark.parametrize(
    ("after", "told", "stored"),
    [
        (4, "the figures of made-up are stored; release-audit reproduce other measures the rest", 2),
        (2, "no experiment is through; release-audit reproduce made-up other measures the rest", 0),
    ],
)
def test_what_is_through_is_kept_where_somebody_interrupts(
    after: int, told: str, stored: int, store: Store, experiment: Add
) -> None:
    experiment(made_up())
    experiment(replace(made_up(), name="other"))
    with pytest.raises(KeyboardInterrupt, match=rf"^{told} from its beginning$"):
        reproducing.reproduce(["made-up", "other"], tools(store, Impatient(after)))
    assert len(store.query("SELECT * FROM reproductions").rows) == stored


def test_a_part_has_one_outcome_and_stays_what_it_is() -> None:
    job = PartJob(experiment="drift", part=2)
    (outcome,) = job.run()
    assert (outcome.experiment, outcome.part, outcome.lost) == ("drift", 2, "")
    assert job.without(outcome) == job


def test_without_names_there_are_all() -> None:
    computed, shipped = reproducing.chosen([])
    assert [each.name for each in computed] == list(EXPERIMENTS)
    assert [each.name for each in shipped] == list(SHIPPED)
    with pytest.raises(UsageError, match="there is no experiment one, two; there are "):
        reproducing.chosen(["drift", "one", "two"])


# On releases as they are installed


def test_an_audit_of_releases_is_read_by_an_experiment(
    store: Store,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    matrix = write_matrix(
        tmp_path / "tiny.yaml",
        [release("1.0"), release("1.3"), release("1.98")],
        [SPRING],
        stimulus={"trajectories": 2, "steps": 5},
        bank={"states": 8},
    )

    def figures(recordings: Recordings) -> list[Figure]:
        shape = recordings.array("tinysim-1.0", "Spring", "horizon.state").shape
        damping = [
            float(recordings.description(f"tinysim-{version}", "Spring")["constants"]["damping"])
            for version in ("1.0", "1.3")
        ]
        (verdict,) = recordings.table("SELECT verdict FROM pairs WHERE matrix = $matrix AND newer = 'tinysim-1.3'")
        with pytest.raises(AuditError, match=r"tinysim-1\.98/Spring could not be recorded: .*tinydep==99"):
            recordings.array("tinysim-1.98", "Spring", "horizon.state")
        return [
            Figure(name="shape", paper="(2, 5, 2)", measured=str(shape)),
            Figure(name="damping", paper=0.3, measured=damping[0], rule=Rule.SAME),
            Figure(name="moved", paper=1e-6, measured=damping[1] / damping[0] - 1),
            Figure(name="verdict", paper="changed", measured=verdict[0]),
        ]

    made = ShippedExperiment(name="tiny", title="on a spring", matrix=str(matrix), figures=figures)
    monkeypatch.setitem(SHIPPED, "tiny", made)
    (found,) = reproducing.reproduce(["tiny"], tools(store))
    assert [figure.agrees for figure in found.figures] == [True] * 4
    assert store.query("SELECT count(*) FROM reproductions WHERE agrees").rows == ((4,),)
    assert store.query("SELECT count(*) FROM internal.screenings").rows == ((0,),), "it is not held against laws"


@pytest.mark.parametrize(("cell", "reason"), [("b", "has none"), ("c", "it is not in the matrix")])
def test_what_was_not_recorded_is_told_by_its_name(store: Store, cell: str, reason: str) -> None:
    audited(store, {"a": "x", "b": None})
    recordings = StoredRecordings(store, RUN.run_id)
    for ask in (
        lambda: recordings.array(cell, "E", "horizon.state"),
        lambda: recordings.description(cell, "E"),
    ):
        with pytest.raises(AuditError, match=rf"^{cell}/E could not be recorded: {reason}$"):
            ask()


def test_an_array_is_read_as_double(store: Store) -> None:
    audited(store, {"a": "x"})
    digest = store.arrays.put(np.arange(6, dtype=np.float32).reshape(2, 3))
    row = f"('x', 'horizon.state', '{digest}', 'float32', '[2, 3]')"
    store.query(f"INSERT INTO internal.behaviour_outputs (behaviour, output, array_digest, dtype, shape) VALUES {row}")
    found = StoredRecordings(store, RUN.run_id).array("a", "E", "horizon.state")
    assert found.dtype == np.float64
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]
