"""Types of requests and responses, which validate requests and from which the OpenAPI document is generated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sfumato.server.store.presentation import Presentation
from sfumato.server.store.records import (
    Access,
    Days as KeepDays,
    Description,
    Label,
    Moment,
    Origins,
    ReleaseEvery,
    ResultsKind,
    State,
    StateNow,
    SubmissionMode,
    Title,
    WaveCount,
    WaveDays,
    WaveNumber,
)

__all__ = [
    "BATCH_ID",
    "COLLECTION_ID",
    "Admission",
    "AnswerRow",
    "Change",
    "ChangeList",
    "ChangeResponse",
    "ChangeRow",
    "Check",
    "Checked",
    "CollectionList",
    "CollectionResponse",
    "Copy",
    "Created",
    "CreatedSurvey",
    "DayRow",
    "Days",
    "Deleted",
    "EstimateResponse",
    "EstimateRow",
    "GrantResponse",
    "GrantRow",
    "GrantRows",
    "KeyResponse",
    "ListedCollection",
    "LogEntry",
    "Mine",
    "NewCollection",
    "NewGrant",
    "NewSurvey",
    "NewTokens",
    "NewWaves",
    "Odds",
    "OneReport",
    "OwnedCollection",
    "PlanRequest",
    "PlanResponse",
    "PlanRow",
    "Receipt",
    "Region",
    "Revoke",
    "Revoked",
    "SuspicionRow",
    "TokenList",
    "TokenUse",
    "Undo",
    "Undone",
    "WaveResponse",
    "WavesResponse",
    "WavesSchedule",
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


class NewWaves(Struct, frozen=True, forbid_unknown_fields=True):
    """The waves of a collection that asks again: their number, their length, and when the first one starts."""

    count: WaveCount
    #: Length of a wave in days; with null, an administrator opens each wave with PATCH and ``wave``.
    days: WaveDays | None = 7
    #: Start of the first wave, in seconds since 1970 (Unix time); by default, now.
    start: Annotated[int, Meta(ge=0, le=2**40)] | None = None


class WavesSchedule(Struct, frozen=True):
    """The waves of a collection. Times are in seconds since 1970 (Unix time)."""

    count: int
    days: Annotated[int | None, Meta(description="Length of a wave; null if an administrator opens each wave.")]
    start: Annotated[int, Meta(description="Start of the first wave.")]
    current: Annotated[
        int | None, Meta(description="The current wave, from 0; null before the first and after the last.")
    ]
    next: Annotated[
        int | None, Meta(description="Start of the next wave or end of the last one; null if an administrator decides.")
    ]


class NewCollection(Access, frozen=True, forbid_unknown_fields=True):
    """A collection to create: a policy, and a mechanism by spec or name; without a mechanism, the planner chooses.

    ``question`` states what is to be learned: by default the question that the policy states, or else all frequencies.
    """

    title: Title
    policy: dict[str, Any]
    mechanism: str | dict[str, Any] | None = None
    n: Number | None = None
    description: Description = ""
    #: Origins of web pages on other hosts that may send reports and read results.
    origins: Origins = msgspec.field(default_factory=list)
    #: Days after which reports are deleted; null keeps them forever, 0 stores none. Counts are always kept.
    keep_days: KeepDays | None = None
    #: Id of the collection that this one is a new version of.
    previous: CollectionId | None = None
    question: StatedQuestion | None = None
    #: Name for its owners, which participants do not see.
    label: Label = ""
    #: Unix times between which the collection accepts reports; null for no limit.
    opens: Moment | None = None
    closes: Moment | None = None
    #: Least number of reports by which counts and results advance, as from a shuffler; null shows each at once.
    release_every: ReleaseEvery | None = None
    #: Waves of a collection that asks the same people again. It needs a lifetime policy, or a memoized mechanism.
    waves: NewWaves | None = None
    #: Policy of all reports about one unchanged value; ``policy`` is then that of one report.
    lifetime: dict[str, Any] | None = None
    #: Greatest number of further permanent answers of one person, and waves after which each device draws a new one.
    max_changes: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    refresh_every: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    #: How the survey page presents the collection: consent, section, end page.
    presentation: Presentation | None = None


#: Number of one-time tokens that one request issues.
TokenCount = Annotated[int, Meta(ge=1, le=10_000)]


class NewSurvey(Struct, frozen=True, forbid_unknown_fields=True):
    """The questions of a survey: the collector opens a collection for each, or none if one of them is refused."""

    questions: Annotated[list[NewCollection], Meta(min_length=1, max_length=200)]
    #: One-time tokens to issue for each question; null issues none.
    tokens: TokenCount | None = None


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a collection; policy and mechanism cannot change, nor title and description once it has opened."""

    state: State | None = None
    title: Title | None = None
    description: Description | None = None
    results: ResultsKind | None = None
    listed: bool | None = None
    origins: Origins | None = None
    keep_days: Annotated[
        KeepDays | msgspec.UnsetType | None,
        Meta(
            description="Maximum days for which reports are stored; null is without limit. Once the collection has "
            "opened, it can only be lowered."
        ),
    ] = msgspec.UNSET
    label: Label | None = None
    opens: Moment | msgspec.UnsetType | None = msgspec.UNSET
    closes: Moment | msgspec.UnsetType | None = msgspec.UNSET
    #: Wave to open, if the waves have no length in days.
    wave: WaveNumber | None = None


class CollectionResponse(Struct, frozen=True):
    """A collection, with everything that a client needs to randomize for it."""

    id: str
    title: str
    description: str
    state: StateNow
    submission: SubmissionMode
    results: ResultsKind
    listed: bool
    origins: list[str]
    keep_days: int | None
    created: Annotated[int, Meta(description="Time of creation, in seconds since 1970 (Unix time).")]
    opens: Annotated[int | None, Meta(description="Unix time from which reports are accepted; null for no limit.")]
    closes: Annotated[int | None, Meta(description="Unix time until which reports are accepted; null for no limit.")]
    wording_hash: Annotated[
        str,
        Meta(
            description="SHA-256 of the canonical JSON of title, description, mechanism_hash, policy_hash and, if "
            "there is one, presentation, which are fixed once the collection has opened."
        ),
    ]
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
    release_every: Annotated[
        int | None, Meta(description="Least number of reports by which counts and results advance; null for 1.")
    ]
    step: Annotated[
        int | None,
        Meta(description="Least number of reports by which the client sees results advance; null if it sees each one."),
    ]
    waves: Annotated[WavesSchedule | None, Meta(description="The waves of a collection that asks again, else null.")]
    presentation: Annotated[
        Presentation | None, Meta(description="How the survey page presents the collection; null for a plain question.")
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


class Odds(Struct, frozen=True):
    """The odds of the best guess of one attribute of an answer, from a report about it and without one."""

    guess: float
    chance: float


#: Odds of the attribute that a report reveals most about.
PartOdds = Annotated[
    Odds | None,
    Meta(
        description="The same probabilities for the attribute that a report reveals most about, such as an option of a "
        "multiple choice; null if there is none or it is unknown."
    ),
]


class Created(Struct, frozen=True):
    """A new collection. Its key, if it has one, is returned only in this response."""

    collection: CollectionResponse
    key: str | None
    why: str
    guess: Guess
    chance: Chance
    part: PartOdds


class CreatedSurvey(Struct, frozen=True):
    """The new collections, in the order of the questions, and the one-time tokens of each, only in this response."""

    questions: list[Created]
    tokens: list[list[str]]


class ListedCollection(Struct, frozen=True):
    """A collection in a list."""

    id: str
    title: str
    description: str
    state: StateNow
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

    count: TokenCount


class TokenList(Struct, frozen=True):
    """New one-time tokens, which are returned only in this response."""

    tokens: list[str]


# -- management --------------------------------------------------------------------------------------------


class OwnedCollection(Struct, frozen=True):
    """A collection that the token has a role on, with the number of its one-time tokens: issued and used."""

    id: str
    title: str
    label: str
    description: str
    state: StateNow
    submission: SubmissionMode
    results: ResultsKind
    reports: int
    created: int
    opens: int | None
    closes: int | None
    role: str
    issued: int
    used: int


class Mine(Struct, frozen=True):
    """The role of a token, and a page of the collections that it has a role on, the oldest first."""

    role: str
    expires: int | None
    collections: list[OwnedCollection]
    next: int | None


class NewGrant(Struct, frozen=True, forbid_unknown_fields=True):
    """A role to give to a new token, with a name for the list of roles, and the days until it expires."""

    role: Literal["owner", "reader"]
    name: Label = ""
    days: Annotated[int, Meta(ge=1, le=36_500)] | None = None


class GrantRow(Struct, frozen=True):
    """The role of a token, which is named by its fingerprint, and the token that granted it; null for an author's."""

    fingerprint: str
    role: str
    name: str
    created: int
    expires: int | None
    granted_by: str | None


class GrantRows(Struct, frozen=True):
    """The roles on a collection."""

    roles: list[GrantRow]


class GrantResponse(Struct, frozen=True):
    """A new token with its role; the token is returned only in this response."""

    token: str
    grant: GrantRow


class Revoke(Struct, frozen=True, forbid_unknown_fields=True):
    """The fingerprint of the token whose role is to be revoked."""

    fingerprint: Annotated[str, Meta(pattern=r"^[0-9a-f]{8}$(?!\n)")]


class Revoked(Struct, frozen=True):
    """Whether the role was revoked."""

    fingerprint: str
    revoked: bool


class TokenUse(Struct, frozen=True):
    """The number of one-time tokens that were issued, and of those that were used."""

    issued: int
    used: int


class DayRow(Struct, frozen=True):
    """The stored reports of one day (UTC). Days with fewer than 100 reports are not tested."""

    day: str
    reports: int
    p_value: float | None
    alarm: bool


class Days(Struct, frozen=True):
    """The days of a collection, and the test of all its counts.

    ``p_value`` bounds the probability of counts at least as extreme from honest reports, for any truth; null if the
    mechanism is too large to test.
    """

    reports: int
    p_value: float | None
    alarm: bool
    days: list[DayRow]


class Undo(Struct, frozen=True, forbid_unknown_fields=True):
    """The day whose stored reports are to be removed from the counts, such as 2026-11-18 (UTC)."""

    day: Annotated[str, Meta(max_length=10)]


class Undone(Struct, frozen=True):
    """The number of reports that were removed."""

    day: str
    reports: int


class Copy(Struct, frozen=True, forbid_unknown_fields=True):
    """The title of a copy; by default that of the original."""

    title: Title | None = None


class Deleted(Struct, frozen=True):
    """A collection that was deleted."""

    id: str
    deleted: bool


class LogEntry(Struct, frozen=True):
    """A change: Unix time, fingerprint of the token, action and details."""

    when: int
    who: str
    action: str
    what: dict[str, Any]


class ChangeList(Struct, frozen=True):
    """The log of a collection, the newest entries first."""

    entries: list[LogEntry]


# -- reports and results -----------------------------------------------------------------------------------


class OneReport(Struct, frozen=True, forbid_unknown_fields=True):
    """One report: the index of an output, or its bytes as lower-case hex digits."""

    batch: BatchId
    report: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*$(?!\n)")]
    #: Number of the wave, if the collection has waves.
    wave: WaveNumber | None = None


class Admission(Struct, frozen=True):
    """The collection would count a report under this batch id, or has counted it."""

    batch: str


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
    wave: Annotated[int | None, Meta(description="The wave of the reports; null for a collection without waves.")]


class DifferenceRow(Struct, frozen=True):
    """The answer of one group minus that of another."""

    group: Annotated[int, Meta(description="Place of the group in `collections`, from 0.")]
    minus: Annotated[
        int | None, Meta(description="Place of the group that is subtracted; null for all other people together.")
    ]
    answer: Annotated[Any, Meta(description="The value, or the name of the answer to the question.")]
    difference: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    p_value: float | None
    adjusted_p_value: Annotated[float | None, Meta(description="The p-value after Holm's adjustment.")]


class ComparisonResponse(Struct, frozen=True):
    """Differences between collections. All intervals together contain the true differences at the level."""

    collections: list[str]
    reports: list[int]
    method: str
    confidence: float = msgspec.field(name="level")
    against: str
    question: Annotated[
        dict[str, Any] | None, Meta(description="The question that was answered; null for all frequencies.")
    ]
    rows: list[DifferenceRow]


class WaveResponse(Struct, frozen=True):
    """The estimate of one wave."""

    wave: int
    reports: int
    rows: list[EstimateRow]


class ChangeRow(Struct, frozen=True):
    """The change of one frequency between two waves."""

    value: Any
    change: float | None
    standard_error: float | None
    low: float | None
    high: float | None


class ChangeResponse(Struct, frozen=True):
    """The changes between two waves."""

    first: int
    second: int
    rows: list[ChangeRow]


class WavesResponse(Struct, frozen=True):
    """The estimates of all waves that have reports, and the changes between them."""

    collection: str
    reports: int
    method: str
    confidence: float = msgspec.field(name="level")
    waves: list[WaveResponse]
    changes: Annotated[
        list[ChangeResponse],
        Meta(
            description="Changes from each wave to the next, and from the first to the last. Reports of one person are "
            "not linked, so the standard errors are upper bounds, and the intervals cover at least at the level."
        ),
    ]


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
            description="Maximum probability of one value after the reply, for an observer who knows its block; for a "
            "secret, of one value of the secret. Null for other policies."
        ),
    ]
    across: Annotated[
        float | None,
        Meta(
            description="Maximum probability of one value after the reply, compared with values of other blocks, if "
            "the policy limits it. Null for other policies."
        ),
    ]
    policy: dict[str, Any]


class PlanRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy to plan for, with n people or with a target for the total variation error.

    With a question, the target is a standard error of its answers. With ``truth`` or ``method``, errors are simulated
    for this method of estimation and this distribution of values.
    """

    policy: dict[str, Any]
    n: Number | None = None
    target: Annotated[float, Meta(gt=0)] | None = None
    max_bits: Annotated[int, Meta(ge=1, le=2**20)] | Literal["short"] | None = "short"
    question: StatedQuestion | None = None
    truth: Annotated[
        str | list[float] | None,
        Meta(description="Distribution of values: uniform, zipf, geometric, or one probability per value."),
    ] = None
    method: Annotated[str, Meta(description="Method of estimation that you will use, such as simplex or best.")] = (
        "unbiased"
    )
    levels: Annotated[
        list[str], Meta(max_length=24, description="Levels ε at which the error of the same policy is also predicted.")
    ] = []
    expected: Annotated[
        str | list[float] | None,
        Meta(description="Shares that you expect, in the forms of truth. The response then has a preview."),
    ] = None
    draw: Annotated[int, Meta(ge=0, le=10**6, description="Number of the simulated survey of the preview.")] = 0
    delta: Annotated[
        str | float | None,
        Meta(description="Probability δ of a central level, such as 1e-6. Rows then state it for n shuffled reports."),
    ] = None


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
    tv_error: Annotated[
        float | None,
        Meta(description="Standard error of a simulated total variation error; null if it was not simulated."),
    ]
    central: Annotated[
        float | None,
        Meta(
            description="Certified central level ε of n shuffled reports at delta; null without delta, or if unknown."
        ),
    ]


class LevelRow(Struct, frozen=True):
    """The error of a share at one level, as a root mean square, and that of the best classical mechanism."""

    epsilon: str
    standard_error: float | None
    alike: float | None


class PreviewRow(Struct, frozen=True):
    """An expected share with its standard error, and its estimate with the interval in a simulated survey."""

    value: Any
    expected: float | None
    expected_error: float | None
    frequency: float | None
    standard_error: float | None
    low: float | None
    high: float | None


class Preview(Struct, frozen=True):
    """Simulated results: counts drawn from their law for the expected shares, with 95% intervals."""

    quantile: float
    rows: list[PreviewRow]


class PlanResponse(Struct, frozen=True):
    """Every suitable mechanism, the smallest error first; ``best`` names the recommended one."""

    n: int
    best: str
    why: str
    rows: list[PlanRow]
    guess: Guess
    chance: Chance
    part: PartOdds
    one_percent: Annotated[
        float | None,
        Meta(description="Number of people that the best mechanism needs for a total variation error of 1%, if known."),
    ]
    warnings: Annotated[
        list[str],
        Meta(description="Values that a report may reveal, and which values can be expected to differ from zero."),
    ]
    levels: Annotated[list[LevelRow], Meta(description="Error at each level of the request that was planned in time.")]
    preview: Preview | None
