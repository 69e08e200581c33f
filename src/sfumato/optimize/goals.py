"""What a mechanism is to be good for. Every goal has a value, exact for a given matrix, and says how rays add to it.

For Q(y|x) = w_y·v_y(x) with v_y·p = 1: mutual information is Σ w·Σ_x p_x v_x ln v_x; the mean squared error of a number
a(x) from its posterior mean is E[a²] - Σ w·(Σ_x p_x a_x v_x)²; the loss of the best decision is
Σ w·min_d Σ_x p_x L(x, d) v_x. The error of estimated frequencies is no such sum (``estimation``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.optimize.deadline import NEVER, Deadline
from sfumato.optimize.estimation import Solved, least_error
from sfumato.optimize.slice import Slice
from sfumato.optimize.utilities import Curved, OfDecisions, Told, Utility
from sfumato.optimize.worst_case import least_worst_error
from sfumato.optimize.worth import Worth, sum_of_squares
from sfumato.simplex import project_to_simplex

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

Floats = npt.NDArray[np.float64]


class Goal(ABC):
    """What is to be made large, or small."""

    name: ClassVar[str]
    small_is_good: ClassVar[bool]

    def checked(self, domain: Domain) -> Goal:  # noqa: ARG002
        """This goal, fitted to the values, or an error that says what does not fit."""
        return self

    @abstractmethod
    def value(self, matrix: Floats, p: Floats) -> float:
        """The goal of a mechanism at p."""

    @abstractmethod
    def bound(self, found: float, slice_: Slice, p: Floats) -> float:
        """What no mechanism is better than, from what was found over rays."""

    def outputs(self, columns: Floats, p: Floats) -> Floats:
        """The columns of a mechanism as its outputs are numbered: likely ones first."""
        return np.asarray(columns[:, np.argsort(-(p @ columns), kind="stable")])


class Estimation(Goal):
    """n times the expected squared l2 error of frequencies, by the efficient estimator, as n grows: tr J⁻¹ - |p|²."""

    name = "estimation"
    small_is_good = True

    def solve(self, rays: Floats, p: Floats, deadline: Deadline = NEVER) -> Solved:
        """The best weights of these rays."""
        return least_error(rays, p, deadline)

    def value(self, matrix: Floats, p: Floats) -> float:
        _, singular_values, _ = _information(matrix, p)
        return float(np.sum(singular_values**-2.0) - p @ p) if len(singular_values) else np.inf

    def bound(self, found: float, slice_: Slice, p: Floats) -> float:  # noqa: ARG002
        return np.inf if slice_.merges else found


class WorstEstimation(Estimation):
    """The same error at the distribution of values where it is greatest, whatever that is.

    ``p`` is the least favourable distribution: the linear estimate that is efficient there is unbiased everywhere, and
    its error is greatest there.
    """

    name = "worst-estimation"

    def solve(self, rays: Floats, p: Floats, deadline: Deadline = NEVER) -> Solved:  # noqa: ARG002
        return least_worst_error(rays, deadline)

    def value(self, matrix: Floats, p: Floats) -> float:
        left, singular_values, right = _information(matrix, p)
        if not len(singular_values):
            return np.inf
        law = p @ matrix
        decoder = (left / singular_values) @ right / np.sqrt(law[law > 0])
        energies = matrix[:, law > 0] @ np.sum(decoder**2, axis=0)
        # energies·p - |p|² is greatest at the point of the simplex nearest to energies/2.
        worst = project_to_simplex(energies / 2)
        return float(energies @ worst - worst @ worst)


def _information(matrix: Floats, p: Floats) -> tuple[Floats, Floats, Floats]:
    """The singular value decomposition of Q/√law, whose squares have the eigenvalues of J; none where J is singular."""
    law = p @ matrix
    left, singular_values, right = np.linalg.svd(matrix[:, law > 0] / np.sqrt(law[law > 0]), full_matrices=False)
    if len(singular_values) < len(p) or singular_values[-1] <= 1e-7 * singular_values[0]:
        singular_values = np.zeros(0)
    return left, singular_values, right


class SumGoal(Goal):
    """A goal to which every output adds its part."""

    @abstractmethod
    def on(self, slice_: Slice, p: Floats) -> Utility:
        """What rays add to it."""


class MutualInformation(SumGoal):
    """I(X; Y) in nats, of the value and the report."""

    name = "mutual-information"
    small_is_good = False

    def on(self, slice_: Slice, p: Floats) -> Utility:  # noqa: ARG002
        size = slice_.size
        return Told(Worth(_told, _told_slope, np.eye(size), slice_.p, np.zeros(size)))

    def value(self, matrix: Floats, p: Floats) -> float:
        law = p @ matrix / p.sum()
        return float(p @ _told(matrix[:, law > 0] / law[law > 0]) @ law[law > 0])

    def bound(self, found: float, slice_: Slice, p: Floats) -> float:  # noqa: ARG002
        return found


def _told(at: Floats) -> Floats:
    """v·ln v - v + 1: on a ray, where p·v = 1, its mean is that of v·ln v, without terms that nearly cancel."""
    excess = at - 1
    logarithm = np.where(at > 0.5, np.log1p(np.maximum(excess, -0.5)), np.log(np.maximum(at, 1e-300)))
    return np.asarray(at * logarithm - excess)


def _told_slope(at: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(at, 1e-12)))


class SquaredError(SumGoal):
    """The expected squared error of a number for each value, by its mean given the report.

    Numbers are given for all values or, as a mapping, for some (the others are zero: ``{"flu": 1}`` is the frequency of
    one value); without any, labels must be numbers.
    """

    name = "mmse"
    small_is_good = True

    def __init__(self, numbers: Mapping[Any, float] | Sequence[float] | Floats | None = None) -> None:
        self._given = numbers
        self.numbers: Floats = np.zeros(0)

    def checked(self, domain: Domain) -> SquaredError:
        given = self._given
        if given is None and not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in domain.labels):
            raise InvalidInput("mmse", "the labels", "be numbers, or SquaredError be given them", domain.labels[0])
        fitted = SquaredError(given)
        try:
            if isinstance(given, Mapping):
                fitted.numbers = np.zeros(len(domain))
                fitted.numbers[[domain.index(label) for label in given]] = list(given.values())
            else:
                fitted.numbers = np.array(domain.labels if given is None else given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("SquaredError", "numbers", "be numbers", given) from None
        if fitted.numbers.shape != (len(domain),) or not np.all(np.isfinite(fitted.numbers)):
            raise InvalidInput("SquaredError", "numbers", f"be {len(domain)} finite numbers", given)
        return fitted

    def on(self, slice_: Slice, p: Floats) -> Utility:
        # Centred: E[E[a|Y]²] = E[a]² + E[E[a - E a|Y]²], and what is small is found more exactly.
        direction = np.bincount(slice_.group_of, weights=p * (self.numbers - p @ self.numbers))
        return Curved(sum_of_squares(direction.astype(np.float64)[None], np.zeros(slice_.size)))

    def value(self, matrix: Floats, p: Floats) -> float:
        law = p @ matrix
        sums = (p * (self.numbers - p @ self.numbers)) @ matrix
        return max(self._variance(p) - float(np.sum(sums[law > 0] ** 2 / law[law > 0])), 0.0)

    def bound(self, found: float, slice_: Slice, p: Floats) -> float:  # noqa: ARG002
        return max(self._variance(p) - found, 0.0)

    def _variance(self, p: Floats) -> float:
        return float(p @ (self.numbers - p @ self.numbers) ** 2)


class ExpectedLoss(SumGoal):
    """The loss L(x, d) of each decision d for each value x; the report is a decision.

    As in location privacy: values are places, a decision is the place that is acted on, the loss is their distance.
    """

    name = "expected-loss"
    small_is_good = True

    def __init__(self, matrix: Any) -> None:
        try:
            losses = np.array(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("ExpectedLoss", "matrix", "be rows of numbers", matrix) from None
        if losses.ndim != 2 or not losses.size or not np.all(np.isfinite(losses)):
            raise InvalidInput("ExpectedLoss", "matrix", "be a table of finite numbers, a row for each value", matrix)
        losses.setflags(write=False)
        self.matrix: Floats = losses

    def checked(self, domain: Domain) -> ExpectedLoss:
        if len(self.matrix) != len(domain):
            raise InvalidInput("ExpectedLoss", "matrix", f"have {len(domain)} rows, one per value", len(self.matrix))
        return self

    def on(self, slice_: Slice, p: Floats) -> Utility:
        weighted = p[:, None] * self.matrix
        return OfDecisions(-np.array([np.bincount(slice_.group_of, weights=losses) for losses in weighted.T]))

    def value(self, matrix: Floats, p: Floats) -> float:
        return float(p @ (matrix * self.matrix).sum(axis=1))

    def bound(self, found: float, slice_: Slice, p: Floats) -> float:  # noqa: ARG002
        return -found

    def outputs(self, columns: Floats, p: Floats) -> Floats:
        """One output for each decision; one that is never best has probability zero."""
        best = (columns.T @ (p[:, None] * self.matrix)).argmin(axis=1)
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
