"""Look up values in a domain, and reject those that it does not contain."""

from __future__ import annotations

import numpy as np

from sfumato._core import Integers, quantity
from sfumato.domain.kinds.base import DomainKind
from sfumato.domain.refusals import At
from sfumato.errors import InvalidInput


def index_of(kind: DomainKind, value: object, at: At) -> int:
    """Return the index of one value."""
    code = kind.place(value)
    if code < 0:
        part, must, got = kind.fault(value)
        raise at.then(part).error(must, got)
    return code


def indices_of(kind: DomainKind, values: object, at: At, first_row: int = 0, *, copy: bool = True) -> Integers:
    """Return the index of each value of a column; the error message names the first rejected row.

    With ``copy=False``, a column that already holds indices is returned as it is, read-only.
    """
    codes, value_at = kind.encode(values, at)
    if not codes.flags.writeable:  # the input itself, already checked
        return codes.copy() if copy else codes
    if codes.min(initial=0) < 0:
        rejected = codes < 0
        row = int(rejected.argmax())
        more = int(np.count_nonzero(rejected)) - 1
        part, must, got = kind.fault(value_at(row))
        others = f" (and {quantity(more, 'more row')})" if more else ""
        raise InvalidInput(at.subject, f"row {first_row + row}{part}{others}", must, got)
    return codes
