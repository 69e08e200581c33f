"""Error that dividing numbers into bins adds to a mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.domain import Domain
from sfumato.questions import Mean, Question, numeric_labels

__all__ = ["is_mean_of_labels", "largest_rounding", "rounding_notes"]


def is_mean_of_labels(question: Question) -> bool:
    """Return whether a fitted question is the mean of the numbers of the domain."""
    labels = numeric_labels(question.domain)
    return isinstance(question, Mean) and labels is not None and np.array_equal(question.numbers, labels)


def largest_rounding(domain: Domain) -> float:
    """Return half the width of the widest bin of a domain; 0 if its values are not bins."""
    return float(np.nanmax(domain.widths, initial=0.0)) / 2


def rounding_notes(rounding: float) -> Sequence[str]:
    """Return the sentence that states the error of bins, if there is one."""
    if rounding == 0:
        return ()
    return (f"Numbers were divided into bins, so the true mean may differ by up to {rounding:.6g} more.",)
