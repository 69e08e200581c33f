"""The result of an audit: an exact statement about a mechanism and a policy that anyone can check again."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

from sfumato._core import (
    Epsilon,
    Result,
    canonical_hash,
    check_keys,
    label_document,
    plot_result,
    read_label,
    reads_document,
)
from sfumato.errors import InvalidInput, PolicyViolated, Undecided
from sfumato.policy import TightestConstraint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Certificate", "Coverage"]

_FORMAT = "sfumato-certificate"
_VERSION = 1
#: The keys of a certificate, and those of its worst inequality.
_KEYS = (
    "format", "version", "holds", "worst", "output", "fault", "evidence", "read",
    "mechanism_hash", "policy_hash", "mechanism", "policy", "information",
)  # fmt: skip
_WORST = ("violated", "excess", "left", "right", "epsilon", "names")

#: How much of the sampler an audit executed, from most to least: every branch of every value; some values; only an
#: instance of the same class over fewer values; nothing.
Coverage = Literal["all", "some", "surrogate", "none"]
_COVERAGES: tuple[Coverage, ...] = get_args(Coverage)
#: The same in a file, under the key "read".
_FILE_WORDS: dict[Coverage, str] = {"all": "all", "some": "some", "surrogate": "smaller", "none": "none"}


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """The result of an audit: an exact statement about a mechanism and a policy.

    ``holds``: every column of the mechanism's law lies in the policy's cone, and the sampler showed no fault.
    ``worst``: the inequality that comes closest to breaking, or breaks the most, in exact rationals (likelihoods
    up to a factor common to the output). ``output``: the serialised report where that happens, in hex.
    ``evidence``: which law was compared, and how much of it was read from the sampler itself. ``coverage``: the same in
    one word: "all" values, on every branch; "some" of them, the others being as stated; "surrogate", only a sampler of
    the same class over fewer values; "none". None in a certificate that does not state it.
    ``information``: for a prior policy, the mutual information in nats between a value drawn from the prior and its
    report, where the whole law was read; ``information_bound``: the most that any mechanism under that policy tells.
    """

    holds: bool
    worst: TightestConstraint
    output: str | None
    fault: str | None
    evidence: str
    mechanism: dict[str, Any]
    policy: dict[str, Any]
    coverage: Coverage | None = None
    #: Doubles for people to read: two findings are the same whatever their last digits.
    information: float | None = field(default=None, compare=False)
    information_bound: float | None = field(default=None, compare=False)

    @property
    def mechanism_hash(self) -> str:
        """The hash of the mechanism that was audited."""
        return canonical_hash(self.mechanism)

    @property
    def policy_hash(self) -> str:
        """The hash of the policy that it was audited against."""
        return canonical_hash(self.policy)

    def __hash__(self) -> int:
        return hash((self.holds, self.output, self.mechanism_hash, self.policy_hash))

    def raise_if_violated(self, *, coverage: Coverage = "none") -> Certificate:
        """Return this certificate, or raise PolicyViolated with the reason.

        ``coverage`` is how much of the sampler must have been read at least; Undecided where it was less.
        """
        if coverage not in _COVERAGES:
            raise InvalidInput("raise_if_violated", "coverage", f"be one of {', '.join(_COVERAGES)}", coverage)
        if not self.holds:
            raise PolicyViolated(self.summary())
        if _COVERAGES.index(self.coverage or "none") > _COVERAGES.index(coverage):
            must = f"but the coverage had to be {coverage!r}, and it is {self.coverage!r}"
            raise Undecided(f"{self.summary()}; {must} [{self.evidence}]")
        return self

    def summary(self) -> str:
        """One sentence for a person."""
        name, kind = self.mechanism["mechanism"], self.policy["policy"]["kind"]
        if self.fault:
            return f"{name} does not obey the {kind} policy: {self.fault}"
        verb = "obeys" if self.holds else "does not obey"
        where = "" if self.output is None else f", at output {_cut(self.output)}"
        return f"{name} {verb} the {kind} policy: {self.worst}{where}"

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        information = ""
        if self.information is not None and self.information_bound is not None:
            nats, most = f"{self.information:.6g}", f"{self.information_bound:.6g}"
            information = f"; {nats} nats are revealed at the prior, of {most} allowed"
        return f"{self.summary()}{information} [{self.evidence}]"

    def __repr__(self) -> str:
        return f"<Certificate: {self.summary()}>"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        names = self.worst.names or (None, None)
        return {
            "mechanism": [self.mechanism["mechanism"]],
            "policy": [self.policy["policy"]["kind"]],
            "holds": [self.holds],
            "epsilon": [float(self.worst.epsilon)],
            "excess": [self.worst.excess],
            "left": [names[0]],
            "right": [names[1]],
            "output": [self.output],
            "fault": [self.fault],
            "coverage": [self.coverage],
            "evidence": [self.evidence],
        }

    def plot(self) -> Figure:
        """Draw the epsilon that is allowed and the one that was found; needs matplotlib."""
        figure: Figure = plot_result(self)
        return figure

    def _title(self) -> str:
        return self.summary()

    def verify(self) -> Certificate:
        """Repeat the audit from the certificate's content; return it, or raise if it says something else.

        The same as :func:`verify`.
        """
        from sfumato.auditing.audits import verify

        return verify(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as the document that ``to_json`` writes; ``from_dict`` returns an equal one."""
        return copy.deepcopy(self._document())

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "holds": self.holds,
            "worst": {
                "violated": self.worst.violated,
                "excess": str(self.worst.excess),
                "left": str(self.worst.left),
                "right": str(self.worst.right),
                "epsilon": str(self.worst.epsilon),
                "names": None if self.worst.names is None else [label_document(name) for name in self.worst.names],
            },
            "output": self.output,
            "fault": self.fault,
            "evidence": self.evidence,
            **({} if self.coverage is None else {"read": _FILE_WORDS[self.coverage]}),
            "mechanism_hash": self.mechanism_hash,
            "policy_hash": self.policy_hash,
            "mechanism": self.mechanism,
            "policy": self.policy,
        }
        if self.information_bound is not None:
            document["information"] = {"nats": self.information, "bound": self.information_bound}
        return document

    def to_json(self) -> str:
        """Return the certificate as a file: it holds the whole mechanism and the whole policy."""
        return json.dumps(self._document(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate; reject unknown and repeated keys. It is only as good as ``verify`` makes it."""
        try:
            document = json.loads(text, object_pairs_hook=_once_each)
        except InvalidInput:
            raise
        except (RecursionError, TypeError, ValueError) as error:
            raise InvalidInput("a certificate", "the text", "be a complete JSON certificate", repr(error)) from None
        return cls.from_dict(document)

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Certificate:
        """Return the certificate that a document holds: the inverse of ``to_dict``. Reject unknown keys."""
        try:
            if (document["format"], document["version"]) != (_FORMAT, _VERSION):
                raise InvalidInput(
                    "a certificate", "format and version", f"be {_FORMAT} {_VERSION}", document["format"]
                )
            check_keys("a certificate", "the document", document, optional=_KEYS)
            worst = check_keys("a certificate", "worst", document["worst"], optional=_WORST)
            names = None if worst["names"] is None else (read_label(worst["names"][0]), read_label(worst["names"][1]))
            certificate = cls(
                holds=_flag(document, "holds"),
                worst=TightestConstraint(
                    _flag(worst, "violated"), float(worst["excess"]), Fraction(worst["left"]), Fraction(worst["right"]),
                    Epsilon(worst["epsilon"]), names,
                ),
                output=_text(document, "output"),
                fault=_text(document, "fault"),
                evidence=_text(document, "evidence") or "",
                mechanism=copy.deepcopy(document["mechanism"]),
                policy=copy.deepcopy(document["policy"]),
                coverage=_coverage(document),
                information=_nats(document, "nats"),
                information_bound=_nats(document, "bound"),
            )  # fmt: skip
            hashes = {"mechanism": certificate.mechanism_hash, "policy": certificate.policy_hash}
        except InvalidInput:
            raise
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInput("a certificate", "the text", "be a complete JSON certificate", repr(error)) from None
        for part, actual in hashes.items():
            stated = document.get(f"{part}_hash")
            if stated != actual:
                raise InvalidInput("a certificate", f"{part}_hash", f"be {actual}, the hash of its {part}", stated)
        return certificate


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; reject a key that occurs twice, because readers differ in which they believe."""
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput("a certificate", "the document", "have every key once", twice)
    return document


def _flag(document: Mapping[str, Any], key: str) -> bool:
    if not isinstance(document[key], bool):
        raise InvalidInput("a certificate", key, "be true or false", document[key])
    return bool(document[key])


def _text(document: Mapping[str, Any], key: str) -> str | None:
    text = document[key]
    if text is not None and not isinstance(text, str):
        raise InvalidInput("a certificate", key, "be a text", text)
    return text


def _coverage(document: Mapping[str, Any]) -> Coverage | None:
    if "read" not in document:  # certificates of the first release do not state it
        return None
    for coverage, word in _FILE_WORDS.items():
        if document["read"] == word:
            return coverage
    raise InvalidInput("a certificate", "read", f"be one of {', '.join(_FILE_WORDS.values())}", document["read"])


def _nats(document: Mapping[str, Any], part: str) -> float | None:
    # Absent for other policies, and in certificates from before it was stated.
    if "information" not in document:
        return None
    stated = document["information"][part]
    check_keys("a certificate", "information", document["information"], optional=("nats", "bound"))
    if stated is None and part == "nats":  # of a long law none is stated, but the bound always is
        return None
    if isinstance(stated, bool) or not isinstance(stated, (int, float)):
        raise TypeError(f"{part} must be a number, not {stated!r}")
    return float(stated)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
