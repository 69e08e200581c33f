"""The choice between the methods "simplex" and "bayes".

The prior of "bayes" is fitted to the same frequencies that it shrinks. If there are few values, or if they are many
standard errors apart, the fit follows the noise. Simulations from the fit then favour "bayes" wrongly. The choice
therefore divides the observations y into two independent parts, y + √s·ω and y - ω/√s, with errors ω that have the law
of the noise. Only the first part is used to fit. Method "bayes" is taken if two conditions hold, otherwise "simplex":

- **Squared error.** It can be compared without bias, whatever the truth is. If both methods estimate from the first
  part, and y'' is the second part, Σ (b - a)·(a + b - 2·y'')/σ estimates the difference of the squared errors of the
  estimates b and a (Oliveira, Lei and Tibshirani 2024). Errors are weighted by 1/σ, as total variation weights them.
  The estimated difference must favour "bayes" by at least its standard error.
- **Total variation error.** It has no unbiased estimate. True frequencies are drawn from their posterior given the
  first part, and collections from these. The mean error of "bayes" must be below that of "simplex" by a margin: the
  share 1.5/√k for k values, because relative errors of sums over k values are of the order 1/√k, and at least 8%.
  Squared errors do not suffice: if few values hold all people and none stands out, "bayes" has the smaller squared and
  the larger total variation error. That holds for any number of values, however clear the advantage in squared error.

The two thresholds were chosen on truths that the report of the benchmarks lists, so that few of them have a larger
error than with "simplex". Lower ones would take "bayes" more often, with smaller errors on average.

None of these truths has more than 2,000 values. Beyond that number the least margin falls with 1/√k, like the errors of
sums. Three to seven collections are simulated, until the choice is clear. The margin is then also at least two standard
errors of their mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._core import Floats, check_keys, read_integer, read_number
from sfumato.errors import InvalidInput
from sfumato.estimation.empirical_bayes.shrinkage import Posterior
from sfumato.randomness import insecure_generator

__all__ = ["Choice", "choose"]

#: Seed of the simulations; fixed, so the same counts always give the same estimate.
_SEED = 20
#: Number of values that all repetitions simulate, and the least and greatest number of repetitions.
_VALUES, _LEAST, _MOST = 16_000, 6, 16
#: Share of the variance that is added to the first part of the observations.
_SHARE = 0.5
#: Least advantage in squared error, in standard errors.
_EVIDENCE = 1.0
#: Least advantage in total variation error, as a share: this number divided by √k for k values, and at least the other.
_MARGIN, _LEAST_MARGIN = 1.5, 0.08
#: Number of values up to which the least margin is constant.
_CONSTANT = 2000
#: Least advantage for more values, in standard errors of the mean of the simulations.
_SIMULATION_ERRORS = 2.0
#: Least number of simulations, and number of standard errors of their mean, from which on the choice is clear.
_FEWEST_CLEAR, _CLEAR = 3, 3.0

_KEYS = ("method", "simplex_tv", "bayes_tv", "repetitions")
_NEW_KEYS = ("evidence", "margin")


@dataclass(frozen=True)
class Choice:
    """The method that ``estimate(..., method="best")`` chose, and why.

    Parameters
    ----------
    method
        The chosen method: ``"simplex"`` or ``"bayes"``.
    simplex_tv
        Expected total variation error of method ``"simplex"``, by the bootstrap.
    bayes_tv
        Expected total variation error of method ``"bayes"``, by the bootstrap.
    repetitions
        Number of simulated collections.
    evidence
        Estimated advantage of ``"bayes"`` in squared error, in standard errors; negative if ``"simplex"`` is better.
        Method ``"bayes"`` is chosen only if it is above 1. None in documents that were written before it existed.
    margin
        Share by which ``bayes_tv`` must be below ``simplex_tv``: 1.5/√k for k values, and at least 0.08. For k above
        2,000 at least 0.08·√(2000/k), and at least two standard errors of the simulated share.

    Examples
    --------
    >>> print(Choice("bayes", 0.31, 0.2, 16, evidence=5.1, margin=0.05))
    bayes, because its expected total variation error is 0.2; that of simplex is 0.31 (16 simulated collections)
    >>> uncertain = Choice("simplex", 0.31, 0.3, 16, evidence=0.4, margin=0.2)
    >>> for sentence in str(uncertain).split(". "):
    ...     print(sentence)
    simplex, because an advantage of bayes is uncertain: its expected total variation error is 0.3, that of simplex is \
0.31, and its squared error is smaller by 0.4 standard errors
    Required are a total variation error that is 20% smaller, and 1 standard error (16 simulated collections)
    """

    method: str
    simplex_tv: float
    bayes_tv: float
    repetitions: int
    evidence: float | None = None
    margin: float = 0.0

    def __str__(self) -> str:
        if not self.repetitions:
            return "simplex, because the reports reveal every frequency"
        if self.method == "simplex" and self.bayes_tv <= self.simplex_tv and self.evidence is not None:
            size = "smaller" if self.evidence >= 0 else "larger"
            return (
                f"simplex, because an advantage of bayes is uncertain: its expected total variation error is "
                f"{self.bayes_tv:.3g}, that of simplex is {self.simplex_tv:.3g}, and its squared error is {size} by "
                f"{abs(self.evidence):.1f} standard errors. Required are a total variation error that is "
                f"{100 * self.margin:.2g}% smaller, and {_EVIDENCE:g} standard error ({self.repetitions} simulated "
                "collections)"
            )
        errors = {"simplex": self.simplex_tv, "bayes": self.bayes_tv}
        (other,) = errors.keys() - {self.method}
        return (
            f"{self.method}, because its expected total variation error is {errors[self.method]:.3g}; that of {other} "
            f"is {errors[other]:.3g} ({self.repetitions} simulated collections)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as a JSON-compatible dict.

        Returns
        -------
        dict
            One entry per field; :meth:`from_dict` reads it.
        """
        return {name: getattr(self, name) for name in (*_KEYS, *_NEW_KEYS)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Choice:
        """Return the choice that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``.

        Returns
        -------
        Choice
            The choice.

        Raises
        ------
        InvalidInput
            If the dict is malformed.
        """
        subject = "Estimate.from_dict"
        document = check_keys(subject, "choice", document, required=_KEYS, optional=_NEW_KEYS)
        if document["method"] not in ("simplex", "bayes"):
            raise InvalidInput(subject, "the method of choice", "be simplex or bayes", document["method"])
        simplex, bayes = (read_number(subject, f"{key} of choice", document[key], least=0.0) for key in _KEYS[1:3])
        repetitions = read_integer(subject, "repetitions of choice", document["repetitions"])
        evidence = document.get("evidence")
        evidence = None if evidence is None else read_number(subject, "evidence of choice", evidence)
        margin = read_number(subject, "margin of choice", document.get("margin", 0.0), least=0.0, most=1.0)
        return cls(document["method"], simplex, bayes, repetitions, evidence, margin)


def choose(posterior: Posterior, *, early: bool = False) -> Choice:
    """Choose a method by simulations; with ``early``, end them as soon as the choice is clear.

    Predictions of errors, which average over many choices, end them early. So do choices for many values, whose
    simulations take long.
    """
    model, generator = posterior.model, insecure_generator(_SEED)
    uncertain = np.concatenate([np.empty(0, np.int64), *model.totals.members])
    if not len(uncertain):  # every frequency is known
        return Choice("simplex", 0.0, 0.0, 0, 0.0, 1.0)
    margin, is_large = _least_margin(len(uncertain)), len(uncertain) > _CONSTANT
    deviation = np.sqrt(model.noise.variance(model.simplex()))[uncertain]
    differences = np.zeros(len(uncertain))
    gains: list[float] = []
    errors: list[list[float]] = []
    for _ in range(int(np.clip(_VALUES // len(uncertain), _LEAST, _MOST))):
        first, second = model.divided(generator, _SHARE)
        fitted = posterior.prior.fit(first)
        simplex, bayes = first.simplex()[uncertain], fitted.frequencies()[uncertain]
        gains.append(float(np.sum((simplex - bayes) * (simplex + bayes - 2 * second[uncertain]) / deviation)))
        differences += simplex - bayes
        truth = fitted.draw(generator)
        simulated = model.drawn(generator, truth)
        estimates = simulated.simplex(), posterior.prior.fit(simulated).frequencies()
        errors.append([float(np.abs(estimate - truth).sum()) / 2 for estimate in estimates])
        if (early or is_large) and _is_clear([(1 - margin) * of_simplex - of_bayes for of_simplex, of_bayes in errors]):
            break
    # Given the estimates, the gain is linear in the second part, whose errors are those of y and of ω. Repetitions
    # average over ω, so the standard error is that of y: √Σ (2·(a - b)/σ)²·σ².
    error = 2 * float(np.linalg.norm(differences))
    evidence = sum(gains) / error if error > 0 else 0.0
    simplex_tv, bayes_tv = np.mean(errors, axis=0).tolist()
    if is_large:
        margin = min(max(margin, _SIMULATION_ERRORS * _share_error(np.array(errors))), 1.0)
    is_better = evidence > _EVIDENCE and bayes_tv < simplex_tv * (1 - margin)
    return Choice("bayes" if is_better else "simplex", simplex_tv, bayes_tv, len(errors), evidence, margin)


def _least_margin(values: int) -> float:
    """Return the least advantage in total variation error, as a share, for a number of uncertain values."""
    constant = _LEAST_MARGIN * math.sqrt(min(1.0, _CONSTANT / values))
    return min(max(_MARGIN / math.sqrt(values), constant), 1.0)


def _share_error(errors: Floats) -> float:
    """Return the standard error of the share by which the second column's mean is below that of the first."""
    simplex, bayes = errors.mean(axis=0).tolist()
    if simplex <= 0:
        return 1.0
    residuals = errors[:, 1] - errors[:, 0] * (bayes / simplex)
    return float(np.std(residuals, ddof=1) / (math.sqrt(len(errors)) * simplex))


def _is_clear(advantages: list[float]) -> bool:
    """Return whether the sign of the mean of simulated advantages is clear."""
    number = len(advantages)
    if number < _FEWEST_CLEAR:
        return False
    return abs(float(np.mean(advantages))) > _CLEAR * float(np.std(advantages, ddof=1)) / math.sqrt(number)
