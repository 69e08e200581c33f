"""Examples of sampled parts, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.sampled_parts.mechanism import SampledParts
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism
from support.family_examples import Examples

__all__ = ["examples"]

_TWO, _THREE, _SEVEN = Domain.range(2), Domain.range(3), Domain.range(7)
_ROWS = [[2**62, 0, 0], [2**60, 2**61, 2**60], [2**62 // 3, 2**62 // 3, 2**62 - 2 * (2**62 // 3)]]
_PEOPLE = Domain.product(sex=_TWO, age=_SEVEN, job=_THREE)


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    table, two = TableMechanism(_THREE, _ROWS), RandomizedResponse(_TWO, 1)
    sevens = CyclicDesign(_SEVEN, 1, design=CyclicDesign.singer(2, 1, 3))
    pair = ProductMechanism(Domain.range(6), [two, table])
    return [
        SampledParts(_PEOPLE, {"sex": two, "age": sevens, "job": table}),
        SampledParts(
            _PEOPLE,
            {"sex": two, ("sex", "job"): pair, ("age", "job"): RandomizedResponse(Domain.range(21), 1)},
            [1, 3, 2],
        ),
        SampledParts(Domain.product(a=_TWO, b=_THREE), {("a", "b"): pair}),
        SampledParts(Domain.product(a=_TWO, b=_THREE), {"a": two, "b": table}, [2**16 - 3, 2]),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    two, three = RandomizedResponse(_TWO, epsilon), RandomizedResponse(_THREE, epsilon)
    cells = Domain.product(a=_TWO, b=_THREE)
    return [
        SampledParts(cells, {"a": two, "b": three}),
        SampledParts(cells, {"a": two, ("a", "b"): RandomizedResponse(Domain.range(6), epsilon)}, [1, 4]),
        SampledParts(
            Domain.product(a=_TWO, b=_TWO, c=_TWO),
            {("a", "b"): ProductMechanism(Domain.range(4), [two, two]), "c": two},
        ),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    parts = {"sex": RandomizedResponse(_TWO, 1), "age": RandomizedResponse(_SEVEN, 1)}
    return [SampledParts(_PEOPLE, parts)]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
