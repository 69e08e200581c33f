"""Policies that are sums over the coordinates of a value, and products of mechanisms for them.

If E[x,x'] = Σᵢ Eᵢ[xᵢ,xᵢ'] for all values x and x', as for the L1 distance on a grid, then a product of mechanisms obeys
E if and only if factor i obeys Eᵢ for every i. A design over k values becomes several designs over far fewer values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from sfumato._core import Integers, one_thread
from sfumato.compiler.bounds import least_risk
from sfumato.compiler.candidates import candidates
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.optimization import optimal_until
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, LimitExceeded, NoAnswer, NoMechanism
from sfumato.mechanisms import LARGEST_OUTPUTS, Mechanism, ProductMechanism, can_be_component
from sfumato.policy import (
    INFINITE_CODE,
    LARGEST_DENSE,
    EpsilonMatrix,
    Metric,
    Pairwise,
    PairwisePolicy,
    Policy,
    Product,
)

__all__ = ["best_factor", "coordinate_policies", "output_limits", "product_mechanism"]

#: Maximum number of values for which effective epsilons are computed; it takes k³ steps, two seconds for 1024 values.
_LARGEST_CLOSED = 1024
#: Relative distance from a closed-form bound up to which a mechanism counts as optimal, so that no search is needed.
_AT_BOUND = 1e-9


def coordinate_policies(policy: Policy, shape: Sequence[int] | None = None) -> tuple[PairwisePolicy, ...] | None:
    """Return policies on the coordinates of a value whose epsilons add up to those of a policy, or None.

    Parameters
    ----------
    policy
        The policy over all values.
    shape
        Numbers of values of the coordinates; their product is the number of values. Values are in row-major order, as
        in product and grid domains. The default is ``policy.domain.shape``.

    Returns
    -------
    tuple of PairwisePolicy or None
        Two or more policies E₁, E₂, … with E[x,x'] = Σᵢ Eᵢ[xᵢ,xᵢ'] for all pairs, where E are the declared or, for up
        to 1024 values, the effective epsilons. The equation is checked exactly. Neighbouring coordinates form one if E
        is not a sum over them, so the result is the finest sum over runs of coordinates. None if there is no such sum,
        the policy is not on pairs of values, or the domain has more than 4096 values. A :class:`Product` policy of any
        size has the policies of its attributes.

    Raises
    ------
    InvalidInput
        If the shape does not fit the domain.

    Examples
    --------
    >>> from sfumato import Domain, Metric
    >>> cells = Domain.product(row=Domain.range(3), column=Domain.range(4))
    >>> steps = Metric(cells, lambda a, b: abs(a[0] - b[0]) + abs(a[1] - b[1]), "1/2")
    >>> [len(policy.domain) for policy in coordinate_policies(steps)]
    [3, 4]
    >>> beeline = Metric(cells, lambda a, b: max(abs(a[0] - b[0]), abs(a[1] - b[1])), "1/2")
    >>> coordinate_policies(beeline) is None
    True
    """
    size = len(policy.domain)
    sizes = policy.domain.shape if shape is None else tuple(shape)
    if min(sizes, default=0) < 1 or math.prod(sizes) != size:
        raise InvalidInput("a product", "shape", f"be sizes whose product is {size}, the number of values", sizes)
    if isinstance(policy, Product) and sizes == policy.domain.shape:
        of_attributes = tuple(part for part in policy.policies.values() if len(part.domain) > 1)
        return of_attributes if len(of_attributes) > 1 else None
    if not isinstance(policy, PairwisePolicy) or size > LARGEST_DENSE or sum(n > 1 for n in sizes) < 2:
        return None
    matrix = policy.epsilon_matrix()
    cuts = list(_cuts(matrix, sizes))
    if len(cuts) < len(sizes) - 1 and size <= _LARGEST_CLOSED:
        # Effective epsilons split wherever declared ones do, because a shortest path moves along each coordinate.
        with suppress(LimitExceeded):
            matrix = policy.effective_epsilon_matrix()
            cuts = list(_cuts(matrix, sizes))
    bounds = itertools.pairwise([0, *cuts, len(sizes)])
    parts = [_part(policy.domain, matrix, sizes, first, last) for first, last in bounds]
    several = tuple(part for part in parts if len(part.domain) > 1)
    return several if len(several) > 1 else None


def _cuts(matrix: EpsilonMatrix, sizes: Sequence[int]) -> Iterator[int]:
    """Yield the positions at which the coordinates can be cut in two, so that epsilons are sums over both sides."""
    for cut in range(1, len(sizes)):
        if _is_sum(matrix, math.prod(sizes[:cut])):
            yield cut


def _is_sum(matrix: EpsilonMatrix, rows: int) -> bool:
    """Return whether the epsilons of values (row, column) are sums of one of the rows and one of the columns."""
    columns = len(matrix.codes) // rows
    codes = np.minimum(matrix.codes, INFINITE_CODE).reshape(rows, columns, rows, columns)
    of_rows, of_columns = codes[:, 0, :, 0], codes[0, :, 0, :]
    return all(_add_up(matrix, codes[row], of_rows[row][None, :, None], of_columns[:, None, :]) for row in range(rows))


def _add_up(matrix: EpsilonMatrix, sums: Integers, first: Integers, second: Integers) -> bool:
    """Return whether the epsilons of some codes are the sums of the epsilons of other codes, exactly."""
    if matrix.unit is not None:
        return bool((sums == np.minimum(first + second, INFINITE_CODE)).all())
    triples = np.stack([part.ravel() for part in np.broadcast_arrays(sums, first, second)])
    epsilons = ([matrix.epsilon(int(code)) for code in triple] for triple in np.unique(triples, axis=1).T)
    return all(whole == left + right for whole, left, right in epsilons)


def _part(domain: Domain, matrix: EpsilonMatrix, sizes: Sequence[int], first: int, last: int) -> PairwisePolicy:
    """Return the policy of the coordinates ``first`` to ``last - 1``."""
    size, step = math.prod(sizes[first:last]), math.prod(sizes[last:])
    part = matrix.on(np.arange(size) * step)
    factors = list(domain.factors.values())
    named = last - first == 1 and tuple(sizes) == domain.shape and factors
    values = factors[first] if named else Domain.range(size)
    is_metric = np.array_equal(part.codes, part.codes.T) and part.codes.max() < INFINITE_CODE
    if part.unit is not None and is_metric:
        return Metric(values, part.codes, part.unit)
    return Pairwise(values, [[part.at(x, other) for other in range(size)] for x in range(size)])


def product_mechanism(
    policy: Policy, deadline: Deadline, *, shape: Sequence[int] | None = None, max_outputs: int | None = None
) -> ProductMechanism | None:
    """Design a product of mechanisms for a policy that is a sum over coordinates, one factor per coordinate.

    Parameters
    ----------
    policy
        The policy that the mechanism must obey.
    deadline
        Time by which the designs of all factors together should end. Each gets an equal share of the time left.
    shape
        Numbers of values of the coordinates; see :func:`coordinate_policies`.
    max_outputs
        Maximum number of different reports of the product; no limit by default. A limit may cost utility.

    Returns
    -------
    ProductMechanism or None
        A mechanism that obeys the policy, whose factors have the least risk at uniform values that was found. None if
        the policy is not a sum over coordinates.

    Raises
    ------
    NoMechanism
        If the product has more reports than ``max_outputs`` or than the class allows.
    NoAnswer
        If a factor has no closed form, and its search fails or does not fit in the time.

    Notes
    -----
    With uniform values, the risk of a product is Π(rᵢ + 1/kᵢ) - 1/k for factors of risk rᵢ over kᵢ values. Factors of
    least risk give the product of least risk. Mechanisms that are not products may have less risk.

    Examples
    --------
    >>> from sfumato import Domain, Metric, audit
    >>> from sfumato.compiler.solvers.deadline import Deadline
    >>> cells = Domain.product(row=Domain.range(3), column=Domain.range(3))
    >>> policy = Metric(cells, lambda a, b: abs(a[0] - b[0]) + abs(a[1] - b[1]), 1)
    >>> mechanism = product_mechanism(policy, Deadline(10))
    >>> round(mechanism.risk(1), 2), audit(mechanism, policy).holds
    (18.25, True)
    """
    policies = coordinate_policies(policy, shape)
    if policies is None:
        return None
    limits = output_limits([len(part.domain) for part in policies], max_outputs)
    designs: dict[tuple[object, ...], Mechanism] = {}
    keys = [_key(part, limit) for part, limit in zip(policies, limits, strict=True)]
    missing = len(set(keys))
    with one_thread():
        for part, limit, key in zip(policies, limits, keys, strict=True):
            if key not in designs:
                designs[key] = best_factor(part, deadline.part(1 / missing), limit)
                missing -= 1
    factors = [designs[key] for key in keys]
    if math.prod(factor.outputs for factor in factors) <= LARGEST_OUTPUTS:
        return ProductMechanism(policy.domain, factors)
    if max_outputs is not None:
        raise NoMechanism(f"the factors have more than {LARGEST_OUTPUTS:,} reports together, too many for a product")
    return product_mechanism(policy, deadline, shape=shape, max_outputs=LARGEST_OUTPUTS)


def _key(policy: PairwisePolicy, max_outputs: int | None) -> tuple[object, ...]:
    """Return a key that is equal for policies with the same epsilons, whatever their labels are."""
    if len(policy.domain) > LARGEST_DENSE:
        return policy, max_outputs
    matrix = policy.epsilon_matrix()
    return matrix.codes.tobytes(), matrix.unit, matrix.table, max_outputs


def output_limits(sizes: Sequence[int], max_outputs: int | None) -> list[int | None]:
    """Return the maximum number of outputs of each factor: the same multiple of its number of values."""
    if max_outputs is None:
        return [None] * len(sizes)
    values = math.prod(sizes)
    if max_outputs < values:
        raise NoMechanism(f"a product over {values} values needs {values} reports, but at most {max_outputs} fit")
    multiple = (max_outputs / values) ** (1 / len(sizes))
    return [max(size, math.floor(size * multiple)) for size in sizes]


def best_factor(policy: PairwisePolicy, deadline: Deadline, max_outputs: int | None) -> Mechanism:
    """Return the mechanism of least risk that can be a factor, from closed forms or a search."""
    options: list[Mechanism] = []
    for candidate in candidates(policy).by_name.values():
        with suppress(NoAnswer):
            if candidate.compared:
                options.append(candidate.build())
    options = [one for one in options if can_be_component(one) and one.outputs <= (max_outputs or math.inf)]
    best = min(options, key=lambda one: one.risk(1), default=None)
    # For two values, one of the candidates is optimal.
    bound = math.inf if len(policy.domain) == 2 else least_risk(policy)
    if best is not None and bound is not None and best.risk(1) <= bound * (1 + _AT_BOUND):
        return best
    try:
        searched = optimal_until(deadline, policy, "estimation", None, max_outputs, None).mechanism
    except NoAnswer:
        if best is None:
            raise
        return best
    return searched if best is None or searched.risk(1) < best.risk(1) else best
