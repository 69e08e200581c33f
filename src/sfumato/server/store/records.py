"""Records that a store accepts and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy.typing as npt
from msgspec import Meta, Struct

from sfumato.mechanisms import Mechanism

__all__ = [
    "DIGEST_BYTES",
    "ID_BYTES",
    "METADATA",
    "RECEIPT_BYTES",
    "Days",
    "Description",
    "Metadata",
    "Origins",
    "Outcome",
    "Progress",
    "Record",
    "ResultsKind",
    "State",
    "Submission",
    "SubmissionMode",
    "SubmissionResult",
    "Title",
]

#: Sizes in bytes of a stored batch id, a digest and a receipt.
ID_BYTES, DIGEST_BYTES, RECEIPT_BYTES = 16, 16, 20

State = Literal["open", "closed", "archived"]
#: Outcome of a submission: counted now, counted before, or the reason of its rejection.
Outcome = Literal["accepted", "repeated", "conflict", "not-found", "not-open", "token-unknown", "token-spent"]


Title = Annotated[str, Meta(min_length=1, max_length=200)]
Description = Annotated[str, Meta(max_length=20_000)]
Origin = Annotated[str, Meta(pattern=r"^(\*|https?://[A-Za-z0-9.:\[\]-]{1,250})$(?!\n)")]
Origins = Annotated[list[Origin], Meta(max_length=100)]
Days = Annotated[int, Meta(ge=0, le=36_500)]
SubmissionMode = Literal["open", "key", "token"]
ResultsKind = Literal["public", "admin"]


class Metadata(Struct, frozen=True, forbid_unknown_fields=True):
    """The metadata of a collection, which administrators may change; stored as JSON in the column ``about``."""

    title: Title
    description: Description = ""
    submission: SubmissionMode = "open"
    results: ResultsKind = "public"
    listed: bool = True
    origins: Origins = []
    keep_days: Days | None = None


#: Decoder of stored metadata.
METADATA = msgspec.json.Decoder(Metadata)


@dataclass(frozen=True)
class Record:
    """A stored collection, with its documents as JSON strings.

    Policy, question, mechanism and certificate never change; the metadata (title, submission mode, retention) and the
    key may.
    """

    id: str
    #: Position in the order of creation, assigned by the store.
    number: int
    created: int
    previous: str | None
    policy: str
    mechanism: str
    certificate: str
    metadata: str
    #: SHA-256 hash of the key that clients send with reports, if the submission mode is ``key``.
    key_hash: bytes | None
    #: The question that the mechanism answers, as a JSON string; None for all frequencies.
    question: str | None = None


@dataclass(frozen=True)
class Progress:
    """State and counters of a collection."""

    state: State
    reports: int
    batches: int


class Submission(NamedTuple):
    """A valid batch that is waiting to be counted."""

    collection: str
    mechanism: Mechanism
    #: Hash of the collection and the batch id.
    batch: bytes
    #: Digest of the payload and number of its reports, stored under the batch id.
    receipt: bytes
    reports: npt.NDArray[Any]
    #: Whether the store keeps the reports in addition to the counts.
    keep: bool
    #: SHA-256 hash of the one-time token to spend.
    token_hash: bytes | None
    #: Day of arrival, in days since 1970 (UTC).
    day: int


class SubmissionResult(NamedTuple):
    """The outcome of a submission, and the number of reports counted under its batch id, now or before."""

    outcome: Outcome
    reports: int = 0
