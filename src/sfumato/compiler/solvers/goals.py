"""The utilities that a mechanism can be designed for.

A goal has an exact value for a given matrix, and describes how each ray contributes to that value. For Q(y|x) =
w_y·v_y(x) with v_y·p = 1:

- the mutual information is Σ w·Σ_x p_x v_x ln v_x;
- the mean squared error of a number a(x), estimated by its posterior mean, is E[a²] - Σ w·(Σ_x p_x a_x v_x)²;
- the loss of the best decision is Σ w·min_d Σ_x p_x L(x, d) v_x.

The error of estimated frequencies or answers is not a sum over rays (see ``estimation``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from sfumato._core import Floats, quantity
from sfumato.compiler.solvers.answer_errors import error_of_answers, worst_error_of_answers
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.compiler.solvers.estimation import Solved, least_error
from sfumato.compiler.solvers.pricing import Pricing, sum_of_squares
from sfumato.compiler.solvers.slice import Slice
from sfumato.compiler.solvers.utilities import ConvexUtility, DecisionUtility, InformationUtility, Utility
from sfumato.compiler.solvers.worst_case import least_worst_error
from sfumato.domain import Domain, align_table, read_numbers, unaligned_table
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.questions import Frequencies, Question, read_question

__all__ = [
    "Estimation",
    "ExpectedLoss",
    "Goal",
    "MutualInformation",
    "SquaredError",
    "SumGoal",
    "WorstEstimation",
    "goal_of",
    "read_goal",
]

#: Ratio of the least to the greatest singular value at or below which a matrix counts as singular.
_LEAST_CONDITION = 1e-7


class Goal(ABC):
    """Base class of design goals: the utility that :func:`optimal`, :func:`plan` or :func:`design` optimises.

    Pass one of its subclasses as ``utility``: :class:`Estimation`, :class:`WorstEstimation`,
    :class:`MutualInformation`, :class:`SquaredError` or :class:`ExpectedLoss`. The methods are called by the search;
    most users need none of them.

    Attributes
    ----------
    name
        Name of the utility in plans and results.
    small_is_good
        True if smaller values are better (an error or a loss), False if larger values are better (information).
    """

    name: ClassVar[str]
    small_is_good: ClassVar[bool]

    def resolution(self, prior: Floats) -> float:  # noqa: ARG002
        """Return the largest difference between two utilities that counts as a rounding error.

        Parameters
        ----------
        prior
            The distribution of values, shape (k,), in domain order.

        Returns
        -------
        float
            The difference, in the unit of the utility.
        """
        return 1e-12

    def checked(self, domain: Domain) -> Goal:  # noqa: ARG002
        """Check that the goal fits a domain, and return it with its numbers in domain order.

        Parameters
        ----------
        domain
            The domain of the policy.

        Returns
        -------
        Goal
            The goal itself if it has no numbers per value, otherwise a copy with one number or row per value.

        Raises
        ------
        InvalidInput
            If the goal does not fit the domain, for example because the labels of the values are not numbers.
        """
        return self

    @abstractmethod
    def value(self, matrix: Floats, prior: Floats) -> float:
        """Return the utility of a mechanism that is described by its matrix of output probabilities.

        Parameters
        ----------
        matrix
            The output probabilities Q(y|x): one row per value x in domain order, one column per output y.
        prior
            The distribution of values, shape (k,), in domain order.

        Returns
        -------
        float
            The utility if values are drawn from the prior.
        """

    def value_of(self, mechanism: Mechanism, prior: Floats) -> float:
        """Return the utility of a mechanism.

        The estimation goals use the mechanism's own unbiased estimator. The other goals use only its output
        probabilities.

        Parameters
        ----------
        mechanism
            The mechanism to measure.
        prior
            The distribution of values, shape (k,), in domain order.

        Returns
        -------
        float
            The utility if values are drawn from the prior.
        """
        return self.value(mechanism.matrix(), prior)

    @abstractmethod
    def bound(self, optimum: float, slice_: Slice, prior: Floats) -> float:
        """Convert the result of a search to a bound on the utility of every mechanism that obeys the policy.

        Parameters
        ----------
        optimum
            The optimum of the search, or a bound on it, in the quantity that the search optimises.
        slice_
            The set of likelihood vectors that the policy allows, as the search represents it (internal).
        prior
            The distribution of values, shape (k,), in domain order.

        Returns
        -------
        float
            The bound, in the unit of the utility: a lower bound if ``small_is_good``, otherwise an upper bound.
        """

    def outputs(self, columns: Floats, prior: Floats) -> Floats:
        """Return the columns of a matrix in the order in which the mechanism numbers its outputs.

        Outputs are sorted by their probability under the prior, the most probable first.

        Parameters
        ----------
        columns
            The output probabilities Q(y|x): one row per value x in domain order, one column per output y.
        prior
            The distribution of values, shape (k,), in domain order.

        Returns
        -------
        numpy.ndarray
            The same columns, reordered.
        """
        return np.asarray(columns[:, np.argsort(-(prior @ columns), kind="stable")])


class Estimation(Goal):
    """Design goal: the least expected squared error of the answers to a question, at the prior.

    Pass it to :func:`optimal`, :func:`plan` or :func:`design` as ``utility``; the name ``"estimation"`` means the same.
    By default the question is the frequency of every value. The prior p is the ``prior`` argument of that call. A
    mechanism designed for this goal stores p. If values follow p, the mechanism's unbiased estimator has the least
    asymptotic variance.

    Parameters
    ----------
    question
        The :class:`Question`, by default :class:`Frequencies`. The argument ``question`` of :func:`optimal`,
        :func:`plan` and :func:`design` means the same.

    Notes
    -----
    The value is the limit of n·E|W·(p̂ - p)|² for n reports as n grows. Here W·p are the answers (W is the identity for
    frequencies), and p̂ is the estimate with the least asymptotic variance. The value equals tr(W·J⁻·W') - |W·p|², where
    J = Σ_y q_y q_y' / (p·q_y) is a k × k information matrix, J⁻ is its pseudo-inverse, and q_y is the column Q(y|·) of
    the output probabilities. It is infinite if W is not in the range of J, because then no unbiased estimate exists.

    Examples
    --------
    >>> from sfumato import Domain, Mean, Uniform, optimal
    >>> policy = Uniform(Domain.range(3), 1)
    >>> result = optimal(policy, Estimation())
    >>> result.utility, round(result.value, 3)
    ('estimation', 5.027)
    >>> round(optimal(policy, Estimation(Mean())).value, 3)
    4.572
    """

    name = "estimation"
    small_is_good = True

    def __init__(self, question: Question | None = None) -> None:
        #: The question; None for all frequencies.
        self.question = None if isinstance(question, Frequencies) else question

    def checked(self, domain: Domain) -> Self:
        if self.question is None:
            return self
        return type(self)(self.question.checked(domain))

    def answers(self, prior: Floats) -> Floats | None:
        """Return the matrix W of the question; None for all frequencies.

        Parameters
        ----------
        prior
            The distribution of values, shape (k,), in domain order.

        Returns
        -------
        numpy.ndarray or None
            One row per answer and one column per value.
        """
        return None if self.question is None else self.question.matrix(prior)

    def solve(self, slice_: Slice, rays: Floats, deadline: Deadline = NEVER, *, precision: float = 1e-10) -> Solved:
        """Return the probabilities of given outputs that minimise the error (a step of the search).

        Parameters
        ----------
        slice_
            The set of likelihood vectors that the policy allows, as the search represents it (internal).
        rays
            The likelihood vector v of each output, one per row, scaled so that v·p = 1.
        deadline
            Time by which the solver must finish.
        precision
            Relative precision of the error.

        Returns
        -------
        Solved
            The probability of each output at p, the error, and the data by which the search values further outputs.

        Raises
        ------
        OutOfTime
            If the deadline passes first.
        """
        return least_error(slice_, rays, deadline, precision=precision)

    def value(self, matrix: Floats, prior: Floats) -> float:
        law = prior @ matrix
        left, sizes, _ = np.linalg.svd(matrix[:, law > 0] / np.sqrt(law[law > 0]), full_matrices=False)
        positive = sizes > _LEAST_CONDITION * sizes[0]  # their squares are the eigenvalues of J
        answers = self.answers(prior)
        if answers is None:
            complete = np.count_nonzero(positive) == len(prior)
            return float(np.sum(sizes**-2.0) - prior @ prior) if complete else np.inf
        turned = answers @ left[:, positive]
        distance = np.abs(answers - turned @ left[:, positive].T).max()
        if distance > _LEAST_CONDITION * np.abs(answers).max():
            return np.inf
        return float(np.sum((turned / sizes[positive]) ** 2) - np.sum((answers @ prior) ** 2))

    def value_of(self, mechanism: Mechanism, prior: Floats) -> float:
        error = self.error_of(mechanism, prior)
        if np.isinf(error) or mechanism.estimator.condition <= _LEAST_CONDITION:
            return np.inf  # in double precision, rounding hides the information in such a table
        return error

    def error_of(self, mechanism: Mechanism, prior: Floats) -> float:
        """Return the expected squared error of a mechanism's unbiased answers from one report.

        Parameters
        ----------
        mechanism
            The mechanism to measure.
        prior
            The distribution of values, shape (k,), in domain order.

        Returns
        -------
        float
            The expected squared l2 error of all answers. For n reports, divide it by n.
        """
        if self.question is None:
            return mechanism.risk(1, prior)
        return error_of_answers(mechanism, self.question, prior)

    def bound(self, optimum: float, slice_: Slice, prior: Floats) -> float:  # noqa: ARG002
        return np.inf if slice_.merges and slice_.answers is None else optimum


class WorstEstimation(Estimation):
    """Design goal: the least worst-case squared error of the answers to a question, over all distributions of values.

    Pass it to :func:`optimal`, :func:`plan` or :func:`design` as ``utility``, without ``prior``; the name
    ``"worst-estimation"`` means the same. The search finds the mechanism together with its least favourable
    distribution, at which the error is greatest. The mechanism stores that distribution. Its estimator is linear,
    unbiased at every distribution, and has the least variance at the stored one.

    The value is n times the expected squared l2 error from n reports at the least favourable distribution.

    Parameters
    ----------
    question
        The :class:`Question`, by default :class:`Frequencies`.

    Examples
    --------
    >>> from sfumato import Domain, HighLow, optimal
    >>> result = optimal(HighLow(Domain.range(3), [0], 1), WorstEstimation())
    >>> result.utility, round(result.value, 3), result.prior.round(2).tolist()
    ('worst-estimation', 1.664, [0.0, 0.5, 0.5])
    """

    name = "worst-estimation"

    def solve(
        self,
        slice_: Slice,
        rays: Floats,
        deadline: Deadline = NEVER,
        *,
        precision: float = 1e-10,  # noqa: ARG002
    ) -> Solved:
        return least_worst_error(slice_, rays, deadline)

    def answers(self, prior: Floats) -> Floats | None:  # noqa: ARG002
        return None if self.question is None else self.question.matrix()

    def error_of(self, mechanism: Mechanism, prior: Floats) -> float:  # noqa: ARG002
        if self.question is None:
            return mechanism.worst_risk(1)
        return worst_error_of_answers(mechanism, self.question)


class SumGoal(Goal):
    """A goal that is a sum over outputs."""

    @abstractmethod
    def on(self, slice_: Slice, prior: Floats) -> Utility:
        """Return the contribution of rays to the goal."""

    @abstractmethod
    def bound_without(self, bound: float, scale: float, excess: Floats, prior: Floats) -> float:
        """Return the bound at p, where ``bound`` is the bound at (p + excess)/scale."""


class MutualInformation(SumGoal):
    """Design goal: the greatest mutual information I(X; Y) between a person's value X and the report Y, in nats.

    Pass it to :func:`optimal`, :func:`plan` or :func:`design` as ``utility``; the name ``"mutual-information"`` means
    the same. Values are drawn from the ``prior`` argument of that call.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, optimal
    >>> result = optimal(Uniform(Domain.range(3), 1), MutualInformation())
    >>> result.utility, round(result.value, 3)
    ('mutual-information', 0.123)
    """

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
    """Return v·ln v - v + 1, which has the mean of v·ln v on a ray (p·v = 1) without cancellation."""
    excess = at - 1
    logarithm = np.where(at > 0.5, np.log1p(np.maximum(excess, -0.5)), np.log(np.maximum(at, 1e-300)))
    return np.asarray(at * logarithm - excess)


def _divergence_slope(at: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(at, 1e-12)))


class SquaredError(SumGoal):
    """Design goal: the least mean squared error of a numeric score f(X), estimated by E[f(X) | report].

    Pass it to :func:`optimal`, :func:`plan` or :func:`design` as ``utility``. The name ``"mmse"`` means
    ``SquaredError()``. Values X are drawn from the ``prior`` argument of that call. The error is that of one person's
    score from that person's report. To learn the mean of scores over all people, use the question :class:`Mean`.

    Parameters
    ----------
    numbers
        The score f(x) of each value x: a sequence in domain order, a pandas Series with the values as its index, or a
        mapping from values to scores. A mapping may leave out values, which then have score 0. For example,
        ``{"flu": 1}`` scores whether the value is ``"flu"``. By default, the score is the label itself, and all labels
        must be numbers.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, optimal
    >>> result = optimal(Uniform(Domain(["none", "flu", "hiv"]), 1), SquaredError({"flu": 1}))
    >>> result.utility, round(result.value, 3)
    ('mmse', 0.179)
    """

    name = "mmse"
    small_is_good = True

    def __init__(self, numbers: Mapping[Any, float] | Sequence[float] | Floats | None = None) -> None:
        self._numbers_argument = numbers
        self.numbers: Floats = np.zeros(0)

    def checked(self, domain: Domain) -> SquaredError:
        argument = self._numbers_argument
        if argument is None and (not domain.is_numeric or domain.missing is not None):
            hint = "For other labels, pass utility=SquaredError(numbers) with one number per value."
            raise InvalidInput("utility 'mmse'", "the labels of the domain", "be numbers", domain.labels[-1], hint=hint)
        fitted = SquaredError(argument)
        numbers = domain.numeric_values if argument is None else argument
        fitted.numbers = read_numbers(domain, numbers, "SquaredError", "numbers", absent=0.0)
        return fitted

    def on(self, slice_: Slice, prior: Floats) -> Utility:
        # Centred numbers keep small differences precise: E[E[a|Y]²] = E[a]² + E[E[a - E a|Y]²].
        direction = np.bincount(slice_.group_of, weights=prior * (self.numbers - prior @ self.numbers))
        return ConvexUtility(sum_of_squares(direction.astype(np.float64)[None], np.zeros(slice_.size)))

    def value(self, matrix: Floats, prior: Floats) -> float:
        law = prior @ matrix
        sums = (prior * (self.numbers - prior @ self.numbers)) @ matrix
        return max(self._variance(prior) - float(np.sum(sums[law > 0] ** 2 / law[law > 0])), 0.0)

    def bound(self, optimum: float, slice_: Slice, prior: Floats) -> float:  # noqa: ARG002
        return max(self._variance(prior) - optimum, 0.0)

    def bound_without(self, bound: float, scale: float, excess: Floats, prior: Floats) -> float:  # noqa: ARG002
        # The best estimate at p lies in the range of the numbers, which therefore bounds its error for other values.
        return max(scale * bound - float(excess.sum()) * float(np.ptp(self.numbers)) ** 2, 0.0)

    def resolution(self, prior: Floats) -> float:
        return 1e-6 * self._variance(prior)  # relative precision of the search, in what is subtracted from the variance

    def _variance(self, prior: Floats) -> float:
        return float(prior @ (self.numbers - prior @ self.numbers) ** 2)


class ExpectedLoss(SumGoal):
    """Design goal: the least expected loss of a decision that a service takes from one report.

    The report is the decision: the mechanism has one output per column of the matrix. An example is location privacy.
    The values are places, the decision is the place for which the service returns results, and the loss is the distance
    between the two. Pass the goal to :func:`optimal`, :func:`plan` or :func:`design` as ``utility``. Values are drawn
    from the ``prior`` argument of that call.

    Parameters
    ----------
    matrix
        The loss L(x, d) of each decision d (column) for each value x (row). Rows are in domain order. A DataFrame, or a
        mapping from values to rows, is aligned by its labels. Report d is the column with index d; names of columns are
        not used.

    Raises
    ------
    InvalidInput
        If the matrix is not a table of finite numbers. A wrong number of rows is reported by the call that uses the
        goal.

    Examples
    --------
    >>> from sfumato import Domain, Metric, optimal
    >>> distance = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    >>> result = optimal(Metric(Domain.range(3), "absolute", 1), ExpectedLoss(distance))
    >>> result.utility, round(result.value, 3)
    ('expected-loss', 0.425)
    """

    name = "expected-loss"
    small_is_good = True

    def __init__(self, matrix: Any) -> None:
        self._matrix_argument = matrix
        try:
            losses = np.array(unaligned_table(matrix, "ExpectedLoss", "matrix"), dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("ExpectedLoss", "matrix", "be a table of numbers", matrix) from None
        if losses.ndim != 2 or not losses.size or not np.all(np.isfinite(losses)):
            must = "be a table of finite numbers with one row per value"
            raise InvalidInput("ExpectedLoss", "matrix", must, matrix)
        losses.setflags(write=False)
        self.matrix: Floats = losses

    def checked(self, domain: Domain) -> ExpectedLoss:
        aligned = align_table(domain, None, self._matrix_argument, "ExpectedLoss", "matrix")
        if aligned is not self._matrix_argument:
            return ExpectedLoss(aligned).checked(domain)
        if len(self.matrix) != len(domain):
            must, got = f"have {len(domain)} rows, one per value", Description(quantity(len(self.matrix), "row"))
            raise InvalidInput("ExpectedLoss", "matrix", must, got)
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
        """Replace each output by the decision with the least expected loss, and return one column per decision.

        A decision that is not the best one for any output has probability zero.

        Parameters
        ----------
        columns
            The output probabilities Q(y|x): one row per value x in domain order, one column per output y.
        prior
            The distribution of values, shape (k,), in domain order.

        Returns
        -------
        numpy.ndarray
            The probability of each decision (column) for each value (row), in the order of the loss matrix.
        """
        best = (columns.T @ (prior[:, None] * self.matrix)).argmin(axis=1)
        merged = np.zeros(self.matrix.shape)
        np.add.at(merged.T, best, columns.T)
        return merged


_NAMED: dict[str, Goal] = {
    goal.name: goal for goal in (Estimation(), WorstEstimation(), MutualInformation(), SquaredError())
}


def goal_of(utility: str | Goal, domain: Domain) -> Goal:
    """Return the goal for a utility, with its numbers in the order of a domain.

    Parameters
    ----------
    utility
        A :class:`Goal`, or one of the names ``"estimation"``, ``"worst-estimation"``, ``"mutual-information"`` and
        ``"mmse"``.
    domain
        The domain of the policy.

    Returns
    -------
    Goal
        The goal, checked against the domain.

    Raises
    ------
    InvalidInput
        If no utility has this name, or if the goal does not fit the domain: ``"mmse"`` requires numeric labels.

    Examples
    --------
    >>> from sfumato import Domain
    >>> goal_of("mutual-information", Domain.range(3)).name
    'mutual-information'
    """
    return read_goal("goal_of", utility, domain)


def read_goal(subject: str, utility: str | Goal, domain: Domain, question: Question | str | None = None) -> Goal:
    """Return the goal that a utility names, fitted to a domain; errors name the function ``subject``.

    A question other than None is the question of an estimation goal.
    """
    if question is not None:
        goal = read_goal(subject, utility, domain)
        if not isinstance(goal, Estimation) or goal.question is not None:
            must = "be left out unless the utility is 'estimation' or 'worst-estimation'"
            raise InvalidInput(subject, "question", must, question)
        return type(goal)(read_question(subject, question, domain))
    if isinstance(utility, Goal):
        return utility.checked(domain)
    if utility not in _NAMED:
        names = ", ".join(repr(name) for name in _NAMED)
        raise InvalidInput(subject, "utility", f"be one of {names}, SquaredError(...) or ExpectedLoss(...)", utility)
    return _NAMED[utility].checked(domain)
