"""Set systems: what a system overrides for speed equals its default, and a system from outside gets no trust."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Integers
from sfumato.errors import InvalidInput, PolicyViolated
from sfumato.mechanisms import CyclicDesign, Draws, Finished, Mechanism, Mixture, Parts, RandomizedResponse, SetSystem
from sfumato.mechanisms.mean.shifted_bins import Bins
from sfumato.mechanisms.mixture import mixing_threshold
from sfumato.mechanisms.provenance import is_library_mechanism
from sfumato.mechanisms.registry import count_law_for, kernel_for
from sfumato.mechanisms.systems.base import Force
from sfumato.mechanisms.systems.buckets import Buckets
from sfumato.mechanisms.systems.hadamard_rows import HadamardRows
from sfumato.mechanisms.systems.shifts import Shifts
from sfumato.mechanisms.systems.singletons import Singletons
from sfumato.mechanisms.systems.subsets import Subsets
from sfumato.mechanisms.waves.sets import ShiftedWave, Wave
from sfumato.testing import check_law

SYSTEMS: dict[str, SetSystem] = {
    "one value": Singletons(1),
    "singletons": Singletons(5),
    "subsets": Subsets(6, 3, 4, 3),
    "one Hadamard block": HadamardRows(7, 8, 1),
    "Hadamard blocks, one of them short, one unused": HadamardRows(5, 4, 3),
    "Hadamard blocks of one row": HadamardRows(3, 2, 3),
    "a Singer set": Shifts(6, CyclicDesign(sf.Domain.range(6), 1, design=CyclicDesign.singer(2, 1, 3)).design),
    "residues": Shifts(5, CyclicDesign(sf.Domain.range(5), 1, design=CyclicDesign.residues(11, 5, zero=1)).design),
    "two buckets": Buckets(6, 2),
    "three buckets": Buckets(7, 3),
}
#: Systems of a choice, which do not separate all pairs of values, or separate some by more sets than others.
OF_CHOICES: dict[str, SetSystem] = {
    "a wave": ShiftedWave(6, 8, Wave(1, 8, 3)),
    "bins of some offsets": Bins(7, 4, range(2), 3),
    "bins of all offsets": Bins(6, 5, range(5), 2),
}
every = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
every_or_of_a_choice = pytest.mark.parametrize(
    "system", [*SYSTEMS.values(), *OF_CHOICES.values()], ids=[*SYSTEMS, *OF_CHOICES]
)


class Listed(SetSystem):
    """The sets of another system, with the defaults of all methods."""

    def __init__(self, system: SetSystem) -> None:
        self.system, self.size, self.blocks = system, system.size, system.blocks

    @property
    def outputs(self) -> int:
        return self.system.outputs

    @property
    def density(self) -> Fraction:
        return self.system.density

    def contains(self, report: int, x: int) -> bool:
        return self.system.contains(report, x)

    def reports(self) -> Iterable[int]:
        return self.system.reports()

    def block_of(self) -> Integers:
        return self.system.block_of()


def set_of(system: SetSystem, report: int) -> tuple[int, ...]:
    return tuple(x for x in range(system.size) if system.contains(report, x))


@every_or_of_a_choice
def test_every_value_is_in_the_stated_share_of_the_sets(system: SetSystem) -> None:
    sets = [set_of(system, report) for report in system.reports()]
    assert len(sets) == system.outputs
    for x in range(system.size):
        assert Fraction(sum(x in each for each in sets), len(sets)) == system.density


@every_or_of_a_choice
def test_sums_over_sets_are_those_of_the_listed_sets(system: SetSystem) -> None:
    listed, generator = Listed(system), np.random.default_rng(3)
    assert listed.empty_outputs() == system.empty_outputs()
    if isinstance(system, Subsets):
        return  # its outputs are too many to list, and its estimator counts values
    weights, outputs = generator.random(system.size), generator.random(system.outputs)
    np.testing.assert_array_equal(listed.members(range(system.size)), system.members(range(system.size)))
    np.testing.assert_allclose(listed.spread(weights), system.spread(weights), atol=1e-12)
    np.testing.assert_allclose(listed.gather(outputs), system.gather(outputs), atol=1e-12)
    share = float(system.pair_density or 0)
    np.testing.assert_allclose(listed.contrast(outputs, share), system.contrast(outputs, share), atol=1e-12)
    np.testing.assert_allclose(listed.shared(outputs), system.shared(outputs), atol=1e-12)
    whole = np.array([3**40 + x for x in range(system.size)], object)
    assert listed.spread(whole).tolist() == system.spread(whole).tolist()
    counts = generator.integers(0, 10**9, system.outputs)
    assert listed.gather(counts).tolist() == system.gather(counts).tolist()


@every
def test_reports_that_audits_compare_are_the_worst(system: SetSystem) -> None:
    listed, generator = Listed(system), np.random.default_rng(4)
    for x, other in itertools.permutations(range(system.size), 2):
        for each in (system, listed):
            assert each.contains(each.separating(x, other), x)
            assert not each.contains(each.separating(x, other), other)
    if system.size == 1:
        return
    for _ in range(5):
        weights = [Fraction(int(w), 97) for w in generator.integers(0, 50, system.size)]
        sets = [set_of(system, report) for report in system.reports()]
        masses = [sum(weights[x] for x in each) for each in sets if 0 < len(each) < system.size]
        for heaviest, best in ((False, min(masses)), (True, max(masses))):
            report = system.extreme(weights, heaviest=heaviest)
            assert sum(weights[x] for x in set_of(system, report)) == best
            assert 0 < len(set_of(system, report)) < system.size


@every
def test_values_together_are_those_of_the_listed_sets(system: SetSystem) -> None:
    listed, values = Listed(system), np.arange(system.size)
    pairs, kinds = listed._pair_counts(values), system.pair_kinds(values)
    off = ~np.eye(system.size, dtype=bool)
    for kind in np.unique(kinds[off]):
        assert len(np.unique(pairs[off & (kinds == kind)])) == 1
    block, share = system.block_of(), Fraction(int(system.density * system.outputs))
    for x, other in itertools.permutations(range(system.size), 2):
        expected = system.pair_density * share if block[x] == block[other] else 0  # type: ignore[operator]
        assert pairs[x, other] == expected
    classes = system.symmetry_classes()
    for one, two in itertools.product(range(system.size), repeat=2):
        if classes[one] == classes[two]:
            assert sorted(pairs[one]) == sorted(pairs[two])
    for values_of in itertools.combinations(range(system.size), min(3, system.size)):
        assert dict(listed.pattern_counts(values_of)) == dict(system.pattern_counts(values_of))
    if system.triple_density is not None and system.size > 2:
        together = dict(listed.pattern_counts([0, 1, 2])).get((True, True, True), 0)
        assert together == system.triple_density * pairs[0, 1]


def mixture_over(sets: SetSystem) -> Mixture:
    """A mixture with a name, over sets from outside."""

    class Outside(Mixture):
        name = "outside-mixture"

        def __init__(self, domain: sf.Domain, epsilon: Any, *, threshold: int | str | None = None) -> None:
            super().__init__(domain, epsilon, sets, threshold=threshold)

    return Outside(sf.Domain.range(sets.size), "ln 3")


@pytest.mark.parametrize("name", [name for name, each in SYSTEMS.items() if each.blocks == 1 and each.size > 1])
def test_a_mixture_over_listed_sets_has_law_estimator_and_audit(name: str) -> None:
    system = SYSTEMS[name]
    if isinstance(system, Subsets):
        return  # its reports are bitmaps, which need the library's format
    mechanism = mixture_over(Listed(system))
    check_law(mechanism)
    policy = sf.Uniform(mechanism.domain, "ln 3")
    certificate = sf.audit(mechanism, policy)
    assert certificate.holds
    assert certificate.coverage == "all"
    assert not sf.audit(mechanism, sf.Uniform(mechanism.domain, "ln 2.99")).holds
    matrix, p = mechanism.matrix(), np.arange(1, system.size + 1) / sum(range(1, system.size + 1))
    estimator = mechanism.estimator
    np.testing.assert_allclose(estimator.frequencies(p @ matrix), p, atol=1e-12)
    scores = np.array([estimator.frequencies(row) for row in np.eye(mechanism.outputs)])
    covariance = (scores.T * (p @ matrix)) @ scores - np.outer(p, p)
    np.testing.assert_allclose(estimator.covariance(p), covariance, atol=1e-9)
    assert mechanism.risk(1, p) == pytest.approx(np.trace(covariance))
    np.testing.assert_allclose(estimator.second_moments(), (matrix @ scores**2).sum(axis=1), rtol=1e-9)


class Unbalanced(SetSystem):
    """The pairs {y, y + 1} modulo k: neighbours share a set, other values do not."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def outputs(self) -> int:
        return self.size

    @property
    def density(self) -> Fraction:
        return Fraction(2, self.size)

    def contains(self, report: int, x: int) -> bool:
        return (x - report) % self.size < 2


def test_sets_that_are_not_balanced_get_a_least_squares_estimate() -> None:
    mechanism = mixture_over(Unbalanced(5))
    assert Unbalanced(5).pair_density is None
    p = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(mechanism.estimator.frequencies(p @ mechanism.matrix()), p, atol=1e-12)
    assert sf.audit(mechanism, sf.Uniform(mechanism.domain, "ln 3")).holds


# -- systems that lie ----------------------------------------------------------------------------------------


class LyingDraw(Unbalanced):
    """Force only the first of the two sets of a value."""

    def step(self, state: int, draws: Draws, force: Force) -> Finished:
        return Finished(state if force() else draws.below(self.outputs))


class LyingContains(Unbalanced):
    """State that every set has all values, so that no report would tell values apart."""

    def contains(self, report: int, x: int) -> bool:  # noqa: ARG002
        return True

    def member(self, x: int, number: int) -> int:
        return (x - number) % self.size


class LyingDensity(Unbalanced):
    """State sets of twice the density, so that the threshold is too large."""

    @property
    def density(self) -> Fraction:
        return Fraction(4, self.size)

    def step(self, state: int, draws: Draws, force: Force) -> Finished:
        return Finished((state - draws.below(2)) % self.size if force() else draws.below(self.outputs))


class LyingSeparating(LyingDraw):
    """State a report that does not separate anything as the worst one, to hide a sampler that is wrong."""

    def separating(self, x: int, other: int) -> int:  # noqa: ARG002
        return 0

    def extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:  # noqa: ARG002
        return 0


def lying(system: Unbalanced, place: str) -> tuple[Mechanism, sf.Policy]:
    """A mechanism over a system that lies, and the policy that it claims to obey."""
    domain = sf.Domain.range(5)
    if place == "a class from outside":
        return mixture_over(system), sf.Uniform(domain, "ln 3")
    mixture = RandomizedResponse(domain, "ln 3")
    mixture.system, mixture.threshold = system, mixture_over(system).threshold
    if place == "a class of the library":
        return mixture, sf.Uniform(domain, "ln 3")
    wider = sf.Domain.range(8)
    if place == "one part":
        return Parts(wider, [0] * 8, [mixture], [0, 4, 7]), sf.HighLow(wider, [1, 2, 3, 5, 6], "ln 3")
    honest = RandomizedResponse(sf.Domain.range(3), "ln 3")
    return Parts(wider, [0, 1, 1, 0, 1, 1, 1, 0], [honest, mixture]), sf.Blocks(wider, "abbabbba", "ln 3")


@pytest.mark.parametrize("kind", [LyingDraw, LyingSeparating])
@pytest.mark.parametrize("place", ["a class from outside", "a class of the library", "one part", "one of two parts"])
def test_a_system_that_lies_is_caught(kind: type[Unbalanced], place: str) -> None:
    mechanism, policy = lying(kind(5), place)
    assert not is_library_mechanism(mechanism)
    assert kernel_for(mechanism) is None
    assert count_law_for(mechanism) is None
    assert mechanism.audit_surrogate() is None
    with pytest.raises(AssertionError, match="does not have the law"):
        check_law(mechanism)
    certificate = sf.audit(mechanism, policy)
    assert not certificate.holds
    assert certificate.coverage == "all"
    with pytest.raises(PolicyViolated):
        sf.Ledger().charge("a question", mechanism, policy)


def test_parts_of_the_library_are_trusted() -> None:
    mechanism = Parts(sf.Domain.range(3), [0] * 3, [RandomizedResponse(sf.Domain.range(2), "ln 3")], [1])
    assert is_library_mechanism(mechanism)
    assert kernel_for(mechanism) is not None
    assert count_law_for(mechanism) is not None


class TooManyOutputs(Unbalanced):
    """State one output too many."""

    @property
    def outputs(self) -> int:
        return self.size + 1


@pytest.mark.parametrize("kind", [LyingContains, LyingDensity, TooManyOutputs])
def test_sets_without_their_density_are_rejected(kind: type[Unbalanced]) -> None:
    with pytest.raises(InvalidInput, match="be the share of the sets that contain each value"):
        mixture_over(kind(5))
    # Sets that are too many to count are rejected by the audit of their sampler.
    domain = sf.Domain.range(5)
    mechanism = RandomizedResponse(domain, "ln 3")
    mechanism.system = kind(5)
    mechanism.threshold = mixing_threshold(mechanism.epsilon, mechanism.system.density)
    assert not is_library_mechanism(mechanism)
    with pytest.raises((AssertionError, IndexError)):
        check_law(mechanism)


class Windows(SetSystem):
    """The sets {y, …, y + width - 1} modulo k, whose width a forgetful author leaves out of the spec."""

    def __init__(self, size: int, width: int) -> None:
        self.size, self.width = size, width

    @property
    def outputs(self) -> int:
        return self.size

    @property
    def density(self) -> Fraction:
        return Fraction(self.width, self.size)

    def contains(self, report: int, x: int) -> bool:
        return (x - report) % self.size < self.width


def test_a_spec_that_lacks_a_parameter_is_not_the_same_mechanism() -> None:
    class Forgetful(Mixture):
        name = "outside-forgetful"

        def __init__(
            self, domain: sf.Domain, epsilon: Any, *, width: int = 2, threshold: int | str | None = None
        ) -> None:
            super().__init__(domain, epsilon, Windows(len(domain), width), threshold=threshold)

    original = Forgetful(sf.Domain.range(7), 1, width=4)
    rebuilt = Forgetful.from_parameters(original.domain, original.parameters())
    assert rebuilt.spec == original.spec
    assert rebuilt != original
    ledger = sf.Ledger(budget=sf.Uniform(original.domain, 5))
    ledger.charge("first", original, sf.Uniform(original.domain, 1))
    with pytest.raises(PolicyViolated):
        ledger.charge("second", rebuilt, sf.Uniform(original.domain, 1))
