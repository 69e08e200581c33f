"""Laws of mechanisms with very many reports, as few groups of reports whose likelihoods have constant ratios."""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.mechanisms import (
    OUTSIDE,
    HighLowMixedSubsets,
    Mechanism,
    Mixture,
    Parts,
    UnaryEncoding,
)

__all__ = ["ReportGroup", "Structure", "structure_of"]


@dataclass(frozen=True, slots=True)
class ReportGroup:
    """Reports whose likelihoods for some values, and the bound ``least``, have constant ratios.

    ``probabilities`` are those of the group for each value in question. ``least`` is the sum, over the group, of a
    lower bound on the likelihood of each report for all values that other people may have.
    """

    probabilities: tuple[Fraction, ...]
    least: Fraction


class Structure(ABC):
    """Law of a mechanism: classes of values, kinds of pairs, and the reports of a few values in groups."""

    @abstractmethod
    def classes(self) -> Integers:
        """Return a class per value; the distributions of two values depend only on their classes, up to renaming."""

    @abstractmethod
    def kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        """Return a number per pair of values; pairs with equal numbers have the same pair of distributions."""

    @abstractmethod
    def groups(self, values: Sequence[int], others: Sequence[int] | None = None) -> list[ReportGroup]:
        """Return the reports of some values in groups, where other people have the values ``others``, or any.

        Reports that none of the values sends may be left out.
        """


@functools.singledispatch
def structure_of(mechanism: Mechanism) -> Structure | None:  # noqa: ARG001
    """Return the structure of a mechanism of the library, or None if none is known."""
    return None


class _MixtureStructure(Structure):
    """All values are in equally many sets, so the number of sets that contain both values of a pair determines it."""

    def __init__(self, mixture: Mixture) -> None:
        self._system = mixture.system
        self._high, self._low = (likelihood / mixture.outputs for likelihood in mixture.likelihoods)

    def classes(self) -> Integers:
        return self._system.symmetry_classes()

    def kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        return self._system.pair_kinds(values)

    def groups(self, values: Sequence[int], others: Sequence[int] | None = None) -> list[ReportGroup]:  # noqa: ARG002
        # The low likelihood bounds those of all values, whichever values the other people may have.
        return [
            ReportGroup(tuple(count * (self._high if member else self._low) for member in pattern), count * self._low)
            for pattern, count in self._system.pattern_counts(values).items()
        ]


structure_of.register(Mixture, _MixtureStructure)


class _BitsStructure(Structure):
    """Independent bits, one per value: all values are alike."""

    def __init__(self, size: int, true_bit: Fraction, other: Fraction) -> None:
        self._size, self._other = size, other
        # The likelihood of any value is that of all bits drawn with q, times a ratio that depends on its own bit.
        self._ratio = {True: true_bit / other, False: (1 - true_bit) / (1 - other) if other < 1 else Fraction(1)}

    def classes(self) -> Integers:
        return np.zeros(self._size, np.int64)

    def kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        return np.zeros((len(values), len(values)), np.int64)

    def groups(self, values: Sequence[int], others: Sequence[int] | None = None) -> list[ReportGroup]:  # noqa: ARG002
        q, ratio = self._other, self._ratio
        groups = []
        for bits in itertools.product((True, False), repeat=len(values)):
            mass = math.prod((q if bit else 1 - q for bit in bits), start=Fraction(1))
            groups.append(ReportGroup(tuple(mass * ratio[bit] for bit in bits), mass * min(ratio.values())))
        return groups


@structure_of.register
def _(mechanism: UnaryEncoding) -> Structure | None:
    true_bit, other = mechanism.bit_probabilities
    return _BitsStructure(len(mechanism.domain), true_bit, other) if other else None


class _PartsStructure(Structure):
    """Parts with one mixture each, and unprotected values that are revealed."""

    def __init__(self, mechanism: Parts) -> None:
        self._mechanism = mechanism
        self._structures = {part: _MixtureStructure(part) for part in mechanism.parts}

    def classes(self) -> Integers:
        mechanism = self._mechanism
        classes = np.zeros((len(mechanism.domain), 3), np.int64)
        classes[:, 0], classes[:, 1] = mechanism.part_of, mechanism.number_of == OUTSIDE
        for number in np.unique(mechanism.part_of).tolist():
            classes[mechanism.protected(number), 2] = self._structures[mechanism.parts[number]].classes()
        return np.unique(classes, axis=0, return_inverse=True)[1].reshape(-1)

    def kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        mechanism = self._mechanism
        kind_of = {part: kind for kind, part in enumerate(self._structures)}
        part_of, numbers = mechanism.part_of[values], mechanism.number_of[values]
        kind = np.array([kind_of[part] for part in mechanism.parts])[part_of]
        outside = numbers == OUTSIDE
        same = part_of[:, None] == part_of
        inner = np.zeros(same.shape, np.int64)
        for number in np.unique(part_of).tolist():
            (members,) = np.nonzero((part_of == number) & ~outside)
            inner[np.ix_(members, members)] = self._structures[mechanism.parts[number]].kinds(numbers[members])
        side = 2 * kind + outside
        codes = np.stack(np.broadcast_arrays(same, side[:, None], side, inner), axis=-1)
        flat = np.unique(codes.reshape(-1, 4), axis=0, return_inverse=True)[1]
        return flat.reshape(same.shape)

    def groups(self, values: Sequence[int], others: Sequence[int] | None = None) -> list[ReportGroup]:
        part_of = self._mechanism.part_of
        elsewhere = range(len(part_of)) if others is None else others
        parts_of_others = set(part_of[np.asarray(elsewhere, np.intp)].tolist())
        groups: list[ReportGroup] = []
        for number in dict.fromkeys(int(part_of[x]) for x in values):
            # A value of another part cannot send the reports of this part.
            inside = [x for x in values if part_of[x] == number]
            for group in self._of_part(self._mechanism.parts[number], inside):
                likelihoods = dict(zip(inside, group.probabilities, strict=True))
                everywhere = tuple(likelihoods.get(x, Fraction(0)) for x in values)
                groups.append(ReportGroup(everywhere, group.least * (parts_of_others == {number})))
        return [*groups, *self._revealing(values)]

    def _of_part(self, part: Mixture, values: Sequence[int]) -> Iterator[ReportGroup]:
        """Yield the groups of a part's reports, for values of the part."""
        # All sensitive values have one number in a part whose sets contain all of them.
        number_of, last = self._mechanism.number_of, len(part.domain) - 1
        number = {x: min(int(number_of[x]), last) for x in values if number_of[x] != OUTSIDE}
        numbers = list(dict.fromkeys(number.values()))
        for group in self._structures[part].groups(numbers):
            # An unprotected value has the low likelihood, which is the least, for all reports of its part.
            of_number = dict(zip(numbers, group.probabilities, strict=True))
            yield ReportGroup(tuple(of_number[number[x]] if x in number else group.least for x in values), group.least)

    def _revealing(self, values: Sequence[int]) -> Iterator[ReportGroup]:
        """Yield the reports that reveal an unprotected value."""
        mechanism = self._mechanism
        for x in values:
            if mechanism.number_of[x] == OUTSIDE:
                report = mechanism.numbering.revealed(x)
                yield ReportGroup(tuple(mechanism.probability(report, y) for y in values), Fraction(0))


structure_of.register(Parts, _PartsStructure)


class _TwoSizesStructure(_PartsStructure):
    """One part with sets of two sizes, drawn by a public coin."""

    def __init__(self, mechanism: HighLowMixedSubsets) -> None:
        super().__init__(mechanism)
        self._weights = mechanism.weights

    def classes(self) -> Integers:
        return np.asarray(self._mechanism.number_of == OUTSIDE, dtype=np.int64)

    def kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        is_harmless = self.classes()[values]
        return 2 * is_harmless[:, None] + is_harmless

    def groups(self, values: Sequence[int], others: Sequence[int] | None = None) -> list[ReportGroup]:  # noqa: ARG002
        groups = [
            ReportGroup(tuple(weight * p for p in group.probabilities), weight * group.least)
            for weight, part in zip(self._weights, self._mechanism.parts, strict=True)
            for group in self._of_part(part, values)
        ]
        return [*groups, *self._revealing(values)]


structure_of.register(HighLowMixedSubsets, _TwoSizesStructure)
