"""Plans: predicted errors are those of the mechanisms, the recommendation is the best, and n for a target is enough."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.compiler import bounds, goal_of, planning as _plan
from sfumato.compiler.planning import LITERATURE
from sfumato.errors import CannotCompose, InvalidInput, LimitExceeded, NoMechanism, PolicyViolated, Undecided
from sfumato.mechanisms import (
    BitmapFormat,
    Candidate,
    CandidateRequest,
    Draws,
    Finished,
    RandomizedResponse,
    UnaryEncoding,
    registry as _registry,
)
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.parts.high_low import HighLowHadamard
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import Inequality, Policy
from support import ROOT
from support.clocks import deadline_after

DOMAIN = sf.Domain.range(40)


def policies() -> list[sf.Policy]:
    product = sf.Domain.product(S=["a", "b"], U=range(20))
    joint = [[1 / 40] * 20] * 2
    return [
        sf.Uniform(DOMAIN, 1),
        sf.HighLow(DOMAIN, [1, 2], 1),
        sf.Blocks(DOMAIN, [i // 8 for i in range(40)], [1, 2, 3, "ln 2", "0.7"]),
        sf.Blocks(DOMAIN, [i // 8 for i in range(40)], 1, across=2),
        sf.Blocks(DOMAIN, [i // 7 for i in range(40)], 1, across=2),
        sf.Metric(DOMAIN, "absolute", "0.5"),
        sf.Pairwise(DOMAIN, {(0, 1): "0.3", (1, 0): 2}),
        sf.Pairwise(sf.Domain(["no", "yes"]), [[0, 1], [2, 0]]),
        sf.Prior(DOMAIN, [1 / 40] * 40, 1),
        sf.Secret(product, secret="S", epsilon=1, distributions=sf.Known(joint)),
        sf.Secret(product, secret="S", epsilon=1, distributions=sf.Anything()),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("policy", policies(), ids=lambda policy: f"{policy.kind}-{policy.hash[:4]}")
def test_every_planned_mechanism_obeys_the_policy(policy: sf.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plan, "Deadline", deadline_after(60))
    for row in sf.plan(policy, n=1000).rows:
        if isinstance(policy, sf.Secret) and policy.as_pairwise is None and row.bits > 20:
            assert sf.implies(sf.Uniform(policy.domain, policy.epsilon), policy)  # too many outputs to read one by one
            continue
        assert sf.audit(row.mechanism, policy).holds, row.name


def test_rows_state_the_mechanisms_own_risk_best_first() -> None:
    plan = sf.plan(sf.Uniform(DOMAIN, 1), n=5000, max_bits=None)
    assert [row.risk for row in plan.rows] == sorted(row.risk for row in plan.rows)
    for row in plan.rows:
        assert row.risk == pytest.approx(row.mechanism.risk(5000))
        assert row.bits == row.mechanism.bits
        assert row.bound is not None
        assert row.risk >= row.bound * (1 - 1e-9)
    assert plan.best.name == "subset"
    assert plan.best.ratio == pytest.approx(1)


def test_the_recommendation_respects_the_bits() -> None:
    plan = sf.plan(sf.Uniform(DOMAIN, 1), n=5000, max_bits=8)
    assert plan.best.name == "cyclic"
    assert plan.best.bits <= 8
    assert "within 8 bits" in plan.reason
    assert plan.reason in str(plan)
    with pytest.raises(NoMechanism, match="at most 2 bits"):
        _ = sf.plan(sf.Uniform(DOMAIN, 1), n=5000, max_bits=2).best


@pytest.mark.parametrize("target", [0.2, 0.01])
def test_the_n_for_a_target_is_enough_and_hardly_more(target: float) -> None:
    plan = sf.plan(sf.Uniform(DOMAIN, 1), target=target)
    assert plan.best.tv <= target * (1 + 1e-12)
    assert sf.plan(sf.Uniform(DOMAIN, 1), n=plan.n - 1).best.tv > target


def test_the_predicted_total_variation_is_what_a_simulation_finds() -> None:
    """300 seeded collections; the mean TV has a relative standard error below 1%, so 5% is far beyond α = 1e-6."""
    mechanism = HadamardResponse(DOMAIN, 1)
    row = next(row for row in sf.plan(sf.Uniform(DOMAIN, 1), n=20_000).rows if row.name == "hadamard")
    generator = np.random.default_rng(8)
    law = np.full(40, 1 / 40) @ mechanism.matrix()
    errors = []
    for _ in range(300):
        counts = generator.multinomial(20_000, law)
        estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, 20_000, counts))
        errors.append(np.abs(estimate.frequencies - 1 / 40).sum() / 2)
    assert np.mean(errors) == pytest.approx(row.tv, rel=0.05)
    assert np.mean(np.square(errors)) != pytest.approx(row.tv, rel=0.05)


def test_a_plan_at_another_distribution() -> None:
    p = [0.5, *[0.5 / 39] * 39]
    for row in sf.plan(sf.Uniform(DOMAIN, 1), n=10, prior=p).rows:
        assert row.risk == pytest.approx(row.mechanism.risk(10, p))
        assert row.bound is None


def test_design_takes_the_recommendation_or_the_name() -> None:
    policy = sf.HighLow(DOMAIN, [3, 5, 8], 1)
    assert sf.design(policy, 1000) == HighLowMixedSubsets(DOMAIN, [3, 5, 8], 1, share=Fraction(3, 40))  # short reports
    assert sf.design(policy, mechanism="hadamard") == HadamardResponse(DOMAIN, 1)
    assert sf.design(policy, mechanism="high-low-hadamard") == HighLowHadamard(DOMAIN, [3, 5, 8], 1)
    assert sf.design(sf.Uniform(DOMAIN, 1), 1000) == CyclicDesign(DOMAIN, 1)
    assert sf.design(sf.Uniform(DOMAIN, 1), max_bits=None) == SubsetSelection(DOMAIN, 1)
    with pytest.raises(InvalidInput, match=r"mechanism must be one of optimal, rr, unary, .*; got 'magic'"):
        sf.design(policy, mechanism="magic")
    with pytest.raises(InvalidInput, match=r"utility must be one of 'estimation', .* got 'magic'"):
        sf.design(policy, utility="magic")


def test_a_small_policy_without_structure_is_offered_the_optimal_design_and_its_bound() -> None:
    domain = sf.Domain.range(5)
    policy = sf.Metric(domain, "absolute", 1)
    plan = sf.plan(policy, n=100)
    assert plan.best.name == "optimal"
    assert plan.best.ratio == pytest.approx(1, abs=1e-5)
    assert plan.best.bound is not None
    assert all(row.bound == plan.best.bound and row.risk >= plan.best.bound for row in plan.rows)
    assert sf.design(policy) == plan.best.mechanism
    short = sf.plan(policy, n=100, max_bits=3)
    assert short.best.name == "optimal"
    assert plan.best.risk <= short.best.risk
    assert short.best.bits == 3
    assert "optimal" not in {row.name for row in sf.plan(policy, n=100, max_bits=2).rows}
    # A larger one too, unless no time is given to it.
    larger = sf.Metric(sf.Domain.range(11), "absolute", 1)
    assert sf.plan(larger, n=100).best.name == "optimal"
    assert "optimal" not in {row.name for row in sf.plan(larger, n=100, max_seconds=0).rows}


def random_pairwise(size: int, seed: int) -> sf.Pairwise:
    """Levels of 0.2 to 3 between any two values, in each direction another."""
    matrix = np.round(np.random.default_rng(seed).uniform(0.2, 3, (size, size)), 2)
    np.fill_diagonal(matrix, 0)
    return sf.Pairwise(sf.Domain.range(size), matrix.astype(str).tolist())


def test_twelve_values_without_structure_are_searched_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the mechanisms in closed form alone the error was 6 times as large."""
    policy = random_pairwise(12, 0)
    monkeypatch.setattr(_plan, "Deadline", deadline_after(4000))
    plan = sf.plan(policy, n=1000)
    assert plan.best.name == "optimal"
    assert plan.skipped is None
    closed = sf.plan(policy, n=1000, max_seconds=0)
    assert plan.best.risk < closed.best.risk / 4
    assert closed.skipped is not None
    assert closed.skipped.startswith("the optimal mechanism, because max_seconds is 0")


@pytest.mark.slow
def test_what_was_not_searched_is_said_and_no_least_is_claimed() -> None:
    large = sf.Metric(sf.Domain.range(260), "absolute", "0.1")
    plan = sf.plan(large, n=1000, max_bits=None)
    assert plan.skipped is not None
    assert "260 values are more than the default limit of 256" in plan.skipped
    for words in (plan.reason, str(plan)):
        assert "smallest expected squared error of the compared mechanisms (" in words
        assert "no useful lower bound is known" in words
        assert f"Not compared: {plan.skipped}" in words
    # Where a bound proves it, it is the least of all; where it nearly does, by how much it may be missed.
    proved = sf.plan(sf.Uniform(DOMAIN, 1), n=5000, max_bits=None)
    assert proved.skipped is None
    assert "subset: optimal, expected squared error " in proved.reason
    short = sf.plan(sf.Uniform(DOMAIN, 1), n=5000, max_bits=8).reason
    assert "of the compared mechanisms within 8 bits (" in short
    assert re.search(r"\([0-9.]+, at most [0-9.]+% above the lower bound\), ", short)
    elsewhere = sf.plan(sf.Uniform(DOMAIN, 1), n=5000, prior=[0.5, *[0.5 / 39] * 39]).reason
    assert "no useful lower bound is known" in elsewhere


def test_a_bound_that_says_nothing_is_not_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of an instant knows no more than that there is a sampling error: 1,000 times that means nothing."""
    monkeypatch.setattr(_plan, "Deadline", deadline_after(400))
    plan = sf.plan(random_pairwise(30, 1), n=1000, max_seconds=0.1)
    assert "optimal" in {row.name for row in plan.rows}
    assert all(row.bound is None and row.ratio is None for row in plan.rows)
    assert "lower bound)" not in str(plan)


def test_a_total_variation_above_one_is_stated() -> None:
    policy = sf.Uniform(sf.Domain.range(1000), "0.1")
    plan = sf.plan(policy, n=100)
    assert plan.best.half_l1 > 10
    lines = str(plan).splitlines()
    assert all(f"  {row.half_l1:.4g}  " in line for row, line in zip(plan, lines[2:], strict=False))
    assert lines[-1] == f"WARNING: {plan.warnings[-1]}"
    assert plan.warnings == ["100 people are too few: no value can be expected to differ from zero, however frequent"]
    # The number of people for a target follows from the error that falls with √n.
    enough = sf.plan(policy, target=0.05)
    assert enough.n == pytest.approx(100 * (plan.best.half_l1 / 0.05) ** 2, rel=1e-6)
    assert enough.best.tv == enough.best.half_l1 == pytest.approx(0.05)


def test_design_for_another_utility_is_the_best_of_all() -> None:
    policy = sf.HighLow(sf.Domain.range(6), [1, 2], 1)
    made = sf.design(policy, utility="mmse")
    optimum = sf.optimal(policy, "mmse")
    assert goal_of("mmse", policy.domain).value(made.matrix(), optimum.prior) <= optimum.value
    assert sf.audit(made, policy).holds
    assert sf.design(policy, mechanism="optimal", utility="mmse") == optimum.mechanism


def names(policy: sf.Policy) -> set[str]:
    return {row.name for row in sf.plan(policy, n=10, max_seconds=0).rows if not row.classical}


def test_a_policy_is_offered_what_its_structure_allows() -> None:
    high_low = {"high-low-subset", "high-low-hadamard", "uo-rr"}
    blocks = {"block", "block-rr", "block-subset", "block-hadamard"}
    pairs = [i // 2 for i in range(40)]
    assert names(sf.Uniform(DOMAIN, 1)) == set()
    assert names(sf.HighLow(DOMAIN, [1], 1)) == high_low
    assert names(sf.HighLow(DOMAIN, range(40), 1)) == set()  # everything sensitive is Uniform
    assert names(sf.Blocks(DOMAIN, pairs, 1)) == blocks
    assert names(sf.Blocks(DOMAIN, [0] * 40, 1)) == set()
    assert names(sf.Blocks(DOMAIN, pairs, 1, across=2)) == {"nested-cyclic", "composed"}
    assert names(sf.Blocks(DOMAIN, [0, 0, 0, *pairs[3:]], 1, across=2)) == {"nested-cyclic", "composed"}
    assert names(sf.Metric(DOMAIN, "absolute", 1)) == {"exponential"}
    assert names(sf.Metric(DOMAIN, "discrete", 1)) == set()
    assert names(sf.Pairwise(sf.Domain(["a", "b"]), [[0, 1], [2, 0]])) == {"binary"}
    # A single rule is implied by sensitive values, and by blocks that reports may reveal.
    of_blocks = {f"{name}-in-39-blocks" for name in blocks}
    assert names(sf.Pairwise(DOMAIN, {(0, 1): 1})) == high_low | of_blocks
    # A matrix that is blocks in disguise is found out.
    matrix = [["0" if x == y else "1" if x % 4 == y % 4 else "inf" for y in range(40)] for x in range(40)]
    assert names(sf.Pairwise(DOMAIN, matrix)) == blocks


def test_blocks_have_a_bound_and_their_best_part_attains_it() -> None:
    plan = sf.plan(sf.Blocks(DOMAIN, [i // 8 for i in range(40)], [1, 2, 3, "ln 2", "0.7"]), n=1000)
    assert plan.best.name == "block"
    assert plan.best.ratio == pytest.approx(1, abs=1e-9)
    assert all(row.ratio is not None and row.ratio >= 1 - 1e-9 for row in plan.rows)


@pytest.mark.parametrize("utility", ["mutual-information", "worst-estimation"])
@pytest.mark.parametrize("mechanism", [None, "optimal"])
def test_reports_too_short_for_every_mechanism(utility: str, mechanism: str | None) -> None:
    policy = sf.Metric(sf.Domain.range(5), "absolute", 1)
    with pytest.raises(NoMechanism, match="5 values need as many different reports, and max_bits allows 4"):
        sf.plan(policy, n=100, utility=utility, mechanism=mechanism, max_bits=2)


def test_short_reports_suffice_for_values_that_a_policy_merges() -> None:
    merged = sf.Pairwise(sf.Domain.range(5), [[0 if x // 2 == z // 2 else 1 for z in range(5)] for x in range(5)])
    assert sf.plan(merged, n=100, utility="mutual-information", max_bits=2)["optimal"].bits == 2


def test_short_reports_choose_other_parts() -> None:
    policy = sf.Blocks(DOMAIN, [i // 8 for i in range(40)], 1)
    short = sf.design(policy, max_bits=7)
    assert isinstance(short, BlockMechanism)
    assert short.bits <= 7
    assert short.risk(1) >= sf.design(policy).risk(1)
    with pytest.raises(NoMechanism, match="at most 5 bits"):
        sf.design(policy, max_bits=5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [sf.Uniform, lambda domain, epsilon: sf.Blocks(domain, ["all"] * 4, epsilon)])
def test_every_mechanism_is_classical_for_a_policy_with_one_level(kind: Callable[[sf.Domain, int], Policy]) -> None:
    """Sampled attributes have the least error; they are made for the question, and obey one ε between all values."""
    policy = kind(sf.Domain.product(flu=["no", "yes"], hiv=["no", "yes"]), 1)
    plan = sf.plan(policy, 1000, question="marginals:1", max_seconds=0)
    assert plan.best.name == "sample-evenly"
    assert all(row.classical for row in plan.rows)
    assert plan.classical is plan.best
    assert plan.saving == 1


def test_the_saving_against_classical_ldp_is_what_simulations_find() -> None:
    """k = 1000 of which 50 are sensitive. The l2 errors of 40 seeded collections each: their mean has a relative
    standard error of about √(2/1000)/√40 < 1% (each sums many nearly independent squares), so 10% is far beyond 1e-6.
    """
    policy = sf.HighLow(sf.Domain.range(1000), range(50), 1)
    plan = sf.plan(policy, n=20_000)
    assert plan.best.name == "high-low-cyclic"
    assert plan.saving == pytest.approx(plan.classical.risk / plan.best.risk)
    assert f"classical LDP needs {math.ceil(20_000 * plan.saving):,} people instead of 20,000" in plan.reason
    errors = [
        np.mean([sf.simulate(row.mechanism, n=20_000, seed=seed).l2 for seed in range(40)])
        for row in (plan.classical, plan.best)
    ]
    assert errors[0] / errors[1] == pytest.approx(plan.saving, rel=0.1)


def test_no_budget_has_no_finite_error_and_no_rules_have_none() -> None:
    assert math.isinf(sf.plan(sf.Uniform(DOMAIN, 0), n=10).best.risk)
    free = sf.plan(sf.Pairwise(DOMAIN, {}), n=10).best
    assert free.name == "rr"
    assert free.risk == pytest.approx((1 - 1 / 40) / 10)  # sampling alone


@pytest.mark.parametrize(
    ("policy", "because"),
    [
        (sf.Uniform(DOMAIN, 0), "reports that obey this policy reveal nothing, because its epsilon is 0"),
        (sf.Prior(DOMAIN, [1 / 40] * 40, 0), "reports that obey this policy reveal nothing, because its epsilon is 0"),
        (sf.Blocks(DOMAIN, [i // 8 for i in range(40)], 0), "reports cannot distinguish all values"),
        (
            sf.Uniform(DOMAIN, "1e-300"),
            "reports cannot distinguish all values, because an epsilon .* is 0 or too close to 0",
        ),
    ],
    ids=lambda given: getattr(given, "kind", ""),
)
def test_where_nothing_can_be_estimated_the_plan_says_so(
    policy: sf.Policy, because: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_plan, "Deadline", deadline_after(300))
    plan = sf.plan(policy, n=10)
    assert re.search(rf"{because}.*, so no number of people suffices$", plan.reason)
    assert not re.search("inf|nan", plan.reason)
    assert plan.best.ratio is None
    assert "nan" not in str(plan)
    assert sf.audit(sf.design(policy), policy).holds
    impossible = rf"^no number of people meets the target 0\.1: {because}.*\. Use a policy with larger epsilons\.$"
    with pytest.raises(NoMechanism, match=impossible):
        sf.plan(policy, target=0.1)


def test_the_optimal_design_for_level_zero_says_that_it_tells_nothing() -> None:
    optimum = sf.optimal(sf.Prior(sf.Domain.range(3), ["1/2", "1/4", "1/4"], 0))
    assert optimum.mechanism.outputs == 1
    assert str(optimum).startswith(
        "no mechanism that obeys the policy distinguishes all values, so no number of people"
    )
    assert not re.search("inf|nan", str(optimum))


def test_long_reports_are_named_as_such() -> None:
    policy = sf.Uniform(sf.Domain.range(10_000), 1)
    unlimited = sf.plan(policy, n=10, max_bits=None)
    assert "10,000 bits per report (about 1 kB; set max_bits for shorter reports)" in unlimited.reason
    assert "10,000 bits per report (about 1 kB)" in sf.plan(policy, n=10, max_bits=10_000).reason
    assert "15 bits per report; subset: " in sf.plan(policy, n=10, max_bits=100).reason


@pytest.mark.parametrize("n", [1e6, 10**6, np.int64(10**6), np.float64(10**6), Fraction(10**6)])
def test_a_million_is_a_million_whatever_its_type(n: Any) -> None:
    policy = sf.HighLow(DOMAIN, [3], 1)
    plan = sf.plan(policy, n)
    assert isinstance(plan.n, int)
    assert plan.reason == sf.plan(policy, 1_000_000).reason
    assert sf.design(policy, n) == plan.best.mechanism
    assert plan.best.mechanism.risk(n) == plan.best.mechanism.risk(1_000_000)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, math.nan, math.inf, "100", 1j, 2**53 + 1, Fraction(3, 2)])
def test_what_is_no_number_of_people_is_refused(n: Any) -> None:
    policy = sf.HighLow(DOMAIN, [3], 1)
    for ask in (
        lambda: sf.plan(policy, n),
        lambda: sf.design(policy, n),
        lambda: sf.design(policy, n, mechanism="rr"),
        lambda: SubsetSelection(DOMAIN, 1).risk(n),
        lambda: bounds.high_low_l2(1, 1, n),
        lambda: bounds.high_low_l1(1, 40, 1, n),
        lambda: bounds.block_l2([2, 3], 1, n),
        lambda: bounds.block_l1([2, 3], 1, n),
    ):
        with pytest.raises(InvalidInput, match=r"n must be a whole number from 1 to 2\^53; got "):
            ask()


def test_a_deterministic_truth_meets_a_target_with_one_person() -> None:
    assert sf.plan(sf.Pairwise(DOMAIN, {}), target=0.1, prior=[1.0] + [0.0] * 39).n == 1


def test_a_mechanism_is_no_policy() -> None:
    mechanism: Any = SubsetSelection(DOMAIN, 1)
    for ask in (lambda: sf.plan(mechanism, 10), lambda: sf.design(mechanism)):
        with pytest.raises(InvalidInput, match=r"the policy must be a Policy, not a Mechanism .*; got SubsetSelection"):
            ask()


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        ({}, "exactly one of n and target must be passed"),
        ({"n": 5, "target": 0.1}, "exactly one of n and target must be passed"),
        ({"n": 0}, r"plan: n must be a whole number from 1 to 2\^53; got 0"),
        ({"target": 0}, "target must lie between 0 and 1"),
        ({"target": 2}, "target must lie between 0 and 1"),
        ({"target": "0.1"}, "target must lie between 0 and 1"),
        ({"target": math.nan}, "target must lie between 0 and 1"),
        (
            {"target": 1e-300},
            r"target must be an error that at most 2\^53 people can reach; got 1e-300\. "
            r"It would take about 10\^60\d people\. Raise the target",
        ),
        ({"n": 5, "prior": [1.0]}, "plan: prior must have 40 entries"),
        ({"n": 5, "prior": ["none"] * 40}, "plan: prior must be 40 probabilities"),
        ({"n": 5, "prior": {"none": 1}}, "plan: each label of prior must be an int from 0 to 39; got 'none'"),
        (
            {"n": 5, "prior": {7: 1}},
            "plan: prior must have an entry for every value of the domain; got no entry for 0, 1, 2, … 36 more",
        ),
        ({"n": 5, "max_bits": 0}, r"plan: max_bits must be a whole number from 1 to 2\^32; got 0"),
        ({"n": 5, "max_bits": "8"}, "plan: max_bits must be"),
    ],
)
def test_bad_questions_are_refused(arguments: dict[str, Any], culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        sf.plan(sf.Uniform(DOMAIN, 1), **arguments)
    with pytest.raises(InvalidInput, match="at least two values"):
        sf.plan(sf.Uniform(sf.Domain(["only"]), 1), n=5)


class Halves(Policy):
    """The average likelihoods of both halves of the values are within e^ε of each other: a policy of a third party."""

    kind = "halves"

    def __init__(self, domain: sf.Domain, epsilon: int) -> None:
        self.domain, self.epsilon = domain, sf.Epsilon(epsilon)

    def inequalities(self) -> Iterator[Inequality]:
        half = len(self.domain) // 2
        first, second = ({x: Fraction(1, half) for x in range(at, at + half)} for at in (0, half))
        yield Inequality(first, second, self.epsilon, ("first", "second"))
        yield Inequality(second, first, self.epsilon, ("second", "first"))

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon)}

    def compose(self, other: Policy) -> Policy:
        raise CannotCompose(f"halves and {other.kind}")

    def restrict(self, values: Iterable[object]) -> Policy:
        raise NotImplementedError


def test_a_policy_of_another_class_is_planned_for() -> None:
    policy = Halves(sf.Domain.range(6), 1)
    plan = sf.plan(policy, n=100)
    assert {"rr", "subset", "optimal"} <= {row.name for row in plan.rows}
    assert all(sf.audit(row.mechanism, policy).holds for row in plan.rows)
    assert plan.best.name == "optimal"
    assert sf.audit(sf.design(policy), policy).holds


# -- candidates of registered mechanisms -------------------------------------------------------------------

FEW = sf.Uniform(sf.Domain(["a", "b", "c"]), 1)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after the test what it registered."""
    for name in ("_FAMILIES", "_BY_CLASS", "_BY_NAME"):
        monkeypatch.setattr(_registry, name, getattr(_registry, name).copy())


class Truth(RandomizedResponse):
    """States the law of randomized response, and reports the value itself."""

    name = "truth"

    def step(self, state: Any, draws: Draws) -> Finished:  # noqa: ARG002
        return Finished(state)


class WideTruth(UnaryEncoding):
    """The same in one bit per value, in steps that see the bits before."""

    name = "wide-truth"

    def step(self, state: Any, draws: Draws) -> Any:
        x, _, report = state
        return Finished(1 << x) if report else super().step(state, draws)


class Honest(RandomizedResponse):
    name = "honest"


def offer(build: Callable[[CandidateRequest], Any], name: str = "outside") -> Any:
    """Return what a family yields: one candidate."""
    return lambda request: [(name, Candidate(lambda: build(request), "k", classical=True))]


def planned(policy: sf.Policy, **options: Any) -> Iterator[sf.Plan]:
    yield sf.plan(policy, 100, **options)
    yield sf.plan(policy, 100, utility="mutual-information", max_seconds=0, **options)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(("seconds", "is_compared"), [(1.9, True), (7.9, False)])
def test_without_a_search_a_candidate_that_takes_long_is_left_out_and_said(seconds: float, is_compared: bool) -> None:
    built = []

    def build() -> RandomizedResponse:
        built.append(seconds)
        return Honest(FEW.domain, 1)

    sf.register(Honest, candidates=lambda _: [("outside", Candidate(build, "k", seconds=seconds))])
    plan = sf.plan(FEW, 100, max_seconds=0)
    assert ("outside" in {row.name for row in plan}) == is_compared == bool(built)
    assert is_compared or "outside, because building it takes about 7.9 s (max_seconds is 0)" in str(plan.skipped)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda request: Truth(request.policy.domain, request.epsilon), "does not obey the uniform policy"),
        (lambda request: RandomizedResponse(request.policy.domain, 2), "does not obey the uniform policy"),
        (lambda _: Truth(sf.Domain.range(4), 1), "the policy must have the mechanism's domain"),
        (lambda _: None, "the mechanism must be a Mechanism"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda _: RandomizedResponse(sf.Domain.range(3), -1), "epsilon must be at least 0"),
    ],
)
def test_a_registered_mechanism_that_breaks_the_policy_or_fails_is_skipped(build: Any, why: str) -> None:
    sf.register(Truth, candidates=offer(build))
    for plan in planned(FEW):
        assert "outside" not in {row.name for row in plan}
        assert "rr" in {row.name for row in plan}
        assert "outside, because " in str(plan.skipped)
        assert why in str(plan.skipped)
        assert why in plan.reason
    assert sf.design(FEW).is_of_library
    assert sf.design(FEW, mechanism="rr").is_of_library


@pytest.mark.usefixtures("registry")
def test_a_violator_that_is_asked_for_by_name_is_refused() -> None:
    sf.register(Truth, candidates=offer(lambda request: Truth(request.policy.domain, request.epsilon)))
    for call in (sf.design, lambda policy, **options: sf.plan(policy, 100, **options)):
        with pytest.raises(PolicyViolated, match="does not obey"):
            call(FEW, mechanism="outside")


@pytest.mark.usefixtures("registry")
def test_a_registered_mechanism_that_cannot_be_read_is_skipped() -> None:
    sf.register(WideTruth, candidates=offer(lambda request: WideTruth(request.policy.domain, request.epsilon)))
    plan = sf.plan(sf.Uniform(DOMAIN, 1), 100)
    assert "outside" not in {row.name for row in plan}
    assert "cannot audit wide-truth: its sampler cannot be read" in str(plan.skipped)
    with pytest.raises(Undecided):
        sf.design(sf.Uniform(DOMAIN, 1), mechanism="outside")


@pytest.mark.usefixtures("registry")
def test_a_registered_mechanism_that_obeys_is_compared() -> None:
    sf.register(Honest, candidates=offer(lambda request: Honest(request.policy.domain, request.epsilon)))
    for plan in planned(FEW):
        assert plan["outside"].risk == plan["rr"].risk
        assert plan.skipped is None or "outside" not in plan.skipped
    assert isinstance(sf.design(FEW, mechanism="outside"), Honest)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["rr", "optimal"])
def test_a_short_name_that_is_taken_is_skipped(name: str) -> None:
    sf.register(Honest, candidates=offer(lambda request: Honest(request.policy.domain, 0), name))
    for plan in planned(FEW):
        assert f"{name} of honest, because the short name is taken" in str(plan.skipped)
        assert all(row.mechanism.is_of_library for row in plan)
    assert type(sf.design(FEW, mechanism="rr")) is RandomizedResponse


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("offered", [[3], [("outside", 3)], [(3, Candidate(Honest, "k"))], None])  # type: ignore[arg-type]
def test_a_family_that_offers_no_candidates_is_skipped(offered: Any) -> None:
    sf.register(Honest, candidates=lambda _: offered)
    for plan in planned(FEW):
        assert "candidates of honest, because " in str(plan.skipped)
        assert "rr" in {row.name for row in plan}


@pytest.mark.usefixtures("registry")
def test_a_registered_mechanism_without_an_estimator_is_skipped() -> None:
    class Bitmap(Honest):
        name = "bitmap"

        def step(self, state: Any, draws: Draws) -> Finished:
            return Finished(1 << super().step(state, draws).report)

        def probability(self, report: int, x: int) -> Fraction:
            return super().probability(report.bit_length() - 1, x)

        def reports(self) -> list[int]:
            return [1 << x for x in range(self.outputs)]

    build = offer(lambda request: Bitmap(request.policy.domain, request.epsilon))
    sf.register(Bitmap, candidates=build, report_format=lambda mechanism: BitmapFormat(len(mechanism.domain)))
    plan = sf.plan(FEW, 100)
    assert plan.best.name == "rr"
    assert "report an index, or have an estimator" in str(plan.skipped)


def test_a_mechanism_of_the_library_that_is_too_large_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: Any) -> Any:
        raise LimitExceeded("a table of 10^9 entries is too large. Use a smaller domain.")

    monkeypatch.setattr(SubsetSelection, "worst_risk", too_large)
    plan = sf.plan(FEW, 100)
    assert plan.skipped == "subset, because a table of 10^9 entries is too large"
    assert plan.best.name == "rr"
    monkeypatch.setattr(SubsetSelection, "worst_risk", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sf.plan(FEW, 100)


def test_the_printed_ratio_to_the_bound_is_value_over_bound() -> None:
    """An error is at least its lower bound, and an information at most its upper bound."""
    policy = sf.HighLow(sf.Domain.range(6), [1, 2], 1)
    errors = sf.plan(policy, n=1000)
    informations = sf.plan(policy, n=1000, utility="mutual-information")
    for plan, is_error in ((errors, True), (informations, False)):
        head, *lines = str(plan).splitlines()[1 : len(plan) + 2]
        assert "× bound" in head
        for row, line in zip(plan.rows, lines, strict=True):
            assert row.ratio is not None
            assert row.shown_ratio == f"{row.ratio if is_error else 1 / row.ratio:.2f}"
            assert f" {row.shown_ratio}  " in line


@pytest.mark.parametrize("name", sorted(LITERATURE))
def test_a_name_of_the_literature_is_the_mechanism_that_the_page_says(name: str) -> None:
    two, eight = sf.Domain.range(2), sf.Domain.range(8)
    policy = sf.HighLow(two, [1], 1) if name == "mangat" else sf.Uniform(eight, 1)
    question = sf.Mean() if name == "duchi" else None
    made = sf.design(policy, question=question, mechanism=name.upper())
    assert made == sf.design(policy, question=question, mechanism=LITERATURE[name])
    page = (ROOT / "docs" / "how-to" / "names-of-the-literature.md").read_text(encoding="utf-8")
    assert any(f"`{name}`" in row and f"| `{LITERATURE[name]}` |" in row for row in page.splitlines())


def test_a_name_of_the_literature_for_another_policy_is_refused_with_ours() -> None:
    with pytest.raises(InvalidInput, match=r"for this policy \('Mangat' is 'high-low-subset'\); got 'Mangat'"):
        sf.design(sf.Uniform(sf.Domain.range(5), 1), mechanism="Mangat")


def test_a_misspelt_mechanism_has_a_suggestion() -> None:
    with pytest.raises(InvalidInput, match=r"did you mean 'oue'\?.*got 'oeu'"):
        sf.design(sf.Uniform(sf.Domain.range(5), 1), mechanism="oeu")
