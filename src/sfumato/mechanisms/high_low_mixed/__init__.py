"""The family of subset selection with two sizes, for sensitive and harmless values."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.high_low_mixed.count_law import draw_counts
from sfumato.mechanisms.high_low_mixed.estimator import HighLowMixedEstimator
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.parts.report_format import parts_format
from sfumato.mechanisms.parts.sizes import best_high_low_mixture
from sfumato.mechanisms.registry import Family
from sfumato.policy import HighLow

__all__ = ["HIGH_LOW_MIXED", "HighLowMixedSubsets"]


#: Least probability of either size at which two sizes are compared for the prior; below it they gain hardly 0.1%.
_LEAST_PROBABILITY = 0.1


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield two sizes for a high-low policy, compared if they are better than one size.

    For the worst case they suit the least favourable share of the sensitive values, otherwise equally likely values.
    """
    policy = request.structure
    if not isinstance(policy, HighLow):
        return
    sensitive = len(policy.sensitive)
    harmless = len(policy.domain) - sensitive
    if sensitive > 1 and harmless:
        is_worst_case = request.utility == "worst-estimation"
        share = None if is_worst_case else Fraction(sensitive, sensitive + harmless)
        weight = best_high_low_mixture(sensitive, harmless, policy.epsilon, share).weight
        is_better = weight > 0 if is_worst_case else _LEAST_PROBABILITY <= weight <= 1 - _LEAST_PROBABILITY
        compared = is_better and request.utility in ("estimation", "worst-estimation")
        build = partial(HighLowMixedSubsets, policy.domain, policy.sensitive, policy.epsilon, share=share)
        yield "high-low-mixed", Candidate(build, "s per report", compared=compared)


HIGH_LOW_MIXED = Family(
    mechanisms=(HighLowMixedSubsets,),
    estimator=HighLowMixedEstimator,
    report_format=parts_format,
    kernel="sfumato.mechanisms.parts.kernel:build_choice",
    candidates=_candidates,
    count_law=draw_counts,
    in_browser=True,
)
