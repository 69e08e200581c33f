"""The verb ``design``: the mechanism that a plan recommends for a policy."""

from __future__ import annotations

from sfumato._core import ProgressCallback, checked_count
from sfumato.compiler.planning import plan_request
from sfumato.compiler.requests import Request
from sfumato.compiler.solvers.goals import Goal
from sfumato.domain import Frequencies
from sfumato.mechanisms import Mechanism
from sfumato.policy import Policy

__all__ = ["design"]


def design(
    policy: Policy,
    n: int | None = None,
    *,
    mechanism: str | None = None,
    utility: str | Goal = "estimation",
    prior: Frequencies | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,
    progress: ProgressCallback | None = None,
) -> Mechanism:
    """Return the mechanism that ``plan`` recommends: ``plan(...).best.mechanism``.

    Candidates are the mechanisms made for the structure of the policy, classical ones at the greatest ε that implies
    it, and the optimal design.

    Parameters
    ----------
    policy
        The policy that the mechanism must obey.
    n
        Number of people. Which mechanism is the best does not depend on it.
    mechanism
        Short name of a mechanism that is made whatever else there is, as a plan lists them; ``"optimal"`` searches for
        the optimal design.
    utility
        What to be best at: ``"estimation"``, ``"worst-estimation"``, ``"mutual-information"``, ``"mmse"``, a
        ``SquaredError`` or an ``ExpectedLoss``.
    prior
        The distribution that the design assumes, uniform unless given: in domain order, or with labels.
    max_bits
        Maximum length of a report in bits.
    max_seconds
        Time for all of it, 0 for no search. The call takes at most a fifth and 2 s longer, also where two other
        programs keep the cores busy. By default a search for estimation gets 10 seconds for up to 64 values and none
        for more, and one for another utility a minute.
    progress
        Called with a :class:`Progress` after every round of a search.

    Returns
    -------
    Mechanism
        A mechanism that obeys the policy: however short the time is, the best of those that fit.

    Raises
    ------
    PolicyViolated
        If ``mechanism`` names a registered mechanism that does not obey the policy.
    NoAnswer
        If ``mechanism="optimal"`` and no search fits in the time, or if no mechanism has reports that are short enough.

    Examples
    --------
    >>> from sfumato import Domain, Uniform
    >>> design(Uniform(Domain(["yes", "no", "maybe"]), 1), 1000).name
    'randomized-response'
    """
    if n is not None:
        checked_count("design", n)
    request = Request.read(
        "design",
        policy,
        utility,
        mechanism=mechanism,
        prior=prior,
        max_bits=max_bits,
        max_seconds=max_seconds,
        progress=progress,
    )
    return plan_request(request).best.mechanism
