"""From two recorded behaviours to a verdict: each output, each kind of evidence."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from analysis.verdicts import Judgement, Verdict
from audit.asked.matrix import OUTPUTS
from audit.comparisons import comparing
from audit.comparisons.comparing import STEP_OUTPUTS
from audit.errors import StoreError
from audit.stimuli import stimulus
from audit.stimuli.stimulus import Batch
from audit.storage.store import Store
from tests.recorded_behaviours import NUDGES, STATES, Arrays, forced, keep, replayed, table, text

READS = comparing.reads(OUTPUTS)


def judged(store: Store, one: Arrays, other: Arrays, reads: Any = OUTPUTS) -> Judgement:
    keep(store, "a", one)
    keep(store, "b", other)
    found, evidence = comparing.judged(store, ("a", "b"), reads)
    assert [each.output for each in evidence] in ([], list(OUTPUTS))
    return found


def changed(array: Any, rows: Any = slice(None), by: float = 0.5) -> Any:
    """The array with some rows moved, or its flags turned."""
    moved = array.copy()
    moved[rows] = ~array[rows] if array.dtype == np.bool_ else array[rows] + array.dtype.type(by)
    return moved


def stepped(output: str, rows: Any = range(STATES), by: float = 0.5) -> Arrays:
    """A behaviour whose steps from those states, and from their nudged copies, come out otherwise."""
    one = forced()
    copies = [row + STATES * copy for copy in range(NUDGES) for row in rows]
    return one | {
        f"forced.{output}": changed(one[f"forced.{output}"], list(rows), by),
        f"nudged.{output}": changed(one[f"nudged.{output}"], copies, by),
    }


# Each output


def test_the_same_outputs_are_identical(store: Store) -> None:
    keep(store, "a", forced())
    comparing.compare(store, [("a", "a")], OUTPUTS, READS)
    assert store.comparisons.compared(READS) == {("a", "a")}
    found = store.query("SELECT verdict, first_step_separation, states_forced, beyond FROM internal.comparisons")
    assert found.rows == (("identical", 0.0, STATES, []),)
    assert store.query("SELECT count(*) FROM internal.evidence WHERE same_bits").rows == ((7,),)


@pytest.mark.parametrize("output", STEP_OUTPUTS)
def test_a_change_in_each_output_is_found_and_named(store: Store, output: str) -> None:
    found = judged(store, forced(), stepped(output, [1, 4]))
    assert found.verdict is Verdict.CHANGED
    assert found.outputs_changed == output
    assert found.reason.startswith(f"{output} only beyond the yardstick in 2 of {STATES} states")
    assert (found.states_forced, found.states_beyond, found.beyond) == (STATES, 2, (1, 4))
    assert found.paper_verdict is Verdict.IDENTICAL, "trajectories do not show it"


@pytest.mark.parametrize("name", ["reset.state", "reset.observation"])
def test_a_changed_reset_alone(store: Store, name: str) -> None:
    found = judged(store, forced(), {**forced(), name: changed(forced()[name], [0])})
    assert (found.verdict, found.outputs_changed) == (Verdict.CHANGED, "reset")
    assert found.reason.startswith("reset only: 1 of 3 seeds start elsewhere, ratio up to ")
    assert found.states_beyond == 0


def test_a_reset_that_moved_by_a_last_place_is_rounding(store: Store) -> None:
    moved = {name: np.nextafter(forced()[name], 9, dtype=forced()[name].dtype) for name in ("reset.state",)}
    found = judged(store, forced(), forced() | moved)
    assert found.verdict is Verdict.ROUNDING
    assert (found.first_step, found.first_step_ratio) == (0.0, 0.0)  # a reset is no step


def test_a_reset_of_another_shape_is_changed(store: Store) -> None:
    found = judged(store, forced(), {**forced(), "reset.observation": np.ones((3, 5), np.float32)})
    assert (found.verdict, found.outputs_changed) == (Verdict.CHANGED, "reset")


def test_a_reset_of_another_dtype_is_changed(store: Store) -> None:
    wider = forced()["reset.observation"].astype(np.float64)
    found = judged(store, forced(), {**forced(), "reset.observation": wider})
    assert (found.verdict, found.outputs_changed) == (Verdict.CHANGED, "reset")


def test_a_reset_that_observes_otherwise_than_a_step_can_be_compared(store: Store) -> None:
    odd = np.ones((3, 7), np.float32)
    found = judged(store, {**forced(), "reset.observation": odd}, {**forced(), "reset.observation": odd + 1})
    assert found.outputs_changed == "reset"


@pytest.mark.parametrize(
    ("spaces", "told"),
    [
        (
            b'{"action": {"high": ["2.0"], "type": "Box"}, "observation": {"type": "Discrete"}}',
            "the action space's high",
        ),
        (
            b'{"action": {"high": ["1.0"], "type": "Box"}, "observation": {"type": "Box"}}',
            "the observation space's type",
        ),
        (b"not json", "they differ"),
        (b"[]", "they differ"),
        (b"[" * 100_000, "they differ"),
        (b'{"action": {}, "observation": {"text": ' + b"[" * 900 + b"]" * 900 + b"}}", "observation space's t"),
        (b'{"action": 3, "observation": {}}', "they differ"),
    ],
)
def test_spaces_alone(store: Store, spaces: bytes, told: str) -> None:
    found = judged(store, forced(), {**forced(), "spaces": text(spaces)})
    assert (found.verdict, found.outputs_changed) == (Verdict.CHANGED, "spaces")
    assert found.reason.startswith("spaces: ")
    assert told in found.reason


def test_of_many_differences_between_spaces_some_are_told(store: Store) -> None:
    observed = {f"{number:03}" + "x" * 1000: number for number in range(100)}
    spaces = json.dumps({"action": {}, "observation": observed}).encode()
    found = judged(store, forced(), {**forced(), "spaces": text(spaces)})
    assert found.reason.endswith(" more differ")
    assert len(found.reason) < 2500


def test_equal_numbers_in_another_structure_are_changed(store: Store) -> None:
    found = judged(store, forced(), {**forced(), "structure": text(b'{"x": "<f8()"}')})
    assert (found.verdict, found.reason) == (Verdict.CHANGED, "observation has another structure")


def test_tables_without_a_transition_can_be_compared(store: Store) -> None:
    empty = {name: array[:0] if name.startswith("forced") else array for name, array in table().items()}
    other = {**empty, "forced.reward": empty["forced.reward"].astype(np.float32)}
    assert judged(store, empty, other).verdict is not None


def test_a_change_of_shape_is_changed(store: Store) -> None:
    other = forced()
    for name in ("horizon", "forced", "nudged"):
        key = f"{name}.observation"
        other[key] = np.concatenate([other[key]] * 2, axis=2)
    found = judged(store, forced(), other)
    assert (found.verdict, found.first_step, found.horizon) == (Verdict.CHANGED, math.inf, math.inf)
    assert found.reason == "observation has shapes 2 and 4"


def test_a_change_of_dtype_is_changed_however_close_the_values(store: Store) -> None:
    wider = {name: array.astype(np.float64) for name, array in forced().items() if name.endswith(".observation")}
    found = judged(store, forced(), forced() | wider)
    assert found.verdict is Verdict.CHANGED
    assert "observation has dtypes float32 and float64" in found.reason


# The yardstick


def test_a_last_place_is_rounding_and_1e_9_is_not(store: Store) -> None:
    for behaviour, by in (("b", 2**-52), ("c", 1e-9)):
        keep(store, behaviour, stepped("state", by=by))
    keep(store, "a", forced())
    assert comparing.judged(store, ("a", "b"), OUTPUTS)[0].verdict is Verdict.ROUNDING
    assert comparing.judged(store, ("a", "c"), OUTPUTS)[0].verdict is Verdict.CHANGED


def test_a_state_in_which_a_nudge_moves_as_much_says_nothing(store: Store) -> None:
    sensitive = forced()
    sensitive["nudged.terminated"] = changed(sensitive["nudged.terminated"], [2])
    found = judged(store, sensitive, stepped("terminated", [2]))
    assert (found.verdict, found.first_step_ratio) == (Verdict.ROUNDING, 1.0)


def test_the_same_steps_with_trajectories_apart_are_amplified(store: Store) -> None:
    found = judged(store, forced(), {**forced(), "horizon.state": forced()["horizon.state"] * 1.5})
    assert (found.verdict, found.paper_verdict) == (Verdict.AMPLIFIED, Verdict.CHANGED)
    assert found.reason.startswith("no difference after one step, state apart by")


def test_where_the_states_beyond_come_from_is_told(store: Store) -> None:
    batch = Batch(starts=forced()["forced.imposed"], actions=np.zeros((STATES, 1)))
    given = stimulus.assemble({"forced": batch}, source=np.array([0, 1, 1, 2, 3, 3], np.uint8))
    store.put_stimuli([given])
    keep(store, "a", forced(), stimulus=given.digest)
    keep(store, "b", stepped("state", [4, 5]), stimulus=given.digest)
    found, _ = comparing.judged(store, ("a", "b"), OUTPUTS)
    assert f"in 2 of {STATES} states (2 sought)" in found.reason


# Never compared


@pytest.mark.parametrize("name", ["horizon.imposed", "forced.imposed"])
def test_imposed_states_that_differ_are_never_compared(store: Store, name: str) -> None:
    keep(store, "a", forced())
    keep(store, "b", {**forced(), name: forced()[name] + 1e-15})
    comparing.compare(store, [("a", "b")], OUTPUTS, READS)
    columns = "verdict, paper_verdict, reason, first_step_separation, states_forced"
    assert store.query(f"SELECT {columns} FROM internal.comparisons").rows == (
        ("incomparable", "incomparable", "the states that were imposed read back differently", None, None),
    )
    assert store.query("SELECT count(*) FROM internal.evidence").rows == ((0,),)


def test_a_sign_of_zero_in_the_imposed_state_is_another_state(store: Store) -> None:
    one, other = ({**forced(), "forced.imposed": sign * np.zeros((STATES, 2))} for sign in (1, -1))
    assert judged(store, one, other).verdict is Verdict.INCOMPARABLE


def test_dumps_of_two_kinds_of_cpu_are_never_compared(store: Store) -> None:
    keep(store, "a", forced())
    keep(store, "b", {**forced(), "forced.reward": forced()["forced.reward"] + 1}, machine="other")
    found, evidence = comparing.judged(store, ("a", "b"), OUTPUTS)
    assert (found.verdict, evidence) == (Verdict.INCOMPARABLE, [])
    assert "machines of different kinds" in found.reason


# Other kinds of evidence


def test_a_replayed_environment_is_read_where_histories_part(store: Store) -> None:
    other = replayed()
    other["horizon.reward"] = changed(other["horizon.reward"], (1, slice(3, None)))
    found = judged(store, replayed(), other)
    assert (found.verdict, found.outputs_changed) == (Verdict.CHANGED, "reward")
    assert (found.states_forced, found.states_beyond) == (5 + 4, 1)
    assert found.reason.startswith("reward only beyond the yardstick in 1 of 9 states")


def test_a_replayed_environment_that_is_the_same_counts_its_steps(store: Store) -> None:
    found = judged(store, replayed(), {**replayed(), "reset.observation": changed(replayed()["reset.observation"])})
    assert (found.verdict, found.outputs_changed, found.states_forced) == (Verdict.CHANGED, "reset", 10)


@pytest.mark.parametrize("output", ["state", "observation", "reward", "terminated"])
def test_a_table_is_compared_exactly(store: Store, output: str) -> None:
    name = f"forced.{output}"
    one = table()
    by = 1 if one[name].dtype.kind == "i" else 1e-9
    found = judged(store, one, {**one, name: changed(one[name], [2], by)})
    assert (found.verdict, found.outputs_changed) == (Verdict.CHANGED, output)
    assert (found.states_forced, found.beyond) == (4, (2,))


# What is read, and what is kept


def test_outputs_that_are_not_read_are_kept_all_the_same(store: Store) -> None:
    keep(store, "a", forced())
    keep(store, "b", stepped("state"))
    for reads in (["observation"], ["state"]):
        comparing.compare(store, [("a", "b")], reads, comparing.reads(reads))
    found = store.query("SELECT reads, verdict FROM internal.comparisons ORDER BY reads").rows
    assert found == ((comparing.reads(["observation"]), "identical"), (comparing.reads(["state"]), "changed"))
    assert set(store.query("SELECT output FROM internal.evidence WHERE NOT same_bits").rows) == {("state",)}


def test_the_evidence_of_a_changed_reset_is_in_the_store(store: Store) -> None:
    keep(store, "a", forced())
    keep(store, "b", {**forced(), "reset.state": forced()["reset.state"] + 1})
    comparing.compare(store, [("a", "b")], OUTPUTS, READS)
    assert store.query("SELECT output FROM internal.evidence WHERE NOT same_bits").rows == (("reset",),)


def test_an_array_that_is_gone_stops_the_comparison_with_a_sentence(store: Store) -> None:
    keep(store, "a", forced())
    keep(store, "b", {**forced(), "forced.reward": forced()["forced.reward"] + 1})
    for path in store.arrays.folder.rglob("*.npy"):
        path.unlink()
    with pytest.raises(StoreError, match="missing or damaged"):
        comparing.compare(store, [("a", "b")], OUTPUTS, READS)
    assert store.comparisons.compared(READS) == set()
