"""The result of a search for the best mechanism, and how far from the best it can be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato._core import (
    Floats,
    FrozenData,
    Result,
    check_keys,
    number_document,
    plot_result,
    read_flag,
    read_items,
    read_number,
    read_string,
    reads_document,
)
from sfumato.domain import checked_distribution
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, mechanism_from_spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Optimum", "relative_gap"]

_KEYS = ("mechanism", "utility", "smaller_is_better", "prior", "value", "bound", "status", "seconds")
_STATUSES = ("optimal", "gap", "time")


@dataclass(frozen=True, eq=False, repr=False)
class Optimum(FrozenData, Result):
    """The best mechanism found for a policy and a utility.

    Parameters
    ----------
    mechanism
        The exact mechanism.
    utility
        Name of the utility.
    smaller_is_better
        Whether the utility is an error or a loss.
    prior
        The distribution of values that it was designed for; that of the worst case for "worst-estimation".
    value
        Utility of the mechanism: n times the expected squared error of all frequencies, information in nats, a mean
        squared error or an expected loss, at the prior itself also where some of its shares are zero.
    bound
        No mechanism that obeys the policy is better than this. For estimation: none that asks everybody the same
        question has an estimator, regular and unbiased in the limit, with less error asymptotically.
    status
        "optimal" where the bound accounts for every ray and is within 1e-4 of the value; "gap" where rays were bounded
        by a relaxation only, or where doubles or the rounding to an exact table lost more than that; "time" where the
        search was cut short.
    seconds
        Duration of the search.
    """

    mechanism: Mechanism
    utility: str
    smaller_is_better: bool
    prior: Floats
    value: float
    bound: float
    status: Literal["optimal", "gap", "time"]
    seconds: float

    def __post_init__(self) -> None:
        prior = np.array(self.prior, dtype=np.float64)
        prior.setflags(write=False)
        object.__setattr__(self, "prior", prior)

    @property
    def gap(self) -> float:
        """How much better than this a mechanism may be, relative to the larger of value and bound."""
        return relative_gap(self.value, self.bound)

    def summary(self) -> str:
        """Return the result in a sentence."""
        least = "at least" if self.smaller_is_better else "at most"
        reached = f"{self.utility} {self.value:.6g}, {least} {self.bound:.6g} for any mechanism (gap {self.gap:.2%})"
        if math.isinf(self.value):
            reached = "no mechanism that obeys the policy tells all values apart, so no number of people suffices"
        return f"{reached}; {self.mechanism.outputs} outputs; {self.status} after {self.seconds:.1f} s"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document of plain JSON types; ``from_dict`` returns an equal result."""
        return {
            "mechanism": self.mechanism.spec,
            "utility": self.utility,
            "smaller_is_better": self.smaller_is_better,
            "prior": self.prior.tolist(),
            "value": number_document(self.value),
            "bound": number_document(self.bound),
            "status": self.status,
            "seconds": self.seconds,
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Optimum:
        """Return the result that a document holds: the inverse of ``to_dict``.

        The prior must be a distribution over the domain of the mechanism. Value and bound are trusted.
        """
        parts = check_keys("Optimum", "the document", document, required=_KEYS)
        if parts["status"] not in _STATUSES:
            raise InvalidInput("Optimum", "status", f"be one of {', '.join(_STATUSES)}", parts["status"])
        mechanism = mechanism_from_spec(parts["mechanism"])
        prior = [
            read_number("Optimum", "a probability of prior", p, least=0.0, most=1.0)
            for p in read_items("Optimum", "prior", parts["prior"], len(mechanism.domain))
        ]
        checked_distribution(prior, mechanism.domain, "Optimum", "prior")
        return cls(
            mechanism=mechanism,
            utility=read_string("Optimum", "utility", parts["utility"]),
            smaller_is_better=read_flag("Optimum", "smaller_is_better", parts["smaller_is_better"]),
            prior=np.array(prior),
            value=read_number("Optimum", "value", parts["value"], least=-math.inf),
            bound=read_number("Optimum", "bound", parts["bound"], least=-math.inf),
            status=parts["status"],
            seconds=read_number("Optimum", "seconds", parts["seconds"], least=0.0),
        )

    def plot(self) -> Figure:
        """Draw the probability of every report for every value; needs matplotlib."""
        figure: Figure = plot_result(self)
        return figure

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {
            "utility": [self.utility],
            "value": [self.value],
            "bound": [self.bound],
            "gap": [self.gap],
            "status": [self.status],
            "outputs": [self.mechanism.outputs],
            "bits": [self.mechanism.bits],
            "seconds": [self.seconds],
        }

    def _title(self) -> str:
        return f"optimal mechanism over {len(self.mechanism.domain):,} values"

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Optimum: {self.summary()}>"


def relative_gap(value: float, bound: float) -> float:
    """Return how far a value is from its bound, relative to the larger of both."""
    scale = max(abs(value), abs(bound))
    if scale == math.inf:  # nothing was proved, unless no mechanism can do it at all
        return 0.0 if value == bound else 1.0
    return abs(value - bound) / scale if scale > 0 else 0.0
