"""Examples of mechanisms for a secret, for vectors and contract tests."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.secret.conditional import ConditionalReporting, ConditionalUnary
from sfumato.mechanisms.secret.independent import IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import ChiSquare, Secret

__all__ = ["examples"]

_PAIRS = Domain.product(S=["s", "t"], U=["u", "v"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        SecretRandomizedResponse(_PAIRS, "S", "ln 3"),
        SecretRandomizedResponse(Domain.product(U=["u", "v", "w"], S=range(3)), "S", 1),
        SecretRandomizedResponse(Domain.product(S=range(5), U=range(7)), "S", "0.5"),
        SecretRandomizedResponse(Domain.product(S=range(2), U=range(20)), "U", 2),
        SecretRandomizedResponse(_PAIRS, "U", 0),
        SecretRandomizedResponse(_PAIRS, "S", "inf"),
        IndependentReporting(
            _PAIRS,
            "S",
            {"secret": "1.09861229", "other": "0.693147181", "sizes": [1, 1]},
            _weights("6 3 2 1", "3 6 1 2", "2 1 6 3", "1 2 3 6"),
        ),
        ConditionalReporting(
            _PAIRS,
            "S",
            {"secret": "0.693147181", "other": ["inf", "1.09861229"], "sizes": [1, 1]},
            _weights("16 0 3 5", "0 16 3 5", "4 4 12 4", "4 4 4 12"),
        ),
        ConditionalUnary(
            _PAIRS,
            "S",
            {"own": "1", "others": "1", "other": ["inf", "0.693147181"], "sizes": [1, 1]},
            _weights("5 7 0 0", "0 0 5 7", "4 2 4 2", "2 4 2 4"),
        ),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    pairs = Domain.product(sex=["f", "m"], age=Domain.range(3))
    mechanisms: list[Mechanism] = [SecretRandomizedResponse(pairs, "sex", epsilon)]
    if epsilon not in ("0", "inf"):
        robust = Secret(pairs, "sex", epsilon, ChiSquare([[30, 20, 10], [10, 20, 30]]))
        mechanisms += [IndependentReporting.for_policy(robust), ConditionalReporting.for_policy(robust)]
        mechanisms.append(ConditionalUnary.for_policy(robust))
    return mechanisms


def _weights(*rows: str) -> npt.NDArray[np.int64]:
    """Return integer weights over 2^62 in these proportions."""
    numbers = [[int(part) for part in row.split()] for row in rows]
    matrix = [[Fraction(number, sum(row)) for number in row] for row in numbers]
    return TableMechanism.from_matrix(_PAIRS, matrix).weights


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws)
