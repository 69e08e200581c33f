"""The verb ``design``: build the mechanism that a plan recommends."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato._core import EpsilonLike, Floats, ProgressCallback, checked_count, checked_integer
from sfumato.compiler.central import CentralTarget
from sfumato.compiler.planning import SEARCH_SECONDS, needs_search, plan, plan_for_target, plan_request
from sfumato.compiler.plans import Plan, Row
from sfumato.compiler.report_length import SHORT, MaxBits, ReportLength
from sfumato.compiler.requests import Request
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.goals import Goal
from sfumato.compiler.solvers.responses import best_response, merged_columns
from sfumato.domain import Frequencies
from sfumato.errors import InvalidInput, LimitExceeded, NoMechanism
from sfumato.mechanisms import (
    Mechanism,
    MemoizedMechanism,
    TableMechanism,
    check_lifetime,
    memoized_variants,
    permanent_pair,
    response_tables,
    shared_moments,
    short_bits,
)
from sfumato.policy import Policy
from sfumato.questions import Question

__all__ = ["DEFAULT_WAVES", "design", "memoized_bits", "memoized_choice"]

#: Default number of waves of the mean whose error a memoized mechanism minimizes.
DEFAULT_WAVES = 10
#: Greatest number of waves.
_MOST_WAVES = 2**31 - 1
#: Greatest number of values for which a memoized mechanism may have one bit per value by default: 128 bytes per report.
_FEW_VALUES = 1024
#: Ratio to the least errors up to which a memoized mechanism with shorter reports is preferred.
_CLOSE = 1.001
#: Greatest number of values for which linear programs search for a response, and of outputs of its tables.
_MOST_SEARCHED, _MOST_OUTPUTS = 16, 64
#: Greatest number of outputs of a mechanism whose law is read as a table; patterns repeat most of its columns.
_MOST_READ = 2**12
#: Number of permanent tables, and of laws of one report, that the search starts from.
_STARTS = 2
#: Ratio of the errors of two permanent tables above which the worse one is not tried.
_FAR = 2.0


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
    waves: int | None = None,
    prior: Frequencies | None = None,
    central: EpsilonLike | None = None,
    delta: Any = None,
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
        Number of people. Without ``central``, the choice of the mechanism does not depend on it; leave it out.
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
        :class:`~sfumato.mechanisms.MemoizedMechanism`: ``policy`` limits one report, and must imply ``lifetime``. Only
        mechanisms that have a memoized form are compared.
    max_changes
        Greatest number of further permanent answers of one person, with ``lifetime``; no limit by default.
    refresh_every
        Number of waves after which every device draws a new permanent answer, with ``lifetime``. By default, a device
        draws one for each new value.
    waves
        Number of waves of the mean whose error is minimized, with ``lifetime`` and for all frequencies; 10 by default.
        The mean is over people whose values do not change. 1 minimizes the error of one wave. For
        another utility or a question, the error of one wave decides.
    prior
        Distribution of values that the design assumes: a sequence in domain order, or a mapping or pandas Series with
        the values as labels. The default is that of :func:`plan`.
    central
        Central level ε that ``n`` shuffled reports must not exceed at ``delta`` (see :func:`amplify`). The policy still
        limits the local level; state a large one there if only the central level matters. Leave out ``lifetime``.
    delta
        Probability δ of the central statement; pass it together with ``central``.
    max_bits
        Length of a report in bits. The default, ``"short"``, means at most ⌈log2 k⌉ + 8 bits for k values, and more
        only if the best mechanism with such reports is not within 5% of the best one. With ``lifetime`` and at most
        1,024 values, it means the shortest reports whose errors of one wave and of the mean are within 0.1% of the
        least ones. An integer is a limit, and None means no limit.
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

    The most accurate mechanism for a central level of 1/10 at δ = 10⁻⁶, with at most ε = 6 per report:

    >>> best = design(Uniform(Domain.range(10), 6), 100_000, central="0.1", delta="1e-6")
    >>> best.name, round(float(best.epsilon), 1)
    ('randomized-response', 3.8)
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
    if central is None and delta is not None:
        raise InvalidInput("design", "delta", "be passed together with central", delta)
    if lifetime is not None and central is not None:
        hint = "Memoized reports link their sender, so a crowd does not hide them."
        raise InvalidInput("design", "central", "be left out with lifetime", central, hint=hint)
    if lifetime is None:
        settings = {"max_changes": max_changes, "refresh_every": refresh_every, "waves": waves}
        for parameter, setting in settings.items():
            if setting is not None:
                raise InvalidInput("design", parameter, "be passed together with lifetime", setting)
        if central is not None:
            return plan_for_target(request, CentralTarget("design", central, delta, n)).best.mechanism
        return plan_request(request).best.mechanism
    check_lifetime(policy, lifetime)
    length = ReportLength(memoized_bits(request.length.max_bits, len(policy.domain)), len(policy.domain))
    return memoized_choice(
        plan_request(replace(request, length=length)),
        lifetime,
        max_bits=request.length.max_bits,
        max_seconds=request.max_seconds,
        searches=mechanism is None,
        waves=DEFAULT_WAVES if waves is None else waves,
        max_changes=max_changes,
        refresh_every=refresh_every,
    )


def memoized_bits(max_bits: MaxBits, values: int) -> MaxBits:
    """Return the limit of the plan from which a memoized mechanism is chosen.

    Sets of two sizes need one bit per value. They are the best for one wave and for means, so a short list of values
    takes them by default.
    """
    return None if max_bits == SHORT and values <= _FEW_VALUES else max_bits


def memoized_choice(
    plan: Plan,
    lifetime: Policy,
    *,
    max_bits: MaxBits = SHORT,
    max_seconds: float | None = None,
    searches: bool = True,
    waves: int = DEFAULT_WAVES,
    max_changes: int | None = None,
    refresh_every: int | None = None,
) -> MemoizedMechanism:
    """Return the memoized mechanism of least error among the mechanisms of a plan, made with ``memoized_bits``.

    ``searches`` allows tables that are not in the plan; the caller may have named a mechanism.
    """
    policy = plan.policy
    check_lifetime(policy, lifetime)
    waves = checked_integer("design", "waves", waves, 1, _MOST_WAVES)
    if plan.utility == "estimation" and plan.question is None:
        options = _options(plan, lifetime, max_bits, waves)
        options += _response_options(plan, lifetime, waves, max_seconds) if searches else []
    else:
        pairs = ((permanent_pair(row.mechanism, policy, lifetime), row.bits) for row in _by_preference(plan))
        fitting = (_Option(pair, 0.0, 0.0, bits) for pair, bits in pairs if pair is not None)
        options = list(itertools.islice(fitting, 1))
    if not options:
        raise NoMechanism(
            f"no mechanism for this {policy.kind} policy that was compared has a memoized form with this lifetime "
            "policy. Design for fewer values, or for a Uniform policy at the smallest level of this one."
        )
    chosen = _best_option(options, prefers_short=max_bits == SHORT)
    return MemoizedMechanism(
        *chosen.pair, lifetime, max_changes=max_changes, refresh_every=refresh_every, response=chosen.response
    )


@dataclass(frozen=True)
class _Option:
    """Mechanisms of one report and of permanent answers; the errors of one wave and of the mean over waves."""

    pair: tuple[Mechanism, Mechanism]
    one: float
    mean: float
    bits: int
    response: TableMechanism | None = None


def _by_preference(plan: Plan) -> Iterator[Row]:
    """Yield the rows of a plan: the recommended one, then the one that is recommended without it, and so on."""
    rows = plan.rows
    while rows:
        best = replace(plan, rows=rows).best
        yield best
        rows = tuple(row for row in rows if row is not best)


def _options(plan: Plan, lifetime: Policy, max_bits: MaxBits, waves: int) -> list[_Option]:
    """Return the memoized forms of all mechanisms of a plan that may have the least error of the mean."""
    values = len(plan.policy.domain)
    prior = np.full(values, 1 / values) if plan.prior is None else np.array(plan.prior)
    limit = max(plan.best.bits, short_bits(values)) if plan.max_bits == SHORT else plan.max_bits
    options: list[_Option] = []
    least = math.inf
    for row in plan.rows:
        if limit is not None and row.bits > limit:
            continue
        variants = memoized_variants(row.mechanism, lifetime) if max_bits is not None else ()
        for single in (row.mechanism, *variants):
            # The mean has at least the error of independent waves.
            if (limit is not None and single.bits > limit) or single.risk(1, prior) / waves > least:
                continue
            pair = permanent_pair(single, plan.policy, lifetime)
            if pair is None:
                continue
            options.append(_measured(pair, None, lifetime, prior, waves))
            least = min(least, options[-1].mean)
    return options


def _measured(
    pair: tuple[Mechanism, Mechanism], response: TableMechanism | None, lifetime: Policy, prior: Floats, waves: int
) -> _Option:
    """Return an option with its errors."""
    form = MemoizedMechanism(*pair, lifetime, response=response)
    one = form.risk(1, prior)
    mean = one / waves
    if waves > 1 and math.isfinite(one):
        mean += (1 - 1 / waves) * float((shared_moments(form, prior) - prior**2).sum())
    return _Option(pair, one, mean, form.bits, response)


def _response_options(compared: Plan, lifetime: Policy, waves: int, max_seconds: float | None) -> list[_Option]:
    """Return the best permanent table for the lifetime policy, with a response that linear programs find."""
    policy, values = compared.policy, len(compared.policy.domain)
    if (
        values > _MOST_SEARCHED
        or max_seconds == 0
        or compared.max_bits == 1
        or not needs_search(policy, None, asks=False)
    ):
        return []
    deadline = Deadline(SEARCH_SECONDS if max_seconds is None else max_seconds)
    prior = np.full(values, 1 / values) if compared.prior is None else np.array(compared.prior)
    permanent = plan(lifetime, 1, prior=compared.prior, max_bits=None, max_seconds=max_seconds)
    limit = None if compared.max_bits == SHORT else compared.max_bits
    options = []
    targets = list(itertools.islice(_small_matrices(compared.rows), _STARTS))
    close = [row for row in permanent.rows if row.risk <= _FAR * permanent.rows[0].risk]
    for matrix in itertools.islice(_small_matrices(close), _STARTS):
        try:
            response = best_response(matrix, policy, prior, targets, deadline)
        except LimitExceeded:  # the policy has rules that cannot be listed
            return []
        tables = None if response is None else response_tables(policy.domain, matrix, response, policy, lifetime)
        if tables is not None and (limit is None or tables[0].bits <= limit):
            options.append(_measured(tables[:2], tables[2], lifetime, prior, waves))
    return options


def _small_matrices(rows: Iterable[Row]) -> Iterator[Floats]:
    """Yield the laws of mechanisms with few outputs, if those with proportional likelihoods count as one."""
    for row in rows:
        if row.mechanism.outputs <= _MOST_READ:
            matrix = merged_columns(row.mechanism.matrix())
            if matrix.shape[1] <= _MOST_OUTPUTS:
                yield matrix


def _best_option(options: Sequence[_Option], *, prefers_short: bool) -> _Option:
    """Return the option of least error of the mean, or a shorter one whose two errors are within 0.1% of the least."""
    one, mean = min(option.one for option in options), min(option.mean for option in options)
    close = [option for option in options if option.one <= _CLOSE * one and option.mean <= _CLOSE * mean]
    if prefers_short and close:
        return min(close, key=lambda option: (option.bits, option.mean))
    return min(options, key=lambda option: (float(f"{option.mean:.9g}"), float(f"{option.one:.9g}"), option.bits))
