"""Events: sets of outputs that words describe, and how much each promises to show."""

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

#: The family of the events that are level sets of learned scores.
LEARNED = "learned"

Pair = tuple[int, int]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs, the sentence that an output is in it, and the sentence that it is not."""

    holds: Callable[[Outputs], Mask]
    yes: str
    no: str


@dataclass(frozen=True)
class Candidate:
    """An event (or its denial), and how often it was seen in ``looked`` outputs of either value of a pair."""

    family: str
    event: Event
    denied: bool
    counts: tuple[int, int]
    looked: int

    def __str__(self) -> str:
        return self.event.no if self.denied else self.event.yes

    @property
    def is_learned(self) -> bool:
        return self.family == LEARNED

    def denial(self) -> Candidate:
        """That it did not happen."""
        counts = (self.looked - self.counts[0], self.looked - self.counts[1])
        return replace(self, denied=not self.denied, counts=counts)

    def plus(self, counts: tuple[int, int], looked: int) -> Candidate:
        """With what was seen of the event itself in more outputs."""
        mine = [looked - count if self.denied else count for count in counts]
        both = (self.counts[0] + mine[0], self.counts[1] + mine[1])
        return replace(self, counts=both, looked=self.looked + looked)

    def afresh(self) -> Candidate:
        """With all that was seen forgotten."""
        return replace(self, counts=(0, 0), looked=0)


def ln_ratio(low: Floats, high: Floats) -> Floats:
    """ln(low/high); minus infinity where low is zero."""
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(np.maximum(high, math.ulp(0.0)))


def estimated_bounds(candidates: Sequence[Candidate], alpha: float) -> Floats:
    """ln of the least probability under the first value over the greatest under the second: Chernoff limits."""
    counts = np.array([candidate.counts for candidate in candidates]).reshape(-1, 2)
    looked = np.array([candidate.looked for candidate in candidates])
    low = chernoff_lower(counts[:, 0], looked, alpha)
    return ln_ratio(low, 1 - chernoff_lower(looked - counts[:, 1], looked, alpha))


def best_of_each_family(candidates: Sequence[Candidate], alpha: float, most: int) -> list[Candidate]:
    """The most promising events of each family; those that promise nothing only where all do."""
    bounds = estimated_bounds(candidates, alpha)
    best: list[Candidate] = []
    for place in np.argsort(-bounds, kind="stable"):
        candidate = candidates[place]
        alike = sum(other.family == candidate.family for other in best)
        # Seen equally often: nearly always the same set by another name.
        same = any((other.counts, other.looked) == (candidate.counts, candidate.looked) for other in best)
        if alike < most and not same and (bounds[place] > 0 or not best):
            best.append(candidate)
    return best
