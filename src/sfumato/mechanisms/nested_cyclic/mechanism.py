"""Nested cyclic designs: reports of about log2 k bits for blocks at two levels, with nearly the least error."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import EpsilonLike, Floats, Integers, checked_integer, checked_integers
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished
from sfumato.mechanisms.candidates import most_outputs
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mixture import ONE
from sfumato.mechanisms.nested import Column, NestedMechanism
from sfumato.mechanisms.nested_cyclic.choice import best_seed, most_patterns
from sfumato.mechanisms.nested_cyclic.patterns import HIGH_IN, HIGH_OUT, LOW_IN, LOW_OUT, Patterns
from sfumato.mechanisms.nested_cyclic.sizes import best_nested_sizes, nested_likelihoods, nested_thresholds
from sfumato.mechanisms.nested_cyclic.transforms import Spectrum, indicator_spectrum, inverse, spectrum
from sfumato.mechanisms.systems.designs.families import LARGEST_OUTPUTS
from sfumato.mechanisms.systems.subsets import scaled_size
from sfumato.policy import PairwisePolicy

__all__ = ["NestedCyclic"]


class NestedCyclic(NestedMechanism):
    """Nested cyclic design: report a shifted pattern of high blocks with a set of positions in every block.

    It is for a :class:`Blocks` policy with a finite level across blocks. A value has a block, numbered modulo B, and a
    position in it, numbered modulo the size b of the largest block. A *pattern* is a set of g *high* blocks, with a set
    of d positions in each of them and a set of d' positions in each other, *low* block. A report is the number of one
    of the m·B·b shifts of m patterns, an index of about log2 k bits. If blocks have the same size, the error is close
    to that of reports of all sets of these sizes, which would have k + B bits.

    Parameters
    ----------
    domain
        The k values.
    blocks
        The block of each value, as labels or numbers in domain order.
    epsilon
        The level ε between values of one block.
    across
        The level between values of different blocks; finite and above ``epsilon``.
    max_bits
        Maximum report size in bits for the default number of patterns. The default and the greatest is 6 bits more than
        the index of a value needs.
    high
        The number g of high blocks. By default, g, d and d' minimize the expected squared error of the estimated
        frequencies (the risk) from all sets of these sizes. Requires ``sizes``.
    sizes
        The pair (d, d'). Requires ``high``.
    patterns
        The number m of patterns. By default, it is the greatest that ``max_bits`` allows.
    seed
        The seed from which the patterns are derived. By default, it has the least risk among a few seeds.
    thresholds
        The integers 2^64·h, 2^64·γ and 2^64·γ' that a stored spec holds; see the Notes. Omit them to compute them from
        the levels.

    Notes
    -----
    The shifted pattern is uniform among those in which the block of the true value is high with probability h, and
    among those in which it is low otherwise. With probability γ if the block is high, or γ' if it is low, the shift of
    the positions is uniform among those that put the true value in the set of its block. Otherwise it is uniform among
    all.

    The probability of a report for a value has four levels, by the value's block (high or low) and its position (in the
    set or out). Up to rounding, high-in : high-out : low-in : low-out = e^across : e^(across-ε) : e^ε : 1. If d' = 0,
    sets of low blocks are empty and low-in does not occur. γ and γ' are rounded down so that in/out ≤ e^ε, then h so
    that high-in/low-out ≤ e^across.

    Shifting a value and its report alike leaves the probability unchanged. The least-squares estimate is therefore a
    filter, computed by Fourier transforms over blocks and positions. It inverts the law of the reports, so it is
    unbiased for any patterns. Patterns that look random make it nearly as good as an estimate from all sets: with m
    patterns, the risk is about 1 + 1/m times as large. The proof is in ``docs/proofs/nested-cyclic.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import NestedCyclic
    >>> mechanism = NestedCyclic(Domain.range(1200), [x // 50 for x in range(1200)], 1, 3, max_bits=15)
    >>> mechanism.bits, mechanism.patterns.count
    (15, 27)
    """

    name = "nested-cyclic"

    def __init__(
        self,
        domain: Domain,
        blocks: Iterable[Any],
        epsilon: EpsilonLike,
        across: EpsilonLike,
        *,
        max_bits: int | None = None,
        high: int | None = None,
        sizes: Sequence[int] | None = None,
        patterns: int | None = None,
        seed: int | None = None,
        thresholds: Sequence[int | str] | None = None,
    ) -> None:
        subject = "NestedCyclic"
        self._read(domain, blocks, epsilon, across)
        self.block_size = int(np.bincount(self.block_of).max())
        places = self.blocks * self.block_size
        if places > LARGEST_OUTPUTS:
            must = f"have at most {LARGEST_OUTPUTS} positions together, each as many as the largest"
            raise InvalidInput(subject, "blocks", must, places, hint="For larger blocks, use ComposedSubsets.")
        if (high is None) != (sizes is None):
            hint = "Pass both, or omit both to use the best ones."
            raise InvalidInput(subject, "high and sizes", "be given together", (high, sizes), hint=hint)
        if high is None or sizes is None:
            high, *sizes = best_nested_sizes(self.blocks, self.block_size, self.epsilon, self.across)
        high = checked_integer(subject, "high", high, 1, self.blocks - 1)
        most = self.block_size - 1
        in_high, in_low = checked_integers(
            subject, "sizes", sizes, (("in a high block", 1, most), ("in a low one", 0, most))
        )
        shape = (self.blocks, self.block_size, high, (in_high, in_low))
        self.thresholds = nested_thresholds(subject, self.epsilon, self.across, *shape)
        if thresholds is not None:
            names = ("high", "in a high block", "in a low one")
            stated = checked_integers(subject, "thresholds", thresholds, tuple((name, 0, ONE) for name in names))
            if stated != self.thresholds:
                must = f"be {list(self.thresholds)}, which the levels and sizes determine"
                raise InvalidInput(subject, "thresholds", must, list(thresholds))
        self.likelihoods = nested_likelihoods(*shape, self.thresholds)
        if patterns is None:
            patterns = most_patterns(len(domain), places, most_outputs(max_bits))
            if patterns == 0:
                shape_text = f"{self.blocks} blocks of up to {self.block_size} values"
                must = f"be at least {(places - 1).bit_length()} for {shape_text}"
                raise InvalidInput(subject, "max_bits", must, max_bits)
        patterns = checked_integer(subject, "patterns", patterns, 1, LARGEST_OUTPUTS // places)
        if seed is None:
            seed = best_seed(patterns, *shape, self.deviations)
        seed = checked_integer(subject, "seed", seed, 0, 2**32 - 1)
        #: The patterns whose shifts are the outputs.
        self.patterns = Patterns(patterns, *shape, seed)
        self.layout = Layout(64, (Field.number(48, 16), Field.number(32, 16), Field.number(0, 32)))

    @functools.cached_property
    def deviations(self) -> Floats:
        """The likelihoods minus 1, as doubles: high-in, high-out, low-in and low-out."""
        return np.array([float(level - 1) for pair in self.likelihoods for level in pair])

    @functools.cached_property
    def position_of(self) -> Integers:
        """The position of each value in its block, in domain order."""
        order = np.argsort(self.block_of, kind="stable")
        sizes = np.bincount(self.block_of)
        positions = np.empty(len(order), np.int64)
        positions[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return positions

    # -- the sampler -----------------------------------------------------------------------------------------

    def step(self, state: int, draws: Draws) -> Finished:
        block, position = int(self.block_of[state]), int(self.position_of[state])
        high = draws.bernoulli(self.thresholds[0], ONE)
        forced = draws.bernoulli(self.thresholds[1 if high else 2], ONE)
        of_status, members = self.patterns.tables[0 if high else 1]
        choices = members.shape[1] if forced else self.block_size
        row, place = divmod(draws.below(len(of_status) * choices), choices)
        pattern = row * self.patterns.count // len(of_status)
        shift = (position - int(members[row, place])) % self.block_size if forced else place
        return Finished(self._report(pattern, block - int(of_status[row]), shift))

    def _report(self, pattern: int, block_shift: int, shift: int) -> int:
        """Return the report of a pattern, shifted by blocks and by positions."""
        return (pattern * self.blocks + block_shift % self.blocks) * self.block_size + shift % self.block_size

    def audit_surrogate(self) -> NestedCyclic:
        shape, block_size = self.patterns, min(self.block_size, 3)
        sizes = [size and scaled_size(Fraction(size, self.block_size), block_size) for size in shape.sizes]
        blocks = [0] * block_size + [1] * block_size
        return NestedCyclic(
            Domain.range(len(blocks)),
            blocks,
            self.epsilon,
            self.across,
            high=1,
            sizes=sizes,
            patterns=min(shape.count, 2),
            seed=shape.seed,
        )

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.patterns.outputs

    @functools.cached_property
    def _of_level(self) -> list[Fraction]:
        """The likelihoods, by level."""
        return [level for pair in self.likelihoods for level in pair]

    def _levels(self, report: int, values: int | slice) -> Any:
        """Return the levels of values in a report."""
        row, shift = divmod(report, self.block_size)
        pattern, block_shift = divmod(row, self.blocks)
        blocks = (self.block_of[values] - block_shift) % self.blocks
        return self.patterns.levels[pattern, blocks, (self.position_of[values] - shift) % self.block_size]

    @functools.cached_property
    def _probabilities(self) -> list[Fraction]:
        """The probabilities of a report, by level."""
        return [level / self.outputs for level in self._of_level]

    def probability(self, report: int, x: int) -> Fraction:
        return self._probabilities[int(self._levels(report, x))]

    def column(self, report: int) -> list[Fraction]:
        return [self._of_level[level] for level in self._levels(report, slice(None)).tolist()]

    def guess_probability(self) -> Fraction:
        greatest = sorted(zip(self._of_level, range(4), strict=True), reverse=True)
        left = np.ones((self.patterns.count, self.blocks, self.block_size), bool)
        total = Fraction(0)
        for likelihood, level in greatest:
            occurs = left & (self._occurrences(level) > 0)
            total += int(occurs.sum()) * likelihood
            left &= ~occurs
        return total / (self.outputs * len(self.domain))

    def _occurrences(self, level: int) -> Integers:
        """Return how many values have a level in each report."""
        used = np.zeros((self.blocks, self.block_size))
        used[self.block_of, self.position_of] = 1.0
        if used.all():
            return np.broadcast_to(
                (self.patterns.levels == level).sum(axis=(1, 2))[:, None, None], self.patterns.levels.shape
            )
        transformed = spectrum(used)
        rows = [
            self._counts(transformed * indicator_spectrum(levels, level).conj()) for levels in self.patterns.batches()
        ]
        return np.concatenate(rows)

    def _counts(self, transformed: Spectrum) -> Integers:
        """Return tables of counts, rounded.

        Counts are at most N = 2^22, so the vectors have a norm of at most 2^11. The error of three transforms is of the
        order of 3·7u·log2 N·N with u = 2^-53 (Higham 2002, "Accuracy and Stability of Numerical Algorithms", theorem
        24.2): below 1e-6, and far below the 1/2 that rounding allows.
        """
        counts = inverse(transformed, self.patterns)
        rounded = np.rint(counts)
        assert np.abs(counts - rounded).max() < 0.25, "the rounding error of a transform is far below 1/4"
        return rounded.astype(np.int64)

    # -- audits of large domains -------------------------------------------------------------------------------

    def worst_columns(self, policy: Any) -> Iterator[Column] | None:
        """Return a few reports that include the worst of all reports for a policy, or None.

        Parameters
        ----------
        policy
            The policy that the mechanism is audited against.

        Returns
        -------
        Iterator of tuple or None
            Reports with the likelihoods of all values. None unless the policy is on pairs of values, and the patterns
            separate all of them; an audit then compares all reports.

        Notes
        -----
        If patterns separate all pairs, then for every two values of different blocks there is a report in which the
        first is high-in and the other low-out, the greatest ratio of all. For every two values of one block there is a
        report in which the first is in the set of the block and the other is not, with a high block and with a low one
        (unless d' = 0). So all pairs of a kind have the same greatest ratio.
        """
        if not isinstance(policy, PairwisePolicy) or not self._separates_all:
            return None
        return super().worst_columns(policy)

    @functools.cached_property
    def _kinds(self) -> list[tuple[int, int]]:
        """The pairs of levels in which a report separates two values of one block."""
        return [(HIGH_IN, HIGH_OUT), *([(LOW_IN, LOW_OUT)] if self.patterns.sizes[1] else [])]

    @functools.cached_property
    def _separates_all(self) -> bool:
        """Whether patterns separate all pairs of values, and high-in to low-out is the greatest ratio."""
        occurring = self._of_level if self.patterns.sizes[1] else self._of_level[:LOW_IN] + self._of_level[LOW_OUT:]
        if (max(occurring), min(occurring)) != (self._of_level[HIGH_IN], self._of_level[LOW_OUT]):
            return False
        within = [self._separations(first, second)[0, 1:] for first, second in self._kinds]
        return all(bool((counts > 0).all()) for counts in (*within, self._separations(HIGH_IN, LOW_OUT)[1:]))

    def _separations(self, first: int, second: int) -> Integers:
        """Return, for each difference of two values, the number of reports that put them on these levels."""
        total: Spectrum = np.zeros((self.blocks, self.block_size // 2 + 1), np.complex128)
        for levels in self.patterns.batches():
            total += (indicator_spectrum(levels, first) * indicator_spectrum(levels, second).conj()).sum(axis=0)
        return self._counts(total)

    def separating(self, x: int, other: int) -> Iterator[int]:
        """Yield reports in which x is in the set of its block and another value is not.

        An audit of a large domain compares the two values only in these reports.

        Parameters
        ----------
        x
            Index of the value in the set of its block.
        other
            Index of the value outside the set of its block.

        Yields
        ------
        int
            For values of one block, a report in which it is high, and one in which it is low unless the sets of low
            blocks are empty. For values of different blocks, a report in which only the block of x is high.
        """
        block, position = int(self.block_of[x]), int(self.position_of[x])
        away = block - int(self.block_of[other]), position - int(self.position_of[other])
        for first, second in self._kinds if away[0] == 0 else [(HIGH_IN, LOW_OUT)]:
            yield next(
                self._report(pattern, block - int(places[0, 0]), position - int(places[0, 1]))
                for pattern, levels in enumerate(self.patterns.levels)
                if len(places := np.argwhere((levels == first) & np.roll(levels == second, away, axis=(0, 1))))
            )

    # -- the spec ------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        return {
            **super().parameters(),
            "high": self.patterns.high,
            "sizes": list(self.patterns.sizes),
            "patterns": self.patterns.count,
            "seed": self.patterns.seed,
            "thresholds": [str(threshold) for threshold in self.thresholds],
        }
