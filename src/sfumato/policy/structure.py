"""Recognize policies that are equivalent to Uniform, HighLow or Blocks."""

from __future__ import annotations

import numpy as np

from sfumato._core import INFINITE
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.epsilon_matrix import INFINITE_CODE, LARGEST_DENSE, EpsilonMatrix
from sfumato.policy.high_low import HighLow
from sfumato.policy.pairwise import PairwisePolicy
from sfumato.policy.per_value import PerValue
from sfumato.policy.uniform import Uniform

__all__ = ["structure_of"]

#: Maximum number of values for which effective epsilons are computed to find a structure; it takes k³ steps.
_LARGEST_CLOSED = 1024


def structure_of(policy: Policy) -> Policy:
    """Return the simplest equivalent policy: Uniform, HighLow or Blocks, if one of them is equivalent.

    Equivalent policies allow the same mechanisms.

    Parameters
    ----------
    policy
        Any policy.

    Returns
    -------
    Policy
        The equivalent policy, or ``policy`` itself if none of the three is equivalent or the domain is too large to
        decide.

    Raises
    ------
    InvalidInput
        If the argument is not a policy.

    Notes
    -----
    The effective epsilon of an ordered pair of values is the smallest one that all rules together imply. Two policies
    on pairs of values are equivalent if and only if their effective epsilons are equal.

    Examples
    --------
    >>> from sfumato import Domain, Pairwise
    >>> structure_of(Pairwise(Domain(["no", "yes"]), [[0, 1], [1, 0]]))
    Uniform(Domain(['no', 'yes']), epsilon='1')
    """
    if not isinstance(policy, Policy):
        raise InvalidInput("structure_of", "policy", "be a Policy", policy)
    if not isinstance(policy, PairwisePolicy) or isinstance(policy, Uniform):
        return policy
    if isinstance(policy, HighLow):
        is_uniform = policy.is_sensitive.all() or policy.epsilon.is_infinite
        return Uniform(policy.domain, policy.epsilon) if is_uniform else policy
    if isinstance(policy, Blocks):
        return _simplest_blocks(policy)
    if isinstance(policy, PerValue) and policy.rule != "mean":
        return _simplest_per_value(policy)
    size = len(policy.domain)
    if size > LARGEST_DENSE:
        return policy
    simplest = _read(policy, policy.epsilon_matrix())
    if simplest is None and size <= _LARGEST_CLOSED:
        try:
            simplest = _read(policy, policy.effective_epsilon_matrix())
        except LimitExceeded:  # epsilons without a common unit
            return policy
    return policy if simplest is None else simplest


def _simplest_blocks(policy: Blocks) -> Policy:
    """Return the simplest policy that is equivalent to a Blocks policy."""
    members = np.bincount(policy.block_of)
    if len(members) == 1:
        return Uniform(policy.domain, policy.epsilons[0])
    # The epsilon of a block with one value has no effect. A path out of a block and back may be shorter than a step.
    around = policy.across + policy.across
    within = {min(e, around) for e, count in zip(policy.epsilons, members.tolist(), strict=True) if count > 1}
    return Uniform(policy.domain, policy.across) if within <= {policy.across} else policy


def _simplest_per_value(policy: PerValue) -> Policy:
    """Return the simplest policy that is equivalent to a minimum or maximum of two epsilons.

    Under "min", the value of greatest epsilon has no effect on any pair, and under "max" the value of least epsilon. If
    the other values have two effective levels, the values of the inner level form one block and the rest one each.
    """
    first = np.unique(policy.classes(), return_index=True)[1]
    if len(policy.domain) == 1:
        return Uniform(policy.domain, INFINITE)
    epsilons = policy.epsilons
    declared = [epsilons[x] for x in first]
    most = declared[0] * 2 if policy.rule == "min" else INFINITE
    levels = [min(level, most) for level in declared]
    distinct = sorted(set(levels))
    rank = np.array([distinct.index(level) for level in levels])[policy.classes()]
    ascending = np.sort(rank)
    effective = np.unique(ascending[:-1] if policy.rule == "min" else ascending[1:]).tolist()
    if len(effective) > 2:
        return policy
    low, high = distinct[effective[0]], distinct[effective[-1]]
    if len(effective) == 1:
        return Uniform(policy.domain, low)
    together = rank >= effective[1] if policy.rule == "min" else rank <= effective[0]
    if np.count_nonzero(~together) >= LARGEST_DENSE // 2:  # methods of Blocks use two values per block
        return policy
    within, across = (high, low) if policy.rule == "min" else (low, high)
    block_of = np.where(together, 0, np.arange(1, len(rank) + 1))
    return _simplest_blocks(Blocks(policy.domain, block_of, within, across))


def _read(policy: PairwisePolicy, matrix: EpsilonMatrix) -> Policy | None:
    """Return a structured policy with these epsilons, or None."""
    codes = matrix.codes
    size = len(codes)
    if size == 1:
        return Uniform(policy.domain, INFINITE)
    # Off the diagonal, the first row has one epsilon in Uniform and HighLow policies, and at most two in Blocks.
    first = np.unique(codes[0, 1:])
    if len(first) > 2:
        return None
    if len(first) == 1:
        each_row = np.where(np.arange(size) == 0, codes[:, 1], codes[:, 0])
        off_diagonal = codes == each_row[:, None]
        np.fill_diagonal(off_diagonal, True)
        if off_diagonal.all():
            return _read_rows(policy, matrix, each_row)
    if not np.array_equal(codes, codes.T):
        return None
    for across in first[::-1].tolist():
        blocks = _read_blocks(policy, matrix, across)
        if blocks is not None:
            return blocks
    return None


def _read_rows(
    policy: PairwisePolicy, matrix: EpsilonMatrix, each_row: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Policy | None:
    """Return a Uniform or HighLow policy if each row has one epsilon, from its value to every other value."""
    distinct = np.unique(each_row).tolist()
    if len(distinct) == 1:
        return Uniform(policy.domain, matrix.epsilon(distinct[0]))
    if len(distinct) == 2 and distinct[1] >= INFINITE_CODE:
        sensitive = policy.domain.decode(np.flatnonzero(each_row == distinct[0]))
        return HighLow(policy.domain, sensitive, matrix.epsilon(distinct[0]))
    return None


def _read_blocks(policy: PairwisePolicy, matrix: EpsilonMatrix, across: int) -> Policy | None:
    """Return a Blocks policy if ``across`` is the epsilon between all blocks, or None."""
    codes = matrix.codes
    together = codes != across
    np.fill_diagonal(together, True)
    block_of = together.argmax(axis=1)  # the first member
    same = block_of[:, None] == block_of
    if not np.array_equal(together, same):
        return None
    np.fill_diagonal(same, False)
    within = np.where(same.any(axis=1), codes[np.arange(len(codes)), same.argmax(axis=1)], -1)
    if not (codes[same] == np.broadcast_to(within[:, None], codes.shape)[same]).all():
        return None
    if not same.any():
        return Uniform(policy.domain, matrix.epsilon(across))
    # The epsilon of a block with one value has no effect: use that of a larger block, so that all may be equal.
    blocks = np.unique(block_of)
    shared = int(within[within >= 0][0])
    epsilons = [matrix.epsilon(int(code) if code >= 0 else shared) for code in within[blocks]]
    return _simplest_blocks(Blocks(policy.domain, np.searchsorted(blocks, block_of), epsilons, matrix.epsilon(across)))
