"""The family of k-ary randomized response."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.estimators.inclusion import ResponseEstimator
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.registry import Family

__all__ = ["RANDOMIZED_RESPONSE", "RandomizedResponse"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield randomized response for every policy."""
    yield "rr", Candidate(partial(RandomizedResponse, request.policy.domain, request.epsilon), "k", classical=True)


RANDOMIZED_RESPONSE = Family(
    mechanisms=(RandomizedResponse,),
    estimator=ResponseEstimator,
    kernel="sfumato.mechanisms.randomized_response.kernel:build",
    candidates=_candidates,
    in_browser=True,
    examples="sfumato.mechanisms.randomized_response.examples:examples",
    memory="sfumato.mechanisms.memoized.forms:MIXTURE",
)
