"""Memoized mechanisms: both levels by exact enumeration, several waves, changes, and documents."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Epsilon
from sfumato.errors import InvalidInput, NoMechanism, PolicyViolated, UnknownSpec
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import BitDraws
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.parts.high_low import HighLowSubset
from sfumato.mechanisms.systems.buckets import LocalHashing
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.policy import on_pairs
from sfumato.testing import MechanismContract, check_law
from support import ROOT

R = sf.Domain.range
ILLNESSES = sf.Domain(["none", "flu", "hiv", "cancer"])


class TestContract(MechanismContract):
    cases = 16
    sizes = range(2, 6)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        kinds: list[Any] = [RandomizedResponse, HadamardResponse]
        single = kinds[len(domain) % 2](domain, epsilon)
        lifetime = sf.Uniform(domain, min(epsilon + epsilon, Epsilon(30)))
        return MemoizedMechanism.for_policies(single, sf.Uniform(domain, epsilon), lifetime)


def pairs(kind: Any, *arguments: Any) -> tuple[sf.Policy, sf.Policy]:
    """Policies of one kind at the levels 1 and 2."""
    first, second = (kind(*arguments, epsilon) for epsilon in ("1", "2"))
    return first, second


#: Every longitudinal mechanism: the policies of one report and of all reports, and the mechanism of one report.
CASES: dict[str, tuple[tuple[sf.Policy, sf.Policy], str | None]] = {
    "randomized response": (pairs(sf.Uniform, R(5)), "rr"),
    "cyclic": (pairs(sf.Uniform, R(7)), "cyclic"),
    "hadamard": (pairs(sf.Uniform, R(5)), "hadamard"),
    "subset": (pairs(sf.Uniform, R(5)), "subset"),
    "high-low rr": (pairs(sf.HighLow, R(5), [1, 2]), "uo-rr"),
    "high-low subset": (pairs(sf.HighLow, R(6), [1, 2, 4, 5]), "high-low-subset"),
    "high-low hadamard": (pairs(sf.HighLow, R(5), [1, 2]), "high-low-hadamard"),
    "high-low cyclic": (pairs(sf.HighLow, R(5), [1, 2, 4]), "high-low-cyclic"),
    "blocks": ((sf.Blocks(R(6), "aabbbc", ["1", "0.5", "0"]), sf.Blocks(R(6), "aabbbc", ["3", "0.5", "1"])), "block"),
    "metric": (pairs(sf.Metric, R(4), "absolute"), "exponential"),
    "blocks at two levels": ((sf.Blocks(R(3), "aab", 1, 2), sf.Blocks(R(3), "aab", 2, 4)), "optimal"),
    "prior": (pairs(sf.Prior, R(3), ["1/2", "1/4", "1/4"]), "prior-rr"),
    "two values": ((sf.Pairwise(R(2), [[0, 1], [2, 0]]), sf.Pairwise(R(2), [[0, 2], [3, 0]])), "binary"),
}
every_case = pytest.mark.parametrize(("policies", "name"), CASES.values(), ids=CASES)


def tighter(policy: sf.Policy) -> sf.Policy:
    """The policy with all levels a little smaller, which a tight mechanism violates."""
    document = policy.to_dict()

    def lowered(value: Any) -> Any:
        if isinstance(value, list):
            return [lowered(each) for each in value]
        return str(Epsilon(value) * Fraction(99, 100)) if value not in (None, "inf") else value

    for key in ("epsilon", "across", "matrix"):
        if key in document["policy"]:
            document["policy"][key] = lowered(document["policy"][key])
    return sf.policy_from_dict(document)


# -- both levels -------------------------------------------------------------------------------------------


@every_case
def test_both_levels_are_audited_on_every_branch(policies: tuple[sf.Policy, sf.Policy], name: str) -> None:
    first, lifetime = policies
    mechanism = sf.design(first, mechanism=name, lifetime=lifetime)
    assert isinstance(mechanism, MemoizedMechanism)
    for made, policy in ((mechanism, first), (mechanism.permanent, lifetime)):
        certificate = sf.audit(made, policy)
        assert certificate.holds, certificate
        assert certificate.coverage == "all"
        check_law(made)
    assert not sf.audit(mechanism.permanent, first).holds
    assert not sf.audit(mechanism, tighter(first)).holds
    assert not sf.audit(mechanism.permanent, tighter(lifetime)).holds


@every_case
def test_the_law_of_one_report_is_the_exact_composition(policies: tuple[sf.Policy, sf.Policy], name: str) -> None:
    mechanism = sf.design(policies[0], mechanism=name, lifetime=policies[1])
    assert isinstance(mechanism, MemoizedMechanism)
    permanent, response = mechanism.permanent, mechanism.instantaneous
    reports = list(mechanism.reports())
    channel = {answer: [response.probability(y, answer) for y in reports] for answer in permanent.reports()}
    assert all(sum(row) == 1 for row in channel.values())
    for x in range(len(mechanism.domain)):
        composed = [
            sum(permanent.probability(z, x) * row[i] for z, row in channel.items()) for i in range(len(reports))
        ]
        assert composed == [mechanism.probability(y, x) for y in reports]


@pytest.mark.slow
@every_case
def test_all_reports_of_three_waves_obey_the_lifetime_policy(policies: tuple[sf.Policy, sf.Policy], name: str) -> None:
    mechanism = sf.design(policies[0], mechanism=name, lifetime=policies[1])
    assert isinstance(mechanism, MemoizedMechanism)
    response, permanent = mechanism.instantaneous, mechanism.permanent
    reports = list(mechanism.reports())[:: max(mechanism.outputs // 6, 1)]
    values = range(len(mechanism.domain))
    for waves in itertools.combinations_with_replacement(reports, 3):
        column = [mechanism.joint_probability(waves, x) for x in values]
        assert policies[1].allows(column), waves
        summed = [
            sum(
                permanent.probability(z, x) * math.prod(response.probability(y, z) for y in waves)
                for z in permanent.reports()
            )
            for x in values
        ]
        assert column == summed


@pytest.mark.parametrize("name", ["rr", "cyclic", "hadamard", "subset"])
def test_one_report_has_exactly_the_law_of_the_one_shot_mechanism(name: str) -> None:
    domain = R(6)
    single = sf.design(sf.Uniform(domain, 1), mechanism=name)
    mechanism = sf.design(sf.Uniform(domain, 1), mechanism=name, lifetime=sf.Uniform(domain, 3))
    assert isinstance(mechanism, MemoizedMechanism)
    assert mechanism.single == single
    assert getattr(mechanism.permanent, "epsilon", None) == Epsilon(3)
    assert mechanism.channel().rows == single.channel().rows
    assert mechanism.risk(1000) == single.risk(1000)
    ratio = Fraction(single.threshold, mechanism.permanent.threshold)  # type: ignore[attr-defined]
    assert (
        mechanism.keep_probability(0) == ratio == mechanism.instantaneous.keep_probability(next(iter(single.reports())))
    )


def test_a_table_loses_about_a_millionth_of_the_error() -> None:
    domain = R(5)
    policy, lifetime = pairs(sf.Metric, domain, "absolute")
    single = sf.design(policy, mechanism="optimal", max_seconds=5)
    mechanism = MemoizedMechanism.for_policies(single, policy, lifetime)
    assert single.risk(1) * 0.9999 <= mechanism.risk(1) <= single.risk(1) * 1.00001
    assert mechanism.keep_probability(0) < Fraction(9, 10)
    assert sf.audit(mechanism, policy).holds
    assert sf.audit(mechanism.permanent, lifetime).holds


@pytest.mark.slow
def test_large_domains_are_audited() -> None:
    domain = R(2_000)
    policies = sf.HighLow(domain, range(1_000), "0.5"), sf.HighLow(domain, range(1_000), 1)
    mechanism = sf.design(policies[0], lifetime=policies[1], max_seconds=0)
    assert isinstance(mechanism, MemoizedMechanism)
    assert mechanism.bits <= 19
    assert sf.audit(mechanism, policies[0]).holds
    assert sf.audit(mechanism.permanent, policies[1]).holds
    assert not sf.audit(mechanism.permanent, policies[0]).holds


# -- edges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "lifetime", "keep"), [("0", "0", 1), ("0", "1", 0), ("1", "1", 1), ("inf", "inf", 1)]
)
def test_the_extreme_levels(first: str, lifetime: str, keep: int) -> None:
    domain = R(3)
    mechanism = sf.design(sf.Uniform(domain, first), mechanism="rr", lifetime=sf.Uniform(domain, lifetime))
    assert isinstance(mechanism, MemoizedMechanism)
    assert mechanism.keep_probability(1) == keep
    check_law(mechanism)
    assert sf.mechanism_from_spec(mechanism.to_json()) == mechanism


def test_the_lifetime_must_allow_what_one_report_reveals() -> None:
    with pytest.raises(InvalidInput, match="lifetime must be implied by the policy of one report"):
        sf.design(sf.Uniform(R(3), 2), lifetime=sf.Uniform(R(3), 1))
    with pytest.raises(InvalidInput, match="lifetime must be implied"):
        sf.design(sf.HighLow(R(3), [0], 1), lifetime=sf.Uniform(R(3), 2))
    with pytest.raises(InvalidInput, match="max_changes must be passed together with lifetime"):
        sf.design(sf.Uniform(R(3), 2), max_changes=1)
    with pytest.raises(InvalidInput, match="max_changes must be an integer"):
        sf.design(sf.Uniform(R(3), 1), lifetime=sf.Uniform(R(3), 1), max_changes=-1)


def test_a_mechanism_without_a_memoized_form_is_rejected() -> None:
    policy = sf.Uniform(R(20), 1)
    with pytest.raises(NoMechanism, match="has no memoized form"):
        MemoizedMechanism.for_policies(UnaryEncoding(R(20), 1), policy, sf.Uniform(R(20), 2))
    with pytest.raises(InvalidInput, match="single must be of the same class as permanent"):
        MemoizedMechanism(UnaryEncoding(R(20), 1), UnaryEncoding(R(20), 1), policy)
    with pytest.raises(InvalidInput, match="sets that are not larger"):
        MemoizedMechanism(SubsetSelection(R(9), 1, 2), SubsetSelection(R(9), 2, 3), sf.Uniform(R(9), 2))
    with pytest.raises(InvalidInput, match="have the class, the values and the sets"):
        MemoizedMechanism(RandomizedResponse(R(9), 1), RandomizedResponse(R(8), 2), sf.Uniform(R(9), 2))
    with pytest.raises(InvalidInput, match="be at least as large as the level of one report"):
        MemoizedMechanism(RandomizedResponse(R(3), 2), RandomizedResponse(R(3), 1), sf.Uniform(R(3), 2))


def test_the_spec_is_checked() -> None:
    domain = R(3)
    mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2), max_changes=4)
    spec = mechanism.spec
    for change, error in (({"mechanism": "no-such-mechanism"}, UnknownSpec), ({"keep": [["1", "2"]]}, InvalidInput)):
        with pytest.raises(error):
            sf.mechanism_from_spec({**spec, "parameters": {**spec["parameters"], **change}})


def test_reports_are_estimated_as_those_of_one_shot() -> None:
    policy = sf.HighLow(ILLNESSES, ["hiv", "cancer"], 1)
    mechanism = sf.design(policy, lifetime=sf.HighLow(ILLNESSES, ["hiv", "cancer"], 2))
    values = np.array(["none"] * 500 + ["flu"] * 300 + ["hiv"] * 200)
    reports = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(3))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    assert isinstance(mechanism, MemoizedMechanism)
    expected = sf.estimate(mechanism.single, sf.aggregate(mechanism.single, reports))
    np.testing.assert_array_equal(estimate.frequencies, expected.frequencies)
    # Fixed seed; five standard errors reject a right law with probability below 1e-6.
    truth = np.array([0.5, 0.3, 0.2, 0.0])
    assert (abs(estimate.frequencies - truth) < 5 * estimate.standard_errors).all()


# -- changes -----------------------------------------------------------------------------------------------


def test_levels_add_with_the_number_of_changes_up_to_the_maximum() -> None:
    domain = R(4)

    def levels(**settings: Any) -> list[str]:
        mechanism = sf.design(sf.Uniform(domain, "0.5"), lifetime=sf.Uniform(domain, 1), **settings)
        assert isinstance(mechanism, MemoizedMechanism)
        return [str(mechanism.lifetime_policy(changes).epsilon) for changes in range(6)]  # type: ignore[attr-defined]

    assert levels() == ["1", "2", "3", "4", "4", "4"]
    assert levels(max_changes=1) == ["1", "2", "2", "2", "2", "2"]
    assert levels(max_changes=0) == ["1"] * 6
    assert levels(refresh_every=3) == ["1", "2", "3", "4", "5", "6"]
    scheduled = sf.design(sf.Uniform(domain, "0.5"), lifetime=sf.Uniform(domain, 1), refresh_every=3)
    assert isinstance(scheduled, MemoizedMechanism)
    with pytest.raises(InvalidInput, match="unlimited schedule"):
        scheduled.lifetime_policy()


def test_levels_under_a_prior_grow_as_little_as_they_can() -> None:
    policy, lifetime = pairs(sf.Prior, R(5), ["1/5"] * 5)
    mechanism = sf.design(policy, mechanism="prior-rr", lifetime=lifetime)
    assert isinstance(mechanism, MemoizedMechanism)
    # n answers at ε: n·ε + (n - 1)·ε.
    levels = [str(mechanism.lifetime_policy(changes).epsilon) for changes in range(5)]  # type: ignore[attr-defined]
    assert levels == ["2", "6", "10", "14", "18"]


def test_two_answers_compose_exactly() -> None:
    """The reports of two waves with a change between them, for all pairs of values at once."""
    domain = R(3)
    mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2))
    assert isinstance(mechanism, MemoizedMechanism)
    policy = mechanism.lifetime_policy(changes=1)
    waves = list(itertools.product(mechanism.reports(), repeat=2))
    likelihoods = {(reports, x): mechanism.joint_probability(reports, x) for reports in waves for x in range(3)}
    for first, second in itertools.product(waves, repeat=2):
        both = [likelihoods[first, one] * likelihoods[second, other] for one in range(3) for other in range(3)]
        assert policy.allows([max(both), min(both), min(both)])


@pytest.mark.slow
@every_case
def test_reports_with_changes_at_the_same_times_obey_the_sums_of_levels(
    policies: tuple[sf.Policy, sf.Policy], name: str
) -> None:
    """Two waves before a change and two after it, for all pairs of people; levels add, one per permanent answer."""
    mechanism = sf.design(policies[0], mechanism=name, lifetime=policies[1])
    assert isinstance(mechanism, MemoizedMechanism)
    pairwise = on_pairs(policies[1])
    if pairwise is None:
        pytest.skip("a prior has no levels of pairs")
    values, matrix = range(len(mechanism.domain)), pairwise.epsilon_matrix()
    reports = list(mechanism.reports())[:: max(mechanism.outputs // 3, 1)]
    waves = list(itertools.combinations_with_replacement(reports, 2))
    joint = {(each, x): mechanism.joint_probability(each, x) for each in waves for x in values}
    histories = list(itertools.permutations(values, 2))
    coin = R(2)
    for (x, after), (other, other_after) in itertools.product(histories[::2], histories[1::3]):
        pairs_of_values = [(a, b) for a, b in ((x, other), (after, other_after)) if a != b]
        limit = sum((matrix.epsilon(int(matrix.codes[pair])) for pair in pairs_of_values), Epsilon(0))
        policy = sf.Pairwise(coin, [[0, limit], ["inf", 0]])
        for before, later in itertools.product(waves, repeat=2):
            column = [joint[before, x] * joint[later, after], joint[before, other] * joint[later, other_after]]
            assert policy.allows(column), (before, later)


def reference_values(mechanism: MemoizedMechanism, true: list[int]) -> list[int]:
    """The values that one device reports about, one wave at a time."""
    known: list[int] = []
    result: list[int] = []
    for wave, value in enumerate(true):
        if mechanism.refresh_every is not None:
            due = wave % mechanism.refresh_every == 0
            if due and (mechanism.most_answers is None or len(known) < mechanism.most_answers):
                known.append(value)
            result.append(known[-1])
            continue
        assert mechanism.most_answers is not None
        if value not in known and len(known) < mechanism.most_answers:
            known.append(value)
        result.append(value if value in known else result[-1])
    return result


@pytest.mark.parametrize("settings", [{}, {"max_changes": 0}, {"max_changes": 2}, {"refresh_every": 3},
                                      {"refresh_every": 2, "max_changes": 1}])  # fmt: skip
def test_the_effective_values_are_those_of_a_device(settings: dict[str, Any]) -> None:
    domain = R(5)
    mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2), **settings)
    assert isinstance(mechanism, MemoizedMechanism)
    true = np.random.default_rng(5).integers(5, size=(200, 11))
    expected = [reference_values(mechanism, row) for row in true.tolist()]
    assert mechanism.effective_values(true).tolist() == expected
    assert mechanism.effective_values(np.zeros((0, 4), int)).shape == (0, 4)


@pytest.mark.parametrize("settings", [{"max_changes": 2}, {"refresh_every": 4}, {}])
def test_the_stale_share_is_the_share_of_simulated_people(settings: dict[str, Any]) -> None:
    """20,000 people who never return to a value; six standard errors, false rejections below 1e-6 for all waves."""
    people, waves, rate = 20_000, 12, 0.2
    generator = np.random.default_rng(11)
    domain = R(waves)
    mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2), **settings)
    assert isinstance(mechanism, MemoizedMechanism)
    changes = generator.random((people, waves)) < rate
    changes[:, 0] = False
    true = changes.cumsum(axis=1)
    share = (mechanism.effective_values(true) != true).mean(axis=0)
    expected = mechanism.stale_share(waves, rate)
    error = np.sqrt(expected * (1 - expected) / people)
    assert (abs(share - expected) <= 6 * error).all()
    assert expected.shape == (waves,)
    if settings:
        assert (abs(share - 1.05 * expected) > 6 * error).any()


def test_buckets_limit_the_level_of_all_changes() -> None:
    domain = R(20)
    single = LocalHashing(domain, 1, buckets=3)
    policies = sf.Uniform(domain, 1), sf.Uniform(domain, 2)
    mechanism = MemoizedMechanism.for_policies(single, *policies)
    assert mechanism.lifetime_policy() == mechanism.lifetime_policy(1000) == sf.Uniform(domain, 6)
    assert sf.audit(mechanism, policies[0]).holds
    assert sf.audit(mechanism.permanent, policies[1]).holds
    true = np.arange(20).reshape(2, 10)
    assert mechanism.effective_values(true).tolist() == true.tolist()
    assert (mechanism.stale_share(10, 0.5) == 0).all()
    limited = MemoizedMechanism.for_policies(single, *policies, max_changes=1)
    assert limited.lifetime_policy() == sf.Uniform(domain, 4)
    with pytest.raises(InvalidInput, match="each person has other buckets"):
        limited.effective_values(true)
    with pytest.raises(InvalidInput, match="buckets must be a prime number"):
        LocalHashing(domain, 1, buckets=4)
    with pytest.raises(InvalidInput, match="at least two values"):
        LocalHashing(R(1), 1)


def test_buckets_are_designed_by_name_and_not_compared() -> None:
    domain = R(20)
    policies = sf.Uniform(domain, 1), sf.Uniform(domain, 2)
    mechanism = sf.design(policies[0], lifetime=policies[1], mechanism="local-hashing")
    assert isinstance(mechanism, MemoizedMechanism)
    assert isinstance(mechanism.single, LocalHashing)
    assert mechanism.lifetime_policy(7) == sf.Uniform(domain, 4)
    assert "local-hashing" not in {row.name for row in sf.plan(policies[0], 100).rows}


@pytest.mark.parametrize("values", [[0, 1], [["a"]], [[0.5]], [[-1]], [[5]]])
def test_values_that_are_no_indices_are_rejected(values: Any) -> None:
    mechanism = sf.design(sf.Uniform(R(5), 1), lifetime=sf.Uniform(R(5), 2), max_changes=1)
    assert isinstance(mechanism, MemoizedMechanism)
    with pytest.raises(InvalidInput, match="have shape"):
        mechanism.effective_values(values)
    with pytest.raises(InvalidInput, match="lie between 0 and 1"):
        mechanism.stale_share(3, cast("float", "x"))


def hashed_law(mechanism: MemoizedMechanism, reports: tuple[int, ...], values: tuple[int, ...]) -> Fraction:
    """The joint law of reports about a history: one hash function, and one independent answer per bucket."""
    single, permanent = mechanism.single, mechanism.permanent
    assert isinstance(single, LocalHashing)
    total = Fraction(0)
    for function in range(single.hashes):
        likelihood = Fraction(1, single.hashes)
        for bucket in {single.bucket(function, x) for x in values}:
            waves = [t for t, x in enumerate(values) if single.bucket(function, x) == bucket]
            answers = range(function * single.buckets, (function + 1) * single.buckets)
            likelihood *= sum(
                permanent.probability(z, values[waves[0]])
                * single.hashes
                * math.prod(mechanism.instantaneous.probability(reports[t], z) for t in waves)
                for z in answers
            )
        total += likelihood
    return total


def test_the_level_of_buckets_compares_people_whose_buckets_change_at_the_same_times() -> None:
    domain = R(4)
    single, policies = LocalHashing(domain, 1, buckets=2), (sf.Uniform(domain, 1), sf.Uniform(domain, 2))
    mechanism = MemoizedMechanism.for_policies(single, *policies)
    level = float(mechanism.lifetime_policy().epsilon)  # type: ignore[attr-defined]
    assert level == 4
    histories = [(x, x, y, y) for x, y in itertools.permutations(range(4), 2)]
    laws = [hashed_law(mechanism, (2, 2, 3, 3), values) for values in histories]
    # Under the hash function of these reports, values 0 and 1 have different buckets, and 0 and 2 the same one.
    ratio = laws[histories.index((0, 0, 1, 1))] / laws[histories.index((0, 0, 2, 2))]
    assert math.log(ratio) == pytest.approx(4.9133, abs=1e-4)
    assert "up to e^4.91" in (ROOT / "docs" / "proofs" / "local-hashing.md").read_text(encoding="utf-8")
    # Values that differ from each other in the same way share their buckets' times under every hash function.
    for reports in itertools.product((2, 3), repeat=4):
        alike = [hashed_law(mechanism, reports, (x, x, x ^ 1, x ^ 1)) for x in range(4)]
        assert mechanism.lifetime_policy().allows(alike)


class TestLocalHashing(MechanismContract):
    cases = 16
    sizes = range(2, 6)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return LocalHashing(domain, epsilon, buckets=2 + len(domain) % 2)


def test_a_permanent_answer_and_its_reports_are_drawn_separately() -> None:
    domain = R(4)
    mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 4))
    assert isinstance(mechanism, MemoizedMechanism)
    generator = np.random.default_rng(2)

    def bits(width: int) -> int:
        return int.from_bytes(generator.bytes(8), "little") & (1 << width) - 1

    draws = BitDraws(bits)
    answer = mechanism.draw_permanent(2, draws)
    reports = [mechanism.instantaneous.sample(answer, draws) for _ in range(4000)]
    share = float(mechanism.instantaneous.probability(answer, answer))
    # Fixed seed; five standard errors.
    assert abs(reports.count(answer) / 4000 - share) < 5 * math.sqrt(share * (1 - share) / 4000)


def test_parts_have_their_own_probability_of_the_permanent_answer() -> None:
    policies = sf.Blocks(R(5), "aabbb", ["1", "0.5"]), sf.Blocks(R(5), "aabbb", ["2", "3"])
    mechanism = sf.design(policies[0], lifetime=policies[1])
    assert isinstance(mechanism, MemoizedMechanism)
    assert isinstance(mechanism.single, BlockMechanism)
    assert mechanism.keep_probability(0) == mechanism.keep_probability(1) != mechanism.keep_probability(4)


def test_a_high_low_mechanism_over_sensitive_values_only() -> None:
    single = HighLowSubset(R(4), range(4), 1)
    mechanism = MemoizedMechanism.for_policies(single, sf.Uniform(R(4), 1), sf.Uniform(R(4), 2))
    assert sf.audit(mechanism.permanent, sf.Uniform(R(4), 2)).holds


def test_an_audit_of_one_report_also_checks_the_lifetime_policy() -> None:
    domain = sf.Domain.range(4)
    policy, lifetime = sf.Uniform(domain, 1), sf.Uniform(domain, 2)
    mechanism = sf.design(policy, lifetime=lifetime)
    assert isinstance(mechanism, MemoizedMechanism)
    certificate = sf.audit(mechanism, policy)
    assert certificate.holds
    assert "about one report" in certificate.evidence
    assert sf.verify(certificate) == certificate
    shorter = dataclasses.replace(certificate, evidence=certificate.evidence.split("; the statement is about")[0])
    with pytest.raises(InvalidInput, match="its statement must be that of the repeated audit"):
        sf.verify(shorter)
    broken = MemoizedMechanism(mechanism.single, mechanism.permanent, sf.Uniform(domain, "1.9"))
    certificate = sf.audit(broken, policy)
    assert not certificate.holds
    assert "all reports about one unchanged value" in certificate.summary()
    with pytest.raises(PolicyViolated, match="unchanged value"):
        certificate.raise_if_violated()


@pytest.mark.parametrize("name", ["rr", "subset"])
def test_reports_of_several_devices_may_be_listed_or_stacked(name: str) -> None:
    domain = sf.Domain.range(5)
    mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2), mechanism=name)
    assert isinstance(mechanism, MemoizedMechanism)
    reports = [sf.Ledger().answer_wave("daily", mechanism, x, 0) for x in range(5)]
    joined = sf.aggregate(mechanism, np.concatenate(reports))
    assert sf.aggregate(mechanism, reports) == sf.aggregate(mechanism, np.stack(reports)) == joined
    with pytest.raises(InvalidInput, match="must hold"):
        sf.aggregate(mechanism, np.stack([np.concatenate(reports)] * 2))


def test_one_part_of_all_values_takes_the_least_level_of_a_lifetime_on_pairs() -> None:
    domain = R(4)
    for lifetime in (sf.Uniform(domain, 3), sf.Blocks(domain, "aabb", 3), sf.Blocks(domain, "aaaa", 3)):
        single = sf.mechanisms.UtilityOptimizedRR(domain, domain, 1)
        made = MemoizedMechanism.for_policies(single, sf.Uniform(domain, 1), lifetime)
        assert made.permanent == sf.mechanisms.UtilityOptimizedRR(domain, domain, 3)
