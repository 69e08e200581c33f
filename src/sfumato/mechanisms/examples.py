"""Examples of a family's mechanisms, used to generate test vectors and contract tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.mechanisms.base import Mechanism

__all__ = ["Examples"]


@dataclass(frozen=True)
class Examples:
    """Examples of one family, by purpose.

    Parameters
    ----------
    samplers
        Returns mechanisms for the vectors of words and decisions. They cover every path of every sampler, on small and
        large domains.
    laws
        Returns mechanisms over few values at a level ε, for the vectors of exact laws.
    reports
        Returns mechanisms for the vectors of batches, one for every shape of report.
    """

    samplers: Callable[[], Sequence[Mechanism]]
    laws: Callable[[str], Sequence[Mechanism]]
    reports: Callable[[], Sequence[Mechanism]] = lambda: ()
