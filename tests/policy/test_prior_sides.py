"""One side of a prior policy, and what any of them lets a report tell: definitions, linear programs, exact laws."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato._core.exact import INFINITE, ZERO, Epsilon
from sfumato.device.ledger import _greatest_epsilon
from sfumato.errors import CannotCompose, InvalidInput
from sfumato.mechanisms.parts.high_low import HighLowSubset
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.binary import PriorBinary, one_sided_as_printed
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy.base import Policy
from sfumato.policy.implication import implies
from sfumato.policy.prior import PRIOR_AVERAGE, Prior
from sfumato.policy.uniform import Uniform
from support.linear_programs import implied_by_linear_programs, least_implied
from support.reference import (
    Case,
    columns,
    domain_of,
    dot,
    e_to,
    fewer,
    levels,
    mixed_inside,
    pair_cases,
    pair_rules,
    parts_of,
    plus,
    prior_cases,
    prior_rules,
    priors,
    refusal,
    scaled,
    sizes,
    written,
)

XY = sf.Domain(["x", "y"])
HALF = Fraction(1, 2)
one_side = st.sampled_from(["upper", "lower"])


def rules_of(prior: list[Fraction], level: Any, side: str) -> Any:
    rules = prior_rules(prior, level)
    half = len(rules) // 2
    return {"both": rules, "upper": rules[:half], "lower": rules[half:]}[side]


@st.composite
def sided_cases(draw: st.DrawFn, size: int, side: st.SearchStrategy[str] = one_side) -> Case:
    level, prior, chosen = draw(levels), draw(priors(size)), draw(side)
    return Case(Prior(domain_of(size), prior, written(level), chosen), rules_of(prior, level, chosen))


# -- what one side allows ----------------------------------------------------------------------------------


@given(sizes.flatmap(sided_cases), st.data())
def test_one_side_allows_what_its_rules_allow(case: Case, data: st.DataObject) -> None:
    column = data.draw(columns(case.size))
    worst = case.policy.worst(column)
    assert case.policy.allows(column) == case.allows(column) != worst.violated
    expected = float(case.excess(column))
    assert worst.excess == expected if math.isinf(expected) else worst.excess == pytest.approx(expected, abs=2e-9)
    stated = {(tuple(r.left.items()), tuple(r.right.items()), str(r.epsilon)) for r in case.policy.inequalities()}
    assert len(stated) == len(case.rules)


def test_the_two_sides_by_hand() -> None:
    """A report that rules a value out is one thing, a report that makes a rare value likely another."""
    rare = ["9/10", "1/10"]
    upper, lower = (Prior(XY, rare, "ln 2", side) for side in ("upper", "lower"))
    assert upper.allows([1, 0])  # y is ruled out, and x becomes 10/9 times as probable
    assert not lower.allows([1, 0])
    assert lower.worst([1, 0]).names == (PRIOR_AVERAGE, "y")
    assert lower.allows([1, 11])  # y becomes 11/2 times as probable, x half as probable
    assert not lower.allows([1, 11 + Fraction(1, 10**30)])
    assert upper.worst([1, 11]).names == ("y", PRIOR_AVERAGE)
    assert not upper.allows([1, 11])
    assert upper.posterior_interval("y") == pytest.approx((0, 0.2))
    assert lower.posterior_interval("y") == pytest.approx((0.05, 0.55))
    assert Prior(XY, rare, "ln 2").posterior_interval("y") == pytest.approx((0.05, 0.2))
    assert Prior(XY, rare, "inf", "lower").posterior_interval("y") == (0, 1)


@given(sizes, levels, st.data())
def test_posteriors_stay_in_their_interval_and_reach_its_ends(size: int, level: Any, data: st.DataObject) -> None:
    prior, side = data.draw(priors(size)), data.draw(st.sampled_from(["both", "upper", "lower"]))
    policy = Prior(domain_of(size), prior, written(level), side)
    least = 0.0 if level is None else 1 / float(e_to(level))
    for x, before in enumerate(prior):
        low, high = policy.posterior_interval(policy.domain.label(x))
        assert 0 <= low <= float(before) + 1e-15
        assert float(before) - 1e-15 <= high <= 1
        if before in (0, 1):
            assert low == high == before
            continue
        # The definition on the slice π·T = 1: others between their limits, by intervals.
        others = float(1 - before)
        bottom, top = (0.0 if side == "upper" else least), (math.inf if side == "lower" or least == 0 else 1 / least)
        expected_low = max(float(before) * bottom, 1 - others * top)
        expected_high = min(float(before) * top, 1 - others * bottom)
        assert (low, high) == pytest.approx((max(expected_low, 0), expected_high), abs=1e-12)


# -- comparing, composing, restricting -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "sort", ["sided to sided", "sided to pairs", "pairs to sided", "both to sided", "sided to both"]
)
@fewer(2)
@given(data=st.data())
def test_implication_agrees_with_linear_programs(sort: str, data: st.DataObject) -> None:
    size = data.draw(sizes)
    strategies: dict[str, Any] = {"sided": sided_cases(size), "pairs": pair_cases(size), "both": prior_cases(size)}
    first, second = (data.draw(strategies[kind]) for kind in sort.split(" to "))
    assert implies(first.policy, second.policy) == implied_by_linear_programs(first, second)


@fewer(2)
@given(sizes.flatmap(sided_cases))
def test_the_classical_level_is_the_least_that_is_implied(case: Case) -> None:
    assert isinstance(case.policy, Prior)
    everywhere: Any = [[{}] * case.size for _ in range(case.size)]
    least = least_implied(case, pair_rules(everywhere))
    level = case.policy.classical_epsilon
    assert _greatest_epsilon(case.policy) == level
    if math.isinf(least) or least > 25:  # too large for a linear program in doubles
        assert level.is_infinite or float(level) > 20
        return
    assert float(level) == pytest.approx(least, abs=1e-6)
    assert implies(case.policy, Uniform(case.policy.domain, level))
    if float(level) > 1e-6:
        assert not implies(case.policy, Uniform(case.policy.domain, level * Fraction(999_999, 10**6)))


def test_what_one_side_implies_grows_with_how_rare_a_value_is() -> None:
    """The lower side, which the printed Theorem 2 keeps, is ln(1 + 100(e-1)) = 5.15 of LDP at P1 = 0.01 and ε = 1."""
    lower = Prior(XY, ["0.99", "0.01"], 1, "lower")
    assert float(lower.classical_epsilon) == pytest.approx(5.15229793824444, abs=1e-9)
    assert lower.posterior_odds_bound("y", "x") == pytest.approx(1 + 100 * (math.e - 1), rel=2e-9)
    assert lower.posterior_odds_bound("x", "y") == pytest.approx(1 + (math.e - 1) / 0.99, rel=2e-9)
    assert lower.posterior_odds_bound("x", "x", 3) == pytest.approx(3)
    assert Prior(XY, ["0.99", "0.01"], 1, "upper").classical_epsilon == INFINITE
    assert Prior(XY, [HALF, HALF], "ln 3/2", "upper").classical_epsilon >= Epsilon("ln 3")
    assert float(Prior(XY, [HALF, HALF], "ln 3/2", "upper").classical_epsilon) == pytest.approx(math.log(3), abs=1e-9)
    assert Prior(XY, [1, 0], 1, "lower").classical_epsilon == INFINITE
    assert (
        Prior(XY, [HALF, HALF], 10**12, "lower").classical_epsilon == INFINITE
    )  # beyond any level that can be written
    assert Prior(XY, [HALF, HALF], 700, "lower").classical_epsilon > Epsilon(700)
    assert Prior(XY, [HALF, HALF], 0, "lower").classical_epsilon == ZERO
    assert lower.restrict(["x"]) == Uniform(sf.Domain(["x"]), 0)
    both = sf.Domain(["a", "b", "c"])
    kept = Prior(both, ["1/2", "1/2", 0], "ln 2", "lower").restrict(["b", "a"])
    assert isinstance(kept, Uniform)
    assert float(kept.epsilon) == pytest.approx(math.log(3), abs=1e-9)


@given(sizes, st.data())
def test_one_side_beside_both(size: int, data: st.DataObject) -> None:
    prior, two, one, side = data.draw(priors(size)), data.draw(levels), data.draw(levels), data.draw(one_side)
    domain = domain_of(size)
    whole, half = Prior(domain, prior, written(two)), Prior(domain, prior, written(one), side)
    composed = whole.compose(half)
    assert isinstance(composed, Prior)
    assert composed == half.compose(whole)
    assert composed.side == side
    assert parts_of(composed.epsilon) == plus(scaled(two, 2), one)
    first = mixed_inside(prior, two, data.draw(columns(size)))
    second = pulled_to_side(prior, one, side, data.draw(columns(size)))
    assert whole.allows(first)
    assert half.allows(second)
    assert composed.allows([a * b for a, b in zip(first, second, strict=True)])


def pulled_to_side(prior: list[Fraction], level: Any, side: str, column: list[Fraction]) -> list[Fraction]:
    """The column mixed with its average by no more than one side asks for."""
    average = dot(dict(enumerate(prior)), column)
    if level is None or average == 0:
        return [average if level is not None else t for t in column]
    limit = Fraction(int(e_to(level) * 10**9), 10**9)
    share = Fraction(1)
    for t in column:
        if side == "upper" and t > average:
            share = min(share, (limit - 1) * average / (t - average))
        if side == "lower" and t < average:
            share = min(share, (1 - 1 / limit) * average / (average - t))
    return [average + share * (t - average) for t in column]


def test_two_one_sided_policies_do_not_compose() -> None:
    for one, two in itertools.product(("upper", "lower"), repeat=2):
        with pytest.raises(CannotCompose, match="one-sided"):
            Prior(XY, [HALF, HALF], 1, one).compose(Prior(XY, [HALF, HALF], 1, two))
    # Why: two reports at ln 2 each, and together beyond any level that the ε's alone could name.
    for tiny in (Fraction(1, 100), Fraction(1, 10**6)):
        lower = Prior(XY, [1 - tiny, tiny], "ln 2", "lower")
        column = [Fraction(1), (1 + tiny) / tiny]
        assert lower.allows(column)
        twice = [t * t for t in column]
        assert lower.worst(twice).left / lower.worst(twice).right > 1 / tiny
    upper = Prior(XY, [HALF, HALF], "ln 2", "upper")
    nearly = [Fraction(1), Fraction(1, 10**6)]
    assert upper.allows(nearly)
    product = [a * b for a, b in zip(nearly, nearly[::-1], strict=True)]
    assert upper.allows(product)  # a constant column …
    third = sf.Domain(["x", "y", "z"])
    upper = Prior(third, [HALF, HALF, 0], "ln 2", "upper")
    first, second = [2, 0, 2], [0, 2, 2]
    assert upper.allows(first)
    assert upper.allows(second)
    product = [Fraction(a * b) for a, b in zip(first, second, strict=True)]
    assert upper.worst(product).excess == math.inf  # … and one without a bound


def test_documents_of_both_sides_are_as_they_were() -> None:
    both = Prior(XY, ["0.9", "0.1"], "ln 2")
    assert both.parameters() == {"prior": ["9/10", "1/10"], "epsilon": "ln 2"}
    assert both.hash == "be50eca23dd222b0d257a494f45c2f2e2cd7d0458fec073424248779e5446626"
    for side in ("upper", "lower"):
        policy = Prior(XY, ["0.9", "0.1"], "ln 2", side)
        assert policy.parameters() == {**both.parameters(), "side": side}
        assert sf.policy_from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
        assert policy != both
    assert sf.policy_from_dict({**both.to_dict(), "policy": {**both.to_dict()["policy"], "side": "both"}}) == both
    assert "side must be one of both, upper, lower; got 'left'" in refusal(Prior, XY, [HALF, HALF], 1, "left")


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_audits_that_look_at_few_columns_find_the_worst_of_one_side(side: str) -> None:
    """Mechanisms that tell some values in clear: against both sides one report settles it, against one it does not."""
    domain = sf.Domain.range(5)
    generator = random.Random(4)
    for mechanism in (
        HighLowSubset(domain, [0, 1, 2], 1, 2),
        SubsetSelection(domain, 1, 2),
        RandomizedResponse(domain, 1),
    ):
        for _ in range(10):
            weights = [generator.choice([0, 1, 5, 100]) for _ in range(4)] + [1]
            prior = [Fraction(w, sum(weights)) for w in weights]
            policy = Prior(domain, prior, generator.choice(["0.5", "3", "6"]), side)
            found = max((policy.worst(column) for column in zip(*mechanism.channel().rows, strict=True)),
                        key=lambda worst: worst.rank)  # fmt: skip
            columns_stated = mechanism.worst_columns(policy)
            if columns_stated is not None:
                short = max((policy.worst(column) for _, column in columns_stated), key=lambda worst: worst.rank)
                assert short.violated == found.violated
                assert short.excess == pytest.approx(found.excess)


# -- information -----------------------------------------------------------------------------------------------


def information(matrix: Any, prior: Any) -> float:
    joint = np.array([float(p) for p in prior])[:, None] * np.asarray(matrix)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nansum(joint * np.log(matrix / joint.sum(axis=0))))


@pytest.mark.parametrize("side", ["both", "upper", "lower"])
def test_no_allowed_mechanism_tells_more_than_the_bound(side: str) -> None:
    """Random mechanisms, mixed with their average law until they just obey the policy."""
    generator = np.random.default_rng(11)
    closest = 0.0
    for _ in range(300):
        k, outputs = int(generator.integers(2, 5)), int(generator.integers(2, 5))
        rows = generator.dirichlet(np.full(outputs, generator.choice([0.05, 1.0])), size=k)
        prior, epsilon = generator.dirichlet(np.ones(k)), float(generator.choice([0.1, 1, 3]))
        average = prior @ rows
        with np.errstate(divide="ignore"):
            over = ((rows / average - 1) / (math.exp(epsilon) - 1)).max() if side != "lower" else 0.0
            under = ((1 - rows / average) / (1 - math.exp(-epsilon))).max() if side != "upper" else 0.0
        channel = average + (rows - average) / max(over, under, 1.0)
        policy = Prior(sf.Domain.range(k), (prior / prior.sum()).tolist(), epsilon, side)
        told = information(channel, prior)
        assert told <= policy.information_bound() + 1e-12
        closest = max(closest, told / policy.information_bound())
    assert closest > 0.5


def test_the_bound_on_information_is_reached() -> None:
    """Four equal values at ln 3: every report has one likelihood at 3 times the average, and three at a third of it."""
    domain, uniform = sf.Domain.range(4), ["1/4"] * 4
    mechanism = RandomizedResponse(domain, "ln 9")
    policy = Prior(domain, uniform, "ln 3")
    certificate = sf.audit(mechanism, policy)
    assert certificate.holds
    assert certificate.information == pytest.approx(math.log(3) / 2, rel=1e-12)
    assert certificate.information_bound == pytest.approx(math.log(3) / 2, rel=1e-12)  # ε·tanh(ε/2)
    assert mechanism.channel().mutual_information(uniform) == certificate.information
    # One side: a report that leaves one of two equal values standing tells ln 2 = ε nats.
    clear = TableMechanism.from_matrix(XY, [[1, 0], [0, 1]])
    upper = Prior(XY, [HALF, HALF], "ln 2", "upper")
    assert sf.audit(clear, upper).holds
    assert sf.audit(clear, upper).information == pytest.approx(upper.information_bound()) == pytest.approx(math.log(2))
    printed = one_sided_as_printed(XY, [HALF, HALF], "ln 2")
    certificate = sf.audit(printed, Prior(XY, [HALF, HALF], "ln 2", "lower"))
    assert certificate.information == pytest.approx(certificate.information_bound, rel=1e-12)


@given(st.integers(1, 99), st.sampled_from(["1e-9", "0.01", "1", "ln 3", "8"]))
def test_information_is_exact_to_a_double(percent: int, epsilon: str) -> None:
    """Against high precision from a different formula: H(Y) - H(Y|X) in Decimals."""
    from decimal import Decimal, localcontext

    prior = [Fraction(100 - percent, 100), Fraction(percent, 100)]
    mechanism = PriorBinary(XY, prior, epsilon)
    with localcontext() as context:
        context.prec = 80

        def number(value: Fraction) -> Decimal:
            return Decimal(value.numerator) / Decimal(value.denominator)

        def entropy(law: list[Decimal]) -> Decimal:
            return -sum((p * p.ln() for p in law if p), Decimal(0))

        rows = [[number(mechanism.probability(y, x)) for y in range(2)] for x in range(2)]
        weights = [number(p) for p in prior]
        marginal = [sum((w * row[y] for w, row in zip(weights, rows, strict=True)), Decimal(0)) for y in range(2)]
        told = entropy(marginal) - sum((w * entropy(row) for w, row in zip(weights, rows, strict=True)), Decimal(0))
    assert mechanism.channel().mutual_information(prior) == pytest.approx(float(told), rel=1e-12)
    assert float(told) <= Prior(XY, prior, epsilon).information_bound() <= float(Epsilon(epsilon))


def test_information_of_a_bad_prior_is_refused() -> None:
    law = RandomizedResponse(XY, 1).channel()
    assert "have 2 entries" in refusal(law.mutual_information, [1])
    assert "sum to exactly one" in refusal(law.mutual_information, ["1/2", "1/3"])


# -- certificates ------------------------------------------------------------------------------------------------


def test_certificates_state_the_information_and_keep_it() -> None:
    mechanism = PriorBinary(XY, ["0.9", "0.1"], 1)
    certificate = sf.audit(mechanism, Prior(XY, ["0.9", "0.1"], 1))
    assert certificate.information is not None
    assert certificate.information_bound is not None
    assert 0 < certificate.information < certificate.information_bound < 1
    assert "nats" in str(certificate)
    read = sf.Certificate.from_json(certificate.to_json())
    assert (read.information, read.information_bound) == (certificate.information, certificate.information_bound)
    assert sf.verify(read) == certificate


def test_a_certificate_with_another_information_is_refused() -> None:
    mechanism = PriorBinary(XY, ["0.9", "0.1"], 1)
    document = json.loads(sf.audit(mechanism, Prior(XY, ["0.9", "0.1"], 1)).to_json())
    for wrong in ({"nats": 0.001, "bound": document["information"]["bound"]}, {"nats": None, "bound": 1.0}):
        with pytest.raises(InvalidInput, match="its statement must be that of the repeated audit"):
            sf.verify(sf.Certificate.from_json(json.dumps({**document, "information": wrong})))
    broken: Any
    for broken in ([], {"nats": 1}, {"nats": "much", "bound": 1}):
        with pytest.raises(InvalidInput, match="complete JSON certificate"):
            sf.Certificate.from_json(json.dumps({**document, "information": broken}))


@pytest.mark.slow
def test_the_information_of_a_long_law_is_left_out() -> None:
    domain = sf.Domain.range(300)
    policy: Policy = Prior(domain, [Fraction(1, 300)] * 300, 1)
    certificate = sf.audit(RandomizedResponse(domain, 1), policy)
    assert certificate.holds
    assert certificate.information is None
    assert certificate.information_bound == pytest.approx(math.tanh(0.5))
    assert sf.verify(sf.Certificate.from_json(certificate.to_json())) == certificate
