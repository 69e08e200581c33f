"""The family of local hashing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.local_hashing.mechanism import LocalHashing
from sfumato.mechanisms.registry import Family

__all__ = ["LOCAL_HASHING", "LocalHashing"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield two buckets, which have the least level of all permanent answers, only if the caller names them."""
    build = partial(LocalHashing, request.policy.domain, request.epsilon)
    yield "local-hashing", Candidate(build, "k²", classical=True, compared=False)


LOCAL_HASHING = Family(
    mechanisms=(LocalHashing,),
    kernel="sfumato.mechanisms.local_hashing.kernel:build",
    candidates=_candidates,
    in_browser=True,
    examples="sfumato.mechanisms.local_hashing.examples:examples",
    memory="sfumato.mechanisms.local_hashing.memory:BUCKETS",
)
