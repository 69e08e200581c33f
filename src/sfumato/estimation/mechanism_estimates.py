"""Estimates from the reports of one mechanism."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from sfumato._core import Floats, checked_type, percent, quantity, read_flag, read_string
from sfumato.collecting import Aggregate
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.estimation.complete import RESULT_KEYS, CompleteEstimate
from sfumato.estimation.documents import check_document, is_close, read_distribution_of
from sfumato.estimation.empirical_bayes import Choice
from sfumato.estimation.estimates import Estimate
from sfumato.estimation.estimators import estimator_of
from sfumato.estimation.linear import LinearEstimate, check_confidence
from sfumato.estimation.marginals import MarginalValues, marginal_of_counts
from sfumato.estimation.plausibility import implausible
from sfumato.mechanisms import Estimator, Mechanism, NotIdentifiable, mechanism_from_spec
from sfumato.questions import numeric_labels

__all__ = ["METHODS", "PARTIAL_METHODS", "SHRINKING_METHODS", "MechanismEstimate", "PartialEstimate"]

#: Methods of ``estimate``.
METHODS = ("unbiased", "efficient", "simplex", "mle", "mmse", "bayes", "best")
#: Methods of ``estimate`` that fit a prior to all frequencies.
SHRINKING_METHODS = ("bayes", "best")
#: Methods of ``estimate`` for reports that do not distinguish all values.
PARTIAL_METHODS = ("unbiased", "efficient")
#: Maximum number of counts up to which the errors of tables are those at a fitted distribution, as for other sums. For
#: more counts, fitting takes long, and the errors are those of the observed reports.
_MOST_FITTED = 2**16
#: Maximum number of values whose single frequencies are checked for the table of a partial estimate.
_MOST_CHECKED = 256

_SUBJECT = "Estimate.from_dict"


@dataclass(frozen=True, eq=False, repr=False)
class MechanismEstimate(CompleteEstimate):
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
    choice
        The method that ``"best"`` chose, and why (see :class:`Choice`); None for other methods.
    smooth
        Whether neighbouring values share a prior, with the methods ``"bayes"`` and ``"best"``.

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
    choice: Choice | None = field(default=None, kw_only=True)
    smooth: bool = field(default=False, kw_only=True)

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

    @functools.cached_property
    def _distribution_for_sums(self) -> Floats:
        return self.estimator.distribution_for_sums(self.nearest, self.counts.counts / self.n, self.n)

    def _marginal(self, axes: Sequence[int]) -> MarginalValues:
        fractions = self.counts.counts / self.n
        p = self._distribution_for_sums if len(fractions) <= _MOST_FITTED else None
        return marginal_of_counts(self.estimator, fractions, self.n, self.domain.shape, axes, p)

    def _implausible(self) -> tuple[str, ...]:
        return implausible(self.mechanism, self.counts)

    def _source(self) -> str:
        return f"mechanism={self.mechanism.name!r}"

    def _notes(self) -> Sequence[str]:
        chosen = () if self.choice is None else (f"Method best chose {self.choice}.",)
        return (*super()._notes(), *chosen)

    def _further(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism.spec,
            "n": self.n,
            "counts": self.counts.counts.tolist(),
            **({} if self.choice is None else {"choice": self.choice.to_dict()}),
            **({"smooth": True} if self.smooth else {}),
        }

    @classmethod
    def _read(cls, document: Mapping[str, Any], mechanism: Mechanism | None) -> MechanismEstimate:
        optional = ("mechanism", "choice", "smooth")
        document = check_document(_SUBJECT, document, (*RESULT_KEYS, "n", "counts"), optional)
        mechanism, counts = _read_counts(document, mechanism)
        results = cls._read_results(document, len(mechanism.domain))
        choice = None if document.get("choice") is None else Choice.from_dict(document["choice"])
        smooth = read_flag(_SUBJECT, "smooth", document.get("smooth", False))
        estimate = cls(**results, mechanism=mechanism, counts=counts, choice=choice, smooth=smooth)
        estimate._check_read()
        return estimate

    def _check_read(self) -> None:
        """Raise InvalidInput unless the numbers from a document follow from the counts."""
        if self.method not in METHODS:
            raise InvalidInput(_SUBJECT, "method", f"be one of {', '.join(METHODS)}", self.method)
        if (self.fit is not None) != (self.method == "mle"):
            raise InvalidInput(_SUBJECT, "fit", "be present with method 'mle', and only with it", self.fit)
        if (self.choice is not None) != (self.method == "best"):
            raise InvalidInput(_SUBJECT, "choice", "be present with method 'best', and only with it", self.choice)
        if self.smooth and self.method not in SHRINKING_METHODS:
            raise InvalidInput(_SUBJECT, "smooth", "be absent with other methods than 'bayes' and 'best'", self.smooth)
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
        if self.method in ("mle", "mmse", *SHRINKING_METHODS):
            read_distribution_of(_SUBJECT, "frequencies", self.frequencies.tolist(), len(self))


@dataclass(frozen=True, eq=False, repr=False)
class PartialEstimate(Estimate):
    """Estimate from reports that do not distinguish all values, as :func:`estimate` returns it for such mechanisms.

    The best mechanism for a mean, for example, has two reports. They determine the mean, but not the frequency of any
    value. Methods that estimate sums of frequencies work for the sums that the reports determine: ``mean``, ``range``,
    ``linear``, ``set_fraction`` and ``answers``. ``identifies`` says which sums these are. All other methods and
    attributes raise :class:`NotIdentifiable`, among them ``frequencies``, ``standard_errors`` and ``covariance``.

    Parameters
    ----------
    method
        ``"unbiased"`` or ``"efficient"``, which are the same here.
    mechanism
        The mechanism that produced the reports.
    counts
        The exact counts of the reports, as :func:`aggregate` returns them.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import TableMechanism
    >>> mechanism = TableMechanism.from_matrix(Domain.range(3), [["3/4", "1/4"], ["1/2", "1/2"], ["1/4", "3/4"]])
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 40 + [1] * 60))
    >>> result
    PartialEstimate(n=100, values=3, method='unbiased', mechanism='table')
    >>> print(result.mean())
    1.4 ± 0.2
    >>> result.identifies([0, 1, 2]), result.identifies([0, 1, 0])
    (True, False)
    """

    method: str
    mechanism: Mechanism = field(kw_only=True)
    counts: Aggregate = field(kw_only=True)

    format: ClassVar[str] = "sfumato-partial-estimate"

    def __post_init__(self) -> None:
        if self.method not in PARTIAL_METHODS:
            raise InvalidInput("Estimate", "method", f"be one of {', '.join(PARTIAL_METHODS)}", self.method)

    @property
    def domain(self) -> Domain:
        """The domain: the values that people may have, in domain order."""
        return self.mechanism.domain

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.counts.n

    @property
    def estimator(self) -> Estimator:
        """The estimator of the mechanism, which computes variances and intervals of sums of frequencies."""
        return self.mechanism.estimator

    def identifies(self, weights: Mapping[Any, float] | Sequence[float] | Floats) -> bool:
        """Return whether the reports determine a weighted sum of frequencies, so that ``linear`` estimates it.

        Parameters
        ----------
        weights
            The weight of each value, as for ``linear``.

        Returns
        -------
        bool
            True if the sum has an unbiased estimate.
        """
        return self.estimator.identifies(self._weights(weights))

    @property
    def frequencies(self) -> Floats:  # type: ignore[override]  # the base class declares an attribute
        """Not determined by the reports; raises :class:`NotIdentifiable`."""
        raise _without_frequencies(self.mechanism)

    @property
    def unbiased(self) -> Floats:  # type: ignore[override]
        """Not determined by the reports; raises :class:`NotIdentifiable`."""
        raise _without_frequencies(self.mechanism)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reason why the reports may be of another mechanism, as one sentence; empty if there is none.

        The other warnings of estimates are about frequencies.
        """
        return self._implausible()

    def _implausible(self) -> tuple[str, ...]:
        return implausible(self.mechanism, self.counts)

    @property
    def fit(self) -> None:  # type: ignore[override]
        """None, because no distribution is fitted (see ``nearest``)."""

    @functools.cached_property
    def nearest(self) -> Floats:  # type: ignore[override]
        """A distribution of values whose law of reports is near the observed one, shape (k,).

        Other distributions agree as well. Variances of the sums that the reports determine are the same at all of them.
        """
        return self.estimator.reported_distribution(self.counts.counts / self.n, self.n)

    def _sum(self, vector: Floats) -> tuple[float, float]:
        value = float(self.estimator.output_scores(vector) @ self.counts.counts) / self.n
        return value, value

    def _linear_error(self, vector: Floats) -> tuple[float, float]:
        # One report moves the sum by at most the range of its scores. If all reports agree, the error is computed as if
        # one had been different, as in the base class.
        estimator, gap = self.estimator, float(np.ptp(vector))
        width = float(np.ptp(estimator.output_scores(vector)))
        fraction = min(1 / max(self.n, 2), gap / max(width, gap))
        variance = estimator.variance(vector, self.nearest)
        if variance < 1e-12 * width**2:
            variance = fraction * (1 - fraction) * width**2
        return (variance / self.n) ** 0.5, width / self.n

    def _frequency_error(self, x: int) -> tuple[float, float]:
        return self._linear_error(np.eye(1, len(self), x)[0])

    def _sum_covariance(self, rows: Floats) -> Floats:
        scores = np.array([self.estimator.output_scores(row) for row in rows])
        law, means = self.estimator.expected_counts(self.nearest), rows @ self.nearest
        return np.asarray((scores * law) @ scores.T - np.outer(means, means)) / self.n

    # -- tables and documents ----------------------------------------------------------------------------------

    @functools.cached_property
    def _answers(self) -> dict[str, LinearEstimate]:
        """The mean and the frequencies that the reports determine, by name."""
        numbers, answers = numeric_labels(self.domain), {}
        if numbers is not None and self.domain.missing is None and self.estimator.identifies(numbers):
            answers["mean"] = self.mean()
        if len(self) <= _MOST_CHECKED:
            units = enumerate(np.eye(len(self)))
            answers |= {
                f"frequency of {self.domain.label(x)}": self.linear(w) for x, w in units if self.estimator.identifies(w)
            }
        return answers

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        answers = self._answers.values()
        tests = max(len(answers), 1) if simultaneous else 1
        check_confidence(confidence, tests)
        limits = [answer.interval(1 - (1 - confidence) / tests) for answer in answers]
        return {
            "answer": list(self._answers),
            "value": [answer.value for answer in answers],
            "standard_error": [answer.standard_error for answer in answers],
            "low": [low for low, _ in limits],
            "high": [high for _, high in limits],
        }

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        return self._columns()

    def _left_out(self) -> int:
        return 0

    def _title(self) -> str:
        return f"{quantity(self.n, 'report')}, method {self.method}, {percent(0.95)} intervals"

    def _notes(self) -> Sequence[str]:
        return (
            "The reports do not distinguish all values. They determine the sums of frequencies for which "
            "identifies(weights) is True; linear(weights) estimates them.",
            *(f"WARNING: {warning}" for warning in self.warnings),
        )

    def __repr__(self) -> str:
        return f"PartialEstimate(n={self.n}, values={len(self)}, method={self.method!r}, {self._source()})"

    def _marginal(self, axes: Sequence[int]) -> MarginalValues:
        return marginal_of_counts(self.estimator, self.counts.counts / self.n, self.n, self.domain.shape, axes)

    def _source(self) -> str:
        return f"mechanism={self.mechanism.name!r}"

    def _further(self) -> dict[str, Any]:
        return {"mechanism": self.mechanism.spec, "n": self.n, "counts": self.counts.counts.tolist()}

    @classmethod
    def _read(cls, document: Mapping[str, Any], mechanism: Mechanism | None) -> PartialEstimate:
        document = check_document(_SUBJECT, document, ("method", "n", "counts"), ("mechanism",))
        mechanism, counts = _read_counts(document, mechanism)
        if mechanism.estimator.is_complete:
            must = "have reports that do not distinguish all values"
            raise InvalidInput(_SUBJECT, "the mechanism", must, mechanism)
        return cls(read_string(_SUBJECT, "method", document["method"]), mechanism=mechanism, counts=counts)


def _without_frequencies(mechanism: Mechanism) -> NotIdentifiable:
    """Return the error for frequencies that reports do not determine."""
    must = "distinguish all values in its reports, so that frequencies can be estimated"
    hint = "Ask for a sum that the reports determine: mean(), range(low, high), linear(weights) or answers(question)."
    return NotIdentifiable(must, mechanism, hint=hint)


def _read_counts(document: Mapping[str, Any], mechanism: Mechanism | None) -> tuple[Mechanism, Aggregate]:
    """Return the mechanism and the counts of a document; raise InvalidInput if there are no reports."""
    mechanism = read_mechanism(document.get("mechanism"), mechanism)
    counts = Aggregate(mechanism.hash, document["n"], document["counts"])
    counts.check(mechanism)
    if counts.n == 0:
        raise InvalidInput(_SUBJECT, "n", "be at least 1, because an estimate needs a report", 0)
    return mechanism, counts


def read_mechanism(spec: Any, mechanism: Mechanism | None) -> Mechanism:
    """Return the mechanism of a document: the caller's, if it has the same spec, or one built from the spec."""
    if mechanism is None:
        return mechanism_from_spec(spec)
    checked_type(_SUBJECT, "the mechanism", mechanism, Mechanism)
    if spec is not None and mechanism.spec != spec:
        hint = "Leave the mechanism out to build it from the document."
        raise InvalidInput(_SUBJECT, "the mechanism", "have the spec of the document", mechanism, hint=hint)
    return mechanism
