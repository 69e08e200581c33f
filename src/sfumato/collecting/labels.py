"""Names of public groups in documents."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato._core import check_keys
from sfumato.errors import InvalidInput

__all__ = ["group_document", "read_group"]


def group_document(group: Any, subject: str) -> Any:
    """Return the name of a group as documents store it.

    The name is a string, a finite number, a boolean, None, a date or a time, or a tuple of these, which becomes a list.
    A date is ``{"date": "2026-01-31"}``, and a time is ``{"datetime": "2026-01-31T12:00:00"}``. A pandas Timestamp is a
    time.
    """
    if isinstance(group, tuple):
        return [group_document(part, subject) for part in group]
    is_time = isinstance(group, (np.datetime64, np.timedelta64))  # item() may turn these into plain integers
    plain = group.item() if isinstance(group, np.generic) and not is_time else group
    if isinstance(plain, datetime.date) and plain == plain and not getattr(plain, "nanosecond", 0):
        if not isinstance(plain, datetime.datetime):
            return {"date": plain.isoformat()}
        to_python = getattr(plain, "to_pydatetime", None)  # a pandas Timestamp has this method
        return {"datetime": (plain if to_python is None else to_python()).isoformat()}
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    if plain is not None and not isinstance(plain, (str, int, bool)):
        must = (
            "be a string, a finite number, a boolean, None, a date, a time in whole microseconds, or a tuple of these"
        )
        hint = "Name groups of other types by str(group)."
        raise InvalidInput(subject, "a group", must, group, hint=hint)
    return plain


def read_group(subject: str, document: Any) -> Any:
    """Return the name of a group that ``group_document`` wrote."""
    if isinstance(document, list):
        return tuple(read_group(subject, part) for part in document)
    if isinstance(document, float) and not math.isfinite(document):
        raise InvalidInput(subject, "a group", "not be NaN or infinite", document)
    if isinstance(document, Mapping):
        check_keys(subject, "a group", document, optional=("date", "datetime"))
        ((kind, timestamp),) = document.items()
        reader = datetime.date if kind == "date" else datetime.datetime
        return reader.fromisoformat(timestamp)
    if document is not None and not isinstance(document, (str, int, float)):
        raise InvalidInput(subject, "a group", "be a string, a number, a boolean, a date or a list", document)
    return document
