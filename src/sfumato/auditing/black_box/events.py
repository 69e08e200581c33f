"""Events: sets of outputs with a description in words, and estimates of how much each can prove."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.auditing.black_box.limits import chernoff_lower
from sfumato.auditing.black_box.outputs import Outputs

__all__ = ["LEARNED", "Candidate", "Event", "Pair", "best_of_each_family", "estimated_bounds", "ln_ratio"]

#: Name of the family of level sets of learned scores.
LEARNED = "learned"

Pair = tuple[int, int]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs, with the sentences that an output is in it and that it is not."""

    holds: Callable[[Outputs], Mask]
    yes: str
    no: str


@dataclass(frozen=True)
class Candidate:
    """An event or its complement, with its counts in ``looked`` outputs of each value of a pair."""

    family: str
    event: Event
    denied: bool
    counts: tuple[int, int]
    looked: int

    def __str__(self) -> str:
        return self.event.no if self.denied else self.event.yes

    @property
    def is_learned(self) -> bool:
        """Whether the event is a level set of a learned score."""
        return self.family == LEARNED

    def denial(self) -> Candidate:
        """Return the complement of the event."""
        counts = (self.looked - self.counts[0], self.looked - self.counts[1])
        return replace(self, denied=not self.denied, counts=counts)

    def plus(self, counts: tuple[int, int], looked: int) -> Candidate:
        """Return the candidate with the counts of the event in further outputs added."""
        added = [looked - count if self.denied else count for count in counts]
        sums = (self.counts[0] + added[0], self.counts[1] + added[1])
        return replace(self, counts=sums, looked=self.looked + looked)

    def without_counts(self) -> Candidate:
        """Return the candidate with its counts reset to zero."""
        return replace(self, counts=(0, 0), looked=0)


def ln_ratio(low: Floats, high: Floats) -> Floats:
    """Return ln(low/high), or minus infinity where low is zero."""
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(np.maximum(high, math.ulp(0.0)))


def estimated_bounds(candidates: Sequence[Candidate], alpha: float) -> Floats:
    """Return lower bounds on epsilon from Chernoff limits, for ranking."""
    counts = np.array([candidate.counts for candidate in candidates]).reshape(-1, 2)
    looked = np.array([candidate.looked for candidate in candidates])
    low = chernoff_lower(counts[:, 0], looked, alpha)
    return ln_ratio(low, 1 - chernoff_lower(looked - counts[:, 1], looked, alpha))


def best_of_each_family(candidates: Sequence[Candidate], alpha: float, most: int) -> list[Candidate]:
    """Return the events of each family with the greatest bounds, and at least one event."""
    bounds = estimated_bounds(candidates, alpha)
    best: list[Candidate] = []
    for place in np.argsort(-bounds, kind="stable"):
        candidate = candidates[place]
        alike = sum(other.family == candidate.family for other in best)
        # Equal counts nearly always mean the same set of outputs under another name.
        same = any((other.counts, other.looked) == (candidate.counts, candidate.looked) for other in best)
        if alike < most and not same and (bounds[place] > 0 or not best):
            best.append(candidate)
    return best
