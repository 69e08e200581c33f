"""Small and extreme policies: every design obeys, states an honest value, or is refused in a sentence."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.compiler import planning as _plan
from sfumato.compiler.solvers import optimization as _optimal
from sfumato.errors import InvalidInput, NoAnswer, SolverFailed
from support.clocks import deadline_after

LEVELS = ["0", "1e-300", "1e-12", "1e-6", "1", "50", "1e5", "inf"]


def product(secrets: int, others: int) -> sf.Domain:
    return sf.Domain.product(S=range(secrets), U=range(others))


def small_policies(epsilon: str) -> Iterator[sf.Policy]:
    for k in (1, 3):
        domain = sf.Domain.range(k)
        yield sf.Uniform(domain, epsilon)
        yield sf.Metric(domain, "absolute", epsilon)
        yield sf.Pairwise(domain, [[0 if x == z else epsilon if x < z else 1 for z in range(k)] for x in range(k)])
        for side, first in itertools.product(("both", "upper", "lower"), (Fraction(1, k), Fraction(1))):
            prior = [first, *[(1 - first) / max(k - 1, 1)] * (k - 1)]
            yield sf.Prior(domain, prior, epsilon, side=side)
    for secrets, others in ((2, 1), (2, 2)):
        domain, cells = product(secrets, others), secrets * others
        counts = (3 * np.arange(cells) % 5).reshape(secrets, others) + np.eye(secrets, others, dtype=int)
        total = int(counts.sum())
        yield sf.Secret(domain, "S", epsilon, sf.Known([[Fraction(n, total) for n in row] for row in counts.tolist()]))
        yield sf.Secret(domain, "S", epsilon, sf.Anything())
        yield sf.Secret(domain, "S", epsilon, sf.AtLeast([["0", "1/3"][:others], ["1/3"] * others, ["1"]][:secrets]))
        yield sf.Secret(domain, "S", epsilon, sf.ChiSquare((10 * counts).tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", LEVELS)
def test_small_policies_have_a_mechanism_or_a_sentence(epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_optimal, _plan):
        monkeypatch.setattr(module, "Deadline", deadline_after(500))
    refusals = []
    for policy in small_policies(epsilon):
        k = len(policy.domain)
        for utility in (
            "estimation",
            "worst-estimation",
            "mutual-information",
            sf.SquaredError(range(k)),
            sf.ExpectedLoss(1 - np.eye(k)),
        ):
            try:
                optimum = sf.optimal(policy, utility, max_seconds=0.2)
            except NoAnswer as error:
                refusals.append(str(error))
                continue
            assert sf.audit(optimum.mechanism, policy).holds, (policy, utility)
            assert not math.isnan(optimum.value + (0 if math.isinf(optimum.bound) else optimum.bound))
            beyond = (optimum.bound - optimum.value) * (1 if optimum.smaller_is_better else -1)
            assert math.isinf(optimum.bound) or beyond <= 1e-6 * abs(optimum.value) + 1e-12, (policy, utility)
            if k == 3 and utility in ("estimation", "mutual-information"):  # plans by risk and by another utility
                made = sf.design(policy, utility=utility, max_seconds=0.2)
                assert sf.audit(made, policy).holds, (policy, utility)
    assert all(re.search("near 0|linear program|did not finish", refusal) for refusal in refusals)


def test_what_rounding_left_of_zero_is_no_probability() -> None:
    policy = sf.Secret(product(2, 3), "S", "ln 3", sf.AtLeast([["1/4"] * 3, ["0", "0", "1/4"]]))
    made = sf.design(policy, utility="worst-estimation")
    assert sf.audit(made, policy).holds
    assert made.worst_risk(1) == pytest.approx(sf.optimal(policy, "worst-estimation").bound, rel=1e-4)


@pytest.mark.parametrize("counts", [[[32], [42]], [[5, 0], [7, 0]], [[5, 3], [7, 0], [0, 0]]])
@pytest.mark.parametrize("epsilon", ["0", "1e-12"])
def test_a_secret_of_level_zero_under_a_confidence_set_reveals_nothing(counts: list[list[int]], epsilon: str) -> None:
    policy = sf.Secret(product(len(counts), len(counts[0])), "S", epsilon, sf.ChiSquare(counts))
    told = sf.optimal(policy, "mutual-information")
    assert (told.value, told.status) == (0.0, "optimal")
    assert told.bound < 1e-15
    if epsilon == "0":
        assert sf.optimal(policy).value == math.inf
    else:
        with pytest.raises(SolverFailed, match="near 0"):
            sf.optimal(policy)


def test_one_value_is_refused_by_what_was_asked_for() -> None:
    for utility in ("estimation", "mutual-information"):
        with pytest.raises(InvalidInput, match="design: the domain must have at least two values"):
            sf.design(sf.Uniform(sf.Domain.range(1), 1), utility=utility)


@pytest.mark.parametrize("epsilon", ["1e-3", "1e-5"])
def test_the_worst_case_is_found_where_little_is_told(epsilon: str) -> None:
    """The closed form of randomized response among two values: the worst distribution is uniform."""
    for policy in (sf.Uniform(sf.Domain.range(2), epsilon), sf.Uniform(sf.Domain.range(4), epsilon)):
        worst = sf.optimal(policy, "worst-estimation")
        assert worst.status == "optimal"
        assert worst.value == pytest.approx(sf.plan(policy, 1).best.risk, rel=1e-3)


def test_an_error_is_bounded_by_that_of_no_noise_at_least() -> None:
    optimum = sf.optimal(sf.HighLow(sf.Domain.range(2), [0], "1e-6"), "worst-estimation")
    assert optimum.bound >= 1 - float(optimum.prior @ optimum.prior)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("counted_time")
@pytest.mark.parametrize("p", [[0, 0, 1, 0], [0.4, 0.35, 0.25, 0]])
def test_shares_of_zero_break_no_search(p: list[float]) -> None:
    chi_square = sf.Secret(product(2, 2), "S", 1, sf.ChiSquare([[22, 40], [48, 13]]))
    for policy in (chi_square, sf.Secret(product(2, 2), "S", 1, sf.Known([["1/4", "1/4"], ["1/3", "1/6"]]))):
        for utility in ("estimation", "mutual-information", sf.SquaredError(range(4))):
            optimum = sf.optimal(policy, utility, prior=p, max_seconds=0.5)
            assert sf.audit(optimum.mechanism, policy).holds
            assert not math.isnan(optimum.bound)
        assert sf.audit(sf.design(policy, prior=p, max_seconds=0.5), policy).holds
    alone = sf.Secret(product(3, 1), "S", 5, sf.ChiSquare([[12], [3], [29]]))
    assert math.isfinite(sf.optimal(alone, prior=[0, 1, 0], max_seconds=0.5).bound)
    assert sf.plan(sf.Metric(sf.Domain.range(3), "absolute", 20), 10, prior=[0, 1, 0]).reason
