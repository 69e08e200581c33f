"""What the experiments with block-structured privacy share: mechanisms, truths, and one run's error."""

from __future__ import annotations

import numpy as np

from sfumato._core import EpsilonLike, Floats, Integers
from sfumato.domain import Domain
from sfumato.mechanisms import BlockMechanism, HadamardResponse, Mechanism, SubsetSelection
from sfumato.policy import Blocks

__all__ = ["best", "published", "total_variation"]


def published(domain: Domain, labels: Integers | None, epsilon: EpsilonLike) -> Mechanism:
    """Hadamard response in each block (Acharya et al. 2020, section 6); without labels all values are one block.

    The least power of two above the size of a block is the number of its columns; at ε = 1 nothing is gained by
    several smaller matrices in a block.
    """
    if labels is None:
        return HadamardResponse(domain, epsilon, block_size=1 << len(domain).bit_length())
    return BlockMechanism.for_policy(Blocks(domain, labels, epsilon), "hadamard")


def best(domain: Domain, labels: Integers | None, epsilon: EpsilonLike) -> Mechanism:
    """What ``sf.design`` takes: subset selection, in each block where there are any."""
    if labels is None:
        return SubsetSelection(domain, epsilon)
    return BlockMechanism.for_policy(Blocks(domain, labels, epsilon))


def total_variation(first: Floats, second: Floats) -> float:
    """Half the l1 distance."""
    return float(np.abs(first - second).sum()) / 2
