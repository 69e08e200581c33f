"""Examples of products, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism
from support.family_examples import Examples

__all__ = ["examples"]

_TWO, _THREE = Domain.range(2), Domain.range(3)
_CELLS = Domain.product(row=_THREE, column=Domain.range(5))
_SINGER = CyclicDesign.singer(2, 1, 3)
_ROWS = [[2**62, 0, 0], [2**60, 2**61, 2**60], [2**62 // 3, 2**62 // 3, 2**62 - 2 * (2**62 // 3)]]


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    table, sevens = TableMechanism(_THREE, _ROWS), CyclicDesign(Domain.range(7), 1, design=_SINGER)
    response = RandomizedResponse(Domain.range(5), 1)
    return [
        ProductMechanism(_CELLS, [table, response]),
        ProductMechanism(Domain.product(a=_THREE, b=_THREE), [table, table]),
        ProductMechanism(Domain.range(70), [response, sevens, RandomizedResponse(_TWO, "0.5")]),
        ProductMechanism(Domain.range(490), [HadamardResponse(Domain.range(70), "ln 2"), sevens]),
        ProductMechanism(Domain.range(4), [RandomizedResponse(_TWO, 0), RandomizedResponse(_TWO, "inf")]),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    two, three = RandomizedResponse(_TWO, epsilon), RandomizedResponse(_THREE, epsilon)
    table = TableMechanism.from_matrix(_TWO, [["1/2", "1/2", 0, 0], ["1/9", 0, "8/9", 0]])
    return [
        ProductMechanism(Domain.range(6), [table, three]),
        ProductMechanism(Domain.product(a=_TWO, b=_TWO, c=_TWO), [two, table, two]),
        ProductMechanism(Domain.range(9), [CyclicDesign(_THREE, epsilon, design=_SINGER), HadamardResponse(_THREE, 1)]),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [ProductMechanism(_CELLS, [RandomizedResponse(Domain.range(size), 1) for size in (3, 5)])]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
