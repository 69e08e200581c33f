"""Reports come in: read, checked, counted exactly once, and only then acknowledged.

One report comes as JSON, many as a binary batch (``docs/report-format.md``). Either way it *is* a binary batch: what
is digested is its one canonical form, so the same reports under the same batch id are the same payload. A
batch with one invalid report is refused whole.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from starlette.requests import Request

from sfumato.collecting import HEADER_BYTES, decode_batch
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, check_reports
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.api.schemas import BATCH_ID, OneReport, Receipt
from sfumato.server.api.tokens import bearer, token_hash
from sfumato.server.http.bodies import BATCH_TYPE, RawHeaders, content_type, decode_json, read_body, read_headers
from sfumato.server.http.refusals import JSON_TYPE, JsonAnswer, Refusal
from sfumato.server.jobs.retention import day_of
from sfumato.server.store.records import DIGEST_BYTES, ID_BYTES, RECEIPT_BYTES, Submission

__all__ = ["BATCH_HEADER", "take_reports"]

#: The header with the batch id of a binary batch.
BATCH_HEADER = "Idempotency-Key"
_RAW_BATCH_HEADER = BATCH_HEADER.lower().encode()

#: Batches longer than this are unpacked in a thread: the others would wait.
_LONG = 2**14
#: A batch has at most so many reports: each takes a bit of the body at least, and an integer of memory.
_MOST_REPORTS = 2**20
#: What one report comes with: a header, or the batch id and the names of JSON.
_BESIDE = 2**12

_BATCH_ID = re.compile(BATCH_ID)
_ONE = msgspec.json.Decoder(OneReport)
_ENCODER = msgspec.json.Encoder()

_MESSAGES = {
    "conflict": "another payload came under this batch id before",
    "not-found": "there is no such collection",
    "not-open": "the collection takes no reports now",
    "token-unknown": "this token was not handed out for this collection",
    "token-spent": "this token was used already",
}


async def take_reports(collector: Collector, request: Request) -> JsonAnswer:
    """Count a batch and answer with its receipt, once it is on disk."""
    headers = read_headers(request)
    collection = await collector.collections.get(request.path_params["id"])
    spends = _check_sender(collection, headers)
    kind = content_type(headers)
    most = min(collector.settings.max_bytes, _most_bytes(collection, single=kind == JSON_TYPE or spends is not None))
    if kind == JSON_TYPE:
        body = await read_body(request.receive, headers, most, collector.deadlines, collector.room)
        sent = decode_json(body, _ONE)
        batch = sent.batch
        reports, payload = _one_report(collection, sent.report)
    elif kind == BATCH_TYPE:
        batch = headers.get(_RAW_BATCH_HEADER, b"").decode("latin-1")
        if not _BATCH_ID.fullmatch(batch):
            raise Refusal("malformed", f"{BATCH_HEADER} must be 8 to 64 letters, digits, '-' or '_'")
        payload = await read_body(request.receive, headers, most, collector.deadlines, collector.room)
        if len(payload) > _LONG:
            reports = await collector.unpackers.run(_many_reports, collection.mechanism, payload)
        else:
            reports = _many_reports(collection.mechanism, payload)
    else:
        raise Refusal("unsupported-type", f"the content type must be {JSON_TYPE} or {BATCH_TYPE}")
    if spends is not None and len(reports) != 1:
        raise Refusal("invalid", "a one-time token is for one report")
    name = batch.encode()
    submission = Submission(
        collection.id,
        collection.mechanism,
        # A bare digest of a report from a small set is the report to whoever tries them all. The batch id, which
        # clients draw at random, is its key, and only a hash of the id is stored.
        hashlib.blake2b(name, key=collection.id.encode(), digest_size=ID_BYTES).digest(),
        hashlib.blake2b(payload, key=name, digest_size=DIGEST_BYTES).digest() + _number(len(reports)),
        reports,
        collection.about.keep_days != 0,
        spends,
        day_of(collector.now()),
    )
    del payload  # what waits is the reports alone
    outcome = await collector.writer.submit(submission)
    if outcome.fate not in ("accepted", "repeated"):
        raise Refusal(outcome.fate, _MESSAGES[outcome.fate])
    return JsonAnswer(_ENCODER.encode(Receipt(batch, outcome.reports)))


def _number(reports: int) -> bytes:
    return reports.to_bytes(RECEIPT_BYTES - DIGEST_BYTES, "big")


def _most_bytes(collection: Collection, *, single: bool) -> int:
    """How long a body with reports can be: one with too many of them is refused before it is read."""
    if single:
        return _BESIDE + 2 * collection.form.size  # two hex digits a byte
    return HEADER_BYTES + _MOST_REPORTS * max(collection.mechanism.bits, 1) // 8


def _check_sender(collection: Collection, headers: RawHeaders) -> bytes | None:
    """Refuse who may not send; the hash of the token to spend, where one is needed."""
    asked = collection.about.submission
    if asked == "open":
        return None
    secret = bearer(headers)
    if secret is None:
        raise Refusal("unauthorized", f"this collection needs a {'key' if asked == 'key' else 'one-time token'}")
    found = token_hash(secret)
    if asked == "token":
        return found
    if not hmac.compare_digest(found, collection.key_hash or b""):
        raise Refusal("unauthorized", "this is not the key of this collection")
    return None


def _one_report(collection: Collection, report: int | str) -> tuple[npt.NDArray[Any], bytes]:
    """The report as an array, and as the binary batch that it is."""
    form = collection.form
    if form.is_index:
        # Below the number of outputs is all that an index has to be, and no array takes an int of any length.
        if not isinstance(report, int) or not 0 <= report < form.outputs:
            raise Refusal("invalid", f"a report must be a number in 0 … {form.outputs - 1}", row=0)
        return np.array([report], form.dtype), form.header_of_one + report.to_bytes(form.size, "little")
    if not isinstance(report, str):
        raise Refusal("invalid", "a report of this mechanism is a text of hex digits", row=0)
    serialised = bytes.fromhex(report)
    if len(serialised) != form.size:
        raise Refusal("invalid", f"a report of this mechanism has {form.size} bytes", row=0)
    try:
        array = np.frombuffer(serialised, np.uint8).reshape(1, -1)
        return check_reports(collection.mechanism, array, "the report"), form.header_of_one + serialised
    except InvalidInput as error:
        raise Refusal("invalid", str(error), row=0) from None


def _many_reports(mechanism: Mechanism, payload: bytes) -> npt.NDArray[Any]:
    try:
        reports = decode_batch(mechanism, payload)
    except InvalidInput as error:
        raise Refusal("invalid", str(error), row=error.row) from None
    if not len(reports):
        raise Refusal("invalid", "a batch must have at least one report")
    return reports
