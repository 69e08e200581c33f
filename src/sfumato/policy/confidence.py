"""The worst distribution in a chi-square confidence set, for one output and a pair of secrets; certified.

Notation of RLDP (Lopuhaä-Zwakenberg, Goseling). P̂ is the observed joint distribution, F the set of eq. 4. With
R_s = P(U|s) and φ_s(R) = √(Σ_u P̂_su²/R_u), the best marginal of S for given R has P_s in proportion to φ_s, hence

    some P in F has these R  <=>  Σ_s φ_s(R_s) ≤ √(B+1)

(Lemma 8 is the case of one s). Secrets other than s and s' do best at R = P̂(U|·), where φ = P̂_s: what is left to s and
s' is κ = √(B+1) - 1 + P̂_s + P̂_s'. So the rule of one output T asks: maximise q·R/q'·R' over φ(R) + φ'(R') ≤ κ, with
q = T_s and q' = T_s'. φ is convex; for a ratio ρ the Lagrange dual of max q·R - ρ·q'·R' is

    min over μ ≥ max q, ν ≤ min q' of  μ - ρν - (K^⅔ + (√ρ·K')^⅔)³/κ²,   K = Σ P̂_su·√(μ-q_u), K' = Σ P̂_s'u·√(q'_u-ν)

after the multiplier of φ + φ' ≤ κ is minimised out. Where this is at most zero, no P in F gives a ratio above ρ: that
is a proof whatever μ and ν are, and it is checked in integers. The maximisers are R_u = P̂_su·ℓ²/(K^⅓·√(μ-q_u)) with
ℓ = K^⅔/φ; a cell that was never seen takes what mass they leave, where its q is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats

__all__ = ["SecretPair", "ratio_is_certain", "ratio_within", "ratios_are_certain", "widest"]


#: Square and cube roots in certificates are taken to this many bits.
_ROOT_BITS = 160
#: μ and ν enter a certificate with this many bits. What is lost is of second order, some 2^-2·bits, and machines whose
#: doubles differ in the last places agree on the certificate.
_DUAL_BITS = 24
#: A certified ratio is a multiple of 2^-60 of its size.
_RATIO_BITS = 60
#: The ratio is found to the square of this: Dinkelbach's steps converge faster than any geometric sequence.
_SETTLED = 1e-8
#: Bounds by far what doubles lose in the terms of a certificate, relative to the largest of them.
_ROUNDING = 1e-11
#: Stand for zero where a logarithm or a quotient is taken.
_TINY = 1e-300
_SMALL = 1e-80
#: Stands for ratios whose square no double holds.
_HUGE = 1e150


@dataclass(frozen=True)
class SecretPair:
    """What a confidence set says of two secrets.

    Parameters
    ----------
    first, second
        Observed joint frequencies of the cells of either secret.
    slack
        κ - P̂_s - P̂_s' = √(B+1) - 1.
    """

    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]
    slack: Fraction

    @property
    def room(self) -> Fraction:
        """κ: what φ + φ' may be."""
        return self.slack + sum(self.first, Fraction(0)) + sum(self.second, Fraction(0))

    def holds(self, law: Sequence[Fraction], other: Sequence[Fraction]) -> bool:
        """Whether some distribution in F has these two laws of U. Exact."""
        squares = [
            sum((c * c / r for c, r in zip(cells, at, strict=True) if c), Fraction(0))
            for cells, at in ((self.first, law), (self.second, other))
            if all(r > 0 for c, r in zip(cells, at, strict=True) if c)
        ]
        if len(squares) < 2:
            return False
        # √a + √b ≤ κ  <=>  a + b ≤ κ² and 4ab ≤ (κ² - a - b)²
        left = self.room**2 - sum(squares, Fraction(0))
        return left >= 0 and 4 * squares[0] * squares[1] <= left * left


# -- the search, in doubles ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Widest:
    """For each problem the greatest ratio that was found, the two laws, and the offsets max q → μ and ν → min q'."""

    ratio: Floats
    laws: Floats
    offsets: Floats


def widest(likelihoods: Floats, frequencies: Floats, slack: float) -> Widest:
    """Maximise q·R/q'·R' for many problems at once: arrays of shape (problems, 2, cells).

    Dinkelbach's iteration on the ratio; for each ratio the budget equation φ + φ' = κ is solved for ln ℓ, and the sum
    of R for ln(μ - max q) of either side, by Newton's method in a bracket. All slopes are moderate in these logarithms.
    """
    scale = np.maximum(likelihoods.max(axis=(1, 2), keepdims=True), _TINY)
    q = likelihoods / scale
    sizes = frequencies.sum(axis=2)
    observed = sizes > 0
    inverse = 1 / np.where(observed, sizes, 1)
    means = (frequencies * q).sum(axis=2) * inverse
    # A secret that was never seen may have any law at all.
    top, bottom = np.where(observed[:, 0], means[:, 0], q[:, 0].max(axis=1)), q[:, 1].min(axis=1)
    bottom = np.where(observed[:, 1], means[:, 1], bottom)
    ratio = np.where(bottom > 0, top / np.maximum(bottom, _TINY), np.inf)
    ratio = np.where(q[:, 0].max(axis=1) > 0, ratio, 0.0)
    first, second = q[:, 0], q[:, 1]
    gaps = np.stack([first.max(axis=1, keepdims=True) - first, second - second.min(axis=1, keepdims=True)], axis=1)
    # Nothing is to be searched where a side cannot move, or where the ratio is infinite already.
    moves = (gaps.max(axis=2) > 0) & observed
    active = np.flatnonzero(moves.any(axis=1) & np.isfinite(ratio) & (q[:, 0].max(axis=1) > 0))
    laws = _laws_at_rest(frequencies, sizes, q)
    offsets = np.zeros_like(sizes)
    if len(active):
        searched = _search(q[active], gaps[active], frequencies[active], sizes[active], ratio[active], slack)
        ratio[active], laws[active], offsets[active] = searched
    return Widest(ratio, laws, offsets * scale[:, :, 0])


def _laws_at_rest(frequencies: Floats, sizes: Floats, q: Floats) -> Floats:
    """The observed laws; for a secret that was never seen the most extreme ones."""
    laws = frequencies / np.where(sizes > 0, sizes, 1)[:, :, None]
    rows = np.arange(len(q))
    for side, extreme in ((0, q[:, 0].argmax(axis=1)), (1, q[:, 1].argmin(axis=1))):
        never = sizes[:, side] == 0
        laws[rows[never], side, extreme[never]] = 1.0
    return np.asarray(laws)


def _search(
    q: Floats, gaps: Floats, frequencies: Floats, sizes: Floats, ratio: Floats, slack: float
) -> tuple[Floats, Floats, Floats]:
    rows = np.arange(len(q))
    extreme = np.stack([q[:, 0].argmax(axis=1), q[:, 1].argmin(axis=1)], axis=1)
    inverse = 1 / np.where(sizes > 0, sizes, 1)
    spread = (frequencies * gaps**2).sum(axis=2) * inverse - ((frequencies * gaps).sum(axis=2) * inverse) ** 2
    spread = (np.maximum(spread, 0) + 1e-6 * gaps.max(axis=2) ** 2) * inverse
    log_scale = logs = np.zeros(0)
    laws, widths = np.empty_like(q), np.empty_like(gaps)
    offsets = np.empty_like(sizes)
    for _ in range(20):
        stretch = np.stack([np.ones_like(ratio), ratio], axis=1)
        widths = gaps * stretch[:, :, None]
        if not len(log_scale):
            # Near P̂ the sum of φ - P̂_s is about Σ spread/(8·ℓ^6), and the offsets P̂_s·ℓ³.
            first = np.minimum(stretch, _HUGE) ** 2  # a start only: it need not follow a ratio beyond all squares
            log_scale = np.log(np.maximum((spread * first).sum(axis=1), _TINY) / (8 * slack)) / 6
            logs = np.log(np.where(sizes > 0, sizes, 1)) + 3 * log_scale[:, None]
        log_scale, logs, offsets = _meet_budget(widths, frequencies, sizes, slack, log_scale, logs)
        weights = widths + offsets[:, :, None]
        roots = np.sqrt(np.maximum(weights, _SMALL))
        k = (frequencies * roots).sum(axis=2)
        factor = np.exp(2 * log_scale)[:, None] / np.cbrt(np.maximum(k, _TINY))
        laws = factor[:, :, None] * frequencies / roots
        for side in (0, 1):
            laws[rows, side, extreme[:, side]] += np.maximum(1 - laws[:, side].sum(axis=1), 0)
        laws /= laws.sum(axis=2, keepdims=True)
        value = (laws * q).sum(axis=2)
        new = value[:, 0] / np.maximum(value[:, 1], _TINY)
        settled = np.abs(new - ratio) <= _SETTLED * new
        ratio = np.maximum(new, ratio)
        if settled.all():
            break
    offsets[:, 1] /= np.maximum(ratio, _TINY)
    return ratio, laws, np.where(sizes > 0, offsets, 0.0)


def _meet_budget(
    widths: Floats, frequencies: Floats, sizes: Floats, slack: float, start: Floats, logs: Floats
) -> tuple[Floats, Floats, Floats]:
    """ln ℓ with Σ (φ - P̂_s) = slack, and ln and value of the offsets μ - max q of either side there."""
    observed = sizes > 0
    exactness = max(1e-11, 1e-15 / slack)  # what rounding leaves of φ - P̂_s
    bracket = _Bracket(start.shape)
    at = start
    offsets = np.exp(logs)
    for _ in range(80):
        logs, offsets, slopes, k = _meet_sum(widths, frequencies, observed, at, logs)
        phi = np.where(observed, np.cbrt(np.maximum(k, _TINY)) ** 2 * np.exp(-at)[:, None], 0.0)
        over = (phi - sizes * observed).sum(axis=1)
        positive = over > 1e-17
        value = np.where(positive, np.log(np.maximum(over, _TINY) / slack), -np.inf)
        # φ = K^⅔/ℓ falls as ℓ grows.
        slope = (phi * (2 / 3 * slopes - 1)).sum(axis=1) / np.maximum(over, _TINY)
        settled = bracket.update(at, value) | (np.abs(value) <= exactness)
        if settled.all():
            break
        step = np.where(positive & (slope < 0), -value / np.minimum(slope, -1e-9), -1.0)
        following = np.where(settled, at, bracket.within(at, np.clip(step, -1.5, 1.5)))
        logs = logs + 3 * (following - at)[:, None]
        at = following
    return at, logs, offsets


def _meet_sum(
    widths: Floats, frequencies: Floats, observed: npt.NDArray[np.bool_], at: Floats, start: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """For given ln ℓ: ln and value of the offsets at which R sums to one, the slope of ln K in ln ℓ, and K.

    R sums to ℓ²·L/K^⅓, L = Σ frequencies/√(width + offset). Where that stays below one at offset zero, zero it is.
    """
    target = 2 * at[:, None]
    bracket = _Bracket(start.shape)
    logs = start
    k = mixed = third = np.ones_like(start)
    offsets = np.exp(logs)
    for _ in range(60):
        offsets = np.exp(logs)
        inverse = 1 / np.maximum(widths + offsets[:, :, None], _SMALL)
        roots = np.sqrt(inverse)
        k = (frequencies / roots).sum(axis=2)
        mixed = (frequencies * roots).sum(axis=2)
        third = (frequencies * roots * inverse).sum(axis=2)
        value = np.where(observed, np.log(np.maximum(mixed, _TINY)) - np.log(np.maximum(k, _TINY)) / 3 + target, 0.0)
        slope = -offsets * (third / np.maximum(2 * mixed, _TINY) + mixed / np.maximum(6 * k, _TINY))
        vanishing = (value < 0) & (offsets < 1e-18 * np.maximum(widths.max(axis=2), _TINY))
        settled = bracket.update(logs, value) | (np.abs(value) <= 1e-12) | vanishing
        if settled.all():
            break
        step = np.clip(-value / np.minimum(slope, -1e-12), -4.0, 4.0)
        logs = np.where(settled, logs, bracket.within(logs, step))
    offsets = np.where(vanishing, 0.0, offsets)
    growth = 2 / np.maximum(third / np.maximum(2 * mixed, _TINY) + mixed / np.maximum(6 * k, _TINY), _TINY)
    slopes = np.where(vanishing, 0.0, growth * mixed / np.maximum(2 * k, _TINY))
    return logs, offsets, slopes, k


class _Bracket:
    """Where the zeros of falling functions lie, and steps towards them that do not stall."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._low, self._high = np.full(shape, -np.inf), np.full(shape, np.inf)
        self._step = self._step_before = np.full(shape, np.inf)

    def update(self, at: Floats, value: Floats) -> npt.NDArray[np.bool_]:
        """Take a value into account; where there is nothing left between the ends."""
        self._low, self._high = np.where(value > 0, at, self._low), np.where(value < 0, at, self._high)
        return np.asarray(self._high - self._low <= 1e-14)

    def within(self, at: Floats, step: Floats) -> Floats:
        """The next point; the middle where a step leaves the bracket, or is not half of the last but one."""
        following = at + step
        poor = (following <= self._low) | (following >= self._high) | (np.abs(step) > self._step_before / 2)
        halve = poor & np.isfinite(self._high - self._low)
        low, high = np.where(halve, self._low, 0), np.where(halve, self._high, 0)
        following = np.where(halve, (low + high) / 2, following)
        self._step, self._step_before = np.abs(following - at), self._step
        return following


# -- certificates, in integers ---------------------------------------------------------------------------


def ratio_is_certain(
    pair: SecretPair, q: Sequence[Fraction], other: Sequence[Fraction], offsets: Sequence[float], ratio: Fraction
) -> bool:
    """Whether the dual at these offsets proves q·R ≤ ratio·q'·R' for every distribution in F. Exact."""
    return _Dual(pair, q, other, offsets).proves(ratio)


def ratio_within(
    pair: SecretPair, q: Sequence[Fraction], other: Sequence[Fraction], offsets: Sequence[float], guess: float
) -> Fraction | None:
    """The least multiple of 2^-60 of its size that is proved to bound the ratio; None where none is."""
    dual = _Dual(pair, q, other, offsets)
    unit = Fraction(2) ** (math.frexp(guess)[1] - _RATIO_BITS)
    near = math.floor(Fraction(guess) / unit)
    # Whatever the laws, the ratio is at most max q/min q' (RLDP Prop. 4).
    extreme = max(q) / min(other) if min(other) else None
    most = None if extreme is None else math.ceil(extreme / unit)
    reach = 1 << 8
    while (most is None or near + reach < most) and not dual.proves((near + reach) * unit):
        if most is None and reach > near << 16:
            return None
        reach <<= 4
    most = near + reach if most is None else most
    low, high = max(near - reach, 0), min(near + reach, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if dual.proves(middle * unit) else (middle, high)
    return high * unit if extreme is None else min(high * unit, extreme)


def ratios_are_certain(
    tops: npt.NDArray[np.int64],
    bottoms: npt.NDArray[np.int64],
    frequencies: Floats,
    slack: float,
    offsets: Floats,
    ratio: float,
) -> npt.NDArray[np.bool_]:
    """Return where the dual proves a ratio with so much room that doubles cannot be mistaken, for many problems.

    Parameters
    ----------
    tops, bottoms
        Likelihoods q and q' in units of 2^-62, a row for each problem.
    frequencies, slack
        The observed frequencies of the cells of the two secrets, and √(B+1) - 1.
    offsets
        μ - max q and min q' - ν for each problem.
    ratio
        What q·R/q'·R' is to be bounded by.
    """
    unit = 2.0**-62
    q_gaps = (tops.max(axis=1, keepdims=True) - tops) * unit + offsets[:, :1]
    other_gaps = (bottoms - bottoms.min(axis=1, keepdims=True)) * unit + offsets[:, 1:]
    first, second = np.sqrt(q_gaps) @ frequencies[0], np.sqrt(other_gaps) @ frequencies[1]
    greatest, least = tops.max(axis=1) * unit, bottoms.min(axis=1) * unit
    room = (slack + frequencies.sum()) ** 2
    left = greatest + offsets[:, 0] - ratio * (least - offsets[:, 1])
    # Some dozens of roundings of 2^-53 each, in numbers of the size of these terms.
    left += _ROUNDING * (greatest + offsets[:, 0] + ratio * (least + offsets[:, 1]))
    right = (np.cbrt(first**2) + np.cbrt(ratio * second**2)) ** 3
    return np.asarray(left * room <= right * (1 - _ROUNDING))


class _Dual:
    """The dual bound at fixed μ and ν, with every root rounded so that it proves less and never more."""

    def __init__(
        self, pair: SecretPair, q: Sequence[Fraction], other: Sequence[Fraction], offsets: Sequence[float]
    ) -> None:
        upper_offset, lower_offset = (_shortened(offset) for offset in offsets)
        self._upper, self._lower = max(q) + upper_offset, min(other) - lower_offset
        first_roots = _weighted_roots(pair.first, [self._upper - value for value in q])
        self._first_cube_root = _cube_root_below(first_roots * first_roots)
        second_roots = _weighted_roots(pair.second, [value - self._lower for value in other])
        self._second_square = second_roots * second_roots
        self._room = pair.room**2

    def proves(self, ratio: Fraction) -> bool:
        roots = self._first_cube_root + _cube_root_below(self._second_square * ratio)
        return (self._upper - ratio * self._lower) * self._room <= roots**3


def _shortened(value: float) -> Fraction:
    mantissa, exponent = math.frexp(value)
    return Fraction(round(mantissa * 2**_DUAL_BITS)) * Fraction(2) ** (exponent - _DUAL_BITS)


def _weighted_roots(weights: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    """Σ weight·√value, from below."""
    return sum((w * _root_below(v) for w, v in zip(weights, values, strict=True) if w), Fraction(0))


def _root_below(value: Fraction) -> Fraction:
    return Fraction(math.isqrt((value.numerator << 2 * _ROOT_BITS) // value.denominator), 1 << _ROOT_BITS)


def _cube_root_below(value: Fraction) -> Fraction:
    number = (value.numerator << 3 * _ROOT_BITS) // value.denominator
    return Fraction(_integer_cube_root(number), 1 << _ROOT_BITS)


def _integer_cube_root(number: int) -> int:
    """⌊∛number⌋, by Newton's method from above."""
    if number == 0:
        return 0
    root = 1 << -(-number.bit_length() // 3)
    while True:
        smaller = (2 * root + number // (root * root)) // 3
        if smaller >= root:
            return root
        root = smaller
