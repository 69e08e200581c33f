"""Which mechanisms suit a policy, by their short names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato._core import INFINITE, ZERO, Epsilon
from sfumato.domain import Domain
from sfumato.mechanisms import (
    MOST_BLOCKS,
    BinaryOptimal,
    BlockMechanism,
    ComposedSubsets,
    ConditionalReporting,
    ConditionalUnary,
    HadamardResponse,
    HighLowHadamard,
    HighLowSubset,
    IndependentReporting,
    Mechanism,
    NestedSubsets,
    PriorBinary,
    PriorSymmetric,
    RandomizedResponse,
    SecretRandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
    best_exponential,
    is_too_large,
    known_response,
    offered_sizes,
    prior_hadamard,
    prior_response,
    prior_subset,
    prior_table,
)
from sfumato.policy import (
    AtLeast,
    Blocks,
    ChiSquare,
    HighLow,
    Known,
    PairwisePolicy,
    Policy,
    Prior,
    Secret,
    Uniform,
    structure_of,
)

__all__ = ["Candidate", "candidates", "most_outputs", "safe_epsilon"]

#: Tables for distances are offered up to this many values: making one takes k³ steps, and its spec k² integers.
_LARGEST_TABLE = 512
#: Tables for a uniform prior are offered up to this many values: above, subsets lose little, and specs become long.
_LARGEST_PRIOR_TABLE = 128
#: Processor time in seconds to make the two exact tables for distances, for each pair of values…
_ENTRY_SECONDS = 3e-5
#: …that for any distribution of a secret…
_SECRET_SECONDS = 8e-6
#: …and to find budgets over a confidence set and round the table: at least, and for each cell…
_BUDGET_SECONDS = (0.5, 0.05)
#: …and where two outputs are held against each other, for each two of each two secrets.
_JOINT_SECONDS = 3e-4


@dataclass(frozen=True)
class Candidate:
    """How to build a mechanism, what decoding its reports costs for k values, and whether it is classical ε-LDP.

    One that is not ``compared`` has the law of another candidate, and is built only where its name is given.
    ``seconds``: about how much processor time it takes to build, where that may matter.
    """

    build: Callable[[], Mechanism]
    decoding: str
    classical: bool = False
    seconds: float = 0.0
    compared: bool = True


_CLASSICAL: dict[str, tuple[Callable[[Domain, Epsilon], Mechanism], str]] = {
    "rr": (RandomizedResponse, "k"),
    "unary": (UnaryEncoding, "k per report"),
    "unary-optimized": (partial(UnaryEncoding, optimized=True), "k per report"),
    "subset": (SubsetSelection, "k per report"),
    "hadamard": (HadamardResponse, "k log k"),
}


def candidates(policy: Policy, max_bits: int | None = None, utility: str = "estimation") -> dict[str, Candidate]:
    """Every mechanism here that obeys the policy: classical ones at the safe epsilon, and those for its structure.

    A matrix of epsilons that is really one level, sensitive values or blocks is treated as such.
    """
    epsilon = safe_epsilon(policy)
    found = {
        name: Candidate(partial(build, policy.domain, epsilon), decoding, classical=True)
        for name, (build, decoding) in _CLASSICAL.items()
    }
    if isinstance(policy, Prior) and len(policy.domain) == 2:
        found["prior-binary"] = Candidate(partial(PriorBinary.for_policy, policy), "k")
        if policy.side == "both":
            found["prior-symmetric"] = Candidate(partial(PriorSymmetric.for_policy, policy), "k")
    elif isinstance(policy, Prior):
        found |= _for_prior(policy, max_bits)
    if isinstance(policy, Secret) and len(policy.domain) <= _LARGEST_TABLE:
        found |= _for_secret(policy, utility)
    simplest = structure_of(policy)
    if not isinstance(simplest, PairwisePolicy):
        return found
    if len(simplest.domain) == 2:
        # Two values at one level: the law of randomized response.
        other = not isinstance(simplest, Uniform)
        found["binary"] = Candidate(partial(BinaryOptimal.for_policy, simplest), "k", compared=other)
    if isinstance(simplest, Uniform):
        return found
    if isinstance(simplest, HighLow):
        kinds: dict[str, tuple[Callable[..., Mechanism], str]] = {
            "high-low-subset": (HighLowSubset, "s per report"),
            "high-low-hadamard": (HighLowHadamard, "k + s log s"),
            "uo-rr": (UtilityOptimizedRR, "k"),
            "uo-rappor": (UtilityOptimizedRappor, "k per report"),
        }
        for name, (kind, decoding) in kinds.items():
            found[name] = Candidate(partial(kind, simplest.domain, simplest.sensitive, simplest.epsilon), decoding)
    elif isinstance(simplest, Blocks) and simplest.across.is_infinite:
        found["block"] = Candidate(partial(BlockMechanism.for_policy, simplest, max_bits=max_bits), "block per report")
        for inner, decoding in (("rr", "k"), ("subset", "block per report"), ("hadamard", "k log k")):
            found[f"block-{inner}"] = Candidate(partial(BlockMechanism.for_policy, simplest, inner), decoding)
    elif isinstance(simplest, Blocks) and min(simplest.epsilons) < simplest.across:
        sizes = np.bincount(simplest.block_of)
        if sizes.min() == sizes.max() > 1:
            found["nested"] = Candidate(partial(NestedSubsets.for_policy, simplest), "k per report")
        if len(sizes) <= MOST_BLOCKS:
            found["composed"] = Candidate(partial(ComposedSubsets.for_policy, simplest), "k per report")
    elif 2 < len(simplest.domain) <= _LARGEST_TABLE and not simplest.greatest_effective[0].is_infinite:
        seconds = len(simplest.domain) ** 2 * _ENTRY_SECONDS
        found["exponential"] = Candidate(partial(best_exponential, simplest), "k²", seconds=seconds)
    return found


def _for_prior(policy: Prior, max_bits: int | None) -> dict[str, Candidate]:
    """Mechanisms at the greatest ε at which their own law obeys a prior over more than two values."""
    found = {
        "prior-rr": Candidate(partial(prior_response, policy), "k"),
        "prior-subset": Candidate(partial(prior_subset, policy), "k per report"),
        "prior-hadamard": Candidate(partial(prior_hadamard, policy), "k log k"),
    }
    if policy.is_uniform and len(policy.domain) <= _LARGEST_PRIOR_TABLE:
        found["prior-table"] = Candidate(partial(prior_table, policy, most_outputs(max_bits)), "k²")
    return found


def most_outputs(max_bits: int | None) -> int | None:
    """Return how many outputs reports of at most this many bits can number; no table comes near 2^64."""
    return None if max_bits is None or max_bits >= 64 else 1 << max_bits


def _for_secret(policy: Secret, utility: str) -> dict[str, Candidate]:
    build = partial(SecretRandomizedResponse, policy.domain, policy.secret, policy.epsilon)
    found = {"secret-rr": Candidate(build, "k²", seconds=_SECRET_SECONDS * len(policy.domain) ** 2)}
    if isinstance(policy.distributions, (AtLeast, Known)):
        found["known-rr"] = Candidate(partial(known_response, policy), "k")
    tuned = utility if utility == "mutual-information" else "estimation"
    if isinstance(policy.distributions, ChiSquare):
        kinds: dict[str, Callable[..., Mechanism]] = {
            "independent": IndependentReporting.for_policy,
            "conditional-rr": ConditionalReporting.for_policy,
            "conditional-unary": ConditionalUnary.for_policy,
        }
        least, per_cell = _BUDGET_SECONDS
        for name, for_policy in kinds.items():
            seconds = least + per_cell * len(policy.domain)
            if name == "conditional-unary":
                seconds = _unary_seconds(policy, seconds)
            found[name] = Candidate(partial(for_policy, policy, utility=tuned), "k²", seconds=seconds)
    return found


def _unary_seconds(policy: Secret, seconds: float) -> float:
    """Estimate the time to make a conditional unary table; one that is too large is refused at once."""
    secrets, others = policy.cells.shape
    if is_too_large(secrets, others):
        return 0.0
    sets = max(math.comb(others, size) for size in offered_sizes(others))
    return seconds + _JOINT_SECONDS * secrets * (secrets - 1) * sets**2


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
