"""Kernels of local hashing and of memoized mechanisms: the reports of the scalar sampler, word for word."""

from __future__ import annotations

import random

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.cyclic.mechanism import CyclicDesign
from sfumato.mechanisms.draws import BitDraws
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.local_hashing.mechanism import LocalHashing
from sfumato.mechanisms.memoized.examples import examples
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.registry import kernel_for
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.two_level import MixtureMechanism

R = sf.Domain.range


def memoized(single: Mechanism, lifetime: str) -> MemoizedMechanism:
    first = single.stated_epsilon
    assert first is not None
    policies = (sf.Uniform(single.domain, epsilon) for epsilon in (first, lifetime))
    return MemoizedMechanism.for_policies(single, *policies)


CASES: dict[str, Mechanism] = {
    "hashing": LocalHashing(R(100), 1, buckets=3),
    "hashing, certain": LocalHashing(R(20), "inf", buckets=5),
    "hashing, blind": LocalHashing(R(20), 0, buckets=2),
    "rr": memoized(RandomizedResponse(R(7), 1), "2"),
    "rr, all bits": memoized(RandomizedResponse(R(2), 1), "inf"),
    "rr, always kept": memoized(RandomizedResponse(R(5), 1), "1"),
    "rr, never kept": memoized(RandomizedResponse(R(5), 0), "1"),
    "rr, few choices": memoized(RandomizedResponse(R(2), "1e-12"), "1e-10"),
    "cyclic": memoized(CyclicDesign(R(100), 1), "4"),
    "hadamard": memoized(HadamardResponse(R(30), 1), "2"),
    "hadamard, blocks": memoized(HadamardResponse(R(9), 2), "3"),
    "buckets": memoized(LocalHashing(R(50), 1, buckets=3), "2"),
    "sets": memoized(SubsetSelection(R(10), "0.2"), "2"),
    "sets of one size": memoized(SubsetSelection(R(70), 1), "1"),
    "sets of two words": memoized(SubsetSelection(R(100), 1), "4"),
    **{
        f"parts {number}": mechanism
        for number, mechanism in enumerate(examples().samplers())
        if isinstance(mechanism, MemoizedMechanism) and isinstance(mechanism.single, PartitionedMechanism)
    },
    "blocks of indices": sf.design(sf.Blocks(R(6), "aaabbc", 1), lifetime=sf.Blocks(R(6), "aaabbc", 2), max_bits=3),
    "sensitive sets": sf.design(sf.HighLow(R(90), range(70), 1), lifetime=sf.HighLow(R(90), range(70), 4)),
}


def kernel_of(mechanism: Mechanism) -> Kernel:
    kernel = kernel_for(mechanism)
    assert kernel is not None
    return kernel


def check_equal(mechanism: Mechanism, values: list[int], main: bytes, auxiliary: list[int]) -> None:
    """Compare reports and the number of auxiliary words that both samplers read."""
    unread = iter(auxiliary)
    read = 0

    def bits(width: int) -> int:
        nonlocal read
        read += 1
        return next(unread) & (1 << width) - 1

    size = mechanism.layout.frame_bits // 8
    frames = [int.from_bytes(main[i * size : (i + 1) * size], "little") for i in range(len(values))]
    form = mechanism.report_format
    out, expected = form.empty(len(values)), form.empty(len(values))
    for i, (x, frame) in enumerate(zip(values, frames, strict=True)):
        report = mechanism.sample(x, BitDraws(bits, mechanism.layout_of(x), frame))
        expected[i] = np.frombuffer(form.encode(report), np.uint8) if form.shape else report
    words = np.array(auxiliary[: read + 3], np.uint64)
    used = kernel_of(mechanism).run(np.array(values), np.frombuffer(main, np.uint8), words, out)
    assert used == read
    assert np.array_equal(out, expected)
    if read:
        assert kernel_of(mechanism).run(np.array(values), np.frombuffer(main, np.uint8), words[: read - 1], out) == -1


def crafted_words(mechanism: Mechanism, generator: random.Random) -> list[int]:
    """Return words at the borders of all decisions: ends, thresholds, and products that are rejected."""
    parts = [mechanism]
    if isinstance(mechanism, MemoizedMechanism):
        parts = [mechanism.single, mechanism.permanent]
        borders = [border for odds in mechanism.instantaneous.odds for border in odds]
    else:
        borders = []
    for part in parts:
        mixtures = part.parts if isinstance(part, PartitionedMechanism) else [part]
        borders += [mixture.threshold for mixture in mixtures if isinstance(mixture, MixtureMechanism)]
    words = [0, 1, 2**32 - 1, 2**32, 2**64 - 1]
    words += [border + step for border in borders for step in (-1, 0, 1) if 0 <= border + step < 2**64]
    return words + [generator.getrandbits(64) for _ in range(len(words))]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_gives_the_reports_of_the_sampler(name: str) -> None:
    mechanism = CASES[name]
    generator = random.Random(name)
    size, count = mechanism.layout.frame_bits // 8, 40
    for crafted in (False, True):
        values = [generator.randrange(len(mechanism.domain)) for _ in range(count)]
        pool = crafted_words(mechanism, generator)
        auxiliary = [generator.choice(pool) if crafted else generator.getrandbits(64) for _ in range(count * 600)]
        main = generator.randbytes(size * count)
        if crafted:
            main = b"".join(generator.choice(pool).to_bytes(8, "little") for _ in range(size * count // 8 + 1))
        check_equal(mechanism, values, main[: size * count], auxiliary)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hashing", "cyclic", "sets of two words"])
def test_arrays_are_privatized_as_one_value_after_the_other(name: str) -> None:
    mechanism = CASES[name]
    values = np.random.default_rng(2).integers(0, len(mechanism.domain), 21_000)
    one = sf.privatize(mechanism, values, sf.InsecureSeeded(5), threads=1)
    assert np.array_equal(sf.privatize(mechanism, values, sf.InsecureSeeded(5), threads=2), one)
    small = sf.privatize(mechanism, values[:200], sf.InsecureSeeded(5))
    assert np.array_equal(small, one[:200])


def test_tables_and_long_sets_are_sampled_value_by_value() -> None:
    table = sf.mechanisms.TableMechanism.from_matrix(R(2), [["3/4", "1/4"], ["1/3", "2/3"]])
    policies = sf.Uniform(R(2), "1.2"), sf.Uniform(R(2), 3)
    made: list[Mechanism] = [
        MemoizedMechanism.for_policies(table, *policies),
        memoized(SubsetSelection(R(200), 1), "2"),
    ]
    made.append(sf.design(sf.HighLow(R(200), range(150), 1), lifetime=sf.HighLow(R(200), range(150), 2)))
    assert [kernel_for(mechanism) for mechanism in made] == [None] * 3
    assert len(sf.privatize(made[0], [0, 1])) == 2
