"""Counts of n people's reports, drawn directly from their law, without drawing any report.

People are independent and identically distributed, so a histogram of indices is multinomial with the law of the
outputs. Bits that are independent given the value have binomial counts once the number of people with each value is
known. Subsets are drawn value by value, for all people at once who have the same number of members left to draw. Each
of these laws equals the law of counts from individual reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.mechanisms.base import Mechanism

if TYPE_CHECKING:
    from numpy.random import Generator

    from sfumato.mechanisms.systems.subsets import SubsetSelection

__all__ = ["histogram_counts", "multinomial", "subset_counts", "subset_sums"]


def histogram_counts(mechanism: Mechanism, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw the histogram of the reports of n people."""
    # Rounding may turn a zero into a small negative number.
    return multinomial(generator, n, np.maximum(mechanism.estimator.expected_counts(truth), 0.0))


def multinomial(generator: Generator, n: int, weights: Floats) -> Integers:
    """Draw the number of people, out of n, for each outcome with these weights."""
    return generator.multinomial(n, weights / weights.sum()) if n else np.zeros(len(weights), np.int64)


def subset_counts(mechanism: SubsetSelection, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw the number of sets that contain each value, among the reports of n people."""
    forced = generator.binomial([n], float(mechanism.gamma))
    return subset_sums(generator, mechanism.size, forced, n - forced, truth[None]).ravel()


def subset_sums(
    generator: Generator, size: int, forced: Integers, free: Integers, truth: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Draw the number of sets that contain each value, for several collections at once, with a row per collection.

    Sets are drawn value by value. A free set contains the next value with probability (members to come)/(values left).
    A forced set contains its true value and a free set of one member less among the other values. The true value is the
    next one with probability truth/(truth of all values left). So the state of a set is the number of members to come,
    and whether its true value is still to come.
    """
    rows, values = truth.shape
    sums = np.empty((rows, values), np.int64)
    to_come = np.arange(size + 1)
    true_ahead, true_behind = np.zeros((2, rows, size + 1), np.int64)
    true_ahead[:, size - 1], true_behind[:, size] = forced, free
    ahead = np.cumsum(truth[:, ::-1], axis=1)[:, ::-1]
    true_next = np.divide(truth, ahead, out=np.zeros_like(truth), where=ahead > 0)
    for value in range(values):
        left = values - value
        true_now = generator.binomial(true_ahead, true_next[:, value, None])
        true_ahead -= true_now
        holding = generator.binomial(
            [true_ahead, true_behind], np.minimum(to_come / np.array([[max(left - 1, 1)], [left]]), 1.0)[:, None]
        )
        sums[:, value] = true_now.sum(axis=1) + holding.sum(axis=(0, 2))
        for people, members in zip((true_ahead, true_behind), holding, strict=True):
            people -= members
            people[:, :-1] += members[:, 1:]
        true_behind += true_now
    return sums
