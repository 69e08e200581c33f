"""Mechanisms made of parts: a report may reveal the part of a value, but not which value of the part it is.

Every part has a separate mixture (``mixture.Mixture``) over its *protected* values. A part may also have
*unprotected* values, which no policy protects. With probability γ the report reveals such a value. Otherwise it is a
uniform report of the part, which is as likely as for a protected value outside its set. Block mechanisms have many
parts and no unprotected values; mechanisms for sensitive and harmless values have one part with unprotected values.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, quantity
from sfumato.domain import Domain
from sfumato.errors import LimitExceeded
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.provenance import is_library_mechanism
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import INFINITE_CODE, LARGEST_DENSE, PairwisePolicy, Policy, Prior, representatives

__all__ = ["KINDS", "PartitionedMechanism"]


#: Fields of the decisions of a part that reports an index: forced or not, column or value, block of columns.
_INDEX_FIELDS = (Field.number(32, 32), Field.number(0, 32), Field.number(64, 32))


class PartitionedMechanism(Mechanism):
    """Base class of mechanisms made of parts.

    ``part_of[x]`` is the part of value x. ``number_of[x]`` is its position among the part's protected values, or
    OUTSIDE.

    If every part reports an index, so does the whole mechanism: the outputs of the parts one after the other, then the
    unprotected values. Otherwise the encoding is "parted": the part's report in the low bits and the number of the part
    above it. The i-th unprotected value has the number of parts plus i above, and zeros below.
    """

    parts: tuple[Mixture, ...]
    part_of: Integers
    number_of: Integers

    def _assemble(self, domain: Domain, parts: Sequence[Mixture], part_of: Integers, number_of: Integers) -> None:
        """Set the parts, and the part and position of every value."""
        self.domain = domain
        self.parts = tuple(parts)
        self.part_of, self.number_of = part_of, number_of
        self.unprotected = np.flatnonzero(number_of == OUTSIDE)
        self.offsets = [0, *itertools.accumulate(part.outputs for part in parts)]
        #: Whether a report is an index through the outputs of all parts.
        self.reports_index = all(part.report_format.is_histogram for part in parts)
        self._unprotected_number = np.full(len(domain), OUTSIDE, dtype=np.int64)
        self._unprotected_number[self.unprotected] = np.arange(len(self.unprotected))
        self._layouts = _layouts(self.parts)
        self.layout = max(self._layouts.values(), key=len)

    # -- the sampler ---------------------------------------------------------------------------------------

    def start(self, x: int) -> tuple[int, Any]:
        return x, self.parts[self.part_of[x]].start(int(self.number_of[x]))

    def step(self, state: tuple[int, Any], draws: Draws) -> tuple[int, Any] | Finished:
        x, inner = state
        part = int(self.part_of[x])
        following = self.parts[part].step(inner, draws)
        if not isinstance(following, Finished):
            return x, following
        if following.report == OUTSIDE:
            return Finished(self.revealed(x))
        return Finished(self.of_part(part, following.report))

    @property
    def is_of_library(self) -> bool:
        return super().is_of_library and all(map(is_library_mechanism, self.parts))

    def layout_of(self, x: int) -> Layout:
        return self._layouts[_shape(self.parts[self.part_of[x]])]

    def layouts(self) -> Sequence[Layout]:
        return list(self._layouts.values())

    def layout_document(self) -> Any:
        """Return one layout per kind of part, in order of first appearance, as the spec states them."""
        return [layout.document() for layout in self._layouts.values()]

    # -- reports -------------------------------------------------------------------------------------------

    @functools.cached_property
    def count_offsets(self) -> list[int]:
        """First count of each part, of outputs or of bits, and last the first count of the unprotected values."""
        return [0, *itertools.accumulate(part.report_format.count_size for part in self.parts)]

    @functools.cached_property
    def body_bits(self) -> int:
        """Number of bits of the longest report of a part."""
        return max(part.bits for part in self.parts)

    def of_part(self, part: int, report: int) -> int:
        """Return a part's report as a report of the whole mechanism."""
        return self.offsets[part] + report if self.reports_index else part << self.body_bits | report

    def revealed(self, x: int) -> int:
        """Return the report that reveals an unprotected value."""
        number = int(self._unprotected_number[x])
        if self.reports_index:
            return self.offsets[-1] + number
        return (len(self.parts) + number) << self.body_bits

    def parse(self, report: int) -> tuple[int, int]:
        """Return (part, the part's report), or (OUTSIDE, unprotected value)."""
        if self.reports_index:
            if report >= self.offsets[-1]:
                return OUTSIDE, int(self.unprotected[report - self.offsets[-1]])
            part = bisect.bisect_right(self.offsets, report) - 1
            return part, report - self.offsets[part]
        head, body = report >> self.body_bits, report & (1 << self.body_bits) - 1
        if head >= len(self.parts):
            return OUTSIDE, int(self.unprotected[head - len(self.parts)])
        return head, body

    @property
    def outputs(self) -> int:
        return self.offsets[-1] + len(self.unprotected)

    def reports(self) -> Iterable[int]:
        of_parts = (self.of_part(j, report) for j, part in enumerate(self.parts) for report in part.reports())
        return itertools.chain(of_parts, (self.revealed(int(x)) for x in self.unprotected))

    def probability(self, report: int, x: int) -> Fraction:
        part, inner = self.parse(report)
        mixture: Mixture = self.parts[int(self.part_of[x])]
        if part == OUTSIDE:
            return mixture.gamma if inner == x else Fraction(0)
        if part != self.part_of[x]:
            return Fraction(0)
        if self.number_of[x] == OUTSIDE:
            return (1 - mixture.gamma) / mixture.outputs
        return mixture.probability(inner, int(self.number_of[x]))

    def guess_probability(self) -> Fraction:
        # An unprotected value is low in every column of its part, so some protected value is at least as likely.
        of_part = {part: len(part.domain) * part.guess_probability() for part in dict.fromkeys(self.parts)}
        revealed = sum((self.parts[int(self.part_of[x])].gamma for x in self.unprotected), Fraction(0))
        return (sum((of_part[part] for part in self.parts), Fraction(0)) + revealed) / len(self.domain)

    def protected(self, part: int) -> Integers:
        """Return the protected values of a part, in the part's order."""
        order, starts = self._by_part
        return order[starts[part] : starts[part + 1]]

    @functools.cached_property
    def _by_part(self) -> tuple[Integers, Integers]:
        """All protected values ordered by part, and the start of each part."""
        protected = np.flatnonzero(self.number_of != OUTSIDE)
        order = protected[np.lexsort((self.number_of[protected], self.part_of[protected]))]
        return order, np.searchsorted(self.part_of[order], np.arange(len(self.parts) + 1))

    def representatives(self) -> Iterable[int]:
        first: dict[Mixture, int] = {}
        for number, part in enumerate(self.parts):
            first.setdefault(part, int(self.protected(number)[0]))
        return [*first.values(), *self.unprotected[:1].tolist()]

    # -- the columns that can be the worst -----------------------------------------------------------------

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if isinstance(policy, PairwisePolicy):
            return (self._column(*pair) for pair in self._worst_pairs(policy))
        if not isinstance(policy, Prior):
            return None
        if len(self.parts) > 1 or (len(self.unprotected) and self.parts[0].threshold):
            if policy.side != "both":
                return None
            # Some report is impossible for some value, which only an infinite ε allows.
            return iter(
                [self._column(int(self.unprotected[0] if len(self.unprotected) else self.protected(0)[0]), None)]
            )
        weights, part = [policy.prior[x] for x in self.protected(0).tolist()], self.parts[0]
        reports = [part.extreme(weights, heaviest=heaviest) for heaviest in (False, True)] if len(weights) > 1 else [0]
        return ((self.of_part(0, report), self._likelihoods(0, report)) for report in reports)

    def _worst_pairs(self, policy: PairwisePolicy) -> Iterator[tuple[int, int]]:
        """Yield pairs of values that can have the worst ratio for a policy on pairs."""
        is_unprotected = (self.number_of == OUTSIDE).astype(np.int64)
        indices = representatives(policy.classes(), self.part_of, is_unprotected)
        if len(indices) > LARGEST_DENSE:
            raise LimitExceeded(
                f"an audit of {quantity(len(self.parts), 'part')} against a {policy.kind} policy compares "
                f"{quantity(len(indices), 'kind of value', 'kinds of values')}, more than the limit of "
                f"{LARGEST_DENSE}. Use a policy with fewer blocks."
            )
        codes = policy.epsilons_on(indices).codes.copy()
        np.fill_diagonal(codes, INFINITE_CODE + 1)
        part = self.part_of[indices]
        same = part[:, None] == part
        # Reports reveal an unprotected value, and the part of every value, so their epsilons must be infinite. The
        # least of these epsilons represents all of them.
        is_revealed = np.array(
            [is_unprotected[x] and self.parts[self.part_of[x]].threshold > 0 for x in indices], dtype=bool
        )
        revealed = ~same | is_revealed[:, None]
        yield from self._least_pair(indices, np.where(revealed, codes, INFINITE_CODE + 1))
        # Within a part some report is high for a value and low for another. The least epsilon represents all parts with
        # the same ratio.
        ratios = dict.fromkeys(mixture.likelihoods for mixture in self.parts)
        place = {likelihoods: number for number, likelihoods in enumerate(ratios)}
        ratio = np.array([place[mixture.likelihoods] for mixture in self.parts])[part]
        for number in range(len(ratios)):
            within = same & ~is_revealed[:, None] & (ratio == number)[:, None]
            yield from self._least_pair(indices, np.where(within, codes, INFINITE_CODE + 1))

    @staticmethod
    def _least_pair(indices: npt.NDArray[np.intp], codes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Yield the pair with the least finite level, if there is one."""
        x, other = divmod(int(np.argmin(codes)), codes.shape[1])
        if codes[x, other] < INFINITE_CODE:
            yield int(indices[x]), int(indices[other])

    def _column(self, x: int, other: int | None) -> tuple[int, list[Fraction]]:
        """Return the report that favours x over ``other``, or over any value if that is None, with its likelihoods."""
        part, number = int(self.part_of[x]), int(self.number_of[x])
        mixture = self.parts[part]
        if number == OUTSIDE and mixture.threshold:
            likelihoods = [Fraction(0)] * len(self.domain)
            likelihoods[x] = Fraction(1)
            return self.revealed(x), likelihoods
        number = max(number, 0)  # an unprotected value that is never revealed has the same law as all others
        apart = int(self.number_of[other]) if other is not None and self.part_of[other] == part else OUTSIDE
        if apart in (OUTSIDE, number):
            apart = 1 if number == 0 else 0
        # If a part has a single value, every set contains it; report 0 is one of these sets.
        report = mixture.separating(number, apart) if len(mixture.domain) > 1 else 0
        return self.of_part(part, report), self._likelihoods(part, report)

    def _likelihoods(self, part: int, report: int) -> list[Fraction]:
        """Return the likelihoods of all values for a part's report, up to a common factor."""
        mixture = self.parts[part]
        high, low = mixture.likelihoods
        likelihoods = [Fraction(0)] * len(self.domain)
        for x in np.flatnonzero(self.part_of == part).tolist():
            number = int(self.number_of[x])
            likelihoods[x] = high if number != OUTSIDE and mixture.in_set(report, number) else low
        return likelihoods


def _shape(part: Mixture) -> tuple[int, ...]:
    """Return the lanes and planes of a part, which determine its layout."""
    return (part.layout.lanes, part.layout.planes) if part.layout.lanes else ()


def _layouts(parts: Sequence[Mixture]) -> dict[tuple[int, ...], Layout]:
    """Return a layout for each kind of part, all with frames of one length."""
    several_blocks = any(len(part.layout.numbers) > 2 for part in parts)
    fields = _INDEX_FIELDS if several_blocks else _INDEX_FIELDS[:2]
    frame_bits = 128 if several_blocks else 64
    shapes = dict.fromkeys(_shape(part) for part in parts)
    for shape in shapes:
        if shape:
            frame_bits = max(frame_bits, 64 + 64 * shape[1] * -(-shape[0] // 64))
    return {
        shape: Layout(frame_bits, _INDEX_FIELDS[:1], lanes=shape[0], planes=shape[1], planes_start=64)
        if shape
        else Layout(frame_bits, fields)
        for shape in shapes
    }


# -- parts in a spec ---------------------------------------------------------------------------------------

#: Mechanisms that a part may have, by name.
KINDS: dict[str, type[Mixture]] = {
    kind.name: kind for kind in (RandomizedResponse, SubsetSelection, HadamardResponse, CyclicDesign)
}
