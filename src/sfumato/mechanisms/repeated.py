"""What several reports of one person have in common: readers for audits, ledgers and waves. By default, nothing."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence

from sfumato._core import Floats
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.memoized.forms import moments_of_copies
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.sampled_parts.mechanism import SampledParts
from sfumato.policy import Policy

__all__ = ["further_promises", "greatest_stale_share", "keeps_answers", "links_reports", "repeating", "shared_moments"]


@functools.singledispatch
def further_promises(mechanism: Mechanism) -> Sequence[tuple[str, Mechanism, Policy]]:  # noqa: ARG001
    """Return what a mechanism promises apart from the policy of one report, which an audit checks as well.

    A promise is what it speaks of, in words, the mechanism that must obey it, and its policy.
    """
    return ()


@further_promises.register
def _(mechanism: MemoizedMechanism) -> Sequence[tuple[str, Mechanism, Policy]]:
    return (("all reports about one unchanged value", mechanism.permanent, mechanism.lifetime),)


@functools.singledispatch
def keeps_answers(mechanism: Mechanism) -> bool:  # noqa: ARG001
    """Return whether all reports about an unchanged value come from one stored answer; else they may be independent."""
    return False


@keeps_answers.register
def _(mechanism: MemoizedMechanism) -> bool:
    return mechanism.refresh_every is None


def links_reports(mechanism: Mechanism) -> bool:
    """Return whether reports of one person share a random choice, by which an observer may recognize the person.

    Memoized mechanisms share the permanent answer, and mechanisms that ask for one attribute share its choice.
    """
    return isinstance(mechanism, (MemoizedMechanism, SampledParts))


@functools.singledispatch
def repeating(mechanism: Mechanism, report: int) -> Mechanism:  # noqa: ARG001
    """Return the mechanism for further reports of a person who has sent a report.

    A choice that does not depend on the value, such as the attribute that a person reports, must be the same in all
    reports of the person, because several choices reveal more.
    """
    return mechanism


@repeating.register
def _(mechanism: SampledParts, report: int) -> Mechanism:
    chosen, _ = mechanism.split_report(report)
    same = copy.copy(mechanism)
    same.weights = tuple(int(number == chosen) for number in range(len(mechanism.parts)))
    for derived in ("_bounds", "probabilities", "hash"):
        same.__dict__.pop(derived, None)
    return same


@functools.singledispatch
def shared_moments(mechanism: Mechanism, u: Floats) -> Floats:
    """Return the greatest second moment that the scores of two reports about an unchanged value can share.

    It is Σ_x u(x)·E[φ_v(Y)·φ_v(Y') | x] for every value v and two reports Y and Y', where u(x) is the share of people
    who have the value x both times, and the score φ(y) is the vector of frequencies estimated from y alone. Two reports
    share most if a device sends the same one again. Reports of a memoized mechanism share only the permanent answer.
    """
    return moments_of_copies(mechanism, u)


@shared_moments.register
def _(mechanism: MemoizedMechanism, u: Floats) -> Floats:
    return mechanism.form.shared_moments(mechanism.single, mechanism.permanent, u)


@functools.singledispatch
def greatest_stale_share(mechanism: Mechanism, steps: int, change_rate: float = 1.0) -> float:  # noqa: ARG001
    """Return the greatest share of people whose device reports about an earlier value, ``steps`` waves after the first.

    At most a share ``change_rate`` of people change from one wave to the next, and the same people may change every
    time. Only memoized mechanisms have such devices, if they keep few answers or follow a schedule.
    """
    return 0.0


@greatest_stale_share.register
def _(mechanism: MemoizedMechanism, steps: int, change_rate: float = 1.0) -> float:
    most = mechanism.capacity
    if mechanism.refresh_every is not None:
        epoch = steps // mechanism.refresh_every
        first = (epoch if most is None else min(epoch, most - 1)) * mechanism.refresh_every
        return min(1.0, (steps - first) * change_rate)
    # Someone with a full memory of m answers has changed at least m times.
    return 0.0 if most is None or steps < most else min(1.0, steps * change_rate / most)
