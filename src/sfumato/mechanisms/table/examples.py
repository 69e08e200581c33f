"""Examples of tables, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.binary import BinaryOptimal
from sfumato.mechanisms.table.mechanism import TableMechanism

__all__ = ["examples"]

_SMALL = Domain(["none", "flu", "hiv", "cancer", "other"])
_TWO = Domain(["no", "yes"])
_ROWS = [[2**62, 0, 0], [2**60, 2**61, 2**60], [2**62 // 3, 2**62 // 3, 2**62 - 2 * (2**62 // 3)]]


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        TableMechanism(Domain(["a", "b", "c"]), _ROWS),
        TableMechanism(Domain(["a", "b"]), [[2**62], [2**62]]),
        TableMechanism.from_matrix(_SMALL, RandomizedResponse(_SMALL, 1).matrix()),
        BinaryOptimal(_TWO, "0.5", 2),
        BinaryOptimal.warner(_TWO, "ln 3"),
        BinaryOptimal.mangat(_TWO, "yes", 1),
        BinaryOptimal(_TWO, 0, 0),
        BinaryOptimal(_TWO, "inf", "inf"),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    two = Domain(["yes", "no"])
    return [
        BinaryOptimal(two, epsilon, "1"),
        TableMechanism.from_matrix(two, [["1/2", "1/2", 0, 0], ["1/9", 0, "8/9", 0]]),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        TableMechanism(Domain(["a", "b"]), [[2**62], [2**62]]),
        TableMechanism(Domain(["a", "b"]), [[2**61, 2**60, 2**60], [2**60, 2**60, 2**61]]),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
