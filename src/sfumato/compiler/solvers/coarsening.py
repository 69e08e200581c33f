"""A bound on the best answers to a question for many values: join values to bins.

Let a mechanism report for a bin what it reports for a value of the bin, drawn from p. If it obeyed rules v_x ≤
e^E(x,z)·v_z between values, it obeys the rule with the greatest of these epsilons between their bins. Its answers, with
the mean weights of the bins, are still unbiased and have the same variance at p. The least error over bins under these
rules is therefore a bound on the error over values. Little is lost if the weights of the answers change little within a
bin, and nothing if they do not change at all and the epsilons do not either.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.compiler.solvers.answers import Answers
from sfumato.compiler.solvers.slice import Slice
from sfumato.policy import LARGEST_DENSE, PairwisePolicy, Policy, Uniform, structure_of

__all__ = ["LARGEST_FINE", "classes_of", "coarse_slice", "coarse_slice_of_policy"]

#: Number of values above which bins give a better bound than a relaxation over the values, in the same time.
LARGEST_FINE = 64
#: Number of bins; the bound over them takes some ten seconds.
_BINS = 48
#: Factor by which epsilons are raised, so that rounding does not make a rule stricter.
_RAISED = 1 + 1e-12
#: Number of digits in which the weights of two values agree if no answer distinguishes them.
_DIGITS = 12


def classes_of(rows: Floats) -> npt.NDArray[np.int64]:
    """Return the class of each value; no answer distinguishes values of a class."""
    scale = float(np.abs(rows).max()) or 1.0
    _, first, labels = np.unique(np.round(rows / scale, _DIGITS), axis=1, return_index=True, return_inverse=True)
    return np.asarray(first.argsort().argsort()[labels.reshape(-1)], dtype=np.int64)


def coarse_slice(slice_: Slice) -> Slice | None:
    """Return the slice over bins of a slice with answers under a pairwise policy; None for another slice."""
    if slice_.answers is None or slice_.epsilons is None:
        return None
    bins = _bins(slice_.answers.rows, slice_.prior)
    count = int(bins.max()) + 1
    epsilons = np.zeros((count, count))
    np.maximum.at(epsilons, (bins[:, None], bins), slice_.epsilons)
    return _sliced(epsilons, bins, slice_.answers.rows, slice_.prior)


def coarse_slice_of_policy(policy: Policy, rows: Floats, prior: Floats) -> Slice | None:
    """Return the slice over bins of a policy with too many values for a slice; None unless its epsilons are known."""
    bins = _bins(rows - (rows @ prior)[:, None], prior)
    count = int(bins.max()) + 1
    simplest = structure_of(policy)
    if isinstance(simplest, Uniform):
        epsilons = np.full((count, count), float(simplest.epsilon))
    elif isinstance(policy, PairwisePolicy) and len(prior) <= LARGEST_DENSE:
        epsilons = np.zeros((count, count))
        np.maximum.at(epsilons, (bins[:, None], bins), policy.epsilon_matrix().floats)
    else:
        return None
    return _sliced(epsilons, bins, rows, prior)


def _bins(rows: Floats, prior: Floats) -> npt.NDArray[np.int64]:
    """Return the bin of each value: values with the same weights, or of about equal probability along one direction.

    The direction is the one in which the weights differ most. For a mean or prefixes it orders the values.
    """
    classes = classes_of(rows)
    if classes.max() < _BINS:
        return classes
    direction = np.linalg.svd(rows * np.sqrt(prior), full_matrices=False)[2][0] / np.sqrt(np.maximum(prior, 1e-12))
    order = np.argsort(direction, kind="stable")
    # A value belongs to the bin in which the middle of its probability lies.
    middle = np.cumsum(prior[order]) - prior[order] / 2
    bins = np.empty(len(prior), dtype=np.int64)
    bins[order] = np.minimum((middle * _BINS).astype(np.int64), _BINS - 1)
    return np.unique(bins, return_inverse=True)[1].astype(np.int64)


def _sliced(epsilons: Floats, bins: npt.NDArray[np.int64], rows: Floats, prior: Floats) -> Slice | None:
    """Return the slice over bins with these greatest epsilons and the mean weights of the bins."""
    count = len(epsilons)
    if count < 2:
        return None
    epsilons = epsilons * _RAISED
    np.fill_diagonal(epsilons, 0.0)
    for middle in range(count):
        epsilons = np.minimum(epsilons, epsilons[:, middle, None] + epsilons[middle])
    mass = np.bincount(bins, weights=prior).astype(np.float64)
    if not mass.min() > 0:
        return None
    means = np.array([np.bincount(bins, weights=row * prior) for row in rows]) / mass
    answers = Answers.of(means, np.arange(count), mass)
    coarse = Slice(None, mass, np.arange(count), epsilons=epsilons, answers=answers)
    return None if coarse.is_constant else coarse
