"""The counts of n people's reports, drawn from their own law: no person and no report is ever made.

People are independent and alike, so a histogram of indices is multinomial with the law of the outputs. Bits that are
independent given the value have binomial counts once it is known how many people have each value. Subsets are drawn
value by value, for all people at once who have as many members still to draw. Each of these is the very law that
counting one report after the other has. The law of a family's counts is in the folder of the family.
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
    """Draw the histogram of the outputs of n people."""
    # Rounding may leave a zero below zero.
    return multinomial(generator, n, np.maximum(mechanism.estimator.expected_counts(truth), 0.0))


def multinomial(generator: Generator, n: int, weights: Floats) -> Integers:
    """Draw how n people fall on outcomes with these weights."""
    return generator.multinomial(n, weights / weights.sum()) if n else np.zeros(len(weights), np.int64)
