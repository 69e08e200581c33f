"""Unary encoding: one noisy bit per value (k-RAPPOR; optimized unary encoding of Wang et al. 2017)."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sfumato._core import Epsilon, EpsilonLike, checked_integer, floor_of_ratio
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished, Mechanism, read_epsilon
from sfumato.mechanisms.draws import Draws, Layout
from sfumato.mechanisms.mixture import ONE, TwoLevelMechanism

__all__ = ["PLANES", "IndependentBits", "UnaryEncoding", "has_independent_steps", "independent_bits_of"]

#: Number of bits in a position's field; a tie reads further bits from the auxiliary stream.
PLANES = 8

BitState = tuple[int, int, int]


class IndependentBits(Mechanism):
    """Base class of mechanisms whose report is one independent bit per value.

    A subclass defines its sampler through ``bit`` alone. ``bit`` sees neither the other bits nor their draws, so the
    law is the product of the laws of the bits. An audit can enumerate each bit separately, for any number of values.
    """

    @abstractmethod
    def bit(self, x: int, position: int, draws: Draws) -> bool:
        """Return the bit of one position, for the value with index x."""

    @abstractmethod
    def bit_probability(self, x: int, position: int) -> Fraction:
        """Return the stated probability that the bit at a position is set, given the value with index x."""

    def start(self, x: int) -> BitState:
        return x, 0, 0

    def step(self, state: BitState, draws: Draws) -> BitState | Finished:
        x, position, report = state
        report |= self.bit(x, position, draws) << position
        position += 1
        return Finished(report) if position == len(self.domain) else (x, position, report)

    @property
    def outputs(self) -> int:
        return 1 << len(self.domain)

    @staticmethod
    def _greatest_with_bits(p: Fraction, q: Fraction, count: int) -> Fraction:
        """Return the sum, over the non-empty sets of ``count`` bits, of the likelihood of a value whose bit is set.

        The bit of the true value is set with probability p, the others with q:
        Σ_m C(count, m)·p·q^(m-1)·(1-q)^(count-m) = p·(1 - (1-q)^count)/q.
        """
        return p * count if q == 0 else p * (1 - (1 - q) ** count) / q

    def probability(self, report: int, x: int) -> Fraction:
        result = Fraction(1)
        for position in range(len(self.domain)):
            set_here = self.bit_probability(x, position)
            result *= set_here if report >> position & 1 else 1 - set_here
        return result


def independent_bits_of(mechanism: Mechanism) -> IndependentBits | None:
    """Return the mechanism if its class derives from ``IndependentBits``, or None; its own statements are not used."""
    return mechanism if isinstance(mechanism, IndependentBits) else None


def has_independent_steps(mechanism: IndependentBits) -> bool:
    """Return whether the mechanism runs the ``step`` of ``IndependentBits``, in which no bit depends on another."""
    return getattr(mechanism.step, "__func__", None) is IndependentBits.step


class UnaryEncoding(IndependentBits, TwoLevelMechanism):
    """Unary encoding: one random bit per value, set with probability p for the true value and q for all others.

    A report is a bitmap with one bit per value of the domain; the bits are independent.

    Parameters
    ----------
    domain
        The values, at least two.
    epsilon
        The level ε of classical local differential privacy.
    optimized
        Whether to use the p and q of optimized unary encoding (Wang et al. 2017). By default, q = 1 - p (k-RAPPOR).
    own
        The integer 2^64·p that a stored spec holds. Omit it to compute it from ``epsilon``.
    other
        The integer 2^64·q that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    Symmetric (k-RAPPOR): p = e^(ε/2)/(e^(ε/2)+1) and q = 1-p. Optimized (Wang et al. 2017): p = 1/2 and q = 1/(e^ε+1).
    A report is likeliest for the values whose bit is set. Before rounding, its probabilities for two values are in the
    ratio p(1-q)/(q(1-p)) = e^ε if only one of the two bits is set, and equal otherwise. The symmetric variant rounds p
    down and the optimized variant rounds q up, so that ε holds exactly.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import UnaryEncoding
    >>> illnesses = Domain(["none", "flu", "hiv"])
    >>> UnaryEncoding(illnesses, "ln 9").bit_probabilities
    (Fraction(3, 4), Fraction(1, 4))
    >>> UnaryEncoding(illnesses, "ln 3", optimized=True).bit_probabilities
    (Fraction(1, 2), Fraction(1, 4))
    """

    name = "unary-encoding"

    def __init__(
        self,
        domain: Domain,
        epsilon: EpsilonLike,
        *,
        optimized: bool = False,
        own: int | str | None = None,
        other: int | str | None = None,
    ) -> None:
        self.domain = checked_domain("UnaryEncoding", domain)
        if len(domain) < 2:
            raise InvalidInput("UnaryEncoding", "domain", "have at least two values", domain)
        self.epsilon = read_epsilon("UnaryEncoding", epsilon)
        self.optimized = bool(optimized)
        best_own, best_other = _thresholds(self.epsilon, self.optimized)
        self.own = checked_integer("UnaryEncoding", "own", best_own if own is None else own, 0, ONE)
        self.other = checked_integer("UnaryEncoding", "other", best_other if other is None else other, 0, ONE)
        if self.own < self.other:
            raise InvalidInput("UnaryEncoding", "own", f"be at least other = {self.other}", self.own)
        groups = -(-len(domain) // 64)
        self.layout = Layout(64 * PLANES * groups, (), lanes=len(domain), planes=PLANES)

    def bit(self, x: int, position: int, draws: Draws) -> bool:
        return draws.bernoulli(self.own if position == x else self.other, ONE)

    def bit_probability(self, x: int, position: int) -> Fraction:
        return Fraction(self.own if position == x else self.other, ONE)

    @functools.cached_property
    def likelihoods(self) -> tuple[Fraction, Fraction]:
        p, q = self.bit_probabilities
        return p * (1 - q), q * (1 - p)

    @property
    def bit_probabilities(self) -> tuple[Fraction, Fraction]:
        """Exact pair (p, q): probability that the bit of the true value is set, and that another bit is set."""
        return Fraction(self.own, ONE), Fraction(self.other, ONE)

    def guess_probability(self) -> Fraction:
        p, q = self.bit_probabilities
        size = len(self.domain)
        # Because p ≥ q, a value whose bit is set is likeliest, unless no bit is set.
        no_bit = (1 - p) * (1 - q) ** (size - 1)
        return (no_bit + self._greatest_with_bits(p, q, size)) / size

    def in_set(self, report: int, x: int) -> bool:
        return bool(report >> x & 1)

    def separating(self, x: int, other: int) -> int:  # noqa: ARG002
        return 1 << x

    def extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        lightest = 1 << min(range(len(weights)), key=weights.__getitem__)
        return lightest ^ (1 << len(weights)) - 1 if heaviest else lightest

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": str(self.epsilon),
            "optimized": self.optimized,
            "own": str(self.own),
            "other": str(self.other),
        }


def _thresholds(epsilon: Epsilon, optimized: bool) -> tuple[int, int]:
    """Return 2^64·p and 2^64·q, rounded to the private side."""
    one = Fraction(1)
    if epsilon.is_infinite:
        return (ONE // 2, 0) if optimized else (ONE, 0)
    if optimized:
        # Rounding q up: 2^64 - ⌊2^64·e^ε/(e^ε+1)⌋.
        return ONE // 2, ONE - floor_of_ratio((Fraction(ONE), Fraction(0)), (one, one), epsilon)
    threshold = floor_of_ratio((Fraction(ONE), Fraction(0)), (one, one), epsilon / 2)
    return threshold, ONE - threshold
