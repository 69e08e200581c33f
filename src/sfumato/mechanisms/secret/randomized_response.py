"""Secret randomized response: one value of a product domain, randomized so that only its secret factor is hidden."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato._core import ZERO, Epsilon, EpsilonLike, digits_of, floor_of_log
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Undecided
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Anything, AtLeast, Known, Secret

__all__ = ["SecretRandomizedResponse", "known_response"]

#: Maximum finite level of a design, at which weights over 2^62 still distinguish e^ε, 1 and e^-ε.
_HIGHEST_EPSILON = Epsilon(20)


def SecretRandomizedResponse(domain: Domain, secret: str, epsilon: EpsilonLike) -> TableMechanism:  # noqa: N802
    """Return randomized response for a pair of a secret and other attributes, which hides only the secret.

    The secret is hidden at level ε for every joint distribution of the pair: the policy :class:`Secret` with
    ``distributions=Anything()``. A report is the index of a value of the product domain.

    Parameters
    ----------
    domain
        A product domain, as from ``Domain.product``.
    secret
        The name of the factor that is the secret.
    epsilon
        The level ε: a report is at most e^ε times likelier for one secret than for another.

    Returns
    -------
    TableMechanism
        The mechanism, whose probabilities are rounded so that ε holds exactly.

    Notes
    -----
    Up to normalization, the probability of a report is (Lopuhaä-Zwakenberg and Goseling 2021, "The Privacy-Utility
    Tradeoff of Robust Local Differential Privacy", eq. 18):

    - e^ε if the report is the true value;
    - 1 if the report has another secret;
    - e^-ε if the report has the true secret and another attribute.

    For two values of different secrets, the probabilities of every report thus differ by a factor of at most e^ε. For
    two values of the same secret they may differ by e^2ε, which plain randomized response does not use.

    At ε = 0 all reports are equally likely; at ε = ∞ the report is the value. A finite ε above 20 is treated as 20.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import SecretRandomizedResponse
    >>> people = Domain.product(ill=["no", "yes"], city=["Ulm", "Bonn"])
    >>> mechanism = SecretRandomizedResponse(people, "ill", "ln 2")
    >>> mechanism.matrix()[0].round(4).tolist()
    [0.4444, 0.1111, 0.2222, 0.2222]
    """
    level = Epsilon(epsilon, subject="SecretRandomizedResponse")
    policy = Secret(checked_domain("SecretRandomizedResponse", domain), secret, level, Anything())
    size, others = len(domain), policy.cells.shape[1]
    if level.is_infinite:
        matrix = np.eye(size)
    else:
        secret_of = np.empty(size, dtype=np.int64)
        secret_of[policy.cells] = np.arange(len(policy.cells))[:, None]
        ratio = min(level, _HIGHEST_EPSILON).exp()
        total = ratio + (others - 1) / ratio + size - others
        matrix = np.where(secret_of[:, None] == secret_of, 1 / ratio / total, 1 / total)
        np.fill_diagonal(matrix, ratio / total)
    provenance = {"from": "secret-randomized-response", "secret": secret, "epsilon": str(level)}
    return TableMechanism.from_matrix(domain, matrix, policy=policy, provenance=provenance)


def known_response(policy: Secret) -> RandomizedResponse:
    """Return randomized response of the whole value, at the greatest ε at which it hides the secret.

    The column of (s, u) is r at that value and 1 elsewhere, so it is 1 + (r-1)·P(u|s) times likelier for s than for
    another secret. The policy requires 1 + (r-1)·P(u|s) ≤ e^ε for the greatest P(u|s) of all laws. So r = e^ε only if U
    is determined by S.
    """
    assert isinstance(policy.distributions, (Known, AtLeast))
    epsilon = policy.epsilon
    if epsilon.is_infinite or epsilon == ZERO:
        return RandomizedResponse(policy.domain, epsilon)
    secrets, others = policy.cells.shape
    laws = ((s, law) for s in range(secrets) for law in policy.distributions.conditionals(s, (secrets, others)))
    greatest, s, u = max((p, s, u) for s, law in laws for u, p in enumerate(law))
    ratio = [(Fraction(1), epsilon), (greatest - 1, ZERO)], [(greatest, ZERO)]
    mechanism = RandomizedResponse(policy.domain, max(epsilon, floor_of_log(*ratio, digits_of(epsilon))))
    # Test the column that comes closest to violating a constraint.
    high, low = mechanism.likelihoods
    if not policy.allows([high if z == policy.cells[s, u] else low for z in range(len(policy.domain))]):
        raise Undecided(
            f"the exact test did not prove that randomized response at epsilon {mechanism.epsilon} obeys this Secret "
            'policy. Pass mechanism="secret-rr" to sfumato.plan or sfumato.design.'
        )
    return mechanism
