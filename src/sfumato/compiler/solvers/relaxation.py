"""A bound on the best design that does not need the vertices of the slice.

For v in a cone with rows r_i·v ≥ 0, all products (r_i·v)(r_j·v) are non-negative. For every design, J = Σ w·vv'
therefore satisfies r_i'Jr_j ≥ 0, is positive semidefinite, and J·p = Σ w·v·(v·p) = 1. Minimising tr J⁻¹ under these
conditions alone is a convex program, and its minimum is a lower bound for every design.

Let N = J⁻¹ at an iterate, with multipliers λ of J·p = 1 and y ≥ 0 of the products. Up to a rest, N² is the symmetric
part of λp' - Σ y_ij·r_i r_j'. Every design therefore has tr J⁻¹ ≥ 2·tr N - tr(N²J) ≥ 2·tr N - λ·1 - rest. The rest is
bounded by the limits of the entries of J, so the bound holds also before the method has converged. With N scaled by its
best factor, the bound is (tr N)²/(λ·1 + rest).

For answers W·p, the program minimises tr(W·J⁻¹·W') instead, with a small multiple of the identity added to W'W, and the
certificate uses N = W·J⁻¹ in the same way.

Two devices make the bound stronger and the program smaller:

* Under a pairwise policy, the greatest coordinate m = max v_x is one more coordinate of the cone (*lifting*): v_x ≤ m ≤
  v_z·max_x e^E(x,z). Without it, the products do not know that all values share one maximum. Under one epsilon between
  all values, the bound without m is half of the least error, and with m it is nearly equal to it.
* By convexity, J may be taken constant on orbits of pairs under the symmetries of the policy (``symmetry``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.answers import Answers
from sfumato.compiler.solvers.deadline import Deadline, OutOfTime
from sfumato.compiler.solvers.interior import minimise
from sfumato.compiler.solvers.local_search import independent_rules
from sfumato.compiler.solvers.slice import Slice, pair_rows
from sfumato.compiler.solvers.symmetry import automorphisms, pair_orbits
from sfumato.errors import SolverFailed

__all__ = ["least_trace"]


#: Number of products per variable that the first round uses, and that a round adds, the most violated first.
_FIRST, _ADDED = 8, 2
#: Minimum number of products of the first round.
_LEAST_PRODUCTS = 1000
#: Maximum number of faces; their pairs are then at most a hundred million.
_MOST_FACES = 10_000
#: Maximum number of variables; a Newton step takes about a second for 3,000.
_MOST_VARIABLES = 5000
#: Newton steps after which the bound is worth something, operations per second of one core, and seconds per variable
#: and step.
_STEPS, _OPERATIONS_PER_SECOND, _LOOP_SECONDS = 12, 1e10, 3e-5
#: Seconds to find the violated products, per pair of faces.
_PAIR_SECONDS = 3e-8
#: Minimum relative increase of the bound in a round; a smaller one ends the search.
_LEAST_GAIN = 1e-4
#: Precision of the minimum; the bound accounts for what remains.
_PRECISION = 1e-8
#: Violation of a product, relative to the greatest one, and size of a negative eigenvalue that are tolerated.
_VIOLATED = 1e-7
#: Ratio of the epsilons through m to those between the values up to which m strengthens the bound.
_LIFTED = 1.6
#: Squares (m - a·p·v)² ≥ 0 in the first round, with factors a relative to the mean of m.
_SQUARES = (0.6, 0.8, 0.9, 1.0, 1.1, 1.25, 1.6)
#: Fraction of moments inside the cone at the start, where all products are positive.
_INSIDE = 0.1
#: Multiples δ of the identity in the program for answers, relative to W'W: the last one first, another if it fails.
_REGULAR = (1e-4, 1e-6)
#: Fraction of the time for symmetries.
_SYMMETRY_FRACTION = 0.1


def least_trace(slice_: Slice, rays: Floats, weights: Floats, deadline: Deadline) -> float:
    """Return a lower bound on tr(W·J⁻·W') of every design, given some design of the slice.

    Every round yields a bound, including one that the deadline interrupts, and further rounds improve it. Without time
    for a round, or with too many rules, the bound is the trace without any noise.
    """
    noiseless = slice_.least_trace
    rules = len(slice_.rows) if slice_.epsilons is None else int(slice_.independent.sum())
    if rules + 2 * slice_.size > _MOST_FACES:
        return noiseless
    try:
        cone = _cone(slice_, rays, deadline)
    except OutOfTime:
        return noiseless
    if cone.variables > _MOST_VARIABLES or not deadline.fits(_seconds(cone)):
        return noiseless
    lifted = cone.lifted(rays)
    moments = (lifted * weights[:, None]).T @ lifted
    factors = [np.eye(slice_.size)] if slice_.answers is None else [slice_.answers.factor(d) for d in _REGULAR]
    program = _Program(cone, slice_.prior, moments, slice_.answers, factors.pop())
    products = _Products(cone, slice_.prior, moments)
    bound, before = noiseless, 0.0  # the first rounds may have too few products to exceed it
    while not deadline.passed:
        try:
            reached, moments = program.solve(products.rows(), deadline)
        except SolverFailed:
            if not factors:
                break
            program.factor = factors.pop()
            continue
        bound = max(bound, reached)
        if not products.add_violated(moments) or reached < before * (1 + _LEAST_GAIN):
            break
        before = reached
    return bound


def _seconds(cone: _Cone) -> float:
    """Estimate the processor time of a dozen Newton steps, after which the bound is worth something."""
    variables, size = cone.variables, len(cone.limits)
    operations = variables**3 / 3 + 8 * _FIRST * variables**2 + variables * size**2
    return _STEPS * (operations / _OPERATIONS_PER_SECOND + _LOOP_SECONDS * variables) + (
        _PAIR_SECONDS * len(cone.heads) * len(cone.faces)
    )


@dataclass(frozen=True, eq=False)
class _Cone:
    """A cone of vectors v, perhaps with one more coordinate m, and the orbits of its pairs of coordinates.

    Parameters
    ----------
    faces
        Rows r with r·v ≥ 0.
    heads
        Indices of faces, one for each orbit of faces.
    inner
        Vectors whose average lies inside the cone.
    limits
        The greatest value of each coordinate on the slice.
    orbits
        The orbit of each pair of coordinates.
    over
        The coordinates whose maximum is m, or None if there is no m.
    """

    faces: Floats
    heads: npt.NDArray[np.int64]
    inner: Floats
    limits: Floats
    orbits: npt.NDArray[np.int64]
    over: npt.NDArray[np.bool_] | None = None

    @property
    def variables(self) -> int:
        """Number of different entries of a matrix that is constant on orbits."""
        return int(self.orbits.max()) + 1

    def inside(self) -> Floats:
        """Return moments for which every product of faces is positive unless it is zero on the whole cone."""
        centre = self.inner.mean(axis=0)
        return np.asarray(self.inner.T @ self.inner / len(self.inner) + np.outer(centre, centre)) / 2

    def lifted(self, rays: Floats) -> Floats:
        """Return the rays with their coordinate m."""
        if self.over is None:
            return rays
        return np.column_stack([rays, rays[:, self.over].max(axis=1)])


def _cone(slice_: Slice, rays: Floats, deadline: Deadline) -> _Cone:
    """Return the cone of a slice, with a further coordinate and symmetries under a pairwise policy."""
    size, between = slice_.size, slice_.epsilons
    if between is None:
        limits = slice_.most(np.eye(size), deadline)
        faces = np.concatenate([slice_.rows, np.eye(size), np.outer(limits, slice_.prior) - np.eye(size)])
        lengths = np.abs(faces).max(axis=1, keepdims=True)
        faces = (faces / np.where(lengths > 0, lengths, 1.0))[lengths[:, 0] > 1e-12 * lengths.max()]
        inner = np.concatenate([rays, np.ones((1, size)) / slice_.prior.sum()])
        return _Cone(faces, np.arange(len(faces)), inner, limits, pair_orbits(size, []))
    square = None if slice_.answers is None else slice_.answers.square
    generators = automorphisms(between, slice_.prior, deadline.part(_SYMMETRY_FRACTION), square)
    over: npt.NDArray[np.bool_] = np.asarray(np.isfinite(between).all(axis=1))
    epsilons = between
    if _is_worth_lifting(between[over]):
        epsilons = np.pad(between, (0, 1), constant_values=np.inf)
        epsilons[:size][over, size], epsilons[size, size] = 0.0, 0.0
        epsilons[size, :size] = between[over].max(axis=0)
        generators = [np.append(g, size) for g in generators]
    prior = np.pad(slice_.prior, (0, len(epsilons) - size))
    rules = slice_.independent if epsilons is between else independent_rules(epsilons)
    pairs, faces = np.argwhere(rules), pair_rows(epsilons, rules)
    free = ~(faces > 0).any(axis=0)  # no rule keeps these coordinates above zero
    heads = _first_of_orbits(pairs, len(epsilons), generators)
    heads = np.append(heads, len(faces) + np.arange(free.sum()))
    faces = np.concatenate([faces, np.eye(len(epsilons))[free]])
    greatest = np.exp(-epsilons)
    least = np.exp(np.minimum(epsilons.T, 300.0))[np.isfinite(epsilons).all(axis=0)]
    inner = np.concatenate([greatest, least])
    inner /= (inner @ prior)[:, None]
    return _Cone(
        faces,
        heads,
        inner,
        inner.max(axis=0),
        pair_orbits(len(epsilons), generators),
        over if len(epsilons) > size else None,
    )


def _is_worth_lifting(epsilons: Floats) -> bool:
    """Return whether the rules through m are nearly as strict as the rules between the values, given their rows."""
    positive = epsilons[epsilons > 0]
    return len(epsilons) > 1 and len(positive) > 0 and float(epsilons.max(axis=0).mean() / positive.mean()) < _LIFTED


def _first_of_orbits(
    pairs: npt.NDArray[np.intp], size: int, generators: list[npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    """Return the index of the first pair of each orbit of ordered pairs."""
    if not generators:
        return np.arange(len(pairs))
    sparse = import_late("scipy.sparse")
    places = np.zeros((size, size), dtype=np.int64)
    places[tuple(pairs.T)] = np.arange(len(pairs))
    images = np.concatenate([places[g[pairs[:, 0]], g[pairs[:, 1]]] for g in generators])
    origins = np.tile(np.arange(len(pairs)), len(generators))
    graph = sparse.csr_matrix((np.ones(len(images), dtype=np.int8), (origins, images)), shape=(len(pairs), len(pairs)))
    labels = import_late("scipy.sparse.csgraph").connected_components(graph, directed=False)[1]
    return np.asarray(np.unique(labels, return_index=True)[1], dtype=np.int64)


class _Products:
    """The products of faces, and squares, that the program uses so far."""

    def __init__(self, cone: _Cone, prior: Floats, moments: Floats) -> None:
        self._cone = cone
        faces = cone.faces
        most = int((faces != 0).sum(axis=1).max())
        self._places = np.argsort(faces == 0, axis=1, kind="stable")[:, :most]
        self._entries = np.take_along_axis(faces, self._places, axis=1)
        #: Pairs of a head and a face, each product once.
        self._open = np.ones((len(cone.heads), len(faces)), dtype=bool)
        if len(cone.heads) == len(faces):
            self._open &= np.triu(self._open)
        values = self._values(moments)
        inside = self._values(cone.inside())
        self._open &= inside > 1e-12 * inside.max()  # a product that vanishes inside the cone vanishes everywhere
        self._chosen: list[npt.NDArray[np.intp]] = []
        self._squares: list[Floats] = []
        # E[v_x²] ≤ limit·E[v_x·(v·p)] limits the moments before other products do.
        caps = np.zeros((len(cone.limits), cone.variables))
        places = np.arange(len(cone.limits))
        np.add.at(caps, (places[:, None], cone.orbits[:, : len(prior)]), cone.limits[:, None] * prior)
        np.add.at(caps, (places, np.diag(cone.orbits)), -1.0)
        self._caps = caps[np.unique(caps.round(12), axis=0, return_index=True)[1]]
        if cone.over is not None:
            mean = float(moments[-1, :-1] @ prior)
            self._squares += [np.append(-factor * mean * prior, 1.0) for factor in _SQUARES]
            # The products of two rules on m limit its moments.
            about = cone.faces[:, -1] != 0
            self._take(np.where(np.outer(about[cone.heads], about), -np.inf, np.inf), values.size, 0.0)
        self._take(values, max(_FIRST * cone.variables, _LEAST_PRODUCTS))

    def _values(self, moments: Floats) -> Floats:
        return np.asarray(self._cone.faces[self._cone.heads] @ moments @ self._cone.faces.T)

    def _take(self, values: Floats, most: int, limit: float = np.inf) -> int:
        """Use the products of least value that are below a limit, as many as allowed; return their number."""
        places = np.flatnonzero(self._open)
        some = values.ravel()[places]
        places, some = places[some < limit], some[some < limit]
        if len(places) > most:
            places = places[np.argpartition(some, most)[:most]]
        self._open.ravel()[places] = False
        self._chosen.append(places)
        return len(places)

    def add_violated(self, moments: Floats) -> bool:
        """Add the most violated products, and squares of negative eigenvalues; return whether there are any."""
        values = self._values(moments)
        number = self._take(values, _ADDED * self._cone.variables, -_VIOLATED * float(np.abs(values).max()))
        eigenvalues, vectors = np.linalg.eigh(moments)
        negative = vectors.T[eigenvalues < -_VIOLATED * eigenvalues[-1]]
        self._squares += list(negative)
        return number > 0 or len(negative) > 0

    def rows(self) -> Any:
        """Return the products and squares as a sparse matrix, with one column per orbit of entries."""
        sparse, orbits = import_late("scipy.sparse"), self._cone.orbits
        first, second = np.divmod(np.concatenate(self._chosen), len(self._cone.faces))
        first = self._cone.heads[first]
        columns = orbits[self._places[first][:, :, None], self._places[second][:, None, :]]
        values = self._entries[first][:, :, None] * self._entries[second][:, None, :]
        rows = np.repeat(np.arange(len(first)), values[0].size) if len(first) else np.zeros(0, dtype=np.int64)
        shape = len(first), self._cone.variables
        parts = [sparse.csr_matrix(self._caps), sparse.csr_matrix((values.ravel(), (rows, columns.ravel())), shape)]
        if self._squares:
            squares = [np.bincount(orbits.ravel(), np.outer(q, q).ravel()) for q in self._squares]
            parts.append(sparse.csr_matrix(np.array(squares)))
        return sparse.vstack(parts).tocsr()


class _Program:
    """Minimise tr(F·J⁻¹·F') over matrices that are constant on orbits, with J·p = 1 and non-negative products.

    F'F is W'W for the answers W, plus a small multiple of the identity, or the identity for frequencies.
    """

    def __init__(self, cone: _Cone, prior: Floats, moments: Floats, answers: Answers | None, factor: Floats) -> None:
        self._cone, size = cone, len(prior)
        self._rows = np.eye(size) if answers is None else answers.rows
        #: The matrix F.
        self.factor = factor
        self._orbits = cone.orbits[:size, :size]
        rows = np.zeros((size, cone.variables))
        np.add.at(rows, (np.arange(size)[:, None], self._orbits), prior)
        self._equations, first = np.unique(rows.round(12), axis=0, return_index=True)
        self._equations = rows[first]
        order = np.argsort(self._orbits.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(self._orbits.ravel(), minlength=cone.variables))
        self._members = [divmod(part, size) for part in np.split(order, ends[:-1])]
        # Most of the start satisfies J·p = 1: the given design, and the constant vector, which obeys rules strictly.
        start = (1 - _INSIDE) * (moments + 1) / 2 + _INSIDE * cone.inside()
        self._start = np.bincount(cone.orbits.ravel(), start.ravel()) / np.bincount(cone.orbits.ravel())
        # E[v_x·v_z] is at most the limit of either coordinate times the mean of the other, which is 1.
        limits, means = cone.limits, np.minimum(cone.limits, np.where(np.arange(len(cone.limits)) < size, 1.0, np.inf))
        caps = np.minimum(np.outer(limits, means), np.outer(means, limits))
        self._caps = np.zeros(cone.variables)
        np.maximum.at(self._caps, cone.orbits, caps)

    def solve(self, products: Any, deadline: Deadline) -> tuple[float, Floats]:
        """Return a lower bound and the moments at which the minimisation ended."""
        inside = products @ self._start
        products = products[inside > 1e-13 * inside.max()]
        right = np.ones(len(self._equations))
        solution = minimise(self._inverse_trace, self._equations, right, products, self._start, _PRECISION, deadline)
        turned = self._rows @ np.linalg.inv(solution.x[self._orbits])
        trace = float(np.einsum("ij,ij->", turned, self._rows))
        rest = self._equations.T @ solution.equations - products.T @ solution.inequalities
        rest -= np.bincount(self._orbits.ravel(), (turned.T @ turned).ravel(), self._cone.variables)
        unexplained = float(np.maximum(-rest, 0.0) @ self._caps)
        total = float(solution.equations.sum()) + unexplained
        bound = trace**2 / total if total > 0 else 0.0
        return (bound if math.isfinite(bound) else 0.0), solution.x[self._cone.orbits]

    def _inverse_trace(self, entries: Floats) -> tuple[float, Floats, Floats] | None:
        """Return tr(F·J⁻¹·F'), its gradient and its Hessian by the entries; None unless J is positive definite."""
        matrix, variables = entries[self._orbits], self._cone.variables
        try:
            np.linalg.cholesky(matrix)
            inverse: Floats = np.linalg.inv(matrix).astype(np.float64)
        except np.linalg.LinAlgError:
            return None
        turned = self.factor @ inverse
        square = turned.T @ turned
        flat = self._orbits.ravel()
        hessian = np.zeros((variables, variables))
        for number, (rows, columns) in enumerate(self._members):
            if len(rows):
                change = inverse[:, rows] @ square[columns]
                hessian[number] = np.bincount(flat, (change + change.T).ravel(), variables)
        slopes = -np.bincount(flat, square.ravel(), variables).astype(np.float64)
        return float(np.einsum("ij,ij->", turned, self.factor)), slopes, hessian
