"""The best mechanism for two values: its contract, its published values, its special cases, and that it is the best."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.interpreter import sampler_law
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.binary import BinaryOptimal, binary_for_policy
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.testing import MechanismContract
from support.published import reference

COIN = sf.Domain(["no", "yes"])
LEVELS = ["0", "1e-30", "0.001", "0.5", "ln 3", "2", "16", "200", "1e12", "inf"]


def pairwise(first: Any, second: Any, domain: sf.Domain = COIN) -> sf.Pairwise:
    return sf.Pairwise(domain, [[0, first], [second, 0]])


class TestAsymmetric(MechanismContract):
    sizes = (2,)
    ratios = (Fraction(1), Fraction(2))

    def levels(self, epsilon: Epsilon) -> tuple[Epsilon, Epsilon]:
        return epsilon * self.ratios[0], epsilon * self.ratios[1]

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BinaryOptimal(domain, *self.levels(epsilon))

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Policy:
        return pairwise(*self.levels(epsilon), domain)


class TestAsymmetricTheOtherWay(TestAsymmetric):
    ratios = (Fraction(3, 2), Fraction(1, 7))


class TestWarner(MechanismContract):
    sizes = (2,)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BinaryOptimal(domain, epsilon, epsilon)


class TestMangat(MechanismContract):
    sizes = (2,)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BinaryOptimal(domain, "inf", epsilon)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Policy:
        return sf.HighLow(domain, [1], epsilon)


# -- every pair of levels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", LEVELS)
@pytest.mark.parametrize("second", LEVELS)
def test_every_pair_of_levels_is_kept(first: str, second: str) -> None:
    mechanism = BinaryOptimal(COIN, first, second)
    assert sf.audit(mechanism, pairwise(first, second)).holds
    (told, _), (denied, _) = mechanism.weights.tolist()
    assert denied <= told
    if "0" in (first, second):
        assert told == denied
        assert math.isinf(mechanism.risk(10))
    elif "inf" not in (first, second):
        # No finite level becomes certainty, however large: an output has probability zero for both values or for none.
        possible = mechanism.weights > 0
        assert np.array_equal(possible[0], possible[1])
    assert sf.mechanism_from_spec(mechanism.to_json()) == mechanism


@pytest.mark.parametrize(("first", "second"), [*itertools.permutations(["0.001", "0.5", "ln 3", "2", "5"], 2)])
def test_both_levels_are_spent(first: str, second: str) -> None:
    mechanism = BinaryOptimal(COIN, first, second)
    just_less = Fraction(10**9 - 1, 10**9)
    assert not sf.audit(mechanism, pairwise(Epsilon(first) * just_less, second)).holds
    assert not sf.audit(mechanism, pairwise(first, Epsilon(second) * just_less)).holds


def test_the_second_row_is_rounded_by_no_more_than_the_levels_ask() -> None:
    """One unit less for the second value, and a level is broken."""
    for first, second in (("0.5", "2"), ("1", "1"), ("ln 3", "0.001"), ("7", "3"), ("1", "inf")):
        (told, _), (denied, _) = BinaryOptimal(COIN, first, second).weights.tolist()
        nudged = TableMechanism(COIN, [[told, TOTAL - told], [denied - 1, TOTAL - denied + 1]])
        assert not sf.audit(nudged, pairwise(first, second)).holds


def test_no_budget_is_a_fair_coin_and_two_infinite_ones_are_the_value() -> None:
    assert sampler_law(BinaryOptimal(COIN, 0, 0), 1)[0] == {b"\0": Fraction(1, 2), b"\1": Fraction(1, 2)}
    assert sampler_law(BinaryOptimal(COIN, "inf", "inf"), 1)[0] == {b"\1": 1}


def test_warners_is_randomized_response_of_two_values() -> None:
    for epsilon in ("0", "0.3", "ln 3", "4", "inf"):
        mechanism = BinaryOptimal(COIN, epsilon, epsilon)
        np.testing.assert_allclose(
            mechanism.matrix(), RandomizedResponse(COIN, epsilon).matrix(), rtol=1e-15, atol=1e-18
        )
    assert BinaryOptimal(COIN, "ln 3", "ln 3").weights.tolist() == [
        [3 * TOTAL // 4, TOTAL // 4],
        [TOTAL // 4, 3 * TOTAL // 4],
    ]


def test_mangats_protects_the_sensitive_value_and_no_other() -> None:
    for sensitive, other in (("no", "yes"), ("yes", "no")):
        levels = ("ln 4", "inf") if sensitive == "no" else ("inf", "ln 4")
        mechanism = BinaryOptimal(COIN, *levels)
        assert mechanism == binary_for_policy(sf.HighLow(COIN, [sensitive], "ln 4"))
        x, y = COIN.index(sensitive), COIN.index(other)
        assert [mechanism.probability(x, x), mechanism.probability(x, y)] == [1, Fraction(1, 4)]
        assert sf.audit(mechanism, sf.HighLow(COIN, [sensitive], "ln 4")).holds
        assert not sf.audit(mechanism, sf.HighLow(COIN, [sensitive], "1.386")).holds
        assert not sf.audit(mechanism, sf.HighLow(COIN, [other], 1000)).holds


def test_the_best_mechanism_of_a_policy_has_its_levels() -> None:
    for policy in (
        pairwise("0.5", 2),
        sf.Uniform(COIN, "ln 3"),
        sf.HighLow(COIN, ["yes"], 1),
        sf.Metric(COIN, [[0, 2], [2, 0]], "0.25"),
        sf.Blocks(COIN, [["no"], ["yes"]], 1),
    ):
        mechanism = binary_for_policy(policy)
        levels = [str(policy.effective_epsilon(0, 1)), str(policy.effective_epsilon(1, 0))]
        assert mechanism.provenance == {"from": "binary-optimal", "epsilons": levels}
        assert sf.audit(mechanism, policy).holds


@pytest.mark.parametrize(
    ("build", "culprit"),
    [
        (lambda: BinaryOptimal(sf.Domain.range(3), 1, 1), "domain must have exactly two values; got 3 values"),
        (lambda: BinaryOptimal(COIN, -1, 1), "epsilon_first must be at least 0; got -1"),
        (lambda: BinaryOptimal(COIN, 1, "much"), "epsilon_second must be"),
        (
            lambda: binary_for_policy(sf.Uniform(sf.Domain.range(3), 1)),
            "binary_for_policy: domain must have exactly two values; got 3 values",
        ),
        (
            lambda: binary_for_policy(sf.Secret(sf.Domain.product(S=[0, 1], U=[0]), "S", 1, sf.Anything())),
            "policy must be a Uniform, HighLow, Blocks, Pairwise, Metric or Prior policy; got Secret",
        ),
    ],
)
def test_bad_parameters_are_refused_by_name(build: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        build()


def test_inconsistent_specs_are_refused() -> None:
    spec = BinaryOptimal(COIN, 1, 2).spec
    parameters = spec["parameters"]
    for wrong, culprit in (
        ({**parameters, "weights": [["1", "x"], ["1", "2"]]}, "be integers"),
        ({**parameters, "total_bits": 61}, "with total_bits = 62; got total_bits = 61, weights"),
        (
            {**parameters, "epsilon": "1"},
            "have the keys total_bits and weights, with total_bits = 62; got epsilon, total_bits = 62, weights",
        ),
        ({**parameters, "provenance": "mine"}, "provenance must be a dictionary; got 'mine'"),
        ({**parameters, "provenance": {"from": math.nan}}, "provenance must be JSON-compatible"),
        ({**parameters, "provenance": {"from": "\ud800"}}, "provenance must be JSON-compatible"),
    ):
        with pytest.raises(InvalidInput, match=culprit):
            sf.mechanism_from_spec({**spec, "parameters": wrong})


def test_the_provenance_of_a_table_is_for_readers_alone() -> None:
    stated = {"from": "elsewhere", "epsilons": ["0", {"of": [1, None]}]}
    mechanism = BinaryOptimal(COIN, 1, 2)
    other = TableMechanism(COIN, mechanism.weights, provenance=stated)
    stated["epsilons"] = []
    assert other.provenance == {"from": "elsewhere", "epsilons": ["0", {"of": [1, None]}]}
    again = sf.mechanism_from_spec(other.to_json())
    assert isinstance(again, TableMechanism)
    assert again == other
    assert again.provenance == other.provenance
    assert other.channel().rows == mechanism.channel().rows
    assert not sf.audit(other, pairwise(0, 0)).holds
    plain = TableMechanism(COIN, mechanism.weights)
    assert "provenance" not in plain.spec["parameters"]
    assert len({plain.hash, other.hash, mechanism.hash}) == 3


# -- published values --------------------------------------------------------------------------------------


def information(matrix: npt.NDArray[np.float64], p: list[float]) -> float:
    """Mutual information of value and report, in nats."""
    joint = np.array(p)[:, None] * matrix
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = joint * np.log(matrix / joint.sum(axis=0))
    return float(np.nansum(terms))


def level(mechanism: Mechanism, x: str, other: str) -> float:
    """The least epsilon that the mechanism keeps for x against other."""
    return mechanism.channel().worst(sf.Pairwise(COIN, {(x, other): 0})).excess


def test_the_reference_values_are_reproduced() -> None:
    for case in reference("eldp_binary_optimal"):
        mechanism = BinaryOptimal(COIN, case["eps12"], case["eps21"])
        assert mechanism.matrix().ravel() == pytest.approx(np.ravel(case["Q"]), rel=1e-11, abs=1e-13)
        mutual = information(mechanism.matrix(), [0.3, 0.7])
        assert mutual == pytest.approx(case["MI_at_p_0p3_0p7"], rel=1e-11, abs=1e-13)
        assert level(mechanism, "no", "yes") == pytest.approx(float(case["level12"]), rel=1e-9)
        assert level(mechanism, "yes", "no") == pytest.approx(float(case["level21"]), rel=1e-9)
        corners = sf.error_region(mechanism, "no", "yes").vertices
        expected = [case["P_FA"], case["P_MD"]]
        assert min(np.abs(corners - expected).max(axis=1)) <= 1e-13


def test_the_preprints_matrix_breaks_the_policy() -> None:
    case = reference("eldp_binary_counterexample_arxiv_matrix")
    printed = TableMechanism.from_matrix(COIN, case["Q"])
    certificate = sf.audit(printed, pairwise(case["eps12"], case["eps21"]))
    assert not certificate.holds
    assert certificate.worst.names == ("no", "yes")
    assert level(printed, "no", "yes") == pytest.approx(case["level12"], rel=1e-9)
    assert level(printed, "yes", "no") == pytest.approx(case["level21"], rel=1e-9)
    # Its levels are exchanged: it is the best mechanism for the transposed policy.
    transposed = BinaryOptimal(COIN, case["eps21"], case["eps12"])
    np.testing.assert_allclose(printed.matrix(), transposed.matrix(), rtol=1e-11)


# -- estimates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"), [("0.5", "2"), ("1", "1"), ("inf", "ln 3"), ("3", "0.01"), ("inf", "inf")]
)
def test_the_estimate_is_unbiased_and_its_risk_exact(first: str, second: str) -> None:
    """By enumeration of all sequences of two reports."""
    mechanism, p = BinaryOptimal(COIN, first, second), np.array([0.3, 0.7])
    estimator = mechanism.estimator
    law = p @ mechanism.matrix()
    mean, risk = np.zeros(2), 0.0
    for reports in itertools.product(range(2), repeat=2):
        estimate = estimator.frequencies(np.bincount(reports, minlength=2) / 2)
        probability = float(np.prod(law[list(reports)]))
        mean += probability * estimate
        risk += probability * float(np.sum((estimate - p) ** 2))
    assert mean == pytest.approx(p, rel=1e-9)
    assert mechanism.risk(2, p) == pytest.approx(risk, rel=1e-9)


# -- nothing is better -------------------------------------------------------------------------------------


def as_informative_as_allowed(rows: npt.NDArray[np.float64], first: float, second: float) -> npt.NDArray[np.float64]:
    """The two rows moved towards their mixture, no further than both levels ask for."""
    middle = rows[0] * 0.5 + rows[1] * 0.5
    half = rows[0] - middle
    # middle + s·half ≤ e^first·(middle - s·half) where half > 0, and the converse with e^second where half < 0.
    limits = np.where(half > 0, np.tanh(first / 2), np.tanh(second / 2)) * middle
    with np.errstate(divide="ignore", invalid="ignore"):
        share = min(1.0, float(np.nanmin(np.where(half == 0, np.inf, limits / np.abs(half)))))
    return np.array([middle + share * half, middle - share * half])


@pytest.mark.parametrize(("first", "second"), [(0.5, 2.0), (1.0, 1.0), (3.0, 0.1), (0.01, 4.0)])
def test_no_channel_within_the_policy_is_better(first: float, second: float) -> None:
    generator = np.random.default_rng(8)
    best = BinaryOptimal(COIN, first, second).matrix()
    most_apart = np.abs(best[0] - best[1]).sum() / 2
    reached = 0.0
    for _ in range(1500):
        outputs = int(generator.integers(2, 5))
        rows = generator.dirichlet(np.full(outputs, generator.choice([0.1, 1.0])), size=2)
        channel = as_informative_as_allowed(rows, first, second)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratios = np.log(channel[0] / channel[1])
        assert np.nanmax(log_ratios) <= first + 1e-9
        assert np.nanmin(log_ratios) >= -second - 1e-9
        apart = np.abs(channel[0] - channel[1]).sum() / 2
        assert apart <= most_apart * (1 + 1e-12)
        reached = max(reached, apart / most_apart)
        p = float(generator.random())
        assert information(channel, [p, 1 - p]) <= information(best, [p, 1 - p]) + 1e-12
    assert reached > 0.9  # the comparison is not with channels that are far from the limit


@pytest.mark.slow
def test_a_policy_implies_another_iff_its_best_mechanism_obeys_that() -> None:
    grid = ["0.25", "ln 3", "2", "inf"]
    for a, b, c, d in itertools.product(grid, repeat=4):
        first, second = pairwise(a, b), pairwise(c, d)
        assert sf.implies(first, second) == sf.audit(binary_for_policy(first), second).holds


def test_two_releases_add_up_to_exactly_the_composed_levels() -> None:
    one, two = ("0.5", "2"), ("1", "ln 2")
    joint = BinaryOptimal(COIN, *one).channel().and_then(lambda _: BinaryOptimal(COIN, *two).channel())
    composed = pairwise(*one).compose(pairwise(*two))
    assert isinstance(composed, sf.Pairwise)
    assert joint.obeys(composed)
    just_less = Fraction(10**9 - 1, 10**9)
    for x, other in ((0, 1), (1, 0)):
        tighter = {(COIN.label(x), COIN.label(other)): composed.effective_epsilon(x, other) * just_less}
        assert not joint.obeys(sf.Pairwise(COIN, tighter))
