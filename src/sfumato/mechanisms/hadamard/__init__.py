"""The family of Hadamard response."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.hadamard.estimator import HadamardEstimator
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.registry import Family

__all__ = ["HADAMARD", "HadamardResponse"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield Hadamard response for every policy."""
    build = partial(HadamardResponse, request.policy.domain, request.epsilon)
    yield "hadamard", Candidate(build, "k log k", classical=True)


HADAMARD = Family(
    mechanisms=(HadamardResponse,),
    estimator=HadamardEstimator,
    kernel="sfumato.mechanisms.hadamard.kernel:build",
    candidates=_candidates,
    in_browser=True,
    examples="sfumato.mechanisms.hadamard.examples:examples",
    memory="sfumato.mechanisms.memoized.forms:MIXTURE",
)
