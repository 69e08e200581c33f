"""Which mechanisms suit a policy, by their short names."""

from __future__ import annotations

from sfumato._core import INFINITE, ZERO, Epsilon
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Candidate, CandidateRequest, all_families
from sfumato.policy import PairwisePolicy, Policy, Prior, Secret

__all__ = ["candidates", "safe_epsilon"]


def candidates(policy: Policy, max_bits: int | None = None, utility: str = "estimation") -> dict[str, Candidate]:
    """Return every mechanism that a family offers for the policy, in the order of comparison.

    Classical mechanisms are offered at the safe epsilon, others for the structure of the policy.
    """
    request = CandidateRequest(policy, safe_epsilon(policy), max_bits, utility)
    offered: dict[str, Candidate] = {}
    for family in all_families():
        for name, candidate in () if family.candidates is None else family.candidates(request):
            if name in offered:
                raise InvalidInput("the registry", "the short name of a candidate", "be offered by one family", name)
            offered[name] = candidate
    return offered


def safe_epsilon(policy: Policy) -> Epsilon:
    """Return the greatest ε for which every ε-LDP mechanism obeys the policy.

    For a prior it is rounded down to nine digits or more. For a class of policies that is not known here it may be
    smaller than that.
    """
    if isinstance(policy, PairwisePolicy):
        return policy.least[0]
    if isinstance(policy, Prior):
        return policy.implying_epsilon
    if isinstance(policy, Secret):
        # A likelihood that depends on the secret alone reaches ε between two secrets, whatever the distribution.
        return policy.epsilon
    # Likelihoods within a factor e^ε of each other keep left·T ≤ e^ε·right·T if the coefficients on the left add up to
    # no more than those on the right.
    rules = list(policy.inequalities())
    if all(sum(rule.left.values()) <= sum(rule.right.values()) for rule in rules):
        return min((rule.epsilon for rule in rules), default=INFINITE)
    return ZERO
