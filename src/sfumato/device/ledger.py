"""What one person has spent over repeated collections, kept on their own device.

A ledger lists releases: which collection asked, under which policy. Together they are a policy again, by the rule of
its family (``Policy.compose``), and a *budget* is a policy too: a release is allowed iff what was spent, composed with
it, implies the budget. That is decided exactly, and before anything is drawn.

Releases about different domains are different questions. Each is counted for itself; ``total`` adds up their worst-case
levels, for correlated attributes compose too. Two questions over one and the same domain count as one: safe, but dear.

**The same value answers with the same report**, which is kept and costs nothing again. Three things follow. The report
is a pseudonym: it links its sender within the collection. Someone who sees all reports of one person sees *when* the
value changed, whatever the budget. And the ledger has to be saved before a report is sent: a report that was sent
and forgotten was a release that nobody counts.

**Nothing is spent twice.** Threads may share a ledger. Processes share its file: ``Ledger.open`` lets one after the
other answer, and ``save`` refuses a file with releases that this ledger does not know.

**The file is as sensitive as the values.** A value is kept as its HMAC-SHA256, under a random key that lies in the same
file. This keeps values out of sight (and makes equal values of different collections or ledgers look different); it
stops nobody who has the file, since trying each value of the domain is quick. A password would have to live on the same
device. So the file is made readable by its owner alone, and should be kept where the values themselves would be.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import hmac
import json
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, check_keys, locked, replacing
from sfumato.auditing import Certificate, audit, required_coverage
from sfumato.device.privatization import privatize
from sfumato.domain import Domain, checked_domain
from sfumato.errors import (
    BudgetExceeded,
    CannotCompose,
    InvalidInput,
    LimitExceeded,
    NoAnswer,
    Undecided,
    UnknownSpec,
    ValueChanged,
    file_error,
)
from sfumato.mechanisms import Mechanism, is_library_mechanism
from sfumato.policy import (
    Anything,
    PairwisePolicy,
    Policy,
    Prior,
    Secret,
    Uniform,
    implies,
    log_rounded_up,
    policy_from_dict,
    representatives,
)
from sfumato.randomness import Stream, secure

__all__ = ["Cost", "Ledger", "Release"]

_VERSION = 1
_KEY_BYTES = 32


@dataclass(frozen=True)
class Release:
    """One release: who asked, under which policy, and what was answered.

    ``classical`` is the ε of classical LDP that the mechanism keeps, where it keeps one. ``value`` is the keyed digest
    of the value and ``report`` the serialised report; both are None for what was charged without an answer.
    ``hiding`` is the ε at which the mechanism hides the secret of the policy whatever the distribution; it is proved by
    an audit where the policy itself knows a distribution, and None elsewhere and where there is no such ε. It is also
    None in ledgers of versions that did not record it; ``Ledger.prove`` adds it.
    """

    collection: str
    mechanism: str
    classical: Epsilon | None
    policy: Policy
    value: str | None = None
    report: bytes | None = None
    hiding: Epsilon | None = None

    @property
    def worst_case(self) -> Epsilon:
        """The least ε at which this release is known to keep classical LDP, whatever anybody knows."""
        charged = self.against_anything
        return INFINITE if charged is None else _greatest_epsilon(charged)

    @property
    def against_anything(self) -> Policy | None:
        """What is charged where the policy itself does not compose."""
        stated = _greatest_epsilon(self.policy)
        classical = stated if self.classical is None else min(self.classical, stated)
        if not classical.is_infinite:
            return Uniform(self.policy.domain, classical)
        if self.hiding is None:
            return None
        assert isinstance(self.policy, Secret)
        return Secret(self.policy.domain, self.policy.secret, self.hiding, Anything())


@dataclass(frozen=True)
class Cost:
    """What an answer would cost: ``added`` (None if it is free), and ``total``, what would then be spent.

    ``allowed``: it lies within the budget. ``words`` say all this to a person.
    """

    added: Policy | None
    total: Policy
    allowed: bool
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class _Account:
    """A true statement about all releases of one question: ``parts``, one per release, compose to ``total``."""

    parts: list[Policy]
    total: Policy
    within: bool


class Ledger:
    """What one person has spent, question by question.

    ``budget`` is the most that may be spent: a policy, or several, one per question. Without any, everything is
    counted and nothing refused; with one, a question that it does not speak of is refused.

    >>> from sfumato.mechanisms import RandomizedResponse
    >>> domain = Domain(["yes", "no"])
    >>> ledger = Ledger(budget=Uniform(domain, 1))
    >>> ledger.charge("first", RandomizedResponse(domain, "0.7"), Uniform(domain, "0.7"))
    >>> ledger.remaining(domain)
    Epsilon('0.3')
    """

    def __init__(self, budget: Policy | Iterable[Policy] | None = None) -> None:
        self._budgets = _read_budgets(budget)
        self._releases: list[Release] = []
        self._key = secure.read(_KEY_BYTES)
        self._one_at_a_time = threading.RLock()  # what was checked against the budget is charged before the next is

    # -- what was spent ----------------------------------------------------------------------------------

    @property
    def budget(self) -> tuple[Policy, ...]:
        """The budget: at most one policy per question."""
        return tuple(self._budgets.values())

    @property
    def releases(self) -> tuple[Release, ...]:
        """Every release, the oldest first."""
        return tuple(self._releases)

    def spent(self, domain: Domain) -> Policy | None:
        """What all releases about this question hold an observer to, together; None if there were none.

        As Policy.compose has it: levels on pairs add, n releases under one prior take their sum and all but the
        greatest once more. What does not compose (a secret under a known distribution; a prior beside another
        policy) is counted at the ε of classical LDP that it keeps, and so is what only then lies within the budget. A
        secret whose mechanism keeps none is counted at the ε that an audit proves whatever the distribution.
        """
        releases = self._about(checked_domain("Ledger.spent", domain))
        return self._account(domain, releases).total if releases else None

    @property
    def total(self) -> Epsilon:
        """The worst-case level of all questions together: the sum of theirs.

        Whoever knows how answers depend on each other learns from one about the other, so levels add across questions.
        Infinite where a policy allows some values to be told apart and the mechanism is not known to prevent it.
        """
        return sum((self._worst_case(domain) for domain in self._questions()), ZERO)

    def remaining(self, domain: Domain) -> Epsilon | None:
        """The greatest ε of classical LDP that one more release may have; None where nothing limits it.

        Known for budgets and spendings on pairs of values; else Undecided: ask ``allows`` about a release.
        """
        budget = self._budgets.get(checked_domain("Ledger.remaining", domain))
        if budget is None:
            return ZERO if self._budgets else None
        limit = _on_pairs(budget)
        releases = self._about(domain)
        totals = [total for _, total in _totals(releases)] if releases else [Uniform(domain, ZERO)]
        used = [pairs for pairs in map(_on_pairs, totals) if pairs is not None]
        if limit is None or not used:
            raise Undecided(
                f"what remains of a {budget.kind} budget after these releases is no single level; ask allows()"
            )
        left = max(_room(limit, pairs) for pairs in used)
        return None if left.is_infinite else left

    # -- charging ----------------------------------------------------------------------------------------

    def allows(self, collection: str, mechanism: Mechanism, policy: Policy) -> bool:
        """Whether ``charge`` would accept this release. Exact; what cannot be decided or composed is not allowed.

        A mechanism that breaks the policy is no release of it: PolicyViolated.
        """
        try:
            return self._with(self._new(collection, mechanism, policy)).within
        except CannotCompose:
            return False

    def charge(self, collection: str, mechanism: Mechanism, policy: Policy) -> None:
        """Count a release, or refuse it: BudgetExceeded, CannotCompose, or PolicyViolated by the mechanism."""
        release = self._new(collection, mechanism, policy)
        with self._one_at_a_time:
            self._check_budget(release)
            self._releases.append(release)

    def answer(
        self,
        collection: str,
        mechanism: Mechanism,
        policy: Policy,
        value: object,
        *,
        allow_change: bool = False,
        stream: Stream | None = None,
    ) -> npt.NDArray[Any]:
        """The report of one value, as ``privatize`` gives it: an array with one row.

        A value that this collection was answered before has its stored report again, free of charge. Another value is
        refused (ValueChanged) unless ``allow_change``; it is then a new release and is charged. All is checked before
        anything is drawn, and the report stands in the ledger when this returns: **save it before sending**.
        ``stream`` is for tests only.
        """
        with self._one_at_a_time:
            release, known = self._request(collection, mechanism, policy, value)
            if known is not None:
                return _restored(mechanism, known)
            if self._answered(collection) and not allow_change:
                raise ValueChanged(
                    f"collection {collection!r} was answered with another value; cost_of_change() says what a second "
                    "answer costs, allow_change=True gives it"
                )
            self._check_budget(release)
            reports: npt.NDArray[Any] = privatize(mechanism, [value], stream)
            report = (
                reports[0].tobytes()
                if mechanism.report_format.shape
                else mechanism.report_format.encode(int(reports[0]))
            )
            self._releases.append(dataclasses.replace(release, report=report))
            return reports

    def cost_of_change(self, collection: str, mechanism: Mechanism, policy: Policy, value: object) -> Cost:
        """What answering with this value would cost now, as a policy and in words. Nothing is drawn or charged."""
        release, known = self._request(collection, mechanism, policy, value)
        if known is None:
            return self._cost(release)
        total = self._account(policy.domain, self._about(policy.domain)).total
        return Cost(None, total, True, "costs nothing: this value was answered, and its report is given again")

    def prove(self, collection: str, mechanism: Mechanism) -> Epsilon:
        """Prove the level at which the earlier releases of a collection hide their secret from anybody, and record it.

        Use this for a ledger of a version that recorded no such level: its secrets under a known distribution do not
        compose without one, so that a second release about the question raises CannotCompose. Releases that ``charge``
        and ``answer`` count now have theirs.

        Parameters
        ----------
        collection
            The collection whose releases are charged at the level.
        mechanism
            The mechanism that gave them: the same spec, and run by the same class. The ledger holds the hash of its
            spec, which a class from elsewhere with another sampler may share, so it cannot complete itself.

        Returns
        -------
        Epsilon
            The level that an audit of the mechanism proves, whatever the distribution.

        Raises
        ------
        InvalidInput
            If the collection has no release of this mechanism under a secret that does not compose.
        CannotCompose
            If no level is proved, because some report of the mechanism rules out a secret.
        """
        with self._one_at_a_time:
            proved: dict[int, Epsilon] = {}
            for number, release in enumerate(self._releases):
                if (release.collection, release.mechanism) == (collection, mechanism.hash) and _needs_proof(release):
                    epsilon = _hiding_epsilon(mechanism, release.policy)
                    if epsilon is None:
                        raise CannotCompose(
                            f"no epsilon is proved at which {mechanism.name!r} hides the secret of collection "
                            f"{collection!r} whatever the distribution: some report of it may rule out a secret"
                        )
                    proved[number] = epsilon
            if not proved:
                must = f"have answered collection {collection!r}, under a secret whose level is not recorded"
                raise InvalidInput("Ledger.prove", "mechanism", must, mechanism.name)
            for number, epsilon in proved.items():
                self._releases[number] = dataclasses.replace(self._releases[number], hiding=epsilon)
            return max(proved.values())

    # -- inside ------------------------------------------------------------------------------------------

    def _questions(self) -> list[Domain]:
        return list(dict.fromkeys(release.policy.domain for release in self._releases))

    def _about(self, domain: Domain) -> list[Release]:
        return [release for release in self._releases if release.policy.domain == domain]

    def _answered(self, collection: str) -> list[Release]:
        return [r for r in self._releases if r.collection == collection and r.report is not None]

    def _new(self, collection: str, mechanism: Mechanism, policy: Policy) -> Release:
        _check_name("Ledger", "collection", collection)
        if mechanism.domain != policy.domain:
            raise InvalidInput("Ledger", "policy", "have the mechanism's domain", policy.domain)
        _check_obeys(mechanism, policy)
        classical = _classical_epsilon(mechanism)
        hiding = _hiding_epsilon(mechanism, policy) if classical is None else None
        return Release(collection, mechanism.hash, classical, policy, hiding=hiding)

    def _request(
        self, collection: str, mechanism: Mechanism, policy: Policy, value: object
    ) -> tuple[Release, bytes | None]:
        """The release that this answer would be, and the report it already has."""
        index = mechanism.domain.encode_one(value)
        for earlier in self._answered(collection):
            if (earlier.mechanism, earlier.policy) != (mechanism.hash, policy):
                must = f"be those of collection {collection!r}, which was answered; another one needs another name"
                raise InvalidInput("Ledger", "mechanism and policy", must, mechanism.name)
        message = json.dumps([collection, mechanism.hash, index]).encode()
        digest = hmac.new(self._key, message, hashlib.sha256).hexdigest()
        for earlier in self._answered(collection):
            if earlier.value == digest:
                return earlier, earlier.report
        return dataclasses.replace(self._new(collection, mechanism, policy), value=digest), None

    def _with(self, release: Release) -> _Account:
        return self._account(release.policy.domain, [*self._about(release.policy.domain), release], added=release)

    def _account(self, domain: Domain, releases: list[Release], *, added: Release | None = None) -> _Account:
        """The first true account that lies within the budget, else the first that composes."""
        budget = self._budgets.get(domain)
        account: _Account | None = None
        for parts, total in _totals(releases):
            within = not self._budgets if budget is None else _certainly_implies(total, budget)
            if account is None or within:
                account = _Account(parts, total, within)
            if within:
                break
        if account is None:
            raise CannotCompose(_why_unbounded(releases, added))
        return account

    def _check_budget(self, release: Release) -> None:
        account = self._with(release)
        if not account.within:
            budget = self._budgets.get(release.policy.domain)
            limit = "what the budget speaks of" if budget is None else f"the budget, {_summary(budget)}"
            total = _summary(account.total)
            raise BudgetExceeded(
                f"collection {release.collection!r}: what is spent would become {total}, beyond {limit}"
            )

    def _cost(self, release: Release) -> Cost:
        account = self._with(release)
        added = account.parts[-1]
        words = f"costs {_summary(added)}: what is spent would become {_summary(account.total)}"
        if not account.within:
            words += ", beyond the budget"
        return Cost(added, account.total, account.within, words)

    def _worst_case(self, domain: Domain) -> Epsilon:
        releases = self._about(domain)
        one_by_one = sum((release.worst_case for release in releases), ZERO)
        return min(one_by_one, _greatest_epsilon(self._account(domain, releases).total))

    # -- documents ---------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The whole ledger as a JSON text, its key included."""
        document = {
            "ledger": _VERSION,
            "key": self._key.hex(),
            "budget": [policy.to_dict() for policy in self._budgets.values()],
            "releases": [_release_document(release) for release in self._releases],
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """The ledger that ``to_json`` wrote; anything missing, unknown or misshapen is refused."""
        try:
            parsed = json.loads(text)
        except ValueError as error:
            raise InvalidInput("a ledger", "the text", "be JSON", str(error)) from None
        if isinstance(parsed, dict) and parsed.get("ledger", _VERSION) != _VERSION:
            raise UnknownSpec("a ledger", "its version", f"be {_VERSION}", parsed["ledger"])
        document = check_keys("a ledger", "the document", parsed, required=("ledger", "key", "budget", "releases"))
        for part in ("budget", "releases"):
            if not isinstance(document[part], list):
                raise InvalidInput("a ledger", part, "be a list", document[part])
        ledger = cls([policy_from_dict(policy) for policy in document["budget"]])
        ledger._key = _read_hex("key", document["key"], _KEY_BYTES)
        ledger._releases = [_read_release(i, release) for i, release in enumerate(document["releases"])]
        for domain in ledger._questions():
            ledger.spent(domain)  # what does not compose cannot have been charged
        return ledger

    @classmethod
    @contextmanager
    def open(cls, path: str | Path) -> Iterator[Ledger]:
        """Open a ledger file exclusively and save it on exit. **Send reports only after the block.**

        Other processes and threads that open or save this file wait. What was answered is saved also when the block
        raises, for somebody may have seen it.
        """
        with locked(path):
            ledger = cls.load(path)
            before = ledger.releases
            try:
                yield ledger
            finally:
                if ledger.releases != before:
                    ledger.save(path)

    def save(self, path: str | Path) -> None:
        """Write the ledger: whole or not at all, and readable by its owner alone.

        A ledger that is there already must be this one, as it was before: with other releases it is refused, for they
        would be forgotten. Nothing that was answered since then may be sent; load the file and ask again.
        """
        with locked(path), self._one_at_a_time:
            text = self.to_json()
            self._check_continues(path)
            with replacing(path) as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), 0o600)
                file.write(text.encode())

    def _check_continues(self, path: str | Path) -> None:
        try:
            text = Path(path).read_text(encoding="utf-8")
            is_ledger = "ledger" in json.loads(text)
        except (OSError, ValueError, TypeError):
            return  # no ledger: what is there can be replaced, or refuses to be
        known = Ledger.from_json(text).releases if is_ledger else ()
        if len(known) > len(self._releases) or not all(map(_continues, self._releases, known)):
            must = (
                "hold no release that this ledger does not know: nothing was saved, so send nothing and load it again"
            )
            raise InvalidInput(str(path), "the file", must, f"{len(known)} releases, {len(self._releases)} here")

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """The ledger of a file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise file_error(error, str(path), "the file", "be a readable ledger", str(error)) from error
        except UnicodeDecodeError as error:
            raise InvalidInput(str(path), "the file", "be a readable ledger", str(error)) from None
        return cls.from_json(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)  # a lock cannot be copied

    def __repr__(self) -> str:
        return f"Ledger({len(self._releases)} releases about {len(self._questions())} questions)"


# -- what releases hold an observer to -------------------------------------------------------------------


def _accounts(releases: list[Release]) -> Iterator[list[Policy]]:
    """Three ways to count the same releases: as stated; what binds no pairs against anything; all against anything."""
    anything = [release.against_anything for release in releases]
    stated = [release.policy for release in releases]
    yield stated
    on_pairs = [other if _on_pairs(policy) is None else policy for policy, other in zip(stated, anything, strict=True)]
    for parts in (on_pairs, anything):
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            yield known


def _totals(releases: list[Release]) -> Iterator[tuple[list[Policy], Policy]]:
    """Each account that composes, and what it composes to. All of them are true."""
    for parts in _accounts(releases):
        try:
            yield parts, _composed(parts)
        except (CannotCompose, NoAnswer):
            continue


def _room(limit: PairwisePolicy, used: PairwisePolicy) -> Epsilon:
    """The greatest ε that may be added to every level of ``used`` without passing ``limit``; at least 0."""
    indices = representatives(limit.classes(), used.classes())
    limits, uses = limit.epsilons_on(indices), used.effective_epsilons_on(indices)
    off_diagonal = ~np.eye(len(indices), dtype=bool)
    pairs = np.unique(np.stack([limits.codes[off_diagonal], uses.codes[off_diagonal]]), axis=1)
    bounds = [(limits.epsilon(int(most)), uses.epsilon(int(now))) for most, now in pairs.T]
    left = [most + -now if now < most else ZERO for most, now in bounds if not most.is_infinite]
    return min(left, default=INFINITE)


def _composed(policies: list[Policy]) -> Policy:
    # Priors compose to Σ ε + Σ ε - max ε if the greatest comes first, and to more in any other order.
    priors = [policy for policy in policies if isinstance(policy, Prior)]
    if len(priors) == len(policies):
        policies = [*sorted(priors, key=lambda prior: prior.epsilon, reverse=True)]
    return functools.reduce(lambda first, second: first.compose(second), policies)


def _on_pairs(policy: Policy) -> PairwisePolicy | None:
    if isinstance(policy, Secret):
        return policy.as_pairwise
    return policy if isinstance(policy, PairwisePolicy) else None


def _greatest_epsilon(policy: Policy) -> Epsilon:
    """The ε of classical LDP that the policy implies."""
    if isinstance(policy, Prior):
        return policy.classical_epsilon
    pairwise = _on_pairs(policy)
    if pairwise is None:
        return INFINITE
    try:
        return pairwise.greatest_effective[0]
    except LimitExceeded:
        return INFINITE


def _classical_epsilon(mechanism: Mechanism) -> Epsilon | None:
    """Return the ε that the mechanism states and keeps; the sampler of a class from elsewhere may do otherwise."""
    return mechanism.classical_epsilon() if is_library_mechanism(mechanism) else None


@functools.lru_cache(maxsize=32)  # a client asks the same few questions again and again, and an audit may take a second
def _check_obeys(mechanism: Mechanism, policy: Policy) -> None:
    """Refuse a charge below what the mechanism gives away: it would make every total here a lie."""
    classical = _classical_epsilon(mechanism)
    if classical is None or not _certainly_implies(Uniform(policy.domain, classical), policy):
        # Of a class from elsewhere nobody has compared the sampler with its law but this audit.
        audit(mechanism, policy).raise_if_violated(coverage=required_coverage(mechanism))


def _needs_proof(release: Release) -> bool:
    """Whether the release could be charged at a level against anything that is not recorded."""
    secret = isinstance(release.policy, Secret) and not isinstance(release.policy.distributions, Anything)
    return secret and release.against_anything is None


def _why_unbounded(releases: list[Release], added: Release | None) -> str:
    """Say which releases have no level that could be charged, and what to do about it."""

    def named(some: Iterable[Release]) -> str:
        return ", ".join(repr(name) for name in dict.fromkeys(release.collection for release in some))

    words = f"the releases of the collections {named(releases)} have no bound together"
    if added is not None and added.against_anything is None:
        return f"{words}, and the mechanism of {named([added])} keeps no epsilon against anything to charge instead"
    unknown = [release for release in releases if release.against_anything is None]
    if unknown:
        words += f": for {named(unknown)} no epsilon against anything is recorded to charge instead"
    if any(map(_needs_proof, unknown)):
        words += "; if the version that wrote it did not record any, Ledger.prove(collection, mechanism) adds it"
    return words


def _continues(release: Release, known: Release) -> bool:
    """Whether the release is the known one, to which a proved level may have been added."""
    return release == known or (known.hiding is None and dataclasses.replace(release, hiding=None) == known)


@functools.lru_cache(maxsize=32)  # as above
def _hiding_epsilon(mechanism: Mechanism, policy: Policy) -> Epsilon | None:
    """Return the least ε, as far as it is found, at which an audit proves that the secret is hidden from anybody.

    That is the level of the policy or of the mechanism, or a multiple of 10^-9. None where the policy composes by
    itself, and where some report rules out a secret.
    """
    if not isinstance(policy, Secret) or isinstance(policy.distributions, Anything):
        return None

    def audited(epsilon: Epsilon) -> Certificate:
        return audit(mechanism, Secret(policy.domain, policy.secret, epsilon, Anything()))

    try:
        worst = audited(ZERO).worst  # at ε = 0 the greatest ratio of likelihoods comes closest to breaking it
        if worst.names is None or worst.right == 0:
            return None
        reached = log_rounded_up([(worst.left, ZERO)], [(worst.right, ZERO)])
        # Doubles chose the worst; should another be greater by a last digit, the next step covers it.
        candidates = {reached, reached + Epsilon("0.000000001"), policy.epsilon, mechanism.stated_epsilon}
        for epsilon in sorted(e for e in candidates if isinstance(e, Epsilon) and not e.is_infinite):
            certificate = audited(epsilon)
            if certificate.holds:
                certificate.raise_if_violated(coverage=required_coverage(mechanism))
                return epsilon
    except NoAnswer:
        return None
    return None


def _certainly_implies(first: Policy, second: Policy) -> bool:
    try:
        return implies(first, second)
    except NoAnswer:
        return False


def _summary(policy: Policy) -> str:
    epsilon = getattr(policy, "epsilon", None)
    suffix = f" at epsilon {epsilon}" if isinstance(epsilon, Epsilon) else ""
    return f"a {policy.kind} policy{suffix}"


# -- reading and writing ---------------------------------------------------------------------------------


def _read_budgets(budget: Any) -> dict[Domain, Policy]:
    several = isinstance(budget, Iterable) and not isinstance(budget, str)
    policies = [] if budget is None else list(budget) if several else [budget]
    budgets: dict[Domain, Policy] = {}
    for policy in policies:
        if not isinstance(policy, Policy):
            raise InvalidInput("Ledger", "budget", "be a policy, or several", policy)
        if policy.domain in budgets:
            raise InvalidInput("Ledger", "budget", "have one policy per domain", policy.domain)
        budgets[policy.domain] = policy
    return budgets


def _check_name(subject: str, parameter: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidInput(subject, parameter, "be a name", name)


def _restored(mechanism: Mechanism, report: bytes) -> npt.NDArray[Any]:
    if len(report) != (mechanism.bits + 7) // 8:
        must = f"have {(mechanism.bits + 7) // 8} bytes"
        raise InvalidInput("a ledger", "the stored report", must, f"{len(report)} bytes")
    if mechanism.report_format.shape:
        array = np.frombuffer(report, np.uint8).reshape(1, -1).copy()
    else:
        array = np.array([int.from_bytes(report, "little")], mechanism.report_format.dtype)
    return mechanism.report_format.validate(array, "a ledger's stored report")


def _release_document(release: Release) -> dict[str, Any]:
    return {
        "collection": release.collection,
        "mechanism": release.mechanism,
        "classical": None if release.classical is None else str(release.classical),
        "policy": release.policy.to_dict(),
        "value": release.value,
        "report": None if release.report is None else release.report.hex(),
        **({} if release.hiding is None else {"hiding": str(release.hiding)}),
    }


def _read_release(number: int, content: object) -> Release:
    entry = f"release {number}"
    keys = ("collection", "mechanism", "classical", "policy", "value", "report")
    document = check_keys("a ledger", entry, content, required=keys, optional=["hiding"])
    collection, classical = document["collection"], document["classical"]
    policy, hiding = policy_from_dict(document["policy"]), document.get("hiding")
    if hiding is not None and not isinstance(policy, Secret):
        raise InvalidInput("a ledger", f"{entry}, hiding", "be stated of a secret only", hiding)
    value, report = document["value"], document["report"]
    _check_name("a ledger", f"{entry}, collection", collection)
    if (value is None) != (report is None):
        raise InvalidInput("a ledger", entry, "have both value and report, or neither", (value, report))
    return Release(
        collection,
        _read_hex(f"{entry}, mechanism", document["mechanism"], 32).hex(),
        None if classical is None else Epsilon(classical, subject="a ledger", parameter=f"{entry}, classical"),
        policy,
        None if value is None else _read_hex(f"{entry}, value", value, 32).hex(),
        None if report is None else _read_hex(f"{entry}, report", report),
        None if hiding is None else Epsilon(hiding, subject="a ledger", parameter=f"{entry}, hiding"),
    )


def _read_hex(name: str, digits: object, length: int | None = None) -> bytes:
    try:
        data = bytes.fromhex(digits) if isinstance(digits, str) else None
    except ValueError:
        data = None
    if data is None or data.hex() != digits or (length is not None and len(data) != length):
        size = "" if length is None else f" of {length} bytes"
        raise InvalidInput("a ledger", name, f"be lower-case hexadecimal digits{size}", digits)
    return data
