"""The error for mechanisms whose reports do not tell all values apart."""

from __future__ import annotations

from sfumato.errors import InvalidInput

__all__ = ["NotIdentifiable"]


class NotIdentifiable(InvalidInput):
    """Raised if reports do not tell all values apart, so that frequencies have no unbiased estimate.

    Parameters
    ----------
    must
        The requirement that the mechanism does not meet, as the words after "must".
    got
        The mechanism.
    hint
        What to do next, as a full sentence.
    """

    def __init__(self, must: str, got: object, *, hint: str = "Use a mechanism with a larger epsilon.") -> None:
        super().__init__("estimate", "the mechanism", must, got, hint=hint)
