"""Kernel of local hashing: the reports of the scalar sampler, word for word."""

from __future__ import annotations

import random

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import BitDraws
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.registry import kernel_for
from sfumato.mechanisms.systems.buckets import LocalHashing

R = sf.Domain.range


CASES: dict[str, LocalHashing] = {
    "hashing": LocalHashing(R(100), 1, buckets=3),
    "hashing, certain": LocalHashing(R(20), "inf", buckets=5),
    "hashing, blind": LocalHashing(R(20), 0, buckets=2),
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


def crafted_words(mechanism: LocalHashing, generator: random.Random) -> list[int]:
    """Return words at the borders of all decisions: ends, thresholds, and products that are rejected."""
    words = [0, 1, 2**32 - 1, 2**32, 2**64 - 1]
    words += [mechanism.threshold + step for step in (-1, 0, 1) if 0 <= mechanism.threshold + step < 2**64]
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
def test_arrays_are_privatized_as_one_value_after_the_other() -> None:
    mechanism = CASES["hashing"]
    values = np.random.default_rng(2).integers(0, len(mechanism.domain), 21_000)
    one = sf.privatize(mechanism, values, sf.InsecureSeeded(5), threads=1)
    assert np.array_equal(sf.privatize(mechanism, values, sf.InsecureSeeded(5), threads=2), one)
    small = sf.privatize(mechanism, values[:200], sf.InsecureSeeded(5))
    assert np.array_equal(small, one[:200])
