"""The family of unary encoding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.estimators.inclusion import Inclusion, InclusionEstimator
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.reports.bitmap import BitmapFormat
from sfumato.mechanisms.unary.count_law import draw_counts
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

__all__ = ["UNARY", "UnaryEncoding"]


def _estimator(mechanism: UnaryEncoding) -> InclusionEstimator:
    """Return the estimator for independent bits."""
    return InclusionEstimator(mechanism, Inclusion.of_bits(*mechanism.bit_probabilities))


def _report_format(mechanism: UnaryEncoding) -> BitmapFormat:
    """Return the bitmap format with one bit per value."""
    return BitmapFormat(len(mechanism.domain))


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield symmetric and optimized unary encoding for every policy."""
    build = partial(UnaryEncoding, request.policy.domain, request.epsilon)
    yield "unary", Candidate(build, "k per report", classical=True)
    yield "unary-optimized", Candidate(partial(build, optimized=True), "k per report", classical=True)


UNARY = Family(
    mechanisms=(UnaryEncoding,),
    estimator=_estimator,
    report_format=_report_format,
    kernel="sfumato.mechanisms.unary.kernel:build",
    candidates=_candidates,
    count_law=draw_counts,
    in_browser=True,
)
