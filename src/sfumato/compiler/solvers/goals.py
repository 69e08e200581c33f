"""What a mechanism is to be good for. Every goal has a value, exact for a given matrix, and says how rays add to it.

For Q(y|x) = w_y·v_y(x) with v_y·p = 1: mutual information is Σ w·Σ_x p_x v_x ln v_x; the mean squared error of a number
a(x) from its posterior mean is E[a²] - Σ w·(Σ_x p_x a_x v_x)²; the loss of the best decision is
Σ w·min_d Σ_x p_x L(x, d) v_x. The error of estimated frequencies is not such a sum (``estimation``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.compiler.solvers.estimation import Solved, least_error
from sfumato.compiler.solvers.pricing import Pricing, sum_of_squares
from sfumato.compiler.solvers.slice import Slice
from sfumato.compiler.solvers.utilities import ConvexUtility, DecisionUtility, InformationUtility, Utility
from sfumato.compiler.solvers.worst_case import least_worst_error
from sfumato.domain import Domain, align_table, read_numbers, unaligned_table
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism

__all__ = [
    "Estimation",
    "ExpectedLoss",
    "Goal",
    "MutualInformation",
    "SquaredError",
    "SumGoal",
    "WorstEstimation",
    "goal_of",
]

#: A matrix whose least singular value is this share of the greatest is singular but for rounding.
_LEAST_CONDITION = 1e-7


class Goal(ABC):
    """What is to be made large, or small."""

    name: ClassVar[str]
    small_is_good: ClassVar[bool]

    def resolution(self, prior: Floats) -> float:  # noqa: ARG002
        """Differences of values up to this are rounding."""
        return 1e-12

    def checked(self, domain: Domain) -> Goal:  # noqa: ARG002
        """This goal, fitted to the values, or an error that says what does not fit."""
        return self

    @abstractmethod
    def value(self, matrix: Floats, prior: Floats) -> float:
        """The goal of a mechanism at p."""

    def value_of(self, mechanism: Mechanism, prior: Floats) -> float:
        """The goal of a mechanism at p, as its own estimator reaches it."""
        return self.value(mechanism.matrix(), prior)

    @abstractmethod
    def bound(self, optimum: float, slice_: Slice, prior: Floats) -> float:
        """Return what no mechanism is better than, from the ``optimum`` over rays."""

    def outputs(self, columns: Floats, prior: Floats) -> Floats:
        """The columns of a mechanism as its outputs are numbered: likely ones first."""
        return np.asarray(columns[:, np.argsort(-(prior @ columns), kind="stable")])


class Estimation(Goal):
    """n times the expected squared l2 error of frequencies from n reports: tr J⁻¹ - |p|² by the efficient estimate.

    A design carries p, and its unbiased estimate is the efficient one there.
    """

    name = "estimation"
    small_is_good = True

    def solve(self, rays: Floats, prior: Floats, deadline: Deadline = NEVER) -> Solved:
        """Return the best weights of these rays; raise OutOfTime after the ``deadline``."""
        return least_error(rays, prior, deadline)

    def value(self, matrix: Floats, prior: Floats) -> float:
        singular_values = _information(matrix, prior)
        return float(np.sum(singular_values**-2.0) - prior @ prior) if len(singular_values) else np.inf

    def value_of(self, mechanism: Mechanism, prior: Floats) -> float:
        error = self.error_of(mechanism, prior)
        if np.isinf(error) or mechanism.estimator.condition <= _LEAST_CONDITION:
            return np.inf  # doubles see nothing but the rounding of such a table
        return error

    def error_of(self, mechanism: Mechanism, prior: Floats) -> float:
        """The error of a mechanism's unbiased estimate from one report."""
        return mechanism.risk(1, prior)

    def bound(self, optimum: float, slice_: Slice, prior: Floats) -> float:  # noqa: ARG002
        return np.inf if slice_.merges else optimum


class WorstEstimation(Estimation):
    """The same error at the distribution of values where it is greatest, whatever that is.

    ``p`` is the least favourable distribution. The mechanism carries it, and its estimate is the linear one that is
    efficient there: unbiased everywhere, with the greatest error there.
    """

    name = "worst-estimation"

    def solve(self, rays: Floats, prior: Floats, deadline: Deadline = NEVER) -> Solved:  # noqa: ARG002
        return least_worst_error(rays, deadline)

    def error_of(self, mechanism: Mechanism, prior: Floats) -> float:  # noqa: ARG002
        return mechanism.worst_risk(1)


def _information(matrix: Floats, prior: Floats) -> Floats:
    """The singular values of Q/√law, whose squares are the eigenvalues of J; none where J is singular."""
    law = prior @ matrix
    singular_values = np.linalg.svd(matrix[:, law > 0] / np.sqrt(law[law > 0]), compute_uv=False)
    if len(singular_values) < len(prior) or singular_values[-1] <= _LEAST_CONDITION * singular_values[0]:
        return np.zeros(0)
    return np.asarray(singular_values)


class SumGoal(Goal):
    """A goal to which every output adds its part."""

    @abstractmethod
    def on(self, slice_: Slice, prior: Floats) -> Utility:
        """What rays add to it."""

    @abstractmethod
    def bound_without(self, bound: float, scale: float, excess: Floats, prior: Floats) -> float:
        """What no mechanism is better than at p, where ``bound`` is that at (p + excess)/scale."""


class MutualInformation(SumGoal):
    """I(X; Y) in nats, of the value and the report."""

    name = "mutual-information"
    small_is_good = False

    def on(self, slice_: Slice, prior: Floats) -> Utility:  # noqa: ARG002
        size = slice_.size
        return InformationUtility(Pricing(_divergence, _divergence_slope, np.eye(size), slice_.prior, np.zeros(size)))

    def value(self, matrix: Floats, prior: Floats) -> float:
        law = prior @ matrix / prior.sum()
        return float(prior @ _divergence(matrix[:, law > 0] / law[law > 0]) @ law[law > 0])

    def bound(self, optimum: float, slice_: Slice, prior: Floats) -> float:  # noqa: ARG002
        return optimum

    def bound_without(self, bound: float, scale: float, excess: Floats, prior: Floats) -> float:  # noqa: ARG002
        entropy = -float(np.sum(prior * np.log(np.where(prior > 0, prior, 1.0))))
        return min(scale * bound, entropy)  # information is concave in p

    def resolution(self, prior: Floats) -> float:  # noqa: ARG002
        return 1e-18


def _divergence(at: Floats) -> Floats:
    """v·ln v - v + 1: on a ray, where p·v = 1, its mean is that of v·ln v, without terms that nearly cancel."""
    excess = at - 1
    logarithm = np.where(at > 0.5, np.log1p(np.maximum(excess, -0.5)), np.log(np.maximum(at, 1e-300)))
    return np.asarray(at * logarithm - excess)


def _divergence_slope(at: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(at, 1e-12)))


class SquaredError(SumGoal):
    """The expected squared error of a number for each value, by its mean given the report.

    Numbers are given for all values, in domain order or with labels (a pandas Series), or, as a mapping, for some (the
    others are zero: ``{"flu": 1}`` is the frequency of one value); without any, labels must be numbers.
    """

    name = "mmse"
    small_is_good = True

    def __init__(self, numbers: Mapping[Any, float] | Sequence[float] | Floats | None = None) -> None:
        self._numbers_argument = numbers
        self.numbers: Floats = np.zeros(0)

    def checked(self, domain: Domain) -> SquaredError:
        argument = self._numbers_argument
        if argument is None and not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in domain.labels):
            raise InvalidInput("mmse", "the labels", "be numbers, or SquaredError be given them", domain.labels[0])
        fitted = SquaredError(argument)
        numbers = domain.labels if argument is None else argument
        fitted.numbers = read_numbers(domain, numbers, "SquaredError", "numbers", absent=0.0)
        return fitted

    def on(self, slice_: Slice, prior: Floats) -> Utility:
        # Centred: E[E[a|Y]²] = E[a]² + E[E[a - E a|Y]²], and what is small is found more exactly.
        direction = np.bincount(slice_.group_of, weights=prior * (self.numbers - prior @ self.numbers))
        return ConvexUtility(sum_of_squares(direction.astype(np.float64)[None], np.zeros(slice_.size)))

    def value(self, matrix: Floats, prior: Floats) -> float:
        law = prior @ matrix
        sums = (prior * (self.numbers - prior @ self.numbers)) @ matrix
        return max(self._variance(prior) - float(np.sum(sums[law > 0] ** 2 / law[law > 0])), 0.0)

    def bound(self, optimum: float, slice_: Slice, prior: Floats) -> float:  # noqa: ARG002
        return max(self._variance(prior) - optimum, 0.0)

    def bound_without(self, bound: float, scale: float, excess: Floats, prior: Floats) -> float:  # noqa: ARG002
        # The best estimate at p lies among the numbers, so it is off by at most their range for the others.
        return max(scale * bound - float(excess.sum()) * float(np.ptp(self.numbers)) ** 2, 0.0)

    def resolution(self, prior: Floats) -> float:
        return 1e-6 * self._variance(prior)  # the search is as exact as this in what is taken from the variance

    def _variance(self, prior: Floats) -> float:
        return float(prior @ (self.numbers - prior @ self.numbers) ** 2)


class ExpectedLoss(SumGoal):
    """The loss L(x, d) of each decision d for each value x; the report is a decision.

    As in location privacy: values are places, a decision is the place that is acted on, the loss is their distance.
    Rows are in domain order, or have labels (a DataFrame, a mapping from values to rows) and are aligned by them.
    Decisions are numbered in the order of the columns, whatever these are called.
    """

    name = "expected-loss"
    small_is_good = True

    def __init__(self, matrix: Any) -> None:
        self._matrix_argument = matrix
        try:
            losses = np.array(unaligned_table(matrix, "ExpectedLoss", "matrix"), dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("ExpectedLoss", "matrix", "be rows of numbers", matrix) from None
        if losses.ndim != 2 or not losses.size or not np.all(np.isfinite(losses)):
            raise InvalidInput("ExpectedLoss", "matrix", "be a table of finite numbers, a row for each value", matrix)
        losses.setflags(write=False)
        self.matrix: Floats = losses

    def checked(self, domain: Domain) -> ExpectedLoss:
        aligned = align_table(domain, None, self._matrix_argument, "ExpectedLoss", "matrix")
        if aligned is not self._matrix_argument:
            return ExpectedLoss(aligned).checked(domain)
        if len(self.matrix) != len(domain):
            raise InvalidInput("ExpectedLoss", "matrix", f"have {len(domain)} rows, one per value", len(self.matrix))
        return self

    def on(self, slice_: Slice, prior: Floats) -> Utility:
        weighted = prior[:, None] * self.matrix
        return DecisionUtility(-np.array([np.bincount(slice_.group_of, weights=losses) for losses in weighted.T]))

    def value(self, matrix: Floats, prior: Floats) -> float:
        return float(prior @ (matrix * self.matrix).sum(axis=1))

    def bound(self, optimum: float, slice_: Slice, prior: Floats) -> float:  # noqa: ARG002
        return -optimum

    def bound_without(self, bound: float, scale: float, excess: Floats, prior: Floats) -> float:
        return max(scale * bound - float(excess @ self.matrix.max(axis=1)), float(prior @ self.matrix.min(axis=1)))

    def outputs(self, columns: Floats, prior: Floats) -> Floats:
        """One output for each decision; one that is never best has probability zero."""
        best = (columns.T @ (prior[:, None] * self.matrix)).argmin(axis=1)
        merged = np.zeros(self.matrix.shape)
        np.add.at(merged.T, best, columns.T)
        return merged


_NAMED: dict[str, Goal] = {
    goal.name: goal for goal in (Estimation(), WorstEstimation(), MutualInformation(), SquaredError())
}


def goal_of(utility: str | Goal, domain: Domain) -> Goal:
    """A goal by its name, or as it is, fitted to the values."""
    if isinstance(utility, Goal):
        return utility.checked(domain)
    if utility not in _NAMED:
        names = ", ".join(repr(name) for name in _NAMED)
        raise InvalidInput("design", "utility", f"be one of {names}, SquaredError(...) or ExpectedLoss(...)", utility)
    return _NAMED[utility].checked(domain)
