"""Estimator of products: the least-squares decoder of each factor along its axis of the array of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, reduce

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.limits import ScoreLaw, relative_spread
from sfumato.mechanisms.estimators.marginals import (
    FactoredMarginal,
    MarginalEstimator,
    along_axes,
    axes_of_factors,
    checked_axes,
    kronecker,
)
from sfumato.mechanisms.estimators.matrix import LeastSquaresEstimator, efficient_estimator
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.product.nodes import ScoreNodes, node_counts

__all__ = ["ProductEstimator"]


class ProductEstimator(LeastSquaresEstimator):
    """Least squares for products: p̂ = (A₁ ⊗ A₂ ⊗ …)·fractions, with the decoder Aᵢ of factor i.

    Each decoder is a left inverse of its factor's law, so the estimate is unbiased. The scores of a report are products
    of the scores of its digits. If values are uniform, or follow the product of the factors' design distributions, this
    is the least-squares estimator of the whole law.
    """

    def __init__(self, mechanism: ProductMechanism) -> None:
        self.size = len(mechanism.domain)
        estimators = [efficient_estimator(factor) for factor in mechanism.factors]
        self.condition = math.prod(estimator.condition for estimator in estimators)
        self._second_moments = [estimator.second_moments() for estimator in estimators]
        self._bounds = [estimator.score_bounds() for estimator in estimators]
        # One matrix per factor, with a row per value and a column per output.
        pairs = [estimator.score_values() for estimator in estimators]
        self._decoders, self._laws = [scores for scores, _ in pairs], [law for _, law in pairs]

    def frequencies(self, fractions: Floats) -> Floats:
        return along_axes(self._decoders, fractions)

    def expected_counts(self, p: Floats) -> Floats:
        return along_axes([law.T for law in self._laws], p)

    def output_scores(self, weights: Floats) -> Floats:
        return along_axes([decoder.T for decoder in self._decoders], weights)

    def adjoint(self, weights: Floats) -> Floats:
        return along_axes(self._laws, weights)

    def second_moments(self) -> Floats:
        # The digits of a report are independent given the value, and |φ|² is the product of the |φᵢ|².
        return kronecker(self._second_moments)

    def variances(self, p: Floats) -> Floats:
        return along_axes([decoder**2 for decoder in self._decoders], self.expected_counts(p)) - p**2

    def covariance(self, p: Floats) -> Floats:
        # E[φ_x φ_x'] is a product over factors for each output, so pairs of coordinates are decoded along each axis.
        products = [(decoder[:, None] * decoder).reshape(-1, decoder.shape[1]) for decoder in self._decoders]
        sizes = [len(decoder) for decoder in self._decoders]
        moments = along_axes(products, self.expected_counts(p)).reshape([size for size in sizes for _ in range(2)])
        return _by_value(moments, self.size) - np.outer(p, p)

    def marginal(self, shape: Sequence[int], axes: Sequence[int]) -> MarginalEstimator:
        chosen = checked_axes(shape, axes, self.size)
        runs = axes_of_factors(shape, [len(decoder) for decoder in self._decoders])
        if runs is None:
            return super().marginal(shape, chosen)
        scores: list[Floats | None] = []
        inner: list[int] = []  # the chosen axes in the order of the factors
        for run, decoder in zip(runs, self._decoders, strict=True):
            used = [axis for axis in run if axis in chosen]
            # All scores of a digit sum to one, so a digit whose coordinates are summed away does not matter.
            others = tuple(number for number, axis in enumerate(run) if axis not in chosen)
            by_axis = decoder.reshape(*(shape[axis] for axis in run), -1)
            scores.append(by_axis.sum(axis=others).reshape(-1, decoder.shape[1]) if used else None)
            inner += used
        return FactoredMarginal(scores, self._laws, [shape[axis] for axis in inner], list(map(inner.index, chosen)))

    # -- the scores of one report ------------------------------------------------------------------------------

    @cached_property
    def _nodes(self) -> list[ScoreNodes]:
        """The scores of the factors on their nodes: all scores, or fewer if the product has many outputs."""
        counts = node_counts([len(law) for law in self._laws], [law.shape[1] for law in self._laws])
        return [ScoreNodes.of(decoder, count) for decoder, count in zip(self._decoders, counts, strict=True)]

    def score_values(self) -> tuple[Floats, Floats]:
        """Return the possible scores of one report for each value, and their probabilities.

        If there are more than 2^22 scores, those of each factor are shared between fewer nodes with the same mean.
        """
        at_value = [
            np.stack([nodes.weights(x) @ law[x] for x in range(len(law))])
            for nodes, law in zip(self._nodes, self._laws, strict=True)
        ]
        return kronecker(nodes.nodes for nodes in self._nodes), kronecker(at_value)

    def score_probabilities(self, p: Floats) -> Floats:
        law = self.expected_counts(p).reshape([law.shape[1] for law in self._laws])
        for nodes in self._nodes:
            law = nodes.replace_axis(law)
        return _by_value(law, self.size)

    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        """Return the law of the scores on their nodes, with the variance of the estimate."""
        (law,) = super().score_laws(p, n)
        on_nodes = np.sum(self.score_probabilities(p) * law.score_values**2, axis=1) - p**2
        return [replace(law, spread=relative_spread(self.variances(p), on_nodes))]

    def score_bounds(self) -> tuple[Floats, Floats]:
        return reduce(_product_bounds, self._bounds)


def _by_value(array: Floats, size: int) -> Floats:
    """Return a matrix with a row per value, from an array whose axes are in turn a coordinate and something else."""
    axes = range(array.ndim)
    return array.transpose(*axes[::2], *axes[1::2]).reshape(size, -1)


def _product_bounds(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return the least and the greatest product of two scores, for all pairs of coordinates."""
    corners = np.stack([np.kron(one, other) for one in first for other in second])
    return corners.min(axis=0), corners.max(axis=0)
