"""Candidates for a known prior; ``table/binary.py`` has the optimal mechanisms for two values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.prior.designs import prior_hadamard, prior_response, prior_subset, prior_table
from sfumato.mechanisms.table.binary import PriorSymmetric, binary_for_policy
from sfumato.policy import Prior

__all__ = ["prior_candidates"]

#: Maximum number of values for which tables are offered under a uniform prior; beyond it, subsets lose little accuracy
#: and specs of tables become long.
_LARGEST_TABLE = 128


def prior_candidates(policy: Prior, request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield the mechanisms for a prior policy."""
    if len(policy.domain) == 2:
        yield "prior-binary", Candidate(partial(binary_for_policy, policy), "k")
        if policy.side == "both":
            symmetric = partial(PriorSymmetric, policy.domain, policy.prior, policy.epsilon)
            yield "prior-symmetric", Candidate(symmetric, "k")
        return
    # Each is built at the greatest ε at which its law obeys the policy.
    yield "prior-rr", Candidate(partial(prior_response, policy), "k")
    yield "prior-subset", Candidate(partial(prior_subset, policy), "k per report")
    yield "prior-hadamard", Candidate(partial(prior_hadamard, policy), "k log k")
    if policy.is_uniform and len(policy.domain) <= _LARGEST_TABLE:
        yield "prior-table", Candidate(partial(prior_table, policy, request.max_outputs), "k²")
