"""Utility-optimized RAPPOR: its contract, its estimator by enumeration, audits of any size, and its refusals."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.audits import stated_columns
from sfumato.auditing.interpreter import sampler_law
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.estimators.likelihood import fit_bit_counts
from sfumato.mechanisms.two_level import ONE
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor
from sfumato.policy.base import Policy
from sfumato.testing import MechanismContract

R = sf.Domain.range


def some(domain: sf.Domain) -> Sequence[object]:
    """A part of the domain that differs from size to size, never empty, sometimes everything."""
    labels = list(domain)
    return labels[len(labels) % 3 :: 2] or labels[:1]


class TestUtilityOptimizedRappor(MechanismContract):
    sizes = range(2, 8)

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return some(domain)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return UtilityOptimizedRappor(domain, self.sensitive(domain), epsilon)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> Policy:
        return sf.HighLow(domain, self.sensitive(domain), epsilon)


class TestWithOneSensitiveValue(TestUtilityOptimizedRappor):
    cases = 60

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return [len(domain) - 1]


class TestWithOneHarmlessValue(TestUtilityOptimizedRappor):
    cases = 60

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)[1:]


class TestWithoutHarmlessValues(TestUtilityOptimizedRappor):
    cases = 60

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)


# -- the law ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.3", "1", "ln 7", "5"])
def test_the_probabilities_are_the_published_ones(epsilon: str) -> None:
    mechanism = UtilityOptimizedRappor(R(4), [0, 2], epsilon)
    t = Epsilon(epsilon).exp()
    theta = math.sqrt(t) / (math.sqrt(t) + 1)
    d1, d2 = theta / ((1 - theta) * t + theta), ((1 - theta) * t + theta) / t
    bits = [[float(mechanism.bit_probability(x, i)) for i in range(4)] for x in range(4)]
    assert bits == pytest.approx(
        np.array([[theta, 0, d1, 0], [d1, 1 - d2, d1, 0], [d1, 0, theta, 0], [d1, 0, d1, 1 - d2]])
    )


@pytest.mark.parametrize("epsilon", ["0", "1e-19", "1e-25", "0.001", "1", "ln 2", "40", "200"])
def test_every_ratio_holds_after_rounding(epsilon: str) -> None:
    mechanism = UtilityOptimizedRappor(R(4), [0, 2], epsilon)
    assert sf.audit(mechanism, sf.HighLow(R(4), [0, 2], epsilon)).holds
    rounder = UtilityOptimizedRappor(R(4), [0, 2], epsilon, own=min(mechanism.own + 1, ONE))
    closer = UtilityOptimizedRappor(R(4), [0, 2], epsilon, harmless=min(mechanism.harmless + 1, ONE))
    if epsilon in ("0", "0.001", "1", "ln 2"):  # beyond, 64 bits are too coarse for one of them to matter alone
        assert not sf.audit(rounder, sf.HighLow(R(4), [0, 2], epsilon)).holds
    if epsilon == "0":
        assert not sf.audit(closer, sf.Uniform(R(4), 0)).holds


def test_no_budget_tells_nothing_and_an_infinite_one_everything() -> None:
    nothing, everything = (UtilityOptimizedRappor(R(5), [1, 4], epsilon) for epsilon in (0, "inf"))
    assert len({tuple(sorted(sampler_law(nothing, x)[0].items())) for x in range(5)}) == 1
    assert sf.audit(nothing, sf.Uniform(R(5), 0)).holds
    assert math.isinf(nothing.risk(10))
    assert math.isinf(nothing.worst_risk(10))
    for x in range(5):
        assert sampler_law(everything, x)[0] == {bytes([1 << x]): 1}
    assert sf.audit(everything, sf.HighLow(R(5), [1, 4], "inf")).holds
    assert not sf.audit(everything, sf.HighLow(R(5), [1, 4], 1000)).holds


def test_without_harmless_values_it_is_symmetric_unary_encoding() -> None:
    mechanism, unary = UtilityOptimizedRappor(R(6), range(6), 1), UnaryEncoding(R(6), 1)
    assert mechanism.matrix() == pytest.approx(unary.matrix(), abs=0)
    assert mechanism.risk(7) == pytest.approx(unary.risk(7))


# -- the shortened audit ---------------------------------------------------------------------------------------


def policies(domain: sf.Domain, generator: random.Random) -> list[Policy]:
    k = len(domain)
    levels = ["0.1", "0.5", "1", "2", "3", "inf"]
    dense = [[0 if x == y else generator.choice(levels) for y in range(k)] for x in range(k)]
    blocks = [generator.randrange(2) for _ in range(k)]
    weights = [generator.choice([0, 1, 3]) + (x == 0) for x in range(k)]
    return [
        sf.Pairwise(domain, dense),
        sf.Pairwise(domain, [[0 if x == y else "0.2" if min(x, y) > 1 else "inf" for y in range(k)] for x in range(k)]),
        sf.Uniform(domain, generator.choice(levels)),
        sf.HighLow(domain, generator.sample(list(domain), 2), generator.choice(levels)),
        sf.Blocks(domain, blocks, "0.5", across=generator.choice(levels)),
        sf.Metric(domain, "absolute", "0.4"),
        sf.Prior(domain, [Fraction(w, sum(weights)) for w in weights], generator.choice(levels)),
    ]


@pytest.mark.slow
def test_a_few_columns_are_the_worst_of_all_for_any_policy() -> None:
    generator = random.Random(5)
    for _ in range(60):
        domain = R(generator.randint(2, 6))
        thresholds = sorted(generator.choice([0, 1, ONE // 7, ONE // 3, ONE // 2, ONE - 1]) for _ in range(2))
        mechanism = UtilityOptimizedRappor(
            domain,
            generator.sample(list(domain), generator.randint(1, len(domain))),
            1,
            other=thresholds[0],
            own=thresholds[1],
            harmless=generator.choice([0, 1, ONE // 5, ONE // 2, ONE]),
        )
        for policy in policies(domain, generator):
            full = sf.audit(mechanism, policy).worst
            ranks = [policy.worst(column).rank for _, column in stated_columns(mechanism, policy)]
            short = max(ranks)
            assert short[0] == full.violated, (mechanism, policy)
            assert short[1] == full.excess or abs(short[1] - full.excess) < 1e-12, (mechanism, policy)


@pytest.mark.soak
def test_100_000_values_are_audited_whole() -> None:
    domain = R(100_000)
    sensitive = range(60_000, 100_000)
    mechanism = UtilityOptimizedRappor(domain, sensitive, 1)
    certificate = sf.audit(mechanism, sf.HighLow(domain, sensitive, 1))
    assert certificate.holds
    assert abs(certificate.worst.excess) < 1e-9
    assert "bit by bit for 0, 50000, 60000, 99999" in certificate.evidence
    for policy in (
        sf.HighLow(domain, sensitive, "0.999999"),
        sf.HighLow(domain, range(59_999, 100_000), 1),  # one more value is to be protected
        sf.Blocks(domain, np.arange(100_000) % 2, 5),
    ):
        worst = [policy.worst(column) for _, column in stated_columns(mechanism, policy)]
        assert any(found.violated for found in worst), policy
    assert list(stated_columns(mechanism, sf.Prior(domain, [Fraction(1, 100_000)] * 100_000, 1)))
    with pytest.raises(LimitExceeded, match="no shorter form"):
        list(stated_columns(UtilityOptimizedRappor(domain, domain, 1), sf.Prior(domain, [1, *[0] * 99_999], 1)))


class LeaksOneValue(UtilityOptimizedRappor):
    """Broken on purpose: a harmless value also sets the bit of the first value."""

    def bit(self, x: int, position: int, draws: Draws) -> bool:
        return super().bit(x, position, draws) or (position == 0 and not self.is_sensitive[x])


def test_a_fault_in_one_class_is_found_at_any_size() -> None:
    for k in (3, 200):
        # The first harmless value is neither the first, the last nor the middle one.
        certificate = sf.audit(LeaksOneValue(R(k), [0, *range(2, k)], 1), sf.HighLow(R(k), [0, *range(2, k)], 1))
        assert not certificate.holds


# -- the estimate ----------------------------------------------------------------------------------------------

ESTIMATED = [
    UtilityOptimizedRappor(R(5), [1, 3], 1),
    UtilityOptimizedRappor(R(4), [0, 1, 3], "0.2"),
    UtilityOptimizedRappor(R(4), [2], "ln 5"),
    UtilityOptimizedRappor(R(3), range(3), 2),
    UtilityOptimizedRappor(R(4), [0, 3], "inf"),
    UtilityOptimizedRappor(R(4), [0, 3], 1, own=ONE // 2, other=ONE // 5, harmless=ONE // 3),
]


def all_reports(mechanism: UtilityOptimizedRappor) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The law, and the counts of each report alone."""
    arrays = [np.frombuffer(mechanism.report_format.encode(y), np.uint8)[None] for y in mechanism.reports()]
    return mechanism.matrix(), np.array([sf.aggregate(mechanism, array).counts for array in arrays], np.float64)


@pytest.mark.parametrize("mechanism", ESTIMATED, ids=range(len(ESTIMATED)))
def test_the_decoder_is_exact_by_enumeration(mechanism: UtilityOptimizedRappor) -> None:
    k = len(mechanism.domain)
    estimator = mechanism.estimator
    law, counts = all_reports(mechanism)
    decoded = np.array([estimator.frequencies(row) for row in counts])
    scale = float(np.abs(decoded).max()) ** 2
    assert law @ decoded == pytest.approx(np.eye(k), abs=1e-12 * scale)
    generator = np.random.default_rng(2)
    for p in [np.full(k, 1 / k), np.eye(k)[-1], *generator.dirichlet(np.ones(k), 3)]:
        weights = p @ law
        covariance = (decoded * weights[:, None]).T @ decoded - np.outer(p, p)
        assert estimator.expected_counts(p) == pytest.approx(weights @ counts, abs=1e-14)
        assert estimator.frequencies(estimator.expected_counts(p)) == pytest.approx(p, abs=1e-13)
        assert estimator.covariance(p) == pytest.approx(covariance, rel=1e-9, abs=1e-12 * scale)
        assert estimator.variances(p) == pytest.approx(np.diag(covariance), rel=1e-9, abs=1e-12 * scale)
        assert mechanism.risk(3, p) == pytest.approx(np.trace(covariance) / 3, rel=1e-9, abs=1e-12 * scale)
        for w in [np.ones(k), *generator.normal(size=(3, k))]:
            assert estimator.variance(w, p) == pytest.approx(w @ covariance @ w, rel=1e-9, abs=1e-11 * scale)
    possible = decoded[law.any(axis=0)]
    low, high = estimator.score_bounds()
    if mechanism.epsilon.is_infinite:  # sensitive bits are certain there too
        assert low == pytest.approx(np.zeros(k))
        assert high == pytest.approx(np.ones(k))
    else:
        assert low == pytest.approx(possible.min(axis=0))
        assert high == pytest.approx(possible.max(axis=0))


def test_the_worst_risk_is_the_greatest_of_all() -> None:
    generator = np.random.default_rng(7)
    for k, count, epsilon in itertools.product((2, 3, 7), (1, 2, 6), ("0.05", "1", "4")):
        mechanism = UtilityOptimizedRappor(R(k), range(min(count, k)), epsilon)
        worst = mechanism.worst_risk(10)
        candidates = [*np.eye(k), *(generator.dirichlet(np.full(k, a)) for a in (0.2, 1, 20) for _ in range(60))]
        assert worst >= max(mechanism.risk(10, p) for p in candidates) * (1 - 1e-12)
        assert worst <= mechanism.risk(10) * 3


def test_harmless_values_cost_less_than_under_uniform_privacy() -> None:
    assert UtilityOptimizedRappor(R(100), range(5), 1).risk(1) < UnaryEncoding(R(100), 1).risk(1) / 10


def test_the_estimate_of_many_reports_is_near_the_truth_by_every_method() -> None:
    mechanism = UtilityOptimizedRappor(R(70), range(0, 70, 7), 1)
    truth = np.arange(1, 71) / 2485
    n = 200_000
    counts = np.round(n * mechanism.estimator.expected_counts(truth)).astype(np.int64)
    aggregate = sf.Aggregate(mechanism.hash, n, counts)
    for method in ("unbiased", "simplex", "mle"):
        estimate = sf.estimate(mechanism, aggregate, method)
        assert estimate.frequencies == pytest.approx(truth, abs=1e-4), method
    fit = sf.estimate(mechanism, aggregate, "mle").fit
    assert fit is not None
    assert fit.converged


def test_bits_of_unequal_gaps_are_fitted_to_the_optimum() -> None:
    generator = np.random.default_rng(8)
    for _ in range(50):
        k = int(generator.integers(2, 9))
        other = np.where(generator.random(k) < 0.5, 0.0, generator.random(k) * 0.4)
        gap = generator.random(k) * 0.5 + 0.05
        n = 1000
        shares = generator.binomial(n, other + gap * generator.dirichlet(np.ones(k))) / n
        fit = fit_bit_counts(shares, other, gap)
        assert fit.frequencies.sum() == pytest.approx(1)
        assert fit.bound <= 1e-7, fit  # what any other distribution could gain: a certificate of the optimum


def test_reports_that_no_value_can_give_are_refused() -> None:
    mechanism = UtilityOptimizedRappor(R(10), [0, 9], 1)
    honest = sf.privatize(mechanism, [0, 5, 9] * 50)
    assert sf.aggregate(mechanism, honest).n == 150
    with pytest.raises(InvalidInput, match="row 1 must have at most one bit of a harmless value"):
        sf.aggregate(mechanism, np.array([[1, 2], [6, 0]], np.uint8))


# -- refusals and the spec ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((R(1), [0], 1), "at least two values"),
        ((R(4), [], 1), "at least one value"),
        ((R(4), [7], 1), "7"),
        ((R(4), [1, 1], 1), "each value once"),
        ((R(4), [1], -1), "at least 0"),
    ],
)
def test_what_makes_no_mechanism_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        UtilityOptimizedRappor(*arguments)


def test_thresholds_out_of_range_are_refused() -> None:
    for wrong in ({"own": ONE + 1}, {"other": ONE}, {"harmless": -1}, {"own": 1, "other": 2}):
        with pytest.raises(InvalidInput):
            UtilityOptimizedRappor(R(3), [0], 1, **wrong)


def test_any_labels_survive_the_spec() -> None:
    cells = sf.Domain.product(a=["x", "y"], b=[1, 2])
    mechanism = UtilityOptimizedRappor(cells, [("x", 2), ("y", 1)], 1)
    assert mechanism.parameters()["sensitive"] == [1, 2]
    assert sf.mechanism_from_spec(json.loads(json.dumps(mechanism.spec))) == mechanism
    spec = json.loads(json.dumps(mechanism.spec))
    spec["parameters"]["sensitive"] = [1, 4]
    with pytest.raises(InvalidInput, match="sensitive"):
        sf.mechanism_from_spec(spec)
