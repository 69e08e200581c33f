"""Priors that neighbouring values share, for maps and ordered domains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.estimation.empirical_bayes.mixture import Noise, fit_mixture
from sfumato.estimation.empirical_bayes.shrinkage import Posterior, Prior, Shrinkage

__all__ = ["ClassPrior", "ShiftedPrior", "fit_smooth", "lattice_of"]

#: Widths of the neighbourhoods that are compared: standard deviations of the kernel, in cells.
_WIDTHS = (0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
#: Distance at which the kernel ends, in standard deviations.
_TRUNCATE = 3.0
#: Ratio of the variances of values that share a prior, from which on larger classes are divided.
_NOISE_RATIO = 4.0
#: Least number of values of a class, and the ratio of the sizes of consecutive classes.
_LEAST_CLASS, _RATIO = 64, 2


def lattice_of(domain: Domain) -> tuple[int, ...]:
    """Return the shape of the lattice on which values have neighbours: cells of a grid, or ascending numbers.

    Labels that are not numbers have no neighbours, because a list of names may be in any order. The value for missing
    answers is the last one, and not on the lattice.
    """
    if domain.kind == "grid":
        return domain.shape
    if domain.is_ordered and domain.is_numeric:
        return (len(domain) - (domain.missing is not None),)
    must = "be a grid or ascending numbers with smoothing, because only then values have neighbours"
    hint = "Leave smooth out, or define the values with Domain.range or Domain.numbers."
    raise InvalidInput("estimate", "the domain", must, domain, hint=hint)


def _neighbours(values: Floats, shape: tuple[int, ...], width: float) -> Floats:
    """Return the mean around each value, with normal weights, without the value itself.

    Its error is independent of that of the value itself, to first order, so the mean may decide about the prior.
    """
    from scipy.ndimage import gaussian_filter

    size = math.prod(shape)
    lattice, ones = values[:size].reshape(shape), np.ones(shape)
    offsets = np.arange(-round(_TRUNCATE * width), round(_TRUNCATE * width) + 1)
    kernel = np.exp(-(offsets**2) / (2 * width**2))
    self_weight = float(1 / kernel.sum()) ** len(shape)
    sums, weights = (
        gaussian_filter(part, width, mode="constant", radius=round(_TRUNCATE * width)) - self_weight * part
        for part in (lattice, ones)
    )
    return np.asarray(np.divide(sums, weights, out=np.zeros(shape), where=weights > 1e-12).ravel())


@dataclass(frozen=True)
class ClassPrior(Prior):
    """Values with similar neighbours share a prior.

    Values are sorted by the mean of their neighbours. The lower half shares a prior, then half of the others, and so
    on, because few places of a map have most people.

    Parameters
    ----------
    shape
        Shape of the lattice.
    width
        Standard deviation of the kernel, in cells.
    """

    shape: tuple[int, ...]
    width: float

    def fit(self, model: Shrinkage) -> Posterior:
        around = _neighbours(model.observations, self.shape, self.width)
        order = np.argsort(around, kind="stable")
        order = order[_is_uncertain(model)[order]]
        cuts, left = [], len(order)
        while left >= _RATIO * _LEAST_CLASS:
            left //= _RATIO
            cuts.append(len(order) - left)
        similar = [part for part in np.split(order, cuts) if len(part)]
        classes = [part for values in similar for part in model.by_noise(values, _NOISE_RATIO)]
        mixtures = [fit_mixture(model.observations[part], model.noise.rows(part)) for part in classes]
        return Posterior(self, model, classes, mixtures, np.zeros(len(model.observations)))


@dataclass(frozen=True)
class ShiftedPrior(Prior):
    """All values share a prior for their distance from the mean of their neighbours, as for a smooth distribution.

    Parameters
    ----------
    shape
        Shape of the lattice.
    width
        Standard deviation of the kernel, in cells.
    """

    shape: tuple[int, ...]
    width: float

    def fit(self, model: Shrinkage) -> Posterior:
        centres = np.zeros(len(model.observations))
        around = _neighbours(model.observations, self.shape, self.width)
        centres[: len(around)] = np.maximum(around, 0.0)
        chosen = np.arange(len(around))[_is_uncertain(model)[: len(around)]]
        classes = model.by_noise(chosen, _NOISE_RATIO)
        mixtures = []
        for part in classes:
            zeros = np.zeros(len(part))
            noise = Noise(model.noise.rows(part).variance(centres[part]), zeros, zeros)
            mixtures.append(fit_mixture(model.observations[part] - centres[part], noise, floor=-math.inf))
        return Posterior(self, model, classes, mixtures, centres)


def fit_smooth(model: Shrinkage, shape: tuple[int, ...]) -> Posterior:
    """Fit both kinds of priors for several neighbourhoods, and return that of the greatest likelihood.

    Neighbours are fixed when the likelihood of a value is computed, so the likelihoods can be compared.
    """
    widths = [width for width in _WIDTHS if width <= max(_WIDTHS[1], max(shape) / 4)]
    priors = [kind(shape, width) for kind in (ClassPrior, ShiftedPrior) for width in widths]
    return max((prior.fit(model) for prior in priors), key=lambda posterior: posterior.log_likelihood)


def _is_uncertain(model: Shrinkage) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which values are uncertain."""
    uncertain = np.zeros(len(model.observations), np.bool_)
    for part in model.totals.members:
        uncertain[part] = True
    return uncertain
