"""What bins and clipped numbers add to the error of a mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domain import Domain
from sfumato.mechanisms import NotIdentifiable
from sfumato.questions import Mean, Question, numeric_labels

if TYPE_CHECKING:
    from sfumato.estimation.forms import LinearForms
    from sfumato.estimation.linear import LinearEstimate

__all__ = ["clipped_words", "is_mean_of_labels", "largest_rounding", "mean_notes", "stated"]

#: Standard errors by which an end must exceed its neighbour, and its least ratio to it. Shares of neighbours differ by
#: a smaller ratio if numbers are spread smoothly, however many people answer.
_CERTAIN, _HEAVY = 1.96, 1.5


def is_mean_of_labels(question: Question) -> bool:
    """Return whether a fitted question is the mean of the numbers of the domain."""
    labels = numeric_labels(question.domain)
    return isinstance(question, Mean) and labels is not None and np.array_equal(question.numbers, labels)


def largest_rounding(domain: Domain) -> float:
    """Return half the width of the widest bin of a domain; 0 if its values are not bins."""
    return float(np.nanmax(domain.widths, initial=0.0)) / 2


def stated(number: LinearEstimate, estimate: LinearForms, question: Question) -> LinearEstimate:
    """Return an answer to a fitted question with what bins and clipped numbers add to its error, if it is a mean."""
    if not is_mean_of_labels(question):
        return number
    domain = question.domain
    rounding, warnings = largest_rounding(domain), _heavy_ends(estimate)
    return replace(number, rounding=rounding, clipped=domain.clipped, warnings=warnings)


def _heavy_ends(estimate: LinearForms) -> tuple[str, ...]:
    """Return a warning per end of the domain whose share shows that numbers were clipped to it.

    The share per unit of width is compared with that of its neighbour, at the level 2.5% if both are equal.
    """
    domain = estimate.domain
    size = len(domain)
    if domain.clipped is None or size < 3:
        return ()
    warnings = []
    for end, other, bound, side, change in (
        (0, 1, domain.clipped[0], "below", "high"),
        (size - 1, size - 2, domain.clipped[1], "above", "low"),
    ):
        weights, neighbour = np.zeros(size), np.zeros(size)
        neighbour[other] = domain.widths[end] / domain.widths[other] if domain.widths[end] else 1.0
        weights[end] = 1.0
        try:
            excess, share, expected = map(estimate.linear, (weights - neighbour, weights, neighbour))
        except NotIdentifiable:  # the reports determine the mean, and not these shares
            return ()
        if excess.value > _CERTAIN * excess.standard_error and share.value > _HEAVY * expected.value:
            warnings.append(
                f"too many people have the value {domain.label(end)}: probably numbers {side} {bound:g} were clipped, "
                f"so that the mean is too {change}"
            )
    return tuple(warnings)


def clipped_words(clipped: tuple[float, float]) -> str:
    """Return the bounds to which numbers were clipped, in words."""
    return f"clipped to {clipped[0]:.10g} … {clipped[1]:.10g}"


def mean_notes(number: LinearEstimate) -> Sequence[str]:
    """Return the sentences that state what bins and clipped numbers add to the error of a mean."""
    bins = f"Numbers were divided into bins, so the mean may differ by up to {number.rounding:.6g} more."
    return (
        *([] if number.clipped is None else [f"This is a mean of numbers {clipped_words(number.clipped)}."]),
        *([bins] if number.rounding else []),
        *(f"WARNING: {warning}" for warning in number.warnings),
    )
