"""The error for reports whose stored mechanism hash is not that of the caller's mechanism."""

from __future__ import annotations

import re
from typing import Any

from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import HASH_ATTRIBUTE, Mechanism

__all__ = ["check_origin", "wrong_mechanism"]

#: Digits of a hash in a message; they distinguish mechanisms and fit on a line.
_SHOWN_DIGITS = 12
_HASH = re.compile("[0-9a-f]{64}")


def check_origin(mechanism: Mechanism, reports: Any, subject: str = "reports") -> None:
    """Reject a pandas Series of reports that another mechanism produced; other columns do not carry its hash."""
    attributes = getattr(reports, "attrs", None)
    stored = attributes.get(HASH_ATTRIBUTE) if isinstance(attributes, dict) else None
    if stored not in (None, mechanism.hash):
        raise wrong_mechanism(subject, f"attrs[{HASH_ATTRIBUTE!r}]", mechanism.hash, str(stored))


def wrong_mechanism(
    subject: str,
    parameter: str,
    expected: str,
    stored: str | None,
    *,
    cause: str = "The reports were produced by another mechanism, or the file is damaged.",
    next_step: str = "Pass the mechanism that produced the reports.",
) -> InvalidInput:
    """Return the error for reports of another mechanism; ``stored`` is None if no hash is stored.

    >>> print(wrong_mechanism("monday.sfb", "its mechanism hash", "0" * 64, "1" * 64))  # doctest: +NORMALIZE_WHITESPACE
    monday.sfb: its mechanism hash must be 000000000000…; got 111111111111…. The reports were produced by another
    mechanism, or the file is damaged. Pass the mechanism that produced the reports.
    """
    must = f"be {expected[:_SHOWN_DIGITS]}…"
    got: str = Description("none")
    if stored is not None and _HASH.fullmatch(stored):
        differs_late = stored[:_SHOWN_DIGITS] == expected[:_SHOWN_DIGITS]  # after damage, not for another mechanism
        got = Description(stored if differs_late else f"{stored[:_SHOWN_DIGITS]}…")
        must = f"be {expected}" if differs_late else must
    elif stored is not None:
        got = stored
    return InvalidInput(subject, parameter, must, got, hint=f"{cause} {next_step}")
