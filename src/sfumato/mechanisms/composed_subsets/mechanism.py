"""Composed subsets: two independent reports in one, a set of values and a set of blocks."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import EpsilonLike
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.nested import NestedMechanism
from sfumato.mechanisms.systems.subsets import SubsetSelection, scaled_size

__all__ = ["MOST_BLOCKS", "ComposedSubsets"]


#: Maximum number of blocks; the estimator inverts a matrix of blocks by blocks.
MOST_BLOCKS = 4096


class ComposedSubsets(NestedMechanism):
    """Composed subsets: report a random set of values at level ε and, independently, of blocks at level across - ε.

    It is for a :class:`Blocks` policy with a finite level across blocks; blocks may have any sizes. Both parts are
    :class:`SubsetSelection` mechanisms: one for the value, one for its block. A report is a bitmap: one bit per value
    in domain order, then one bit per block.

    Parameters
    ----------
    domain
        The values.
    blocks
        The block of each value, as labels or numbers in domain order.
    epsilon
        The level ε between values of one block.
    across
        The level between values of different blocks; finite and above ``epsilon``.
    sizes
        The numbers of values and of blocks in the two sets. By default, each part has the size that minimizes the
        expected squared error of the estimate from that part alone.
    thresholds
        The integers ⌊2^64·γ⌋ of the two parts that a stored spec holds, where γ is the probability that a set is forced
        to contain the truth. Omit them to compute them from the levels.
    coins
        Setting of the sampler: numerators, over 2^planes, of the probabilities with which it first includes a value and
        a block. They affect the speed, not the probabilities of the reports.
    planes
        Number of random bits per coin, from 1 to 8. It affects the speed, not the probabilities of the reports.

    Notes
    -----
    Both parts are subset selections (Ye and Barg 2018). Only the set of values distinguishes two values of one block,
    so the probabilities of a report for them differ by a factor of at most e^ε. Both sets distinguish values of
    different blocks, so there the factor is at most e^ε·e^(across-ε) = e^across.

    The estimator combines the two parts by generalized least squares at the uniform distribution: it corrects the
    estimated frequencies of the values, block by block, towards the estimated frequencies of the blocks. The proof is
    in ``docs/proofs/composed-subsets.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import ComposedSubsets
    >>> illnesses = Domain(["none", "flu", "hiv", "cancer"])
    >>> mechanism = ComposedSubsets(illnesses, ["mild", "mild", "grave", "grave"], "ln 2", "ln 6")
    >>> mechanism.outputs
    8
    >>> mechanism.matrix()[0].round(4).tolist()
    [0.3, 0.15, 0.15, 0.15, 0.1, 0.05, 0.05, 0.05]
    """

    name = "composed-subsets"

    def __init__(
        self,
        domain: Domain,
        blocks: Iterable[Any],
        epsilon: EpsilonLike,
        across: EpsilonLike,
        *,
        sizes: Sequence[int | None] = (None, None),
        thresholds: Sequence[int | str | None] = (None, None),
        coins: Sequence[int | None] = (None, None),
        planes: int | None = None,
    ) -> None:
        subject = "ComposedSubsets"
        self._read(domain, blocks, epsilon, across)
        if self.blocks > MOST_BLOCKS:
            hint = "Merge blocks, or use NestedCyclic."
            raise InvalidInput(subject, "the number of blocks", f"be at most {MOST_BLOCKS}", self.blocks, hint=hint)
        for parameter, pair in (("sizes", sizes), ("thresholds", thresholds), ("coins", coins)):
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise InvalidInput(subject, parameter, "be a pair, for values and for blocks", pair)
        parts = ((domain, self.epsilon), (Domain.range(self.blocks), self.across + -self.epsilon))
        if planes is None:
            # Both parts have the same number of planes: the greater of the two defaults.
            planes = max(SubsetSelection(*part, size).planes for part, size in zip(parts, sizes, strict=True))
        self.values, self.labels = (
            SubsetSelection(*part, size, threshold=threshold, coin=coin, planes=planes)
            for part, size, threshold, coin in zip(parts, sizes, thresholds, coins, strict=True)
        )
        self.planes = planes
        lanes = len(domain) + self.blocks
        self.layout = Layout(
            64 + 64 * planes * -(-lanes // 64),
            (Field.number(32, 32), Field.number(0, 32)),
            lanes=lanes,
            planes=planes,
            planes_start=64,
        )

    # -- the sampler -----------------------------------------------------------------------------------------

    def start(self, x: int) -> tuple[Any, Any]:
        return self.values.start(x), self.labels.start(int(self.block_of[x]))

    def step(self, state: tuple[Any, Any], draws: Draws) -> tuple[Any, Any] | Finished:
        """Run one step of the sampler; :meth:`sample` calls it until it returns :class:`Finished`.

        First both subset selections decide whether their set must contain the truth, then both flip their coins, then
        both resize their sets. In every stage the set of values comes before the set of blocks.

        Parameters
        ----------
        state
            The sampler states of the two subset selections: for the value, and for its block.
        draws
            The source of random decisions.

        Returns
        -------
        tuple or Finished
            The next pair of states, or ``Finished(report)``.
        """
        value, label = state
        if isinstance(label, Finished):
            return Finished(value.report | label.report << len(self.domain))
        if _stage(value, self.values) <= _stage(label, self.labels):
            return self.values.step(value, draws), label
        return value, self.labels.step(label, draws)

    def audit_surrogate(self) -> ComposedSubsets:
        blocks = [0, 0, 1, 2]
        sizes = [scaled_size(self.values.density, len(blocks)), scaled_size(self.labels.density, 3)]
        return self.from_parameters(Domain.range(len(blocks)), self.parameters() | {"blocks": blocks, "sizes": sizes})

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.values.outputs * self.labels.outputs

    def reports(self) -> Iterable[int]:
        pairs = itertools.product(self.labels.reports(), self.values.reports())
        return (value | label << len(self.domain) for label, value in pairs)

    def _parts(self, report: int) -> tuple[int, int]:
        """Return the set of values and the set of blocks of a report."""
        size = len(self.domain)
        return report & (1 << size) - 1, report >> size

    def probability(self, report: int, x: int) -> Fraction:
        value, label = self._parts(report)
        return self.values.probability(value, x) * self.labels.probability(label, int(self.block_of[x]))

    def guess_probability(self) -> Fraction:
        # A value in the first set whose block is in the second set is likeliest. If no such value exists, the two sets
        # are disjoint: chosen blocks with t values in total leave C(k - t, d) such sets of values.
        (value_in, value_out), (label_in, label_out) = self.values.likelihoods, self.labels.likelihoods
        size = len(self.domain)
        totals = _totals(np.bincount(self.block_of).tolist(), self.labels.size)
        disjoint = sum(count * math.comb(size - total, self.values.size) for total, count in totals.items())
        apart = Fraction(disjoint, self.outputs)
        greatest = (1 - apart) * value_in * label_in + apart * max(value_in * label_out, value_out * label_in)
        return greatest / size

    def column(self, report: int) -> list[Fraction]:
        value, label = self._parts(report)
        products = [[a * b for b in self.values.likelihoods] for a in self.labels.likelihoods]
        of_block = [products[0 if label >> j & 1 else 1] for j in range(self.blocks)]
        return [of_block[j][0 if value >> x & 1 else 1] for x, j in enumerate(self.block_of.tolist())]

    def separating(self, x: int, other: int) -> Iterator[int]:
        block, other_block = int(self.block_of[x]), int(self.block_of[other])
        if block == other_block:  # any set of blocks is valid
            other_block = (block + 1) % self.blocks
        yield self.values.separating(x, other) | self.labels.separating(block, other_block) << len(self.domain)

    def parameters(self) -> dict[str, Any]:
        parts = (self.values, self.labels)
        return {
            **super().parameters(),
            "sizes": [part.size for part in parts],
            "thresholds": [str(part.threshold) for part in parts],
            "coins": [part.coin for part in parts],
            "planes": self.planes,
        }


def _totals(sizes: Sequence[int], chosen: int) -> dict[int, int]:
    """Return the number of choices of ``chosen`` blocks for each total number of values."""
    # Indexed by the number of blocks chosen so far. Blocks of one size are chosen together: only their number matters.
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(chosen))]
    for size, count in collections.Counter(sizes).items():
        following: list[dict[int, int]] = [{} for _ in range(chosen + 1)]
        for before, totals in enumerate(ways):
            for more in range(min(count, chosen - before) + 1):
                choices, target = math.comb(count, more), following[before + more]
                for total, number in totals.items():
                    target[total + more * size] = target.get(total + more * size, 0) + number * choices
        ways = following
    return ways[chosen]


#: Stages of a subset's sampler.
_FRESH, _FLIPPING, _RESIZING, _FINISHED = range(4)


def _stage(state: Any, part: SubsetSelection) -> int:
    """Return the stage that the sampler of a part has reached."""
    if isinstance(state, Finished):
        return _FINISHED
    if len(state) == 1:
        return _FRESH
    return _FLIPPING if state[2] < len(part.domain) else _RESIZING
