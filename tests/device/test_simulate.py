"""Simulation: the truth is drawn as asked, errors are what the mechanisms predict, and seeds repeat."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.compiler.predictions import TRUTHS
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.parts.high_low import HighLowCyclic, HighLowHadamard, HighLowSubset
from sfumato.mechanisms.registry import count_law_for
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

DOMAIN = sf.Domain.range(12)


@pytest.mark.parametrize("truth", sorted(TRUTHS))
def test_people_follow_the_truth(truth: str) -> None:
    """Without noise the estimate is the sample: χ² against the truth at α = 1e-6, and a truth 5% off is rejected."""
    n = 400_000
    found = sf.simulate(RandomizedResponse(DOMAIN, "inf"), n=n, truth=truth, seed=2)
    observed = found.estimate.frequencies * n
    limit = stats.chi2.isf(1e-6, len(DOMAIN) - 1)

    def distance(expected: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(np.sum((observed - expected) ** 2 / expected))

    assert distance(found.truth * n) < limit
    wrong = found.truth * np.where(np.arange(len(DOMAIN)) == 0, 0.95, 1)
    assert distance(wrong / wrong.sum() * n) > limit


def test_errors_are_those_predicted() -> None:
    """The mean squared error of 200 seeded collections has a relative deviation below 4%; 25% is beyond α = 1e-6."""
    runs = [sf.simulate(HadamardResponse(DOMAIN, 1), n=20_000, truth="zipf", seed=seed) for seed in range(200)]
    assert np.mean([run.l2 for run in runs]) == pytest.approx(runs[0].predicted_l2, rel=0.25)
    assert np.mean([run.tv for run in runs]) == pytest.approx(runs[0].predicted_tv, rel=0.1)
    assert 0.92 < np.mean([run.coverage for run in runs]) < 0.98


@pytest.mark.slow
def test_a_policy_is_designed_for_and_progress_is_told() -> None:
    policy = sf.Uniform(DOMAIN, 1)
    seen: list[tuple[int, int | None]] = []
    found = sf.simulate(policy, n=700_000, truth=[1 / 12] * 12, progress=lambda at: seen.append((at.done, at.total)))
    assert found.mechanism == sf.design(policy)
    assert found.estimate.n == 700_000
    assert seen[-1] == (700_000, 700_000)
    assert len(seen) > 1


def test_the_same_seed_gives_the_same_collection() -> None:
    first, second, other = (sf.simulate(sf.Uniform(DOMAIN, 1), n=1000, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.estimate.frequencies, second.estimate.frequencies)
    assert not np.array_equal(first.estimate.frequencies, other.estimate.frequencies)


def test_bad_questions_are_refused() -> None:
    policy = sf.Uniform(DOMAIN, 1)
    with pytest.raises(InvalidInput, match=r"simulate: n must be a whole number from 1 to 2\^53"):
        sf.simulate(policy, n=0)
    with pytest.raises(
        InvalidInput, match=r"truth must be a distribution, or one of uniform, zipf, geometric; got 'flat'"
    ):
        sf.simulate(policy, n=10, truth="flat")
    with pytest.raises(InvalidInput, match="simulate: truth must have 12 entries"):
        sf.simulate(policy, n=10, truth=[1.0])
    unfit: list[tuple[Any, str]] = [
        (None, "truth must be a distribution, or one of uniform, zipf, geometric; got None"),
        ([1.0] * 12, "truth must be probabilities that sum to one"),
        (["a"] * 12, "truth must be 12 probabilities"),
        ({3: 0.5}, "truth must be probabilities that sum to one"),
        ({3: "all"}, "truth must be 12 probabilities"),
        ({12: 1}, "each label of truth must be an int from 0 to 11; got 12"),
    ]
    for truth, culprit in unfit:
        with pytest.raises(InvalidInput, match=culprit):
            sf.simulate(policy, n=10, truth=truth)
    for n in (None, "100", math.nan, math.inf, 2.5, True, 10**30):
        with pytest.raises(InvalidInput, match=r"simulate: n must be a whole number from 1 to 2\^53"):
            sf.simulate(policy, n=n)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="policy_or_mechanism must be a Policy or a Mechanism; got Domain"):
        sf.simulate(DOMAIN, n=10)  # type: ignore[arg-type]


def test_a_truth_may_be_told_by_value() -> None:
    policy = sf.Uniform(DOMAIN, 1)
    listed = sf.simulate(policy, n=1000, truth=[0.0, 0.25, *[0.0] * 9, 0.75])
    named = sf.simulate(policy, n=1e3, truth={11: 0.75, 1: 0.25})  # type: ignore[arg-type]
    assert np.array_equal(named.truth, listed.truth)
    assert np.array_equal(named.estimate.frequencies, listed.estimate.frequencies)
    assert named.estimate.n == 1000


# -- counts from their own law -----------------------------------------------------------------------------


class EveryPath:
    """A generator whose counts are as a path says; what it leaves open is zero. ``options`` counts the choices."""

    def __init__(self, path: list[int]) -> None:
        self.path, self.options, self.probability = path, [0] * 0, 1.0

    def binomial(self, n: Any, p: Any) -> Any:
        trials, chances = np.broadcast_arrays(np.asarray(n, np.int64), np.asarray(p, np.float64))
        counts = np.where(chances >= 1, trials, 0)
        for place in np.ndindex(trials.shape):
            if trials[place] > 0 and 0 < chances[place] < 1:
                step = len(self.options)
                taken = self.path[step] if step < len(self.path) else 0
                self.options.append(int(trials[place]) + 1)
                self.probability *= float(stats.binom.pmf(taken, trials[place], chances[place]))
                counts[place] = taken
        return counts

    def multinomial(self, n: int, pvals: Any) -> Any:
        """One outcome after the other, each among the people and the probability that are left."""
        counts = np.zeros(len(pvals), np.int64)
        for place, left in enumerate(np.cumsum(pvals[::-1])[::-1]):
            if left > 0:
                counts[place] = self.binomial(n - counts.sum(), min(pvals[place] / left, 1.0))
        return counts


def every_count(mechanism: Mechanism, n: int, truth: Any) -> Iterator[tuple[tuple[int, ...], float]]:
    """All paths through the draws of the counts' law: the counts they end at, with their probabilities."""
    law = count_law_for(mechanism)
    assert law is not None
    path: list[int] | None = []
    while path is not None:
        draws = EveryPath(path)
        yield tuple(law(cast(Any, draws), n, truth).tolist()), draws.probability
        path = path + [0] * (len(draws.options) - len(path))
        while path and path[-1] + 1 == draws.options[len(path) - 1]:
            path.pop()
        path = [*path[:-1], path[-1] + 1] if path else None


def counts_of_each(mechanism: Mechanism, truth: Any) -> dict[tuple[int, ...], float]:
    """The law of the counts of one report, from the mechanism's stated law."""
    law: dict[tuple[int, ...], float] = defaultdict(float)
    weights = [Fraction(p) for p in truth.tolist()]
    for y in mechanism.reports():
        serial = np.frombuffer(mechanism.report_format.encode(y), np.uint8)
        report = (
            np.array([y], mechanism.report_format.dtype)
            if mechanism.report_format.encoding == "index"
            else serial[None]
        )
        likelihood = sum((w * mechanism.probability(y, x) for x, w in enumerate(weights)), Fraction(0))
        law[tuple(sf.aggregate(mechanism, report).counts.tolist())] += float(likelihood)
    return law


FIVE = sf.Domain.range(5)
LAWS: list[Mechanism] = [
    RandomizedResponse(FIVE, 1),
    HadamardResponse(FIVE, 1, block_size=4),
    CyclicDesign(FIVE, 1, design=CyclicDesign.singer(2, 1, 3)),
    TableMechanism.from_matrix(sf.Domain.range(2), [[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]]),
    UnaryEncoding(sf.Domain.range(3), 1),
    UnaryEncoding(sf.Domain.range(3), 1, optimized=True),
    SubsetSelection(sf.Domain.range(4), 1, 2),
    SubsetSelection(FIVE, 1, 3),
    SubsetSelection(sf.Domain.range(4), 1, 1),
    HighLowSubset(FIVE, [0, 1, 3], 1, 2),
    HighLowHadamard(FIVE, [1, 2, 4], 1),
    HighLowCyclic(FIVE, [1, 2, 4], 1),
    BlockMechanism.for_policy(sf.Blocks(FIVE, [0, 0, 0, 1, 1], 1), "subset"),
    BlockMechanism.for_policy(sf.Blocks(FIVE, [0, 1, 0, 1, 0], 1), "hadamard"),
    BlockMechanism.for_policy(sf.Blocks(FIVE, [0, 1, 0, 1, 0], 1), "cyclic"),
]


@pytest.mark.parametrize("mechanism", LAWS, ids=lambda mechanism: f"{mechanism.name}, {len(mechanism.domain)}")
def test_the_law_of_the_counts_is_that_of_counted_reports(mechanism: Mechanism) -> None:
    """Every way to draw the counts of two people, against every two reports that two people can make."""
    size = len(mechanism.domain)
    truth = np.array([8.0, 4, 2, 1, 1][:size])
    truth[-1] += 16 - truth.sum()
    truth /= 16
    drawn: dict[tuple[int, ...], float] = defaultdict(float)
    for counts, probability in every_count(mechanism, 2, truth):
        drawn[counts] += probability
    one = counts_of_each(mechanism, truth)
    two: dict[tuple[int, ...], float] = defaultdict(float)
    for first, p in one.items():
        for second, q in one.items():
            two[tuple(a + b for a, b in zip(first, second, strict=True))] += p * q
    assert math.fsum(drawn.values()) == pytest.approx(1, abs=1e-12)
    for counts in {*drawn, *two}:
        assert drawn[counts] == pytest.approx(two[counts], abs=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [kind(DOMAIN, 1) for kind in (RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse, CyclicDesign)],
    ids=lambda mechanism: mechanism.name,
)
def test_a_billion_people_have_the_predicted_error(mechanism: Mechanism) -> None:
    """The mean squared error of 100 collections has a relative deviation of 5%; 35% is beyond α = 1e-6."""
    runs = [sf.simulate(mechanism, n=10**9, truth="zipf", seed=seed) for seed in range(100)]
    assert not any(run.one_by_one for run in runs)
    assert runs[0].how == "the counts were drawn from their exact distribution"
    assert np.mean([run.l2 for run in runs]) == pytest.approx(runs[0].predicted_l2, rel=0.35)
    assert 0.91 < np.mean([run.coverage for run in runs]) < 0.99


def test_a_mechanism_without_a_law_of_counts_is_simulated_one_by_one() -> None:
    composed = ComposedSubsets(sf.Domain.range(6), "aaabbb", 1, 2)
    assert sf.simulate(composed, n=1000).one_by_one
    message = "True or None, because the distribution of the counts of composed-subsets is not known"
    with pytest.raises(InvalidInput, match=message):
        sf.simulate(composed, n=1000, one_by_one=False)
    assert sf.simulate(RandomizedResponse(DOMAIN, 1), n=1000, one_by_one=False).how.startswith("the counts were drawn")
