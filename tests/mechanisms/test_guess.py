"""The probability that the best guess from a report is right: every closed form against the sum over the exact law."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato import mechanisms as make
from sfumato.errors import LimitExceeded
from sfumato.mechanisms.base import Mechanism

EPSILONS = [0, "0.1", "0.5", 1, "ln 3", 2, 5, 10, 20, 45, "inf"]


def enumerated(mechanism: Mechanism) -> Fraction:
    """The sum over the exact law, which every mechanism has by default."""
    return Mechanism.guess_probability(mechanism)


def small_mechanisms(epsilon: Any) -> Iterator[Mechanism]:
    """Every family over small domains, its odd shapes among them."""
    infinite = epsilon == "inf"
    for k in (2, 3, 4, 5, 7):
        domain = sf.Domain.range(k)
        yield make.RandomizedResponse(domain, epsilon)
        yield make.UnaryEncoding(domain, epsilon)
        yield make.UnaryEncoding(domain, epsilon, optimized=True)
        for size in range(1, k):
            yield make.SubsetSelection(domain, epsilon, size)
        for block_size in (2, 4, 8, 16):
            fewest = -(-k // (block_size - 1))
            for blocks in (fewest, fewest + 2):
                yield make.HadamardResponse(domain, epsilon, block_size=block_size, blocks=blocks)
        for design in (make.CyclicDesign.singer(2, 1, 3), make.CyclicDesign.residues(11, 2, cosets=3, zero=1)):
            yield make.CyclicDesign(domain, epsilon, design=design)
            yield make.HighLowCyclic(domain, range(max(2, k - 1)), epsilon, design=design)
        for sensitive in range(1, k + 1):
            values = range(sensitive)
            yield make.HighLowHadamard(domain, values, epsilon)
            for size in range(1, max(2, sensitive)):
                yield make.HighLowSubset(domain, values, epsilon, size)
        for inner in (None, "rr", "subset", "hadamard", "cyclic"):
            for labels in ([x % 2 for x in range(k)], [min(x, 2) for x in range(k)], [0] * k):
                yield make.BlockMechanism.for_policy(sf.Blocks(domain, labels, epsilon), inner)
        yield make.BinaryOptimal(sf.Domain.range(2), epsilon, 1)
        for width in range(1, k + 2):
            yield make.Waves(domain, epsilon, modulus=k + 2, waves=[(1, 1, width, 3), (1, k, 1, 1)])
    if not infinite:
        across = f"{epsilon}+1" if isinstance(epsilon, str) else epsilon + 1
        for labels in ([0, 0, 1, 1], [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]):
            yield make.NestedCyclic(sf.Domain.range(len(labels)), labels, epsilon, across, max_bits=6)
        for labels in ([0, 1, 1], [0, 0, 0, 1, 2], [0, 0, 1, 1, 2]):
            domain = sf.Domain.range(len(labels))
            yield make.NestedCyclic(domain, labels, epsilon, across, max_bits=6)
            for of_values in range(1, len(labels)):
                for of_blocks in range(1, labels[-1] + 1):
                    yield make.ComposedSubsets(domain, labels, epsilon, across, sizes=[of_values, of_blocks])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_closed_forms_are_the_sum_over_the_law(epsilon: Any) -> None:
    for mechanism in small_mechanisms(epsilon):
        found = mechanism.guess_probability()
        assert found == enumerated(mechanism), mechanism
        assert Fraction(1, len(mechanism.domain)) <= found <= 1


def test_closed_forms_hold_for_thresholds_that_no_policy_gave() -> None:
    generator = random.Random(5)

    def threshold() -> int:
        return generator.choice([0, 1, 2**64, generator.randrange(2**64)])

    for _ in range(60):
        k = generator.randrange(2, 6)
        domain = sf.Domain.range(k)
        own, other = sorted((threshold(), threshold()), reverse=True)
        thresholds = [threshold(), threshold()]
        found = [
            make.RandomizedResponse(domain, 1, threshold=threshold()),
            make.HadamardResponse(domain, 1, threshold=threshold()),
            make.SubsetSelection(domain, 1, threshold=threshold()),
            make.UnaryEncoding(domain, 1, own=own, other=other),
            make.Parts(
                domain, [0] * k, [make.RandomizedResponse(sf.Domain.range(1), 1, threshold=threshold())], range(1, k)
            ),
            make.ComposedSubsets(sf.Domain.range(4), "aaab", 1, 2, thresholds=thresholds),
        ]
        for mechanism in found:
            assert mechanism.guess_probability() == enumerated(mechanism), mechanism


@pytest.mark.parametrize(
    ("epsilon", "exact"), [(5, "0.980187"), (10, "0.999864"), (20, "1.000000"), ("inf", "1.000000")]
)
def test_the_figures_of_randomized_response_of_four_values(epsilon: Any, exact: str) -> None:
    mechanism = make.RandomizedResponse(sf.Domain.range(4), epsilon)
    assert f"{float(mechanism.guess_probability()):.6f}" == exact
    assert (mechanism.guess_probability() == 1) == (epsilon == "inf")


@pytest.mark.slow
def test_large_mechanisms_have_a_closed_form() -> None:
    blocks = [x % 7 for x in range(300)] + [7] * 11
    domain = sf.Domain.range(len(blocks))
    for mechanism in (
        make.HadamardResponse(sf.Domain.range(10**5), 2),
        make.SubsetSelection(sf.Domain.range(1000), 1),
        make.UnaryEncoding(sf.Domain.range(2000), 1),
        make.ComposedSubsets(domain, blocks, 1, 2),
        make.NestedCyclic(domain, blocks, 1, 2),
        make.Waves(domain, 1),
        make.BlockMechanism.for_policy(sf.Blocks(domain, blocks, 1)),
    ):
        found = mechanism.guess_probability()
        assert Fraction(1, len(mechanism.domain)) < found < 1


def test_a_law_too_long_to_go_through_is_not_guessed_at() -> None:
    class Unknown(make.SubsetSelection):
        guess_probability = Mechanism.guess_probability

    with pytest.raises(LimitExceeded, match="cannot enumerate the outputs"):
        Unknown(sf.Domain.range(100), 1).guess_probability()
