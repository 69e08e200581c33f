"""The choice of ``max_bits="short"``: the best short report, unless no short one is within 5% of the best."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato.compiler import ReportLength
from sfumato.errors import InvalidInput, NoMechanism
from sfumato.mechanisms import (
    Candidate,
    CandidateRequest,
    RandomizedResponse,
    registry as _registry,
)
from sfumato.mechanisms.parts import BlockMechanism

SIZES = [16, 1_000, 43_750]


def policies(size: int) -> list[sf.Policy]:
    domain = sf.Domain.range(size)
    return [
        sf.Uniform(domain, 1),
        sf.HighLow(domain, range(size // 2), 2),
        sf.Blocks(domain, np.arange(size) // max(4, size // 35), "0.5"),
    ]


CASES = [
    pytest.param(policy, id=f"{policy.kind}-{size}", marks=[pytest.mark.slow] if size > 1000 else [])
    for size in SIZES
    for policy in policies(size)
]


@functools.cache
def default_plan(policy: sf.Policy) -> sf.Plan:
    """The plan with the default of ``max_bits``, which several tests read."""
    return sf.plan(policy, n=1000)


def most_short(size: int) -> int:
    """⌈log2 k⌉ + 8, by another formula than the library's."""
    return math.ceil(math.log2(size)) + 8


@pytest.mark.parametrize("policy", CASES)
def test_the_default_recommends_the_best_short_report_unless_it_is_five_percent_off(policy: sf.Policy) -> None:
    plan = default_plan(policy)
    assert plan.max_bits == "short"
    short = [row for row in plan.rows if row.bits <= most_short(len(policy.domain))]
    assert short  # randomized response always is
    least, least_short = (min(row.risk for row in rows) for rows in (plan.rows, short))
    assert plan.rows[0].risk == least
    assert plan.best.risk == (least_short if least_short <= 1.05 * least else least)
    assert plan.best == sf.plan(policy, n=1000, max_bits="short").best
    assert sf.design(policy) == sf.design(policy, max_bits="short") == plan.best.mechanism


@pytest.mark.parametrize("policy", CASES)
def test_no_limit_and_integers_mean_what_they_say(policy: sf.Policy) -> None:
    unlimited = sf.plan(policy, n=1000, max_bits=None)
    assert unlimited.best is unlimited.rows[0]
    assert unlimited.best.risk == pytest.approx(min(row.risk for row in default_plan(policy).rows), rel=1e-9)
    for most in (unlimited.best.bits, unlimited.best.bits - 1, (len(policy.domain) - 1).bit_length()):
        plan = sf.plan(policy, n=1000, max_bits=most)
        assert plan.best == next(row for row in plan.rows if row.bits <= most)
        assert f"within {most:,} bits" in plan.reason or "optimal, expected" in plan.reason
    with pytest.raises(NoMechanism, match="at most 2 bits"):
        sf.design(policy, max_bits=2)


@pytest.mark.parametrize("policy", CASES)
def test_the_reason_states_the_cost_of_the_alternative(policy: sf.Policy) -> None:
    plan = default_plan(policy)
    best, first = plan.best, plan.rows[0]
    if best is not first:
        assert f"; {first.name}: " in plan.reason
        assert f"% less error, {first.bits:,} bits per report" in plan.reason
    else:
        assert "within" not in plan.reason


def test_a_map_of_43750_cells_has_short_reports() -> None:
    policy = sf.Uniform(sf.Domain.range(43_750), 1)
    plan = sf.plan(policy, n=10**9)
    assert plan.best.bits <= 24
    gain = 100 * (1 - plan["subset"].risk / plan.best.risk)
    assert 0 < gain < 1
    assert f"{plan.best.bits} bits per report; subset: {gain:.2g}% less error, 43,750 bits per report" in plan.reason
    assert "less error" not in sf.plan(policy, n=10**9, max_bits=None).reason


def test_few_values_include_subset_selection() -> None:
    """Subset selection over 8 values sends 8 bits, and 11 are short."""
    plan = sf.plan(sf.Uniform(sf.Domain.range(8), 1), n=100)
    assert plan["subset"].bits == 8
    assert plan.best is plan.rows[0]
    assert plan.best.ratio == pytest.approx(1)


# -- the rule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "bits"), [(2, 9), (3, 10), (16, 12), (17, 13), (1000, 18), (43_750, 24)])
def test_short_is_eight_bits_more_than_a_value_needs(values: int, bits: int) -> None:
    length = ReportLength("short", values)
    assert (length.short, length.preferred, length.limit) == (bits, bits, None)
    assert length.recommended([1.0, 1.05], [bits + 1, bits]) == 1
    assert length.recommended([1.0, 1.05], [bits + 2, bits + 1]) == 0


@pytest.mark.parametrize(
    ("values", "bits", "expected"),
    [
        ([1.0, 1.049], [1000, 10], 1),
        ([1.0, 1.051], [1000, 10], 0),
        ([1.0, 1.0, 1.0], [1000, 10, 9], 1),  # the order of rows decides ties
        ([1.0, 1.02, 1.03], [1000, 500, 10], 2),
        ([1.0], [1000], 0),
        ([0.0, 0.0], [1000, 10], 1),
        ([0.0, 0.1], [1000, 10], 0),
        ([2.0, 1.96], [1000, 10], 1),  # a utility, where more is better
        ([2.0, 1.8], [1000, 10], 0),
        ([-1.0, -0.99], [1000, 10], 1),  # an expected loss
        ([-1.0, 0.5], [1000, 10], 0),
        ([math.inf, math.inf], [1000, 10], 1),
        ([1.0, math.inf], [1000, 10], 0),
        ([1.0, None], [1000, 10], 0),
        ([None, None], [1000, 10], 1),
        ([], [], None),
    ],
)
def test_the_rule_on_small_tables(values: list[float | None], bits: list[int], expected: int | None) -> None:
    assert ReportLength("short", 1000).recommended(values, bits) == expected


@given(
    rows=st.lists(st.tuples(st.floats(0.1, 10), st.integers(1, 40)), min_size=1, max_size=8),
    size=st.integers(2, 2000),
    limit=st.integers(1, 40),
)
def test_the_rule_on_any_table(rows: list[tuple[float, int]], size: int, limit: int) -> None:
    risks, bits = zip(*sorted(rows), strict=True)
    assert ReportLength(None, size).recommended(risks, bits) == 0
    at = ReportLength(limit, size).recommended(risks, bits)
    fitting = [index for index, length in enumerate(bits) if length <= limit]
    assert at == (fitting[0] if fitting else None)
    at = ReportLength("short", size).recommended(risks, bits)
    assert at is not None
    assert risks[at] <= 1.05 * risks[0]
    short = [index for index, length in enumerate(bits) if length <= most_short(size)]
    assert at == short[0] if bits[at] <= most_short(size) else at == 0
    if at == 0 and bits[0] > most_short(size):
        assert all(risks[index] > 1.05 * risks[0] for index in short)


# -- other ways to a plan -----------------------------------------------------------------------------------------


def test_blocks_choose_their_parts_within_the_preferred_length() -> None:
    policy = sf.Blocks(sf.Domain.range(1200), [x // 50 for x in range(1200)], 1)
    plan = sf.plan(policy, n=1000)
    assert plan["block"].bits <= 19
    assert plan["block"].mechanism == BlockMechanism.for_policy(policy, max_bits=19)
    assert plan["block-subset"].bits == 55
    assert sf.design(policy, mechanism="block") == plan["block"].mechanism
    unlimited = sf.plan(policy, n=1000, max_bits=None)
    assert unlimited["block"].mechanism == BlockMechanism.for_policy(policy)
    assert unlimited["block"].risk == pytest.approx(plan["block-subset"].risk)


def test_cyclic_designs_are_compared_where_bitmaps_are_too_long() -> None:
    few, some = sf.Uniform(sf.Domain.range(10), 1), sf.HighLow(sf.Domain.range(200), range(12), 1)
    assert "cyclic" not in {row.name for row in sf.plan(few, n=10).rows}  # bitmaps of 10 bits, and 12 are short
    limited = sf.plan(few, n=10, max_bits=7)
    assert limited.best.name == "cyclic"
    assert limited.best.bits <= 7
    plan = sf.plan(some, n=10)
    assert (plan.best.name, plan["high-low-subset"].bits) == ("high-low-cyclic", 20)  # 16 bits are short


def test_a_mechanism_requested_by_name_may_be_long() -> None:
    policy = sf.Uniform(sf.Domain.range(1000), 1)
    assert sf.design(policy, mechanism="subset").bits == 1000
    assert sf.plan(policy, 10, mechanism="subset").best.bits == 1000
    with pytest.raises(NoMechanism, match="at most 999 bits"):
        sf.design(policy, mechanism="subset", max_bits=999)


def test_the_result_of_a_search_obeys_the_same_rule() -> None:
    policy = sf.Metric(sf.Domain.range(5), "absolute", 1)
    plan = sf.plan(policy, n=100)
    assert plan.best.name == "optimal"
    assert plan.best.bits <= 11
    assert "optimal" not in {row.name for row in sf.plan(policy, n=100, max_bits=2).rows}


class Long(RandomizedResponse):
    """Randomized response that states longer reports and another risk."""

    name = "long"
    factor = 1.0

    @property
    def bits(self) -> int:
        return 4000

    def risk(self, n: int, p: Any = None) -> float:
        return self.factor * super().risk(n, p)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after the test what it registered."""
    for name in ("_FAMILIES", "_BY_CLASS", "_BY_NAME"):
        monkeypatch.setattr(_registry, name, getattr(_registry, name).copy())


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(("factor", "best"), [(1.0, "rr"), (0.96, "rr"), (0.95, "long")])
def test_registered_mechanisms_obey_the_same_rule(factor: float, best: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A family sees no limit, so that it may offer long reports; it also sees the preferred length."""
    seen: list[tuple[int | None, ...]] = []

    def offer(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
        seen.append((request.max_bits, request.short_bits, request.preferred_bits))
        yield "long", Candidate(partial(Long, request.policy.domain, request.epsilon), "k", classical=True)

    monkeypatch.setattr(Long, "factor", factor)
    sf.register(Long, candidates=offer)
    policy = sf.Uniform(sf.Domain.range(3), 1)
    plan = sf.plan(policy, n=1000)
    assert plan.best.name == best
    cost = {
        1.0: "2 bits per report",
        0.96: "2 bits per report; long: 4% less error, 4,000 bits per report",
        0.95: "4,000 bits per report; no mechanism within 10 bits is within 5% of this error "
        "(rr: 5.3% more error, 2 bits per report)",
    }
    assert plan.reason.endswith(cost[factor])
    assert sf.plan(policy, n=1000, max_bits=None).best.name == ("rr" if factor == 1 else "long")
    assert sf.plan(policy, n=1000, max_bits=9).best.name == "rr"
    assert seen == [(None, 10, 10), (None, None, None), (9, None, 9)]


@pytest.mark.parametrize("size", [8, 300])
def test_another_utility_follows_the_rule(size: int) -> None:
    plan = sf.plan(sf.Uniform(sf.Domain.range(size), 1), n=1, utility="worst-estimation", max_seconds=0)
    values = [row.value for row in plan.rows if row.value is not None]
    short = [row for row in plan.rows if row.bits <= most_short(size)]
    assert values == sorted(values)
    assert plan.best == short[0]
    assert short[0].value is not None
    assert short[0].value <= 1.05 * values[0]
    assert plan.reason.startswith(f"{plan.best.name}: worst-estimation {short[0].value:.6g}")
    cost = f"; {plan.rows[0].name}: worst-estimation {values[0]:.6g}, {plan.rows[0].bits} bits per report"
    assert (cost in plan.reason) == (plan.best is not plan.rows[0])


def test_a_target_is_met_by_the_recommended_mechanism() -> None:
    plan = sf.plan(sf.Uniform(sf.Domain.range(1000), 1), target=0.05)
    assert plan.best.tv == pytest.approx(0.05, rel=1e-6)


def test_plans_store_the_word_and_read_old_documents() -> None:
    plan = sf.plan(sf.Uniform(sf.Domain.range(40), 1), n=1000)
    document = json.loads(json.dumps(plan.to_dict()))
    assert document["max_bits"] == "short"
    assert sf.Plan.from_dict(document) == plan
    assert sf.Plan.from_dict(document).best == plan.best
    for old in (None, 9):
        assert sf.Plan.from_dict(document | {"max_bits": old}).max_bits == old
    for wrong in ("long", "9", True, 1.5, -1, ["short"]):
        with pytest.raises(InvalidInput, match="max_bits"):
            sf.Plan.from_dict(document | {"max_bits": wrong})


@pytest.mark.parametrize("wrong", ["Short", "none", "16", "", 0, -1, 1.5, True, math.nan, [8], 2**32 + 1])
def test_other_values_are_rejected_by_name(wrong: Any) -> None:
    policy = sf.Uniform(sf.Domain.range(4), 1)
    for verb, call in (("plan", partial(sf.plan, policy, 10)), ("design", partial(sf.design, policy))):
        with pytest.raises(InvalidInput, match=rf"^{verb}: max_bits must be .*a whole number from 1 to 2\^32; got "):
            call(max_bits=wrong)


def test_whole_floats_are_accepted() -> None:
    limit: Any = np.float64(16)
    assert sf.plan(sf.Uniform(sf.Domain.range(4), 1), 10, max_bits=limit).max_bits == 16
