"""The family of nested subsets: subset selection of blocks, and of values within each block."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.nested_subsets.estimator import NestedSubsetsEstimator
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.nested_subsets.report_format import NestedFormat
from sfumato.mechanisms.registry import Family
from sfumato.policy import Blocks

__all__ = ["NESTED_SUBSETS", "NestedSubsets"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield nested subsets for blocks of one size with two finite levels."""
    policy = request.structure
    if isinstance(policy, Blocks) and not policy.across.is_infinite and min(policy.epsilons) < policy.across:
        sizes = np.bincount(policy.block_of)
        if sizes.min() == sizes.max() > 1:
            yield "nested", Candidate(partial(NestedSubsets.for_policy, policy), "k per report")


NESTED_SUBSETS = Family(
    mechanisms=(NestedSubsets,),
    estimator=NestedSubsetsEstimator,
    report_format=NestedFormat,
    kernel="sfumato.mechanisms.nested_subsets.kernel:build",
    candidates=_candidates,
    in_browser=True,
    examples="sfumato.mechanisms.nested_subsets.examples:examples",
)
