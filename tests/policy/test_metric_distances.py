"""Distances by name: exact where they are rational, and rounded down where they are not."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from support.reference import refusal

BOARD = sf.Domain.grid(4, 5)
MAP = sf.Domain.grid(latitude=(0, 2), longitude=(0, 3), rows=2, columns=3)
MIXED = sf.Domain.product(height=[1.5, 1.25, 2.0], weight=[70, 55])


def points(domain: sf.Domain) -> list[tuple[Fraction, ...]]:
    """The coordinates of all values, exact."""
    return [tuple(Fraction(str(part)) for part in np.atleast_1d(np.array(label, dtype=object))) for label in domain]


@pytest.mark.parametrize("domain", [BOARD, MIXED, sf.Domain([0.1, 3.7, -2.25]), sf.Domain([10**40, 5, -(10**35)])])
def test_distances_are_those_of_the_coordinates(domain: sf.Domain) -> None:
    manhattan, euclidean = (sf.Metric(domain, name, 1) for name in ("manhattan", "euclidean"))
    unit = Fraction(1, math.lcm(*(part.denominator for point in points(domain) for part in point)))
    for (x, first), (y, second) in itertools.product(enumerate(points(domain)), repeat=2):
        steps = [abs(a - b) for a, b in zip(first, second, strict=True)]
        assert manhattan.distance(x, y) == sum(steps)
        # Rounded down to a millionth of the unit: the square of the next multiple exceeds the exact square.
        square, step, rounded = sum(s * s for s in steps), unit / 10**6, euclidean.distance(x, y)
        assert rounded**2 <= square < (rounded + step) ** 2
        assert (rounded / step).denominator == 1
        assert euclidean.distance(y, x) == rounded
        assert (rounded == 0) == (x == y)
        if square:
            assert square * (1 - Fraction(2, 10**6)) < rounded**2


def test_rounding_down_is_never_weaker_than_the_exact_distance() -> None:
    policy = sf.Metric(BOARD, "euclidean", "ln 2")
    exact = np.sqrt(((np.array(BOARD.labels)[:, None] - np.array(BOARD.labels)) ** 2).sum(axis=2))
    effective = policy.effective_epsilon_matrix().floats
    assert (effective <= exact * math.log(2) + 1e-12).all()
    assert effective == pytest.approx(exact * math.log(2), rel=1.01e-6)


def test_whole_distances_are_exact() -> None:
    policy = sf.Metric(sf.Domain.product(a=[0, 3, 6], b=[0, 4, 8]), "euclidean", 1)
    assert policy.distance(0, 4) == 5
    assert policy.distance(0, 8) == 10
    line = sf.Metric(sf.Domain([1, 5, 7]), "euclidean", 1)
    assert sf.implies(line, sf.Metric(line.domain, "absolute", 1))
    assert sf.implies(sf.Metric(line.domain, "absolute", 1), line)


def test_subsets_of_grids_and_products_have_distances() -> None:
    some = sf.Metric(BOARD.subset([(0, 0), (3, 4)]), "euclidean", 1)
    assert some.distance(0, 1) == 5


def test_haversine_is_another_name_of_km() -> None:
    assert sf.Metric(MAP, "haversine", "0.01") == sf.Metric(MAP, "km", "0.01")
    assert sf.Metric(MAP, "haversine", "0.01").to_dict()["policy"]["distance"] == "km"


def test_documents_of_earlier_distances_did_not_change() -> None:
    assert sf.Metric(MAP, "km", "0.01").hash == "2c92e8df2b45aa3d91832815fd4a1a2f7d8b428a0aa116d6727be9e3bc611856"
    assert (
        sf.Metric(sf.Domain([1, 5, 9]), "absolute", "0.001").hash
        == "60cab46ac4c6de7172e74c04fed650d8fe0a2142c85b6eb55c3a499e77643701"
    )


@pytest.mark.parametrize(
    ("domain", "name", "message"),
    [
        (MAP, "euclidean", "match the domain: 'euclidean' rejects maps; got Domain.grid(latitude"),
        (MAP, "manhattan", "match the domain: 'manhattan' rejects maps; got Domain.grid(latitude"),
        (
            BOARD,
            "km",
            "match the domain: 'km' requires a Domain.grid with latitude and longitude; got Domain.grid(rows",
        ),
        (BOARD, "absolute", "match the domain: 'absolute' requires numeric labels; got the label (0, 0)"),
        (
            sf.Domain(["a", "b"]),
            "euclidean",
            "match the domain: 'euclidean' requires numeric labels or tuples of numbe",
        ),
        (
            sf.Domain([True, False]),
            "manhattan",
            "match the domain: 'manhattan' requires numeric labels or tuples of nu",
        ),
        (
            sf.Domain.product(a=["x"], b=[1]),
            "euclidean",
            "match the domain: 'euclidean' requires numeric labels or tup",
        ),
        (sf.Domain.product(a=BOARD, b=[1, 2]), "euclidean", "match the domain: 'euclidean' requires numeric labels or"),
        (
            BOARD,
            "chebyshev",
            "be a matrix, a function, 'absolute', 'manhattan', 'euclidean', 'discrete', 'km' or 'haversine'; got",
        ),
    ],
)
def test_unsuitable_domains_are_named(domain: sf.Domain, name: str, message: str) -> None:
    assert refusal(sf.Metric, domain, name, 1).startswith(f"Metric: distance must {message}")


def test_a_mechanism_for_a_board_is_audited() -> None:
    policy = sf.Metric(sf.Domain.grid(2, 3), "euclidean", 1)
    assert sf.audit(sf.design(policy, 1000), policy).holds


def test_random_coordinates_keep_the_policy_symmetric() -> None:
    generator = random.Random(3)
    for _ in range(20):
        labels = sorted({round(generator.uniform(-50, 50), 3) for _ in range(6)})
        factor = sf.Domain(labels)
        policy = sf.Metric(sf.Domain.product(a=factor, b=range(3)), "euclidean", "1/7")
        codes = policy.epsilon_matrix().codes
        assert np.array_equal(codes, codes.T)
        assert (np.diag(codes) == 0).all()
        assert (codes[~np.eye(len(codes), dtype=bool)] > 0).all()
