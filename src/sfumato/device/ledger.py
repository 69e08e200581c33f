"""The privacy that one person has spent over repeated collections, stored on their own device.

A ledger lists releases. A release records the collection that asked and the policy of the report. Several releases
together satisfy a policy again, by the rule of its family (``Policy.compose``). A *budget* is also a policy. The ledger
allows a release if and only if the composition of all releases implies the budget. It decides this exactly, and before
it draws anything.

Releases about different domains are different questions, and the ledger composes each question separately. ``total``
adds up their worst-case levels, because answers may be correlated. Two questions over the same domain count as one
question. That is safe, but it charges more than necessary.

**An unchanged value gets the same report again**, which the ledger stores and does not charge again. This has three
consequences:

- The report is a pseudonym: it links its sender within the collection.
- An observer of all reports of one person learns *when* the value changed, whatever the budget.
- The ledger must be saved before a report is sent. Otherwise a release could happen that no ledger counts.

**Waves.** A memoized mechanism reports about an unchanged value with new randomness in every wave (``answer_wave``).
Its permanent answer is a release under the lifetime policy, which stays in the ledger. Inside ``Ledger.open``, the
ledger writes ahead: it stores a permanent answer before it draws a report about it, and a report before it returns it.
So a process that is killed at any point neither draws a permanent answer again nor two reports for one wave.

**An attribute is drawn once.** A mechanism such as ``SampledParts`` draws the attribute that a person reports. Later
reports from the same mechanism, in any collection, are about the same attribute. Its stored report states which.

**Nothing is spent twice.** Threads may share a ledger. Processes share its file: ``Ledger.open`` admits one process at
a time, and ``save`` rejects a file with releases that this ledger does not know.

**The file is as sensitive as the values.** The ledger stores a value as its HMAC-SHA256 under a random key in the same
file. The HMAC hides values from a casual look, and makes equal values of different collections or ledgers look
different. It does not stop an attacker who has the file, because trying each value of the domain is quick. A password
would have to live on the same device. The file is therefore readable by its owner only, and should be stored as
carefully as the values themselves.
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

from sfumato._core import (
    INFINITE,
    ZERO,
    Epsilon,
    check_keys,
    checked_integer,
    checked_type,
    locked,
    parse_json,
    plain_integer,
    quantity,
    replacing,
)
from sfumato.auditing import Certificate, audit, required_coverage
from sfumato.device.ledger_levels import Level, levels_of
from sfumato.device.privatization import privatize
from sfumato.domain import Domain, checked_domain
from sfumato.errors import (
    BudgetExceeded,
    CannotCompose,
    Description,
    InvalidInput,
    LimitExceeded,
    NoAnswer,
    Undecided,
    UnknownSpec,
    ValueChanged,
    file_error,
    shown,
)
from sfumato.mechanisms import BitDraws, Draws, Mechanism, MemoizedMechanism, is_library_mechanism, repeating
from sfumato.policy import (
    Anything,
    PairwisePolicy,
    Policy,
    Prior,
    Secret,
    Uniform,
    implies,
    log_rounded_up,
    on_pairs,
    policy_from_dict,
    representatives,
)
from sfumato.randomness import AUXILIARY, SecureStream, Stream, WordReader, secure

__all__ = ["Cost", "Ledger", "Release"]

#: Versions of the document: without and with reports of waves.
_VERSION, _VERSION_WITH_WAVES = 1, 2
_KEY_BYTES = 32
#: Greatest number of a wave.
_LAST_WAVE = 2**53 - 1


@dataclass(frozen=True)
class Release:
    """One entry of a :class:`Ledger`: a report that was drawn, or a charge without a report.

    :attr:`Ledger.releases` lists the entries. Users do not construct them.

    Parameters
    ----------
    collection
        Name of the collection.
    mechanism
        Hash of the mechanism: 64 hexadecimal digits.
    classical
        Epsilon of classical local differential privacy (LDP) that the mechanism satisfies. None if it satisfies none,
        or if a third-party class defines the mechanism.
    policy
        Policy that the report obeys.
    value
        HMAC-SHA256 of the value under the key of the ledger, or None for a charge without a report.
    report
        Serialized report, or None for a charge without a report.
    hiding
        Epsilon of a secret policy that the mechanism obeys for every distribution of the values; an audit has proved
        it. The ledger records it only if ``policy`` is a secret policy that assumes particular distributions, and
        ``classical`` is None. It is None for other releases, if no such epsilon exists, and in ledgers of earlier
        versions, to which :meth:`Ledger.prove` adds it.
    permanent
        Whether ``report`` is a permanent answer of a :class:`~sfumato.mechanisms.MemoizedMechanism`, which stays on the
        device. ``policy`` is then the lifetime policy of all reports about it.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> mechanism = sf.mechanisms.RandomizedResponse(domain, 1)
    >>> ledger = sf.Ledger()
    >>> ledger.charge("smoking", mechanism, sf.Uniform(domain, 1))
    >>> ledger.releases[0].worst_case
    Epsilon('1')
    """

    collection: str
    mechanism: str
    classical: Epsilon | None
    policy: Policy
    value: str | None = None
    report: bytes | None = None
    hiding: Epsilon | None = None
    permanent: bool = False

    @property
    def worst_case(self) -> Epsilon:
        """Smallest epsilon of classical LDP that this release is known to satisfy; infinite if none is known."""
        charged = self.against_anything
        return INFINITE if charged is None else _greatest_epsilon(charged)

    @property
    def against_anything(self) -> Policy | None:
        """Policy that holds for every distribution of the values, or None if none is known.

        The ledger charges it instead of ``policy`` if ``policy`` does not compose with other releases. It is a uniform
        policy (classical LDP), or a secret policy at the epsilon ``hiding``.
        """
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
    """Privacy cost of an answer, computed before the answer is given.

    Parameters
    ----------
    added
        Policy that the ledger would charge for the answer. None if the answer is free, because the ledger has a stored
        report of the same value.
    total
        Policy that all reports about the question would satisfy together after the answer.
    allowed
        Whether the total stays within the budget of the ledger.
    words
        The cost as a sentence; ``str(cost)`` returns it.

    See Also
    --------
    Ledger.cost_of_change : Compute the cost of an answer.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> mechanism, policy = sf.mechanisms.RandomizedResponse(domain, 1), sf.Uniform(domain, 1)
    >>> print(sf.Ledger().cost_of_change("smoking", mechanism, policy, "yes"))
    costs a uniform policy at epsilon 1; the total would become a uniform policy at epsilon 1
    """

    added: Policy | None
    total: Policy
    allowed: bool
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class _Wave:
    """A stored report of one wave, about the permanent answer of the release with the number ``release``."""

    collection: str
    wave: int
    release: int
    report: bytes


@dataclass(frozen=True)
class _Account:
    """A valid account of all releases about one question: ``parts``, one per release, compose to ``total``."""

    parts: list[Policy]
    total: Policy
    within: bool


class Ledger:
    """A record of the privacy that one person has spent on each question.

    A device keeps one ledger per person. Each report that leaves the device is a *release*, and the ledger composes the
    policies of all releases about a question. A question is identified by its domain.

    Parameters
    ----------
    budget
        Limit for the composed policies of each question: one policy, or several policies over different domains. The
        ledger rejects releases that exceed the limit, and questions whose domain has no policy in the budget. It does
        not limit :attr:`total`, the sum over all questions. By default there is no limit: the ledger records every
        release and rejects none.

    Raises
    ------
    InvalidInput
        If the budget is not a policy or a list of policies, or two policies have the same domain.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["yes", "no"])
    >>> ledger = sf.Ledger(budget=sf.Uniform(domain, 1))
    >>> ledger.charge("first", sf.mechanisms.RandomizedResponse(domain, "0.7"), sf.Uniform(domain, "0.7"))
    >>> ledger.remaining(domain)
    Epsilon('0.3')
    """

    def __init__(self, budget: Policy | Iterable[Policy] | None = None) -> None:
        self._budgets = _read_budgets(budget)
        self._releases: list[Release] = []
        self._waves: list[_Wave] = []
        self._path: str | Path | None = None  # file that is open, which is written before each step
        self._key = secure.read(_KEY_BYTES)
        self._one_at_a_time = threading.RLock()  # holds other threads off between the budget check and the charge

    # -- what was spent ----------------------------------------------------------------------------------

    @property
    def budget(self) -> tuple[Policy, ...]:
        """The policies of the budget, at most one per domain; empty without a budget."""
        return tuple(self._budgets.values())

    @property
    def releases(self) -> tuple[Release, ...]:
        """All recorded releases of all questions, oldest first."""
        return tuple(self._releases)

    def spent(self, domain: Domain) -> Policy | None:
        """Return the policy that all releases about a question satisfy together.

        Parameters
        ----------
        domain
            Domain of the question: the domain of the mechanisms and policies of its releases.

        Returns
        -------
        Policy or None
            The composed policy, or None if the ledger has no release about the question.

        Raises
        ------
        CannotCompose
            If no policy is known that all releases satisfy together.

        Notes
        -----
        Releases compose by the rules of :meth:`Policy.compose <sfumato.policy.Policy.compose>`. For policies on pairs
        of values, the epsilons of each pair add. For releases under one prior, the composed epsilon is Σε + (Σε - max
        ε), with sums over all releases.

        Some policies do not compose: a secret under a known distribution, or a prior together with another policy. The
        ledger then charges the classical LDP that the mechanism of the release satisfies. If the mechanism satisfies
        none, the ledger charges a secret policy that an audit has proved for every distribution. It also charges this
        way if only this account stays within the budget.
        """
        releases = self._about(checked_domain("Ledger.spent", domain))
        return self._account(domain, releases).total if releases else None

    @property
    def total(self) -> Epsilon:
        """Upper bound on the epsilon of all releases about all questions together.

        The bound is the sum of one epsilon per question. Epsilons add because answers to different questions may be
        correlated. The total is infinite if the policy of some release leaves a pair of values without a limit,
        and the mechanism is not known to satisfy a finite epsilon.
        """
        return sum((self._worst_case(domain) for domain in self._questions()), ZERO)

    def levels(self, domain: Domain) -> tuple[Level, ...]:
        """Return the level that was spent on each kind of pair of values of a question, and its limit.

        Parameters
        ----------
        domain
            Domain of the question.

        Returns
        -------
        tuple of Level
            One entry per combination of a spent level and a limit of the budget, with an example of its pairs. Empty if
            the ledger has no release about the question. ``print(*ledger.levels(domain), sep="\\n")`` prints lines such
            as ``'hiv' against 'none': 1.5 of 2``.

        Raises
        ------
        CannotCompose
            If no policy is known that all releases satisfy together.
        """
        spent = self.spent(checked_domain("Ledger.levels", domain))
        return () if spent is None else levels_of(spent, self._budgets.get(domain))

    @property
    def protected_total(self) -> Epsilon:
        """Upper bound on the epsilon of all releases, for the pairs of values that their policies limit.

        Unlike :attr:`total`, it is finite also if a policy allows reports to reveal some values, such as the harmless
        values of a :class:`HighLow` policy. It adds up the greatest limited level of every question.
        """
        limited = (
            [level.spent for level in self.levels(domain) if level.spent is not None] for domain in self._questions()
        )
        return sum((max(levels) for levels in limited if levels), ZERO)

    def remaining(self, domain: Domain) -> Epsilon | None:
        """Return the greatest epsilon of classical LDP that one more release about a question may have.

        Parameters
        ----------
        domain
            Domain of the question.

        Returns
        -------
        Epsilon or None
            The epsilon. Zero if the budget has no policy for the question. None if the ledger has no budget, or the
            policy of the budget limits no pair of values.

        Raises
        ------
        Undecided
            If the budget or the composed releases are not a policy on pairs of values, such as :class:`Prior`. Call
            :meth:`allows` for a specific release instead.
        """
        budget = self._budgets.get(checked_domain("Ledger.remaining", domain))
        if budget is None:
            return ZERO if self._budgets else None
        limit = on_pairs(budget)
        releases = self._about(domain)
        totals = [total for _, total in _totals(releases)] if releases else [Uniform(domain, ZERO)]
        used = [pairs for pairs in map(on_pairs, totals) if pairs is not None]
        if limit is None or not used:
            raise Undecided(
                f"the remainder of a {budget.kind} budget after these releases is not a single level. Call allows() "
                "for a specific release."
            )
        left = max(_room(limit, pairs) for pairs in used)
        return None if left.is_infinite else left

    # -- charging ----------------------------------------------------------------------------------------

    def allows(self, collection: str, mechanism: Mechanism, policy: Policy) -> bool:
        """Return whether :meth:`charge` would accept a release.

        Parameters
        ----------
        collection
            Name of the collection: the survey or the purpose that receives the report.
        mechanism
            Mechanism that draws the report.
        policy
            Policy that the mechanism obeys; its domain identifies the question.

        Returns
        -------
        bool
            Whether the release stays within the budget. Also False if the releases do not compose, or if no method
            decides whether the composed policy implies the budget.

        Raises
        ------
        PolicyViolated
            If the mechanism violates the policy.
        """
        try:
            return self._with(self._new(collection, mechanism, policy)).within
        except CannotCompose:
            return False

    def charge(self, collection: str, mechanism: Mechanism, policy: Policy) -> None:
        """Record a release whose report the caller draws without this ledger.

        :meth:`answer` records a release and also draws the report.

        Parameters
        ----------
        collection
            Name of the collection: the survey or the purpose that receives the report.
        mechanism
            Mechanism that draws the report.
        policy
            Policy that the mechanism obeys; its domain identifies the question.

        Raises
        ------
        BudgetExceeded
            If the release would exceed the budget. Nothing is recorded.
        CannotCompose
            If no policy is known that all releases about the question satisfy together. Nothing is recorded.
        PolicyViolated
            If the mechanism violates the policy.
        """
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
        """Draw the report of a value, record its release, and return the report.

        If the person answered this collection with the same value before, the ledger returns the stored report and
        charges nothing. A different value is a new release: it needs ``allow_change=True`` and is charged. The ledger
        checks the budget before it draws the report. **Save the ledger before you send the report.**

        Parameters
        ----------
        collection
            Name of the collection: the survey or the purpose that receives the report.
        mechanism
            Mechanism that draws the report.
        policy
            Policy that the mechanism obeys; its domain identifies the question.
        value
            Value to report.
        allow_change
            Whether to draw another report if the person answered this collection with another value before.
        stream
            Source of random words for tests, such as :class:`InsecureSeeded`. The default is the secure randomness of
            the operating system.

        Returns
        -------
        numpy.ndarray
            An array with one report, as :func:`sfumato.privatize` returns it.

        Raises
        ------
        ValueChanged
            If the person answered this collection with another value before and ``allow_change`` is False.
        BudgetExceeded
            If the release would exceed the budget. Nothing is drawn or recorded.
        CannotCompose
            If no policy is known that all releases about the question satisfy together. Nothing is recorded.
        PolicyViolated
            If the mechanism violates the policy.
        """
        with self._one_at_a_time:
            release, known = self._request(collection, mechanism, policy, value)
            if known is not None:
                return _restored(mechanism, known)
            if self._answered(collection) and not allow_change:
                raise ValueChanged(
                    f"collection {collection!r} has already received a report of another value. Call cost_of_change() "
                    "to see what a second report costs, and pass allow_change=True to give it."
                )
            self._check_budget(release)
            reports: npt.NDArray[Any] = privatize(self._repeating(mechanism), [value], stream)
            report = (
                reports[0].tobytes()
                if mechanism.report_format.shape
                else mechanism.report_format.encode(int(reports[0]))
            )
            self._releases.append(dataclasses.replace(release, report=report))
            return reports

    def answer_wave(
        self,
        collection: str,
        mechanism: MemoizedMechanism,
        value: object,
        wave: int,
        *,
        stream: Stream | None = None,
    ) -> npt.NDArray[Any]:
        """Draw the report of one wave about the permanent answer of a value, and return it.

        The first wave draws a permanent answer, which the ledger charges with the lifetime policy of the mechanism and
        keeps. Later waves draw reports about it at no cost. A value that the person did not have before draws and
        charges a further permanent answer. If ``max_changes`` or the budget does not allow it, the device keeps
        reporting about the last permanent answer, because silence would reveal the change. A call for a wave that was
        answered returns the stored report, whatever the value is, so a retry sends the same bytes.

        Use the method inside :meth:`open`. The ledger then stores each permanent answer before it draws a report about
        it, and each report before it returns it. **Send the report after the block.**

        Parameters
        ----------
        collection
            Name of the collection, the same in all waves.
        mechanism
            Memoized mechanism, from :func:`design` with ``lifetime=``.
        value
            Value of the person in this wave.
        wave
            Number of the wave, from 0.
        stream
            Source of random words for tests, such as :class:`InsecureSeeded`. The default is the secure randomness of
            the operating system.

        Returns
        -------
        numpy.ndarray
            An array with one report, as :func:`sfumato.privatize` returns it.

        Raises
        ------
        InvalidInput
            If the mechanism is not the one of the earlier waves of the collection.
        BudgetExceeded
            If the budget does not allow the first permanent answer. Nothing is drawn or recorded.
        CannotCompose
            If no policy is known that all releases about the question satisfy together. Nothing is recorded.
        PolicyViolated
            If the permanent answers violate the lifetime policy.

        Examples
        --------
        >>> import sfumato as sf
        >>> domain = sf.Domain(["none", "flu", "hiv"])
        >>> mechanism = sf.design(sf.Uniform(domain, "0.5"), lifetime=sf.Uniform(domain, 1))
        >>> ledger = sf.Ledger()
        >>> reports = [ledger.answer_wave("daily", mechanism, "none", wave) for wave in range(30)]
        >>> ledger.total
        Epsilon('1')
        """
        checked_type("Ledger.answer_wave", "mechanism", mechanism, MemoizedMechanism)
        _check_name("Ledger", "collection", collection)
        number = _checked_wave("Ledger.answer_wave", wave, _LAST_WAVE)
        x = mechanism.domain.encode_one(value)
        with self._one_at_a_time:
            self._check_same(collection, mechanism, mechanism.lifetime, permanent=True)
            for stored in self._waves:
                if (stored.collection, stored.wave) == (collection, number):
                    return _restored(mechanism, stored.report)
            draws = self._decisions(stream)
            place = self._permanent_answer(collection, mechanism, x, number, draws)
            answer = self._releases[place].report
            assert answer is not None
            drawn = mechanism.instantaneous.sample(mechanism.permanent.report_format.decode(answer), draws)
            report = mechanism.report_format.encode(drawn)
            self._waves.append(_Wave(collection, number, place, report))
            self._write_ahead()
            return _restored(mechanism, report)

    def batch_name(self, collection: str, wave: int) -> str:
        """Return the name of the batch under which the report of a wave is sent, the same for every attempt.

        Parameters
        ----------
        collection
            Name of the collection.
        wave
            Number of the wave, from 0.

        Returns
        -------
        str
            An HMAC-SHA256 of both under the key of the ledger: 32 hexadecimal digits. The collector cannot link the
            names of two waves.

        Examples
        --------
        >>> import sfumato as sf
        >>> ledger = sf.Ledger()
        >>> ledger.batch_name("weekly", 0) == ledger.batch_name("weekly", 1)
        False
        """
        return self._digest("batch", collection, wave)[:32]

    def batches(self, collection: str, mechanism: Mechanism, policy: Policy) -> dict[str, npt.NDArray[Any]]:
        """Return the stored reports of :meth:`answer` by the names of their batches, to send them again.

        A process may end after the ledger was saved and before its report was counted. At its next start it sends the
        report under the same name, and the collector counts it once.

        Parameters
        ----------
        collection
            Name of the collection.
        mechanism
            Mechanism that drew the reports.
        policy
            Policy under which they were charged.

        Returns
        -------
        dict
            One array with one report for each answer, by a name for ``batch=`` of :meth:`Client.submit`. Names do not
            change. Empty if the collection was not answered.

        Raises
        ------
        InvalidInput
            If the collection has reports of another mechanism or policy, or of waves.

        Examples
        --------
        >>> import sfumato as sf
        >>> domain = sf.Domain(["no", "yes"])
        >>> mechanism, policy = sf.mechanisms.RandomizedResponse(domain, 1), sf.Uniform(domain, 1)
        >>> ledger = sf.Ledger()
        >>> report = ledger.answer("smoking", mechanism, policy, "yes")
        >>> [stored == report for stored in ledger.batches("smoking", mechanism, policy).values()]
        [array([ True])]
        """
        self._check_same(collection, mechanism, policy)  # so none of them is a permanent answer
        reports = [release.report for release in self._answered(collection) if release.report is not None]
        names = (self._digest("batch", collection, "answer", number)[:32] for number in range(len(reports)))
        return {name: _restored(mechanism, report) for name, report in zip(names, reports, strict=True)}

    def _permanent_answer(self, collection: str, mechanism: MemoizedMechanism, x: int, wave: int, draws: Draws) -> int:
        """Return the number of the release whose permanent answer a wave reports about; draw and store a new one."""
        places = [
            i for i, release in enumerate(self._releases) if release.collection == collection and release.permanent
        ]
        earlier = None
        if places:
            first = self._releases[places[0]].report
            assert first is not None
            earlier = mechanism.permanent.report_format.decode(first)
            digest = self._memory_digest(collection, mechanism, x, wave, earlier)
            for place in places:
                if self._releases[place].value == digest:
                    return place
        is_full = mechanism.most_answers is not None and len(places) >= mechanism.most_answers
        release = dataclasses.replace(
            self._new(collection, mechanism.permanent, mechanism.lifetime), mechanism=mechanism.hash, permanent=True
        )
        if places and (is_full or not self._is_within(release)):
            # The last one that was reported about; a process may have ended before the first report about it.
            return next((each.release for each in reversed(self._waves) if each.collection == collection), places[-1])
        self._check_budget(release)
        answer = mechanism.draw_permanent(x, draws, earlier=earlier)
        digest = self._memory_digest(collection, mechanism, x, wave, answer if earlier is None else earlier)
        encoded = mechanism.permanent.report_format.encode(answer)
        self._releases.append(dataclasses.replace(release, value=digest, report=encoded))
        self._write_ahead()
        return len(self._releases) - 1

    def _memory_digest(self, collection: str, mechanism: MemoizedMechanism, x: int, wave: int, earlier: int) -> str:
        """Return the HMAC under which a permanent answer is stored: of the value, or of the time on a schedule."""
        every = mechanism.refresh_every
        kind, number = ("value", mechanism.memory_key(x, earlier)) if every is None else ("time", wave // every)
        return self._digest(collection, mechanism.hash, kind, number)

    def _digest(self, *subject: str | int) -> str:
        """Return the HMAC-SHA256 of some strings and numbers under the key of the ledger."""
        return hmac.new(self._key, json.dumps(subject).encode(), hashlib.sha256).hexdigest()

    def _is_within(self, release: Release) -> bool:
        """Return whether a release stays within the budget."""
        try:
            return self._with(release).within
        except CannotCompose:
            return False

    def _decisions(self, stream: Stream | None) -> Draws:
        """Return the source of the decisions of one wave."""
        key, chunk = (stream or SecureStream()).reserve(1)
        return BitDraws(WordReader(key, chunk, AUXILIARY).word)

    def _write_ahead(self) -> None:
        """Save the ledger if its file is open, so that the next step cannot happen without a record."""
        if self._path is not None:
            self.save(self._path)

    def _repeating(self, mechanism: Mechanism) -> Mechanism:
        """Return the mechanism that repeats the choice of an earlier report, such as the attribute that was drawn."""
        reports = (release.report for release in self._releases if release.mechanism == mechanism.hash)
        earlier = next((report for report in reports if report is not None), None)
        return mechanism if earlier is None else repeating(mechanism, mechanism.report_format.decode(earlier))

    def cost_of_change(self, collection: str, mechanism: Mechanism, policy: Policy, value: object) -> Cost:
        """Return the privacy cost of an answer without drawing or recording a report.

        The parameters are those of :meth:`answer`, for a first answer or a changed one.

        Parameters
        ----------
        collection
            Name of the collection.
        mechanism
            Mechanism that would draw the report.
        policy
            Policy that the mechanism obeys.
        value
            Value to report.

        Returns
        -------
        Cost
            The policy that the answer would add, the total after it, and whether the budget allows it.

        Raises
        ------
        CannotCompose
            If no policy is known that all releases about the question satisfy together.
        PolicyViolated
            If the mechanism violates the policy.
        """
        release, known = self._request(collection, mechanism, policy, value)
        if known is None:
            return self._cost(release)
        total = self._account(policy.domain, self._about(policy.domain)).total
        return Cost(None, total, True, "free: the ledger returns the stored report of this value")

    def prove(self, collection: str, mechanism: Mechanism) -> Epsilon:
        """Prove and record an epsilon that holds for every distribution, for earlier releases of secrets.

        A :class:`Secret` policy that assumes a particular distribution does not compose with other releases. The ledger
        then charges an epsilon that holds for every distribution, which :meth:`charge` and :meth:`answer` record with
        the release. Ledgers of earlier versions lack this epsilon, so a second release about the question raises
        CannotCompose. Call this method once per collection to add it.

        Parameters
        ----------
        collection
            Name of the collection whose releases lack the epsilon.
        mechanism
            Mechanism that drew the reports: an instance of the same class with the same parameters. The ledger stores
            only a hash of the mechanism and cannot construct it.

        Returns
        -------
        Epsilon
            The epsilon that an audit of the mechanism proves for every distribution.

        Raises
        ------
        InvalidInput
            If the collection has no release of this mechanism that lacks the epsilon.
        CannotCompose
            If no such epsilon is proved, for example because some report rules out a secret with certainty.
        """
        with self._one_at_a_time:
            proved: dict[int, Epsilon] = {}
            for number, release in enumerate(self._releases):
                if (release.collection, release.mechanism) == (collection, mechanism.hash) and _needs_proof(release):
                    epsilon = _hiding_epsilon(mechanism, release.policy)
                    if epsilon is None:
                        raise CannotCompose(
                            f"cannot bound the total privacy loss of this question: collection {collection!r} "
                            f"(mechanism {mechanism.name!r}) has no finite epsilon for its secret that holds for every "
                            "distribution, because some report may rule out a secret. Do not answer this question "
                            "again."
                        )
                    proved[number] = epsilon
            if not proved:
                must = f"be that of a release of collection {collection!r} under a secret whose level is not recorded"
                hint = "Ledger.releases lists the collections and the hashes of their mechanisms."
                raise InvalidInput("Ledger.prove", "mechanism", must, mechanism.name, hint=hint)
            for number, epsilon in proved.items():
                self._releases[number] = dataclasses.replace(self._releases[number], hiding=epsilon)
            return max(proved.values())

    # -- inside ------------------------------------------------------------------------------------------

    def _questions(self) -> list[Domain]:
        """Return the domains of all releases."""
        return list(dict.fromkeys(release.policy.domain for release in self._releases))

    def _about(self, domain: Domain) -> list[Release]:
        """Return the releases about a question."""
        return [release for release in self._releases if release.policy.domain == domain]

    def _answered(self, collection: str) -> list[Release]:
        """Return the releases of a collection that have a report."""
        return [r for r in self._releases if r.collection == collection and r.report is not None]

    def _new(self, collection: str, mechanism: Mechanism, policy: Policy) -> Release:
        """Return a release for a mechanism that obeys the policy, or raise."""
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
        """Return the release that an answer would be, and its stored report if there is one."""
        index = mechanism.domain.encode_one(value)
        self._check_same(collection, mechanism, policy)
        digest = self._digest(collection, mechanism.hash, index)
        for earlier in self._answered(collection):
            if earlier.value == digest:
                return earlier, earlier.report
        return dataclasses.replace(self._new(collection, mechanism, policy), value=digest), None

    def _check_same(self, collection: str, mechanism: Mechanism, policy: Policy, *, permanent: bool = False) -> None:
        """Raise InvalidInput if the collection has reports of another mechanism, or of waves and of single answers."""
        for earlier in self._answered(collection):
            if (earlier.mechanism, earlier.policy, earlier.permanent) != (mechanism.hash, policy, permanent):
                must = f"be those of the earlier reports of collection {collection!r}"
                hint = "Give a new collection a new name."
                raise InvalidInput("Ledger", "mechanism and policy", must, mechanism.name, hint=hint)

    def _with(self, release: Release) -> _Account:
        """Return the account of a question after one more release."""
        return self._account(release.policy.domain, [*self._about(release.policy.domain), release], added=release)

    def _account(self, domain: Domain, releases: list[Release], *, added: Release | None = None) -> _Account:
        """Return the first account within the budget, or else the first that composes."""
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
        """Raise BudgetExceeded if a release does not fit the budget."""
        account = self._with(release)
        if not account.within:
            domain, total = release.policy.domain, _summary(account.total)
            budget = self._budgets.get(domain)
            if budget is None:
                problem = f"the budget does not cover this question, which has the values {shown(domain)}"
                rule = "The budget names its questions when the ledger is created; other values are another question."
            else:
                problem = f"the total would become {total}, which exceeds the budget, {_summary(budget)}"
                rule = "A larger budget must be chosen when the ledger is created."
            done = "Nothing was drawn or charged. Skip this collection."
            raise BudgetExceeded(f"collection {release.collection!r}: {problem}. {done} {rule}")

    def _cost(self, release: Release) -> Cost:
        """Return the cost of a new release."""
        account = self._with(release)
        added = account.parts[-1]
        words = f"costs {_summary(added)}; the total would become {_summary(account.total)}"
        if not account.within:
            words += ", which exceeds the budget"
        return Cost(added, account.total, account.within, words)

    def _worst_case(self, domain: Domain) -> Epsilon:
        """Return the smallest known level of classical LDP for all releases about a question."""
        releases = self._about(domain)
        one_by_one = sum((release.worst_case for release in releases), ZERO)
        return min(one_by_one, _greatest_epsilon(self._account(domain, releases).total))

    # -- documents ---------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole ledger as a JSON string.

        Returns
        -------
        str
            A JSON document for :meth:`from_json`: budget, releases, stored reports, and the key that hides the values.
            Store it as carefully as the values themselves.
        """
        document = {
            "ledger": _VERSION_WITH_WAVES if self._has_waves() else _VERSION,
            "key": self._key.hex(),
            "budget": [policy.to_dict() for policy in self._budgets.values()],
            "releases": [_release_document(release) for release in self._releases],
            **({"waves": [_wave_document(wave) for wave in self._waves]} if self._has_waves() else {}),
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    def _has_waves(self) -> bool:
        """Return whether the document needs the version with waves."""
        return any(release.permanent for release in self._releases)

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Read a ledger from a JSON string.

        Parameters
        ----------
        text
            JSON document that :meth:`to_json` returned.

        Returns
        -------
        Ledger
            A ledger with the same budget, releases and key.

        Raises
        ------
        InvalidInput
            If a key is missing, unknown or has the wrong type.
        UnknownSpec
            If a later version of Sfumato wrote the document.
        """
        try:
            parsed = parse_json(text)
        except ValueError as error:
            raise InvalidInput("a ledger", "the document", "be JSON", str(error)) from None
        known = (_VERSION, _VERSION_WITH_WAVES)
        if isinstance(parsed, dict) and parsed.get("ledger", _VERSION) not in known:
            hint = "Read this ledger with the version of Sfumato that wrote it, or a later one."
            raise UnknownSpec("a ledger", "its version", f"be {_VERSION} or {known[1]}", parsed["ledger"], hint=hint)
        keys = ("ledger", "key", "budget", "releases")
        document = check_keys("a ledger", "the document", parsed, required=keys, optional=["waves"])
        for part in ("budget", "releases", "waves"):
            if not isinstance(document.get(part, []), list):
                raise InvalidInput("a ledger", part, "be a list", document[part])
        ledger = cls([policy_from_dict(policy) for policy in document["budget"]])
        ledger._key = _read_hex("key", document["key"], _KEY_BYTES)
        ledger._releases = [_read_release(i, release) for i, release in enumerate(document["releases"])]
        ledger._waves = [_read_wave(i, wave, ledger._releases) for i, wave in enumerate(document.get("waves", []))]
        for domain in ledger._questions():
            ledger.spent(domain)  # releases that do not compose cannot have been charged
        return ledger

    @classmethod
    @contextmanager
    def open(cls, path: str | Path) -> Iterator[Ledger]:
        """Open a ledger file exclusively and save it on exit.

        Use it as a context manager: ``with Ledger.open(path) as ledger:``. Other processes and threads that open or
        save this file wait until the block ends. **Send reports only after the block.** The ledger is also saved if the
        block raises an exception, because a report may have left the device by then. :meth:`answer_wave` also saves it
        before each of its steps.

        Parameters
        ----------
        path
            Path of the file.

        Yields
        ------
        Ledger
            The ledger of the file.
        """
        with locked(path):
            ledger = cls.load(path)
            before = ledger.releases
            ledger._path = path
            try:
                yield ledger
            finally:
                ledger._path = None
                if ledger.releases != before:
                    ledger.save(path)

    def save(self, path: str | Path) -> None:
        """Write the ledger to a file that only its owner can read.

        The file is replaced as a whole or not at all.

        Parameters
        ----------
        path
            Path of the file.

        Raises
        ------
        InvalidInput
            If the file holds a ledger with releases that this ledger does not have, because saving would lose them. Do
            not send reports that this ledger returned. Load the file, and call :meth:`answer` on that ledger instead.
        """
        with locked(path), self._one_at_a_time:
            text = self.to_json()
            self._check_continues(path)
            with replacing(path) as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), 0o600)
                file.write(text.encode())

    def _check_continues(self, path: str | Path) -> None:
        """Raise InvalidInput if the file holds releases that this ledger does not have."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            is_ledger = "ledger" in parse_json(text)
        except (OSError, ValueError, TypeError):
            return  # not a ledger: the write replaces the file, or fails
        stored = Ledger.from_json(text) if is_ledger else Ledger()
        known, waves = stored.releases, stored._waves
        is_shorter = len(known) > len(self._releases) or waves != self._waves[: len(waves)]
        if is_shorter or not all(map(_continues, self._releases, known)):
            must = "hold only releases that this ledger has"
            in_file = quantity(len(known), "release")
            got = Description(f"{in_file} in the file, {len(self._releases)} in this ledger")
            hint = "Nothing was saved. Send no report of this ledger; load the file and answer again."
            raise InvalidInput(str(path), "the file", must, got, hint=hint)

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """Read a ledger file.

        Parameters
        ----------
        path
            Path of the file.

        Returns
        -------
        Ledger
            The ledger of the file.

        Raises
        ------
        InvalidInput
            If the file cannot be read, or does not hold a ledger.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise file_error(error, str(path), "the file", "be a readable ledger", Description(error)) from error
        except UnicodeDecodeError as error:
            got = Description(f"a file that is not UTF-8 text ({error.reason})")
            raise InvalidInput(str(path), "the file", "be a readable ledger", got) from None
        return cls.from_json(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)  # a lock cannot be pickled

    def __repr__(self) -> str:
        releases, questions = quantity(len(self._releases), "release"), quantity(len(self._questions()), "question")
        return f"Ledger({releases} about {questions})"


# -- composition of releases -----------------------------------------------------------------------------


def _accounts(releases: list[Release]) -> Iterator[list[Policy]]:
    """Yield up to three valid accounts of the same releases.

    First the stated policies; then, for policies that are not on pairs, their worst-case policies; then the worst-case
    policies of all releases.
    """
    anything = [release.against_anything for release in releases]
    stated = [release.policy for release in releases]
    yield stated
    mixed = [other if on_pairs(policy) is None else policy for policy, other in zip(stated, anything, strict=True)]
    for parts in (mixed, anything):
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            yield known


def _totals(releases: list[Release]) -> Iterator[tuple[list[Policy], Policy]]:
    """Yield each account that composes, with its total. All of them are valid."""
    for parts in _accounts(releases):
        try:
            yield parts, _composed(parts)
        except (CannotCompose, NoAnswer):
            continue


def _room(limit: PairwisePolicy, used: PairwisePolicy) -> Epsilon:
    """Return the greatest ε, at least 0, that can be added to every level of ``used`` within ``limit``."""
    indices = representatives(limit.classes(), used.classes())
    limits, uses = limit.epsilons_on(indices), used.effective_epsilons_on(indices)
    off_diagonal = ~np.eye(len(indices), dtype=bool)
    pairs = np.unique(np.stack([limits.codes[off_diagonal], uses.codes[off_diagonal]]), axis=1)
    bounds = [(limits.epsilon(int(most)), uses.epsilon(int(now))) for most, now in pairs.T]
    left = [most + -now if now < most else ZERO for most, now in bounds if not most.is_infinite]
    return min(left, default=INFINITE)


def _composed(policies: list[Policy]) -> Policy:
    """Return the composition of policies in the order with the smallest result."""
    # Priors compose to Σ ε + Σ ε - max ε if the greatest level comes first, and to more in any other order.
    priors = [policy for policy in policies if isinstance(policy, Prior)]
    if len(priors) == len(policies):
        policies = [*sorted(priors, key=lambda prior: prior.epsilon, reverse=True)]
    return functools.reduce(lambda first, second: first.compose(second), policies)


def _greatest_epsilon(policy: Policy) -> Epsilon:
    """Return the level of classical LDP that the policy implies."""
    if isinstance(policy, Prior):
        return policy.classical_epsilon
    pairwise = on_pairs(policy)
    if pairwise is None:
        return INFINITE
    try:
        return pairwise.greatest_effective[0]
    except LimitExceeded:
        return INFINITE


def _classical_epsilon(mechanism: Mechanism) -> Epsilon | None:
    """Return the classical level that a mechanism of the library states; other samplers may not satisfy theirs."""
    return mechanism.classical_epsilon() if is_library_mechanism(mechanism) else None


@functools.lru_cache(maxsize=32)  # clients repeat a few questions, and an audit may take a second
def _check_obeys(mechanism: Mechanism, policy: Policy) -> None:
    """Raise PolicyViolated if the mechanism violates the policy, because the charge would be too low."""
    classical = _classical_epsilon(mechanism)
    if classical is None or not _certainly_implies(Uniform(policy.domain, classical), policy):
        # Only this audit compares the sampler of a third-party class with its law.
        audit(mechanism, policy).raise_if_violated(coverage=required_coverage(mechanism))


def _needs_proof(release: Release) -> bool:
    """Return whether :meth:`Ledger.prove` could add a level to the release."""
    secret = isinstance(release.policy, Secret) and not isinstance(release.policy.distributions, Anything)
    return secret and release.against_anything is None


def _why_unbounded(releases: list[Release], added: Release | None) -> str:
    """Explain which releases have no level to charge, and what to do about it."""

    def named(some: Iterable[Release]) -> str:
        return ", ".join(repr(name) for name in dict.fromkeys(release.collection for release in some))

    noun = "collection" if len({release.collection for release in releases}) == 1 else "collections"
    words = f"cannot bound the total privacy loss of {noun} {named(releases)}"
    if added is not None and added.against_anything is None:
        return (
            f"{words}: their policies do not compose, and the mechanism of {named([added])} has no finite epsilon that "
            "holds for every distribution. Do not answer this collection, or use a mechanism that obeys a policy on "
            "pairs of values."
        )
    unknown = [release for release in releases if release.against_anything is None]
    if unknown:
        words += f": the ledger has no finite epsilon for {named(unknown)} that holds for every distribution"
    if any(map(_needs_proof, unknown)):
        return f"{words}. If an earlier version wrote this ledger, call Ledger.prove(collection, mechanism) to add it."
    return f"{words}. Do not answer this question again."


def _continues(release: Release, known: Release) -> bool:
    """Return whether the release is the known one, possibly with a proved level added."""
    return release == known or (known.hiding is None and dataclasses.replace(release, hiding=None) == known)


@functools.lru_cache(maxsize=32)  # for the same reason as above
def _hiding_epsilon(mechanism: Mechanism, policy: Policy) -> Epsilon | None:
    """Return the smallest level found at which an audit proves that the secret is hidden for every distribution.

    The level is that of the policy, or a multiple of 10^-9. None if the policy composes by itself,
    or if some report rules out a secret.
    """
    if not isinstance(policy, Secret) or isinstance(policy.distributions, Anything):
        return None

    def audited(epsilon: Epsilon) -> Certificate:
        return audit(mechanism, Secret(policy.domain, policy.secret, epsilon, Anything()))

    try:
        worst = audited(ZERO).worst  # at ε = 0 the worst constraint has the greatest ratio of likelihoods
        if worst.names is None or worst.right == 0:
            return None
        reached = log_rounded_up([(worst.left, ZERO)], [(worst.right, ZERO)])
        # The worst constraint was chosen in doubles; the next step covers another that is larger by a last digit.
        candidates = {reached, reached + Epsilon("0.000000001"), policy.epsilon}
        for epsilon in sorted(e for e in candidates if not e.is_infinite):
            certificate = audited(epsilon)
            if certificate.holds:
                certificate.raise_if_violated(coverage=required_coverage(mechanism))
                return epsilon
    except NoAnswer:
        return None
    return None


def _certainly_implies(first: Policy, second: Policy) -> bool:
    """Return whether the first policy is known to imply the second."""
    try:
        return implies(first, second)
    except NoAnswer:
        return False


def _summary(policy: Policy) -> str:
    """Describe a policy in a few words."""
    epsilon = getattr(policy, "epsilon", None)
    suffix = f" at epsilon {epsilon}" if isinstance(epsilon, Epsilon) else ""
    return f"a {policy.kind} policy{suffix}"


# -- reading and writing ---------------------------------------------------------------------------------


def _read_budgets(budget: Any) -> dict[Domain, Policy]:
    """Return the policies of a budget by domain."""
    several = isinstance(budget, Iterable) and not isinstance(budget, str)
    policies = [] if budget is None else list(budget) if several else [budget]
    budgets: dict[Domain, Policy] = {}
    for policy in policies:
        if not isinstance(policy, Policy):
            raise InvalidInput("Ledger", "budget", "be a policy or a list of policies", policy)
        if policy.domain in budgets:
            raise InvalidInput("Ledger", "budget", "have one policy per domain", policy.domain)
        budgets[policy.domain] = policy
    return budgets


def _check_name(subject: str, parameter: str, name: object) -> None:
    """Raise InvalidInput unless the name is a non-empty string."""
    if not isinstance(name, str) or not name:
        raise InvalidInput(subject, parameter, "be a non-empty string", name)


def _checked_wave(subject: str, wave: Any, last: int) -> int:
    """Return the number of a wave, also from a NumPy integer."""
    return checked_integer(subject, "wave", plain_integer(wave), 0, last)


def _restored(mechanism: Mechanism, report: bytes) -> npt.NDArray[Any]:
    """Return a stored report as an array with one row."""
    if len(report) != (mechanism.bits + 7) // 8:
        must = f"have {quantity((mechanism.bits + 7) // 8, 'byte')}"
        raise InvalidInput("a ledger", "the stored report", must, Description(quantity(len(report), "byte")))
    if mechanism.report_format.shape:
        array = np.frombuffer(report, np.uint8).reshape(1, -1).copy()
    else:
        array = np.array([int.from_bytes(report, "little")], mechanism.report_format.dtype)
    return mechanism.report_format.validate(array, "a ledger's stored report")


def _release_document(release: Release) -> dict[str, Any]:
    """Return a release as a JSON object."""
    return {
        "collection": release.collection,
        "mechanism": release.mechanism,
        "classical": None if release.classical is None else str(release.classical),
        "policy": release.policy.to_dict(),
        "value": release.value,
        "report": None if release.report is None else release.report.hex(),
        **({} if release.hiding is None else {"hiding": str(release.hiding)}),
        **({"permanent": True} if release.permanent else {}),
    }


def _wave_document(wave: _Wave) -> dict[str, Any]:
    """Return the report of a wave as a JSON object."""
    return {**dataclasses.asdict(wave), "report": wave.report.hex()}


def _read_wave(number: int, content: object, releases: list[Release]) -> _Wave:
    """Read the report of a wave from a JSON object."""
    entry = f"wave {number}"
    keys = ("collection", "wave", "release", "report")
    document = check_keys("a ledger", entry, content, required=keys)
    _check_name("a ledger", f"{entry}, collection", document["collection"])
    wave = checked_integer("a ledger", f"{entry}, wave", document["wave"], 0, _LAST_WAVE)
    place = checked_integer("a ledger", f"{entry}, release", document["release"], 0, len(releases) - 1)
    if (releases[place].collection, releases[place].permanent) != (document["collection"], True):
        must = "be a permanent answer of the same collection"
        raise InvalidInput("a ledger", f"{entry}, release", must, document["release"])
    return _Wave(document["collection"], wave, place, _read_hex(f"{entry}, report", document["report"]))


def _read_release(number: int, content: object) -> Release:
    """Read a release from a JSON object."""
    entry = f"release {number}"
    keys = ("collection", "mechanism", "classical", "policy", "value", "report")
    document = check_keys("a ledger", entry, content, required=keys, optional=["hiding", "permanent"])
    collection, classical = document["collection"], document["classical"]
    policy, hiding = policy_from_dict(document["policy"]), document.get("hiding")
    if hiding is not None and not isinstance(policy, Secret):
        raise InvalidInput("a ledger", f"{entry}, hiding", "be absent unless the policy is a secret", hiding)
    permanent = document.get("permanent", False)
    if not isinstance(permanent, bool) or (permanent and document["report"] is None):
        raise InvalidInput("a ledger", f"{entry}, permanent", "be true only for an entry with a report", permanent)
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
        permanent,
    )


def _read_hex(name: str, digits: object, length: int | None = None) -> bytes:
    """Read hexadecimal digits, and check their number."""
    try:
        data = bytes.fromhex(digits) if isinstance(digits, str) else None
    except ValueError:
        data = None
    if data is None or data.hex() != digits or (length is not None and len(data) != length):
        size = "" if length is None else f" of {length} bytes"
        raise InvalidInput("a ledger", name, f"be lower-case hexadecimal digits{size}", digits)
    return data
