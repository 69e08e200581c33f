"""Law of the counts of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.reports.count_laws import histogram_counts, multinomial, subset_sums
from sfumato.mechanisms.systems.base import OUTSIDE

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["draw_counts"]


def draw_counts(mechanism: Parts, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw the counts of n people: first by part, then among its protected and unprotected values."""
    if mechanism.numbering.reports_index:
        return histogram_counts(mechanism, generator, n, truth)
    *starts, end = mechanism.numbering.count_offsets
    parts, is_unprotected = len(mechanism.parts), mechanism.number_of == OUTSIDE
    protected = np.zeros(parts)
    np.add.at(protected, mechanism.part_of, np.where(is_unprotected, 0.0, truth))
    people = multinomial(generator, n, np.concatenate([protected, truth[mechanism.unprotected]]))
    gammas = np.array([float(part.gamma) for part in mechanism.parts])
    part_of_unprotected = mechanism.part_of[mechanism.unprotected]
    revealed = generator.binomial(people[parts:], gammas[part_of_unprotected])
    unrevealed = np.zeros(parts, np.int64)
    np.add.at(unrevealed, part_of_unprotected, people[parts:] - revealed)

    counts = np.zeros(end + len(revealed), np.int64)
    counts[end:] = revealed
    subsets: dict[tuple[int, int], list[int]] = {}
    for number, part in enumerate(mechanism.parts):
        members = part.system.draws().members
        if members:
            subsets.setdefault((len(part.domain), members), []).append(number)
            continue
        distribution = _of_part(mechanism, number, truth, protected)
        counts[starts[number] : starts[number] + part.outputs] = _index_part(
            part, generator, int(people[number]), int(unrevealed[number]), distribution
        )
    for (values, size), numbers in subsets.items():
        forced = generator.binomial(people[numbers], gammas[numbers])
        distribution = np.stack([_of_part(mechanism, number, truth, protected) for number in numbers])
        sums = subset_sums(generator, size, forced, people[numbers] - forced + unrevealed[numbers], distribution)
        for number, row in zip(numbers, sums, strict=True):
            counts[starts[number] : starts[number] + values] = row
    return counts


def _of_part(mechanism: Parts, number: int, truth: Floats, protected: Floats) -> Floats:
    """Return the distribution of a part's protected values among themselves."""
    distribution = truth[mechanism.protected(number)]
    return (
        distribution / protected[number] if protected[number] > 0 else np.full(len(distribution), 1 / len(distribution))
    )


def _index_part(part: Mixture, generator: Generator, n: int, unrevealed: int, truth: Floats) -> Integers:
    """Draw the histogram of a part that reports an index."""
    uniform = multinomial(generator, unrevealed, np.ones(part.outputs))
    return uniform + histogram_counts(part, generator, n, truth)
