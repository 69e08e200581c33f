"""Policies on pairs of values: T_x ≤ e^E[x,x']·T_x' (context-aware LDP, Acharya et al. 2020, Def. 2)."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, EpsilonLike, exceeds, quantity
from sfumato.domain import Domain, align_table, checked_domain
from sfumato.errors import CannotCompose, Description, InvalidInput, LimitExceeded
from sfumato.policy.base import UNCONSTRAINED, Inequality, Policy, TightestConstraint
from sfumato.policy.epsilon_matrix import INFINITE_CODE, LARGEST_DENSE, EpsilonMatrix

__all__ = ["MatrixPolicy", "Pairwise", "PairwisePolicy"]

#: Relative distance of a log-likelihood ratio from its limit below which it is decided exactly. Floats and the
#: logarithms of the C library are accurate to about 1e-15, so the filter makes no wrong decision.
_FILTER_MARGIN = 1e-9
#: Maximum number of values for which rules implied by two others are removed; it takes k³ fast steps.
_LARGEST_REDUCED = 1024


class PairwisePolicy(Policy):
    """Base class of policies whose rules compare pairs of values, such as Uniform, Blocks, Metric and Pairwise.

    The rule of an ordered pair (x, x') is Q(y|x) ≤ e^E[x,x']·Q(y|x') for every output y, where Q(y|x) is the
    probability of y for value x. E[x,x'] is the *declared* epsilon of the pair. The *effective* epsilon is the smallest
    one that follows from all rules together: the length of the shortest path from x to x'.

    Values of the same *class* are exchangeable: swapping two of them does not change any epsilon. A property of all
    pairs can therefore be checked on a few representatives of each class, which keeps large domains fast.
    """

    @abstractmethod
    def epsilon_between(self, x: int, other: int) -> Epsilon:
        """Return the epsilon that the policy declares for an ordered pair of values.

        Parameters
        ----------
        x
            Index of the first value.
        other
            Index of the second value.

        Returns
        -------
        Epsilon
            E[x, other]: an output is at most e^E[x, other] times as likely for x as for other. It is 0 if both are the
            same value, and infinite if the policy declares no limit.
        """

    @abstractmethod
    def classes(self) -> npt.NDArray[np.int64]:
        """Return the class of each value; swapping two values of one class does not change any epsilon.

        Returns
        -------
        numpy.ndarray
            One class number per value, in domain order. Classes are numbered from 0.
        """

    @abstractmethod
    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        """Return the declared epsilons of all ordered pairs of some values.

        Parameters
        ----------
        indices
            Indices of the values in the domain.

        Returns
        -------
        EpsilonMatrix
            Square matrix with rows and columns in the order of ``indices``.
        """

    @abstractmethod
    def effective_epsilon(self, x: int, other: int) -> Epsilon:
        """Return the smallest epsilon of an ordered pair that follows from all rules of the policy together.

        For example, limits of 1 from a to b and of 2 from b to c imply a limit of 3 from a to c.

        Parameters
        ----------
        x
            Index of the first value.
        other
            Index of the second value.

        Returns
        -------
        Epsilon
            The length of the shortest path from x to other, where each step costs its declared epsilon.
        """

    @abstractmethod
    def effective_epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        """Return the effective epsilons (see :meth:`effective_epsilon`) of all ordered pairs of some values.

        Paths may use values that are not in the list.

        Parameters
        ----------
        indices
            Indices of the values in the domain.

        Returns
        -------
        EpsilonMatrix
            Square matrix with rows and columns in the order of ``indices``.
        """

    @functools.cached_property
    def least(self) -> tuple[Epsilon, tuple[int, int]]:
        """Smallest declared epsilon of an ordered pair of different values, and the two indices of such a pair."""
        return self._extreme(self.epsilons_on, greatest=False)

    @functools.cached_property
    def greatest_effective(self) -> tuple[Epsilon, tuple[int, int]]:
        """Greatest :meth:`effective_epsilon` between two different values, and the two indices of such a pair."""
        return self._extreme(self.effective_epsilons_on, greatest=True)

    def _extreme(self, epsilons_on: Any, *, greatest: bool) -> tuple[Epsilon, tuple[int, int]]:
        """Return the smallest or greatest epsilon among representatives of all classes, and its pair."""
        if len(self.domain) == 1:
            return (ZERO if greatest else INFINITE), (0, 0)
        indices = representatives(self.classes())
        matrix: EpsilonMatrix = epsilons_on(indices)
        epsilon, (x, other) = matrix.greatest() if greatest else matrix.least()
        return epsilon, (int(indices[x]), int(indices[other]))

    def epsilon_matrix(self) -> EpsilonMatrix:
        """Return the declared epsilons of all ordered pairs of values.

        Returns
        -------
        EpsilonMatrix
            Square matrix with rows and columns in domain order; entry (x, x') is ``epsilon_between(x, x')``.

        Raises
        ------
        LimitExceeded
            If the domain has more than 4096 values.
        """
        return self.epsilons_on(self._all_indices())

    def effective_epsilon_matrix(self) -> EpsilonMatrix:
        """Return the effective epsilons (see :meth:`effective_epsilon`) of all ordered pairs of values.

        Returns
        -------
        EpsilonMatrix
            Square matrix with rows and columns in domain order.

        Raises
        ------
        LimitExceeded
            If the domain has more than 4096 values, or if it is large and the epsilons are not multiples of one common
            unit.
        """
        return self.effective_epsilons_on(self._all_indices())

    def _all_indices(self) -> npt.NDArray[np.intp]:
        """Return the indices of all values, or reject a domain that is too large for a dense matrix."""
        size = len(self.domain)
        if size > LARGEST_DENSE:
            raise LimitExceeded(
                f"a matrix of epsilons over {size} values exceeds the limit of {LARGEST_DENSE} values. "
                "Use fewer values, or a Uniform, HighLow, Blocks or PerValue policy, which needs no matrix."
            )
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
        # The worst pair of two classes has the largest likelihood of the first and the smallest of the second.
        indices = _class_extremes(self.classes(), exact)
        pair = worst_pair([exact[i] for i in indices], self.epsilons_on(indices))
        if pair is None:
            return UNCONSTRAINED
        x, other = int(indices[pair[0]]), int(indices[pair[1]])
        names = (self.domain.label(x), self.domain.label(other))
        return TightestConstraint.of(exact[x], exact[other], self.epsilon_between(x, other), names)

    def allows_all(self, columns: Sequence[Sequence[int]] | npt.NDArray[np.int64]) -> bool:
        """Return whether a mechanism may have all of these outputs; the answer is exact.

        Most pairs of values are decided in floats; those close to their limit are decided in exact arithmetic.

        Parameters
        ----------
        columns
            One likelihood vector per output, as for :meth:`allows`: integers below 2^63, one per value, in domain
            order.

        Returns
        -------
        bool
            Whether every vector satisfies every rule of the policy.
        """
        weights = np.array(columns, dtype=np.int64).reshape(-1, len(self.domain))
        highest, lowest, matrix = self._class_rules(weights)
        limits = np.where(matrix.codes < INFINITE_CODE, matrix.floats, np.nan)  # comparisons with NaN are false
        if np.isnan(limits).all():
            return True
        margins = _FILTER_MARGIN * (89 + limits)  # logarithms of weights are below 44
        near_below, near_above = limits - margins, limits + margins
        with np.errstate(divide="ignore"):
            logs = np.log(highest), np.log(lowest)
        # Skip columns whose largest log-ratio is below the smallest epsilon; their pairs need not be compared.
        with np.errstate(invalid="ignore"):
            spread = logs[0].max(axis=1) - logs[1].min(axis=1)
        doubtful = np.flatnonzero(~(spread < np.nanmin(near_below)) & (highest > 0).any(axis=1))
        decided: dict[tuple[int, int, int], bool] = {}
        epsilon = functools.cache(matrix.epsilon)
        values, others = np.nonzero(~np.isnan(limits))
        near_below, near_above = near_below[values, others], near_above[values, others]
        for column in doubtful.tolist():
            with np.errstate(invalid="ignore"):  # a likelihood of 0 satisfies every rule, also against 0
                apart = logs[0][column][values] - logs[1][column][others]
                near = np.flatnonzero(apart >= near_below)
            if (apart[near] > near_above[near]).any():
                return False
            for x, other in zip(values[near].tolist(), others[near].tolist(), strict=True):
                key = (int(highest[column, x]), int(lowest[column, other]), int(matrix.codes[x, other]))
                if key not in decided:
                    decided[key] = exceeds(key[0], key[1], epsilon(key[2]))
                if decided[key]:
                    return False
        return True

    def _class_rules(
        self, weights: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], EpsilonMatrix]:
        """Return the largest and smallest weight of each class in each column, and the epsilons between classes.

        A class with one member has no epsilon to itself.
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
        """Return an equivalent policy without the rules that follow from two other rules.

        The rule of (x, x') is dropped if E[x,x'] = E[x,z] + E[z,x'] for another value z, with effective epsilons E that
        are both positive. On a line of values, for example, only the rules between neighbours remain.

        Returns
        -------
        PairwisePolicy
            A policy that allows the same mechanisms. It is this policy if no rule can be dropped, if there are more
            than 1024 values, or if the epsilons have no common unit.
        """
        return self._without_sums

    @functools.cached_property
    def _without_sums(self) -> PairwisePolicy:
        """The policy without sums; kept because 1024 values take about two seconds."""
        if len(self.domain) > _LARGEST_REDUCED:
            return self
        matrix = self.effective_epsilon_matrix()
        if matrix.unit is None:  # codes cannot be added
            return self
        codes = matrix.codes
        finite = np.where(codes == 0, INFINITE_CODE, codes)  # steps of length 0 do not count as parts of a sum
        follows = np.zeros(codes.shape, dtype=bool)
        for middle in range(len(codes)):
            follows |= finite[:, middle, None] + finite[middle] == codes
        if not follows.any():
            return self
        reduced = np.where(follows, INFINITE_CODE, codes)
        return Pairwise._from_epsilon_matrix(self.domain, EpsilonMatrix(reduced, matrix.unit, matrix.table))

    def posterior_odds_bound(self, x: object, other: object, prior_odds: Fraction | int = 1) -> float:
        """Return the greatest odds of one value against another that an observer can assign after a report.

        The odds of x against x' are P(x)/P(x'). A report multiplies them by at most e^E, where E is the
        :meth:`effective_epsilon` from x to x'.

        Parameters
        ----------
        x
            The first value.
        other
            The second value.
        prior_odds
            Odds of ``x`` against ``other`` before the report.

        Returns
        -------
        float
            Upper bound on the odds after the report, which may be infinite.
        """
        epsilon = self.effective_epsilon(self.domain.index(x), self.domain.index(other))
        return float(prior_odds) * epsilon.exp() if prior_odds else 0.0  # an impossible value stays impossible: 0·∞ = 0

    def compose(self, other: Policy) -> Policy:
        if not isinstance(other, PairwisePolicy):
            return other.compose(self)
        if other.domain != self.domain:
            raise InvalidInput(
                type(self).__name__, "other.domain", "be equal to the domain of this policy", other.domain
            )
        same_structure = self._compose_same(other)
        if same_structure is not None:
            return same_structure
        if len(self.domain) > LARGEST_DENSE:
            raise CannotCompose(
                f"cannot compose a {self.kind} policy and a {other.kind} policy over {len(self.domain)} values: "
                f"policies of different kinds need a matrix of epsilons, which is limited to {LARGEST_DENSE} values. "
                "Use two policies of the same kind, or fewer values."
            )
        return Pairwise._from_epsilon_matrix(
            self.domain, self.effective_epsilon_matrix().plus(other.effective_epsilon_matrix())
        )

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:  # noqa: ARG002
        """Return the composition of two policies with the same structure, or None."""
        return None

    def restrict(self, values: Sequence[Any]) -> Policy:
        domain = self.domain.subset(values)
        indices = np.array([self.domain.index(value) for value in values])
        return Pairwise._from_epsilon_matrix(domain, self.effective_epsilons_on(indices))


class MatrixPolicy(PairwisePolicy):
    """Base class of policies that store the epsilon of every pair; effective epsilons are shortest paths."""

    _epsilon_matrix: EpsilonMatrix

    def classes(self) -> npt.NDArray[np.int64]:
        return np.arange(len(self.domain))

    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._epsilon_matrix.on(indices)

    @functools.cached_property
    def _closed(self) -> EpsilonMatrix:
        """The effective epsilons; declared ones may violate the triangle inequality."""
        return self._epsilon_matrix.closed()

    def effective_epsilon(self, x: int, other: int) -> Epsilon:
        return self._closed.at(x, other)

    def effective_epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._closed.on(indices)


class Pairwise(MatrixPolicy):
    """Context-aware LDP: one epsilon for each ordered pair of values, from a matrix.

    Parameters
    ----------
    domain
        The values, at most 4096.
    matrix
        ``matrix[x][x']`` limits how much likelier an output may be for x than for x'. The matrix may be asymmetric;
        ``"inf"`` means no limit, and the diagonal is 0. It has one of these forms:

        - a square matrix in domain order;
        - a matrix with labels on both axes (a DataFrame, a mapping of mappings);
        - a mapping ``{(value, other): epsilon}``, in which missing pairs have no limit.

    Raises
    ------
    InvalidInput
        If the matrix does not match the domain or an entry is not an epsilon.

    Notes
    -----
    Let Q(y|x) be the probability of output y for value x, and E the matrix. The policy requires Q(y|x) ≤
    e^E[x,x']·Q(y|x') for all values x, x' and every output y (Acharya et al. 2020, Context-Aware Local Differential
    Privacy, Def. 2).

    Examples
    --------
    >>> from sfumato import Domain
    >>> policy = Pairwise(Domain(["a", "b", "c"]), {("a", "b"): 1, ("b", "c"): "1/2"})
    >>> policy.epsilon_between(0, 2), policy.effective_epsilon(0, 2)
    (Epsilon('inf'), Epsilon('1.5'))
    """

    kind = "pairwise"

    def __init__(self, domain: Domain, matrix: Any) -> None:
        self.domain = checked_domain("Pairwise", domain)
        self._epsilon_matrix = _read_matrix(domain, matrix)

    @classmethod
    def _from_epsilon_matrix(cls, domain: Domain, matrix: EpsilonMatrix) -> Pairwise:
        """Return a policy with computed epsilons, rounded up where they cannot be written in a document."""
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
    """Return the epsilons of a matrix in any accepted form."""
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
        must = f"be a {size} by {size} matrix, with a row and a column per value"
        raise InvalidInput("Pairwise", "matrix", must, _shape(matrix))
    # Equal entries of the same type are parsed once, because a large matrix is mostly repetition.
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
    """Return whether a mapping contains the rows of a matrix, not the epsilons of pairs."""
    return bool(matrix) and all(isinstance(row, Mapping) for row in matrix.values())


def _hashable(entry: Any, domain: Domain, place: int) -> Any:
    """Return an entry that can be hashed; reject any other with the message for its place."""
    try:
        hash(entry)
    except TypeError:
        _read_entry(entry, domain, *divmod(place, len(domain)))
    return entry


def _read_sparse(domain: Domain, entries: Mapping[Any, EpsilonLike]) -> EpsilonMatrix:
    """Return the epsilons of a mapping from pairs; other pairs are not constrained."""
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
    """Return the epsilon of one entry; an error message names its pair."""
    return Epsilon(entry, subject="Pairwise", parameter=f"the matrix at ({domain.label(x)!r}, {domain.label(other)!r})")


def _shape(matrix: Any) -> Description:
    """Return the shape of a malformed matrix in words."""
    try:
        rows = [len(row) for row in matrix]
    except TypeError:
        return Description(f"an object of type {type(matrix).__name__}")
    lengths = ", ".join(map(str, sorted(set(rows))))
    return Description(f"{quantity(len(rows), 'row')} of length {lengths}" if rows else "no rows")


# -- representatives of classes --------------------------------------------------------------------------


def representatives(*classes: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return up to two members of each joint class, so that every kind of pair occurs among them."""
    joint = np.stack(classes, axis=1)
    order = np.lexsort(joint.T[::-1])
    changed = np.any(np.diff(joint[order], axis=0) != 0, axis=1)
    starts = np.concatenate([[True], changed])
    seconds = np.concatenate([[False], starts[:-1] & ~starts[1:]])
    return np.sort(order[starts | seconds])


def _class_extremes(classes: npt.NDArray[np.int64], values: Sequence[Fraction]) -> npt.NDArray[np.intp]:
    """Return the indices of the largest and smallest value of each class."""
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
    """Return the pair (x, x') with the largest T_x / (e^E[x,x']·T_x'), or None if no rule applies.

    A certified violation takes precedence over every pair that obeys its rule.
    """
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
    # Decide every possible violation exactly, starting with the largest excess.
    doubtful = np.argwhere(np.isfinite(excess) & (excess >= -margins))
    epsilon = functools.cache(matrix.epsilon)

    def is_violated(a: int, b: int) -> bool:
        return exceeds(exact[a], exact[b], epsilon(int(matrix.codes[a, b])))

    if any(is_violated(a, b) for a, b in _greatest_ratios(doubtful, exact, matrix.codes)):
        order = np.argsort(-excess[tuple(doubtful.T)], kind="stable")
        return next((a, b) for a, b in doubtful[order].tolist() if is_violated(a, b))
    return x, other


def _greatest_ratios(
    pairs: npt.NDArray[np.intp], values: Sequence[Fraction], codes: npt.NDArray[np.int64]
) -> list[tuple[int, int]]:
    """Return, for each code, the pair of positive values with the greatest ratio; its rule implies the other rules."""
    scale = math.lcm(*(value.denominator for value in values))
    weights = [value.numerator * (scale // value.denominator) for value in values]
    rank = np.empty(len(weights), np.int64)
    rank[sorted(range(len(weights)), key=weights.__getitem__)] = np.arange(len(weights))
    # For each code and first value, only the least second value matters.
    first, second = pairs.T
    code = codes[first, second]
    order = np.lexsort((rank[second], first, code))
    changed = (np.diff(first[order], prepend=-1) != 0) | (np.diff(code[order], prepend=-1) != 0)
    chosen = order[changed]
    greatest: dict[int, tuple[int, int]] = {}
    for (a, b), level in zip(pairs[chosen].tolist(), code[chosen].tolist(), strict=True):
        known = greatest.get(level)
        if known is None or weights[a] * weights[known[1]] > weights[known[0]] * weights[b]:
            greatest[level] = a, b
    return list(greatest.values())
