"""Combine the estimates of several cohorts of one population, which used different mechanisms."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, project_protected
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, Undecided
from sfumato.estimation.complete import RESULT_KEYS, CompleteEstimate
from sfumato.estimation.documents import check_document, is_close
from sfumato.estimation.estimates import Estimate
from sfumato.mechanisms import Cohort, Mechanism, SamplingDistribution, ScoreLaw, relative_spread

__all__ = ["CombinedEstimate", "combine"]


#: Maximum number of values for full covariances; beyond it, each value is weighted by its own variance.
_LARGEST_FULL = 1000


class CombinedDistribution(SamplingDistribution):
    """The law of Σ_i A_i·p̂_i over independent cohorts, whose covariances add."""

    def __init__(self, cohorts: Sequence[Estimate], weights: Sequence[Floats]) -> None:
        self.size = len(cohorts[0].domain)
        self._parts = [(cohort.estimator, cohort.n) for cohort in cohorts]
        self._n = sum(cohort.n for cohort in cohorts)
        self._weights = weights
        self._diagonals = [np.diag(weight) if weight.ndim == 2 else weight for weight in weights]
        self._least = [cohort.least_variances for cohort in cohorts]

    def variances(self, p: Floats) -> Floats:
        if self._weights[0].ndim == 2:
            return np.diag(self.covariance(p))
        parts = zip(self._weights, self._parts, strict=True)
        return self._n * sum((w**2 * estimator.variances(p) / n for w, (estimator, n) in parts), np.zeros(self.size))

    def covariance(self, p: Floats) -> Floats:
        total = np.zeros((self.size, self.size))
        for weight, (estimator, n) in zip(self._weights, self._parts, strict=True):
            matrix = weight if weight.ndim == 2 else np.diag(weight)
            total += matrix @ estimator.covariance(p) @ matrix.T / n
        return self._n * total

    def variance(self, weights: Floats, p: Floats) -> float:
        parts = zip(self._weights, self._parts, strict=True)
        vectors = ((w.T @ weights if w.ndim == 2 else w * weights, estimator, n) for w, (estimator, n) in parts)
        return self._n * sum(estimator.variance(vector, p) / n for vector, estimator, n in vectors)

    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:  # noqa: ARG002
        """Return the laws of the cohorts by a value's own weights, with the variance of the combined estimate."""
        whole = np.sum(self._diagonals, axis=0)
        weights = [diagonal / whole for diagonal in self._diagonals]
        apart = sum(
            (w**2 * estimator.variances(p) / size for w, (estimator, size) in zip(weights, self._parts, strict=True)),
            np.zeros(self.size),
        )
        exact = self.variances(p) / self._n
        spread = relative_spread(exact, apart)
        return [
            replace(law, weight=law.weight * w, spread=law.spread * spread)
            for w, (estimator, size) in zip(weights, self._parts, strict=True)
            for law in estimator.score_laws(p, size)
        ]

    def cohorts(self, weights: Floats, parts: Floats, n: int) -> Sequence[Cohort]:  # noqa: ARG002
        """Return the laws of all cohorts, each with the weights of its frequencies in the sum."""
        vectors = (w.T @ weights if w.ndim == 2 else w * weights for w in self._weights)
        return [
            cohort
            for vector, (estimator, size) in zip(vectors, self._parts, strict=True)
            for cohort in estimator.cohorts(vector, parts, size)
        ]

    def score_bounds(self) -> tuple[Floats, Floats]:
        raise Undecided(
            "the influence of dishonest reports on combined cohorts is not bounded, because they also change the "
            "weights of the cohorts. Call influence() on the estimate of each cohort in parts."
        )

    def honest_score_bounds(self) -> tuple[Floats, Floats]:
        # Use each value's own weights, scaled to sum to one. Reports of other values affect it far less.
        whole = np.sum(self._diagonals, axis=0)
        ends = [
            np.array(estimator.honest_score_bounds()) * weight / whole * (self._n / n)
            for weight, (estimator, n) in zip(self._diagonals, self._parts, strict=True)
        ]
        return np.min([least for least, _ in ends], axis=0), np.max([greatest for _, greatest in ends], axis=0)

    def least_variances(self) -> Floats:
        parts = zip(self._diagonals, self._least, self._parts, strict=True)
        return self._n * sum((diagonal**2 * least / n for diagonal, least, (_, n) in parts), np.zeros(self.size))

    def revealed(self) -> npt.NDArray[np.bool_]:
        return _revealed_to_all([estimator for estimator, _ in self._parts])


@dataclass(frozen=True, eq=False, repr=False)
class CombinedEstimate(CompleteEstimate):
    """The estimated frequencies from several cohorts of one population, as :func:`combine` returns them.

    The weights of the cohorts are not stored. They are computed again from ``parts`` when a standard error or an
    interval is requested.

    Parameters
    ----------
    method
        Always ``"combined"``.
    frequencies
        The combined frequencies as fractions of people, shape (k,) for k values, in domain order.
    unbiased
        The same frequencies, because the combination is unbiased.
    nearest
        A distribution near the unbiased frequencies, shape (k,), at which variances are computed.
    fit
        Always None.
    parts
        The estimates of the cohorts, in the order in which they were passed to :func:`combine`.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, combine, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> domain, reports = Domain(["none", "flu", "hiv"]), [0] * 60 + [1] * 30 + [2] * 10
    >>> cohorts = [RandomizedResponse(domain, "ln 8"), RandomizedResponse(domain, "ln 2")]
    >>> result = combine(estimate(mechanism, aggregate(mechanism, reports)) for mechanism in cohorts)
    >>> result
    Estimate(n=200, values=3, method='combined', cohorts=2)
    >>> len(result.parts)
    2
    """

    parts: tuple[Estimate, ...] = field(kw_only=True)

    format: ClassVar[str] = "sfumato-combined-estimate"

    @property
    def domain(self) -> Domain:
        """The domain: the values whose frequencies are estimated, in domain order."""
        return self.parts[0].domain

    @property
    def n(self) -> int:
        """The number of reports of all cohorts together."""
        return sum(part.n for part in self.parts)

    @functools.cached_property
    def estimator(self) -> SamplingDistribution:
        """The estimator that computes variances and intervals of the combined frequencies.

        It is computed from ``parts`` on first use. It is not stored with the estimate: ``to_dict`` and comparisons
        leave it out.
        """
        return CombinedDistribution(self.parts, _weights(self.parts))

    def _implausible(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(warning for part in self.parts for warning in part._implausible()))

    def _source(self) -> str:
        return f"cohorts={len(self.parts)}"

    def _further(self) -> dict[str, Any]:
        return {"parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def _read(cls, document: Mapping[str, Any], mechanism: Mechanism | None) -> CombinedEstimate:
        document = check_document("Estimate.from_dict", document, (*RESULT_KEYS, "parts"))
        if mechanism is not None:
            must = "be left out for a combined estimate, whose cohorts name their mechanisms"
            raise InvalidInput("Estimate.from_dict", "the mechanism", must, mechanism)
        if not isinstance(document["parts"], list):
            raise InvalidInput("Estimate.from_dict", "parts", "be a list", document["parts"])
        parts = _checked([Estimate.from_dict(part) for part in document["parts"]])
        results = cls._read_results(document, len(parts[0].domain))
        if results["method"] != "combined":
            raise InvalidInput("Estimate.from_dict", "method", "be 'combined'", results["method"])
        if results["fit"] is not None:
            raise InvalidInput("Estimate.from_dict", "fit", "be null for a combined estimate", document["fit"])
        if not is_close(results["frequencies"], results["unbiased"]):
            must = "equal the unbiased frequencies"
            raise InvalidInput("Estimate.from_dict", "frequencies", must, document["frequencies"])
        return cls(**results, parts=parts)


def combine(estimates: Iterable[Estimate]) -> CombinedEstimate:
    """Combine the estimates of cohorts from one population, each with its own mechanism or epsilon.

    Parameters
    ----------
    estimates
        One estimate per cohort, over the same domain and from different people.

    Returns
    -------
    CombinedEstimate
        The frequencies with the least variance among unbiased linear combinations (generalised least squares), with
        their standard errors. ``CombinedEstimate.parts`` holds the estimates of the cohorts.

    Raises
    ------
    InvalidInput
        If the list is empty, contains other objects than estimates over one domain, or an estimate has no random error
        by which to weight it. Estimates from reports that do not distinguish all values (:class:`PartialEstimate`)
        cannot be combined.

    Notes
    -----
    For up to 1,000 values, the full covariance matrices of the cohorts determine the weights, with the constraint that
    frequencies sum to one. For more values, the frequency of each value is weighted by its inverse variances. The
    covariances are computed at a first pooled estimate of the distribution. Half a person is added per value, because a
    value that no report supports would have no variance. The weights of all cohorts sum to one (matrices: to the
    identity), so the combination is unbiased whatever the pooled estimate is. A poor pooled estimate costs only
    precision.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> domain, reports = Domain(["none", "flu", "hiv"]), [0] * 60 + [1] * 30 + [2] * 10
    >>> cohorts = [RandomizedResponse(domain, "ln 8"), RandomizedResponse(domain, "ln 2")]
    >>> result = combine(estimate(mechanism, aggregate(mechanism, reports)) for mechanism in cohorts)
    >>> result.n, result.frequencies.round(3).tolist()
    (200, [0.779, 0.258, -0.037])
    """
    if isinstance(estimates, Estimate) or not isinstance(estimates, Iterable):
        raise InvalidInput("combine", "estimates", "be a list of estimates", estimates)
    parts = _checked(list(estimates))
    weights = _weights(parts)
    size = len(parts[0].domain)
    if weights[0].ndim == 2:
        uniform = np.full(size, 1 / size)
        combined = sum((w @ (part.unbiased - uniform) for w, part in zip(weights, parts, strict=True)), uniform)
    else:
        combined = sum((w * part.unbiased for w, part in zip(weights, parts, strict=True)), np.zeros(size))
    nearest = project_protected(combined, _revealed_to_all([part.estimator for part in parts]))
    return CombinedEstimate("combined", combined, combined, nearest, parts=parts)


def _checked(parts: list[Estimate]) -> tuple[Estimate, ...]:
    """Return the estimates of cohorts as a tuple; raise InvalidInput unless they can be combined."""
    if not parts:
        raise InvalidInput("combine", "estimates", "contain at least one estimate", [])
    for number, part in enumerate(parts):
        if not isinstance(part, Estimate):
            raise InvalidInput(
                "combine",
                f"estimate {number}",
                "be an Estimate",
                part,
                hint="Build it with estimate(mechanism, aggregate).",
            )
    for number, part in enumerate(parts):
        if not part.is_complete:
            must = "be from reports that distinguish all values, because frequencies are combined"
            hint = "Average the sums of the cohorts instead, such as mean(), weighted by their inverse variances."
            raise InvalidInput("combine", f"estimate {number}", must, part, hint=hint)
        if part.domain != parts[0].domain:
            must = "have the domain of the first estimate"
            raise InvalidInput("combine", f"estimate {number}", must, part.domain)
        if not part.estimator.variances(part.nearest).any():
            hint = "An estimate without error needs no other cohort; use it alone."
            raise InvalidInput("combine", f"estimate {number}", "have an error above 0", 0, hint=hint)
    return tuple(parts)


def _weights(parts: Sequence[Estimate]) -> list[Floats]:
    """Return the weights of the cohorts: matrices for up to 1,000 values, one weight per value beyond."""
    point = _pooled(parts)
    if len(point) <= _LARGEST_FULL:
        return _full_weights([part.estimator.covariance(point) / part.n for part in parts])
    precisions = [part.n / part.estimator.variances(point) for part in parts]
    whole = np.sum(precisions, axis=0)
    return [precision / whole for precision in precisions]


def _pooled(cohorts: Sequence[Estimate]) -> Floats:
    """Return a first estimate, with cohorts weighted by their total precision and half a person added per value."""
    size, n = len(cohorts[0].domain), sum(cohort.n for cohort in cohorts)
    precision = [c.n / float(c.estimator.variances(_with_halves(c.nearest, c.n)).sum()) for c in cohorts]
    pooled = sum((w * c.unbiased for w, c in zip(precision, cohorts, strict=True)), np.zeros(size)) / sum(precision)
    return _with_halves(project_protected(pooled, _revealed_to_all([c.estimator for c in cohorts])), n)


def _with_halves(p: Floats, n: int) -> Floats:
    """Return the distribution with half a person added per value."""
    return np.asarray((n * p + 0.5) / (n + len(p) / 2))


def _revealed_to_all(estimators: Sequence[SamplingDistribution]) -> npt.NDArray[np.bool_]:
    """Return whether the reports of every cohort reveal each value."""
    return np.asarray(np.all([estimator.revealed() for estimator in estimators], axis=0))


def _full_weights(covariances: Sequence[Floats]) -> list[Floats]:
    """Return A_i of p̂ = u + Σ A_i(p̂_i - u), u uniform: least squares over the differences p - u."""
    size = len(covariances[0])
    # An orthonormal basis of the vectors that sum to zero.
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    precisions = []
    for covariance in covariances:
        # The frequencies of some mechanisms always sum to one, and their covariance is singular in that direction only.
        # A term added in that direction does not affect vectors that sum to zero.
        spread, total = float(np.trace(covariance)), float(covariance.sum())
        lift = spread / size**2 if total < 1e-9 * spread else 0.0
        precisions.append(np.linalg.inv(covariance + lift))
    information = basis.T @ np.sum(precisions, axis=0) @ basis
    return [basis @ np.linalg.solve(information, basis.T @ precision) for precision in precisions]
