"""Permutations of the values that leave a policy unchanged, and the pairs of values that they map to each other.

A permutation that preserves all epsilons and the distribution turns a mechanism into another one with the same error.
The information matrix J of the best mechanism may therefore be taken constant on the orbits of pairs. A grid of 64
cells has 2,080 pairs but only a few hundred orbits.

Exchangeable values are merged first, because their permutations are known. The search then fixes one value after
another. Values are distinguished by their epsilons to the fixed ones and to each other, until no class changes (colour
refinement). Two colourings that agree up to the order of the values suggest a permutation, which is then checked.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.deadline import NEVER, Deadline

__all__ = ["automorphisms", "pair_orbits"]

#: Indices or codes, one per value or pair of values.
_Codes = npt.NDArray[np.int64]

#: Maximum number of values that the search for one permutation tries in the place of another.
_MOST_TRIES = 8


def automorphisms(
    epsilons: Floats, prior: Floats, deadline: Deadline = NEVER, square: Floats | None = None
) -> list[_Codes]:
    """Return permutations that preserve the epsilons and the distribution and generate all of these or some.

    They also preserve the symmetric matrix ``square``, if any, up to rounding. Permutation ``g`` maps value x to
    ``g[x]``. After the deadline, only the permutations so far are returned.
    """
    size = len(prior)
    each = _codes(epsilons)
    codes = each * (each.max() + 1) + each.T  # both directions of a pair
    if square is not None:
        codes = _codes(codes) * size**2 + _codes(np.round(square / np.abs(square).max(), 9))
    with np.errstate(divide="ignore"):  # ln 0 is one more colour
        logarithms = np.round(np.log(prior), 12)
    kinds = np.stack([logarithms, np.diag(codes)])
    colours = np.unique(kinds, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return _generators(codes, colours, deadline)


def _codes(entries: npt.NDArray[Any]) -> _Codes:
    """Return the rank of each entry of a square matrix; equal entries have the same rank."""
    return np.unique(entries, return_inverse=True)[1].reshape(entries.shape).astype(np.int64)


def pair_orbits(size: int, generators: list[_Codes]) -> _Codes:
    """Return the orbit number of each pair of values, as a symmetric matrix; (x, z) and (z, x) share an orbit."""
    sparse = import_late("scipy.sparse")
    pairs = np.arange(size * size).reshape(size, size)
    images = [pairs.T, *(pairs[np.ix_(g, g)] for g in generators)]
    edges = np.concatenate([image.ravel() for image in images])
    origins = np.tile(pairs.ravel(), len(images))
    graph = sparse.csr_matrix((np.ones(len(edges), dtype=np.int8), (origins, edges)), shape=(size**2, size**2))
    labels = import_late("scipy.sparse.csgraph").connected_components(graph, directed=False)[1]
    return np.asarray(labels, dtype=np.int64).reshape(size, size)


def _generators(codes: _Codes, colours: _Codes, deadline: Deadline) -> list[_Codes]:
    """Return generators of the permutations that preserve the codes of pairs and the colours of values."""
    size = len(colours)
    classes = _exchangeable(codes, colours)
    members = [np.flatnonzero(classes == number) for number in range(int(classes.max()) + 1)]
    if len(members) == size:
        return _searched(codes, colours, deadline)
    generators = []
    for some in members:
        for first, second in itertools.pairwise(some):
            swap = np.arange(size)
            swap[[first, second]] = second, first
            generators.append(swap)
    # One value represents each class; its colour states the size of the class and the code between its members.
    heads = np.array([some[0] for some in members])
    within = np.array([codes[some[0], some[-1]] for some in members])
    sizes = np.array([len(some) for some in members])
    kinds = np.unique(np.stack([colours[heads], sizes, within], axis=1), axis=0, return_inverse=True)[1]
    for step in _generators(codes[np.ix_(heads, heads)], kinds.reshape(-1).astype(np.int64), deadline):
        lifted = np.empty(size, dtype=np.int64)
        for number, image in enumerate(step.tolist()):
            lifted[members[number]] = members[image]
        generators.append(lifted)
    return generators


def _exchangeable(codes: _Codes, colours: _Codes) -> _Codes:
    """Return the class of each value; any two values of a class can be swapped."""
    size = len(colours)
    classes = np.full(size, -1, dtype=np.int64)
    for x in range(size):
        if classes[x] >= 0:
            continue
        classes[x] = classes.max() + 1
        later = np.flatnonzero((classes < 0) & (colours == colours[x]))
        differs = (codes[later] != codes[x]) | (codes[:, x] != codes[:, later].T)
        differs[:, x] = False
        differs[np.arange(len(later)), later] = False
        # A code states both directions, so the pair itself is symmetric if both orders have the same code.
        same = ~differs.any(axis=1) & (codes[later, x] == codes[x, later])
        classes[later[same]] = classes[x]
    return classes


def _searched(codes: _Codes, colours: _Codes, deadline: Deadline) -> list[_Codes]:
    """Return generators by a search: those that move the first value, then those that fix it and move the next."""
    generators: list[_Codes] = []
    colours = _refined(colours, colours, codes)[0]
    while int(colours.max()) + 1 < len(colours):
        first = int(np.argmax(np.bincount(colours)[colours] > 1))
        reached = np.arange(len(colours)) == first  # images of the first value under the permutations so far
        steps: list[_Codes] = []
        for other in np.flatnonzero(colours == colours[first]).tolist():
            if deadline.passed:
                return generators
            if reached[other]:
                continue
            step = _permutation(_fixed(colours, first), _fixed(colours, other), codes, deadline)
            if step is not None:
                steps.append(step)
                before = -1
                while before < reached.sum():
                    before = int(reached.sum())
                    for g in steps:
                        reached[g[reached]] = True
        generators += steps
        colours = _refined(_fixed(colours, first), _fixed(colours, first), codes)[0]
    return generators


def _fixed(colours: _Codes, x: int) -> _Codes:
    """Return the colours with a new one for a single value."""
    fixed = colours.copy()
    fixed[x] = int(colours.max()) + 1
    return fixed


def _refined(first: _Codes, second: _Codes, codes: _Codes) -> tuple[_Codes, _Codes]:
    """Refine two colourings in the same way, until no colour splits; equal colours stay comparable."""
    size = len(first)
    both = np.unique(np.concatenate([first, second]), return_inverse=True)[1].astype(np.int64)
    number = int(both.max()) + 1
    while number < size:
        views = [np.sort(codes * number + part[None, :], axis=1) for part in (both[:size], both[size:])]
        signatures = np.column_stack([both, np.concatenate(views)])
        both = np.unique(signatures, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
        if int(both.max()) + 1 == number:
            break
        number = int(both.max()) + 1
    return both[:size], both[size:]


def _permutation(first: _Codes, second: _Codes, codes: _Codes, deadline: Deadline) -> _Codes | None:
    """Return a permutation that maps the first colouring to the second and preserves the codes, or None."""
    first, second = _refined(first, second, codes)
    counts = np.bincount(first, minlength=int(max(first.max(), second.max())) + 1)
    if deadline.passed or not np.array_equal(counts, np.bincount(second, minlength=len(counts))):
        return None
    if counts.max() == 1:
        images = np.empty(len(first), dtype=np.int64)
        images[np.argsort(first)] = np.argsort(second)
        return images if np.array_equal(codes[np.ix_(images, images)], codes) else None
    x = int(np.argmax(counts[first] > 1))
    for other in np.flatnonzero(second == first[x])[:_MOST_TRIES].tolist():
        step = _permutation(_fixed(first, x), _fixed(second, other), codes, deadline)
        if step is not None:
            return step
    return None
