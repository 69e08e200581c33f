"""Utility-optimized RAPPOR: unary encoding that spends nothing on harmless values (Murakami and Kawamoto 2019)."""

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
    """One bit per value; the bit of a harmless value is set for nobody else.

    A sensitive value sets its own bit with probability θ = s/(s+1), s = e^(ε/2), and every other sensitive bit with
    1-θ. A harmless value sets each sensitive bit with 1-θ and its own with 1 - 1/s. All other bits stay zero. So
    T_x ≤ e^ε·T_x' for every sensitive x: the promise of ``HighLow``. Both own bits round down, the others up. At ε = 0
    all values look alike, at ε = ∞ the own bit alone is set.
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
        # Were every other sensitive bit certain, no report but one would be left.
        self.other = checked_integer(subject, "other", ONE - best_own if other is None else other, 0, ONE - 1)
        self.harmless = checked_integer(subject, "harmless", best_harmless if harmless is None else harmless, 0, ONE)
        if self.own < self.other:
            raise InvalidInput(subject, "own", "be at least other", self.own)
        groups = -(-len(domain) // 64)
        self.layout = Layout(64 * PLANES * groups, (), lanes=len(domain), planes=PLANES)

    # -- the sampler and its law -------------------------------------------------------------------------

    def _threshold(self, x: int, position: int) -> int:
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
        # p ≥ q: a sensitive value whose bit is set is likeliest, unless no bit is or that of a harmless value.
        no_bit = [(1 - p) * (1 - q) ** (sensitive - 1)]
        if sensitive < size:
            no_bit.append((1 - harmless) * (1 - q) ** sensitive)
        with_bits = self._greatest_with_bits(p, q, sensitive)
        return (max(no_bit) + with_bits + (size - sensitive) * harmless) / size

    # -- the columns that can be worst -------------------------------------------------------------------

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        """The reports that can be worst for a policy, with the likelihoods of all values up to a factor; None if these
        are not known to be few.

        A report without harmless bits has three likelihoods: of sensitive values whose bit is set, of sensitive values
        whose bit is not, and of harmless values. Every ratio of two of them occurs where no bit is set or only that of
        one sensitive value, which then is the one that the policy binds closest to a sensitive or to a harmless value.
        A report with a harmless bit has one likelihood that is not zero.
        """
        if isinstance(policy, PairwisePolicy):
            return self._against_pairs(policy)
        if isinstance(policy, Prior) and policy.side == "both" and self.harmless and not self.is_sensitive.all():
            # Whatever the prior, this value or the rest is infinitely far from the average.
            return iter([self._revealed(self.representatives()[1])])
        return None

    def _against_pairs(self, policy: PairwisePolicy) -> Iterator[tuple[int, list[Fraction]]]:
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
        p, q, harmless = (Fraction(threshold, ONE) for threshold in (self.own, self.other, self.harmless))
        # Divided by (1-q)^(s-1) for no bit of s, and by (1-q)^(s-2) for one.
        if x is None:
            unset, apart = 1 - p, (1 - q) * (1 - harmless)
        else:
            unset, apart = q * (1 - p), q * (1 - q) * (1 - harmless)
        likelihoods = [unset if sensitive else apart for sensitive in self.is_sensitive.tolist()]
        if x is not None:
            likelihoods[x] = p * (1 - q)
        return (0 if x is None else 1 << x), likelihoods

    def _revealed(self, x: int) -> tuple[int, list[Fraction]]:
        likelihoods = [Fraction(0)] * len(self.domain)
        likelihoods[x] = Fraction(1)
        return 1 << x, likelihoods

    # -- the spec ----------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        """Sensitive values by their positions in the domain."""
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
    """⌊2^64·s/(s+1)⌋ and ⌊2^64·(s-1)/s⌋ with s = e^(ε/2)."""
    if epsilon.is_infinite:
        return ONE, ONE
    one, whole, zero = Fraction(1), Fraction(ONE), Fraction(0)
    threshold = floor_of_ratio((whole, zero), (one, one), epsilon / 2)
    return threshold, floor_of_ratio((whole, -whole), (one, zero), epsilon / 2)
