"""Brute force for shuffled reports: exact laws of all histograms, as fractions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce

from sfumato import Epsilon

Row = Sequence[Fraction]
Histogram = tuple[int, ...]


def histogram_law(rows: Sequence[Row]) -> dict[Histogram, Fraction]:
    """The exact law of the counts of outputs, if person i has the output distribution ``rows[i]``."""

    def add(law: dict[Histogram, Fraction], row: Row) -> dict[Histogram, Fraction]:
        following: dict[Histogram, Fraction] = {}
        for counts, probability in law.items():
            for y, p in enumerate(row):
                if p:
                    more = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                    following[more] = following.get(more, Fraction(0)) + probability * p
        return following

    start = {(0,) * len(rows[0]): Fraction(1)}
    return reduce(add, rows, start)


def divergence(first: dict[Histogram, Fraction], second: dict[Histogram, Fraction], ratio: Fraction) -> Fraction:
    """The exact Σ (P - ratio·P')₊ of two laws of histograms."""
    zero = Fraction(0)
    return sum((max(p - ratio * second.get(counts, zero), zero) for counts, p in first.items()), zero)


def shuffled_laws(
    rows: Sequence[Row], value: int, other: int, people: int
) -> Iterator[tuple[dict[Histogram, Fraction], dict[Histogram, Fraction]]]:
    """The two laws of histograms, for all values that the other people can have."""
    for crowd in itertools.combinations_with_replacement(range(len(rows)), people - 1):
        others = [rows[z] for z in crowd]
        yield histogram_law([rows[value], *others]), histogram_law([rows[other], *others])


def ratios(epsilon: Epsilon) -> tuple[Fraction, Fraction]:
    """Fractions just below and just above e^ε."""
    low, high, shift = epsilon.exp_bounds()
    return Fraction(low, 2**shift), Fraction(high, 2**shift)
