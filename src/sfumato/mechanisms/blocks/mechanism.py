"""Mechanisms that reveal the block and hide the value within it (Acharya et al. 2020, Section 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, Epsilon, quantity
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import Description, InvalidInput, NoMechanism
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.part_documents import part_documents, read_parts
from sfumato.mechanisms.partitioned.mechanism import KINDS, PartitionedMechanism
from sfumato.mechanisms.systems.designs.choice import best_design
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import Blocks

__all__ = ["INNER", "BlockMechanism"]

#: Mechanisms that a block may have, by short name; each takes the values, the level and the maximum number of outputs.
INNER: dict[str, Callable[[Domain, Epsilon, float], Mixture]] = {
    "rr": lambda domain, epsilon, _: RandomizedResponse(domain, epsilon),
    "subset": lambda domain, epsilon, _: SubsetSelection(domain, epsilon),
    "hadamard": lambda domain, epsilon, _: HadamardResponse(domain, epsilon),
    "cyclic": lambda domain, epsilon, most: CyclicDesign(
        domain, epsilon, design=best_design(len(domain), epsilon, max_outputs=most).document()
    ),
}


class BlockMechanism(PartitionedMechanism):
    """Mechanism that reveals the block of a value, and randomizes the value within the block.

    It is for a :class:`Blocks` policy whose level across blocks is infinite. Each block has a separate mechanism over
    the values of the block. Reports of all blocks have the same length. A block of a single value needs no noise.

    Parameters
    ----------
    domain
        The values.
    blocks
        The number of each value's block, in domain order or with labels. Blocks are numbered from 0 in order of first
        appearance.
    parts
        The mechanism of each block, in the order of the block numbers. Its domain must have as many values as the
        block; value i stands for the i-th value of the block in domain order. Each mechanism must be a
        :class:`RandomizedResponse`, :class:`SubsetSelection`, :class:`HadamardResponse` or :class:`CyclicDesign`.

    Notes
    -----
    A report names its block, so its probability is zero for values outside the block. Inside the block, its
    probabilities are those of the block's mechanism (Acharya et al. 2020, "Context-Aware Local Differential Privacy",
    Section 6). The risk, the expected squared error of the estimated frequencies, is a sum over blocks, weighted by
    the probability of each block. So :meth:`for_policy` selects the mechanism of least exact risk for each block
    separately. The proof is in ``docs/proofs/block.md``.

    Examples
    --------
    >>> import sfumato as sf
    >>> illnesses = sf.Domain(["none", "flu", "hiv", "cancer"])
    >>> policy = sf.Blocks(illnesses, ["mild", "mild", "grave", "grave"], "ln 3")
    >>> mechanism = sf.mechanisms.BlockMechanism.for_policy(policy)
    >>> mechanism.matrix().tolist()
    [[0.75, 0.25, 0.0, 0.0], [0.25, 0.75, 0.0, 0.0], [0.0, 0.0, 0.75, 0.25], [0.0, 0.0, 0.25, 0.75]]
    """

    name = "block"

    def __init__(self, domain: Domain, blocks: Any, parts: Sequence[Mixture]) -> None:
        block_of = _checked_blocks(domain, blocks)
        sizes = np.bincount(block_of)
        if len(parts) != len(sizes):
            must = f"have {quantity(len(sizes), 'mechanism')}, one per block"
            raise InvalidInput("BlockMechanism", "parts", must, Description(quantity(len(parts), "mechanism")))
        for number, (part, size) in enumerate(zip(parts, sizes.tolist(), strict=True)):
            of_block = f"the part of block {number}"
            if not isinstance(part, tuple(KINDS.values())):
                kinds = "a RandomizedResponse, SubsetSelection, HadamardResponse or CyclicDesign"
                raise InvalidInput("BlockMechanism", of_block, f"be {kinds}", part)
            if len(part.domain) != size:
                must = f"be over {quantity(size, 'value')}, the size of the block"
                raise InvalidInput("BlockMechanism", of_block, must, part)
        self._assemble(domain, parts, block_of, _places(block_of))

    @classmethod
    def for_policy(cls, policy: Blocks, inner: str | None = None, *, max_bits: int | None = None) -> BlockMechanism:
        """Build the block mechanism of least risk for a policy under which reports may reveal the block.

        The risk is the expected squared error of the estimated frequencies; see :meth:`Mechanism.risk`.

        Parameters
        ----------
        policy
            A :class:`Blocks` policy with an infinite level ``across`` blocks, the default.
        inner
            The mechanism of every block: ``"rr"`` (randomized response), ``"subset"``, ``"hadamard"`` or ``"cyclic"``.
            By default, each block has the one of least risk among those that fit ``max_bits``.
        max_bits
            Maximum report size in bits, or None for no limit.

        Returns
        -------
        BlockMechanism
            A mechanism that obeys the policy.

        Raises
        ------
        InvalidInput
            If the level across blocks is finite, or ``inner`` is unknown.
        NoMechanism
            If reports need more than ``max_bits`` bits.
        """
        if not policy.across.is_infinite:
            must = "have an infinite level across blocks"
            hint = "For a finite level across blocks, use NestedCyclic or ComposedSubsets."
            raise InvalidInput("BlockMechanism", "policy", must, Description(f"across = {policy.across}"), hint=hint)
        if inner is not None and inner not in INNER:
            raise InvalidInput("BlockMechanism", "inner", f"be one of {', '.join(INNER)}", inner)
        names = list(INNER) if inner is None else [inner]
        options: list[BlockMechanism] = []
        for limit in _part_limits(policy, max_bits):
            try:
                options.append(_assembled(cls, policy, names, limit))
            except NoMechanism as error:  # another way to number the reports may leave more outputs to a block
                refusal = error
        if not options:
            raise refusal
        if max_bits is None:
            return options[0]
        fitting = [option for option in options if option.bits <= max_bits]
        if not fitting:
            raise NoMechanism(
                f"reports of at most {quantity(max_bits, 'bit')} cannot encode the blocks and their values. "
                f"Set max_bits to at least {min(option.bits for option in options)}."
            )
        return min(fitting, key=lambda option: (option.risk(1), option.bits))

    def audit_surrogate(self) -> BlockMechanism:
        """Return a small instance of this class for exhaustive auditing.

        If this mechanism has too many random branches, an audit enumerates the sampler of the small instance instead.

        Returns
        -------
        BlockMechanism
            A mechanism with one small block for each class of mechanism among the blocks, and a copy of the first of
            them. Each small block uses the ``audit_surrogate()`` of the largest block of its class.

        Raises
        ------
        InvalidInput
            If ``audit_surrogate()`` of a block's mechanism returns an instance of another class.
        """
        largest = {type(part): part for part in sorted(self.parts, key=lambda part: len(part.domain))}
        parts = [small for part in largest.values() if (small := part.audit_surrogate()) is not None]
        if [type(part) for part in parts] != list(largest):
            raise InvalidInput("BlockMechanism", "the audit surrogate of a part", "be of the same class", parts)
        parts.append(parts[0])
        blocks = np.repeat(np.arange(len(parts)), [len(part.domain) for part in parts])
        return type(self)(Domain.range(len(blocks)), blocks, parts)

    def parameters(self) -> dict[str, Any]:
        return {"blocks": self.part_of.tolist(), **part_documents(self.parts)}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> BlockMechanism:
        if set(parameters) != {"blocks", "kinds", "kind"} or not isinstance(parameters["kinds"], list):
            keys = sorted(parameters)
            raise InvalidInput("BlockMechanism", "parameters", "have the keys blocks, kinds and kind", keys)
        parts = read_parts("BlockMechanism", "part", parameters, KINDS)
        return cls(domain, parameters["blocks"], cast("list[Mixture]", parts))


@dataclass(frozen=True)
class _Limit:
    """Limit on the report of a block of ``values`` values: a number of outputs, and whether it must be an index."""

    outputs: Callable[[int], float]
    only_index: bool = False

    def allows(self, part: Mixture) -> bool:
        """Return whether the reports of a block's mechanism obey the limit."""
        outputs = 1 << part.bits if not part.report_format.is_histogram else part.outputs
        return outputs <= self.outputs(len(part.domain)) and (part.report_format.is_histogram or not self.only_index)


def _part_limits(policy: Blocks, max_bits: int | None) -> list[_Limit]:
    """Return the limits on the parts, for each way to number the reports of all blocks."""
    if max_bits is None:
        return [_Limit(lambda _: math.inf)]
    # Indices are numbered through all blocks, so each block has a share of them. Otherwise the block has its own bits.
    blocks, values = len(policy.epsilons), len(policy.domain)
    max_bits = min(max_bits, 2 * values + 64)  # no report is longer, and 2^max_bits takes memory
    of_part = 1 << max(max_bits - (blocks - 1).bit_length(), 0)
    return [_Limit(lambda size: (size << max_bits) // values, only_index=True), _Limit(lambda _: of_part)]


def _assembled(kind: type[BlockMechanism], policy: Blocks, names: Sequence[str], limit: _Limit) -> BlockMechanism:
    """Return the mechanism with the best part for each block."""
    kinds = list(zip(np.bincount(policy.block_of).tolist(), policy.epsilons, strict=True))
    best = {pair: _best_part(*pair, names, limit) for pair in dict.fromkeys(kinds)}
    return kind(policy.domain, policy.block_of, [best[pair] for pair in kinds])


def _best_part(size: int, epsilon: Epsilon, names: Sequence[str], limit: _Limit) -> Mixture:
    """Return the mechanism of least risk for a block, among those within the limit if there are any."""
    domain = Domain.range(size)
    if size == 1:
        return RandomizedResponse(domain, INFINITE)  # a single value needs no noise
    candidates: list[Mixture] = []
    for name in names:
        try:
            candidates.append(INNER[name](domain, epsilon, limit.outputs(size)))
        except NoMechanism:  # no cyclic design is short enough
            if len(names) == 1:
                raise
    fitting = [part for part in candidates if limit.allows(part)]
    if not fitting:
        return min(candidates, key=lambda part: part.bits)
    return min(fitting, key=lambda part: (part.risk(1), part.bits))


def _checked_blocks(domain: Domain, blocks: Any) -> npt.NDArray[np.int64]:
    """Return the number of each value's block, or raise InvalidInput."""
    blocks = align(checked_domain("BlockMechanism", domain), blocks, "BlockMechanism", "blocks")
    try:
        block_of = np.asarray(blocks)
    except ValueError:  # lists of unequal lengths
        raise InvalidInput("BlockMechanism", "blocks", "be one sequence of integers", blocks) from None
    if block_of.shape != (len(domain),) or block_of.dtype.kind not in "iu" or (block_of < 0).any():
        must = f"be {len(domain)} non-negative integers, one per value"
        got = Description(f"{block_of.dtype} of shape {block_of.shape}")
        raise InvalidInput("BlockMechanism", "blocks", must, got)
    first_seen = list(dict.fromkeys(block_of.tolist()))
    if first_seen != list(range(len(first_seen))):
        hint = "Number the blocks 0, 1, 2, … in domain order, or build the mechanism with for_policy."
        must = "be numbered from 0 in order of first appearance"
        got = Description(f"numbers in the order {first_seen[:10]}")
        raise InvalidInput("BlockMechanism", "blocks", must, got, hint=hint)
    return block_of.astype(np.int64)


def _places(block_of: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the position of each value among the values of its block."""
    order = np.argsort(block_of, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(block_of))])
    places = np.empty(len(block_of), dtype=np.int64)
    places[order] = np.arange(len(block_of)) - starts[block_of[order]]
    return places
