"""The two random decisions that a sampler may make, and the conversion of bits to decisions.

``docs/words-to-decisions.md`` specifies every rule of this module. A sampler only sees the interface ``Draws``. Its
implementations draw secure bits, replay recorded decisions, or follow every branch for an audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.errors import Description, InvalidInput

__all__ = ["BitDraws", "Decision", "Draws", "Field", "Layout", "RecordedDraws", "RecordingDraws"]

#: Width in bits of the numbers that `below` reads from the auxiliary stream; for more than 2^32 choices it is 64.
INDEX_BITS = 32
#: Maximum number of bits of one auxiliary read.
WORD_BITS = 64
#: Next step in errors about a sampler that does not match a recording.
_RECORD_AGAIN = "Record the decisions again with this mechanism."


class Draws(Protocol):
    """Interface through which a sampler makes its random decisions.

    :meth:`Mechanism.step` receives an object with these two methods and must use no other randomness. When a device
    privatizes a value, the decisions come from secure random bits. When an audit runs the sampler, it follows every
    outcome of every decision.
    """

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        """Return True with probability exactly numerator/denominator, and False otherwise.

        Parameters
        ----------
        numerator
            An integer from 0 to the denominator.
        denominator
            A positive integer.

        Returns
        -------
        bool
            The random outcome.
        """

    def below(self, m: int) -> int:
        """Return a random integer from 0 to m-1, each with probability exactly 1/m.

        Parameters
        ----------
        m
            The number of choices, at least 1 and at most 2^31.

        Returns
        -------
        int
            The random integer.
        """


# -- where in a frame a decision reads -------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """Bits of a frame that one decision of a sampler reads as a number.

    A *frame* is the integer of random bits that each value receives; bit 0 is the least significant. The bits of a
    field are at positions start, start + step, start + 2·step, …, most significant bit first.

    Parameters
    ----------
    start
        Position of the field's most significant bit in the frame.
    step
        Distance from one bit to the next; -1 for contiguous bits.
    width
        Number of bits of the field.

    Examples
    --------
    >>> from sfumato.mechanisms import Field
    >>> Field(start=7, step=-1, width=4).read(0b1010_0000)
    10
    """

    start: int
    step: int
    width: int

    @classmethod
    def number(cls, low: int, width: int) -> Field:
        """Return the field of contiguous bits at positions low to low + width - 1 of a frame.

        Parameters
        ----------
        low
            Position of the field's least significant bit.
        width
            Number of bits of the field.

        Returns
        -------
        Field
            The field, with ``step`` -1.
        """
        return cls(low + width - 1, -1, width)

    def read(self, frame: int) -> int:
        """Return the number that the bits of this field form in a frame.

        Parameters
        ----------
        frame
            The random bits of one value, as an integer.

        Returns
        -------
        int
            A number from 0 to 2^width - 1.
        """
        value = 0
        for i in range(self.width):
            value = value << 1 | frame >> self.start + i * self.step & 1
        return value


@dataclass(frozen=True)
class Layout:
    """Assignment of random bits to the decisions of a sampler, which every client must follow.

    Each value receives a *frame* of ``frame_bits`` random bits. Decision i of the sampler (from 0) reads the field
    ``numbers[i]`` of the frame. The next ``lanes`` decisions read ``planes`` bits each. They are stored in groups of 64
    decisions: the first bits of all 64, then their second bits, and so on. All later decisions read a separate,
    auxiliary stream of random bits. ``docs/words-to-decisions.md`` specifies the rules.

    Parameters
    ----------
    frame_bits
        Length of a frame in bits; a multiple of 32.
    numbers
        Fields of the first decisions, one per decision.
    lanes
        Number of decisions after those of ``numbers``, such as one coin per value of the domain.
    planes
        Number of bits that each of these decisions reads.
    planes_start
        Position in the frame of the first bit of these decisions.

    Examples
    --------
    >>> from sfumato.mechanisms import Field, Layout
    >>> layout = Layout(64, (Field.number(32, 32), Field.number(0, 32)))
    >>> len(layout)
    2
    >>> layout.fault() is None
    True
    """

    frame_bits: int
    numbers: tuple[Field, ...]
    lanes: int = 0
    planes: int = 0
    planes_start: int = 0

    def __len__(self) -> int:
        return len(self.numbers) + self.lanes

    def field(self, decision: int) -> Field:
        """Return the bits of the frame that one decision of the sampler reads.

        Parameters
        ----------
        decision
            Index of the decision in the order of the sampler, from 0 to ``len(layout) - 1``.

        Returns
        -------
        Field
            The positions of the bits in the frame.
        """
        if decision < len(self.numbers):
            return self.numbers[decision]
        group, lane = divmod(decision - len(self.numbers), WORD_BITS)
        return Field(self.planes_start + WORD_BITS * self.planes * group + lane, WORD_BITS, self.planes)

    def fault(self) -> str | None:
        """Describe the first field that overlaps another one or leaves the frame, or return None.

        A random bit that two decisions read would make them dependent, so audits reject such a layout.

        Returns
        -------
        str or None
            The description for error messages, or None if all fields are disjoint and inside the frame.
        """
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
        """Number of consecutive values in a chunk; each chunk has its own random streams, with 256 KiB of frames."""
        return max(1, 2**18 // (self.frame_bits // 8))

    def document(self) -> dict[str, object]:
        """Return the layout as a JSON-compatible dictionary, the entry ``"layout"`` of a mechanism's spec.

        Returns
        -------
        dict
            The fields of this class by name; each field of ``numbers`` is a pair of its lowest position and width.
        """
        return {
            "frame_bits": self.frame_bits,
            "numbers": [[field.start - field.width + 1, field.width] for field in self.numbers],
            "lanes": self.lanes,
            "planes": self.planes,
            "planes_start": self.planes_start,
        }


# -- decisions from bits ---------------------------------------------------------------------------------


class BitDraws:
    """Decisions from uniform bits: first the frame's fields, in the order of the layout, then the auxiliary stream.

    ``auxiliary(w)`` returns w uniform bits. Without a layout every decision reads only the auxiliary stream.
    """

    def __init__(self, auxiliary: Callable[[int], int], layout: Layout | None = None, frame: int = 0) -> None:
        self._auxiliary = auxiliary
        self._layout = layout
        self._frame = frame
        self._next = 0

    def _first_bits(self, width_without_field: int) -> tuple[int, int]:
        """Return the value and the width of the next decision's first bits."""
        if self._layout is not None and self._next < len(self._layout):
            field = self._layout.field(self._next)
            self._next += 1
            return field.read(self._frame), field.width
        return self._auxiliary(width_without_field), width_without_field

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        if not 0 <= numerator <= denominator:
            raise ValueError(f"bernoulli: numerator/denominator must be a probability; got {numerator}/{denominator}")
        if denominator & denominator - 1:
            return self.below(denominator) < numerator
        width = denominator.bit_length() - 1
        value, prefix = self._first_bits(min(width, WORD_BITS))
        rest = width - prefix
        if rest < 0:
            raise ValueError(
                f"bernoulli: the width of the decision's field must be at most {width}, because the denominator is "
                f"2^{width}; got {prefix}"
            )
        high, low = numerator >> rest, numerator & (1 << rest) - 1
        if value != high:
            return value < high
        return low != 0 and self._auxiliary(rest) < low

    def below(self, m: int) -> int:
        value, width = self._first_bits(INDEX_BITS if m <= 1 << INDEX_BITS else WORD_BITS)
        if not 1 <= m <= 1 << width:
            raise ValueError(f"below: m must be in 1 … 2^{width} for a decision of {width} bits; got {m}")
        rejected = (1 << width) % m
        while value * m & (1 << width) - 1 < rejected:
            value = self._auxiliary(width)
        return value * m >> width


# -- decisions recorded and replayed ---------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """One decision, ``bernoulli(*arguments)`` or ``below(*arguments)``, with its result."""

    kind: str
    arguments: tuple[int, ...]
    result: int

    def document(self) -> list[object]:
        """Return the decision as a JSON-serializable list."""
        # Not every language reads integers beyond 2^53 from JSON exactly, so arguments are strings.
        return [self.kind, [str(argument) for argument in self.arguments], self.result]

    @classmethod
    def from_document(cls, document: list[object]) -> Decision:
        """Return the decision of a list that ``document`` returned."""
        kind, arguments, result = document
        assert isinstance(arguments, list)
        assert isinstance(result, int)
        return cls(str(kind), tuple(int(argument) for argument in arguments), result)


class RecordingDraws:
    """Record the decisions of another source."""

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
    """Replay recorded decisions; raise InvalidInput if the sampler asks for different ones."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        self._left = list(decisions)[::-1]

    def _replay(self, kind: str, arguments: tuple[int, ...]) -> int:
        """Return the next recorded result, or raise if the sampler asks for another decision."""
        request = Description(f"{kind}{arguments}")
        if not self._left:
            must = "ask for no more decisions than recorded"
            raise InvalidInput("RecordedDraws", "the sampler", must, request, hint=_RECORD_AGAIN)
        decision = self._left.pop()
        if (decision.kind, decision.arguments) != (kind, arguments):
            must = f"ask for {decision.kind}{decision.arguments}"
            raise InvalidInput("RecordedDraws", "the sampler", must, request, hint=_RECORD_AGAIN)
        return decision.result

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        return bool(self._replay("bernoulli", (numerator, denominator)))

    def below(self, m: int) -> int:
        return self._replay("below", (m,))

    def check_finished(self) -> None:
        """Raise InvalidInput if the sampler did not ask for every recorded decision."""
        if self._left:
            must, got = "ask for every recorded decision", Description(f"{len(self._left)} left")
            raise InvalidInput("RecordedDraws", "the sampler", must, got, hint=_RECORD_AGAIN)
