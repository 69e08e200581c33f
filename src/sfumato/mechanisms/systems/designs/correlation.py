"""Sums over the sets of a cyclic design, by fast Fourier transforms.

``spread`` adds the weights of the values in every set, ``gather`` adds the counts of the sets that contain each value.
Both are circular correlations with the indicators of the base blocks. The exact forms split integers into pieces so
small that rounding the transform gives the exact result; ``rounding_bound`` states why.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.mechanisms.systems.designs.families import DifferenceFamily

__all__ = ["difference_counts", "gather", "gather_exactly", "is_balanced", "rounding_bound", "spread", "spread_exactly"]

#: Maximum number of additions that are done one by one, without a transform.
_FEW_ADDITIONS = 2**16
#: Maximum number of entries that are transformed at a time; bounds memory.
_CHUNK = 2**22
#: Unit roundoff of doubles.
_UNIT = 2.0**-53


def spread(design: DifferenceFamily, weights: Floats) -> Floats:
    """Return, for every output, the total weight of the values in its set; value x has weight ``weights[x]``."""
    v = design.modulus
    if _additions(design) <= _FEW_ADDITIONS:
        sums = np.zeros((design.blocks, v))
        padded = _padded(weights, v)
        for i in range(design.size):
            sums += padded[(np.arange(v) - design.elements[:, i, None]) % v]
        return sums.ravel()
    length = _transform_length(v)
    transformed = np.fft.rfft(weights, length)
    rows = [_folded(np.fft.irfft(of_blocks * transformed, length), v) for of_blocks in _transforms(design)]
    return np.concatenate(rows).ravel()


def gather(design: DifferenceFamily, outputs: Floats) -> Floats:
    """Return, for every residue, the sum of ``outputs`` over the sets that contain it."""
    v = design.modulus
    rows = outputs.reshape(design.blocks, v)
    if _additions(design) <= _FEW_ADDITIONS:
        sums = np.zeros(v)
        block = np.arange(design.blocks)[:, None]
        for i in range(design.size):
            sums += rows[block, (np.arange(v) + design.elements[:, i, None]) % v].sum(axis=0)
        return sums
    length = _transform_length(v)
    total = np.zeros(length // 2 + 1, np.complex128)
    start = 0
    for of_blocks in _transforms(design):
        chunk = rows[start : start + len(of_blocks)]
        total += (np.fft.rfft(chunk, length) * of_blocks.conj()).sum(axis=0)
        start += len(of_blocks)
    # The correlation at a negative shift -s is at position length - s; folding adds it to residue v - s.
    linear = np.fft.irfft(total, length)
    sums = linear[:v].copy()
    sums[1:] += linear[length - v + 1 :]
    return sums


def _additions(design: DifferenceFamily) -> int:
    """Return the number of additions without a transform."""
    return design.outputs * design.size


def _padded(weights: Floats, length: int) -> Floats:
    """Return weights followed by zeros."""
    return np.concatenate([weights, np.zeros(length - len(weights))])


def _transform_length(modulus: int) -> int:
    """Return a power of two for which a linear correlation of two vectors does not overlap itself."""
    return 1 << (2 * modulus - 1).bit_length()


def _transforms(design: DifferenceFamily) -> Iterator[npt.NDArray[np.complex128]]:
    """Yield the transforms of the indicators of the base blocks, in chunks of bounded memory."""
    rows = max(1, _CHUNK // _transform_length(design.modulus))
    if design.blocks <= rows:
        yield _transform_of_all(design)
        return
    for start in range(0, design.blocks, rows):
        yield _transform(design, start, rows)


@functools.lru_cache(maxsize=4)
def _transform_of_all(design: DifferenceFamily) -> npt.NDArray[np.complex128]:
    """Return the transforms of all base blocks; iterative estimates use them again and again."""
    return _transform(design, 0, design.blocks)


def _transform(design: DifferenceFamily, start: int, count: int) -> npt.NDArray[np.complex128]:
    """Return the transforms of some base blocks, a row per block."""
    indicators = _indicators(design, start, count)
    return np.fft.rfft(indicators, _transform_length(design.modulus))


def _indicators(design: DifferenceFamily, start: int, count: int) -> Floats:
    """Return the indicators of some base blocks, a row per block."""
    elements = design.elements[start : start + count]
    rows = np.zeros((len(elements), design.modulus))
    np.put_along_axis(rows, elements, 1.0, axis=1)
    return rows


def _folded(linear: Floats, modulus: int) -> Floats:
    """Return a linear convolution as a circular one, row by row."""
    circular = linear[:, :modulus].copy()
    circular[:, : modulus - 1] += linear[:, modulus : 2 * modulus - 1]
    return circular


# -- exact sums of integers ------------------------------------------------------------------------------------


def rounding_bound(design: DifferenceFamily, norm: float) -> float:
    """Return an upper bound on the rounding error of each sum, if the summed vector has this Euclidean norm.

    Let N = 2^L be the length of a transform and u the unit roundoff. The relative error of a transform in the Euclidean
    norm is at most 7u·L, to first order (Higham 2002, "Accuracy and Stability of Numerical Algorithms", theorem 24.2).
    The errors of the two forward transforms are relative to the norms of their vectors. That of the backward transform
    is relative to the norm of the result, at most d·√m times that of the summed vector. Half of the factor 4 is for the
    fold, the other half for terms of second order and the products. The proof is in ``docs/proofs/cyclic-design.md``.
    """
    stages = math.log2(_transform_length(design.modulus))
    forward = (2 * 7 * stages + design.blocks) * math.sqrt(design.blocks * design.size)
    backward = 7 * stages * design.size * math.sqrt(design.blocks)
    return 4 * _UNIT * norm * (forward + backward)


def _piece_bits(design: DifferenceFamily) -> int:
    """Return the number of bits of integers whose sums have a rounding error below 1/4."""
    return math.floor(math.log2(0.25 / rounding_bound(design, math.sqrt(design.outputs))))


def spread_exactly(design: DifferenceFamily, weights: Sequence[int]) -> npt.NDArray[np.object_]:
    """Return ``spread`` of non-negative integers of any size, as integers: it adds up pieces of few bits."""
    rest = np.array([int(weight) for weight in weights], dtype=object)
    total: npt.NDArray[np.object_] | int = 0
    shift, bits = 0, _piece_bits(design)
    while True:
        piece = (rest & (1 << bits) - 1).astype(np.float64)
        total = total + _rounded(spread, design, piece).astype(object) * (1 << shift)
        rest = rest >> bits
        shift += bits
        if not rest.any():
            return np.asarray(total, dtype=object)


def gather_exactly(design: DifferenceFamily, counts: Integers) -> Integers:
    """Return ``gather`` of non-negative counts as integers; their sum must be below 2^63."""
    total, rest = np.zeros(design.modulus, np.int64), counts
    shift, bits = 0, _piece_bits(design)
    while rest.any():
        total += _rounded(gather, design, (rest & (1 << bits) - 1).astype(np.float64)) << shift
        rest = rest >> bits
        shift += bits
    return total


def _rounded(
    operation: Callable[[DifferenceFamily, Floats], Floats], design: DifferenceFamily, piece: Floats
) -> Integers:
    """Apply an operation to integers of few bits, and round the results to the exact integers."""
    error = rounding_bound(design, float(np.linalg.norm(piece)))
    assert error < 0.25, "pieces have so few bits that the rounding error is below 1/4"
    return np.rint(operation(design, piece)).astype(np.int64)


@functools.lru_cache(maxsize=256)
def is_balanced(design: DifferenceFamily) -> bool:
    """Return whether every nonzero residue is equally often a difference within a base block, by exact counting."""
    differences = difference_counts(design)
    return bool((differences[1:] == differences[-1]).all())


def difference_counts(design: DifferenceFamily) -> Integers:
    """Return how often every residue is a difference of two elements of a base block, by exact counting."""
    return _rounded(gather, design, _indicators(design, 0, design.blocks).ravel())
