"""Classical local differential privacy: every value is as sensitive as every other."""

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
    """``T_x ≤ e^ε·T_x'`` for all values: ε-LDP."""

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
