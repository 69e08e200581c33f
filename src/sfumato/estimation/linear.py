"""Estimated numbers: a frequency, the share of a group, a mean, a difference, each with its law."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar

from sfumato._core import FrozenData, is_number
from sfumato.errors import InvalidInput
from sfumato.estimation.documents import VERSION, check_document, number_document, read_header, read_number
from sfumato.mechanisms import Form, FormLaw

__all__ = ["LawSource", "LinearEstimate", "check_confidence", "weighted_sum"]

_SUBJECT = "LinearEstimate.from_dict"


class LawSource(FrozenData):
    """A number in [0, 1] that an estimate estimates, and the law of its estimate.

    A source is data: the estimate, and the values or the weights that the number is made of.
    """

    #: The word that stands for the class in documents.
    form: ClassVar[str]
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
class LinearEstimate(FrozenData):
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
    def from_dict(cls, document: Mapping[str, Any]) -> LinearEstimate:
        """Return the number that ``to_dict`` described: equal to it, with the same limits."""
        kind: type[LinearEstimate] = read_header(_SUBJECT, document, LinearEstimate.formats)
        further = kind._further_keys
        document = check_document(_SUBJECT, document, ("value", "standard_error", "unseen", "terms", *further))
        terms = tuple(_read_term(term) for term in document["terms"])
        named = {key: read_number(_SUBJECT, key, document[key]) for key in ("value", "standard_error", "unseen")}
        return kind(**named, terms=terms, **kind._read_further(document))

    #: Keys that the document of a subclass has in addition.
    _further_keys: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _read_further(cls, document: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG003
        """Return the arguments that ``_further`` described."""
        return {}


LinearEstimate.formats[LinearEstimate.format] = LinearEstimate


def _read_term(document: Any) -> tuple[float, LawSource]:
    if not isinstance(document, Mapping) or document.get("form") not in LawSource.forms:
        raise InvalidInput(_SUBJECT, "a term", f"have a form: one of {', '.join(LawSource.forms)}", document)
    source = LawSource.forms[document["form"]].from_dict(document)
    return read_number(_SUBJECT, "a coefficient", document.get("coefficient")), source


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
