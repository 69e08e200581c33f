"""The audit reads the sampler that runs: broken ones are caught, each in a test of its own; and what it refuses."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.auditing import audits as _audit
from sfumato.auditing.interpreter import TooManyBranches, sampler_law
from sfumato.errors import InvalidInput, LimitExceeded, PolicyViolated, Undecided
from sfumato.mechanisms.base import Finished, Mechanism, mechanism_from_spec
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.parts.high_low import HighLowSubset
from sfumato.mechanisms.registry import format_for
from sfumato.mechanisms.reports.base import ReportFormat
from sfumato.mechanisms.reports.index import IndexFormat
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection, SubsetState
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

DOMAIN = sf.Domain(["none", "flu", "hiv", "cancer", "other"])


# -- deliberately broken samplers --------------------------------------------------------------------------


class LastBitLeftAlone(UnaryEncoding):
    """As in a real library for twenty months: the loop stops one short, and the last bit is the true one."""

    def bit(self, x: int, position: int, draws: Draws) -> bool:
        if position == len(self.domain) - 1:
            return position == x
        return super().bit(x, position, draws)


def test_a_last_bit_left_alone_is_caught() -> None:
    certificate = sf.audit(LastBitLeftAlone(DOMAIN, 1), sf.Uniform(DOMAIN, 1))
    assert not certificate.holds
    assert certificate.worst.right == 0
    with pytest.raises(PolicyViolated, match="infinite"):
        certificate.raise_if_violated()


@pytest.mark.slow
def test_a_last_bit_left_alone_is_caught_among_100_000() -> None:
    domain = sf.Domain.range(100_000)
    certificate = sf.audit(LastBitLeftAlone(domain, 1), sf.Uniform(domain, 1))
    assert not certificate.holds
    assert "sets bit 99999 for 0 with probability 0," in str(certificate.fault)


class LastStepLeftAlone(UnaryEncoding):
    """The same where it is made: every bit is right, and the step that should ask for the last one does not."""

    def step(self, state: Any, draws: Draws) -> Any:
        x, position, report = state
        if position == len(self.domain) - 1:
            return Finished(report | (x == position) << position)
        return super().step(state, draws)


class OneStepTooMany(UnaryEncoding):
    """A step that decides two bits at once, and the second in clear."""

    def step(self, state: Any, draws: Draws) -> Any:
        x, position, report = state
        if position == 7:
            return x, position + 2, report | (x == 8) << 8
        return super().step(state, draws)


class BeginsElsewhere(UnaryEncoding):
    def start(self, x: int) -> Any:
        return x, 1, 1 << x


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (LastStepLeftAlone, "sets bit 39 for 0 with probability 0, not 0.377541 as stated"),
        (OneStepTooMany, "decides more than bit 7 for 0"),
        (BeginsElsewhere, "does not begin with the first bit for 0"),
    ],
)
def test_the_steps_that_run_are_read_bit_by_bit(kind: type[UnaryEncoding], fault: str) -> None:
    wide = sf.Domain.range(40)
    certificate = sf.audit(kind(wide, 1), sf.Uniform(wide, 1))
    assert not certificate.holds
    assert fault in str(certificate.fault)
    honest = sf.audit(UnaryEncoding(wide, 1), sf.Uniform(wide, 1))
    assert (honest.holds, honest.coverage) == (True, "some")


class PointsAtAnother(UnaryEncoding):
    """Tells the truth, and offers an honest mechanism to be read in its place."""

    def step(self, state: Any, draws: Draws) -> Any:  # noqa: ARG002
        return Finished(1 << state[0])

    def independent_bits(self) -> UnaryEncoding:
        return UnaryEncoding(self.domain, self.epsilon)

    def audit_surrogate(self) -> Any:
        return RandomizedResponse(sf.Domain.range(3), self.epsilon)


def test_the_mechanism_that_runs_is_read_not_one_that_it_names() -> None:
    wide = sf.Domain.range(40)
    certificate = sf.audit(PointsAtAnother(wide, 1), sf.Uniform(wide, 1))
    assert not certificate.holds
    assert "decides more than bit 0" in str(certificate.fault)


class OnceABitIsSet(UnaryEncoding):
    """Every step is as stated while no bit is set; after the first the rest is true."""

    def step(self, state: Any, draws: Draws) -> Any:
        x, _, report = state
        return Finished(report | 1 << x) if report else super().step(state, draws)


def test_steps_that_see_the_bits_before_are_not_taken_for_independent() -> None:
    wide = sf.Domain.range(40)
    mechanism = OnceABitIsSet(wide, 1)
    with pytest.raises(Undecided, match="overridden steps"):
        sf.audit(mechanism, sf.Uniform(wide, 1))
    with pytest.raises(Undecided, match="overridden steps"):
        sf.Ledger().charge("wide", mechanism, sf.Uniform(wide, 1))


class SurrogateOfAnother(SubsetSelection):
    """The true value alone, with an honest surrogate of another class."""

    def audit_surrogate(self) -> SubsetSelection:
        return SubsetSelection(sf.Domain.range(4), self.epsilon)

    def step(self, state: Any, draws: Draws) -> Any:
        following = super().step(state, draws)
        return Finished(1 << state[0]) if isinstance(following, Finished) else following


def test_a_surrogate_of_another_class_is_not_read() -> None:
    wide = sf.Domain.range(60)
    with pytest.raises(Undecided, match="cannot be read"):
        sf.audit(SurrogateOfAnother(wide, 1), sf.Uniform(wide, 1))
    blocks = _blocks(2, 60, 1, "inf")
    inside = BlockMechanism(blocks.domain, blocks.block_of, [SurrogateOfAnother(wide, 1)] * 2)
    with pytest.raises(Undecided, match="cannot be read"):
        sf.audit(inside, blocks)


def test_bits_that_are_certain_are_followed() -> None:
    wide = sf.Domain.range(40)
    assert sf.audit(UnaryEncoding(wide, "inf"), sf.Uniform(wide, "inf")).holds


class AnswersInClear(RandomizedResponse):
    def sample(self, x: int, draws: Draws) -> int:  # noqa: ARG002
        return x


def test_a_sampler_that_does_not_run_its_steps_is_caught() -> None:
    certificate = sf.audit(AnswersInClear(DOMAIN, 1), sf.Uniform(DOMAIN, 1))
    assert not certificate.holds
    assert "a sample() of its own" in str(certificate.fault)


@pytest.mark.parametrize("epsilon", ["0.001", "1", "ln 3", "5"])
def test_a_threshold_rounded_the_wrong_way_is_caught(epsilon: str) -> None:
    policy = sf.Uniform(DOMAIN, epsilon)
    right = RandomizedResponse(DOMAIN, epsilon)
    assert sf.audit(right, policy).holds
    certificate = sf.audit(RandomizedResponse(DOMAIN, epsilon, threshold=right.threshold + 1), policy)
    assert not certificate.holds
    assert 0 < certificate.worst.excess < 1e-15


@pytest.mark.parametrize(
    "kind", [RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse], ids=lambda kind: kind.__name__
)
def test_an_epsilon_off_by_1e_12_is_caught(kind: Any) -> None:
    mechanism = kind(DOMAIN, Fraction(1) + Fraction(1, 10**12))
    assert not sf.audit(mechanism, sf.Uniform(DOMAIN, 1)).holds
    assert sf.audit(kind(DOMAIN, 1), sf.Uniform(DOMAIN, 1)).holds


class OverlappingBits(HadamardResponse):
    """Index and sign bits that share part of a 32-bit word, as happens beyond 2^16 columns."""

    def __init__(self, domain: sf.Domain, epsilon: Any) -> None:
        super().__init__(domain, epsilon)
        columns = self.block_size.bit_length() - 1
        self.layout = Layout(32, (Field.number(16, 16), Field.number(0, columns)))


@pytest.mark.slow
def test_overlapping_index_and_sign_bits_are_caught() -> None:
    wide = sf.Domain.range(100_000)
    certificate = sf.audit(OverlappingBits(wide, 1), sf.Uniform(wide, 1))
    assert not certificate.holds
    assert "overlaps" in str(certificate.fault)
    narrow = sf.Domain.range(60_000)
    assert sf.audit(OverlappingBits(narrow, 1), sf.Uniform(narrow, 1)).holds


def written_as(mechanism: Mechanism, encode: Callable[[int], bytes]) -> ReportFormat:
    """The format of a mechanism, with another serialised form."""
    changed = format_for(mechanism)
    changed.encode = encode  # type: ignore[method-assign, assignment, misc]
    return changed


class TrueValueFirst(SubsetSelection):
    """A subset as a list in the order it was made: the true value, if it is there, stands first."""

    def step(self, state: Any, draws: Draws) -> SubsetState | Finished:
        following: SubsetState | Finished = super().step(state, draws)
        if not isinstance(following, Finished):
            return following
        return Finished(following.report | state[0] << len(self.domain))

    @functools.cached_property
    def report_format(self) -> ReportFormat:
        return written_as(self, self.encode)

    def encode(self, report: int) -> bytes:
        size = len(self.domain)
        members, x = report & (1 << size) - 1, report >> size
        listed = [i for i in range(size) if members >> i & 1]
        return bytes(sorted(listed, key=lambda i: i != x))


def test_the_true_value_always_first_is_caught() -> None:
    certificate = sf.audit(TrueValueFirst(DOMAIN, 1, size=2), sf.Uniform(DOMAIN, 1))
    assert not certificate.holds
    assert certificate.worst.violated


class LengthTellsTheValue(RandomizedResponse):
    def step(self, state: Any, draws: Draws) -> Finished:
        honest = super().step(state, draws)
        return honest if state else Finished(honest.report + 256)

    @functools.cached_property
    def report_format(self) -> ReportFormat:
        return written_as(self, self.encode)

    def encode(self, report: int) -> bytes:
        return bytes([report % 256]) * (1 + report // 256)


def test_a_length_that_depends_on_the_value_is_caught() -> None:
    certificate = sf.audit(LengthTellsTheValue(DOMAIN, 1), sf.Uniform(DOMAIN, 1))
    assert not certificate.holds
    assert certificate.worst.right == 0


class LengthsDiffer(RandomizedResponse):
    @functools.cached_property
    def report_format(self) -> ReportFormat:
        return written_as(self, self.encode)

    def encode(self, report: int) -> bytes:
        return bytes(report + 1)


def test_lengths_that_differ_are_a_fault() -> None:
    certificate = sf.audit(LengthsDiffer(DOMAIN, 1), sf.Uniform(DOMAIN, 1))
    assert "different lengths" in str(certificate.fault)
    assert not certificate.holds


class AllAlike(IndexFormat):
    """Shows the audit the same bytes whatever the report is."""

    def encode(self, report: int) -> bytes:  # type: ignore[misc]  # noqa: ARG002
        return b"\0"


class TruthWrittenAlike(RandomizedResponse):
    def step(self, state: Any, draws: Draws) -> Finished:  # noqa: ARG002
        return Finished(state)

    @functools.cached_property
    def report_format(self) -> ReportFormat:
        return AllAlike(self.outputs)


class TruthRewritten(TruthWrittenAlike):
    @functools.cached_property
    def report_format(self) -> ReportFormat:
        return written_as(self, lambda _: b"\0")


@pytest.mark.parametrize("kind", [TruthWrittenAlike, TruthRewritten])
def test_a_report_format_that_hides_what_a_report_says_is_a_fault(kind: Any) -> None:
    certificate = sf.audit(kind(DOMAIN, 0), sf.Uniform(DOMAIN, 0))
    assert not certificate.holds
    assert "not one of the library's" in str(certificate.fault)


class SkipsTheLastColumn(HadamardResponse):
    """Too many values to read them all: the three that are read give it away."""

    def step(self, state: Any, draws: Draws) -> Finished:
        report = super().step(state, draws).report
        return Finished(0 if report == self.outputs - 1 else report)


def test_a_sampler_that_departs_from_its_stated_law_is_caught_at_large_k() -> None:
    domain = sf.Domain.range(20_000)
    certificate = sf.audit(SkipsTheLastColumn(domain, 1), sf.Uniform(domain, 1))
    assert not certificate.holds
    assert "not" in str(certificate.fault)
    assert "as stated" in str(certificate.fault)


# -- where a sampler has too many branches -----------------------------------------------------------------


class AlwaysForced(SubsetSelection):
    """The true value is always swapped in: nothing is denied."""

    def step(self, state: Any, draws: Draws) -> Any:
        return super().step((state[0], True, *state[2:]) if len(state) > 1 else state, draws)


@pytest.mark.parametrize("size", [30, 1000])
def test_a_class_that_breaks_its_law_is_caught_at_any_size(size: int) -> None:
    large = sf.Domain.range(size)
    certificate = sf.audit(AlwaysForced(large, 1), sf.Uniform(large, 1))
    assert not certificate.holds
    assert "over 6 values the sampler gives report" in str(certificate.fault)


def _blocks(count: int, size: int, epsilon: Any, across: Any) -> sf.Blocks:
    return sf.Blocks(sf.Domain.range(count * size), [x // size for x in range(count * size)], epsilon, across)


@pytest.mark.parametrize(
    ("policy", "make"),
    [
        (sf.Uniform(sf.Domain.range(2000), 1), lambda p: RandomizedResponse(p.domain, 1)),
        (sf.Uniform(sf.Domain.range(2000), 1), lambda p: HadamardResponse(p.domain, 1)),
        (sf.Uniform(sf.Domain.range(60), 1), lambda p: SubsetSelection(p.domain, 1)),
        (sf.HighLow(sf.Domain.range(60), range(50), 1), lambda p: HighLowSubset(p.domain, range(50), 1)),
        (_blocks(3, 40, 1, "inf"), lambda p: BlockMechanism.for_policy(p, "subset")),
        (_blocks(10, 10, 1, 2), NestedCyclic.for_policy),
        (_blocks(10, 10, 1, 2), ComposedSubsets.for_policy),
    ],
)
def test_what_is_too_large_is_read_where_its_class_is_small(
    policy: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_audit, "_MOST_RUNS_PER_VALUE", 1000)
    mechanism: Mechanism = make(policy)
    audit_surrogate = mechanism.audit_surrogate()
    assert audit_surrogate is not None
    assert type(audit_surrogate) is type(mechanism)
    assert len(audit_surrogate.domain) <= 12
    assert mechanism_from_spec(audit_surrogate.spec) == audit_surrogate
    certificate = sf.audit(mechanism, policy)
    assert (certificate.holds, certificate.coverage) == (True, "surrogate")
    assert f"one of its class over {len(audit_surrogate.domain)} values was" in certificate.evidence
    assert certificate.raise_if_violated(coverage="surrogate") is certificate
    with pytest.raises(Undecided, match="coverage is 'surrogate', and 'some' is required"):
        certificate.raise_if_violated(coverage="some")


def test_a_small_one_is_its_own_smaller_one() -> None:
    for mechanism in (RandomizedResponse(DOMAIN, 1), SubsetSelection(DOMAIN, 1)):
        small = mechanism.audit_surrogate()
        assert small is not None
        assert small.parameters() == mechanism.parameters()
    assert UnaryEncoding(DOMAIN, 1).audit_surrogate() is None


class MadeOtherwise(SubsetSelection):
    def __init__(self, domain: sf.Domain) -> None:
        super().__init__(domain, 1)


class Endless(SubsetSelection):
    """Over few values it flips a coin that changes nothing, again and again."""

    def step(self, state: Any, draws: Draws) -> Any:
        for _ in range(0 if len(self.domain) > 6 else 30):
            draws.bernoulli(1, 2)
        return super().step(state, draws)


def test_a_class_from_outside_that_cannot_be_read_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_audit, "_MOST_RUNS", 1000)
    large = sf.Domain.range(30)
    for mechanism in (MadeOtherwise(large), Endless(large, 1)):
        with pytest.raises(Undecided, match="cannot be read"):
            sf.audit(mechanism, sf.Uniform(large, 1))


def test_later_values_with_too_many_branches_are_left_to_the_stated_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_audit, "_MOST_RUNS_PER_VALUE", 2000)
    monkeypatch.setattr(_audit, "_MOST_RUNS", 20_000)
    policy = sf.Blocks(sf.Domain.range(12), [[0, 1], list(range(2, 12))], "0.1")
    certificate = sf.audit(BlockMechanism.for_policy(policy, "subset"), policy)
    assert (certificate.holds, certificate.coverage) == (True, "some")
    assert "every branch of 0, and equal to it there; for others the sampler has too many" in certificate.evidence
    assert "one of its class over" in certificate.evidence


# -- structured audits -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        SubsetSelection,
        *(pytest.param(k, marks=pytest.mark.soak) for k in (RandomizedResponse, UnaryEncoding, HadamardResponse)),
    ],
    ids=lambda kind: kind.__name__,
)
def test_a_hundred_thousand_values_against_structured_policies(kind: Any) -> None:
    large = sf.Domain.range(100_000)
    assert sf.audit(kind(large, 1), sf.Uniform(large, 1)).holds
    assert not sf.audit(kind(large, 1), sf.HighLow(large, [99_999], Fraction(99, 100))).holds


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse], ids=lambda kind: kind.__name__
)
def test_ten_thousand_values_against_every_structured_policy(kind: Any) -> None:
    size = 10_000
    domain = sf.Domain.range(size)
    mechanism = kind(domain, 1)
    policies = [
        sf.Uniform(domain, 1),
        sf.HighLow(domain, range(50), 1),
        sf.Blocks(domain, [i // 50 for i in range(size)], 1, across=2),
        sf.Prior(domain, [Fraction(1, size)] * size, 1),
    ]
    for policy in policies:
        assert sf.audit(mechanism, policy).holds, policy.kind
    lower = Fraction(99, 100)
    assert not sf.audit(mechanism, sf.Uniform(domain, lower)).holds
    assert not sf.audit(mechanism, sf.Blocks(domain, [i // 50 for i in range(size)], lower)).holds
    assert not sf.audit(mechanism, sf.HighLow(domain, [9_999], lower)).holds
    assert not sf.audit(mechanism, sf.Prior(domain, [1, *[0] * (size - 1)], lower)).holds


@pytest.mark.slow
def test_a_table_of_200_by_200_against_a_random_pairwise_policy() -> None:
    generator = np.random.default_rng(7)
    domain = sf.Domain.range(200)
    levels = generator.uniform(0.5, 3, (200, 200))
    np.fill_diagonal(levels, 0)
    policy = sf.Pairwise(domain, levels)
    noise = generator.dirichlet(np.ones(200), 200)
    table = TableMechanism.from_matrix(domain, 0.05 * noise + 0.95 / 200, policy=policy)
    certificate = sf.audit(table, policy)
    assert certificate.holds
    # Independently: every ratio of the integer weights against e^E in doubles.
    weights = table.weights.astype(float)
    logs = np.log(weights)
    excess = (logs[:, None, :] - logs[None, :, :]).max(axis=2) - levels
    np.fill_diagonal(excess, -np.inf)
    assert certificate.worst.excess == pytest.approx(excess.max(), abs=1e-9)
    tighter = sf.Pairwise(domain, np.where(levels > 0, np.maximum(levels + excess.max() - 1e-6, 0), 0))
    assert not sf.audit(table, tighter).holds


def test_what_cannot_be_decided_is_refused_not_approximated() -> None:
    domain = sf.Domain.product(S=["a", "b"], U=range(300))
    joint = [[Fraction(1, 600)] * 300] * 2
    known = sf.Secret(domain, secret="S", epsilon=1, distributions=sf.Known(joint))
    with pytest.raises(LimitExceeded, match="subset-selection over 600 values"):
        sf.audit(SubsetSelection(domain, 1), known)
    anything = sf.Secret(domain, secret="S", epsilon=1, distributions=sf.Anything())
    assert sf.audit(SubsetSelection(domain, 1), anything).holds


def test_the_interpreter_gives_up_in_so_many_words() -> None:
    with pytest.raises(TooManyBranches, match="more than 100 branches"):
        sampler_law(SubsetSelection(sf.Domain.range(30), 1), 0, most_runs=100)


def test_another_domain_is_refused() -> None:
    with pytest.raises(InvalidInput, match="mechanism's domain"):
        sf.audit(RandomizedResponse(DOMAIN, 1), sf.Uniform(sf.Domain.range(5), 1))


def test_swapped_arguments_are_refused_as_such() -> None:
    mechanism, policy = RandomizedResponse(DOMAIN, 1), sf.Uniform(DOMAIN, 1)
    with pytest.raises(InvalidInput, match=r"must be a Mechanism, not a Policy \(are the arguments swapped\?\)"):
        sf.audit(policy, mechanism)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="the policy must be a Policy, not a Mechanism"):
        sf.audit(mechanism, mechanism)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="the mechanism must be a Mechanism; got 'rr'"):
        sf.audit("rr", policy)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match=r"must be a Certificate \(Certificate\.from_json reads a JSON string\); got '{}'"
    ):
        sf.verify("{}")  # type: ignore[arg-type]


@pytest.mark.parametrize("policy_of", [
    lambda d: sf.Uniform(d, 1),
    lambda d: sf.HighLow(d, ["hiv"], 1),
    lambda d: sf.Blocks(d, [["none", "flu", "other"], ["hiv", "cancer"]], 1),
    lambda d: sf.Metric(d, "discrete", 1),
    lambda d: sf.Pairwise(d, {("hiv", "none"): 1, ("none", "hiv"): "inf"}),
    lambda d: sf.Prior(d, ["0.5", "0.2", "0.1", "0.1", "0.1"], 1),
])  # fmt: skip
def test_every_mechanism_obeys_every_policy_that_uniform_implies(policy_of: Any) -> None:
    policy = policy_of(DOMAIN)
    assert sf.implies(sf.Uniform(DOMAIN, 1), policy)
    for kind in (RandomizedResponse, SubsetSelection, HadamardResponse, UnaryEncoding):
        assert sf.audit(kind(DOMAIN, 1), policy).holds
    assert not sf.audit(RandomizedResponse(DOMAIN, 4), policy).holds


# -- certificates ------------------------------------------------------------------------------------------


@functools.cache
def example() -> sf.Certificate:
    return sf.audit(RandomizedResponse(DOMAIN, 1), sf.HighLow(DOMAIN, ["hiv", "cancer"], 1))


def test_a_certificate_can_be_checked_from_its_file_alone() -> None:
    again = sf.Certificate.from_json(example().to_json())
    assert again == example()
    assert sf.verify(again) == example()


@pytest.mark.parametrize(
    "domain",
    [
        sf.Domain.product(S=["yes", "no"], U=sf.Domain.range(2)),
        sf.Domain.grid(latitude=(0, 2), longitude=(0, 3), rows=2, columns=3),
        sf.Domain.product(where=sf.Domain.grid(latitude=(0, 1), longitude=(0, 1), rows=1, columns=2), who=["a", "b"]),
    ],
    ids=["product", "grid", "grid in a product"],
)
def test_a_certificate_over_tuples_can_be_checked_from_its_file_alone(domain: sf.Domain) -> None:
    for epsilon in (1, 2):
        certificate = sf.audit(RandomizedResponse(domain, epsilon), sf.HighLow(domain, [domain.label(1)], 1))
        again = sf.Certificate.from_json(certificate.to_json())
        assert again == certificate
        assert sf.verify(again) == certificate
        assert json.loads(certificate.to_json())["policy"] == certificate.policy


def test_a_certificate_says_what_it_rests_on() -> None:
    certificate = example()
    assert certificate.mechanism_hash == RandomizedResponse(DOMAIN, 1).hash
    assert certificate.policy_hash == sf.HighLow(DOMAIN, ["hiv", "cancer"], 1).hash
    assert certificate.raise_if_violated() is certificate
    assert "randomized-response obeys the high-low policy: for 'hiv' against" in str(certificate)
    assert "every branch of all 5 values" in str(certificate)
    assert certificate.coverage == json.loads(certificate.to_json())["read"] == "all"
    assert certificate.raise_if_violated(coverage="all") is certificate
    with pytest.raises(InvalidInput, match="coverage must be one of all, some, surrogate, none"):
        certificate.raise_if_violated(coverage="most")  # type: ignore[arg-type]


def test_edited_information_is_refused() -> None:
    policy = sf.Prior(DOMAIN, ["0.5", "0.2", "0.1", "0.1", "0.1"], 1)
    document = json.loads(sf.audit(RandomizedResponse(DOMAIN, 1), policy).to_json())
    stated = document["information"]
    assert sf.verify(sf.Certificate.from_json(json.dumps(document))).information == stated["nats"]
    for edited in (
        {**stated, "nats": 0.0},
        {**stated, "nats": None},
        {**stated, "bound": 2 * stated["bound"]},
    ):
        with pytest.raises(InvalidInput, match="its statement must be that of the repeated audit"):
            sf.verify(sf.Certificate.from_json(json.dumps({**document, "information": edited})))
    for nats in (0.0, None):
        with pytest.raises(InvalidInput, match="complete JSON certificate"):  # without its bound it was not compared
            sf.Certificate.from_json(json.dumps({**document, "information": {"nats": nats, "bound": None}}))
    forged = dataclasses.replace(
        sf.audit(RandomizedResponse(DOMAIN, 1), policy), information=0.0, information_bound=None
    )
    with pytest.raises(InvalidInput, match="its statement must be that of the repeated audit"):
        sf.verify(forged)
    of_pairs = {**json.loads(example().to_json()), "information": {"nats": 0.1, "bound": 0.2}}
    with pytest.raises(InvalidInput, match="its statement must be that of the repeated audit"):
        sf.verify(sf.Certificate.from_json(json.dumps(of_pairs)))


def test_a_certificate_has_the_keys_it_has_and_no_others() -> None:
    document = json.loads(example().to_json())
    for edited, culprit in (
        ({**document, "approved": "by everybody"}, "document key must be one of .*; got 'approved'"),
        ({**document, "worst": {**document["worst"], "note": ""}}, "worst key must be one of .*; got 'note'"),
        (
            {**document, "information": {"nats": 1.0, "bound": 1.0, "bits": 2}},
            "information key must be one of .*'bits'",
        ),
        ({**document, "information": {"nats": "0.1", "bound": 1.0}}, "complete JSON certificate"),
        ({**document, "holds": 1}, "holds must be true or false; got 1"),
        ({**document, "worst": {**document["worst"], "violated": 0}}, "violated must be true or false; got 0"),
        ({key: value for key, value in document.items() if key != "fault"}, "complete JSON certificate"),
    ):
        with pytest.raises(InvalidInput, match=culprit):
            sf.Certificate.from_json(json.dumps(edited))
    twice = json.dumps(document).replace('"holds": true', '"holds": false, "holds": true')
    with pytest.raises(InvalidInput, match="have every key once; got the key 'holds' twice"):
        sf.Certificate.from_json(twice)


def test_a_forged_certificate_is_refused() -> None:
    document = json.loads(example().to_json())
    stronger = json.loads(json.dumps(document).replace('"epsilon": "1"', '"epsilon": "1/2"'))
    with pytest.raises(InvalidInput, match="mechanism_hash must be"):
        sf.Certificate.from_json(json.dumps(stronger))
    wishful = sf.Certificate.from_json(example().to_json())
    forged = sf.Certificate(**{**wishful.__dict__, "evidence": "trust me"})
    with pytest.raises(InvalidInput, match="its statement must be that of the repeated audit"):
        sf.verify(forged)
    with pytest.raises(InvalidInput, match="its statement must be that of the repeated audit"):
        sf.verify(dataclasses.replace(wishful, coverage="some"))
    with pytest.raises(InvalidInput, match="read must be one of all, some, smaller, none"):
        sf.Certificate.from_json(json.dumps({**document, "read": "most"}))
    with pytest.raises(InvalidInput, match="complete JSON certificate"):
        sf.Certificate.from_json("{}")
    with pytest.raises(InvalidInput, match=r'"format" and "version" must be .*; got .* and 2'):
        sf.Certificate.from_json(json.dumps({**document, "version": 2}))


def test_a_policy_without_rules_binds_nothing() -> None:
    certificate = sf.audit(RandomizedResponse(DOMAIN, "inf"), sf.Pairwise(DOMAIN, {}))
    assert certificate.holds
    assert certificate.worst.names is None
    assert "obeys the pairwise policy, which constrains nothing" in str(certificate)


def test_a_summary_stays_readable_for_huge_ratios_and_long_reports() -> None:
    domain = sf.Domain.range(1000)
    wide = str(sf.audit(UnaryEncoding(domain, 1), sf.Uniform(domain, 1)))
    assert len(wide) < 400
    far = sf.audit(RandomizedResponse(DOMAIN, 900), sf.Uniform(DOMAIN, 900))
    assert far.holds
    assert "within the limit e^900" in str(far)
