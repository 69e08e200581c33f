"""Values looked up in a kind of domain, where what is not in it is refused by name."""

from __future__ import annotations

import numpy as np

from sfumato._core import Integers
from sfumato.domain.kinds.base import DomainKind
from sfumato.domain.refusals import At
from sfumato.errors import InvalidInput


def index_of(kind: DomainKind, value: object, at: At) -> int:
    """The index of one value."""
    code = kind.place(value)
    if code < 0:
        part, must, got = kind.fault(value)
        raise at.then(part).refuse(must, got)
    return code


def indices_of(kind: DomainKind, values: object, at: At, first_row: int = 0, *, copy: bool = True) -> Integers:
    """The index of each value of a column; a refusal names the first row at fault.

    Without ``copy`` values that are indices already are given back as they are, read-only.
    """
    codes, value_at = kind.encode(values, at)
    if not codes.flags.writeable:  # the values themselves, which are valid
        return codes.copy() if copy else codes
    if codes.min(initial=0) < 0:
        refused = codes < 0
        row = int(refused.argmax())
        more = int(np.count_nonzero(refused)) - 1
        part, must, got = kind.fault(value_at(row))
        others = f" (and {more} more row{'s' if more > 1 else ''})" if more else ""
        raise InvalidInput(at.subject, f"row {first_row + row}{part}{others}", must, got)
    return codes
