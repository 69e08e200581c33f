"""Orbits of symmetric policies: the list contains every extreme ray, and branch and bound finds the best orbit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato.compiler.solvers.deadline import Deadline, OutOfTime
from sfumato.compiler.solvers.orbits.families import family_of
from sfumato.compiler.solvers.orbits.family import Family, PatternFamily
from sfumato.compiler.solvers.orbits.kinds import Kinds, Orbits, Sort
from sfumato.compiler.solvers.orbits.patterns import Patterns, block_patterns, class_patterns
from sfumato.compiler.solvers.orbits.pricing import InformationPrices, Prices, SquaredPrices, greatest
from sfumato.compiler.solvers.orbits.prior_rays import PriorFamily
from sfumato.compiler.solvers.slice import Slice
from support.symmetric import blocks_of, classes_of, secret_of

Floats = npt.NDArray[np.float64]
R = sf.Domain.range


def family(policy: sf.Policy, prior: Floats) -> Family:
    pairwise = policy.as_pairwise if isinstance(policy, sf.Secret) else None
    result = family_of(pairwise or policy, prior)
    assert result is not None
    return result


def all_rays(patterns: Patterns, kinds: Kinds) -> Iterator[list[Sort]]:
    """Yield every ray of every pattern, with any number of values inside every block."""
    for row in range(len(patterns)):
        cells = []
        for kind, number, high, low, limit in zip(
            patterns.kinds[row], patterns.numbers[row], patterns.highs[row], patterns.lows[row], patterns.limits[row],
            strict=True,
        ):  # fmt: skip
            size = kinds.blocks[kind].shape[1] if limit else 0
            spreads = itertools.combinations_with_replacement(range(size + 1), int(number))
            cells.append([[Sort(int(kind), float(high), float(low), d) for d in spread] for spread in spreads])
        for choice in itertools.product(*cells):
            ray = [sort for spread in choice for sort in spread]
            if any(sort.low > 0 or (sort.high > 0 and sort.inside) for sort in ray):
                yield ray


def listed(orbits_of: Family) -> Orbits:
    if isinstance(orbits_of, PriorFamily):
        return orbits_of._rays(np.arange(len(orbits_of._all)))
    assert isinstance(orbits_of, PatternFamily)
    return orbits_of.kinds.orbits(list(all_rays(orbits_of.patterns, orbits_of.kinds)))


def seen(kinds: Kinds, rays: Floats, prior: Floats) -> Floats:
    """Return what rays reveal by components, from the rays themselves."""
    columns = []
    for cells in kinds.blocks:
        of_kind = rays[:, cells]
        sums = of_kind.sum(axis=2)
        columns += [sums.sum(axis=1), sums.var(axis=1) * len(cells)]
        columns += [((of_kind - of_kind.mean(axis=2, keepdims=True)) ** 2).sum(axis=(1, 2))]
    columns.append(np.where(rays > 0, rays * np.log(np.where(rays > 0, rays, 1.0)), 0.0) @ prior)
    return np.column_stack(columns)


def of_orbits(orbits: Orbits) -> Floats:
    numbers = np.stack([orbits.sums, orbits.between, orbits.within], axis=2).reshape(len(orbits), -1)
    return np.column_stack([numbers, orbits.information])


def rounded(rows: Floats) -> set[tuple[float, ...]]:
    return {tuple(row) for row in (np.round(rows, 6) + 0.0).tolist()}


SMALL: dict[str, sf.Policy] = {
    "one epsilon": sf.Uniform(R(6), "0.7"),
    "sensitive": sf.HighLow(R(7), range(3), "1.5"),
    "equal blocks": blocks_of([3, 3, 3], "1", "1.1"),
    "unequal blocks": blocks_of([4, 3, 1], "0.5", "1.5"),
    "two sizes": blocks_of([2, 2, 1, 1, 1], "0.5", "0.8"),
    "epsilon per block": blocks_of([3, 3, 2], ["0.5", "1", "2"], "2.5"),
    "one epsilon above across": blocks_of([4, 2, 2], ["1.7", "0.6", "0.8"], "1"),
    "epsilons above across": blocks_of([3, 3, 3], ["1.2", "1.4", "5"], "1"),
    "equal blocks above across": blocks_of([3, 3, 3], "1.5", "1"),
    "above and below across": blocks_of([2, 2, 2, 2], ["0.3", "1.6", "0.9", "inf"], "1"),
    "secret 2 x 2": secret_of(2, 2, "1"),
    "secret 3 x 2": secret_of(3, 2, "0.5"),
    "secret 2 x 3": secret_of(2, 3, "1"),
    "secret 3 x 3": secret_of(3, 3, "2"),
    "secret 4 x 2": secret_of(4, 2, "1"),
    "three classes": classes_of([2, 3, 3], [["0.5", "1", "2"], ["1.5", "1", "0.7"], ["3", "2", "2.5"]]),
    "no limits": classes_of([2, 2, 3], [["1", "0.5", "2"], ["inf", "2", "1"], ["inf", "inf", "inf"]]),
    "open classes": classes_of([3, 3, 2], [["1", "inf", "inf"], ["inf", "2", "inf"], ["0.5", "inf", "3"]]),
    "single values": classes_of([1, 1, 4], [["0", "0.5", "1"], ["2", "0", "1.5"], ["0.7", "1", "1.3"]]),
    "open blocks": sf.Blocks(R(6), "aabbbc", [1, "0.5", 2]),
    "prior": sf.Prior(R(7), ["6/32"] * 3 + ["4/32"] * 2 + ["3/32"] * 2, "0.5"),
    "prior upper": sf.Prior(R(6), ["1/4"] * 2 + ["1/8"] * 4, "0.8", "upper"),
    "prior lower": sf.Prior(R(6), ["1/4"] * 2 + ["1/8"] * 4, "0.8", "lower"),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_orbits_are_those_of_all_extreme_rays(name: str) -> None:
    """Every vertex of the slice is in the list, and every listed ray obeys the policy."""
    policy = SMALL[name]
    k = len(policy.domain)
    uniform = np.full(k, 1 / k)
    prior = np.array([float(p) for p in policy.prior]) if isinstance(policy, sf.Prior) else uniform
    slice_ = Slice.of(policy, prior)
    vertices = slice_.all_vertices()
    assert vertices is not None
    every = family(policy, prior)
    orbits = listed(every)
    assert rounded(seen(every.kinds, vertices, prior)) <= rounded(of_orbits(orbits))
    rays = np.array([every.kinds.ray(sorts) for sorts in orbits.sorts])
    assert np.allclose(seen(every.kinds, rays, prior), of_orbits(orbits), rtol=1e-9, atol=1e-9)
    assert (rays @ slice_.rows.T).min() >= -1e-9
    assert np.allclose(rays @ prior, 1)


def test_initial_orbits_obey_the_policy_and_mix_to_the_constant() -> None:
    for policy in SMALL.values():
        k = len(policy.domain)
        prior = np.full(k, 1 / k)
        every = family(policy, prior)
        first = every.first()
        rays = np.array([every.kinds.ray(sorts) for sorts in first.sorts])
        assert (rays @ Slice.of(policy, prior).rows.T).min() >= -1e-9
        means = every.kinds.means(first)
        # Each ray has an opposite, so the constant lies strictly between the least and the greatest means.
        assert ((means.min(axis=0) < 1) & (means.max(axis=0) > 1)).all() or np.allclose(means, 1)


def test_shifted_rays_are_rays_of_the_same_orbit() -> None:
    policy = SMALL["two sizes"]
    prior = np.full(7, 1 / 7)
    every = family(policy, prior)
    for sorts in every.first().sorts:
        rays = np.array([every.kinds.ray(sorts, shift) for shift in range(8)])
        assert len(rounded(seen(every.kinds, rays, prior))) == 1
        assert (rays @ Slice.of(policy, prior).rows.T).min() >= -1e-9


# -- branch and bound ---------------------------------------------------------------------------------------------


def random_prices(kinds: Kinds, rng: np.random.Generator) -> Prices:
    count = len(kinds.blocks)
    if rng.random() < 0.3:
        return InformationPrices(rng.normal(scale=0.3, size=count) / kinds.values)
    root = rng.normal(size=(count, count))
    multipliers = rng.normal(size=(count, count))
    form = (root @ root.T - (multipliers + multipliers.T)) / kinds.values.mean() ** 2
    scales = np.exp(rng.uniform(-4, 4, size=(2, count)))
    return SquaredPrices(form, scales[0] / kinds.values, scales[1])


@pytest.mark.parametrize("name", [name for name, policy in SMALL.items() if not isinstance(policy, sf.Prior)])
def test_branch_and_bound_finds_the_most_valuable_orbit(name: str) -> None:
    """Compared with every number of values inside every block, at random prices."""
    policy, rng = SMALL[name], np.random.default_rng(7)
    k = len(policy.domain)
    every = family(policy, np.full(k, 1 / k))
    assert isinstance(every, PatternFamily)
    orbits = listed(every)
    for _ in range(12):
        prices = random_prices(every.kinds, rng)
        worths = prices.of(orbits)
        best, most = greatest(every.kinds, every.patterns, prices, 1e-9)
        scale = np.abs(worths).max()
        assert most == pytest.approx(worths.max(), abs=1e-8 * scale + 2e-9)
        assert prices.of(best).max() == pytest.approx(worths.max(), abs=1e-8 * scale)


def test_a_bound_holds_if_boxes_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, rng = blocks_of([30, 30, 25, 25], "0.5", "1.5"), np.random.default_rng(3)
    every = family(policy, np.full(110, 1 / 110))
    assert isinstance(every, PatternFamily)
    prices = [random_prices(every.kinds, rng) for _ in range(8)]
    exact = [greatest(every.kinds, every.patterns, each, 1e-9)[1] for each in prices]
    monkeypatch.setattr("sfumato.compiler.solvers.orbits.pricing._MANY_BOXES", 20)
    monkeypatch.setattr("sfumato.compiler.solvers.orbits.pricing._MORE_BOXES", 10)
    coarse = [greatest(every.kinds, every.patterns, each, 1e-9)[1] for each in prices]
    assert all(loose >= tight - 1e-9 for loose, tight in zip(coarse, exact, strict=True))
    assert any(loose > tight + 1e-6 for loose, tight in zip(coarse, exact, strict=True))


def test_branch_and_bound_stops_at_the_deadline() -> None:
    every = family(blocks_of([6, 5, 4], "1", "2"), np.full(15, 1 / 15))
    with pytest.raises(OutOfTime):
        every.best(InformationPrices(np.zeros(3)), 1e-9, Deadline(0))
    with pytest.raises(OutOfTime):
        class_patterns([2, 2], np.ones((2, 2)), Deadline(0))


def test_too_many_patterns_are_declined() -> None:
    assert block_patterns([1] * 11, [0.5] * 11, 1.0) is None  # eleven kinds
    assert block_patterns([70, 70], [0.5, 0.6], 1.0) is None  # 71² patterns
    assert class_patterns([2] * 6, np.ones((6, 6))) is None
