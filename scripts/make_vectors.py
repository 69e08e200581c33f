"""Write vectors/*.json: words and decisions with the reports they give, for clients in any language to replay.

Random words never reach an event of probability 2^-16, so each case forces one thing on one decision: a tie that
goes either way, a rejection (once or twice), or nothing. Rerun only when a mechanism is added: published vectors stay.
"""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.domain.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.draws import BitDraws, Layout, RecordingDraws
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.high_low.hadamard import HighLowHadamard
from sfumato.mechanisms.high_low.randomized_response import UtilityOptimizedRR
from sfumato.mechanisms.high_low.subset import HighLowSubset
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.prior.binary import PriorBinary
from sfumato.mechanisms.prior.symmetric import PriorSymmetric
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.secret.conditional import ConditionalReporting, ConditionalUnary
from sfumato.mechanisms.secret.independent import IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.table.binary import BinaryOptimal
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor
from sfumato.policy.blocks import Blocks

FOLDER = Path(__file__).parents[1] / "vectors"


class ForcingDraws:
    """Makes up words as decisions are asked for, and forces a chosen event on the decision with a chosen number."""

    def __init__(self, layout: Layout, generator: random.Random, force: tuple[int, str]) -> None:
        self._layout, self._generator, self._force = layout, generator, force
        self._number = -1
        self.frame = generator.getrandbits(layout.frame_bits)
        self.auxiliary: list[int] = []

    def _first(self, default: int, forced: Any) -> tuple[int, int, str]:
        """The value and width of this decision's first bits, put where the layout wants them."""
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

        value, width, event = self._first(32, forced)
        again = event == "rejected twice"
        while value * m % (1 << width) < (1 << width) % m:
            value = self._read(width, 0 if again else None)
            again = False
        return value * m >> width


def specs() -> list[Mechanism]:
    few, more = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)
    rows = [[2**62, 0, 0], [2**60, 2**61, 2**60], [2**62 // 3, 2**62 // 3, 2**62 - 2 * (2**62 // 3)]]
    pairs = Domain.product(S=["s", "t"], U=["u", "v"])
    two_and_three, feared = Blocks(few, "abbba", [1, "ln 3"]), ["flu", "hiv", "cancer"]
    return [
        RandomizedResponse(few, 1),
        RandomizedResponse(Domain.range(1_000_003), "ln 3"),
        RandomizedResponse(few, 0),
        RandomizedResponse(few, "inf"),
        UnaryEncoding(few, 1),
        UnaryEncoding(more, "0.5", optimized=True),
        UnaryEncoding(few, "inf"),
        UtilityOptimizedRappor(few, ["flu", "hiv", "cancer"], 1),
        UtilityOptimizedRappor(more, range(1, 70, 3), "0.5"),
        UtilityOptimizedRappor(few, few, "ln 3"),
        UtilityOptimizedRappor(few, ["hiv"], "inf"),
        SubsetSelection(few, 1, 2),
        SubsetSelection(more, "0.5"),
        SubsetSelection(Domain.range(64), 3),
        HadamardResponse(few, 1),
        HadamardResponse(few, 3),
        HadamardResponse(Domain.range(65_535), 1, block_size=2**16),
        HadamardResponse(Domain.range(65_536), 1, block_size=2**17),
        HadamardResponse(Domain.range(200_000), 1, block_size=2**17),
        HadamardResponse(few, "inf", block_size=4, blocks=3),
        NestedSubsets(Domain(["n", "e", "s", "w"]), "abba", 1, 3),
        NestedSubsets(Domain.range(12), "abcabcabcabc", "0.5", 1, high=2, sizes=[2, 1]),
        NestedSubsets(more, [x % 5 for x in more], "ln 2", 2),
        ComposedSubsets(few, "abbba", 1, 2),
        ComposedSubsets(more, [x % 5 for x in more], "ln 2", 2),
        TableMechanism(Domain(["a", "b", "c"]), rows),
        TableMechanism(Domain(["a", "b"]), [[2**62], [2**62]]),
        TableMechanism.from_matrix(few, RandomizedResponse(few, 1).matrix()),
        BinaryOptimal(Domain(["no", "yes"]), "0.5", 2),
        BinaryOptimal.warner(Domain(["no", "yes"]), "ln 3"),
        BinaryOptimal.mangat(Domain(["no", "yes"]), "yes", 1),
        BinaryOptimal(Domain(["no", "yes"]), 0, 0),
        BinaryOptimal(Domain(["no", "yes"]), "inf", "inf"),
        PriorBinary(Domain(["no", "yes"]), ["0.99", "0.01"], 1),
        PriorBinary(Domain(["no", "yes"]), ["1/2", "1/2"], "ln 3"),
        PriorBinary(Domain(["no", "yes"]), [1, 0], "0.5"),
        PriorBinary(Domain(["no", "yes"]), ["1/3", "2/3"], 0),
        PriorBinary(Domain(["no", "yes"]), ["1/3", "2/3"], "inf"),
        PriorBinary.one_sided_as_printed(Domain(["no", "yes"]), ["0.99", "0.01"], 1),
        PriorSymmetric(Domain(["no", "yes"]), ["0.9", "0.1"], 1),
        PriorSymmetric(Domain(["no", "yes"]), ["1/4", "3/4"], "ln 3"),
        PriorSymmetric(Domain(["no", "yes"]), [1, 0], "0.5"),
        PriorSymmetric(Domain(["no", "yes"]), ["1/3", "2/3"], 0),
        SecretRandomizedResponse(pairs, "S", "ln 3"),
        SecretRandomizedResponse(Domain.product(U=["u", "v", "w"], S=range(3)), "S", 1),
        SecretRandomizedResponse(Domain.product(S=range(5), U=range(7)), "S", "0.5"),
        SecretRandomizedResponse(Domain.product(S=range(2), U=range(20)), "U", 2),
        SecretRandomizedResponse(pairs, "U", 0),
        SecretRandomizedResponse(pairs, "S", "inf"),
        IndependentReporting(
            pairs,
            "S",
            {"secret": "1.09861229", "other": "0.693147181", "sizes": [1, 1]},
            weights(pairs, ["6 3 2 1", "3 6 1 2", "2 1 6 3", "1 2 3 6"]),
        ),
        ConditionalReporting(
            pairs,
            "S",
            {"secret": "0.693147181", "other": ["inf", "1.09861229"], "sizes": [1, 1]},
            weights(pairs, ["16 0 3 5", "0 16 3 5", "4 4 12 4", "4 4 4 12"]),
        ),
        ConditionalUnary(
            pairs,
            "S",
            {"own": "1", "others": "1", "other": ["inf", "0.693147181"], "sizes": [1, 1]},
            weights(pairs, ["5 7 0 0", "0 0 5 7", "4 2 4 2", "2 4 2 4"]),
        ),
        UtilityOptimizedRR(few, feared, 1),
        UtilityOptimizedRR(more, range(1, 70, 3), "0.5"),
        UtilityOptimizedRR(few, few, "ln 3"),
        UtilityOptimizedRR(few, feared, "inf"),
        HighLowHadamard(few, feared, 1, block_size=4),
        HighLowHadamard(more, range(1, 70, 3), 3, block_size=8),
        HighLowHadamard.published(few, ["hiv"], "0.5"),
        HighLowHadamard(few, feared, 0, block_size=4),
        HighLowSubset(few, feared, 1, 2),
        HighLowSubset(more, range(63), "0.5", 20),
        HighLowSubset(few, ["hiv"], "ln 3"),
        HighLowSubset(few, few, 2, 2),
        HighLowSubset(few, feared, "inf", 2),
        BlockMechanism.for_policy(two_and_three, "rr"),
        BlockMechanism.for_policy(two_and_three, "subset"),
        BlockMechanism.for_policy(two_and_three, "hadamard"),
        BlockMechanism(
            more,
            [0] * 40 + [1] * 20 + [2] * 9 + [3],
            [
                SubsetSelection(Domain.range(40), 1, 10),
                HadamardResponse(Domain.range(20), 3, block_size=8),
                RandomizedResponse(Domain.range(9), 2),
                RandomizedResponse(Domain.range(1), "inf"),
            ],
        ),
    ]


def weights(domain: Domain, rows: list[str]) -> Any:
    """Integer weights over 2^62 in these proportions."""
    numbers = [[int(part) for part in row.split()] for row in rows]
    return TableMechanism.from_matrix(domain, [[Fraction(n, sum(row)) for n in row] for row in numbers]).weights


def cases(mechanism: Mechanism, generator: random.Random) -> list[dict[str, Any]]:
    size = len(mechanism.domain)
    forces = [(number, event) for number in range(min(len(mechanism.layout), 3))
              for event in ("tie, true", "tie, false", "rejected", "rejected twice")]  # fmt: skip
    values = [0, size - 1, *(generator.randrange(size) for _ in range(4))]
    plans = [(x, (-1, "")) for x in values] + [(generator.randrange(size), force) for force in forces]
    found = []
    for x, force in plans:
        forcing = ForcingDraws(mechanism.layout_of(x), generator, force)
        recording = RecordingDraws(forcing)
        report = mechanism.sample(x, recording)
        # The words must lead the library's own reading to the same decisions.
        words = list(forcing.auxiliary)[::-1]
        replay = RecordingDraws(
            BitDraws(lambda width, words=words: words.pop() & (1 << width) - 1, mechanism.layout_of(x), forcing.frame)
        )
        assert mechanism.sample(x, replay) == report
        assert replay.decisions == recording.decisions
        assert not words
        found.append(
            {
                "value": x,
                "forced": force[1] and f"decision {force[0]}: {force[1]}",
                "frame": forcing.frame.to_bytes(mechanism.layout.frame_bits // 8, "little").hex(),
                "auxiliary": [str(word) for word in forcing.auxiliary],
                "decisions": [decision.document() for decision in recording.decisions],
                "report": mechanism.serialise(report).hex(),
            }
        )
    return found


def as_text(vectors: list[dict[str, Any]]) -> str:
    """JSON with one case a line."""
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
