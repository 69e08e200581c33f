"""Classical local differential privacy: all values are equally sensitive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import ZERO, Epsilon, EpsilonLike
from sfumato.domain import Domain, checked_domain
from sfumato.policy.base import Policy
from sfumato.policy.epsilon_matrix import EpsilonMatrix
from sfumato.policy.pairwise import PairwisePolicy

__all__ = ["Uniform"]


class Uniform(PairwisePolicy):
    """Classical local differential privacy (LDP): the same epsilon for every pair of values.

    Parameters
    ----------
    domain
        The values.
    epsilon
        Privacy level ε: an int, float, Fraction, Decimal, :class:`Epsilon` or string such as ``"ln 3"``. ``"inf"``
        means no protection.

    Raises
    ------
    InvalidInput
        If the epsilon is negative or not a number.

    Notes
    -----
    Let Q(y|x) be the probability of output y for value x. The policy requires Q(y|x) ≤ e^ε·Q(y|x') for all values x, x'
    and every output y.

    Examples
    --------
    >>> from sfumato import Domain
    >>> policy = Uniform(Domain(["no", "yes"]), "ln 3")
    >>> policy.posterior_odds_bound("yes", "no")
    3.0
    """

    kind = "uniform"

    def __init__(self, domain: Domain, epsilon: EpsilonLike) -> None:
        self.domain = checked_domain("Uniform", domain)
        self.epsilon = Epsilon(epsilon, subject="Uniform")

    def epsilon_between(self, x: int, other: int) -> Epsilon:
        return ZERO if x == other else self.epsilon

    effective_epsilon = epsilon_between

    def classes(self) -> npt.NDArray[np.int64]:
        return np.zeros(len(self.domain), dtype=np.int64)

    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return EpsilonMatrix.from_epsilons(1 - np.eye(len(indices), dtype=np.intp), [ZERO, self.epsilon])

    effective_epsilons_on = epsilons_on

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon)}

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:
        if isinstance(other, Uniform):
            return Uniform(self.domain, (self.epsilon + other.epsilon).as_promise())
        return None

    def restrict(self, values: Sequence[Any]) -> Policy:
        return Uniform(self.domain.subset(values), self.epsilon)
