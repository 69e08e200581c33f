"""Linear forms of an estimate: weighted sums of its frequencies, and the questions that they answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato._core import Floats
from sfumato.domain import Domain, read_numbers
from sfumato.errors import InvalidInput
from sfumato.estimation.answers import Answers
from sfumato.estimation.binning import stated
from sfumato.estimation.distributions import DistributionEstimate, distribution_of
from sfumato.estimation.linear import LawSource, LinearEstimate, reduced_weights
from sfumato.estimation.marginals import MarginalTables, MarginalValues
from sfumato.estimation.quantiles import QuantileEstimate
from sfumato.estimation.sources import FrequencySource, MeanSource, ShareSource
from sfumato.mechanisms import SamplingDistribution
from sfumato.questions import (
    Marginals,
    Mean,
    Quantiles,
    Question,
    check_order,
    numeric_labels,
    positions_between,
    read_question,
)

if TYPE_CHECKING:
    from sfumato.estimation.estimates import Estimate

__all__ = ["LinearForms"]


class LinearForms(ABC):
    """Part of the class ``Estimate`` that estimates sums of frequencies."""

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The domain: the values whose frequencies are estimated, in domain order."""

    @property
    @abstractmethod
    def estimator(self) -> SamplingDistribution:
        """The estimator that computes variances and intervals for this estimate."""

    @abstractmethod
    def _sum(self, vector: Floats) -> tuple[float, float]:
        """Return the unbiased estimate of Σ weight·frequency, and the one by the method of the estimate."""

    @abstractmethod
    def _linear_error(self, vector: Floats) -> tuple[float, float]:
        """Return the standard error of Σ weight·frequency, and how far one additional report could move the sum."""

    @abstractmethod
    def _sum_covariance(self, rows: Floats) -> Floats:
        """Return the covariance of the sums Σ weight·frequency, for one row of weights per sum."""

    def linear(self, weights: Mapping[Any, float] | Sequence[float] | Floats) -> LinearEstimate:
        """Estimate a weighted sum of frequencies: a share, a mean of numbers, or a difference of frequencies.

        Parameters
        ----------
        weights
            The weight of each value: a sequence in domain order, a pandas Series with the values as its index, or a
            mapping from values to weights. A mapping may leave out values of weight zero.

        Returns
        -------
        LinearEstimate
            The sum Σ weight·frequency with its error and interval.

        Raises
        ------
        InvalidInput
            If the weights are not finite numbers for the values of the domain.
        NotIdentifiable
            If the reports do not determine the sum (see :class:`PartialEstimate`).

        Notes
        -----
        The true frequencies sum to one. If the weights take only two different values, the sum is therefore estimated
        from the smaller of the two groups of values. If all weights are equal, the sum is a constant without error.

        The error is computed at a distribution near the unbiased frequencies. If some of them are negative and the
        mechanism is a table, it is computed at a distribution whose law of reports is near the observed one. It then
        differs slightly from the error that ``covariance`` implies.

        Examples
        --------
        >>> from sfumato import Domain, aggregate, estimate
        >>> from sfumato.mechanisms import RandomizedResponse
        >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
        >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10))
        >>> print(result.linear({"flu": 1, "none": -1}))
        -0.428571 ± 0.13
        """
        vector = self._weights(weights)
        constant, reduced = reduced_weights(vector)
        if not reduced.any():
            return LinearEstimate(constant, 0.0)
        estimate = cast("Estimate", self)
        error, unseen = self._linear_error(reduced)
        value = constant + self._sum(reduced)[0]
        members = np.flatnonzero(reduced)
        source: LawSource
        if len(np.unique(vector)) > 2:
            gap, source = float(np.ptp(vector)), MeanSource(estimate, vector)
        else:
            gap = float(reduced[members[0]])
            source = FrequencySource(estimate, int(members[0])) if len(members) == 1 else ShareSource(estimate, members)
        return LinearEstimate(value, error, unseen=unseen, terms=((gap, source),))

    def set_fraction(self, values: object) -> LinearEstimate:
        """Estimate the fraction of people whose value is in a set.

        Parameters
        ----------
        values
            One value, or several values in a list, a set or a pandas or Arrow column.

        Returns
        -------
        LinearEstimate
            The fraction with its error and interval.

        Raises
        ------
        InvalidInput
            If ``values`` is a mapping, or contains a label that is not a value of the domain.
        """
        if isinstance(values, Mapping):
            hint = "Use linear(weights) for weights of values."
            raise InvalidInput("set_fraction", "values", "be a value or a list of values", values, hint=hint)
        # A string is one value, not its letters. A tuple is one value of a product or a grid, otherwise several values.
        single = not isinstance(values, Iterable) or isinstance(values, str)
        single = single or (isinstance(values, tuple) and values in self.domain)
        chosen = [values] if single else list(cast("Iterable[object]", values))
        weights = np.zeros(len(self.domain))
        weights[[self.domain.index(value) for value in chosen]] = 1.0
        return self.linear(weights)

    def mean(self) -> LinearEstimate:
        """Estimate the mean of the labels over all people; the labels of the domain must be numbers.

        Returns
        -------
        LinearEstimate
            The mean with its error and interval. If the values are bins of numbers, ``rounding`` states by how much the
            mean of the numbers may differ from the mean of the midpoints. If the domain clips numbers, this is the mean
            of the clipped numbers, and ``warnings`` states if an end of the range shows that many were clipped.

        Raises
        ------
        InvalidInput
            If the labels are not numbers. Use ``linear`` with a number per value instead.
        """
        if numeric_labels(self.domain) is None:
            hint = "Use linear(weights) with a number per value."
            raise InvalidInput("mean", "the labels of the domain", "be numbers", self.domain.label(0), hint=hint)
        question = Mean().checked(self.domain)
        return stated(self.linear(question.numbers), self, question)

    def range(self, low: Any = None, high: Any = None) -> LinearEstimate:
        """Estimate the share of people whose value lies in a range that contains both of its limits.

        Parameters
        ----------
        low
            The least value of the range. None means no limit.
        high
            The greatest value of the range, which belongs to it. None means no limit.

        Returns
        -------
        LinearEstimate
            The share with its error and interval.

        Raises
        ------
        InvalidInput
            If the values of the domain have no order, or none of them lies in the range.

        Notes
        -----
        The rule is that of the question :class:`Ranges`: the share counts all values x with low ≤ x ≤ high. If the
        labels are numbers, the limits may be any numbers. Otherwise they are labels, in the order of the domain.

        Examples
        --------
        >>> from sfumato import Domain, aggregate, estimate
        >>> from sfumato.mechanisms import RandomizedResponse
        >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
        >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 20 + [2] * 10 + [3] * 10))
        >>> print(result.range(1, 2))
        0.185714 ± 0.072
        """
        check_order(self.domain, "range")
        weights = np.zeros(len(self.domain))
        weights[positions_between(self.domain, low, high, "range")] = 1.0
        return self.linear(weights)

    def cdf(self) -> DistributionEstimate:
        """Estimate the distribution function: the share of people up to each value.

        Returns
        -------
        DistributionEstimate
            The shares with errors, intervals and a simultaneous band.

        Raises
        ------
        InvalidInput
            If the values of the domain have no order: they have several dimensions, or are numbers that do not ascend.
        NotIdentifiable
            If the reports do not determine the frequencies of all values (see :class:`PartialEstimate`).

        Notes
        -----
        Values are in the order of the domain. Labels that are not numbers are in the order in which they were listed.
        """
        check_order(self.domain, "cdf")
        estimate = cast("Estimate", self)
        distribution = distribution_of(estimate)
        self._require(distribution.question)
        return distribution

    def quantile(self, level: float) -> QuantileEstimate:
        """Estimate a quantile: the least value up to which the share of people is at least ``level``.

        Parameters
        ----------
        level
            The level, above 0 and below 1; 0.5 for the median.

        Returns
        -------
        QuantileEstimate
            The quantile with its interval.

        Raises
        ------
        InvalidInput
            If the level does not lie between 0 and 1, or the values of the domain have no order (see ``cdf``).
        NotIdentifiable
            If the reports do not determine the frequencies of all values (see :class:`PartialEstimate`).
        """
        Quantiles().checked(self.domain)
        return QuantileEstimate(self.cdf(), level)

    def answers(self, question: Question | str | None = None) -> Answers:
        """Estimate the answers to a question.

        Parameters
        ----------
        question
            The question, such as ``Ranges([(18, 64)])``, or the name of a question: ``"mean"``, ``"distribution"``,
            ``"quantiles"`` or ``"frequencies"``, which is the default.

        Returns
        -------
        Answers
            The answers with errors, intervals and covariance. It is a :class:`DistributionEstimate` for the question
            :class:`Distribution`, a :class:`QuantileAnswers` for :class:`Quantiles`, and a :class:`MarginalTables` for
            :class:`Marginals`.

        Raises
        ------
        InvalidInput
            If the question does not fit the domain.
        NotIdentifiable
            If the reports do not determine all answers (see :class:`PartialEstimate`).

        Examples
        --------
        >>> from sfumato import Domain, aggregate, estimate
        >>> from sfumato.mechanisms import RandomizedResponse
        >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
        >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 20 + [2] * 10 + [3] * 10))
        >>> print(result.answers("mean")["mean"])
        0.242857 ± 0.16
        """
        fitted = read_question("answers", question, self.domain)
        self._require(fitted)
        return Answers.of(cast("Estimate", self), fitted)

    def marginals(
        self,
        order: int | None = None,
        *,
        attributes: Iterable[str] | None = None,
        tables: Iterable[str | Sequence[str]] | None = None,
    ) -> MarginalTables:
        """Estimate marginal tables of several attributes.

        Parameters
        ----------
        order
            The number of attributes of each table, by default 2: the tables of all pairs of attributes.
        attributes
            The attributes to combine, by default all of the domain.
        tables
            The tables to estimate, each as the names of its attributes, instead of ``order`` and ``attributes``.

        Returns
        -------
        MarginalTables
            The tables with errors and intervals. This is ``answers(Marginals(order, ...))``.

        Raises
        ------
        InvalidInput
            If the domain is not a product, or does not have the attributes.
        NotIdentifiable
            If the reports do not determine a table, such as pairs of attributes if each person reports one attribute.
        """
        tables_of_answers = self.answers(Marginals(order, attributes=attributes, tables=tables))
        assert isinstance(tables_of_answers, MarginalTables)
        return tables_of_answers

    @abstractmethod
    def _marginal(self, axes: Sequence[int]) -> MarginalValues:
        """Return the estimate of one marginal table; raise NotIdentifiable if the reports do not determine it."""

    def _require(self, question: Question) -> None:
        """Raise NotIdentifiable unless the reports determine all answers to a question."""
        if self.estimator.is_complete:
            return
        if question.axes is None:
            for row in question.rows():
                self._sum(row)
        for axes in question.axes or ():
            self._marginal(axes)

    def _weights(self, weights: Mapping[Any, float] | Sequence[float] | Floats) -> Floats:
        """Return weights as an array in domain order."""
        return read_numbers(self.domain, weights, "linear", "weights", absent=0.0)
