"""Documents with numbers that claim to be very long, or nested deeply: reading ends, with a result or an error."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli._files import label_of
from sfumato.collecting.checkpoint import Checkpoint
from sfumato.collecting.grouped import GroupedAggregate
from sfumato.device.ledger import Ledger
from sfumato.device.transport import CollectorUnreachable, Transport
from sfumato.errors import InvalidInput
from support.clocks import ends
from support.mutations import paths

#: Strings of a few characters that exact arithmetic would write out in full, or that readers could take long over.
#: Digits of other scripts are digits to Python, too.
HOSTILE = (
    "1e999999999",
    "-1e-999999999",
    "1e\u0660999999999",
    "1e\uff19\uff19\uff19\uff19\uff19\uff19\uff19\uff19\uff19",
    "1e9999",
    "1/" + "9" * 4000,
    "999999999999*ln 2",
    "1" + " " * 50_000 + "x",
)

#: What reads JSON in files and responses.
READERS: dict[str, Callable[[str], Any]] = {
    "aggregate": sf.Aggregate.from_json,
    "groups": GroupedAggregate.from_json,
    "checkpoint": lambda text: Checkpoint.from_json(text, "counts.checkpoint"),
    "certificate": sf.Certificate.from_json,
    "mechanism": sf.mechanism_from_spec,
    "ledger": Ledger.from_json,
    "label": lambda text: sf.Domain(["a"]).index(label_of(sf.Domain(["a"]), text)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("start", ["[", '{"mechanism_hash": [', '{"a":'])
def test_documents_that_are_nested_deeply_are_rejected(reader: str, start: str) -> None:
    with pytest.raises(InvalidInput):
        READERS[reader](start * 100_000)


def test_a_response_that_is_nested_deeply_is_of_no_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transport, "ask", lambda *_, **__: b"[" * 100_000)
    with pytest.raises(CollectorUnreachable):
        Transport("http://127.0.0.1", None, 1, 1).ask_json("GET", "/v1/collections", None, {})


def documents() -> Iterator[tuple[Callable[[Any], Any], dict[str, Any]]]:
    """Documents of every kind that states exact numbers, and what reads them."""
    folder = Path(__file__).parent / "stored"
    specs = {
        entry["spec"]["mechanism"]: entry["spec"] for entry in json.loads((folder / "mechanisms.json").read_text())
    }
    certificates = {
        each["policy"]["policy"]["kind"]: each for each in json.loads((folder / "certificates.json").read_text())
    }
    for spec in specs.values():
        yield sf.mechanism_from_spec, spec
    for certificate in certificates.values():
        yield sf.Certificate.from_dict, certificate
    for path in sorted((folder / "policies").glob("*.json")):
        yield lambda document: sf.policy_from_dict(document).hash, json.loads(path.read_text())


@pytest.mark.slow
def test_no_number_of_a_document_is_written_out_before_it_is_bounded() -> None:
    for read, document in documents():
        for *outer, last in paths(document):
            for number in HOSTILE:
                copied = copy.deepcopy(document)
                parent: Any = copied
                for key in outer:
                    parent = parent[key]
                if isinstance(parent[last], str):
                    parent[last] = number
                    with contextlib.suppress(sf.SfumatoError), ends():
                        read(copied)
