"""The family of mechanisms within blocks of values, and the base class of nested ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.partitioned.count_law import draw_counts
from sfumato.mechanisms.partitioned.estimator import partitioned_estimator
from sfumato.mechanisms.partitioned.report_format import partitioned_format
from sfumato.mechanisms.registry import Family
from sfumato.policy import Blocks

__all__ = ["BLOCKS", "BlockMechanism"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield block mechanisms for a policy whose reports may reveal the block."""
    policy = request.structure
    if not isinstance(policy, Blocks) or not policy.across.is_infinite:
        return
    best = partial(BlockMechanism.for_policy, policy, max_bits=request.preferred_bits)
    yield "block", Candidate(best, "as its parts")
    for inner, decoding in (("rr", "k"), ("subset", "block per report"), ("hadamard", "k log k")):
        yield f"block-{inner}", Candidate(partial(BlockMechanism.for_policy, policy, inner), decoding)
    cyclic = partial(BlockMechanism.for_policy, policy, "cyclic", max_bits=request.preferred_bits)
    # If bitmaps are short too, block-subset has at most the risk of any cyclic design.
    bitmap = int(np.bincount(policy.block_of).max()) + (len(policy.epsilons) - 1).bit_length()
    yield "block-cyclic", Candidate(cyclic, "k log k", compared=not request.is_short(bitmap))


BLOCKS = Family(
    mechanisms=(BlockMechanism,),
    estimator=partitioned_estimator,
    report_format=partitioned_format,
    kernel="sfumato.mechanisms.partitioned.kernel:build",
    candidates=_candidates,
    count_law=draw_counts,
    in_browser=True,
    examples="sfumato.mechanisms.blocks.examples:examples",
    memory="sfumato.mechanisms.blocks.memory:BLOCKS",
)
