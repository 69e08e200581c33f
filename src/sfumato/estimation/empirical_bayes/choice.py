"""The choice between the methods "simplex" and "bayes", by a parametric bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._core import check_keys, read_integer, read_number
from sfumato.errors import InvalidInput
from sfumato.estimation.empirical_bayes.shrinkage import Posterior
from sfumato.randomness import insecure_generator

__all__ = ["Choice", "choose"]

#: Seed of the bootstrap; fixed, so the same counts always give the same estimate.
_SEED = 20
#: Number of values that all repetitions of a bootstrap simulate, and the least and greatest number of repetitions.
_VALUES, _LEAST, _MOST = 16_000, 2, 40

_KEYS = ("method", "simplex_tv", "bayes_tv", "repetitions")


@dataclass(frozen=True)
class Choice:
    """The method that ``estimate(..., method="best")`` chose, and why.

    Parameters
    ----------
    method
        The chosen method: ``"simplex"`` or ``"bayes"``, that with the smaller expected error.
    simplex_tv
        Expected total variation error of method ``"simplex"``, by the bootstrap.
    bayes_tv
        Expected total variation error of method ``"bayes"``, by the bootstrap.
    repetitions
        Number of simulated collections.

    Examples
    --------
    >>> print(Choice("bayes", 0.31, 0.2, 40))
    bayes, because its expected total variation error is 0.2; that of simplex is 0.31 (40 simulated collections)
    """

    method: str
    simplex_tv: float
    bayes_tv: float
    repetitions: int

    def __str__(self) -> str:
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
        return {name: getattr(self, name) for name in _KEYS}

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
        document = check_keys(subject, "choice", document, required=_KEYS)
        if document["method"] not in ("simplex", "bayes"):
            raise InvalidInput(subject, "the method of choice", "be simplex or bayes", document["method"])
        simplex, bayes = (read_number(subject, f"{key} of choice", document[key], least=0.0) for key in _KEYS[1:3])
        repetitions = read_integer(subject, "repetitions of choice", document["repetitions"])
        return cls(document["method"], simplex, bayes, repetitions)


def choose(posterior: Posterior) -> Choice:
    """Compare both methods on simulated collections.

    A repetition draws true frequencies from their posterior, and new estimates from the law of their errors. Both
    methods then estimate the drawn frequencies.
    """
    model, generator = posterior.model, insecure_generator(_SEED)
    repetitions = int(np.clip(_VALUES // len(model.observations), _LEAST, _MOST))
    errors = np.zeros(2)
    for _ in range(repetitions):
        truth = posterior.draw(generator)
        simulated = model.drawn(generator, truth)
        estimates = simulated.simplex(), posterior.prior.fit(simulated).frequencies()
        errors += [float(np.abs(estimate - truth).sum()) / 2 for estimate in estimates]
    simplex, bayes = (errors / repetitions).tolist()
    return Choice("simplex" if simplex < bayes else "bayes", simplex, bayes, repetitions)
