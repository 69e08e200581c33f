"""Certified hockey-stick divergence of shuffled reports with two outputs, for all values of the other people.

A report is 1 with probability p or p' < p. The other reports are 1 with probabilities between two extremes q₀ and q₁.
The divergence is convex in the distribution of each other report, so it is greatest if every probability is an extreme:
a people have q₀ and b have q₁, with a + b = N. It does not increase if people are added. For every division, one of a
few points (a, b) has at most as many people of both kinds. The greatest divergence at these points bounds all of them.

Let J be the number of ones of the others, f its probabilities and T(j) = P(J ≥ j). Sums of independent bits have
log-concave probabilities, so the likelihood ratio of J + X increases, and with t = e^ε the divergence is

    max_j h(j),  h(j) = (p - t·p')·T(j-1) + (1-p - t(1-p'))·T(j).

The increments h(j) - h(j+1) = (p - t·p')·f(j-1) + (1-p - t(1-p'))·f(j) change their sign once. T(j) is the coefficient
of z^j of G(z)/(1-1/z) for the generating function G and |z| = ρ > 1. A sum over L points of the circle of radius ρ
returns Σ_m T(j + mL)·ρ^(mL); the terms m ≠ 0 are bounded.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato._core.exact import Epsilon, arb_precision, to_arb
from sfumato._core.hockey_stick import upper_end

if TYPE_CHECKING:
    import flint

__all__ = ["TwoOutputs"]

#: Number of points that represent all divisions of the other people among the two extremes.
_DIVISIONS = 16
#: Working precision in bits, added to the length of the number of people.
_BITS = 192
#: Maximum number of evaluated points of the circle; more are needed only for an ε near zero.
_MOST_POINTS = 4_000
#: Decay of the terms m ≠ 0, and of the points that are left out, as exponents of e.
_DECAY = 90.0


@dataclass(frozen=True)
class TwoOutputs:
    """Probabilities of the output 1: for a value, for the other value, and the extremes over all values."""

    first: Fraction
    second: Fraction
    least: Fraction
    greatest: Fraction

    def oriented(self) -> TwoOutputs:
        """Return the same law with the output 1 that is likelier for the value than for the other value."""
        if self.first >= self.second:
            return self
        return TwoOutputs(1 - self.first, 1 - self.second, 1 - self.greatest, 1 - self.least)

    def divergence_above(self, people: int, epsilon: Epsilon) -> Fraction:
        """Return a certified upper bound on the divergence of one report among ``people``; 1 if none is found."""
        return max(self._at(low, high, epsilon) for low, high in self._divisions(people - 1))

    def is_below(self, people: int, epsilon: Epsilon, delta: Fraction) -> bool:
        """Return whether the divergence is certified to be at most δ; stops at the first division where it is not."""
        return all(self._at(low, high, epsilon) <= delta for low, high in self._divisions(people - 1))

    @staticmethod
    def _divisions(others: int) -> list[tuple[int, int]]:
        """Return points that have at most as many people of both kinds as any division, those of few kinds first."""
        cuts = [others * i // _DIVISIONS for i in range(_DIVISIONS + 1)]
        points = [(low, others - high) for low, high in itertools.pairwise(cuts)]
        return sorted(points, key=min)

    def _at(self, low: int, high: int, epsilon: Epsilon) -> Fraction:
        """Return an upper bound if ``low`` others have the least probability and ``high`` the greatest."""
        p, other, q, r = self.first, self.second, self.least, self.greatest
        if p < other:  # exchange the two outputs
            p, other, q, r = 1 - p, 1 - other, 1 - self.least, 1 - self.greatest
        with arb_precision(_BITS + (low + high).bit_length()):
            ratio = epsilon._ball().exp()
            gain = to_arb(p) - ratio * to_arb(other)
            loss = ratio * (1 - to_arb(other)) - (1 - to_arb(p))
            if gain <= 0:
                return Fraction(0)
            radius = float(loss / gain) if gain > 0 and loss > 0 else 0.0
            if not 1 < radius < 1e6:
                return Fraction(1)
            bits = ((q, low), (r, high))
            middle = sum(count * float(x) * radius / (1 - float(x) + float(x) * radius) for x, count in bits)
            tails = _Tails(bits, radius, middle)
            if tails.points > _MOST_POINTS:
                return Fraction(1)
            start = math.floor(middle) - 1
            values = [tails.above(j) for j in range(start - 1, start + 6)]
            heights = [gain * before - loss * after for before, after in itertools.pairwise(values)]
            # heights[i] is h(start + i); it must increase at first and decrease at last.
            if not (heights[0] - heights[1] <= 0 and heights[-2] - heights[-1] >= 0):
                return Fraction(1)
            if not all(height.is_finite() for height in heights):
                return Fraction(1)
            return max(Fraction(0), *(upper_end(height) for height in heights))


class _Tails:
    """Enclosures of P(J ≥ j) for a sum J of independent bits, near one j."""

    def __init__(self, bits: tuple[tuple[Fraction, int], ...], radius: float, middle: float) -> None:
        import flint

        tilt = math.log(radius)
        variance = sum(
            count * float(x) * radius * (1 - float(x)) / (1 - float(x) + float(x) * radius) ** 2 for x, count in bits
        )
        deviation = math.sqrt(max(variance, 1.0))
        self.size = math.ceil(max(_DECAY / tilt, 3 * tilt * deviation**2, 40 * deviation))
        # |G| decreases with the angle, about as e^(-σ²θ²/2).
        last = math.sqrt(2 * _DECAY) / deviation
        self.points = min(math.ceil(last * self.size / (2 * math.pi)), self.size // 2)
        self.bits = [(to_arb(x), count) for x, count in bits]
        self.rho = flint.arb(radius)
        self.middle = round(middle)
        if self.points > _MOST_POINTS:
            return
        turn = 2 * flint.arb.pi() / self.size
        self.terms: list[tuple[flint.acb, flint.acb]] = []
        for k in range(self.points + 1):
            z = flint.acb(self.rho * (turn * k).cos(), self.rho * (turn * k).sin())
            self.terms.append((z, self._generating(z) * z ** (-self.middle)))

    def _generating(self, z: Any) -> Any:
        """Return G(z) = Π (1 - x + x·z), real or complex."""
        return math.prod((1 - x + x * z) ** count for x, count in self.bits)

    def above(self, j: int) -> flint.arb:
        """Return a ball that contains P(J ≥ j)."""
        import flint

        total = flint.arb(0)
        shift = self.middle - j
        for k, (z, term) in enumerate(self.terms):
            part = (term * z**shift / (1 - 1 / z)).real
            is_single = k == 0 or 2 * k == self.size
            total += part if is_single else 2 * part
        # The points left out have at most the modulus of the last one, and |1 - 1/z| ≥ 1 - 1/ρ.
        left_out = max(self.size - 2 * self.points - 1, 0)
        last = abs(self.terms[-1][1]) * self.rho**shift / (1 - 1 / self.rho)
        error = last * left_out / self.size
        decay = self.rho ** (-self.size)
        square = self.rho * self.rho
        # The terms m < 0 are at most ρ^(mL); the terms m > 0 have a Chernoff bound with ρ².
        error += (1 + self._generating(square) * square ** (-j)) * decay / (1 - decay)
        return (total / self.size).union(total / self.size + error).union(total / self.size - error)
