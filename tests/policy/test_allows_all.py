"""Many columns are decided together as each is by itself, also on the limit and next to it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.policy import Policy

R = sf.Domain.range
PRODUCT = sf.Domain.product(S=R(3), U=R(4))
MATRIX = [["0" if x == z else str(1 + (x + 2 * z) % 3) for z in range(12)] for x in range(12)]
SHARES = [["1/5", "1/6", "1/7", "1/8"], ["1/4", "1/9", "0", "1/3"], ["1/10"] * 4]
JOINT = [["1/10", "1/20", "3/20", "1/5"], ["1/8", "0", "1/8", "1/4"], ["0"] * 4]
COUNTS = [[5, 9, 20, 7], [11, 6, 8, 30], [4, 14, 9, 9]]

POLICIES: dict[str, Callable[[], Policy]] = {
    "uniform": lambda: sf.Uniform(R(12), "ln 2"),
    "one level of 0": lambda: sf.Uniform(R(12), 0),
    "pairwise": lambda: sf.Pairwise(R(12), MATRIX),
    "without units": lambda: sf.Pairwise(R(12), [[e.replace("2", "ln 3") for e in row] for row in MATRIX]),
    "sparse": lambda: sf.Pairwise(R(12), {(0, 1): "ln 2", (5, 0): 1, (7, 8): 0}),
    "high and low": lambda: sf.HighLow(R(12), [1, 3, 4], "ln 2"),
    "one sensitive": lambda: sf.HighLow(R(12), [4], 1),
    "blocks": lambda: sf.Blocks(R(12), [[0], [1, 2, 3], [4, 5], [6, 7, 8, 9, 10, 11]], "ln 2", across=2),
    "open blocks": lambda: sf.Blocks(R(12), [[0], [1, 2, 3], [4, 5, 6, 7, 8, 9, 10, 11]], "ln 2"),
    "line": lambda: sf.Metric(R(12), "absolute", "ln 2"),
    "prior": lambda: sf.Prior(R(12), [f"{x}/78" for x in range(1, 13)], "ln 2"),
    "upper": lambda: sf.Prior(R(12), ["0", "1/2", "1/2", *["0"] * 9], "ln 2", "upper"),
    "lower": lambda: sf.Prior(R(12), [f"{x}/78" for x in range(1, 13)], "ln 2", "lower"),
    "tiny shares": lambda: tiny_shares(),
    "huge level": lambda: sf.Prior(R(12), [f"{x}/78" for x in range(1, 13)], 10**9),
    "known": lambda: sf.Secret(PRODUCT, "S", "ln 2", sf.Known(JOINT)),
    "at least": lambda: sf.Secret(PRODUCT, "S", "ln 2", sf.AtLeast(SHARES)),
    "anything": lambda: sf.Secret(PRODUCT, "S", "ln 2", sf.Anything()),
    "infinite": lambda: sf.Secret(PRODUCT, "S", "inf", sf.AtLeast(SHARES)),
    "confidence set": lambda: sf.Secret(PRODUCT, "S", "ln 2", sf.ChiSquare(COUNTS)),
}


def tiny_shares() -> Policy:
    """One value has a prior that no double holds."""
    least = Fraction(1, 10**400)
    return sf.Prior(R(12), [least, *[Fraction(0)] * 10, 1 - least], 900, "upper")


def columns_near_limits(seed: int) -> list[list[int]]:
    """Weights in ratios of 2, 3, 6 and next to them, zeros, and random ones."""
    rng = np.random.default_rng(seed)
    unit = 2**50
    found = [[unit] * 12, [0] * 12, [0] * 11 + [unit], [unit] + [0] * 11]
    for ratio in (2, 3, 6):
        for _ in range(8):
            high = rng.random(12) < rng.uniform(0.1, 0.9)
            for step in (-1, 0, 1):
                column = np.where(high, ratio * unit + step, unit)
                found.append([int(weight) for weight in column])
    found += rng.integers(2**58, 2**59, (30, 12)).tolist()
    found += (rng.integers(2**58, 2**59, (5, 12)) * (rng.random((5, 12)) < 0.8)).tolist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", POLICIES)
def test_many_columns_are_decided_as_each_by_itself(kind: str) -> None:
    policy = POLICIES[kind]()
    columns = columns_near_limits(1)
    allowed = [policy.allows(column) for column in columns]
    assert [policy.allows_all([column]) for column in columns] == allowed
    good = [column for column, fits in zip(columns, allowed, strict=True) if fits]
    assert policy.allows_all(good)
    for bad in (column for column, fits in zip(columns, allowed, strict=True) if not fits):
        assert not policy.allows_all([*good[:10], bad, *good[10:]])
