"""Blocks at two levels: composed subsets, their law, estimates, counts and promises; the best sizes of nested sets."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.interpreter import sampler_law
from sfumato.compiler.candidates import candidates
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.nested import NestedMechanism
from sfumato.mechanisms.nested_cyclic.sizes import (
    _descend,
    _least,
    _risk,
    best_nested_sizes,
    least_nested_risk,
    nested_thresholds,
)
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.testing import MechanismContract
from support.policies import policies_over_blocks

Floats = npt.NDArray[np.float64]
R = sf.Domain.range

# -- the contract ----------------------------------------------------------------------------------------------


def across(epsilon: Epsilon) -> Epsilon:
    """A level between blocks that goes with one within them: sometimes just above, sometimes far."""
    factor = {0: "1.05", 1: "1.5", 2: "3"}[math.floor(1000 * float(epsilon)) % 3]
    return epsilon * Fraction(factor)


def labels(domain: sf.Domain) -> list[int]:
    """Two or three blocks of one size, scattered over the domain."""
    return [x % (2 if len(domain) == 4 else 3) for x in range(len(domain))]


class NestedContract(MechanismContract):
    cases = 16
    sizes: Sequence[int] = (4, 4, 4, 6)

    def mechanisms(self, count: int | None = None) -> Iterator[tuple[Mechanism, Epsilon]]:
        # A sampler of six values and three blocks has ten thousand branches: no check runs on more cases than these.
        return super().mechanisms(min(self.cases, count or self.cases))

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Policy:
        return sf.Blocks(domain, labels(domain), epsilon, across(epsilon))


class TestComposedSubsets(NestedContract):
    sizes = (4,)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return ComposedSubsets(domain, labels(domain), epsilon, across(epsilon))


class TestComposedSubsetsOfUnequalBlocks(NestedContract):
    sizes = (3, 4)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Policy:
        return sf.Blocks(domain, "abac"[: len(domain)], epsilon, across(epsilon))

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return ComposedSubsets(domain, "abac"[: len(domain)], epsilon, across(epsilon))


# -- estimates, by enumeration -----------------------------------------------------------------------------------

MECHANISMS: dict[str, NestedMechanism] = {
    "composed 2x2": ComposedSubsets(R(4), "abba", 1, 3),
    "composed 3x2": ComposedSubsets(R(6), "abccba", 1, 2, sizes=[3, 2]),
    "composed unequal": ComposedSubsets(R(6), "abaaac", "0.5", 2),
    "composed, blocks of one and four": ComposedSubsets(R(5), "abbbb", 2, 3),
}


@pytest.fixture(params=MECHANISMS, ids=lambda name: name.replace(", ", "-").replace(" ", "-"))
def mechanism(request: pytest.FixtureRequest) -> NestedMechanism:
    return MECHANISMS[request.param]


class Enumeration:
    """Everything about one report, by going through all of them with their exact probabilities."""

    def __init__(self, mechanism: NestedMechanism) -> None:
        outputs = list(mechanism.reports())
        assert len(set(outputs)) == mechanism.outputs
        size = len(mechanism.domain)
        law = [[mechanism.probability(y, x) for y in outputs] for x in range(size)]
        assert all(sum(row) == 1 for row in law)
        self.law = np.array([[float(entry) for entry in row] for row in law])
        self.estimator = mechanism.estimator
        rows = np.array([np.frombuffer(mechanism.report_format.encode(y), np.uint8) for y in outputs])
        self.shares = np.array([sf.aggregate(mechanism, row[None]).counts for row in rows], np.float64)
        self.decoded = np.array([self.estimator.frequencies(row) for row in self.shares])
        #: What rounding errors are measured against.
        self.scale = float(np.abs(self.decoded).max()) ** 2

    def covariance(self, p: Floats) -> Floats:
        weights = p @ self.law
        mean = weights @ self.decoded
        return np.asarray((self.decoded * weights[:, None]).T @ self.decoded - np.outer(mean, mean))


@functools.cache
def enumeration(mechanism: NestedMechanism) -> Enumeration:
    return Enumeration(mechanism)


def distributions(size: int) -> list[Floats]:
    corner = np.zeros(size)
    corner[-1] = 1
    return [np.full(size, 1 / size), corner, *np.random.default_rng(size).dirichlet(np.full(size, 0.5), 4)]


def test_the_estimate_is_unbiased(mechanism: NestedMechanism) -> None:
    whole = enumeration(mechanism)
    assert whole.law @ whole.decoded == pytest.approx(np.eye(len(mechanism.domain)), abs=1e-11 * whole.scale**0.5)


def test_shares_are_the_expected_counts(mechanism: NestedMechanism) -> None:
    whole = enumeration(mechanism)
    for p in distributions(len(mechanism.domain)):
        shares = whole.estimator.expected_counts(p)
        assert shares == pytest.approx(p @ whole.law @ whole.shares, abs=1e-13)
        assert whole.estimator.frequencies(shares) == pytest.approx(p, abs=1e-11 * whole.scale**0.5)


def test_covariance_variances_and_risk_are_those_of_the_enumeration(mechanism: NestedMechanism) -> None:
    whole = enumeration(mechanism)
    generator = np.random.default_rng(3)
    for p in distributions(len(mechanism.domain)):
        covariance, near = whole.covariance(p), 1e-12 * whole.scale
        assert whole.estimator.covariance(p) == pytest.approx(covariance, rel=1e-9, abs=near)
        assert whole.estimator.variances(p) == pytest.approx(np.diag(covariance), rel=1e-9, abs=near)
        assert mechanism.risk(1, p) == pytest.approx(np.trace(covariance), rel=1e-9, abs=near)
        for weights in [*generator.normal(size=(3, len(p))), np.ones(len(p)), np.zeros(len(p))]:
            expected = float(weights @ covariance @ weights)
            allowed = near * float(np.abs(weights).sum()) ** 2
            assert whole.estimator.variance(weights, p) == pytest.approx(expected, rel=1e-9, abs=allowed)


def test_reach_is_the_least_and_greatest_of_all_reports(mechanism: NestedMechanism) -> None:
    whole = enumeration(mechanism)
    low, high = whole.estimator.score_bounds()
    assert low == pytest.approx(whole.decoded.min(axis=0), rel=1e-11)
    assert high == pytest.approx(whole.decoded.max(axis=0), rel=1e-11)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_correction_is_the_best_of_its_kind_at_the_uniform_distribution(name: str) -> None:
    mechanism = MECHANISMS[name]
    assert isinstance(mechanism, ComposedSubsets)
    size = len(mechanism.domain)
    alone = mechanism.values.risk(1)
    assert mechanism.risk(1) < alone
    # Normal equations: no direction in which the residual still explains a part of the estimate.
    whole = enumeration(mechanism)
    weights = np.full(size, 1 / size) @ whole.law
    of_values = mechanism.values.estimator.frequencies(whole.shares[:, :size])
    of_blocks = mechanism.labels.estimator.frequencies(whole.shares[:, size:])
    sums = np.stack([of_values[:, mechanism.block_of == j].sum(axis=1) for j in range(mechanism.blocks)], axis=1)
    residual = of_blocks - sums
    assert (whole.decoded * weights[:, None]).T @ residual == pytest.approx(0, abs=1e-10 * whole.scale)


def test_maximum_likelihood_is_refused_with_words() -> None:
    mechanism = MECHANISMS["composed 2x2"]
    counted = sf.aggregate(mechanism, sf.privatize(mechanism, np.zeros(5, np.int64)))
    with pytest.raises(InvalidInput, match="mle"):
        sf.estimate(mechanism, counted, "mle")
    assert sf.estimate(mechanism, counted, "simplex").frequencies.sum() == pytest.approx(1)


# -- risks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 5), (10, 10), (5, 20), (20, 5)])
@pytest.mark.parametrize("levels", [("1", "3"), ("0.5", "1"), ("0.5", "4"), ("2", "8"), ("0.1", "0.2"), ("4", "8")])
def test_nested_sets_beat_the_others(shape: tuple[int, int], levels: tuple[str, str]) -> None:
    domain, blocks = R(shape[0] * shape[1]), np.repeat(np.arange(shape[0]), shape[1])
    nested = least_nested_risk(*shape, *map(Epsilon, levels))
    composed, plain = ComposedSubsets(domain, blocks, *levels), SubsetSelection(domain, levels[0])
    assert nested < composed.risk(1) < plain.risk(1)
    assert nested > SubsetSelection(domain, levels[1]).risk(1)  # which promises less


@pytest.mark.slow
def test_ten_thousand_values() -> None:
    domain, blocks = R(10_000), np.arange(10_000) // 100
    assert least_nested_risk(100, 100, Epsilon(1), Epsilon(3)) < SubsetSelection(domain, 1).risk(1) / 3
    policy = sf.Blocks(domain, blocks, 1, 3)
    mechanism = ComposedSubsets.for_policy(policy)
    certificate = sf.audit(mechanism, policy)
    assert certificate.holds
    assert -1e-15 < certificate.worst.excess <= 0
    assert not sf.audit(mechanism, sf.Blocks(domain, blocks, 1, "2.99999999")).holds
    assert not sf.audit(mechanism, sf.Blocks(domain, blocks, "0.99999999", 3)).holds
    assert sf.audit(mechanism, sf.Uniform(domain, 3)).holds
    with pytest.raises(LimitExceeded, match="too many outputs"):
        sf.audit(mechanism, sf.Prior(domain, [Fraction(1, 10_000)] * 10_000, 3))


@pytest.mark.parametrize("shape", [(2, 2), (2, 9), (9, 2), (7, 7), (30, 10), (10, 30), (40, 40)])
def test_descent_finds_the_best_sizes(shape: tuple[int, int]) -> None:
    blocks, block_size = shape
    axes = [np.arange(1, blocks), np.arange(1, block_size), np.arange(block_size)]
    for epsilon, level in [(1.0, 3.0), (0.1, 0.2), (0.5, 1.0), (1.0, 1.1), (2.0, 2.1), (3.0, 9.0), (0.01, 5.0)]:
        risk = functools.partial(_risk, blocks, block_size, epsilon, level)
        best = _least(risk, axes)
        start = max(1, round(block_size / (1 + math.exp(epsilon))))
        found = {_descend(risk, axes, (high, start, low)) for high in (1, (blocks + 1) // 2) for low in (0, start)}
        least = min(float(risk(*map(np.array, sizes))) for sizes in found)
        assert least == pytest.approx(float(risk(*map(np.array, best))), rel=2e-3)


def test_the_best_sizes_of_a_million_values() -> None:
    high, size, low = best_nested_sizes(1000, 1000, Epsilon(1), Epsilon(3))
    risk = functools.partial(_risk, 1000, 1000, 1.0, 3.0)
    near = [np.arange(max(least, at - 9), at + 10) for least, at in ((1, high), (1, size), (0, low))]
    assert _least(risk, near) == (high, size, low)


# -- audits --------------------------------------------------------------------------------------------------------


def test_the_shortened_audit_agrees_under_other_policies() -> None:
    generator = np.random.default_rng(5)
    for mechanism in MECHANISMS.values():
        for policy in policies_over_blocks(mechanism, generator):
            every = (policy.worst(mechanism.column(report)) for report in mechanism.reports())
            full = max(every, key=lambda worst: worst.rank)
            columns = mechanism.worst_columns(policy)
            assert columns is not None
            short = max((policy.worst(column) for _, column in columns), key=lambda worst: worst.rank)
            assert full.violated == short.violated
            assert full.excess == pytest.approx(short.excess, abs=1e-12)


def test_likelihoods_are_the_probabilities_up_to_a_factor(mechanism: NestedMechanism) -> None:
    for report in itertools.islice(mechanism.reports(), 0, None, 7):
        factors = {level / mechanism.probability(report, x) for x, level in enumerate(mechanism.column(report))}
        assert len(factors) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "levels", [("0.001", "0.0011"), ("1e-9", "2e-9"), ("20", "50"), ("50", "51"), ("800", "900"), ("0", "1")]
)
def test_far_levels_keep_the_promise(levels: tuple[str, str]) -> None:
    policy = sf.Blocks(R(6), "aababb", *levels)
    mechanism = ComposedSubsets.for_policy(policy)
    assert sf.audit(mechanism, policy).holds
    law, _ = sampler_law(mechanism, 5)
    assert sum(law.values()) == 1


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "levels", "words"),
    [
        ("aaaa", (1, 2), "the number of blocks must be at least 2"),
        ("abcd", (1, 2), "include a block of several values"),
        ("aabb", (1, "inf"), "across must be finite"),
        ("aabb", (2, 2), "below across"),
        ("aabb", ("inf", "inf"), "across must be finite"),
        ("aab", (1, 2), "4 block labels, one per value"),
    ],
)
def test_what_is_another_policy_is_refused(blocks: str, levels: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ComposedSubsets(R(4), blocks, *levels)


def test_wrong_parameters_of_composed_subsets_are_refused() -> None:
    for parameters in ({"sizes": [1]}, {"sizes": [4, 1]}, {"thresholds": [0, 0, 0]}, {"coins": 3}, {"planes": 9}):
        with pytest.raises(InvalidInput):
            ComposedSubsets(R(4), "aabb", 1, 2, **parameters)
    with pytest.raises(InvalidInput, match="at most 4096"):
        ComposedSubsets(R(5000), np.arange(5000) % 4999, 1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [4096, 4097])
def test_composed_subsets_are_offered_for_as_many_blocks_as_they_take(blocks: int) -> None:
    found = candidates(sf.Blocks(R(blocks + 1), np.arange(blocks + 1) % blocks, 1, 2)).by_name
    assert ("composed" in found) == (blocks == 4096)
    assert all(len(candidate.build().domain) == blocks + 1 for candidate in found.values())


def test_levels_too_close_for_64_bits_are_refused_or_kept() -> None:
    tiny = (str(Fraction(1, 10**30)), str(Fraction(2, 10**30)))
    for blocks, levels in (("abba", ("1", f"1+{Fraction(1, 10**30)}")), ("abba", tiny)):
        policy = sf.Blocks(R(4), blocks, *levels)
        assert sf.audit(ComposedSubsets.for_policy(policy), policy).holds
    with pytest.raises(InvalidInput, match="by more than 1e-15"):  # a third is no multiple of 2^-64
        nested_thresholds("NestedCyclic", Epsilon(tiny[0]), Epsilon(tiny[1]), 3, 2, 1, [1, 1])


def test_a_mechanism_that_tells_nothing_has_no_estimate() -> None:
    mechanism = ComposedSubsets(R(4), "abba", 0, 2)
    assert mechanism.risk(1) == least_nested_risk(2, 2, Epsilon(0), Epsilon(2)) == math.inf
    with pytest.raises(InvalidInput, match="distinguish all values in its reports"):
        _ = mechanism.estimator


@pytest.mark.slow
def test_the_least_level_of_a_policy_is_kept_in_all_blocks() -> None:
    policy = sf.Blocks(R(6), "aabbcc", ["0.5", 1, 2], 3)
    mechanism = ComposedSubsets.for_policy(policy)
    assert mechanism.epsilon == Epsilon("0.5")
    assert sf.audit(mechanism, policy).holds


# -- reports and counts ----------------------------------------------------------------------------------------------


def rows_of(mechanism: NestedMechanism, count: int, seed: int) -> npt.NDArray[np.uint8]:
    values = np.random.default_rng(seed).integers(0, len(mechanism.domain), count)
    rows: npt.NDArray[np.uint8] = sf.privatize(mechanism, values, sf.InsecureSeeded(seed))
    return rows


@pytest.mark.parametrize("name", ["composed 2x2", "composed unequal"])
def test_what_is_no_report_is_refused_with_its_row(name: str) -> None:
    mechanism = MECHANISMS[name]
    valid = {mechanism.report_format.encode(y) for y in mechanism.reports()}
    good = np.frombuffer(min(valid), np.uint8)
    for number in range(1 << mechanism.bits):
        row = np.frombuffer(number.to_bytes(len(good), "little"), np.uint8)
        if row.tobytes() in valid:
            sf.aggregate(mechanism, row[None])
        elif number % 17 == 0:
            with pytest.raises(InvalidInput, match="row 2 must have exactly"):
                sf.aggregate(mechanism, np.stack([good, good, row]))


@pytest.mark.parametrize("name", ["composed 2x2", "composed unequal"])
def test_counts_that_no_reports_can_have_are_refused(name: str) -> None:
    mechanism = MECHANISMS[name]
    counted = sf.aggregate(mechanism, rows_of(mechanism, 50, 2))
    document = json.loads(counted.to_json())
    for place in range(len(document["counts"])):
        changed = {**document, "counts": [c + (i == place) for i, c in enumerate(document["counts"])], "n": 50}
        if max(changed["counts"]) <= 50:
            with pytest.raises(InvalidInput, match="sum to"):
                sf.estimate(mechanism, type(counted).from_json(json.dumps(changed)))


@pytest.mark.slow
def test_estimates_find_the_truth() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(40))
    values = np.random.default_rng(2).choice(40, 100_000, p=p)
    truth = np.bincount(values, minlength=40) / len(values)
    mechanism = ComposedSubsets(R(40), np.arange(40) % 8, 1, 3)
    reports = sf.privatize(mechanism, values, sf.InsecureSeeded(3))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    # Forty values beyond six standard errors (less the part of sampling): below 1e-7 by the normal law.
    assert np.abs(estimate.frequencies - truth).max() < 6 * estimate.standard_errors.max()
    assert estimate.frequencies.sum() == pytest.approx(1)
