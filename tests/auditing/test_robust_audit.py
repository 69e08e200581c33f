"""The audit over a whole confidence set: certified from both sides, and equal to independent computations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato.errors import BudgetExceeded, CannotCompose, Undecided
from sfumato.mechanisms.secret.base import information, set_response
from sfumato.mechanisms.secret.conditional import _conditional_matrix, _Inner, _unary_matrix
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy.confidence import SecretPair, ratio_is_certain, ratio_within, widest
from support.published import reference
from support.reference import fewer, refusal

Floats = npt.NDArray[np.float64]

COUNTS = [[100, 200, 100], [300, 50, 250]]


def product(secrets: int, others: int) -> sf.Domain:
    return sf.Domain.product(S=[f"s{i}" for i in range(secrets)], U=[f"u{i}" for i in range(others)])


def robust(counts: Any, epsilon: Any = 1, alpha: Any = "0.05") -> sf.Secret:
    shape = np.array(counts).shape
    return sf.Secret(product(*shape), "S", epsilon, sf.ChiSquare(counts, alpha))


def level(policy: sf.Secret, columns: Any) -> float:
    """The least ε that these columns keep over the set."""
    return max(policy.worst(list(column)).excess + float(policy.epsilon) for column in columns)


# -- another computation of the same worst case ------------------------------------------------------------


def greatest_mean(q: Floats, shares: Floats, room: float) -> float:
    """max q·R with √(Σ shares²/R) ≤ room: R_u ∝ shares/√(μ-q_u), one root; a cell never seen takes what is left."""
    seen = shares > 0
    if not seen.any():
        return float(q.max())
    target = room**2

    def spread(mu: float) -> float:
        return float((shares[seen] * np.sqrt(mu - q[seen])).sum() * (shares[seen] / np.sqrt(mu - q[seen])).sum())

    low = float(q.max())
    if q[seen].max() < q.max() and spread(low) <= target:
        roots = np.sqrt(low - q[seen])
        law = shares[seen] / roots * (shares[seen] * roots).sum() / target
        return float(law @ q[seen] + (1 - law.sum()) * q.max())
    if np.ptp(q[seen]) == 0 and q[seen].max() == q.max():
        return float(q.max())
    near, far = -60.0, 25.0  # ln(μ - max q)
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (middle, far) if spread(low + math.exp(middle)) > target else (near, middle)
    weights = shares / np.sqrt(low + math.exp(far) - q)
    return float(weights @ q / weights.sum())


def greatest_ratio(q: Floats, other: Floats, shares: Floats, others: Floats, slack: float) -> float:
    """Split the room between the two secrets by golden section: the ratio is quasi-concave in the split."""

    def at(split: float) -> float:
        top = greatest_mean(q, shares, shares.sum() + split * slack)
        bottom = -greatest_mean(-other, others, others.sum() + (1 - split) * slack)
        return top / bottom

    low, high = 0.0, 1.0
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(35):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (left, high) if at(left) < at(right) else (low, right)
    return max(at(low), at((low + high) / 2), at(0.0), at(1.0))


def random_problems(count: int, seed: int) -> Iterator[tuple[Any, Floats]]:
    generator = np.random.default_rng(seed)
    for _ in range(count):
        shape = int(generator.integers(2, 4)), int(generator.integers(1, 5))
        n = int(10 ** generator.uniform(1, 5))
        counts = generator.multinomial(n, generator.dirichlet(np.full(shape[0] * shape[1], 0.5))).reshape(shape)
        column = generator.dirichlet(np.full(counts.size, generator.choice([0.3, 1, 5]))).reshape(shape)
        if generator.random() < 0.2:
            column[generator.random(shape) < 0.2] = 0
        yield counts, column


@pytest.mark.slow
def test_the_worst_ratio_is_that_of_another_method() -> None:
    compared = 0
    for counts, column in random_problems(30, 1):
        policy = robust(counts, 0)
        confidence = policy.distributions
        assert isinstance(confidence, sf.ChiSquare)
        slack = float(confidence.root_radius - 1)
        ratios = [
            greatest_ratio(column[s], column[other], confidence.frequencies[s], confidence.frequencies[other], slack)
            for s, other in itertools.permutations(range(len(counts)), 2)
            if column[other].min() > 0
        ]
        if column.min() > 0:
            compared += 1
            assert level(policy, [column.ravel().tolist()]) == pytest.approx(math.log(max(ratios)), abs=2e-7)
    assert compared > 15


@pytest.mark.slow
def test_the_search_and_the_proof_meet() -> None:
    """A distribution in the set on one side, a dual on the other: nothing between them but rounding."""
    for counts, column in random_problems(80, 2):
        confidence = sf.ChiSquare(counts)
        for s, other in itertools.permutations(range(len(counts)), 2):
            likelihoods, shares = column[[s, other]][None], confidence.frequencies[[s, other]][None]
            found = widest(likelihoods, shares, float(confidence.root_radius - 1))
            ratio = float(found.ratio[0])
            if not math.isfinite(ratio) or ratio == 0:
                continue
            q, against = ([Fraction(v) for v in column[i].tolist()] for i in (s, other))
            pair, offsets = confidence.pair(s, other), found.offsets[0].tolist()
            bound = ratio_within(pair, q, against, offsets, ratio)
            if bound is None:
                continue
            assert float(bound) == pytest.approx(ratio, rel=1e-9)
            assert ratio_is_certain(pair, q, against, offsets, bound) or bound == max(q) / min(against)
            assert not ratio_is_certain(pair, q, against, offsets, bound * Fraction(10**9 - 1, 10**9))


@pytest.mark.slow
def test_no_distribution_of_the_set_exceeds_what_is_proved() -> None:
    """Random distributions on the boundary of the set, their ratios exact."""
    generator = np.random.default_rng(6)
    for counts, column in random_problems(25, 3):
        policy = robust(counts)
        confidence = policy.distributions
        assert isinstance(confidence, sf.ChiSquare)
        worst = policy.worst(column.ravel().tolist())
        exact = [[Fraction(repr(v)) for v in row] for row in column.tolist()]
        for _ in range(20):
            towards = generator.dirichlet(np.full(counts.size, 0.5)).reshape(counts.shape)
            low, high = Fraction(0), Fraction(1)
            for _ in range(12):
                share = (low + high) / 2
                joint = [
                    [p + share * (Fraction(float(t)) - p) for p, t in zip(row, other, strict=True)]
                    for row, other in zip(confidence.estimate, towards, strict=True)
                ]
                joint[0][0] += 1 - sum(itertools.chain(*joint))
                inside = min(itertools.chain(*joint)) >= 0 and confidence.holds(joint)
                low, high = (share, high) if inside else (low, share)
                if not inside:
                    continue
                means = [
                    sum(p * t for p, t in zip(row, likelihoods, strict=True)) / sum(row)
                    for row, likelihoods in zip(joint, exact, strict=True)
                    if sum(row)
                ]
                for one, two in itertools.permutations(means, 2):
                    assert one * worst.right <= two * worst.left or worst.violated


def test_the_published_example() -> None:
    case = reference("rldp_exact_audit_example")
    counts = (np.array(case["Phat"]) * case["n"]).round().astype(int)
    policy = robust(counts, 0, case["alpha"])
    for column, ratios in zip(case["Q_y_s_u"], case["ratios_y_by_s1s2"], strict=True):
        for key, order in (("r01", [0, 1]), ("r10", [1, 0])):
            confidence = policy.distributions
            assert isinstance(confidence, sf.ChiSquare)
            found = widest(
                np.array(column)[order][None], confidence.frequencies[order][None], float(confidence.root_radius - 1)
            )
            assert found.ratio[0] == pytest.approx(ratios[key], rel=1e-9)
    columns = [np.ravel(column).tolist() for column in case["Q_y_s_u"]]
    assert level(policy, columns) == pytest.approx(case["level_exact_F"], rel=1e-9)
    known = sf.Secret(policy.domain, "S", 0, sf.Known(case["Phat"]))
    assert level(known, columns) == pytest.approx(case["level_at_Phat"], rel=1e-9)


def published_channels(case: dict[str, Any], hat: Floats) -> dict[str, Floats]:
    """The published protocols at the published budgets, a row per (s, u)."""
    first, size = math.expm1(case["eps1"]), len(hat)
    totals = hat.sum(axis=1, keepdims=True)
    laws = np.where(totals > 0, hat / np.where(totals > 0, totals, 1), 1 / hat.shape[1])

    def inner(deltas: list[Any]) -> list[_Inner]:
        return [_Inner(math.expm1(float(delta)), 1) for delta in deltas]

    outer = set_response(size, 1, first)
    return {
        "IR": np.asarray(np.kron(outer, set_response(hat.shape[1], 1, math.expm1(case["delta2_IR"]))), dtype=float),
        "GRRCR": _conditional_matrix(outer, inner(case["delta_s"]), laws),
        "UECR": _unary_matrix(case["kappa"], case["lam"], inner(case["delta_s"]), laws),
        "GRRCR_exact_delta": _conditional_matrix(outer, inner(case["delta_s_grr_exact"]), laws),
    }


@pytest.mark.slow
def test_the_published_protocols_have_their_published_levels_and_information() -> None:
    for instance in reference("rldp_instances"):
        hat = np.array(instance["Phat"])
        policy = robust((hat * instance["n"]).round().astype(int), 0, instance["alpha"])
        for case in instance["cases"]:
            channels = published_channels(case, hat)
            channels["GRR"] = RandomizedResponse(policy.domain, case["eps"]).matrix()
            channels["SRR"] = SecretRandomizedResponse(policy.domain, "S", case["eps"]).matrix()
            for name, matrix in channels.items():
                expected = case["channels"][name]
                assert information(hat.ravel(), matrix) == pytest.approx(expected["MI"], rel=1e-9), name
                if expected["level_exact_F"] != "inf":
                    found = level(policy, matrix.T.tolist())
                    assert found == pytest.approx(expected["level_exact_F"], rel=1e-8, abs=1e-9), name


@pytest.mark.slow
def test_protocol_3_as_printed_breaks_the_policy() -> None:
    """Beside another secret it draws from the law of the true one."""
    for instance in reference("rldp_instances"):
        if "zero" in instance["name"]:
            continue
        hat = np.array(instance["Phat"])
        laws = hat / hat.sum(axis=1, keepdims=True)
        policy = robust((hat * instance["n"]).round().astype(int), 0, instance["alpha"])
        for case in instance["cases"]:
            responses = [set_response(hat.shape[1], 1, math.expm1(delta)) for delta in case["delta_s"]]
            rows = []
            for s, u in itertools.product(*map(range, hat.shape)):
                row = np.ones(1)
                for told, response in enumerate(responses):
                    kept = case["kappa"] if told == s else case["lam"]
                    law = response[u] if told == s else laws[s] @ response
                    row = np.kron(row, np.hstack([1 - kept, kept * law]))
                rows.append(row)
            found = level(policy, np.array(rows).T.tolist())
            assert found == pytest.approx(case["protocol3_as_printed_level_exact_F"], rel=1e-8)
            assert found > case["eps"]


# -- decisions ---------------------------------------------------------------------------------------------


def test_the_decision_turns_where_the_worst_ratio_is() -> None:
    column = [0.5, 0.2, 0.3, 0.3, 0.4, 0.2]
    at = level(robust(COUNTS, 0), [column])
    assert robust(COUNTS, at + 1e-12).allows(column)
    assert not robust(COUNTS, at - 1e-12).allows(column)
    slack = robust(COUNTS, 1).worst(column)
    assert not slack.violated
    assert slack.excess == pytest.approx(at - 1, abs=1e-12)


def test_a_violation_is_shown_by_a_distribution_of_the_set() -> None:
    policy = robust(COUNTS, "0.15")
    column = [Fraction(n, 10) for n in (5, 2, 3, 3, 4, 2)]
    worst = policy.worst(column)
    assert worst.violated
    assert worst.names == ("s0", "s1")
    rule = policy.cut([float(v) for v in column])
    assert rule is not None
    left = sum(c * column[x] for x, c in rule.left.items())
    right = sum(c * column[x] for x, c in rule.right.items())
    assert left / right == pytest.approx(float(worst.left / worst.right), rel=1e-9)


def test_a_mechanism_made_for_the_estimate_alone_fails() -> None:
    """U told in clear wherever the secret came out true: nothing leaks at P̂, and much beside it."""
    generator = np.random.default_rng(7)
    for _ in range(10):
        counts = generator.multinomial(200, generator.dirichlet(np.full(6, 3.0))).reshape(2, 3) + 1
        policy = robust(counts, "0.5")
        confidence = policy.distributions
        assert isinstance(confidence, sf.ChiSquare)
        matrix = _conditional_matrix(
            set_response(2, 1, math.expm1(0.499)), [_Inner(math.inf, 1)] * 2, confidence.conditional_estimate()
        )
        known = sf.Secret(policy.domain, "S", "0.5", sf.Known(confidence.estimate))
        mechanism = TableMechanism.from_matrix(policy.domain, matrix, policy=known)
        assert sf.audit(mechanism, known).holds
        certificate = sf.audit(mechanism, policy)
        assert not certificate.holds
        assert certificate.worst.excess > 0.01


@pytest.mark.parametrize("distributions", ["known", "anything", "chi-square"])
def test_constant_columns_and_no_columns_are_always_allowed(distributions: str) -> None:
    kinds = {"known": sf.Known([["1/6"] * 3] * 2), "anything": sf.Anything(), "chi-square": sf.ChiSquare(COUNTS)}
    for epsilon in (0, 1, "inf"):
        policy = sf.Secret(product(2, 3), "S", epsilon, kinds[distributions])
        assert policy.allows([0.25] * 6)
        assert policy.allows([0] * 6)
    policy = sf.Secret(product(2, 3), "S", "inf", kinds[distributions])
    assert policy.allows([1, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("counts", "column", "allowed"),
    [
        ([[5, 5], [5, 5]], [1, 1, 0, 0], False),  # impossible for one secret
        ([[5, 5], [5, 5]], [0, 0, 1, 1], False),
        ([[5, 0], [5, 5]], [0, 1, 1, 1], False),  # what was seen of the first secret never gives this report
        ([[5, 0], [5, 5]], [1, 0, 1, 1], True),  # its other value was never seen: it may be there, but is not all
        ([[5, 0], [5, 0]], [1, 1, 0, 1], False),
        ([[5, 5], [0, 0]], [1, 1, 0, 1], False),  # of a secret that was never seen nothing is known
        ([[5, 5], [0, 0]], [1, 1, 1, 1], True),
    ],
)
def test_reports_that_are_impossible_for_some(counts: Any, column: list[int], allowed: bool) -> None:
    assert robust(counts, 9).allows(column) == allowed
    if not allowed:
        assert robust(counts, 100).worst(column).violated


def test_level_zero_needs_the_same_mean_under_every_distribution() -> None:
    policy = robust(COUNTS, 0)
    assert not policy.allows([0.5, 0.2, 0.3, 0.5, 0.2, 0.3])
    assert policy.allows([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])


def test_tiny_likelihoods_are_not_taken_for_none() -> None:
    tiny = Fraction(1, 10**400)
    assert not robust(COUNTS, 5).allows([tiny, tiny, tiny, 0, 0, 0])
    assert not robust(COUNTS, 5).allows([1, 1, 1, tiny, tiny, tiny])
    assert robust(COUNTS, 5).allows([tiny] * 6)


whole = st.lists(st.integers(0, 40), min_size=6, max_size=6).filter(any)
weights = st.lists(st.integers(0, 9), min_size=6, max_size=6)


@given(whole, weights, st.sampled_from(["0", "0.3", "1", "ln 3"]))
@fewer(2)
def test_the_set_lies_between_its_centre_and_everything(counts: list[int], column: list[int], epsilon: str) -> None:
    """Anything implies ChiSquare implies Known(P̂), on every column (RLDP Prop. 4)."""
    table = [counts[:3], counts[3:]]
    policy = robust(table, epsilon)
    assert isinstance(policy.distributions, sf.ChiSquare)
    anything = sf.Secret(policy.domain, "S", epsilon, sf.Anything())
    known = sf.Secret(policy.domain, "S", epsilon, sf.Known(policy.distributions.estimate))
    if anything.allows(column):
        assert policy.allows(column)
    if policy.allows(column):
        assert known.allows(column)


@given(whole, weights, weights)
@fewer(2)
def test_allowed_columns_form_a_cone(counts: list[int], first: list[int], second: list[int]) -> None:
    policy = robust([counts[:3], counts[3:]], 1)
    if policy.allows(first) and policy.allows(second):
        mixed = [3 * a + 2 * b for a, b in zip(first, second, strict=True)]
        # The sum of two columns on the boundary is on the boundary: the level is decided with a hair's breadth.
        assert robust([counts[:3], counts[3:]], 1 + Fraction(1, 10**9)).allows(mixed)


# -- cuts --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cut_is_a_rule_of_the_policy_and_the_closest() -> None:
    for counts, column in random_problems(40, 8):
        policy = robust(counts)
        confidence = policy.distributions
        assert isinstance(confidence, sf.ChiSquare)
        rule = policy.cut(column.ravel().tolist())
        assert rule is not None
        assert rule.epsilon == policy.epsilon
        s, other = (int(str(name)[1:]) for name in rule.names)
        laws = [
            [part.get(int(x), Fraction(0)) for x in policy.cells[i]]
            for i, part in ((s, rule.left), (other, rule.right))
        ]
        assert sum(laws[0]) == sum(laws[1]) == 1
        assert confidence.pair(s, other).holds(*laws)
        left, right = (
            float(np.dot([float(p) for p in law], column[i])) for law, i in zip(laws, (s, other), strict=True)
        )
        worst = policy.worst(column.ravel().tolist())
        if right > 0 and worst.right > 0:
            assert math.log(left / right) == pytest.approx(worst.excess + 1, abs=1e-6)


def test_laws_in_a_pair_belong_to_one_distribution() -> None:
    """``SecretPair.holds`` against the joint distribution that the criterion constructs: P_s in proportion to φ_s."""
    confidence = sf.ChiSquare(COUNTS)
    pair = confidence.pair(0, 1)
    laws = [
        [Fraction(3, 10), Fraction(9, 20), Fraction(1, 4)],
        [Fraction(47, 100), Fraction(9, 100), Fraction(44, 100)],
    ]
    phi = [
        math.sqrt(sum(float(c) ** 2 / float(r) for c, r in zip(row, law, strict=True)))
        for row, law in zip(confidence.estimate, laws, strict=True)
    ]
    shares = [Fraction(p / sum(phi)).limit_denominator(10**12) for p in phi]
    shares[1] = 1 - shares[0]
    joint = [[share * r for r in law] for share, law in zip(shares, laws, strict=True)]
    assert confidence.holds(joint) == pair.holds(*laws)
    assert pair.holds(*laws)
    further = [[Fraction(4, 10), Fraction(7, 20), Fraction(1, 4)], laws[1]]
    assert not pair.holds(*further)
    assert not SecretPair(pair.first, pair.second, pair.slack).holds([Fraction(1), Fraction(0), Fraction(0)], laws[1])


def test_many_cuts_at_once_are_the_same_cuts() -> None:
    generator = np.random.default_rng(9)
    columns = generator.dirichlet(np.ones(6), size=7)
    columns[3] = 0
    for policy in (robust(COUNTS), sf.Secret(product(2, 3), "S", 1, sf.Known([["1/6"] * 3] * 2))):
        together = policy.cuts(columns.tolist())
        assert [rule is None for rule in together] == [i == 3 for i in range(7)]
        for rule, column in zip(together, columns, strict=True):
            alone = policy.cut(column.tolist())
            if rule is None or alone is None:
                assert rule is alone is None
                continue
            assert rule.names == alone.names
            for part, same in ((rule.left, alone.left), (rule.right, alone.right)):
                assert {x: float(c) for x, c in part.items()} == pytest.approx({x: float(c) for x, c in same.items()})
    assert robust(COUNTS, "inf").cut([1] * 6) is None
    assert "have 6 entries" in refusal(robust(COUNTS).cut, [1, 2])


def test_cutting_again_and_again_ends_within_the_policy() -> None:
    """What an optimiser does: take the cut that a point breaks, project, repeat."""
    policy = robust(COUNTS, "0.2")
    point = np.array([0.6, 0.1, 0.2, 0.1, 0.5, 0.3])
    for _ in range(400):
        rule = policy.cut(point.tolist())
        assert rule is not None
        normal = np.zeros(6)
        for x, c in rule.left.items():
            normal[x] += float(c)
        for x, c in rule.right.items():
            normal[x] -= float(c) * math.exp(0.2 - 1e-9)
        if normal @ point <= 0:
            break
        point = np.maximum(point - (normal @ point + 1e-10) * normal / (normal @ normal), 0)
    assert policy.allows(point.tolist())


# -- what else a policy is asked ---------------------------------------------------------------------------


def test_implication_is_decided_where_it_is_known() -> None:
    policy, domain = robust(COUNTS), product(2, 3)
    assert isinstance(policy.distributions, sf.ChiSquare)
    assert sf.implies(sf.Uniform(domain, 1), policy)
    assert sf.implies(sf.Secret(domain, "S", 1, sf.Anything()), policy)
    assert sf.implies(policy, sf.Secret(domain, "S", 1, sf.Known(policy.distributions.estimate)))
    assert sf.implies(robust(COUNTS, "0.5"), policy)
    assert not sf.implies(robust(COUNTS, 2), policy)
    assert sf.implies(policy, robust(COUNTS, "inf"))
    for first, second in (
        (sf.Uniform(domain, 2), policy),
        (sf.Prior(domain, ["1/6"] * 6, 1), policy),
        (policy, sf.Uniform(domain, 5)),
        (policy, robust(COUNTS, 1, "0.01")),
        (policy, sf.Secret(domain, "S", 1, sf.Known([["1/6"] * 3] * 2))),  # far outside the set
    ):
        with pytest.raises(Undecided):
            sf.implies(first, second)


def test_two_releases_do_not_compose_and_values_cannot_be_left_out() -> None:
    policy = robust(COUNTS)
    with pytest.raises(CannotCompose, match="do not compose"):
        policy.compose(policy)
    with pytest.raises(CannotCompose, match="known or estimated distribution cannot be restricted"):
        policy.restrict([("s0", "u0"), ("s1", "u1")])


def test_a_ledger_charges_against_anything_or_refuses() -> None:
    policy = robust(COUNTS)
    ledger = sf.Ledger()
    ledger.charge("first", RandomizedResponse(policy.domain, "1/2"), policy)
    assert ledger.spent(policy.domain) == policy
    ledger.charge("second", HadamardResponse(policy.domain, 1), policy)
    assert ledger.spent(policy.domain) == sf.Uniform(policy.domain, "3/2")
    # Secret randomized response hides the secret at its ε whatever the distribution, which an audit proves.
    hiding = sf.Ledger()
    for name in ("first", "second"):
        hiding.charge(name, SecretRandomizedResponse(policy.domain, "S", 1), policy)
    assert hiding.spent(policy.domain) == sf.Secret(policy.domain, "S", 2, sf.Anything())
    # A mechanism that only keeps the policy, and no ε whatever the distribution, cannot be followed by another.
    table = sf.design(policy, mechanism="conditional-rr")
    assert (table.matrix() == 0).any()  # some report rules out a value of one secret, and with it that secret
    ledger = sf.Ledger()
    ledger.charge("first", table, policy)
    with pytest.raises(CannotCompose, match="cannot bound the total privacy loss of collection"):
        ledger.charge("second", table, policy)
    budgeted = sf.Ledger(robust(COUNTS, 1))
    budgeted.charge("first", RandomizedResponse(policy.domain, "1/2"), policy)
    with pytest.raises(BudgetExceeded):
        budgeted.charge("second", RandomizedResponse(policy.domain, "3/4"), policy)
    assert sf.Ledger.from_json(ledger.to_json()).spent(policy.domain) == policy


def test_the_certificate_shows_the_slack_and_is_found_again() -> None:
    policy = robust(COUNTS)
    certificate = sf.audit(RandomizedResponse(policy.domain, 1), policy)
    assert certificate.holds
    assert -1 < certificate.worst.excess < -0.1
    assert sf.Certificate.from_json(certificate.to_json()) == certificate
    assert sf.verify(certificate) == certificate


def test_more_factors_than_two_are_a_secret_and_the_rest() -> None:
    domain = sf.Domain.product(A=["a", "b"], S=["x", "y"], B=[0, 1])
    counts = [[10, 20, 30, 40], [40, 30, 20, 10]]
    policy = sf.Secret(domain, "S", 1, sf.ChiSquare(counts))
    flat = robust(counts)
    generator = np.random.default_rng(10)
    for column in generator.dirichlet(np.ones(8), size=5):
        here = [0.0] * 8
        for (s, u), x in np.ndenumerate(policy.cells):
            here[int(x)] = float(column[s * 4 + u])
        assert policy.worst(here).excess == flat.worst(column.tolist()).excess
