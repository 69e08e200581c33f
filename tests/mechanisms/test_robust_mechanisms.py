"""Mechanisms for a secret beside a harmless attribute: their promise on random data, their worth, their estimates."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.compiler.candidates import candidates
from sfumato.datasets import census_column, data_folder
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.secret.base import (
    information,
    offered_sizes,
    risk_of,
    set_response,
    set_sizes,
    zoom,
)
from sfumato.mechanisms.secret.conditional import ConditionalReporting, ConditionalUnary
from sfumato.mechanisms.secret.independent import IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.policy.base import Policy
from sfumato.testing import MechanismContract
from support.published import reference
from support.reference import refusal

Floats = npt.NDArray[np.float64]

KINDS: tuple[Any, ...] = (IndependentReporting, ConditionalReporting, ConditionalUnary)
UTILITIES = ("mutual-information", "estimation")


def product(secrets: int, others: int) -> sf.Domain:
    return sf.Domain.product(S=[f"s{i}" for i in range(secrets)], U=[f"u{i}" for i in range(others)])


def robust(counts: Any, epsilon: Any = 1, alpha: Any = "0.05") -> sf.Secret:
    return sf.Secret(product(*np.array(counts).shape), "S", epsilon, sf.ChiSquare(counts, alpha))


def confidence_of(policy: Policy) -> sf.ChiSquare:
    assert isinstance(policy, sf.Secret)
    assert isinstance(policy.distributions, sf.ChiSquare)
    return policy.distributions


def random_tables(count: int, seed: int, n: int | None = None) -> Iterator[npt.NDArray[np.int64]]:
    """Counts from Jeffreys-prior distributions, cells and secrets that were never seen among them."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        shape = int(generator.integers(2, 4)), int(generator.integers(2, 4))
        people = int(10 ** generator.uniform(1, 5)) if n is None else n
        truth = generator.dirichlet(np.full(shape[0] * shape[1], 0.5))
        yield generator.multinomial(people, truth).reshape(shape)


# -- the contract ------------------------------------------------------------------------------------------


class TestSecretRandomizedResponse(MechanismContract):
    cases = 60
    sizes = range(2, 5)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return SecretRandomizedResponse(product(len(domain), 5 - len(domain)), "S", epsilon)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> Policy:
        return sf.Secret(domain, "S", epsilon, sf.Anything())


@functools.cache
def designed(kind: Any, policy: Policy, utility: str) -> Mechanism:
    """Every test of the contract looks at the same few designs."""
    mechanism: Mechanism = kind(policy, utility)
    return mechanism


@pytest.mark.slow  # every class makes a few designs first
class ReportingContract(MechanismContract):
    """Designs spend what they can of ε, which is not always all of it."""

    tight = False
    cases = 8
    sizes = range(2, 4)
    kind: Any
    utility = "mutual-information"

    def counts(self, domain: sf.Domain) -> Any:
        shape = [len(factor) for factor in domain.factors.values()]
        return [[10 + 7 * s + 3 * u * (s + 1) for u in range(shape[1])] for s in range(shape[0])]

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        pairs = product(len(domain), 5 - len(domain))
        return designed(self.kind, self.policy(pairs, epsilon), self.utility)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> Policy:
        return sf.Secret(domain, "S", epsilon, sf.ChiSquare(self.counts(domain)))

    def mechanisms(self, count: int | None = None) -> Iterator[tuple[Mechanism, Epsilon]]:
        return super().mechanisms(self.cases if count is None else min(count, self.cases))


class TestIndependentReporting(ReportingContract):
    kind = staticmethod(IndependentReporting)


class TestConditionalReporting(ReportingContract):
    kind = staticmethod(ConditionalReporting)


class TestConditionalReportingForEstimates(ReportingContract):
    kind = staticmethod(ConditionalReporting)
    utility = "estimation"


class TestConditionalUnary(ReportingContract):
    kind = staticmethod(ConditionalUnary)


# -- the promise -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_mechanism_passes_the_exact_audit_on_random_data(kind: Any, is_soak: bool) -> None:
    """18 data sets in total, and 102 with --soak."""
    tables = 34 if is_soak else 6
    generator = np.random.default_rng(11)
    for number, counts in enumerate(random_tables(tables, 100 + KINDS.index(kind))):
        policy = robust(counts, f"{0.1 * 40 ** generator.random():.3f}")
        secret_response = SecretRandomizedResponse(policy.domain, "S", policy.epsilon)
        for mechanism in (kind(policy, UTILITIES[number % 2]), secret_response):
            certificate = sf.audit(mechanism, policy)
            assert certificate.holds, certificate


@pytest.mark.slow
def test_designs_reach_epsilon_where_their_budget_can_be_spent(is_soak: bool) -> None:
    for counts in random_tables(10 if is_soak else 5, 13, n=300):
        policy = robust(counts + 1)
        excess = sf.audit(IndependentReporting(policy), policy).worst.excess
        assert -1e-6 < excess <= 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0, "1e-6", 50, 1000, "inf"])
def test_extreme_levels(kind: Any, epsilon: Any) -> None:
    policy = robust([[10, 20], [20, 10]], epsilon)
    mechanism = kind(policy)
    assert sf.audit(mechanism, policy).holds
    told = sf.robust_information(mechanism, policy)
    assert told.fraction == pytest.approx(0, abs=1e-5) if epsilon in (0, "1e-6") else told.fraction > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [[[5, 0], [0, 0]], [[0, 0], [0, 1]], [[3], [4]], [[1, 1, 1], [1, 1, 1]]])
def test_hardly_any_data(kind: Any, counts: Any) -> None:
    policy = robust(counts)
    assert sf.audit(kind(policy), policy).holds


# -- secret randomized response ----------------------------------------------------------------------------


def test_the_published_law() -> None:
    for case in reference("srr"):
        mechanism = SecretRandomizedResponse(product(case["a1"], case["a2"]), "S", case["eps"])
        matrix = mechanism.matrix()
        others = case["a2"]
        assert np.diag(matrix) == pytest.approx(np.full(len(matrix), case["p_same"]), rel=1e-11)
        assert matrix[0, 1:others] == pytest.approx(np.full(others - 1, case["p_same_s"]), rel=1e-11)
        assert matrix[0, others:] == pytest.approx(np.full(len(matrix) - others, case["p_other"]), rel=1e-11)


def test_the_level_is_spent_to_the_last_unit() -> None:
    for epsilon in ("0.01", "0.5", "ln 3", "2", "8"):
        policy = sf.Secret(product(3, 3), "S", epsilon, sf.Anything())
        worst = sf.audit(SecretRandomizedResponse(policy.domain, "S", epsilon), policy).worst
        assert not worst.violated
        assert worst.excess > -1e-9


def test_extreme_levels_of_secret_randomized_response() -> None:
    domain = product(2, 3)
    assert SecretRandomizedResponse(domain, "S", "inf").weights.tolist() == (np.eye(6, dtype=int) * TOTAL).tolist()
    flat = SecretRandomizedResponse(domain, "S", 0)
    assert len(set(map(tuple, flat.weights.tolist()))) == 1
    for epsilon in (25, 100, 10**6):
        mechanism = SecretRandomizedResponse(domain, "S", epsilon)
        assert sf.audit(mechanism, sf.Secret(domain, "S", epsilon, sf.Anything())).holds
        assert mechanism.weights.min() > 0


def test_it_tells_more_than_randomized_response_everywhere() -> None:
    """3 x 3, 25 tables of 1,000 people from Jeffreys-prior distributions (RLDP Figure 2)."""
    generator = np.random.default_rng(14)
    domain = product(3, 3)
    tables = [generator.multinomial(1000, generator.dirichlet(np.full(9, 0.5))) / 1000 for _ in range(25)]
    for epsilon in ("0.2", "0.5", "1", "2", "3", "5", "8"):
        ours = SecretRandomizedResponse(domain, "S", epsilon).matrix()
        plain = RandomizedResponse(domain, epsilon).matrix()
        for p in tables:
            assert information(p, ours) > information(p, plain)


def test_which_factor_is_the_secret_matters() -> None:
    domain = product(2, 3)
    by_s, by_u = (SecretRandomizedResponse(domain, secret, 1) for secret in ("S", "U"))
    assert by_s != by_u
    assert not sf.audit(by_s, sf.Secret(domain, "U", 1, sf.Anything())).holds
    assert sf.audit(by_u, sf.Secret(domain, "U", 1, sf.Anything())).holds


# -- information -------------------------------------------------------------------------------------------


def published_conditional(policy: sf.Secret) -> float:
    """The best that RLDP's own GRR-CR tells: Theorem 17's noise, its budget optimised."""
    confidence = confidence_of(policy)
    epsilon, laws, totals = float(policy.epsilon), confidence.conditional_estimate(), confidence.frequencies.sum(axis=1)
    radii = [confidence.conditional_radius(s) for s in range(len(laws))]
    assert all(radius is not None and radius < 1 for radius in radii)
    distances = [math.sqrt(radius) for radius in radii if radius is not None]  # eq. 65

    def worth(second: float) -> float:
        outer = set_response(len(laws), 1, math.expm1(epsilon - second))
        kept = outer[0, 0] if outer.shape[1] > 1 else 1 / len(laws)
        inner = sum(
            total * information(law, set_response(len(law), 1, 2 * math.expm1(second) / distance))
            for total, law, distance in zip(totals, laws, distances, strict=True)
        )
        return information(totals, outer) + float(kept * inner)

    return worth(*zoom(worth, (0.0, epsilon)))


@pytest.mark.parametrize(
    ("shares", "epsilon"),
    [
        ([[0.4, 0.1], [0.2, 0.3]], "0.5"),
        ([[0.1, 0.05, 0.15], [0.2, 0.05, 0.1], [0.05, 0.2, 0.1]], "1"),
    ],
)
def test_conditional_reporting_tells_far_more_than_published(shares: Any, epsilon: str) -> None:
    policy = robust((np.array(shares) * 1000).round().astype(int), epsilon)
    mechanism = ConditionalReporting(policy)
    assert sf.audit(mechanism, policy).holds
    assert sf.robust_information(mechanism, policy).at_estimate >= 1.7 * published_conditional(policy)


@pytest.mark.slow
def test_every_protocol_tells_more_than_its_published_form(is_soak: bool) -> None:
    for number, instance in enumerate(reference("rldp_instances")):
        counts = (np.array(instance["Phat"]) * instance["n"]).round().astype(int)
        cases = instance["cases"]
        for case in cases if is_soak else cases[number % 2 :: 2]:
            policy = robust(counts, case["eps"], instance["alpha"])
            for kind, names in zip(KINDS, (("IR",), ("GRRCR", "GRRCR_exact_delta"), ("UECR",)), strict=True):
                told = sf.robust_information(kind(policy), policy).at_estimate
                for name in names:
                    assert told > case["channels"][name]["MI"] * (1 - 1e-6), (instance["name"], case["eps"], name)


@pytest.mark.slow
def test_information_has_the_published_formulas(is_soak: bool) -> None:
    """Theorems 16, 18 and 20 at P̂ are what designs maximise; the table of the result tells as much."""
    for counts in random_tables(6 if is_soak else 2, 15, n=1000):
        policy = robust(counts, 1)
        hat = confidence_of(policy).frequencies
        for kind in KINDS:
            mechanism = kind(policy)
            best = information(hat.ravel(), mechanism.matrix())
            other = information(hat.ravel(), kind(policy, "estimation").matrix())
            assert best >= other - 1e-6


def test_robust_information_bounds_what_is_told_within_the_set() -> None:
    generator = np.random.default_rng(16)
    policy = robust([[100, 200, 100], [300, 50, 250]])
    confidence = confidence_of(policy)
    mechanism = ConditionalUnary(policy)
    told = sf.robust_information(mechanism, policy, confidence.frequencies.ravel())
    assert told.at_given == told.at_estimate
    assert told.entropy == pytest.approx(-float(np.sum(confidence.frequencies * np.log(confidence.frequencies))))
    assert told.fraction == told.at_estimate / told.entropy
    assert 0 < told.least < told.at_estimate < told.entropy
    inside = 0
    for towards in generator.dirichlet(np.full(6, 2.0), size=300):
        p = 0.95 * confidence.frequencies.ravel() + 0.05 * towards
        exact = [Fraction(float(v)) for v in p]
        exact[0] += 1 - sum(exact)
        if confidence.holds([exact[:3], exact[3:]]):
            inside += 1
            assert information(p, mechanism.matrix()) >= told.least
    assert inside > 30
    assert "be a Secret policy with a ChiSquare confidence set" in refusal(
        sf.robust_information, mechanism, sf.Uniform(policy.domain, 1)
    )
    other = robust([[1, 2], [3, 4]])
    assert "have the domain of the mechanism" in refusal(sf.robust_information, mechanism, other)
    assert "have 6 entries" in refusal(sf.robust_information, mechanism, policy, [0.5, 0.5])


def test_information_by_the_definition() -> None:
    generator = np.random.default_rng(17)
    matrix, p = generator.dirichlet(np.ones(4), size=3), generator.dirichlet(np.ones(3))
    matrix[0, 1] = 0
    matrix[0] /= matrix[0].sum()
    joint = p[:, None] * matrix
    expected = sum(
        joint[x, y] * math.log(joint[x, y] / (p[x] * joint[:, y].sum()))
        for x, y in itertools.product(range(3), range(4))
        if joint[x, y]
    )
    assert information(p, matrix) == pytest.approx(expected, rel=1e-12)
    assert information(np.array([1.0, 0.0, 0.0]), matrix) == 0


# -- parts -------------------------------------------------------------------------------------------------


def test_set_responses_are_randomized_response_and_subset_selection() -> None:
    gain = math.expm1(1.0)
    five = sf.Domain.range(5)
    np.testing.assert_allclose(set_response(5, 1, gain), RandomizedResponse(five, 1).matrix(), rtol=1e-12)
    ours, theirs = set_response(5, 2, gain), SubsetSelection(five, 1, 2).matrix()
    np.testing.assert_allclose(np.sort(ours, axis=1), np.sort(theirs, axis=1), rtol=1e-12)
    assert risk_of(ours) == pytest.approx(SubsetSelection(five, 1, 2).risk(1), rel=1e-9)
    assert set_response(4, 1, math.inf).tolist() == np.eye(4).tolist()
    assert set_response(4, 2, 0).tolist() == [[1.0]] * 4
    assert offered_sizes(5) == [1, 2]
    assert offered_sizes(1) == [1]
    assert offered_sizes(40) == [1]
    assert set_sizes(10, math.expm1(1.0)) == [1, 2, 3]
    assert set_sizes(10, math.inf) == [1]


def test_zoom_finds_the_top_and_tries_the_ends() -> None:
    (top,) = zoom(lambda x: -((x - 0.3) ** 2), (0.0, 1.0))
    assert top == pytest.approx(0.3, abs=1e-4)
    assert zoom(lambda x: x, (0.0, 2.0)) == (2.0,)
    assert zoom(lambda x, y: -x - (y - 1) ** 2, (0.0, 1.0), (0.0, 4.0)) == pytest.approx((0.0, 1.0), abs=0.02)


# -- estimates of the joint table --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, SecretRandomizedResponse])
def test_the_estimated_table_is_unbiased_and_its_errors_exact(kind: Any) -> None:
    """By enumeration of all sequences of two reports."""
    policy = robust([[30, 20, 50], [60, 10, 30]], 1)
    mechanism = kind(policy.domain, "S", 1) if kind is SecretRandomizedResponse else kind(policy, "estimation")
    p = np.array([0.1, 0.15, 0.25, 0.3, 0.05, 0.15])
    estimator = mechanism.estimator
    law = p @ mechanism.matrix()
    mean, second = np.zeros(6), np.zeros((6, 6))
    for reports in itertools.product(range(mechanism.outputs), repeat=2):
        estimate = estimator.frequencies(np.bincount(reports, minlength=mechanism.outputs) / 2)
        probability = float(np.prod(law[list(reports)]))
        mean += probability * estimate
        second += probability * np.outer(estimate - p, estimate - p)
    assert mean == pytest.approx(p, rel=1e-8)
    assert second == pytest.approx(estimator.covariance(p) / 2, rel=1e-7, abs=1e-9)
    assert mechanism.risk(2, p) == pytest.approx(np.trace(second), rel=1e-8)


@pytest.mark.slow
def test_what_tells_the_most_may_not_tell_the_table_and_says_so() -> None:
    """Both laws of U in every report: much is told of U, and nothing of how frequent the secrets are."""
    policy = robust([[400, 100], [200, 300]], "0.5")
    mechanism = ConditionalUnary(policy)
    budget = mechanism.provenance["budget"]
    assert budget["own"] == budget["others"] == "1"
    assert math.isinf(mechanism.risk(1000))
    reports = sf.privatize(mechanism, [("s0", "u0")] * 10, stream=sf.InsecureSeeded(1))
    with pytest.raises(InvalidInput, match="distinguish all values in its reports"):
        _ = sf.estimate(mechanism, sf.aggregate(mechanism, reports)).frequencies
    assert ConditionalUnary(policy, "estimation").risk(1000) < 0.1


@pytest.mark.slow
def test_estimates_need_far_fewer_people_than_classical_mechanisms() -> None:
    """Where the table is known well; there, U is told almost in clear beside the secret."""
    for counts in random_tables(5, 18, n=30_000):
        policy = robust(counts + 100)
        ours = ConditionalReporting(policy, "estimation").risk(1)
        assert ours < 0.6 * SubsetSelection(policy.domain, 1).risk(1)


@pytest.mark.slow
def test_candidates_of_secret_policies() -> None:
    domain = product(2, 3)
    assert "secret-rr" in candidates(sf.Secret(domain, "S", 1, sf.Anything())).by_name
    assert "independent" not in candidates(sf.Secret(domain, "S", 1, sf.Anything())).by_name
    policy = robust([[30, 20, 50], [60, 10, 30]])
    sources = {
        "secret-rr": "secret-randomized-response",
        "independent": "independent-reporting",
        "conditional-rr": "conditional-reporting",
        "conditional-unary": "conditional-unary",
    }
    for name, source in sources.items():
        mechanism: Any = sf.design(policy, mechanism=name)
        assert mechanism.provenance["from"] == source
        assert mechanism.provenance["secret"] == "S"
        assert sf.audit(mechanism, policy).holds
    large = sf.Secret(sf.Domain.product(S=range(2), U=range(300)), "S", 1, sf.Anything())
    assert "secret-rr" not in candidates(large).by_name


# -- specs and bad input -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_parameters_are_what_they_say() -> None:
    policy = robust([[30, 20, 50], [60, 10, 30]])
    independent = IndependentReporting(policy)
    assert set(independent.provenance["budget"]) == {"secret", "other", "sizes"}
    conditional = ConditionalReporting(policy)
    budget = conditional.provenance["budget"]
    assert len(budget["other"]) == len(budget["sizes"]) == 2
    # What the secret's own report takes of ε is the greatest ratio of the sums over each S̃ of the table.
    first = float(budget["secret"])
    told = conditional.matrix().reshape(2, 3, 2, -1).sum(axis=3)
    assert math.log(told[0, 0, 0] / told[1, 0, 0]) == pytest.approx(first, abs=1e-6)
    budget = ConditionalUnary(policy, "estimation").provenance["budget"]
    assert 0 < float(budget["others"]) < float(budget["own"]) <= 1


def test_specs_survive_and_inconsistent_ones_are_refused() -> None:
    policy = robust([[30, 20, 50], [60, 10, 30]])
    for mechanism in (ConditionalReporting(policy), SecretRandomizedResponse(policy.domain, "S", 1)):
        assert sf.mechanism_from_spec(mechanism.to_json()) == mechanism
        spec = mechanism.spec
        for wrong, culprit in (
            ({"weights": [["1"]]}, "have 6 rows"),
            ({"total_bits": 61}, "with total_bits = 62; got"),
        ):
            with pytest.raises(InvalidInput, match=culprit):
                sf.mechanism_from_spec({**spec, "parameters": {**spec["parameters"], **wrong}})


@pytest.mark.parametrize("kind", KINDS)
def test_bad_policies_and_utilities_are_refused(kind: Any) -> None:
    domain = product(2, 2)
    for policy in (sf.Uniform(domain, 1), sf.Secret(domain, "S", 1, sf.Anything())):
        assert "policy must be a Secret policy with ChiSquare distributions" in refusal(kind, policy)
    message = refusal(kind, robust([[1, 2], [3, 4]]), "beauty")
    assert "utility must be one of estimation, mutual-information; got 'beauty'" in message


def test_bad_parameters_of_secret_randomized_response() -> None:
    for domain, secret, epsilon, culprit in (
        (product(2, 2), "T", 1, "secret must be one of the factors S, U"),
        (sf.Domain.range(4), "S", 1, "be a factor of a Domain.product"),
        (product(2, 2), "S", -1, "epsilon must be at least 0"),
        (product(1, 2), "S", 1, "have at least two values"),
    ):
        assert culprit in refusal(SecretRandomizedResponse, domain, secret, epsilon)


def test_too_many_outputs_are_refused_with_what_to_use_instead() -> None:
    policy = robust(np.full((6, 6), 10))
    with pytest.raises(
        LimitExceeded, match=r'7\^6 outputs, .*at most 16,384 entries.* pass mechanism="conditional-rr"'
    ):
        ConditionalUnary(policy)
    with pytest.raises(LimitExceeded):
        sf.design(policy, mechanism="conditional-unary")


# -- census data -------------------------------------------------------------------------------------------


#: RLDP Figure 10: every one of these may be the secret, and every other one stand beside it…
CENSUS = ("sex", "race", "education", "occupation", "relationship", "native-country")
#: …but for two tables of more than six hundred cells, which take too long.
LARGE = ({"education", "native-country"}, {"occupation", "native-country"})
QUICK = {
    *(("sex", "race"), ("race", "sex"), ("sex", "education"), ("sex", "occupation"), ("race", "relationship")),
    ("relationship", "sex"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("secret", "other"),
    [
        pytest.param(*pair, marks=[] if pair in QUICK else pytest.mark.soak)
        for pair in itertools.permutations(CENSUS, 2)
        if {*pair} not in LARGE
    ],
)
def test_joint_estimates_of_census_attributes(secret: str, other: str) -> None:
    """RLDP Figure 10's attributes. Each interval misses with probability 1e-8: all hold but for one run in 10^5.

    The people are those of the folder that SFUMATO_DATA names, or invented ones.
    """
    columns = [census_column(data_folder(), name).value.tolist() for name in (secret, other)]
    values = list(zip(*columns, strict=True))
    labels = [sorted(set(column)) for column in columns]
    domain = sf.Domain.product(S=labels[0], U=labels[1])
    counts = np.zeros((len(labels[0]), len(labels[1])), dtype=int)
    for s, u in values:
        counts[labels[0].index(s), labels[1].index(u)] += 1
    policy = sf.Secret(domain, "S", 1, sf.ChiSquare(counts))
    mechanism = ConditionalReporting(policy, "estimation")
    assert sf.audit(mechanism, policy).holds
    if (secret, other) in QUICK:
        assert mechanism.risk(len(values)) < 0.6 * SubsetSelection(domain, 1).risk(len(values))
    reports = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(2))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    low, high = estimate.interval(1 - 1e-8)
    truth = counts.ravel() / len(values)
    assert (low <= truth).all()
    assert (truth <= high).all()
    error = float(np.sum((estimate.frequencies - truth) ** 2))
    assert error < 20 * mechanism.risk(len(values), truth)


@pytest.mark.slow
def test_an_extreme_level_and_a_secret_never_seen_overflow_nothing() -> None:
    policy = robust([[1, 2], [0, 0]], 300)
    assert sf.audit(ConditionalUnary(policy), policy).holds
