"""The report of a mechanism that comes closest to violating a policy, from its stated law."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from sfumato.errors import LimitExceeded
from sfumato.mechanisms.base import LARGEST_MATRIX, Mechanism
from sfumato.policy import UNCONSTRAINED, Policy, TightestConstraint

__all__ = ["candidate_columns", "tightest_report"]


def candidate_columns(mechanism: Mechanism, policy: Policy) -> Iterator[tuple[int, list[Fraction]]]:
    """Yield reports with their likelihoods, among them the report that comes closest to violating the policy.

    Raises LimitExceeded if all reports must be listed and there are too many.
    """
    columns = mechanism.worst_columns(policy)
    if columns is not None:
        yield from columns
        return
    size = len(mechanism.domain)
    if size * mechanism.outputs > LARGEST_MATRIX:
        raise LimitExceeded(
            f"cannot audit {mechanism.name} over {size} values: it has too many outputs to compare one by one, and "
            f"no shorter form of its output distribution is known for a {policy.kind} policy. "
            "Use a smaller domain, or another mechanism."
        )
    for report in mechanism.reports():
        yield report, [mechanism.probability(report, x) for x in range(size)]


def tightest_report(mechanism: Mechanism, policy: Policy) -> tuple[int, TightestConstraint]:
    """Return the report that comes closest to violating a policy, and the rule that it comes closest to violating."""
    known = mechanism.tightest(policy)
    if known is not None:
        return known
    worst: tuple[int, TightestConstraint] | None = None
    for report, likelihoods in candidate_columns(mechanism, policy):
        constraint = policy.worst(likelihoods)
        if worst is None or worst[1].names is None or constraint.rank > worst[1].rank:
            worst = report, constraint
    return worst or (0, UNCONSTRAINED)
