"""The result of a search for the optimal mechanism, with a bound on every mechanism."""

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
    quantity,
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

__all__ = ["USEFUL_RATIO", "Optimum", "relative_gap"]

#: Greatest ratio between a value and its bound at which the bound says something about the value.
USEFUL_RATIO = 4.0

_KEYS = ("mechanism", "utility", "smaller_is_better", "prior", "value", "bound", "status", "seconds")
#: Possible values of ``status``, with the words that ``summary`` uses for them.
_ENDINGS = {"optimal": "optimal", "gap": "not proven optimal", "time": "stopped before it converged"}


@dataclass(frozen=True, eq=False, repr=False)
class Optimum(FrozenData, Result):
    """The best mechanism that a search found for a policy and a utility, with a bound on all mechanisms.

    :func:`optimal` returns objects of this class.

    Parameters
    ----------
    mechanism
        The mechanism. Its probabilities are exact integers over one denominator, rounded from the search so that they
        obey the policy.
    utility
        Name of the utility, such as ``"estimation"`` (see :func:`optimal`).
    smaller_is_better
        True if the utility is an error or a loss, False if it is mutual information.
    prior
        Distribution of values that the design assumes, shape (k,), in domain order. For ``"worst-estimation"`` it is
        the least favourable distribution.
    value
        Utility of the mechanism if values follow ``prior``:

        - for ``"estimation"`` and ``"worst-estimation"``, n times the expected squared l2 error of all frequencies from
          n reports;
        - for ``"mutual-information"``, the information in nats;
        - for ``"mmse"``, a mean squared error, and for ``"expected-loss"``, an expected loss.
    bound
        Bound on the utility of every mechanism that obeys the policy: a lower bound if smaller is better, otherwise an
        upper bound. For estimation, the bound is asymptotic in n. It holds for every mechanism that all people use
        alike, with any regular estimator that is unbiased in the limit.
    status
        How the search ended:

        - ``"optimal"``: the relative gap between value and bound is at most 1e-4, and the bound covers all mechanisms
          that the policy allows;
        - ``"gap"``: optimality is not proven. Either only a relaxation of the search problem gives the bound, or double
          precision or rounding to exact probabilities lost more than 1e-4;
        - ``"time"``: the time limit or ``max_rounds`` ended the search.
    seconds
        Duration of the search in seconds.

    Examples
    --------
    >>> from sfumato import Domain, Metric, optimal
    >>> result = optimal(Metric(Domain.range(3), "absolute", 1))
    >>> print(result)  # doctest: +ELLIPSIS
    estimation 3.95139, lower bound 3.95139 (gap 0.00%), 4 outputs, optimal after ... s
    >>> result.status, result.mechanism.bits
    ('optimal', 2)
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
        """The relative optimality gap, |value - bound| / max(|value|, |bound|), from 0 (optimal) upwards.

        No mechanism that obeys the policy improves the value by a larger fraction of max(|value|, |bound|).
        """
        return relative_gap(self.value, self.bound)

    def summary(self) -> str:
        """Return the result as one line of English.

        Returns
        -------
        str
            The value, the bound, the gap, the number of outputs, and how the search ended.
        """
        side = "lower" if self.smaller_is_better else "upper"
        quality = f"{self.utility} {self.value:.6g}, {side} bound {self.bound:.6g} (gap {self.gap:.2%})"
        if self.gap > 1 - 1 / USEFUL_RATIO:
            quality = f"{self.utility} {self.value:.6g}, no useful {side} bound"
        if math.isinf(self.value):
            quality = "no mechanism that obeys the policy distinguishes all values, so no number of people suffices"
        outputs = quantity(self.mechanism.outputs, "output")
        return f"{quality}, {outputs}, {_ENDINGS[self.status]} after {self.seconds:.1f} s"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per field. ``"mechanism"`` is ``mechanism.spec``, the dict that ``mechanism_from_spec`` reads.
            Infinite numbers are the strings ``"inf"`` and ``"-inf"``.
        """
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
        """Return the result that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        Optimum
            A result equal to the one that was written. The function does not check the value and the bound.

        Raises
        ------
        InvalidInput
            If the dict is malformed, or its prior is not a distribution over the domain of the mechanism.
        """
        parts = check_keys("Optimum", "the document", document, required=_KEYS)
        if parts["status"] not in _ENDINGS:
            raise InvalidInput("Optimum", "status", f"be one of {', '.join(_ENDINGS)}", parts["status"])
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
        """Draw the output probabilities Q(y|x) as an image, with one row per value x and one column per report y.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
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
        return f"optimal mechanism over {quantity(len(self.mechanism.domain), 'value')}"

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Optimum: {self.summary()}>"


def relative_gap(value: float, bound: float) -> float:
    """Return the difference of a value and its bound, relative to the larger of the two."""
    scale = max(abs(value), abs(bound))
    if scale == math.inf:  # equal if no mechanism has a finite value; otherwise nothing was proven
        return 0.0 if value == bound else 1.0
    return abs(value - bound) / scale if scale > 0 else 0.0
