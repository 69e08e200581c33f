"""The verb ``design``: build the mechanism that a plan recommends."""

from __future__ import annotations

import os
from dataclasses import replace

from sfumato._core import ProgressCallback, checked_count
from sfumato.compiler.planning import plan_request
from sfumato.compiler.plans import Plan
from sfumato.compiler.report_length import SHORT, MaxBits
from sfumato.compiler.requests import Request
from sfumato.compiler.solvers.goals import Goal
from sfumato.domain import Frequencies
from sfumato.errors import InvalidInput, NoMechanism
from sfumato.mechanisms import Mechanism, MemoizedMechanism, check_lifetime, permanent_pair
from sfumato.policy import Policy
from sfumato.questions import Question

__all__ = ["design", "memoized_choice"]


def design(
    policy: Policy,
    n: int | None = None,
    *,
    mechanism: str | None = None,
    utility: str | Goal = "estimation",
    question: Question | str | None = None,
    lifetime: Policy | None = None,
    max_changes: int | None = None,
    refresh_every: int | None = None,
    prior: Frequencies | None = None,
    max_bits: MaxBits = SHORT,
    max_seconds: float | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> Mechanism:
    """Return the recommended mechanism for a policy: the one of least expected error with short reports.

    The result is ``plan(...).best.mechanism``. :func:`plan` compares mechanisms made for this kind of policy, classical
    mechanisms at the greatest ε that implies the policy, and the result of a search over all mechanisms.

    Parameters
    ----------
    policy
        The policy that the mechanism must obey.
    n
        Number of people. The choice of the best mechanism does not depend on it, so it may be left out.
    mechanism
        Short name of the mechanism to build instead of the best one, as a plan lists it: ``"rr"``, ``"subset"`` and so
        on. ``"optimal"`` searches for the optimal mechanism.
    utility
        Quantity to optimize. The default, ``"estimation"``, is the expected squared error of all frequencies. Others
        are ``"worst-estimation"``, ``"mutual-information"``, ``"mmse"``, a :class:`SquaredError` or an
        :class:`ExpectedLoss`; :func:`plan` explains them.
    question
        What is to be learned: a :class:`Question` such as :class:`Mean`, or its name. By default, all frequencies.
    lifetime
        Policy of all reports about one unchanged value, for a question that is asked again. The result is then a
        :class:`~sfumato.mechanisms.MemoizedMechanism`: ``policy`` limits one report, and must imply ``lifetime``. If
        the best mechanism has no memoized form, the best one that has is returned.
    max_changes
        Greatest number of further permanent answers of one person, with ``lifetime``; no limit by default.
    refresh_every
        Number of waves after which every device draws a new permanent answer, with ``lifetime``. By default, a device
        draws one for each new value.
    prior
        Distribution of values that the design assumes: a sequence in domain order, or a mapping or pandas Series with
        the values as labels. The default is that of :func:`plan`.
    max_bits
        Length of a report in bits. The default, ``"short"``, means at most ⌈log2 k⌉ + 8 bits for k values, and more
        only if the best mechanism with such reports is not within 5% of the best one. An integer is a limit, and None
        means no limit.
    max_seconds
        Time limit of the call in seconds; 0 disables the search. The call takes at most 20% plus 2 s longer. By
        default, a search for estimation takes at most 20 s for up to 256 values, ends when it makes little progress,
        and is skipped for more values. A search for another utility takes at most 60 s.
    cache
        Folder of earlier searches; no folder by default. A search that was done before, with at least as much time, is
        read from the folder, audited and not repeated. Other searches are stored there.
    progress
        Function that is called with a :class:`Progress` after every round of a search.

    Returns
    -------
    Mechanism
        The best mechanism for this utility that was found within the time limit. It obeys the policy.

    Raises
    ------
    InvalidInput
        If a parameter is invalid.
    PolicyViolated
        If ``mechanism`` names a mechanism that another package registered, and an audit shows that it does not obey
        the policy.
    NoMechanism
        If no mechanism has reports of at most ``max_bits``, or none that was compared has a memoized form.
    NoAnswer
        If ``mechanism="optimal"`` and the search does not fit in the time limit.

    Examples
    --------
    >>> from sfumato import Domain, Uniform
    >>> design(Uniform(Domain(["yes", "no", "maybe"]), 1), 1000).name
    'randomized-response'
    >>> from sfumato import Mean
    >>> design(Uniform(Domain.range(17, 91), 1), question=Mean(), max_seconds=0).name
    'shifted-bins'
    >>> domain = Domain(["yes", "no", "maybe"])
    >>> design(Uniform(domain, 1), lifetime=Uniform(domain, 2)).permanent.epsilon
    Epsilon('2')
    """
    if n is not None:
        checked_count("design", n)
    request = Request.read(
        "design",
        policy,
        utility,
        question,
        mechanism=mechanism,
        prior=prior,
        max_bits=max_bits,
        max_seconds=max_seconds,
        progress=progress,
        cache=cache,
    )
    if lifetime is None:
        for parameter, setting in {"max_changes": max_changes, "refresh_every": refresh_every}.items():
            if setting is not None:
                raise InvalidInput("design", parameter, "be passed together with lifetime", setting)
        return plan_request(request).best.mechanism
    check_lifetime(policy, lifetime)
    return memoized_choice(plan_request(request), lifetime, max_changes=max_changes, refresh_every=refresh_every)


def memoized_choice(
    plan: Plan, lifetime: Policy, *, max_changes: int | None = None, refresh_every: int | None = None
) -> MemoizedMechanism:
    """Return the memoized form of the best mechanism of a plan that has one."""
    policy = plan.policy
    check_lifetime(policy, lifetime)
    best, rows = plan.best, plan.rows
    while rows:
        pair = permanent_pair(best.mechanism, policy, lifetime)
        if pair is not None:
            return MemoizedMechanism(*pair, lifetime, max_changes=max_changes, refresh_every=refresh_every)
        rows = tuple(row for row in rows if row is not best)
        best = replace(plan, rows=rows).best if rows else best
    raise NoMechanism(
        f"no mechanism for this {policy.kind} policy that was compared has a memoized form with this lifetime policy. "
        "Design for fewer values, or for a Uniform policy at the smallest level of this one."
    )
