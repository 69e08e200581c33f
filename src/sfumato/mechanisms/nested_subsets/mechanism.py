"""Nested subsets: a set of blocks, and in every block a set of values; both are likelier to contain the true one."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, checked_integer, checked_integers, exceeds, floor_of_ratio
from sfumato.domain import Domain
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.base import Finished
from sfumato.mechanisms.blocks.nested import NestedMechanism
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.subset.mechanism import MOST_PLANES, cheap_planes, nth_set_bit, scaled_size
from sfumato.mechanisms.two_level import ONE, mixing_threshold

__all__ = [
    "NestedSubsets",
    "best_nested_sizes",
    "likelihood_moments",
    "nested_likelihoods",
    "nested_thresholds",
]

#: Maximum number of size choices that are all compared; beyond it, sizes are optimized by coordinate descent.
_MOST_CHOICES = 2**21

#: The true value; whether its block is to be high; whether its subset is forced to contain it; the next position; the
#: bits so far, first those of the blocks, then those of the values block by block.
NestedState = tuple[int, bool, bool, int, int]


class NestedSubsets(NestedMechanism):
    """Nested subsets: report a random set of blocks, and a random set of values in every block.

    It is for a :class:`Blocks` policy with a finite level across blocks and B blocks of m values each. An output is a
    set of g *high* blocks, a set of d values in each high block, and a set of d' values in each other, *low* block. The
    block of the true value is often high, and the set of that block often contains the true value. A report is a
    bitmap: one bit per value in domain order, then one bit per block, set if the block is high.

    Parameters
    ----------
    domain
        The values.
    blocks
        The block of each value, as labels or numbers in domain order. All blocks must have the same size.
    epsilon
        The level ε between values of one block.
    across
        The level between values of different blocks; finite and above ``epsilon``.
    high
        The number g of high blocks. By default, g, d and d' minimize the expected squared error of the estimated
        frequencies (the risk). Requires ``sizes``.
    sizes
        The pair (d, d'). Requires ``high``.
    thresholds
        The integers 2^64·h, 2^64·γ and 2^64·γ' that a stored spec holds; the Notes define h, γ and γ'. Omit them to
        compute them from the levels.
    coins
        Setting of the sampler: numerators, over 2^planes, of the probabilities with which it first includes a block, a
        value of a high block and a value of a low block. They affect the speed, not the probabilities of the reports.
    planes
        Number of random bits per coin, from 1 to 8. It affects the speed, not the probabilities of the reports.

    Notes
    -----
    The block of the true value is high with probability h; all other choices of high blocks are uniform. With
    probability γ if the true block is high, or γ' if it is low, its set is drawn from those that contain the true
    value. Otherwise that set is uniform, as are the sets of all other blocks.

    The probability of a report for a value has four levels, by the value's block (high or low) and its bit (in the set
    or out). Up to rounding, high-in : high-out : low-in : low-out = e^across : e^(across-ε) : e^ε : 1. If d' = 0, sets
    of low blocks are empty and low-in does not occur.

    γ and γ' are rounded down so that in/out ≤ e^ε, then h so that high-in/low-out ≤ e^across. The sampler flips coins
    for blocks and values, resizes the set of blocks, then the set of each block. The proof is in
    ``docs/proofs/nested-subsets.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import NestedSubsets
    >>> illnesses = Domain(["none", "flu", "hiv", "cancer"])
    >>> mechanism = NestedSubsets(illnesses, ["mild", "mild", "grave", "grave"], "ln 2", "ln 6")
    >>> mechanism.high, mechanism.sizes
    (1, (1, 0))
    >>> mechanism.matrix()[0].round(4).tolist()  # likelihoods 6 : 3 : 1 : 1
    [0.5455, 0.2727, 0.0909, 0.0909]
    """

    name = "nested-subsets"

    def __init__(
        self,
        domain: Domain,
        blocks: Iterable[Any],
        epsilon: EpsilonLike,
        across: EpsilonLike,
        *,
        high: int | None = None,
        sizes: Sequence[int] | None = None,
        thresholds: Sequence[int | str] | None = None,
        coins: Sequence[int] | None = None,
        planes: int | None = None,
    ) -> None:
        subject = "NestedSubsets"
        self._read(domain, blocks, epsilon, across)
        counts = np.bincount(self.block_of)
        if counts.min() != counts.max():
            got = Description(f"sizes from {counts.min()} to {counts.max()}")
            hint = "For blocks of different sizes, use ComposedSubsets."
            raise InvalidInput(subject, "blocks", "have the same size", got, hint=hint)
        self.block_size = int(counts[0])
        if (high is None) != (sizes is None):
            hint = "Pass both, or omit both to use the best ones."
            raise InvalidInput(subject, "high and sizes", "be given together", (high, sizes), hint=hint)
        if high is None or sizes is None:
            high, *sizes = best_nested_sizes(self.blocks, self.block_size, self.epsilon, self.across)
        self.high = checked_integer(subject, "high", high, 1, self.blocks - 1)
        most = self.block_size - 1
        self.sizes = checked_integers(
            subject, "sizes", sizes, (("in a high block", 1, most), ("in a low one", 0, most))
        )
        if thresholds is None:
            thresholds = nested_thresholds(
                subject, self.epsilon, self.across, self.blocks, self.block_size, self.high, self.sizes
            )
        self.thresholds = checked_integers(
            subject,
            "thresholds",
            thresholds,
            tuple((name, 0, ONE) for name in ("high", "in a high block", "in a low one")),
        )
        coin_sizes = ((self.high, self.blocks), *((size, self.block_size) for size in self._coin_sizes))
        best_planes = max(itertools.starmap(cheap_planes, coin_sizes))
        self.planes = checked_integer(subject, "planes", best_planes if planes is None else planes, 1, MOST_PLANES)
        best_coins = [round(Fraction(size << self.planes, among)) for size, among in coin_sizes]
        self.coins = checked_integers(
            subject,
            "coins",
            best_coins if coins is None else coins,
            tuple((name, 0, 2**self.planes) for name in ("of blocks", "in a high block", "in a low one")),
        )
        lanes = self.blocks + len(domain)
        self.layout = Layout(
            64 + 64 * self.planes * -(-lanes // 64),
            (Field.number(32, 32), Field.number(0, 32)),
            lanes=lanes,
            planes=self.planes,
            planes_start=64,
        )
        #: The values block by block, each block in domain order; this is the order of their coins.
        self.order = np.argsort(self.block_of, kind="stable")
        self._rank = np.empty_like(self.order)
        self._rank[self.order] = np.arange(len(domain))

    @property
    def _coin_sizes(self) -> tuple[int, int]:
        """Set sizes that the coins of values in high and in low blocks aim for."""
        # A set of size 0 is emptied at once. So if low blocks are empty, all values may have the coins of high blocks,
        # and a low block that becomes high needs few resizing steps.
        return (self.sizes[0], self.sizes[1] or self.sizes[0])

    # -- the sampler -----------------------------------------------------------------------------------------

    def start(self, x: int) -> tuple[int]:
        return (x,)

    def step(self, state: tuple[int] | NestedState, draws: Draws) -> NestedState | Finished:
        if len(state) == 1:
            block_threshold, in_high, in_low = self.thresholds
            high = draws.bernoulli(block_threshold, ONE)
            return state[0], high, draws.bernoulli(in_high if high else in_low, ONE), 0, 0
        x, high, forced, position, bits = state
        blocks, lanes = self.blocks, self.layout.lanes
        if position < blocks:
            bits |= draws.bernoulli(self.coins[0], 2**self.planes) << position
        elif position < lanes:
            block_high = bits >> (position - blocks) // self.block_size & 1
            bits |= draws.bernoulli(self.coins[1 if block_high else 2], 2**self.planes) << position
        elif position == lanes:
            true_block = 1 << int(self.block_of[x])
            chosen, is_done = _resize_step(bits & (1 << blocks) - 1, blocks, self.high, draws)
            bits = bits >> blocks << blocks | chosen
            if not is_done:
                return x, high, forced, position, bits
            if high and not chosen & true_block:
                bits ^= nth_set_bit(chosen, draws.below(self.high)) | true_block
            elif not high and chosen & true_block:
                bits ^= nth_set_bit(chosen ^ (1 << blocks) - 1, draws.below(blocks - self.high)) | true_block
        else:
            block = position - lanes - 1
            first, everything = blocks + block * self.block_size, (1 << self.block_size) - 1
            size = self.sizes[0 if bits >> block & 1 else 1]
            before = bits >> first & everything
            chosen, is_done = _resize_step(before, self.block_size, size, draws)
            if is_done and forced and size and block == self.block_of[x]:
                true_value = 1 << int(self._rank[x]) - block * self.block_size
                if not chosen & true_value:
                    chosen ^= nth_set_bit(chosen, draws.below(size)) | true_value
            bits ^= (before ^ chosen) << first
            if not is_done:
                return x, high, forced, position, bits
            if block == blocks - 1:
                return Finished(self._in_report_order(bits))
        return x, high, forced, position + 1, bits

    def audit_surrogate(self) -> NestedSubsets:
        block_size = min(self.block_size, 3)
        sizes = [size and scaled_size(Fraction(size, self.block_size), block_size) for size in self.sizes]
        blocks = [0] * block_size + [1] * block_size
        return self.from_parameters(
            Domain.range(len(blocks)), self.parameters() | {"blocks": blocks, "high": 1, "sizes": sizes}
        )

    def _in_report_order(self, bits: int) -> int:
        """Return the report with values in domain order and then blocks, from bits with blocks first."""
        lanes = self.layout.lanes
        row = np.unpackbits(np.frombuffer(bits.to_bytes(-(-lanes // 8), "little"), np.uint8), bitorder="little")
        report = np.concatenate([row[self.blocks + self._rank], row[: self.blocks]])
        return int.from_bytes(np.packbits(report, bitorder="little").tobytes(), "little")

    # -- the stated law --------------------------------------------------------------------------------------

    @functools.cached_property
    def likelihoods(self) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
        """The four probabilities that a report can have for a value, times the number of outputs.

        The pairs are ((high-in, high-out), (low-in, low-out)): "in" values have their bit set in the report, "out"
        values do not. If all reports were equally likely, all four numbers would be 1.
        """
        return nested_likelihoods(self.blocks, self.block_size, self.high, self.sizes, self.thresholds)

    @property
    def outputs(self) -> int:
        in_high, in_low = (math.comb(self.block_size, size) for size in self.sizes)
        return math.comb(self.blocks, self.high) * int(in_high**self.high * in_low ** (self.blocks - self.high))

    def reports(self) -> Iterable[int]:
        members = self.order.reshape(self.blocks, self.block_size).tolist()
        reports = []
        for high in itertools.combinations(range(self.blocks), self.high):
            subsets = (itertools.combinations(row, self.sizes[j not in high]) for j, row in enumerate(members))
            reports += [self.bitmap(itertools.chain(*chosen), high) for chosen in itertools.product(*subsets)]
        return sorted(reports)

    def probability(self, report: int, x: int) -> Fraction:
        of_block = self.likelihoods[0 if report >> len(self.domain) + int(self.block_of[x]) & 1 else 1]
        return of_block[0 if report >> x & 1 else 1] / self.outputs

    def guess_probability(self) -> Fraction:
        # Every output has values at each of the four levels, except "low in" if low blocks are empty.
        (high_in, high_out), (low_in, low_out) = self.likelihoods
        occurring = [high_in, high_out, low_out, *([low_in] if self.sizes[1] else [])]
        return max(occurring) / len(self.domain)

    def column(self, report: int) -> list[Fraction]:
        high = [report >> len(self.domain) + j & 1 for j in range(self.blocks)]
        in_and_out = [self.likelihoods[0 if bit else 1] for bit in high]
        return [in_and_out[j][0 if report >> x & 1 else 1] for x, j in enumerate(self.block_of.tolist())]

    def separating(self, x: int, other: int) -> Iterator[int]:
        """Yield reports in which the bit of x is set and the bit of another value is not.

        An audit of a large domain compares the two values only in these reports.

        Parameters
        ----------
        x
            Index of the value whose bit is set.
        other
            Index of the value whose bit is not set.

        Yields
        ------
        int
            One report for every possible choice of high and low for the blocks of the two values.
        """
        block, other_block = int(self.block_of[x]), int(self.block_of[other])
        rest = [j for j in range(self.blocks) if j not in (block, other_block)]
        for choice in itertools.product((True, False), repeat=1 if block == other_block else 2):
            status = dict(zip((block, other_block), choice, strict=False))
            chosen = [j for j, high in status.items() if high]
            missing = self.high - len(chosen)
            if 0 <= missing <= len(rest):
                high = {*chosen, *rest[:missing]}
                yield self.bitmap(
                    itertools.chain(*(self._members(j, j in high, x, other) for j in range(self.blocks))), high
                )

    def _members(self, block: int, high: bool, x: int, other: int) -> list[int]:
        """Return a set of a block that contains x and not the other value, if they belong to this block."""
        row: list[int] = self.order[block * self.block_size : (block + 1) * self.block_size].tolist()
        return sorted(row, key=lambda z: (z != x, z == other))[: self.sizes[0 if high else 1]]

    def parameters(self) -> dict[str, Any]:
        return {
            **super().parameters(),
            "high": self.high,
            "sizes": list(self.sizes),
            "thresholds": [str(threshold) for threshold in self.thresholds],
            "coins": list(self.coins),
            "planes": self.planes,
        }


def _resize_step(chosen: int, among: int, size: int, draws: Draws) -> tuple[int, bool]:
    """Return a set one element nearer to its size, and whether it already had it; size 0 needs no decision."""
    if size == 0:
        return 0, True
    count = chosen.bit_count()
    if count > size:
        return chosen ^ nth_set_bit(chosen, draws.below(count)), False
    if count < size:
        return chosen | nth_set_bit(chosen ^ (1 << among) - 1, draws.below(among - count)), False
    return chosen, True


def nested_thresholds(
    subject: str,
    epsilon: Epsilon,
    across: Epsilon,
    blocks: int,
    block_size: int,
    high: int,
    sizes: Sequence[int],
) -> tuple[int, int, int]:
    """Return the thresholds 2^64·h, 2^64·γ and 2^64·γ', rounded to the private side."""
    forced = [mixing_threshold(epsilon, Fraction(size, block_size)) for size in sizes]
    (most, _), (_, least) = nested_likelihoods(blocks, block_size, high, sizes, (ONE // 2, *forced))
    # At the block threshold H = 2^63 the ratio of high-in to low-out is most/least; it grows as H/(2^64 - H).
    ratio = least / most
    block_threshold = floor_of_ratio((ONE * ratio, Fraction(0)), (ratio, Fraction(1)), across)
    thresholds = (block_threshold, forced[0], forced[1])
    likelihoods = nested_likelihoods(blocks, block_size, high, sizes, thresholds)
    if any(exceeds(a, b, across) for a, b in itertools.permutations(itertools.chain(*likelihoods), 2)):
        # Every other ratio is below e^across by a factor of at least e^ε or e^(across-ε), unless rounding loses it.
        must = "differ from epsilon and from 0 by more than 1e-15"
        raise InvalidInput(subject, "across", must, across, hint="Increase across.")
    return thresholds


def nested_likelihoods(
    blocks: int, block_size: int, high: int, sizes: Sequence[int], thresholds: Sequence[int]
) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """Return ((high in, high out), (low in, low out)), each the product of a block's and a value's likelihood.

    Both factors are relative to uniform laws.
    """
    high_probability = Fraction(thresholds[0], ONE)
    of_block = (high_probability * Fraction(blocks, high), (1 - high_probability) * Fraction(blocks, blocks - high))
    pairs = []
    for likelihood, size, threshold in zip(of_block, sizes, thresholds[1:], strict=True):
        # An empty set cannot be forced to contain a value.
        forced = Fraction(threshold, ONE) if size else Fraction(0)
        gain = forced * Fraction(block_size, size) if size else Fraction(0)
        pairs.append((likelihood * (gain + 1 - forced), likelihood * (1 - forced)))
    return pairs[0], pairs[1]


def likelihood_moments(likelihoods: Any, fractions: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return mean and variance of the likelihoods in a high and in a low block, with these fractions in the set."""
    means = [
        fraction * inside + (1 - fraction) * outside
        for (inside, outside), fraction in zip(likelihoods, fractions, strict=True)
    ]
    steps = [inside - outside for inside, outside in likelihoods]
    return means, [fraction * (1 - fraction) * step**2 for fraction, step in zip(fractions, steps, strict=True)]


# -- the best sizes ----------------------------------------------------------------------------------------


def best_nested_sizes(blocks: int, block_size: int, epsilon: Epsilon, across: Epsilon) -> tuple[int, int, int]:
    """Return (g, d, d') of least risk at the uniform distribution, before rounding.

    The search uses doubles, because privacy does not depend on the sizes.
    """
    axes = [np.arange(1, blocks), np.arange(1, block_size), np.arange(block_size)]
    risk = functools.partial(_risk, blocks, block_size, float(epsilon), float(across))
    if math.prod(len(axis) for axis in axes) <= _MOST_CHOICES:
        return _least(risk, axes)
    start = max(1, round(block_size / (1 + math.exp(min(float(epsilon), 50.0)))))
    optima = {_descend(risk, axes, (high, start, low)) for high in (1, (blocks + 1) // 2) for low in (0, start)}
    return min(optima, key=lambda sizes: float(risk(*map(np.array, sizes))))


def _least(risk: Any, axes: Sequence[npt.NDArray[np.int64]]) -> tuple[int, int, int]:
    """Return the sizes on a grid at which the risk is least."""
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    places = np.unravel_index(int(np.argmin(risk(*grid))), [len(axis) for axis in axes])
    high, size, low = (int(axis[place]) for axis, place in zip(axes, places, strict=True))
    return high, size, low


def _descend(risk: Any, axes: list[npt.NDArray[np.int64]], at: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a local optimum: optimize one size at a time, then all sizes within small steps."""
    while True:
        before = at
        for number in range(3):
            at = _least(risk, [axis if i == number else np.array([at[i]]) for i, axis in enumerate(axes)])
        near = [axis[(axis >= size - 3) & (axis <= size + 3)] for axis, size in zip(axes, at, strict=True)]
        at = _least(risk, near)
        if at == before or not risk(*map(np.array, at)) < risk(*map(np.array, before)):
            return before


def _risk(blocks: int, block_size: int, epsilon: float, across: float, high: Any, size: Any, low: Any) -> Any:
    """Return the trace of the inverse of E[v v'], without the eigenvalue of ones (see ``NestedSubsetsEstimator``)."""
    likelihoods = ((1.0, math.exp(-epsilon)), (math.exp(epsilon - across), math.exp(-across)))
    means, variances = likelihood_moments(likelihoods, (size / block_size, low / block_size))
    fraction = high / blocks
    unit = (fraction * means[0] + (1 - fraction) * means[1]) ** 2
    between = fraction * (1 - fraction) * (means[0] - means[1]) ** 2 / unit * (blocks * block_size) / (blocks - 1)
    within = (fraction * variances[0] + (1 - fraction) * variances[1]) / unit * block_size / (block_size - 1)
    with np.errstate(divide="ignore"):
        return np.asarray((blocks - 1) / between + blocks * (block_size - 1) / within)
