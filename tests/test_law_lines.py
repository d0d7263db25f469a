"""What is told of changed pairs by their laws: which broke, in whom, how far, and the constant behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.algebra.verdict import Verdict
from analysis.verdicts import Verdict as Compared
from audit.laws import law_lines
from audit.reports import summary
from audit.storage.records import AttributionRecord, ScreeningRecord
from audit.storage.store import Store
from tests.stored_runs import RUN, audited, judgement

PAIR = ("E", "old", "new")
OLD, NEW = "x", "y"
"""Behaviours."""
HELD = "digest of set"
"""The content of the reference set that the run is held against."""


def screening(tested: str = NEW, law: str = "energy", **changes: Any) -> ScreeningRecord:
    row = ScreeningRecord(
        reference_behaviour=OLD if tested == NEW else NEW,
        tested_behaviour=tested,
        laws="set",
        laws_digest=HELD,
        setting="shipped",
        law=law,
        reference_residual=1e-9,
        tested_residual=1e-2,
        ratio=1.2345e7,
        p=7.77e-5,
        broken=True,
        attainable=7.77e-5,
        key="k",
    )
    return replace(row, **changes)


def attribution(behaviour: str = NEW, law: str = "energy", **changes: Any) -> AttributionRecord:
    row = AttributionRecord(
        behaviour=behaviour,
        laws="set",
        laws_digest=HELD,
        setting="shipped",
        law=law,
        verdict=str(Verdict.PARAMETER_FAULT),
        explanation="m is 1.3, specified 1",
        parameters=["m"],
        fitted=[1.3],
        specified=[1.0],
        residual=1e-8,
        gap=1e-7,
        reason="one constant explains it",
        key="k",
    )
    return replace(row, **changes)


def unexplained(verdict: Verdict, law: str = "energy", **changes: Any) -> AttributionRecord:
    return attribution(
        law=law, verdict=str(verdict), explanation="", parameters=[], fitted=[], specified=[], residual=None, **changes
    )


HOLDS: dict[str, Any] = {"broken": False, "ratio": 1.0, "p": 0.51}


@pytest.fixture
def changed(store: Store) -> Store:
    """A run in which one release changed."""
    audited(store, {"old": OLD, "new": NEW})
    store.laws.hold(RUN.run_id, [HELD])
    store.comparisons.put_comparison(OLD, NEW, RUN.reads, judgement(), [])
    return store


def line(store: Store) -> str:
    told = law_lines.lines(store, RUN.run_id)
    assert list(told) == [PAIR]
    return told[PAIR]


def test_a_pair_that_was_held_against_nothing_has_no_line(changed: Store) -> None:
    assert law_lines.lines(changed, RUN.run_id) == {}


def test_a_broken_law_is_told_with_its_ratio_and_p(changed: Store) -> None:
    changed.laws.put_screenings([screening(), screening(tested=OLD, **HOLDS)])
    assert line(changed) == "energy broken, ratio 1.23e+07, p 7.8e-05"


@pytest.mark.parametrize(
    ("ratio", "p", "told"),
    [
        (2.6359, 0.009324, "ratio 2.64, p 9.3e-03"),
        (float("inf"), 1e-4, "ratio inf, p 1.0e-04"),
        (184.0, 0.0, "ratio 184, p 0.0e+00"),
        (1234.0, 0.00123456, "ratio 1.23e+03, p 1.2e-03"),
    ],
)
def test_sizes_have_three_digits_and_chances_two(changed: Store, ratio: float, p: float, told: str) -> None:
    changed.laws.put_screenings([screening(ratio=ratio, p=p)])
    assert line(changed) == f"energy broken, {told}"


def test_where_no_law_broke_those_that_hold_are_told(changed: Store) -> None:
    changed.laws.put_screenings(
        [
            screening(law=law, tested=tested, setting=setting, **HOLDS)
            for law in ("unit norm", "energy")
            for tested in (NEW, OLD)
            for setting in ("shipped", "dt = 0.005")
        ]
    )
    assert line(changed) == "neither breaks what the other keeps: energy, unit norm"


def test_constants_of_which_both_are_wrong_are_told_where_they_differ(changed: Store) -> None:
    changed.laws.put_screenings([screening(tested=tested, **HOLDS) for tested in (NEW, OLD)])
    changed.laws.put_attributions([attribution(), attribution(behaviour=OLD, explanation="m is 1.31, specified 1")])
    assert line(changed) == (
        "neither breaks what the other keeps: energy"
        "; energy: in old m is 1.31, specified 1, in new m is 1.3, specified 1"
    )


def test_a_law_is_not_explained_by_the_constants_of_another(changed: Store) -> None:
    changed.laws.put_screenings([screening(law="height")])
    changed.laws.put_attributions([attribution()])
    assert line(changed) == "height broken, ratio 1.23e+07, p 7.8e-05"


def test_the_older_release_may_be_the_one_that_is_wrong(changed: Store) -> None:
    changed.laws.put_screenings([screening(tested=OLD), screening(**HOLDS)])
    changed.laws.put_attributions([attribution(behaviour=OLD)])
    assert line(changed) == "in old: energy broken, ratio 1.23e+07, p 7.8e-05: m is 1.3, specified 1"


def test_each_of_two_may_break_a_law_that_the_other_keeps(changed: Store) -> None:
    changed.laws.put_screenings([screening(), screening(tested=OLD, law="length", ratio=50.0, p=2e-4)])
    changed.laws.put_attributions(
        [attribution(), attribution(behaviour=OLD, law="length", explanation="l is 2, specified 1")]
    )
    assert line(changed) == (
        "energy broken, ratio 1.23e+07, p 7.8e-05: m is 1.3, specified 1"
        "; in old: length broken, ratio 50, p 2.0e-04: l is 2, specified 1"
    )


def test_several_broken_laws_are_told_the_surest_first(changed: Store) -> None:
    changed.laws.put_screenings(
        [screening(law="a", p=3e-3, ratio=3.0), screening(law="b", p=1e-4, ratio=2.0), screening(law="c", **HOLDS)]
    )
    changed.laws.put_attributions([attribution(law="a")])
    assert line(changed) == "b broken, ratio 2, p 1.0e-04; a broken, ratio 3, p 3.0e-03: m is 1.3, specified 1"


def test_a_law_is_told_once_in_the_setting_that_shows_it_best(changed: Store) -> None:
    changed.laws.put_screenings([screening(p=5e-3, ratio=2.6), screening(setting="dt = 0.005", ratio=1e9)])
    assert line(changed) == "energy broken at dt = 0.005, ratio 1e+09, p 7.8e-05"


def test_between_settings_that_show_it_as_well_it_is_told_as_shipped(changed: Store) -> None:
    changed.laws.put_screenings([screening(setting="dt = 0.005", ratio=1e9), screening(ratio=3.0)])
    assert line(changed) == "energy broken, ratio 3, p 7.8e-05"


def test_the_explanation_that_leaves_least_is_told(changed: Store) -> None:
    changed.laws.put_screenings([screening()])
    changed.laws.put_attributions(
        [
            attribution(setting="coarse", explanation="m is 1.29, specified 1", residual=1e-4),
            attribution(),
            attribution(laws="other", explanation="l is 3, specified 1", residual=1e-12),
        ]
    )
    assert line(changed).endswith(": m is 1.3, specified 1")


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (Verdict.CONSISTENT, "its constants are as specified, so it is integrated otherwise"),
        (Verdict.NOT_EXPLICABLE, "no constant of the specification explains it"),
    ],
)
def test_what_no_constant_explains_is_told_so(changed: Store, verdict: Verdict, told: str) -> None:
    changed.laws.put_screenings([screening()])
    changed.laws.put_attributions([unexplained(verdict)])
    assert line(changed) == f"energy broken, ratio 1.23e+07, p 7.8e-05: {told}"


def test_a_law_without_constants_does_not_conceal_what_is_said_of_another(changed: Store) -> None:
    """A scaled observation breaks the unit norm first, and an energy that no constant explains."""
    changed.laws.put_screenings([screening(law="unit norm"), screening(setting="dt = 0.005")])
    changed.laws.put_attributions([unexplained(Verdict.NOT_EXPLICABLE, setting="dt = 0.005")])
    assert line(changed) == (
        "unit norm broken, ratio 1.23e+07, p 7.8e-05; energy broken at dt = 0.005, ratio 1.23e+07, p 7.8e-05"
        ": no constant of the specification explains it"
    )


def test_a_constant_of_the_other_release_is_not_told(changed: Store) -> None:
    changed.laws.put_screenings([screening()])
    changed.laws.put_attributions([attribution(behaviour=OLD)])
    assert line(changed) == "energy broken, ratio 1.23e+07, p 7.8e-05"


@pytest.mark.parametrize("verdict", [Compared.IDENTICAL, Compared.ROUNDING, Compared.AMPLIFIED])
def test_laws_are_told_only_of_what_changed(store: Store, verdict: Compared) -> None:
    audited(store, {"old": OLD, "new": NEW})
    store.laws.hold(RUN.run_id, [HELD])
    store.comparisons.put_comparison(OLD, NEW, RUN.reads, judgement(verdict), [])
    store.laws.put_screenings([screening()])
    assert law_lines.lines(store, RUN.run_id) == {}
    assert store.query("SELECT * FROM screenings").rows == ()


def test_every_pair_that_shows_the_behaviours_has_the_line(store: Store) -> None:
    audited(store, {"a": OLD, "b": NEW, "c": OLD})
    store.laws.hold(RUN.run_id, [HELD])
    store.comparisons.put_comparison(OLD, NEW, RUN.reads, judgement(), [])
    store.laws.put_screenings([screening(), screening(tested=OLD, **HOLDS)])
    broken = "energy broken, ratio 1.23e+07, p 7.8e-05"
    assert law_lines.lines(store, RUN.run_id) == {("E", "a", "b"): broken, ("E", "b", "c"): f"in b: {broken}"}
    assert store.query("SELECT older, newer, tested, broken FROM screenings ORDER BY ALL").rows == (
        ("a", "b", "a", False),
        ("a", "b", "b", True),
        ("b", "c", "b", True),
        ("b", "c", "c", False),
    )


def test_the_summary_has_the_line_beside_the_reason(changed: Store) -> None:
    assert [each.laws for each in summary.summarise(changed, RUN.run_id).changed] == [""]
    changed.laws.put_screenings([screening()])
    changed.laws.put_attributions([attribution()])
    (told,) = summary.summarise(changed, RUN.run_id).changed
    assert told.laws == "energy broken, ratio 1.23e+07, p 7.8e-05: m is 1.3, specified 1"


# The store


def test_what_is_screened_again_takes_the_place_of_what_was(changed: Store) -> None:
    changed.laws.put_screenings([screening(key="before")])
    changed.laws.put_screenings([screening(key="after", ratio=2.0)])
    changed.laws.put_attributions([attribution(key="before")])
    changed.laws.put_attributions([attribution(key="after", explanation="m is 2, specified 1")])
    assert (changed.laws.screened(), changed.laws.attributed()) == ({"after"}, {"after"})
    assert line(changed) == "energy broken, ratio 2, p 7.8e-05: m is 2, specified 1"


def test_attributions_are_those_of_releases(changed: Store) -> None:
    changed.laws.put_attributions([attribution(), unexplained(Verdict.CONSISTENT, behaviour="nobody's")])
    columns = "matrix, environment, release, laws, law, explanation, parameters, fitted, specified"
    assert changed.query(f"SELECT {columns} FROM attributions").rows == (
        ("m", "E", "new", "set", "energy", "m is 1.3, specified 1", ["m"], [1.3], [1.0]),
    )


def test_every_run_shows_what_its_own_reference_sets_found(changed: Store) -> None:
    """Another matrix with a set of the same name, and one without any, on the same behaviours."""
    other, without = (replace(RUN, run_id=name, matrix=name) for name in ("other", "without"))
    for run in (other, without):
        audited(changed, {"old": OLD, "new": NEW}, run)
    changed.laws.hold(other.run_id, ["digest of another set"])
    edited: dict[str, Any] = {"laws_digest": "digest of another set"}
    changed.laws.put_screenings([screening(), screening(ratio=2.0, **edited)])
    changed.laws.put_attributions([attribution(), attribution(explanation="m is 1.3, specified 2", **edited)])
    told = {
        RUN.run_id: "energy broken, ratio 1.23e+07, p 7.8e-05: m is 1.3, specified 1",
        other.run_id: "energy broken, ratio 2, p 7.8e-05: m is 1.3, specified 2",
    }
    for run_id in (RUN.run_id, other.run_id, without.run_id):
        assert law_lines.lines(changed, run_id).get(PAIR) == told.get(run_id)
        assert law_lines.line(changed, run_id, PAIR) == told.get(run_id, "")
        assert law_lines.of_behaviours(changed, run_id, [OLD, NEW]).get((OLD, NEW)) == told.get(run_id)
    assert changed.query("SELECT matrix, laws, ratio FROM screenings ORDER BY ALL").rows == (
        ("m", "set", 1.2345e7),
        ("other", "set", 2.0),
    )
    assert changed.query("SELECT matrix, release, explanation FROM attributions ORDER BY ALL").rows == (
        ("m", "new", "m is 1.3, specified 1"),
        ("other", "new", "m is 1.3, specified 2"),
    )
