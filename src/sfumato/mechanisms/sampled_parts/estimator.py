"""Estimator of sampled parts: effects of attributes, each combined from all parts that contain them.

A function of the value splits into *effects*, one per set T of attributes: a constant, functions of one attribute that
average to zero over it, functions of two attributes that average to zero over each, and so on. The mean of an effect
over people has an unbiased estimate from every part that contains its attributes. The estimator averages these
estimates with weights λ that depend on the part and on T only, so that all marginals agree with each other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, quantity
from sfumato.errors import Description, LimitExceeded
from sfumato.mechanisms.base import LARGEST_MATRIX, Mechanism
from sfumato.mechanisms.estimators.base import Estimator, HistogramEstimator, ScoreEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.marginals import HistogramMarginal, MarginalEstimator, checked_axes, kept_axes
from sfumato.mechanisms.estimators.matrix import efficient_estimator
from sfumato.mechanisms.sampled_parts.mechanism import SampledParts

__all__ = ["SampledPartsEstimator"]

#: Relative size of an effect that rounding may cause; smaller effects of unknown attributes count as zero.
_NEGLIGIBLE = 1e-9
#: Maximum number of probabilities of a part whose law is inverted; a table of 240 values takes seconds.
_MOST_INVERTED = 20_000
_HINT = "Ask for a marginal of attributes that some part has together, or use a product or a joint mechanism."
#: A set of attributes, as ascending positions.
Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    """One part: its attributes, its reports and the estimator of its mechanism."""

    axes: Axes
    sizes: tuple[int, ...]
    reports: slice
    probability: float
    estimator: Estimator

    @classmethod
    def all_of(cls, mechanism: SampledParts) -> list[_Part]:
        """Return the parts of a mechanism."""
        return [
            cls(
                axes,
                tuple(mechanism.domain.shape[axis] for axis in axes),
                slice(mechanism.offsets[number], mechanism.offsets[number + 1]),
                float(mechanism.probabilities[number]),
                _estimator(mechanism.parts[number]),
            )
            for number, axes in enumerate(mechanism.axes)
        ]

    def frequencies(self, fractions: Floats) -> Floats:
        """Return estimates from counts that need not sum to one, in proportion to them."""
        total = float(fractions.sum())
        return self.estimator.frequencies(fractions / total) * total if total > 0 else np.zeros(math.prod(self.sizes))

    def inner(self, effect: Axes) -> list[int]:
        """Return the positions of attributes among those of the part."""
        return [self.axes.index(axis) for axis in effect]

    def spread(self, table: Floats, axes: Axes) -> Floats:
        """Return a table over some attributes of the part as one over all, which the others do not change."""
        others = [place for place, axis in enumerate(self.axes) if axis not in axes]
        return np.broadcast_to(np.expand_dims(table, others), self.sizes).reshape(-1)

    @cached_property
    def moments(self) -> dict[Axes, float]:
        """The second moment of the scores of each effect, summed over its cells, at the uniform distribution."""
        p = np.full(math.prod(self.sizes), 1 / math.prod(self.sizes))
        moments: dict[Axes, float] = {}
        for effect in _subsets(self.axes):
            sizes = {axis: size for axis, size in zip(self.axes, self.sizes, strict=True) if axis in effect}
            cells = math.prod(sizes.values())
            if effect == self.axes:
                of_marginal = float(self.estimator.second_moments().mean())
            else:
                of_marginal = self.estimator.marginal(self.sizes, self.inner(effect)).squared_error(p) + 1 / cells
            # The squared scores of a marginal are those of its effects, because effects are orthogonal.
            lower = (
                moment / math.prod(size for axis, size in sizes.items() if axis not in smaller)
                for smaller, moment in moments.items()
                if set(smaller) < set(effect)
            )
            moments[effect] = max(of_marginal - sum(lower), np.finfo(float).tiny)
        return moments


def _estimator(part: Mechanism) -> Estimator:
    """Return the efficient estimator of a part, or its usual one if inverting the law would take long."""
    if len(part.domain) * part.outputs > _MOST_INVERTED:
        return part.estimator
    return efficient_estimator(part)


class SampledPartsEstimator(ScoreEstimator):
    """Unbiased estimator of the sums of frequencies that are sums over parts.

    The weights w of a sum split into effects w_T. The score of a report of part c is the constant effect plus
    Σ_T λ(c,T)·(score of w_T in the part)/π(c), over the sets T of attributes of the part. The factors λ(c,T) sum to one
    over the parts that contain T, and are proportional to π(c) divided by the second moment of the scores at uniform
    values.
    """

    def __init__(self, mechanism: SampledParts) -> None:
        self.size = len(mechanism.domain)
        self.shape = mechanism.domain.shape
        self.parts = _Part.all_of(mechanism)
        self.condition = min(part.estimator.condition for part in self.parts)
        self._outputs = mechanism.outputs
        parts, attributes = quantity(len(self.parts), "part"), quantity(len(self.shape), "attribute")
        self._description = Description(f"{parts} of {attributes}")

    @cached_property
    def shares(self) -> list[dict[Axes, float]]:
        """The factor λ of each part for each effect of its attributes."""
        precisions = [
            {effect: part.probability / moment for effect, moment in part.moments.items() if effect}
            for part in self.parts
        ]
        totals: dict[Axes, float] = {}
        for of_part in precisions:
            for effect, precision in of_part.items():
                totals[effect] = totals.get(effect, 0.0) + precision
        return [{effect: one / totals[effect] for effect, one in of_part.items()} for of_part in precisions]

    # -- what the reports determine ----------------------------------------------------------------------------

    def _is_covered(self, axes: Sequence[int]) -> bool:
        """Return whether some part has all of these attributes; attributes with one value need none."""
        varied = {axis for axis in axes if self.shape[axis] > 1}
        return any(varied <= set(part.axes) for part in self.parts)

    @cached_property
    def is_complete(self) -> bool:
        """Whether the reports determine the frequencies of all values."""
        return self._is_covered(range(len(self.shape)))

    def identifies(self, weights: Floats) -> bool:
        if self.is_complete:
            return True
        rows = np.asarray(weights, np.float64).reshape(-1, self.size)
        return all(self._unexplained(row) <= _NEGLIGIBLE * max(float(np.ptp(row)), 1e-300) for row in rows)

    def _unexplained(self, weights: Floats) -> float:
        """Return the greatest weight that is left after the effects of all parts are subtracted."""
        left = weights.reshape(self.shape) - weights.mean()
        done: set[Axes] = set()
        for part in self.parts:
            for effect in _subsets(part.axes):
                if effect and effect not in done:
                    done.add(effect)
                    left = left - _effect(weights.reshape(self.shape), effect)
        return float(np.abs(left).max())

    def _require_complete(self) -> None:
        """Raise NotIdentifiable unless the reports determine the frequencies of all values."""
        if not self.is_complete:
            must = "have a part with all attributes, so that its reports determine all frequencies"
            raise NotIdentifiable(must, self._description, hint=_HINT)

    # -- sums of frequencies -----------------------------------------------------------------------------------

    def output_scores(self, weights: Floats) -> Floats:
        if not self.identifies(weights):
            raise NotIdentifiable("determine this sum of frequencies by its reports", self._description, hint=_HINT)
        table = np.asarray(weights, np.float64).reshape(self.shape)
        scores = np.full(self._outputs, table.mean())
        for part, shares in zip(self.parts, self.shares, strict=True):
            others = tuple(axis for axis in range(len(self.shape)) if axis not in part.axes)
            combined = _combined(table.mean(axis=others), part.axes, shares)
            if combined.any():
                scores[part.reports] += part.estimator.output_scores(combined.reshape(-1)) / part.probability
        return scores

    def expected_counts(self, p: Floats) -> Floats:
        counts = np.empty(self._outputs)
        for part in self.parts:
            table_of_part = kept_axes(p, self.shape, part.axes)
            counts[part.reports] = part.probability * part.estimator.expected_counts(table_of_part)
        return counts

    def adjoint(self, weights: Floats) -> Floats:
        sums = np.zeros(self.shape)
        for part in self.parts:
            assert isinstance(part.estimator, HistogramEstimator)
            of_part = part.probability * part.estimator.adjoint(weights[part.reports])
            sums += of_part.reshape([size if axis in part.axes else 1 for axis, size in enumerate(self.shape)])
        return sums.reshape(-1)

    def marginal(self, shape: Sequence[int], axes: Sequence[int]) -> MarginalEstimator:
        chosen = checked_axes(shape, axes, self.size)
        if tuple(shape) != self.shape:
            return super().marginal(shape, chosen)
        if not self._is_covered(chosen):
            must = "have a part with all attributes of the marginal"
            raise NotIdentifiable(must, self._description, hint=_HINT)
        return _SampledMarginal(self, chosen)

    # -- single frequencies ------------------------------------------------------------------------------------

    def score_batches(self) -> Iterator[tuple[slice, Floats]]:
        self._require_complete()
        if self.size * self._outputs > LARGEST_MATRIX:
            raise LimitExceeded(
                f"the scores of {self.size} values by {self._outputs} outputs are more than the limit of "
                f"{LARGEST_MATRIX:,} entries. Ask for marginals."
            )
        yield slice(self.size), self._scores

    @cached_property
    def _scores(self) -> Floats:
        """The score of every report for every value."""
        return np.stack([self.output_scores(row) for row in np.eye(self.size)])

    def frequencies(self, fractions: Floats) -> Floats:
        self._require_complete()
        return self.marginal(self.shape, range(len(self.shape))).frequencies(fractions)

    # -- effects, for marginals --------------------------------------------------------------------------------

    def effect_scores(self, number: int, axes: Axes) -> Floats:
        """Return the scores of the reports of a part for the cells of some of its attributes."""
        part, shares = self.parts[number], self.shares[number]
        sizes = [self.shape[axis] for axis in axes]
        cells = (one.reshape(sizes) for one in np.eye(math.prod(sizes)))
        spread = (part.spread(_combined(cell, axes, shares), axes) for cell in cells)
        return np.stack([part.estimator.output_scores(weights) / part.probability for weights in spread])


class _SampledMarginal(HistogramMarginal):
    """Marginal of attributes that some part has together, from the effects of all their subsets."""

    def __init__(self, estimator: SampledPartsEstimator, axes: Sequence[int]) -> None:
        self._estimator = estimator
        shape = estimator.shape
        self.shape = tuple(shape[axis] for axis in axes)
        #: The attributes in ascending order, and the position of each axis of the marginal among them.
        self._axes: Axes = tuple(sorted(axes))
        self._order = [self._axes.index(axis) for axis in axes]
        self._sizes = tuple(shape[axis] for axis in self._axes)

    def _shared(self) -> Iterator[tuple[int, Axes]]:
        """Yield the parts that have some of the attributes, with these attributes."""
        for number, part in enumerate(self._estimator.parts):
            shared = tuple(axis for axis in self._axes if axis in part.axes)
            if shared:
                yield number, shared

    def _ordered(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the cells in the order of the marginal's axes."""
        return np.asarray(table.reshape(self._sizes).transpose(self._order).reshape(-1))

    def _expanded(self, table: Floats, axes: Axes) -> Floats:
        """Return a table over some of the attributes, spread evenly over the others, without changing its sum."""
        sizes = [size if axis in axes else 1 for axis, size in zip(self._axes, self._sizes, strict=True)]
        return np.broadcast_to(table.reshape(sizes), self._sizes) / (self.size // max(math.prod(sizes), 1))

    def law(self, p: Floats) -> Floats:
        return self._estimator.expected_counts(p)

    def frequencies(self, fractions: Floats) -> Floats:
        table = np.full(self._sizes, float(fractions.sum()) / self.size)
        for number, shared in self._shared():
            part, shares = self._estimator.parts[number], self._estimator.shares[number]
            estimates = part.frequencies(fractions[part.reports]) / part.probability
            inner = part.inner(shared)
            table_of_part = kept_axes(estimates, part.sizes, inner).reshape([part.sizes[place] for place in inner])
            table = table + self._expanded(_combined(table_of_part, shared, shares), shared)
        return self._ordered(table)

    @cached_property
    def _scores(self) -> list[tuple[int, Axes, Floats]]:
        """For each part that has some of the attributes, the scores of its reports for the cells of these."""
        return [(number, shared, self._estimator.effect_scores(number, shared)) for number, shared in self._shared()]

    def _cells(self, count: int, shared: Axes) -> npt.NDArray[np.intp]:
        """Return the number of each cell of the marginal among the cells of some of its attributes."""
        return (
            np.rint(self._expanded(np.arange(count, dtype=np.float64) * (self.size // count), shared))
            .reshape(-1)
            .astype(np.intp)
        )

    def squares(self, law: Floats) -> Floats:
        base = 1 / self.size
        table = np.full(self._sizes, base**2 * float(law.sum()))
        for number, shared, scores in self._scores:
            of_part = law[self._estimator.parts[number].reports]
            # The score of a cell is the constant plus the scores of its attributes in the part, spread evenly.
            spread = self.size // len(scores)
            table_of_part = (scores**2 @ of_part) / spread**2 + 2 * base * (scores @ of_part) / spread
            table = table + self._expanded(table_of_part, shared) * spread
        return self._ordered(table)

    def second_moments_inside(self, shape: Sequence[int], axes: Sequence[int]) -> Floats:  # noqa: ARG002
        base = 1 / self.size
        moments = np.full(self.size, base**2)
        for number, shared, scores in self._scores:
            spread = self.size // len(scores)
            places = self._ordered(self._cells(len(scores), shared))
            of_cell, of_part = scores[places] / spread, self._laws_inside(number, shared)[places]
            moments += np.sum((of_cell**2 + 2 * base * of_cell) * of_part, axis=1)
        return moments

    def _laws_inside(self, number: int, shared: Axes) -> Floats:
        """Return the law of a part's reports for people in each cell of some attributes, equally frequent there."""
        part = self._estimator.parts[number]
        sizes = [self._estimator.shape[axis] for axis in shared]
        people = (part.spread(one.reshape(sizes), shared) for one in np.eye(math.prod(sizes)))
        return np.stack([part.probability * part.estimator.expected_counts(p / p.sum()) for p in people])

    def products(self, law: Floats) -> Floats:
        base = 1 / self.size
        matrix = np.full((self.size, self.size), base**2 * float(law.sum()))
        for number, shared, scores in self._scores:
            of_part = law[self._estimator.parts[number].reports]
            spread = self.size // len(scores)
            means = scores @ of_part * base / spread
            table_of_part = (scores * of_part) @ scores.T / spread**2 + means[:, None] + means
            cells = self._cells(len(scores), shared)
            matrix += table_of_part[np.ix_(cells, cells)]
        order = self._ordered(np.arange(self.size))
        return np.asarray(matrix[np.ix_(order, order)])


def _subsets(axes: Axes) -> Iterator[Axes]:
    """Yield all subsets of attributes, smaller ones first."""
    for count in range(len(axes) + 1):
        yield from itertools.combinations(axes, count)


def _effect(table: Floats, axes: Sequence[int]) -> Floats:
    """Return the effect of some axes: averaged over the others, and centred along each; other axes have length one."""
    result = table
    for axis in range(table.ndim):
        mean = result.mean(axis=axis, keepdims=True)
        result = result - mean if axis in axes else mean
    return np.asarray(result)


def _combined(table: Floats, axes: Axes, shares: dict[Axes, float]) -> Floats:
    """Return the sum of the effects of a table over some attributes, each multiplied by its share."""
    combined = np.zeros(table.shape)
    for effect in _subsets(axes):
        if effect:
            combined += shares[effect] * _effect(table, [axes.index(axis) for axis in effect])
    return combined
