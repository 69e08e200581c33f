"""How block mechanisms divide into a permanent answer and a report about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato._core import ZERO
from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.memoized.forms import at_level
from sfumato.mechanisms.memoized.subsets import SUBSET
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.partitioned.memory import PartitionedForm
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import Blocks, Policy, Uniform, structure_of

__all__ = ["BLOCKS"]


class _BlockForm(PartitionedForm):
    """Mechanisms that reveal the block of a value."""

    def permanent_for(self, single: PartitionedMechanism, lifetime: Policy) -> PartitionedMechanism | None:
        policy = structure_of(lifetime)
        if not isinstance(policy, Blocks) or not policy.across.is_infinite:
            return None
        if not np.array_equal(policy.block_of, single.part_of):
            return None
        parts = [
            SUBSET.permanent_for(part, Uniform(part.domain, level))
            if isinstance(part, SubsetSelection)
            else at_level(part, level)
            for part, level in zip(single.parts, policy.epsilons, strict=True)
            if len(part.domain) > 1
        ]
        return None if None in parts else self._with_parts(single, parts)

    def blank(self, single: PartitionedMechanism, permanent: PartitionedMechanism) -> PartitionedMechanism:  # noqa: ARG002
        return self._with_parts(single, [at_level(part, ZERO) for part in single.parts if len(part.domain) > 1])

    @staticmethod
    def _with_parts(mechanism: PartitionedMechanism, parts: Sequence[Any]) -> BlockMechanism:
        """Return the mechanism with other parts; a block of one value keeps its mechanism, which reveals it."""
        others = iter(parts)
        all_parts = [part if len(part.domain) == 1 else next(others) for part in mechanism.parts]
        return BlockMechanism(mechanism.domain, mechanism.part_of, all_parts)


BLOCKS = _BlockForm()
