"""The published vectors: the library still reads the same words as the same decisions and the same reports."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.mechanisms.draws import BitDraws, Decision, RecordedDraws, RecordingDraws
from sfumato.mechanisms.registry import kernel_for, mechanism_classes
from support import ROOT

FOLDER = ROOT / "vectors"
NAMES = sorted(mechanism_classes())
#: Mechanisms that devices run one report at a time, so that they have no kernel.
ONE_AT_A_TIME = {"local-hashing", "memoized"}


def vectors(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def words(texts: list[str]) -> Any:
    left = [int(text) for text in reversed(texts)]

    def read(width: int) -> int:
        return left.pop() & (1 << width) - 1

    return read, left


@pytest.mark.parametrize("name", NAMES)
def test_words_become_the_recorded_decisions_and_reports(name: str) -> None:
    for vector in vectors(name):
        mechanism = sf.mechanism_from_spec(vector["spec"])
        assert mechanism.hash == vector["hash"]
        for case in vector["cases"]:
            auxiliary, left = words(case["auxiliary"])
            frame = int.from_bytes(bytes.fromhex(case["frame"]), "little")
            recording = RecordingDraws(BitDraws(auxiliary, mechanism.layout_of(case["value"]), frame))
            report = mechanism.sample(case["value"], recording)
            assert mechanism.report_format.encode(report).hex() == case["report"]
            assert [decision.document() for decision in recording.decisions] == case["decisions"]
            assert not left


@pytest.mark.parametrize("name", NAMES)
def test_recorded_decisions_alone_give_the_reports(name: str) -> None:
    for vector in vectors(name):
        mechanism = sf.mechanism_from_spec(vector["spec"])
        for case in vector["cases"]:
            replay = RecordedDraws(Decision.from_document(document) for document in case["decisions"])
            assert mechanism.report_format.encode(mechanism.sample(case["value"], replay)).hex() == case["report"]
            replay.check_finished()


@pytest.mark.parametrize("name", NAMES)
def test_the_vectors_force_ties_and_rejections(name: str) -> None:
    forced = {
        case["forced"].partition(": ")[2] for vector in vectors(name) for case in vector["cases"] if case["auxiliary"]
    }
    assert {"tie, true", "tie, false"} <= forced
    if name == "randomized-response":
        assert {"rejected", "rejected twice"} <= forced


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*NAMES} - ONE_AT_A_TIME))
def test_the_kernels_read_the_words_as_the_sampler_does(name: str) -> None:
    for vector in vectors(name):
        mechanism = sf.mechanism_from_spec(vector["spec"])
        kernel = kernel_for(mechanism)
        assert kernel is not None
        for case in vector["cases"]:
            out = np.empty((1, *mechanism.report_format.shape), mechanism.report_format.dtype)
            main = np.frombuffer(bytes.fromhex(case["frame"]), np.uint8)
            auxiliary = np.array([int(word) for word in case["auxiliary"]], np.uint64)
            used = kernel.run(np.array([case["value"]]), main, auxiliary, out)
            assert used == len(auxiliary)
            assert mechanism.report_format.encode(int.from_bytes(out.tobytes(), "little")).hex() == case["report"]


#: Something of every JSON type, and what Python reads and writes as JSON though it is none.
STRANGE: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1.5,
    math.inf,
    math.nan,
    "x",
    "inf",
    "\ud800",
    [],
    [[]],
    [1, 2],
    {},
    {"x": 1},
]


def others(document: Any) -> Iterator[Any]:
    """The document with something left out, or something else in its place; of a list, in the first place."""
    if isinstance(document, dict):
        for key, part in document.items():
            yield {other: kept for other, kept in document.items() if other != key}
            yield from ({**document, key: other} for other in (*STRANGE, *others(part)))
    elif isinstance(document, list) and document:
        yield document[1:]
        yield from ([other, *document[1:]] for other in (*STRANGE, *others(document[0])))


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_with_anything_else_in_a_place_is_read_or_refused(name: str) -> None:
    spec = min((vector["spec"] for vector in vectors(name)), key=lambda spec: len(str(spec)))
    for other in others(spec):
        with contextlib.suppress(InvalidInput):
            assert sf.mechanism_from_spec(other).hash
