"""What the store keeps beside verdicts: banks, nulls, certificates, sensitivities."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pytest

from analysis.verdicts import Verdict
from audit.failures import Status
from audit.reports import summary
from audit.stimuli import stimulus
from audit.stimuli.bank import Bank, Coverage
from audit.stimuli.stimulus import Batch
from audit.storage.records import (
    CertificateRecord,
    DumpRecord,
    NewDump,
    PlantedFault,
    SensitivityRecord,
    StoredArray,
)
from audit.storage.store import Store
from tests.stored_runs import RUN, audited, count, exercised, judgement

COVERAGE = Coverage(sources={"given": 1, "sought": 2}, features={"contact a b": 2, "terminates": 0}, fastest=1.5)
CERTIFICATE = CertificateRecord(
    first="x",
    second="y",
    reads=RUN.reads,
    certificate="holds",
    reason="a decade per 32.4 steps",
    steps_per_decade=32.4,
    twin_slowest=35.0,
    twin_fastest=30.0,
    curve=[0.0, 1e-16, float("inf")],
    twin_curves=[[0.0, 1e-16, 1.0], [0.0, 2e-16, 2.0]],
)


def bank() -> Bank:
    return Bank(
        states=np.array([[0.1, -0.0], [1 / 3, 5e-324], [1e300, 2.0]]),
        actions=np.array([[0.5], [1.0], [-1.0]], np.float32),
        source=np.array([0, 3, 3], np.uint8),
        coverage=COVERAGE,
    )


# Banks


def test_a_bank_comes_back_to_the_last_bit(store: Store) -> None:
    store.put_bank("k", bank())
    found = store.bank("k")
    assert isinstance(found, Bank)
    for name in ("states", "actions", "source"):
        one, other = getattr(found, name), getattr(bank(), name)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    assert found.coverage == COVERAGE
    assert store.bank("other") is None


@pytest.mark.parametrize("features", [None, {}])
def test_a_coverage_that_was_not_measured_stays_so(store: Store, features: dict[str, int] | None) -> None:
    store.put_bank("k", replace(bank(), coverage=replace(COVERAGE, features=features)))
    found = store.bank("k")
    assert isinstance(found, Bank)
    assert found.coverage.features == features


def test_a_bank_that_could_not_be_made_is_remembered_and_can_be_made_later(store: Store) -> None:
    store.put_bank("k", (Status.INCOMPARABLE, "why"))
    assert store.bank("k") == (Status.INCOMPARABLE, "why")
    store.put_bank("k", bank())
    assert isinstance(store.bank("k"), Bank)
    assert count(store, "internal.banks") == 1


def test_a_bank_whose_file_is_gone_is_made_anew(store: Store) -> None:
    store.put_bank("k", bank())
    for path in store.arrays.folder.rglob("*.bank.npz"):
        path.unlink()
    assert store.bank("k") is None
    store.put_bank("k", bank())
    assert isinstance(store.bank("k"), Bank)


# Dumps


def dump(behaviour: str, null: float | None, given: str = "s") -> NewDump:
    return NewDump(
        record=DumpRecord(status=Status.OK, reason="", behaviour=behaviour),
        key=f"key of {behaviour}",
        machine="here",
        stimulus=given,
        outputs={"forced.state": StoredArray(digest="d", dtype="float64", shape=(1,))},
        description={"planted": "gravity"},
        steps=1,
        seconds=0.0,
        null_ratio=null,
    )


@pytest.mark.parametrize("null", [None, 0.0, 2.5, float("inf")])
def test_the_null_of_a_behaviour_is_kept_once(store: Store, null: float | None) -> None:
    store.put_dumps([dump("b", null)])
    store.put_dumps([replace(dump("b", null), key="other")])
    assert store.query("SELECT * FROM internal.behaviours").rows == (("b", null),)


def test_what_a_release_said_of_itself_is_found_by_the_key_of_its_dump(store: Store) -> None:
    store.put_dumps([dump("b", None)])
    assert store.description("key of b")["planted"] == "gravity"
    assert store.description("nowhere") == {}


def test_what_a_behaviour_was_given_is_found_again_or_not_there(store: Store) -> None:
    batch = Batch(starts=np.ones((2, 1)), actions=np.zeros((2, 1)))
    given = stimulus.assemble({"forced": batch}, source=np.array([0, 3], np.uint8))
    store.put_stimuli([given])
    store.put_dumps([dump("b", None, given.digest)])
    assert store.stimulus_of("b")["forced.source"].tolist() == [0, 3]
    assert store.stimulus_of("nobody") == {}
    for path in store.arrays.folder.rglob("*.stimulus.npz"):
        path.unlink()
    assert store.stimulus_of("b") == {}


# Certificates


def test_a_certificate_stands_beside_its_pair(store: Store) -> None:
    audited(store, {"a": "y", "b": "x", "c": "z"})
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.AMPLIFIED), [])
    store.comparisons.put_certificate(CERTIFICATE)
    assert store.comparisons.certified(RUN.reads) == {("x", "y")}
    assert store.comparisons.certified("other") == set()
    found = store.query("SELECT older, newer, certificate, growth_steps_per_decade FROM pairs ORDER BY ALL").rows
    assert found == (("a", "b", "holds", 32.4), ("a", "c", None, None), ("b", "c", None, None))
    columns = "older, newer, certificate, steps_per_decade, twin_slowest, twin_fastest, curve, twin_curves"
    assert store.query(f"SELECT {columns} FROM certificates").rows == (
        ("a", "b", "holds", 32.4, 35.0, 30.0, CERTIFICATE.curve, CERTIFICATE.twin_curves),
    )
    assert summary.summarise(store, RUN.run_id).unexplained == ()


def test_a_pair_without_a_twin_is_kept_and_listed_for_a_person(store: Store) -> None:
    audited(store, {"a": "x", "b": "y"})
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.AMPLIFIED), [])
    bare = replace(
        CERTIFICATE,
        certificate="unexplained",
        reason="there is no twin",
        steps_per_decade=None,
        twin_slowest=None,
        twin_fastest=None,
        twin_curves=[],
    )
    store.comparisons.put_certificate(CERTIFICATE)
    store.comparisons.put_certificate(bare)
    assert store.query("SELECT certificate, twin_curves FROM certificates").rows == (("unexplained", []),)
    (listed,) = summary.summarise(store, RUN.run_id).unexplained
    assert (listed.older, listed.newer, listed.reason) == ("a", "b", "there is no twin")


def test_verdicts_are_told_by_pair_and_by_how_they_were_read(store: Store) -> None:
    store.comparisons.put_comparison("x", "y", RUN.reads, judgement(Verdict.AMPLIFIED), [])
    store.comparisons.put_comparison("x", "y", "other", judgement(), [])
    assert store.comparisons.verdicts(RUN.reads) == {("x", "y"): "amplified"}
    assert store.comparisons.verdicts("other") == {("x", "y"): "changed"}
    assert store.comparisons.verdicts("none") == {}


# Sensitivity


def test_a_sensitivity_measured_again_takes_the_place_of_the_first(store: Store) -> None:
    record = SensitivityRecord(
        matrix="m",
        environment="E",
        release="a",
        constant="gravity",
        relative=1e-9,
        ratio=float("inf"),
        states_beyond=3,
        states=4,
        detected=True,
        measured=datetime.datetime(2026, 1, 1),
    )
    store.comparisons.put_sensitivity([record, replace(record, relative=1e-10, ratio=1.0, detected=False)])
    store.comparisons.put_sensitivity([replace(record, ratio=5e3)])
    found = store.query("SELECT relative, ratio, detected FROM sensitivity ORDER BY relative").rows
    assert found == ((1e-10, 1.0, False), (1e-9, 5e3, True))
    store.comparisons.put_sensitivity([])


# What holds of an environment


def test_the_summary_tells_what_was_exercised(store: Store) -> None:
    audited(store, {"a": "x"}, environments=[exercised("F"), exercised(planted=PlantedFault.MISSED, planted_ratio=3.0)])
    told = summary.summarise(store, RUN.run_id).exercised
    assert [(each.environment, each.planted, each.planted_ratio) for each in told] == [
        ("F", "seen", 1e7),
        ("E", "missed", 3.0),
    ]
