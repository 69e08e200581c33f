"""The family of nested cyclic designs, for blocks at two levels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.nested_cyclic.choice import most_patterns
from sfumato.mechanisms.nested_cyclic.estimator import NestedCyclicEstimator
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic
from sfumato.mechanisms.registry import Family
from sfumato.policy import Blocks

__all__ = ["NESTED_CYCLIC", "NestedCyclic"]

#: Approximate time to derive and transform the patterns, per output.
_SECONDS_PER_OUTPUT = 5e-7


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield a nested cyclic design for blocks with two finite levels."""
    policy = request.structure
    if not isinstance(policy, Blocks) or policy.across.is_infinite or min(policy.epsilons) >= policy.across:
        return
    sizes = np.bincount(policy.block_of)
    places = len(sizes) * int(sizes.max())
    patterns = most_patterns(len(policy.domain), places, request.max_outputs)
    if patterns and len(sizes) < len(policy.domain):
        build = partial(NestedCyclic.for_policy, policy, max_bits=request.max_bits)
        seconds = patterns * places * _SECONDS_PER_OUTPUT
        yield "nested-cyclic", Candidate(build, "k log k", seconds=seconds)


NESTED_CYCLIC = Family(
    mechanisms=(NestedCyclic,),
    estimator=NestedCyclicEstimator,
    kernel="sfumato.mechanisms.nested_cyclic.kernel:build",
    candidates=_candidates,
    in_browser=True,
)
