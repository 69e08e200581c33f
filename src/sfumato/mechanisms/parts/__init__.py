"""The family of mechanisms with parts, for blocks and for sensitive values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.parts.count_law import draw_counts
from sfumato.mechanisms.parts.estimator import parts_estimator
from sfumato.mechanisms.parts.high_low import HighLowCyclic, HighLowHadamard, HighLowSubset, UtilityOptimizedRR
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.parts.report_format import parts_format
from sfumato.mechanisms.parts.sizes import best_high_low_mixture
from sfumato.mechanisms.registry import Family
from sfumato.policy import Blocks, HighLow

__all__ = [
    "PARTS",
    "BlockMechanism",
    "HighLowCyclic",
    "HighLowHadamard",
    "HighLowSubset",
    "Parts",
    "UtilityOptimizedRR",
]

#: The name of parts without unprotected values.
BlockMechanism = Parts


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield the mechanisms for a high-low policy, and for blocks that reports may reveal."""
    policy = request.structure
    if isinstance(policy, HighLow):
        yield from _high_low_candidates(request, policy)
    elif isinstance(policy, Blocks) and policy.across.is_infinite:
        yield from _block_candidates(request, policy)


def _high_low_candidates(request: CandidateRequest, policy: HighLow) -> Iterator[tuple[str, Candidate]]:
    """Yield the mechanisms for sensitive and harmless values."""
    arguments = policy.domain, policy.sensitive, policy.epsilon
    size = _worst_case_size(policy) if request.utility == "worst-estimation" else None
    yield "high-low-subset", Candidate(partial(HighLowSubset, *arguments, size), "s per report")
    yield "high-low-hadamard", Candidate(partial(HighLowHadamard, *arguments), "k + s log s")
    if len(policy.sensitive) > 1:
        build = partial(HighLowCyclic, *arguments, max_bits=request.preferred_bits)
        # If bitmaps are short too, high-low-subset has at most the risk of any cyclic design.
        bitmap = len(policy.sensitive) + (len(policy.domain) - len(policy.sensitive)).bit_length()
        yield "high-low-cyclic", Candidate(build, "k + s log s", compared=not request.is_short(bitmap))
    yield "uo-rr", Candidate(partial(UtilityOptimizedRR, *arguments), "k")


def _worst_case_size(policy: HighLow) -> int | None:
    """Return the subset size nearest to the best mixture for the worst case; None if no value is harmless."""
    sensitive, size = len(policy.sensitive), len(policy.domain)
    if sensitive == size:
        return None
    mixture = best_high_low_mixture(sensitive, size - sensitive, policy.epsilon)
    return min(round(mixture.size + mixture.weight), max(sensitive - 1, 1))


def _block_candidates(request: CandidateRequest, policy: Blocks) -> Iterator[tuple[str, Candidate]]:
    """Yield the mechanisms for blocks that reports may reveal."""
    yield "block", Candidate(partial(Parts.for_policy, policy, max_bits=request.preferred_bits), "as its parts")
    for inner, decoding in (("rr", "k"), ("subset", "block per report"), ("hadamard", "k log k")):
        yield f"block-{inner}", Candidate(partial(Parts.for_policy, policy, inner), decoding)
    cyclic = partial(Parts.for_policy, policy, "cyclic", max_bits=request.preferred_bits)
    # If bitmaps are short too, block-subset has at most the risk of any cyclic design.
    bitmap = int(np.bincount(policy.block_of).max()) + (len(policy.epsilons) - 1).bit_length()
    yield "block-cyclic", Candidate(cyclic, "k log k", compared=not request.is_short(bitmap))


PARTS = Family(
    mechanisms=(Parts,),
    estimator=parts_estimator,
    report_format=parts_format,
    kernel="sfumato.mechanisms.parts.kernel:build",
    candidates=_candidates,
    count_law=draw_counts,
    in_browser=True,
    memory="sfumato.mechanisms.parts.memory:PARTS",
)
