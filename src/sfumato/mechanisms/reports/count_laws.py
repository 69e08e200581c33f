"""Counts of n people's reports, drawn directly from their law, without drawing any report.

People are independent and identically distributed, so a histogram of indices is multinomial with the law of the
outputs. Bits that are independent given the value have binomial counts once the number of people with each value is
known. Subsets are drawn value by value, for all people at once who have the same number of members left to draw. Each
of these laws equals the law of counts from individual reports. The count law of a family is in the family's folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.mechanisms.base import Mechanism

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["histogram_counts", "multinomial"]


def histogram_counts(mechanism: Mechanism, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw the histogram of the reports of n people."""
    # Rounding may turn a zero into a small negative number.
    return multinomial(generator, n, np.maximum(mechanism.estimator.expected_counts(truth), 0.0))


def multinomial(generator: Generator, n: int, weights: Floats) -> Integers:
    """Draw the number of people, out of n, for each outcome with these weights."""
    return generator.multinomial(n, weights / weights.sum()) if n else np.zeros(len(weights), np.int64)
