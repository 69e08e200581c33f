"""The counts of n people's reports, drawn from their own law: no person and no report is ever made.

People are independent and alike, so a histogram of indices is multinomial with the law of the outputs. Bits that are
independent given the value have binomial counts once it is known how many people have each value. Subsets are drawn
value by value, for all people at once who have as many members still to draw. Each of these is the very law that
counting one report after the other has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.mechanisms import (
    ONE,
    OUTSIDE,
    HistogramEstimator,
    Mechanism,
    MixtureMechanism,
    PartitionedMechanism,
    SubsetSelection,
    UnaryEncoding,
    UtilityOptimizedRappor,
    estimator_for,
)

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["law_of_counts"]

#: Draws the counts of n people whose values follow a distribution.
Law = Callable[["Generator", int, Floats], Integers]


def law_of_counts(mechanism: Mechanism) -> Law | None:
    """The law of a mechanism's counts, or None where none is known but that of its reports."""
    if not mechanism.is_of_library:
        return None  # it may sample otherwise
    if mechanism.encoding == "index":
        return _histogram_law(mechanism)
    for kind, law in _LAWS:
        if isinstance(mechanism, kind):
            return functools.partial(law, mechanism)
    return None


def _histogram_law(mechanism: Mechanism) -> Law:
    estimator = estimator_for(mechanism)
    assert isinstance(estimator, HistogramEstimator)
    # Rounding may leave a zero below zero.
    return lambda generator, n, truth: _multinomial(generator, n, np.maximum(estimator.expected_counts(truth), 0.0))


def _multinomial(generator: Generator, n: int, weights: Floats) -> Integers:
    """Return how n people fall on outcomes with these weights."""
    return generator.multinomial(n, weights / weights.sum()) if n else np.zeros(len(weights), np.int64)


# -- independent bits --------------------------------------------------------------------------------------


def _unary(mechanism: UnaryEncoding, generator: Generator, n: int, truth: Floats) -> Integers:
    people = _multinomial(generator, n, truth)
    return generator.binomial(people, mechanism.own / ONE) + generator.binomial(n - people, mechanism.other / ONE)


def _high_low_bits(mechanism: UtilityOptimizedRappor, generator: Generator, n: int, truth: Floats) -> Integers:
    people, sensitive = _multinomial(generator, n, truth), mechanism.is_sensitive
    own = generator.binomial(people, np.where(sensitive, mechanism.own / ONE, mechanism.harmless / ONE))
    return own + generator.binomial(n - people, np.where(sensitive, mechanism.other / ONE, 0.0))


# -- subsets -----------------------------------------------------------------------------------------------


def _subset(mechanism: SubsetSelection, generator: Generator, n: int, truth: Floats) -> Integers:
    forced = generator.binomial([n], float(mechanism.gamma))
    return _subset_sums(generator, mechanism.size, forced, n - forced, truth[None]).ravel()


def _subset_sums(
    generator: Generator, size: int, forced: Integers, free: Integers, truth: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """How many sets hold each value, for several collections at once: a row each.

    A set is drawn value by value: of the values that are left it holds the next with probability (members to come)/
    (values left). A forced set holds its own value, which is the next with probability truth/(truth of all that are
    left), and besides a free set of one member less among the others. So all that matters of a set is how many members
    are still to come, and whether its own value is.
    """
    rows, values = truth.shape
    sums = np.empty((rows, values), np.int64)
    to_come = np.arange(size + 1)
    with_own, without_own = np.zeros((2, rows, size + 1), np.int64)
    with_own[:, size - 1], without_own[:, size] = forced, free
    ahead = np.cumsum(truth[:, ::-1], axis=1)[:, ::-1]
    own_next = np.divide(truth, ahead, out=np.zeros_like(truth), where=ahead > 0)
    for value in range(values):
        left = values - value
        own = generator.binomial(with_own, own_next[:, value, None])
        with_own -= own
        held = generator.binomial(
            [with_own, without_own], np.minimum(to_come / np.array([[max(left - 1, 1)], [left]]), 1.0)[:, None]
        )
        sums[:, value] = own.sum(axis=1) + held.sum(axis=(0, 2))
        for people, members in zip((with_own, without_own), held, strict=True):
            people -= members
            people[:, :-1] += members[:, 1:]
        without_own += own
    return sums


# -- parts -------------------------------------------------------------------------------------------------


def _parted(mechanism: PartitionedMechanism, generator: Generator, n: int, truth: Floats) -> Integers:
    *starts, end = mechanism.count_offsets
    parts, is_open = len(mechanism.parts), mechanism.number_of == OUTSIDE
    protected = np.zeros(parts)
    np.add.at(protected, mechanism.part_of, np.where(is_open, 0.0, truth))
    people = _multinomial(generator, n, np.concatenate([protected, truth[mechanism.unprotected]]))
    gammas = np.array([float(part.gamma) for part in mechanism.parts])
    part_of_open = mechanism.part_of[mechanism.unprotected]
    told = generator.binomial(people[parts:], gammas[part_of_open])
    untold = np.zeros(parts, np.int64)
    np.add.at(untold, part_of_open, people[parts:] - told)

    counts = np.zeros(end + len(told), np.int64)
    counts[end:] = told
    subsets: dict[tuple[int, int], list[int]] = {}
    for number, part in enumerate(mechanism.parts):
        if isinstance(part, SubsetSelection):
            subsets.setdefault((len(part.domain), part.size), []).append(number)
            continue
        own = _of_part(mechanism, number, truth, protected)
        counts[starts[number] : starts[number] + part.outputs] = _index_part(
            part, generator, int(people[number]), int(untold[number]), own
        )
    for (values, size), numbers in subsets.items():
        forced = generator.binomial(people[numbers], gammas[numbers])
        own = np.stack([_of_part(mechanism, number, truth, protected) for number in numbers])
        sums = _subset_sums(generator, size, forced, people[numbers] - forced + untold[numbers], own)
        for number, row in zip(numbers, sums, strict=True):
            counts[starts[number] : starts[number] + values] = row
    return counts


def _of_part(mechanism: PartitionedMechanism, number: int, truth: Floats, protected: Floats) -> Floats:
    """The distribution of a part's hidden values among themselves."""
    own = truth[mechanism.protected(number)]
    return own / protected[number] if protected[number] > 0 else np.full(len(own), 1 / len(own))


def _index_part(part: MixtureMechanism, generator: Generator, n: int, untold: int, truth: Floats) -> Integers:
    uniform = _multinomial(generator, untold, np.ones(part.outputs))
    law = _histogram_law(part)
    return uniform + law(generator, n, truth)


_LAWS: tuple[tuple[type[Mechanism], Any], ...] = (
    (UnaryEncoding, _unary),
    (UtilityOptimizedRappor, _high_low_bits),
    (SubsetSelection, _subset),
    (PartitionedMechanism, _parted),
)
