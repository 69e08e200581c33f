"""The error of a mechanism whose reports do not tell all values apart."""

from __future__ import annotations

from sfumato.errors import InvalidInput

__all__ = ["NotIdentifiable"]


class NotIdentifiable(InvalidInput):
    """Reports do not tell all values apart, so no unbiased estimate of their frequencies exists."""

    def __init__(self, must: str, got: object) -> None:
        super().__init__("estimate", "the mechanism", must, got)
