"""Mechanisms for a known prior."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.prior.binary import PriorBinary
from sfumato.mechanisms.prior.designs import prior_hadamard, prior_response, prior_subset, prior_table
from sfumato.mechanisms.prior.symmetric import PriorSymmetric
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.table.estimator import table_estimator
from sfumato.policy import Prior

__all__ = ["PRIOR", "PriorBinary", "PriorSymmetric"]

#: Tables for a uniform prior are offered up to this many values: above, subsets lose little, and specs become long.
_LARGEST_TABLE = 128


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    policy = request.policy
    if not isinstance(policy, Prior):
        return
    if len(policy.domain) == 2:
        yield "prior-binary", Candidate(partial(PriorBinary.for_policy, policy), "k")
        if policy.side == "both":
            yield "prior-symmetric", Candidate(partial(PriorSymmetric.for_policy, policy), "k")
        return
    # At the greatest ε at which their own law obeys the policy.
    yield "prior-rr", Candidate(partial(prior_response, policy), "k")
    yield "prior-subset", Candidate(partial(prior_subset, policy), "k per report")
    yield "prior-hadamard", Candidate(partial(prior_hadamard, policy), "k log k")
    if policy.is_uniform and len(policy.domain) <= _LARGEST_TABLE:
        yield "prior-table", Candidate(partial(prior_table, policy, request.max_outputs), "k²")


PRIOR = Family(
    mechanisms=(PriorBinary, PriorSymmetric),
    estimator=table_estimator,
    kernel="sfumato.mechanisms.table.kernel:build",
    candidates=_candidates,
    in_browser=True,
    examples="sfumato.mechanisms.prior.examples:examples",
)
