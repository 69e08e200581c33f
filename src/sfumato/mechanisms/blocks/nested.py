"""What the mechanisms for blocks at two levels share: a value is hidden well in its block, its block less so.

The policy is ``Blocks(domain, blocks, epsilon, across)`` with epsilon < across, both finite. A report is a bitmap of
k + B bits: bit i for value i in domain order, bit k + j for block j.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.policy import INFINITE_CODE, Blocks, PairwisePolicy, Policy, representatives

__all__ = ["NestedMechanism"]

#: A report, and the likelihoods of all values for it up to a common factor.
Column = tuple[int, list[Fraction]]


class NestedMechanism(Mechanism):
    """``block_of[x]`` is the number of x's block; blocks are numbered in order of first appearance."""

    epsilon: Epsilon
    across: Epsilon
    block_of: npt.NDArray[np.int64]
    blocks: int

    def _read(self, domain: Domain, blocks: Iterable[Any], epsilon: EpsilonLike, across: EpsilonLike) -> None:
        subject = type(self).__name__
        self.domain = checked_domain(subject, domain)
        self.epsilon = Epsilon(epsilon, subject=subject)
        self.across = Epsilon(across, subject=subject, parameter="across")
        if self.across.is_infinite:
            raise InvalidInput(subject, "across", "be finite (else blocks are known, and need no hiding)", across)
        if self.epsilon >= self.across:
            raise InvalidInput(
                subject, "epsilon", f"be below across = {self.across} (else blocks need no rule)", epsilon
            )
        self.block_of = Blocks(domain, blocks, self.epsilon, self.across).block_of
        self.block_of.setflags(write=False)
        self.blocks = int(self.block_of.max()) + 1
        if self.blocks < 2:
            raise InvalidInput(subject, "blocks", "be at least two (one block is a uniform policy)", self.blocks)
        if self.blocks == len(domain):
            raise InvalidInput(
                subject, "blocks", "have more than one value each (single values are a uniform policy)", self.blocks
            )

    @classmethod
    def for_policy(cls, policy: Blocks) -> Self:
        """The mechanism for a policy; where its blocks have levels of their own, the least of them is kept in all."""
        return cls(policy.domain, policy.block_of, min(policy.epsilons), policy.across)  # type: ignore[call-arg]

    # -- audits of large domains ---------------------------------------------------------------------------

    def worst_columns(self, policy: Policy) -> Iterator[Column] | None:
        """The reports that can be worst for a policy, with the likelihoods; None if these are not known to be few.

        Likelihoods depend on the report's bits for the value and for its block alone. So all pairs of values of one
        block meet the same ratios, and all pairs of different blocks do: the pair that the policy binds closest
        stands for all of its kind.
        """
        return self._against_pairs(policy) if isinstance(policy, PairwisePolicy) else None

    def _against_pairs(self, policy: PairwisePolicy) -> Iterator[Column]:
        indices = representatives(policy.classes(), self.block_of)
        codes = policy.epsilons_on(indices).codes.copy()
        np.fill_diagonal(codes, INFINITE_CODE)
        same = self.block_of[indices][:, None] == self.block_of[indices]
        for kind in (same, ~same):
            bound = np.where(kind, codes, INFINITE_CODE)
            x, other = divmod(int(bound.argmin()), len(indices))
            if bound[x, other] < INFINITE_CODE:
                for report in self.separating(int(indices[x]), int(indices[other])):
                    yield report, self.column(report)

    @abstractmethod
    def separating(self, x: int, other: int) -> Iterator[int]:
        """Reports among which the ratio of the likelihoods of x and of another value is greatest."""

    @abstractmethod
    def column(self, report: int) -> list[Fraction]:
        """The likelihood of every value, up to a common factor."""

    def bitmap(self, values: Iterable[int], blocks: Iterable[int]) -> int:
        """The report with the bits of these values and blocks set."""
        size = len(self.domain)
        return sum(1 << x for x in values) | sum(1 << size + block for block in blocks)

    # -- the spec ------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        return {"blocks": self.block_of.tolist(), "epsilon": str(self.epsilon), "across": str(self.across)}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> Self:
        return cls(domain, **parameters)  # type: ignore[call-arg]
