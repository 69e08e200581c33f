"""What independent and conditional reporting are made of: set responses of one attribute, and budgets for them.

Lopuhaä-Zwakenberg, Goseling: The Privacy-Utility Tradeoff of Robust Local Differential Privacy (RLDP), VI and VII.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Floats, canonical_hash
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.matrix import MatrixEstimator
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import ChiSquare, Policy, Secret

__all__ = [
    "ReportingMechanism",
    "SecretTable",
    "checked_policy",
    "design_epsilon",
    "information",
    "memberships",
    "offered_sizes",
    "risk_of",
    "set_response",
    "set_sizes",
    "zoom",
]


_UTILITIES = ("estimation", "mutual-information")
#: Sets of values are offered as outputs where there are at most this many of them.
_MOST_SETS = 256
#: Designs aim this much below ε, relatively: what rounding to integers takes is far less.
_MARGIN = 1e-9
#: A higher level is designed for as this one, while e^ε is still a double: less is told than could be.
_HIGHEST_EPSILON = 300.0


class SecretTable(TableMechanism):
    """A table over a product domain that remembers which factor is the secret."""

    def __init__(self, domain: Domain, secret: str, weights: Any) -> None:
        if secret not in list(checked_domain(type(self).__name__, domain).factors):
            names = f"one of {', '.join(domain.factors)}" if domain.factors else "a factor of a Domain.product"
            raise InvalidInput(type(self).__name__, "secret", f"name {names}", secret)
        self.secret = secret
        super().__init__(domain, weights)

    def parameters(self) -> dict[str, Any]:
        return {"secret": self.secret, **super().parameters()}


class ReportingMechanism(SecretTable):
    """A table that a protocol was computed into. ``budget`` says in words how; the weights alone are the law."""

    def __init__(self, domain: Domain, secret: str, budget: dict[str, Any], weights: Any) -> None:
        if not isinstance(budget, dict):
            raise InvalidInput(type(self).__name__, "budget", "be a table of keys and values", budget)
        try:
            canonical_hash(budget)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(type(self).__name__, "budget", "be what JSON can hold", str(error)) from None
        self.budget = budget
        super().__init__(domain, secret, weights)

    @classmethod
    def within(cls, policy: Secret, budget: dict[str, Any], matrix: Floats) -> Any:
        """The table of a design, rounded so that it obeys the policy; rows are in the order of (secret, other)."""
        rows = np.empty_like(matrix)
        rows[policy.cells.ravel()] = matrix
        rows = rows[:, rows.any(axis=0)]
        weights = TableMechanism.from_matrix(policy.domain, rows, policy=policy).weights
        return cls(policy.domain, policy.secret, budget, weights)

    def parameters(self) -> dict[str, Any]:
        return {"budget": self.budget, **super().parameters()}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> ReportingMechanism:
        table = dict(parameters)
        secret, budget = table.pop("secret"), table.pop("budget")
        return cls(domain, secret, budget, TableMechanism.from_parameters(domain, table).weights)


def checked_policy(subject: str, policy: Policy, utility: str) -> tuple[Secret, ChiSquare]:
    """The policy and its confidence set, or a refusal."""
    if not isinstance(policy, Secret) or not isinstance(policy.distributions, ChiSquare):
        raise InvalidInput(subject, "policy", "be a Secret under ChiSquare", policy)
    if utility not in _UTILITIES:
        raise InvalidInput(subject, "utility", f"be one of {', '.join(_UTILITIES)}", utility)
    return policy, policy.distributions


def design_epsilon(epsilon: Epsilon) -> float:
    """ε as a design uses it: a double just below."""
    return min(float(epsilon), _HIGHEST_EPSILON) * (1 - _MARGIN)


# -- responses of one attribute --------------------------------------------------------------------------


def offered_sizes(values: int) -> list[int]:
    """Sizes of which there are few enough sets; a larger set than half of all values tells no more than a smaller."""
    return [size for size in range(1, max(values // 2, 1) + 1) if size == 1 or math.comb(values, size) <= _MOST_SETS]


@functools.cache
def memberships(values: int, size: int) -> npt.NDArray[np.bool_]:
    """All sets of ``size`` values, one per row."""
    sets = np.zeros((math.comb(values, size), values), dtype=bool)
    for row, chosen in enumerate(itertools.combinations(range(values), size)):
        sets[row, list(chosen)] = True
    sets.setflags(write=False)
    return sets


def set_response(values: int, size: int, gain: float) -> Floats:
    """A row per value; a set is 1 + gain times likelier for its members than for others.

    Sets of one value make randomized response at ε = ln(1 + gain), larger ones subset selection. An infinite gain
    leaves the sets that hold the value; one of zero tells nothing, and its only output says so.
    """
    if gain == 0:
        return np.ones((values, 1))
    sets = memberships(values, size).T.astype(np.float64)
    matrix = sets if math.isinf(gain) else 1 + gain * sets
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def set_sizes(values: int, gain: float) -> list[int]:
    """Set sizes worth trying: one, and those next to k/(e^ε + 1), where subset selection is best."""
    if values == 1 or math.isinf(gain):
        return [1]
    near = values / (gain + 2)
    return [size for size in offered_sizes(values) if size == 1 or abs(size - near) < 1]


# -- the utility of a design -----------------------------------------------------------------------------


def information(p: Floats, matrix: Floats) -> float:
    """I(X;Y) in nats, for X drawn from p."""
    joint = p[:, None] * matrix
    law = joint.sum(axis=0)
    ratio = np.where(joint > 0, matrix / np.where(law > 0, law, 1), 1.0)
    return float(np.sum(joint * np.log(ratio)))


def risk_of(*factors: Floats) -> float:
    """n times the expected squared error of the unbiased estimate from n reports, at uniform shares.

    Of a matrix, or of the Kronecker product of several: its inverse and its second moments are products of theirs.
    """
    moment, size = 1.0, 1
    for matrix in factors:
        try:
            moment *= float(np.mean(MatrixEstimator(matrix).second_moments()))
        except NotIdentifiable:
            return math.inf
        size *= len(matrix)
    return moment - 1 / size


def zoom(utility_of: Callable[..., float], *ranges: tuple[float, float]) -> Sequence[float]:
    """Where ``utility_of`` is greatest on a box: a grid over all of it, then finer grids around the best point.

    The ends are tried exactly: a budget that goes to one attribute alone is often the best.
    """
    points, finer, rounds = (33, 9, 7) if len(ranges) == 1 else (9, 5, 6)
    low, high = [a for a, _ in ranges], [b for _, b in ranges]
    best, best_point = -math.inf, tuple(low)
    for _ in range(rounds):
        axes = [np.linspace(a, b, points).tolist() for a, b in zip(low, high, strict=True)]
        for at in itertools.product(*axes):
            value = utility_of(*at)
            if value > best:
                best, best_point = value, at
        widths = [(b - a) / (points - 1) for a, b in zip(low, high, strict=True)]
        low = [max(at - width, a) for at, width, (a, _) in zip(best_point, widths, ranges, strict=True)]
        high = [min(at + width, b) for at, width, (_, b) in zip(best_point, widths, ranges, strict=True)]
        points = finer
    return best_point
