"""Scores of a factor on few nodes, so that the law of the scores of a product stays short."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats, Integers, quantity
from sfumato.errors import LimitExceeded

__all__ = ["ScoreNodes", "node_counts"]

#: Maximum number of scores of all values together; each takes about 50 bytes while intervals are computed.
_MOST_SCORES = 2**22


def node_counts(sizes: Sequence[int], outputs: Sequence[int]) -> list[int]:
    """Return the number of nodes of each factor: its number of outputs, or the same smaller number for all."""

    def entries(most: int) -> int:
        return math.prod(sizes) * math.prod(min(count, most) for count in outputs)

    limits = range(2, max(2, *outputs) + 1)
    most = bisect.bisect_right(limits, _MOST_SCORES, key=entries) + 1
    if most < 2:
        raise LimitExceeded(
            f"there are no confidence intervals for {quantity(math.prod(sizes), 'value')}, because the law of their "
            "scores is too long. Use the standard errors."
        )
    return [min(count, most) for count in outputs]


@dataclass(frozen=True)
class ScoreNodes:
    """The scores of a factor, each shared between the two nearest of a few nodes.

    The shares keep the mean: a score is the average of the nodes that replace it. Products of averages are averages of
    products, because the nodes of the factors are drawn independently. So the scores of a product keep their means too.

    Parameters
    ----------
    nodes
        The nodes of each value, ascending; a row per value.
    below
        Position of the node below each score, with a row per value and a column per output.
    share
        Share of the node above each score.
    """

    nodes: Floats
    below: Integers
    share: Floats

    @classmethod
    def of(cls, scores: Floats, count: int) -> ScoreNodes:
        """Return nodes among the scores, evenly spaced by rank; the least and the greatest score are nodes."""
        ranks = np.linspace(0, scores.shape[1] - 1, count).round().astype(np.intp)
        nodes = np.sort(scores, axis=1)[:, ranks]
        above = np.stack([np.searchsorted(*row, side="left") for row in zip(nodes, scores, strict=True)])
        below = np.clip(above - 1, 0, max(count - 2, 0))
        low, high = (np.take_along_axis(nodes, np.minimum(below + i, count - 1), axis=1) for i in range(2))
        share = np.divide(scores - low, high - low, out=np.zeros_like(scores), where=high > low)
        return cls(nodes, below, share)

    def replace_axis(self, array: Floats) -> Floats:
        """Replace the first axis of an array, over outputs, by two axes at the end: over values and over nodes."""
        rows = [np.tensordot(array, weights, axes=(0, 1)) for weights in map(self.weights, range(len(self.nodes)))]
        return np.stack(rows, axis=-2)

    def weights(self, x: int) -> Floats:
        """Return the shares of the nodes of one value: a row per node and a column per output."""
        weights = np.zeros((self.nodes.shape[1] + 1, self.share.shape[1]))
        outputs = np.arange(self.share.shape[1])
        weights[self.below[x], outputs] = 1 - self.share[x]
        weights[self.below[x] + 1, outputs] += self.share[x]
        return weights[:-1]  # the share beyond the last node is zero
