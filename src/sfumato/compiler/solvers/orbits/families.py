"""Read policies: their exchangeable values, and the orbits of their extreme rays."""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.compiler.solvers.orbits.family import Family, PatternFamily
from sfumato.compiler.solvers.orbits.kinds import Kinds
from sfumato.compiler.solvers.orbits.patterns import MOST_NODES, block_patterns, class_patterns
from sfumato.compiler.solvers.orbits.prior_rays import PriorFamily
from sfumato.policy import Blocks, PairwisePolicy, Policy, Prior

__all__ = ["family_of"]

#: Maximum number of classes that are compared with each other; it bounds the size of the matrix of their epsilons.
_MOST_CLASSES = 1024


def family_of(policy: Policy, prior: Floats, deadline: Deadline = NEVER) -> Family | None:
    """Return all orbits of a policy at a distribution; None if too few values are exchangeable.

    Policies that ``structure_of`` simplifies must be given in their simplest form.
    """
    if isinstance(policy, Prior):
        return _of_prior(policy, prior)
    if isinstance(policy, Blocks) and not policy.across.is_infinite:
        family = _of_blocks(policy, prior)
        if family is not None:
            return family
    return _of_classes(policy, prior, deadline) if isinstance(policy, PairwisePolicy) else None


def _of_prior(policy: Prior, prior: Floats) -> Family | None:
    """Return the orbits of a prior policy, whose classes have equal probabilities."""
    stated = np.array([float(probability) for probability in policy.prior])
    if stated.min() <= 0 or policy.epsilon.is_infinite:
        return None
    kinds = Kinds.of([members[None] for members in _groups(np.column_stack([stated, prior]))], prior)
    return PriorFamily(kinds, policy) if PriorFamily.fits(kinds) else None


def _groups(rows: Floats) -> list[Integers]:
    """Return the positions of each distinct row, in the order of their first positions."""
    _, group_of = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(group_of, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(group_of[order])) + 1)
    return sorted(groups, key=lambda members: int(members[0]))


def _of_blocks(policy: Blocks, prior: Floats) -> Family | None:
    """Return the orbits of blocks with one finite epsilon between them, if the distribution is constant on blocks."""
    across = float(policy.across)
    blocks = _groups(policy.block_of[:, None].astype(np.float64))
    if any(np.ptp(prior[members]) > 0 for members in blocks):
        return None
    within = [min(float(e), 2 * across) for e in policy.epsilons]
    rows = [
        (len(members), within[int(policy.block_of[members[0]])] if len(members) > 1 else 0.0, prior[members[0]])
        for members in blocks
    ]
    kinds = _groups(np.array(rows))
    listed = block_patterns([len(kind) for kind in kinds], [rows[int(kind[0])][1] for kind in kinds], across)
    if listed is None:
        return None
    least = min([across, *(epsilon for size, epsilon, _ in rows if size > 1)])
    of_kinds = [np.array([blocks[int(block)] for block in kind]) for kind in kinds]
    return PatternFamily(Kinds.of(of_kinds, prior), listed, least)


def _of_classes(policy: PairwisePolicy, prior: Floats, deadline: Deadline) -> Family | None:
    """Return the orbits of a policy with few classes of exchangeable values."""
    classes = _groups(np.column_stack([policy.classes(), prior]))
    if len(classes) > _MOST_CLASSES:
        return None
    # The epsilon between two values of a class needs two of its values.
    pairs = np.array([(members[0], members[-1]) for members in classes]).ravel()
    some, places = np.unique(pairs, return_inverse=True)
    matrix = policy.effective_epsilons_on(some)
    codes, first, last = matrix.codes, places[::2], places[1::2]
    between = codes[np.ix_(first, first)]
    np.fill_diagonal(between, codes[first, last])
    merged = _merged(between, np.array([prior[members[0]] for members in classes]), classes)
    if sum(min(len(members), 2) for members in merged) > MOST_NODES:
        return None
    place_of = {int(members[0]): place for place, members in enumerate(classes)}
    leaders = np.array([place_of[int(members[0])] for members in merged])
    floats = matrix.floats
    epsilons = floats[np.ix_(first[leaders], first[leaders])]
    for place, members in enumerate(merged):
        if len(members) > 1:
            x, other = (_class_of(classes, member) for member in members[:2])
            epsilons[place, place] = floats[first[x], first[other] if x != other else last[x]]
    sizes = [len(members) for members in merged]
    listed = class_patterns(sizes, epsilons, deadline)
    if listed is None:
        return None
    is_pair = ~np.eye(len(sizes), dtype=bool) | np.diag(np.array(sizes) > 1)
    least = float(epsilons[is_pair].min(initial=np.inf))
    return PatternFamily(Kinds.of([members[None] for members in merged], prior), listed, least)


def _class_of(classes: list[Integers], value: int) -> int:
    """Return the class of a value."""
    return next(place for place, members in enumerate(classes) if value in members)


def _merged(codes: Integers, probabilities: Floats, classes: list[Integers]) -> list[Integers]:
    """Return classes joined with others that are exchangeable with them."""
    merged: list[tuple[int, list[Integers]]] = []
    for place, members in enumerate(classes):
        for leader, others in merged:
            if probabilities[leader] == probabilities[place] and _is_exchangeable(codes, classes, leader, place):
                others.append(members)
                break
        else:
            merged.append((place, [members]))
            if len(merged) > MOST_NODES:
                break
    return [np.concatenate(others) for _, others in merged]


def _is_exchangeable(codes: Integers, classes: list[Integers], x: int, other: int) -> bool:
    """Return whether swapping a value of one class with a value of another changes no epsilon."""
    others = np.ones(len(codes), dtype=bool)
    others[[x, other]] = False
    between = codes[x, other]
    inside = [codes[place, place] for place in (x, other) if len(classes[place]) > 1]
    return bool(
        between == codes[other, x]
        and all(code == between for code in inside)
        and np.array_equal(codes[x, others], codes[other, others])
        and np.array_equal(codes[others, x], codes[others, other])
    )
