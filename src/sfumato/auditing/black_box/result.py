"""What a black-box audit says."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from sfumato._core import Epsilon
from sfumato.errors import PolicyViolated

__all__ = ["SamplerAudit"]


@dataclass(frozen=True)
class SamplerAudit:
    """What a black-box audit found: ``epsilon_lower`` is a lower bound, never an upper one.

    ``violated``: the bound exceeds ``level``, what the policy allows between the two values of ``pair``. A true sampler
    is accused with probability at most ``alpha``. Not violated means that nothing was found, and proves nothing.

    ``event`` happened ``counts[0]`` times in ``tested`` outputs for the first value of the pair, ``counts[1]`` times in
    as many for the second; ``tests`` such events were tested in all, and ``trials`` outputs drawn for each value. Where
    that event is a learned score, ``plain`` is the strongest violation that a person can check by eye, if there is one.
    """

    violated: bool
    epsilon_lower: float
    level: Epsilon
    pair: tuple[object, object]
    event: str
    counts: tuple[int, int]
    tested: int
    trials: int
    alpha: float
    tests: int
    plain: SamplerAudit | None = None

    def raise_if_violated(self) -> SamplerAudit:
        """This result, or PolicyViolated with the reason."""
        if self.violated:
            raise PolicyViolated(self.summary())
        return self

    def summary(self) -> str:
        """One sentence for a person."""
        found = "the sampler violates the policy" if self.violated else "nothing found, which proves nothing"
        also = "" if self.plain is None else f"; more plainly, {self.plain._finding()}"
        return f"{found}: {self._finding()}{also} (alpha {self.alpha:g})"

    def _finding(self) -> str:
        first, second = self.pair
        return (
            f"epsilon is at least {math.floor(self.epsilon_lower * 1000) / 1000:.3f} for {first!r} against {second!r}, "
            f"where {self.level} is allowed: {self.event} in {self.counts[0]:,} of {self.tested:,} outputs for "
            f"{first!r}, in {self.counts[1]:,} for {second!r}"
        )

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> str:
        """The result as a JSON text."""
        return json.dumps(self._document(), indent=2, ensure_ascii=False) + "\n"

    def _document(self) -> dict[str, Any]:
        plain = None if self.plain is None else self.plain._document()
        return {**vars(self), "level": str(self.level), "plain": plain}
