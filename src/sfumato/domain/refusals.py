"""Parts of error messages: the rejected parameter, and short lists of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.errors import InvalidInput, UnreadableFile, file_error


@dataclass(frozen=True, slots=True)
class At:
    """Parameter that an error message names, and the function or class that it belongs to."""

    subject: str
    parameter: str

    def item(self, key: object) -> At:
        """Return the place of one item of this parameter."""
        return At(self.subject, f"{self.parameter}[{key!r}]")

    def then(self, suffix: str) -> At:
        """Return this place with more words after the parameter."""
        return At(self.subject, self.parameter + suffix)

    def error(self, must: str, got: object, *, hint: str | None = None) -> InvalidInput:
        """Return the error for a value that does not meet a requirement."""
        return InvalidInput(self.subject, self.parameter, must, got, hint=hint)

    def file_error(self, error: OSError, must: str, got: object) -> UnreadableFile:
        """Return the error for a file that cannot be read."""
        return file_error(error, self.subject, self.parameter, must, got)


def listing(labels: Sequence[object], most: int = 5) -> str:
    """Return the first labels, each cut to 30 characters, and how many more there are."""
    names = [name if len(name) <= 30 else name[:29] + "…" for name in map(repr, labels[:most])]
    remaining = len(labels) - len(names)
    return ", ".join(names) + (f", … {remaining} more" if remaining else "")
