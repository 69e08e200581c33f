"""The verb ``simulate``: a whole collection, from people to estimate, compared with its predicted error.

The same exact sampler that privatizes values also draws the people from the true distribution, as a table with one
row. For large numbers of people, the counts are drawn from their exact distribution instead. Simulations use insecure
randomness and contain no data of real people.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    Floats,
    FrozenData,
    Progress,
    ProgressCallback,
    Result,
    check_keys,
    checked_count,
    checked_type,
    plot_result,
    read_flag,
    read_items,
    read_number,
    reads_document,
)
from sfumato.collecting import Aggregate
from sfumato.compiler import design, error_of_answers, expected_tv, truth_distribution
from sfumato.device.privatization import privatize_indices
from sfumato.domain import Domain, Frequencies, checked_distribution
from sfumato.errors import InvalidInput
from sfumato.estimation import Answers, Estimate, estimate
from sfumato.mechanisms import Mechanism, TableMechanism, count_law_for, mechanism_from_spec
from sfumato.policy import Policy
from sfumato.questions import Frequencies as AllFrequencies, Quantiles, Question, read_question
from sfumato.randomness import InsecureSeeded, insecure_generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Simulation", "simulate"]

_KEYS = ("mechanism", "truth", "estimate", "one_by_one")

#: Number of people per piece; bounds memory.
_PIECE = 2**19
#: Maximum number of people drawn one by one by default; every report is then simulated, which takes seconds.
_MOST_ONE_BY_ONE = 2**22

#: Difference between a share and a level that is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(FrozenData, Result):
    """The result of a simulated collection: the truth, the estimate, and measured and predicted errors.

    Parameters
    ----------
    mechanism
        Mechanism that randomized the values.
    truth
        True distribution of the values, in domain order.
    estimate
        Estimate from the simulated reports.
    one_by_one
        Whether every report was drawn and counted. If False, the simulation drew the counts directly from their exact
        distribution.
    question
        Question whose answers are measured in addition to the frequencies, fitted to the domain; None without one.

    See Also
    --------
    simulate : Simulate a collection.

    Examples
    --------
    >>> import sfumato as sf
    >>> result = sf.simulate(sf.Uniform(sf.Domain(["no", "yes"]), 1), n=1000)
    >>> result.estimate.n
    1000
    >>> round(result.predicted_l2, 4)
    0.0023
    """

    mechanism: Mechanism
    truth: Floats
    estimate: Estimate
    one_by_one: bool = True
    question: Question | None = None

    def __post_init__(self) -> None:
        truth = np.array(self.truth, dtype=np.float64)
        truth.setflags(write=False)
        object.__setattr__(self, "truth", truth)

    @property
    def how(self) -> str:
        """Sentence that says whether every report was drawn, or the counts directly from their distribution."""
        if not self.one_by_one:
            return "the counts were drawn from their exact distribution"
        if self.estimate.n <= _MOST_ONE_BY_ONE or count_law_for(self.mechanism) is not None:
            return "every report was drawn"
        return f"every report was drawn, because the distribution of the counts of {self.mechanism.name} is not known"

    @property
    def l2(self) -> float:
        """Measured squared l2 error: the sum over all values of (estimated frequency - true frequency)²."""
        return float(np.sum((self.estimate.frequencies - self.truth) ** 2))

    @property
    def tv(self) -> float:
        """Measured total variation distance between the estimate and the true distribution.

        It is half the l1 distance: half the sum over all values of abs(estimated frequency - true frequency). It may
        exceed 1 for an unbiased estimate from few people, because such an estimate may have negative frequencies.
        """
        return float(np.abs(self.estimate.frequencies - self.truth).sum()) / 2

    @property
    def predicted_l2(self) -> float:
        """Expected squared l2 error of the unbiased estimate from ``n`` reports, at the true distribution.

        It is exact, and computed from the mechanism without the simulated reports. Compare it with :attr:`l2`.
        """
        return self.mechanism.risk(self.estimate.n, self.truth)

    @property
    def predicted_tv(self) -> float:
        """Expected total variation distance between the unbiased estimate from ``n`` reports and the true distribution.

        The total variation distance is half the l1 distance. The expectation is computed from the mechanism without the
        simulated reports, in the normal approximation. It may exceed 1 with few people, because an unbiased estimate
        may have negative frequencies. Compare it with :attr:`tv`.
        """
        return expected_tv(self.mechanism, self.truth) / math.sqrt(self.estimate.n)

    @property
    def coverage(self) -> float:
        """Fraction of values whose 95% confidence interval contains the true frequency; about 0.95 is expected."""
        low, high = self.estimate.interval()
        return float(np.mean((low <= self.truth) & (self.truth <= high)))

    # -- answers to the question -------------------------------------------------------------------------------

    @property
    def _fitted_question(self) -> Question:
        """The question; all frequencies without one."""
        return AllFrequencies().checked(self.mechanism.domain) if self.question is None else self.question

    @functools.cached_property
    def answers(self) -> Answers:
        """The estimated answers to the question, from ``Estimate.answers``; all frequencies without a question."""
        return self.estimate.answers(self._fitted_question)

    @functools.cached_property
    def true_answers(self) -> npt.NDArray[Any]:
        """The true answers in the order of ``answers.names``; for quantiles, labels of the domain."""
        if not isinstance(self._fitted_question, Quantiles):
            return self._fitted_question.answers_of(self.truth)
        return np.array([self.mechanism.domain.label(x) for x in self._true_positions.tolist()])

    @property
    def _true_positions(self) -> npt.NDArray[np.int64]:
        """The index of each true quantile: of the least value up to which the share is at least its level."""
        assert isinstance(self._fitted_question, Quantiles)
        shares = np.cumsum(self.truth)[:-1]
        return np.asarray(np.searchsorted(shares, np.array(self._fitted_question.levels) - _ROUNDING), dtype=np.int64)

    @functools.cached_property
    def answer_rmse(self) -> float:
        """Measured root mean square error of the unbiased answers.

        It is the square root of the mean of (estimated answer - true answer)² over all answers. For quantiles, the
        errors are those of the distribution function, weighted by their distance from the levels (see
        :class:`Quantiles`).
        """
        result, question = self.estimate, self._fitted_question
        if result.is_complete:
            errors = question.answers_of(result.unbiased - self.truth, self.truth)
        elif question.axes is not None:
            errors = self.answers.values - self.true_answers
        else:
            estimated = np.array([result.linear(row).value for row in question.rows(self.truth)])
            errors = estimated - question.answers_of(self.truth, self.truth)
        return math.sqrt(float(np.mean(errors**2)))

    @functools.cached_property
    def predicted_answer_rmse(self) -> float:
        """Expected root mean square error of the unbiased answers from ``n`` reports, at the true distribution.

        Its square is exact, and computed from the mechanism without the simulated reports. It is the standard error of
        the answer if there is only one. Compare it with :attr:`answer_rmse`.
        """
        squared = error_of_answers(self.mechanism, self._fitted_question, self.truth) / self.estimate.n
        return math.sqrt(squared / len(self._fitted_question.names))

    @functools.cached_property
    def answer_coverage(self) -> float:
        """Fraction of answers whose 95% confidence interval contains the true answer; about 0.95 is expected.

        One simulation of a question with a single answer has a fraction of 0 or 1.
        """
        low, high = self.answers.interval()
        truth = self.true_answers
        if isinstance(self._fitted_question, Quantiles):
            index, truth = self.mechanism.domain.index, self._true_positions
            low, high = (np.array([index(label) for label in labels.tolist()]) for labels in (low, high))
        return float(np.mean((low <= truth) & (truth <= high)))

    # -- documents and tables ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-compatible dict.

        Returns
        -------
        dict
            The fields with the keys ``mechanism``, ``truth``, ``estimate``, ``one_by_one`` and, if there is one,
            ``question``; :meth:`from_dict` reads them.
        """
        return {
            "mechanism": self.mechanism.spec,
            "truth": self.truth.tolist(),
            "estimate": self.estimate.to_dict(),
            "one_by_one": self.one_by_one,
            **({} if self.question is None else {"question": self.question.to_dict()}),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Simulation:
        """Return the result that :meth:`to_dict` converted to a dict.

        Parameters
        ----------
        document
            Dict that :meth:`to_dict` returned.

        Returns
        -------
        Simulation
            The original result.

        Raises
        ------
        InvalidInput
            If the estimate does not belong to the mechanism, or the truth is not a distribution over its domain.
        """
        parts = check_keys("Simulation", "the document", document, required=_KEYS, optional=("question",))
        mechanism = mechanism_from_spec(parts["mechanism"])
        answer = Estimate.from_dict(parts["estimate"], mechanism=mechanism)
        truth = [
            read_number("Simulation", "a probability of truth", p, least=0.0, most=1.0)
            for p in read_items("Simulation", "truth", parts["truth"], len(mechanism.domain))
        ]
        checked_distribution(truth, mechanism.domain, "Simulation", "truth")
        one_by_one = read_flag("Simulation", "one_by_one", parts["one_by_one"])
        question = Question.from_dict(parts["question"]).checked(mechanism.domain) if "question" in parts else None
        return cls(mechanism, np.array(truth), answer, one_by_one, question)

    def plot(self) -> Figure:
        """Draw the estimate, or its answers to the question, with 95% intervals next to the truth.

        Requires matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            One point with its 95% interval per value next to the true frequencies. With a question, the figure of
            the answers.
        """
        figure: Figure = plot_result(self)
        return figure

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        if self.question is not None:
            low, high = self.answers.interval()
            return {
                "answer": list(self.answers.names),
                "truth": self.true_answers.tolist(),
                "estimate": self.answers.values.tolist(),
                "low": low.tolist(),
                "high": high.tolist(),
            }
        low, high = self.estimate.interval()
        return {
            "value": list(self.mechanism.domain.labels),
            "truth": self.truth.tolist(),
            "frequency": self.estimate.frequencies.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        }

    def _title(self) -> str:
        head = f"{self.mechanism.name}, n = {self.estimate.n:,}, method {self.estimate.method}"
        if self.question is not None:
            return (
                f"{head}, question {self.question.name}: root mean square error of the answers "
                f"{self.answer_rmse:.4g} ({self.predicted_answer_rmse:.4g} predicted), "
                f"{self.answer_coverage:.1%} of the 95% intervals contain the truth"
            )
        return (
            f"{head}: squared l2 error {self.l2:.4g} ({self.predicted_l2:.4g} predicted), total variation "
            f"{self.tv:.4g} ({self.predicted_tv:.4g} predicted), {self.coverage:.1%} of the 95% intervals contain the "
            "truth"
        )

    def __repr__(self) -> str:
        return f"<Simulation: {self._title()}>"


def simulate(
    policy_or_mechanism: Policy | Mechanism,
    *,
    n: int,
    truth: str | Frequencies = "uniform",
    method: str = "unbiased",
    question: Question | str | None = None,
    seed: int = 0,
    one_by_one: bool | None = None,
    progress: ProgressCallback | None = None,
) -> Simulation:
    """Simulate a collection, and compare the error of its estimate with the prediction.

    The function draws ``n`` people from a distribution, randomizes their values, counts the reports and estimates the
    frequencies, or the answers to a question.

    Parameters
    ----------
    policy_or_mechanism
        A mechanism, or a policy for which :func:`design` chooses a mechanism.
    n
        Number of people, at most 2^53.
    truth
        True distribution of the values, in one of these forms:

        - a sequence in the order of the domain;
        - a mapping from values to frequencies, where missing values have frequency 0;
        - a pandas Series or a frame with a frequency for every value, aligned by label;
        - ``"uniform"`` (the default), ``"zipf"`` (the i-th value has weight 1/i) or ``"geometric"`` (the i-th value has
          weight 0.95^i).
    method
        Estimation method, one that :func:`estimate` accepts without a prior.
    question
        Question to answer, such as :class:`Mean`, or its name. A policy gets a mechanism for the question, and the
        result measures the error of the answers. By default, all frequencies.
    seed
        Seed of the random numbers, which are not secure; the same seed gives the same result.
    one_by_one
        Whether to draw and count every report. If False, the function draws the counts directly from their exact
        distribution, which takes seconds for every ``n``. The default is True for at most 2^22 (about four million)
        people and for mechanisms whose counts have no known distribution, and False otherwise.
    progress
        A function that is called with a :class:`Progress` after each piece of work.

    Returns
    -------
    Simulation
        The true distribution, the estimate, and its measured and predicted errors.

    Raises
    ------
    InvalidInput
        If a parameter is invalid, or ``one_by_one`` is False and the distribution of the counts is not known.
    NotIdentifiable
        If the reports of the mechanism do not determine the answers to the question, or all frequencies without one.

    Examples
    --------
    >>> import sfumato as sf
    >>> policy = sf.Uniform(sf.Domain(["a", "b", "c"]), epsilon=1)
    >>> result = sf.simulate(policy, n=10_000, truth="zipf", seed=1)
    >>> result.l2 < 10 * result.predicted_l2
    True
    >>> result = sf.simulate(sf.Uniform(sf.Domain.range(9), 1), n=10_000, question=sf.Mean(), seed=1)
    >>> result.answer_rmse < 5 * result.predicted_answer_rmse
    True
    """
    n = checked_count("simulate", n)
    if not isinstance(policy_or_mechanism, Mechanism):
        checked_type("simulate", "policy_or_mechanism", policy_or_mechanism, Policy, " or a Mechanism")
    fitted = None if question is None else read_question("simulate", question, policy_or_mechanism.domain)
    fitted = None if isinstance(fitted, AllFrequencies) else fitted
    if isinstance(policy_or_mechanism, Mechanism):
        mechanism = policy_or_mechanism
    else:
        mechanism = design(policy_or_mechanism, n, question=fitted)
    distribution = truth_distribution("simulate", truth, mechanism.domain)
    stream = InsecureSeeded(seed)
    law = None if one_by_one or (one_by_one is None and n <= _MOST_ONE_BY_ONE) else count_law_for(mechanism)
    if law is None and one_by_one is False:
        must = f"be True or None, because the distribution of the counts of {mechanism.name} is not known"
        raise InvalidInput("simulate", "one_by_one", must, one_by_one)
    if law is None:
        counts = _counted_one_by_one(mechanism, distribution, n, stream, progress)
    else:
        counts = Aggregate(mechanism.hash, n, law(insecure_generator(seed), n, distribution))
        if progress is not None:
            progress(Progress(n, n, "people"))
    result = Simulation(mechanism, distribution, estimate(mechanism, counts, method), law is None, fitted)
    _ = result.answers  # raises NotIdentifiable if the reports do not determine the answers
    return result


def _counted_one_by_one(
    mechanism: Mechanism, truth: Floats, n: int, stream: InsecureSeeded, progress: ProgressCallback | None
) -> Aggregate:
    """Draw people, randomize their values and count the reports, piece by piece."""
    people = TableMechanism.from_matrix(Domain.range(1), [truth.tolist()])
    counts = Aggregate.empty(mechanism)
    for start in range(0, n, _PIECE):
        rows = np.zeros(min(_PIECE, n - start), dtype=np.int64)  # the table has one row: every person draws from it
        values = privatize_indices(people, rows, stream).astype(np.int64)
        counts = counts.accumulate(mechanism, privatize_indices(mechanism, values, stream))
        if progress is not None:
            progress(Progress(start + len(values), n, "people"))
    return counts
