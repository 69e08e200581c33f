"""Hadamard response: report a column of a Hadamard matrix (Acharya, Sun, Zhang 2019), for every ε."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished, read_epsilon
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.two_level import ONE, OUTSIDE, MixtureDraws, MixtureMechanism, mixing_threshold

__all__ = ["HadamardResponse", "walsh_hadamard"]

#: Index and decision share a 32-bit word up to this many columns; beyond, each has 32 bits of its own.
_LARGEST_NARROW = 2**16


class HadamardResponse(MixtureMechanism):
    """B blocks of b columns, b a power of two; value x owns row 1 + x mod (b-1) of block ⌊x/(b-1)⌋.

    With probability γ the report is a uniform column of the own block where the own row is +1, otherwise a
    uniform column of all. Row 0, all ones, is skipped: it would tell nothing apart. The published rule takes B
    a power of two; any B = ⌈k/(b-1)⌉ works, and b of least exact risk is up to 1.5 times better.
    """

    name = "hadamard-response"

    def __init__(
        self,
        domain: Domain,
        epsilon: EpsilonLike,
        *,
        block_size: int | None = None,
        blocks: int | None = None,
        threshold: int | str | None = None,
    ) -> None:
        k = len(domain)
        if k < 2 and block_size is None:
            raise InvalidInput("HadamardResponse", "domain", "have at least two values", domain)
        self.domain = checked_domain("HadamardResponse", domain)
        self.epsilon = read_epsilon("HadamardResponse", epsilon)
        if block_size is None:
            if blocks is not None:
                raise InvalidInput("HadamardResponse", "block_size", "be given where blocks is", None)
            block_size = _best_block_size(k, self.epsilon)
        self.block_size = checked_integer("HadamardResponse", "block_size", block_size, 2, 2**32)
        if self.block_size & self.block_size - 1:
            raise InvalidInput("HadamardResponse", "block_size", "be a power of two", block_size)
        fewest = -(-k // (self.block_size - 1))
        self.blocks = checked_integer("HadamardResponse", "blocks", blocks or fewest, fewest, 2**31)
        self.density = Fraction(1, 2 * self.blocks)
        if threshold is None:
            threshold = mixing_threshold(self.epsilon, self.density)
        self.threshold = checked_integer("HadamardResponse", "threshold", threshold, 0, ONE)
        self.layout = _layout(self.blocks, self.block_size)

    def block_and_row(self, x: int) -> tuple[int, int]:
        """Where the value with index x lives."""
        block, row = divmod(x, self.block_size - 1)
        return block, row + 1

    def step(self, state: int, draws: Draws) -> Finished:
        true_block, row = self.block_and_row(state)
        force = draws.bernoulli(self.threshold, ONE)
        column = draws.below(self.block_size)
        block = draws.below(self.blocks) if self.blocks > 1 else 0
        if force:
            if state == OUTSIDE:
                return Finished(OUTSIDE)
            block = true_block
            if (row & column).bit_count() & 1:
                # Flipping the row's lowest bit changes the sign, and pairs the columns of the two signs.
                column ^= row & -row
        return Finished(block * self.block_size + column)

    def audit_surrogate(self) -> HadamardResponse:
        block_size, blocks = min(self.block_size, 4), min(self.blocks, 2)
        small = Domain.range(min(len(self.domain), blocks * (block_size - 1)))
        return self.from_parameters(small, self.parameters() | {"block_size": block_size, "blocks": blocks})

    def draws(self) -> MixtureDraws:
        return MixtureDraws(columns=self.block_size, choices=self.blocks)

    @property
    def outputs(self) -> int:
        return self.blocks * self.block_size

    def in_set(self, report: int, x: int) -> bool:
        true_block, row = self.block_and_row(x)
        block, column = divmod(report, self.block_size)
        return block == true_block and (row & column).bit_count() % 2 == 0

    def empty_outputs(self) -> int:
        # A set of a block with s values is empty where every row 1 … s has odd overlap with the column. Row 3 is
        # the sum of rows 1 and 2, so its overlap is then even: with three rows or more no set is empty.
        full, rest = divmod(len(self.domain), self.block_size - 1)
        values = {self.block_size - 1: full, rest: 1} if rest else {self.block_size - 1: full}
        unused = self.blocks - sum(values.values())
        odd = {1: self.block_size // 2, 2: self.block_size // 4}
        return unused * self.block_size + sum(blocks * odd.get(count, 0) for count, blocks in values.items())

    def separating(self, x: int, other: int) -> int:
        block, row = self.block_and_row(x)
        other_block, other_row = self.block_and_row(other)
        if block != other_block:
            return block * self.block_size
        # A column of even overlap with row and odd overlap with other_row: one bit of other_row outside row,
        # or, where other_row lies within row, one bit of it and one bit of row outside it.
        outside = other_row & ~row
        column = outside & -outside if outside else (other_row & -other_row) | (row & ~other_row & -(row & ~other_row))
        return block * self.block_size + column

    def lightest(self, weights: Sequence[Fraction]) -> int:
        return self._extreme(weights, heaviest=False)

    def heaviest(self, weights: Sequence[Fraction]) -> int:
        return self._extreme(weights, heaviest=True)

    def _extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        """Weigh all sets at once: the weight of D(block, column) is (total + transform)/2."""
        scale = np.lcm.reduce(np.array([w.denominator for w in weights], dtype=object))
        best: tuple[Any, int] | None = None
        rows = self.block_size - 1
        for block in range(-(-len(weights) // rows)):
            block_weights = [int(w * scale) for w in weights[block * rows : (block + 1) * rows]]
            vector = np.zeros(self.block_size, dtype=object)
            vector[1 : len(block_weights) + 1] = block_weights
            doubled = sum(block_weights) + walsh_hadamard(vector[None])[0]
            doubled = np.where(self._binding(len(block_weights)), doubled, -1 if heaviest else 4 * scale)
            column = int(np.argmax(doubled) if heaviest else np.argmin(doubled))
            weight = doubled[column]
            if best is None or (weight > best[0] if heaviest else weight < best[0]):
                best = weight, block * self.block_size + column
        assert best is not None
        return best[1]

    def _binding(self, count: int) -> npt.NDArray[np.bool_]:
        """Which columns of a block with ``count`` values have a set that is neither empty nor everything."""
        ones = np.zeros(self.block_size, dtype=np.int64)
        ones[1 : count + 1] = 1
        members = (count + walsh_hadamard(ones[None])[0]) // 2
        return np.asarray((members > 0) & (members < len(self.domain)))

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": str(self.epsilon),
            "block_size": self.block_size,
            "blocks": self.blocks,
            "threshold": str(self.threshold),
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> HadamardResponse:
        return cls(domain, **parameters)


def _best_block_size(k: int, epsilon: Epsilon) -> int:
    """The power of two with the least exact risk at the uniform distribution."""
    if epsilon.is_infinite:
        return 2

    def risk(b: int) -> Fraction:
        blocks = -(-k // (b - 1))
        threshold = mixing_threshold(epsilon, Fraction(1, 2 * blocks))
        if threshold == 0:
            # Too little budget to tell values apart at any b: prefer the fewest blocks.
            return Fraction(ONE**3) * blocks
        gamma = Fraction(threshold, ONE)
        # Σ_x P(Y in block of x) at uniform p, blocks of b-1 values but for the last.
        full, rest = divmod(k, b - 1)
        squares = Fraction(full * (b - 1) ** 2 + rest**2, k)
        return (gamma * squares + (1 - gamma) * k / blocks) / gamma**2

    sizes = []
    b = 2
    while b < 2 * (k + 1):
        sizes.append(b)
        b *= 2
    return min(sizes, key=risk)


def _layout(blocks: int, block_size: int) -> Layout:
    columns = Field.number(0, block_size.bit_length() - 1)
    if block_size <= _LARGEST_NARROW:
        fields = (Field.number(16, 16), columns)
        return Layout(32, fields) if blocks == 1 else Layout(64, (*fields, Field.number(32, 32)))
    fields = (Field.number(32, 32), columns)
    return Layout(64, fields) if blocks == 1 else Layout(128, (*fields, Field.number(64, 32)))


def walsh_hadamard(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The unnormalised Walsh-Hadamard transform of every row, in the numbers it is given: exact for integers."""
    count, length = rows.shape
    result = rows.copy()
    half = 1
    while half < length:
        pairs = result.reshape(count, -1, 2, half)
        total = pairs[:, :, 0] + pairs[:, :, 1]
        np.subtract(pairs[:, :, 0], pairs[:, :, 1], out=pairs[:, :, 1])
        pairs[:, :, 0] = total
        half *= 2
    return result
