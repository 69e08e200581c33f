"""Look up values in a domain, and reject those that it does not contain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato._core import Integers, quantity
from sfumato.domain.kinds.base import DomainKind
from sfumato.domain.refusals import At
from sfumato.domain.scalars import is_missing
from sfumato.errors import Description, InvalidInput


def index_of(kind: DomainKind, value: object, at: At) -> int:
    """Return the index of one value."""
    code = kind.place(value)
    if code < 0:
        part, must, got = kind.fault(value)
        raise at.then(part).error(must, got)
    return code


def indices_of(
    kind: DomainKind,
    values: object,
    at: At,
    first_row: int = 0,
    *,
    copy: bool = True,
    row_name: Callable[[int], str] | None = None,
    hints: bool = False,
) -> Integers:
    """Return the index of each value of a column; the error message names the first rejected row.

    With ``copy=False``, a column that already holds indices is returned as it is, read-only. ``row_name`` returns the
    name of a row of a file in messages, such as "line 7". With ``hints``, messages say what to do
    about missing values.
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
        hint = _hint(kind, got) if hints else None
        if row_name is not None and isinstance(got, str) and not got:
            got = Description("an empty cell")
        where = f"row {first_row + row}{part}{others}" if row_name is None else row_name(row) + part
        raise InvalidInput(at.subject, where, must, got, hint=hint)
    return codes


#: What to do about missing values.
MISSING_HINT = (
    "Choose a value for missing values: missing='unknown' in the domain declares one, and --missing value LABEL "
    "(missing=LABEL in Python) takes one of the domain. Dropping them is not private."
)


def _hint(kind: DomainKind, got: object) -> str | None:
    """Return what to do about a rejected value."""
    if is_missing(got) or (isinstance(got, str) and not got):
        return None if kind.name == "grid" else MISSING_HINT
    if isinstance(got, str) and got.strip() != got and kind.place(got.strip()) >= 0:
        return "Remove the spaces around it."
    return None
