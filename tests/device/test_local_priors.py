"""Every user their own prior, priors that are learnt, priors that are wrong: exact laws, enumeration, corners."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.interpreter import branches
from sfumato.auditing.prior_sets import PriorMixtures
from sfumato.device.local_priors import DECLARATIONS, LAYOUT, LocalTotal, _least_rounded_up
from sfumato.errors import InvalidInput
from sfumato.estimation import information_privacy
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import BitDraws, Draws
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.binary import PriorBinary, binary_for_policy
from sfumato.randomness import MAIN, WordReader

COIN = sf.Domain(["no", "yes"])
LEVELS = ["0", "1e-18", "1e-6", "0.5", "1", "ln 2", "ln 3", "5", "42.9", "43", "100", "1e12", "inf"]


def public(priors: Any, epsilon: Any = 1, **more: Any) -> sf.LocalPriors:
    return sf.LocalPriors(priors, epsilon, prior_source="public", **more)


def extreme_priors(epsilon: str) -> npt.NDArray[np.float64]:
    """Ends, ties, the borders of the regimes and their neighbours; then random ones, many near the ends."""
    generator = np.random.default_rng(3)
    t = min(Epsilon(epsilon).exp(), 1e300)
    borders = [1 / (t + 1), t / (t + 1), 1 / t]
    near = [np.nextafter(border, side) for border in borders for side in (0, 1)]
    ends = [0, 1, 2.0**-62, 2.0**-61, 1 - 2.0**-53, 1e-18, 1e-9, 0.25, 1 / 3, 0.5, 0.75]
    many = generator.random(40)
    return np.concatenate([ends, borders, near, many, many**8, 1 - many**8])


def user_thresholds(prior: int, least: int) -> tuple[int, int]:
    """Return the number of reports in 2^62 that name the first value, for each value that the user may have.

    ``prior`` is 2^62·Pr(X=1), and ``least`` is e^-ε·2^62 rounded up. This is the arithmetic of the compiled code.
    """
    first, second = _edge(TOTAL - prior, least), _edge(prior, least)
    left, right = TOTAL - first, TOTAL - second
    whole = left + right - left * right // TOTAL
    if whole == 0:
        return TOTAL // 2, TOTAL // 2
    second = right * TOTAL // whole
    return second, _up(first * second, TOTAL)


def _edge(prior: int, least: int) -> int:
    """Return an upper bound on 2^62 times the smallest likelihood of the other value, if that of this value is one."""
    other = TOTAL - prior
    edge = 0
    # The greater of the two bounds applies, and only if its divisor is at least a half.
    if other >= TOTAL // 2 - 2 and least > prior:
        edge = _up((least - prior) * TOTAL, other)
    below = TOTAL - _up(other * least, TOTAL)
    if below >= TOTAL // 2 - 2:
        edge = max(edge, _up(_up(prior * least, TOTAL) * TOTAL, below))
    return min(edge, int(TOTAL))


def _up(numerator: int, denominator: int) -> int:
    """Divide and round up."""
    return -(-numerator // denominator)


# -- the parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", LEVELS)
def test_every_user_keeps_their_policy_exactly(epsilon: str) -> None:
    users = public(extreme_priors(epsilon), epsilon)
    for user in range(len(users)):
        law, policy = users.law(user), users.policy(user)
        assert law.obeys(policy), (user, law.worst(policy))
        told, denied = map(int, users.thresholds[user])
        assert denied <= told
        if epsilon != "inf":  # no finite level becomes certainty
            assert (told > 0) == (denied > 0)
            assert (told < TOTAL) == (denied < TOTAL)


@pytest.mark.parametrize("epsilon", LEVELS)
def test_the_compiled_parameters_are_those_stated_one_by_one(epsilon: str) -> None:
    users = public(extreme_priors(epsilon), epsilon)
    least = _least_rounded_up(users.epsilon)
    stated = [user_thresholds(int(users.policy(user).prior[1] * TOTAL), least) for user in range(len(users))]
    assert users.thresholds.tolist() == [list(pair) for pair in stated]


@given(st.integers(0, TOTAL), st.sampled_from(LEVELS))
def test_any_prior_is_kept(prior: int, epsilon: str) -> None:
    told, denied = user_thresholds(prior, _least_rounded_up(Epsilon(epsilon)))
    share = Fraction(prior, TOTAL)
    policy = sf.Prior(COIN, [1 - share, share], epsilon)
    assert 0 <= denied <= told <= TOTAL
    assert policy.allows([told, denied])
    assert policy.allows([TOTAL - told, TOTAL - denied])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "1", "ln 3", "7"])
def test_hardly_anything_is_lost_to_rounding(epsilon: str) -> None:
    """Within a few units of 2^-62 of the closed form that is rounded in arbitrary precision."""
    users = public(extreme_priors(epsilon), epsilon)
    for user in range(len(users)):
        best = binary_for_policy(users.policy(user)).weights[:, 0].astype(object)
        assert np.abs(best - users.thresholds[user].astype(object)).max() <= 40
    expected = information_privacy.optimal_mse(users.priors, float(Epsilon(epsilon)))
    assert users.errors == pytest.approx(expected, rel=1e-9, abs=1e-16)


def test_the_level_is_rounded_to_the_private_side() -> None:
    for epsilon in LEVELS[1:-1]:
        least = _least_rounded_up(Epsilon(epsilon))
        # least ≥ e^-ε·2^62 > least - 1, by the certified comparison of policies: 2^62 ≤ e^ε·least.
        pair = sf.Uniform(COIN, epsilon)
        assert pair.allows([TOTAL, least])
        assert least == 0 or not pair.allows([TOTAL, least - 1])
    assert (_least_rounded_up(Epsilon(0)), _least_rounded_up(Epsilon("inf"))) == (TOTAL, 0)
    assert _least_rounded_up(Epsilon("ln 2")) == TOTAL // 2


def test_priors_are_kept_to_62_bits() -> None:
    users = public([0.1, 1e-9, 2.0**-80])
    assert users.priors[:2] == pytest.approx([0.1, 1e-9], rel=1e-9)
    assert users.policy(0).prior[1] == Fraction(0.1)  # the double itself: no decimals are needed here
    assert users.policy(2).prior == (Fraction(1), Fraction(0))


def test_many_users_are_treated_as_few() -> None:
    """Parts that run on several cores give what one part gives."""
    priors = np.random.default_rng(1).random(70_000)
    together, apart = public(priors).thresholds, [public(part).thresholds for part in np.array_split(priors, 3)]
    assert np.array_equal(together, np.concatenate(apart))


# -- reports -------------------------------------------------------------------------------------------------


def test_the_law_is_that_of_the_sampler() -> None:
    users = public(extreme_priors("1"))
    for user, x in itertools.product(range(len(users)), range(2)):

        def run(draws: Draws, user: int = user, x: int = x) -> int:
            return users.sample(user, x, draws)

        found = {report: Fraction(weight, total) for report, weight, total in branches(run)}
        assert [found.get(y, Fraction(0)) for y in range(2)] == list(users.law(user).rows[x])


def test_arrays_are_privatized_as_users_one_by_one() -> None:
    """Across chunks: the same words, read by the rules of docs/words-to-decisions.md, give the same reports."""
    generator = np.random.default_rng(2)
    count = LAYOUT.chunk_values + 1000
    priors, values = generator.random(count), generator.integers(0, 2, count)
    users = public(priors)
    reports = users.privatize(values, sf.InsecureSeeded(7))
    key, first = sf.InsecureSeeded(7).reserve(2)
    readers = [WordReader(key, first + chunk, MAIN) for chunk in range(2)]
    refuse: list[int] = []

    def auxiliary(_: int) -> int:
        return refuse.pop()  # nothing is read beyond the frame

    for user, x in enumerate(values.tolist()):
        frame = readers[user // LAYOUT.chunk_values].number(64)
        assert reports[user] == users.sample(user, x, BitDraws(auxiliary, LAYOUT, frame))
    assert LAYOUT.fault() is None


def test_randomness_is_fresh_unless_a_stream_is_given() -> None:
    users = public(np.full(2000, 0.5), "0.1", domain=COIN)
    values = ["yes"] * 2000
    assert not np.array_equal(users.privatize(values), users.privatize(values))
    seeded = users.privatize(values, sf.InsecureSeeded(3))
    assert np.array_equal(seeded, users.privatize(values, sf.InsecureSeeded(3)))
    assert set(np.unique(seeded)) == {0, 1}


# -- estimates -----------------------------------------------------------------------------------------------


def outcomes(users: sf.LocalPriors, true: Any = None) -> Any:
    """Every set of values and every set of reports, with its probability."""
    prior = users.priors if true is None else np.asarray(true)
    laws = [[[float(p) for p in row] for row in users.law(user).rows] for user in range(len(users))]
    for values in itertools.product(range(2), repeat=len(users)):
        for reports in itertools.product(range(2), repeat=len(users)):
            probability = 1.0
            for user, (x, y) in enumerate(zip(values, reports, strict=True)):
                probability *= (prior[user] if x else 1 - prior[user]) * laws[user][x][y]
            yield sum(values), np.array(reports), probability


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_the_total_and_its_error_by_enumeration(epsilon: str) -> None:
    """Proposition 2: the error of the total is the sum of the users' errors, and none is smaller."""
    users = public([0.02, 0.4, 0.95], epsilon)
    bias = square = stated = 0.0
    for total, reports, probability in outcomes(users):
        found = users.estimate(reports)
        bias += probability * (found.value - total)
        square += probability * (found.value - total) ** 2
        stated += probability * found.standard_error**2
    assert bias == pytest.approx(0, abs=1e-15)
    assert square == pytest.approx(users.errors.sum(), rel=1e-12)
    assert stated == pytest.approx(square, rel=1e-12)
    assert users.errors.sum() == pytest.approx(information_privacy.optimal_mse(users.priors, float(epsilon)).sum())


def test_the_unbiased_total_is_right_for_every_set_of_values() -> None:
    users = public([0.02, 0.4, 0.95], 2)
    for true in itertools.product((0.0, 1.0), repeat=3):
        mean = square = stated = 0.0
        for _, reports, probability in outcomes(users, true):
            found = users.estimate(reports, "unbiased")
            mean += probability * found.value
            square += probability * (found.value - sum(true)) ** 2
            stated += probability * found.standard_error**2
        assert mean == pytest.approx(sum(true), abs=1e-12)
        assert stated >= square - 1e-12  # the variance is estimated without bias, and never below zero


def test_the_error_if_the_priors_are_wrong() -> None:
    users, true = public([0.02, 0.4, 0.95], 1), [0.1, 0.4, 0.5]
    bias = square = 0.0
    for total, reports, probability in outcomes(users, true):
        error = users.estimate(reports).value - total
        bias += probability * error
        square += probability * error**2
    assert users.error_if(true) == pytest.approx((bias, square), rel=1e-12)
    assert users.error_if(users.priors) == pytest.approx((0, users.errors.sum()), abs=1e-15)


def test_totals_merge() -> None:
    users = public([0.02, 0.4, 0.95, 0.3])
    reports = np.array([0, 1, 1, 0])
    whole = users.estimate(reports)
    parts = [public(users.priors[part]).estimate(reports[part]) for part in (slice(0, 1), slice(1, 4))]
    merged = parts[0].merge(parts[1])
    assert isinstance(merged, LocalTotal)
    assert (merged.value, merged.standard_error, merged.n) == pytest.approx((whole.value, whole.standard_error, 4))
    assert whole.frequency.value == pytest.approx(whole.value / 4)
    assert whole.interval(0.95)[0] < whole.value < whole.interval(0.95)[1]


def test_posteriors_are_those_of_the_law() -> None:
    users = public([0.02, 0.4, 1.0, 0.0], "ln 3")
    for reports in ([0, 0, 0, 0], [1, 1, 1, 1]):
        means = users.posterior_means(reports)
        for user, y in enumerate(reports):
            posterior = users.law(user).posterior(users.policy(user).prior, y)
            assert means[user] == pytest.approx(float(posterior[1]), rel=1e-12)
    assert public([1.0], "inf").posterior_means([0]).tolist() == [1.0]  # an impossible report says nothing


def test_ten_thousand_users_are_counted_within_their_error() -> None:
    """A fixed seed; five standard errors have a false-rejection rate below 1e-6."""
    generator = np.random.default_rng(6)
    priors = generator.random(10_000)
    values = (generator.random(10_000) < priors).astype(int)
    users = public(priors)
    reports = users.privatize(values, sf.InsecureSeeded(1))
    for method in ("mmse", "unbiased"):
        found = users.estimate(reports, method)
        assert abs(found.value - values.sum()) < 5 * found.standard_error
    wrong = public(priors * 0.9).estimate(reports)  # power: priors that are a tenth too small are noticed
    assert abs(wrong.value - values.sum()) > 5 * wrong.standard_error


# -- declarations and refusals ---------------------------------------------------------------------------------


def test_priors_must_be_declared() -> None:
    for declared in DECLARATIONS:
        assert sf.LocalPriors([0.5], 1, prior_source=declared).prior_source == declared
    for refused in (None, "private", "history", "learnt"):
        with pytest.raises(InvalidInput, match=r"prior_source must be one of 'public', 'cohort', 'released'"):
            sf.LocalPriors([0.5], 1, prior_source=refused)
    with pytest.raises(InvalidInput, match="A report reveals its prior"):
        sf.LocalPriors([0.5], 1)


@pytest.mark.parametrize(
    ("build", "culprit"),
    [
        (lambda: public([0.5, 1.2, 0.1]), r"priors\[1\] must be in"),
        (lambda: public([0.5, -0.1]), r"priors\[1\] must be in"),
        (lambda: public([math.nan]), r"priors\[0\] must be in"),
        (lambda: public([[0.5, 0.5]]), "be a sequence of at least one number"),
        (lambda: public([]), "be a sequence of at least one number"),
        (lambda: public(0.5), "be a sequence of at least one number"),
        (lambda: public(["x"]), "be a sequence of numbers in"),
        (lambda: public([0.5], -1), "epsilon must be at least 0"),
        (lambda: public([0.5], domain=sf.Domain.range(3)), "domain must have exactly two values"),
        (lambda: public([0.5]).privatize([0, 1]), "values must have 1 entry, one per user; got 2"),
        (lambda: public([0.5]).privatize([7]), "7"),
        (lambda: public([0.5]).estimate([2]), "reports must be 0 or 1"),
        (lambda: public([0.5]).estimate([0.5]), "reports must be 0 or 1"),
        (lambda: public([0.5]).estimate([0, 1]), "reports must have 1 entry, one per user"),
        (lambda: public([0.5]).estimate([0], "best"), "method must be one of mmse, unbiased"),
        (
            lambda: public([0.5], 0).estimate([0], "unbiased"),
            "not be 'unbiased', because the report of some user is independent of the value",
        ),
        (lambda: public([0.5]).error_if([0.5, 0.5]), "true_priors must have 1 entry, one per user"),
        (lambda: public([0.5]).error_if([2]), r"true_priors\[0\] must be in"),
    ],
)
def test_bad_input_is_refused_by_name(build: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        build()


# -- a set of priors -------------------------------------------------------------------------------------------


def level_at(mechanism: Mechanism, prior: Any) -> float:
    return mechanism.channel().worst(sf.Prior(mechanism.domain, prior, 0)).excess


def test_an_interval_of_priors_is_as_bad_as_its_worst_end() -> None:
    mechanism = PriorBinary(COIN, ["0.9", "0.1"], 1)
    box = sf.PriorBox.around(COIN, ["0.9", "0.1"], "0.02")
    found = sf.audit_priors(mechanism, box, 1)
    assert not found.holds
    assert found.prior == (Fraction("0.92"), Fraction("0.08"))
    grid = [Fraction(8, 100) + Fraction(4 * i, 100 * 200) for i in range(201)]
    assert found.epsilon == pytest.approx(max(level_at(mechanism, [1 - p, p]) for p in grid), rel=1e-12)
    assert sf.audit_priors(mechanism, box, found.epsilon + 1e-9).holds
    assert not sf.audit_priors(mechanism, box, found.epsilon - 1e-9).holds
    assert sf.verify(found.certificate) == found.certificate
    # At the prior itself the level is kept, and classical LDP is kept at every prior.
    assert sf.audit_priors(mechanism, [["0.9", "0.1"]], 1).holds
    assert sf.audit_priors(RandomizedResponse(COIN, 1), sf.PriorBox(COIN, [0, 0], [1, 1]), 1).holds
    assert sf.audit_priors(mechanism, sf.PriorBox(COIN, [0, 0], [1, 1]), 1).epsilon == pytest.approx(
        mechanism.channel().worst(sf.Uniform(COIN, 0)).excess  # any prior at all: the level of classical LDP
    )


@given(st.integers(2, 4), st.data())
def test_a_list_of_priors_stands_for_its_mixtures_and_a_box_for_its_points(k: int, data: st.DataObject) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    domain = sf.Domain.range(k)
    mechanism = RandomizedResponse(domain, data.draw(st.sampled_from(["0.5", "ln 3", "inf"])))
    listed = [[Fraction(int(n), 100) for n in generator.multinomial(100, np.ones(k) / k)] for _ in range(3)]
    centre = listed[0]
    box = sf.PriorBox.around(domain, centre, Fraction(1, 10))
    for side in ("both", "upper", "lower"):
        in_list = sf.audit_priors(mechanism, listed, 1, side)
        in_box = sf.audit_priors(mechanism, box, 1, side)
        law = mechanism.channel()
        for _ in range(5):
            weights = [Fraction(int(n), 20) for n in generator.multinomial(20, np.ones(3) / 3)]
            mixed = [sum((w * p[x] for w, p in zip(weights, listed, strict=True)), Fraction(0)) for x in range(k)]
            assert law.worst(sf.Prior(domain, mixed, 0, side)).excess <= in_list.epsilon + 1e-12
            x, y = generator.permutation(k)[:2]
            moved = list(centre)
            shift = min(Fraction(int(generator.integers(0, 11)), 100), moved[x])
            moved[x], moved[y] = moved[x] - shift, moved[y] + shift
            if moved[y] <= 1:
                assert law.worst(sf.Prior(domain, moved, 0, side)).excess <= in_box.epsilon + 1e-12
        for found in (in_list, in_box):
            # The level is that of a prior of the set.
            assert law.worst(sf.Prior(domain, found.prior, 0, side)).excess == pytest.approx(found.epsilon)


@pytest.mark.parametrize(
    ("build", "culprit"),
    [
        (lambda: sf.PriorBox(COIN, [0.5], [1, 1]), "low must have 2 entries"),
        (lambda: sf.PriorBox(COIN, [0.5, 0.2], [0.4, 1]), "low of 'no' must be at most its high"),
        (lambda: sf.PriorBox(COIN, [0.9, 0.2], [1, 1]), r"have sums of at most one \(low\) and at least one \(high\)"),
        (lambda: sf.PriorBox(COIN, [0, 0], [0.4, 0.4]), r"have sums of at most one \(low\) and at least one \(high\)"),
        (lambda: sf.PriorBox(COIN, [-1, 0], [1, 1]), "low of 'no' must be in"),
        (lambda: sf.PriorBox(COIN, ["x", 0], [1, 1]), "low of 'no' must be a number"),
        (lambda: sf.PriorBox.around(COIN, [0.5, 0.5], -1), "radius must be at least 0"),
        (lambda: PriorMixtures(COIN, []), "have at least one prior"),
        (lambda: PriorMixtures(COIN, [[0.5, 0.4]]), "prior 0 must sum to one"),
        (
            lambda: sf.audit_priors(RandomizedResponse(COIN, 1), sf.PriorBox(sf.Domain([0, 1]), [0, 0], [1, 1]), 1),
            "be over the mechanism's domain",
        ),
    ],
)
def test_bad_sets_of_priors_are_refused(build: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        build()


# -- learning a prior --------------------------------------------------------------------------------------------


def past(k: int, n: int, seed: int, epsilon: str = "1") -> tuple[Any, npt.NDArray[np.float64]]:
    """An estimate from a past collection, and the truth that its values were drawn from."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.ones(k))
    domain = sf.Domain.range(k)
    mechanism = RandomizedResponse(domain, epsilon)
    reports = sf.privatize(mechanism, generator.choice(k, n, p=truth), sf.InsecureSeeded(seed))
    return sf.estimate(mechanism, sf.aggregate(mechanism, reports)), truth


def test_a_learnt_prior_is_a_distribution_and_declared_released() -> None:
    estimate, truth = past(5, 20_000, 4)
    learnt = sf.learn_prior(estimate)
    assert learnt.prior_source == "released"
    assert sum(learnt.prior) == 1
    assert all(0 <= p <= 1 for p in learnt.prior)
    assert 0 < learnt.shrinkage < 0.1
    assert learnt.policy(1) == sf.Prior(estimate.domain, learnt.prior, 1)
    assert np.abs(np.array([float(p) for p in learnt.prior]) - truth).max() < 0.05
    assert all(
        low <= p <= high for low, p, high in zip(learnt.likely.low, learnt.prior, learnt.likely.high, strict=True)
    )
    users = sf.LocalPriors([float(learnt.prior[0])], 1, prior_source=learnt.prior_source)
    assert users.prior_source == "released"


def test_few_reports_teach_little() -> None:
    """What is noise is drawn to the distribution leant on, nearly wholly if nearly all may be noise."""
    few, _ = past(5, 10, 1, "0.1")
    assert few.unbiased.max() > 10  # far out of [0, 1]: ten reports at ε = 0.1
    assert 0.9 < sf.learn_prior(few).shrinkage < 1
    assert [float(p) for p in sf.learn_prior(few).prior] == pytest.approx([0.2] * 5, abs=0.05)
    leaning = sf.learn_prior(few, towards=[1, 0, 0, 0, 0])
    assert float(leaning.prior[0]) > 0.9
    assert sum(leaning.prior) == 1
    clear, _ = past(3, 50, 1, "inf")
    assert min(sf.learn_prior(clear).prior) > 0
    shrinkages = [sf.learn_prior(past(5, n, 2)[0]).shrinkage for n in (300, 3000, 30_000, 300_000)]
    assert shrinkages == sorted(shrinkages, reverse=True)


def test_shrinking_comes_closer_to_the_truth_on_average() -> None:
    """Over 40 fixed collections; the nearest distribution alone against what is drawn to the uniform first."""
    plain = drawn = 0.0
    for seed in range(40):
        estimate, truth = past(8, 400, seed)
        learnt = np.array([float(p) for p in sf.learn_prior(estimate).prior])
        plain += float(np.sum((estimate.nearest - truth) ** 2))
        drawn += float(np.sum((learnt - truth) ** 2))
    assert drawn < plain


def test_what_a_wrong_prior_costs_is_known_beforehand() -> None:
    """The level against every prior that the past does not rule out, by the exact audit."""
    estimate, truth = past(2, 5000, 9)
    learnt = sf.learn_prior(estimate)
    mechanism = binary_for_policy(learnt.policy(1))
    found = sf.audit_priors(mechanism, learnt.likely, 1)
    assert not found.holds
    assert 1 < found.epsilon < 1.5
    true = [Fraction(float(truth[0])), 1 - Fraction(float(truth[0]))]
    assert learnt.likely.low[0] <= true[0] <= learnt.likely.high[0]
    assert level_at(mechanism, true) <= found.epsilon
    # A smaller ε by design makes up for it.
    cautious = binary_for_policy(learnt.policy("0.7"))
    assert sf.audit_priors(cautious, learnt.likely, 1).holds


def test_only_an_estimate_teaches() -> None:
    with pytest.raises(InvalidInput, match=r"be an Estimate; got .* from private reports"):
        sf.learn_prior([0.5, 0.5])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="towards must sum to one"):
        sf.learn_prior(past(2, 100, 1)[0], towards=[0.5, 0.4])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mmse", "unbiased"])
def test_intervals_of_a_total_with_few_errors_hold_the_truth(method: str) -> None:
    """At ε = 6 half a person is misreported on average: ± 1.96 standard errors hold the truth in 87% or less.

    80 collections at fixed seeds; a coverage of 0.95 is rejected with probability below 1e-6.
    """
    generator = np.random.default_rng(5)
    priors = generator.random(200)
    users = sf.LocalPriors(priors, 6, prior_source="public")
    held, normal = 0, 0
    for seed in range(80):
        values = (generator.random(200) < priors).astype(np.int64)
        total = users.estimate(users.privatize(values, sf.InsecureSeeded(seed)), method)
        low, high = total.interval()
        held += low <= values.sum() <= high
        normal += abs(total.value - values.sum()) <= 1.96 * total.standard_error
        assert (total.p_value(float(values.sum())) > 0.05) == (low <= values.sum() <= high)
        np.testing.assert_allclose(total.frequency.interval(), np.array([low, high]) / 200)
    assert held >= 63  # 62 or fewer of 80 have a probability below 1e-6 at 95%
    assert held > normal


def test_a_total_of_many_errors_has_a_normal_interval() -> None:
    users = sf.LocalPriors(np.full(20_000, 0.5), 1, prior_source="public")
    total = users.estimate(users.privatize([0] * 20_000, sf.InsecureSeeded(1)))
    low, high = total.interval()
    assert high - low == pytest.approx(2 * 1.959964 * total.standard_error, rel=1e-6)
    both = total.merge(total)
    assert both.interval()[1] - both.value == pytest.approx(math.sqrt(2) * (high - total.value), rel=1e-6)


def test_shares_and_differences_of_totals_keep_the_law_of_their_events() -> None:
    users = sf.LocalPriors(np.linspace(0.1, 0.9, 50), 6, prior_source="public")
    total = users.estimate(users.privatize([0, 1] * 25, sf.InsecureSeeded(1)))
    share = total.frequency
    np.testing.assert_allclose(share.interval(), np.array(total.interval()) / 50)
    assert not hasattr(share, "merge")
    difference = share - share
    assert difference.value == 0
    assert difference.interval()[1] == pytest.approx(-difference.interval()[0], rel=1e-3)
    # At ε = 6 half an event is expected: the interval holds a whole one, which two standard errors do not.
    assert difference.interval()[1] > 1 / 50 > 1.96 * difference.standard_error / 2
