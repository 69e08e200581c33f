"""One or more mechanisms of every family with counts and reports, from the documents of ``tests/stored``.

Mechanisms that are younger than these documents come from the examples of their family, with seeded reports.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.mechanisms.base import Mechanism
from support.family_examples import all_examples

__all__ = ["EXAMPLES", "FIRST_EXAMPLES", "METHODS", "Example", "estimated"]

#: Methods that need nothing but counts.
METHODS = ("unbiased", "efficient", "simplex", "mle")


@dataclass(frozen=True)
class Example:
    """A mechanism with the counts of many reports, and some reports of its own."""

    mechanism: Mechanism
    counts: sf.Aggregate
    reports: npt.NDArray[Any]


@functools.cache
def _read() -> dict[str, Example]:
    entries = json.loads((Path(__file__).parent.parent / "stored" / "mechanisms.json").read_text(encoding="utf-8"))
    examples: dict[str, Example] = {}
    for entry in entries:
        if "counts" in entry and entry["results"] is not None:
            mechanism = sf.mechanism_from_spec(entry["spec"])
            reports = (
                [bytes.fromhex(r) for r in entry["reports"]] if mechanism.report_format.shape else entry["reports"]
            )
            array = (
                np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), *mechanism.report_format.shape)
                if mechanism.report_format.shape
                else np.array(reports, mechanism.report_format.dtype)
            )
            name = f"{mechanism.name}-{len(examples)}"
            examples[name] = Example(mechanism, sf.Aggregate.from_json(json.dumps(entry["counts"])), array)
    stored = {example.mechanism.name for example in examples.values()}
    for mechanism in _younger(stored):
        values = np.arange(600) % len(mechanism.domain)
        reports = sf.privatize(mechanism, list(mechanism.domain.decode(values)), sf.InsecureSeeded(len(examples)))
        name = f"{mechanism.name}-{len(examples)}"
        examples[name] = Example(mechanism, sf.aggregate(mechanism, reports), np.asarray(reports)[:24])
    return examples


def _younger(stored: set[str]) -> Iterator[Mechanism]:
    """Yield the first example of every mechanism of the library that has no stored document."""
    for examples in all_examples():
        samplers = {mechanism.name: mechanism for mechanism in reversed(examples.samplers())}
        yield from (mechanism for name, mechanism in samplers.items() if name not in stored)


EXAMPLES = _read()
#: The first example of every family, and those over grids.
FIRST_EXAMPLES = {
    name: example
    for number, (name, example) in enumerate(EXAMPLES.items())
    if example.mechanism.domain.kind == "grid"
    or example.mechanism.name not in {other.mechanism.name for other in list(EXAMPLES.values())[:number]}
}


def estimated(example: Example, method: str) -> sf.Estimate | None:
    """Return the estimate of an example, or None if the mechanism has no such method."""
    try:
        return sf.estimate(example.mechanism, example.counts, method)
    except sf.errors.InvalidInput:
        return None
