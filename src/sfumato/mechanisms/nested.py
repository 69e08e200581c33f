"""Base class of mechanisms for blocks at two levels: values differ by ε within a block and by more across blocks.

The policy is ``Blocks(domain, blocks, epsilon, across)`` with epsilon < across, both finite. Subsets are reported as
bitmaps of k + B bits: bit i for value i in domain order, bit k + j for block j.
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
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.policy import INFINITE_CODE, Blocks, PairwisePolicy, Policy, representatives

__all__ = ["NestedMechanism"]

#: A report with the likelihoods of all values for it, up to a common factor.
Column = tuple[int, list[Fraction]]


class NestedMechanism(Mechanism):
    """Base class of mechanisms for blocks at two levels.

    ``block_of[x]`` is the number of x's block; blocks are numbered in order of first appearance.
    """

    epsilon: Epsilon
    across: Epsilon
    block_of: npt.NDArray[np.int64]
    blocks: int

    def _read(self, domain: Domain, blocks: Iterable[Any], epsilon: EpsilonLike, across: EpsilonLike) -> None:
        """Check and store the domain, the blocks and the two levels."""
        subject = type(self).__name__
        self.domain = checked_domain(subject, domain)
        self.epsilon = Epsilon(epsilon, subject=subject)
        self.across = Epsilon(across, subject=subject, parameter="across")
        if self.across.is_infinite:
            hint = "If reports may reveal the block, use BlockMechanism."
            raise InvalidInput(subject, "across", "be finite", across, hint=hint)
        if self.epsilon >= self.across:
            hint = "If all pairs of values have the same level, use SubsetSelection."
            raise InvalidInput(subject, "epsilon", f"be below across = {self.across}", epsilon, hint=hint)
        self.block_of = Blocks(domain, blocks, self.epsilon, self.across).block_of
        self.block_of.setflags(write=False)
        self.blocks = int(self.block_of.max()) + 1
        if self.blocks < 2:
            hint = "For a single block, use SubsetSelection."
            raise InvalidInput(subject, "the number of blocks", "be at least 2", self.blocks, hint=hint)
        if self.blocks == len(domain):
            must, got = "include a block of several values", Description(f"{self.blocks} blocks of one value each")
            hint = "If every value is a block, use SubsetSelection with epsilon = across."
            raise InvalidInput(subject, "blocks", must, got, hint=hint)

    @classmethod
    def for_policy(cls, policy: Blocks, **options: Any) -> Self:
        """Return the mechanism for a policy; if blocks have different levels, the smallest holds in all blocks."""
        return cls(policy.domain, policy.block_of, min(policy.epsilons), policy.across, **options)  # type: ignore[call-arg]

    # -- audits of large domains ---------------------------------------------------------------------------

    def worst_columns(self, policy: Policy) -> Iterator[Column] | None:
        """Return a few reports that include the worst of all reports for a policy, or None.

        All pairs of values of one block have the same greatest ratio of likelihoods, and so have all pairs of values of
        different blocks. The pair that the policy binds closest therefore represents all pairs of its kind.
        """
        return self._against_pairs(policy) if isinstance(policy, PairwisePolicy) else None

    def _against_pairs(self, policy: PairwisePolicy) -> Iterator[Column]:
        """Yield the reports that can be worst for a policy on pairs of values."""
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
        """Yield reports that include one where the likelihood ratio of x to another value is greatest."""

    @abstractmethod
    def column(self, report: int) -> list[Fraction]:
        """Return the likelihood of every value for a report, up to a common factor."""

    def bitmap(self, values: Iterable[int], blocks: Iterable[int]) -> int:
        """Return the bitmap in which the bits of these values and blocks are set."""
        size = len(self.domain)
        return sum(1 << x for x in values) | sum(1 << size + block for block in blocks)

    # -- the spec ------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        return {"blocks": self.block_of.tolist(), "epsilon": str(self.epsilon), "across": str(self.across)}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> Self:
        return cls(domain, **parameters)  # type: ignore[call-arg]
