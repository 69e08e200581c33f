"""Law of the counts of subset selection with two sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.mixture import ONE
from sfumato.mechanisms.reports.count_laws import multinomial, subset_sums
from sfumato.mechanisms.systems.base import OUTSIDE

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["draw_counts"]


def draw_counts(mechanism: HighLowMixedSubsets, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw the counts of n people: first the size of each person's sets, then the sets and the revealed values."""
    sensitive = truth[mechanism.number_of != OUTSIDE]
    mass = float(sensitive.sum())
    distribution = sensitive / mass if mass > 0 else np.full(len(sensitive), 1 / len(sensitive))
    people = multinomial(generator, n, np.concatenate([[mass], truth[mechanism.unprotected]]))
    second = generator.binomial(people, mechanism.weight / ONE)
    *starts, end = mechanism.numbering.count_offsets
    counts = np.zeros(end + len(mechanism.unprotected), np.int64)
    for part, start, chosen in zip(mechanism.parts, starts, (people - second, second), strict=True):
        revealed = generator.binomial(chosen[1:], float(part.gamma))
        counts[end:] += revealed
        forced = generator.binomial(chosen[:1], float(part.gamma))
        free = chosen.sum() - revealed.sum() - forced
        members = part.system.draws().members
        if members:
            sums = subset_sums(generator, members, forced, free, distribution[None]).ravel()
            counts[start : start + len(sums)] = sums
        else:
            counts[start] = (forced + free)[0]
    return counts
