"""The branching interpreter: runs a sampler down every branch and returns its exact law.

The sampler cannot tell it from real randomness; it only sees an object with ``bernoulli`` and ``below``. What
comes out is therefore the law of the code that runs, as rationals. Equal states of a sampler are merged after
each step, so the cost is the number of states, not of paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from sfumato.errors import CannotDecide
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.draws import Draws

__all__ = ["TooManyBranches", "branches", "sampler_law"]

Result = TypeVar("Result")


class TooManyBranches(CannotDecide):
    """Following every branch would take more runs than allowed."""


@dataclass
class _Choice:
    """One decision on the current path: which of its outcomes is taken."""

    taken: int
    outcomes: int
    weights: tuple[int, int] | None  # of False and True; None: all outcomes weigh 1
    total: int

    @property
    def weight(self) -> int:
        return 1 if self.weights is None else self.weights[self.taken]


class _Path:
    """Draws that follow a given path, and extend it by first outcomes where it ends."""

    def __init__(self, choices: list[_Choice]) -> None:
        self._choices = choices
        self._depth = 0

    def _choose(self, outcomes: int, weights: tuple[int, int] | None, total: int) -> int:
        if self._depth == len(self._choices):
            self._choices.append(_Choice(0, outcomes, weights, total))
        choice = self._choices[self._depth]
        self._depth += 1
        return choice.taken

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        if not 0 <= numerator <= denominator:
            raise ValueError(f"not a probability: {numerator}/{denominator}")
        if numerator in (0, denominator):
            return numerator > 0  # certain: not a branch
        return bool(self._choose(2, (denominator - numerator, numerator), denominator))

    def below(self, m: int) -> int:
        if m < 1:
            raise ValueError(f"cannot choose among {m}")
        return self._choose(m, None, m)


def branches(run: Callable[[Draws], Result]) -> Iterator[tuple[Result, int, int]]:
    """Every outcome of ``run``, with its weight and the total: its probability is weight/total."""
    choices: list[_Choice] = []
    while True:
        result = run(_Path(choices))
        weight = total = 1
        for choice in choices:
            weight *= choice.weight
            total *= choice.total
        yield result, weight, total
        while choices and choices[-1].taken == choices[-1].outcomes - 1:
            choices.pop()
        if not choices:
            return
        choices[-1].taken += 1


def sampler_law(mechanism: Mechanism, x: int, most_runs: int = 10**6) -> tuple[dict[bytes, Fraction], int]:
    """The exact law of the *serialised* reports of one value, and how many runs it took to read."""
    law: dict[bytes, Fraction] = {}
    pending: dict[Hashable, Fraction] = {mechanism.start(x): Fraction(1)}
    shares: dict[tuple[Fraction, int, int], Fraction] = {}  # few different ones: multiply each once
    runs = 0
    while pending:
        following: dict[Hashable, Fraction] = {}
        for state, reached in pending.items():
            # Weights over one total are added as integers; there are few totals, and many branches.
            weighed: dict[tuple[Any, int], int] = {}
            for result, weight, total in branches(lambda draws, state=state: mechanism.step(state, draws)):  # type: ignore[misc]
                runs += 1
                if runs > most_runs:
                    raise TooManyBranches(f"the sampler of {mechanism.name} has more than {most_runs} branches")
                weighed[result, total] = weighed.get((result, total), 0) + weight
            for (result, total), weight in weighed.items():
                key = (reached, weight, total)
                probability = shares.get(key)
                if probability is None:
                    probability = shares[key] = reached * Fraction(weight, total)
                if isinstance(result, Finished):
                    report = mechanism.serialise(result.report)
                    law[report] = law.get(report, Fraction(0)) + probability
                else:
                    following[result] = following.get(result, Fraction(0)) + probability
        pending = following
    return law, runs
