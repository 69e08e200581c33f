"""Structured policies close to a policy, for which mechanisms and least errors are known in closed form.

There are two sides:

* *Inner* approximations imply the policy. Every mechanism for one of them obeys the policy, so ``plan`` compares it.
* *Outer* approximations are implied by the policy. The least error under one of them is a lower bound on the error of
  every mechanism that obeys the policy.

Heuristics and floats only choose what to try. Levels are exact minima or maxima over pairs of values, and an exact
comparison decides whether a policy implies another.

Blocks at two levels come from a chain of partitions. For a level a, two values are in one block if a path of pairs with
epsilons below a joins them. Let w be the least epsilon of all pairs. No other partition is needed:

* Suppose that Blocks(partition, w', a) with w' < a implies the policy. Pairs across its blocks then have epsilons of at
  least a, so its blocks are unions of blocks of the chain. Moreover, w' ≤ w.
* Therefore it also implies Blocks(chain, w, a), which allows more mechanisms.

Mechanisms for blocks treat every block as if it were as large as the largest one. For this reason only, small blocks of
the chain are also merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato._core import ZERO, Epsilon, Integers, quantity
from sfumato.compiler.bounds import least_risk, uniform_least_risk
from sfumato.compiler.known_bounds import exact_bound
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.domain import Domain
from sfumato.errors import LimitExceeded
from sfumato.mechanisms import least_nested_risk
from sfumato.policy import (
    INFINITE_CODE,
    LARGEST_DENSE,
    Blocks,
    EpsilonMatrix,
    HighLow,
    PairwisePolicy,
    Policy,
    Prior,
    Uniform,
    implies,
    on_pairs,
    structure_of,
)

__all__ = ["in_words", "inner_approximations", "outer_bound"]

#: Maximum number of values for which outer approximations use effective epsilons; computing them takes k³ steps.
_LARGEST_CLOSED = 1024
#: Maximum number of partitions whose error is estimated, and of Blocks policies that are returned.
_MOST_CUTS, _MOST_BLOCKS = 16, 2
#: Maximum number of sets of sensitive values, and of partitions, that are compared for a lower bound: for matrices with
#: effective epsilons, and for larger ones, where each takes longer.
_MOST_OUTER, _MOST_LARGE_OUTER = 8, 2
#: Maximum estimated risk of Blocks that are worth comparing: relative to the least one under one epsilon or to that of
#: the policy itself, and relative to the best Blocks.
_WORTHWHILE, _COMPARABLE = 0.95, 1.1
#: Maximum number of positions per value in blocks that all count as large as the largest.
_MOST_PADDING = 16


@dataclass(frozen=True, eq=False)
class _Partition:
    """A partition of the values into blocks (``block_of``), with the least epsilon within and across blocks."""

    block_of: Integers
    within: Epsilon
    across: Epsilon

    def packed(self) -> _Partition:
        """Return a coarser partition into blocks of nearly equal size, by best-fit decreasing into the largest size.

        Merging blocks keeps the least epsilon across blocks, because fewer pairs are across.
        """
        sizes = np.bincount(self.block_of)
        space = np.zeros(len(sizes), dtype=np.int64)
        merged_into = np.empty(len(sizes), dtype=np.int64)
        opened = 0
        for block in np.argsort(-sizes, kind="stable").tolist():
            fitting = np.flatnonzero(space[:opened] >= sizes[block])
            if len(fitting):
                place = int(fitting[space[fitting].argmin()])
            else:
                place, opened = opened, opened + 1
                space[place] = sizes.max()
            space[place] -= sizes[block]
            merged_into[block] = place
        return _Partition(merged_into[self.block_of], self.within, self.across)

    def estimated_risk(self) -> float:
        """Return roughly the risk of a mechanism for these blocks, to compare partitions.

        If the largest block determines the positions of all blocks, the risk of all positions counts by the square root
        of the fraction that is in use. Measured risks are between that of the values in use and that of all positions.
        """
        sizes = np.bincount(self.block_of)
        blocks, size = len(sizes), int(sizes.max())
        if blocks == 1 or size == 1 or blocks * size > _MOST_PADDING * len(self.block_of):
            return math.inf
        full = least_nested_risk(blocks, size, self.within, self.across)
        return full * math.sqrt(len(self.block_of) / (blocks * size))


# -- inner approximations ------------------------------------------------------------------------------------


def inner_approximations(policy: Policy, deadline: Deadline = NEVER) -> tuple[Policy, ...]:
    """Return HighLow and Blocks policies that imply a policy, the most promising first; decided exactly.

    The result is empty if mechanisms for one epsilon or for the policy itself are at least as good:

    - if the policy is equivalent to Uniform, to HighLow, or to Blocks that reports may reveal;
    - if it is not on pairs of values, or has an epsilon of 0;
    - if its matrix has more than 4096 values.

    Parameters
    ----------
    policy
        Any policy.
    deadline
        Time at which no further policy is tried.

    Returns
    -------
    tuple of Policy
        Policies over the same domain.

    Examples
    --------
    >>> from sfumato import Domain, Pairwise
    >>> matrix = [[0, 1, 3, 4], [1.1, 0, 3.2, 4], [3, 3, 0, 1.2], [4, 3, 1, 0]]
    >>> inner_approximations(Pairwise(Domain(["a", "b", "c", "d"]), matrix))
    (Blocks(Domain(['a', 'b', 'c', 'd']), blocks=[0, 0, 1, 1], epsilon='1', across='3'),)
    """
    pairs = on_pairs(policy)
    if pairs is None or len(pairs.domain) < 3 or pairs.least[0] == ZERO:
        return ()
    simplest = structure_of(pairs)
    if isinstance(simplest, (Uniform, HighLow)):
        return ()
    proposals: list[Policy] = []
    if isinstance(simplest, Blocks):
        partitions = list(_partitions_of_blocks(simplest))
    elif len(pairs.domain) > LARGEST_DENSE:
        return ()
    else:
        matrix = pairs.epsilon_matrix()
        proposals += _high_low(pairs.domain, matrix)
        proposals += _open_blocks(pairs.domain, matrix)
        partitions = list(_partitions_of_matrix(matrix))
    proposals += _two_level_blocks(simplest, partitions, deadline)
    return tuple(proposal for proposal in proposals if not deadline.passed and _is_stronger(proposal, policy))


def _is_stronger(proposal: Policy, policy: Policy) -> bool:
    """Return whether a proposal is known to imply the policy; with too many classes of values it is not known."""
    try:
        return implies(proposal, policy)
    except LimitExceeded:
        return False


def in_words(policy: Policy) -> str:
    """Return an inner approximation in a few words.

    >>> from sfumato import Domain
    >>> in_words(HighLow(Domain(["a", "b", "c"]), ["a"], "1/2"))
    'epsilon 0.5 for 1 sensitive value of 3'
    >>> in_words(Blocks(Domain(["a", "b", "c", "d"]), [0, 0, 1, 1], 1, 3))
    '2 blocks with epsilon 1 within and 3 across'
    """
    if isinstance(policy, HighLow):
        values = quantity(int(policy.is_sensitive.sum()), "sensitive value")
        return f"epsilon {float(policy.epsilon):.3g} for {values} of {len(policy.domain)}"
    assert isinstance(policy, Blocks)
    least, greatest = (f"{float(extreme(policy.epsilons)):.3g}" for extreme in (min, max))
    within = least if least == greatest else f"{least} to {greatest}"
    across = "unlimited" if policy.across.is_infinite else f"{float(policy.across):.3g}"
    return f"{quantity(len(policy.epsilons), 'block')} with epsilon {within} within and {across} across"


def _off_diagonal(matrix: EpsilonMatrix, diagonal: int = INFINITE_CODE) -> Integers:
    """Return the codes of a matrix with another diagonal, so that extremes are over pairs of different values."""
    codes = matrix.codes.copy()
    np.fill_diagonal(codes, diagonal)
    return codes


def _high_low(domain: Domain, matrix: EpsilonMatrix) -> Iterator[Policy]:
    """Yield the policy that protects exactly the values that a matrix protects, at their least epsilon."""
    of_row = _off_diagonal(matrix).min(axis=1)
    is_sensitive = of_row < INFINITE_CODE
    if not is_sensitive.all():
        yield HighLow(domain, domain.decode(np.flatnonzero(is_sensitive)), matrix.epsilon(int(of_row.min())))


def _open_blocks(domain: Domain, matrix: EpsilonMatrix) -> Iterator[Policy]:
    """Yield the blocks between which a matrix sets no limit, each at its least epsilon, if there are several."""
    codes = _off_diagonal(matrix)
    symmetric = np.minimum(codes, codes.T)
    block_of = _components(*_nearest_neighbour_order(symmetric), INFINITE_CODE)
    blocks = int(block_of.max()) + 1
    if blocks == 1:
        return
    least = np.full(blocks, INFINITE_CODE)
    np.minimum.at(least, block_of, symmetric.min(axis=1))
    least[least >= INFINITE_CODE] = codes.min()  # the epsilon of a block with one value has no effect
    yield Blocks(domain, block_of, [matrix.epsilon(int(code)) for code in least])


def _nearest_neighbour_order(symmetric: Integers) -> tuple[Integers, Integers]:
    """Return the order in which Prim's algorithm adds values to a minimum spanning tree, and the code of each edge.

    Before the algorithm uses an edge of code c, it has added every value that smaller edges reach. The components of
    edges below a level are therefore runs of this order. The first value has the code -1.
    """
    size = len(symmetric)
    order, codes = np.zeros(size, dtype=np.int64), np.full(size, -1)
    nearest = symmetric[0].copy()
    added = np.zeros(size, dtype=bool)
    added[0] = True
    for step in range(1, size):
        value = int(np.where(added, np.iinfo(np.int64).max, nearest).argmin())
        order[step], codes[step] = value, nearest[value]
        added[value] = True
        np.minimum(nearest, symmetric[value], out=nearest)
    return order, codes


def _components(order: Integers, codes: Integers, level: int) -> Integers:
    """Return the component of each value, if pairs with codes below a level are joined.

    Components are numbered in order of first appearance, as ``Blocks`` numbers blocks.
    """
    component = np.empty(len(order), dtype=np.int64)
    component[order] = np.cumsum(codes >= level)
    first = np.unique(component, return_index=True)[1]
    return np.asarray(first.argsort().argsort()[component])


def _partitions_of_matrix(matrix: EpsilonMatrix, most: int = _MOST_CUTS) -> Iterator[_Partition]:
    """Yield partitions of the chain: those before the largest increases of the level across, and others in between."""
    codes = _off_diagonal(matrix)
    within = int(codes.min())
    order, edges = _nearest_neighbour_order(np.minimum(codes, codes.T))
    levels = np.unique(edges[(edges > within) & (edges < INFINITE_CODE)])
    floats = np.array([float(matrix.epsilon(code)) for code in levels.tolist()])
    before = np.concatenate([[float(matrix.epsilon(within))], floats[:-1]])
    increases = floats / np.maximum(before, np.finfo(np.float64).tiny)
    half = most // 2
    spread = np.linspace(0, len(levels) - 1, half).round().astype(np.int64)
    for cut in sorted({*np.argsort(-increases)[:half].tolist(), *spread.tolist()}) if len(levels) else []:
        across = int(levels[cut])
        yield _Partition(_components(order, edges, across), matrix.epsilon(within), matrix.epsilon(across))


def _partitions_of_blocks(policy: Blocks) -> Iterator[_Partition]:
    """Yield the partitions of the chain of a Blocks policy: blocks at a level of at least ``across`` fall apart."""
    sizes = np.bincount(policy.block_of)
    epsilons = [e for e, size in zip(policy.epsilons, sizes.tolist(), strict=True) if size > 1]
    within = min(epsilons, default=policy.across)
    if policy.across.is_infinite or within >= policy.across:
        return
    for across in sorted({*(e for e in epsilons if within < e < policy.across), policy.across})[-_MOST_CUTS:]:
        is_joined = np.array([epsilon < across for epsilon in policy.epsilons])[policy.block_of]
        labels = np.where(is_joined, policy.block_of, len(sizes) + np.arange(len(policy.block_of)))
        yield _Partition(np.unique(labels, return_inverse=True)[1], within, across)


def _two_level_blocks(policy: Policy, partitions: list[_Partition], deadline: Deadline) -> Iterator[Policy]:
    """Yield the Blocks policies of least estimated risk, if it is below that of one epsilon and of the policy itself.

    Partitions are in ascending order of the epsilon across blocks, so the last one of equal partitions is the weakest.
    """
    estimates: dict[bytes, tuple[float, Blocks]] = {}
    for partition in partitions:
        for version in (partition, partition.packed()):
            if deadline.passed:
                break
            blocks = Blocks(policy.domain, version.block_of, version.within, version.across)
            estimates[blocks.block_of.tobytes()] = version.estimated_risk(), blocks
    if not estimates:
        return
    limits = [_WORTHWHILE * uniform_least_risk(len(policy.domain), partitions[0].within)]
    limits.append(_COMPARABLE * min(risk for risk, _ in estimates.values()))
    if isinstance(policy, Blocks) and policy.block_of.tobytes() in estimates:
        limits.append(_WORTHWHILE * estimates[policy.block_of.tobytes()][0])
    for risk, blocks in sorted(estimates.values(), key=lambda pair: pair[0])[:_MOST_BLOCKS]:
        if risk < min(limits):
            yield blocks


# -- outer approximations ------------------------------------------------------------------------------------


def outer_bound(policy: Policy, deadline: Deadline = NEVER, *, least: float = 0.0) -> tuple[float, Policy] | None:
    """Return a lower bound on the risk of every mechanism for a policy, and an implied policy that proves it.

    Values are assumed to be uniformly distributed. The bound is the limit of n·E|p̂-p|² for the best mechanism and
    estimate under the implied policy, as in :func:`least_risk`.

    Parameters
    ----------
    policy
        Any policy.
    deadline
        Time at which no further policy is tried.
    least
        Smallest bound of interest. Smaller ones are not proved, which saves time.

    Returns
    -------
    tuple or None
        The greatest lower bound and its policy; None if no implied policy is known to have such a bound.

    Examples
    --------
    >>> from sfumato import Domain, Pairwise
    >>> matrix = [[0, 1, 3, 3], [1, 0, 3, 2.9], [3, 3, 0, 1], [3, 3, 1, 0]]
    >>> bound, proof = outer_bound(Pairwise(Domain(["a", "b", "c", "d"]), matrix))
    >>> round(bound, 3), proof
    (3.029, Blocks(Domain(['a', 'b', 'c', 'd']), blocks=[0, 0, 1, 1], epsilon='1', across='3'))
    """
    if isinstance(policy, Prior):
        twice = Uniform(policy.domain, policy.epsilon * 2)  # ε-LIP with both sides implies 2ε-LDP
        risk = None if policy.epsilon.is_infinite or not implies(policy, twice) else least_risk(twice)
        return None if risk is None else (risk, twice)
    pairs = on_pairs(policy)
    if pairs is None or not 1 < len(pairs.domain) <= LARGEST_DENSE:
        return None
    matrix = _least_known_epsilons(pairs)
    bounds: list[tuple[float, PairwisePolicy]] = []
    for weaker in _weaker_policies(pairs.domain, matrix):
        if deadline.passed:
            break
        risk = exact_bound(weaker, deadline=deadline)
        if risk is not None and risk >= least:
            bounds.append((risk, weaker))
    # Effective epsilons are at most those of the matrix, so a policy whose epsilons are nowhere smaller is implied.
    best_first = sorted(bounds, key=lambda pair: -pair[0])
    return next((pair for pair in best_first if matrix.first_above(pair[1].epsilon_matrix()) is None), None)


def _least_known_epsilons(pairs: PairwisePolicy) -> EpsilonMatrix:
    """Return the effective epsilons, or the declared ones if effective ones take too long."""
    if len(pairs.domain) <= _LARGEST_CLOSED or isinstance(pairs, Blocks):
        try:
            return pairs.effective_epsilon_matrix()
        except LimitExceeded:  # epsilons without a common unit
            pass
    return pairs.epsilon_matrix()


def _weaker_policies(domain: Domain, matrix: EpsilonMatrix) -> Iterator[PairwisePolicy]:
    """Yield policies with the greatest epsilons of a matrix, over all pairs, over rows, and over blocks."""
    codes = _off_diagonal(matrix, diagonal=-1)
    of_row = codes.max(axis=1)
    greatest = int(of_row.max())
    if greatest < INFINITE_CODE:
        yield Uniform(domain, matrix.epsilon(greatest))
    most = _MOST_OUTER if len(domain) <= _LARGEST_CLOSED else _MOST_LARGE_OUTER
    rows = np.unique(of_row[of_row < INFINITE_CODE])
    for code in rows[np.unique(np.linspace(0, len(rows) - 1, most).astype(np.int64))].tolist() if len(rows) else []:
        is_sensitive = of_row <= code
        if not is_sensitive.all():
            yield HighLow(domain, domain.decode(np.flatnonzero(is_sensitive)), matrix.epsilon(code))
    for partition in _partitions_of_matrix(matrix, most):
        same = partition.block_of[:, None] == partition.block_of
        within = np.zeros(int(partition.block_of.max()) + 1, dtype=np.int64)
        np.maximum.at(within, partition.block_of, np.where(same, codes, -1).max(axis=1))
        epsilons = [matrix.epsilon(int(code)) for code in within]
        across = int(codes[~same].max())
        if across < INFINITE_CODE and len(set(np.bincount(partition.block_of).tolist())) == 1:
            yield Blocks(domain, partition.block_of, max(epsilons), matrix.epsilon(across))
        yield Blocks(domain, partition.block_of, epsilons)
