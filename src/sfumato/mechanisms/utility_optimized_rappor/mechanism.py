"""Utility-optimized RAPPOR: unary encoding without noise on harmless bits (Murakami and Kawamoto 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import Epsilon, EpsilonLike, checked_integer, floor_of_ratio
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import read_epsilon
from sfumato.mechanisms.draws import Draws, Layout
from sfumato.mechanisms.two_level import ONE
from sfumato.mechanisms.unary.mechanism import PLANES, IndependentBits
from sfumato.policy import INFINITE_CODE, HighLow, PairwisePolicy, Policy, Prior, representatives

__all__ = ["UtilityOptimizedRappor"]


class UtilityOptimizedRappor(IndependentBits):
    """Utility-optimized RAPPOR: one random bit per value, for the policy :class:`HighLow`.

    The bit of a harmless value is set only if that value is the true one. The bits of sensitive values are random for
    every true value. A report is a bitmap with one bit per value; the bits are independent.

    Parameters
    ----------
    domain
        The values, at least two.
    sensitive
        The sensitive values; all others are harmless.
    epsilon
        The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.
    own
        The integer 2^64·θ that a stored spec holds. Omit it to compute it from ``epsilon``; the Notes define θ and s.
    other
        The integer 2^64·(1-θ) that a stored spec holds. Omit it to compute it from ``epsilon``.
    harmless
        The integer 2^64·(1 - 1/s) that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    Let s = e^(ε/2) and θ = s/(s+1) (Murakami and Kawamoto 2019, "Utility-Optimized Local Differential Privacy
    Mechanisms for Distribution Estimation"). The probabilities that a bit is set are:

    | true value | its own bit | other sensitive bits | other harmless bits |
    |---|---|---|---|
    | sensitive | θ | 1-θ | 0 |
    | harmless | 1 - 1/s | 1-θ | 0 |

    So every report is at most e^ε times likelier for a sensitive value than for any other value, which is the
    constraint of ``HighLow``. The probabilities in the column "its own bit" are rounded down, the others up. At ε = 0
    the probabilities of the reports are the same for all values. At ε = ∞ only the value's own bit is set.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import UtilityOptimizedRappor
    >>> illnesses = Domain(["none", "flu", "hiv", "cancer"])
    >>> mechanism = UtilityOptimizedRappor(illnesses, ["hiv", "cancer"], "ln 9")
    >>> mechanism.bit_probability(2, 2), mechanism.bit_probability(2, 3), mechanism.bit_probability(2, 0)
    (Fraction(3, 4), Fraction(1, 4), Fraction(0, 1))
    >>> round(float(mechanism.bit_probability(0, 0)), 6)
    0.666667
    """

    name = "utility-optimized-rappor"

    def __init__(
        self,
        domain: Domain,
        sensitive: Iterable[object],
        epsilon: EpsilonLike,
        *,
        own: int | str | None = None,
        other: int | str | None = None,
        harmless: int | str | None = None,
    ) -> None:
        subject = "UtilityOptimizedRappor"
        if len(domain) < 2:
            raise InvalidInput(subject, "domain", "have at least two values", domain)
        self.domain = checked_domain("UtilityOptimizedRappor", domain)
        self.epsilon = read_epsilon(subject, epsilon)
        self.is_sensitive = HighLow(domain, sensitive, self.epsilon).is_sensitive
        self.is_sensitive.setflags(write=False)
        best_own, best_harmless = _thresholds(self.epsilon)
        self.own = checked_integer(subject, "own", best_own if own is None else own, 0, ONE)
        # The bit of another sensitive value must not be certain, because then only one report would be possible.
        self.other = checked_integer(subject, "other", ONE - best_own if other is None else other, 0, ONE - 1)
        self.harmless = checked_integer(subject, "harmless", best_harmless if harmless is None else harmless, 0, ONE)
        if self.own < self.other:
            raise InvalidInput(subject, "own", f"be at least other = {self.other}", self.own)
        groups = -(-len(domain) // 64)
        self.layout = Layout(64 * PLANES * groups, (), lanes=len(domain), planes=PLANES)

    # -- the sampler and its law -------------------------------------------------------------------------

    def _threshold(self, x: int, position: int) -> int:
        """Return 2^64 times the probability that the bit at a position is set."""
        if self.is_sensitive[position]:
            return self.own if position == x else self.other
        return self.harmless if position == x else 0

    def bit(self, x: int, position: int, draws: Draws) -> bool:
        return draws.bernoulli(self._threshold(x, position), ONE)

    def bit_probability(self, x: int, position: int) -> Fraction:
        return Fraction(self._threshold(x, position), ONE)

    def representatives(self) -> tuple[int, ...]:
        firsts = (int(self.is_sensitive.argmax()), int(self.is_sensitive.argmin()))
        return firsts if not self.is_sensitive.all() else firsts[:1]

    @property
    def outputs(self) -> int:
        sensitive = int(self.is_sensitive.sum())
        return (len(self.domain) - sensitive + 1) << sensitive

    def reports(self) -> Iterable[int]:
        harmless = sum(1 << int(i) for i in np.flatnonzero(~self.is_sensitive))
        return (report for report in range(1 << len(self.domain)) if (report & harmless).bit_count() <= 1)

    def guess_probability(self) -> Fraction:
        p, q, harmless = (Fraction(threshold, ONE) for threshold in (self.own, self.other, self.harmless))
        size, sensitive = len(self.domain), int(self.is_sensitive.sum())
        # Because p ≥ q, a sensitive value whose bit is set is likeliest, unless no bit or a harmless value's bit is
        # set.
        no_bit = [(1 - p) * (1 - q) ** (sensitive - 1)]
        if sensitive < size:
            no_bit.append((1 - harmless) * (1 - q) ** sensitive)
        with_bits = self._greatest_with_bits(p, q, sensitive)
        return (max(no_bit) + with_bits + (size - sensitive) * harmless) / size

    # -- the columns that can be worst -------------------------------------------------------------------

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        """Return a short list of reports that is enough to check a policy, or None.

        The list includes the report that comes closest to violating the policy, so an audit need not enumerate all
        bitmaps.

        Parameters
        ----------
        policy
            The policy that the mechanism is audited against.

        Returns
        -------
        Iterator of tuple or None
            Pairs (report, likelihoods), where ``likelihoods[x]`` is the probability of the report for the value with
            index x, times a factor that does not depend on x. None if no short list is known for this policy.

        Notes
        -----
        A report without harmless bits has three likelihoods: of sensitive values whose bit is set, of sensitive values
        whose bit is not set, and of harmless values. Every ratio of two of them occurs in a report with no bit or with
        one sensitive bit. That bit belongs to the value that the policy binds closest to a sensitive or to a harmless
        value. A report with a harmless bit has one likelihood that is not zero.
        """
        if isinstance(policy, PairwisePolicy):
            return self._against_pairs(policy)
        if isinstance(policy, Prior) and policy.side == "both" and self.harmless and not self.is_sensitive.all():
            # For every prior, the likelihood of this value or of the others is infinitely far from the average.
            return iter([self._revealed(self.representatives()[1])])
        return None

    def _against_pairs(self, policy: PairwisePolicy) -> Iterator[tuple[int, list[Fraction]]]:
        """Yield the reports that can be worst for a policy on pairs of values."""
        yield self._without_harmless(None)
        indices = representatives(policy.classes(), self.is_sensitive.astype(np.int64))
        codes = policy.epsilons_on(indices).codes.copy()
        np.fill_diagonal(codes, INFINITE_CODE)
        among = self.is_sensitive[indices]
        for columns in (among, ~among):
            if columns.any():
                rows = codes[np.ix_(among, columns)]
                x = int(indices[among][rows.min(axis=1).argmin()])
                yield self._without_harmless(x)
        bound = indices[~among][(codes[~among] < INFINITE_CODE).any(axis=1)]
        if self.harmless and len(bound):
            yield self._revealed(int(bound[0]))

    def _without_harmless(self, x: int | None) -> tuple[int, list[Fraction]]:
        """Return the report with no bit or one sensitive bit, and its likelihoods."""
        p, q, harmless = (Fraction(threshold, ONE) for threshold in (self.own, self.other, self.harmless))
        # Likelihoods are divided by (1-q)^(s-1) if no bit of s is set, and by (1-q)^(s-2) if one is set.
        if x is None:
            unset, apart = 1 - p, (1 - q) * (1 - harmless)
        else:
            unset, apart = q * (1 - p), q * (1 - q) * (1 - harmless)
        likelihoods = [unset if sensitive else apart for sensitive in self.is_sensitive.tolist()]
        if x is not None:
            likelihoods[x] = p * (1 - q)
        return (0 if x is None else 1 << x), likelihoods

    def _revealed(self, x: int) -> tuple[int, list[Fraction]]:
        """Return the report that reveals a harmless value, and its likelihoods."""
        likelihoods = [Fraction(0)] * len(self.domain)
        likelihoods[x] = Fraction(1)
        return 1 << x, likelihoods

    # -- the spec ----------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        """Return the parameters from which :meth:`from_parameters` rebuilds the mechanism.

        Returns
        -------
        dict
            JSON-compatible parameters by name. Sensitive values are listed by their indices in the domain.
        """
        return {
            "sensitive": np.flatnonzero(self.is_sensitive).tolist(),
            "epsilon": str(self.epsilon),
            "own": str(self.own),
            "other": str(self.other),
            "harmless": str(self.harmless),
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> UtilityOptimizedRappor:
        last = len(checked_domain("UtilityOptimizedRappor", domain)) - 1
        positions = [
            checked_integer("UtilityOptimizedRappor", "sensitive", position, 0, last)
            for position in parameters["sensitive"]
        ]
        return cls(domain, **{**parameters, "sensitive": domain.decode(positions)})


def _thresholds(epsilon: Epsilon) -> tuple[int, int]:
    """Return ⌊2^64·s/(s+1)⌋ and ⌊2^64·(s-1)/s⌋ with s = e^(ε/2)."""
    if epsilon.is_infinite:
        return ONE, ONE
    one, whole, zero = Fraction(1), Fraction(ONE), Fraction(0)
    threshold = floor_of_ratio((whole, zero), (one, one), epsilon / 2)
    return threshold, floor_of_ratio((whole, -whole), (one, zero), epsilon / 2)
