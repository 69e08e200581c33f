"""The family of tables: any finite matrix of probabilities, sampled by the alias method.

Mechanisms for two values, for a prior and for a secret are functions that return a table with its provenance.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.estimators.matrix import MatrixEstimator
from sfumato.mechanisms.prior import prior_candidates
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.secret import secret_candidates
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.binary import binary_for_policy
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.table.metric_exponential import best_exponential
from sfumato.mechanisms.table.value_levels import LARGEST_LEVELLED, gain_of_levels, levels_table
from sfumato.policy import Blocks, HighLow, PairwisePolicy, Prior, Secret, Uniform

__all__ = ["TABLE", "TableMechanism"]

#: Maximum number of values of the table for distances, which needs fewer steps than other tables, and processor time in
#: seconds to build it, per third power of the number of values.
_LARGEST_EXPONENTIAL, _EXPONENTIAL_SECONDS = 1024, 4e-9
#: Processor time in seconds, per pair of values, to build the table by levels, and the least estimated gain at which
#: it is offered: its sets cost about an eighth.
_LEVELLED_SECONDS, _LEAST_GAIN = 3e-5, 1.15


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield mechanisms for a prior or a secret, and tables for a policy on pairs that no other family covers."""
    if isinstance(request.policy, Prior):
        yield from prior_candidates(request.policy, request)
    if isinstance(request.policy, Secret):
        yield from secret_candidates(request.policy, request)
    policy = request.structure
    if not isinstance(policy, PairwisePolicy):
        return
    if len(policy.domain) == 2:
        # For two values at one level, this is the law of randomized response.
        differs = not isinstance(policy, Uniform)
        yield "binary", Candidate(partial(binary_for_policy, policy), "k", compared=differs)
    elif isinstance(policy, (Uniform, HighLow)) or (isinstance(policy, Blocks) and _has_own_mechanism(policy)):
        return
    else:
        size = len(policy.domain)
        if size <= _LARGEST_EXPONENTIAL and not policy.greatest_effective[0].is_infinite:
            exponential = partial(best_exponential, policy)
            yield "exponential", Candidate(exponential, "k²", seconds=size**3 * _EXPONENTIAL_SECONDS)
        if size <= LARGEST_LEVELLED and gain_of_levels(policy) >= _LEAST_GAIN:
            yield "levels", Candidate(partial(levels_table, policy), "k²", seconds=size**2 * _LEVELLED_SECONDS)


def _has_own_mechanism(policy: Blocks) -> bool:
    """Return whether the mechanisms for blocks cover the policy."""
    return policy.across.is_infinite or min(policy.epsilons) < policy.across


def _estimator(mechanism: TableMechanism) -> MatrixEstimator:
    """Return the estimator of least variance at the distribution that the table was designed for."""
    return MatrixEstimator.of(mechanism, None if mechanism.design_prior is None else mechanism.design_prior / TOTAL)


TABLE = Family(
    mechanisms=(TableMechanism,),
    estimator=_estimator,
    kernel="sfumato.mechanisms.table.kernel:build",
    candidates=_candidates,
    in_browser=True,
    memory="sfumato.mechanisms.table.memory:TABLE",
)
