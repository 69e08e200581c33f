"""Hide the value within its block, and not the block (context-aware LDP §6), with the best mechanism for each block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, Epsilon
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import InvalidInput, NoMechanism
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.partitioned.mechanism import KINDS, PartitionedMechanism, part_document, part_from_document
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.two_level import MixtureMechanism
from sfumato.policy import Blocks

__all__ = ["INNER", "BlockMechanism"]

#: By short name, the mechanisms that a block may have.
INNER: dict[str, Callable[[Domain, Epsilon], MixtureMechanism]] = {
    "rr": RandomizedResponse,
    "subset": SubsetSelection,
    "hadamard": HadamardResponse,
}


class BlockMechanism(PartitionedMechanism):
    """The block revealed, and the value by the block's own mechanism, which sees only the values of the block.

    ``blocks`` is the number of each value's block, counted in order of first appearance; ``parts`` holds the
    mechanism of each block, over as many values as the block has, in domain order. Reports are of one length over
    all blocks. A block of a single value needs no noise.
    """

    name = "block"

    def __init__(self, domain: Domain, blocks: Any, parts: Sequence[MixtureMechanism]) -> None:
        block_of = _checked_blocks(domain, blocks)
        sizes = np.bincount(block_of)
        if len(parts) != len(sizes):
            raise InvalidInput("BlockMechanism", "parts", f"be one for each of the {len(sizes)} blocks", len(parts))
        for number, (part, size) in enumerate(zip(parts, sizes.tolist(), strict=True)):
            of_block = f"the part of block {number}"
            if not isinstance(part, tuple(KINDS.values())):
                raise InvalidInput("BlockMechanism", of_block, f"be one of {', '.join(KINDS)}", part)
            if len(part.domain) != size:
                raise InvalidInput("BlockMechanism", of_block, f"be over its {size} values", part)
        self._assemble(domain, parts, block_of, _places(block_of))

    @classmethod
    def for_policy(cls, policy: Blocks, inner: str | None = None, *, max_bits: int | None = None) -> BlockMechanism:
        """The mechanism for a policy whose blocks may be known.

        ``inner`` is one of "rr", "subset", "hadamard" for every block; without it each block has the one of least
        exact risk, whose reports also stay within ``max_bits``.
        """
        if not policy.across.is_infinite:
            raise InvalidInput("BlockMechanism", "policy", "let the block be known (across infinite)", policy.across)
        if inner is not None and inner not in INNER:
            raise InvalidInput("BlockMechanism", "inner", f"be one of {', '.join(INNER)}", inner)
        block_of = policy.block_of
        sizes = np.bincount(block_of).tolist()
        kinds = list(zip(sizes, policy.epsilons, strict=True))
        names = list(INNER) if inner is None else [inner]
        head_bits = (len(sizes) - 1).bit_length()
        part_bits = math.inf if max_bits is None else max_bits - head_bits
        best = {kind: _best_part(*kind, names, part_bits) for kind in dict.fromkeys(kinds)}
        mechanism = cls(policy.domain, block_of, [best[kind] for kind in kinds])
        if max_bits is not None and mechanism.bits > max_bits and inner is None:
            # Indices are numbered through all blocks, so they need not leave room for the block's number.
            return cls.for_policy(policy, "rr", max_bits=max_bits)
        if max_bits is not None and mechanism.bits > max_bits:
            raise NoMechanism(f"reports of at most {max_bits} bits cannot tell the blocks and their values")
        return mechanism

    def audit_surrogate(self) -> BlockMechanism:
        """A block for each class of part that there is, its largest, and one of them twice."""
        largest = {type(part): part for part in sorted(self.parts, key=lambda part: len(part.domain))}
        parts = [part.audit_surrogate() for part in largest.values()]
        if [type(part) for part in parts] != list(largest):
            raise InvalidInput("BlockMechanism", "the audit surrogate of a part", "be of its class", parts)
        parts.append(parts[0])
        blocks = np.repeat(np.arange(len(parts)), [len(part.domain) for part in parts])
        return type(self)(Domain.range(len(blocks)), blocks, parts)

    def parameters(self) -> dict[str, Any]:
        documents = [part_document(part) for part in dict.fromkeys(self.parts)]
        place = {part: number for number, part in enumerate(dict.fromkeys(self.parts))}
        return {"blocks": self.part_of.tolist(), "kinds": documents, "kind": [place[part] for part in self.parts]}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> BlockMechanism:
        if set(parameters) != {"blocks", "kinds", "kind"} or not isinstance(parameters["kinds"], list):
            keys = sorted(parameters)
            raise InvalidInput("BlockMechanism", "parameters", "be blocks, kinds and the kind of each block", keys)
        kinds = [part_from_document("BlockMechanism", document) for document in parameters["kinds"]]
        chosen = parameters["kind"]
        if not all(type(number) is int and 0 <= number < len(kinds) for number in chosen):
            raise InvalidInput("BlockMechanism", "kind", f"be numbers of the {len(kinds)} kinds", chosen)
        return cls(domain, parameters["blocks"], [kinds[number] for number in chosen])


def _best_part(size: int, epsilon: Epsilon, names: Sequence[str], most_bits: float) -> MixtureMechanism:
    domain = Domain.range(size)
    if size == 1:
        return RandomizedResponse(domain, INFINITE)  # there is nothing to tell it from
    candidates = [INNER[name](domain, epsilon) for name in names]
    fitting = [part for part in candidates if part.bits <= most_bits] or candidates[:1]
    return min(fitting, key=lambda part: (part.risk(1), part.bits))


def _checked_blocks(domain: Domain, blocks: Any) -> npt.NDArray[np.int64]:
    blocks = align(checked_domain("BlockMechanism", domain), blocks, "BlockMechanism", "blocks")
    try:
        block_of = np.asarray(blocks)
    except ValueError:  # lists of unequal lengths
        raise InvalidInput("BlockMechanism", "blocks", "be one row of numbers", blocks) from None
    if block_of.shape != (len(domain),) or block_of.dtype.kind not in "iu" or (block_of < 0).any():
        must = f"be a number for each of the {len(domain)} values"
        raise InvalidInput("BlockMechanism", "blocks", must, f"{block_of.dtype} of shape {block_of.shape}")
    first_seen = list(dict.fromkeys(block_of.tolist()))
    if first_seen != list(range(len(first_seen))):
        raise InvalidInput("BlockMechanism", "blocks", "be numbered in order of first appearance", first_seen[:10])
    return block_of.astype(np.int64)


def _places(block_of: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The place of each value among those of its block."""
    order = np.argsort(block_of, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(block_of))])
    places = np.empty(len(block_of), dtype=np.int64)
    places[order] = np.arange(len(block_of)) - starts[block_of[order]]
    return places
