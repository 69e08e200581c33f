"""Cyclic designs: number theory, difference families, exact sums, the mechanism and its estimator, and bad specs."""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.audits import stated_columns
from sfumato.errors import InvalidInput, NoMechanism
from sfumato.mechanisms import BlockMechanism, CyclicDesign, HighLowCyclic
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.matrix import MatrixEstimator
from sfumato.mechanisms.estimators.mixture import ListedMixtureEstimator
from sfumato.mechanisms.mixture import ONE
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.registry import estimator_for
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.mechanisms.systems.designs import correlation
from sfumato.mechanisms.systems.designs.choice import best_design
from sfumato.mechanisms.systems.designs.correlation import (
    gather,
    gather_exactly,
    is_balanced,
    rounding_bound,
    spread,
    spread_exactly,
)
from sfumato.mechanisms.systems.designs.families import (
    LARGEST_OUTPUTS,
    DifferenceFamily,
    ResidueFamily,
    SingerSet,
    _points,
    design_from_document,
)
from sfumato.mechanisms.systems.designs.numbers import (
    divisors,
    first_primitive_polynomial,
    is_prime,
    is_primitive_polynomial,
    least_primitive_root,
    next_prime,
    prime_factors,
    prime_powers,
    recurrence,
)
from sfumato.mechanisms.systems.shifts import Shifts
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.testing import MechanismContract, check_law

R = sf.Domain.range
Floats = npt.NDArray[np.float64]


# -- number theory -------------------------------------------------------------------------------------------------


def test_primes_factors_and_divisors_are_those_of_definition() -> None:
    primes = [n for n in range(2, 500) if all(n % d for d in range(2, n))]
    assert [n for n in range(-3, 500) if is_prime(n)] == primes
    for n in range(1, 500):
        assert list(prime_factors(n)) == [p for p in primes if n % p == 0]
        assert divisors(n) == [d for d in range(1, n + 1) if n % d == 0]
        assert next_prime(n) == next(p for p in [*primes, 503] if p >= n)
    assert list(prime_powers(32)) == sorted(
        (p, e) for p in primes for e in range(1, 6) if p**e <= 32
    )  # fmt: skip
    assert prime_factors(2**33 - 1) == (7, 23, 89, 599479)


@pytest.mark.parametrize("prime", [3, 5, 7, 11, 13, 41, 71, 191, 409])
def test_the_least_primitive_root_generates_all_residues(prime: int) -> None:
    def order(g: int) -> int:
        return next(e for e in range(1, prime) if pow(g, e, prime) == 1)

    assert least_primitive_root(prime) == next(g for g in range(2, prime) if order(g) == prime - 1)


def shift_order(prime: int, polynomial: Sequence[int]) -> int:
    """The number of steps after which the powers of x repeat, or 0 if x has no inverse."""
    degree = len(polynomial) - 1
    one = [1, *[0] * (degree - 1)]
    power, steps = one, 0
    while steps == 0 or power != one:
        leading = power[-1]
        power = [(c - leading * f) % prime for c, f in zip([0, *power[:-1]], polynomial, strict=False)]
        steps += 1
        if steps > prime**degree:
            return 0
    return steps


@pytest.mark.parametrize(("prime", "degree"), [(2, 1), (2, 2), (2, 4), (2, 6), (3, 2), (3, 3), (5, 2), (7, 2), (11, 1)])
def test_primitive_polynomials_are_those_of_full_order(prime: int, degree: int) -> None:
    primitive = []
    for low in itertools.product(range(prime), repeat=degree):
        polynomial = (*low, 1)
        expected = shift_order(prime, polynomial) == prime**degree - 1
        assert is_primitive_polynomial(prime, polynomial) == expected, polynomial
        if expected:
            primitive.append(polynomial)
    assert first_primitive_polynomial(prime, degree) == min(primitive, key=lambda polynomial: polynomial[::-1])
    totient = sum(math.gcd(i, prime**degree - 1) == 1 for i in range(1, prime**degree))
    assert len(primitive) == totient // degree


def test_an_irreducible_polynomial_that_is_not_primitive_is_found_out() -> None:
    # The tables of a computer algebra system hold this one for (65537, 2).
    assert not is_primitive_polynomial(65537, (3, 0, 1))
    assert not is_primitive_polynomial(2, (1, 1, 1, 1, 1))  # irreducible, of order 5
    assert is_primitive_polynomial(2, (1, 1, 0, 0, 1))


@pytest.mark.parametrize(
    ("prime", "polynomial"),
    [(2, (1, 1, 0, 1)), (2, (1, 1)), (5, (3, 1)), (7, (3, 6, 1)), (53, (2, 1, 0, 1)), (4093, (4091, 1))],
)
@pytest.mark.parametrize("length", [1, 2, 3, 7, 100, 1000])
def test_a_recurrence_is_that_of_its_definition(prime: int, polynomial: tuple[int, ...], length: int) -> None:
    degree = len(polynomial) - 1
    terms = [0] * (degree - 1) + [1]
    while len(terms) < length:
        terms.append(-sum(c * s for c, s in zip(polynomial, terms[-degree:], strict=False)) % prime)
    assert recurrence(prime, polynomial, length).tolist() == terms[:length]


# -- difference families -------------------------------------------------------------------------------------------


def differences(design: DifferenceFamily) -> list[int]:
    """How often each nonzero residue is a difference within a base block, by counting."""
    counts = [0] * design.modulus
    for block in design.elements.tolist():
        for a, b in itertools.permutations(block, 2):
            counts[(a - b) % design.modulus] += 1
    return counts[1:]


SINGER = [(2, 1, 3), (2, 1, 4), (2, 1, 7), (3, 1, 3), (3, 1, 5), (2, 2, 3), (2, 2, 4), (2, 3, 3), (3, 2, 3), (19, 1, 3)]


@pytest.mark.parametrize(("prime", "power", "dimension"), [*SINGER, (2, 4, 3), (5, 2, 3), (53, 1, 3), (2, 2, 5)])
def test_singer_sets_have_their_sizes_and_differences(prime: int, power: int, dimension: int) -> None:
    design, q, t = SingerSet.of(prime, power, dimension), prime**power, dimension
    assert design.modulus == (q**t - 1) // (q - 1)
    assert design.size == (q ** (t - 1) - 1) // (q - 1)
    assert design.elements.shape == (1, design.size)
    assert (np.diff(design.elements) > 0).all()
    assert design.elements.min() >= 0
    assert design.elements.max() < design.modulus
    assert set(differences(design)) == {(q ** (t - 2) - 1) // (q - 1)}
    assert is_balanced(design)


@pytest.mark.parametrize(
    ("prime", "order", "cosets", "zero"),
    [
        (7, 3, 1, 0), (11, 5, 1, 0), (31, 15, 1, 0), (103, 51, 1, 0), (11, 5, 1, 1),  # Paley, without and with zero
        (13, 3, 1, 0), (13, 3, 2, 1), (13, 3, 4, 0), (13, 4, 1, 0), (13, 4, 2, 1), (13, 1, 2, 0), (13, 1, 5, 1),
        (13, 2, 3, 0), (13, 6, 1, 1), (13, 12, 1, 0), (37, 9, 2, 1), (101, 5, 3, 1), (101, 20, 2, 0), (3, 1, 1, 1),
        (5, 1, 1, 1), (5, 2, 1, 1), (3, 2, 1, 0), (41, 5, 1, 0),
    ],
)  # fmt: skip
def test_residue_families_have_their_sizes_and_differences(prime: int, order: int, cosets: int, zero: int) -> None:
    design = ResidueFamily(prime, order, cosets, zero)
    size = cosets * order + zero
    blocks = (prime - 1) // order if order % 2 == 0 else (prime - 1) // (2 * order)
    assert (design.modulus, design.blocks, design.size) == (prime, blocks, size)
    assert design.elements.shape == (blocks, size)
    assert (np.diff(design.elements, axis=1) > 0).all()
    assert set(differences(design)) == {Fraction(blocks * size * (size - 1), prime - 1)}
    assert is_balanced(design)
    g = least_primitive_root(prime)
    first = {pow(g, i + j * (prime - 1) // order, prime) for i in range(cosets) for j in range(order)} | set(
        range(zero)
    )
    for j, block in enumerate(design.elements.tolist()):
        assert set(block) == {pow(g, j, prime) * a % prime for a in first}


def test_paley_sets_are_the_squares() -> None:
    for q in (7, 11, 19, 23, 10_007):
        design = ResidueFamily(q, (q - 1) // 2, 1, 0)
        assert design.elements.tolist() == [sorted({x * x % q for x in range(1, q)})]
        assert is_balanced(design)


@dataclass(frozen=True)
class Tampered(DifferenceFamily):
    """A family with given elements."""

    kind = "tampered"

    residues: int
    rows: tuple[tuple[int, ...], ...]

    @property
    def modulus(self) -> int:
        return self.residues

    @property
    def blocks(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> int:
        return len(self.rows[0])

    def _base_blocks(self) -> npt.NDArray[np.int64]:
        return np.array(self.rows)

    def _source(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    "design",
    [SingerSet.of(2, 1, 3), SingerSet.of(3, 1, 4), ResidueFamily(13, 3, 1, 0), ResidueFamily(1009, 504, 1, 0)],
    ids=str,
)
def test_one_wrong_element_is_not_balanced(design: DifferenceFamily) -> None:
    first, *others = map(tuple, design.elements.tolist())
    assert is_balanced(Tampered(design.modulus, (first, *others)))
    outside = next(x for x in range(design.modulus) if x not in first)
    wrong = Tampered(design.modulus, (tuple(sorted([outside, *first[1:]])), *others))
    assert not is_balanced(wrong)
    with pytest.raises(AssertionError, match="all differences must be equally frequent"):
        Shifts(3, wrong)
    if others:  # a base block is missing
        assert not is_balanced(Tampered(design.modulus, (first, *others[:-1])))


@pytest.mark.slow
def test_large_families_are_balanced() -> None:
    for design in (
        SingerSet.of(53, 1, 4),
        SingerSet.of(2, 1, 17),
        SingerSet.of(2, 9, 3),
        ResidueFamily(43_759, 39, 1, 0),
    ):
        assert is_balanced(design), design


def random_designs() -> st.SearchStrategy[DifferenceFamily]:
    @st.composite
    def residues(draw: st.DrawFn) -> DifferenceFamily:
        prime = draw(st.sampled_from([p for p in range(3, 120) if is_prime(p)]))
        order = draw(st.sampled_from(divisors(prime - 1)))
        zero = draw(st.integers(0, 1))
        cosets = draw(st.integers(1, (prime - 1) // order))
        design = ResidueFamily(prime, order, cosets, zero)
        return design if 1 < design.size < prime else ResidueFamily(prime, prime - 1, 1, 0)

    return st.one_of(residues(), st.sampled_from([SingerSet.of(*space) for space in SINGER]))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(design=random_designs())
def test_random_families_are_balanced_and_their_documents_are_read_back(design: DifferenceFamily) -> None:
    assert is_balanced(design)
    assert design_from_document(json.loads(json.dumps(design.document()))) == design
    # Every residue, and every pair of residues, is in equally many shifted blocks.
    inside = np.zeros((design.outputs, design.modulus), np.int64)
    for j, block in enumerate(design.elements):
        for y in range(design.modulus):
            inside[j * design.modulus + y, (y - block) % design.modulus] = 1
    together = inside.T @ inside
    assert set(np.diag(together).tolist()) == {design.blocks * design.size}
    assert len(set(together[~np.eye(design.modulus, dtype=bool)].tolist())) == 1


# -- sums over sets ------------------------------------------------------------------------------------------------


def slow_spread(design: DifferenceFamily, weights: Sequence[int]) -> list[int]:
    v = design.modulus
    return [
        sum(weights[(y - e) % v] for e in block if (y - e) % v < len(weights))
        for block in design.elements.tolist()
        for y in range(v)
    ]


def slow_gather(design: DifferenceFamily, outputs: Sequence[int]) -> list[int]:
    v = design.modulus
    return [
        sum(outputs[j * v + (x + e) % v] for j, block in enumerate(design.elements.tolist()) for e in block)
        for x in range(v)
    ]


SUMS = [
    SingerSet.of(2, 1, 3),
    SingerSet.of(2, 2, 4),
    SingerSet.of(2, 1, 9),
    ResidueFamily(5, 1, 1, 1),
    ResidueFamily(101, 5, 3, 1),
    ResidueFamily(211, 105, 1, 0),
]


@pytest.fixture(params=["direct", "transform", "transform in chunks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add one by one, or transform even the smallest designs, a block at a time or all at once."""
    monkeypatch.setattr(correlation, "_FEW_ADDITIONS", 2**40 if request.param == "direct" else 0)
    if request.param == "transform in chunks":
        monkeypatch.setattr(correlation, "_CHUNK", 1)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("design", SUMS, ids=str)
@pytest.mark.parametrize("bits", [1, 16, 17, 63, 64, 300])
def test_exact_sums_are_those_of_integers(design: DifferenceFamily, bits: int) -> None:
    generator = random.Random(bits)
    for size in (1, 3, design.modulus):
        weights = [generator.getrandbits(bits) for _ in range(size)]
        assert spread_exactly(design, weights).tolist() == slow_spread(design, weights)
        assert spread_exactly(design, [0] * size).tolist() == [0] * design.outputs
    counts = np.array([generator.getrandbits(min(bits, 50)) for _ in range(design.outputs)])
    assert gather_exactly(design, counts).tolist() == slow_gather(design, counts.tolist())
    assert gather_exactly(design, 0 * counts).tolist() == [0] * design.modulus


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("design", SUMS, ids=str)
def test_sums_of_doubles_are_within_the_rounding_bound(design: DifferenceFamily) -> None:
    generator = np.random.default_rng(7)
    for scale in (1.0, 1e-9, 1e12):
        # Multiples of 2^-40, so that the exact sums are those of integers.
        weights = np.round(generator.normal(size=design.modulus) * 2**40)
        outputs = np.round(generator.standard_cauchy(design.outputs) * 2**20)
        for computed, exact, summed in (
            (spread(design, weights * scale), slow_spread(design, [int(w) for w in weights]), weights),
            (gather(design, outputs * scale), slow_gather(design, [int(w) for w in outputs]), outputs),
        ):
            error = np.abs(computed - scale * np.array(exact, np.float64)).max()
            assert error <= rounding_bound(design, float(np.linalg.norm(summed)) * scale)


@pytest.mark.parametrize(
    "design",
    [
        SingerSet(2, 1, 22, ()),
        SingerSet(149, 1, 4, ()),
        ResidueFamily(2039, 1, 1018, 1),
        ResidueFamily(43_781, 10_945, 1, 1),
    ],
    ids=str,
)
def test_decoding_in_doubles_loses_little_of_a_standard_error(design: DifferenceFamily) -> None:
    """The shares of n reports differ from their mean by a vector of norm about 1/√n; so does a standard error."""
    density = design.size / design.modulus
    assert rounding_bound(design, 1.0) < 1e-6 * math.sqrt(density * (1 - density))


def test_an_estimate_adds_up_counts_exactly() -> None:
    mechanism = CyclicDesign(R(1000), 1)
    counts = np.zeros(mechanism.outputs, np.int64)
    counts[[0, 5]] = 2**52, 1  # in doubles, the transform would lose the single report
    estimator = ListedMixtureEstimator(mechanism)
    sums = np.array(slow_gather(mechanism.design, counts.tolist())[:1000])
    expected = (sums / counts.sum() - estimator.other) / estimator.gap
    assert estimator.frequencies_of_counts(counts, int(counts.sum())).tolist() == expected.tolist()
    unbiased = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, int(counts.sum()), counts)).unbiased
    assert unbiased.tolist() == expected.tolist()


@pytest.mark.slow
def test_a_large_sum_is_exact() -> None:
    design = SingerSet.of(53, 1, 4)
    members = spread_exactly(design, [1] * 70_000)
    assert sum(members.tolist()) == 70_000 * design.size
    for output in (0, 1, 70_000, design.modulus - 1):
        assert members[output] == int(((output - design.elements[0]) % design.modulus < 70_000).sum())


# -- choice --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0", "1e-300", "1e-25", "1e-18", "0.01", "1", "5", "40", "800", "1e6", "inf"])
@pytest.mark.parametrize("values", [2, 3, 4, 7, 50, 1000])
def test_some_design_is_chosen_at_every_level(values: int, epsilon: str) -> None:
    design = best_design(values, Epsilon(epsilon))
    assert design.modulus >= values
    assert design.outputs <= 2 ** ((values - 1).bit_length() + 8)
    mechanism = CyclicDesign(R(values), epsilon)
    assert mechanism.design == design
    assert mechanism.risk(1) > 0
    assert math.isinf(mechanism.risk(1)) == (mechanism.threshold == 0)


def all_designs(values: int) -> Iterator[DifferenceFamily]:
    """All families that the choice may compare, and those of other sizes."""
    most = 2 ** ((values - 1).bit_length() + 8)
    for prime in itertools.islice((p for p in itertools.count(max(values, 3)) if is_prime(p)), 12):
        for order in divisors(prime - 1):
            for cosets, zero in itertools.product(range(1, (prime - 1) // order + 1), (0, 1)):
                design = ResidueFamily(prime, order, cosets, zero)
                if 1 < design.size < prime and design.outputs <= most:
                    yield design
    for prime, power in prime_powers(math.isqrt(most)):
        for dimension in range(3, 14):
            if values <= _points(prime**power, dimension) <= most:
                yield SingerSet.of(prime, power, dimension)


@functools.cache
def designs_of_all_shapes(values: int) -> list[DifferenceFamily]:
    """The risk depends on the numbers of residues and elements alone, so one design of each shape stands for all."""
    shapes = {(design.modulus, design.size, design.outputs): design for design in all_designs(values)}
    return list(shapes.values())


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize(("values", "harmless"), [(5, 0), (16, 0), (5, 30), (24, 100)])
def test_the_choice_has_the_shortest_reports_within_half_a_percent(values: int, harmless: int, epsilon: str) -> None:
    def make(design: dict[str, Any] | None = None) -> Mechanism:
        if harmless:
            return HighLowCyclic(R(values + harmless), range(values), epsilon, design=design)
        return CyclicDesign(R(values), epsilon, design=design)

    others = [make(design.document()) for design in designs_of_all_shapes(values)]
    risks = [other.risk(1) for other in others]
    least = min(risks)
    chosen = make()
    assert least * (1 - 1e-12) <= chosen.risk(1) <= least * (1.005 + 1e-12)
    assert chosen.bits == min(other.bits for other, risk in zip(others, risks, strict=True) if risk <= least * 1.005)


def test_fewer_bits_are_kept_or_refused() -> None:
    for bits in range(7, 16):
        for mechanism in (CyclicDesign(R(100), 2, max_bits=bits), HighLowCyclic(R(100), range(50), 2, max_bits=bits)):
            assert mechanism.bits <= bits
    risks = [CyclicDesign(R(100), 3, max_bits=bits).risk(1) for bits in range(7, 16)]
    assert all(after <= before * 1.00501 for before, after in itertools.pairwise(risks))
    for make in (
        lambda: CyclicDesign(R(100), 1, max_bits=6),
        lambda: HighLowCyclic(R(100), range(50), 1, max_bits=6),
        lambda: HighLowCyclic(R(1000), range(2), 1, max_bits=3),
        lambda: best_design(LARGEST_OUTPUTS + 1, Epsilon(1)),
    ):
        with pytest.raises(NoMechanism, match="no cyclic design with at most"):
            make()


def test_blocks_have_cyclic_designs_if_one_way_to_number_the_reports_has_room() -> None:
    """At 5 bits, indices through all blocks leave 19 outputs to nine values; three blocks of 3 bits leave 8."""
    policy = sf.Blocks(R(15), [0] + [1] * 5 + [2] * 9, 2)
    mechanism = BlockMechanism.for_policy(policy, "cyclic", max_bits=5)
    assert mechanism.bits == 5
    assert [part.name for part in mechanism.parts] == ["randomized-response", "cyclic-design", "cyclic-design"]
    assert sf.audit(mechanism, policy).holds
    with pytest.raises(NoMechanism, match="no cyclic design with at most"):
        BlockMechanism.for_policy(policy, "cyclic", max_bits=4)


@pytest.mark.parametrize(("values", "epsilon", "ratio"), [(1000, "1", 1.005), (1000, "3", 1.02), (10_000, "2", 1.02)])
def test_the_risk_is_near_that_of_subset_selection(values: int, epsilon: str, ratio: float) -> None:
    cyclic, subset = CyclicDesign(R(values), epsilon), SubsetSelection(R(values), epsilon)
    assert 1 - 1e-12 <= cyclic.risk(1) / subset.risk(1) <= ratio
    assert cyclic.bits <= (values - 1).bit_length() + 4


# -- the mechanism -------------------------------------------------------------------------------------------------


class TestCyclicDesign(MechanismContract):
    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return CyclicDesign(domain, epsilon, max_bits=7)


class TestSingerSet(MechanismContract):
    """As many values as residues, and fewer."""

    cases = 60

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        space = (2, 1, 3) if len(domain) <= 7 else (3, 1, 3)
        return CyclicDesign(domain, epsilon, design=CyclicDesign.singer(*space))


class TestFewOfManyResidues(MechanismContract):
    """Some sets hold no value, and some hold all of them."""

    cases = 60
    sizes = range(2, 6)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        design = CyclicDesign.residues(13, 4, cosets=2, zero=1) if len(domain) % 2 else CyclicDesign.singer(2, 2, 3)
        return CyclicDesign(domain, epsilon, design=design)


class TestSeveralBaseBlocks(MechanismContract):
    cases = 60
    sizes = range(2, 8)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return CyclicDesign(domain, epsilon, design=CyclicDesign.residues(7, 2, zero=len(domain) % 2))


class TestHighLowCyclic(MechanismContract):
    cases = 60
    sizes = range(4, 9)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.HighLow:
        return sf.HighLow(domain, list(domain)[1::2], epsilon)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HighLowCyclic(domain, list(domain)[1::2], epsilon, max_bits=6)


class TestBlocksOfCyclicDesigns(MechanismContract):
    cases = 60
    sizes = range(4, 9)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Blocks:
        return sf.Blocks(domain, [x % 2 for x in range(len(domain))], [epsilon, epsilon * Fraction(1, 2)])

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return BlockMechanism.for_policy(self.policy(domain, epsilon), "cyclic", max_bits=6)


def small_mechanisms() -> Iterator[CyclicDesign]:
    for epsilon in ("0.3", "ln 3", "3"):
        yield CyclicDesign(R(7), epsilon, design=CyclicDesign.singer(2, 1, 3))
        yield CyclicDesign(R(2), epsilon, design=CyclicDesign.singer(2, 1, 3))
        yield CyclicDesign(R(10), epsilon, design=CyclicDesign.singer(2, 1, 4))  # triples meet in 1 or 3 residues
        yield CyclicDesign(R(4), epsilon, design=CyclicDesign.residues(5, 1, zero=1))
        yield CyclicDesign(R(9), epsilon, design=CyclicDesign.residues(13, 3, cosets=2))
        yield CyclicDesign(R(3), epsilon, design=CyclicDesign.residues(13, 12))


SMALL = {f"{m.design.kind} {len(m.domain)} of {m.design.modulus}, {m.epsilon}": m for m in small_mechanisms()}
every = pytest.mark.parametrize("mechanism", SMALL.values(), ids=SMALL)


def test_each_value_has_its_shifts() -> None:
    mechanism = CyclicDesign(R(5), 1, design=CyclicDesign.residues(7, 2))
    design = mechanism.design
    for report, x in itertools.product(range(mechanism.outputs), range(5)):
        block, y = divmod(report, 7)
        assert mechanism.in_set(report, x) == ((y - x) % 7 in design.elements[block])
    assert Shifts(5, design).forced_shifts().tolist() == [y for y in range(mechanism.outputs) if mechanism.in_set(y, 0)]


@every
def test_lightest_and_heaviest_sets_are_those_of_all_outputs(mechanism: CyclicDesign) -> None:
    generator = random.Random(len(mechanism.domain))
    k = len(mechanism.domain)
    sets = {y: [x for x in range(k) if mechanism.in_set(y, x)] for y in range(mechanism.outputs)}
    binding = {y: members for y, members in sets.items() if 0 < len(members) < k}
    assert mechanism.system.empty_outputs() == sum(not members for members in sets.values())
    for _ in range(20):
        weights = [Fraction(generator.choice([0, 0, 1, 2, 7]), generator.randint(1, 10**6)) for _ in range(k)]
        masses = {y: sum((weights[x] for x in members), Fraction(0)) for y, members in binding.items()}
        assert masses[mechanism.extreme(weights, heaviest=False)] == min(masses.values())
        assert masses[mechanism.extreme(weights, heaviest=True)] == max(masses.values())
    for x, other in itertools.permutations(range(k), 2):
        report = mechanism.separating(x, other)
        assert x in sets[report]
        assert other not in sets[report]


@pytest.mark.parametrize("epsilon", ["0", "1e-19", "1e-25", "0.001", "1", "ln 2", "40", "200"])
def test_the_threshold_is_the_largest_that_keeps_the_level(epsilon: str) -> None:
    for design in (CyclicDesign.singer(2, 1, 3), CyclicDesign.residues(11, 2, cosets=2, zero=1)):
        mechanism = CyclicDesign(R(6), epsilon, design=design)
        assert sf.audit(mechanism, sf.Uniform(R(6), epsilon)).holds
        mechanism.threshold += 1  # a mechanism that keeps too little: the audit reads the sampler
        mechanism.__dict__.pop("likelihoods", None)
        mechanism.__dict__.pop("_probabilities", None)
        assert not sf.audit(mechanism, sf.Uniform(R(6), epsilon)).holds


class OneShiftTooFew(CyclicDesign):
    """Broken on purpose: the last shift is never forced, so the others are forced too often."""

    def step(self, state: int, draws: Draws) -> Finished:
        if not draws.bernoulli(self.threshold, ONE):
            return Finished(draws.below(self.outputs))
        block, member = divmod(draws.below(self.design.elements.size - 1), self.design.size)
        residue = (state + int(self.design.elements[block, member])) % self.design.modulus
        return Finished(block * self.design.modulus + residue)


@pytest.mark.parametrize(
    ("values", "design"),
    [
        (5, CyclicDesign.singer(2, 1, 3)),
        (5, CyclicDesign.residues(7, 2)),
        (3000, CyclicDesign.residues(3001, 6, cosets=40)),  # 1.5 million outputs: an audit reads a smaller instance
        (70_000, CyclicDesign.singer(2, 1, 21)),
    ],
    ids=["one base block", "several", "many", "one large base block"],
)
def test_a_broken_sampler_is_found(values: int, design: dict[str, Any]) -> None:
    policy = sf.Uniform(R(values), 1)
    assert sf.audit(CyclicDesign(R(values), 1, design=design), policy).holds
    assert not sf.audit(OneShiftTooFew(R(values), 1, design=design), policy).holds


def test_a_broken_sampler_breaks_its_contract() -> None:
    with pytest.raises(AssertionError, match="does not have the law"):
        check_law(OneShiftTooFew(R(5), 1, design=CyclicDesign.singer(2, 1, 3)))


class RevealsHarmless(Parts):
    """Broken on purpose: a harmless value is always revealed, so a shift excludes it."""

    def step(self, state: tuple[int, Any], draws: Draws) -> tuple[int, Any] | Finished:
        following = super().step(state, draws)
        is_harmless = self.number_of[state[0]] == OUTSIDE
        return (
            Finished(self.numbering.revealed(state[0]))
            if isinstance(following, Finished) and is_harmless
            else following
        )


@pytest.mark.parametrize("design", [CyclicDesign.residues(5, 1, zero=1), CyclicDesign.residues(3001, 6, cosets=40)])
def test_a_broken_high_low_sampler_is_found(design: dict[str, Any]) -> None:
    sensitive = design["modulus"] - 1
    policy = sf.HighLow(R(sensitive + 2), range(sensitive), 3)
    good = HighLowCyclic(R(sensitive + 2), range(sensitive), 3, design=design)
    assert sf.audit(good, policy).holds
    assert not sf.audit(RevealsHarmless(good.domain, good.part_of, good.parts, good.unprotected), policy).holds


@pytest.mark.parametrize("values", [1000, pytest.param(43_750, marks=pytest.mark.soak)])
def test_many_values_are_audited(values: int) -> None:
    mechanism = CyclicDesign(R(values), 1)
    certificate = sf.audit(mechanism, sf.Uniform(R(values), 1))
    assert certificate.holds
    assert -1e-9 < certificate.worst.excess <= 0
    assert not sf.audit(mechanism, sf.Uniform(R(values), "0.999999999")).holds
    prior = [Fraction(1, values)] * values
    assert sf.audit(mechanism, sf.Prior(R(values), prior, 1)).holds
    assert Fraction(1, values) < mechanism.guess_probability() < Fraction(3, values)


def test_a_harmless_value_that_is_never_revealed_is_audited() -> None:
    """At level 0, the column of a harmless value is any column of the part."""
    mechanism = HighLowCyclic(R(4), [1, 3], 0)
    for policy in (sf.Uniform(R(4), 0), sf.HighLow(R(4), [0, 2], 1), sf.Blocks(R(4), [0, 0, 1, 1], 0)):
        assert sf.audit(mechanism, policy).holds
        assert all(not policy.worst(column).violated for _, column in stated_columns(mechanism, policy))


def test_no_level_tells_nothing_and_an_infinite_level_tells_the_set() -> None:
    blind = CyclicDesign(R(5), 0)
    assert blind.threshold == 0
    assert math.isinf(blind.risk(10))
    with pytest.raises(NotIdentifiable, match="its epsilon is 0"):
        sf.estimate(blind, sf.aggregate(blind, sf.privatize(blind, [0, 1, 2])))
    assert math.isinf(sf.plan(sf.Uniform(R(5), 0), 1000, mechanism="cyclic").best.risk)
    sharp = CyclicDesign(R(7), "inf", design=CyclicDesign.singer(2, 1, 3))
    assert sharp.gamma == 1
    reports = sf.privatize(sharp, np.arange(700) % 7, sf.InsecureSeeded(1))
    assert all(sharp.in_set(int(y), x % 7) for x, y in enumerate(reports))
    estimate = sf.estimate(sharp, sf.aggregate(sharp, reports))
    assert estimate.frequencies == pytest.approx(np.full(7, 1 / 7), abs=0.1)


# -- the estimate, by enumeration ------------------------------------------------------------------------------------


def distributions(size: int) -> list[Floats]:
    generator = np.random.default_rng(size)
    return [np.full(size, 1 / size), np.eye(size)[-1], *generator.dirichlet(np.full(size, 0.5), 3)]


@pytest.mark.usefixtures("way")
@every
def test_the_estimator_is_exact_by_enumeration(mechanism: CyclicDesign) -> None:
    estimator, k = ListedMixtureEstimator(mechanism), len(mechanism.domain)
    law = mechanism.matrix()
    scores = np.array([estimator.frequencies(row) for row in np.eye(mechanism.outputs)])
    scale = float(np.abs(scores).max()) ** 2
    near = 1e-12 * scale
    assert law @ scores == pytest.approx(np.eye(k), abs=near)
    assert estimator.second_moments() == pytest.approx(law @ (scores**2).sum(axis=1), rel=1e-9)
    values, at_value = estimator.score_values()
    generator = np.random.default_rng(1)
    for p in distributions(k):
        outputs = p @ law
        covariance = (scores * outputs[:, None]).T @ scores - np.outer(p, p)
        assert estimator.expected_counts(p) == pytest.approx(outputs, abs=1e-14)
        assert estimator.frequencies(outputs) == pytest.approx(p, abs=near)
        assert estimator.covariance(p) == pytest.approx(covariance, rel=1e-9, abs=near)
        assert estimator.variances(p) == pytest.approx(np.diag(covariance), rel=1e-9, abs=near)
        assert mechanism.risk(1, p) == pytest.approx(np.trace(covariance), rel=1e-9)
        probabilities = estimator.score_probabilities(p)
        for x in range(k):
            for value, probability, own in zip(values[x], probabilities[x], at_value[x], strict=True):
                same = np.isclose(scores[:, x], value, rtol=1e-6, atol=1e-9)
                assert probability == pytest.approx(outputs[same].sum(), abs=1e-12)
                assert own == pytest.approx(law[x, same].sum(), abs=1e-12)
        for weights in [np.ones(k), np.eye(k)[0], *generator.normal(size=(3, k))]:
            assert estimator.variance(weights, p) == pytest.approx(
                weights @ covariance @ weights, rel=1e-9, abs=10 * near
            )
            assert estimator.output_scores(weights) == pytest.approx(scores @ weights, abs=near)
    for weights in generator.normal(size=(4, mechanism.outputs)):
        assert estimator.adjoint(weights) == pytest.approx(law @ weights, abs=1e-13)
    least, greatest = estimator.score_bounds()
    assert least == pytest.approx(scores.min(axis=0))
    assert greatest == pytest.approx(scores.max(axis=0))


def test_triples_of_values_are_not_balanced() -> None:
    """Covariances depend on the law of the reports, not on two frequencies alone, unlike those of subset selection."""
    mechanism = CyclicDesign(R(10), 2, design=CyclicDesign.singer(2, 1, 4))
    p = np.zeros(10)
    p[[0, 1]] = 0.5
    others = mechanism.estimator.covariance(p)[2:, 2:]
    assert np.ptp(others[~np.eye(8, dtype=bool)]) > 0.1


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "mechanism",
    [
        HighLowCyclic(R(9), [0, 2, 3, 5, 8], "0.7", design=CyclicDesign.singer(2, 1, 3)),
        HighLowCyclic(R(9), range(6), 2, design=CyclicDesign.residues(7, 2, zero=1)),
        HighLowCyclic(R(4), [1, 2], "inf"),
        HighLowCyclic(R(5), range(5), 1),
        BlockMechanism(
            R(12),
            [0, 0, 1, 1, 0, 1, 1, 2, 0, 1, 3, 3],
            [
                CyclicDesign(R(4), 1, design=CyclicDesign.residues(5, 1, zero=1)),
                CyclicDesign(R(5), "ln 5", design=CyclicDesign.singer(2, 1, 3)),
                RandomizedResponse(R(1), "inf"),
                SubsetSelection(R(2), 1, 1),
            ],
        ),
        BlockMechanism.for_policy(sf.Blocks(R(9), [0, 1, 0, 1, 0, 1, 1, 1, 0], "0.5"), "cyclic"),
    ],
    ids=["high-low", "high-low, several blocks", "everything", "all sensitive", "mixed blocks", "blocks"],
)
def test_the_estimate_within_parts_is_exact_by_enumeration(mechanism: Parts) -> None:
    estimator, k = estimator_for(mechanism), len(mechanism.domain)
    law, form = mechanism.matrix(), mechanism.report_format
    counts = np.zeros((mechanism.outputs, form.count_size), np.int64)
    for row, report in zip(counts, mechanism.reports(), strict=True):
        data = np.frombuffer(form.encode(report), np.uint8)[None] if form.shape else np.array([report], form.dtype)
        form.count(form.validate(data), row)
    scores = np.array([estimator.frequencies(row.astype(np.float64)) for row in counts])
    near = 1e-11 * float(np.abs(scores).max()) ** 2
    assert law @ scores == pytest.approx(np.eye(k), abs=near)
    assert estimator.second_moments() == pytest.approx(law @ (scores**2).sum(axis=1), rel=1e-9)
    for p in distributions(k):
        outputs = p @ law
        covariance = (scores * outputs[:, None]).T @ scores - np.outer(p, p)
        assert estimator.expected_counts(p) == pytest.approx(outputs @ counts, abs=1e-13)
        assert estimator.covariance(p) == pytest.approx(covariance, rel=1e-9, abs=near)
        assert estimator.variances(p) == pytest.approx(np.diag(covariance), rel=1e-9, abs=near)
        weights = np.random.default_rng(k).normal(size=k)
        assert estimator.variance(weights, p) == pytest.approx(weights @ covariance @ weights, rel=1e-9, abs=near)


@pytest.mark.parametrize("method", ["unbiased", "simplex", "mle", "efficient", "mmse"])
@pytest.mark.parametrize("design", [CyclicDesign.singer(2, 1, 4), CyclicDesign.residues(13, 3, cosets=2)], ids=str)
def test_every_method_finds_the_truth(method: str, design: dict[str, Any]) -> None:
    mechanism = CyclicDesign(R(10), 2, design=design)
    p = np.random.default_rng(5).dirichlet(np.full(10, 2.0))
    n = 10**9
    counts = np.round(n * mechanism.estimator.expected_counts(p)).astype(np.int64)
    aggregate = sf.Aggregate(mechanism.hash, int(counts.sum()), counts)
    estimate = sf.estimate(mechanism, aggregate, method, prior=p if method == "mmse" else None)
    assert estimate.frequencies == pytest.approx(p, abs=1e-4)
    low, high = estimate.interval()
    assert (low <= p).all()
    assert (p <= high).all()


@pytest.mark.slow
def test_the_efficient_estimate_has_less_variance_where_sets_hold_few_values() -> None:
    mechanism = CyclicDesign(R(3), 2, design=CyclicDesign.residues(13, 4))
    efficient = MatrixEstimator.of(mechanism)
    uniform = np.full(3, 1 / 3)
    assert efficient.variances(uniform).sum() < mechanism.estimator.variances(uniform).sum() * (1 - 1e-6)
    full = CyclicDesign(R(7), 2, design=CyclicDesign.singer(2, 1, 3))
    uniform = np.full(7, 1 / 7)
    assert MatrixEstimator.of(full).variances(uniform).sum() == pytest.approx(full.estimator.variances(uniform).sum())


@pytest.mark.slow
def test_simultaneous_intervals_of_many_values_hold_the_truth() -> None:
    """200 collections about 200 values. False rejection below 1e-6 by the binomial law, fixed by the seed."""
    mechanism = CyclicDesign(R(200), 2)
    p = 1 / np.arange(1, 201)
    p /= p.sum()
    law = mechanism.estimator.expected_counts(p)
    missed = 0
    for counts in np.random.default_rng(9).multinomial(20_000, law / law.sum(), 200):
        low, high = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, 20_000, counts)).interval(simultaneous=True)
        missed += bool(((p < low) | (p > high)).any())
    assert missed <= 27  # of 10 expected at 95%


# -- bad specs -------------------------------------------------------------------------------------------------------

SINGER_SPEC = CyclicDesign(R(7), 1, design=CyclicDesign.singer(2, 1, 3)).parameters()
RESIDUES_SPEC = CyclicDesign(R(7), 1, design=CyclicDesign.residues(7, 3)).parameters()
MISSING = object()
HUGE = 10**5000

BAD_SINGER: list[tuple[dict[str, Any], str]] = [
    ({"polynomial": [1, 1, 1, 1]}, "polynomial must be primitive modulo 2"),
    ({"polynomial": [1, 0, 0, 1]}, "polynomial must be primitive"),
    ({"polynomial": [0, 1, 0, 1]}, "polynomial must be primitive"),
    ({"polynomial": [1, 3, 0, 1]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": [1, -1, 0, 1]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": [1, True, 0, 1]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": [1, 1.0, 0, 1]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": [1, "1", 0, 1]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": [1, 1, 1]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": [1, 1, 0, 1, 0]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": [1, 1, 0, 0]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": [HUGE, 1, 0, 1]}, "polynomial must be the 4 coefficients"),
    ({"polynomial": "1101"}, "polynomial must be the 4 coefficients"),
    ({"polynomial": MISSING}, "polynomial must be the 4 coefficients"),
    ({"prime": 3}, "polynomial must be primitive modulo 3"),
    ({"prime": 4}, "prime must be a prime number"),
    ({"prime": 1}, "prime must be an integer in"),
    ({"prime": True}, "prime must be an integer in"),
    ({"prime": "2"}, "prime must be an integer in"),
    ({"prime": 2.0}, "prime must be an integer in"),
    ({"prime": HUGE}, "prime must be an integer in"),
    ({"prime": 4_194_301}, "dimension must give at most 4194304 residues"),
    ({"prime": MISSING}, "prime must be an integer in"),
    ({"power": 2}, "polynomial must be the 7 coefficients"),
    ({"power": 0}, "power must be an integer in"),
    ({"power": 23}, "power must be an integer in"),
    ({"power": HUGE}, "power must be an integer in"),
    ({"power": 22, "dimension": 22}, "dimension must give at most"),
    ({"dimension": 2}, "dimension must be an integer in"),
    ({"dimension": 10**9}, "dimension must be an integer in"),
    ({"dimension": 22}, "polynomial must be the 23 coefficients"),
    ({"modulus": 8}, "modulus must be 7"),
    ({"modulus": MISSING}, "modulus must be 7"),
    ({"blocks": 2}, "blocks must be 1"),
    ({"blocks": True}, "blocks must be 1"),
    ({"size": 4}, "size must be 3"),
    ({"size": 3.0}, "size must be 3"),
    ({"size": "3"}, "size must be 3"),
    ({"size": HUGE}, "size must be 3"),
    ({"elements": [[0, 1, 3]]}, r"design must have only the keys .*got \['elements'\]"),
    ({"D": [0, 1, 3]}, r"design must have only the keys .*got \['D'\]"),
    ({"kind": "paley"}, "design must be a dictionary with a kind, one of singer, residues"),
    ({"kind": ["singer"]}, "design must be a dictionary with a kind"),
    ({"kind": MISSING}, "design must be a dictionary with a kind"),
    ({"kind": "residues"}, "prime must be an integer in"),
]
BAD_RESIDUES: list[tuple[dict[str, Any], str]] = [
    ({"prime": 9}, "prime must be a prime number"),
    ({"prime": 2}, "prime must be an integer in"),
    ({"prime": HUGE}, "prime must be an integer in"),
    ({"prime": 4_194_319}, "prime must be an integer in"),  # a prime above 2^22
    ({"prime": 4_194_301}, "order must give at most 4194304 shifted blocks"),
    ({"prime": 4_194_301, "order": 4_194_300}, "modulus must be 4194301"),
    ({"prime": 11}, "order must divide 10"),
    ({"order": 4}, "order must divide 6"),
    ({"order": 0}, "order must be an integer in"),
    ({"order": True}, "order must be an integer in"),
    ({"order": "3"}, "order must be an integer in"),
    ({"order": 2}, "blocks must be 3"),
    ({"order": 1}, "cosets must give sets of 2 to 6 residues"),
    ({"cosets": 0}, "cosets must be an integer in"),
    ({"cosets": 3}, "cosets must be an integer in"),
    ({"cosets": 2}, "size must be 6"),
    ({"cosets": 2, "zero": 1}, "cosets must give sets of 2 to 6 residues"),
    ({"cosets": 1.0}, "cosets must be an integer in"),
    ({"zero": 1}, "size must be 4"),
    ({"zero": 2}, "zero must be an integer in"),
    ({"zero": False}, "zero must be an integer in"),
    ({"zero": None}, "zero must be an integer in"),
    ({"modulus": 11}, "modulus must be 7"),
    ({"blocks": 3}, "blocks must be 1"),
    ({"size": 2}, "size must be 3"),
    ({"power": 1}, "design must have only the keys"),
    ({"kind": "singer"}, "power must be an integer in"),
]
BAD_DESIGNS = [(SINGER_SPEC, *case) for case in BAD_SINGER] + [(RESIDUES_SPEC, *case) for case in BAD_RESIDUES]


def changed(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (document | changes).items() if value is not MISSING}


def in_whole(parameters: dict[str, Any]) -> dict[str, Any]:
    spec = dict(CyclicDesign(R(7), 1, design=SINGER_SPEC["design"]).spec)
    return spec | {"parameters": parameters}


def in_parts(parameters: dict[str, Any]) -> dict[str, Any]:
    part = CyclicDesign(R(7), 1, design=SINGER_SPEC["design"])
    mechanism = Parts(R(11), [0] * 8 + [1] * 3, [part, RandomizedResponse(R(2), 1)], [4, 9])
    spec = json.loads(mechanism.to_json())
    spec["parameters"]["kinds"][0]["parameters"] = parameters
    return dict(spec)


@pytest.mark.parametrize("place", [in_whole, in_parts])
def test_the_good_specs_are_read(place: Any) -> None:
    for parameters in (SINGER_SPEC, RESIDUES_SPEC):
        mechanism = sf.mechanism_from_spec(json.loads(json.dumps(place(parameters))))
        assert mechanism.spec == place(parameters)


@pytest.mark.parametrize("place", [in_whole, in_parts])
@pytest.mark.parametrize(("parameters", "changes", "words"), BAD_DESIGNS, ids=[str(i) for i in range(len(BAD_DESIGNS))])
def test_bad_designs_are_refused_by_name(
    place: Any, parameters: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    spec = place(parameters | {"design": changed(parameters["design"], changes)})
    with pytest.raises(InvalidInput, match=f"a cyclic design: {words}"):
        sf.mechanism_from_spec(spec)


@pytest.mark.parametrize("place", [in_whole, in_parts])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threshold": str(int(SINGER_SPEC["threshold"]) + 1)}, "CyclicDesign: threshold must be 7823227002158694817"),
        ({"threshold": str(int(SINGER_SPEC["threshold"]) - 1)}, "CyclicDesign: threshold must be 7823227002158694817"),
        ({"threshold": str(2**64 + 1)}, "CyclicDesign: threshold must be an integer in"),
        ({"threshold": True}, "CyclicDesign: threshold must be an integer in"),
        ({"threshold": "many"}, "CyclicDesign: threshold must be an integer in"),
        ({"threshold": MISSING}, "parameters must be"),
        ({"epsilon": "2"}, "threshold must be"),
        ({"epsilon": "-1"}, "epsilon must be"),
        ({"design": None}, "threshold must be"),
        ({"design": "singer"}, "a cyclic design: design must be a dictionary"),
        ({"design": [SINGER_SPEC["design"]]}, "a cyclic design: design must be a dictionary"),
        ({"design": CyclicDesign.singer(3, 1, 3)}, "threshold must be"),
        ({"design": CyclicDesign.residues(5, 2, zero=1)}, "the modulus of the design must be at least 7"),
        ({"max_bits": 9}, "parameters must be"),
        ({"elements": [[0, 1, 3]]}, "unexpected keyword argument 'elements'"),
    ],
)
def test_bad_parameters_are_refused_by_name(place: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sf.mechanism_from_spec(place(changed(SINGER_SPEC, changes)))


def test_bad_arguments_are_refused_by_name() -> None:
    for make, words in (
        (lambda: CyclicDesign(R(8), 1, design=CyclicDesign.singer(2, 1, 3)), "modulus of the design must be at least"),
        (lambda: CyclicDesign(R(1), 1), "domain must have at least two values"),
        (lambda: HighLowCyclic(R(5), [1], 1), "sensitive must be at least two values"),
        (lambda: CyclicDesign.singer(6, 1, 3), "prime must be a prime number"),
        (lambda: CyclicDesign.singer(2, 1, 10**6), "dimension must be an integer in"),
        (lambda: CyclicDesign.residues(8, 1), "prime must be a prime number"),
        (lambda: CyclicDesign.residues(7, 0), "order must be an integer in"),
        (lambda: BlockMechanism.for_policy(sf.Blocks(R(4), [0, 0, 1, 1], 1), "singer"), "inner must be one of"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            make()
