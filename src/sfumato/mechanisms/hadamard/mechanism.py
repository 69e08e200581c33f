"""Hadamard response: report a column of a Hadamard matrix (Acharya, Sun, Zhang 2019), for every ε."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Integers, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished, read_epsilon
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.two_level import ONE, OUTSIDE, MixtureDraws, MixtureMechanism, mixing_threshold

__all__ = ["HadamardResponse", "walsh_hadamard"]

#: Maximum number of columns for which index and decision share a 32-bit word; beyond it, each has 32 bits.
_LARGEST_NARROW = 2**16


class HadamardResponse(MixtureMechanism):
    """Hadamard response: report a column of a Hadamard matrix, likelier where the true value's row is +1.

    Each value has a row of +1 and -1 entries. There are B blocks of b columns, where b is a power of two; the value
    with index x has row 1 + x mod (b-1) of block ⌊x/(b-1)⌋. A report is the index of one of the B·b columns. Reports
    are short, and frequencies are estimated in k log k steps.

    Parameters
    ----------
    domain
        The k values, at least two unless ``block_size`` is given.
    epsilon
        The level ε of classical local differential privacy.
    block_size
        The number b of columns per block, a power of two. By default, b minimizes the expected squared error of the
        estimated frequencies (the risk) at the uniform distribution.
    blocks
        The number B of blocks; ⌈k/(b-1)⌉ by default. Requires ``block_size``.
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    With probability γ the report is drawn uniformly from the columns of the value's block where the value's row is +1.
    Otherwise it is drawn uniformly from all columns. With t = e^ε, γ = (t-1)/(t-1+2B), rounded down to a multiple of
    2^-64, so that ε holds exactly. Row 0, all ones, is skipped because it distinguishes no values. A report scores +1
    or -1 for a value, the entry of the value's row in the reported column, and 0 if the column is in another block. The
    unbiased estimate of a frequency is the mean score divided by γ.

    Acharya, Sun and Zhang (2019) take B a power of two. Any B = ⌈k/(b-1)⌉ is valid, and the b of least exact risk
    reduces the risk by a factor of up to 1.5.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import HadamardResponse
    >>> mechanism = HadamardResponse(Domain(["none", "flu", "hiv"]), "ln 3")
    >>> mechanism.gamma
    Fraction(1, 2)
    >>> mechanism.matrix()[0].tolist()
    [0.375, 0.125, 0.375, 0.125]
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
                hint = "Pass block_size as well, or omit blocks."
                raise InvalidInput("HadamardResponse", "block_size", "be given together with blocks", None, hint=hint)
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
        """Return the block of the Hadamard matrix, and the row in the block, that belong to a value.

        Parameters
        ----------
        x
            Index of the value in the domain.

        Returns
        -------
        tuple of int
            The block, from 0, and the row within it, from 1.
        """
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
                # Flipping the row's lowest set bit in the column changes the sign: a bijection between the two signs.
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

    def members(self, values: Sequence[int]) -> npt.NDArray[np.bool_]:
        x = np.asarray(values, np.int64)[:, None]
        report = np.arange(self.outputs)
        overlap = np.bitwise_count((x % (self.block_size - 1) + 1) & (report % self.block_size))
        return np.asarray((x // (self.block_size - 1) == report // self.block_size) & (overlap % 2 == 0))

    def symmetry_classes(self) -> Integers:
        # Two rows of one block are in a quarter of its columns together, and values of different blocks in none.
        return np.arange(len(self.domain)) // (self.block_size - 1)

    def pair_kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        block = self.symmetry_classes()[values]
        return np.asarray(block[:, None] == block, dtype=np.int64)

    def empty_outputs(self) -> int:
        # The set of a column in a block with s values is empty if every row 1 … s has odd overlap with the column. Row
        # 3 is the sum of rows 1 and 2, so its overlap is then even: with three rows or more no set is empty.
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
        # The column must have even overlap with row and odd overlap with other_row: one bit of other_row outside row.
        # If other_row lies within row, it is one bit of other_row and one bit of row outside other_row.
        outside = other_row & ~row
        column = outside & -outside if outside else (other_row & -other_row) | (row & ~other_row & -(row & ~other_row))
        return block * self.block_size + column

    def lightest(self, weights: Sequence[Fraction]) -> int:
        return self._extreme(weights, heaviest=False)

    def heaviest(self, weights: Sequence[Fraction]) -> int:
        return self._extreme(weights, heaviest=True)

    def _extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        """Return the column of the lightest or heaviest set; D(block, column) has weight (total + transform)/2."""
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
        """Return which columns of a block with ``count`` values have a set that is neither empty nor everything."""
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
    """Return the power of two with the least exact risk at the uniform distribution."""
    if epsilon.is_infinite:
        return 2

    def risk(b: int) -> Fraction:
        blocks = -(-k // (b - 1))
        threshold = mixing_threshold(epsilon, Fraction(1, 2 * blocks))
        if threshold == 0:
            # The level is too small to tell values apart at any b; prefer the fewest blocks.
            return Fraction(ONE**3) * blocks
        gamma = Fraction(threshold, ONE)
        # Σ_x P(Y in block of x) at uniform p; all blocks but the last have b-1 values.
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
    """Return the layout: force decision, column and block in one or two words."""
    columns = Field.number(0, block_size.bit_length() - 1)
    if block_size <= _LARGEST_NARROW:
        fields = (Field.number(16, 16), columns)
        return Layout(32, fields) if blocks == 1 else Layout(64, (*fields, Field.number(32, 32)))
    fields = (Field.number(32, 32), columns)
    return Layout(64, fields) if blocks == 1 else Layout(128, (*fields, Field.number(64, 32)))


def walsh_hadamard(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the unnormalized Walsh-Hadamard transform of every row, in the type of the input; exact for integers."""
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
