"""Law of the counts of utility-optimized RAPPOR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.mechanisms.reports.count_laws import multinomial
from sfumato.mechanisms.two_level import ONE
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["draw_counts"]


def draw_counts(mechanism: UtilityOptimizedRappor, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw the number of reports with each bit set, among the reports of n people."""
    people, sensitive = multinomial(generator, n, truth), mechanism.is_sensitive
    true_bits = generator.binomial(people, np.where(sensitive, mechanism.own / ONE, mechanism.harmless / ONE))
    return true_bits + generator.binomial(n - people, np.where(sensitive, mechanism.other / ONE, 0.0))
