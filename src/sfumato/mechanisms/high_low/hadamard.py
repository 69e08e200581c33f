"""Hadamard response among the sensitive values, harmless ones revealed (context-aware LDP §5)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from sfumato._core import Epsilon, EpsilonLike
from sfumato.domain import Domain
from sfumato.mechanisms.hadamard.estimator import HadamardEstimator
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.policy import HighLow

__all__ = ["HighLowHadamard"]


class HighLowHadamard(HighLowMechanism):
    """Outputs: the columns of the Hadamard response of the sensitive values, and every harmless value.

    The published mechanism has one block of S columns, the least power of two above s, which
    ``HighLowHadamard.published`` builds; row 0, all ones, is skipped (the printed channel does not, and its rows do not
    sum to one). Unless given, ``block_size`` is the one of least exact risk at the uniform distribution: at large ε
    several smaller blocks are better. About log k + 1 bits a report.
    """

    name = "high-low-hadamard"

    def __init__(
        self,
        domain: Domain,
        sensitive: Iterable[object],
        epsilon: EpsilonLike,
        *,
        block_size: int | None = None,
        blocks: int | None = None,
        threshold: int | str | None = None,
    ) -> None:
        policy = HighLow(domain, sensitive, epsilon)
        count = len(policy.sensitive)
        if block_size is None:
            block_size = _best_block_size(count, len(domain) - count, policy.epsilon)
        mixture = HadamardResponse(
            Domain.range(count), policy.epsilon, block_size=block_size, blocks=blocks, threshold=threshold
        )
        self._hide(policy, mixture)

    @classmethod
    def published(cls, domain: Domain, sensitive: Iterable[object], epsilon: EpsilonLike) -> HighLowHadamard:
        """The mechanism of the paper: one block of S columns, S the least power of two above s."""
        listed = list(sensitive)
        return cls(domain, listed, epsilon, block_size=1 << len(listed).bit_length())

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> HighLowHadamard:
        sensitive, others = cls._read_sensitive(domain, parameters)
        return cls(domain, sensitive, **others)


def _best_block_size(sensitive: int, harmless: int, epsilon: Epsilon) -> int:
    """The power of two with the least exact risk at the uniform distribution."""

    def risk(block_size: int) -> tuple[float, int]:
        mixture = HadamardResponse(Domain.range(sensitive), epsilon, block_size=block_size)
        if mixture.threshold == 0:
            return math.inf, mixture.blocks
        estimator = HadamardEstimator(mixture)
        total = float(estimator.second_moments().sum()) + harmless * estimator.unprotected_second_moment()
        return total, mixture.blocks

    return min((1 << bits for bits in range(1, sensitive.bit_length() + 1)), key=risk)
