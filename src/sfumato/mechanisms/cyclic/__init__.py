"""The family of cyclic designs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.cyclic.designs import LARGEST_OUTPUTS
from sfumato.mechanisms.cyclic.estimator import CyclicEstimator
from sfumato.mechanisms.cyclic.mechanism import CyclicDesign
from sfumato.mechanisms.registry import Family

__all__ = ["CYCLIC", "CyclicDesign"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield a cyclic design for every policy on two values or more."""
    domain = request.policy.domain
    size = len(domain)
    if 2 <= size < LARGEST_OUTPUTS:
        build = partial(CyclicDesign, domain, request.epsilon, max_bits=request.preferred_bits)
        # If bitmaps are short too, subset selection has at most the risk of any cyclic design.
        yield "cyclic", Candidate(build, "k log k", classical=True, compared=not request.is_short(size))


CYCLIC = Family(
    mechanisms=(CyclicDesign,),
    estimator=CyclicEstimator,
    kernel="sfumato.mechanisms.cyclic.kernel:build",
    candidates=_candidates,
    in_browser=True,
    examples="sfumato.mechanisms.cyclic.examples:examples",
    memory="sfumato.mechanisms.cyclic.memory:CYCLIC",
)
