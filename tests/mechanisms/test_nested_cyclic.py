"""Nested cyclic designs: patterns, law, estimates, audits and specs."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.interpreter import sampler_law
from sfumato.compiler.candidates import candidates
from sfumato.compiler.known_bounds import exact_bound
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.estimators.base import HistogramEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic
from sfumato.mechanisms.nested_cyclic.patterns import HIGH_IN, HIGH_OUT, LOW_IN, Patterns
from sfumato.mechanisms.nested_cyclic.sizes import least_nested_risk
from sfumato.mechanisms.split_mix import split_mix_keys
from sfumato.testing import MechanismContract
from support.policies import policies_over_blocks

Floats = npt.NDArray[np.float64]
R = sf.Domain.range

# -- the contract ----------------------------------------------------------------------------------------------


def across(epsilon: Epsilon) -> Epsilon:
    """A level between blocks that goes with one within them: sometimes just above, sometimes far."""
    factor = {0: "1.05", 1: "1.5", 2: "3"}[math.floor(1000 * float(epsilon)) % 3]
    return epsilon * Fraction(factor)


class TestNestedCyclic(MechanismContract):
    cases = 24
    sizes: Sequence[int] = (4, 6, 8)

    def labels(self, domain: sf.Domain) -> list[int]:
        return [x % (2 if len(domain) == 4 else 3) for x in range(len(domain))]

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Policy:
        return sf.Blocks(domain, self.labels(domain), epsilon, across(epsilon))

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return NestedCyclic(domain, self.labels(domain), epsilon, across(epsilon), max_bits=6)


class TestNestedCyclicWithSetsInLowBlocks(TestNestedCyclic):
    """Blocks of sizes three and two, with larger sets in low blocks."""

    cases = 20
    sizes = (5,)

    def labels(self, domain: sf.Domain) -> list[int]:
        return [0, 0, 1, 0, 1][: len(domain)]

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        labels = self.labels(domain)
        return NestedCyclic(domain, labels, epsilon, across(epsilon), high=1, sizes=[1, 2], patterns=4, seed=1)


# -- patterns --------------------------------------------------------------------------------------------------


def test_keys_are_those_of_splitmix() -> None:
    # The first outputs of the reference implementation (Vigna, splitmix64.c) for the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert split_mix_keys(1234567, 4).tolist() == expected


def test_patterns_follow_their_definition() -> None:
    patterns = Patterns(3, 4, 5, 2, (3, 1), 17)
    keys = split_mix_keys(17, 3 * 4 + 3 * 4 * 5).tolist()
    for e, block in itertools.product(range(3), range(4)):
        of_blocks = keys[4 * e : 4 * e + 4]
        high = sorted(of_blocks).index(of_blocks[block]) < 2
        start = 12 + (4 * e + block) * 5
        of_positions = keys[start : start + 5]
        members = sorted(of_positions)[: 3 if high else 1]
        levels = [(HIGH_IN if high else LOW_IN) + (key not in members) for key in of_positions]
        assert patterns.levels[e, block].tolist() == levels


@pytest.mark.parametrize("sizes", [(3, 1), (1, 0), (4, 4)])
def test_tables_list_the_sets_of_the_patterns(sizes: tuple[int, int]) -> None:
    patterns = Patterns(3, 4, 5, 1, sizes, 2)
    for (blocks, members), count, size, level in zip(patterns.tables, (1, 3), sizes, (HIGH_IN, LOW_IN), strict=True):
        assert members.shape == (3 * count, size)
        for row, block in enumerate(blocks.tolist()):
            assert np.flatnonzero(patterns.levels[row // count, block] == level).tolist() == members[row].tolist()
            assert (patterns.levels[row // count, block, 0] <= HIGH_OUT) == (level == HIGH_IN)


# -- estimates, by enumeration -----------------------------------------------------------------------------------

MECHANISMS: dict[str, NestedCyclic] = {
    "2x2": NestedCyclic(R(4), "abba", 1, 3, max_bits=5),
    "2x3": NestedCyclic(R(6), "aababb", 1, 2, high=1, sizes=[2, 1], patterns=3, seed=2),
    "3x3": NestedCyclic(R(9), "abcabcabc", "ln 2", "ln 6", max_bits=6),
    "4x2": NestedCyclic(R(8), "abcdabcd", "0.1", "0.2", high=2, sizes=[1, 1], patterns=5, seed=1),
    "unequal": NestedCyclic(R(7), "abbbacc", 1, 2, high=1, sizes=[1, 2], patterns=4, seed=1),
    "blocks of one and four": NestedCyclic(R(5), "abbbb", 2, 3, max_bits=6),
    "one empty place": NestedCyclic(R(7), "aaaabbb", 1, "1.5", high=1, sizes=[2, 1], patterns=6, seed=4),
}


@pytest.fixture(params=MECHANISMS, ids=lambda name: name.replace(" ", "-"))
def mechanism(request: pytest.FixtureRequest) -> NestedCyclic:
    return MECHANISMS[request.param]


@functools.cache
def law_and_scores(mechanism: NestedCyclic) -> tuple[Floats, Floats]:
    """The law, from the sampler, and the estimate from each report alone."""
    laws = [sampler_law(mechanism, x)[0] for x in range(len(mechanism.domain))]
    encoded = [mechanism.report_format.encode(y) for y in mechanism.reports()]
    matrix = np.array([[float(law.get(report, 0)) for report in encoded] for law in laws])
    return matrix, np.array([mechanism.estimator.frequencies(row) for row in np.eye(mechanism.outputs)])


def distributions(size: int) -> list[Floats]:
    corner = np.zeros(size)
    corner[-1] = 1
    return [np.full(size, 1 / size), corner, *np.random.default_rng(size).dirichlet(np.full(size, 0.5), 4)]


def test_the_stated_law_is_that_of_the_sampler(mechanism: NestedCyclic) -> None:
    for x in range(len(mechanism.domain)):
        law = sampler_law(mechanism, x)[0]
        stated = [(mechanism.report_format.encode(y), mechanism.probability(y, x)) for y in mechanism.reports()]
        assert law == dict(stated)
        assert sum(law.values()) == 1


def test_the_estimate_is_unbiased(mechanism: NestedCyclic) -> None:
    law, scores = law_and_scores(mechanism)
    assert law @ scores == pytest.approx(np.eye(len(law)), abs=1e-12 * float(np.abs(scores).max()))


def test_all_moments_are_those_of_the_enumeration(mechanism: NestedCyclic) -> None:
    law, scores = law_and_scores(mechanism)
    estimator, near = mechanism.estimator, 1e-12 * float(np.abs(scores).max()) ** 2
    assert estimator.second_moments() == pytest.approx(law @ (scores**2).sum(axis=1), rel=1e-10)
    low, high = estimator.score_bounds()
    assert (low <= scores.min(axis=0) + near).all()
    assert (high >= scores.max(axis=0) - near).all()
    generator = np.random.default_rng(3)
    for p in distributions(len(law)):
        reports = p @ law
        assert estimator.expected_counts(p) == pytest.approx(reports, abs=1e-14)
        covariance = (scores * reports[:, None]).T @ scores - np.outer(p, p)
        assert estimator.covariance(p) == pytest.approx(covariance, rel=1e-9, abs=near)
        assert estimator.variances(p) == pytest.approx(np.diag(covariance), rel=1e-9, abs=near)
        assert mechanism.risk(1, p) == pytest.approx(np.trace(covariance), rel=1e-9, abs=near)
        weights = generator.normal(size=len(p))
        expected, allowed = float(weights @ covariance @ weights), near * float(np.abs(weights).sum()) ** 2
        assert estimator.variance(weights, p) == pytest.approx(expected, rel=1e-9, abs=allowed)
        outputs = generator.normal(size=mechanism.outputs)
        assert isinstance(estimator, HistogramEstimator)
        assert estimator.adjoint(outputs) == pytest.approx(law @ outputs, abs=1e-12)
        assert estimator.output_scores(weights) == pytest.approx(scores @ weights, rel=1e-9, abs=near)


@pytest.mark.parametrize("name", ["2x2", "2x3", "3x3", "4x2"])
def test_no_unbiased_estimate_is_better_at_the_uniform_distribution_of_equal_blocks(name: str) -> None:
    law, _ = law_and_scores(MECHANISMS[name])
    fisher = (law / law.mean(axis=0)) @ law.T
    assert MECHANISMS[name].risk(1) == pytest.approx(np.trace(np.linalg.inv(fisher)) - 1 / len(law), rel=1e-9)


def test_laws_of_scores_have_the_mean_and_variance_of_the_estimate(mechanism: NestedCyclic) -> None:
    estimator = mechanism.estimator
    for p in distributions(len(mechanism.domain))[2:]:
        (law,) = estimator.score_laws(p, 10)
        at_value, in_group = (np.sum(part * law.score_values, axis=1) for part in law.parts[:2])
        assert at_value == pytest.approx(1)
        assert in_group == pytest.approx(0, abs=1e-9)
        squares = [np.sum(part * law.score_values**2, axis=1) for part in law.parts[:2]]
        spread = law.spread**2 * (p * squares[0] + (1 - p) * squares[1] - p**2)
        assert spread == pytest.approx(estimator.variances(p), rel=1e-4)


def test_estimates_find_the_truth_with_every_method() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(40))
    values = np.random.default_rng(2).choice(40, 100_000, p=p)
    truth = np.bincount(values, minlength=40) / len(values)
    mechanism = NestedCyclic(R(40), np.arange(40) % 8, 1, 3, max_bits=9)
    counts = sf.aggregate(mechanism, sf.privatize(mechanism, values, sf.InsecureSeeded(3)))
    for method in ("unbiased", "efficient", "simplex", "mle"):
        estimate = sf.estimate(mechanism, counts, method)
        # Forty values beyond six standard errors: below 1e-7 by the normal law.
        assert np.abs(estimate.frequencies - truth).max() < 6 * estimate.standard_errors.max()
        low, high = estimate.interval(0.9999)
        assert ((low <= truth) & (truth <= high)).all()


def test_values_that_cannot_be_told_apart_have_no_estimate() -> None:
    for mechanism in (
        NestedCyclic(R(4), "aabb", 0, 1, max_bits=5),
        NestedCyclic(R(8), "aaaabbbb", 1, 2, high=1, sizes=[2, 0], patterns=1, seed=11),
    ):
        assert mechanism.risk(1) == math.inf
        with pytest.raises(NotIdentifiable, match="distinguish all values"):
            _ = mechanism.estimator


# -- risks -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(100, 100), (24, 50), (10, 10), (4, 30)])
@pytest.mark.parametrize("levels", [("0.5", "1"), ("1", "2"), ("1", "3"), ("2", "3"), ("3", "4")])
def test_short_reports_are_within_five_percent_of_the_bound(shape: tuple[int, int], levels: tuple[str, str]) -> None:
    blocks, size = shape
    policy = sf.Blocks(R(blocks * size), np.repeat(np.arange(blocks), size), *levels)
    bits = (blocks * size - 1).bit_length() + 4
    mechanism = NestedCyclic.for_policy(policy, max_bits=bits)
    bound = exact_bound(policy)
    assert bound is not None
    assert mechanism.bits <= bits
    assert 1 - 1e-9 < mechanism.risk(1) / bound < 1.05
    assert NestedCyclic.for_policy(policy).risk(1) / bound < 1.02


def test_the_price_of_m_patterns_is_about_one_part_in_m() -> None:
    arguments = (R(400), np.arange(400) % 20, "1", "2")
    least = least_nested_risk(20, 20, sf.Epsilon(1), sf.Epsilon(2))
    for patterns in (10, 40, 160):
        excess = NestedCyclic(*arguments, patterns=patterns).risk(1) / least - 1
        assert 0.7 / patterns < excess < 1.3 / patterns


# -- audits ----------------------------------------------------------------------------------------------------


def test_the_shortened_audit_agrees_under_other_policies() -> None:
    generator = np.random.default_rng(5)
    separating = 0
    for mechanism in MECHANISMS.values():
        for policy in policies_over_blocks(mechanism, generator):
            every = (policy.worst(mechanism.column(report)) for report in mechanism.reports())
            full = max(every, key=lambda worst: worst.rank)
            columns = mechanism.worst_columns(policy)
            if columns is None:
                continue
            separating += 1
            short = max((policy.worst(column) for _, column in columns), key=lambda worst: worst.rank)
            assert full.violated == short.violated
            assert full.excess == pytest.approx(short.excess, abs=1e-12)
    assert separating >= 20


def test_separations_are_counted() -> None:
    mechanism = MECHANISMS["2x3"]
    for first, second in itertools.product(range(4), repeat=2):
        counts = mechanism._separations(first, second)
        for block, position in itertools.product(range(2), range(3)):
            shifted = np.roll(mechanism.patterns.levels == second, (block, position), axis=(1, 2))
            assert counts[block, position] == ((mechanism.patterns.levels == first) & shifted).sum()


@pytest.mark.slow
def test_patterns_that_do_not_separate_all_pairs_are_audited_in_full() -> None:
    mechanism = NestedCyclic(R(4), "aabb", 1, 2, high=1, sizes=[1, 1], patterns=1, seed=0)
    policy = sf.Blocks(R(4), "aabb", 1, 2)
    assert mechanism.worst_columns(policy) is None
    assert sf.audit(mechanism, policy).holds
    large = NestedCyclic(R(10_000), np.arange(10_000) // 5000, 1, 2, high=1, sizes=[2500, 0], patterns=1, seed=0)
    assert large.worst_columns(sf.Uniform(R(10_000), 2)) is not None
    with pytest.raises(LimitExceeded, match="too many outputs"):
        sf.audit(large, sf.Prior(R(10_000), [Fraction(1, 10_000)] * 10_000, 2))


@pytest.mark.slow
@pytest.mark.parametrize("levels", [("0.5", "1"), ("1", "3")])
def test_a_large_audit_holds_at_the_levels_and_fails_just_below(levels: tuple[str, str]) -> None:
    domain, blocks = R(1500), np.arange(1500) // 50
    mechanism = NestedCyclic(domain, blocks, *levels, max_bits=14)
    epsilon, level = map(Fraction, levels)
    almost = Fraction(10**9 - 1, 10**9)
    certificate = sf.audit(mechanism, sf.Blocks(domain, blocks, *levels))
    assert certificate.holds
    assert -1e-15 < certificate.worst.excess <= 0
    assert not sf.audit(mechanism, sf.Blocks(domain, blocks, epsilon, level * almost)).holds
    assert not sf.audit(mechanism, sf.Blocks(domain, blocks, epsilon * almost, level)).holds


class Leaky(NestedCyclic):
    """Forces the position whenever the block is high."""

    def step(self, state: int, draws: Draws) -> Any:
        thresholds = self.thresholds
        try:
            self.thresholds = (thresholds[0], 2**64 - 1, thresholds[2])
            return super().step(state, draws)
        finally:
            self.thresholds = thresholds


def test_the_audit_reads_the_sampler_that_runs() -> None:
    policy = sf.Blocks(R(6), "aaabbb", 1, 3)
    assert sf.audit(NestedCyclic.for_policy(policy, max_bits=6), policy).holds
    assert not sf.audit(Leaky.for_policy(policy, max_bits=6), policy).holds


def test_the_surrogate_follows_the_law_that_it_states() -> None:
    mechanism = NestedCyclic(R(1500), np.arange(1500) // 50, 1, 2, max_bits=14)
    small = mechanism.audit_surrogate()
    assert len(small.domain) == 6
    for x in range(6):
        law = sampler_law(small, x)[0]
        assert all(law[small.report_format.encode(y)] == small.probability(y, x) for y in small.reports())


# -- specs and candidates ----------------------------------------------------------------------------------------


def changed(mechanism: NestedCyclic, **parameters: Any) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(json.dumps(mechanism.spec))
    spec["parameters"] |= parameters
    return spec


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"high": 0}, "high must be"),
        ({"high": 2}, "high must be"),
        ({"sizes": [0, 1]}, r"sizes \(in a high block\) must be"),
        ({"sizes": [2, 3]}, r"sizes \(in a low one\) must be"),
        ({"sizes": [1, 1]}, "thresholds must be"),
        ({"patterns": 0}, "patterns must be"),
        ({"patterns": 2**22}, "patterns must be"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 2**32}, "seed must be"),
        ({"thresholds": ["1", "2", "3"]}, "thresholds must be"),
        ({"thresholds": ["1", "2"]}, "thresholds"),
        ({"epsilon": "2"}, "epsilon must be below across"),
        ({"epsilon": "1.01"}, "thresholds must be"),
        ({"across": "inf"}, "across must be finite"),
        ({"across": "2.01"}, "thresholds must be"),
        ({"blocks": [0] * 6}, "the number of blocks must be at least 2"),
        ({"levels": [[0]]}, "have all its parts and no others"),
        ({"high": None}, "high and sizes must be given together"),
        ({"max_bits": 5}, "parameters must be"),
    ],
)
def test_bad_specs_are_refused_by_name(parameters: dict[str, Any], message: str) -> None:
    mechanism = MECHANISMS["2x3"]
    assert sf.mechanism_from_spec(changed(mechanism)) == mechanism
    with pytest.raises(InvalidInput, match=message):
        sf.mechanism_from_spec(changed(mechanism, **parameters))


def test_the_spec_does_not_hold_the_patterns() -> None:
    mechanism = NestedCyclic(R(1200), np.arange(1200) // 50, 1, 2)
    assert set(mechanism.parameters()) == {
        "blocks", "epsilon", "across", "high", "sizes", "patterns", "seed", "thresholds"
    }  # fmt: skip
    assert len(json.dumps({**mechanism.parameters(), "blocks": []})) < 250


def test_limits_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"max_bits must be at least 4 for 3 blocks of up to 4 values; got 3"):
        NestedCyclic(R(12), "abcabcabcabc", 1, 2, max_bits=3)
    with pytest.raises(InvalidInput, match="blocks must have at most 4194304 positions"):
        NestedCyclic(R(6000), [0] * 3000 + list(range(1, 3001)), 1, 2)


def test_it_is_offered_for_blocks_at_two_levels() -> None:
    policy = sf.Blocks(R(12), "aaaabbbbcccc", 1, 2)
    assert "nested-cyclic" in candidates(policy, None).by_name
    assert "nested-cyclic" in candidates(sf.Blocks(R(5), "aabbb", 1, 2), 6).by_name
    for other, bits in ((policy, 3), (sf.Blocks(R(5), "aabbb", 1), None), (sf.Uniform(R(5), 1), None)):
        assert "nested-cyclic" not in candidates(other, bits).by_name
    made = sf.design(policy, mechanism="nested-cyclic", max_bits=8)
    assert isinstance(made, NestedCyclic)
    assert made.bits == 8
