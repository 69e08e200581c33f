"""The result of ``amplify``: certified central levels, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato._core import Epsilon, Result, plot_result, quantity, rounded_down, rounded_up
from sfumato.auditing.shuffling.deltas import delta_float
from sfumato.errors import UnknownLabel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Amplification", "AmplifiedPair"]


@dataclass(frozen=True)
class AmplifiedPair:
    """One kind of protected pair of values, with its local and its central level.

    The levels bound how much likelier the reports of a batch are if one person has ``value`` than if the person has
    ``other``. The opposite direction is a separate pair, if the policy protects it.

    Parameters
    ----------
    value
        Label of the value that a report must not reveal.
    other
        Label of the value that it must be hard to distinguish from.
    pairs
        Number of pairs of the domain that have the same ``local`` and ``epsilon``; this pair represents them.
    local
        Level ε of one report: the greatest ratio of the likelihoods of the two values, rounded up.
    epsilon
        Certified upper bound on the central level at the δ of the result. It equals ``local`` if the pair is not
        amplified.
    lower
        Certified lower bound on the central level of this pair at the same δ, attained if all other people have the
        value ``crowd``. None if it was not computed.
    crowd
        Label of the value of all other people in the data set that attains ``lower``; None without a lower bound.

    Examples
    --------
    >>> import sfumato as sf
    >>> policy = sf.Uniform(sf.Domain(["none", "flu", "hiv"]), 2)
    >>> mechanism = sf.mechanisms.RandomizedResponse(policy.domain, 2)
    >>> (row,) = sf.amplify(mechanism, policy, 10_000, "1e-6")
    >>> row.pairs, row.local, row.is_amplified, row.crowd
    (6, Epsilon('2'), True, 'hiv')
    """

    value: object
    other: object
    pairs: int
    local: Epsilon
    epsilon: Epsilon
    lower: Epsilon | None
    crowd: object

    @property
    def is_amplified(self) -> bool:
        """Whether the central level is smaller than the level of one report."""
        return self.epsilon < self.local


@dataclass(frozen=True, repr=False)
class Amplification(Result):
    """Certified central levels of a batch of shuffled reports, from :func:`amplify`.

    Print a result to see the levels of all kinds of protected pairs. Iteration yields one
    :class:`~sfumato.auditing.AmplifiedPair` per kind, and ``result["flu", "hiv"]`` returns the one of two values
    that the table lists.

    Parameters
    ----------
    n
        Number of people in the batch.
    exact_delta
        The probability δ of the central statement.
    rows
        The kinds of protected pairs, the greatest central level first.
    mutual
        Whether every protected pair is also protected in the opposite direction.
    once
        Whether the levels hold only if no person sends another report of this mechanism.

    Examples
    --------
    >>> import sfumato as sf
    >>> policy = sf.Uniform(sf.Domain(["none", "flu", "hiv"]), 4)
    >>> result = sf.amplify(sf.design(policy), policy, 100_000, 1e-6)
    >>> round(float(result.epsilon), 2), round(float(result.lower), 2)
    (0.12, 0.12)
    """

    n: int
    exact_delta: Fraction
    rows: tuple[AmplifiedPair, ...]
    mutual: bool = True
    once: bool = False

    @property
    def delta(self) -> float:
        """The probability δ of the central statement, as a float that is rounded up if it has too many digits."""
        return delta_float(self.exact_delta)

    @property
    def epsilon(self) -> Epsilon:
        """Certified upper bound on the central level ε at ``delta``, over all pairs of the table.

        These are all protected pairs, or those that were passed as ``pairs``. Zero if there are none.
        """
        return max((row.epsilon for row in self.rows), default=Epsilon(0))

    @property
    def lower(self) -> Epsilon:
        """Certified lower bound on the central level ε at ``delta``, attained by one pair and one data set."""
        return max((row.lower for row in self.rows if row.lower is not None), default=Epsilon(0))

    @property
    def local(self) -> Epsilon:
        """Greatest level ε of one report over all protected pairs."""
        return max((row.local for row in self.rows), default=Epsilon(0))

    def plot(self) -> Figure:
        """Draw the local and the central level of every kind of pair.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        figure: Figure = plot_result(self)
        return figure

    def __getitem__(self, pair: tuple[object, object]) -> AmplifiedPair:
        for row in self.rows:
            if (row.value, row.other) == pair:
                return row
        hint = "Pass pairs=[(value, other)] to amplify for the levels of other pairs."
        raise UnknownLabel("Amplification", "pair", "be a pair that the table lists", pair, hint=hint)

    def __iter__(self) -> Iterator[AmplifiedPair]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {
            "value": [row.value for row in self.rows],
            "other": [row.other for row in self.rows],
            "pairs": [row.pairs for row in self.rows],
            "local": [float(row.local) for row in self.rows],
            "epsilon": [row.epsilon.upper_float() for row in self.rows],
            "lower": [float("nan") if row.lower is None else float(row.lower) for row in self.rows],
            "crowd": [row.crowd for row in self.rows],
        }

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        columns = dict(self._columns())
        columns["local"] = [rounded_up(level, 5) for level in columns["local"]]
        columns["epsilon"] = [rounded_up(level, 5) for level in columns["epsilon"]]
        columns["lower"] = ["" if row.lower is None else rounded_down(float(row.lower), 5) for row in self.rows]
        columns["crowd"] = ["" if row.lower is None else row.crowd for row in self.rows]
        return columns

    def _title(self) -> str:
        title = f"central levels of {quantity(self.n, 'shuffled report')} at δ = {rounded_up(self.delta, 6)}"
        return title if self.rows else f"{title}: no protected pairs"

    def __repr__(self) -> str:
        delta = rounded_up(self.delta, 6)
        if not self.rows:
            return f"<Amplification of no protected pairs, δ = {delta}, n = {self.n:,}>"
        levels = f"{rounded_down(float(self.lower), 5)} ≤ ε ≤ {rounded_up(self.epsilon.upper_float(), 5)}"
        local = rounded_up(self.local.upper_float(), 4)
        return f"<Amplification {levels} at δ = {delta}, n = {self.n:,}, local ε {local}>"
