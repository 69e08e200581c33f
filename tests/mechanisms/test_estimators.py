"""One estimator per mechanism states all its moments: they agree with one another and with the exact law."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sfumato as sf
from sfumato._core.types import Floats
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.matrix import MatrixEstimator, efficient_estimator
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.parts.high_low import HighLowCyclic, HighLowHadamard, HighLowSubset, UtilityOptimizedRR
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.binary import BinaryOptimal
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.waves.mechanism import Waves

R = sf.Domain.range
EPSILONS = st.sampled_from(["0.1", "0.7", "ln 3", "2", "5", "inf"])
FINITE = st.sampled_from(["0.1", "0.7", "ln 3", "2"])


# -- a mechanism of every family, over a random policy ---------------------------------------------------------------


@st.composite
def classical(draw: st.DrawFn, kind: Callable[..., Mechanism]) -> Mechanism:
    return kind(R(draw(st.integers(2, 6))), draw(EPSILONS))


@st.composite
def subsets(draw: st.DrawFn) -> Mechanism:
    size = draw(st.integers(2, 7))
    return SubsetSelection(R(size), draw(EPSILONS), draw(st.integers(1, size - 1)))


@st.composite
def hadamards(draw: st.DrawFn) -> Mechanism:
    return HadamardResponse(R(draw(st.integers(2, 9))), draw(EPSILONS), block_size=draw(st.sampled_from([2, 4, 8])))


@st.composite
def cyclics(draw: st.DrawFn) -> Mechanism:
    designs = [CyclicDesign.singer(2, 1, 3), CyclicDesign.residues(7, 2, zero=1), CyclicDesign.residues(11, 5)]
    return CyclicDesign(R(draw(st.integers(2, 7))), draw(EPSILONS), design=draw(st.sampled_from(designs)))


@st.composite
def high_low_cyclics(draw: st.DrawFn) -> Mechanism:
    size = draw(st.integers(2, 6))
    return HighLowCyclic(R(size), draw(st.sets(st.integers(0, size - 1), min_size=2)), draw(EPSILONS), max_bits=6)


@st.composite
def high_lows(draw: st.DrawFn, kind: Callable[..., Mechanism]) -> Mechanism:
    size = draw(st.integers(2, 6))
    sensitive = draw(st.sets(st.integers(0, size - 1), min_size=1))
    return kind(R(size), sorted(sensitive), draw(EPSILONS))


@st.composite
def high_low_mixed(draw: st.DrawFn) -> Mechanism:
    size = draw(st.integers(3, 6))
    sensitive = sorted(draw(st.sets(st.integers(0, size - 1), min_size=2, max_size=size - 1)))
    sizes = draw(st.sampled_from(list(itertools.combinations(range(1, len(sensitive) + 1), 2))))
    weight, share = draw(st.sampled_from([1, 2**62, 2**63])), draw(st.sampled_from(["1/100", "1/2", "9/10"]))
    return HighLowMixedSubsets(R(size), sensitive, draw(EPSILONS), sizes, weight=weight, share=share)


@st.composite
def partitions(draw: st.DrawFn) -> Mechanism:
    blocks = draw(st.lists(st.integers(0, 2), min_size=3, max_size=8))
    inner = draw(st.sampled_from([None, "rr", "subset", "hadamard", "cyclic"]))
    policy = sf.Blocks(R(len(blocks)), blocks, draw(EPSILONS))
    sizes = np.bincount(policy.block_of)
    return BlockMechanism.for_policy(policy, inner if sizes.min() > 1 else None)


@st.composite
def nested_cyclic(draw: st.DrawFn) -> Mechanism:
    blocks = draw(st.sampled_from(["aabb", "aaabbb", "abcabc", "aab", "abbbcc"]))
    return NestedCyclic(R(len(blocks)), blocks, draw(FINITE), "4", max_bits=draw(st.integers(6, 8)))


@st.composite
def composed(draw: st.DrawFn) -> Mechanism:
    blocks = draw(st.sampled_from([[0, 0, 1], [0, 1, 1, 2], [0, 0, 0, 1, 1]]))
    return ComposedSubsets(R(len(blocks)), blocks, draw(FINITE), "3")


@st.composite
def tables(draw: st.DrawFn) -> Mechanism:
    size, extra = draw(st.integers(2, 5)), draw(st.integers(0, 3))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrix = 0.5 * np.eye(size, size + extra) + 0.5 * generator.dirichlet(np.ones(size + extra), size)
    prior = generator.dirichlet(np.full(size, 3.0)) if draw(st.booleans()) else None
    return TableMechanism.from_matrix(R(size), matrix, design_prior=prior)


@st.composite
def products(draw: st.DrawFn) -> Mechanism:
    first, second = draw(tables()), RandomizedResponse(R(draw(st.integers(2, 3))), draw(FINITE))
    factors = draw(st.permutations([first, second, *([BinaryOptimal(R(2), 1, 2)] if draw(st.booleans()) else [])]))
    return ProductMechanism(R(math.prod(len(factor.domain) for factor in factors)), factors)


@st.composite
def waves(draw: st.DrawFn) -> Mechanism:
    size = draw(st.integers(2, 7))
    rows = [(1, 1, 2, 2), (1, 4, 3, 1), (0, 5, 2, 1)]
    return Waves(R(size), draw(EPSILONS), modulus=size + draw(st.integers(3, 5)), waves=rows)


@st.composite
def secrets(draw: st.DrawFn) -> Mechanism:
    domain = sf.Domain.product(S=["a", "b"], U=list(range(draw(st.integers(2, 3)))))
    return SecretRandomizedResponse(domain, "S", draw(FINITE))


FAMILIES: dict[str, st.SearchStrategy[Mechanism]] = {
    "randomized response": classical(RandomizedResponse),
    "unary encoding": classical(UnaryEncoding),
    "optimized unary encoding": classical(functools.partial(UnaryEncoding, optimized=True)),
    "subset selection": subsets(),
    "hadamard response": hadamards(),
    "cyclic design": cyclics(),
    "high-low cyclic": high_low_cyclics(),
    "high-low subset": high_lows(HighLowSubset),
    "high-low mixed": high_low_mixed(),
    "high-low hadamard": high_lows(HighLowHadamard),
    "utility-optimized response": high_lows(UtilityOptimizedRR),
    "blocks": partitions(),
    "nested cyclic": nested_cyclic(),
    "composed subsets": composed(),
    "table": tables(),
    "secret": secrets(),
    "product": products(),
    "waves": waves(),
}


def random_distributions(size: int) -> list[Floats]:
    generator = np.random.default_rng(size)
    return [np.full(size, 1 / size), np.eye(size)[0], *generator.dirichlet(np.full(size, 0.5), 3)]


def scores_of_reports(mechanism: Mechanism) -> Floats:
    """The estimate from each report alone, a row per report."""
    rows = []
    for report in mechanism.reports():
        if mechanism.report_format.shape:
            array: Any = np.frombuffer(mechanism.report_format.encode(report), np.uint8)[None]
        else:
            array = np.array([report], mechanism.report_format.dtype)
        rows.append(mechanism.estimator.frequencies(sf.aggregate(mechanism, array).counts.astype(np.float64)))
    return np.array(rows)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_second_moments_are_those_of_the_exact_law(family: str, data: st.DataObject) -> None:
    mechanism = data.draw(FAMILIES[family])
    matrix, scores = mechanism.matrix(), scores_of_reports(mechanism)
    exact = matrix @ (scores**2).sum(axis=1)
    second_moments = mechanism.estimator.second_moments()
    assert second_moments == pytest.approx(exact, rel=1e-9)
    for p in random_distributions(len(mechanism.domain)):
        law = p @ matrix
        covariance = (scores * law[:, None]).T @ scores - np.outer(p, p)
        near = 1e-9 * float(exact.max())
        assert mechanism.estimator.covariance(p) == pytest.approx(covariance, rel=1e-9, abs=near)
        assert mechanism.risk(3, p) == pytest.approx(max(float(np.trace(covariance)), 0.0) / 3, rel=1e-9, abs=near)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_variances_sum_to_the_risk(family: str, data: st.DataObject) -> None:
    mechanism = data.draw(FAMILIES[family])
    estimator = mechanism.estimator
    second_moments = estimator.second_moments()
    for p in random_distributions(len(mechanism.domain)):
        risk = float(second_moments @ p - p @ p)
        # Where a revealed value is all there is, both are zero but for the rounding of the moments.
        assert float(estimator.variances(p).sum()) == pytest.approx(
            risk, rel=1e-9, abs=1e-9 * float(second_moments @ p)
        )
        assert mechanism.risk(1, p) == max(risk, 0.0)


# -- many values -----------------------------------------------------------------------------------------------------

MANY = 100_000
LARGE: dict[str, Callable[[], Mechanism]] = {
    "randomized response": lambda: RandomizedResponse(R(MANY), 1),
    "unary encoding": lambda: UnaryEncoding(R(MANY), 1),
    "subset selection": lambda: SubsetSelection(R(MANY), 1),
    "hadamard response": lambda: HadamardResponse(R(MANY), 1),
    "cyclic design": lambda: CyclicDesign(R(MANY), 1),
    "high-low cyclic": lambda: HighLowCyclic(R(MANY), range(MANY // 3), 1),
    "high-low subset": lambda: HighLowSubset(R(MANY), range(MANY // 3), 1),
    "high-low mixed": lambda: HighLowMixedSubsets(R(MANY), range(20), 1, (5, 6), weight=2**63, share="1/2"),
    "high-low hadamard": lambda: HighLowHadamard(R(MANY), range(MANY // 3), 1),
    "blocks": lambda: BlockMechanism.for_policy(sf.Blocks(R(MANY), [x % 1000 for x in range(MANY)], 1)),
    "nested cyclic": lambda: NestedCyclic(R(MANY), [x % 100 for x in range(MANY)], 1, 3, max_bits=19),
    "composed subsets": lambda: ComposedSubsets(R(MANY), [x % 100 for x in range(MANY)], 1, 3),
    "product": lambda: ProductMechanism(R(MANY), [RandomizedResponse(R(size), 1) for size in (400, 250)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", LARGE)
def test_moments_of_many_values_need_no_matrix(family: str) -> None:
    mechanism = LARGE[family]()
    with pytest.raises(LimitExceeded, match="entries"):
        mechanism.matrix()
    with pytest.raises(LimitExceeded, match="outputs"):
        mechanism.channel()
    p = np.arange(1, MANY + 1) / (MANY * (MANY + 1) / 2)
    variances = mechanism.estimator.variances(p)
    assert mechanism.risk(1, p) == pytest.approx(float(variances.sum()), rel=1e-9)
    assert mechanism.worst_risk(1) >= mechanism.risk(1, p) * (1 - 1e-12)


# -- no estimate -----------------------------------------------------------------------------------------------------


def test_nothing_to_tell_apart_has_an_infinite_risk() -> None:
    for mechanism in (
        RandomizedResponse(R(3), 0),
        UnaryEncoding(R(3), 0),
        HadamardResponse(R(3), 0),
        CyclicDesign(R(3), 0),
        Waves(R(3), 0),
        HighLowCyclic(R(3), [0, 1], 0),
        HighLowSubset(R(3), [0, 1], 0),
        ProductMechanism(R(4), [RandomizedResponse(R(2), 0), RandomizedResponse(R(2), 1)]),
    ):
        assert mechanism.risk(1) == mechanism.worst_risk(1) == math.inf
        with pytest.raises(NotIdentifiable, match="distinguish all values in its reports"):
            _ = mechanism.estimator


# -- a mechanism with a sampler and a law alone ----------------------------------------------------------------------


class Neighbours(Mechanism):
    """The value itself with probability 1/2, else one of its two neighbours on a circle, or a fourth output."""

    encoding = "index"

    def __init__(self, domain: sf.Domain) -> None:
        self.domain = domain
        self.layout = Layout(32, (Field.number(0, 2), Field.number(2, 30)))

    def step(self, state: int, draws: Draws) -> Finished:
        choice = draws.below(4)
        size = len(self.domain)
        return Finished([state, state, (state + 1) % size, size][choice])

    @property
    def outputs(self) -> int:
        return len(self.domain) + 1

    def probability(self, report: int, x: int) -> Fraction:
        size = len(self.domain)
        return Fraction({x: 2, (x + 1) % size: 1, size: 1}.get(report, 0), 4)

    def parameters(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_parameters(cls, domain: sf.Domain, parameters: dict[str, Any]) -> Neighbours:
        return cls(domain, **parameters)


def test_an_index_mechanism_without_an_estimator_has_the_efficient_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Neighbours, "name", "neighbours", raising=False)
    mechanism = Neighbours(R(5))
    assert isinstance(mechanism.estimator, MatrixEstimator)
    assert efficient_estimator(mechanism) is mechanism.estimator
    p = np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    law = p @ mechanism.matrix()
    # No unbiased estimate has less variance at the uniform distribution: the trace of the inverse information.
    uniform = np.full(5, 0.2) @ mechanism.matrix()
    information = (mechanism.matrix() / uniform) @ mechanism.matrix().T
    assert mechanism.risk(1) == pytest.approx(np.trace(np.linalg.inv(information)) - 0.2)
    counts = np.random.default_rng(1).multinomial(100_000, law)
    aggregate = sf.Aggregate(mechanism.hash, 100_000, counts)
    for method in ("unbiased", "efficient", "simplex", "mle"):
        estimate = sf.estimate(mechanism, aggregate, method)
        low, high = estimate.interval(0.999)
        assert (low <= p).all()
        assert (p <= high).all()
    assert sf.estimate(mechanism, aggregate, "mmse", prior=p).frequencies == pytest.approx(p, abs=0.01)


def test_a_law_that_cannot_be_inverted_or_written_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Neighbours, "name", "neighbours", raising=False)
    with pytest.raises(LimitExceeded, match="needs the full matrix of neighbours, but 4000 values by 4001 outputs"):
        _ = Neighbours(R(4000)).estimator

    class Silent(Neighbours):
        def probability(self, report: int, x: int) -> Fraction:  # noqa: ARG002
            return Fraction(int(report == 0))

    assert not Silent(R(3)).estimator.is_complete
    with pytest.raises(NotIdentifiable, match="its matrix is singular"):
        Silent(R(3)).estimator.frequencies(np.array([1.0, 0, 0, 0]))
    assert Silent(R(3)).risk(1) == math.inf


def test_the_efficient_estimate_of_a_table_is_its_estimator() -> None:
    table = TableMechanism.from_matrix(R(2), [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], design_prior=[0.9, 0.1])
    assert efficient_estimator(table) is table.estimator
    with pytest.raises(InvalidInput, match="not be 'efficient' for bitmaps"):
        efficient_estimator(UnaryEncoding(R(3), 1))


# -- design parameters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.2", "1", "3"])
@pytest.mark.parametrize("size", [3, 8, 20])
def test_default_sizes_have_the_least_risk_that_the_estimator_states(epsilon: str, size: int) -> None:
    domain, sensitive = R(size), range(0, size, 2)
    powers = [2**bits for bits in range(1, size.bit_length() + 1)]
    choices: list[tuple[Mechanism, list[Mechanism]]] = [
        (SubsetSelection(domain, epsilon), [SubsetSelection(domain, epsilon, d) for d in range(1, size)]),
        (
            HighLowSubset(domain, sensitive, epsilon),
            [HighLowSubset(domain, sensitive, epsilon, d) for d in range(1, len(sensitive))],
        ),
        (HadamardResponse(domain, epsilon), [HadamardResponse(domain, epsilon, block_size=b) for b in powers]),
        (
            HighLowHadamard(domain, sensitive, epsilon),
            [HighLowHadamard(domain, sensitive, epsilon, block_size=b) for b in powers],
        ),
    ]
    for mechanism, others in choices:
        assert all(mechanism.risk(1) <= other.risk(1) * (1 + 1e-12) for other in others)
