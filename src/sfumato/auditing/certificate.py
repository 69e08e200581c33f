"""The result of an audit: an exact statement about a mechanism and a policy that anyone can verify."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from sfumato._core import (
    Epsilon,
    Result,
    canonical_hash,
    check_keys,
    check_kind,
    different_keys,
    exact_fraction,
    label_document,
    plot_result,
    read_label,
    reads_document,
)
from sfumato.errors import Description, InvalidInput, PolicyViolated, Undecided
from sfumato.policy import TightestConstraint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Certificate", "Coverage"]

_FORMAT = "sfumato-certificate"
_VERSION = 1
#: Keys of a certificate; then the keys of its worst constraint.
_KEYS = (
    "format", "version", "holds", "worst", "output", "fault", "evidence", "read",
    "mechanism_hash", "policy_hash", "mechanism", "policy", "information", "wording_hash",
)  # fmt: skip
_WORST = ("violated", "excess", "left", "right", "epsilon", "names")
_HASH = re.compile(r"[0-9a-f]{64}")

#: How much of the sampler an audit read, from most to least: every branch of every value; some values; only an instance
#: of the same class over fewer values; nothing.
Coverage = Literal["all", "some", "surrogate", "none"]
_COVERAGES: tuple[Coverage, ...] = get_args(Coverage)
#: The words for coverage in a file, under the key "read".
_FILE_WORDS: dict[Coverage, str] = {"all": "all", "some": "some", "surrogate": "smaller", "none": "none"}


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """Exact statement that a mechanism obeys a policy, or where it violates the policy; the result of :func:`audit`.

    A certificate is true if the mechanism obeys the policy: ``if certificate: ...``.

    Parameters
    ----------
    holds
        Whether the mechanism obeys the policy: every output satisfies every rule, and the sampler has no fault.
    worst
        The rule that is violated most, or closest to being violated, in exact rationals. Its two sides are known up to
        a common factor.
    output
        Serialized report at which the worst rule occurs, in hexadecimal digits; None if no rule applies.
    fault
        Fault of the sampler in words, or None.
    evidence
        Which output distribution was compared with the policy, and how much of it was read from the sampler, in words.
    mechanism
        The mechanism as a JSON-compatible dict, from which it can be built again.
    policy
        The policy as a JSON-compatible dict, from :meth:`Policy.to_dict`.
    coverage
        How much of the sampler the audit read:

        - ``"all"``: every branch of every value;
        - ``"some"``: every branch of some values; for the others, the audit used the output probabilities that the
          mechanism states;
        - ``"surrogate"``: only a smaller instance of the same class, over fewer values;
        - ``"none"``: nothing.
    information
        Mutual information in nats between a value drawn from the prior and its report. None unless the policy is a
        :class:`Prior` policy and the audit read the sampler for every value.
    information_bound
        Upper bound on the mutual information of every mechanism that obeys the policy, in nats; None unless the policy
        is a :class:`Prior` policy.
    wording_hash
        SHA-256 of the question as people were asked, in hexadecimal, if a collector serves the certificate; otherwise
        None. An audit does not read the question, so :func:`verify` does not check this hash.

    See Also
    --------
    audit : Audit a mechanism.
    verify : Check a certificate.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> certificate = sf.audit(sf.mechanisms.RandomizedResponse(domain, 1), sf.Uniform(domain, 1))
    >>> certificate.holds, certificate.coverage
    (True, 'all')
    >>> certificate.worst.names
    ('no', 'yes')
    """

    holds: bool
    worst: TightestConstraint
    output: str | None
    fault: str | None
    evidence: str
    mechanism: dict[str, Any]
    policy: dict[str, Any]
    coverage: Coverage
    # Doubles for people to read; certificates that differ only in their last digits are equal.
    information: float | None = field(default=None, compare=False)
    information_bound: float | None = field(default=None, compare=False)
    wording_hash: str | None = field(default=None, compare=False)

    @property
    def mechanism_hash(self) -> str:
        """SHA-256 of the canonical JSON of the audited mechanism, in hexadecimal."""
        return canonical_hash(self.mechanism)

    @property
    def policy_hash(self) -> str:
        """SHA-256 of the canonical JSON of the policy that the mechanism was audited against, in hexadecimal."""
        return canonical_hash(self.policy)

    def __hash__(self) -> int:
        return hash((self.holds, self.output, self.mechanism_hash, self.policy_hash))

    def raise_if_violated(self, *, coverage: Coverage = "none") -> Certificate:
        """Return this certificate if the mechanism obeys the policy, and raise otherwise.

        Parameters
        ----------
        coverage
            How much of the sampler the audit must have read, at least: ``"all"``, ``"some"``, ``"surrogate"`` or
            ``"none"``, from most to least. See :class:`Certificate`.

        Returns
        -------
        Certificate
            This certificate.

        Raises
        ------
        PolicyViolated
            If the mechanism does not obey the policy. The message states the pair of values and the output.
        Undecided
            If less of the sampler was read than ``coverage`` requires.
        InvalidInput
            If ``coverage`` is not one of the four words.
        """
        if coverage not in _COVERAGES:
            raise InvalidInput("raise_if_violated", "coverage", f"be one of {', '.join(_COVERAGES)}", coverage)
        if not self.holds:
            raise PolicyViolated(
                f"{self.summary()}. Do not use this mechanism; design(policy) returns one that obeys the policy."
            )
        if _COVERAGES.index(self.coverage) > _COVERAGES.index(coverage):
            raise Undecided(
                f"{self.summary()}; but the audit read too little of the sampler: coverage is {self.coverage!r}, and "
                f"{coverage!r} is required [{self.evidence}]. Define audit_surrogate() in the class of the mechanism, "
                "or audit a smaller domain."
            )
        return self

    def summary(self) -> str:
        """Return the result in words, such as "randomized-response obeys the uniform policy: …".

        Returns
        -------
        str
            One sentence with the mechanism, the policy and the rule that is closest to being violated.
        """
        name, kind = self.mechanism["mechanism"], self.policy["policy"]["kind"]
        if self.fault:
            return f"{name} does not obey the {kind} policy: {self.fault}"
        verdict = f"{name} {'obeys' if self.holds else 'does not obey'} the {kind} policy"
        if self.worst.names is None:
            return f"{verdict}, which constrains nothing"
        first, second = self.worst.names
        where = "" if self.output is None else f" at output {_cut(self.output)}"
        if self.worst.right == 0:
            ratio = "the likelihood ratio is infinite"
        else:
            ratio = f"the likelihood ratio is e^{self.worst.excess + float(self.worst.epsilon):.6g}"
        limit = f"{'above' if self.worst.violated else 'within'} the limit e^{self.worst.epsilon}"
        return f"{verdict}: for {first!r} against {second!r}{where}, {ratio}, {limit} (excess {self.worst.excess:.3g})"

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        information = ""
        if self.information is not None and self.information_bound is not None:
            nats, most = f"{self.information:.6g}", f"{self.information_bound:.6g}"
            information = f"; a report reveals {nats} nats at the prior, and the policy allows at most {most}"
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
        """Draw the epsilon that the policy allows and the largest one that the audit found.

        Requires matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        figure: Figure = plot_result(self)
        return figure

    def _title(self) -> str:
        return self.summary()

    def verify(self) -> Certificate:
        """Repeat the audit, and check that it has the result that this certificate states.

        ``certificate.verify()`` is the same as ``sfumato.verify(certificate)``.

        Returns
        -------
        Certificate
            The certificate of the repeated audit.

        Raises
        ------
        InvalidInput
            If the repeated audit has another result.
        """
        from sfumato.auditing.audits import verify

        return verify(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as a JSON-compatible dict, with the whole mechanism and the whole policy.

        Returns
        -------
        dict
            The dict that :meth:`from_dict` reads.
        """
        return copy.deepcopy(self._document())

    def _document(self) -> dict[str, Any]:
        """Return the document, which shares its parts with the certificate."""
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
            "read": _FILE_WORDS[self.coverage],
            "mechanism_hash": self.mechanism_hash,
            "policy_hash": self.policy_hash,
            "mechanism": self.mechanism,
            "policy": self.policy,
        }
        if self.information_bound is not None:
            document["information"] = {"nats": self.information, "bound": self.information_bound}
        if self.wording_hash is not None:
            document["wording_hash"] = self.wording_hash
        return document

    def to_json(self) -> str:
        """Return the certificate as a JSON string, with the whole mechanism and the whole policy.

        Returns
        -------
        str
            The JSON string that :meth:`from_json` reads.
        """
        return json.dumps(self._document(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate from a JSON string.

        This method does not check that the certificate is true. Call :meth:`verify` before you trust it.

        Parameters
        ----------
        text
            JSON string that :meth:`to_json` returned.

        Returns
        -------
        Certificate
            The certificate that was serialized.

        Raises
        ------
        InvalidInput
            If a key is missing, unknown or repeated, a hash does not match, or a part is not written as :meth:`to_json`
            writes it.
        """
        try:
            document = json.loads(text, object_pairs_hook=_once_each)
        except InvalidInput:
            raise
        except (RecursionError, TypeError, ValueError) as error:
            must, got = "be a complete JSON certificate", Description(f"the error {type(error).__name__}: {error}")
            raise InvalidInput("a certificate", "the document", must, got, hint=_COMPLETE) from None
        return cls.from_dict(document)

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Certificate:
        """Return the certificate that :meth:`to_dict` serialized.

        This method does not check that the certificate is true. Call :meth:`verify` before you trust it.

        Parameters
        ----------
        document
            Dict that :meth:`to_dict` returned.

        Returns
        -------
        Certificate
            The certificate that was serialized.

        Raises
        ------
        InvalidInput
            If a key is missing or unknown, a hash does not match, or a part is not written as :meth:`to_dict` writes
            it.
        """
        check_kind("a certificate", "a certificate", document)
        try:
            if (document["format"], document["version"]) != (_FORMAT, _VERSION):
                got = Description(f"{document['format']!r} and {document['version']!r}")
                hint = "Read it with the release of Sfumato that wrote it."
                must = f"be {_FORMAT!r} and {_VERSION!r}"
                raise InvalidInput("a certificate", '"format" and "version"', must, got, hint=hint)
            check_keys("a certificate", "the document", document, optional=_KEYS)
            worst = check_keys("a certificate", "worst", document["worst"], optional=_WORST)
            names = None if worst["names"] is None else (read_label(worst["names"][0]), read_label(worst["names"][1]))
            certificate = cls(
                holds=_flag(document, "holds"),
                worst=TightestConstraint(
                    _flag(worst, "violated"), float(worst["excess"]), exact_fraction(worst["left"]),
                    exact_fraction(worst["right"]), Epsilon(worst["epsilon"]), names,
                ),
                output=_text(document, "output"),
                fault=_text(document, "fault"),
                evidence=_text(document, "evidence") or "",
                mechanism=copy.deepcopy(document["mechanism"]),
                policy=copy.deepcopy(document["policy"]),
                coverage=_coverage(document),
                information=_nats(document, "nats"),
                information_bound=_nats(document, "bound"),
                wording_hash=_wording_hash(document),
            )  # fmt: skip
            hashes = {"mechanism": certificate.mechanism_hash, "policy": certificate.policy_hash}
            restated = different_keys(certificate._document(), document)
        except InvalidInput:
            raise
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            must, got = "be a complete JSON certificate", Description(f"the error {type(error).__name__}: {error}")
            raise InvalidInput("a certificate", "the document", must, got, hint=_COMPLETE) from None
        for part, actual in hashes.items():
            stated = document.get(f"{part}_hash")
            if stated != actual:
                must, hint = f"be {actual}, the hash of its {part}", "The certificate was changed; do not trust it."
                raise InvalidInput("a certificate", f"{part}_hash", must, stated, hint=hint)
        if restated:
            must, got = (
                "be as Certificate.to_dict writes it",
                Description("another notation, or more than it states"),
            )
            raise InvalidInput("a certificate", ", ".join(restated), must, got, hint=_COMPLETE)
        return certificate


#: Next step for a reader of a damaged certificate.
_COMPLETE = "Read what Certificate.to_json or Certificate.to_dict returned, unchanged."


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, and reject repeated keys, because readers differ in which one they use."""
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput(
            "a certificate", "the document", "have every key once", Description(f"the key {twice!r} twice")
        )
    return document


def _flag(document: Mapping[str, Any], key: str) -> bool:
    """Read a boolean."""
    if not isinstance(document[key], bool):
        raise InvalidInput("a certificate", key, "be true or false", document[key])
    return bool(document[key])


def _text(document: Mapping[str, Any], key: str) -> str | None:
    """Read a string or null."""
    string = document[key]
    if string is not None and not isinstance(string, str):
        raise InvalidInput("a certificate", key, "be a string or null", string)
    return string


def _coverage(document: Mapping[str, Any]) -> Coverage:
    """Read the coverage."""
    for coverage, word in _FILE_WORDS.items():
        if document["read"] == word:
            return coverage
    raise InvalidInput("a certificate", "read", f"be one of {', '.join(_FILE_WORDS.values())}", document["read"])


def _nats(document: Mapping[str, Any], part: str) -> float | None:
    """Read a number of nats, or None."""
    # Absent for policies that are not about a prior.
    if "information" not in document:
        return None
    stated = document["information"][part]
    check_keys("a certificate", "information", document["information"], optional=("nats", "bound"))
    if stated is None and part == "nats":  # a certificate of a long law states only the bound
        return None
    if isinstance(stated, bool) or not isinstance(stated, (int, float)):
        raise TypeError(f"{part} must be a number, not {stated!r}")
    return float(stated)


def _wording_hash(document: Mapping[str, Any]) -> str | None:
    """Read the hash of the wording, or None."""
    stated = document.get("wording_hash")
    if "wording_hash" in document and not (isinstance(stated, str) and _HASH.fullmatch(stated)):
        raise InvalidInput("a certificate", "wording_hash", "have 64 hexadecimal digits", stated)
    return stated


def _cut(digits: str) -> str:
    """Shorten a long string."""
    return digits if len(digits) <= 40 else f"{digits[:39]}…"
