"""Sizes, thresholds and likelihoods of nested patterns: a set of blocks, and a set of positions in each block."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, exceeds, floor_of_ratio
from sfumato.errors import InvalidInput
from sfumato.mechanisms.mixture import ONE, mixing_threshold

__all__ = ["best_nested_sizes", "least_nested_risk", "nested_likelihoods", "nested_thresholds"]

#: Maximum number of size choices that are all compared; beyond it, sizes are optimized by coordinate descent.
_MOST_CHOICES = 2**21


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


def least_nested_risk(blocks: int, block_size: int, epsilon: Epsilon, across: Epsilon) -> float:
    """Return the least risk from one report at the uniform distribution, before rounding.

    With m patterns of the best sizes, the risk is about 1 + 1/m times this limit.
    """
    sizes = best_nested_sizes(blocks, block_size, epsilon, across)
    return float(_risk(blocks, block_size, float(epsilon), float(across), *map(np.array, sizes)))


def _risk(blocks: int, block_size: int, epsilon: float, across: float, high: Any, size: Any, low: Any) -> Any:
    """Return the trace of the inverse of E[v v'], without the eigenvalue of ones; v are the likelihoods of a report.

    The reports are all sets of ``high`` blocks with a set of ``size`` positions in each, and one of ``low`` positions
    in each other block.
    """
    likelihoods = ((1.0, math.exp(-epsilon)), (math.exp(epsilon - across), math.exp(-across)))
    means, variances = [], []
    for (inside, outside), members in zip(likelihoods, (size, low), strict=True):
        fraction = members / block_size
        means.append(fraction * inside + (1 - fraction) * outside)
        variances.append(fraction * (1 - fraction) * (inside - outside) ** 2)
    fraction = high / blocks
    unit = (fraction * means[0] + (1 - fraction) * means[1]) ** 2
    between = fraction * (1 - fraction) * (means[0] - means[1]) ** 2 / unit * (blocks * block_size) / (blocks - 1)
    within = (fraction * variances[0] + (1 - fraction) * variances[1]) / unit * block_size / (block_size - 1)
    with np.errstate(divide="ignore"):
        return np.asarray((blocks - 1) / between + blocks * (block_size - 1) / within)
