"""The parameters of ``plan`` and ``design``, validated once."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from numbers import Real
from typing import Any

from sfumato._core import Floats, ProgressCallback, checked_seconds, checked_type
from sfumato.compiler.report_length import MaxBits, ReportLength, checked_max_bits
from sfumato.compiler.solvers.goals import Estimation, Goal, WorstEstimation, read_goal
from sfumato.compiler.solvers.search_cache import SearchCache
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput
from sfumato.policy import Policy
from sfumato.questions import Question

__all__ = ["Request", "checked_target"]


@dataclass(frozen=True, eq=False)
class Request:
    """The validated parameters of ``plan`` or ``design``; errors name the function in ``verb``."""

    verb: str
    policy: Policy
    goal: Goal
    mechanism: str | None
    prior: Frequencies | None
    length: ReportLength
    max_seconds: float | None
    progress: ProgressCallback | None
    cache: SearchCache | None
    #: Whether a question about tables is also compared with separate and sampled reports of the attributes.
    with_strategies: bool = True

    @classmethod
    def read(
        cls,
        verb: str,
        policy: Policy,
        utility: str | Goal,
        question: Question | str | None,
        *,
        mechanism: str | None,
        prior: Frequencies | None,
        max_bits: MaxBits,
        max_seconds: float | None,
        progress: ProgressCallback | None,
        cache: str | os.PathLike[str] | None,
    ) -> Request:
        """Return a request with validated parameters, or raise InvalidInput."""
        checked_type(verb, "the policy", policy, Policy)
        length = ReportLength(checked_max_bits(verb, max_bits), len(policy.domain))
        max_seconds = checked_seconds(verb, max_seconds)
        if len(policy.domain) < 2:
            hint = "With a single value there is nothing to report."
            raise InvalidInput(verb, "the domain", "have at least two values", policy.domain, hint=hint)
        if mechanism is not None:
            checked_type(verb, "mechanism", mechanism, str)
        goal = read_goal(verb, utility, policy.domain, question)
        if isinstance(goal, WorstEstimation) and prior is not None:
            must = "be left out for the utility 'worst-estimation', which chooses the distribution itself"
            raise InvalidInput(verb, "prior", must, prior)
        stored = SearchCache.read(verb, cache)
        return cls(verb, policy, goal, mechanism, prior, length, max_seconds, progress, stored)

    @property
    def question(self) -> Question | None:
        """The question, fitted to the domain; None for all frequencies and for utilities other than estimation."""
        return self.goal.question if isinstance(self.goal, Estimation) else None

    def distribution(self, prior: Frequencies | None) -> Floats:
        """Return a distribution over the values in domain order; uniform if ``prior`` is None."""
        return checked_distribution(prior, self.policy.domain, self.verb, "prior")


def checked_target(verb: str, target: Any, question: Question | None) -> float:
    """Return an error to reach: a total variation error below 1, or for a question any positive standard error."""
    if not isinstance(target, Real) or not 0 < float(target) < (1 if question is None else math.inf):
        must = "lie between 0 and 1" if question is None else "be a positive number"
        raise InvalidInput(verb, "target", must, target)
    return float(target)
