"""What both kinds of task on an executor need: the mechanism, and how a refusal gets back to the driver."""

from __future__ import annotations

import functools

from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, mechanism_from_spec

__all__ = ["Refused", "mechanism_of"]


class Refused(InvalidInput):
    """What an executor refused, in its words.

    Tasks return refusals as data: raised there, Spark would try the same rows again, and bury the words in a trace.
    """

    def __init__(self, where: str, words: str) -> None:
        ValueError.__init__(self, f"{where}: {words}")


@functools.lru_cache(maxsize=8)
def mechanism_of(spec: str) -> Mechanism:
    """The mechanism of a spec, built once in each process: Spark reuses its Python workers."""
    return mechanism_from_spec(spec)
