"""Examples of a family's mechanisms, from which vectors are written and contract tests are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.mechanisms.base import Mechanism

__all__ = ["Examples"]


@dataclass(frozen=True)
class Examples:
    """Examples of a family, for different purposes.

    Parameters
    ----------
    samplers
        Returns mechanisms for the vectors of words and decisions: every path of every sampler, small and large.
    laws
        Returns mechanisms over few values at a level ε, for the vectors of exact laws.
    reports
        Returns mechanisms for the vectors of batches: every shape of report.
    """

    samplers: Callable[[], Sequence[Mechanism]]
    laws: Callable[[str], Sequence[Mechanism]]
    reports: Callable[[], Sequence[Mechanism]] = lambda: ()
