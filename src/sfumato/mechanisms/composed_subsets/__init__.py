"""The family of composed subsets: subset selection of values and, independently, of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.composed_subsets.estimator import ComposedSubsetsEstimator
from sfumato.mechanisms.composed_subsets.mechanism import MOST_BLOCKS, ComposedSubsets
from sfumato.mechanisms.composed_subsets.report_format import ComposedFormat
from sfumato.mechanisms.registry import Family
from sfumato.policy import Blocks

__all__ = ["COMPOSED_SUBSETS", "ComposedSubsets"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield composed subsets for blocks with two finite levels."""
    policy = request.structure
    if not isinstance(policy, Blocks) or policy.across.is_infinite or len(policy.epsilons) > MOST_BLOCKS:
        return
    if min(policy.epsilons) < policy.across:
        yield "composed", Candidate(partial(ComposedSubsets.for_policy, policy), "k per report")


COMPOSED_SUBSETS = Family(
    mechanisms=(ComposedSubsets,),
    estimator=ComposedSubsetsEstimator,
    report_format=ComposedFormat,
    kernel="sfumato.mechanisms.composed_subsets.kernel:build",
    candidates=_candidates,
    in_browser=True,
)
