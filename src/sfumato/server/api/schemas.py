"""Types of requests and responses, which validate requests and from which the OpenAPI document is generated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sfumato.server.store.records import Days, Description, Origins, ResultsKind, State, SubmissionMode, Title

__all__ = [
    "BATCH_ID",
    "COLLECTION_ID",
    "AnswerRow",
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

#: Python's ``$`` also matches before a final line feed, unlike in JSON Schema; ``(?!\n)`` excludes that.
BATCH_ID = r"^[A-Za-z0-9_-]{8,64}$(?!\n)"
COLLECTION_ID = r"^[a-z2-7]{16}$(?!\n)"

BatchId = Annotated[
    str, Meta(pattern=BATCH_ID, description="Chosen by the client, at random; never reused for other reports.")
]
CollectionId = Annotated[str, Meta(pattern=COLLECTION_ID)]
Number = Annotated[int, Meta(ge=1, le=2**53)]
#: What is to be learned: a string such as "mean" or "ranges:18-64,65-", or the document of a question.
StatedQuestion = (
    Annotated[str, Meta(max_length=2000, description='A question such as `"mean"`, or `"ranges:18-64,65-"`.')]
    | dict[str, Any]
)


# -- collections -------------------------------------------------------------------------------------------


class NewCollection(Struct, frozen=True, forbid_unknown_fields=True):
    """A collection to create: a policy, and a mechanism by spec or name; without a mechanism, the planner chooses.

    ``question`` states what is to be learned: by default the question that the policy states, or else all frequencies.
    """

    title: Title
    policy: dict[str, Any]
    mechanism: str | dict[str, Any] | None = None
    n: Number | None = None
    description: Description = ""
    #: Clients that may send reports: all (open), those with the collection's key, or those with a one-time token.
    submission: SubmissionMode = "open"
    #: Readers of estimates and counts: the public, or administrators.
    results: ResultsKind = "public"
    listed: bool = True
    #: Origins of web pages on other hosts that may send reports and read results.
    origins: Origins = []
    #: Days after which reports are deleted; null keeps them forever, 0 stores none. Counts are always kept.
    keep_days: Days | None = None
    #: Id of the collection that this one is a new version of.
    previous: CollectionId | None = None
    question: StatedQuestion | None = None


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a collection; policy and mechanism cannot change."""

    state: State | None = None
    title: Title | None = None
    description: Description | None = None
    results: ResultsKind | None = None
    listed: bool | None = None
    origins: Origins | None = None
    keep_days: Days | msgspec.UnsetType | None = msgspec.UNSET


class CollectionResponse(Struct, frozen=True):
    """A collection, with everything that a client needs to randomize for it."""

    id: str
    title: str
    description: str
    state: State
    submission: SubmissionMode
    results: ResultsKind
    listed: bool
    origins: list[str]
    keep_days: int | None
    created: Annotated[int, Meta(description="Time of creation, in seconds since 1970 (Unix time).")]
    previous: str | None
    reports: int
    batches: int
    mechanism_hash: str
    policy_hash: str
    asks: Annotated[str, Meta(description="The requirements of the policy, in words.")]
    mechanism: dict[str, Any] | msgspec.Raw
    policy: dict[str, Any] | msgspec.Raw
    question: Annotated[
        dict[str, Any] | msgspec.Raw | None,
        Meta(description="The question that the results answer; null for all frequencies."),
    ]


#: Probability of a correct guess with and without a report.
Guess = Annotated[
    float,
    Meta(
        description="Probability that the best guess of an answer from its report is correct, if all answers are "
        "equally likely; in a plan, for its best mechanism. It is 1 only if every report reveals the answer."
    ),
]
Chance = Annotated[float, Meta(description="Probability that a guess without the report is correct.")]


class Created(Struct, frozen=True):
    """A new collection. Its key, if it has one, is returned only in this response."""

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
    """A page of collections, the oldest first; ``next`` is the parameter ``after`` of the next page."""

    collections: list[ListedCollection]
    next: int | None


class KeyResponse(Struct, frozen=True):
    """The new key of a collection, which is returned only in this response."""

    key: str


class NewTokens(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of one-time tokens to issue."""

    count: Annotated[int, Meta(ge=1, le=10_000)]


class TokenList(Struct, frozen=True):
    """New one-time tokens, which are returned only in this response."""

    tokens: list[str]


# -- reports and results -----------------------------------------------------------------------------------


class OneReport(Struct, frozen=True, forbid_unknown_fields=True):
    """One report: the index of an output, or its bytes as lower-case hex digits."""

    batch: BatchId
    report: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*$(?!\n)")]


class Receipt(Struct, frozen=True):
    """The confirmation that a batch is counted and on disk. The same batch sent again gets the same receipt."""

    batch: str
    reports: int


class EstimateRow(Struct, frozen=True):
    """The estimated frequency of one value."""

    value: Any
    frequency: float | None
    standard_error: float | None
    low: float | None
    high: float | None


class AnswerRow(Struct, frozen=True):
    """One answer to a question. The limits of a quantile are values of the domain, as is the quantile itself."""

    answer: Annotated[
        Any,
        Meta(description="Name of the answer, value up to which a share is counted, or level of a quantile."),
    ]
    value: Any
    standard_error: float | None
    low: Any
    high: Any


class EstimateResponse(Struct, frozen=True):
    """An estimate; it has no rows before the first report.

    ``rows`` is also empty if the reports do not distinguish all values, so that they answer some questions only.
    """

    collection: str
    reports: int
    method: str
    confidence: float = msgspec.field(name="level")
    quantile: Annotated[
        float,
        Meta(description="Two-sided normal quantile of the confidence level: half the interval per standard error."),
    ]
    rows: list[EstimateRow]
    complete: Annotated[bool, Meta(description="Whether the reports determine the frequencies of all values.")]
    question: Annotated[
        dict[str, Any] | None, Meta(description="The question that was answered; null for all frequencies.")
    ]
    rounding: Annotated[
        float, Meta(description="Largest error that bins of numbers add to a mean; intervals do not include it.")
    ]
    answers: Annotated[list[AnswerRow], Meta(description="The answers to the question.")]
    warnings: Annotated[list[str], Meta(description="Reasons why the frequencies mean little, one sentence each.")]


# -- planning ----------------------------------------------------------------------------------------------


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy to describe; ``before`` is the probability that an observer assigns to a value before the reply."""

    policy: dict[str, Any]
    before: Annotated[float, Meta(gt=0, lt=1)] = 0.1


class Region(Struct, frozen=True):
    """False alarm and missed detection rates of tests of ``x`` against ``other``: all lie on or above the curve."""

    x: Any
    other: Any
    points: list[list[float]]


class SuspicionRow(Struct, frozen=True):
    """A bound: a belief of probability ``before`` in one of these values becomes at most ``after``."""

    values: Annotated[list[Any], Meta(description="At most twenty of the values.")]
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
            description="Maximum probability of one value after the reply, for an observer who knows its block, if the "
            "policy lets blocks be known; for a secret, of one value of the secret. Null for other policies."
        ),
    ]
    policy: dict[str, Any]


class PlanRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy to plan for, with n people or with a target for the total variation error.

    With a question, the target is a standard error of its answers.
    """

    policy: dict[str, Any]
    n: Number | None = None
    target: Annotated[float, Meta(gt=0)] | None = None
    max_bits: Annotated[int, Meta(ge=1, le=2**20)] | Literal["short"] | None = "short"
    question: StatedQuestion | None = None


class PlanRow(Struct, frozen=True):
    """One mechanism and its expected error; risks fall as 1/n, the total variation error as 1/√n."""

    name: str
    risk: float | None
    tv: float | None
    half_l1: float | None
    bits: int
    worst: float | None
    bound: float | None
    decoding: str
    classical: bool
    standard_error: Annotated[
        float | None,
        Meta(description="Standard error of the answers to the question, as a root mean square; null without one."),
    ]


class PlanResponse(Struct, frozen=True):
    """Every suitable mechanism, the smallest risk first; ``best`` names the recommended one."""

    n: int
    best: str
    why: str
    rows: list[PlanRow]
    guess: Guess
    chance: Chance
    one_percent: Annotated[
        float | None,
        Meta(description="Number of people that the best mechanism needs for a total variation error of 1%, if known."),
    ]
    warnings: Annotated[
        list[str], Meta(description="Values that a report may reveal, and whether the people are too few.")
    ]
