"""Tables for a secret next to a public attribute, and the candidates of a secret policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.candidates import LARGEST_TABLE, Candidate, CandidateRequest
from sfumato.mechanisms.secret.base import offered_sizes
from sfumato.mechanisms.secret.conditional import ConditionalReporting, ConditionalUnary, is_too_large
from sfumato.mechanisms.secret.independent import IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse, known_response
from sfumato.policy import AtLeast, ChiSquare, Known, Secret

__all__ = ["secret_candidates"]

#: Processor time in seconds, per pair of values, to build the exact table for any distribution of a secret.
_SECRET_SECONDS = 8e-6
#: Processor time in seconds to find budgets over a confidence set and round the table: fixed, and per cell.
_BUDGET_SECONDS = (0.5, 0.05)
#: Processor time in seconds to compare two outputs of two secrets, per pair of outputs and pair of secrets.
_JOINT_SECONDS = 3e-4


def secret_candidates(policy: Secret, request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield the mechanisms for a secret policy."""
    if len(policy.domain) > LARGEST_TABLE:
        return
    build = partial(SecretRandomizedResponse, policy.domain, policy.secret, policy.epsilon)
    yield "secret-rr", Candidate(build, "k²", seconds=_SECRET_SECONDS * len(policy.domain) ** 2)
    if isinstance(policy.distributions, (AtLeast, Known)):
        yield "known-rr", Candidate(partial(known_response, policy), "k")
    if isinstance(policy.distributions, ChiSquare):
        yield from _robust_candidates(policy, request.utility)


def _robust_candidates(policy: Secret, utility: str) -> Iterator[tuple[str, Candidate]]:
    """Yield the mechanisms for a secret policy under a confidence set."""
    least, per_cell = _BUDGET_SECONDS
    seconds = least + per_cell * len(policy.domain)
    tuned = utility if utility == "mutual-information" else "estimation"
    designs: tuple[tuple[str, Callable[..., Mechanism], float], ...] = (
        ("independent", IndependentReporting, seconds),
        ("conditional-rr", ConditionalReporting, seconds),
        ("conditional-unary", ConditionalUnary, _unary_seconds(policy, seconds)),
    )
    for name, build, needed in designs:
        yield name, Candidate(partial(build, policy, utility=tuned), "k²", seconds=needed)


def _unary_seconds(policy: Secret, seconds: float) -> float:
    """Estimate the time to build a conditional unary table; a table that is too large is rejected at once."""
    secrets, others = policy.cells.shape
    if is_too_large(secrets, others):
        return 0.0
    sets = max(math.comb(others, size) for size in offered_sizes(others))
    return seconds + _JOINT_SECONDS * secrets * (secrets - 1) * sets**2
