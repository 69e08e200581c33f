"""Records that a store takes and returns."""

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

#: The bytes of a stored batch id, of a digest, and of a receipt.
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
    """The metadata of a collection, which administrators may change. Stored as JSON in the column ``about``."""

    title: Title
    description: Description = ""
    submission: SubmissionMode = "open"
    results: ResultsKind = "public"
    listed: bool = True
    origins: Origins = []
    keep_days: Days | None = None


#: Decodes stored metadata.
METADATA = msgspec.json.Decoder(Metadata)


@dataclass(frozen=True)
class Record:
    """A stored collection, with its documents as JSON strings.

    Policy, mechanism and certificate never change; the metadata (title, submission mode, retention) and the key may.
    """

    id: str
    #: The order of creation, given by the store.
    number: int
    created: int
    previous: str | None
    policy: str
    mechanism: str
    certificate: str
    metadata: str
    #: SHA-256 of the key with which reports are sent, if the submission mode is ``key``.
    key_hash: bytes | None


@dataclass(frozen=True)
class Progress:
    """State and counters of a collection."""

    state: State
    reports: int
    batches: int


class Submission(NamedTuple):
    """A valid batch that waits to be counted."""

    collection: str
    mechanism: Mechanism
    #: A hash of the collection and the batch id.
    batch: bytes
    #: Digest of the batch and number of its reports, stored under the id.
    receipt: bytes
    reports: npt.NDArray[Any]
    #: Whether the reports are kept, not only counted.
    keep: bool
    #: SHA-256 of the one-time token to spend.
    token_hash: bytes | None
    day: int


class SubmissionResult(NamedTuple):
    """The outcome of a submission, and the number of reports counted under its batch id, now or before."""

    outcome: Outcome
    reports: int = 0
