"""The mixtures for a policy whose reports may reveal the block of a value (Acharya et al. 2020, Section 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato._core import INFINITE, Epsilon
from sfumato.domain import Domain
from sfumato.errors import Description, InvalidInput, NoMechanism
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.systems.designs.choice import best_design
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import Blocks

__all__ = ["best_mixtures"]

#: Mechanisms that a block may have, by short name; each takes the values, the level and the maximum number of outputs.
_INNER: dict[str, Callable[[Domain, Epsilon, float], Mixture]] = {
    "rr": lambda domain, epsilon, _: RandomizedResponse(domain, epsilon),
    "subset": lambda domain, epsilon, _: SubsetSelection(domain, epsilon),
    "hadamard": lambda domain, epsilon, _: HadamardResponse(domain, epsilon),
    "cyclic": lambda domain, epsilon, most: CyclicDesign(
        domain, epsilon, design=best_design(len(domain), epsilon, max_outputs=most).document()
    ),
}


def best_mixtures(policy: Blocks, inner: str | None, max_bits: int | None) -> list[list[Mixture]]:
    """Return the mixtures of least risk for all blocks, for each way to number the reports of all blocks."""
    if not policy.across.is_infinite:
        must = "have an infinite level across blocks"
        hint = "For a finite level across blocks, use NestedCyclic or ComposedSubsets."
        raise InvalidInput("BlockMechanism", "policy", must, Description(f"across = {policy.across}"), hint=hint)
    if inner is not None and inner not in _INNER:
        raise InvalidInput("BlockMechanism", "inner", f"be one of {', '.join(_INNER)}", inner)
    blocks = list(zip(np.bincount(policy.block_of).tolist(), policy.epsilons, strict=True))
    names, options = list(_INNER) if inner is None else [inner], list[list[Mixture]]()
    for limit in _limits(policy, max_bits):
        try:
            best = {block: _best(*block, names, limit) for block in dict.fromkeys(blocks)}
        except NoMechanism as error:  # another way to number the reports may leave more outputs to a block
            refusal = error
        else:
            options.append([best[block] for block in blocks])
    if not options:
        raise refusal
    return options


@dataclass(frozen=True)
class _Limit:
    """Limit on the report of a block of ``values`` values: a number of outputs, and whether it must be an index."""

    outputs: Callable[[int], float]
    only_index: bool = False

    def allows(self, part: Mixture) -> bool:
        """Return whether the reports of a block's mechanism obey the limit."""
        outputs = 1 << part.bits if not part.report_format.is_histogram else part.outputs
        return outputs <= self.outputs(len(part.domain)) and (part.report_format.is_histogram or not self.only_index)


def _limits(policy: Blocks, max_bits: int | None) -> list[_Limit]:
    """Return the limits on the parts, for each way to number the reports of all blocks."""
    if max_bits is None:
        return [_Limit(lambda _: math.inf)]
    # Indices are numbered through all blocks, so each block has a share of them. Otherwise the block has its own bits.
    blocks, values = len(policy.epsilons), len(policy.domain)
    max_bits = min(max_bits, 2 * values + 64)  # no report is longer, and 2^max_bits takes memory
    of_part = 1 << max(max_bits - (blocks - 1).bit_length(), 0)
    return [_Limit(lambda size: (size << max_bits) // values, only_index=True), _Limit(lambda _: of_part)]


def _best(size: int, epsilon: Epsilon, names: Sequence[str], limit: _Limit) -> Mixture:
    """Return the mechanism of least risk for a block, among those within the limit if there are any."""
    domain = Domain.range(size)
    if size == 1:
        return RandomizedResponse(domain, INFINITE)  # a single value needs no noise
    candidates: list[Mixture] = []
    for name in names:
        try:
            candidates.append(_INNER[name](domain, epsilon, limit.outputs(size)))
        except NoMechanism:  # no cyclic design is short enough
            if len(names) == 1:
                raise
    fitting = [part for part in candidates if limit.allows(part)]
    if not fitting:
        return min(candidates, key=lambda part: part.bits)
    return min(fitting, key=lambda part: (part.risk(1), part.bits))
