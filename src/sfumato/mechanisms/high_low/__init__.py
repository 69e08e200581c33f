"""The family of mechanisms for sensitive and harmless values, built on a mechanism for the sensitive values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.high_low.cyclic import HighLowCyclic
from sfumato.mechanisms.high_low.hadamard import HighLowHadamard
from sfumato.mechanisms.high_low.sizes import best_high_low_mixture
from sfumato.mechanisms.high_low.subset import HighLowSubset, UtilityOptimizedRR
from sfumato.mechanisms.partitioned.count_law import draw_counts
from sfumato.mechanisms.partitioned.estimator import partitioned_estimator
from sfumato.mechanisms.partitioned.report_format import partitioned_format
from sfumato.mechanisms.registry import Family
from sfumato.policy import HighLow

__all__ = ["HIGH_LOW", "HighLowCyclic", "HighLowHadamard", "HighLowSubset", "UtilityOptimizedRR"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield the mechanisms for a high-low policy."""
    policy = request.structure
    if isinstance(policy, HighLow):
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


HIGH_LOW = Family(
    mechanisms=(HighLowSubset, HighLowHadamard, HighLowCyclic),
    estimator=partitioned_estimator,
    report_format=partitioned_format,
    kernel="sfumato.mechanisms.partitioned.kernel:build",
    candidates=_candidates,
    count_law=draw_counts,
    in_browser=True,
    examples="sfumato.mechanisms.high_low.examples:examples",
    memory="sfumato.mechanisms.high_low.memory:HIGH_LOW",
)
