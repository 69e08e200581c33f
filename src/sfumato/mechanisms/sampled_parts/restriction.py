"""Policies of parts: what a report about some coordinates of a value must obey."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.domain import Domain
from sfumato.policy import LARGEST_DENSE, Pairwise, PairwisePolicy, Product, Uniform

__all__ = ["policy_of_part"]


def policy_of_part(policy: PairwisePolicy, shape: Sequence[int], axes: Sequence[int]) -> PairwisePolicy | None:
    """Return the policy that a mechanism over some coordinates must obey, so that it obeys a policy over all.

    The level of two combinations of the coordinates is the smallest level of two values that have them. Return None if
    no short form is known.
    """
    if isinstance(policy, Product) and tuple(shape) == policy.domain.shape:
        names = list(policy.policies)
        return policy.project([names[axis] for axis in axes])
    size = math.prod(shape[axis] for axis in axes)
    if isinstance(policy, Uniform):
        return Uniform(Domain.range(size), policy.epsilon)
    if len(policy.domain) > LARGEST_DENSE:
        return None
    matrix = policy.epsilon_matrix()
    others = [axis for axis in range(len(shape)) if axis not in axes]
    count = len(shape)
    by_part = matrix.codes.reshape(*shape, *shape)
    order = [*axes, *others, *(count + axis for axis in (*axes, *others))]
    least = by_part.transpose(order).reshape(size, -1, size, len(policy.domain) // size).min(axis=(1, 3))
    np.fill_diagonal(least, 0)
    return Pairwise(Domain.range(size), [[matrix.epsilon(int(code)) for code in row] for row in least])
