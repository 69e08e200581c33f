"""Policies that bind pairs of values: T_x ≤ e^E[x,x']·T_x' (context-aware LDP, Acharya et al. 2020, Def. 2)."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, EpsilonLike, exceeds
from sfumato.domain import Domain, align_table, checked_domain
from sfumato.errors import CannotCompose, InvalidInput, LimitExceeded
from sfumato.policy.base import UNCONSTRAINED, Inequality, Policy, TightestConstraint
from sfumato.policy.epsilon_matrix import INFINITE_CODE, LARGEST_DENSE, EpsilonMatrix

__all__ = ["MatrixPolicy", "Pairwise", "PairwisePolicy"]

#: Log-likelihood ratios this close to the limit, relative to the numbers at hand, are decided exactly. Doubles and the
#: logarithms of the C library are good to about 1e-15, so the filter passes nothing wrongly.
_FILTER_MARGIN = 1e-9
#: Maximum number of values for which rules that follow from two others are removed; it takes k³ quick steps.
_LARGEST_REDUCED = 1024


class PairwisePolicy(Policy):
    """Any policy whose rules bind pairs of values.

    Values of one *class* are exchangeable: swapping two of them changes no epsilon. What holds for all pairs
    can then be read off a few representatives of each class, which is what makes large domains cheap.
    """

    @abstractmethod
    def epsilon_between(self, x: int, other: int) -> Epsilon:
        """E[x, other] as declared, for indices of two values; zero on the diagonal."""

    @abstractmethod
    def classes(self) -> npt.NDArray[np.int64]:
        """The class of each value, numbered from 0."""

    @abstractmethod
    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        """The declared epsilons between these values."""

    @abstractmethod
    def effective_epsilon(self, x: int, other: int) -> Epsilon:
        """The epsilon that the rules imply together: the shortest path from x to other."""

    @abstractmethod
    def effective_epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        """The effective epsilons between these values."""

    @functools.cached_property
    def least(self) -> tuple[Epsilon, tuple[int, int]]:
        """The smallest epsilon between two different values, with such a pair."""
        return self._extreme(self.epsilons_on, greatest=False)

    @functools.cached_property
    def greatest_effective(self) -> tuple[Epsilon, tuple[int, int]]:
        """The greatest effective epsilon between two different values, with such a pair."""
        return self._extreme(self.effective_epsilons_on, greatest=True)

    def _extreme(self, epsilons_on: Any, *, greatest: bool) -> tuple[Epsilon, tuple[int, int]]:
        if len(self.domain) == 1:
            return (ZERO if greatest else INFINITE), (0, 0)
        indices = representatives(self.classes())
        matrix: EpsilonMatrix = epsilons_on(indices)
        epsilon, (x, other) = matrix.greatest() if greatest else matrix.least()
        return epsilon, (int(indices[x]), int(indices[other]))

    def epsilon_matrix(self) -> EpsilonMatrix:
        """The declared matrix E, dense; refused above a few thousand values."""
        return self.epsilons_on(self._all_indices())

    def effective_epsilon_matrix(self) -> EpsilonMatrix:
        """The matrix E closed under shortest paths, dense; refused above a few thousand values."""
        return self.effective_epsilons_on(self._all_indices())

    def _all_indices(self) -> npt.NDArray[np.intp]:
        size = len(self.domain)
        if size > LARGEST_DENSE:
            raise LimitExceeded(f"a dense matrix over {size} values is refused (at most {LARGEST_DENSE})")
        return np.arange(size)

    def inequalities(self) -> Iterator[Inequality]:
        labels = self.domain.labels
        for x in range(len(labels)):
            for other in range(len(labels)):
                epsilon = self.epsilon_between(x, other)
                if x != other and not epsilon.is_infinite:
                    yield Inequality({x: Fraction(1)}, {other: Fraction(1)}, epsilon, (labels[x], labels[other]))

    def worst(self, likelihoods: Sequence[object]) -> TightestConstraint:
        exact = self._checked(likelihoods)
        if not any(exact) or len(exact) == 1:
            return UNCONSTRAINED
        # The worst pair of a class against a class is its largest likelihood against the other's smallest.
        indices = _class_extremes(self.classes(), exact)
        pair = worst_pair([exact[i] for i in indices], self.epsilons_on(indices))
        if pair is None:
            return UNCONSTRAINED
        x, other = int(indices[pair[0]]), int(indices[pair[1]])
        names = (self.domain.label(x), self.domain.label(other))
        return TightestConstraint.of(exact[x], exact[other], self.epsilon_between(x, other), names)

    def allows_all(self, columns: Sequence[Sequence[int]]) -> bool:
        """Decide all columns together in doubles, and exactly the pairs that come close to their epsilon."""
        weights = np.array(columns, dtype=np.int64).reshape(-1, len(self.domain))
        highest, lowest, matrix = self._class_rules(weights)
        limits = np.where(matrix.codes < INFINITE_CODE, matrix.floats, np.nan)  # nothing is near no rule
        if np.isnan(limits).all():
            return True
        margins = _FILTER_MARGIN * (89 + limits)  # logarithms of weights are below 44
        near_below, near_above = limits - margins, limits + margins
        with np.errstate(divide="ignore"):
            logs = np.log(highest), np.log(lowest)
        # What no pair can exceed by far less than the least epsilon needs no look at pairs.
        with np.errstate(invalid="ignore"):
            spread = logs[0].max(axis=1) - logs[1].min(axis=1)
        doubtful = np.flatnonzero(~(spread < np.nanmin(near_below)) & (highest > 0).any(axis=1))
        decided: dict[tuple[int, int, int], bool] = {}
        epsilon = functools.cache(matrix.epsilon)
        for column in doubtful.tolist():
            with np.errstate(invalid="ignore"):  # 0 is within e^ε of everything, also of 0
                apart = logs[0][column][:, None] - logs[1][column]
                near = np.argwhere(apart >= near_below)
            if (apart[tuple(near.T)] > near_above[tuple(near.T)]).any():
                return False
            for x, other in near.tolist():
                key = (int(highest[column, x]), int(lowest[column, other]), int(matrix.codes[x, other]))
                if key not in decided:
                    decided[key] = exceeds(key[0], key[1], epsilon(key[2]))
                if decided[key]:
                    return False
        return True

    def _class_rules(
        self, weights: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], EpsilonMatrix]:
        """Return the largest and the smallest weight of each class in each column, and the epsilons between classes.

        Of a class with one member no epsilon binds it to itself.
        """
        classes = self.classes()
        order = np.argsort(classes, kind="stable")
        starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
        first, last = order[starts], order[np.append(starts[1:], len(order)) - 1]
        several = np.flatnonzero(first != last)
        matrix = self.epsilons_on(np.concatenate([first, last[several]]))
        codes = matrix.codes[: len(first), : len(first)].copy()
        np.fill_diagonal(codes, INFINITE_CODE)
        codes[several, several] = matrix.codes[several, len(first) + np.arange(len(several))]
        return (
            np.maximum.reduceat(weights[:, order], starts, axis=1),
            np.minimum.reduceat(weights[:, order], starts, axis=1),
            EpsilonMatrix(codes, matrix.unit, matrix.table),
        )

    def without_sums(self) -> PairwisePolicy:
        """Return the same cone without the rules that are the sum of two others: on a line, only neighbours are left.

        Both parts of a sum are smaller than it, so what is dropped follows from what is kept, epsilon by epsilon.
        """
        if len(self.domain) > _LARGEST_REDUCED:
            return self
        matrix = self.effective_epsilon_matrix()
        if matrix.unit is None:  # codes do not add
            return self
        codes = matrix.codes
        finite = np.where(codes == 0, INFINITE_CODE, codes)  # neither itself nor an equal is a step on the way
        follows = np.zeros(codes.shape, dtype=bool)
        for middle in range(len(codes)):
            follows |= finite[:, middle, None] + finite[middle] == codes
        if not follows.any():
            return self
        reduced = np.where(follows, INFINITE_CODE, codes)
        return Pairwise._from_epsilon_matrix(self.domain, EpsilonMatrix(reduced, matrix.unit, matrix.table))

    def posterior_odds_bound(self, x: object, other: object, prior_odds: Fraction | int = 1) -> float:
        """The most that the odds of ``x`` against ``other`` can be after a report, given the odds before."""
        epsilon = self.effective_epsilon(self.domain.index(x), self.domain.index(other))
        return float(prior_odds) * epsilon.exp() if prior_odds else 0.0  # what is impossible stays so: 0·∞ = 0

    def compose(self, other: Policy) -> Policy:
        if not isinstance(other, PairwisePolicy):
            return other.compose(self)
        if other.domain != self.domain:
            raise InvalidInput(type(self).__name__, "other.domain", "be the same domain", other.domain)
        same_structure = self._compose_same(other)
        if same_structure is not None:
            return same_structure
        if len(self.domain) > LARGEST_DENSE:
            raise CannotCompose(
                f"{self.kind} and {other.kind} over {len(self.domain)} values have no common structure, and a "
                f"dense matrix is refused above {LARGEST_DENSE} values"
            )
        return Pairwise._from_epsilon_matrix(
            self.domain, self.effective_epsilon_matrix().plus(other.effective_epsilon_matrix())
        )

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:  # noqa: ARG002
        """The composition where both policies share their structure, else None."""
        return None

    def restrict(self, values: Sequence[Any]) -> Policy:
        domain = self.domain.subset(values)
        indices = np.array([self.domain.index(value) for value in values])
        return Pairwise._from_epsilon_matrix(domain, self.effective_epsilons_on(indices))


class MatrixPolicy(PairwisePolicy):
    """A policy that keeps the ε of every two values in ``_levels``; the shortest path between two values binds."""

    _epsilon_matrix: EpsilonMatrix

    def classes(self) -> npt.NDArray[np.int64]:
        return np.arange(len(self.domain))

    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._epsilon_matrix.on(indices)

    @functools.cached_property
    def _closed(self) -> EpsilonMatrix:
        # Stated epsilons need not obey the triangle inequality.
        return self._epsilon_matrix.closed()

    def effective_epsilon(self, x: int, other: int) -> Epsilon:
        return self._closed.at(x, other)

    def effective_epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._closed.on(indices)


class Pairwise(MatrixPolicy):
    """Any matrix of epsilons: ``Pairwise(domain, matrix)``, asymmetric if need be, ``inf`` for no rule.

    ``matrix[x][x']`` bounds how much likelier ``x`` may make an output than ``x'`` does. Give a dense square
    matrix in domain order, one with labels on both axes (a DataFrame, a mapping of mappings), which is aligned by them,
    or a mapping ``{(value, other value): epsilon}`` in which what is not named is not constrained.
    """

    kind = "pairwise"

    def __init__(self, domain: Domain, matrix: Any) -> None:
        self.domain = checked_domain("Pairwise", domain)
        self._epsilon_matrix = _read_matrix(domain, matrix)

    @classmethod
    def _from_epsilon_matrix(cls, domain: Domain, matrix: EpsilonMatrix) -> Pairwise:
        """Epsilons that were computed, not written by a person: kept writable."""
        self = object.__new__(cls)
        self.domain = domain
        self._epsilon_matrix = matrix.as_promises()
        return self

    def epsilon_between(self, x: int, other: int) -> Epsilon:
        return ZERO if x == other else self._epsilon_matrix.at(x, other)

    def parameters(self) -> dict[str, Any]:
        distinct, positions = np.unique(self._epsilon_matrix.codes, return_inverse=True)
        strings = [str(self._epsilon_matrix.epsilon(int(code))) for code in distinct]
        rows = np.asarray(strings, dtype=object)[positions].reshape(self._epsilon_matrix.codes.shape)
        return {"matrix": rows.tolist()}


def _read_matrix(domain: Domain, matrix: Any) -> EpsilonMatrix:
    size = len(domain)
    if size > LARGEST_DENSE:
        raise InvalidInput("Pairwise", "domain", f"have at most {LARGEST_DENSE} values", size)
    if isinstance(matrix, Mapping) and not _is_nested(matrix):
        return _read_sparse(domain, matrix)
    matrix = align_table(domain, domain, matrix, "Pairwise", "matrix")
    try:
        array = np.asarray(matrix, dtype=None if isinstance(matrix, np.ndarray) else object)
    except ValueError:
        array = np.empty(0)
    if array.shape != (size, size):
        raise InvalidInput("Pairwise", "matrix", f"be square, {size} by {size} like its domain", _shape(matrix))
    # Equal entries of equal type are read once: a matrix of a few thousand values is mostly repetition.
    if array.dtype == object:
        known: dict[tuple[type, object], int] = {}
        keys = [(type(entry), _hashable(entry, domain, i)) for i, entry in enumerate(array.ravel().tolist())]
        positions = np.array([known.setdefault(key, len(known)) for key in keys])
        entries: list[Any] = [entry for _, entry in known]
        first = np.unique(positions, return_index=True)[1]
    else:
        distinct, first, positions = np.unique(array.ravel(), return_index=True, return_inverse=True)
        entries = list(distinct)
    epsilons = [
        _read_entry(entry, domain, *divmod(place, size)) for entry, place in zip(entries, first.tolist(), strict=True)
    ]
    positions = positions.reshape(size, size)
    for x in range(size):
        if epsilons[positions[x, x]] != ZERO:
            raise InvalidInput(
                "Pairwise", f"the matrix at ({domain.label(x)!r}, itself)", "be 0", entries[positions[x, x]]
            )
    return EpsilonMatrix.from_epsilons(positions, epsilons)


def _is_nested(matrix: Mapping[Any, Any]) -> bool:
    """Whether a mapping holds the rows of a matrix, not epsilons of pairs."""
    return bool(matrix) and all(isinstance(row, Mapping) for row in matrix.values())


def _hashable(entry: Any, domain: Domain, place: int) -> Any:
    try:
        hash(entry)
    except TypeError:
        _read_entry(entry, domain, *divmod(place, len(domain)))
    return entry


def _read_sparse(domain: Domain, entries: Mapping[Any, EpsilonLike]) -> EpsilonMatrix:
    size = len(domain)
    positions = np.ones((size, size), dtype=np.intp)
    np.fill_diagonal(positions, 0)
    epsilons: list[Epsilon] = [ZERO, INFINITE]
    for key, value in entries.items():
        if not (isinstance(key, tuple) and len(key) == 2):
            raise InvalidInput("Pairwise", "every key of the matrix", "be a pair of values", key)
        x, other = domain.index(key[0]), domain.index(key[1])
        epsilon = _read_entry(value, domain, x, other)
        if x == other and epsilon != ZERO:
            raise InvalidInput("Pairwise", f"the matrix at ({key[0]!r}, itself)", "be 0", value)
        positions[x, other] = len(epsilons)
        epsilons.append(epsilon)
    return EpsilonMatrix.from_epsilons(positions, epsilons)


def _read_entry(entry: Any, domain: Domain, x: int, other: int) -> Epsilon:
    return Epsilon(entry, subject="Pairwise", parameter=f"the matrix at ({domain.label(x)!r}, {domain.label(other)!r})")


def _shape(matrix: Any) -> str:
    try:
        rows = [len(row) for row in matrix]
    except TypeError:
        return f"{type(matrix).__name__}"
    lengths = sorted(set(rows))
    return f"{len(rows)} rows of length {', '.join(map(str, lengths)) or 'none'}"


# -- representatives of classes --------------------------------------------------------------------------


def representatives(*classes: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Two members of each joint class (one where there is but one): every kind of pair occurs among them."""
    joint = np.stack(classes, axis=1)
    order = np.lexsort(joint.T[::-1])
    changed = np.any(np.diff(joint[order], axis=0) != 0, axis=1)
    starts = np.concatenate([[True], changed])
    seconds = np.concatenate([[False], starts[:-1] & ~starts[1:]])
    return np.sort(order[starts | seconds])


def _class_extremes(classes: npt.NDArray[np.int64], values: Sequence[Fraction]) -> npt.NDArray[np.intp]:
    """For each class the place of its largest and its smallest value, two places where it has two members."""
    if len(np.unique(classes)) == len(values):
        return np.arange(len(values))
    order = sorted(range(len(values)), key=values.__getitem__)
    smallest: dict[int, int] = {}
    largest: dict[int, int] = {}
    for index in order:
        smallest.setdefault(int(classes[index]), index)
        largest[int(classes[index])] = index
    return np.array(sorted({*smallest.values(), *largest.values()}))


def worst_pair(exact: Sequence[Fraction], matrix: EpsilonMatrix) -> tuple[int, int] | None:
    """The pair (x, x') with the largest T_x / (e^E[x,x']·T_x'); a certified violation first; None if nothing binds."""
    logs = np.array([math.log(v.numerator) - math.log(v.denominator) if v else -math.inf for v in exact])
    with np.errstate(invalid="ignore"):
        excess = logs[:, None] - logs - matrix.floats
    excess[(matrix.codes >= INFINITE_CODE) | np.isneginf(logs)[:, None]] = -math.inf
    np.fill_diagonal(excess, -math.inf)
    x, other = divmod(int(np.argmax(excess)), excess.shape[1])
    if np.isneginf(excess[x, other]):
        return None
    sizes = np.where(np.isfinite(logs), np.abs(logs), 0)
    margins = _FILTER_MARGIN * (1 + sizes[:, None] + sizes + matrix.floats)
    if excess[x, other] > margins[x, other]:
        return x, other
    # Whatever might be a violation is decided exactly, the worst first.
    doubtful = np.argwhere(np.isfinite(excess) & (excess >= -margins))
    order = np.argsort(-excess[tuple(doubtful.T)], kind="stable")
    decided: dict[tuple[Fraction, Fraction, int], bool] = {}
    for a, b in doubtful[order].tolist():
        key = (exact[a], exact[b], int(matrix.codes[a, b]))
        if key not in decided:
            decided[key] = exceeds(exact[a], exact[b], matrix.epsilon(key[2]))
        if decided[key]:
            return a, b
    return x, other
