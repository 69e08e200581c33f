"""Posterior means of frequencies under a prior that is fitted to all frequencies, with known totals kept."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato._core import Floats, Integers, project_to_simplex
from sfumato.estimation.empirical_bayes.mixture import Mixture, Noise, fit_mixture
from sfumato.mechanisms import SamplingDistribution, variance_coefficients

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Posterior", "Prior", "SharedPrior", "Shrinkage", "Totals"]

#: Number of values from which on a group with a known total has its own prior in any case, and from which on it may
#: have one. The second is the number of groups up to which smaller ones may, because each prior takes a millisecond.
_OWN_PRIOR, _LEAST_OWN, _MOST_OWN = 256, 16, 64
#: Gain in log-likelihood that a further prior must bring: the place and the weight of one more atom are two parameters
#: (Akaike 1974).
_PARAMETERS = 2.0
#: Least number of values that share a prior, unless there are no more.
_LEAST_CLASS = 64
#: Ratio of the variances of values that share a prior, from which on larger classes are divided.
_NOISE_RATIO = 1.2
#: Distance of a sum of frequencies from its known total that counts as rounding.
_ROUNDING = 1e-9
#: Maximum number of groups whose sums have exactly computed variances; in more groups, errors count as independent.
_MOST_EXACT = 16


@dataclass(frozen=True, eq=False)
class Totals:
    """The values whose frequencies are uncertain, in groups whose totals are known.

    Parameters
    ----------
    members
        The uncertain values of each group, at least two each.
    totals
        The total frequency of each group's uncertain values.
    known
        The frequencies of all other values, with zeros for the uncertain ones, shape (k,).
    """

    members: Sequence[Integers]
    totals: Floats
    known: Floats

    @classmethod
    def of(cls, estimator: SamplingDistribution, nearest: Floats) -> Totals:
        """Return the groups that every report reveals, without the values that reports reveal.

        ``nearest`` keeps the totals of groups and the frequencies of revealed values (see ``Estimator.nearest``).
        """
        group, uncertain = estimator.known_groups(), ~estimator.revealed()
        if not uncertain.any():  # every frequency is a count
            return cls((), np.empty(0), nearest)
        order = np.argsort(group, kind="stable")
        order = order[uncertain[order]]
        members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
        totals = np.array([nearest[part].sum() for part in members])
        chosen = [number for number, part in enumerate(members) if len(part) > 1 and totals[number] > 0]
        known = nearest.copy()
        for number in chosen:
            known[members[number]] = 0.0
        return cls([members[number] for number in chosen], totals[chosen], known)

    def project(self, point: Floats) -> Floats:
        """Return the nearest frequencies, in l2 distance, that are not negative and have the known totals."""
        frequencies = self.known.copy()
        for part, total in zip(self.members, self.totals.tolist(), strict=True):
            frequencies[part] = project_to_simplex(point[part], total)
        return frequencies


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The model of all uncertain frequencies: observations with the law of their errors, and known totals.

    Parameters
    ----------
    observations
        The unbiased frequencies, moved to the known totals, shape (k,).
    noise
        The variances of independent errors with the same law, given the totals, as functions of the frequencies.
    totals
        The known totals.
    levels
        The variance of each error at frequency 0, without the correction for known totals, shape (k,). The correction
        depends on the frequency of the value, so values of the same group would be separated by their frequencies.
    """

    observations: Floats
    noise: Noise
    totals: Totals
    levels: Floats

    @classmethod
    def of(cls, estimator: SamplingDistribution, unbiased: Floats, nearest: Floats, n: int) -> Shrinkage:
        """Return the model for unbiased frequencies from n reports.

        Given the total of a group, errors that sum to zero have the likelihood of independent errors with variance
        τ² = σ²/(1 - w), where w is the share of a value in the variance of the sum; 1/m for m equal variances. If the
        unbiased frequencies do not sum to the total, the difference D is taken from them in proportion to w, and σ² is
        reduced by w²·Var(D). For independent errors this gives back their variances.
        """
        totals = Totals.of(estimator, nearest)
        constant, slope, square = variance_coefficients(estimator.score_laws(nearest, n))
        observations, factor = unbiased.copy(), np.ones(len(unbiased))
        variances = np.maximum(constant + slope * nearest - square * nearest**2, 0.0)
        for part, total in zip(totals.members, totals.totals.tolist(), strict=True):
            of_sum = float(variances[part].sum())
            shares = variances[part] / of_sum if of_sum > 0 else np.full(len(part), 1 / len(part))
            difference, of_difference = float(unbiased[part].sum()) - total, 0.0
            if abs(difference) > _ROUNDING:
                of_difference = of_sum
                if len(totals.members) <= _MOST_EXACT:
                    indicator = np.zeros(len(unbiased))
                    indicator[part] = 1.0
                    of_difference = max(estimator.variance(indicator, nearest) - total * (1 - total), 0.0) / n
            reduced = 1 - shares * min(of_difference / of_sum, 1.0) if of_sum > 0 else 1.0
            observations[part] -= difference * shares
            factor[part] = reduced / np.maximum(1 - shares, 0.5)
        return cls(observations, Noise(constant * factor, slope * factor, square * factor), totals, constant)

    def classes(self) -> list[list[Integers]]:
        """Return the values that may share a prior, as lists of the groups that may have their own instead.

        The noise of a value may be informative about its frequency, as in a block of many people. Values with different
        noise therefore have different priors, if there are enough of them. So have large groups with known totals.
        """
        large = [part for part in self.totals.members if len(part) >= _OWN_PRIOR]
        small = [part for part in self.totals.members if len(part) < _OWN_PRIOR]
        classes = [[part] for values in large for part in self.by_noise(values, _NOISE_RATIO)]
        if not small:
            return classes
        group = np.full(len(self.observations), -1)
        for number, part in enumerate(small):
            group[part] = number
        for values in self.by_noise(np.concatenate(small), _NOISE_RATIO):
            groups = group[values]
            parts = [values[groups == each] for each in np.unique(groups).tolist()]
            may_differ = len(small) <= _MOST_OWN and min(map(len, parts)) >= _LEAST_OWN
            classes.append(parts if may_differ else [values])
        return classes

    def by_noise(self, values: Integers, ratio: float) -> list[Integers]:
        """Divide values into classes in which variances at frequency 0 differ by a ratio, if they are large enough."""
        order = np.argsort(self.levels[values], kind="stable")
        ordered, classes, start = self.levels[values[order]], [], 0
        while start < len(order):
            stop = int(np.searchsorted(ordered, ordered[start] * ratio, side="right"))
            stop = max(stop, start + _LEAST_CLASS)
            # Values with the same noise stay together.
            stop = int(np.searchsorted(ordered, ordered[min(stop, len(order)) - 1] * (1 + 1e-9), side="right"))
            if len(order) - stop < _LEAST_CLASS:
                stop = len(order)
            classes.append(values[order[start:stop]])
            start = stop
        return classes

    def simplex(self) -> Floats:
        """Return the nearest frequencies without a prior."""
        return self.totals.project(self.observations)

    def drawn(self, generator: Generator, truth: Floats) -> Shrinkage:
        """Draw observations for a true distribution that has the known totals."""
        return replace(self, observations=truth + self._errors(generator, truth))

    def divided(self, generator: Generator, share: float) -> tuple[Shrinkage, Floats]:
        """Divide the observations into two independent parts with the same means.

        With errors ω that have the law of the noise, y + √share·ω and y - ω/√share are uncorrelated, and independent
        for normal noise. Their variances are 1 + share and 1 + 1/share times that of y. The first part is returned as a
        model, the second as numbers.
        """
        errors = self._errors(generator, self.simplex())
        noisier = self.observations + math.sqrt(share) * errors
        first = replace(self, observations=noisier, noise=self.noise.scaled(1 + share))
        return first, self.observations - errors / math.sqrt(share)

    def _errors(self, generator: Generator, truth: Floats) -> Floats:
        """Draw errors that sum to zero in every group with a known total."""
        deviation = np.sqrt(self.noise.variance(truth))
        errors = deviation * generator.standard_normal(len(truth))
        for part in self.totals.members:
            shares = deviation[part] ** 2
            errors[part] -= float(errors[part].sum()) * shares / shares.sum()
        return np.asarray(errors)


class Prior(ABC):
    """A way to share priors between values."""

    @abstractmethod
    def fit(self, model: Shrinkage) -> Posterior:
        """Fit the priors, and return the posteriors of all uncertain frequencies."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posteriors of all uncertain frequencies.

    Parameters
    ----------
    prior
        The way in which values share priors.
    model
        The observations.
    classes
        The values of each class that shares a prior.
    mixtures
        The fitted prior of each class.
    centres
        The number to which the parameters of the priors are relative, for each value.
    """

    prior: Prior
    model: Shrinkage
    classes: Sequence[Integers]
    mixtures: Sequence[Mixture]
    centres: Floats

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of all observations."""
        return sum(mixture.log_likelihood for mixture in self.mixtures)

    def frequencies(self) -> Floats:
        """Return the posterior means, moved to the known totals."""
        mean = np.maximum(self.model.observations, 0.0)
        for part, mixture in zip(self.classes, self.mixtures, strict=True):
            mean[part] = np.maximum(self.centres[part] + mixture.mean, 0.0)
        return self.model.totals.project(mean)

    def draw(self, generator: Generator) -> Floats:
        """Draw all frequencies from their posterior, scaled to the known totals."""
        truth, totals = np.maximum(self.model.observations, 0.0), self.model.totals
        for part, mixture in zip(self.classes, self.mixtures, strict=True):
            truth[part] = np.maximum(self.centres[part] + mixture.draw(generator), 0.0)
        drawn = totals.known.copy()
        for part, total in zip(totals.members, totals.totals.tolist(), strict=True):
            mass = float(truth[part].sum())
            drawn[part] = truth[part] * (total / mass) if mass > 0 else total / len(part)
        return drawn


class SharedPrior(Prior):
    """One prior for all values of a large group, or of similar noise; smaller groups may have their own.

    Groups of similar noise have their own priors if these raise the log-likelihood by two for each further prior.
    """

    def fit(self, model: Shrinkage) -> Posterior:
        classes: list[Integers] = []
        mixtures: list[Mixture] = []
        for groups in model.classes():
            values = [np.concatenate(groups)]
            priors = self._fit(model, values)
            if len(groups) > 1:
                separate = self._fit(model, groups)
                gain = sum(prior.log_likelihood for prior in separate) - priors[0].log_likelihood
                if gain > _PARAMETERS * (len(groups) - 1):
                    values, priors = groups, separate
            classes += values
            mixtures += priors
        return Posterior(self, model, classes, mixtures, np.zeros(len(model.observations)))

    @staticmethod
    def _fit(model: Shrinkage, classes: Sequence[Integers]) -> list[Mixture]:
        """Fit one prior to each class."""
        return [fit_mixture(model.observations[part], model.noise.rows(part)) for part in classes]
