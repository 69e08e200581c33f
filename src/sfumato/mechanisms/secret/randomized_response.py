"""Secret randomized response: one value of a product, randomized so that only its secret factor is hidden."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import ZERO, Epsilon, EpsilonLike, digits_of, floor_of_log
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, Undecided
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.secret.base import SecretTable
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Anything, AtLeast, Known, Secret

__all__ = ["SecretRandomizedResponse", "known_response"]

#: A finite level is designed for as at most this: weights over 2^62 then still keep e^ε, 1 and e^-ε apart.
_HIGHEST_EPSILON = Epsilon(20)


class SecretRandomizedResponse(SecretTable):
    """The value itself with weight e^ε, each value of another secret with 1, each other one of its secret with e^-ε.

    RLDP eq. 18. Values of different secrets differ by at most e^ε in every output, so the secret is hidden whatever the
    distribution (``Secret`` under Anything); values of one secret may differ by e^2ε, which plain randomized response
    does not use. ε = 0 makes all outputs equally likely, an infinite ε reports the value itself. The weights over 2^62
    are rounded so that the level is kept exactly; above ε = 20 they keep 20.
    """

    name = "secret-randomized-response"

    def __init__(self, domain: Domain, secret: str, epsilon: EpsilonLike, *, weights: Any = None) -> None:
        self.epsilon = Epsilon(epsilon, subject="SecretRandomizedResponse")
        super().__init__(domain, secret, _weights(domain, secret, self.epsilon) if weights is None else weights)

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon), **super().parameters()}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> SecretRandomizedResponse:
        table = dict(parameters)
        secret, epsilon = table.pop("secret"), table.pop("epsilon")
        return cls(domain, secret, epsilon, weights=TableMechanism.from_parameters(domain, table).weights)


def _weights(domain: Domain, secret: str, epsilon: Epsilon) -> Any:
    policy = Secret(domain, secret, epsilon, Anything())
    size = len(domain)
    if epsilon.is_infinite:
        return TableMechanism.from_matrix(domain, np.eye(size)).weights
    secret_of = np.empty(size, dtype=np.int64)
    for number, cells in enumerate(policy.cells):
        secret_of[cells] = number
    others = policy.cells.shape[1]
    ratio = min(epsilon, _HIGHEST_EPSILON).exp()
    total = ratio + (others - 1) / ratio + size - others
    matrix = np.where(secret_of[:, None] == secret_of, 1 / ratio / total, 1 / total)
    np.fill_diagonal(matrix, ratio / total)
    return TableMechanism.from_matrix(domain, matrix, policy=policy).weights


def known_response(policy: Secret) -> RandomizedResponse:
    """Return randomized response of the whole value, at the greatest ε at which it hides the secret.

    Parameters
    ----------
    policy
        A secret policy under ``Known`` or ``AtLeast``.

    Notes
    -----
    The column of (s, u) is r there and 1 elsewhere, so it is 1 + (r-1)·P(u|s) likelier for s than for another secret,
    and 1 + (r-1)·P(u|s) ≤ e^ε for the greatest P(u|s) of all laws. That is r = e^ε only where U follows from S.
    """
    if not isinstance(policy.distributions, (Known, AtLeast)):
        raise InvalidInput("known_response", "policy", "have Known or AtLeast shares", policy)
    epsilon = policy.epsilon
    if epsilon.is_infinite or epsilon == ZERO:
        return RandomizedResponse(policy.domain, epsilon)
    secrets, others = policy.cells.shape
    laws = ((s, law) for s in range(secrets) for law in policy.distributions.conditionals(s, (secrets, others)))
    greatest, s, u = max((p, s, u) for s, law in laws for u, p in enumerate(law))
    ratio = [(Fraction(1), epsilon), (greatest - 1, ZERO)], [(greatest, ZERO)]
    mechanism = RandomizedResponse(policy.domain, max(epsilon, floor_of_log(*ratio, digits_of(epsilon))))
    # The column that comes closest to breaking a rule.
    high, low = mechanism.likelihoods
    if not policy.allows([high if z == policy.cells[s, u] else low for z in range(len(policy.domain))]):
        raise Undecided(f"randomized response at {mechanism.epsilon} was not proved to obey this secret policy")
    return mechanism
