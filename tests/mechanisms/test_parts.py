"""Mechanisms made of parts: their contract, estimators by enumeration, strict reports, and the size that is best."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato._core.simplex import project_to_simplex
from sfumato.auditing.audits import stated_columns
from sfumato.auditing.interpreter import sampler_law
from sfumato.collecting.batch import decode_batch, encode_batch
from sfumato.collecting.files import read_reports, write_reports
from sfumato.errors import InvalidInput, NoMechanism, UnknownSpec
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.estimators.base import HistogramEstimator
from sfumato.mechanisms.estimators.matrix import MatrixEstimator
from sfumato.mechanisms.mixture import ONE, Mixture
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.parts.high_low import (
    HighLowCyclic,
    HighLowHadamard,
    HighLowSubset,
    UtilityOptimizedRR,
    best_high_low_size,
)
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.parts.report_kernel import add_counts, first_fault
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.policy.base import Policy
from sfumato.testing import MechanismContract, check_law
from support.published import reference

R = sf.Domain.range
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.uint8]

# -- the contract ----------------------------------------------------------------------------------------------


class HighLowContract(MechanismContract):
    """For a policy whose sensitive values depend on the size of the domain."""

    cases = 60

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        """Every other value: from one to half of them."""
        return list(domain)[1::2]

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> Policy:
        return sf.HighLow(domain, self.sensitive(domain), epsilon)


class TestHighLowSubset(HighLowContract):
    cases = 200

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowSubset(domain, self.sensitive(domain), epsilon)


class TestHighLowSubsetOfSeveral(HighLowContract):
    """Bitmaps at every size but the least."""

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)[: max(1, len(domain) - 2)]

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        sensitive = self.sensitive(domain)
        return HighLowSubset(domain, sensitive, epsilon, size=max(1, min(2, len(sensitive) - 1)))


class TestHighLowSubsetOfAll(HighLowContract):
    sizes = range(2, 8)

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowSubset(domain, self.sensitive(domain), epsilon)


class TestHighLowSubsetOfOne(HighLowContract):
    """Mangat's method with any number of harmless values."""

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)[:1]

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowSubset(domain, self.sensitive(domain), epsilon)


class TestHighLowHadamard(HighLowContract):
    cases = 200

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowHadamard(domain, self.sensitive(domain), epsilon)


class TestHighLowHadamardPublished(HighLowContract):
    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowHadamard(domain, self.sensitive(domain), epsilon, published=True)


class TestHighLowHadamardInBlocks(HighLowContract):
    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)[1:]

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowHadamard(domain, self.sensitive(domain), epsilon, block_size=2, blocks=len(domain) + 1)


class TestHighLowHadamardOfAll(HighLowContract):
    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowHadamard(domain, self.sensitive(domain), epsilon)


class TestHighLowCyclic(HighLowContract):
    sizes = range(4, 9)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowCyclic(domain, self.sensitive(domain), epsilon, max_bits=6)


class TestHighLowCyclicOfAll(HighLowContract):
    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowCyclic(domain, self.sensitive(domain), epsilon, design=CyclicDesign.residues(11, 2, zero=1))


class TestUtilityOptimizedRR(HighLowContract):
    cases = 200

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return UtilityOptimizedRR(domain, self.sensitive(domain), epsilon)


def block_labels(size: int) -> list[str]:
    """Interleaved blocks: one of at least two values, one of any number, at even sizes one of a single value."""
    if size == 2:
        return ["a", "a"]
    return ["a" if x % 2 == 0 else "b" if x < size - 1 else "c" for x in range(size)]


def blocks_policy(domain: sf.Domain, epsilon: Epsilon) -> sf.Blocks:
    labels = block_labels(len(domain))
    return sf.Blocks(domain, labels, [epsilon * Fraction(1, number + 1) for number in range(len(set(labels)))])


class TestBlocks(MechanismContract):
    cases = 200

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Blocks:
        return blocks_policy(domain, epsilon)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BlockMechanism.for_policy(self.policy(domain, epsilon))


class TestBlocksOfResponses(TestBlocks):
    cases = 60

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BlockMechanism.for_policy(self.policy(domain, epsilon), "rr")


class TestBlocksOfSubsets(TestBlocks):
    cases = 60

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BlockMechanism.for_policy(self.policy(domain, epsilon), "subset")


class TestBlocksOfHadamard(TestBlocks):
    cases = 60

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BlockMechanism.for_policy(self.policy(domain, epsilon), "hadamard")


class TestBlocksOfCyclic(TestBlocks):
    cases = 60

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BlockMechanism.for_policy(self.policy(domain, epsilon), "cyclic", max_bits=7)


class TestMixedBlocks(TestBlocks):
    """A subset, a Hadamard response of several blocks and a single value in one mechanism."""

    cases = 60

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        policy = self.policy(domain, epsilon)
        parts: list[Mixture] = []
        for number, (size, own) in enumerate(zip(np.bincount(policy.block_of), policy.epsilons, strict=True)):
            if size == 1:
                parts.append(RandomizedResponse(R(1), "inf"))
            elif number % 2:
                parts.append(HadamardResponse(R(int(size)), own, block_size=2, blocks=int(size) + 1))
            else:
                parts.append(SubsetSelection(R(int(size)), own))
        return BlockMechanism(domain, policy.block_of, parts)


# -- audits of any policy, of any size, and of samplers that are wrong ------------------------------------------


def any_policies(domain: sf.Domain, generator: random.Random) -> list[Policy]:
    k = len(domain)
    levels = ["0.1", "0.5", "1", "2", "3", "inf"]
    dense = [[0 if x == y else generator.choice(levels) for y in range(k)] for x in range(k)]
    weights = [generator.choice([0, 1, 3]) + (x == 0) for x in range(k)]
    return [
        sf.Pairwise(domain, dense),
        sf.Uniform(domain, generator.choice(levels)),
        sf.HighLow(domain, generator.sample(list(domain), 2), generator.choice(levels)),
        sf.Blocks(domain, [generator.randrange(2) for _ in range(k)], "0.5", across=generator.choice(levels)),
        sf.Blocks(domain, block_labels(k), generator.choice(levels)),
        sf.Metric(domain, "absolute", "0.4"),
        sf.Prior(domain, [Fraction(w, sum(weights)) for w in weights], generator.choice(levels)),
    ]


def random_part(size: int, generator: random.Random) -> Mixture:
    threshold = generator.choice([0, 1, ONE // 7, ONE // 2, ONE - 1, ONE])
    kind = generator.choice(["rr", "subset", "hadamard", "cyclic"]) if size > 1 else "rr"
    if kind == "cyclic":
        design = generator.choice([CyclicDesign.singer(2, 1, 3), CyclicDesign.residues(7, 2, zero=1)])
        return CyclicDesign(R(size), generator.choice(["0", "0.1", "1", "3", "inf"]), design=design)
    if kind == "rr":
        return RandomizedResponse(R(size), 1, threshold=threshold)
    if kind == "subset":
        return SubsetSelection(R(size), 1, generator.randint(1, size - 1), threshold=threshold)
    return HadamardResponse(R(size), 1, block_size=generator.choice([2, 4, 8]), threshold=threshold)


def random_mechanism(domain: sf.Domain, generator: random.Random) -> Parts:
    if generator.random() < 0.3:
        return several_parts(domain, generator)
    if generator.random() < 0.5:
        labels = [generator.randrange(3) for _ in domain]
        number = {label: i for i, label in enumerate(dict.fromkeys(labels))}
        block_of = [number[label] for label in labels]
        return BlockMechanism(domain, block_of, [random_part(size, generator) for size in np.bincount(block_of)])
    sensitive = generator.sample(list(domain), generator.randint(1, len(domain)))
    threshold = generator.choice([0, 1, ONE // 7, ONE // 2, ONE])
    if len(sensitive) > 1 and generator.random() < 0.25:
        return HighLowCyclic(domain, sensitive, generator.choice(["0", "0.5", "2", "inf"]), max_bits=6)
    kind: Any = generator.choice([HighLowSubset, HighLowHadamard])
    return with_threshold(kind(domain, sensitive, 1), threshold)


def with_threshold(mechanism: Parts, threshold: int) -> Parts:
    """The mechanism with another threshold in its only part."""
    (part,) = mechanism.parts
    changed = part.from_parameters(part.domain, part.parameters() | {"threshold": threshold})
    return Parts(mechanism.domain, mechanism.part_of, [changed], mechanism.unprotected)


def several_parts(domain: sf.Domain, generator: random.Random) -> Parts:
    """Several parts, of which some have unprotected values."""
    labels = [generator.randrange(3) for _ in domain]
    part_of = [list(dict.fromkeys(labels)).index(label) for label in labels]
    first = [part_of.index(number) for number in set(part_of)]
    unprotected = [x for x in range(len(domain)) if x not in first and generator.random() < 0.4]
    sizes = np.bincount([number for x, number in enumerate(part_of) if x not in unprotected]).tolist()
    return Parts(domain, part_of, [random_part(size, generator) for size in sizes], unprotected)


@pytest.mark.slow
def test_a_few_columns_are_the_worst_of_all_for_any_policy() -> None:
    generator = random.Random(5)
    for _ in range(80):
        domain = R(generator.randint(2, 6))
        mechanism = random_mechanism(domain, generator)
        for policy in any_policies(domain, generator):
            full = sf.audit(mechanism, policy).worst
            ranks = [policy.worst(column).rank for _, column in stated_columns(mechanism, policy)]
            violated, excess = max(ranks, default=(False, -math.inf))
            assert violated == full.violated, (mechanism, policy)
            if full.violated or math.isfinite(full.excess):
                assert excess == full.excess or abs(excess - full.excess) < 1e-12, (mechanism, policy)


@pytest.mark.slow
def test_many_values_are_audited() -> None:
    domain, sensitive = R(20_000), range(12_000, 20_000)
    high_low = sf.HighLow(domain, sensitive, 1)
    blocks = sf.Blocks(domain, np.arange(20_000) % 1000, 1)
    for mechanism, policy in (
        (HighLowSubset(domain, sensitive, 1), high_low),
        (HighLowHadamard(domain, sensitive, 1), high_low),
        (HighLowCyclic(domain, sensitive, 1), high_low),
        (BlockMechanism.for_policy(blocks), blocks),
        (BlockMechanism.for_policy(blocks, "cyclic"), blocks),
    ):
        certificate = sf.audit(mechanism, policy)
        assert certificate.holds, mechanism
        assert abs(certificate.worst.excess) < 1e-9
        one_more = sf.HighLow(domain, range(11_999, 20_000), 1)
        for stricter in (sf.Uniform(domain, 5), one_more, sf.HighLow(domain, sensitive, "0.999999")):
            assert any(stricter.worst(column).violated for _, column in stated_columns(mechanism, stricter))


def test_audits_of_many_values_enumerate_every_kind_of_value() -> None:
    parts = [RandomizedResponse(R(3), 1), SubsetSelection(R(4), 1, 2), RandomizedResponse(R(3), 1)]
    mechanism = Parts(R(14), [0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 2, 1, 1], parts, np.array([0, 3, 7, 11]))
    assert sorted(mechanism.representatives()) == [0, 1, 2, 3]
    small = mechanism.audit_surrogate()
    assert isinstance(small, Parts)
    kinds = {(type(small.parts[j]), x in small.unprotected) for x, j in enumerate(small.part_of.tolist())}
    assert kinds == {(kind, is_open) for kind in (RandomizedResponse, SubsetSelection) for is_open in (False, True)}
    assert len(small.parts) == 3
    check_law(small)


class OneMore:
    """Draws whose thresholds over 2^64 are one too high."""

    def __init__(self, inner: Draws) -> None:
        self._inner = inner

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        return self._inner.bernoulli(numerator + (denominator == ONE), denominator)

    def below(self, m: int) -> int:
        return self._inner.below(m)


class Greedy(Parts):
    """Broken on purpose: its thresholds are rounded up."""

    def step(self, state: tuple[int, Any], draws: Draws) -> tuple[int, Any] | Finished:
        return super().step(state, OneMore(draws))


class TellsHarmless(Parts):
    """Broken on purpose: a harmless value is always told in clear, so a report of the part denies it."""

    def step(self, state: tuple[int, Any], draws: Draws) -> tuple[int, Any] | Finished:
        following = super().step(state, draws)
        if isinstance(following, Finished) and self.number_of[state[0]] == OUTSIDE:
            return Finished(self.numbering.revealed(state[0]))
        return following


class TellsBlock(Parts):
    """Broken on purpose: in the last bit of every report stands whether the value is in the first half."""

    def step(self, state: tuple[int, Any], draws: Draws) -> tuple[int, Any] | Finished:
        following = super().step(state, draws)
        if isinstance(following, Finished):
            return Finished(following.report << 1 | (state[0] < len(self.domain) // 2))
        return following

    @property
    def bits(self) -> int:
        return super().bits + 1


@pytest.mark.parametrize("kind", [Greedy, TellsHarmless, TellsBlock])
@pytest.mark.parametrize(("k", "s", "size"), [(5, 3, 2), (6, 3, 1), (3, 1, 1), (2000, 900, 1)])
def test_broken_high_low_samplers_are_found(kind: type[Parts], k: int, s: int, size: int) -> None:
    sensitive = range(k - s - 1, k - 1)  # the last value is harmless, and so are the first ones
    policy = sf.HighLow(R(k), sensitive, 1)
    good = HighLowSubset(R(k), sensitive, 1, size)
    assert sf.audit(good, policy).holds
    assert not sf.audit(kind(good.domain, good.part_of, good.parts, good.unprotected), policy).holds


def test_a_broken_block_sampler_is_found() -> None:
    for policy in (blocks_policy(R(7), Epsilon(1)), sf.Blocks(R(3000), np.arange(3000) % 4, 1)):
        good = BlockMechanism.for_policy(policy, "rr")
        assert sf.audit(good, policy).holds
        assert not sf.audit(Greedy(policy.domain, good.part_of, good.parts), policy).holds


@pytest.mark.parametrize("epsilon", ["0", "0.5", "3", "1000"])
def test_the_blocks_number_is_a_leak_to_a_policy_that_hides_it(epsilon: str) -> None:
    domain, labels = R(6), [0, 0, 1, 1, 1, 2]
    for inner in (None, "rr", "subset", "hadamard", "cyclic"):
        mechanism = BlockMechanism.for_policy(sf.Blocks(domain, labels, epsilon), inner)
        for policy in (sf.Uniform(domain, 1000), sf.Blocks(domain, labels, epsilon, across=1000)):
            certificate = sf.audit(mechanism, policy)
            assert not certificate.holds
            assert certificate.worst.excess == math.inf
        everyone = [Fraction(1, 6)] * 6
        assert not sf.audit(mechanism, sf.Prior(domain, everyone, 1000)).holds


@pytest.mark.parametrize("epsilon", ["0", "1e-19", "1e-25", "0.001", "1", "ln 2", "40", "200"])
def test_every_column_holds_after_rounding_and_one_step_more_does_not(epsilon: str) -> None:
    policy = sf.HighLow(R(5), [0, 2, 3], epsilon)
    for mechanism in (
        HighLowSubset(R(5), [0, 2, 3], epsilon, 2),
        HighLowSubset(R(5), [0, 2, 3], epsilon, 1),
        HighLowHadamard(R(5), [0, 2, 3], epsilon),
        HighLowHadamard(R(5), [0, 2, 3], epsilon, published=True),
    ):
        assert sf.audit(mechanism, policy).holds, mechanism
        assert not sf.audit(with_threshold(mechanism, mechanism.parts[0].threshold + 1), policy).holds, mechanism


# -- the estimate, by enumeration --------------------------------------------------------------------------------

EXACT: dict[str, Parts] = {
    "subsets of one": HighLowSubset(R(5), [1, 3], 1),
    "subsets of two": HighLowSubset(R(7), [0, 2, 3, 5], "0.3", 2),
    "subsets of all but one": HighLowSubset(R(5), [4, 0, 2], "ln 3", 2),
    "subsets of all values": HighLowSubset(R(5), range(5), 1, 2),
    "Mangat": HighLowSubset(R(2), [1], 1),
    "Mangat, many harmless": HighLowSubset(R(6), [3], "0.2"),
    "subsets, everything": HighLowSubset(R(6), [0, 1, 2, 4], "inf", 2),
    "hadamard": HighLowHadamard(R(6), [0, 2, 4], 1, block_size=4),
    "hadamard, ragged": HighLowHadamard(R(7), [0, 2, 4, 5, 6], "0.4", block_size=8),
    "hadamard, blocks": HighLowHadamard(R(7), [0, 2, 4, 5, 6], 3, block_size=4),
    "hadamard, idle block": HighLowHadamard(R(5), [0, 4], 3, block_size=2, blocks=5),
    "hadamard, published": HighLowHadamard(R(5), [3], 2, published=True),
    "hadamard, everything": HighLowHadamard(R(5), [1, 2], "inf", block_size=2),
    "cyclic": HighLowCyclic(R(7), [0, 2, 4, 5, 6], "0.4", design=CyclicDesign.singer(2, 1, 3)),
    "cyclic, several base blocks": HighLowCyclic(R(6), [0, 2, 4], 2, design=CyclicDesign.residues(5, 1, zero=1)),
    "cyclic, everything": HighLowCyclic(R(5), [1, 2], "inf", design=CyclicDesign.residues(3, 2)),
    "utility-optimized": UtilityOptimizedRR(R(6), [1, 2, 5], "0.7"),
    "utility-optimized, everything": UtilityOptimizedRR(R(4), [1, 2], "inf"),
    "blocks": BlockMechanism.for_policy(blocks_policy(R(8), Epsilon(2))),
    "blocks of responses": BlockMechanism.for_policy(blocks_policy(R(6), Epsilon(1)), "rr"),
    "blocks of subsets": BlockMechanism.for_policy(blocks_policy(R(8), Epsilon(1)), "subset"),
    "blocks of hadamard": BlockMechanism.for_policy(blocks_policy(R(8), Epsilon(1)), "hadamard"),
    "blocks of cyclic": BlockMechanism.for_policy(blocks_policy(R(8), Epsilon(1)), "cyclic"),
    "subset and cyclic": BlockMechanism(
        R(8), [0, 1, 0, 1, 0, 1, 0, 1],
        [SubsetSelection(R(4), 1, 2), CyclicDesign(R(4), 2, design=CyclicDesign.singer(2, 1, 3))],
    ),
    "subset and hadamard": BlockMechanism(
        R(8), [0, 1, 0, 1, 0, 1, 0, 2],
        [SubsetSelection(R(4), 1, 2), HadamardResponse(R(3), 2, block_size=2), RandomizedResponse(R(1), "inf")],
    ),
    "subset and wide hadamard": BlockMechanism(
        R(9), [0, 0, 1, 1, 1, 1, 1, 2, 2],
        [
            SubsetSelection(R(2), "0.5", 1),
            HadamardResponse(R(5), "ln 5", block_size=4, blocks=3),
            RandomizedResponse(R(2), 1),
        ],
    ),
    "a single value with noise": BlockMechanism(
        R(4), [0, 1, 0, 0], [SubsetSelection(R(3), 1, 2), RandomizedResponse(R(1), 1)]
    ),
    "blocks, everything": BlockMechanism.for_policy(sf.Blocks(R(5), [0, 0, 1, 1, 1], "inf")),
    "one block": BlockMechanism.for_policy(sf.Blocks(R(4), [0, 0, 0, 0], 1), "subset"),
    "two parts with unprotected values": Parts(
        R(9), [0, 0, 1, 1, 1, 0, 0, 1, 0],
        [SubsetSelection(R(3), "0.5", 2), HadamardResponse(R(3), 1, block_size=4)], [1, 5, 7],
    ),
    "indices with unprotected values": Parts(
        R(8), [0, 0, 1, 1, 1, 2, 2, 0],
        [RandomizedResponse(R(2), 1), CyclicDesign(R(2), 1, design=CyclicDesign.singer(2, 1, 3)),
         RandomizedResponse(R(1), "0.5")], [3, 6, 7],
    ),
}  # fmt: skip


@pytest.fixture(params=EXACT, ids=lambda name: name.replace(", ", "-").replace(" ", "-"))
def mechanism(request: pytest.FixtureRequest) -> Parts:
    return EXACT[request.param]


def as_array(mechanism: Mechanism, reports: Sequence[int]) -> npt.NDArray[Any]:
    if not mechanism.report_format.shape:
        return np.array(reports, mechanism.report_format.dtype)
    rows = [list(mechanism.report_format.encode(report)) for report in reports]
    return np.array(rows, np.uint8).reshape(len(rows), *mechanism.report_format.shape)


def all_reports(mechanism: Mechanism) -> tuple[Floats, Floats, Floats]:
    """The law, the counts of each report alone, and the estimate from each."""
    counts = [sf.aggregate(mechanism, as_array(mechanism, [y])).counts for y in mechanism.reports()]
    shares = np.array(counts, np.float64)
    estimator = mechanism.estimator
    return mechanism.matrix(), shares, np.array([estimator.frequencies(row) for row in shares])


def distributions(size: int) -> list[Floats]:
    generator = np.random.default_rng(size)
    return [np.full(size, 1 / size), np.eye(size)[0], np.eye(size)[-1], *generator.dirichlet(np.full(size, 0.5), 4)]


def test_the_decoder_is_exact_by_enumeration(mechanism: Parts) -> None:
    k = len(mechanism.domain)
    estimator = mechanism.estimator
    law, counts, decoded = all_reports(mechanism)
    scale = float(np.abs(decoded).max()) ** 2
    assert law @ decoded == pytest.approx(np.eye(k), abs=1e-12 * scale)  # unbiased, value by value
    generator = np.random.default_rng(2)
    for p in distributions(k):
        outputs = p @ law
        covariance = (decoded * outputs[:, None]).T @ decoded - np.outer(p, p)
        assert estimator.expected_counts(p) == pytest.approx(outputs @ counts, abs=1e-14)
        assert estimator.frequencies(estimator.expected_counts(p)) == pytest.approx(p, abs=1e-12 * scale)
        assert estimator.covariance(p) == pytest.approx(covariance, rel=1e-9, abs=1e-12 * scale)
        assert estimator.variances(p) == pytest.approx(np.diag(covariance), rel=1e-9, abs=1e-12 * scale)
        assert mechanism.risk(3, p) == pytest.approx(np.trace(covariance) / 3, rel=1e-9, abs=1e-12 * scale)
        for weights in [np.ones(k), np.zeros(k), *generator.normal(size=(3, k))]:
            expected = weights @ covariance @ weights
            assert estimator.variance(weights, p) == pytest.approx(expected, rel=1e-9, abs=1e-11 * scale)


def test_reach_is_the_least_and_greatest_of_all_reports(mechanism: Parts) -> None:
    law, _, decoded = all_reports(mechanism)
    low, high = mechanism.estimator.score_bounds()
    possible = decoded[law.any(axis=0)]
    assert (low <= possible.min(axis=0) + 1e-12).all()
    assert (high >= possible.max(axis=0) - 1e-12).all()
    # A set can hold any one value and not another; the exceptions have a single value, or certainty.
    told = np.array([len(mechanism.parts[j].domain) > 1 for j in mechanism.part_of])
    assert high == pytest.approx(possible.max(axis=0))
    assert low[told] == pytest.approx(decoded.min(axis=0)[told])


def test_pull_is_the_adjoint_of_shares(mechanism: Parts) -> None:
    estimator = mechanism.estimator
    assert isinstance(estimator, HistogramEstimator) == (mechanism.report_format.encoding == "index")
    if isinstance(estimator, HistogramEstimator):
        for weights in np.random.default_rng(4).normal(size=(4, mechanism.outputs)):
            assert estimator.adjoint(weights) == pytest.approx(mechanism.matrix() @ weights, abs=1e-13)


def test_the_worst_risk_is_attained_and_certified(mechanism: Parts) -> None:
    law, _, decoded = all_reports(mechanism)
    second_moments = law @ (decoded**2).sum(axis=1)
    assert mechanism.estimator.second_moments() == pytest.approx(second_moments, rel=1e-9)
    worst = project_to_simplex(second_moments / 2)
    assert worst.sum() == pytest.approx(1)
    slopes = second_moments - 2 * worst  # of the concave risk: equal where p > 0, no greater elsewhere
    level = slopes[worst > 1e-12]
    assert level == pytest.approx(np.full(len(level), level.max()), rel=1e-9)
    assert slopes.max() <= level.max() * (1 + 1e-9)
    risk = second_moments @ worst - worst @ worst
    assert mechanism.worst_risk(5) == pytest.approx(risk / 5, rel=1e-9, abs=1e-12)
    assert all(mechanism.risk(5, p) <= mechanism.worst_risk(5) + 1e-12 for p in distributions(len(mechanism.domain)))


def test_no_budget_tells_nothing_and_gives_no_estimate() -> None:
    for make in (HighLowSubset, HighLowHadamard, partial(HighLowHadamard, published=True), HighLowCyclic):
        mechanism: Mechanism = make(R(5), [1, 2, 4], 0)
        assert len({tuple(sorted(sampler_law(mechanism, x)[0].items())) for x in range(5)}) == 1
        for policy in (sf.HighLow(R(5), [1, 2, 4], 0), sf.Uniform(R(5), 0), sf.Prior(R(5), [1, 0, 0, 0, 0], 0)):
            assert sf.audit(mechanism, policy).holds
        assert math.isinf(mechanism.risk(10))
        assert math.isinf(mechanism.worst_risk(10))
        with pytest.raises(InvalidInput, match="its epsilon is 0"):
            sf.estimate(mechanism, sf.aggregate(mechanism, sf.privatize(mechanism, [0, 1, 2])))
    within = sf.Blocks(R(5), [0, 0, 1, 1, 2], [1, 0, 0])
    for inner in (None, "rr", "subset", "hadamard", "cyclic"):
        blocks = BlockMechanism.for_policy(within, inner)
        assert sf.audit(blocks, within).holds
        assert math.isinf(blocks.risk(10))
        with pytest.raises(InvalidInput, match="its epsilon is 0"):
            sf.estimate(blocks, sf.aggregate(blocks, sf.privatize(blocks, [0, 1, 2])))


def test_an_infinite_budget_tells_everything() -> None:
    mechanism = HighLowSubset(R(5), [1, 2, 4], "inf")
    laws = [sampler_law(mechanism, x)[0] for x in range(5)]
    assert all(list(law.values()) == [1] for law in laws)
    assert len(set().union(*laws)) == 5
    assert mechanism.risk(10) == pytest.approx((1 - 1 / 5) / 10)  # that of counting people
    assert sf.audit(mechanism, sf.HighLow(R(5), [1, 2, 4], "inf")).holds
    assert not sf.audit(mechanism, sf.HighLow(R(5), [1, 2, 4], 1000)).holds


# -- methods -----------------------------------------------------------------------------------------------------


def sampled(mechanism: Parts, n: int = 300, seed: int = 1) -> sf.Aggregate:
    values = np.random.default_rng(seed).choice(len(mechanism.domain), n)
    return sf.aggregate(mechanism, sf.privatize(mechanism, values, sf.InsecureSeeded(seed)))


def part_shares(mechanism: Parts, aggregate: sf.Aggregate) -> Floats:
    """The share of reports that each part has, revealed values among them."""
    shares = np.zeros(len(mechanism.parts))
    for number, part in enumerate(mechanism.parts):
        start, end = mechanism.numbering.count_offsets[number : number + 2]
        each = part.size if isinstance(part, SubsetSelection) else 1
        shares[number] = int(aggregate.counts[start:end].sum()) / each / aggregate.n
    revealed = aggregate.counts[mechanism.numbering.count_offsets[-1] :] / aggregate.n
    np.add.at(shares, mechanism.part_of[mechanism.unprotected], revealed)
    return shares


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 40, 5000])
def test_the_simplex_method_keeps_the_blocks_totals(mechanism: Parts, n: int) -> None:
    aggregate = sampled(mechanism, n)
    estimate = sf.estimate(mechanism, aggregate, "simplex")
    assert (estimate.frequencies >= 0).all()
    totals = np.bincount(mechanism.part_of, weights=estimate.frequencies)
    assert totals == pytest.approx(part_shares(mechanism, aggregate), abs=1e-12)
    is_open = np.isin(np.arange(len(mechanism.domain)), mechanism.unprotected)
    for part in range(len(mechanism.parts)):
        own = (mechanism.part_of == part) & ~is_open
        told = np.flatnonzero((mechanism.part_of == part) & is_open)
        # What is told in clear stays, or is scaled to the part's total and leaves nothing for the hidden values.
        scale = min(1.0, totals[part] / max(float(estimate.unbiased[told].sum()), 1e-300))
        assert estimate.frequencies[told] == pytest.approx(scale * estimate.unbiased[told], abs=1e-12)
        assert scale == 1 or not estimate.frequencies[own].any()
        # Nearest to the unbiased: one constant is taken from all that stay positive, and no less from the others.
        taken = (estimate.unbiased - estimate.frequencies)[own]
        kept = estimate.frequencies[own] > 0
        if kept.any():
            assert np.ptp(taken[kept]) < 1e-9 * max(1.0, float(np.abs(estimate.unbiased).max()))
            assert (taken[~kept] <= taken[kept].max() + 1e-9).all()


def test_nothing_to_share_out_is_projected_to_nothing() -> None:
    for point in ([0.0, 0.0], [1.0, -2.0, 1.0], [-3.0]):
        assert project_to_simplex(np.array(point), 0.0).tolist() == [0.0] * len(point)


@pytest.mark.parametrize("method", ["unbiased", "simplex", "mle"])
def test_a_block_without_reports_has_frequency_zero(method: str) -> None:
    for inner in ("rr", "subset", "hadamard", "cyclic"):
        mechanism = BlockMechanism.for_policy(sf.Blocks(R(6), [0, 0, 0, 1, 1, 1], 1), inner)
        estimate = sf.estimate(mechanism, sf.aggregate(mechanism, sf.privatize(mechanism, [3, 4, 5] * 20)), method)
        assert estimate.frequencies[:3].tolist() == [0, 0, 0]
        assert method == "unbiased" or estimate.frequencies.sum() == pytest.approx(1)
        assert np.isfinite(np.concatenate(estimate.interval())).all()


def expected_aggregate(mechanism: Parts, p: Floats, n: int) -> sf.Aggregate:
    """Counts as expected at p, rounded so that they are those of n reports."""
    exact = mechanism.estimator.expected_counts(p) * n
    counts = np.floor(exact).astype(np.int64)
    last = mechanism.numbering.count_offsets[-1]
    reports = 0
    for number, part in enumerate(mechanism.parts):
        own = slice(*mechanism.numbering.count_offsets[number : number + 2])
        each = part.size if isinstance(part, SubsetSelection) else 1
        missing = -int(counts[own].sum()) % each
        counts[own][np.argsort(-exact[own])[:missing]] += 1
        reports += int(counts[own].sum()) // each
    return sf.Aggregate(mechanism.hash, reports + int(counts[last:].sum()), counts)


@pytest.mark.parametrize("method", ["unbiased", "simplex", "mle"])
def test_every_method_finds_the_truth_in_what_is_expected_of_it(mechanism: Parts, method: str) -> None:
    p = np.random.default_rng(5).dirichlet(np.full(len(mechanism.domain), 2.0))
    estimate = sf.estimate(mechanism, expected_aggregate(mechanism, p, 10**9), method)
    near = 20 * max(float(estimate.standard_errors.max()), 1e-7) if method == "mle" else 1e-6
    assert estimate.frequencies == pytest.approx(p, abs=near)
    assert (estimate.fit is not None) == (method == "mle")
    if estimate.fit is not None:
        assert estimate.fit.converged
        assert estimate.frequencies.sum() == pytest.approx(1)


def test_maximum_likelihood_never_leaves_the_simplex(mechanism: Parts) -> None:
    for seed in range(5):
        estimate = sf.estimate(mechanism, sampled(mechanism, 15, seed), "mle")
        assert (estimate.frequencies >= 0).all()
        assert estimate.frequencies.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("k", "s", "epsilon"), [(5, 2, "0.5"), (8, 3, "1"), (9, 5, "2"), (6, 6, "1"), (7, 4, "4")])
def test_the_efficient_estimate_is_unbiased_and_no_worse(k: int, s: int, epsilon: str) -> None:
    mechanism = HighLowHadamard(R(k), range(s), epsilon, published=True)
    estimator = MatrixEstimator.of(mechanism)
    law, counts, own = all_reports(mechanism)
    decoded = np.array([estimator.frequencies(row) for row in counts])
    assert law @ decoded == pytest.approx(np.eye(k), abs=1e-9)
    outputs = law.mean(axis=0)
    efficient, published = (float(outputs @ (scores**2).sum(axis=1)) - 1 / k for scores in (decoded, own))
    assert efficient <= published * (1 + 1e-9)
    assert mechanism.risk(1) == pytest.approx(published)
    assert estimator.variances(np.full(k, 1 / k)).sum() == pytest.approx(efficient)
    aggregate = sampled(mechanism)
    shares = aggregate.counts / aggregate.n
    assert sf.estimate(mechanism, aggregate, "efficient").frequencies == pytest.approx(estimator.frequencies(shares))
    if s < k and s + 1 < mechanism.parts[0].outputs:  # outputs outnumber values: there is something to gain
        assert efficient < published * (1 - 1e-6)


def test_methods_for_indices_are_refused_for_parts_with_bitmaps() -> None:
    mechanism = EXACT["blocks of subsets"]
    with pytest.raises(InvalidInput, match="efficient"):
        sf.estimate(mechanism, sampled(mechanism), "efficient")
    with pytest.raises(InvalidInput, match="mmse"):
        sf.estimate(mechanism, sampled(mechanism), "mmse", prior=np.full(8, 1 / 8))


@pytest.mark.parametrize("name", ["blocks of subsets", "subset and wide hadamard", "hadamard", "subsets of two"])
def test_an_estimate_draws_itself(name: str) -> None:
    from matplotlib.figure import Figure

    assert isinstance(sf.estimate(EXACT[name], sampled(EXACT[name]), "simplex").plot(), Figure)


# -- reports -----------------------------------------------------------------------------------------------------

WIDE: dict[str, Parts] = {
    "straddling": HighLowSubset(R(70), range(63), 1, 20),
    "a whole word": HighLowSubset(R(75), range(11, 75), 1, 20),
    "two words": HighLowSubset(R(200), range(127), 1, 40),
    "no head": HighLowSubset(R(64), range(64), 1, 20),
    "mixed": BlockMechanism(
        R(140), [0] * 67 + [1] * 70 + [2] * 3,
        [SubsetSelection(R(67), 1, 20), HadamardResponse(R(70), 2, block_size=8), RandomizedResponse(R(3), 1)],
    ),
    "many blocks": BlockMechanism.for_policy(sf.Blocks(R(300), np.arange(300) % 75, 1), "subset"),
    "exactly bytes": HighLowSubset(R(10), range(6), 1, 2),  # 6 bits and 5 heads: 9 bits
}  # fmt: skip
PARTED = {
    name: mechanism for name, mechanism in {**EXACT, **WIDE}.items() if mechanism.report_format.encoding == "parted"
}  # fmt: skip


def slow_reading(mechanism: Parts, report: int) -> tuple[int, int] | None:
    """What `parse` says of a report, or None where no value has it: without compiled code."""
    if report >> mechanism.bits or report >> mechanism.numbering.body_bits >= len(mechanism.parts) + len(
        mechanism.unprotected
    ):
        return None
    part, inner = mechanism.numbering.parse(report)
    if part == OUTSIDE:
        return (part, inner) if report == mechanism.numbering.revealed(inner) else None
    own = mechanism.parts[part]
    if isinstance(own, SubsetSelection):
        return (part, inner) if inner.bit_count() == own.size and not inner >> len(own.domain) else None
    return (part, inner) if inner < own.outputs else None


def some_reports(mechanism: Parts, count: int, generator: random.Random) -> list[int]:
    found = []
    for _ in range(count):
        head = generator.randrange(len(mechanism.parts) + len(mechanism.unprotected))
        if head >= len(mechanism.parts):
            found.append(mechanism.numbering.revealed(int(mechanism.unprotected[head - len(mechanism.parts)])))
            continue
        part = mechanism.parts[head]
        if isinstance(part, SubsetSelection):
            inner = sum(1 << i for i in generator.sample(range(len(part.domain)), part.size))
        else:
            inner = generator.randrange(part.outputs)
        found.append(mechanism.numbering.of_part(head, inner))
    return found


def test_reports_and_their_parses_are_one_to_one(mechanism: Parts) -> None:
    reports = list(mechanism.reports())
    parsed = [mechanism.numbering.parse(report) for report in reports]
    assert len(set(parsed)) == len(reports) == mechanism.outputs
    for report, (part, inner) in zip(reports, parsed, strict=True):
        again = mechanism.numbering.revealed(inner) if part == OUTSIDE else mechanism.numbering.of_part(part, inner)
        assert again == report < 1 << mechanism.bits


@pytest.mark.parametrize("name", [name for name in PARTED if PARTED[name].bits <= 12])
def test_validity_of_every_row_there_is(name: str) -> None:
    mechanism = PARTED[name]
    valid = set(mechanism.reports())
    for report in range(1 << mechanism.bits):
        row = as_array(mechanism, [report])
        assert first_fault(mechanism, row) == (report in valid), report
        assert (slow_reading(mechanism, report) is not None) == (report in valid)


@pytest.mark.parametrize("name", PARTED)
def test_validity_and_counts_are_those_of_a_slow_reading(name: str) -> None:
    mechanism, generator = PARTED[name], random.Random(3)
    good = some_reports(mechanism, 60, generator)
    counts, expected = (np.zeros(mechanism.report_format.count_size, np.int64) for _ in range(2))
    add_counts(mechanism, as_array(mechanism, good), counts)
    for report in good:
        part, inner = mechanism.numbering.parse(report)
        if part == OUTSIDE:
            expected[mechanism.numbering.count_offsets[-1] + mechanism.unprotected.tolist().index(inner)] += 1
        elif isinstance(mechanism.parts[part], SubsetSelection):
            for bit in range(inner.bit_length()):
                expected[mechanism.numbering.count_offsets[part] + bit] += inner >> bit & 1
        else:
            expected[mechanism.numbering.count_offsets[part] + inner] += 1
    assert counts.tolist() == expected.tolist()
    assert first_fault(mechanism, as_array(mechanism, good)) == len(good)
    for _ in range(300):
        rows = some_reports(mechanism, 4, generator)
        changed = generator.randrange(4)
        for _ in range(generator.choice([1, 1, 2, 4])):
            rows[changed] ^= 1 << generator.randrange(mechanism.bits)
        faulty = slow_reading(mechanism, rows[changed]) is None
        assert first_fault(mechanism, as_array(mechanism, rows)) == (changed if faulty else 4), rows


def test_bad_rows_are_refused_with_their_number() -> None:
    mechanism = BlockMechanism(
        R(12), [0] * 5 + [1] * 6 + [2],
        [SubsetSelection(R(5), 1, 2), HadamardResponse(R(6), 2, block_size=4, blocks=3), RandomizedResponse(R(1), 1)],
    )  # fmt: skip
    assert (mechanism.numbering.body_bits, mechanism.bits) == (5, 7)
    good = [0b00_00011, 0b01_01011, 0b10_00000]
    assert sf.aggregate(mechanism, as_array(mechanism, good)).n == 3
    bad = {
        "head out of range": 0b11_00000,
        "too many members": 0b00_00111,
        "too few members": 0b00_00001,
        "index out of range": 0b01_01100,
        "index far out of range": 0b01_11111,
        "another answer of the only value": 0b10_00001,
    }
    for name, report in bad.items():
        for row in (0, 2, 3):
            rows = as_array(mechanism, [*good[:row], report, *good[row:]])
            with pytest.raises(InvalidInput, match=f"report in row {row} must be a report of one of the parts"):
                sf.aggregate(mechanism, rows)
            assert slow_reading(mechanism, report) is None, name
    with pytest.raises(InvalidInput, match="row 1 must leave its last 1 bit zero"):
        sf.aggregate(mechanism, np.array([[0b11], [0b10000011]], np.uint8))
    for wrong in (np.zeros((2, 2), np.uint8), np.zeros(2, np.int64), np.zeros((2, 1), np.int64)):
        with pytest.raises(InvalidInput):
            sf.aggregate(mechanism, wrong)


def test_bad_rows_with_open_values_are_refused_with_their_number() -> None:
    mechanism = HighLowSubset(R(8), [0, 1, 2, 3, 4], 1, 2)
    assert (mechanism.numbering.body_bits, mechanism.bits) == (5, 7)
    good = [0b00_00011, 0b01_00000, 0b11_00000]
    assert sf.aggregate(mechanism, as_array(mechanism, good)).counts.tolist() == [1, 1, 0, 0, 0, 1, 0, 1]
    for report in (0b01_00011, 0b10_10000, 0b00_00000, 0b00_11111):
        with pytest.raises(InvalidInput, match="report in row 2 must be"):
            sf.aggregate(mechanism, as_array(mechanism, [*good[:2], report]))
    two = BlockMechanism(R(5), [0, 0, 1, 1, 1], [SubsetSelection(R(2), 1, 1), SubsetSelection(R(3), 1, 1)])
    with pytest.raises(InvalidInput, match="row 0 must be"):  # the third bit is beyond a block of two values
        sf.aggregate(two, as_array(two, [0b0_100]))
    fewer = HighLowSubset(R(7), [0, 1], 1, 1)
    with pytest.raises(InvalidInput, match=r"row 1 must be in 0 … 6"):
        sf.aggregate(fewer, np.array([6, 7]))


def test_rows_enough_for_several_threads_are_read_alike() -> None:
    mechanism = WIDE["straddling"]
    rows = sf.privatize(mechanism, np.arange(50_001) % 70, sf.InsecureSeeded(3))
    together, apart = (np.zeros(mechanism.report_format.count_size, np.int64) for _ in range(2))
    add_counts(mechanism, rows, together)
    for start in range(0, len(rows), 999):
        add_counts(mechanism, rows[start : start + 999], apart)
    assert together.tolist() == apart.tolist()
    assert first_fault(mechanism, rows) == 50_001
    assert first_fault(mechanism, rows[:0]) == 0
    for faults in ([40_000], [40_000, 100], [50_000], [25_000, 25_001], [0, 1]):
        wrong = rows.copy()
        wrong[faults] = 0
        assert first_fault(mechanism, wrong) == min(faults)


def test_strided_and_read_only_rows_are_counted_alike() -> None:
    mechanism = WIDE["mixed"]
    rows = as_array(mechanism, some_reports(mechanism, 40, random.Random(1)))
    expected = sf.aggregate(mechanism, rows[::2].copy())
    strided, read_only = rows[::2], rows[::2].copy()
    read_only.setflags(write=False)
    for same in (strided, read_only, np.asfortranarray(rows[::2])):
        assert sf.aggregate(mechanism, same) == expected


@pytest.mark.parametrize(
    ("counts", "culprit"),
    [
        ([1, 1, 0, 0, 0, 0, 0, 0, 0], "have 8 entries"),
        ([1, 0, 0, 0, 0, 0, 1, 0], "counts of part 0 must sum to a multiple of 2"),
        ([2, 2, 0, 0, 0, 0, 2, 0], "be those of 2 reports; got counts of 4 reports"),
        ([1, 1, 0, 0, 0, 0, 0, 0], "be those of 2 reports; got counts of 1 report"),
        ([2, 0, 0, 0, 0, 0, 1, 0], "every count of part 0 must be at most 1, the number of reports of the part; got 2"),
    ],
)
def test_counts_that_no_reports_have_are_refused(counts: list[int], culprit: str) -> None:
    mechanism = HighLowSubset(R(8), [0, 1, 2, 3, 4], 1, 2)
    with pytest.raises(InvalidInput, match=culprit):
        sf.Aggregate(mechanism.hash, 2, np.array(counts, np.int64)).check(mechanism)


def test_counts_beyond_64_bits_together_are_added_exactly() -> None:
    mechanism = HighLowSubset(R(8), [0, 1, 2, 3, 4], 1, 4)
    n = 2**63 - 1
    sf.Aggregate(mechanism.hash, n, np.array([n, n, n, n, 0, 0, 0, 0], np.int64)).check(mechanism)


@pytest.mark.parametrize("name", ["straddling", "mixed", "no head", "exactly bytes"])
def test_reports_survive_their_files(name: str, tmp_path: Path) -> None:
    mechanism = WIDE[name]
    rows = as_array(mechanism, some_reports(mechanism, 33, random.Random(2)))
    assert np.array_equal(decode_batch(mechanism, encode_batch(mechanism, rows)), rows)
    for suffix in ("sfb", "parquet", "arrow"):
        write_reports(mechanism, rows, tmp_path / f"reports.{suffix}")
        found = np.concatenate(list(read_reports(mechanism, tmp_path / f"reports.{suffix}")))
        assert np.array_equal(found, rows)


# -- published values --------------------------------------------------------------------------------------------


def near(expected: Any) -> Any:
    return pytest.approx(np.array(expected), rel=1e-11, abs=1e-13)


def test_high_low_hadamard_reproduces_the_reference_values() -> None:
    for case in reference("hlldp"):
        mechanism = HighLowHadamard(R(case["k"]), range(case["s"]), case["eps"], published=True)
        assert (mechanism.parts[0].outputs, mechanism.outputs) == (case["S"], case["outputs"])
        assert mechanism.matrix() == near(case["Q"])
        p, n = np.array(case["p"]), case["n"]
        estimator = mechanism.estimator
        assert estimator.expected_counts(p) == near(case["output_dist"])
        assert estimator.variances(p) / n == near(case["var_per_symbol"])
        assert mechanism.risk(n, p) == near(case["l2_risk"])
        assert mechanism.risk(n, p) == near(case["l2_risk_closed"])
        counts = np.array(case["counts"], np.int64)
        estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, int(counts.sum()), counts))
        assert estimate.frequencies == near(case["estimate_from_counts"])


def published_blocks(sizes: Sequence[int], epsilon: float) -> BlockMechanism:
    """The mechanism of the paper: in each block K columns, the least power of two above its size."""
    parts = [HadamardResponse(R(size), epsilon, block_size=1 << size.bit_length()) for size in sizes]
    return BlockMechanism(R(sum(sizes)), np.repeat(np.arange(len(sizes)), sizes), parts)


def test_blocks_of_hadamard_responses_reproduce_the_reference_values() -> None:
    for case in reference("bsldp"):
        if isinstance(case["sizes"], str):
            count, size = (int(word) for word in case["sizes"].split(" blocks of "))
            mechanism = published_blocks([size] * count, case["eps"])
            assert mechanism.risk(case["n"]) == near(case["l2_risk_closed"])
            continue
        mechanism = published_blocks(case["sizes"], case["eps"])
        assert [part.outputs for part in mechanism.parts] == case["K"]
        assert mechanism.matrix() == near(case["Q"])
        p, n = np.array(case["p"]), case["n"]
        estimator = mechanism.estimator
        assert estimator.expected_counts(p) == near(case["output_dist"])
        assert estimator.variances(p) / n == near(case["var_per_symbol"])
        assert mechanism.risk(n, p) == near(case["l2_risk"])
        assert mechanism.risk(n, p) == near(case["l2_risk_closed"])
        counts = np.array(case["counts"], np.int64)
        estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, int(counts.sum()), counts))
        assert estimate.frequencies == near(case["estimate_from_counts"])


def high_low_hadamard_channel(k: int, s: int, t: float, first_row: int) -> Floats:
    """Context-aware LDP, eq. 13, with the rows of the matrix counted from ``first_row``."""
    columns = 1 << s.bit_length()
    sign = np.array([[(-1) ** (row & column).bit_count() for column in range(columns)] for row in range(columns)])
    channel = np.zeros((k, columns + k - s))
    channel[:, :columns] = 2 / (columns * (t + 1))
    for x in range(s):
        channel[x, :columns] *= np.where(sign[x + first_row] > 0, t, 1)
    channel[np.arange(s, k), columns + np.arange(k - s)] = (t - 1) / (t + 1)
    return channel


@pytest.mark.parametrize(("k", "s", "epsilon"), [(4, 1, 1.0), (5, 2, 0.5), (8, 3, 1.0)])
def test_the_printed_channel_uses_the_row_of_ones_and_is_none(k: int, s: int, epsilon: float) -> None:
    t = math.exp(epsilon)
    mechanism = HighLowHadamard(R(k), range(s), epsilon, published=True)
    right, printed = (high_low_hadamard_channel(k, s, t, first_row) for first_row in (1, 0))
    assert right == near(mechanism.matrix())
    assert printed[0].sum() == pytest.approx(2 * t / (t + 1))
    assert printed[0].sum() > 1.2
    # Scaled to a channel and decoded with the rows that the estimator has, it is biased.
    scaled = printed / printed.sum(axis=1, keepdims=True)
    decoded = np.array([mechanism.estimator.frequencies(unit) for unit in np.eye(mechanism.outputs)])
    assert right @ decoded == pytest.approx(np.eye(k), abs=1e-12)
    assert np.abs(scaled @ decoded - np.eye(k)).max() > 0.2


# -- the best mechanism for sensitive and harmless values --------------------------------------------------------

GRID = list(itertools.product((1, 2, 3, 5, 10, 50), (1, 2, 10, 100), ("0.25", "0.5", "1", "2", "3", "4", "5", "6")))


def test_subsets_have_the_least_risk_of_all() -> None:
    for s, t, epsilon in GRID:
        domain, sensitive = R(s + t), range(s)
        risk = HighLowSubset(domain, sensitive, epsilon).risk(1)
        for other in (
            HighLowHadamard(domain, sensitive, epsilon),
            HighLowHadamard(domain, sensitive, epsilon, published=True),
            UtilityOptimizedRR(domain, sensitive, epsilon),
        ):
            assert risk <= other.risk(1) * (1 + 1e-9), (s, t, epsilon, other)


def test_the_best_hadamard_is_no_worse_than_the_published_one() -> None:
    gains = []
    for s, t, epsilon in GRID:
        best = HighLowHadamard(R(s + t), range(s), epsilon).risk(1)
        gains.append(HighLowHadamard(R(s + t), range(s), epsilon, published=True).risk(1) / best)
    assert min(gains) >= 1 - 1e-12
    assert max(gains) > 5  # at large epsilon


def test_the_best_size_has_the_least_exact_risk_of_all_sizes() -> None:
    several = 0
    for s, t, epsilon in itertools.product((2, 3, 4, 7, 12, 20), (0, 1, 5, 40), ("0.05", "0.5", "1", "2", "3", "5")):
        risks = [HighLowSubset(R(s + t), range(s), epsilon, d).risk(1) for d in range(1, s)]
        best = best_high_low_size(s, t, Epsilon(epsilon))
        assert risks[best - 1] == pytest.approx(min(risks), rel=1e-9), (s, t, epsilon)
        (part,) = HighLowSubset(R(s + t), range(s), epsilon).parts
        assert part.density * s == best
        several += 1 < best < s - 1
    assert several > 20


@pytest.mark.parametrize(("epsilon", "factor", "within"), [("1", 1.17, 0.01), ("5", 18, 0.05)])
def test_half_of_the_sensitive_values_is_too_many(epsilon: str, factor: float, within: float) -> None:
    best, half = (HighLowSubset(R(200), range(100), epsilon, size).risk(1) for size in (None, 50))
    assert half / best == pytest.approx(factor, rel=within)


@pytest.mark.parametrize("t", [2, 7, 100])
def test_subsets_of_one_value_are_the_published_response(t: int) -> None:
    """Murakami and Kawamoto 2019, definition 5: a sensitive value answers truly with probability t/(s + t - 1)."""
    matrix = UtilityOptimizedRR(R(5), [1, 2, 4], f"ln {t}").matrix()  # outputs: 1, 2, 4, 0, 3
    own, other, revealed = t / (t + 2), 1 / (t + 2), (t - 1) / (t + 2)
    expected = [
        [other, other, other, revealed, 0],
        [own, other, other, 0, 0],
        [other, own, other, 0, 0],
        [other, other, other, 0, revealed],
        [other, other, own, 0, 0],
    ]
    assert matrix == pytest.approx(np.array(expected), abs=1e-15)


def test_one_sensitive_value_is_mangats_method() -> None:
    mechanism = HighLowSubset(R(2), [1], "ln 4")
    assert mechanism.matrix() == pytest.approx(np.array([[0.25, 0.75], [1.0, 0.0]]))


# -- what else they are, and what is refused ---------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 6, 8])
@pytest.mark.parametrize("epsilon", ["0", "0.3", "1", "ln 9", "inf"])
def test_the_whole_domain_sensitive_gives_the_classical_mechanisms(k: int, epsilon: str) -> None:
    for high_low, classical in (
        (HighLowSubset(R(k), range(k), epsilon), SubsetSelection(R(k), epsilon)),
        (HighLowHadamard(R(k), range(k), epsilon), HadamardResponse(R(k), epsilon)),
        (UtilityOptimizedRR(R(k), range(k), epsilon), RandomizedResponse(R(k), epsilon)),
    ):
        rows = [[(m.probability(y, x)) for y in m.reports()] for m in (high_low, classical) for x in range(k)]
        if epsilon == "0":  # any size tells nothing, so any will do
            assert all(len(set(row)) == 1 for row in rows)
            continue
        assert rows[:k] == rows[k:]
        assert high_low.risk(7) == pytest.approx(classical.risk(7))
        assert sf.audit(high_low, sf.Uniform(R(k), epsilon)).holds


@pytest.mark.parametrize("make", [HighLowSubset, HighLowHadamard, partial(HighLowHadamard, published=True)])
@pytest.mark.parametrize(
    ("sensitive", "epsilon", "culprit"),
    [
        ([], 1, "sensitive must name at least one value"),
        ([7], 1, "7"),
        ([1, 1], 1, "sensitive must name each value once"),
        ([1], -1, "at least 0"),
        ("ab", 1, "a"),
    ],
)
def test_what_is_no_high_low_policy_is_refused(make: Any, sensitive: Any, epsilon: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        make(R(4), sensitive, epsilon)


@pytest.mark.parametrize("size", [0, 3, -1, True, 1.0, "two"])
def test_a_size_that_tells_nothing_is_refused(size: Any) -> None:
    with pytest.raises(InvalidInput, match=r"size must be an integer in \[1, 2\]"):
        HighLowSubset(R(5), [0, 1, 2], 1, size)
    if size != 1:
        with pytest.raises(InvalidInput, match=r"size must be an integer in \[1, 1\]"):
            HighLowSubset(R(5), [0], 1, size)


TWO = [RandomizedResponse(R(2), 1), RandomizedResponse(R(1), 1)]


@pytest.mark.parametrize(
    ("blocks", "parts", "culprit"),
    [
        ([0, 0], TWO, "be 3 non-negative integers, one per value"),
        ([0, 0, 0.5], TWO, "be 3 non-negative integers, one per value"),
        ([0, 0, -1], TWO, "be 3 non-negative integers, one per value"),
        ([0, 0, True], TWO, None),
        ([False, False, True], TWO, "be 3 non-negative integers, one per value"),
        (["a", "a", "b"], TWO, "be 3 non-negative integers, one per value"),
        ([[0], [0, 1]], TWO, "one sequence of integers"),
        ([1, 1, 0], TWO, "numbered from 0 in order of first appearance"),
        ([0, 0, 2], TWO, "numbered from 0 in order of first appearance"),
        ([0, 0, 1], TWO[:1], "have 2 mechanisms, one per part; got 1 mechanism"),
        ([0, 0, 1], TWO[::-1], "the mechanism of part 0 must be over 2 values, the protected ones of the part"),
        (
            [0, 0, 1],
            [UnaryEncoding(R(2), 1), TWO[1]],
            "the mechanism of part 0 must be a RandomizedResponse, SubsetSelection, HadamardResponse or CyclicDesign",
        ),
        (
            [0, 0, 1],
            [TWO[0], "rr"],
            "the mechanism of part 1 must be a RandomizedResponse, SubsetSelection, HadamardResponse or CyclicDesign",
        ),
    ],
)
def test_blocks_and_parts_that_do_not_fit_are_refused(blocks: Any, parts: Any, culprit: str | None) -> None:
    if culprit is None:  # numpy reads it as a row of integers
        assert BlockMechanism(R(3), blocks, parts).part_of.tolist() == [0, 0, 1]
        return
    with pytest.raises(InvalidInput, match=culprit):
        BlockMechanism(R(3), blocks, parts)


def test_policies_and_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="have an infinite level across blocks"):
        BlockMechanism.for_policy(sf.Blocks(R(4), [0, 0, 1, 1], 1, across=2))
    with pytest.raises(InvalidInput, match="inner must be one of rr, subset, hadamard, cyclic; got 'unary'"):
        BlockMechanism.for_policy(sf.Blocks(R(4), [0, 0, 1, 1], 1), "unary")


@pytest.mark.slow
def test_the_length_of_reports_can_be_bounded() -> None:
    policy = sf.Blocks(R(99), np.arange(99) % 3, "0.5")
    free = BlockMechanism.for_policy(policy)
    for most, bits, name in (
        (None, 35, "subset-selection"),
        (35, 35, "subset-selection"),
        (34, 9, "cyclic-design"),
        (9, 9, "cyclic-design"),
        (8, 7, "cyclic-design"),
        (7, 7, "cyclic-design"),
    ):
        bounded = BlockMechanism.for_policy(policy, max_bits=most)
        assert bounded.bits == bits
        assert {part.name for part in bounded.parts} == {name}
        assert bounded.risk(1) >= free.risk(1)
        assert sf.audit(bounded, policy).holds
    with pytest.raises(NoMechanism, match="at most 6 bits"):
        BlockMechanism.for_policy(policy, max_bits=6)
    with pytest.raises(NoMechanism, match="at most 34 bits"):
        BlockMechanism.for_policy(policy, "subset", max_bits=34)


def test_each_block_has_the_part_of_least_risk() -> None:
    policy = sf.Blocks(R(30), [0] * 20 + [1] * 9 + [2], ["0.5", "5", "1"])
    mechanism = BlockMechanism.for_policy(policy)
    for inner in ("rr", "subset", "hadamard"):
        for own, other in zip(mechanism.parts, BlockMechanism.for_policy(policy, inner).parts, strict=True):
            assert own.risk(1) <= other.risk(1) * (1 + 1e-12)
    assert mechanism.parts[2] == RandomizedResponse(R(1), "inf")
    assert mechanism.risk(1) == pytest.approx(np.trace(mechanism.estimator.covariance(np.full(30, 1 / 30))))


BLOCKS = BlockMechanism.for_policy(sf.Blocks(R(5), [0, 0, 1, 1, 1], [1, 2]), "subset")
KINDS: list[dict[str, Any]] = BLOCKS.parameters()["kinds"]


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"part_of": [0, 1, 1, 1, 1]}, "the mechanism of part 0 must be over 1 value, the protected ones of the part"),
        ({"part_of": [0, 0, 1, 1]}, "be 5 non-negative integers, one per value"),
        ({"part_of": [[0], [0, 1]]}, "one sequence of integers"),
        ({"kind": [0, 2]}, "kind must be integers in 0 … 1"),
        ({"kind": [0, True]}, "kind must be integers in 0 … 1"),
        ({"kind": [0]}, "have 2 mechanisms, one per part; got 1 mechanism"),
        ({"kind": 0}, "have all its parts"),
        ({"kinds": {}}, "have the keys part_of, unprotected, kinds, kind"),
        ({"kinds": [0, 1]}, "a part must have the keys mechanism, size and parameters; got 0"),
        ({"kinds": [{**KINDS[0], "mechanism": "table"}, KINDS[1]]}, "the mechanism of a part must be one of"),
        ({"kinds": [{**KINDS[0], "size": 0}, KINDS[1]]}, "k must be an int"),
        (
            {"kinds": [{**KINDS[0], "size": 3}, KINDS[1]]},
            "the mechanism of part 0 must be over 2 values, the protected ones of the part",
        ),
        ({"kinds": [{**KINDS[0], "parameters": "all"}, KINDS[1]]}, "a part must have the keys mechanism"),
        ({"kinds": [{**KINDS[0], "parameters": {"epsilon": "1", "magic": 1}}, KINDS[1]]}, "have all its parts"),
        ({"kinds": [{**KINDS[0], "parameters": {"epsilon": "1"}}, KINDS[1]]}, "parameters must be"),
        ({"kinds": [*KINDS, KINDS[0]]}, "parameters must be"),
        ({"kinds": KINDS[::-1], "kind": [1, 0]}, "parameters must be"),
        ({"extra": 1}, "have the keys part_of, unprotected, kinds, kind"),
    ],
)
def test_tampered_block_specs_are_refused(changes: dict[str, Any], culprit: str) -> None:
    spec = json.loads(json.dumps(BLOCKS.spec))
    spec["parameters"].update(changes)
    with pytest.raises((InvalidInput, UnknownSpec), match=culprit):
        sf.mechanism_from_spec(spec)


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"unprotected": [2, 9]}, r"unprotected must be an integer in \[0, 4\]; got 9"),
        ({"unprotected": [-1, 4]}, "unprotected must be an integer"),
        ({"unprotected": [2]}, "must be over 4 values, the protected ones of the part"),
        ({"unprotected": [0, 1, 2, 3, 4]}, "must be over 0 values, the protected ones of the part"),
        ({"unprotected": [2, 2]}, "unprotected must be in ascending order"),
        ({"unprotected": [4, 2]}, "unprotected must be in ascending order"),
        ({"unprotected": 3}, "have all its parts"),
        ({"sensitive": [0, 1, 3]}, "have the keys part_of, unprotected, kinds, kind"),
    ],
)
def test_tampered_unprotected_values_are_refused(changes: dict[str, Any], culprit: str) -> None:
    for mechanism in (
        HighLowSubset(R(5), [0, 1, 3], 1, 2),
        HighLowSubset(R(5), [0, 1, 3], 1, 1),
        HighLowHadamard(R(5), [0, 1, 3], 1),
    ):
        spec = json.loads(json.dumps(mechanism.spec))
        assert sf.mechanism_from_spec(spec) == mechanism
        spec["parameters"].update(changes)
        with pytest.raises(InvalidInput, match=culprit):
            sf.mechanism_from_spec(spec)


def test_layouts_and_encodings_are_stated_and_checked() -> None:
    mechanism = EXACT["subset and wide hadamard"]
    spec = json.loads(json.dumps(mechanism.spec))
    assert [layout["frame_bits"] for layout in spec["layout"]] == [128, 128]
    for key, wrong in (("layout", spec["layout"][::-1]), ("report", {"encoding": "bitmap", "bits": mechanism.bits})):
        with pytest.raises(InvalidInput, match=f"{key} must be"):
            sf.mechanism_from_spec({**spec, key: wrong})


def test_any_labels_survive_the_spec() -> None:
    cells = sf.Domain.product(a=["x", "y"], b=[1, 2])
    mechanism = HighLowSubset(cells, [("y", 1), ("x", 2)], 1)
    assert mechanism.parameters()["unprotected"] == [0, 3]
    assert sf.mechanism_from_spec(json.loads(json.dumps(mechanism.spec))) == mechanism
