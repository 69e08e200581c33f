"""Hadamard response among the sensitive values, with harmless values revealed (Acharya et al. 2020, Section 5)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from sfumato._core import Epsilon, EpsilonLike
from sfumato.domain import Domain
from sfumato.mechanisms.estimators.mixture import MixtureEstimator
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.policy import HighLow

__all__ = ["HighLowHadamard"]


class HighLowHadamard(HighLowMechanism):
    """Hadamard response among the sensitive values, for the policy :class:`HighLow`.

    An output is either a column of a Hadamard matrix with a row per sensitive value, or one harmless value. A sensitive
    value always gives a column. A harmless value is revealed with probability γ, and otherwise gives a uniformly drawn
    column. A report is the index of an output, of about log2 k + 1 bits for k values.

    Parameters
    ----------
    domain
        The values.
    sensitive
        The sensitive values; all others are harmless.
    epsilon
        The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.
    block_size
        The number of columns per block of the matrix, a power of two. By default, it minimizes the expected squared
        error of the estimated frequencies at the uniform distribution. At large ε several small blocks are better than
        one.
    blocks
        The number of blocks; the fewest that hold all sensitive values by default.
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    With probability γ a sensitive value gives a uniformly drawn column of its block where its row is +1, and a harmless
    value gives itself. Otherwise the report is a column drawn uniformly from all blocks. With t = e^ε and B blocks,
    γ = (t-1)/(t-1+2B), rounded down to a multiple of 2^-64, so that ε holds exactly.

    The mechanism of Acharya et al. (2020, "Context-Aware Local Differential Privacy"), built by :meth:`published`, has
    one block of S columns, where S is the least power of two above the number of sensitive values. Row 0, all ones, is
    skipped. Their printed channel (eq. 13) does not skip it, so its rows do not sum to one.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import HighLowHadamard
    >>> illnesses = Domain(["none", "flu", "hiv", "cancer"])
    >>> mechanism = HighLowHadamard(illnesses, ["hiv", "cancer"], "ln 3")
    >>> mechanism.matrix()[0].tolist()  # "none" is harmless: revealed with probability 1/2
    [0.125, 0.125, 0.125, 0.125, 0.5, 0.0]
    >>> mechanism.matrix()[2].tolist()
    [0.375, 0.125, 0.375, 0.125, 0.0, 0.0]
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
        """Build the mechanism of Acharya et al. (2020), which has a single block of columns.

        The number of columns is the least power of two above the number s of sensitive values. The constructor chooses
        the number of columns of least risk instead.

        Parameters
        ----------
        domain
            The values.
        sensitive
            The s sensitive values.
        epsilon
            The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.

        Returns
        -------
        HighLowHadamard
            The mechanism with one block.
        """
        listed = list(sensitive)
        return cls(domain, listed, epsilon, block_size=1 << len(listed).bit_length())

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> HighLowHadamard:
        sensitive, others = cls._read_sensitive(domain, parameters)
        return cls(domain, sensitive, **others)


def _best_block_size(sensitive: int, harmless: int, epsilon: Epsilon) -> int:
    """Return the power of two with the least exact risk at the uniform distribution."""

    def risk(block_size: int) -> tuple[float, int]:
        mixture = HadamardResponse(Domain.range(sensitive), epsilon, block_size=block_size)
        if mixture.threshold == 0:
            return math.inf, mixture.blocks
        estimator = mixture.estimator
        assert isinstance(estimator, MixtureEstimator)
        total = float(estimator.second_moments().sum()) + harmless * estimator.unprotected_second_moment()
        return total, mixture.blocks

    return min((1 << bits for bits in range(1, sensitive.bit_length() + 1)), key=risk)
