"""Shared parts of the experiments on block-structured privacy: mechanisms and the error of one run."""

from __future__ import annotations

import numpy as np

from sfumato._core import EpsilonLike, Floats, Integers
from sfumato.domain import Domain
from sfumato.mechanisms import BlockMechanism, HadamardResponse, Mechanism, SubsetSelection
from sfumato.policy import Blocks

__all__ = ["best", "published", "total_variation"]


def published(domain: Domain, labels: Integers | None, epsilon: EpsilonLike) -> Mechanism:
    """Return Hadamard response in each block (Acharya et al. 2020, section 6); without labels, in a single block.

    The number of columns is the smallest power of two above the size of a block. At ε = 1, several smaller matrices per
    block gain nothing.
    """
    if labels is None:
        return HadamardResponse(domain, epsilon, block_size=1 << len(domain).bit_length())
    return BlockMechanism.for_policy(Blocks(domain, labels, epsilon), "hadamard")


def best(domain: Domain, labels: Integers | None, epsilon: EpsilonLike) -> Mechanism:
    """Return the mechanism of least risk with reports of any length, per block if there are blocks."""
    if labels is None:
        return SubsetSelection(domain, epsilon)
    return BlockMechanism.for_policy(Blocks(domain, labels, epsilon))


def total_variation(first: Floats, second: Floats) -> float:
    """Return half the l1 distance."""
    return float(np.abs(first - second).sum()) / 2
