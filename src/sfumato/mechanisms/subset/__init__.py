"""The family of subset selection."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.estimators.inclusion import SetEstimator
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.subset.count_law import draw_counts
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.subset.report_format import SubsetFormat

__all__ = ["SUBSET", "SubsetSelection"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield subset selection for every policy."""
    build = partial(SubsetSelection, request.policy.domain, request.epsilon)
    yield "subset", Candidate(build, "k per report", classical=True)


SUBSET = Family(
    mechanisms=(SubsetSelection,),
    estimator=SetEstimator,
    report_format=SubsetFormat,
    kernel="sfumato.mechanisms.subset.kernel:build",
    candidates=_candidates,
    count_law=draw_counts,
    in_browser=True,
    examples="sfumato.mechanisms.subset.examples:examples",
    memory="sfumato.mechanisms.subset.memory:SUBSET",
)
