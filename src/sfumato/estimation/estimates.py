"""Estimates: the counts and the frequencies, from which errors, intervals and linear forms follow.

An estimate is data. It derives errors through the estimator of its mechanism, which it looks up and does not store.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    MOST_ROWS,
    Floats,
    FrozenData,
    Result,
    checked_type,
    is_number,
    number_document,
    percent,
    plot_result,
    quantity,
    read_flag,
    read_integer,
    read_number,
    read_only,
    read_string,
    reads_document,
    unused_name,
)
from sfumato.collecting import Aggregate
from sfumato.domain import Domain, read_numbers
from sfumato.errors import Description, InvalidInput, LimitExceeded, UnknownLabel
from sfumato.estimation.documents import (
    VERSION,
    check_document,
    is_close,
    numbers,
    read_distribution_of,
    read_header,
    read_numbers_of,
)
from sfumato.estimation.estimators import estimator_of
from sfumato.estimation.linear import LawSource, LinearEstimate, check_confidence
from sfumato.mechanisms import (
    Cohort,
    Estimator,
    Fit,
    FormLaw,
    Mechanism,
    SamplingDistribution,
    ScoreLaw,
    confidence_limits,
    mechanism_from_spec,
    tilted,
    with_some_mass,
)

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

__all__ = [
    "METHODS",
    "RESULT_KEYS",
    "Estimate",
    "FrequencyEstimate",
    "MechanismEstimate",
    "frequency_of",
    "value_table",
]

#: Methods of ``estimate``.
METHODS = ("unbiased", "efficient", "simplex", "mle", "mmse")


#: Maximum number of values of a dense covariance matrix; a larger one would take more than 3 GB.
_LARGEST_COVARIANCE = 20_000
#: Variance, relative to the squared effect of one report, below which it is rounding because all reports agree.
_SILENT = 1e-12
#: Maximum number of bins of different weights for the law of a mean.
_MOST_BINS = 64
#: Column names of result tables; an attribute of a product with one of these names is renamed.
_RESERVED = ("value", "frequency", "standard_error", "low", "high", "group", "difference", "prior")

_SUBJECT = "Estimate.from_dict"


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyEstimate(LinearEstimate):
    """The estimated frequency of one value (a share of people), as ``estimate[label]`` returns it.

    ``value`` is computed by the method of the estimate, such as ``"simplex"``. The standard error, the limits and
    differences are always those of the unbiased estimate.

    Parameters
    ----------
    value
        The frequency by the method of the estimate.
    standard_error
        The standard error of the unbiased frequency.
    unseen
        The distance by which one additional report could move the frequency (see :class:`LinearEstimate`).
    terms
        The estimate from which the limits are derived (see :class:`LinearEstimate`).
    unbiased
        The unbiased estimate of the frequency; it may lie outside [0, 1].

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> flu = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10))["flu"]
    >>> print(flu)
    0.285714 ± 0.065
    >>> low, high = flu.interval(0.95)
    >>> round(low, 3), round(high, 3)
    (0.166, 0.422)
    """

    unbiased: float = field(kw_only=True)

    format: ClassVar[str] = "sfumato-frequency-estimate"
    _further_keys: ClassVar[tuple[str, ...]] = ("unbiased",)

    @property
    def _unbiased(self) -> float:
        return self.unbiased

    def _further(self) -> dict[str, Any]:
        return {"unbiased": number_document(self.unbiased)}

    @classmethod
    def _read_further(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"unbiased": read_number(_SUBJECT, "unbiased", document["unbiased"])}

    def _check_read(self) -> None:
        if not self.terms:  # the only value of a domain
            expected = (1.0, 1.0)
        else:
            ((coefficient, source),) = self.terms
            if not isinstance(source, FrequencySource) or coefficient != 1:
                raise InvalidInput(_SUBJECT, "terms", "be one frequency with coefficient 1", source)
            expected = float(source.estimate.frequencies[source.index]), float(source.estimate.unbiased[source.index])
        for name, number, must in zip(("value", "unbiased"), (self.value, self.unbiased), expected, strict=True):
            if not is_close(np.array([number]), np.array([must])):
                raise InvalidInput(_SUBJECT, name, f"be {must}, as in the estimate that contains it", number)


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(FrozenData, Result):
    """Estimated frequency of every value of a domain, with standard errors and confidence intervals.

    :func:`estimate` returns the subclass :class:`MechanismEstimate`, and :func:`combine` the subclass
    :class:`CombinedEstimate`. ``result[label]`` returns the frequency of one value. ``to_dict`` and ``from_dict`` store
    an estimate without loss. Two estimates with the same content are equal.

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
    none     0.71429         0.06999  0.57395  0.84646
    flu      0.28571         0.06547  0.16621  0.42155
    hiv      0.00000         0.04286  0.00000  0.10142
    >>> result["flu"]
    FrequencyEstimate(value=0.2857142857142857, standard_error=0.06546536707079771)
    """

    method: str
    frequencies: Floats
    unbiased: Floats
    nearest: Floats
    fit: Fit | None = field(default=None, kw_only=True)

    #: Name of the class in documents.
    format: ClassVar[str]
    formats: ClassVar[dict[str, type[Estimate]]] = {}

    def __init_subclass__(cls) -> None:
        Estimate.formats[cls.format] = cls

    def __post_init__(self) -> None:
        for name in ("frequencies", "unbiased", "nearest"):
            array = np.array(getattr(self, name), np.float64)
            if array.shape != (len(self.domain),):
                must = f"have shape ({len(self.domain)},), one entry per value of the domain"
                raise InvalidInput("Estimate", name, must, Description(f"shape {array.shape}"))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.fit is not None:
            object.__setattr__(self, "fit", replace(self.fit, frequencies=read_only(self.fit.frequencies)))

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
        if len(self.domain) > _LARGEST_COVARIANCE:
            raise LimitExceeded(
                f"the covariance matrix supports at most {_LARGEST_COVARIANCE:,} values, not {len(self.domain):,}. "
                "Use standard_errors for its diagonal, or linear(weights) for the error of a sum."
            )
        return self.estimator.covariance(self.nearest) / self.n

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

    @property
    def expected_tv(self) -> float:
        """The expected total variation distance between the unbiased and the true frequencies.

        It is half the expected sum of absolute errors, computed from the variances in the normal approximation. It may
        exceed 1.
        """
        return float(np.sum(np.sqrt(self._variances / self.n))) * float(np.sqrt(2 / np.pi)) / 2

    # -- sums of frequencies -----------------------------------------------------------------------------------

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

        Notes
        -----
        The true frequencies sum to one. If the weights take only two different values, the sum is therefore estimated
        from the smaller of the two groups of values. If all weights are equal, the sum is a constant without error.

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
        source: LawSource
        different = np.unique(vector)
        if len(different) == 1:
            return LinearEstimate(float(vector[0]), 0.0)
        if len(different) == 2:
            chosen = vector == different[1]
            sign = 1.0 if 2 * np.count_nonzero(chosen) <= len(vector) else -1.0
            members = np.flatnonzero(chosen if sign > 0 else ~chosen)
            base, gap = float(different[0 if sign > 0 else 1]), sign * float(different[1] - different[0])
            one_way = np.zeros(len(vector))
            one_way[members] = 1.0
            source = FrequencySource(self, int(members[0])) if len(members) == 1 else ShareSource(self, members)
            value = base + gap * float(one_way @ self.unbiased)
            error, unseen = self._linear_error(gap * one_way)
        else:
            value, gap, source = float(vector @ self.unbiased), float(np.ptp(vector)), MeanSource(self, vector)
            error, unseen = self._linear_error(vector)
        return LinearEstimate(value, error, unseen=unseen, terms=((gap, source),))

    def _linear_error(self, vector: Floats) -> tuple[float, float]:
        """Return the standard error of Σ weight·frequency, and how far one additional report could move the sum."""
        estimator = self.estimator
        # The distance by which one report of each value moves the sum; 0 if all values have the same weight.
        expected = float(vector @ self.nearest)
        least = float(((vector - expected) ** 2 * self.least_variances).max())
        variance = max(estimator.variance(vector, self.nearest), least)
        # In a group of values with equal weights a report counts once, however much it counts for each value.
        group = estimator.known_groups()
        least, greatest = np.full((2, group.max() + 1), np.inf) * [[1], [-1]]
        np.minimum.at(least, group, vector)
        np.maximum.at(greatest, group, vector)
        counts = np.where((least == greatest)[group], 1.0, self._far)
        return (variance / self.n) ** 0.5, float((np.abs(vector - expected) * counts).max()) / self.n

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
            The mean with its error and interval.

        Raises
        ------
        InvalidInput
            If the labels are not numbers. Use ``linear`` with a number per value instead.
        """
        labels = self.domain.labels
        if not all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels):
            hint = "Use linear(weights) with a number per value."
            raise InvalidInput("mean", "the labels of the domain", "be numbers", labels[0], hint=hint)
        return self.linear(np.array(labels, dtype=np.float64))

    def _weights(self, weights: Mapping[Any, float] | Sequence[float] | Floats) -> Floats:
        """Return weights as an array in domain order."""
        return read_numbers(self.domain, weights, "linear", "weights", absent=0.0)

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
            The figure; requires matplotlib (``pip install "sfumato[plot]"``).
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
        low, high = self._limits(top, 0.95)
        columns = {
            "frequency": self.frequencies[top],
            "standard_error": self.standard_errors[top],
            "low": low,
            "high": high,
        }
        labels = [str(self.domain.label(x)) for x in top.tolist()]
        return {"value": labels, **{name: [f"{number:.5f}" for number in column] for name, column in columns.items()}}

    def _left_out(self) -> int:
        return max(0, len(self) - MOST_ROWS)

    def _title(self) -> str:
        most = f", the {MOST_ROWS} most frequent of {len(self):,} values" if self._left_out() else ""
        return f"{quantity(self.n, 'report')}, method {self.method}, {percent(0.95)} intervals{most}"

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
        return {
            "format": self.format,
            "version": VERSION,
            "method": self.method,
            "frequencies": numbers(self.frequencies),
            "unbiased": numbers(self.unbiased),
            "nearest": numbers(self.nearest),
            "fit": _fit_document(self.fit),
            **self._further(),
        }

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

        It does not check the counts. It also does not check the frequencies and the fit of the methods "mle" and "mmse"
        or the weights of combined cohorts, because computing them takes long.
        """
        kind: type[Estimate] = read_header(_SUBJECT, document, Estimate.formats)
        return kind._read(document, mechanism)

    @abstractmethod
    def _further(self) -> dict[str, Any]:
        """Return the entries of the document that describe the source of the reports."""

    @classmethod
    @abstractmethod
    def _read(cls, document: Mapping[str, Any], mechanism: Mechanism | None) -> Estimate:
        """Return the estimate that a document of this class describes."""

    @staticmethod
    def _read_results(document: Mapping[str, Any], size: int) -> dict[str, Any]:
        """Return the constructor arguments that all estimates share."""
        method = read_string(_SUBJECT, "method", document["method"])
        arrays = {name: read_numbers_of(_SUBJECT, name, document[name], size) for name in ("frequencies", "unbiased")}
        arrays["nearest"] = read_distribution_of(_SUBJECT, "nearest", document["nearest"], size)
        return {"method": method, "fit": _read_fit(document["fit"], arrays["frequencies"]), **arrays}


#: Keys of the documents of all estimates, in addition to format and version.
RESULT_KEYS = ("method", "frequencies", "unbiased", "nearest", "fit")


@dataclass(frozen=True, eq=False, repr=False)
class MechanismEstimate(Estimate):
    """The estimated frequencies from the reports of one mechanism, as :func:`estimate` returns them.

    Parameters
    ----------
    method
        Name of the method (see :func:`estimate`).
    frequencies
        Frequencies by this method as fractions of people, shape (k,) for k values, in domain order.
    unbiased
        Unbiased frequencies, shape (k,), in domain order. Some may lie outside [0, 1].
    nearest
        A distribution near the unbiased frequencies, shape (k,), at which variances are computed.
    fit
        Result of the maximum-likelihood search if the method is ``"mle"`` (see :class:`Fit`); None for other methods.
    mechanism
        The mechanism that produced the reports.
    counts
        The exact counts of the reports, as :func:`aggregate` returns them.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10))
    >>> result.n, result.counts.counts.tolist(), result.mechanism.name
    (100, [60, 30, 10], 'randomized-response')
    """

    mechanism: Mechanism = field(kw_only=True)
    counts: Aggregate = field(kw_only=True)

    format: ClassVar[str] = "sfumato-estimate"

    @property
    def domain(self) -> Domain:
        """The domain: the values whose frequencies are estimated, in domain order."""
        return self.mechanism.domain

    @property
    def n(self) -> int:
        """The number of reports from which the frequencies were estimated."""
        return self.counts.n

    @property
    def estimator(self) -> Estimator:
        """The estimator of the mechanism, which computes the variances and intervals of this estimate.

        It is derived from ``mechanism`` and ``method`` on access. It is not stored with the estimate: ``to_dict`` and
        comparisons leave it out.
        """
        return estimator_of(self.mechanism, self.method)

    def _source(self) -> str:
        return f"mechanism={self.mechanism.name!r}"

    def _further(self) -> dict[str, Any]:
        return {"mechanism": self.mechanism.spec, "n": self.n, "counts": self.counts.counts.tolist()}

    @classmethod
    def _read(cls, document: Mapping[str, Any], mechanism: Mechanism | None) -> MechanismEstimate:
        document = check_document(_SUBJECT, document, (*RESULT_KEYS, "n", "counts"), ("mechanism",))
        mechanism = read_mechanism(document.get("mechanism"), mechanism)
        counts = Aggregate(mechanism.hash, document["n"], document["counts"])
        counts.check(mechanism)
        if counts.n == 0:
            raise InvalidInput(_SUBJECT, "n", "be at least 1, because an estimate needs a report", 0)
        estimate = cls(**cls._read_results(document, len(mechanism.domain)), mechanism=mechanism, counts=counts)
        estimate._check_read()
        return estimate

    def _check_read(self) -> None:
        """Raise InvalidInput unless the numbers from a document follow from the counts."""
        if self.method not in METHODS:
            raise InvalidInput(_SUBJECT, "method", f"be one of {', '.join(METHODS)}", self.method)
        if (self.fit is not None) != (self.method == "mle"):
            raise InvalidInput(_SUBJECT, "fit", "be present with method 'mle', and only with it", self.fit)
        estimator, fractions = self.estimator, self.counts.counts / self.n
        unbiased = estimator.frequencies_of_counts(self.counts.counts, self.n)
        scale = max(1.0, float(np.abs(unbiased).max()))
        checks = {"unbiased": (self.unbiased, unbiased)}
        checks["nearest"] = (self.nearest, estimator.nearest(unbiased, fractions))
        if self.method in ("unbiased", "efficient", "simplex"):
            checks["frequencies"] = (self.frequencies, checks["nearest" if self.method == "simplex" else "unbiased"][1])
        for name, (stated, computed) in checks.items():
            if not is_close(computed, stated, scale):
                hint = "The document was changed after to_dict() wrote it. Estimate again from its counts."
                raise InvalidInput(_SUBJECT, name, "agree with the counts", stated, hint=hint)
        if self.method in ("mle", "mmse"):
            read_distribution_of(_SUBJECT, "frequencies", self.frequencies.tolist(), len(self))


def read_mechanism(spec: Any, mechanism: Mechanism | None) -> Mechanism:
    """Return the mechanism of a document: the caller's, if it has the same spec, or one built from the spec."""
    if mechanism is None:
        return mechanism_from_spec(spec)
    checked_type(_SUBJECT, "the mechanism", mechanism, Mechanism)
    if spec is not None and mechanism.spec != spec:
        hint = "Leave the mechanism out to build it from the document."
        raise InvalidInput(_SUBJECT, "the mechanism", "have the spec of the document", mechanism, hint=hint)
    return mechanism


def _fit_document(fit: Fit | None) -> dict[str, Any] | None:
    """Return the description of a maximum-likelihood search as a document."""
    if fit is None:
        return None
    gain, bound = number_document(fit.gain), number_document(fit.bound)
    return {"converged": bool(fit.converged), "iterations": int(fit.iterations), "gain": gain, "bound": bound}


def _read_fit(document: Any, frequencies: Floats) -> Fit | None:
    """Return the description of a maximum-likelihood search from a document."""
    if document is None:
        return None
    keys = ("converged", "iterations", "gain", "bound")
    if not isinstance(document, Mapping) or set(document) != set(keys):
        raise InvalidInput(_SUBJECT, "fit", f"have the keys {', '.join(keys)}", document)
    gain, bound = (read_number(_SUBJECT, f"the {key} of fit", document[key]) for key in ("gain", "bound"))
    converged = read_flag(_SUBJECT, "converged of fit", document["converged"])
    iterations = read_integer(_SUBJECT, "iterations of fit", document["iterations"])
    return Fit(frequencies, converged, iterations, gain, bound)


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


# -- the laws of linear estimates ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FrequencySource(LawSource):
    """The frequency of one value."""

    estimate: Estimate
    index: int

    form: ClassVar[str] = "frequency"
    key: ClassVar[str] = "index"

    def to_dict(self) -> dict[str, Any]:
        return {"form": self.form, "index": self.index, "estimate": self.estimate.to_dict()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FrequencySource:
        estimate = Estimate.from_dict(document["estimate"])
        return cls(estimate, _read_indices([document["index"]], len(estimate))[0])

    def _law(self) -> FormLaw:
        estimate, x = self.estimate, self.index
        rows = [law.rows(np.array([x])) for law in estimate._score_laws]
        return FormLaw.of_rows(rows, float(estimate.unbiased[x]), min(max(float(estimate.frequencies[x]), 0.0), 1.0))


@dataclass(frozen=True, eq=False)
class ShareSource(LawSource):
    """The share of people who have one of several values."""

    estimate: Estimate
    members: npt.NDArray[np.int64]

    form: ClassVar[str] = "share"
    key: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", read_only(self.members, np.int64))

    def to_dict(self) -> dict[str, Any]:
        return {"form": self.form, "members": self.members.tolist(), "estimate": self.estimate.to_dict()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ShareSource:
        estimate = Estimate.from_dict(document["estimate"])
        members = _read_indices(document["members"], len(estimate))
        if not 0 < len(set(members)) == len(members) < len(estimate):
            raise InvalidInput(
                _SUBJECT, "members", "be indices of some but not all values, each once", document["members"]
            )
        return cls(estimate, np.array(members, np.int64))

    def _law(self) -> FormLaw:
        estimate, estimator = self.estimate, self.estimate.estimator
        weights = np.zeros(len(estimate.domain))
        weights[self.members] = 1.0
        p = with_some_mass(estimate.nearest)
        group = estimator.known_groups()
        mine = group == group[self.members[0]]
        if mine[self.members].all() and not mine.all() and not weights[mine].all():
            # If reports reveal the total of this group of values, the law keeps that total as observed.
            masks = [weights > 0, (weights == 0) & mine, ~mine]
            mass = float(p[mine].sum())
        else:
            masks, mass = [weights > 0, weights == 0], 1.0
        parts = np.array([np.where(mask, p, 0.0) / p[mask].sum() for mask in masks])
        cohorts = estimator.cohorts(weights, parts, estimate.n)
        value, inside = float(weights @ estimate.unbiased), float(weights @ estimate.frequencies)
        inside = min(max(inside, 0.0), 1.0)
        rows = _two_score_rows(cohorts, mass)
        if rows is not None:
            return FormLaw.of_rows(rows, value, inside)
        if len(masks) == 2:
            return FormLaw(value, inside, np.array([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), cohorts)
        fractions = np.array([[0, mass, 1 - mass], [mass, 0, 1 - mass], [1, 0, 0]])
        return FormLaw(value, inside, np.array([0.0, mass, 1.0]), fractions, cohorts)


@dataclass(frozen=True, eq=False)
class MeanSource(LawSource):
    """The mean of weights, scaled so that the least weight is 0 and the greatest is 1."""

    estimate: Estimate
    weights: Floats

    form: ClassVar[str] = "mean"
    key: ClassVar[str] = "weights"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", read_only(self.weights))

    def to_dict(self) -> dict[str, Any]:
        return {"form": self.form, "weights": numbers(self.weights), "estimate": self.estimate.to_dict()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> MeanSource:
        estimate = Estimate.from_dict(document["estimate"])
        weights = read_numbers_of(_SUBJECT, "weights", document["weights"], len(estimate))
        if len(np.unique(weights)) < 2:
            raise InvalidInput(_SUBJECT, "weights", "contain two different numbers", document["weights"])
        return cls(estimate, weights)

    def _law(self) -> FormLaw:
        estimate, weights = self.estimate, self.weights
        least, gap = float(weights.min()), float(np.ptp(weights))
        unit = (weights - least) / gap
        # Add one person with a uniform value, because a value absent from a small sample may still move a mean far.
        p = (estimate.n * estimate.nearest + 1 / len(weights)) / (estimate.n + 1)
        place = _places(unit)
        masses = np.asarray(np.bincount(place, weights=p), np.float64)
        parts = np.zeros((len(masses), len(p)))
        parts[place, np.arange(len(p))] = p / masses[place]
        knots, fractions = tilted(masses, parts @ unit)
        value, inside = (float(weights @ each - least) / gap for each in (estimate.unbiased, estimate.frequencies))
        cohorts = estimate.estimator.cohorts(weights / gap, parts, estimate.n)
        return FormLaw(value, min(max(inside, 0.0), 1.0), knots, fractions, cohorts)


def _places(unit: Floats) -> npt.NDArray[np.int64]:
    """Return the bin of each weight in [0, 1]: separate bins for 0 and 1, and a limited number between them."""
    different, place = np.unique(unit, return_inverse=True)
    if len(different) > _MOST_BINS:
        inner = 1 + np.minimum((unit * (_MOST_BINS - 2)).astype(np.int64), _MOST_BINS - 3)
        inner[unit == 0], inner[unit == 1] = 0, _MOST_BINS - 1
        place = np.unique(inner, return_inverse=True)[1]
    return np.asarray(place.ravel(), np.int64)


def _two_score_rows(cohorts: Sequence[Cohort], mass: float) -> list[ScoreLaw] | None:
    """Return the binomial law of a fraction whose reports have only two scores; None for other fractions."""
    cohort, *others = cohorts
    listed = None if others or cohort.scores is None else cohort.scores.score_values(cohort.parts)
    if listed is None or len(listed[0]) != 2:
        return None
    score_values, probabilities = listed
    within, in_group, *outside_group = probabilities / probabilities.sum(axis=1, keepdims=True)
    ones = np.ones(1)
    last = outside_group[0] if outside_group else np.zeros(2)
    return [
        ScoreLaw(
            score_values[None], within[None], in_group[None], last[None], mass * ones, cohort.reports * ones, ones, ones
        )
    ]


def _read_indices(document: Any, size: int) -> list[int]:
    """Return the indices of values that a document holds."""
    if not isinstance(document, list) or not all(type(x) is int and 0 <= x < size for x in document):
        raise InvalidInput(_SUBJECT, "indices", f"be integers from 0 to {size - 1}", document)
    return document


def frequency_of(estimate: Estimate, x: int) -> FrequencyEstimate:
    """Return the frequency of the value with index x."""
    value, unbiased = float(estimate.frequencies[x]), float(estimate.unbiased[x])
    if len(estimate.domain) == 1:
        return FrequencyEstimate(1.0, 0.0, unbiased=1.0)
    return FrequencyEstimate(
        value,
        float(estimate.standard_errors[x]),
        unbiased=unbiased,
        unseen=float(estimate._far[x]) / estimate.n,
        terms=((1.0, FrequencySource(estimate, x)),),
    )
