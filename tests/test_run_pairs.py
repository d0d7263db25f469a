"""Pairs counted by behaviours are those of the view over all pairs; the stages run on made-up releases."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.verdicts import Verdict
from audit.comparisons import run_pairs
from audit.reports import summary
from audit.storage.store import Store
from bench import scale
from bench.synthetic import Size
from tests.stored_runs import RUN, cell, finish, judgement, release

LACKING = ("unavailable", "incomparable", "nondeterministic", "raised")
SHOWN = st.lists(st.sampled_from(["x", "y", "z", *LACKING]), min_size=1, max_size=7)


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shown=SHOWN, pairing=st.sampled_from(["all", "adjacent", "against"]), series=st.integers(1, 2))
def test_counts_are_those_of_all_pairs(store: Store, shown: list[str], pairing: str, series: int) -> None:
    releases = [release(str(place), place, series=str(place % series)) for place in range(len(shown))]
    cells = [
        cell(str(place), place, None if each in LACKING else each, status=each if each in LACKING else "")
        for place, each in enumerate(shown)
    ]
    run = replace(RUN, run_id=uuid.uuid4().hex, pairing=pairing, against="0" if pairing == "against" else None)
    store.comparisons.put_comparison("x", "y", run.reads, judgement(Verdict.IDENTICAL), [])
    store.comparisons.put_comparison("x", "z", run.reads, judgement(), [])
    finish(store, run, releases, cells)
    rows = store.query(
        "SELECT verdict, older_behaviour, newer_behaviour, adjacent FROM pairs_history WHERE run_id = ?", [run.run_id]
    ).rows
    counts = run_pairs.counts(store, run.run_id)
    assert counts.verdicts == Counter(verdict for verdict, *_ in rows)
    assert counts.silent == sum(verdict == "identical" and one != other for verdict, one, other, _ in rows)
    assert bool(counts.changed_in) == any(verdict == "changed" for verdict, *_ in rows)
    told = summary.summarise(store, run.run_id).neighbours
    assert len(told) == sum(adjacent or pairing == "against" for *_, adjacent in rows)


def test_an_audit_of_made_up_releases_goes_through_every_stage() -> None:
    found = scale.measure(Size(releases=40, behaviours=4))  # it checks its own verdicts
    assert set(found.seconds) == set(scale.PARTS)
    assert found.database > 0


def test_exponents_are_slopes() -> None:
    def measured(releases: int, seconds: float) -> scale.Measured:
        parts = dict.fromkeys(scale.PARTS, seconds)
        return scale.Measured(
            releases=releases, behaviours=1, seconds=parts, computed=parts, bytes={}, database=0, arrays=0
        )

    found = [measured(count, 3e-3 * count**1.5) for count in (100, 1_000, 10_000)]
    assert abs(scale.exponent(found, "storing") - 1.5) < 1e-9
