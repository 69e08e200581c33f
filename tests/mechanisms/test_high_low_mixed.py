"""Subsets of two sizes: the contract, the best mixture against every other one, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Epsilon
from sfumato.errors import InvalidInput
from sfumato.mechanisms import HighLowMixedSubsets, HighLowSubset, Mechanism, NotIdentifiable
from sfumato.mechanisms.parts.sizes import Information, best_high_low_mixture
from sfumato.policy import Policy
from sfumato.testing import MechanismContract

R = sf.Domain.range
HALF = 2**63


class TestTwoSizes(MechanismContract):
    """Neighbouring sizes, below the number of sensitive values except at two of them."""

    cases = 16
    sizes = range(3, 7)

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)[: max(2, len(domain) - 2)]

    def pair(self, count: int) -> tuple[int, int]:
        return (1, 2) if count < 4 else (2, 3)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> Policy:
        return sf.HighLow(domain, self.sensitive(domain), epsilon)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        sensitive = self.sensitive(domain)
        return HighLowMixedSubsets(domain, sensitive, epsilon, self.pair(len(sensitive)), weight=HALF // 3, share="1/3")


class TestTheSetOfAll(TestTwoSizes):
    """The greater set contains all sensitive values."""

    cases = 8
    sizes = range(3, 6)

    def sensitive(self, domain: sf.Domain) -> Sequence[object]:
        return list(domain)[1:]

    def pair(self, count: int) -> tuple[int, int]:
        return 1, count


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-12", "1e-300", "50", "1000", "inf"])
def test_extreme_epsilons_have_a_bound(epsilon: str) -> None:
    best = best_high_low_mixture(3, 2, Epsilon(epsilon))
    mixed = HighLowMixedSubsets(R(5), range(3), epsilon)
    assert 0 < best.bound <= mixed.worst_risk(1) * (1 + 1e-9)
    if epsilon != "1e-300":
        assert mixed.worst_risk(1) <= best.bound * (1 + 1e-6)


@pytest.mark.parametrize(("s", "h"), [(2, 1), (2, 50), (3, 4), (4, 2000), (8, 50), (20, 7), (2000, 3000)])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "2", "5"])
def test_the_worst_case_is_the_least_possible(s: int, h: int, epsilon: str) -> None:
    """The greatest error over all distributions equals the bound on every mechanism, from the dual problem."""
    best = best_high_low_mixture(s, h, Epsilon(epsilon))
    domain = R(s + h)
    mixed = HighLowMixedSubsets(domain, range(s), epsilon)
    assert best.bound * (1 - 1e-9) <= mixed.worst_risk(1) <= best.bound * (1 + 1e-6)
    share = float(mixed.share)
    least_favourable = np.where(np.arange(s + h) < s, share / s, (1 - share) / h)
    assert mixed.worst_risk(1) == pytest.approx(mixed.risk(1, least_favourable), rel=1e-6)
    one_size = min(HighLowSubset(domain, range(s), epsilon, d).worst_risk(1) for d in range(1, min(s, 5)))
    assert mixed.worst_risk(1) <= one_size * (1 + 1e-9)


def test_two_sizes_are_better_than_one_where_it_matters() -> None:
    domain = R(54)
    mixed = HighLowMixedSubsets(domain, range(4), 1)
    one_size = min(HighLowSubset(domain, range(4), 1, d).worst_risk(1) for d in range(1, 4))
    assert mixed.sizes == (1, 2)
    assert one_size / mixed.worst_risk(1) == pytest.approx(1.0695, abs=1e-4)


@pytest.mark.parametrize(("s", "h", "epsilon"), [(2, 3, "1"), (3, 5, "1.25"), (5, 4, "0.3"), (6, 20, "2"), (7, 2, "3")])
def test_no_mixture_of_any_sizes_is_below_the_bound(s: int, h: int, epsilon: str) -> None:
    """Random weights of all sizes, and all pairs of sizes, at the least favourable share."""
    best, odds = best_high_low_mixture(s, h, Epsilon(epsilon)), math.expm1(float(epsilon))
    members = np.arange(1.0, s + 1)
    generator = np.random.default_rng(s)
    weights = [generator.dirichlet(np.full(s, 0.3)) for _ in range(200)]
    for (i, j), weight in itertools.product(itertools.combinations(range(s), 2), np.linspace(0.01, 0.99, 30)):
        weights.append(np.eye(s)[i] * (1 - weight) + np.eye(s)[j] * weight)
    columns = np.array(weights).T
    shape = np.ones(columns.shape)
    gammas = (odds * members / (odds * members + s))[:, None] * shape
    risks = Information(s, h, float(best.share), columns, (members / s)[:, None] * shape, gammas).risk
    assert risks.min() >= best.bound * (1 - 1e-9)


def test_a_stated_share_is_the_distribution_of_least_error() -> None:
    domain, sensitive = R(10), range(4)
    stated = HighLowMixedSubsets(domain, sensitive, 1, share=Fraction(4, 10))
    assert stated.risk(1) < HighLowMixedSubsets(domain, sensitive, 1).risk(1)
    assert stated.risk(1) < HighLowSubset(domain, sensitive, 1).risk(1)
    # The sizes stay, and the estimator for another share is worse at this one.
    other = HighLowMixedSubsets(domain, sensitive, 1, stated.sizes, weight=stated.weight, share="9/10")
    assert other.matrix().tolist() == stated.matrix().tolist()
    assert stated.risk(1) < other.risk(1)


def test_a_law_that_does_not_distinguish_values_has_no_estimate() -> None:
    no_size = HighLowMixedSubsets(R(5), [0, 1], 1, (1, 2), weight=2**64, share="1/2")
    for mechanism in (no_size, HighLowMixedSubsets(R(5), [0, 1, 2], 0)):
        assert mechanism.worst_risk(1) == math.inf
        with pytest.raises(NotIdentifiable):
            _ = mechanism.estimator


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitive": [0]}, "at least two sensitive values and one harmless value"),
        ({"sensitive": range(6)}, "at least two sensitive values and one harmless value"),
        ({"sizes": (2, 2), "weight": HALF}, "ascending order"),
        ({"sizes": (1, 5), "weight": HALF}, r"be an integer in \[2, 4\]"),
        ({"sizes": (1,), "weight": HALF}, "be 2 integers"),
        ({"sizes": (3, 4)}, "weight must be passed"),
        ({"weight": 2**64 + 1}, "weight must be an integer"),
        ({"share": 1}, "strictly between 0 and 1"),
        ({"share": "half"}, "strictly between 0 and 1"),
        ({"coins": 3}, "be a pair"),
        ({"planes": 9}, "planes must be an integer"),
    ],
)
def test_parameters_that_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        HighLowMixedSubsets(R(6), **{"sensitive": range(4), "epsilon": 1} | arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [(1, 2), (2, 3)])
def test_a_sum_has_the_law_of_its_scores(sizes: tuple[int, int]) -> None:
    mechanism = HighLowMixedSubsets(R(5), range(3), 1, sizes, weight=2**63, share=Fraction(1, 2))
    estimator, form = mechanism.estimator, mechanism.report_format
    generator = np.random.default_rng(1)
    weights, parts, points = generator.normal(size=5), generator.dirichlet(np.ones(5), 3), np.linspace(-2, 2, 7)
    reports = np.frombuffer(b"".join(map(form.encode, mechanism.reports())), np.uint8).reshape(mechanism.outputs, -1)
    counts = [sf.aggregate(mechanism, report[None]).counts for report in reports]
    scores = np.array([weights @ estimator.frequencies(count.astype(float)) for count in counts])
    law = estimator.scores(weights)
    assert law is not None
    expected = parts @ mechanism.matrix() @ np.exp(1j * np.outer(scores, points))
    np.testing.assert_allclose(law.transform(parts, points), expected, rtol=1e-9, atol=1e-12)
