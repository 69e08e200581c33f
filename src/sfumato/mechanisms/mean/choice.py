"""Choice of the width of shifted bins, and of the share of offsets with one bin more than the others.

For an offset r with bins j, the score of a report is X = o_r + D_j. The differences D follow from unbiasedness: between
bins on both sides of value x they increase by (w_(x+1) - w_x)/(π_r·γ_r), for weights w, probability π_r of the offset
and probability γ_r of a true report. The best o_r gives every offset the same mean, so the variance is Σ_r S_r²/π_r
with S_r²/π_r² the variance of D. It is least for π_r proportional to S_r.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato._core import Epsilon, Floats
from sfumato.mechanisms.mixture import ONE

__all__ = ["best_share", "best_width", "by_offset"]

#: Number of widths in each round of the search, and the number of rounds; each round narrows the range of widths.
_WIDTHS, _ROUNDS = 12, 6
#: Levels outside this range have the width and the share of its ends.
_LEAST_LEVEL, _GREATEST_LEVEL = 1e-6, 700.0


def by_offset(outputs: Floats, width: int) -> Floats:
    """Return the entries of all outputs as a table with a row per bin and a column per offset, padded with zeros."""
    rows = -(-len(outputs) // width)
    table = np.zeros(rows * width)
    table[: len(outputs)] = outputs
    return table.reshape(rows, width)


def best_width(weights: Floats, epsilon: Epsilon) -> int:
    """Return the width of bins with the least variance of Σ weight·frequency at the uniform distribution."""
    low, high = 2, len(weights) - 1
    errors: dict[int, float] = {}
    for _ in range(_ROUNDS):
        widths = sorted({round(low + (high - low) * i / _WIDTHS) for i in range(_WIDTHS + 1)})
        errors |= {width: _error(weights, epsilon, width)[0] for width in widths if width not in errors}
        place = widths.index(min(widths, key=errors.__getitem__))
        low, high = widths[max(place - 1, 0)], widths[min(place + 1, len(widths) - 1)]
    return min(errors, key=errors.__getitem__)


def best_share(weights: Floats, epsilon: Epsilon, width: int) -> int:
    """Return the best probability of the offsets with one bin more than the others, as a multiple of 2^-64."""
    return math.floor(_error(weights, epsilon, width)[1] * ONE)


def _error(weights: Floats, epsilon: Epsilon, width: int) -> tuple[float, float]:
    """Return the variance of Σ weight·frequency with bins of a width, and the best share of the first offsets."""
    level = min(max(float(epsilon), _LEAST_LEVEL), _GREATEST_LEVEL)
    outputs = len(weights) + width - 1
    fewest, first = divmod(outputs, width)
    bins = np.where(np.arange(width) < first, fewest + 1, fewest)
    gamma = -math.expm1(-level) / (1 + (bins - 1) * math.exp(-level))
    reports = np.arange(outputs)
    in_bin = (np.minimum(reports, len(weights) - 1) - np.maximum(reports - width, -1)) / len(weights)
    chances = by_offset(in_bin, width) * gamma
    chances += np.where(np.arange(len(chances))[:, None] < bins, (1 - gamma) / bins, 0.0)
    scores = np.cumsum(by_offset(np.concatenate([np.zeros(width), np.diff(weights)]), width), axis=0) / gamma
    means = (chances * scores).sum(axis=0)
    squares = (chances * (scores - means) ** 2).sum(axis=0)
    # The offsets of a class have the same probability.
    roots = [math.sqrt(len(part) * part.sum()) for part in (squares[:first], squares[first:])]
    return sum(roots) ** 2, roots[0] / sum(roots)
