"""What a store is given and gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy.typing as npt
from msgspec import Meta, Struct

from sfumato.mechanisms import Mechanism

__all__ = [
    "ABOUT",
    "DIGEST_BYTES",
    "ID_BYTES",
    "RECEIPT_BYTES",
    "About",
    "Days",
    "Description",
    "Fate",
    "Origins",
    "Outcome",
    "Progress",
    "Record",
    "ResultsKind",
    "State",
    "Submission",
    "SubmissionKind",
    "Title",
]

#: The bytes of a stored batch id, of a digest, and of a receipt.
ID_BYTES, DIGEST_BYTES, RECEIPT_BYTES = 16, 16, 20

State = Literal["open", "closed", "archived"]
#: What became of a submission: counted now, counted before, or one of the reasons to refuse it.
Fate = Literal["accepted", "repeated", "conflict", "not-found", "not-open", "token-unknown", "token-spent"]


Title = Annotated[str, Meta(min_length=1, max_length=200)]
Description = Annotated[str, Meta(max_length=20_000)]
Origin = Annotated[str, Meta(pattern=r"^(\*|https?://[A-Za-z0-9.:\[\]-]{1,250})$(?!\n)")]
Origins = Annotated[list[Origin], Meta(max_length=100)]
Days = Annotated[int, Meta(ge=0, le=36_500)]
SubmissionKind = Literal["open", "key", "token"]
ResultsKind = Literal["public", "admin"]


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """What is said about a collection, and may be said otherwise later."""

    title: Title
    description: Description = ""
    submission: SubmissionKind = "open"
    results: ResultsKind = "public"
    listed: bool = True
    origins: Origins = []
    keep_days: Days | None = None


#: Reads it as it is stored.
ABOUT = msgspec.json.Decoder(About)


@dataclass(frozen=True)
class Record:
    """A collection as it is stored: documents as JSON texts.

    Policy, mechanism and certificate never change; ``about`` (title, who may send, how long to keep) and the key may.
    """

    id: str
    #: The order of creation, given by the store.
    number: int
    created: int
    previous: str | None
    policy: str
    mechanism: str
    certificate: str
    about: str
    #: SHA-256 of the key with which reports are sent, where one is asked for.
    key_hash: bytes | None


@dataclass(frozen=True)
class Progress:
    """The part of a collection that moves: its state, and how much was counted."""

    state: State
    reports: int
    batches: int


class Submission(NamedTuple):
    """A batch that was found valid and waits to be counted."""

    collection: str
    mechanism: Mechanism
    #: A hash of the collection and the batch id.
    batch: bytes
    #: What is stored under the id: a digest of the batch, and how many reports it has.
    receipt: bytes
    reports: npt.NDArray[Any]
    #: Whether the reports are kept, not only counted.
    keep: bool
    #: SHA-256 of the one-time token to spend.
    token_hash: bytes | None
    day: int


class Outcome(NamedTuple):
    """What became of a submission; ``reports`` is how many were counted for its batch id, now or before."""

    fate: Fate
    reports: int = 0
