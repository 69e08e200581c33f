"""A search ends when its time is over: with a clock that counts its readings, work after the deadline is counted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Epsilon
from sfumato.compiler import planning as _plan, utility_planning
from sfumato.compiler.solvers import interior, mixture, optimization as _optimal, slice as slices, worst_case
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime, Pace
from sfumato.compiler.solvers.linear_program import LinearProgram
from sfumato.compiler.solvers.optimization import optimal_until
from sfumato.compiler.solvers.slice import Slice
from sfumato.errors import SolverFailed
from sfumato.mechanisms import RandomizedResponse, TableMechanism, UnaryEncoding
from sfumato.mechanisms.secret.base import risk_of, set_response
from sfumato.policy.base import Policy
from sfumato.policy.pairwise import PairwisePolicy
from support.clocks import Clock, deadline_after

R = sf.Domain.range


def random_pairwise(size: int, seed: int) -> Policy:
    matrix = np.round(np.random.default_rng(seed).uniform(0.2, 3, (size, size)), 2)
    np.fill_diagonal(matrix, 0)
    return sf.Pairwise(R(size), matrix.astype(str).tolist())


def confidence_set() -> Policy:
    counts = np.random.default_rng(1).integers(5, 50, (3, 4))
    return sf.Secret(sf.Domain.product(S=["x", "y", "z"], U=[0, 1, 2, 3]), "S", 1, sf.ChiSquare(counts.tolist()))


# Eleven values are one more than are enumerated.
POLICIES: dict[str, Callable[[], Policy]] = {
    "pairwise": lambda: random_pairwise(11, 1),
    "metric": lambda: sf.Metric(R(11), "absolute", "0.3"),
    "prior": lambda: sf.Prior(R(11), [f"{x}/66" for x in range(1, 12)], 1),
    "confidence set": confidence_set,
}
GOALS: dict[str, Callable[[int], Any]] = {
    "estimation": lambda _: "estimation",
    "worst-estimation": lambda _: "worst-estimation",
    "mutual-information": lambda _: "mutual-information",
    "mmse": lambda size: sf.SquaredError(np.arange(size, dtype=np.float64)),
    "loss": lambda size: sf.ExpectedLoss(1 - np.eye(size)),
}


@pytest.mark.slow
@pytest.mark.parametrize("ticks", [1, 40, 300])
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("kind", POLICIES)
def test_after_the_deadline_no_solver_is_called_again(
    kind: str, goal: str, ticks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, policy = Clock(), POLICIES[kind]()
    began: list[float] = []  # when each solver was called

    def timed(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            began.append(clock.now)
            return original(*arguments, **keywords)

        monkeypatch.setattr(owner, name, call)

    timed(LinearProgram, "farthest")  # a linear program
    timed(interior, "_solver")  # a Newton step
    timed(mixture, "best_weights")  # a linear program over all rays
    timed(worst_case, "_cones")  # a cone program
    try:
        utility = GOALS[goal](len(policy.domain))
        optimum = optimal_until(Deadline(ticks, clock), policy, utility, None, None, None)
    except OutOfTime:
        assert ticks < 300
    else:
        assert sf.audit(optimum.mechanism, policy).holds
    # The first mechanism has a second of grace; what reads the clock twice may begin between the readings.
    assert len(began) > 0 or ticks == 1
    assert sum(moment > ticks + 4 for moment in began) <= 2


def test_parts_of_a_deadline_end_before_it() -> None:
    clock = Clock()
    deadline = Deadline(100, clock)
    assert deadline.left > 90
    assert deadline.part(0.5).left < 50
    assert deadline.part(1.0, reserve=90).left < 10
    assert Deadline(0, clock).passed
    assert Deadline(0, clock).left == 0
    assert NEVER.left == np.inf
    clock.now = 200
    assert deadline.passed
    assert deadline.left == 0
    assert deadline.part(1.0).passed
    assert not deadline.extended(5).passed
    with pytest.raises(SolverFailed, match="max_seconds"):
        deadline.require()


def test_when_it_is_late_a_matrix_is_rounded_in_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = sf.Metric(R(40), "absolute", "0.3")
    levels = np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0)))
    matrix = np.exp(-0.15 * levels)
    matrix /= matrix.sum(axis=1, keepdims=True)
    tries: list[int] = []
    original = PairwisePolicy.allows_all

    def counted(self: PairwisePolicy, columns: Any) -> bool:
        tries.append(len(columns))
        return original(self, columns)

    monkeypatch.setattr(PairwisePolicy, "allows_all", counted)
    hurried = TableMechanism.from_matrix(R(40), matrix, policy=policy, late=lambda: True)
    assert len(tries) == 1
    assert sf.audit(hurried, policy).holds
    assert np.abs(hurried.matrix() - matrix).max() < 1e-6
    unhurried = TableMechanism.from_matrix(R(40), matrix, policy=policy)
    assert np.abs(unhurried.matrix() - matrix).max() < 1e-12


def test_a_matrix_that_takes_too_long_is_not_written_down() -> None:
    """Unary encoding of 14 values has 16,384 outputs: its matrix took 40 s, however short the search was to be."""
    clock = Clock()
    assert utility_planning._matrix_until(Deadline(20, clock), UnaryEncoding(R(14), 1)) is None
    assert clock.now < 30
    small = UnaryEncoding(R(4), 1)
    assert np.array_equal(np.array(utility_planning._matrix_until(NEVER, small)), small.matrix())


def test_what_does_not_fit_in_time_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock can be waited for here: the time of the plan is over when its search begins."""
    monkeypatch.setattr(_plan, "Deadline", deadline_after(1))
    policy = sf.Metric(R(200), "absolute", "0.1")
    plan = sf.plan(policy, n=1000, max_seconds=1)
    assert "optimal" not in {row.name for row in plan.rows}
    assert plan.skipped is not None
    assert "exponential, because building it takes about" in plan.skipped
    assert "its search did not finish in 1 s" in plan.skipped
    assert f"Not compared: {plan.skipped}" in plan.reason


def test_a_cone_program_whose_first_step_does_not_fit_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its solver looks at the clock between steps, and at 40 values one takes longer than a short search may."""
    monkeypatch.setattr(worst_case, "_cones", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(OutOfTime):
        worst_case.least_worst_error(
            Slice.of(sf.Uniform(R(40), 1), np.full(40, 1 / 40)), np.ones((480, 40)), Deadline(5)
        )


def test_a_search_that_does_not_fit_is_refused_by_optimal_and_replaced_by_design(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = random_pairwise(60, 2)
    for module in (_optimal, _plan):
        monkeypatch.setattr(module, "Deadline", deadline_after(1))
    with pytest.raises(OutOfTime, match="max_seconds"):
        sf.optimal(policy, "worst-estimation")
    with pytest.raises(OutOfTime, match="max_seconds"):
        sf.design(policy, utility="worst-estimation", mechanism="optimal")
    made = sf.design(policy, utility="worst-estimation")
    assert not isinstance(made, TableMechanism)
    assert sf.audit(made, policy).holds


def test_work_that_cannot_be_interrupted_is_measured_in_processor_time() -> None:
    """With two other programs on the same core a computation of 1 s takes 3 s, and does not fit in 2 s."""
    moments, worked = iter([0.0, 3.0]), iter([0.0, 1.0])
    pace = Pace(lambda: next(moments), lambda: next(worked))
    assert pace.slowness == 3.0
    moments, worked = iter([0.0, 3.0]), iter([0.0, 0.01])
    assert Pace(lambda: next(moments), lambda: next(worked), 2.5).slowness == 2.5, "too little was done to tell"

    class Busy(Pace):
        slowness = 3.0

    clock = Clock()
    assert Deadline(20, clock).fits(10)
    busy = Deadline(20, clock, Busy(clock, clock))
    assert not busy.fits(10)
    assert busy.part(1.0).fits(2)
    assert not busy.extended(5).fits(10)


def nearly_uniform(size: int) -> Policy:
    """No rule follows from others: as many as there can be."""
    matrix = np.round(np.random.default_rng(1).uniform(0.9, 1, (size, size)), 4)
    np.fill_diagonal(matrix, 0)
    return sf.Pairwise(R(size), matrix.astype(str).tolist())


def test_vertices_are_not_enumerated_where_that_may_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Qhull cannot be interrupted, and takes 2.5 s for 10 values with a rule between any two."""
    slice_ = Slice.of(nearly_uniform(10), np.full(10, 0.1))
    with monkeypatch.context() as patched:
        patched.setattr(slices, "_enumerate", lambda *_: pytest.fail("it was begun"))
        assert slice_.all_vertices(Deadline(1.5, Clock())) is None
        # The search goes on without.
        readings = itertools.count()
        short = Deadline(1.0, lambda: next(readings) / 1000)
        assert optimal_until(short, nearly_uniform(10), "estimation", None, None, None).value > 0
    few = Slice.of(nearly_uniform(6), np.full(6, 1 / 6)).all_vertices(Deadline(2, Clock()))
    assert few is not None
    assert len(few) > 100


def test_when_the_time_of_a_plan_is_over_other_candidates_and_the_search_are_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_plan, "Deadline", deadline_after(1))
    monkeypatch.setattr(_plan, "optimal_until", lambda *_: pytest.fail("it was begun"))
    plan = sf.plan(random_pairwise(12, 1), n=1000, max_seconds=1)
    assert [row.name for row in plan.rows] == ["rr"]
    assert plan.skipped is not None
    assert "subset, because the time limit was reached (max_seconds is 1)" in plan.skipped
    assert "the optimal mechanism, because its search did not finish in 1 s" in plan.skipped
    assert sf.audit(plan.best.mechanism, plan.policy).holds


@pytest.mark.parametrize("goal", ["loss", "mutual-information", "mmse", "worst-estimation"])
@pytest.mark.parametrize("kind", POLICIES)
def test_design_returns_a_mechanism_however_short_the_time(
    kind: str, goal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_plan, "Deadline", deadline_after(1))
    policy = POLICIES[kind]()
    plan = sf.plan(policy, 1, utility=GOALS[goal](len(policy.domain)), max_seconds=0.1)
    assert sf.audit(plan.best.mechanism, policy).holds
    assert "Not compared: " in plan.reason
    assert "max_seconds" in plan.reason


def test_decisions_of_randomized_response_are_what_a_loss_gets_without_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_plan, "Deadline", deadline_after(1))
    policy, loss = sf.Uniform(R(4), "ln 3"), np.array([[0.0, 1], [0, 1], [1, 0], [1, 0]])
    made = sf.design(policy, utility=sf.ExpectedLoss(loss), max_seconds=0.1)
    # Reports 0 and 1 say the first decision: right with probability (3 + 1)/6.
    assert np.abs(made.matrix() - np.array([[2, 1], [2, 1], [1, 2], [1, 2]]) / 3).max() < 1e-5


@pytest.mark.parametrize("kind", [sf.Known, sf.AtLeast, lambda _: sf.Anything()])
def test_a_table_for_a_secret_is_rounded_without_exact_arithmetic_for_every_column(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact decisions, column by column, took ten seconds for 200 values, whatever the time was to be."""
    domain = sf.Domain.product(S=R(5), U=R(8))
    policy = sf.Secret(domain, "S", 1, kind([["1/50"] * 8] * 5 if kind is sf.AtLeast else [["1/40"] * 8] * 5))
    matrix = RandomizedResponse(domain, "1").matrix()
    with monkeypatch.context() as patched:
        patched.setattr(Policy, "_checked", lambda *_: pytest.fail("a column was decided exactly"))
        rounded = TableMechanism.from_matrix(domain, matrix, policy=policy, late=lambda: True)
    assert sf.audit(rounded, policy).holds


def test_rules_of_a_secret_become_rows_without_an_exponential_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """36,000 rules of 200 values took 12 s, because e^-ε was computed for every coefficient."""
    domain = sf.Domain.product(S=R(3), U=R(4))
    policies = [
        sf.Secret(domain, "S", 1, sf.AtLeast([["1/5", "1/6", "1/7", "1/8"]] * 3)),
        sf.Prior(R(12), [f"{x}/78" for x in range(1, 13)], 1, "upper"),
        sf.Prior(R(12), [f"{x}/78" for x in range(1, 13)], 1),
    ]
    original, calls = Epsilon.exp, 0

    def counted(self: Epsilon) -> float:
        nonlocal calls
        calls += 1
        return original(self)

    for policy in policies:
        expected = set()
        for rule in policy.inequalities():
            row = np.zeros(12)
            for x, coefficient in rule.right.items():
                row[x] += float(coefficient)
            for x, coefficient in rule.left.items():
                row[x] -= float(coefficient) * float((-rule.epsilon).exp())
            expected.add(tuple(np.round(row / np.abs(row).max(), 12)))
        calls = 0
        with monkeypatch.context() as patched:
            patched.setattr(Epsilon, "exp", counted)
            rows = slices._rows(policy, np.arange(12), 12)
        assert {tuple(row) for row in np.round(rows, 12)} == expected
        assert calls == 1


def test_a_product_of_responses_has_the_risk_of_its_parts() -> None:
    own, other = set_response(4, 1, 1.5), set_response(6, 2, 0.7)
    assert risk_of(own, other) == pytest.approx(risk_of(np.kron(own, other).astype(np.float64)), rel=1e-12)
    assert risk_of(own, np.ones((6, 1))) == np.inf
