"""Controls: does a release reproduce itself, and would a planted fault have been seen?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from audit.comparisons import controls
from audit.comparisons.controls import PLANTED
from audit.dumps.dumping import Dumped
from audit.failures import Status
from audit.planning.drawing import DrawnEnvironment
from audit.stimuli.stimulus import unpacked
from audit.storage.records import DumpRecord, RunCell
from audit.storage.store import Store
from tests.planned_cells import batch, drawn, planned
from tests.recorded_behaviours import STATES, Arrays, forced, keep
from tests.stored_runs import cell

CELL = planned("a")
DRAWN = drawn(CELL, batch(2, 5), batch(STATES, 1))
MANY = 200


def sample(arrays: Arrays, rows: NDArray[np.int64] | slice = slice(None)) -> Arrays:
    """What the same release records of the sample that it is given again."""
    chosen = {"horizon": slice(0, 1), "forced": rows}
    return {
        name: array[chosen.get(name.partition(".")[0], slice(None))]
        for name, array in arrays.items()
        if not name.startswith("nudged")
    }


def dumped(store: Store, name: str, behaviour: str, arrays: Arrays, **more: Any) -> dict[str, Dumped]:
    kept = keep(store, behaviour, arrays, **more)
    return {name: Dumped(key=kept.key, record=kept.record, reused=False)}


# What is asked


def test_the_baseline_of_each_environment_is_controlled() -> None:
    cells = [planned("a"), planned("b"), planned("a", "F"), planned("b", "F"), planned("a", "G")]
    given = {"E": drawn(cells[1], None, None), "F": drawn(cells[2], None, None)}
    found = controls.baselines(cells, given)
    assert {title: each.identifier for title, each in found.items()} == {"E": "b/E", "F": "a/F"}


def test_a_sample_of_everything_is_given_again() -> None:
    whole = drawn(CELL, batch(8, 5), batch(MANY, 1))
    asked = controls.again(CELL, whole)
    assert whole.forced is not None
    assert asked.stimulus.batches == {"horizon": (1, 5), "forced": (64, 1)}
    states = unpacked(asked.stimulus.payload)["forced.states"]
    assert {state.tobytes() for state in states} <= {state.tobytes() for state in whole.forced.starts}
    assert states[0].tobytes() == whole.forced.starts[0].tobytes()
    assert states[-1].tobytes() == whole.forced.starts[-1].tobytes()
    assert asked.stimulus.resets > 0


@pytest.mark.parametrize("count", [1, 5, 63, 64, 65, 512])
def test_a_sample_names_each_row_once_and_no_other(count: int) -> None:
    rows = controls._sample(count)
    assert len(set(rows.tolist())) == min(count, 64)
    assert (rows[0], rows[-1]) == (0, count - 1)


def test_a_control_is_another_question_than_what_it_controls() -> None:
    assert CELL.identifier == "a/E"
    asked = [controls.again(CELL, DRAWN), *controls.recordings({"E": CELL}, {"E": DRAWN})]
    assert [each.identifier for each in asked] == ["a/E (again)", "a/E (planted 1e-06)"]
    assert [each.asked().apart for each in asked] == [True, False]
    assert len({each.key for each in asked} | {CELL.key(each.stimulus) for each in asked}) == 4
    assert asked[1].plant is not None
    assert asked[1].plant.factor == 1.0 + PLANTED
    assert asked[1].stimulus.resets == 0
    assert set(asked[1].stimulus.batches) == {"forced"}


def test_faults_of_two_sizes_or_constants_are_two_dumps() -> None:
    assert DRAWN.forced is not None
    faults = [(1e-6, None), (1e-7, None), (1e-6, "gravity"), (1e-6, "mass")]
    assert len({controls.planted(CELL, DRAWN.forced, size, name).key for size, name in faults}) == 4


def test_where_states_cannot_be_imposed_nothing_is_planted() -> None:
    assert controls.recordings({"E": CELL}, {"E": drawn(CELL, batch(2, 5), None)}) == []


# Suspects


def suspects(cells: list[RunCell], verdicts: dict[tuple[str, str], str], baseline: str = "") -> list[RunCell]:
    return controls.suspects(cells, verdicts, dict.fromkeys("EF", baseline))


def test_a_lone_behaviour_in_a_changed_pair_or_of_a_baseline_is_suspect() -> None:
    cells = [cell("1", 0, "a"), cell("2", 1, "b"), cell("3", 2, "a"), cell("4", 3, None), cell("5", 4, "c")]
    verdicts = {("a", "b"): "changed", ("a", "c"): "rounding", ("b", "c"): "rounding"}
    assert [each.release for each in suspects(cells, verdicts)] == ["2"]
    assert [each.release for each in suspects(cells, verdicts, baseline="5")] == ["2", "5"]
    assert suspects(cells, {("a", "b"): "rounding", ("a", "c"): "amplified"}, baseline="1") == []


def test_a_behaviour_that_another_environment_shows_too_is_still_alone_in_its_own() -> None:
    cells = [cell("1", 0, "a"), cell("2", 1, "b"), cell("1", 0, "a", "F"), cell("2", 1, "a", "F")]
    found = suspects(cells, {("a", "b"): "changed"})
    assert [each.identifier for each in found] == ["1/E", "2/E"]


# Reproduced


def test_a_sample_that_is_the_same_has_no_difference(store: Store) -> None:
    keep(store, "whole", forced())
    keep(store, "sample", sample(forced()))
    assert controls.difference("whole", "sample", DRAWN, store) == ""


def test_the_rows_of_the_sample_are_compared_with_those_of_the_whole(store: Store) -> None:
    generator = np.random.default_rng(0)
    arrays = {"forced.state": generator.random((MANY, 1, 2)), "horizon.state": generator.random((8, 5, 2))}
    whole = drawn(CELL, batch(8, 5), batch(MANY, 1))
    keep(store, "whole", arrays)
    keep(store, "sample", sample(arrays, controls._sample(MANY)))
    keep(store, "shifted", sample(arrays, controls._sample(MANY)[::-1]))
    assert controls.difference("whole", "sample", whole, store) == ""
    assert controls.difference("whole", "shifted", whole, store) == "forced.state"


@pytest.mark.parametrize("name", sorted(sample(forced())))
def test_a_difference_in_anything_is_named(store: Store, name: str) -> None:
    other = sample(forced())
    moved = other[name].copy()
    flat = moved.reshape(-1).view(np.uint8)
    flat[0] ^= 1  # one bit
    keep(store, "whole", forced())
    keep(store, "sample", {**other, name: moved})
    assert controls.difference("whole", "sample", DRAWN, store) == name


def test_another_dtype_or_shape_is_a_difference(store: Store) -> None:
    keep(store, "whole", forced())
    wider = sample(forced())["forced.observation"].astype(np.float64)
    keep(store, "dtype", {**sample(forced()), "forced.observation": wider})
    keep(store, "shape", {**sample(forced()), "forced.reward": forced()["forced.reward"][:2]})
    assert controls.difference("whole", "dtype", DRAWN, store) == "forced.observation"
    assert controls.difference("whole", "shape", DRAWN, store) == "forced.reward"


def evaluate(given: DrawnEnvironment, found: Mapping[str, Dumped], store: Store, *others: RunCell) -> controls.Control:
    return controls.evaluate({"E": CELL}, {"E": given}, [cell("a", 0, "base"), *others], found, store)["E"]


def voided(store: Store, second: Arrays | None) -> tuple[list[RunCell], list[RunCell]]:
    rows = [cell("a", 0, "whole"), cell("b", 1, "other")]
    keep(store, "whole", forced())
    if second is not None:
        keep(store, "sample", second)
    asked = controls.again(CELL, DRAWN)
    record = DumpRecord(status=Status.OK, reason="", behaviour="sample" if second is not None else None)
    again = {asked.identifier: Dumped(key="k", record=record, reused=False)}
    return rows, controls.void(rows, {rows[0].identifier: asked}, again, {"E": DRAWN}, store)


def test_a_release_that_does_not_reproduce_itself_has_no_behaviour(store: Store) -> None:
    rows, found = voided(store, {**sample(forced()), "reset.state": np.zeros((3, 2))})
    assert (found[0].status, found[0].behaviour) == ("nondeterministic", None)
    assert found[0].reason == "reset.state differs between two processes of this release"
    assert found[1] == rows[1]


def test_a_release_that_does_keeps_it(store: Store) -> None:
    rows, found = voided(store, sample(forced()))
    assert found == rows


def test_one_that_could_not_be_asked_again_keeps_it(store: Store) -> None:
    rows, found = voided(store, None)
    assert found == rows


def test_one_whose_second_process_is_nondeterministic_is_void(store: Store) -> None:
    asked = controls.again(CELL, DRAWN)
    record = DumpRecord(status=Status.NONDETERMINISTIC, reason="led to another state", behaviour=None)
    second = {asked.identifier: Dumped(key="k", record=record, reused=False)}
    found = evaluate(DRAWN, dumped(store, CELL.identifier, "base", forced()) | second, store)
    assert found.reproduced == "no"


# Planted


def moved(output: str, by: float, rows: slice = slice(None)) -> Arrays:
    one = {name: array for name, array in forced().items() if name.startswith("forced")}
    array = one[f"forced.{output}"].copy()
    array[rows] = ~array[rows] if array.dtype == np.bool_ else array[rows] + array.dtype.type(by)
    return {**one, f"forced.{output}": array}


@pytest.mark.parametrize("output", ["state", "observation", "reward", "terminated"])
def test_a_fault_is_read_from_whichever_output_shows_it(store: Store, output: str) -> None:
    keep(store, "base", forced())
    keep(store, "moved", moved(output, 1e-2, slice(0, 2)))
    found = controls.planted_reading("base", "moved", store)
    assert found is not None
    assert (found.beyond, found.states) == (2, STATES)
    assert found.ratio > 1e3


def test_a_fault_within_the_envelope_is_not_seen(store: Store) -> None:
    keep(store, "base", forced())
    keep(store, "moved", moved("state", 2.0**-52))
    found = controls.planted_reading("base", "moved", store)
    assert found is not None
    assert 0 < found.ratio < 10
    assert found.beyond == 0


def evaluated(
    store: Store, second: Arrays | None, faulty: Arrays | None, given: DrawnEnvironment = DRAWN
) -> controls.Control:
    found = dumped(store, CELL.identifier, "base", forced())
    if second is not None:
        found |= dumped(store, controls.again(CELL, given).identifier, "sample", second)
    for plant in controls.recordings({"E": CELL}, {"E": given}) if faulty is not None else ():
        found |= dumped(store, plant.identifier, "moved", faulty or {}, description={"planted": "gravity"})
    return evaluate(given, found, store)


def test_a_baseline_that_another_release_repeats_need_not_be_asked_again(store: Store) -> None:
    found = dumped(store, CELL.identifier, "base", forced())
    assert evaluate(DRAWN, found, store).reproduced == "unknown"
    assert evaluate(DRAWN, found, store, cell("b", 1, "base")).reproduced == "yes"


def test_controls_that_are_as_they_should_be(store: Store) -> None:
    found = evaluated(store, sample(forced()), moved("state", 1e-6))
    assert (found.reproduced, found.planted, found.constant, found.reason) == ("yes", "seen", "gravity", "")
    assert found.ratio is not None
    assert 1e3 < found.ratio < math.inf
    assert not found.blind


def test_a_fault_that_is_not_seen_makes_the_audit_blind(store: Store) -> None:
    found = evaluated(store, sample(forced()), moved("state", 0.0))
    assert (found.planted, found.ratio, found.blind) == ("missed", 0.0, True)


@pytest.mark.parametrize("entries", [1, 3])
def test_another_shape_is_not_the_fault_that_was_planted(store: Store, entries: int) -> None:
    wide = moved("state", 1e-6)
    wide["forced.state"] = np.resize(wide["forced.state"], (*wide["forced.state"].shape[:2], entries))
    found = evaluated(store, sample(forced()), wide)
    assert (found.planted, found.ratio, found.blind) == ("unknown", None, False)
    assert "records another shape" in found.reason


def test_a_baseline_that_does_not_reproduce_itself_is_told(store: Store) -> None:
    found = evaluated(store, {**sample(forced()), "reset.state": np.zeros((3, 2))}, moved("state", 1e-6))
    assert (found.reproduced, found.reason) == ("no", "reset.state differs between two processes of this release")


def test_controls_that_could_not_be_run_are_unknown_and_not_blind(store: Store) -> None:
    found = evaluated(store, None, None)
    assert (found.reproduced, found.planted, found.blind) == ("unknown", "unknown", False)
    assert "could not be run" in found.reason
    nothing: dict[str, Dumped] = {}
    assert evaluate(DRAWN, nothing, store).reason == "the baseline has no dump"


def test_a_constant_that_cannot_be_found_is_told(store: Store) -> None:
    found = dumped(store, CELL.identifier, "base", forced())
    record = DumpRecord(status=Status.INCOMPARABLE, reason="it has no constant that could be moved", behaviour=None)
    found[controls.recordings({"E": CELL}, {"E": DRAWN})[0].identifier] = Dumped(key="k", record=record, reused=False)
    assert evaluate(DRAWN, found, store).reason.endswith("nothing planted: it has no constant that could be moved")
