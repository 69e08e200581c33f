"""Estimates of marginals: the same as sums of single frequencies, with exact errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Floats
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms import (
    CyclicDesign,
    HadamardResponse,
    HighLowSubset,
    Mechanism,
    ProductMechanism,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from sfumato.mechanisms.estimators.marginals import kept_axes

_CELLS = sf.Domain.product(a=sf.Domain.range(2), b=sf.Domain.range(3), c=sf.Domain.range(2))
_TWO, _THREE, _SIX = (sf.Domain.range(size) for size in (2, 3, 6))

_MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "response": lambda: RandomizedResponse(_CELLS, 1),
    "subset": lambda: SubsetSelection(_CELLS, 1),
    "unary": lambda: UnaryEncoding(_CELLS, 1),
    "hadamard": lambda: HadamardResponse(_CELLS, 1),
    "cyclic": lambda: CyclicDesign(_CELLS, 1),
    "high-low": lambda: HighLowSubset(_CELLS, [(0, 0, 0), (1, 2, 1)], 1),
    "product": lambda: ProductMechanism(
        _CELLS, [RandomizedResponse(_TWO, 1), HadamardResponse(_THREE, 1), RandomizedResponse(_TWO, 2)]
    ),
    "product of two runs": lambda: ProductMechanism(_CELLS, [CyclicDesign(_SIX, 1), RandomizedResponse(_TWO, 2)]),
    "product across axes": lambda: ProductMechanism(
        _CELLS, [RandomizedResponse(sf.Domain.range(4), 1), RandomizedResponse(_THREE, 1)]
    ),
}


def _sums(axes: tuple[int, ...]) -> Floats:
    """Return a row per cell of a marginal, with ones at the values of the cell."""
    places = np.stack(np.unravel_index(np.arange(len(_CELLS)), _CELLS.shape))
    cells = itertools.product(*(range(_CELLS.shape[axis]) for axis in axes))
    rows = [(places[list(axes)] == np.reshape(cell, (-1, 1))).all(axis=0) for cell in cells]
    return np.array(rows, np.float64)


@pytest.mark.parametrize("name", _MECHANISMS)
def test_a_marginal_is_the_sum_of_frequencies_with_their_exact_errors(name: str) -> None:
    estimator = _MECHANISMS[name]().estimator
    p = np.random.default_rng(5).dirichlet(np.ones(12))
    counts, covariance = estimator.expected_counts(p), estimator.covariance(p)
    for count in range(4):
        for axes in itertools.permutations(range(3), count):
            marginal, sums = estimator.marginal(_CELLS.shape, axes), _sums(axes)
            expected = sums @ covariance @ sums.T
            assert marginal.shape == tuple(_CELLS.shape[axis] for axis in axes)
            np.testing.assert_allclose(marginal.frequencies(counts), sums @ p, atol=1e-12)
            np.testing.assert_allclose(marginal.covariance(p), expected, atol=1e-9)
            np.testing.assert_allclose(marginal.variances(p), np.diag(expected), atol=1e-9)
            assert marginal.squared_error(p) == pytest.approx(np.trace(expected), abs=1e-9)
            # Counts at their means are those of p, so the errors estimated from them are the exact ones.
            np.testing.assert_allclose(marginal.observed_covariance(counts), expected, atol=1e-7)
            np.testing.assert_allclose(marginal.observed_variances(counts), np.diag(expected), atol=1e-7)


def test_a_marginal_of_a_large_product_needs_no_array_over_all_outputs_of_all_cells() -> None:
    shape = (32, 16, 32)
    cells = sf.Domain.product(**{name: sf.Domain.range(size) for name, size in zip("abc", shape, strict=True)})
    mechanism = ProductMechanism(cells, [RandomizedResponse(sf.Domain.range(size), 1) for size in shape])
    p = np.random.default_rng(7).dirichlet(np.ones(len(cells)))
    marginal = mechanism.estimator.marginal(shape, (2, 0))
    ab = sf.Domain.product(c=sf.Domain.range(32), a=sf.Domain.range(32))
    alone = ProductMechanism(ab, [RandomizedResponse(sf.Domain.range(32), 1)] * 2).estimator
    of_pair = kept_axes(p, shape, (0, 2)).reshape(32, 32).T.reshape(-1)
    np.testing.assert_allclose(marginal.variances(p), alone.variances(of_pair), atol=1e-9)
    np.testing.assert_allclose(marginal.covariance(p), alone.covariance(of_pair), atol=1e-9)


def test_inclusion_counts_give_marginals_of_a_hundred_thousand_values() -> None:
    cells = sf.Domain.product(a=sf.Domain.range(400), b=sf.Domain.range(250))
    estimator = SubsetSelection(cells, 4).estimator
    p = np.full(len(cells), 1 / len(cells))
    rows = estimator.marginal(cells.shape, [0])
    one = (np.arange(len(cells)) < 250).astype(float)
    assert rows.variances(p)[0] == pytest.approx(estimator.variance(one, p), rel=1e-9)
    assert rows.covariance(p).shape == (400, 400)


def test_marginals_without_a_short_form_have_limits() -> None:
    cells = sf.Domain.product(a=sf.Domain.range(100), b=sf.Domain.range(100))
    estimator = HadamardResponse(cells, 1).estimator
    whole = estimator.marginal(cells.shape, [0, 1])
    with pytest.raises(LimitExceeded, match="covariance matrix over 10000 values"):
        whole.covariance(np.full(10_000, 1e-4))


@pytest.mark.parametrize(("shape", "axes"), [((2, 3), [0]), ((2, 3, 2), [0, 0]), ((2, 3, 2), [3]), ((2, 3, 2), [-1])])
def test_bad_shapes_and_axes_are_rejected(shape: tuple[int, ...], axes: list[int]) -> None:
    with pytest.raises(InvalidInput, match="a marginal"):
        RandomizedResponse(_CELLS, 1).estimator.marginal(shape, axes)
