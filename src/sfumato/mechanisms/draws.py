"""The two random decisions a sampler may make, and how bits become decisions.

``docs/words-to-decisions.md`` fixes every rule here. A sampler only ever sees the interface ``Draws``; what
stands behind it may be secure bits, recorded decisions, or an interpreter that follows every branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.errors import InvalidInput

__all__ = ["BitDraws", "Decision", "Draws", "Field", "Layout", "RecordedDraws", "RecordingDraws"]

#: Width of the numbers that `below` reads as a repair, and of those it reads as a field.
INDEX_BITS = 32
#: An auxiliary read gives at most this many bits.
WORD_BITS = 64


class Draws(Protocol):
    """What a sampler may ask of randomness."""

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        """True with probability exactly numerator/denominator."""

    def below(self, m: int) -> int:
        """Each of 0 … m-1 with probability exactly 1/m."""


# -- where in a frame a decision reads -------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """Some bits of a frame, most significant first, at start, start + step, …

    Parameters
    ----------
    start
        The place of the most significant bit in the frame.
    step
        The distance from one bit to the next; -1 for a plain number.
    width
        The number of bits.
    """

    start: int
    step: int
    width: int

    @classmethod
    def number(cls, low: int, width: int) -> Field:
        """A plain number whose least significant bit stands at ``low``."""
        return cls(low + width - 1, -1, width)

    def read(self, frame: int) -> int:
        """Return the number that the bits of a frame have here."""
        value = 0
        for i in range(self.width):
            value = value << 1 | frame >> self.start + i * self.step & 1
        return value


@dataclass(frozen=True)
class Layout:
    """The bits of a frame that each decision of a sampler reads first.

    The field of a number comes first, then one field of ``planes`` bits for each of ``lanes`` positions.

    Parameters
    ----------
    frame_bits
        The length of a frame in bits.
    numbers
        The fields of the first decisions.
    lanes
        The number of positions that have a decision each.
    planes
        The number of bits of such a decision.
    planes_start
        The place of the first of these bits in the frame.
    """

    frame_bits: int
    numbers: tuple[Field, ...]
    lanes: int = 0
    planes: int = 0
    planes_start: int = 0

    def __len__(self) -> int:
        return len(self.numbers) + self.lanes

    def field(self, decision: int) -> Field:
        """Return the bits that a decision reads, by its number."""
        if decision < len(self.numbers):
            return self.numbers[decision]
        group, lane = divmod(decision - len(self.numbers), WORD_BITS)
        return Field(self.planes_start + WORD_BITS * self.planes * group + lane, WORD_BITS, self.planes)

    def fault(self) -> str | None:
        """Why these fields are not disjoint parts of the frame, or None if they are."""
        taken = np.zeros(self.frame_bits, dtype=np.uint8)
        for decision in range(len(self)):
            field = self.field(decision)
            if field.width == 0:
                continue
            positions = field.start + field.step * np.arange(field.width)
            if positions.min() < 0 or positions.max() >= self.frame_bits:
                return f"the field of decision {decision} leaves the frame of {self.frame_bits} bits"
            if taken[positions].any():
                return f"the field of decision {decision} overlaps the field of an earlier decision"
            taken[positions] = 1
        return None

    @property
    def chunk_values(self) -> int:
        """How many values share one pair of streams."""
        return max(1, 2**18 // (self.frame_bits // 8))

    def document(self) -> dict[str, object]:
        """The layout as part of a spec."""
        return {
            "frame_bits": self.frame_bits,
            "numbers": [[field.start - field.width + 1, field.width] for field in self.numbers],
            "lanes": self.lanes,
            "planes": self.planes,
            "planes_start": self.planes_start,
        }


# -- decisions from bits ---------------------------------------------------------------------------------


class BitDraws:
    """Decisions from uniform bits: those of a frame first, by the layout's fields, then the auxiliary stream.

    ``auxiliary(w)`` gives w uniform bits. Without a frame every decision reads them alone.
    """

    def __init__(self, auxiliary: Callable[[int], int], layout: Layout | None = None, frame: int = 0) -> None:
        self._auxiliary = auxiliary
        self._layout = layout
        self._frame = frame
        self._next = 0

    def _first_bits(self, width_without_field: int) -> tuple[int, int]:
        """The value and the width of the next decision's first bits."""
        if self._layout is not None and self._next < len(self._layout):
            field = self._layout.field(self._next)
            self._next += 1
            return field.read(self._frame), field.width
        return self._auxiliary(width_without_field), width_without_field

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        if not 0 <= numerator <= denominator:
            raise ValueError(f"not a probability: {numerator}/{denominator}")
        if denominator & denominator - 1:
            return self.below(denominator) < numerator
        width = denominator.bit_length() - 1
        value, prefix = self._first_bits(min(width, WORD_BITS))
        rest = width - prefix
        if rest < 0:
            raise ValueError(f"a field of {prefix} bits is wider than the denominator 2^{width}")
        high, low = numerator >> rest, numerator & (1 << rest) - 1
        if value != high:
            return value < high
        return low != 0 and self._auxiliary(rest) < low

    def below(self, m: int) -> int:
        value, width = self._first_bits(INDEX_BITS)
        if not 1 <= m <= 1 << width:
            raise ValueError(f"{width} bits cannot choose among {m}")
        rejected = (1 << width) % m
        while value * m & (1 << width) - 1 < rejected:
            value = self._auxiliary(width)
        return value * m >> width


# -- decisions recorded and replayed ---------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """One decision: ``bernoulli(*arguments)`` or ``below(*arguments)``, and what came of it."""

    kind: str
    arguments: tuple[int, ...]
    result: int

    def document(self) -> list[object]:
        # Integers beyond 2^53 do not survive JSON in every language: arguments are texts.
        return [self.kind, [str(argument) for argument in self.arguments], self.result]

    @classmethod
    def from_document(cls, document: list[object]) -> Decision:
        kind, arguments, result = document
        assert isinstance(arguments, list)
        assert isinstance(result, int)
        return cls(str(kind), tuple(int(argument) for argument in arguments), result)


class RecordingDraws:
    """Passes decisions through and keeps them."""

    def __init__(self, inner: Draws) -> None:
        self._inner = inner
        self.decisions: list[Decision] = []

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        result = self._inner.bernoulli(numerator, denominator)
        self.decisions.append(Decision("bernoulli", (numerator, denominator), int(result)))
        return result

    def below(self, m: int) -> int:
        result = self._inner.below(m)
        self.decisions.append(Decision("below", (m,), result))
        return result


class RecordedDraws:
    """Replays recorded decisions, and refuses a sampler that asks for others."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        self._left = list(decisions)[::-1]

    def _replay(self, kind: str, arguments: tuple[int, ...]) -> int:
        request = f"{kind}{arguments}"
        if not self._left:
            raise InvalidInput("RecordedDraws", "the sampler", "ask for no more decisions than recorded", request)
        decision = self._left.pop()
        if (decision.kind, decision.arguments) != (kind, arguments):
            raise InvalidInput("RecordedDraws", "the sampler", f"ask for {decision.kind}{decision.arguments}", request)
        return decision.result

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        return bool(self._replay("bernoulli", (numerator, denominator)))

    def below(self, m: int) -> int:
        return self._replay("below", (m,))

    def check_finished(self) -> None:
        """Refuse a sampler that left recorded decisions unasked."""
        if self._left:
            raise InvalidInput(
                "RecordedDraws", "the sampler", "ask for every recorded decision", f"{len(self._left)} left"
            )
