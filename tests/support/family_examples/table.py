"""Examples of tables, for vectors and contract tests."""

from __future__ import annotations

from fractions import Fraction

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.secret.conditional import ConditionalReporting, ConditionalUnary
from sfumato.mechanisms.secret.independent import IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.binary import BinaryOptimal, PriorBinary, PriorSymmetric
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import ChiSquare, Secret
from support.family_examples import Examples

__all__ = ["examples"]

_SMALL = Domain(["none", "flu", "hiv", "cancer", "other"])
_TWO, _PAIRS = Domain(["no", "yes"]), Domain.product(S=["s", "t"], U=["u", "v"])
_ROWS = [[2**62, 0, 0], [2**60, 2**61, 2**60], [2**62 // 3, 2**62 // 3, 2**62 - 2 * (2**62 // 3)]]
_CONDITIONAL = [[16, 0, 3, 5], [0, 16, 3, 5], [4, 4, 12, 4], [4, 4, 4, 12]]


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        TableMechanism(Domain(["a", "b", "c"]), _ROWS),
        TableMechanism(Domain(["a", "b"]), [[2**62], [2**62]]),
        TableMechanism.from_matrix(_SMALL, RandomizedResponse(_SMALL, 1).matrix()),
        BinaryOptimal(_TWO, "0.5", 2),
        BinaryOptimal(_TWO, "inf", 1),
        BinaryOptimal(_TWO, 0, 0),
        BinaryOptimal(_TWO, "inf", "inf"),
        PriorBinary(_TWO, ["0.99", "0.01"], 1),
        PriorSymmetric(_TWO, ["0.9", "0.1"], 1),
        SecretRandomizedResponse(_PAIRS, "S", "ln 3"),
        SecretRandomizedResponse(Domain.product(S=range(2), U=range(20)), "U", 2),
        TableMechanism.from_matrix(_PAIRS, [[Fraction(n, 24) for n in row] for row in _CONDITIONAL]),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    two, pairs = Domain(["yes", "no"]), Domain.product(sex=["f", "m"], age=Domain.range(3))
    mechanisms: list[Mechanism] = [
        BinaryOptimal(two, epsilon, "1"),
        TableMechanism.from_matrix(two, [["1/2", "1/2", 0, 0], ["1/9", 0, "8/9", 0]]),
        PriorBinary(two, ["1/3", "2/3"], epsilon),
        PriorSymmetric(two, ["1/2", "1/2"], epsilon),
        SecretRandomizedResponse(pairs, "sex", epsilon),
    ]
    if epsilon not in ("0", "inf"):
        robust = Secret(pairs, "sex", epsilon, ChiSquare([[30, 20, 10], [10, 20, 30]]))
        mechanisms += [IndependentReporting(robust), ConditionalReporting(robust), ConditionalUnary(robust)]
    return mechanisms


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        TableMechanism(Domain(["a", "b"]), [[2**62], [2**62]]),
        TableMechanism(Domain(["a", "b"]), [[2**61, 2**60, 2**60], [2**60, 2**60, 2**61]]),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
