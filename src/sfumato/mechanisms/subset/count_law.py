"""The law of the counts of subset selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.mechanisms.subset.mechanism import SubsetSelection

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["draw_counts", "subset_sums"]


def draw_counts(mechanism: SubsetSelection, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw how many of n people's sets hold each value."""
    forced = generator.binomial([n], float(mechanism.gamma))
    return subset_sums(generator, mechanism.size, forced, n - forced, truth[None]).ravel()


def subset_sums(
    generator: Generator, size: int, forced: Integers, free: Integers, truth: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Draw how many sets hold each value, for several collections at once: a row each.

    A set is drawn value by value: of the values that are left it holds the next with probability (members to come)/
    (values left). A forced set holds its own value, which is the next with probability truth/(truth of all that are
    left), and besides a free set of one member less among the others. So all that matters of a set is how many members
    are still to come, and whether its own value is.
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
