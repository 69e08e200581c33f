"""Bounds that need no search over rays: closed forms, and exact optima of symmetric policies."""

from __future__ import annotations

import numpy as np

from sfumato.compiler.bounds import least_risk, least_worst_risk
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.compiler.solvers.goals import Estimation, Goal, MutualInformation, WorstEstimation
from sfumato.compiler.solvers.orbits import OrbitDesign, best_orbits, orbit_information
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import LimitExceeded, NoAnswer
from sfumato.policy import Policy

__all__ = ["exact_bound", "known_optimum"]

#: Greatest gap, relative to the value, of a bound from orbits that is returned.
_CLOSE = 0.01


def known_optimum(
    policy: Policy, goal: Goal, prior: Frequencies | None, deadline: Deadline = NEVER
) -> tuple[float | None, OrbitDesign | None]:
    """Return a bound on the utility of every mechanism and the best mixture of orbits; None where they are not known.

    Parameters
    ----------
    policy
        Any policy.
    goal
        The utility. Orbits are known for estimation and for mutual information.
    prior
        Distribution of values; uniform by default.
    deadline
        Time by which to end.
    """
    if isinstance(goal, WorstEstimation):
        return least_worst_risk(policy), None
    if not isinstance(goal, (Estimation, MutualInformation)):
        return None, None
    distribution = checked_distribution(prior, policy.domain, "a bound", "prior")
    closed_form = least_risk(policy) if isinstance(goal, Estimation) and np.ptp(distribution) <= 1e-12 else None
    search = best_orbits if isinstance(goal, Estimation) else orbit_information
    try:
        design = search(policy, distribution, deadline=deadline)
    except (LimitExceeded, NoAnswer):
        design = None
    if closed_form is not None or design is None or design.gap > _CLOSE:
        return closed_form, design
    return design.bound, design


def exact_bound(policy: Policy, prior: Frequencies | None = None, *, deadline: Deadline = NEVER) -> float | None:
    """Return the least possible expected squared error from one report, if it is known.

    Parameters
    ----------
    policy
        Any policy.
    prior
        Distribution of values; uniform by default, also for a :class:`Prior` policy.
    deadline
        Time limit.

    Returns
    -------
    float or None
        A lower bound on the limit of n·E|p̂-p|² for every mechanism, from a closed form or from ``best_orbits``. The
        mixture of orbits comes within 1% of it, and within a relative 1e-6 unless its orbits are too many to compare.
        None if no closed form applies, and the search over orbits declines the policy or comes less close in time.
    """
    if prior is None:
        closed_form = least_risk(policy)
        if closed_form is not None:
            return closed_form
    return known_optimum(policy, Estimation(), prior, deadline)[0]
