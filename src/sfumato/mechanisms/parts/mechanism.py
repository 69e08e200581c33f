"""Mechanisms that reveal the part of a value, but not which value of the part it is."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, checked_integer, quantity
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import Description, InvalidInput, LimitExceeded, NoMechanism
from sfumato.mechanisms.base import Finished, Mechanism, surrogate_of
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.part_documents import part_documents, read_parts
from sfumato.mechanisms.parts.blocks import best_mixtures
from sfumato.mechanisms.parts.numbering import Numbering
from sfumato.mechanisms.provenance import is_library_mechanism
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import INFINITE_CODE, LARGEST_DENSE, Blocks, PairwisePolicy, Policy, Prior, representatives

__all__ = ["Parts"]


#: Mechanisms that a part may have, by name.
_KINDS: dict[str, type[Mixture]] = {
    kind.name: kind for kind in (RandomizedResponse, SubsetSelection, HadamardResponse, CyclicDesign)
}
#: Fields of the decisions of a part that reports an index: forced or not, column or value, block of columns.
_INDEX_FIELDS = (Field.number(32, 32), Field.number(0, 32), Field.number(64, 32))


class Parts(Mechanism):
    """Mechanism that reveals the part of a value, and randomizes the value within the part.

    Each part has a separate mixture over its *protected* values. A part may also have *unprotected* values, which no
    policy protects. An unprotected value is revealed with the probability γ of its part's mixture. Otherwise its report
    is a uniform report of the part, as likely as for a protected value outside the set. Familiar constructors return
    parts of one kind:

    - :func:`HighLowSubset`, :func:`HighLowHadamard`, :func:`HighLowCyclic` and :func:`UtilityOptimizedRR`: one part, in
      which the sensitive values are protected and harmless ones are not;
    - ``BlockMechanism``, another name of this class: many parts without unprotected values.

    Parameters
    ----------
    domain
        The values.
    part_of
        The number of each value's part, in domain order or with labels. Parts are numbered from 0 in order of first
        appearance.
    parts
        The mixture of each part, in the order of the numbers. Its domain must have as many values as the part has
        protected ones; value i stands for the i-th of these in domain order. Each must be a
        :class:`RandomizedResponse`, :class:`SubsetSelection`, :class:`HadamardResponse` or :class:`CyclicDesign`.
    unprotected
        Positions of the unprotected values in the domain, ascending; none by default.

    Notes
    -----
    A report names its part, so its probability is zero for values outside the part. Inside the part, its probabilities
    are those of the part's mixture (Acharya et al. 2020, "Context-Aware Local Differential Privacy", Sections 5 and 6).

    If every part reports an index, so does the whole mechanism: the outputs of the parts one after the other, then the
    unprotected values. Otherwise the encoding is "parted": the part's report in the low bits and the number of the part
    above it. The i-th unprotected value has the number of parts plus i above, and zeros below. Reports of all parts
    have the same length. The proof is in ``docs/proofs/parts.md``.

    Examples
    --------
    >>> import sfumato as sf
    >>> illnesses = sf.Domain(["none", "flu", "hiv", "cancer"])
    >>> policy = sf.Blocks(illnesses, ["mild", "mild", "grave", "grave"], "ln 3")
    >>> mechanism = sf.mechanisms.Parts.for_policy(policy)
    >>> mechanism.matrix().tolist()
    [[0.75, 0.25, 0.0, 0.0], [0.25, 0.75, 0.0, 0.0], [0.0, 0.0, 0.75, 0.25], [0.0, 0.0, 0.25, 0.75]]
    """

    name = "parts"

    def __init__(
        self, domain: Domain, part_of: Any, parts: Sequence[Mixture], unprotected: Iterable[int] | Integers = ()
    ) -> None:
        numbers = _checked_parts(domain, part_of)
        revealed = unprotected.tolist() if isinstance(unprotected, np.ndarray) else list(unprotected)
        last = len(domain) - 1
        positions = np.array([checked_integer("Parts", "unprotected", x, 0, last) for x in revealed], np.intp)
        if (np.diff(positions) <= 0).any():
            raise InvalidInput("Parts", "unprotected", "be in ascending order", revealed)
        is_protected = ~np.isin(np.arange(len(domain)), positions)
        sizes = np.bincount(numbers, weights=is_protected).astype(np.int64)
        if len(parts) != len(sizes):
            must = f"have {quantity(len(sizes), 'mechanism')}, one per part"
            raise InvalidInput("Parts", "parts", must, Description(quantity(len(parts), "mechanism")))
        for number, (part, size) in enumerate(zip(parts, sizes.tolist(), strict=True)):
            if not isinstance(part, tuple(_KINDS.values())):
                must = "be a RandomizedResponse, SubsetSelection, HadamardResponse or CyclicDesign"
                raise InvalidInput("Parts", f"the mechanism of part {number}", must, part)
            if len(part.domain) != size:
                must = f"be over {quantity(size, 'value')}, the protected ones of the part"
                raise InvalidInput("Parts", f"the mechanism of part {number}", must, part)
        self._assemble(domain, parts, numbers, is_protected)

    def _assemble(
        self, domain: Domain, parts: Sequence[Mixture], part_of: Integers, is_protected: npt.NDArray[np.bool_]
    ) -> None:
        """Set the mixtures, and the part and position of every value."""
        self.domain = domain
        self.parts = tuple(parts)
        self.part_of = part_of
        #: Position of each value among the protected ones of its part, or OUTSIDE.
        self.number_of = np.where(is_protected, _ranks(part_of, is_protected), OUTSIDE)
        self.unprotected = np.flatnonzero(~is_protected)
        self.numbering = Numbering(self.parts, self.unprotected)
        self._layouts = _layouts(self.parts)
        self.layout = max(self._layouts.values(), key=len)

    @classmethod
    def for_policy(cls, policy: Blocks, inner: str | None = None, *, max_bits: int | None = None) -> Parts:
        """Build the parts of least risk for a policy under which reports may reveal the block.

        The risk is the expected squared error of the estimated frequencies; see :meth:`Mechanism.risk`. It is a sum
        over blocks, so each block has the mixture of least exact risk.

        Parameters
        ----------
        policy
            A :class:`Blocks` policy with an infinite level ``across`` blocks, the default.
        inner
            The mechanism of every block: ``"rr"`` (randomized response), ``"subset"``, ``"hadamard"`` or ``"cyclic"``.
            By default, each block has the one of least risk among those that fit ``max_bits``. A block of a single
            value needs no noise.
        max_bits
            Maximum report size in bits, or None for no limit.

        Returns
        -------
        Parts
            A mechanism that obeys the policy.

        Raises
        ------
        InvalidInput
            If the level across blocks is finite, or ``inner`` is unknown.
        NoMechanism
            If reports need more than ``max_bits`` bits.
        """
        options = [cls(policy.domain, policy.block_of, parts) for parts in best_mixtures(policy, inner, max_bits)]
        fitting = [option for option in options if max_bits is None or option.bits <= max_bits]
        if not fitting:
            raise NoMechanism(
                f"reports of at most {quantity(max_bits or 0, 'bit')} cannot encode the blocks and their values. "
                f"Set max_bits to at least {min(option.bits for option in options)}."
            )
        return min(fitting, key=lambda option: (option.risk(1), option.bits)) if len(fitting) > 1 else fitting[0]

    # -- the sampler ---------------------------------------------------------------------------------------

    def start(self, x: int) -> tuple[int, Any]:
        return x, self.parts[self.part_of[x]].start(int(self.number_of[x]))

    def step(self, state: tuple[int, Any], draws: Draws) -> tuple[int, Any] | Finished:
        x, inner = state
        part = int(self.part_of[x])
        following = self.parts[part].step(inner, draws)
        if not isinstance(following, Finished):
            return x, following
        return Finished(self.numbering.of_value(x, part, following.report))

    @property
    def is_of_library(self) -> bool:
        return super().is_of_library and all(map(is_library_mechanism, self.parts))

    def audit_surrogate(self) -> Mechanism | None:
        # One small part for each kind of part, and a copy of the first one if there are several parts.
        revealing = set(self.part_of[self.unprotected].tolist())
        order = sorted(range(len(self.parts)), key=lambda number: len(self.parts[number].domain))
        kinds = {(type(self.parts[number]), number in revealing): number for number in order}
        chosen = list(kinds.values())
        parts, part_of, unprotected = list[Mixture](), list[int](), list[int]()
        for number in chosen + chosen[: len(self.parts) > 1]:
            small, revealed = surrogate_of(self.parts[number]), 2 * (number in revealing)
            if not isinstance(small, Mixture):
                return None
            part_of += [len(parts)] * (len(small.domain) + revealed)
            unprotected += range(len(part_of) - revealed, len(part_of))
            parts.append(small)
        return type(self)(Domain.range(len(part_of)), part_of, parts, unprotected)

    def layout_of(self, x: int) -> Layout:
        return self._layouts[_shape(self.parts[self.part_of[x]])]

    def layouts(self) -> Sequence[Layout]:
        return list(dict.fromkeys(self._layouts.values()))

    def layout_document(self) -> Any:
        # One layout per kind of part, in order of first appearance.
        return [layout.document() for layout in self._layouts.values()]

    # -- the stated law ------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.numbering.offsets[-1] + len(self.unprotected)

    def reports(self) -> Iterable[int]:
        return self.numbering.reports()

    def probability(self, report: int, x: int) -> Fraction:
        part, inner = self.numbering.parse(report)
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
        """Return the protected values of a part.

        Parameters
        ----------
        part
            The number of the part.

        Returns
        -------
        ndarray
            Their positions in the domain, in the order in which the part's mixture numbers them.
        """
        order, starts = self._by_part
        return order[starts[part] : starts[part + 1]]

    @functools.cached_property
    def _by_part(self) -> tuple[Integers, Integers]:
        """All protected values ordered by part, and the start of each part."""
        protected = np.flatnonzero(self.number_of != OUTSIDE)
        order = protected[np.lexsort((self.number_of[protected], self.part_of[protected]))]
        return order, np.searchsorted(self.part_of[order], np.arange(len(self.parts) + 1))

    def representatives(self) -> Iterable[int]:
        # One protected and one unprotected value of each kind of part.
        sides = 2 * self.part_of + (self.number_of == OUTSIDE)
        first: dict[tuple[Mixture, int], int] = {}
        for side, x in zip(*np.unique(sides, return_index=True), strict=True):
            first.setdefault((self.parts[side // 2], side % 2), int(x))
        return first.values()

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
        return ((self.numbering.of_part(0, report), self._likelihoods(0, report)) for report in reports)

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
            return self.numbering.revealed(x), likelihoods
        number = max(number, 0)  # an unprotected value that is never revealed has the same law as all others
        apart = int(self.number_of[other]) if other is not None and self.part_of[other] == part else OUTSIDE
        if apart in (OUTSIDE, number):
            apart = 1 if number == 0 else 0
        # If a part has a single value, every set contains it; report 0 is one of these sets.
        report = mixture.separating(number, apart) if len(mixture.domain) > 1 else 0
        return self.numbering.of_part(part, report), self._likelihoods(part, report)

    def _likelihoods(self, part: int, report: int) -> list[Fraction]:
        """Return the likelihoods of all values for a part's report, up to a common factor."""
        mixture = self.parts[part]
        high, low = mixture.likelihoods
        likelihoods = [Fraction(0)] * len(self.domain)
        for x in np.flatnonzero(self.part_of == part).tolist():
            number = int(self.number_of[x])
            likelihoods[x] = high if number != OUTSIDE and mixture.in_set(report, number) else low
        return likelihoods

    # -- the spec ------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        places = {"part_of": self.part_of.tolist(), "unprotected": self.unprotected.tolist()}
        return places | part_documents(self.parts)

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> Parts:
        keys = "part_of", "unprotected", "kinds", "kind"
        if set(parameters) != set(keys) or not isinstance(parameters["kinds"], list):
            raise InvalidInput("Parts", "parameters", f"have the keys {', '.join(keys)}", sorted(parameters))
        parts = read_parts("Parts", "part", parameters, _KINDS)
        return cls(domain, parameters["part_of"], cast("list[Mixture]", parts), parameters["unprotected"])


def _checked_parts(domain: Domain, part_of: Any) -> Integers:
    """Return the number of each value's part, or raise InvalidInput."""
    blocks = align(checked_domain("Parts", domain), part_of, "Parts", "part_of")
    try:
        numbers = np.asarray(blocks)
    except ValueError:  # lists of unequal lengths
        raise InvalidInput("Parts", "part_of", "be one sequence of integers", blocks) from None
    if numbers.shape != (len(domain),) or numbers.dtype.kind not in "iu" or (numbers < 0).any():
        must = f"be {len(domain)} non-negative integers, one per value"
        got = Description(f"{numbers.dtype} of shape {numbers.shape}")
        raise InvalidInput("Parts", "part_of", must, got)
    first_seen = list(dict.fromkeys(numbers.tolist()))
    if first_seen != list(range(len(first_seen))):
        hint = "Number the parts 0, 1, 2, … in domain order, or build the mechanism with for_policy."
        must = "be numbered from 0 in order of first appearance"
        got = Description(f"numbers in the order {first_seen[:10]}")
        raise InvalidInput("Parts", "part_of", must, got, hint=hint)
    return numbers.astype(np.int64)


def _ranks(part_of: Integers, is_protected: npt.NDArray[np.bool_]) -> Integers:
    """Return the number of protected values of the same part before each value."""
    order = np.argsort(part_of, kind="stable")
    before = np.concatenate([[0], np.cumsum(is_protected[order])])[:-1]
    starts = np.searchsorted(part_of[order], np.arange(part_of.max() + 1))
    ranks = np.empty(len(part_of), np.int64)
    ranks[order] = before - before[starts][part_of[order]]
    return ranks


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
