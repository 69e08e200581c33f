"""Every kernel gives, word for word, what the scalar sampler gives: by chance, at edges, and when words run out."""

from __future__ import annotations

import functools
import math
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

import sfumato
from sfumato.domain.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.draws import BitDraws, Field, Layout
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.hadamard_rows import reciprocal
from sfumato.mechanisms.kernels.select import by_bisection, by_deposit, deposits_fast
from sfumato.mechanisms.mean.geometric import TruncatedGeometric
from sfumato.mechanisms.mean.one_bit import OneBit
from sfumato.mechanisms.mean.shifted_bins import ShiftedBins
from sfumato.mechanisms.mixture import ONE, Mixture
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic
from sfumato.mechanisms.parts.high_low import HighLowCyclic, HighLowHadamard, HighLowSubset, UtilityOptimizedRR
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.registry import kernel_for
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.binary import BinaryOptimal, PriorBinary, PriorSymmetric
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.waves.mechanism import Waves

# -- words, and what both samplers make of them ----------------------------------------------------------

#: Auxiliary words that are given beyond those that are needed.
UNREAD = 3


class Words(NamedTuple):
    """The values of a chunk and its two streams."""

    values: npt.NDArray[np.int64]
    main: npt.NDArray[np.uint8]
    auxiliary: npt.NDArray[np.uint64]


def kernel_of(mechanism: Mechanism) -> Kernel:
    kernel = kernel_for(mechanism)
    assert kernel is not None
    return kernel


def by_sampler(mechanism: Mechanism, words: Words) -> tuple[bytes, int]:
    """The reports as bytes of an array, and how many auxiliary words were read."""
    unread = iter(words.auxiliary.tolist())
    read = 0

    def auxiliary(width: int) -> int:
        nonlocal read
        read += 1
        return int(next(unread)) & (1 << width) - 1

    frame_bytes = mechanism.layout.frame_bits // 8
    report_bytes = mechanism.report_format.dtype.itemsize * int(np.prod(mechanism.report_format.shape))
    result = bytearray()
    for i, x in enumerate(words.values.tolist()):
        frame = int.from_bytes(words.main[i * frame_bytes : (i + 1) * frame_bytes].tobytes(), "little")
        report = mechanism.sample(x, BitDraws(auxiliary, mechanism.layout_of(x), frame))
        result += report.to_bytes(report_bytes, "little")
    return bytes(result), read


def by_kernel(mechanism: Mechanism, words: Words) -> tuple[bytes, int]:
    kernel = kernel_of(mechanism)
    out = np.zeros((len(words.values), *kernel.report_shape), dtype=kernel.dtype)
    used = kernel.run(*words, out)
    return out.tobytes(), used


def check_equal(mechanism: Mechanism, words: Words) -> int:
    """Both samplers agree, and the kernel notices a missing word; give the number of auxiliary words."""
    expected, read = by_sampler(mechanism, words)
    assert by_kernel(mechanism, words) == (expected, read)
    assert by_kernel(mechanism, words._replace(auxiliary=words.auxiliary[:read])) == (expected, read)
    for too_few in {0, read // 2, read - 1} & set(range(read)):
        assert by_kernel(mechanism, words._replace(auxiliary=words.auxiliary[:too_few]))[1] == -1
    return read


def uniform_words(mechanism: Mechanism, count: int, seed: int) -> Words:
    generator = np.random.default_rng(seed)
    kernel = kernel_of(mechanism)
    return Words(
        generator.integers(0, len(mechanism.domain), count),
        generator.integers(0, 256, count * kernel.frame_bytes, dtype=np.uint8),
        generator.integers(0, 2**64, kernel.auxiliary_words(count), dtype=np.uint64),
    )


class Events(Counter[str]):
    """How often words led to a tie or a rejection, and how often a decision allowed one."""


class CraftedDraws:
    """Makes up words as a sampler asks for decisions: such that lead to ties, rejections and boundaries."""

    def __init__(self, chance: random.Random, layout: Layout, events: Events) -> None:
        self.frame = chance.getrandbits(layout.frame_bits)  # no field holds all of it
        self.auxiliary: list[int] = []
        self._chance, self._layout, self._events = chance, layout, events
        self._next = 0

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        width = denominator.bit_length() - 1
        prefix = self._width(min(width, 64))
        high, low = divmod(numerator, 1 << width - prefix)
        before = len(self.auxiliary)
        result: bool = self._decide(
            lambda draws: draws.bernoulli(numerator, denominator),
            [high, high, high - 1, high + 1],
            [low - 1, low, low + 1],
        )
        self._events["ties possible"] += low != 0
        self._events["ties"] += len(self.auxiliary) > before
        return result

    def below(self, m: int) -> int:
        width = self._width(32)
        rejected = (1 << width) % m
        # The lowest value of an answer is the first to be rejected. The last two are those whose products, mod 2^w,
        # are the lowest that is accepted and the highest that is rejected.
        lowest = -(-(self._chance.choice([0, m - 1, self._chance.randrange(m)]) << width) // m)
        even = m & -m
        inverse = pow(m // even, -1, (1 << width) // even)
        boundary = [product // even * inverse % ((1 << width) // even) for product in (rejected, rejected - even)]
        edges = [lowest, lowest, lowest - 1, lowest + 1, *boundary]
        before = len(self.auxiliary) + (self._next == len(self._layout))
        result: int = self._decide(lambda draws: draws.below(m), edges, edges)
        self._events["rejections possible"] += rejected != 0
        self._events["rejections"] += len(self.auxiliary) > before
        self._events["rejections of three in a row"] += len(self.auxiliary) > before + 2
        return result

    def _width(self, without_field: int) -> int:
        return self._layout.field(self._next).width if self._next < len(self._layout) else without_field

    def _pick(self, width: int, edges: list[int]) -> int:
        fitting = [edge for edge in edges if 0 <= edge < 1 << width]
        crafted = fitting and self._chance.random() < 0.8
        return self._chance.choice(fitting) if crafted else self._chance.getrandbits(width)

    def _decide(self, ask: Callable[[BitDraws], Any], edges: list[int], later_edges: list[int]) -> Any:
        def auxiliary(width: int) -> int:
            picked = self._pick(width, later_edges)
            unused = self._chance.getrandbits(64) >> width << width
            self.auxiliary.append(unused | picked)
            return picked

        if self._next == len(self._layout):
            return ask(BitDraws(auxiliary))
        field = self._layout.field(self._next)
        value = self._pick(field.width, edges)
        self._next += 1
        for i in range(field.width):
            bit = 1 << field.start + i * field.step
            self.frame = self.frame | bit if value >> field.width - 1 - i & 1 else self.frame & ~bit
        return ask(BitDraws(auxiliary, Layout(field.width, (Field.number(0, field.width),)), value))


def crafted_words(mechanism: Mechanism, count: int, seed: int) -> tuple[Words, Events]:
    chance, events = random.Random(seed), Events()
    k = len(mechanism.domain)
    values, main, auxiliary = [], bytearray(), []
    for _ in range(count):
        x = chance.choice([0, k - 1, chance.randrange(k)])
        draws = CraftedDraws(chance, mechanism.layout_of(x), events)
        mechanism.sample(x, draws)
        values.append(x)
        main += draws.frame.to_bytes(mechanism.layout.frame_bits // 8, "little")
        auxiliary += draws.auxiliary
    auxiliary += [chance.getrandbits(64) for _ in range(UNREAD)]
    words = Words(
        np.array(values, dtype=np.int64),
        np.frombuffer(main, dtype=np.uint8).copy(),
        np.array(auxiliary, dtype=np.uint64),
    )
    return words, events


# -- mechanisms at their edges ---------------------------------------------------------------------------


def numbered(k: int) -> Domain:
    return Domain.range(k)


def hiding(k: int, sensitive: Iterable[int], mixture: Mixture) -> Parts:
    """One part that protects the sensitive values."""
    return Parts(numbered(k), [0] * k, [mixture], sorted({*range(k)} - {*sensitive}))


def table(*rows: list[int]) -> TableMechanism:
    """A table of small weights, scaled to sum to 2^62; what is left over goes to the first output."""
    scaled = [[TOTAL // sum(row) * weight for weight in row] for row in rows]
    for row in scaled:
        row[0] += TOTAL - sum(row)
    return TableMechanism(numbered(len(rows)), scaled)


@functools.cache
def wide_table() -> TableMechanism:
    """More than 2^16 outputs, of which a few are likely: 64-bit words."""
    weights = [0] * (2**16 + 3)
    weights[0], weights[5], weights[2**16 + 2] = TOTAL // 3, TOTAL // 7, TOTAL // 2
    weights[2**16] = TOTAL - sum(weights)
    return TableMechanism(numbered(1), [weights])


def full_table() -> TableMechanism:
    """Exactly 2^16 outputs: bins and aliases fill their half of a word."""
    weights = [TOTAL >> 16] * 2**16
    weights[0], weights[2**16 - 1] = weights[0] + 12345, weights[2**16 - 1] - 12345
    return TableMechanism(numbered(1), [weights])


def parts(*mixtures: Mixture) -> Parts:
    """Blocks one after the other, each with its mixture."""
    sizes = [len(mixture.domain) for mixture in mixtures]
    return Parts(numbered(sum(sizes)), np.repeat(np.arange(len(sizes)), sizes), mixtures)


def product(*factors: Mechanism) -> ProductMechanism:
    """One mechanism per coordinate."""
    return ProductMechanism(numbered(math.prod(len(factor.domain) for factor in factors)), factors)


ODD = ONE // 3
EDGES: dict[str, Callable[[], Mechanism]] = {
    "response k=1": lambda: RandomizedResponse(numbered(1), 1, threshold=ODD),
    "response k=2": lambda: RandomizedResponse(numbered(2), 1),
    "response k=10": lambda: RandomizedResponse(numbered(10), 1),
    "response k=2^31": lambda: RandomizedResponse(numbered(2**31), 1, threshold=ODD),
    "response k=2^31-1": lambda: RandomizedResponse(numbered(2**31 - 1), 1, threshold=ODD),
    "response k=3/8 2^32": lambda: RandomizedResponse(numbered(3 * 2**29 + 1), 1, threshold=ODD),
    "response never": lambda: RandomizedResponse(numbered(5), 0, threshold=0),
    "response always": lambda: RandomizedResponse(numbered(5), 1, threshold=ONE),
    "response nearly always": lambda: RandomizedResponse(numbered(5), 1, threshold=ONE - 1),
    "response no low part": lambda: RandomizedResponse(numbered(5), 1, threshold=ONE // 4),
    "hadamard b=2": lambda: HadamardResponse(numbered(3), 1, block_size=2),
    "hadamard b=8": lambda: HadamardResponse(numbered(7), 1, block_size=8),
    "hadamard never": lambda: HadamardResponse(numbered(7), 0, block_size=8, threshold=0),
    "hadamard always": lambda: HadamardResponse(numbered(7), 1, block_size=8, threshold=ONE),
    "hadamard nearly always": lambda: HadamardResponse(numbered(7), 1, block_size=8, threshold=ONE - 1),
    "hadamard no low part": lambda: HadamardResponse(numbered(7), 1, block_size=8, threshold=ONE // 2),
    "hadamard b=2^16": lambda: HadamardResponse(numbered(2**16 - 1), 1, block_size=2**16),
    "hadamard b=2^17": lambda: HadamardResponse(numbered(2**17 - 1), 1, block_size=2**17, threshold=ODD),
    "hadamard b=2^17 always": lambda: HadamardResponse(numbered(9), 1, block_size=2**17, threshold=ONE),
    "hadamard b=2^32": lambda: HadamardResponse(numbered(2**31), 1, block_size=2**32, threshold=ODD),
    "hadamard 5 blocks of 2": lambda: HadamardResponse(numbered(5), 3, block_size=2),
    "hadamard 15 blocks of 8": lambda: HadamardResponse(numbered(100), 3, block_size=8),
    "hadamard 4 blocks of 2^16": lambda: HadamardResponse(numbered(2**18 - 9), 3, block_size=2**16),
    "hadamard 3 blocks of 2^17": lambda: HadamardResponse(numbered(2**18 + 9), 3, block_size=2**17),
    "hadamard 3·2^29 blocks": lambda: HadamardResponse(numbered(5), 3, block_size=2, blocks=3 * 2**29 + 1),
    "hadamard 2^31 blocks of 2": lambda: HadamardResponse(numbered(2**31), 9, block_size=2),
    "hadamard 3 blocks of 2^32": lambda: HadamardResponse(numbered(9), 3, block_size=2**32, blocks=3),
    "unary k=2": lambda: UnaryEncoding(numbered(2), 1),
    "unary k=64": lambda: UnaryEncoding(numbered(64), 1),
    "unary k=65": lambda: UnaryEncoding(numbered(65), 1),
    "unary k=130 optimized": lambda: UnaryEncoding(numbered(130), 1, optimized=True),
    "unary certain": lambda: UnaryEncoding(numbered(9), 1, own=ONE, other=0),
    "unary all ones": lambda: UnaryEncoding(numbered(9), 1, own=ONE, other=ONE),
    "unary all zeros": lambda: UnaryEncoding(numbered(9), 1, own=0, other=0),
    "unary nearly certain": lambda: UnaryEncoding(numbered(9), 1, own=ONE - 1, other=1),
    "unary own without low part": lambda: UnaryEncoding(numbered(70), 1, own=ONE // 2, other=ODD),
    "unary others without low part": lambda: UnaryEncoding(numbered(70), 1, own=2 * ODD, other=ONE // 8),
    "subset k=2": lambda: SubsetSelection(numbered(2), 1),
    "subset k=3 d=2": lambda: SubsetSelection(numbered(3), 1, 2),
    "subset k=64": lambda: SubsetSelection(numbered(64), 1),
    "subset k=65": lambda: SubsetSelection(numbered(65), 1),
    "subset k=130": lambda: SubsetSelection(numbered(130), 1),
    "subset no coin": lambda: SubsetSelection(numbered(70), 1, 3, coin=0, planes=1),
    "subset all coins": lambda: SubsetSelection(numbered(70), 1, 66, coin=2, planes=1),
    # More than two words: repairs are looked up sixteen at a time.
    "subset k=300": lambda: SubsetSelection(numbered(300), 1),
    "subset k=200, 15 to add": lambda: SubsetSelection(numbered(200), 1, 15, coin=0, planes=1),
    "subset k=200, 16 to add": lambda: SubsetSelection(numbered(200), 1, 16, coin=0, planes=1),
    "subset k=200, 83 to add": lambda: SubsetSelection(numbered(200), 1, 83, coin=0, planes=1),
    "subset k=200, 117 to remove": lambda: SubsetSelection(numbered(200), 1, 83, coin=2, planes=1),
    "subset k=200, all but one to remove": lambda: SubsetSelection(numbered(200), 1, 1, coin=2, planes=1),
    "subset k=200, all but one to add": lambda: SubsetSelection(numbered(200), 1, 199, coin=0, planes=1),
    "subset 8 planes": lambda: SubsetSelection(numbered(70), 1, 20, coin=85, planes=8),
    "subset one": lambda: SubsetSelection(numbered(70), 3, 1),
    "subset all but one": lambda: SubsetSelection(numbered(70), 1, 69),
    "subset never": lambda: SubsetSelection(numbered(9), 0, 3, threshold=0),
    "subset always": lambda: SubsetSelection(numbered(9), 1, 3, threshold=ONE),
    "composed 6+3": lambda: ComposedSubsets(numbered(6), "abcabc", 1, 3),
    "composed 62+2": lambda: ComposedSubsets(numbered(62), np.arange(62) % 2, 1, 3),
    "composed 64+3": lambda: ComposedSubsets(numbered(64), np.arange(64) ** 2 % 3, 1, 3),
    "cyclic k=2": lambda: CyclicDesign(numbered(2), 1),
    "cyclic k=7": lambda: CyclicDesign(numbered(7), 1, design=CyclicDesign.singer(2, 1, 3)),
    "cyclic k=5 of 21": lambda: CyclicDesign(numbered(5), 2, design=CyclicDesign.singer(2, 2, 3)),
    "cyclic 25 blocks": lambda: CyclicDesign(numbered(90), 3, design=CyclicDesign.residues(101, 4, zero=1)),
    "cyclic k=70,000": lambda: CyclicDesign(numbered(70_000), 4, design=CyclicDesign.singer(53, 1, 4)),
    "cyclic of 2^22-1": lambda: CyclicDesign(numbered(2**21), 1, design=CyclicDesign.singer(2, 1, 22)),
    "cyclic never": lambda: CyclicDesign(numbered(7), 0, design=CyclicDesign.singer(2, 1, 3)),
    "cyclic always": lambda: CyclicDesign(numbered(7), "inf", design=CyclicDesign.residues(7, 2)),
    "composed 130+70": lambda: ComposedSubsets(numbered(130), np.arange(130) % 70, 1, 3, sizes=[60, 40]),
    "composed no coins": lambda: ComposedSubsets(
        numbered(9), "abcabcabc", 1, 2, thresholds=[ONE, 0], coins=[0, 2], planes=1
    ),
    "nested cyclic 2x2": lambda: NestedCyclic(numbered(4), "abba", 1, 3, max_bits=5),
    "nested cyclic 3x3": lambda: NestedCyclic(numbered(7), "abcabca", 1, 2, high=2, sizes=[1, 2], patterns=2, seed=7),
    "nested cyclic 24x50": lambda: NestedCyclic(numbered(1200), np.arange(1200) % 24, 2, 3, max_bits=15),
    "nested cyclic 130x3": lambda: NestedCyclic(numbered(390), np.arange(390) // 3, 1, "1.1", max_bits=13),
    "waves k=3": lambda: Waves(numbered(3), 1, modulus=5, waves=[(1, 1, 2, 5), (0, 5, 2, 3)]),
    "waves, one": lambda: Waves(numbered(7), 2, modulus=9, waves=[(1, 1, 3, 1)]),
    "waves k=1,000": lambda: Waves(numbered(1000), 3, modulus=1250, waves=[(1, 1, 60, 4000), (9, 1250, 600, 96)]),
    "waves never": lambda: Waves(numbered(7), 0, modulus=9, waves=[(1, 1, 3, 3), (2, 4, 4, 1)]),
    "waves always": lambda: Waves(numbered(7), "inf", modulus=9, waves=[(1, 1, 3, 3), (2, 4, 4, 1)]),
    "high-low response": lambda: UtilityOptimizedRR(numbered(10), [1, 3, 5], 1),
    "high-low response, one sensitive": lambda: UtilityOptimizedRR(numbered(5), [4], 1),
    "high-low response never": lambda: UtilityOptimizedRR(numbered(7), [0, 3, 6], 0),
    "high-low response always": lambda: UtilityOptimizedRR(numbered(7), [0, 3, 6], "inf"),
    "high-low response nearly always": lambda: hiding(
        7, [0, 3, 6], RandomizedResponse(numbered(3), 1, threshold=ONE - 1)
    ),
    "high-low response, many": lambda: UtilityOptimizedRR(numbered(3000), range(1000, 3000), 3),
    "high-low hadamard": lambda: HighLowHadamard(numbered(12), range(0, 12, 2), 1, block_size=8),
    "high-low hadamard b=2": lambda: HighLowHadamard(numbered(9), [0, 5, 8], 3, block_size=2),
    "high-low hadamard, idle blocks": lambda: HighLowHadamard(numbered(9), [0, 5, 8], 3, block_size=4, blocks=5),
    "high-low hadamard b=2^17": lambda: HighLowHadamard(numbered(12), range(6), 1, block_size=2**17),
    "high-low hadamard b=2^32": lambda: HighLowHadamard(numbered(12), range(6), 1, block_size=2**32, blocks=3),
    "high-low hadamard never": lambda: HighLowHadamard(numbered(9), [0, 5, 8], 0, block_size=4),
    "high-low hadamard always": lambda: HighLowHadamard(numbered(9), [0, 5, 8], "inf", block_size=4),
    "high-low cyclic": lambda: HighLowCyclic(numbered(12), range(0, 12, 2), 1),
    "high-low cyclic, one base block": lambda: HighLowCyclic(
        numbered(9), [0, 5, 8], 3, design=CyclicDesign.singer(2, 1, 3)
    ),
    "high-low cyclic never": lambda: HighLowCyclic(numbered(9), [0, 5, 8], 0),
    "high-low cyclic always": lambda: HighLowCyclic(numbered(9), [0, 5, 8], "inf"),
    "high-low subset d=1": lambda: HighLowSubset(numbered(9), [0, 5, 8], 1, 1),
    "high-low subset d=2": lambda: HighLowSubset(numbered(9), [0, 5, 7, 8], 1, 2),
    "high-low subset s=62": lambda: HighLowSubset(numbered(70), range(62), 1, 20),
    "high-low subset s=63": lambda: HighLowSubset(numbered(70), range(63), 1, 20),
    "high-low subset s=64": lambda: HighLowSubset(numbered(75), range(11, 75), 1, 20),
    "high-low subset s=65": lambda: HighLowSubset(numbered(70), range(65), 1, 20),
    "high-low subset s=127": lambda: HighLowSubset(numbered(200), range(127), 1, 40),
    "high-low subset s=130": lambda: HighLowSubset(numbered(140), range(130), 1, 40),
    "high-low subset, all sensitive": lambda: HighLowSubset(numbered(64), range(64), 1, 20),
    "high-low subset never": lambda: HighLowSubset(numbered(9), [0, 5, 7, 8], 0, 2),
    "high-low subset always": lambda: HighLowSubset(numbered(70), range(5, 70), "inf", 20),
    "high-low subset no low part": lambda: hiding(
        9, [0, 5, 7, 8], SubsetSelection(numbered(4), 1, 2, threshold=ONE // 2)
    ),
    "high-low subset 8 planes": lambda: hiding(80, range(70), SubsetSelection(numbered(70), 1, 20, coin=85, planes=8)),
    "high-low subset, 80 to add": lambda: hiding(
        210, range(200), SubsetSelection(numbered(200), 1, 80, coin=0, planes=1)
    ),
    "high-low mixed s=2": lambda: HighLowMixedSubsets(numbered(9), [0, 5], 1, (1, 2), weight=ODD, share="1/2"),
    "high-low mixed s=63": lambda: HighLowMixedSubsets(
        numbered(70), range(63), 1, (20, 21), weight=ONE // 2, share="1/2"
    ),
    "high-low mixed s=130": lambda: HighLowMixedSubsets(
        numbered(140), range(130), 1, (40, 130), weight=ODD, share="1/2", coins=(77, None), planes=8
    ),
    "high-low subset no coin": lambda: hiding(80, range(70), SubsetSelection(numbered(70), 1, 3, coin=0, planes=1)),
    "blocks of responses": lambda: parts(*(RandomizedResponse(numbered(k), k) for k in (3, 1, 10, 2))),
    "blocks of hadamard": lambda: parts(*(HadamardResponse(numbered(k), 1) for k in (3, 10, 70))),
    "blocks of cyclic": lambda: parts(*(CyclicDesign(numbered(k), 1) for k in (3, 10, 70))),
    "blocks of cyclic and indices": lambda: parts(
        CyclicDesign(numbered(9), 3),
        RandomizedResponse(numbered(5), 1),
        HadamardResponse(numbered(9), 3, block_size=2),
        CyclicDesign(numbered(7), "inf", design=CyclicDesign.singer(2, 1, 3)),
    ),
    "blocks of cyclic and sets": lambda: parts(
        SubsetSelection(numbered(67), 1, 20), CyclicDesign(numbered(60), 3), HadamardResponse(numbered(9), 1)
    ),
    "blocks of blocks": lambda: parts(
        HadamardResponse(numbered(9), 3, block_size=2),
        RandomizedResponse(numbered(5), 1),
        HadamardResponse(numbered(9), 1, block_size=16),
        RandomizedResponse(numbered(1), "inf"),
    ),
    "blocks of subsets": lambda: parts(*(SubsetSelection(numbered(k), 1) for k in (5, 63, 64, 65, 2))),
    "blocks of subsets, wide": lambda: parts(*(SubsetSelection(numbered(k), "0.5") for k in (130, 3, 191))),
    "blocks of subsets, many": lambda: parts(*(SubsetSelection(numbered(3), 1) for _ in range(70))),
    "blocks, mixed": lambda: parts(
        SubsetSelection(numbered(67), 1, 20),
        HadamardResponse(numbered(9), 3, block_size=4),
        RandomizedResponse(numbered(1), "inf"),
        RandomizedResponse(numbered(5), 0),
        SubsetSelection(numbered(5), "inf", 2),
    ),
    "blocks, indices longer than sets": lambda: parts(
        SubsetSelection(numbered(3), 1, 2), HadamardResponse(numbered(9), 1, block_size=2**32, blocks=3)
    ),
    "table one output": lambda: table([1]),
    "table one value": lambda: table([1, 2, 3]),
    "table certain": lambda: table([1, 0, 0], [0, 1, 0], [0, 0, 1]),
    "table powers": lambda: table([4, 2, 1, 1], [1, 1, 1, 1]),
    "table thirds": lambda: table([1, 1, 1], [0, 1, 2], [5, 0, 1]),
    "table 2^16 outputs": full_table,
    "table beyond 2^16 outputs": wide_table,
    "binary asymmetric": lambda: BinaryOptimal(numbered(2), "0.5", 2),
    "prior rare": lambda: PriorBinary(numbered(2), ["0.99", "0.01"], 1),
    "prior symmetric": lambda: PriorSymmetric(numbered(2), ["0.9", "0.1"], "ln 3"),
    "binary coin": lambda: BinaryOptimal(numbered(2), 0, 0),
    "binary in clear": lambda: BinaryOptimal(numbered(2), "inf", "inf"),
    "binary one certain": lambda: BinaryOptimal(numbered(2), "inf", 1),
    "one bit": lambda: OneBit(numbered(10), 1),
    "one bit, positions": lambda: OneBit(numbered(3), 1, positions=[7, 0, 2**40]),
    "one bit, blind": lambda: OneBit(numbered(3), 0),
    "one bit, nearly certain": lambda: OneBit(numbered(3), "inf"),
    "thresholds": lambda: ShiftedBins(numbered(10), 1, width=9),
    "bins of two numbers": lambda: ShiftedBins(numbered(10), 1, width=7, share=ODD),
    "bins, certain": lambda: ShiftedBins(numbered(12), "inf", width=5, share=ONE),
    "bins, blind": lambda: ShiftedBins(numbered(12), 0, width=5, share=ONE // 2),
    "bins, many": lambda: ShiftedBins(numbered(2**30), 3, width=2**28 + 1, share=ODD),
    "geometric": lambda: TruncatedGeometric(numbered(10), "0.3"),
    "geometric, two values": lambda: TruncatedGeometric(numbered(2), 1),
    "geometric, ends": lambda: TruncatedGeometric(numbered(5), 0),
    "geometric, certain": lambda: TruncatedGeometric(numbered(5), "inf"),
    "product of tables": lambda: product(table([1, 1, 1], [0, 1, 2], [5, 0, 1]), table([1, 2, 3], [3, 2, 1])),
    "product of three": lambda: product(
        RandomizedResponse(numbered(5), 1),
        HadamardResponse(numbered(9), 1, block_size=4),
        CyclicDesign(numbered(7), 1, design=CyclicDesign.singer(2, 1, 3)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EDGES)
def test_crafted_words_give_the_same_reports(name: str) -> None:
    mechanism = EDGES[name]()
    words, events = crafted_words(mechanism, count=120, seed=7)
    assert check_equal(mechanism, words) == len(words.auxiliary) - UNREAD
    # What can happen did happen: otherwise this would test little.
    assert bool(events["ties"]) == bool(events["ties possible"])
    assert bool(events["rejections of three in a row"]) == bool(events["rejections possible"])


def test_crafted_words_reach_ties_and_rejections_of_every_kind() -> None:
    for name in ("response k=10", "hadamard b=8", "hadamard b=2^17", "unary k=65", "subset k=65", "table thirds"):
        assert crafted_words(EDGES[name](), count=120, seed=7)[1]["ties"] > 0
    for name in ("response k=10", "hadamard 15 blocks of 8", "hadamard 3 blocks of 2^17", "subset k=65"):
        assert crafted_words(EDGES[name](), count=120, seed=7)[1]["rejections"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", EDGES)
def test_uniform_words_give_the_same_reports(name: str) -> None:
    mechanism = EDGES[name]()
    check_equal(mechanism, uniform_words(mechanism, 50, seed=3))


@pytest.mark.slow
@pytest.mark.parametrize("byte", [0, 255])
@pytest.mark.parametrize("name", EDGES)
def test_extreme_words_give_the_same_reports(name: str, byte: int) -> None:
    # Zeros are rejected by every bound that rejects, so the auxiliary words must end that.
    mechanism = EDGES[name]()
    words = uniform_words(mechanism, 20, seed=5)
    enough = np.random.default_rng(2).integers(2**63, 2**64, 20 * (len(mechanism.domain) % 1000 + 10), dtype=np.uint64)
    check_equal(
        mechanism, words._replace(main=np.full_like(words.main, byte), auxiliary=enough | np.uint64(0xFFFFFF00))
    )


# -- mechanisms at random --------------------------------------------------------------------------------


thresholds = st.one_of(
    st.sampled_from([0, 1, ONE // 2, ONE - 1, ONE]),
    st.integers(0, 2**16).map(lambda n: n << 48),
    st.integers(0, ONE),
)


KINDS = (
    ComposedSubsets,
    CyclicDesign,
    HadamardResponse,
    NestedCyclic,
    OneBit,
    Parts,
    RandomizedResponse,
    ShiftedBins,
    SubsetSelection,
    TableMechanism,
    TruncatedGeometric,
    UnaryEncoding,
    Waves,
)


levels = st.sampled_from(["0", "1e-19", "0.01", "1", "ln 3", "3", "8", "50", "inf"])


@st.composite
def mixtures(draw: st.DrawFn) -> Mixture:
    k = draw(st.integers(1, 70))
    kinds = [RandomizedResponse, HadamardResponse, SubsetSelection, CyclicDesign]
    kind = draw(st.sampled_from(kinds)) if k > 1 else None
    if kind is CyclicDesign:
        return CyclicDesign(numbered(k), draw(levels))
    if kind is SubsetSelection:
        return SubsetSelection(numbered(k), 1, draw(st.integers(1, k - 1)), threshold=draw(thresholds))
    if kind is HadamardResponse:
        columns = draw(st.sampled_from([2, 8, 128]))
        return HadamardResponse(numbered(k), 1, block_size=columns, threshold=draw(thresholds))
    return RandomizedResponse(numbered(k), 1, threshold=draw(thresholds))


@st.composite
def shuffled_parts(draw: st.DrawFn) -> Parts:
    """Parts in any order of values, some of which are unprotected."""
    each = draw(st.lists(mixtures(), min_size=1, max_size=5))
    owners = [number for number, mixture in enumerate(each) for _ in range(len(mixture.domain))]
    revealed = draw(st.lists(st.integers(0, len(each) - 1), max_size=9))
    labels = draw(st.permutations([*((owner, True) for owner in owners), *((owner, False) for owner in revealed)]))
    order = list(dict.fromkeys(owner for owner, _ in labels))
    unprotected = [x for x, (_, is_protected) in enumerate(labels) if not is_protected]
    part_of = [order.index(owner) for owner, _ in labels]
    return Parts(numbered(len(labels)), part_of, [each[owner] for owner in order], unprotected)


@st.composite
def mechanisms(draw: st.DrawFn) -> Mechanism:
    kind = draw(st.sampled_from(KINDS))
    k = draw(st.integers(2, 140))
    if kind is RandomizedResponse:
        return RandomizedResponse(numbered(draw(st.integers(1, 2**31))), 1, threshold=draw(thresholds))
    if kind is HadamardResponse:
        size = 2 ** draw(st.integers(1, 20))
        blocks = -(-k // (size - 1)) + draw(st.sampled_from([0, 0, 1, 12345]))
        return HadamardResponse(numbered(k), 1, block_size=size, blocks=blocks, threshold=draw(thresholds))
    if kind is CyclicDesign:
        return CyclicDesign(numbered(k), draw(levels))
    if kind is OneBit:
        positions = [0, *draw(st.lists(st.integers(1, 2**40), min_size=k - 1, max_size=k - 1))]
        return OneBit(numbered(k), draw(levels), positions=positions)
    if kind is ShiftedBins:
        width = draw(st.integers(2, k))
        share = draw(thresholds) if k % width else 0
        chances = [draw(thresholds), draw(thresholds)]
        return ShiftedBins(numbered(k + 1), 1, width=width, share=share, thresholds=chances)
    if kind is TruncatedGeometric:
        return TruncatedGeometric(numbered(k), 1, ratio=draw(thresholds))
    if kind is UnaryEncoding:
        other, own = sorted([draw(thresholds), draw(thresholds)])
        return UnaryEncoding(numbered(k), 1, own=own, other=other)
    if kind is Parts:
        return draw(shuffled_parts())
    if kind is Waves:
        modulus = k + draw(st.integers(1, 9))
        rates = sorted(draw(st.tuples(st.integers(1, modulus), st.integers(1, modulus))))
        rows = [(1, 1, draw(st.integers(1, k)), 3), (*rates, draw(st.integers(1, k)), 1)]
        return Waves(numbered(k), draw(levels), modulus=modulus, waves=rows)
    if kind is NestedCyclic:
        label = [*range(draw(st.integers(2, 12))), *draw(st.lists(st.integers(0, 1), min_size=1, max_size=40))]
        most = int(np.bincount(label).max()) - 1
        return NestedCyclic(
            numbered(len(label)),
            label,
            draw(st.sampled_from(["0", "0.5", "2"])),
            draw(st.sampled_from(["2.5", "9"])),
            high=draw(st.integers(1, max(label))),
            sizes=[draw(st.integers(1, most)), draw(st.integers(0, most))],
            patterns=draw(st.integers(1, 9)),
            seed=draw(st.integers(0, 2**32 - 1)),
        )
    if kind is ComposedSubsets:
        blocks, block_size = draw(st.integers(2, 12)), draw(st.integers(2, 11))
        label = draw(st.permutations([j for j in range(blocks) for _ in range(block_size)]))
        planes = draw(st.sampled_from([1, 2, 8]))
        coins = [draw(st.integers(0, 2**planes)) for _ in range(2)]
        chances = [draw(thresholds) for _ in range(2)]
        sizes = [draw(st.integers(1, blocks * block_size - 1)), draw(st.integers(1, blocks - 1))]
        return ComposedSubsets(
            numbered(len(label)), label, 1, 2, sizes=sizes, thresholds=chances, coins=coins, planes=planes
        )
    if kind is SubsetSelection:
        planes = draw(st.sampled_from([1, 2, 8]))  # each number of planes is compiled on its own
        coin = draw(st.integers(0, 2**planes))
        size = draw(st.integers(1, k - 1))
        return SubsetSelection(numbered(k), 1, size, threshold=draw(thresholds), coin=coin, planes=planes)
    outputs = draw(st.integers(1, 20))
    row = st.lists(st.integers(0, 9), min_size=outputs, max_size=outputs).filter(any)
    return table(*draw(st.lists(row, min_size=1, max_size=4)))


@pytest.mark.slow
@given(mechanism=mechanisms(), seed=st.integers(0, 2**32), crafted=st.booleans())
def test_random_mechanisms_give_the_same_reports(mechanism: Mechanism, seed: int, crafted: bool) -> None:
    words = crafted_words(mechanism, 12, seed)[0] if crafted else uniform_words(mechanism, 12, seed)
    if not crafted:
        more = np.random.default_rng(seed).integers(0, 2**64, 12 * 150, dtype=np.uint64)
        words = words._replace(auxiliary=more)
    check_equal(mechanism, words)


MANY: dict[str, Callable[[], Mechanism]] = {
    "response": lambda: RandomizedResponse(numbered(1000), 3),
    "response, many rejections": lambda: RandomizedResponse(numbered(3 * 2**29 + 1), 3, threshold=ODD),
    "hadamard": lambda: HadamardResponse(numbered(1000), 1, block_size=1024),
    "hadamard, wide": lambda: HadamardResponse(numbered(10**5), 1, block_size=2**17),
    "hadamard, blocks": lambda: HadamardResponse(numbered(1000), 4, block_size=16),
    "hadamard, wide blocks": lambda: HadamardResponse(numbered(10**6), 4, block_size=2**17),
    "cyclic": lambda: CyclicDesign(numbered(1000), 3),
    "cyclic, wide": lambda: CyclicDesign(numbered(70_000), 4, design=CyclicDesign.singer(53, 1, 4)),
    "high-low cyclic": lambda: HighLowCyclic(numbered(1000), range(900), 3),
    "blocks, cyclic": lambda: parts(CyclicDesign(numbered(90), 2), CyclicDesign(numbered(30), 1)),
    "unary": lambda: UnaryEncoding(numbered(10), 1),
    "subset": lambda: SubsetSelection(numbered(10), 1),
    "high-low response": lambda: UtilityOptimizedRR(numbered(1000), range(0, 1000, 3), 3),
    "high-low hadamard": lambda: HighLowHadamard(numbered(1000), range(900), 4, block_size=16),
    "high-low subset": lambda: HighLowSubset(numbered(20), range(12), 1, 4),
    "blocks": lambda: parts(*(RandomizedResponse(numbered(k), 2) for k in (1, 10, 100))),
    "blocks, mixed": lambda: parts(SubsetSelection(numbered(9), 1, 3), HadamardResponse(numbered(90), 1)),
    "nested cyclic": lambda: NestedCyclic(numbered(1200), np.arange(1200) // 50, 1, 2, max_bits=18),
    "composed": lambda: ComposedSubsets(numbered(10), np.arange(10) % 4, 1, 3),
    "waves": lambda: Waves(numbered(1000), 2),
    "table": lambda: table(*(np.random.default_rng(4).integers(0, 1000, (20, 30)).tolist())),
    "table, wide": wide_table,
    "one bit": lambda: OneBit(numbered(1000), 1),
    "bins": lambda: ShiftedBins(numbered(1000), 1),
    "geometric": lambda: TruncatedGeometric(numbered(1000), "0.01"),
    "product": lambda: product(RandomizedResponse(numbered(30), 3), table([1, 1, 1], [0, 1, 2], [5, 0, 1])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_many_values_give_the_same_reports(name: str, request: pytest.FixtureRequest) -> None:
    mechanism = MANY[name]()
    count = 10**6 if request.config.getoption("--soak", default=False) else 20_000
    words = uniform_words(mechanism, count, seed=9)
    # That many words suffice for nearly every chunk; and this seed is not one of the others.
    assert by_kernel(mechanism, words) == by_sampler(mechanism, words)


# -- parts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", [by_bisection, by_deposit], ids=["bisection", "deposit"])
def test_the_nth_set_bit_is_the_nth_lowest(select: Callable[..., Any]) -> None:
    if select is by_deposit and not deposits_fast():
        pytest.skip("this processor has no such instruction")

    @numba.njit
    def selected(bits: np.uint64, n: np.uint64) -> Any:
        return select(bits, n)

    chance = random.Random(1)
    dense = [chance.getrandbits(64) | chance.getrandbits(64) for _ in range(20)]
    sparse = [chance.getrandbits(64) & chance.getrandbits(64) & chance.getrandbits(64) for _ in range(20)]
    for bits in [1, 1 << 63, 2**64 - 1, *dense, *sparse]:
        places = [place for place in range(64) if bits >> place & 1]
        for n, place in enumerate(places):
            assert selected(np.uint64(bits), np.uint64(n)) == 1 << place


@pytest.mark.parametrize("bits", range(1, 33))
def test_the_reciprocal_of_a_block_divides_exactly(bits: int) -> None:
    divisor = 2**bits - 1
    multiplier, shift = (int(number) for number in reciprocal(divisor))
    assert multiplier * (2**31 - 1) < 2**64
    chance = random.Random(bits)
    multiples = [chance.randrange(2**31 // divisor + 1) for _ in range(300)] + [0, 1, (2**31 - 1) // divisor]
    for multiple in multiples:
        for x in (multiple * divisor - 1, multiple * divisor, multiple * divisor + 1, 2**31 - 1):
            if 0 <= x < 2**31:
                assert x * multiplier >> shift == x // divisor


# -- the interface ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_a_value_outside_the_domain_touches_no_other_memory(name: str) -> None:
    mechanism = MANY[name]()
    kernel = kernel_of(mechanism)
    values = np.array([-1, -(2**63), 2**63 - 1, len(mechanism.domain), 2**40, 2**62], dtype=np.int64)
    words = uniform_words(mechanism, len(values), seed=1)
    guarded = np.full((len(values) + 2, *kernel.report_shape), 77, dtype=kernel.dtype)
    kernel.run(values, words.main, words.auxiliary, guarded[1:-1])
    assert (guarded[[0, -1]] == 77).all()


def test_a_main_buffer_may_be_longer_and_a_chunk_empty() -> None:
    mechanism = MANY["hadamard"]()
    kernel = kernel_of(mechanism)
    words = uniform_words(mechanism, 10, seed=1)
    longer = np.append(words.main, np.ones(3, dtype=np.uint8))
    assert by_kernel(mechanism, words._replace(main=longer)) == by_kernel(mechanism, words)
    nothing = np.empty(0, dtype=kernel.dtype)
    assert kernel.run(words.values[:0], words.main, words.auxiliary, nothing) == 0


@pytest.mark.parametrize("part", ["values", "main", "auxiliary", "out"])
def test_what_does_not_fit_is_refused(part: str) -> None:
    mechanism = MANY["unary"]()
    kernel = kernel_of(mechanism)
    words = uniform_words(mechanism, 10, seed=1)
    given: dict[str, Any] = {**words._asdict(), "out": np.empty((10, 2), dtype=np.uint8)}
    assert kernel.run(**given) >= 0
    wrong_type = given[part].astype(np.float64)
    too_short = given[part][:-1] if part != "auxiliary" else given[part].reshape(1, -1)
    scattered = np.repeat(given[part], 2, axis=0)[::2]
    for wrong in (wrong_type, too_short, scattered):
        with pytest.raises(InvalidInput, match="must be a contiguous array of"):
            kernel.run(**{**given, part: wrong})


def test_threads_give_what_one_thread_gives() -> None:
    mechanism = MANY["unary"]()
    chunks = [uniform_words(mechanism, 3000, seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda words: by_kernel(mechanism, words), chunks))
    assert together == [by_kernel(mechanism, words) for words in chunks]


def test_read_only_values_do_not_compile_the_kernel_again() -> None:
    mechanism = MANY["response"]()
    words = uniform_words(mechanism, 10, seed=1)
    function: Any = kernel_of(mechanism).function
    by_kernel(mechanism, words)
    compiled = len(function.signatures)
    words.values.setflags(write=False)
    by_kernel(mechanism, words)
    assert len(function.signatures) == compiled


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_a_kernel_keeps_and_drops_no_reference_to_its_arrays(name: str) -> None:
    """Most kernels are compiled without numba's reference counts."""
    mechanism = MANY[name]()
    kernel, words = kernel_of(mechanism), uniform_words(mechanism, 10, seed=1)
    out = np.zeros((len(words.values), *kernel.report_shape), dtype=kernel.dtype)
    arrays = (words.values, words.main, words.auxiliary, out)
    before = [sys.getrefcount(array) for array in arrays]
    for _ in range(5):
        kernel.run(*arrays)
    assert [sys.getrefcount(array) for array in arrays] == before


def test_a_subclass_has_no_kernel() -> None:
    class Other(RandomizedResponse):
        """May sample otherwise."""

    assert kernel_for(Other(numbered(3), 1)) is None


# -- compiling -------------------------------------------------------------------------------------------

RUN = """
import logging, numpy as np, sfumato
logging.basicConfig(level=logging.INFO, format="%(message)s")
from sfumato.mechanisms.registry import kernel_for
kernel = kernel_for(sfumato.mechanisms.RandomizedResponse(sfumato.Domain.range(5), 1))
out = np.zeros(3, np.uint32)
print(sfumato.__file__, kernel.run(np.arange(3), np.zeros(24, np.uint8), np.zeros(0, np.uint64), out), out)
"""


class Elsewhere(NamedTuple):
    """A copy of the package, for processes of its own."""

    package: Path

    def messages(self, **environment: str) -> list[str]:
        """What a process that needs one kernel is told."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "XDG", "COV"))}
        paths = {"PYTHONPATH": str(self.package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", RUN],
            env={**inherited, **paths, **environment},
            cwd=self.package.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(str(self.package))
        return done.stderr.splitlines()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    package = tmp_path / "site" / "sfumato"
    shutil.copytree(Path(sfumato.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    return Elsewhere(package)


def make_unwritable(package: Path) -> None:
    # Permissions do not stop the superuser; a file where the cache folder would be stops everybody.
    for folder in (package / "mechanisms").iterdir():
        if folder.is_dir():
            (folder / "__pycache__").touch()


@pytest.mark.slow
def test_a_kernel_is_compiled_once_and_again_when_any_source_changes(elsewhere: Elsewhere, tmp_path: Path) -> None:
    make_unwritable(elsewhere.package)
    home = {"HOME": str(tmp_path / "home"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = ["compiling the randomized-response kernel (once per machine)"]
    assert elsewhere.messages(**home) == said
    assert elsewhere.messages(**home) == []
    shared = elsewhere.package / "mechanisms" / "kernels" / "decisions.py"
    stamp = shared.stat()
    shared.write_text(shared.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    os.utime(shared, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert elsewhere.messages(**home) == said


@pytest.mark.slow
def test_the_package_folder_keeps_kernels_where_it_can(elsewhere: Elsewhere) -> None:
    nowhere = {"HOME": "/proc/nonexistent"}
    assert elsewhere.messages(**nowhere) == ["compiling the randomized-response kernel (once per machine)"]
    assert elsewhere.messages(**nowhere) == []


@pytest.mark.slow
def test_the_users_cache_keeps_kernels_where_the_package_cannot(elsewhere: Elsewhere, tmp_path: Path) -> None:
    make_unwritable(elsewhere.package)
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home" / "cache")}
    assert len(elsewhere.messages(**home)) == 1
    assert elsewhere.messages(**home) == []


@pytest.mark.slow
def test_kernels_work_where_nothing_can_be_kept(elsewhere: Elsewhere) -> None:
    make_unwritable(elsewhere.package)
    nowhere = {"HOME": "/proc/nonexistent", "XDG_CACHE_HOME": "/proc/nonexistent"}
    said = ["compiling the randomized-response kernel (once per process, as no cache folder is writable)"]
    assert elsewhere.messages(**nowhere) == said
    assert elsewhere.messages(**nowhere) == said
