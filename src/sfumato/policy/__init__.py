"""Policies: what must be hard to tell apart, and by how much. Each is a cone of allowed likelihood vectors."""

from sfumato.policy.base import Inequality, Policy, Worst
from sfumato.policy.blocks import Blocks
from sfumato.policy.document import load_policy, policy_from_dict, save_policy
from sfumato.policy.high_low import HighLow
from sfumato.policy.implication import implies
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise, PairwisePolicy
from sfumato.policy.prior import Prior
from sfumato.policy.secret import Anything, AtLeast, ChiSquare, Distributions, Known, Secret
from sfumato.policy.structure import structure_of
from sfumato.policy.uniform import Uniform

__all__ = [
    "Anything",
    "AtLeast",
    "Blocks",
    "ChiSquare",
    "Distributions",
    "HighLow",
    "Inequality",
    "Known",
    "Metric",
    "Pairwise",
    "PairwisePolicy",
    "Policy",
    "Prior",
    "Secret",
    "Uniform",
    "Worst",
    "implies",
    "load_policy",
    "policy_from_dict",
    "save_policy",
    "structure_of",
]
