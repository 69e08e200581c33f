"""The greatest ε of every mechanism under a prior or a known distribution, and the table for a uniform prior."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato._core.exact import INFINITE, ZERO, Epsilon
from sfumato.compiler import bounds, planning as _plan
from sfumato.compiler.candidates import candidates, safe_epsilon
from sfumato.errors import NoMechanism
from sfumato.mechanisms.prior.designs import prior_hadamard, prior_response, prior_subset, prior_table
from sfumato.mechanisms.secret.randomized_response import known_response
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy.distributions import Distributions
from sfumato.policy.prior import SIDES
from sfumato.testing import random_distribution
from support.clocks import deadline_after

R = sf.Domain.range
#: Just above a level that was rounded down to nine digits.
ABOVE = Fraction(10**8 + 1, 10**8)
#: Names of the candidates that hide all pairs of values alike.
CLASSICAL = {"rr", "unary", "unary-optimized", "subset", "hadamard", "cyclic", "local-hashing"}


def uniform(k: int, epsilon: object = 1, side: str = "both") -> sf.Prior:
    return sf.Prior(R(k), [Fraction(1, k)] * k, epsilon, side)  # type: ignore[arg-type]


def random_priors(count: int, sizes: range) -> list[sf.Prior]:
    generator = random.Random(15)
    found = []
    for number in range(count):
        k = generator.choice(sizes)
        epsilon = generator.choice(["0.001", "0.3", "1", "ln 3", "2.5"])
        prior = random_distribution(k, generator) if number % 2 else [Fraction(1, k)] * k
        found.append(sf.Prior(R(k), prior, epsilon, SIDES[number % 3]))
    return found


# -- the ε of classical mechanisms ---------------------------------------------------------------------------


def test_the_safe_epsilon_of_two_equal_values_is_above_that_of_the_prior() -> None:
    policy = sf.Prior(R(2), ["1/2", "1/2"], 1)
    assert float(safe_epsilon(policy)) == pytest.approx(np.log(2 * np.e - 1), abs=1e-9)  # r/(r+1) = 1 - 1/(2e)
    assert sf.implies(sf.Uniform(R(2), safe_epsilon(policy)), policy)


@pytest.mark.parametrize("policy", random_priors(40, range(2, 7)), ids=lambda policy: policy.hash[:6])
def test_the_safe_epsilon_is_the_greatest_that_implies_the_policy(policy: sf.Prior) -> None:
    safe = safe_epsilon(policy)
    assert safe >= policy.epsilon
    assert safe.is_infinite or sf.implies(sf.Uniform(policy.domain, safe), policy)
    if not safe.is_infinite:
        assert not sf.implies(sf.Uniform(policy.domain, safe * ABOVE), policy)
    for name, candidate in candidates(policy).by_name.items():
        assert candidate.classical == (name in CLASSICAL)


def test_the_safe_epsilon_of_other_policies() -> None:
    product = sf.Domain.product(S=["a", "b"], U=range(2))
    known = sf.Secret(product, "S", "0.7", sf.Known([["0.3", "0.2"], ["0.1", "0.4"]]))
    assert safe_epsilon(known) == Epsilon("0.7")
    assert not sf.implies(sf.Uniform(product, "0.700001"), known)
    assert safe_epsilon(sf.Pairwise(R(3), {(0, 1): 2, (1, 2): 1})) == Epsilon(1)
    assert safe_epsilon(uniform(3, 0)) == ZERO
    assert safe_epsilon(uniform(3, "inf")) == INFINITE
    assert safe_epsilon(sf.Prior(R(3), ["1/2", "1/2", 0], "ln 3")) == Epsilon("ln 3")  # a value of prior zero
    # Beyond what doubles know, and at the greatest level that can be stated.
    for level in ("1e-1000", "1e-320", "1e-300", "999999999999", "1e12"):
        policy = uniform(3, level)
        assert policy.epsilon <= safe_epsilon(policy) <= min(policy.epsilon * 2, Epsilon("1e12"))
        assert sf.implies(sf.Uniform(policy.domain, safe_epsilon(policy)), policy)
        assert all(row.risk > 0 for row in sf.plan(policy, n=10).rows)
    # No set of values is so light that ruling out all others is much of a surprise.
    assert safe_epsilon(uniform(2, "ln 2", "upper")) == INFINITE


@pytest.mark.slow
@pytest.mark.parametrize("policy", random_priors(40, range(3, 8)), ids=lambda policy: policy.hash[:6])
def test_each_mechanism_has_the_greatest_epsilon_that_its_own_law_allows(policy: sf.Prior) -> None:
    response, subset, hadamard = prior_response(policy), prior_subset(policy), prior_hadamard(policy)
    for mechanism in (response, subset, hadamard):
        assert sf.audit(mechanism, policy).holds, mechanism
        assert mechanism.epsilon >= safe_epsilon(policy)
    if not response.epsilon.is_infinite:
        more = RandomizedResponse(policy.domain, response.epsilon * ABOVE)
        assert not sf.audit(more, policy).holds
    if not subset.epsilon.is_infinite:
        more_sets = SubsetSelection(policy.domain, subset.epsilon * ABOVE, subset.size)
        assert not sf.audit(more_sets, policy).holds
    if not hadamard.epsilon.is_infinite:
        more_rows = HadamardResponse(policy.domain, hadamard.epsilon * ABOVE, block_size=hadamard.block_size)
        assert not sf.audit(more_rows, policy).holds
    others = [d for d in range(1, len(policy.domain)) if d != subset.size]
    for size in others:
        sets = SubsetSelection(policy.domain, policy.epsilon, size)
        masses = [
            sum((share for x, share in enumerate(policy.prior) if sets.in_set(report, x)), Fraction(0))
            for report in (sets.extreme(policy.prior, heaviest=heaviest) for heaviest in (False, True))
        ]
        tuned = SubsetSelection(policy.domain, policy.greatest_subset_epsilon(*masses), size)
        assert subset.risk(1) <= tuned.risk(1) * (1 + 1e-6)


def test_subsets_of_twenty_equal_values() -> None:
    mechanism = sf.design(uniform(20), mechanism="prior-subset")
    assert isinstance(mechanism, SubsetSelection)
    assert mechanism.size == 5
    assert Epsilon("1.85039") < mechanism.epsilon < Epsilon("1.85042")
    assert mechanism.risk(1) == pytest.approx(18.340, abs=0.001)
    assert sf.design(uniform(20), mechanism="subset").risk(1) < 62.1  # at the safe epsilon, 66.6 at that of the prior


# -- secrets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.01", "1", "ln 3", "6"])
@pytest.mark.parametrize(
    "distributions",
    [
        sf.Known([["0.3", "0.1", "0.1"], ["0.1", "0.2", "0.2"]]),
        sf.Known([["0.5", "0.3", "0.2"], ["0", "0", "0"]]),  # of a secret that never occurs nothing is known
        sf.AtLeast([["1/4", "1/4", "1/4"], ["0.1", "0.2", "0.3"]]),
    ],
    ids=["known", "never", "at-least"],
)
def test_a_known_distribution_allows_randomized_response_more(epsilon: str, distributions: Distributions) -> None:
    policy = sf.Secret(sf.Domain.product(S=range(2), U=range(3)), "S", epsilon, distributions)
    mechanism = sf.design(policy, mechanism="known-rr")
    assert isinstance(mechanism, RandomizedResponse)
    assert sf.audit(mechanism, policy).holds
    assert not sf.audit(RandomizedResponse(policy.domain, mechanism.epsilon * ABOVE), policy).holds
    assert not candidates(policy).by_name["known-rr"].classical
    assert mechanism.risk(1) <= sf.design(policy, mechanism="rr").risk(1)


def test_many_values_beside_a_secret() -> None:
    """Above 64 values nothing is searched for, and what was offered had 34 times this risk."""
    product = sf.Domain.product(S=range(2), U=range(50))
    policy = sf.Secret(product, "S", 1, sf.Known([["1/100"] * 50] * 2))
    tuned = known_response(policy)
    others = [sf.design(policy, mechanism=name).risk(1) for name in ("rr", "subset", "secret-rr")]
    assert tuned.risk(1) < min(others) / 30
    for level in (0, "inf"):
        free = sf.Secret(product, "S", level, sf.Known([["1/100"] * 50] * 2))
        assert known_response(free).epsilon == Epsilon(level)


# -- the closed form -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_the_closed_form_is_the_optimum_over_all_rays(k: int, epsilon: str, side: str) -> None:
    policy = uniform(k, epsilon, side)
    optimum = sf.optimal(policy)
    assert optimum.gap < 1e-5
    assert bounds.least_risk(policy) == pytest.approx(optimum.value, rel=1e-6)


def test_the_closed_form_at_its_ends() -> None:
    assert bounds.prior_least_risk(1, 1) == 0
    assert bounds.prior_least_risk(7, 0) == np.inf
    assert bounds.prior_least_risk(7, "inf") == pytest.approx(6 / 7)
    assert bounds.prior_least_risk(7, 800) == pytest.approx(6 / 7)
    # Where e^ε stays above what all others at e^-ε leave, only one value is high: randomized response.
    assert bounds.prior_least_risk(7, 3) == pytest.approx(prior_response(uniform(7, 3)).risk(1))
    # Small levels lose nothing to rounding: with half of the values high, (k-1)²/(k·ε²).
    assert bounds.prior_least_risk(8, "1e-9") == pytest.approx(49 / 8 * 1e18, rel=1e-6)
    assert bounds.least_risk(sf.Prior(R(3), ["1/2", "1/4", "1/4"], 1)) is None


# -- the default ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [9, 10, 11, 12, 13, 20, 40, 300])
def test_the_default_for_a_uniform_prior_is_near_the_least_risk(k: int) -> None:
    """There is no cliff at 11 values: 11, 20 and 300 had risk 33.5, 66.6 and 1104 where 8.53, 17.68, 275 are least."""
    policy = uniform(k)
    plan = sf.plan(policy, n=1)
    least = bounds.prior_least_risk(k, 1)
    assert least * (1 - 1e-9) <= plan.best.risk <= 1.01 * least
    assert plan.best.bound == pytest.approx(least)
    assert not plan.best.classical
    assert plan.saving > 2.9


def test_unequal_priors_are_better_off_than_classical_mechanisms() -> None:
    prior = [Fraction(x, 195) for x in range(15, 25)]
    for shares in (prior, [*prior[:-1], Fraction(0), prior[-1]]):
        policy = sf.Prior(R(len(shares)), shares, 1)
        assert prior_subset(policy).risk(1) <= sf.design(policy, mechanism="subset").risk(1)


# -- the table -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("k", "epsilon"), [(3, 1), (12, 2), (20, 1), (30, 3), (20, "ln 3"), (11, "1e-6"), (5, "inf")])
def test_the_table_has_three_levels_and_obeys_the_policy(k: int, epsilon: object, side: str) -> None:
    policy = uniform(k, epsilon, side)
    table = prior_table(policy)
    assert sf.audit(table, policy).holds
    levels, counts = np.unique(table.weights[:, 0], return_counts=True)
    assert len(levels) <= 3
    assert sorted(counts)[:-2] in ([], [1])
    for column in table.weights.T:
        assert sorted(column) == sorted(table.weights[:, 0])  # permutations of one column
    assert table.risk(1) <= 1.01 * bounds.prior_least_risk(k, policy.epsilon, side)
    assert table == prior_table(policy)


def test_short_reports_have_fewer_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plan, "Deadline", deadline_after(300))
    policy = uniform(20)
    assert prior_table(policy, 32).outputs == 20
    assert sf.plan(policy, n=1, max_bits=6).best.name == "prior-table"
    assert sf.design(policy, max_bits=6).bits <= 6
    with pytest.raises(NoMechanism, match="more than the limit of 16 outputs"):
        prior_table(policy, 16)
    assert "prior-table" not in [row.name for row in sf.plan(policy, n=1, max_bits=4).rows]


def test_what_no_table_is_made_for() -> None:
    with pytest.raises(AssertionError):
        prior_table(sf.Prior(R(3), ["1/2", "1/4", "1/4"], 1))
    for epsilon in (0, "1e-30"):
        with pytest.raises(NoMechanism, match="which is too close to 0 for probabilities in steps of 2"):
            prior_table(uniform(3, epsilon))
    assert "prior-table" not in candidates(uniform(129)).by_name
    assert "prior-table" not in candidates(sf.Prior(R(3), ["1/2", "1/4", "1/4"], 1)).by_name
