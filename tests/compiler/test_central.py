"""Plans and designs for a central level of shuffled reports."""

from __future__ import annotations

import pytest

import sfumato as sf
from sfumato._core import Epsilon
from sfumato.compiler import Plan
from sfumato.errors import InvalidInput, NoMechanism

POLICY = sf.Uniform(sf.Domain.range(4), 5)


def test_a_plan_states_central_levels() -> None:
    compared = sf.plan(POLICY, 10_000, mechanism="rr", delta="1e-6")
    row = compared["rr"]
    wanted = sf.amplify(row.mechanism, POLICY, 10_000, "1e-6").epsilon
    assert row.central == wanted.upper_float()
    assert "central ε" in str(compared)
    assert compared.to_pandas()["central"].tolist() == [row.central]
    assert Plan.from_dict(compared.to_dict()) == compared
    assert sf.plan(POLICY, 10_000, mechanism="rr")["rr"].central is None


@pytest.mark.slow
def test_each_mechanism_is_compared_at_the_level_that_meets_the_target() -> None:
    compared = sf.plan(POLICY, 10_000, central="0.3", delta="1e-6")
    levels = {getattr(row.mechanism, "epsilon", None) for row in compared}
    assert len(levels) > 1
    assert all(level is not None and level < POLICY.epsilon for level in levels)
    for row in compared:
        assert row.central is not None
        assert 0.29 < row.central <= 0.3
    assert compared.best.risk == min(row.risk for row in compared)
    assert sf.design(POLICY, 10_000, mechanism="rr", central="0.3", delta="1e-6") == compared["rr"].mechanism


def test_a_loose_target_keeps_the_level_of_the_policy() -> None:
    best = sf.design(POLICY, 10_000, mechanism="rr", central=4, delta="1e-6")
    assert getattr(best, "epsilon", None) == Epsilon(5)


def test_one_sided_policies_are_scaled() -> None:
    policy = sf.HighLow(sf.Domain.range(4), [0, 1], 4)
    best = sf.design(policy, 10_000, mechanism="rr", central=1, delta="1e-6")
    assert sf.amplify(best, policy, 10_000, "1e-6").epsilon <= Epsilon(1)


def test_invalid_targets() -> None:
    with pytest.raises(InvalidInput, match="delta must be passed together with central"):
        sf.design(POLICY, 100, central=1)
    with pytest.raises(InvalidInput, match="n must be passed together with central"):
        sf.design(POLICY, central=1, delta="1e-6")
    with pytest.raises(InvalidInput, match="delta must be passed together with central"):
        sf.design(POLICY, 100, delta="1e-6")
    with pytest.raises(InvalidInput, match="be left out with lifetime"):
        sf.design(POLICY, 100, lifetime=POLICY, central=1, delta="1e-6")
    with pytest.raises(InvalidInput, match="have one level epsilon"):
        sf.design(sf.PerValue(POLICY.domain, [1, 2, 3, 4]), 100, central="0.01", delta="1e-6")
    with pytest.raises(NoMechanism, match="central level of at most"):
        sf.design(POLICY, 2, mechanism="rr", central="0.0001", delta=0)
