"""Write vectors/reports/*.json: valid and invalid batches of every mechanism, for readers in any language to replay.

A valid batch comes with its reports in serialized form. An invalid batch has a single fault, and comes with its reason,
one of those in docs/report-format.md. Run the script again only when a mechanism is added: published vectors stay.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.collecting.batch import decode_batch, encode_batch
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.systems.subsets import SubsetSelection

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.family_examples import all_examples

FOLDER = Path(__file__).parents[1] / "vectors" / "reports"


def specs() -> list[Mechanism]:
    """Return the examples of all families."""
    return [mechanism for examples in all_examples() for mechanism in examples.reports()]


def some_reports(mechanism: Mechanism, count: int, generator: random.Random) -> list[int]:
    """Return reports as integers: the smallest, the largest, then random ones."""
    size = len(mechanism.domain)
    if isinstance(mechanism, SubsetSelection):
        first = [(1 << mechanism.size) - 1, (1 << mechanism.size) - 1 << size - mechanism.size]
        rest = [sum(1 << i for i in generator.sample(range(size), mechanism.size)) for _ in range(count)]
    elif isinstance(mechanism, Parts):
        of_parts = [
            mechanism.numbering.of_part(number, report)
            for number, part in enumerate(mechanism.parts)
            for report in some_reports(part, count, generator)
        ]
        every = [*of_parts, *(mechanism.numbering.revealed(int(x)) for x in mechanism.unprotected)]
        first, rest = [min(every), max(every)] if every else [], generator.choices(every, k=count) if every else []
    else:
        first, rest = [0, mechanism.outputs - 1], [generator.randrange(mechanism.outputs) for _ in range(count)]
    return [*first, *rest][:count]


def as_array(mechanism: Mechanism, reports: list[int]) -> Any:
    """Return reports in the array form that ``encode_batch`` takes."""
    if not mechanism.report_format.shape:
        return np.array(reports, dtype=mechanism.report_format.dtype)
    rows = [list(mechanism.report_format.encode(report)) for report in reports]
    return np.array(rows, dtype=np.uint8).reshape(len(rows), *mechanism.report_format.shape)


def by_hand(mechanism: Mechanism, reports: list[int]) -> bytes:
    """Encode a batch by the description in docs/report-format.md, without checking the reports."""
    width = max(mechanism.bits, 1)
    number = sum(report << i * width for i, report in enumerate(reports))
    header = b"SFUM\x01\0\0\0" + bytes.fromhex(mechanism.hash) + len(reports).to_bytes(8, "little")
    return header + number.to_bytes(-(-len(reports) * width // 8), "little")


def bad_parts(mechanism: Parts) -> list[int]:
    """Return integers that are not reports: of each part, of one unprotected value, and with an unused head."""
    wrong_reports = []
    for number, part in enumerate(mechanism.parts):
        head = number << mechanism.numbering.body_bits
        if isinstance(part, SubsetSelection):
            wrong_reports += [head, head | (1 << part.size + 1) - 1]
            if len(part.domain) < mechanism.numbering.body_bits:
                wrong_reports.append(head | (1 << part.size - 1) - 1 | 1 << len(part.domain))
        else:
            wrong_reports += [head | part.outputs, head | (1 << mechanism.numbering.body_bits) - 1]
    heads = len(mechanism.parts) + len(mechanism.unprotected)
    if len(mechanism.unprotected):
        wrong_reports.append((heads - 1) << mechanism.numbering.body_bits | 1)
    if heads << mechanism.numbering.body_bits < 1 << mechanism.bits:
        wrong_reports.append(heads << mechanism.numbering.body_bits)
    return wrong_reports


def bad_batches(mechanism: Mechanism, generator: random.Random) -> list[dict[str, Any]]:
    """Return batches with one fault each, after checking that the library rejects them."""
    reports = some_reports(mechanism, 5, generator)
    good = by_hand(mechanism, reports)
    width = max(mechanism.bits, 1)
    batches: list[dict[str, Any]] = [
        {"reason": "magic", "batch": b""},
        {"reason": "magic", "batch": b"SFAG" + good[4:]},
        {"reason": "short", "batch": good[:47]},
        {"reason": "version", "batch": good[:4] + b"\x02" + good[5:]},
        {"reason": "reserved", "batch": good[:7] + b"\x01" + good[8:]},
        {"reason": "mechanism", "batch": good[:8] + bytes([good[8] ^ 1]) + good[9:]},
        {"reason": "length", "batch": good[:-1]},
        {"reason": "length", "batch": good + b"\0"},
        {"reason": "length", "batch": good[:40] + b"\xff" * 8 + good[48:]},
        {"reason": "length", "batch": good[:40] + bytes(8) + good[48:]},
    ]
    if 5 * width % 8:
        batches.append({"reason": "padding", "batch": good[:-1] + bytes([good[-1] | 0x80])})
    if mechanism.report_format.encoding == "index" and mechanism.outputs < 1 << width:
        for row, wrong in ((0, mechanism.outputs), (4, (1 << width) - 1)):
            batch = by_hand(mechanism, [*reports[:row], wrong, *reports[row + 1 :]])
            batches.append({"reason": "range", "row": row, "batch": batch})
    if isinstance(mechanism, SubsetSelection):
        everything = (1 << width) - 1
        for row, wrong in ((1, 0), (2, everything), (3, reports[3] & reports[3] - 1)):
            batch = by_hand(mechanism, [*reports[:row], wrong, *reports[row + 1 :]])
            batches.append({"reason": "weight", "row": row, "batch": batch})
    if isinstance(mechanism, Parts):
        for row, wrong in enumerate(bad_parts(mechanism)):
            batch = by_hand(mechanism, [*reports[: row % 5], wrong, *reports[row % 5 + 1 :]])
            batches.append({"reason": "part", "row": row % 5, "batch": batch})
    for case in batches:
        try:
            decode_batch(mechanism, case["batch"])
        except InvalidInput:
            continue
        raise AssertionError(f"{mechanism} accepts an invalid batch: {case}")
    return [{**case, "batch": case["batch"].hex()} for case in batches]


def good_batches(mechanism: Mechanism, generator: random.Random) -> list[dict[str, Any]]:
    """Return batches of different lengths with the reports that they hold."""
    batches = []
    for count in (0, 1, 7, 8, 19):
        reports = some_reports(mechanism, count, generator)
        batch = encode_batch(mechanism, as_array(mechanism, reports))
        assert batch == by_hand(mechanism, reports)
        batches.append(
            {"reports": [mechanism.report_format.encode(report).hex() for report in reports], "batch": batch.hex()}
        )
    return batches


def as_text(vectors: list[dict[str, Any]]) -> str:
    """Return JSON with one batch per line."""
    parts = []
    for vector in vectors:
        good, bad = (",\n".join(json.dumps(case) for case in vector[key]) for key in ("good", "bad"))
        head = f'{{"spec": {json.dumps(vector["spec"], ensure_ascii=False)},\n"hash": "{vector["hash"]}",\n'
        parts.append(f'{head}"good": [\n{good}],\n"bad": [\n{bad}]}}')
    return "[" + ",\n".join(parts) + "]\n"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    by_name: dict[str, list[Mechanism]] = {}
    for mechanism in specs():
        by_name.setdefault(mechanism.name, []).append(mechanism)
    for name, mechanisms in by_name.items():
        generator = random.Random(name)
        vectors = [
            {"spec": m.spec, "hash": m.hash, "good": good_batches(m, generator), "bad": bad_batches(m, generator)}
            for m in mechanisms
        ]
        (FOLDER / f"{name}.json").write_text(as_text(vectors), encoding="utf-8")
        print(f"{name}: {sum(len(v['good']) + len(v['bad']) for v in vectors)} batches of {len(vectors)} specs")


if __name__ == "__main__":
    main()
