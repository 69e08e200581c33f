"""The family of subset selection with two sizes, for sensitive and harmless values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.high_low.sizes import best_high_low_mixture
from sfumato.mechanisms.high_low_mixed.count_law import draw_counts
from sfumato.mechanisms.high_low_mixed.estimator import HighLowMixedEstimator
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.partitioned.report_format import partitioned_format
from sfumato.mechanisms.registry import Family
from sfumato.policy import HighLow

__all__ = ["HIGH_LOW_MIXED", "HighLowMixedSubsets"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield two sizes for a high-low policy, compared for the worst case if they are better than one size."""
    policy = request.structure
    if not isinstance(policy, HighLow):
        return
    sensitive = len(policy.sensitive)
    harmless = len(policy.domain) - sensitive
    if sensitive > 1 and harmless:
        arguments = policy.domain, policy.sensitive, policy.epsilon
        is_worst_case = request.utility == "worst-estimation"
        compared = is_worst_case and best_high_low_mixture(sensitive, harmless, policy.epsilon).weight > 0
        yield "high-low-mixed", Candidate(partial(HighLowMixedSubsets, *arguments), "s per report", compared=compared)


HIGH_LOW_MIXED = Family(
    mechanisms=(HighLowMixedSubsets,),
    estimator=HighLowMixedEstimator,
    report_format=partitioned_format,
    kernel="sfumato.mechanisms.high_low_mixed.kernel:build",
    candidates=_candidates,
    count_law=draw_counts,
    in_browser=True,
    examples="sfumato.mechanisms.high_low_mixed.examples:examples",
)
