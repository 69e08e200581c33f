"""The formulas of docs/proofs/cyclic-design.md and high-low-cyclic.md, compared with exact enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest

from sfumato import Domain
from sfumato.auditing.interpreter import sampler_law
from sfumato.mechanisms import CyclicDesign, HighLowCyclic, SubsetSelection
from sfumato.mechanisms.systems.designs.correlation import _piece_bits, rounding_bound
from sfumato.mechanisms.systems.designs.families import LARGEST_OUTPUTS, DifferenceFamily, ResidueFamily, SingerSet

FAMILIES = [
    SingerSet.of(2, 1, 4),
    SingerSet.of(3, 1, 3),
    SingerSet.of(2, 2, 3),
    ResidueFamily(11, 5, 1, 0),
    ResidueFamily(13, 3, 1, 1),
    ResidueFamily(13, 2, 2, 0),
]


def differences(family: DifferenceFamily) -> Counter[int]:
    pairs = (pair for block in family.elements.tolist() for pair in itertools.permutations(block, 2))
    return Counter((first - second) % family.modulus for first, second in pairs)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_every_nonzero_residue_is_a_difference_equally_often(family: DifferenceFamily) -> None:
    v, m, d = family.modulus, family.blocks, family.size
    times = Fraction(m * d * (d - 1), v - 1)
    assert differences(family) == dict.fromkeys(range(1, v), times)


@pytest.mark.parametrize(("prime", "power", "dimension"), [(2, 1, 4), (3, 1, 3), (2, 2, 3), (2, 3, 3), (3, 2, 3)])
def test_a_singer_set_has_the_numbers_of_a_projective_space(prime: int, power: int, dimension: int) -> None:
    family, q = SingerSet.of(prime, power, dimension), prime**power
    assert family.modulus == (q**dimension - 1) // (q - 1)
    assert family.elements.shape == (1, (q ** (dimension - 1) - 1) // (q - 1))
    assert set(differences(family).values()) == {(q ** (dimension - 2) - 1) // (q - 1)}


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_inclusion_probabilities_and_risk(family: DifferenceFamily) -> None:
    k, v, d = 9, family.modulus, family.size
    mechanism = CyclicDesign(Domain.range(k), 1, design=family.document())
    gamma, density = mechanism.gamma, Fraction(d, v)
    true = gamma + (1 - gamma) * density
    other = gamma * Fraction(d - 1, v - 1) + (1 - gamma) * density
    gap = true - other
    assert gap == gamma * Fraction(v - d, v - 1)
    squares = Fraction(0)
    for x in range(k):
        law, _ = sampler_law(mechanism, x)
        contained: defaultdict[int, Fraction] = defaultdict(Fraction)
        for report, probability in law.items():
            output = int(mechanism.report_format.decode(report))
            members = [value for value in range(k) if mechanism.in_set(output, value)]
            for value in members:
                contained[value] += probability
            scores = ((value in members) - other for value in range(k))
            squares += probability * sum(score**2 for score in scores) / gap**2 / k
        assert contained == {value: true if value == x else other for value in range(k)}
    risk = (k * other * (1 - other) + gap * (1 - 2 * other)) / gap**2 - Fraction(1, k)
    assert squares - Fraction(1, k) == risk
    assert mechanism.risk(1) == pytest.approx(float(risk), rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_as_many_residues_as_values_give_the_risk_of_subsets(family: DifferenceFamily) -> None:
    domain = Domain.range(family.modulus)
    subsets = SubsetSelection(domain, 1, family.size)
    assert CyclicDesign(domain, 1, design=family.document()).risk(1) == pytest.approx(subsets.risk(1), rel=1e-12)


def test_three_values_lie_together_in_one_set_or_in_three() -> None:
    sets = [{(y - e) % 15 for e in SingerSet.of(2, 1, 4).elements[0].tolist()} for y in range(15)]
    together = Counter(
        sum(set(triple) <= members for members in sets) for triple in itertools.combinations(range(15), 3)
    )
    assert together == {1: 420, 3: 35}  # the space has 35 lines of three points


@pytest.mark.parametrize(
    "design", [SingerSet.of(2, 1, 3), ResidueFamily(7, 2, 1, 1), ResidueFamily(5, 1, 2, 0)], ids=str
)
def test_energies_among_sensitive_values(design: DifferenceFamily) -> None:
    s, harmless, v, d = 5, 3, design.modulus, design.size
    mechanism = HighLowCyclic(Domain.range(s + harmless), range(s), 1, design=design.document())
    gamma, u, r = mechanism.parts[0].gamma, Fraction(d, v), Fraction(d - 1, v - 1)
    beta, kappa = gamma * r + (1 - gamma) * u, 1 / (gamma * (1 - r))
    sensitive = s * kappa**2 * beta * (1 - beta) + kappa * (1 - 2 * beta)
    shift = s * kappa**2 * ((1 - beta) ** 2 * u + beta**2 * (1 - u))
    revealed = s * kappa**2 * (1 - gamma) ** 2 * (r - u) ** 2 + 1 / gamma**2
    p = np.array([0.3, 0.1, 0.05, 0.05, 0.0, 0.2, 0.2, 0.1])
    mass = float(p[:s].sum())
    risk = mass * sensitive + (1 - mass) * ((1 - gamma) * shift + gamma * revealed) - float(p @ p)
    assert mechanism.risk(1, p) == pytest.approx(float(risk), rel=1e-12)


@pytest.mark.parametrize(
    "design",
    [
        SingerSet(2, 1, 22, ()),
        SingerSet(2, 10, 3, ()),
        ResidueFamily(4_194_287, 2_097_143, 1, 0),
        ResidueFamily(2_887, 1, 2885, 1),
        ResidueFamily(2_039, 2, 1018, 1),
    ],
    ids=str,
)
def test_pieces_of_integers_have_sums_that_rounding_makes_exact(design: DifferenceFamily) -> None:
    assert LARGEST_OUTPUTS / 4 < design.outputs <= LARGEST_OUTPUTS
    bits = _piece_bits(design)
    assert bits >= 9
    assert rounding_bound(design, 2**bits * math.sqrt(design.outputs)) <= 0.25
