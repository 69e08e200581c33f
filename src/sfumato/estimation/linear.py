"""Estimated numbers: a frequency, the share of a group, a mean, a difference, each with its law."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

from sfumato._core import (
    FrozenData,
    Result,
    check_keys,
    is_number,
    number_document,
    percent,
    read_items,
    read_number,
    reads_document,
)
from sfumato.errors import InvalidInput
from sfumato.estimation.documents import VERSION, check_document, read_header
from sfumato.mechanisms import Form, FormLaw

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["LawSource", "LinearEstimate", "check_confidence", "weighted_sum"]

_SUBJECT = "LinearEstimate.from_dict"


class LawSource(FrozenData):
    """A number in [0, 1] that an estimate estimates, and the law of its estimate.

    A source is data: the estimate, and the values or the weights that the number is made of.
    """

    #: The word that stands for the class in documents.
    form: ClassVar[str]
    #: The key of its document besides the form and the estimate.
    key: ClassVar[str]
    forms: ClassVar[dict[str, type[LawSource]]] = {}

    def __init_subclass__(cls) -> None:
        LawSource.forms[cls.form] = cls

    @functools.cached_property
    def law(self) -> FormLaw:
        """The law, computed when it is first needed."""
        return self._law()

    @abstractmethod
    def _law(self) -> FormLaw: ...

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the source as a document, with its form."""

    @classmethod
    @abstractmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LawSource:
        """Return the source that a document of this form describes."""


@dataclass(frozen=True, eq=False, repr=False)
class LinearEstimate(FrozenData, Result):
    """An estimated number with its standard error.

    ``unseen``: how far one more report could move it. A share of people that no report counted for is not ruled out by
    n reports if they miss it with probability (1 - share)^n ≥ α, so no normal interval is narrower than ln(1/α) such
    reports. ``terms`` has for each independent group of people a coefficient and what its reports estimate. Limits come
    from their law; without terms they come from the normal law.
    """

    value: float
    standard_error: float
    unseen: float = field(default=0.0, kw_only=True)
    terms: tuple[tuple[float, LawSource], ...] = field(default=(), kw_only=True)

    #: The word that stands for the class in documents.
    format: ClassVar[str] = "sfumato-linear-estimate"
    formats: ClassVar[dict[str, type[LinearEstimate]]] = {}

    def __init_subclass__(cls) -> None:
        LinearEstimate.formats[cls.format] = cls

    @functools.cached_property
    def _form(self) -> Form | None:
        """The law of the estimate, or None if it is not known."""
        if not self.terms:
            return Form(self._unbiased, []) if self._is_known else None
        return Form(self._unbiased, [(coefficient, source.law) for coefficient, source in self.terms])

    @property
    def _unbiased(self) -> float:
        """The unbiased estimate of the number, which limits and sums start from."""
        return self.value

    @property
    def _is_known(self) -> bool:
        """Whether this is a constant: there is no error, and reports that were not seen cannot move it."""
        return not self.terms and self.standard_error == 0 and self.unseen == 0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the lower and upper confidence limits.

        Parameters
        ----------
        confidence
            The confidence level: how often the interval holds the true number.

        Returns
        -------
        tuple of float
            The lower and the upper limit.

        Raises
        ------
        InvalidInput
            If the confidence does not lie between 0 and 1, or is too near to 1.

        Notes
        -----
        The limits invert the law of the estimate (see ``sfumato.mechanisms.estimators.forms``) and lie within the
        numbers that are possible: a share within [0, 1], a mean between the least and the greatest weight. If the law
        is not known they are normal, and not nearer than reports that were not seen leave them.
        """
        check_confidence(confidence)
        if self._form is not None:
            return self._form.limits(1 - confidence)
        quantile = NormalDist().inv_cdf((1 + confidence) / 2)
        margin = max(quantile * self.standard_error, -math.log(1 - confidence) * self.unseen)
        return self._unbiased - margin, self._unbiased + margin

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of ``null``: the least α at which the interval of 1 - α leaves it out."""
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
        """Return a table with one row: value, standard_error, low, high.

        Parameters
        ----------
        confidence
            The confidence level of the limits ``low`` and ``high``.
        """
        return super().to_pandas(confidence)

    def to_arrow(self, confidence: float = 0.95) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table."""
        return super().to_arrow(confidence)

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        low, high = self.interval(confidence)
        return {"value": [self.value], "standard_error": [self.standard_error], "low": [low], "high": [high]}

    def _title(self) -> str:
        return f"estimate with its {percent(0.95)} interval"

    def __str__(self) -> str:
        return f"{self.value:.6g} ± {self.standard_error:.2g}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value!r}, standard_error={self.standard_error!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return the number as a document of plain JSON types, with the estimates that its limits come from."""
        terms = [{"coefficient": number_document(c), **source.to_dict()} for c, source in self.terms]
        return {
            "format": self.format,
            "version": VERSION,
            "value": number_document(self.value),
            "standard_error": number_document(self.standard_error),
            "unseen": number_document(self.unseen),
            "terms": terms,
            **self._further(),
        }

    def _further(self) -> dict[str, Any]:
        """Return what the document of a subclass has in addition."""
        return {}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> LinearEstimate:
        """Return the number that ``to_dict`` described: equal to it, with the same limits.

        Raises
        ------
        InvalidInput
            If the document is malformed, an estimate in it contradicts its counts (see ``Estimate.from_dict``), or a
            frequency is not the one that this estimate has for the value.

        Notes
        -----
        The value of other sums, and standard errors, are trusted; limits are derived from the estimates.
        """
        kind: type[LinearEstimate] = read_header(_SUBJECT, document, LinearEstimate.formats)
        further = kind._further_keys
        document = check_document(_SUBJECT, document, ("value", "standard_error", "unseen", "terms", *further))
        terms = tuple(_read_term(term) for term in read_items(_SUBJECT, "terms", document["terms"]))
        named = {"value": read_number(_SUBJECT, "value", document["value"])}
        named |= {key: read_number(_SUBJECT, key, document[key], least=0.0) for key in ("standard_error", "unseen")}
        estimate = kind(**named, terms=terms, **kind._read_further(document))
        estimate._check_read()
        return estimate

    def _check_read(self) -> None:
        """Raise InvalidInput if numbers that were read from a document contradict each other."""

    #: Keys that the document of a subclass has in addition.
    _further_keys: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _read_further(cls, document: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG003
        """Return the arguments that ``_further`` described."""
        return {}


LinearEstimate.formats[LinearEstimate.format] = LinearEstimate


def _read_term(document: Any) -> tuple[float, LawSource]:
    form = document.get("form") if isinstance(document, Mapping) else None
    if not isinstance(form, str) or form not in LawSource.forms:
        raise InvalidInput(_SUBJECT, "a term", f"have a form: one of {', '.join(LawSource.forms)}", document)
    kind = LawSource.forms[form]
    document = check_keys(_SUBJECT, "a term", document, required=("coefficient", "form", "estimate", kind.key))
    coefficient = read_number(_SUBJECT, "a coefficient", document["coefficient"])
    if not math.isfinite(coefficient):
        raise InvalidInput(_SUBJECT, "a coefficient", "be finite", document["coefficient"])
    return coefficient, kind.from_dict(document)


def weighted_sum(parts: Sequence[tuple[float, LinearEstimate]]) -> LinearEstimate:
    """Return the estimate of Σ weight·number, of numbers that are estimated from different people."""
    value = sum(weight * part._unbiased for weight, part in parts)
    error = math.hypot(*(weight * part.standard_error for weight, part in parts))
    # No report of λ and of μ expected ones has probability e^-(λ+μ), and they differ by no more than the greater.
    unseen = max(abs(weight) * part.unseen for weight, part in parts)
    terms: tuple[tuple[float, LawSource], ...] = ()
    if all(part.terms or part._is_known for _, part in parts):
        terms = tuple((weight * coefficient, source) for weight, part in parts for coefficient, source in part.terms)
    return LinearEstimate(value, error, unseen=unseen, terms=terms)


def check_confidence(confidence: float, tests: int = 1) -> None:
    """Raise InvalidInput unless this is a confidence that leaves each of the tests a probability to miss."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InvalidInput("interval", "confidence", "lie between 0 and 1", confidence)
    if 1 - (1 - confidence) / (2 * tests) == 1:
        raise InvalidInput("interval", "confidence", "be so far from 1 that a double lies between them", confidence)
