"""The family of mechanisms for a known prior."""

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

#: Maximum number of values for which tables are offered under a uniform prior; beyond it, subsets lose little accuracy
#: and specs of tables become long.
_LARGEST_TABLE = 128


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield the mechanisms for a prior policy."""
    policy = request.policy
    if not isinstance(policy, Prior):
        return
    if len(policy.domain) == 2:
        yield "prior-binary", Candidate(partial(PriorBinary.for_policy, policy), "k")
        if policy.side == "both":
            yield "prior-symmetric", Candidate(partial(PriorSymmetric.for_policy, policy), "k")
        return
    # Each is built at the greatest ε at which its law obeys the policy.
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
