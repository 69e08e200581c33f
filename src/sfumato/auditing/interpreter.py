"""The branching interpreter: run a sampler down every branch and return its exact law.

A sampler sees only an object with ``bernoulli`` and ``below``, and cannot distinguish the interpreter from real
randomness. The result is therefore the law of the code that runs, in exact rationals. The interpreter merges equal
states of a sampler after each step, so its cost grows with the number of states, not of paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

from sfumato.errors import LimitExceeded
from sfumato.mechanisms import Draws, Finished, Mechanism

__all__ = ["TooManyBranches", "branches", "sampler_law"]

Result = TypeVar("Result")


class TooManyBranches(LimitExceeded):
    """Following every branch would take more runs than allowed."""


class _Path:
    """Draws that follow a path through a sampler's decisions, and take the first outcome of every further decision."""

    __slots__ = ("_choices", "_depth", "_outcomes", "total", "weight")

    def __init__(self) -> None:
        self._choices: list[int] = []
        self._outcomes: list[int] = []
        self._depth = 0
        #: The probability of the decisions so far is weight / total.
        self.weight = self.total = 1

    def restart(self) -> None:
        """Return to the start of the same path."""
        self._depth = 0
        self.weight = self.total = 1

    def turn(self) -> bool:
        """Move to the next path, and return whether there is one.

        The next path takes another outcome of the last decision that has one left.
        """
        while self._choices and self._choices[-1] == self._outcomes[-1] - 1:
            self._choices.pop()
            self._outcomes.pop()
        if self._choices:
            self._choices[-1] += 1
        return bool(self._choices)

    def _choose(self, outcomes: int, total: int) -> int:
        """Return the outcome of the next decision on this path."""
        depth = self._depth
        if depth == len(self._choices):
            self._choices.append(0)
            self._outcomes.append(outcomes)
        self._depth = depth + 1
        self.total *= total
        return self._choices[depth]

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        """Decide an event of probability numerator/denominator."""
        if not 0 <= numerator <= denominator:
            raise ValueError(f"bernoulli: numerator/denominator must be in [0, 1]; got {numerator}/{denominator}")
        if numerator in (0, denominator):
            return numerator > 0  # certain, so it does not branch
        happened = bool(self._choose(2, denominator))
        self.weight *= numerator if happened else denominator - numerator
        return happened

    def below(self, m: int) -> int:
        """Decide a uniform whole number below m."""
        if m < 1:
            raise ValueError(f"below(m): m must be at least 1; got {m}")
        return self._choose(m, m)


def branches(run: Callable[[Draws], Result]) -> Iterator[tuple[Result, int, int]]:
    """Yield every outcome of ``run`` with a weight and a total; its probability is weight/total."""
    path = _Path()
    while True:
        path.restart()
        yield run(path), path.weight, path.total
        if not path.turn():
            return


def sampler_law(mechanism: Mechanism, x: int, most_runs: int = 10**6) -> tuple[dict[bytes, Fraction], int]:
    """Return the exact law of the *serialized* reports of one value, and the number of runs that it took."""
    law: dict[bytes, Fraction] = {}
    pending: dict[Hashable, Fraction] = {mechanism.start(x): Fraction(1)}
    runs = 0
    while pending:
        # Add probabilities with the same denominator as integers: there are few denominators and many branches.
        numerators: dict[tuple[Any, int], int] = {}
        for state, reached in pending.items():
            numerator, denominator = reached.as_integer_ratio()
            for result, weight, total in branches(lambda draws, state=state: mechanism.step(state, draws)):  # type: ignore[misc]
                runs += 1
                if runs > most_runs:
                    raise TooManyBranches(
                        f"cannot read the sampler of {mechanism.name}, because it has more than {most_runs} branches. "
                        "Read it over a smaller domain."
                    )
                key = (result, denominator * total)
                numerators[key] = numerators.get(key, 0) + numerator * weight
        pending = {}
        for (result, denominator), numerator in numerators.items():
            probability = Fraction(numerator, denominator)
            if isinstance(result, Finished):
                report = mechanism.report_format.encode(result.report)
                law[report] = law.get(report, Fraction(0)) + probability
            else:
                pending[result] = pending.get(result, Fraction(0)) + probability
    return law, runs
