"""Receive reports: read, validate and count them exactly once, and only then acknowledge them.

A client sends one report as JSON, or many as a binary batch (``docs/report-format.md``). The digest of both is computed
from the canonical binary batch, so the same reports under the same batch id are the same payload in either form. A
batch with one invalid report is rejected as a whole.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from starlette.requests import Request

from sfumato.collecting import HEADER_BYTES, decode_batch
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.api.schemas import BATCH_ID, Admission, OneReport, Receipt
from sfumato.server.api.tokens import bearer, token_hash
from sfumato.server.http.bodies import BATCH_TYPE, RawHeaders, content_type, decode_json, read_body, read_headers
from sfumato.server.http.responses import JSON_TYPE, ApiError, JsonResponse
from sfumato.server.jobs.retention import day_of
from sfumato.server.store.records import DIGEST_BYTES, ID_BYTES, RECEIPT_BYTES, Outcome, Submission

__all__ = ["BATCH_HEADER", "check_sender", "take_reports"]

#: Name of the HTTP header with the batch id of a binary batch.
BATCH_HEADER = "Idempotency-Key"
_RAW_BATCH_HEADER = BATCH_HEADER.lower().encode()

#: Bytes above which a batch is unpacked in a thread, so that other requests do not wait.
_LONG = 2**14
#: Maximum reports per batch; bounds memory, because a report of one bit becomes an integer.
_MOST_REPORTS = 2**20
#: Maximum bytes in addition to one report: the header of a batch, or the batch id and the keys of JSON.
_ENVELOPE_BYTES = 2**12

_BATCH_ID = re.compile(BATCH_ID)
_ONE = msgspec.json.Decoder(OneReport)
_ENCODER = msgspec.json.Encoder()

_MESSAGES = {
    "conflict": "another payload was already counted under this batch id; stop, and check which payload belongs to it",
    "not-found": "this collection does not exist; check the id",
    "not-open": "this collection does not accept reports now, because it is closed or archived",
    "token-unknown": "this one-time token was not issued for this collection; ask its owner for another",
    "token-spent": "this one-time token was already used; ask the owner of the collection for another",
}


_LATE = "this wave has not started or is over: reports are counted during their wave and the next one"


async def take_reports(collector: Collector, request: Request) -> JsonResponse:
    """Count a batch, and return its receipt when the counts are on disk; a rejection names the batch."""
    return await _naming_batch(collector, request, _take_reports)


async def check_sender(collector: Collector, request: Request) -> JsonResponse:
    """Return whether the collection would count a report of the sender now; a rejection is that of the report.

    A device asks before it draws and before it sends, because a report that is refused costs privacy all the same.
    """
    return await _naming_batch(collector, request, _check_admission)


async def _naming_batch(
    collector: Collector, request: Request, work: Callable[..., Awaitable[JsonResponse]]
) -> JsonResponse:
    """Run a handler with the headers and the stated batch id; name collection and batch in its error."""
    headers = read_headers(request)
    stated = headers.get(_RAW_BATCH_HEADER, b"").decode("latin-1")
    try:
        return await work(collector, request, headers, stated)
    except ApiError as error:
        error.collection = request.path_params["id"]
        if error.batch is None and _BATCH_ID.fullmatch(stated):
            error.batch = stated
        raise


async def _check_admission(collector: Collector, request: Request, headers: RawHeaders, stated: str) -> JsonResponse:
    """Decide about a submission without its report; ``stated`` is the batch id in the header."""
    collection = await collector.collections.get(request.path_params["id"], fresh=True)
    secret, wave = _check_sender(collection, headers), _stated_wave(request)
    if not _BATCH_ID.fullmatch(stated):
        raise ApiError("malformed", f"the header {BATCH_HEADER} must be 8 to 64 letters, digits, '-' or '_'")
    _check_wave(collection, wave)
    submission = _submission(collector, collection, stated, np.empty(0), b"", secret, wave)
    result = await collector.readers.run(collector.store.expected, submission, collection.progress.state)
    if result.outcome not in ("accepted", "repeated", "conflict"):  # the payload of a known batch is not known here
        raise _rejection(collector, collection, result.outcome, submission)
    return JsonResponse(_ENCODER.encode(Admission(stated)))


async def _take_reports(collector: Collector, request: Request, headers: RawHeaders, stated: str) -> JsonResponse:
    """Read, validate and count a batch; ``stated`` is the batch id in the header."""
    collection = await collector.collections.get(request.path_params["id"])
    secret = _check_sender(collection, headers)
    kind = content_type(headers)
    single = kind == JSON_TYPE or secret is not None
    is_open = collection.metadata.submission == "open"
    limit = collector.settings.open_batch if is_open else 0
    most = min(collector.settings.max_bytes, _most_bytes(collection, 1 if single else limit or _MOST_REPORTS))
    address = collector.addresses.of(request.scope)
    if kind == JSON_TYPE:
        body = await read_body(request.receive, headers, most, collector.timeouts, collector.body_memory, address)
        sent = decode_json(body, _ONE)
        batch, wave = sent.batch, sent.wave
        if stated not in ("", batch):
            raise ApiError("malformed", f"the header {BATCH_HEADER} and the body must have the same batch id")
        reports, payload = _one_report(collection, sent.report)
    elif kind == BATCH_TYPE:
        batch, wave = stated, _stated_wave(request)
        if not _BATCH_ID.fullmatch(batch):
            raise ApiError("malformed", f"the header {BATCH_HEADER} must be 8 to 64 letters, digits, '-' or '_'")
        payload = await read_body(request.receive, headers, most, collector.timeouts, collector.body_memory, address)
        if len(payload) > _LONG:
            reports = await collector.unpackers.run(_many_reports, collection.mechanism, payload)
        else:
            reports = _many_reports(collection.mechanism, payload)
    else:
        raise ApiError("unsupported-type", f"the content type must be {JSON_TYPE} or {BATCH_TYPE}")
    if secret is not None and len(reports) != 1:
        message = f"a one-time token allows one report, and the batch has {len(reports)}; send one report per token"
        raise ApiError("invalid", message)
    _check_wave(collection, wave)
    if 0 < limit < len(reports):
        raise ApiError("too-large", f"an open collection accepts at most {limit} reports per request; send fewer")
    exhausted = _use_budgets(collector, collection, address, len(reports)) if is_open else None
    receipt = _digest(payload, batch.encode(), wave) + _number(len(reports))
    submission = _submission(collector, collection, batch, reports, receipt, secret, wave, exhausted is not None)
    del payload  # keep only the reports in memory while the submission waits
    uses_budgets = is_open and exhausted is None
    try:
        result = await collector.writer.submit(submission)
    except Exception:  # not if the request is cancelled, because its reports are counted all the same
        if uses_budgets:
            _return_budgets(collector, collection, address, len(reports))
        raise
    if uses_budgets and result.outcome != "accepted":
        _return_budgets(collector, collection, address, len(reports))
    if result.outcome not in ("accepted", "repeated"):
        if result.outcome == "rate" and exhausted is not None:
            rejection = exhausted
        else:
            rejection = _rejection(collector, collection, result.outcome, submission)
        rejection.batch = batch
        raise rejection
    return JsonResponse(_ENCODER.encode(Receipt(batch, result.reports)))


def _submission(
    collector: Collector,
    collection: Collection,
    batch: str,
    reports: npt.NDArray[Any],
    receipt: bytes,
    secret: str | None,
    wave: int | None,
    exhausted: bool = False,
) -> Submission:
    """Return a submission as the store decides about it."""
    now, waves = collector.now(), collection.metadata.waves
    return Submission(
        collection.id,
        collection.mechanism,
        # Reports come from a small set, so a reader of the store could invert a bare digest by trying all of them.
        # The digest is keyed with the batch id, which clients draw at random, and only a hash of the id is stored.
        hashlib.blake2b(batch.encode(), key=collection.id.encode(), digest_size=ID_BYTES).digest(),
        receipt,
        reports,
        collection.metadata.keep_days != 0 and wave is None,
        None if secret is None else token_hash(secret, wave),
        day_of(now),
        wave,
        waves is not None and wave is not None and not waves.accepts(wave, now),
        closed=collection.metadata.state_at("open", now) != "open",
        exhausted=exhausted,
        release_every=collection.metadata.release_every,
    )


def _rejection(collector: Collector, collection: Collection, outcome: Outcome, submission: Submission) -> ApiError:
    """Return the error of a submission that the store rejects."""
    opens = collection.metadata.opens
    if outcome == "not-open" and opens is not None and collection.state(collector.now()) == "scheduled":
        date = datetime.datetime.fromtimestamp(opens, datetime.UTC)
        return ApiError(outcome, f"this collection is not open yet; it accepts reports from {date:%Y-%m-%d %H:%M} UTC")
    return ApiError(outcome, _LATE if outcome == "not-open" and submission.late else _MESSAGES[outcome])


def _stated_wave(request: Request) -> int | None:
    """Return the wave of a binary batch, from the query parameter ``wave``; raise ApiError if it is not a number."""
    if not request.scope["query_string"]:  # as in most requests; parsing an empty string takes time
        return None
    digits = request.query_params.get("wave")
    if digits is None:
        return None
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 3):
        raise ApiError("invalid", "wave must be a number of at most three digits")
    return int(digits)


def _check_wave(collection: Collection, wave: int | None) -> None:
    """Raise ApiError unless reports name a wave if and only if the collection has waves, and one that it has."""
    waves = collection.metadata.waves
    if waves is None and wave is not None:
        raise ApiError("invalid", "this collection has no waves; send its reports without one")
    if waves is not None and (wave is None or wave >= waves.count):
        raise ApiError("invalid", f"the wave of a report must be a number from 0 to {waves.count - 1}")


def _digest(payload: bytes, name: bytes, wave: int | None) -> bytes:
    """Return the keyed digest of a payload; the same reports for another wave are another payload."""
    stated = payload if wave is None else payload + b"#%d" % wave
    return hashlib.blake2b(stated, key=name, digest_size=DIGEST_BYTES).digest()


def _use_budgets(collector: Collector, collection: Collection, address: bytes, reports: int) -> ApiError | None:
    """Use the budgets of an open collection; return the error if too many reports came today, from here or in all.

    It is not raised yet, because only the transaction knows whether the batch was counted before.
    """
    now = collector.now()
    try:
        collector.open_per_address.use(address, reports, now)
    except ApiError as error:
        return error
    try:
        collector.open_per_collection.use(collection.id, reports, now)
    except ApiError as error:
        collector.open_per_address.give_back(address, reports)
        return error
    return None


def _return_budgets(collector: Collector, collection: Collection, address: bytes, reports: int) -> None:
    """Return the budgets of a submission that was not counted now."""
    collector.open_per_address.give_back(address, reports)
    collector.open_per_collection.give_back(collection.id, reports)


def _number(reports: int) -> bytes:
    """Return the number of reports as the last bytes of a receipt."""
    return reports.to_bytes(RECEIPT_BYTES - DIGEST_BYTES, "big")


def _most_bytes(collection: Collection, reports: int) -> int:
    """Return the maximum bytes of a body with this many reports; longer bodies are rejected before they are read."""
    if reports == 1:
        return _ENVELOPE_BYTES + 2 * collection.report_format.batch_bytes  # two hex digits per byte
    return HEADER_BYTES + -(-reports * max(collection.mechanism.bits, 1) // 8)


def _check_sender(collection: Collection, headers: RawHeaders) -> str | None:
    """Raise ApiError if the client may not send; return the one-time token to spend, or None."""
    submission_mode = collection.metadata.submission
    if submission_mode == "open":
        return None
    secret = bearer(headers)
    if secret is None:
        credential = "key" if submission_mode == "key" else "one-time token"
        raise ApiError("unauthorized", f"this collection requires a {credential}; send it as a bearer token")
    if submission_mode == "token":
        return secret
    if not hmac.compare_digest(token_hash(secret), collection.key_hash or b""):
        message = "this is not the current key of this collection, which may have been replaced; ask its owner for it"
        raise ApiError("unauthorized", message)
    return None


def _one_report(collection: Collection, report: int | str) -> tuple[npt.NDArray[Any], bytes]:
    """Return the report as an array, and as a binary batch."""
    form, header = collection.report_format, collection.header_of_one
    if form.is_histogram:
        # Check the range first, because an array cannot hold an int of any length.
        if not isinstance(report, int) or not 0 <= report < form.count_size:
            raise ApiError("invalid", f"a report must be a number from 0 to {form.count_size - 1}", row=0)
        return np.array([report], form.dtype), header + report.to_bytes(form.batch_bytes, "little")
    if not isinstance(report, str):
        raise ApiError("invalid", "a report of this mechanism must be a string of hex digits", row=0)
    serialised = bytes.fromhex(report)
    if len(serialised) != form.batch_bytes:
        digits = 2 * form.batch_bytes
        raise ApiError("invalid", f"a report of this mechanism must have {digits} hex digits; got {len(report)}", row=0)
    try:
        array = np.frombuffer(serialised, np.uint8).reshape(1, -1)
        return form.validate(array, "the report"), header + serialised
    except InvalidInput as error:
        raise ApiError("invalid", str(error), row=0) from None


def _many_reports(mechanism: Mechanism, payload: bytes) -> npt.NDArray[Any]:
    """Return the reports of a binary batch; raise ApiError for an invalid or empty one."""
    try:
        reports = decode_batch(mechanism, payload)
    except InvalidInput as error:
        raise ApiError("invalid", str(error), row=error.row) from None
    if not len(reports):
        raise ApiError("invalid", "a batch must contain at least one report")
    return reports
