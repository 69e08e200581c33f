"""Examples of mechanisms for a prior, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.prior.binary import PriorBinary
from sfumato.mechanisms.prior.symmetric import PriorSymmetric
from sfumato.policy import Prior

__all__ = ["examples"]

_TWO = Domain(["no", "yes"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        PriorBinary(_TWO, ["0.99", "0.01"], 1),
        PriorBinary(_TWO, ["1/2", "1/2"], "ln 3"),
        PriorBinary(_TWO, [1, 0], "0.5"),
        PriorBinary(_TWO, ["1/3", "2/3"], 0),
        PriorBinary(_TWO, ["1/3", "2/3"], "inf"),
        PriorBinary.one_sided_as_printed(_TWO, ["0.99", "0.01"], 1),
        PriorSymmetric(_TWO, ["0.9", "0.1"], 1),
        PriorSymmetric(_TWO, ["1/4", "3/4"], "ln 3"),
        PriorSymmetric(_TWO, [1, 0], "0.5"),
        PriorSymmetric(_TWO, ["1/3", "2/3"], 0),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    two = Domain(["yes", "no"])
    return [
        PriorBinary.for_policy(Prior(two, ["1/3", "2/3"], epsilon)),
        PriorSymmetric.for_policy(Prior(two, ["1/2", "1/2"], epsilon)),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws)
