"""The parts of a refusal's message: the place at fault, and labels listed short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.errors import InvalidInput, UnreadableFile, file_error


@dataclass(frozen=True, slots=True)
class At:
    """The place a refusal names: which parameter of which subject."""

    subject: str
    parameter: str

    def item(self, key: object) -> At:
        return At(self.subject, f"{self.parameter}[{key!r}]")

    def then(self, text: str) -> At:
        return At(self.subject, self.parameter + text)

    def refuse(self, must: str, got: object) -> InvalidInput:
        return InvalidInput(self.subject, self.parameter, must, got)

    def refuse_file(self, error: OSError, must: str, got: object) -> UnreadableFile:
        return file_error(error, self.subject, self.parameter, must, got)


def listing(labels: Sequence[object], most: int = 5) -> str:
    """The first labels, each cut short, and how many are left out."""
    names = [text if len(text) <= 30 else text[:29] + "…" for text in map(repr, labels[:most])]
    left = len(labels) - len(names)
    return ", ".join(names) + (f", … {left} more" if left else "")
