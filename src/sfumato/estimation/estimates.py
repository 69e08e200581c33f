"""Estimates: the counts and the frequencies, from which errors, intervals and linear forms follow.

An estimate is data. It derives errors through the estimator of its mechanism, which it looks up and does not store.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    MOST_ROWS,
    Floats,
    FrozenData,
    Result,
    is_number,
    percent,
    plot_result,
    quantity,
    reads_document,
    unused_name,
)
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, LimitExceeded, UnknownLabel
from sfumato.estimation.documents import ESTIMATES, VERSION, read_estimate
from sfumato.estimation.empirical_bayes import Choice
from sfumato.estimation.forms import LinearForms
from sfumato.estimation.linear import check_confidence
from sfumato.estimation.marginals import MarginalValues, marginal_of_frequencies
from sfumato.estimation.sources import FrequencyEstimate, frequency_of
from sfumato.mechanisms import Fit, Mechanism, SamplingDistribution, ScoreLaw, confidence_limits

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["Estimate", "estimate_notes", "outside_column", "value_table"]


#: Maximum number of values of a dense covariance matrix; a larger one would take more than 3 GB.
_LARGEST_COVARIANCE = 20_000
#: Distance from [0, 1] within which a frequency is rounding.
_ROUNDING = 1e-9
#: Variance, relative to the squared effect of one report, below which it is rounding because all reports agree.
_SILENT = 1e-12
#: Standard errors below which a frequency has an interval that contains zero, so that its limits are not computed.
_WITHIN_NOISE = 0.9
#: Fraction of intervals that contain zero above which an estimate warns.
_MANY_LOST = 0.5
#: Variance of the reports, relative to that of unprotected answers, up to which a report counts as the answer itself.
_NO_NOISE = 1.02
#: Confidence level of printed intervals and of warnings.
_CONFIDENCE = 0.95
#: Column names of result tables; an attribute of a product with one of these names is renamed.
_RESERVED = ("value", "frequency", "standard_error", "low", "high", "group", "difference", "prior")


class Estimate(LinearForms, FrozenData, Result):
    """Estimated frequency of every value of a domain, with standard errors and confidence intervals.

    :func:`estimate` returns the subclass :class:`MechanismEstimate`, and :func:`combine` the subclass
    :class:`CombinedEstimate`. If the reports do not distinguish all values, :func:`estimate` returns a
    :class:`PartialEstimate`, which has no frequencies but answers some questions. ``result[label]`` returns the
    frequency of one value. ``to_dict`` and ``from_dict`` store an estimate without loss. Two estimates with the same
    content are equal.

    Standard errors and intervals are those of the *unbiased* frequencies, whatever the method. A projection onto the
    distributions can only come closer to the truth, but it does not make valid intervals narrower.

    Attributes
    ----------
    method
        Name of the method: one of those of :func:`estimate`, or ``"combined"``.
    frequencies
        Frequencies by this method as fractions of people, shape (k,) for k values, in domain order.
    unbiased
        Unbiased frequencies, shape (k,), in domain order. Some may lie outside [0, 1].
    nearest
        A distribution near the unbiased frequencies, shape (k,), at which variances are computed. It is never negative
        and converges to the truth.
    fit
        Result of the maximum-likelihood search if the method is ``"mle"``: convergence and iterations (see
        :class:`Fit`). None for other methods.
    choice
        The method that ``"best"`` chose, and why (see :class:`Choice`); None for other methods.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10))
    >>> result
    Estimate(n=100, values=3, method='unbiased', mechanism='randomized-response')
    >>> print(result)
    100 reports, method unbiased, 95% intervals
    value  frequency  standard_error      low     high
    none     0.71429         0.06999  0.56744  0.85244
    flu      0.28571         0.06547  0.16058  0.42831
    hiv      0.00000         0.04286  0.00000  0.10889
    1 of 3 values cannot be distinguished from zero.
    >>> result["flu"]
    FrequencyEstimate(value=0.2857142857142857, standard_error=0.06546536707079773)
    """

    method: str
    frequencies: Floats
    unbiased: Floats
    nearest: Floats
    fit: Fit | None
    choice: Choice | None = None

    #: Name of the class in documents.
    format: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "format" in vars(cls):
            ESTIMATES[cls.format] = cls

    # -- the source of the reports -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The domain: the values whose frequencies are estimated, in domain order."""

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of reports from which the frequencies were estimated."""

    @property
    @abstractmethod
    def estimator(self) -> SamplingDistribution:
        """The estimator that computes variances and intervals for this estimate.

        It is not stored with the estimate: ``to_dict`` and comparisons leave it out.
        """

    @abstractmethod
    def _source(self) -> str:
        """Return a short description of the source of the reports for ``repr``."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The labels of the values in domain order, which is the order of ``frequencies``."""
        return self.domain.labels

    @property
    def is_complete(self) -> bool:
        """Whether the reports determine the frequencies of all values; False only for a :class:`PartialEstimate`."""
        return self.estimator.is_complete

    # -- single values -----------------------------------------------------------------------------------------

    def __getitem__(self, label: object) -> FrequencyEstimate:
        """Return the frequency of one value, with its standard error and interval.

        A value of a grid or a product is a tuple: ``estimate[2, 5]``. Raise UnknownLabel, which is also a KeyError, if
        the label is not a value of the domain.
        """
        if label not in self.domain:
            raise UnknownLabel("Estimate", "the label", f"be a value of {self.domain!r}", label)
        return frequency_of(self, self.domain.index(label))

    def __len__(self) -> int:
        return len(self.domain)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.domain)

    def __contains__(self, label: object) -> bool:
        return label in self.domain

    # -- errors ------------------------------------------------------------------------------------------------

    @functools.cached_property
    def standard_errors(self) -> Floats:
        """The standard error of each unbiased frequency, shape (k,), in domain order.

        It covers the randomization of reports and the sampling of people. If all reports agree about a value, its
        standard error is computed as if one report had been different.
        """
        return np.sqrt(np.maximum(self._variances, self.least_variances) / self.n)

    @functools.cached_property
    def _variances(self) -> Floats:
        """The variance of each frequency from one report, at the nearest distribution."""
        return np.maximum(self.estimator.variances(self.nearest), 0)

    @functools.cached_property
    def _far(self) -> Floats:
        """The largest distance by which one report may count above or below each frequency."""
        least, greatest = self.estimator.honest_score_bounds()
        return np.maximum(greatest - self.nearest, self.nearest - least)

    @functools.cached_property
    def _revealed(self) -> tuple[npt.NDArray[np.int64], Floats]:
        """The revealed values, and the number of reports that reveal each."""
        estimator = self.estimator
        revealed = np.flatnonzero(estimator.revealed())
        most = estimator.honest_score_bounds()[1]
        return revealed, np.clip(self.unbiased[revealed] / most[revealed], 0, 1) * self.n

    @functools.cached_property
    def _silent(self) -> npt.NDArray[np.bool_]:
        """Whether all reports agree about each value, so that no variance can be computed from them."""
        silent = self._variances < _SILENT * self._far**2
        revealed, reports = self._revealed
        silent[revealed] = np.minimum(reports, self.n - reports) < 0.5
        return np.asarray(silent & (len(self.domain) > 1))  # the frequency of a single value is known

    @functools.cached_property
    def least_variances(self) -> Floats:
        """The smallest variance of each frequency that is used for one report, shape (k,), in domain order.

        Standard errors use this variance if the estimated one is smaller. If all reports agree about a value, the
        variance is f(1-f)·d² with f = min(1/max(n, 2), 1/max(d, 1)), as if a fraction f of the reports had been
        different. Here d is the largest distance by which one report may count above or below the frequency.
        """
        fraction = np.minimum(1 / max(self.n, 2), 1 / np.maximum(self._far, 1))
        return np.where(self._silent, fraction * (1 - fraction) * self._far**2, self.estimator.least_variances())

    @functools.cached_property
    def covariance(self) -> Floats:
        """The covariance matrix of the unbiased frequencies, shape (k, k), in domain order.

        Raises
        ------
        LimitExceeded
            If the domain has more than 20,000 values, because the matrix would take more than 3 GB. Use
            ``standard_errors``, which holds the square roots of the diagonal, or ``linear`` for the error of a sum.
        """
        return self._covariance_at(self.nearest)

    def _covariance_at(self, p: Floats) -> Floats:
        """Return the covariance of the unbiased frequencies if people have distribution p."""
        if len(self.domain) > _LARGEST_COVARIANCE:
            raise LimitExceeded(
                f"the covariance matrix supports at most {_LARGEST_COVARIANCE:,} values, not {len(self.domain):,}. "
                "Use standard_errors for its diagonal, or linear(weights) for the error of a sum."
            )
        return self.estimator.covariance(p) / self.n

    @functools.cached_property
    def _score_laws(self) -> Sequence[ScoreLaw]:
        """The laws of all frequencies, with one row per value; cached for the frequencies of single values."""
        return self.estimator.score_laws(self.nearest, self.n)

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Return the lower and upper confidence limits of each frequency, within [0, 1].

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1: the probability with which the interval of a value contains its true
            frequency.
        simultaneous
            If True, all intervals together contain the true frequencies with this confidence (Bonferroni correction).
            If False, each interval does so on its own.

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, each of shape (k,), in domain order.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.

        Notes
        -----
        The limits invert a test. They are the smallest and the greatest frequency at which an unbiased estimate as
        extreme as the observed one has a probability of at least (1 - confidence)/2 on its side. This probability
        comes from the exact binomial distribution if the estimate depends on one binomial count. Otherwise the estimate
        is a sum of one score per report, and its distribution is computed by its characteristic function, or by the
        normal approximation for large counts (see ``sfumato.mechanisms.estimators.limits``).

        An interval is a single point only if the domain has a single value. If a projected or fitted frequency lies
        outside its interval, the interval is widened to contain it.
        """
        return self._limits(slice(None), confidence, simultaneous=simultaneous)

    def _limits(self, chosen: Any, confidence: float, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Return the limits of the values at the indices ``chosen``, or of all values."""
        tests = len(self.domain) if simultaneous else 1
        check_confidence(confidence, tests)
        if len(self.domain) == 1:
            return np.ones(1), np.ones(1)
        laws = self.estimator.score_laws(self.nearest, self.n)
        if not isinstance(chosen, slice):
            laws = [law.rows(chosen) for law in laws]
        low, high = confidence_limits(laws, self.unbiased[chosen], (1 - confidence) / tests)
        inside = np.clip(self.frequencies[chosen], 0, 1)
        return np.minimum(low, inside), np.maximum(high, inside)

    @functools.cached_property
    def indistinguishable(self) -> npt.NDArray[np.bool_]:
        """Whether the 95% interval of each frequency contains zero, shape (k,), in domain order.

        The reports do not show that people have such a value.
        """
        zero = np.ones(len(self), dtype=np.bool_)
        if len(self) == 1:
            return ~zero
        chosen = np.flatnonzero(self.unbiased > _WITHIN_NOISE * self.standard_errors)
        if len(chosen):
            zero[chosen] = self._limits(chosen, _CONFIDENCE)[0] <= 0
        return zero

    @property
    def outside(self) -> npt.NDArray[np.bool_]:
        """Whether each frequency lies outside [0, 1], where no true frequency is, shape (k,), in domain order.

        Only unbiased frequencies can. Tables mark them, because they are useful in sums but not as shares of people.
        """
        return np.asarray((self.frequencies < -_ROUNDING) | (self.frequencies > 1 + _ROUNDING))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reasons why the numbers mean little, one sentence each; empty if there are none.

        - No frequency, or less than half of them, can be distinguished from zero: the 95% intervals contain it.
        - Some intervals do not contain zero, but noise alone explains them: all simultaneous 95% intervals contain it.
        - The reports contain almost no noise, so that a single report practically is the answer of a person.
        - The counts are improbable under every distribution of values, so the reports may be of another mechanism. The
          probability of this warning for honest reports of the mechanism is at most 1e-6.
        """
        messages = list(self._implausible())
        if len(self) == 1:
            return tuple(messages)
        lost, size, reports = int(self.indistinguishable.sum()), len(self), quantity(self.n, "report")
        if lost == size:
            messages.append(f"no frequency can be distinguished from zero with {reports}")
        elif lost > _MANY_LOST * size and self._is_explained_by_noise():
            by_chance = round((1 - _CONFIDENCE) / 2 * size)
            messages.append(
                f"no frequency can be distinguished from zero with {reports} if all {size:,} values are compared: "
                f"noise alone makes about {by_chance:,} look different"
            )
        elif lost > _MANY_LOST * size:
            messages.append(f"most frequencies, {lost:,} of {size:,}, cannot be distinguished from zero with {reports}")
        uniform = np.full(size, 1 / size)
        if float(self.estimator.variances(uniform).sum()) <= _NO_NOISE * (1 - 1 / size):
            messages.append("the reports contain almost no noise: a single report practically is a person's answer")
        return tuple(messages)

    def _implausible(self) -> tuple[str, ...]:
        """Return the warning about improbable counts; empty if they are plausible or not tested."""
        return ()

    def _is_explained_by_noise(self) -> bool:
        """Return whether all simultaneous intervals contain zero, in a domain where noise makes some others not do so.

        A true frequency of zero has an interval above zero with half the error probability.
        """
        if (1 - _CONFIDENCE) / 2 * len(self) < 1:
            return False
        low, _ = self._limits(np.flatnonzero(~self.indistinguishable), _CONFIDENCE, simultaneous=True)
        return not (low > 0).any()

    @property
    def expected_tv(self) -> float:
        """The expected total variation distance between the unbiased and the true frequencies.

        It is half the expected sum of absolute errors, computed from the variances in the normal approximation. It may
        exceed 1.
        """
        return float(np.sum(np.sqrt(self._variances / self.n))) * float(np.sqrt(2 / np.pi)) / 2

    def _sum(self, vector: Floats) -> tuple[float, float]:
        return float(vector @ self.unbiased), float(vector @ self.frequencies)

    def _linear_error(self, vector: Floats) -> tuple[float, float]:
        """Return the standard error of Σ weight·frequency, and how far one additional report could move the sum."""
        estimator = self.estimator
        # The distance by which one report of each value moves the sum; 0 if all values have the same weight.
        p = self._distribution_for_sums
        expected = float(vector @ p)
        least = float(((vector - expected) ** 2 * self.least_variances).max())
        variance = max(estimator.variance(vector, p), least)
        # In a group of values with equal weights a report counts once, however much it counts for each value.
        group = estimator.known_groups()
        least, greatest = np.full((2, group.max() + 1), np.inf) * [[1], [-1]]
        np.minimum.at(least, group, vector)
        np.maximum.at(greatest, group, vector)
        counts = np.where((least == greatest)[group], 1.0, self._far)
        return (variance / self.n) ** 0.5, float((np.abs(vector - expected) * counts).max()) / self.n

    def _frequency_error(self, x: int) -> tuple[float, float]:
        """Return the standard error of one frequency, and how far one additional report could move it."""
        return float(self.standard_errors[x]), float(self._far[x]) / self.n

    def _sum_covariance(self, rows: Floats) -> Floats:
        return np.asarray(rows @ self._covariance_for_sums @ rows.T)

    @property
    def _distribution_for_sums(self) -> Floats:
        """The distribution at which errors of sums are computed (see ``Estimator.distribution_for_sums``)."""
        return self.nearest

    @functools.cached_property
    def _covariance_for_sums(self) -> Floats:
        """The covariance of the frequencies that errors of sums are computed from."""
        return self._covariance_at(self._distribution_for_sums)

    def _marginal(self, axes: Sequence[int]) -> MarginalValues:
        p = self._distribution_for_sums
        return marginal_of_frequencies(self.estimator, self.unbiased, p, self.n, self.domain.shape, axes)

    def influence(self, fraction: float) -> Floats:
        """Return the largest change of each unbiased frequency that dishonest reports can cause.

        Dishonest reports are chosen freely among the valid reports, instead of being drawn by the mechanism.

        Parameters
        ----------
        fraction
            Fraction of dishonest reports, in [0, 1].

        Returns
        -------
        numpy.ndarray
            The largest change of each frequency, up or down, shape (k,), in domain order.

        Raises
        ------
        InvalidInput
            If the fraction does not lie in [0, 1].
        Undecided
            If the estimate combines cohorts, because dishonest reports also change the weights of the cohorts. Call
            ``influence`` on the estimate of each cohort instead.
        """
        if not (is_number(fraction) and 0 <= fraction <= 1):
            raise InvalidInput("influence", "fraction", "lie in [0, 1]", fraction)
        low, high = self.estimator.score_bounds()
        return fraction * np.maximum(high - self.nearest, self.nearest - low)

    # -- tables and pictures -----------------------------------------------------------------------------------

    def to_pandas(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pandas.DataFrame:
        """Return the frequencies as a pandas DataFrame with one row per value.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true frequencies with this confidence (Bonferroni correction).
            If False, each interval does so on its own.

        Returns
        -------
        pandas.DataFrame
            The columns ``value``, ``frequency``, ``standard_error``, ``low`` and ``high``, with rows in domain order. A
            grid domain adds the columns ``latitude`` and ``longitude`` of the centre of each cell. A product domain
            adds one column per attribute; "_value" is appended to its name if another column has that name.
        """
        return super().to_pandas(confidence, simultaneous=simultaneous)

    def to_arrow(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true frequencies with this confidence (Bonferroni correction).
            If False, each interval does so on its own.

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``. Labels that are tuples become strings.
        """
        return super().to_arrow(confidence, simultaneous=simultaneous)

    def plot(self, confidence: float = 0.95, truth: Any = None) -> Figure:
        """Draw the frequencies with their intervals.

        The figure shows bars, a line if there are many values, or a map if the domain is a grid.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.
        truth
            The true distribution to draw as well: a sequence in domain order, or a mapping or pandas Series with the
            values as labels.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence, truth)
        return figure

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        low, high = self.interval(confidence, simultaneous=simultaneous)
        frequency, error = self.frequencies, self.standard_errors
        return value_table(self.domain, {"frequency": frequency, "standard_error": error, "low": low, "high": high})

    def _top(self) -> npt.NDArray[np.int64]:
        """Return the values to print: all in domain order, or the most frequent ones if there are too many."""
        if len(self) <= MOST_ROWS:
            return np.arange(len(self))
        return np.argsort(-self.frequencies, kind="stable")[:MOST_ROWS]

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        top = self._top()
        low, high = self._limits(top, _CONFIDENCE)
        columns = {
            "frequency": self.frequencies[top],
            "standard_error": self.standard_errors[top],
            "low": low,
            "high": high,
        }
        labels = [str(self.domain.label(x)) for x in top.tolist()]
        cells = {name: [f"{number:.5f}" for number in column] for name, column in columns.items()}
        return {"value": labels, **cells, **outside_column(self.frequencies[top], self.outside[top])}

    def _notes(self) -> Sequence[str]:
        return estimate_notes(self)

    def _left_out(self) -> int:
        return max(0, len(self) - MOST_ROWS)

    def _title(self) -> str:
        most = f", the {MOST_ROWS} most frequent of {len(self):,} values" if self._left_out() else ""
        return f"{quantity(self.n, 'report')}, method {self.method}, {percent(_CONFIDENCE)} intervals{most}"

    def __repr__(self) -> str:
        return f"Estimate(n={self.n}, values={len(self)}, method={self.method!r}, {self._source()})"

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The frequencies, the counts, and the spec of the mechanism (the dict that ``mechanism_from_spec`` reads). A
            combined estimate stores the dicts of its cohorts instead. Standard errors are not stored, because they
            follow from the other entries.
        """
        header = {"format": self.format, "version": VERSION, "method": self.method}
        return {**header, **self._results(), **self._further()}

    def _results(self) -> dict[str, Any]:
        """Return the entries of the document that hold the frequencies."""
        return {}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any], *, mechanism: Mechanism | None = None) -> Estimate:
        """Return the estimate that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.
        mechanism
            The mechanism that produced the reports, if you have it. By default, it is built from its spec in the
            document.

        Returns
        -------
        Estimate
            An estimate equal to the one that was written, with the same errors and intervals.

        Raises
        ------
        InvalidInput
            If the dict is malformed or not an estimate, was not made by this mechanism, or contradicts itself.

        Notes
        -----
        The function recomputes the numbers that follow quickly from the mechanism, the counts and the method. It raises
        InvalidInput if they differ from those in the document by a relative difference above 1e-6:

        - the unbiased frequencies and the nearest distribution,
        - the frequencies by the methods "unbiased", "efficient" and "simplex".

        It does not check the counts. It also does not check the frequencies and the fit of the methods "mle", "mmse",
        "bayes" and "best" or the weights of combined cohorts, because computing them takes long.
        """
        estimate: Estimate = read_estimate(document, mechanism)
        return estimate

    @abstractmethod
    def _further(self) -> dict[str, Any]:
        """Return the entries of the document that describe the source of the reports."""

    @classmethod
    @abstractmethod
    def _read(cls, document: Mapping[str, Any], mechanism: Mechanism | None) -> Estimate:
        """Return the estimate that a document of this class describes."""


def outside_column(frequencies: Floats, outside: npt.NDArray[np.bool_]) -> dict[str, list[str]]:
    """Return the column that marks impossible frequencies; empty if there are none."""
    if not outside.any():
        return {}
    marks = zip(frequencies.tolist(), outside.tolist(), strict=True)
    return {"": [("below 0" if number < 0 else "above 1") if is_outside else "" for number, is_outside in marks]}


def estimate_notes(estimate: Estimate) -> list[str]:
    """Return the sentences below the table of an estimate: how many values are lost in the noise, and warnings."""
    notes = []
    lost, outside = (int(which.sum()) for which in (estimate.indistinguishable, estimate.outside))
    if 0 < lost <= _MANY_LOST * len(estimate):  # a warning states larger numbers
        notes.append(f"{lost:,} of {quantity(len(estimate), 'value')} cannot be distinguished from zero.")
    if outside:
        verb, noun = ("lies", "frequency") if outside == 1 else ("lie", "frequencies")
        notes.append(f"{outside:,} {noun} {verb} outside [0, 1]; use them in sums, or estimate with method 'simplex'.")
    return [*notes, *(f"WARNING: {warning}" for warning in estimate.warnings)]


def value_table(domain: Domain, columns: Mapping[str, Floats]) -> dict[str, Any]:
    """Return the columns of a table with one row per value: labels, numbers, and coordinates or attributes."""
    labels = list(domain.labels)
    table: dict[str, Any] = {"value": labels, **columns}
    if domain.is_map:
        table["latitude"], table["longitude"] = domain.centres().T
    for axis, name in enumerate(domain.factors):
        taken = {*_RESERVED, *table, *list(domain.factors)[axis + 1 :]}
        table[unused_name(name, taken)] = [cast("Any", label)[axis] for label in labels]
    return table
