"""Columns of a Hadamard matrix in blocks: Hadamard response (Acharya, Sun, Zhang 2019), for every ε."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Floats, Integers, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished
from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mixture import ONE, Mixture, mixing_threshold
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.systems.base import OUTSIDE, Force, MixtureDraws, SetSystem

__all__ = ["HADAMARD", "HadamardResponse", "HadamardRows", "walsh_hadamard"]

#: Maximum number of columns for which index and decision share a 32-bit word; beyond it, each has 32 bits.
_LARGEST_NARROW = 2**16
#: Number of entries below which a transform does not import numba.
_SMALL_SIZE = 2**14


@dataclass(frozen=True)
class HadamardRows(SetSystem):
    """The columns of ``blocks`` Hadamard matrices of ``block_size`` columns.

    Value x has row 1 + x mod (b-1) of block ⌊x/(b-1)⌋ and is in the sets of the columns where its row is +1.
    """

    size: int
    block_size: int
    blocks: int

    @cached_property
    def layout(self) -> Layout:  # type: ignore[override]
        """The force decision, column and block, in one or two words."""
        columns = Field.number(0, self.block_size.bit_length() - 1)
        half = 16 if self.block_size <= _LARGEST_NARROW else 32
        fields = (Field.number(half, half), columns)
        if self.blocks == 1:
            return Layout(2 * half, fields)
        return Layout(4 * half, (*fields, Field.number(2 * half, 32)))

    @property
    def outputs(self) -> int:
        return self.blocks * self.block_size

    @property
    def density(self) -> Fraction:
        return Fraction(1, 2 * self.blocks)

    def block_and_row(self, x: int) -> tuple[int, int]:
        """Return the block of a value, and its row in the block, from 1."""
        block, row = divmod(x, self.block_size - 1)
        return block, row + 1

    def step(self, state: int, draws: Draws, force: Force) -> Finished:
        true_block, row = self.block_and_row(state)
        forced = force()
        column = draws.below(self.block_size)
        block = draws.below(self.blocks) if self.blocks > 1 else 0
        if forced:
            if state == OUTSIDE:
                return Finished(OUTSIDE)
            block = true_block
            if (row & column).bit_count() & 1:
                # Flipping the row's lowest set bit in the column changes the sign: a bijection between the two signs.
                column ^= row & -row
        return Finished(block * self.block_size + column)

    def surrogate(self) -> HadamardRows:
        block_size, blocks = min(self.block_size, 4), min(self.blocks, 2)
        return HadamardRows(min(self.size, blocks * (block_size - 1)), block_size, blocks)

    def draws(self) -> MixtureDraws:
        return MixtureDraws(columns=self.block_size, choices=self.blocks)

    # -- the sets --------------------------------------------------------------------------------------------

    def contains(self, report: int, x: int) -> bool:
        true_block, row = self.block_and_row(x)
        block, column = divmod(report, self.block_size)
        return block == true_block and (row & column).bit_count() % 2 == 0

    def spread(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows = self._by_row(weights)
        rows[:, 0] = rows.sum(axis=1)  # row 0 is +1 everywhere; adding it selects the columns of sign +1
        return np.asarray(_half_transform(rows).ravel())

    def gather(self, outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        # Doubles add counts below 2^53 exactly.
        rows = _half_transform(outputs.astype(np.float64, copy=False).reshape(self.blocks, self.block_size))
        rows[:, 1:] += rows[:, :1]
        return np.asarray(rows[:, 1:].reshape(-1)[: self.size])

    def contrast(self, outputs: npt.NDArray[Any], share: float) -> npt.NDArray[Any]:  # noqa: ARG002
        # Half of the columns of a block have the sign of a row, so the difference is half the row's transform.
        rows = _half_transform(outputs.astype(np.float64, copy=False).reshape(self.blocks, self.block_size))
        return np.asarray(rows[:, 1:].reshape(-1)[: self.size])

    def shared(self, outputs: Floats) -> Floats:
        # The product of two rows of a block is their XOR, so that the columns of both are a quarter of the block with
        # the signs of both rows and of the third.
        signed = 2 * _half_transform(outputs.reshape(self.blocks, self.block_size))
        block, row = np.divmod(np.arange(self.size), self.block_size - 1)
        row += 1
        alone, total = signed[block, row], signed[block, 0]
        both = signed[block[:, None], row[:, None] ^ row] + alone[:, None] + alone + total
        return np.asarray(np.where(block[:, None] == block, both / 4, 0.0))

    def _by_row(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a row per block: nothing in column 0, then the block's values."""
        rows = np.zeros((self.blocks, self.block_size), weights.dtype)
        full, rest = divmod(self.size, self.block_size - 1)
        rows[:full, 1:] = weights[: self.size - rest].reshape(full, self.block_size - 1)
        rows[full : full + 1, 1 : rest + 1] = weights[self.size - rest :]
        return rows

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

    def block_of(self) -> Integers:
        return np.arange(self.size) // (self.block_size - 1)

    @property
    def pair_density(self) -> Fraction:
        return Fraction(1, 2)

    def document(self) -> dict[str, Any]:
        return {"block_size": self.block_size, "blocks": self.blocks}


def _half_transform(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return half the transform of every row of floats, or of integers whose transform is even."""
    if rows.dtype.kind != "f":
        return walsh_hadamard(rows) // 2
    if rows.size < _SMALL_SIZE:
        return 0.5 * walsh_hadamard(rows)
    from sfumato.mechanisms.kernels.walsh_hadamard import transform_rows

    return transform_rows(rows, 0.5)


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


class HadamardResponse(Mixture):
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
        subject, values = "HadamardResponse", checked_domain("HadamardResponse", domain)
        k, level = len(values), Epsilon(epsilon, subject="HadamardResponse")
        if block_size is None:
            if k < 2:
                raise InvalidInput(subject, "domain", "have at least two values", domain)
            if blocks is not None:
                hint = "Pass block_size as well, or omit blocks."
                raise InvalidInput(subject, "block_size", "be given together with blocks", None, hint=hint)
            block_size = _best_block_size(k, level)
        self.block_size = checked_integer(subject, "block_size", block_size, 2, 2**32)
        if self.block_size & self.block_size - 1:
            raise InvalidInput(subject, "block_size", "be a power of two", block_size)
        fewest = -(-k // (self.block_size - 1))
        self.blocks = checked_integer(subject, "blocks", blocks or fewest, fewest, 2**31)
        super().__init__(values, level, HadamardRows(k, self.block_size, self.blocks), threshold=threshold)


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


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield Hadamard response for every policy."""
    build = partial(HadamardResponse, request.policy.domain, request.epsilon)
    yield "hadamard", Candidate(build, "k log k", classical=True)


HADAMARD = Family(
    mechanisms=(HadamardResponse,),
    kernel="sfumato.mechanisms.kernels.hadamard_rows:build",
    candidates=_candidates,
    in_browser=True,
    memory="sfumato.mechanisms.memoized.forms:MIXTURE",
)
