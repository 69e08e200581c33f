"""Types of requests and responses: requests are validated against them; the OpenAPI document is generated."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from sfumato.server.store.records import Days, Description, Origins, ResultsKind, State, SubmissionMode, Title

__all__ = [
    "BATCH_ID",
    "COLLECTION_ID",
    "Change",
    "Check",
    "Checked",
    "CollectionList",
    "CollectionResponse",
    "Created",
    "EstimateResponse",
    "EstimateRow",
    "KeyResponse",
    "ListedCollection",
    "NewCollection",
    "NewTokens",
    "OneReport",
    "PlanRequest",
    "PlanResponse",
    "PlanRow",
    "Receipt",
    "Region",
    "SuspicionRow",
    "TokenList",
]

#: In Python, ``$`` stands before a last line feed too; in the documents' own dialect it does not.
BATCH_ID = r"^[A-Za-z0-9_-]{8,64}$(?!\n)"
COLLECTION_ID = r"^[a-z2-7]{16}$(?!\n)"

BatchId = Annotated[str, Meta(pattern=BATCH_ID, description="Chosen by the client, never used twice.")]
CollectionId = Annotated[str, Meta(pattern=COLLECTION_ID)]
Number = Annotated[int, Meta(ge=1, le=2**53)]


# -- collections -------------------------------------------------------------------------------------------


class NewCollection(Struct, frozen=True, forbid_unknown_fields=True):
    """A collection to open: a policy, and the mechanism by its spec or its name (left out, the planner's choice)."""

    title: Title
    policy: dict[str, Any]
    mechanism: str | dict[str, Any] | None = None
    n: Number | None = None
    description: Description = ""
    #: The submission mode: anybody may send, or clients with the collection's key, or with a one-time token.
    submission: SubmissionMode = "open"
    #: Who may read estimates and counts.
    results: ResultsKind = "public"
    listed: bool = True
    #: Web pages of other origins that may send and read.
    origins: Origins = []
    #: Days that reports are kept; null: forever, 0: not at all. Counts stay.
    keep_days: Days | None = None
    #: The collection that this one is a new version of.
    previous: CollectionId | None = None


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes of a collection; policy and mechanism cannot change."""

    state: State | None = None
    title: Title | None = None
    description: Description | None = None
    results: ResultsKind | None = None
    listed: bool | None = None
    origins: Origins | None = None
    keep_days: Days | msgspec.UnsetType | None = msgspec.UNSET


class CollectionResponse(Struct, frozen=True):
    """A collection, with all that a client needs to randomize for it."""

    id: str
    title: str
    description: str
    state: State
    submission: SubmissionMode
    results: ResultsKind
    listed: bool
    origins: list[str]
    keep_days: int | None
    created: Annotated[int, Meta(description="Unix time.")]
    previous: str | None
    reports: int
    batches: int
    mechanism_hash: str
    policy_hash: str
    asks: Annotated[str, Meta(description="What the policy asks, in words.")]
    mechanism: dict[str, Any] | msgspec.Raw
    policy: dict[str, Any] | msgspec.Raw


#: What reports of a mechanism reveal.
Guess = Annotated[
    float,
    Meta(
        description="The probability that the best guess of an answer from its report is right, all answers being "
        "equally likely; for a plan, of its best mechanism. It is 1 only where every report shows the answer."
    ),
]
Chance = Annotated[float, Meta(description="The same without the report.")]


class Created(Struct, frozen=True):
    """A collection that was created; its key, if it has one, is shown here and never again."""

    collection: CollectionResponse
    key: str | None
    why: str
    guess: Guess
    chance: Chance


class ListedCollection(Struct, frozen=True):
    """A collection in a list."""

    id: str
    title: str
    description: str
    state: State
    submission: SubmissionMode
    results: ResultsKind
    reports: int


class CollectionList(Struct, frozen=True):
    """Some collections, the oldest first; ``next`` is the ``after`` of the next page."""

    collections: list[ListedCollection]
    next: int | None


class KeyResponse(Struct, frozen=True):
    """The new key of a collection, shown here and never again."""

    key: str


class NewTokens(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of one-time tokens to issue."""

    count: Annotated[int, Meta(ge=1, le=10_000)]


class TokenList(Struct, frozen=True):
    """One-time tokens, shown here and never again."""

    tokens: list[str]


# -- reports and results -----------------------------------------------------------------------------------


class OneReport(Struct, frozen=True, forbid_unknown_fields=True):
    """One report: the number of an output, or its bytes in lower-case hex digits."""

    batch: BatchId
    report: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*$(?!\n)")]


class Receipt(Struct, frozen=True):
    """A batch is counted, and on disk. The same batch sent again gets the same receipt."""

    batch: str
    reports: int


class EstimateRow(Struct, frozen=True):
    """How frequent one value is."""

    value: Any
    frequency: float | None
    standard_error: float | None
    low: float | None
    high: float | None


class EstimateResponse(Struct, frozen=True):
    """An estimate; without rows while there are no reports."""

    collection: str
    reports: int
    method: str
    confidence: float = msgspec.field(name="level")
    quantile: Annotated[
        float,
        Meta(description="The two-sided normal quantile of the confidence, by which standard errors become intervals."),
    ]
    rows: list[EstimateRow]


# -- planning ----------------------------------------------------------------------------------------------


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy to put into words; ``before`` is what a stranger believes of somebody before an answer."""

    policy: dict[str, Any]
    before: Annotated[float, Meta(gt=0, lt=1)] = 0.1


class Region(Struct, frozen=True):
    """False alarm and missed detection of any test of ``x`` against ``other``: on or above the curve of points."""

    x: Any
    other: Any
    points: list[list[float]]


class SuspicionRow(Struct, frozen=True):
    """A belief of probability ``before`` in one of these values becomes at most ``after``."""

    values: Annotated[list[Any], Meta(description="The first twenty of them.")]
    count: int
    before: float
    after: float


class Checked(Struct, frozen=True):
    """A policy in words and numbers."""

    kind: str
    values: int
    hash: str
    asks: str
    least: str
    region: Region | None
    suspicions: list[SuspicionRow]
    within: Annotated[
        float | None,
        Meta(
            description="The greatest belief in one value after an answer for a stranger who knows its block, where "
            "blocks may be known; for a secret, in one value of the secret. Null for other policies."
        ),
    ]
    policy: dict[str, Any]


class PlanRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy to plan for, with n people or for a total variation error to reach."""

    policy: dict[str, Any]
    n: Number | None = None
    target: Annotated[float, Meta(gt=0, lt=1)] | None = None
    max_bits: Annotated[int, Meta(ge=1, le=2**20)] | None = None


class PlanRow(Struct, frozen=True):
    """One mechanism, and the error to expect of it; risks fall as 1/n, total variation as 1/√n."""

    name: str
    risk: float | None
    tv: float | None
    half_l1: float | None
    bits: int
    worst: float | None
    bound: float | None
    decoding: str
    classical: bool


class PlanResponse(Struct, frozen=True):
    """Every suitable mechanism, the best first."""

    n: int
    best: str
    why: str
    rows: list[PlanRow]
    guess: Guess
    chance: Chance
    one_percent: Annotated[
        float | None,
        Meta(description="How many people the best mechanism needs for a total variation error of 1%, if known."),
    ]
