"""The mechanisms of the golden corpus: the name of a spec and a size or an example, with the call that builds it.

The first part of a key, before the slash, is the name that the spec had when the corpus was recorded. It stays when a
mechanism gets another name or is built by another expression: change the call, not the key. Remove a case together
with its entry in ``tests/golden`` only if the mechanism itself is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import sfumato as sf
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.mean.one_bit import OneBit
from sfumato.mechanisms.mean.shifted_bins import ShiftedBins
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism

__all__ = ["CASES", "LARGE", "Build"]

m = sf.mechanisms
Build = Callable[[], Mechanism]

#: Mechanisms by key; each is built when it is needed, so that one broken expression fails alone.
CASES: dict[str, Build] = {}
#: One mechanism of each name over 10,000 values or about as many, or None if it supports only small domains.
LARGE: dict[str, Build | None] = {}

_ONE = 2**62
_SMALL = sf.Domain(["none", "flu", "hiv", "cancer", "other"])
_FEARED = ["flu", "hiv", "cancer"]
_TWO, _THREE = sf.Domain.range(2), sf.Domain.range(3)
_PAIRS = sf.Domain.product(S=["s", "t"], U=["u", "v"])
_PEOPLE = sf.Domain.product(sex=_TWO, age=sf.Domain.range(7), job=_THREE)
_HUGE = sf.Domain.product(a=sf.Domain.range(100), b=sf.Domain.range(100))
_SIZES = (1, 2, 3, 4, 7, 10)


def _values(k: int) -> sf.Domain:
    return sf.Domain.range(k)


def _cases(
    name: str,
    examples: Mapping[str, Build],
    by_size: Callable[[int], Mechanism] | None = None,
    sizes: Iterable[int] = (),
) -> None:
    """Add the cases of one name: examples, and the same expression over several numbers of values."""
    if by_size is not None:
        CASES.update({f"{name}/k={k}": partial(by_size, k) for k in sizes})
    CASES.update({f"{name}/{label}": build for label, build in examples.items()})


# -- mixtures ----------------------------------------------------------------------------------------------

_cases(
    "randomized-response",
    {
        "labels": lambda: m.RandomizedResponse(_SMALL, "ln 3"),
        "zero": lambda: m.RandomizedResponse(_SMALL, 0),
        "infinite": lambda: m.RandomizedResponse(_SMALL, "inf"),
        "grid": lambda: m.RandomizedResponse(_PEOPLE, 2),
        "million": lambda: m.RandomizedResponse(_values(1_000_003), "ln 3"),
    },
    lambda k: m.RandomizedResponse(_values(k), 1),
    (*_SIZES, 100, 10_000),
)
LARGE["randomized-response"] = lambda: m.RandomizedResponse(_values(10_000), 1)

_cases(
    "subset-selection",
    {
        "one": lambda: m.SubsetSelection(_values(7), 1, 1),
        "three": lambda: m.SubsetSelection(_values(7), 1, 3),
        "six": lambda: m.SubsetSelection(_values(7), 1, 6),
        "labels": lambda: m.SubsetSelection(_SMALL, 1, 2),
        "infinite": lambda: m.SubsetSelection(_SMALL, "inf", 2),
        "half": lambda: m.SubsetSelection(_values(70), "0.5"),
        "words": lambda: m.SubsetSelection(_values(64), 3),
    },
    lambda k: m.SubsetSelection(_values(k), 1),
    (2, 3, 4, 7, 10, 100, 1000),
)
LARGE["subset-selection"] = lambda: m.SubsetSelection(_values(10_000), 1)

_cases(
    "hadamard-response",
    {
        "blocks": lambda: m.HadamardResponse(_SMALL, 3, block_size=4, blocks=3),
        "labels": lambda: m.HadamardResponse(_SMALL, 3),
        "infinite": lambda: m.HadamardResponse(_SMALL, "inf", block_size=4, blocks=3),
        "wide": lambda: m.HadamardResponse(_values(7), 1, block_size=16, blocks=2),
        "large": lambda: m.HadamardResponse(_values(65_536), 1, block_size=2**17),
    },
    lambda k: m.HadamardResponse(_values(k), 1),
    (*_SIZES[1:], 100, 10_000),
)
LARGE["hadamard-response"] = lambda: m.HadamardResponse(_values(10_000), 1)

_cases(
    "cyclic-design",
    {
        "fano": lambda: m.CyclicDesign(_values(7), 1, design=m.CyclicDesign.singer(2, 1, 3)),
        "points": lambda: m.CyclicDesign(_values(7), 1, design=m.CyclicDesign.singer(3, 1, 3)),
        "residues": lambda: m.CyclicDesign(_values(7), 1, design=m.CyclicDesign.residues(7, 3)),
        "zero": lambda: m.CyclicDesign(_values(7), 1, design=m.CyclicDesign.residues(7, 2, zero=1)),
        "cosets": lambda: m.CyclicDesign(_values(7), 1, design=m.CyclicDesign.residues(11, 1, cosets=3)),
        "infinite": lambda: m.CyclicDesign(_SMALL, "inf", design=m.CyclicDesign.residues(11, 5)),
        "planes": lambda: m.CyclicDesign(_values(21), 2, design=m.CyclicDesign.singer(2, 2, 3)),
        "hundred": lambda: m.CyclicDesign(_values(100), 3, design=m.CyclicDesign.residues(101, 5, zero=1)),
        "half": lambda: m.CyclicDesign(_values(10_000), "1/2", design=m.CyclicDesign.residues(10_007, 5003)),
        "geometry": lambda: m.CyclicDesign(_values(70_000), 4, design=m.CyclicDesign.singer(53, 1, 4)),
        "43750": lambda: m.CyclicDesign(_values(43_750), 1),
    },
    lambda k: m.CyclicDesign(_values(k), 1),
    (2, 3, 4, 7, 10, 100, 1000),
)
LARGE["cyclic-design"] = lambda: m.CyclicDesign(_values(10_000), 1)

_cases(
    "local-hashing",
    {
        "three": lambda: m.LocalHashing(_values(100), "ln 3", buckets=3),
        "five": lambda: m.LocalHashing(_SMALL, 0, buckets=5),
        "seven": lambda: m.LocalHashing(_SMALL, "inf", buckets=7),
        "small": lambda: m.LocalHashing(_values(7), 1, buckets=3),
    },
    lambda k: m.LocalHashing(_values(k), 1),
    (2, 3, 4, 7, 10, 100),
)
LARGE["local-hashing"] = lambda: m.LocalHashing(_values(10_000), 1)

# -- a public part, then a mixture -------------------------------------------------------------------------


def _half(k: int) -> range:
    """Return the sensitive values of the cases by size."""
    return range((k + 1) // 2)


_cases(
    "utility-optimized-rr",
    {
        "labels": lambda: m.UtilityOptimizedRR(_SMALL, _FEARED, 1),
        "thirds": lambda: m.UtilityOptimizedRR(_values(70), range(1, 70, 3), "0.5"),
        "all": lambda: m.UtilityOptimizedRR(_SMALL, _SMALL, "ln 3"),
        "infinite": lambda: m.UtilityOptimizedRR(_SMALL, _FEARED, "inf"),
    },
    lambda k: m.UtilityOptimizedRR(_values(k), _half(k), 1),
    (*_SIZES, 100),
)
LARGE["utility-optimized-rr"] = lambda: m.UtilityOptimizedRR(_values(10_000), _half(10_000), 1)

_cases(
    "high-low-subset",
    {
        "labels": lambda: m.HighLowSubset(_SMALL, _FEARED, 1, 2),
        "many": lambda: m.HighLowSubset(_values(70), range(63), "0.5", 20),
        "single": lambda: m.HighLowSubset(_SMALL, ["hiv"], "ln 3"),
        "all": lambda: m.HighLowSubset(_SMALL, _SMALL, 2, 2),
        "infinite": lambda: m.HighLowSubset(_SMALL, _FEARED, "inf", 2),
    },
    lambda k: m.HighLowSubset(_values(k), _half(k), 1),
    (*_SIZES, 100),
)
LARGE["high-low-subset"] = lambda: m.HighLowSubset(_values(10_000), _half(10_000), 1)

_cases(
    "high-low-hadamard",
    {
        "labels": lambda: m.HighLowHadamard(_SMALL, _FEARED, 1, block_size=4),
        "thirds": lambda: m.HighLowHadamard(_values(70), range(1, 70, 3), 3, block_size=8),
        "published": lambda: m.HighLowHadamard(_SMALL, ["hiv"], "0.5", published=True),
        "zero": lambda: m.HighLowHadamard(_SMALL, _FEARED, 0, block_size=4),
    },
    lambda k: m.HighLowHadamard(_values(k), _half(k), 1),
    (*_SIZES, 100),
)
LARGE["high-low-hadamard"] = lambda: m.HighLowHadamard(_values(10_000), _half(10_000), 1)

_cases(
    "high-low-cyclic",
    {
        "labels": lambda: m.HighLowCyclic(_SMALL, _FEARED, 1, design=m.CyclicDesign.singer(2, 1, 3)),
        "thirds": lambda: m.HighLowCyclic(_values(70), range(1, 70, 3), 3, design=m.CyclicDesign.residues(29, 7)),
        "all": lambda: m.HighLowCyclic(_SMALL, _SMALL, "inf", design=m.CyclicDesign.residues(7, 2, zero=1)),
        "zero": lambda: m.HighLowCyclic(_SMALL, _FEARED, 0, design=m.CyclicDesign.singer(2, 1, 3)),
    },
    lambda k: m.HighLowCyclic(_values(k), _half(k), 1),
    (3, 4, 7, 10, 100, 1000),
)
LARGE["high-low-cyclic"] = lambda: m.HighLowCyclic(_values(10_000), _half(10_000), 1)


def _mixed(domain: sf.Domain, sensitive: Iterable[object], epsilon: Any, *sizes: int) -> Mechanism:
    """Return subset selection with two sizes whose spec contains no number that a search computes."""
    return m.HighLowMixedSubsets(domain, sensitive, epsilon, sizes, weight=2**64 // 3, share="2/5")


_cases(
    "high-low-mixed-subsets",
    {
        "labels": lambda: _mixed(_SMALL, _FEARED, 1, 1, 2),
        "two": lambda: _mixed(_SMALL, ["hiv", "cancer"], 1, 1, 2),
        "seven": lambda: _mixed(_values(7), range(6), 1, 3, 6),
        "many": lambda: _mixed(_values(150), range(63), 1, 20, 21),
        "zero": lambda: _mixed(_SMALL, _FEARED, 0, 1, 2),
    },
    lambda k: m.HighLowMixedSubsets(_values(k), _half(k), 1),
    (4, 7, 10, 100),
)
LARGE["high-low-mixed-subsets"] = lambda: m.HighLowMixedSubsets(_values(10_000), _half(10_000), 1)


def _halves(k: int, epsilon: Any = 1, across: Any = "inf") -> sf.Blocks:
    """Return a policy of two interleaved blocks; of one block for a single value."""
    return sf.Blocks(_values(k), [x % 2 for x in range(k)], epsilon, across)


def _unequal(epsilon: Any, across: Any = "inf") -> sf.Blocks:
    """Return a policy of blocks of 1, 1, 1 and 30 values."""
    return sf.Blocks(_values(33), [0, 1, 2, *[3] * 30], epsilon, across)


_TWO_AND_THREE = sf.Blocks(_SMALL, "abbba", [1, "ln 3"])
_cases(
    "block",
    {
        "rr": lambda: m.BlockMechanism.for_policy(_TWO_AND_THREE, "rr"),
        "subset": lambda: m.BlockMechanism.for_policy(_TWO_AND_THREE, "subset"),
        "hadamard": lambda: m.BlockMechanism.for_policy(_TWO_AND_THREE, "hadamard"),
        "unequal": lambda: m.BlockMechanism.for_policy(_unequal(1)),
        "four": lambda: m.BlockMechanism(
            _values(70),
            [0] * 40 + [1] * 20 + [2] * 9 + [3],
            [
                m.SubsetSelection(_values(40), 1, 10),
                m.HadamardResponse(_values(20), 3, block_size=8),
                m.RandomizedResponse(_values(9), 2),
                m.RandomizedResponse(_values(1), "inf"),
            ],
        ),
        "cyclic": lambda: m.BlockMechanism(
            _values(7),
            [0, 0, 0, 1, 1, 2, 2],
            [
                m.CyclicDesign(_values(3), 1, design=m.CyclicDesign.singer(2, 1, 3)),
                *(m.RandomizedResponse(_values(2), 1),) * 2,
            ],
        ),
    },
    lambda k: m.BlockMechanism.for_policy(_halves(k)),
    (*_SIZES, 100),
)
LARGE["block"] = lambda: m.BlockMechanism.for_policy(_halves(10_000))

# -- blocks with two levels --------------------------------------------------------------------------------

_cases(
    "nested-cyclic",
    {
        "labels": lambda: m.NestedCyclic(sf.Domain(["n", "e", "s", "w"]), "abba", 1, 3, max_bits=5),
        "twelve": lambda: m.NestedCyclic(
            _values(12), "abcabcabcabc", "0.5", 1, high=2, sizes=[2, 1], patterns=3, seed=5
        ),
        "padded": lambda: m.NestedCyclic(
            _values(7), "abbaccc", "ln 2", 2, high=1, sizes=[2, 1], patterns=2, seed=2**32 - 1
        ),
        "halves": lambda: m.NestedCyclic(_values(6), "aaabbb", 1, 2, high=1, sizes=[1, 1], patterns=4, seed=3),
        "unequal": lambda: m.NestedCyclic.for_policy(_unequal("0.5", 3)),
        "large": lambda: m.NestedCyclic(
            _values(1200), [x // 50 for x in range(1200)], 2, 3, high=4, sizes=[12, 0], patterns=27, seed=1
        ),
    },
    lambda k: m.NestedCyclic.for_policy(_halves(k, 1, 2)),
    (4, 7, 10, 100),
)
LARGE["nested-cyclic"] = lambda: m.NestedCyclic(_values(10_000), [x % 100 for x in range(10_000)], 1, 2)

_cases(
    "composed-subsets",
    {
        "labels": lambda: m.ComposedSubsets(_SMALL, "abbba", 1, 2),
        "pairs": lambda: m.ComposedSubsets(_values(7), "abbccdd", 1, 2, sizes=(2, 2)),
        "six": lambda: m.ComposedSubsets(_values(7), "abbccdd", 1, 2, sizes=(6, 3)),
        "unequal": lambda: m.ComposedSubsets.for_policy(_unequal("0.5", 3)),
        "fives": lambda: m.ComposedSubsets(_values(70), [x % 5 for x in range(70)], "ln 2", 2),
    },
    lambda k: m.ComposedSubsets.for_policy(_halves(k, 1, 2)),
    (3, 4, 7, 10, 100),
)
LARGE["composed-subsets"] = lambda: m.ComposedSubsets(_values(10_000), [x % 100 for x in range(10_000)], 1, 2)

# -- a public coin -----------------------------------------------------------------------------------------

_FEW_WAVES = [(1, 1, 2, 8), (2, 2, 2, 5), (0, 5, 2, 3)]
_MANY_WAVES = [(1, 1, 400, 1500), (2, 2, 400, 596), (3, 7, 350, 800), (8, 16, 350, 600), (0, 1280, 128, 600)]
_cases(
    "shifted-waves",
    {
        "labels": lambda: m.Waves(sf.Domain(["none", "some", "many"]), 1, modulus=5, waves=_FEW_WAVES),
        "four": lambda: m.Waves(_values(4), 1, modulus=5, waves=_FEW_WAVES),
        "twenty": lambda: m.Waves(_values(20), "ln 2", modulus=27, waves=[(1, 1, 9, 1), (1, 14, 13, 4095)]),
        "many": lambda: m.Waves(_values(1024), 2, modulus=1280, waves=_MANY_WAVES),
    },
    lambda k: m.Waves(_values(k), 1, question="distribution"),
    (7, 10, 100),
)
LARGE["shifted-waves"] = None

_cases(
    "shifted-bins",
    {
        "labels": lambda: ShiftedBins(sf.Domain(["bad", "fair", "good", "excellent"]), 1, width=3),
        "share": lambda: ShiftedBins(_values(7), 1, width=4, share=2**64 // 3),
        "ends": lambda: ShiftedBins(_values(5), 1, width=2, share=0),
        "infinite": lambda: ShiftedBins(_values(7), "inf", width=6),
    },
    lambda k: ShiftedBins(_values(k), 1),
    (3, 4, 7, 10, 100),
)
LARGE["shifted-bins"] = lambda: ShiftedBins(_values(10_000), 1, width=6_000, share=2**64 // 5)


def _table() -> Mechanism:
    """Return a table over three values with zeros and thirds."""
    return m.TableMechanism(
        _THREE, [[_ONE, 0, 0], [2**60, 2**61, 2**60], [_ONE // 3, _ONE // 3, _ONE - 2 * (_ONE // 3)]]
    )


def _one_attribute() -> Mechanism:
    """Return a mechanism that asks every person for sex, age or job."""
    age = m.CyclicDesign(_values(7), 1, design=m.CyclicDesign.singer(2, 1, 3))
    return m.SampledParts(_PEOPLE, {"sex": m.RandomizedResponse(_TWO, 1), "age": age, "job": _table()})


def _pairs_of_attributes() -> Mechanism:
    """Return a mechanism that asks for one attribute or for two."""
    two = m.RandomizedResponse(_TWO, 1)
    pair = m.ProductMechanism(_values(6), [two, _table()])
    last = m.RandomizedResponse(_values(21), 1)
    return m.SampledParts(_PEOPLE, {"sex": two, ("sex", "job"): pair, ("age", "job"): last}, [1, 3, 2])


_cases(
    "sampled-parts",
    {
        "one": _one_attribute,
        "pairs": _pairs_of_attributes,
        "few": lambda: m.SampledParts(
            sf.Domain.product(a=_TWO, b=_THREE), {"a": m.RandomizedResponse(_TWO, 1), "b": _table()}, [2**16 - 3, 2]
        ),
        "cells": lambda: m.SampledParts(
            sf.Domain.product(a=_TWO, b=_THREE),
            {"a": m.RandomizedResponse(_TWO, 1), ("a", "b"): m.RandomizedResponse(_values(6), 1)},
            [1, 4],
        ),
    },
)
LARGE["sampled-parts"] = lambda: m.SampledParts(
    _HUGE, {"a": m.RandomizedResponse(_values(100), 1), "b": m.RandomizedResponse(_values(100), 1)}
)

# -- independent reports -----------------------------------------------------------------------------------

_cases(
    "product",
    {
        "cells": lambda: m.ProductMechanism(
            sf.Domain.product(row=_THREE, column=_values(5)), [_table(), m.RandomizedResponse(_values(5), 1)]
        ),
        "three": lambda: m.ProductMechanism(
            sf.Domain.product(a=_TWO, b=_THREE, c=_TWO),
            [m.RandomizedResponse(_TWO, 1), _table(), m.RandomizedResponse(_TWO, "0.5")],
        ),
        "plain": lambda: m.ProductMechanism(
            _values(9),
            [
                m.CyclicDesign(_THREE, 1, design=m.CyclicDesign.singer(2, 1, 3)),
                m.HadamardResponse(_THREE, 1),
            ],
        ),
        "large": lambda: m.ProductMechanism(
            _values(490),
            [
                m.HadamardResponse(_values(70), "ln 2"),
                m.CyclicDesign(_values(7), 1, design=m.CyclicDesign.singer(2, 1, 3)),
            ],
        ),
        "extremes": lambda: m.ProductMechanism(
            _values(4), [m.RandomizedResponse(_TWO, 0), m.RandomizedResponse(_TWO, "inf")]
        ),
    },
)
LARGE["product"] = lambda: m.ProductMechanism(_HUGE, [m.RandomizedResponse(_values(100), 1)] * 2)

# -- leaves ------------------------------------------------------------------------------------------------

_cases(
    "unary-encoding",
    {
        "optimized": lambda: m.UnaryEncoding(_values(7), 1, optimized=True),
        "labels": lambda: m.UnaryEncoding(_SMALL, 1),
        "infinite": lambda: m.UnaryEncoding(_SMALL, "inf"),
        "half": lambda: m.UnaryEncoding(_values(70), "0.5", optimized=True),
    },
    lambda k: m.UnaryEncoding(_values(k), 1),
    (*_SIZES[1:], 100, 1000),
)
LARGE["unary-encoding"] = lambda: m.UnaryEncoding(_values(10_000), 1)

_cases(
    "one-bit",
    {
        "ratings": lambda: OneBit(sf.Domain(["bad", "fair", "good", "excellent"]), "ln 3", positions=[0, 3, 10, 4]),
        "zero": lambda: OneBit(_THREE, 0),
        "infinite": lambda: OneBit(_THREE, "inf"),
        "large": lambda: OneBit(_values(100_000), 2),
    },
    lambda k: OneBit(_values(k), 1),
    (2, 3, 4, 7, 10, 100),
)
LARGE["one-bit"] = lambda: OneBit(_values(10_000), 1)

_cases(
    "truncated-geometric",
    {
        "ratings": lambda: m.TruncatedGeometric(sf.Domain(["bad", "fair", "good", "excellent"]), 1),
        "many": lambda: m.TruncatedGeometric(_values(74), "0.05"),
        "zero": lambda: m.TruncatedGeometric(_THREE, 0),
        "infinite": lambda: m.TruncatedGeometric(_THREE, "inf"),
    },
    lambda k: m.TruncatedGeometric(_values(k), 1),
    (2, 3, 4, 7, 10, 100),
)
LARGE["truncated-geometric"] = lambda: m.TruncatedGeometric(_values(10_000), "0.001")

_cases(
    "table",
    {
        "three": _table,
        "constant": lambda: m.TableMechanism(sf.Domain(["a", "b"]), [[_ONE], [_ONE]]),
        "zeros": lambda: m.TableMechanism.from_matrix(_TWO, [["1/2", "1/2", 0, 0], ["1/9", 0, "8/9", 0]]),
        "response": lambda: m.TableMechanism.from_matrix(
            _SMALL, [["1/2" if x == y else "1/8" for y in range(5)] for x in range(5)]
        ),
    },
    lambda k: m.TableMechanism.from_matrix(
        _values(k),
        [[f"{1 + (x * y + x) % k}/{sum(1 + (x * z + x) % k for z in range(k))}" for y in range(k)] for x in range(k)],
    ),
    _SIZES,
)
LARGE["table"] = None

_cases(
    "binary-optimal",
    {
        "unequal": lambda: m.BinaryOptimal(_TWO, "0.5", 2),
        "equal": lambda: m.BinaryOptimal(_TWO, 1, 1),
        "warner": lambda: m.BinaryOptimal(sf.Domain(["no", "yes"]), "ln 3", "ln 3"),
        "mangat": lambda: m.BinaryOptimal(sf.Domain(["no", "yes"]), "inf", 1),
        "zero": lambda: m.BinaryOptimal(_TWO, 0, 0),
        "infinite": lambda: m.BinaryOptimal(_TWO, "inf", "inf"),
    },
)
LARGE["binary-optimal"] = None

_cases(
    "prior-binary",
    {
        "rare": lambda: m.PriorBinary(_TWO, ["0.99", "0.01"], 1),
        "equal": lambda: m.PriorBinary(_TWO, ["1/2", "1/2"], "ln 3"),
        "certain": lambda: m.PriorBinary(_TWO, [1, 0], "0.5"),
        "zero": lambda: m.PriorBinary(_TWO, ["1/3", "2/3"], 0),
        "infinite": lambda: m.PriorBinary(_TWO, ["1/3", "2/3"], "inf"),
        "printed": lambda: m.one_sided_as_printed(_TWO, ["0.99", "0.01"], 1),
        "policy": lambda: m.binary_for_policy(sf.Prior(_TWO, ["1/3", "2/3"], 1)),
        "upper": lambda: m.binary_for_policy(sf.Prior(_TWO, ["1/3", "2/3"], 1, "upper")),
        "lower": lambda: m.binary_for_policy(sf.Prior(_TWO, ["1/3", "2/3"], 1, "lower")),
    },
)
LARGE["prior-binary"] = None

_cases(
    "prior-symmetric",
    {
        "rare": lambda: m.PriorSymmetric(_TWO, ["0.9", "0.1"], 1),
        "quarter": lambda: m.PriorSymmetric(_TWO, ["1/4", "3/4"], "ln 3"),
        "certain": lambda: m.PriorSymmetric(_TWO, [1, 0], "0.5"),
        "zero": lambda: m.PriorSymmetric(_TWO, ["1/3", "2/3"], 0),
        "policy": lambda: m.PriorSymmetric(_TWO, ["1/2", "1/2"], 1),
    },
)
LARGE["prior-symmetric"] = None

_cases(
    "secret-randomized-response",
    {
        "pairs": lambda: m.SecretRandomizedResponse(_PAIRS, "S", "ln 3"),
        "six": lambda: m.SecretRandomizedResponse(sf.Domain.product(sex=["f", "m"], age=_THREE), "sex", 1),
        "nine": lambda: m.SecretRandomizedResponse(sf.Domain.product(U=["u", "v", "w"], S=_THREE), "S", 1),
        "many": lambda: m.SecretRandomizedResponse(sf.Domain.product(S=range(5), U=range(7)), "S", "0.5"),
        "zero": lambda: m.SecretRandomizedResponse(_PAIRS, "U", 0),
        "infinite": lambda: m.SecretRandomizedResponse(_PAIRS, "S", "inf"),
    },
)
LARGE["secret-randomized-response"] = None


def _robust() -> sf.Secret:
    """Return a policy for a secret under a confidence set."""
    pairs = sf.Domain.product(sex=["f", "m"], age=_THREE)
    return sf.Secret(pairs, "sex", 1, sf.ChiSquare([[30, 20, 10], [10, 20, 30]]))


_cases("independent-reporting", {"robust": lambda: m.IndependentReporting(_robust())})
_cases("conditional-reporting", {"robust": lambda: m.ConditionalReporting(_robust())})
_cases("conditional-unary", {"robust": lambda: m.ConditionalUnary(_robust())})
LARGE.update(dict.fromkeys(("independent-reporting", "conditional-reporting", "conditional-unary")))

# -- a permanent answer, then reports about it -------------------------------------------------------------


def _memoized(single: Mechanism, lifetime: Any, **settings: int) -> Mechanism:
    """Return the memoized form of a classical mechanism at a lifetime level."""
    policy = sf.Uniform(single.domain, getattr(single, "epsilon", 1))
    return MemoizedMechanism.for_policies(single, policy, sf.Uniform(single.domain, lifetime), **settings)


def _memoized_high_low(domain: sf.Domain, sensitive: Iterable[object], epsilon: Any, lifetime: Any) -> Mechanism:
    """Return the memoized form of subset selection among sensitive values."""
    policies = [sf.HighLow(domain, sensitive, level) for level in (epsilon, lifetime)]
    return MemoizedMechanism.for_policies(m.HighLowSubset(domain, sensitive, epsilon), *policies)


def _memoized_blocks() -> Mechanism:
    """Return a memoized form with one block of sets, one of indices and one of a single value."""
    policies = [sf.Blocks(_values(8), "aaaaabbc", epsilon) for epsilon in ("0.1", "3")]
    sets, indices = (m.BlockMechanism.for_policy(policies[0], name).parts for name in ("subset", "rr"))
    single = m.BlockMechanism(_values(8), [0] * 5 + [1] * 2 + [2], [*sets[:1], *indices[1:]])
    return MemoizedMechanism.for_policies(single, *policies)


_cases(
    "memoized",
    {
        "response": lambda: _memoized(m.RandomizedResponse(_SMALL, 1), 2),
        "changes": lambda: _memoized(m.RandomizedResponse(_SMALL, 1), 2, max_changes=3),
        "refresh": lambda: _memoized(
            m.HadamardResponse(_values(7), 1, block_size=2, blocks=7), "inf", refresh_every=7, max_changes=3
        ),
        "hadamard": lambda: _memoized(m.HadamardResponse(_SMALL, 1), 2),
        "cyclic": lambda: _memoized(m.CyclicDesign(_values(7), 1, design=m.CyclicDesign.singer(2, 1, 3)), 2),
        "shifts": lambda: _memoized(
            m.CyclicDesign(_values(1000), 1, design=m.CyclicDesign.residues(1013, 253, zero=1)), 4
        ),
        "same": lambda: _memoized(m.SubsetSelection(_values(7), 1, 1), 1),
        "sets": lambda: _memoized(m.SubsetSelection(_values(7), "0.5", 3), 3),
        "hashing": lambda: _memoized(m.LocalHashing(_values(7), 1), 2),
        "table": lambda: _memoized(m.TableMechanism.from_matrix(_TWO, [["3/4", "1/4"], ["1/3", "2/3"]]), 3),
        "sensitive": lambda: _memoized_high_low(_SMALL, _FEARED, 1, 2),
        "two-sizes": lambda: _memoized_high_low(_values(7), range(5), "0.2", "1.5"),
        "indices": lambda: _memoized_high_low(_values(7), range(5), "0.2", 3),
        "blocks": _memoized_blocks,
    },
)
LARGE["memoized"] = lambda: _memoized(m.RandomizedResponse(_values(10_000), 1), 2)
