"""Sources of linear estimates: a frequency, a share or a mean of one estimate, each with its law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, number_document, read_number, read_only
from sfumato.errors import InvalidInput
from sfumato.estimation.documents import is_close, numbers, read_estimate, read_numbers_of
from sfumato.estimation.linear import LawSource, LinearEstimate
from sfumato.mechanisms import Cohort, FormLaw, ScoreLaw, tilted, with_some_mass

if TYPE_CHECKING:
    from sfumato.estimation.estimates import Estimate

__all__ = ["FrequencyEstimate", "FrequencySource", "MeanSource", "ShareSource", "frequency_of"]

#: Maximum number of bins of different weights for the law of a mean.
_MOST_BINS = 64

_SUBJECT = "Estimate.from_dict"


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
        estimate = read_estimate(document["estimate"])
        return cls(estimate, _read_indices([document["index"]], len(estimate))[0])

    @property
    def weights(self) -> Floats:
        """The weights of the frequencies: 1 for the value."""
        return np.asarray(np.eye(1, len(self.estimate), self.index)[0])

    def _law(self) -> FormLaw:
        estimate, x = self.estimate, self.index
        if not estimate.is_complete:
            return ShareSource(estimate, np.array([x]))._law()
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
        estimate = read_estimate(document["estimate"])
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
        p = with_some_mass(estimate._distribution_for_sums)
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
        value, inside = estimate._sum(weights)
        inside = min(max(inside, 0.0), 1.0)
        rows = _two_score_rows(cohorts, range(len(masks)), mass)
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
        estimate = read_estimate(document["estimate"])
        weights = read_numbers_of(_SUBJECT, "weights", document["weights"], len(estimate))
        if len(np.unique(weights)) < 2:
            raise InvalidInput(_SUBJECT, "weights", "contain two different numbers", document["weights"])
        return cls(estimate, weights)

    def _law(self) -> FormLaw:
        estimate, weights = self.estimate, self.weights
        least, gap = float(weights.min()), float(np.ptp(weights))
        unit = (weights - least) / gap
        # Add one person with a uniform value, because a value absent from a small sample may still move a mean far.
        p = (estimate.n * estimate._distribution_for_sums + 1 / len(weights)) / (estimate.n + 1)
        place = _places(unit)
        masses = np.asarray(np.bincount(place, weights=p), np.float64)
        parts = np.zeros((len(masses), len(p)))
        parts[place, np.arange(len(p))] = p / masses[place]
        knots, fractions = tilted(masses, parts @ unit)
        value, inside = ((each - least) / gap for each in estimate._sum(weights))
        inside = min(max(inside, 0.0), 1.0)
        cohorts = estimate.estimator.cohorts(weights / gap, parts, estimate.n)
        # Two scores, as of a mechanism with two outputs, are binomial, whatever the distribution of the values is.
        rows = _two_score_rows(cohorts, (-1, 0), 1.0, least / gap)
        return (
            FormLaw(value, inside, knots, fractions, cohorts) if rows is None else FormLaw.of_rows(rows, value, inside)
        )


def _places(unit: Floats) -> npt.NDArray[np.int64]:
    """Return the bin of each weight in [0, 1]: separate bins for 0 and 1, and a limited number between them."""
    different, place = np.unique(unit, return_inverse=True)
    if len(different) > _MOST_BINS:
        inner = 1 + np.minimum((unit * (_MOST_BINS - 2)).astype(np.int64), _MOST_BINS - 3)
        inner[unit == 0], inner[unit == 1] = 0, _MOST_BINS - 1
        place = np.unique(inner, return_inverse=True)[1]
    return np.asarray(place.ravel(), np.int64)


def _two_score_rows(
    cohorts: Sequence[Cohort], ends: Sequence[int], mass: float, offset: float = 0.0
) -> list[ScoreLaw] | None:
    """Return the binomial law of a number in [0, 1] whose reports have only two scores; None for other numbers.

    ``ends`` are the parts of the people at number 1, at number 0, and outside the group. The mean score is the number
    plus ``offset``.
    """
    cohort, *others = cohorts
    listed = None if others or cohort.scores is None else cohort.scores.score_values(cohort.parts)
    if listed is None or len(listed[0]) != 2:
        return None
    score_values, probabilities = listed[0] - offset, listed[1][list(ends)]
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


# -- the frequency of one value ---------------------------------------------------------------------------------


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
    rounding
        The error that bins add (see :class:`LinearEstimate`); 0 here.
    clipped
        The bounds to which numbers were clipped; None for other numbers.
    warnings
        Sentences about ends of the range to which many numbers were clipped.
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
    (0.161, 0.428)
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
            expected = source.estimate._sum(source.weights)[::-1]
        for name, number, must in zip(("value", "unbiased"), (self.value, self.unbiased), expected, strict=True):
            if not is_close(np.array([number]), np.array([must])):
                raise InvalidInput(_SUBJECT, name, f"be {must}, as in the estimate that contains it", number)


def frequency_of(estimate: Estimate, x: int) -> FrequencyEstimate:
    """Return the frequency of the value with index x."""
    if len(estimate.domain) == 1:
        return FrequencyEstimate(1.0, 0.0, unbiased=1.0)
    source = FrequencySource(estimate, x)
    unbiased, value = estimate._sum(source.weights)
    error, unseen = estimate._frequency_error(x)
    return FrequencyEstimate(value, error, unbiased=unbiased, unseen=unseen, terms=((1.0, source),))
