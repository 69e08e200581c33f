"""Readable totals of a ledger: the level that was spent on each kind of pair of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato._core import Epsilon
from sfumato.policy import PairwisePolicy, Policy, on_pairs, representatives

__all__ = ["Level", "levels_of"]


@dataclass(frozen=True)
class Level:
    """Level that a person has spent on one kind of pair of values, with the limit of the budget.

    :meth:`Ledger.levels` returns the levels of a question. Users do not construct them.

    Parameters
    ----------
    value
        Value whose reports are compared, an example of its kind. None if the policies are not on pairs of values.
    other
        Value with which it is compared.
    spent
        Level of all reports together: they are at most e^spent times likelier for ``value`` than for ``other``. None if
        the policies do not limit this pair.
    limit
        Level that the budget allows. None if there is no budget, or if it does not limit this pair.
    policy
        Name of the kind of policy, if it is not on pairs of values.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["none", "flu", "hiv"])
    >>> policy = sf.HighLow(domain, ["hiv"], epsilon="0.5")
    >>> ledger = sf.Ledger(budget=sf.HighLow(domain, ["hiv"], epsilon=2))
    >>> for name in ("spring", "summer", "autumn"):
    ...     ledger.charge(name, sf.design(policy), policy)
    >>> print(*ledger.levels(domain), sep="\\n")
    'hiv' against 'none': 1.5 of 2
    'none' against 'flu': not limited
    """

    value: object
    other: object
    spent: Epsilon | None
    limit: Epsilon | None
    policy: str | None = None

    def __str__(self) -> str:
        pair = f"a {self.policy} policy" if self.policy else f"{self.value!r} against {self.other!r}"
        if self.spent is None:
            return f"{pair}: not limited"
        return f"{pair}: {self.spent}" + ("" if self.limit is None else f" of {self.limit}")


def levels_of(spent: Policy, budget: Policy | None) -> tuple[Level, ...]:
    """Return one level for each kind of pair, those of limited pairs first."""
    used = on_pairs(spent)
    limits = None if budget is None else on_pairs(budget)
    if used is None or (budget is not None and limits is None):
        levels = (getattr(policy, "epsilon", None) for policy in (spent, budget))
        total, most = (level if isinstance(level, Epsilon) else None for level in levels)
        return (Level(None, None, total, most, spent.kind),)
    return _levels_of_pairs(used, used if limits is None else limits, has_limit=limits is not None)


def _levels_of_pairs(used: PairwisePolicy, limits: PairwisePolicy, *, has_limit: bool) -> tuple[Level, ...]:
    """Return one level for each combination of a spent level and a limit, with the first pair that has it."""
    indices = representatives(used.classes(), limits.classes())
    spent, most = used.effective_epsilons_on(indices), limits.effective_epsilons_on(indices)
    rows, columns = np.nonzero(~np.eye(len(indices), dtype=bool))
    codes = np.stack([spent.codes[rows, columns], most.codes[rows, columns]])
    _, first = np.unique(codes, axis=1, return_index=True)
    levels = []
    for place in first.tolist():
        total, limit = (table.epsilon(int(code)) for table, code in zip((spent, most), codes[:, place], strict=True))
        value, other = (used.domain.label(int(indices[side[place]])) for side in (rows, columns))
        finite = [None if level.is_infinite else level for level in (total, limit)]
        levels.append(Level(value, other, finite[0], finite[1] if has_limit else None))
    return tuple(sorted(levels, key=lambda level: level.spent is None))
