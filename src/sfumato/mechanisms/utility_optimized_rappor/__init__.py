"""The family of utility-optimized RAPPOR: one bit per value, with harmless values revealed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.utility_optimized_rappor.count_law import draw_counts
from sfumato.mechanisms.utility_optimized_rappor.estimator import UtilityOptimizedRapporEstimator
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor
from sfumato.mechanisms.utility_optimized_rappor.report_format import UtilityOptimizedRapporFormat
from sfumato.policy import HighLow

__all__ = ["UTILITY_OPTIMIZED_RAPPOR", "UtilityOptimizedRappor"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield utility-optimized RAPPOR for a high-low policy."""
    policy = request.structure
    if isinstance(policy, HighLow):
        build = partial(UtilityOptimizedRappor, policy.domain, policy.sensitive, policy.epsilon)
        yield "uo-rappor", Candidate(build, "k per report")


UTILITY_OPTIMIZED_RAPPOR = Family(
    mechanisms=(UtilityOptimizedRappor,),
    estimator=UtilityOptimizedRapporEstimator,
    report_format=UtilityOptimizedRapporFormat,
    kernel="sfumato.mechanisms.utility_optimized_rappor.kernel:build",
    candidates=_candidates,
    count_law=draw_counts,
    in_browser=True,
    examples="sfumato.mechanisms.utility_optimized_rappor.examples:examples",
)
