"""A search ends when its time is over: with a clock that counts its readings, work after the deadline is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from clocks import Clock, deadline_after

import sfumato as sf
from sfumato.compiler import designing as _design, planning as _plan
from sfumato.compiler.solvers import interior, mixture, optimization as _optimal, worst_case
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.optimization import optimal_until
from sfumato.compiler.solvers.programme import Programme
from sfumato.errors import CannotDecide
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.policy.base import Policy

R = sf.Domain.range


def random_pairwise(size: int, seed: int) -> Policy:
    matrix = np.round(np.random.default_rng(seed).uniform(0.2, 3, (size, size)), 2)
    np.fill_diagonal(matrix, 0)
    return sf.Pairwise(R(size), matrix.astype(str).tolist())


def confidence_set() -> Policy:
    counts = np.random.default_rng(1).integers(5, 50, (3, 4))
    return sf.Secret(sf.Domain.product(S=["x", "y", "z"], U=[0, 1, 2, 3]), "S", 1, sf.ChiSquare(counts.tolist()))


POLICIES: dict[str, Callable[[], Policy]] = {
    "pairwise": lambda: random_pairwise(14, 1),
    "metric": lambda: sf.Metric(R(13), "absolute", "0.3"),
    "prior": lambda: sf.Prior(R(12), [f"{x}/78" for x in range(1, 13)], 1),
    "confidence set": confidence_set,
}
GOALS: dict[str, Callable[[int], Any]] = {
    "estimation": lambda _: "estimation",
    "worst-estimation": lambda _: "worst-estimation",
    "mutual-information": lambda _: "mutual-information",
    "mmse": lambda size: sf.SquaredError(np.arange(size, dtype=np.float64)),
    "loss": lambda size: sf.ExpectedLoss(1 - np.eye(size)),
}


@pytest.mark.parametrize("ticks", [1, 40, 600])
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

    timed(Programme, "farthest")  # a linear programme
    timed(interior, "_solver")  # a Newton step
    timed(mixture, "needed")  # a linear programme over all rays
    timed(worst_case, "_cones")  # a cone programme
    try:
        utility = GOALS[goal](len(policy.domain))
        optimum = optimal_until(Deadline(ticks, clock), policy, utility, None, None, None)
    except OutOfTime:
        assert ticks < 600
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
    with pytest.raises(CannotDecide, match="max_seconds"):
        deadline.require()


def test_when_it_is_late_a_matrix_is_rounded_in_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = sf.Metric(R(40), "absolute", "0.3")
    levels = np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0)))
    matrix = np.exp(-0.15 * levels)
    matrix /= matrix.sum(axis=1, keepdims=True)
    tries: list[int] = []
    original = Policy.allows_all

    def counted(self: Policy, columns: Any) -> bool:
        tries.append(len(columns))
        return original(self, columns)

    monkeypatch.setattr(Policy, "allows_all", counted)
    hurried = TableMechanism.from_matrix(R(40), matrix, policy=policy, late=lambda: True)
    assert len(tries) == 1
    assert sf.audit(hurried, policy).holds
    assert np.abs(hurried.matrix() - matrix).max() < 1e-6
    unhurried = TableMechanism.from_matrix(R(40), matrix, policy=policy)
    assert np.abs(unhurried.matrix() - matrix).max() < 1e-12


def test_a_matrix_that_takes_too_long_is_not_written_down() -> None:
    """Unary encoding of 14 values has 16,384 outputs: its matrix took 40 s, however short the search was to be."""
    clock = Clock()
    assert _design._matrix_until(Deadline(20, clock), UnaryEncoding(R(14), 1)) is None
    assert clock.now < 30
    small = UnaryEncoding(R(4), 1)
    assert np.array_equal(np.array(_design._matrix_until(NEVER, small)), small.matrix())


def test_what_does_not_fit_in_time_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock can be waited for here: the time of the plan is over when its search begins."""
    monkeypatch.setattr(_plan, "Deadline", deadline_after(1))
    policy = sf.Metric(R(200), "absolute", "0.1")
    plan = sf.plan(policy, n=1000, max_seconds=1)
    assert "optimal" not in {row.name for row in plan.rows}
    assert plan.skipped is not None
    assert "exponential, which takes some" in plan.skipped
    assert "its search did not fit in 1 s" in plan.skipped
    assert f"NOT COMPARED: {plan.skipped}" in plan.why()


def test_a_cone_programme_whose_first_step_does_not_fit_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its solver looks at the clock between steps, and at 40 values one takes longer than a short search may."""
    monkeypatch.setattr(worst_case, "_cones", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(OutOfTime):
        worst_case.least_worst_error(np.ones((480, 40)), Deadline(5))


def test_a_search_that_does_not_fit_is_refused_by_optimal_and_replaced_by_design(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = random_pairwise(60, 2)
    for module in (_optimal, _design):
        monkeypatch.setattr(module, "Deadline", deadline_after(1))
    with pytest.raises(OutOfTime, match="max_seconds"):
        sf.optimal(policy, "worst-estimation")
    with pytest.raises(OutOfTime, match="max_seconds"):
        sf.design(policy, utility="worst-estimation", mechanism="optimal")
    made = sf.design(policy, utility="worst-estimation")
    assert not isinstance(made, TableMechanism)
    assert sf.audit(made, policy).holds
