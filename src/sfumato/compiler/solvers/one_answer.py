"""A lower bound on the error of one answer, such as a mean, by cutting planes.

A report has likelihoods v with p·v = 1. It has probability w at p, and its score is X. A mechanism with unbiased scores
satisfies Σ w·v = 1 and Σ w·X·v = c for weights c of mean zero at p, and has the variance Σ w·X². For all vectors n and
λ, the variance is therefore at least

    2·c·n - Σ λ - max over v of ((n·v)² - λ·v),

where v runs over the likelihoods that the policy allows. A cone program finds n and λ for some v, and adds those v for
which (n·v)² - λ·v is greatest. With s = n·v this is the maximum over s of 2s·n·v - s² - λ·v, which is linear in v for
every s. On a grid of s with steps h the maximum is missed by at most h²/4, which the bound subtracts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats, Integers, import_late
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.domain import Domain
from sfumato.errors import SolverFailed
from sfumato.mechanisms import ShiftedBins
from sfumato.policy import Metric, Policy, Uniform, structure_of

__all__ = ["bound_of_one_answer"]

#: Maximum number of values; the cone program for 128 values takes about 15 seconds.
_MOST_VALUES = 128
#: Maximum number of rounds, and of likelihood vectors that are added in one round.
_ROUNDS, _ADDED = 40, 40
#: Number of scores on the grid; its steps change the bound by about 0.001%.
_GRID = 2_000
#: Gap between the value of the cone program and the bound, relative to the value, at which the search ends.
_CLOSE = 2e-3
#: Excess at which a likelihood vector is added, and decimal digits in which two vectors must differ.
_VIOLATED, _DIGITS = 1e-9, 9
#: Fraction of the vectors that the next round keeps: those that come closest to limiting the bound.
_KEPT = 0.8
#: Relative improvement of a ratio that counts as rounding.
_ROUNDING = 1e-13
#: Difference of widths between the runs of values that begin the search.
_WIDTHS = range(-2, 3)
#: Level between all values, and between the ends of a line, above which e^ε is too large for doubles.
_GREATEST_LEVEL, _LONGEST_LINE = 30.0, 300.0


class _Likelihoods(ABC):
    """The likelihood vectors v with p·v = 1 that a policy allows."""

    prior: Floats

    @abstractmethod
    def largest(self, rows: Floats) -> Floats:
        """Return for each row h the vector v with the greatest h·v."""

    @abstractmethod
    def start(self, weights: Floats) -> Floats:
        """Return vectors with which the search begins: those of a good mechanism for increasing weights."""


@dataclass(frozen=True, eq=False)
class _OneLevel(_Likelihoods):
    """One level for all pairs: an extreme vector has two values, with the ratio e^ε."""

    prior: Floats
    epsilon: float

    @property
    def odds(self) -> float:
        """The number e^ε - 1."""
        return math.expm1(self.epsilon)

    def start(self, weights: Floats) -> Floats:
        size = len(weights)
        best = ShiftedBins.for_numbers(Domain.range(size), self.epsilon, weights).width if size > 2 else 1
        widths = sorted({min(max(best + change, 1), size - 1) for change in _WIDTHS})
        values, last = np.arange(size), [np.arange(size + width - 1)[:, None] for width in widths]
        runs = [(values <= end) & (values > end - width) for end, width in zip(last, widths, strict=True)]
        return np.asarray(1 + self.odds * np.concatenate(runs))

    def largest(self, rows: Floats) -> Floats:
        # The greatest ratio of two sums is attained at a set of values whose h/p is largest.
        safe = np.maximum(self.prior, 1e-300)
        order = np.argsort(-rows / safe, axis=1)
        gains = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        masses = np.cumsum(self.prior[order], axis=1)
        values = (rows.sum(axis=1, keepdims=True) + self.odds * gains) / (1 + self.odds * masses)
        size = values.argmax(axis=1)
        ranks = np.argsort(order, axis=1)
        vectors = 1 + self.odds * (ranks <= size[:, None])
        return _scaled(vectors, self.prior)


@dataclass(frozen=True, eq=False)
class _Line(_Likelihoods):
    """Values on a line: an extreme vector rises or falls by the factor of each step."""

    prior: Floats
    steps: Floats

    def start(self, weights: Floats) -> Floats:  # noqa: ARG002
        places = np.concatenate([[0.0], np.cumsum(self.steps)])
        return np.asarray(np.exp(-np.abs(places - places[:, None])))

    def largest(self, rows: Floats) -> Floats:
        # Maximum of a ratio by Dinkelbach's method (1967): raise the value until no vector exceeds it.
        vectors = np.ones_like(rows) / self.prior.sum()
        values = rows @ vectors[0]
        while True:
            candidates = _scaled(self._best(rows - values[:, None] * self.prior), self.prior)
            improved = np.einsum("ij,ij->i", rows, candidates)
            better = improved > values + _ROUNDING * (1 + np.abs(values))
            if not better.any():
                return np.asarray(vectors)
            vectors[better], values[better] = candidates[better], improved[better]

    def _best(self, rows: Floats) -> Floats:
        """Return for each row h the vector v with the greatest h·v/v₀, so h·v is positive if any vector makes it so."""
        size = rows.shape[1]
        changes = np.empty((len(rows), size - 1))
        rest = rows[:, -1]
        for x in range(size - 2, -1, -1):
            changes[:, x] = np.where(rest > 0, self.steps[x], -self.steps[x])
            rest = rows[:, x] + np.exp(changes[:, x]) * rest
        logs = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(changes, axis=1)], axis=1)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def bound_of_one_answer(policy: Policy, weights: Floats, prior: Floats, *, deadline: Deadline = NEVER) -> float | None:
    """Return a lower bound on the variance of an unbiased estimate of Σ weight·frequency from one report, or None.

    Parameters
    ----------
    policy
        The policy; bounds are known for one level between all values, and for a metric on numbers.
    weights
        The weight of each value, in domain order.
    prior
        The distribution of values at which the variance is measured.
    deadline
        Time limit; the bound is less close if it is reached.

    Returns
    -------
    float or None
        The bound, computed in doubles; None for other policies, for more than 128 values, and if the solver fails.
    """
    order, likelihoods = _likelihoods(policy, weights, prior)
    if likelihoods is None or deadline.passed:
        return None
    centred = (weights - weights @ prior)[order]
    scale = float(np.abs(centred).max())
    if scale == 0:
        return None
    return _bound(likelihoods, centred / scale, deadline) * scale**2 or None


def _likelihoods(policy: Policy, weights: Floats, prior: Floats) -> tuple[Integers, _Likelihoods | None]:
    """Return an order of the values and the likelihoods in this order; None if the policy has another form."""
    order = np.argsort(weights, kind="stable")
    if len(order) > _MOST_VALUES:
        return order, None
    structure = structure_of(policy)
    if isinstance(structure, Uniform) and 0 < float(structure.epsilon) <= _GREATEST_LEVEL:
        return order, _OneLevel(prior[order], float(structure.epsilon))
    if isinstance(policy, Metric) and policy.parameters()["distance"] == "absolute":
        order = np.argsort(policy.domain.numeric_values)
        neighbours = zip(order[:-1].tolist(), order[1:].tolist(), strict=True)
        steps = np.array([float(policy.epsilon_between(x, other)) for x, other in neighbours])
        if steps.min() > 0 and steps.sum() <= _LONGEST_LINE:
            return order, _Line(prior[order], steps)
    return order, None


def _bound(likelihoods: _Likelihoods, answer: Floats, deadline: Deadline) -> float:
    """Return the bound for weights of mean zero at the prior and greatest size one; 0 if none is found."""
    vectors = _scaled(likelihoods.start(answer), likelihoods.prior)
    best, best_point = 0.0, None
    for _ in range(_ROUNDS):
        try:
            point, value = _solved(answer, vectors)
        except SolverFailed:
            break
        # Points between the best one so far and the present one give deeper cuts.
        points = [point] if best_point is None else [(best_point + point) / 2, point]
        slack = _slack(point, vectors)
        cuts = [vectors[slack <= np.quantile(slack, _KEPT)]]
        for trial in points:
            violated, excess = _cuts(likelihoods, trial)
            bound = float(2 * answer @ trial[0] - trial[1].sum()) - excess
            if bound > best or best_point is None:
                best, best_point = max(bound, 0.0), trial
            cuts.append(violated)
        if value - best <= _CLOSE * value or deadline.passed:
            break
        vectors = _scaled(np.unique(np.concatenate(cuts).round(_DIGITS), axis=0), likelihoods.prior)
    return best


def _scaled(vectors: Floats, prior: Floats) -> Floats:
    """Return vectors v with p·v = 1."""
    return np.asarray(vectors / (vectors @ prior)[:, None])


def _slack(point: Floats, vectors: Floats) -> Floats:
    """Return λ·v - (n·v)² for each vector, which is not negative at a solution."""
    return np.asarray(vectors @ point[1] - (vectors @ point[0]) ** 2)


def _solved(answer: Floats, vectors: Floats) -> tuple[Floats, float]:
    """Return n and λ with the greatest 2·c·n - Σ λ under (n·v)² ≤ λ·v, as two rows, and this greatest value."""
    sparse, clarabel = import_late("scipy.sparse"), import_late("clarabel")
    count, size = vectors.shape
    # |(2·n·v, λ·v - 1)| ≤ λ·v + 1.
    rows = np.zeros((count, 3, 2 * size))
    rows[:, 0, size:], rows[:, 1, :size], rows[:, 2, size:] = -vectors, -2 * vectors, -vectors
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * size, 2 * size)),
        np.concatenate([-2 * answer, np.ones(size)]),
        sparse.csc_matrix(rows.reshape(3 * count, 2 * size)),
        np.tile([1.0, 0.0, -1.0], count),
        [clarabel.SecondOrderConeT(3)] * count,
        settings,
    ).solve()
    point = np.array(solution.x).reshape(2, size)
    if not np.isfinite(point).all() or "Solved" not in str(solution.status):
        raise SolverFailed(f"the cone program for one answer was not solved ({solution.status})")
    return point, -float(solution.obj_val)


def _cuts(likelihoods: _Likelihoods, point: Floats) -> tuple[Floats, float]:
    """Return vectors with (n·v)² > λ·v, and an upper bound on the excess of all vectors, which is not negative."""
    n, multipliers = point
    high, low = (float(likelihoods.largest(sign * n[None])[0] @ n) for sign in (1.0, -1.0))
    scores = np.linspace(low, high, _GRID)
    rows = 2 * scores[:, None] * n - multipliers
    vectors = likelihoods.largest(rows)
    values = np.einsum("ij,ij->i", rows, vectors) - scores**2
    greatest = float(values.max()) + (scores[1] - scores[0]) ** 2 / 4
    excess = -_slack(point, vectors)
    violated, first = np.unique(vectors[excess > _VIOLATED].round(_DIGITS), axis=0, return_index=True)
    worst = np.argsort(-excess[excess > _VIOLATED][first])[:_ADDED]
    return np.asarray(violated[worst]), max(greatest, 0.0)
