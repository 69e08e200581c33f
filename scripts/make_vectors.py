"""Write vectors/*.json: random words, decisions and the resulting reports, for clients in any language to replay.

Random words rarely reach an event of probability 2^-16. Each case therefore forces one event on one decision: a tie
with either outcome, a rejection (once or twice), or nothing. Run the script again only when a mechanism is added:
published vectors stay.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import BitDraws, Layout, RecordingDraws

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.family_examples import all_examples

FOLDER = Path(__file__).parents[1] / "vectors"


class ForcingDraws:
    """Source of random words that forces a chosen event on the decision with a chosen number."""

    def __init__(self, layout: Layout, generator: random.Random, force: tuple[int, str]) -> None:
        self._layout, self._generator, self._force = layout, generator, force
        self._number = -1
        self.frame = generator.getrandbits(layout.frame_bits)
        self.auxiliary: list[int] = []

    def _first(self, default: int, forced: Any) -> tuple[int, int, str]:
        """Return value, width and forced event of the first bits of this decision; store the bits in the frame."""
        self._number += 1
        event = self._force[1] if self._number == self._force[0] else ""
        if self._number < len(self._layout):
            field = self._layout.field(self._number)
            value = field.read(self.frame)
            choice = forced(event, field.width)
            if choice is not None:
                value = choice
                for i in range(field.width):
                    position = field.start + i * field.step
                    bit = value >> field.width - 1 - i & 1
                    self.frame = self.frame & ~(1 << position) | bit << position
            return value, field.width, event
        choice = forced(event, default)
        return self._read(default, choice), default, event

    def _read(self, width: int, value: int | None = None) -> int:
        low = self._generator.getrandbits(width) if value is None else value
        # The bits above the width are noise that a reader must ignore.
        self.auxiliary.append(self._generator.getrandbits(64 - width) << width | low if width < 64 else low)
        return low

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        if denominator & denominator - 1:
            return self.below(denominator) < numerator
        width = denominator.bit_length() - 1

        def forced(event: str, prefix: int) -> int | None:
            high = numerator >> width - prefix
            return high if event.startswith("tie") and high < 1 << prefix else None

        value, prefix, event = self._first(min(width, 64), forced)
        rest = width - prefix
        high, low = numerator >> rest, numerator & (1 << rest) - 1
        if value != high:
            return value < high
        if low == 0:
            return False
        return self._read(rest, {"tie, true": low - 1, "tie, false": low}.get(event)) < low

    def below(self, m: int) -> int:
        def forced(event: str, width: int) -> int | None:
            return 0 if event.startswith("reject") and (1 << width) % m else None

        value, width, event = self._first(32 if m <= 1 << 32 else 64, forced)
        again = event == "rejected twice"
        while value * m % (1 << width) < (1 << width) % m:
            value = self._read(width, 0 if again else None)
            again = False
        return value * m >> width


def specs() -> list[Mechanism]:
    """Return the examples of all families."""
    return [mechanism for examples in all_examples() for mechanism in examples.samplers()]


def cases(mechanism: Mechanism, generator: random.Random) -> list[dict[str, Any]]:
    """Return cases for one mechanism: some with random words, and some with a forced event."""
    size = len(mechanism.domain)
    forces = [(number, event) for number in range(min(len(mechanism.layout) or 3, 3))
              for event in ("tie, true", "tie, false", "rejected", "rejected twice")]  # fmt: skip
    values = [0, size - 1, *(generator.randrange(size) for _ in range(4))]
    plans = [(x, (-1, "")) for x in values] + [(generator.randrange(size), force) for force in forces]
    entries = []
    for x, force in plans:
        forcing = ForcingDraws(mechanism.layout_of(x), generator, force)
        recording = RecordingDraws(forcing)
        report = mechanism.sample(x, recording)
        # The library must read the same decisions from these words.
        words = list(forcing.auxiliary)[::-1]
        replay = RecordingDraws(
            BitDraws(lambda width, words=words: words.pop() & (1 << width) - 1, mechanism.layout_of(x), forcing.frame)
        )
        assert mechanism.sample(x, replay) == report
        assert replay.decisions == recording.decisions
        assert not words
        entries.append(
            {
                "value": x,
                "forced": force[1] and f"decision {force[0]}: {force[1]}",
                "frame": forcing.frame.to_bytes(mechanism.layout.frame_bits // 8, "little").hex(),
                "auxiliary": [str(word) for word in forcing.auxiliary],
                "decisions": [decision.document() for decision in recording.decisions],
                "report": mechanism.report_format.encode(report).hex(),
            }
        )
    return entries


def as_text(vectors: list[dict[str, Any]]) -> str:
    """Return JSON with one case per line."""
    parts = []
    for vector in vectors:
        lines = ",\n".join(json.dumps(case) for case in vector["cases"])
        head = f'{{"spec": {json.dumps(vector["spec"], ensure_ascii=False)},\n"hash": "{vector["hash"]}",\n"cases": [\n'
        parts.append(f"{head}{lines}]}}")
    return "[" + ",\n".join(parts) + "]\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    by_name: dict[str, list[Mechanism]] = {}
    for mechanism in specs():
        by_name.setdefault(mechanism.name, []).append(mechanism)
    for name, mechanisms in by_name.items():
        generator = random.Random(name)
        vectors = [{"spec": m.spec, "hash": m.hash, "cases": cases(m, generator)} for m in mechanisms]
        (FOLDER / f"{name}.json").write_text(as_text(vectors))
        print(f"{name}: {sum(len(v['cases']) for v in vectors)} cases of {len(vectors)} specs")


if __name__ == "__main__":
    main()
