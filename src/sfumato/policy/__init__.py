"""Policies: which values must be hard to distinguish, and by how much.

Each policy is a convex cone of allowed likelihood vectors.
"""

from sfumato.policy.base import Inequality, Policy, TightestConstraint
from sfumato.policy.blocks import Blocks
from sfumato.policy.chi_square import ChiSquare
from sfumato.policy.confidence import SecretPair
from sfumato.policy.descriptions import PosteriorBound, describe, disclosure_warnings, posterior_bounds, strictest
from sfumato.policy.distributions import Anything, AtLeast, Distributions, Known
from sfumato.policy.document import load_policy, policy_from_dict, save_policy
from sfumato.policy.epsilon_matrix import EpsilonMatrix
from sfumato.policy.graph import Graph
from sfumato.policy.high_low import HighLow
from sfumato.policy.implication import implies
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise, PairwisePolicy
from sfumato.policy.per_value import PerValue
from sfumato.policy.prior import Prior
from sfumato.policy.product import Product
from sfumato.policy.secret import Secret
from sfumato.policy.structure import structure_of
from sfumato.policy.uniform import Uniform

__all__ = [
    "Anything",
    "AtLeast",
    "Blocks",
    "ChiSquare",
    "Distributions",
    "EpsilonMatrix",
    "Graph",
    "HighLow",
    "Inequality",
    "Known",
    "Metric",
    "Pairwise",
    "PairwisePolicy",
    "PerValue",
    "Policy",
    "PosteriorBound",
    "Prior",
    "Product",
    "Secret",
    "SecretPair",
    "TightestConstraint",
    "Uniform",
    "describe",
    "disclosure_warnings",
    "implies",
    "load_policy",
    "policy_from_dict",
    "posterior_bounds",
    "save_policy",
    "strictest",
    "structure_of",
]


# Used by other packages of Sfumato; not part of the public interface.
from sfumato.policy.base import UNCONSTRAINED as UNCONSTRAINED
from sfumato.policy.confidence import widest as widest
from sfumato.policy.epsilon_matrix import (
    INFINITE_CODE as INFINITE_CODE,
    LARGEST_DENSE as LARGEST_DENSE,
)
from sfumato.policy.pairwise import representatives as representatives
from sfumato.policy.prior import log_rounded_up as log_rounded_up, read_distribution as read_distribution
from sfumato.policy.secret import on_pairs as on_pairs
