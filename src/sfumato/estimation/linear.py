"""Estimated numbers (a frequency, a share, a mean, a difference), each with its law."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sfumato._core import (
    Floats,
    FrozenData,
    Result,
    check_keys,
    is_number,
    number_document,
    percent,
    plot_result,
    read_items,
    read_number,
    read_string,
    reads_document,
)
from sfumato.errors import InvalidInput
from sfumato.estimation.binning import clipped_words, mean_notes
from sfumato.estimation.documents import VERSION, check_document, read_header
from sfumato.mechanisms import Form, FormLaw

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["LawSource", "LinearEstimate", "check_confidence", "reduced_weights", "weighted_sum"]

_SUBJECT = "LinearEstimate.from_dict"


class LawSource(FrozenData):
    """A number in [0, 1] that an estimate determines, and the law of its estimate.

    A source is data: the estimate, and the values or the weights that define the number.
    """

    #: Name of the class in documents.
    form: ClassVar[str]
    #: Key of its document in addition to the form and the estimate.
    key: ClassVar[str]
    forms: ClassVar[dict[str, type[LawSource]]] = {}

    def __init_subclass__(cls) -> None:
        LawSource.forms[cls.form] = cls

    @functools.cached_property
    def law(self) -> FormLaw:
        """The law of the estimated number, computed on first use."""
        return self._law()

    @abstractmethod
    def _law(self) -> FormLaw:
        """Compute the law."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the source as a document that contains its form."""

    @classmethod
    @abstractmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LawSource:
        """Return the source that a document of this form describes."""


@dataclass(frozen=True, eq=False, repr=False)
class LinearEstimate(FrozenData, Result):
    """An estimated number with its standard error and confidence interval: a share, a mean or a difference.

    Methods such as ``Estimate.linear``, ``Estimate.mean`` and ``Estimate.set_fraction`` return such numbers. If ``a``
    and ``b`` are estimated from different people, ``a - b`` is the ``LinearEstimate`` of their difference.

    Parameters
    ----------
    value
        The estimated number.
    standard_error
        The standard error of the number, from randomization and sampling together.
    unseen
        The distance by which one additional report could move the number. It sets a minimum width for normal intervals
        (see Notes).
    terms
        One pair (coefficient, source) per independent group of people. A source holds an estimate and the weights of
        its frequencies; from it, the exact distribution of the estimation error is computed. Methods that return a
        ``LinearEstimate`` set the terms. Without terms, intervals use the normal approximation.
    rounding
        The largest error that dividing numbers into bins adds to a mean: half the width of the widest bin. The standard
        error and the interval do not include it.
    clipped
        The bounds to which numbers out of range were clipped before their mean was estimated. None for other numbers.
    warnings
        One sentence per end of the range whose share shows that numbers were clipped to it. The mean then differs from
        that of the numbers before clipping.

    Notes
    -----
    The minimum width of a normal interval covers people that no report has shown yet. If a share s of all people has a
    rare value, n reports all miss them with probability (1-s)^n. If this probability is at least α, the reports do not
    exclude the share s. The interval of confidence level 1-α therefore extends by at least ln(1/α)·``unseen`` to each
    side.

    Examples
    --------
    >>> number = LinearEstimate(0.3, 0.02)
    >>> print(number)
    0.3 ± 0.02
    >>> low, high = number.interval(0.95)
    >>> round(low, 3), round(high, 3)
    (0.261, 0.339)
    >>> print(number - LinearEstimate(0.2, 0.01))
    0.1 ± 0.022
    """

    value: float
    standard_error: float
    unseen: float = field(default=0.0, kw_only=True)
    terms: tuple[tuple[float, LawSource], ...] = field(default=(), kw_only=True)
    rounding: float = field(default=0.0, kw_only=True)
    clipped: tuple[float, float] | None = field(default=None, kw_only=True)
    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    #: Name of the class in documents.
    format: ClassVar[str] = "sfumato-linear-estimate"
    formats: ClassVar[dict[str, type[LinearEstimate]]] = {}

    def __init_subclass__(cls) -> None:
        LinearEstimate.formats[cls.format] = cls

    @functools.cached_property
    def _form(self) -> Form | None:
        """The law of the estimate; None if it is not known."""
        if not self.terms:
            return Form(self._unbiased, []) if self._is_known else None
        return Form(self._unbiased, [(coefficient, source.law) for coefficient, source in self.terms])

    @property
    def _unbiased(self) -> float:
        """The unbiased estimate of the number, from which limits and sums start."""
        return self.value

    @property
    def _is_known(self) -> bool:
        """Whether the number is a constant: it has no error, and additional reports cannot move it."""
        return not self.terms and self.standard_error == 0 and self.unseen == 0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the lower and upper confidence limits of the number.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1: the probability with which the interval contains the number that is
            estimated, in the population from which people were sampled.

        Returns
        -------
        tuple of float
            The lower and the upper limit.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.

        Notes
        -----
        The limits invert a test. They are the smallest and the greatest number at which an estimate as extreme as the
        observed one has a probability of at least (1 - confidence)/2 on its side. This probability is computed from
        the distribution of the estimate, which ``terms`` determine (see ``sfumato.mechanisms.estimators.forms``). The
        limits lie within the range of possible numbers: a share within [0, 1], a mean between the least and the
        greatest weight.

        Without terms, the interval is normal: ``value`` ± max(z·``standard_error``, ln(1/(1 - confidence))·``unseen``),
        where z is the quantile of the standard normal distribution at (1 + confidence)/2.
        """
        check_confidence(confidence)
        if self._form is not None:
            return self._form.limits(1 - confidence)
        quantile = NormalDist().inv_cdf((1 + confidence) / 2)
        margin = max(quantile * self.standard_error, -math.log(1 - confidence) * self.unseen)
        return self._unbiased - margin, self._unbiased + margin

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of the null hypothesis that the true number equals ``null``.

        Parameters
        ----------
        null
            The number under the null hypothesis.

        Returns
        -------
        float
            The p-value: the least α for which ``interval(1 - α)`` does not contain ``null``.
        """
        if self._form is not None:
            return self._form.p_value(null)
        distance = abs(self._unbiased - null)
        if distance == 0:
            return 1.0
        normal = 2 * NormalDist().cdf(-distance / self.standard_error) if self.standard_error else 0.0
        return max(normal, math.exp(-distance / self.unseen) if self.unseen else 0.0)

    def __sub__(self, other: LinearEstimate) -> LinearEstimate:
        """Return the difference of two estimates from different people."""
        return weighted_sum([(1.0, self), (-1.0, other)])

    def to_pandas(self, confidence: float = 0.95) -> pandas.DataFrame:
        """Return the number as a pandas DataFrame with one row.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pandas.DataFrame
            The columns ``value``, ``standard_error``, ``low`` and ``high``.
        """
        return super().to_pandas(confidence)

    def to_arrow(self, confidence: float = 0.95) -> pyarrow.Table:
        """Return the number as an Arrow table with one row.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pyarrow.Table
            The columns ``value``, ``standard_error``, ``low`` and ``high``.
        """
        return super().to_arrow(confidence)

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        low, high = self.interval(confidence)
        return {"value": [self.value], "standard_error": [self.standard_error], "low": [low], "high": [high]}

    def plot(self, confidence: float = 0.95) -> Figure:
        """Draw the number on an axis, with its interval.

        Parameters
        ----------
        confidence
            Confidence level of the interval, above 0 and below 1.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence)
        return figure

    def _title(self) -> str:
        return f"estimate with its {percent(0.95)} interval"

    def _notes(self) -> Sequence[str]:
        return mean_notes(self)

    def __str__(self) -> str:
        bins = f" (± {self.rounding:.2g} from bins)" if self.rounding else ""
        clipped = "" if self.clipped is None else f", {clipped_words(self.clipped)}"
        warnings = "".join(f"; WARNING: {warning}" for warning in self.warnings)
        return f"{self.value:.6g} ± {self.standard_error:.2g}{bins}{clipped}{warnings}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value!r}, standard_error={self.standard_error!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return the number as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per field. The entry ``"terms"`` contains the estimates from which the limits are derived.
        """
        terms = [{"coefficient": number_document(c), **source.to_dict()} for c, source in self.terms]
        return {
            "format": self.format,
            "version": VERSION,
            "value": number_document(self.value),
            "standard_error": number_document(self.standard_error),
            "unseen": number_document(self.unseen),
            "terms": terms,
            **({"rounding": number_document(self.rounding)} if self.rounding else {}),
            **({} if self.clipped is None else {"clipped": list(self.clipped)}),
            **({"warnings": list(self.warnings)} if self.warnings else {}),
            **self._further(),
        }

    def _further(self) -> dict[str, Any]:
        """Return the additional entries of a subclass's document."""
        return {}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> LinearEstimate:
        """Return the number that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        LinearEstimate
            A number equal to the one that was written, with the same limits.

        Raises
        ------
        InvalidInput
            If the dict is malformed, an estimate in it contradicts its counts (see ``Estimate.from_dict``), or a
            frequency differs from that in its estimate.

        Notes
        -----
        The function does not check standard errors, or the values of sums other than single frequencies. The limits of
        the result are derived from the stored estimates.
        """
        kind: type[LinearEstimate] = read_header(_SUBJECT, document, LinearEstimate.formats)
        further = kind._further_keys
        needed = ("value", "standard_error", "unseen", "terms", *further)
        document = check_document(_SUBJECT, document, needed, ("rounding", "clipped", "warnings"))
        terms = tuple(_read_term(term) for term in read_items(_SUBJECT, "terms", document["terms"]))
        named: dict[str, Any] = {"value": read_number(_SUBJECT, "value", document["value"])}
        named |= {key: read_number(_SUBJECT, key, document[key], least=0.0) for key in ("standard_error", "unseen")}
        named["rounding"] = read_number(_SUBJECT, "rounding", document.get("rounding", 0.0), least=0.0)
        clipped: tuple[float, float] | None = None
        if "clipped" in document:
            low, high = read_items(_SUBJECT, "clipped", document["clipped"], 2)
            clipped = (read_number(_SUBJECT, "clipped", low), read_number(_SUBJECT, "clipped", high))
        warnings = read_items(_SUBJECT, "warnings", document.get("warnings", []))
        named["warnings"] = tuple(read_string(_SUBJECT, "a warning", warning) for warning in warnings)
        estimate = kind(**named, clipped=clipped, terms=terms, **kind._read_further(document))
        estimate._check_read()
        return estimate

    def _check_read(self) -> None:
        """Raise InvalidInput if numbers from a document contradict each other."""

    #: Additional keys of a subclass's document.
    _further_keys: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _read_further(cls, document: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG003
        """Return the constructor arguments that ``_further`` described."""
        return {}


LinearEstimate.formats[LinearEstimate.format] = LinearEstimate


def _read_term(document: Any) -> tuple[float, LawSource]:
    """Return the coefficient and the source of one term of a document."""
    form = document.get("form") if isinstance(document, Mapping) else None
    if not isinstance(form, str) or form not in LawSource.forms:
        raise InvalidInput(_SUBJECT, "a term", f"have a form that is one of {', '.join(LawSource.forms)}", document)
    kind = LawSource.forms[form]
    document = check_keys(_SUBJECT, "a term", document, required=("coefficient", "form", "estimate", kind.key))
    coefficient = read_number(_SUBJECT, "a coefficient", document["coefficient"])
    if not math.isfinite(coefficient):
        raise InvalidInput(_SUBJECT, "a coefficient", "be finite", document["coefficient"])
    return coefficient, kind.from_dict(document)


def weighted_sum(parts: Sequence[tuple[float, LinearEstimate]]) -> LinearEstimate:
    """Return the estimate of Σ weight·number, for numbers from different people."""
    value = sum(weight * part._unbiased for weight, part in parts)
    error = math.hypot(*(weight * part.standard_error for weight, part in parts))
    # With λ and μ expected reports, none arrives with probability e^-(λ+μ), and they differ by at most the greater one.
    unseen = max(abs(weight) * part.unseen for weight, part in parts)
    terms: tuple[tuple[float, LawSource], ...] = ()
    if all(part.terms or part._is_known for _, part in parts):
        terms = tuple((weight * coefficient, source) for weight, part in parts for coefficient, source in part.terms)
    rounding = sum(abs(weight) * part.rounding for weight, part in parts)
    warnings = tuple(dict.fromkeys(warning for _, part in parts for warning in part.warnings))
    clipped = parts[0][1].clipped
    return LinearEstimate(
        value, error, unseen=unseen, terms=terms, rounding=rounding, clipped=clipped, warnings=warnings
    )


def reduced_weights(weights: Floats) -> tuple[float, Floats]:
    """Return a constant and weights with the same sum Σ weight·frequency, of which as many as possible are 0.

    The true frequencies sum to one. If the weights take only two different values, the sum is estimated from the
    smaller of the two groups of values. If all weights are equal, it is the constant.
    """
    different = np.unique(weights)
    if len(different) == 1:
        return float(different[0]), np.zeros(len(weights))
    if len(different) > 2:
        return 0.0, weights
    low, high = different.tolist()
    chosen = weights == high
    if 2 * np.count_nonzero(chosen) <= len(weights):
        return low, np.where(chosen, high - low, 0.0)
    return high, np.where(chosen, 0.0, low - high)


def check_confidence(confidence: float, tests: int = 1) -> None:
    """Raise InvalidInput unless the confidence level lies between 0 and 1 and leaves each test a representable α."""
    if not (is_number(confidence) and 0 < confidence < 1):
        hint = "Use 0.95 for 95% intervals."
        raise InvalidInput("interval", "confidence", "lie between 0 and 1", confidence, hint=hint)
    if 1 - (1 - confidence) / (2 * tests) == 1:
        hint = "Use a lower confidence level, such as 0.999."
        must = "differ from 1 by more than double precision resolves"
        raise InvalidInput("interval", "confidence", must, confidence, hint=hint)
