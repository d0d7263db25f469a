"""How data see a polynomial: beside the one that varies least, and where that is held out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.algebra.evidence import FOLDS, Evidence
from analysis.algebra.recovery import ROUNDING, least_varying

Floats = NDArray[np.float64]
TERMS = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
LAW = np.array([1.0, -2.0, 1.0])


def designs(parts: int, noise: float = 0.0, rows: int = 50) -> list[Floats]:
    """Of three columns, the last of which is twice the second less the first."""
    rng = np.random.default_rng(parts)
    found = []
    for _ in range(parts):
        free = rng.normal(size=(rows, 2))
        whole = np.column_stack([free, 2 * free[:, 1] - free[:, 0]])
        found.append(whole + noise * rng.normal(size=whole.shape))
    return found


def size(evidence: Evidence, coefficients: Floats) -> float:
    return float(np.linalg.norm(evidence.variation(coefficients)))


@pytest.mark.parametrize("parts", [1, 2, 3, 20])
def test_a_variation_is_that_of_the_data_whatever_they_are_cut_into(parts: int) -> None:
    cut = designs(parts, noise=0.1)
    whole = np.vstack(cut)
    lengths = np.linalg.norm(whole, axis=0)
    evidence = Evidence.of(cut)
    for coefficients in (LAW, np.array([0.0, 1.0, 0.0]), np.array([3.0, 1.0, -7.0])):
        expected = np.linalg.norm(whole @ coefficients) / np.linalg.norm(coefficients * lengths)
        assert size(evidence, coefficients) == pytest.approx(float(expected))
        assert size(evidence, 1e3 * coefficients) == pytest.approx(float(expected))


def test_the_least_is_what_recovery_finds() -> None:
    cut = designs(4, noise=0.1)
    found = least_varying(np.vstack(cut), TERMS)
    evidence = Evidence.of(cut)
    assert evidence.least == pytest.approx(found.smallest)
    assert size(evidence, found.coefficients) == pytest.approx(found.smallest)


def test_an_exact_law_leaves_rounding_and_never_zero() -> None:
    evidence = Evidence.of(designs(4))
    assert ROUNDING / 10 < evidence.least < 1e-14
    assert size(evidence, LAW) < 1e-14


def test_what_is_held_out_is_left_a_little_more_and_where_data_are_few_much_more() -> None:
    enough, few = Evidence.of(designs(8, noise=1e-3)), Evidence.of(designs(2, noise=1e-3, rows=2))
    assert enough.least < enough.held_out < 1.1 * enough.least
    assert few.held_out > 3 * few.least


def test_no_more_parts_are_held_out_than_is_worth_it() -> None:
    assert len(Evidence.of(designs(20)).factors) == FOLDS
    assert len(Evidence.of(designs(1)).factors) == 2


def test_a_polynomial_of_nothing_leaves_all() -> None:
    assert size(Evidence.of(designs(2)), np.zeros(3)) >= 1
