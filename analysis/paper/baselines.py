"""The paper's baselines: four ways to tell two arms apart that know nothing of constraints.

Three see pooled rows and ask whether they come of one distribution; the fourth is handed the correspondence of rows
that a paired draw has. Settings are those of the paper's protocol table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import blas
from scipy.spatial import distance

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Labelled = tuple[Singles, Singles]
Arm = Floats | Sequence[Floats]
"""Rows of columns: one array, or one for each trajectory."""

CONSTANT = 1e-12
"""A column that spreads less has no distribution to compare: the spread is what rounding left of a constant."""

CHUNK = 1000
"""Permutations to one matrix product: enough to keep it busy, with 4,000 pooled rows in 16 MB."""

CURTAILED = 0.1
"""A share of all permutations: once so many exceed, p is no smaller whatever the others do, and no level is so high.
They are spared; measured over the paper's catalogue, half of all tests end so."""

BANDWIDTH_ROWS = 200
"""Rows whose distances set the kernel's bandwidth; the median of 19,900 distances is steady enough."""

EPOCHS, PATIENCE = 300, 20
"""Passes over the training rows at most, and passes without a better validation after which training ends.

Paired arms are near-duplicate rows of opposite labels. A network trained to the end memorises them and tells held-out
rows by the inverse rule: below chance on arms that are the same.
"""


SEED = 0
"""Of the draws that a test makes. Arms have seeds; a test on the same two arms says the same again."""


class BaselineUnavailable(RuntimeError):
    """A baseline needs a package that is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a test says of two arms."""

    statistic: float
    p: float


def kernel_test(reference: Arm, test: Arm, subsample: int = 2000, permutations: int = 10_000) -> Outcome:
    """The unbiased squared maximum mean discrepancy under a Gaussian kernel, by permutation of the labels.

    Limits: it says that pooled rows differ, and never which law or constant; rows of one trajectory are not
    independent, and p is too small by that.
    """
    rng = np.random.default_rng(SEED)
    rows, labels = _pooled(reference, test, subsample, rng)
    kernel = _kernel(rows, rng)
    sums = kernel.sum(axis=1, dtype=np.float64)
    observed = _discrepancies(kernel, sums, labels[None])[0]
    exceeded = drawn = 0
    while drawn < permutations and exceeded <= CURTAILED * permutations:
        permuted = rng.permuted(np.tile(labels, (min(CHUNK, permutations - drawn), 1)), axis=1)
        exceeded += int((_discrepancies(kernel, sums, permuted) >= observed).sum())
        drawn += len(permuted)
    return Outcome(statistic=float(observed), p=(exceeded + 1) / (drawn + 1))


def _kernel(rows: Floats, rng: np.random.Generator) -> Singles:
    """Of all pairs of rows, in single precision; zero for a row with itself, which the unbiased estimate leaves out."""
    chosen = rng.choice(len(rows), min(BANDWIDTH_ROWS, len(rows)), replace=False)
    apart = distance.pdist(rows[chosen], "sqeuclidean")
    apart = apart[apart > 0]
    gamma = 1 / np.median(apart) if apart.size else 1.0
    kernel: Singles = np.exp((-gamma * distance.cdist(rows, rows, "sqeuclidean")).astype(np.float32))
    np.fill_diagonal(kernel, 0)
    return kernel


def _discrepancies(kernel: Singles, sums: Floats, members: Singles) -> Floats:
    """Of each row of memberships (0 or 1), the discrepancy between members and others.

    With the kernel's row sums at hand, what lies within the others and between the two follows from what lies within
    the members: one matrix product for a whole chunk, with half of the kernel because it is symmetric. Its entries are
    in single precision, their sums in double.
    """
    inside = float(members[0].sum())
    outside = len(kernel) - inside
    upper = blas.strmm(1.0, kernel.T, members.T, lower=1).T
    within = 2 * np.einsum("ij,ij->i", upper, members, dtype=np.float64)
    touching = members @ sums
    beyond = sums.sum() - 2 * touching + within
    alike = within / (inside * (inside - 1)) + beyond / (outside * (outside - 1))
    found: Floats = alike - 2 * (touching - within) / (inside * outside)
    return found


def ks_by_column(reference: Arm, test: Arm, subsample: int = 2000) -> tuple[Outcome | None, ...]:
    """Kolmogorov–Smirnov of each column, its p corrected for the number of columns tested.

    ``None`` for a column that is constant in both arms, even if at another value: it has no distribution.

    Limits: marginals only: two arms whose columns agree one by one pass, whatever relates them.
    """
    rng = np.random.default_rng(SEED)
    one, other = _subsampled(reference, subsample, rng), _subsampled(test, subsample, rng)
    tested = np.flatnonzero(np.maximum(np.ptp(one, axis=0), np.ptp(other, axis=0)) > CONSTANT)
    found: list[Outcome | None] = [None] * one.shape[1]
    for column in tested:
        result = stats.ks_2samp(one[:, column], other[:, column], method="asymp")
        found[column] = Outcome(statistic=float(result.statistic), p=min(1.0, float(result.pvalue) * len(tested)))
    return tuple(found)


def ks_test(reference: Arm, test: Arm) -> Outcome:
    """Kolmogorov–Smirnov of every column: the one that separates most, corrected for their number.

    Limits: it names a column, not a cause, and sees nothing in the relations between columns.
    """
    tested = [each for each in ks_by_column(reference, test) if each is not None]
    return min(tested, key=lambda each: (each.p, -each.statistic), default=Outcome(statistic=0.0, p=1.0))


def discriminator_test(reference: Arm, test: Arm, subsample: int = 3000) -> Outcome:
    """A classifier trained to tell the arms apart: the area under its curve on rows that it has not seen.

    Under the hypothesis the held-out labels are exchangeable given the scores, so the area's null distribution is that
    of Mann and Whitney.

    Limits: what a classifier of this kind and size can tell; another might tell more.
    """
    rng = np.random.default_rng(SEED)
    rows, labels = _pooled(reference, test, subsample, rng)
    parts = np.split(rng.permutation(len(rows)), [len(rows) * 5 // 10, len(rows) * 7 // 10])
    training, validation, (unseen, truth) = ((rows[part].astype(np.float32), labels[part]) for part in parts)
    network = _network(len(parts[0]))
    with _one_thread():
        return _area(_scores(network, training, validation, unseen), truth)


def _scores(network: Any, training: Labelled, validation: Labelled, unseen: Singles) -> Floats:
    """Of the unseen rows, at the pass over the training rows that validates best."""
    best, since, scores = -np.inf, 0, np.zeros(len(unseen))
    for _ in range(EPOCHS):
        network.partial_fit(*training, classes=[0, 1])
        area = _area(_probabilities(network, validation[0]), validation[1]).statistic
        since += 1
        if area > best:
            best, since, scores = area, 0, _probabilities(network, unseen)
        if since == PATIENCE:
            break
    return scores


def _probabilities(network: Any, rows: Singles) -> Floats:
    """In double precision, in which the tail of a rank test is not cut off at zero."""
    found: Floats = network.predict_proba(rows)[:, 1].astype(np.float64)
    return found


def _network(batch: int) -> Any:
    """Two hidden layers of 64; no penalty on weights, and one batch to an epoch."""
    try:
        from sklearn.neural_network import MLPClassifier
    except ImportError as missing:
        sentence = "The discriminator needs scikit-learn: install release-audit[baselines]."
        raise BaselineUnavailable(sentence) from missing
    return MLPClassifier((64, 64), alpha=0.0, batch_size=batch, learning_rate_init=1e-3, random_state=SEED)


def _one_thread() -> Any:
    """For matrices this small a second thread saves nothing, and on a busy machine waits: 44 s in place of 11."""
    return import_module("threadpoolctl").threadpool_limits(1)  # which scikit-learn brings


def _area(scores: Floats, labels: Singles) -> Outcome:
    ones, zeros = scores[labels == 1], scores[labels == 0]
    result = stats.mannwhitneyu(ones, zeros, alternative="greater")
    return Outcome(statistic=float(result.statistic) / (len(ones) * len(zeros)), p=float(result.pvalue))


def paired_difference_test(
    reference: Arm,
    test: Arm,
    healthy_reference: Arm,
    healthy_test: Arm,
    blocks: int = 32,
    floor: float = 1e-8,
) -> Outcome:
    """Row by row differences of paired arms, by blocks and columns, ranked against those of a healthy pair.

    A column without any difference is left out of the family; one whose differences all stay below the floor is in it
    but not ranked, for ranks have no scale and would tell last places apart. The statistic is the ratio of medians on
    the column that separates; of several that separate alike, the least.

    Limits: it needs the same starts and actions in both arms, which logged data rarely have; it names a column and no
    law.
    """
    found, healthy = _differences(reference, test, blocks), _differences(healthy_reference, healthy_test, blocks)
    largest = np.maximum(found, healthy).max(axis=0)
    ranked = np.flatnonzero(largest > floor)
    if not ranked.size:
        return Outcome(statistic=1.0, p=1.0)
    found, healthy = found[:, ranked], healthy[:, ranked]
    p = stats.mannwhitneyu(found, healthy, alternative="greater", method="asymptotic").pvalue
    now, usual = np.median(found, axis=0), np.median(healthy, axis=0)
    ratios = np.divide(now, usual, out=np.full_like(now, np.inf), where=usual > 0)
    first = np.lexsort((ratios, p))[0]
    return Outcome(statistic=float(ratios[first]), p=min(1.0, float(p[first]) * int((largest > 0).sum())))


def _differences(reference: Arm, test: Arm, blocks: int) -> Floats:
    """Blocks × columns: the mean difference in size, of contiguous blocks of as many rows each."""
    apart = np.abs(_rows(test) - _rows(reference))
    size = len(apart) // blocks
    means: Floats = apart[: size * blocks].reshape(blocks, size, -1).mean(axis=1)
    return means


def _rows(arm: Arm) -> Floats:
    return arm.reshape(-1, arm.shape[-1]) if isinstance(arm, np.ndarray) else np.concatenate(arm)


def _subsampled(arm: Arm, count: int, rng: np.random.Generator) -> Floats:
    rows = _rows(arm)
    return rows if len(rows) <= count else rows[rng.choice(len(rows), count, replace=False)]


def _pooled(reference: Arm, test: Arm, count: int, rng: np.random.Generator) -> tuple[Floats, Singles]:
    """Rows of both arms, standardised together, then drawn from each; and labels, 1 for those of the test."""
    both = np.concatenate([_rows(reference), _rows(test)])
    spread = both.std(axis=0)
    centre, unit = both.mean(axis=0), np.where(spread > CONSTANT, spread, 1.0)
    one, other = (_subsampled((_rows(arm) - centre) / unit, count, rng) for arm in (reference, test))
    labels = np.repeat(np.array([0, 1], np.float32), [len(one), len(other)])
    return np.concatenate([one, other]), labels
