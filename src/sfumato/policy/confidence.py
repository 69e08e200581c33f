"""Find and certify the worst distribution in a chi-square confidence set, for one output and two secrets.

Notation of RLDP (Lopuhaä-Zwakenberg, Goseling): P̂ is the observed joint distribution, and F the confidence set of eq.
4. Let R_s = P(U|s) and φ_s(R) = √(Σ_u P̂_su²/R_u). For given R, the best marginal of S has P_s in proportion to φ_s.
Hence

    some P in F has these R  <=>  Σ_s φ_s(R_s) ≤ √(B+1)

(Lemma 8 is the case of one s). For secrets other than s and s', R = P̂(U|·) is best and gives φ = P̂_s. The budget that
remains for s and s' is κ = √(B+1) - 1 + P̂_s + P̂_s'.

The rule of one output T requires the maximum of q·R/q'·R' over φ(R) + φ'(R') ≤ κ, with q = T_s and q' = T_s'. φ is
convex. For a ratio ρ, the Lagrange dual of max q·R - ρ·q'·R' is

    min over μ ≥ max q, ν ≤ min q' of  μ - ρν - (K^⅔ + (√ρ·K')^⅔)³/κ²,   K = Σ P̂_su·√(μ-q_u), K' = Σ P̂_s'u·√(q'_u-ν)

after minimizing over the multiplier of φ + φ' ≤ κ. If this is at most zero for any μ and ν, no P in F has a ratio above
ρ; the code checks it in integers. The maximizers are R_u = P̂_su·ℓ²/(K^⅓·√(μ-q_u)) with ℓ = K^⅔/φ. A cell with count 0
takes the remaining mass if its q is the largest.
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


#: Bits of square and cube roots in certificates.
_ROOT_BITS = 160
#: Bits of μ and ν in a certificate. The loss is of second order, about 2^-2·bits, and machines whose floats differ in
#: the last bits obtain the same certificate.
_DUAL_BITS = 24
#: Relative precision of a certified ratio in bits.
_RATIO_BITS = 60
#: Relative change at which the search stops. The error is its square, because Dinkelbach's iteration converges
#: superlinearly.
_SETTLED = 1e-8
#: Generous bound on the rounding errors in the terms of a certificate, relative to the largest of them.
_ROUNDING = 1e-11
#: Replace zero in logarithms and quotients.
_TINY = 1e-300
_SMALL = 1e-80
#: Replaces ratios whose square exceeds the largest float.
_HUGE = 1e150


@dataclass(frozen=True)
class SecretPair:
    """Parameters of a :class:`ChiSquare` set that determine the conditional distributions of two secrets.

    :meth:`ChiSquare.pair` returns objects of this class. P̂ denotes the observed joint frequencies of the set, and B
    its radius.

    Parameters
    ----------
    first
        Frequencies P̂(s, u) of the first secret s, one per value u of the other attributes.
    second
        Frequencies P̂(s', u) of the second secret s', in the same order.
    slack
        √(B+1) - 1, as an exact fraction.

    Notes
    -----
    For conditional distributions R = P(U|s) and R' = P(U|s'), let φ(R) = √(Σ_u P̂(s,u)²/R(u)), and define φ' likewise
    for s'. Some distribution in the set has these two if and only if φ(R) + φ'(R') ≤ slack + Σ_u P̂(s,u) + Σ_u
    P̂(s',u).

    Examples
    --------
    >>> from sfumato import ChiSquare
    >>> pair = ChiSquare([[210, 90], [280, 420]]).pair(0, 1)
    >>> pair.holds((Fraction(2, 3), Fraction(1, 3)), (Fraction(2, 5), Fraction(3, 5)))
    True
    """

    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]
    slack: Fraction

    @property
    def room(self) -> Fraction:
        """Exact upper limit on φ(R) + φ'(R'): the slack plus the frequencies of both secrets (see the class notes)."""
        return self.slack + sum(self.first, Fraction(0)) + sum(self.second, Fraction(0))

    def holds(self, law: Sequence[Fraction], other: Sequence[Fraction]) -> bool:
        """Return whether some distribution in the set has two given conditional distributions; the answer is exact.

        Parameters
        ----------
        law
            Probabilities of the values of U given the first secret.
        other
            Probabilities of the values of U given the second secret.

        Returns
        -------
        bool
            Whether the set contains a joint distribution with both.
        """
        squares = [
            sum((c * c / r for c, r in zip(cells, at, strict=True) if c), Fraction(0))
            for cells, at in ((self.first, law), (self.second, other))
            if all(r > 0 for c, r in zip(cells, at, strict=True) if c)
        ]
        if len(squares) < 2:
            return False
        # √a + √b ≤ κ  <=>  a + b ≤ κ² and 4ab ≤ (κ² - a - b)²
        remaining = self.room**2 - sum(squares, Fraction(0))
        return remaining >= 0 and 4 * squares[0] * squares[1] <= remaining * remaining


# -- search in floats ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Widest:
    """For each problem the greatest ratio, its two distributions, and the offsets μ - max q and min q' - ν."""

    ratio: Floats
    laws: Floats
    offsets: Floats


def widest(likelihoods: Floats, frequencies: Floats, slack: float) -> Widest:
    """Maximize q·R/q'·R' for many problems at once; arrays have the shape (problems, 2, cells).

    The ratio follows Dinkelbach's iteration. For each ratio, Newton's method in a bracket solves the budget equation φ
    + φ' = κ for ln ℓ, and the sum of R for ln(μ - max q) of each side. In these logarithms all slopes are moderate.
    """
    scale = np.maximum(likelihoods.max(axis=(1, 2), keepdims=True), _TINY)
    q = likelihoods / scale
    sizes = frequencies.sum(axis=2)
    observed = sizes > 0
    inverse = 1 / np.where(observed, sizes, 1)
    means = (frequencies * q).sum(axis=2) * inverse
    # For a secret with count 0, any distribution is possible.
    top, bottom = np.where(observed[:, 0], means[:, 0], q[:, 0].max(axis=1)), q[:, 1].min(axis=1)
    bottom = np.where(observed[:, 1], means[:, 1], bottom)
    ratio = np.where(bottom > 0, top / np.maximum(bottom, _TINY), np.inf)
    ratio = np.where(q[:, 0].max(axis=1) > 0, ratio, 0.0)
    first, second = q[:, 0], q[:, 1]
    gaps = np.stack([first.max(axis=1, keepdims=True) - first, second - second.min(axis=1, keepdims=True)], axis=1)
    # Skip problems where neither side can change, or where the ratio is already infinite.
    moves = (gaps.max(axis=2) > 0) & observed
    active = np.flatnonzero(moves.any(axis=1) & np.isfinite(ratio) & (q[:, 0].max(axis=1) > 0))
    laws = _laws_at_rest(frequencies, sizes, q)
    offsets = np.zeros_like(sizes)
    if len(active):
        result = _search(q[active], gaps[active], frequencies[active], sizes[active], ratio[active], slack)
        ratio[active], laws[active], offsets[active] = result
    return Widest(ratio, laws, offsets * scale[:, :, 0])


def _laws_at_rest(frequencies: Floats, sizes: Floats, q: Floats) -> Floats:
    """Return the observed distributions; the most extreme ones for a secret with count 0."""
    laws = frequencies / np.where(sizes > 0, sizes, 1)[:, :, None]
    rows = np.arange(len(q))
    for side, extreme in ((0, q[:, 0].argmax(axis=1)), (1, q[:, 1].argmin(axis=1))):
        unobserved = sizes[:, side] == 0
        laws[rows[unobserved], side, extreme[unobserved]] = 1.0
    return np.asarray(laws)


def _search(
    q: Floats, gaps: Floats, frequencies: Floats, sizes: Floats, ratio: Floats, slack: float
) -> tuple[Floats, Floats, Floats]:
    """Return ratios, distributions and offsets of the problems that need a search."""
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
            # Near P̂ the sum of φ - P̂_s is about Σ spread/(8·ℓ^6), and the offsets are about P̂_s·ℓ³.
            first = np.minimum(stretch, _HUGE) ** 2  # only a starting point, so huge ratios may be cut
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
    """Return ln ℓ with Σ (φ - P̂_s) = slack, and the logarithms and values of the offsets there."""
    observed = sizes > 0
    exactness = max(1e-11, 1e-15 / slack)  # accuracy of φ - P̂_s after rounding
    bracket = _Bracket(start.shape)
    at = start
    offsets = np.exp(logs)
    for _ in range(80):
        logs, offsets, slopes, k = _meet_sum(widths, frequencies, observed, at, logs)
        phi = np.where(observed, np.cbrt(np.maximum(k, _TINY)) ** 2 * np.exp(-at)[:, None], 0.0)
        over = (phi - sizes * observed).sum(axis=1)
        positive = over > 1e-17
        value = np.where(positive, np.log(np.maximum(over, _TINY) / slack), -np.inf)
        # φ = K^⅔/ℓ decreases in ℓ.
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
    """For given ln ℓ, return ln and value of the offsets at which R sums to one, the slope of ln K, and K.

    R sums to ℓ²·L/K^⅓ with L = Σ frequencies/√(width + offset). If the sum is below one at offset zero, the offset is
    zero.
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
    """Brackets around the zeros of decreasing functions, with steps towards the zeros that do not stall."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._low, self._high = np.full(shape, -np.inf), np.full(shape, np.inf)
        self._step = self._step_before = np.full(shape, np.inf)

    def update(self, at: Floats, value: Floats) -> npt.NDArray[np.bool_]:
        """Narrow the brackets with the values at ``at``; return which brackets are closed."""
        self._low, self._high = np.where(value > 0, at, self._low), np.where(value < 0, at, self._high)
        return np.asarray(self._high - self._low <= 1e-14)

    def within(self, at: Floats, step: Floats) -> Floats:
        """Return the next points: the middle if a step leaves the bracket or does not halve the last but one."""
        following = at + step
        poor = (following <= self._low) | (following >= self._high) | (np.abs(step) > self._step_before / 2)
        halve = poor & np.isfinite(self._high - self._low)
        low, high = np.where(halve, self._low, 0), np.where(halve, self._high, 0)
        following = np.where(halve, (low + high) / 2, following)
        self._step, self._step_before = np.abs(following - at), self._step
        return following


# -- certificates in integers ----------------------------------------------------------------------------


def ratio_is_certain(
    pair: SecretPair, q: Sequence[Fraction], other: Sequence[Fraction], offsets: Sequence[float], ratio: Fraction
) -> bool:
    """Return whether the dual at these offsets proves q·R ≤ ratio·q'·R' for every distribution in F; exact."""
    return _Dual(pair, q, other, offsets).proves(ratio)


def ratio_within(
    pair: SecretPair, q: Sequence[Fraction], other: Sequence[Fraction], offsets: Sequence[float], guess: float
) -> Fraction | None:
    """Return the least provable bound on the ratio, a multiple of 2^-60 of its size; None if there is none."""
    dual = _Dual(pair, q, other, offsets)
    unit = Fraction(2) ** (math.frexp(guess)[1] - _RATIO_BITS)
    near = math.floor(Fraction(guess) / unit)
    # For every distribution, the ratio is at most max q/min q' (RLDP Prop. 4).
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
    """Return which of many problems the dual proves by a margin that exceeds all rounding errors of floats.

    Parameters
    ----------
    tops, bottoms
        Likelihoods q and q' in units of 2^-62, one row per problem.
    frequencies, slack
        The observed frequencies of the cells of the two secrets, and √(B+1) - 1.
    offsets
        μ - max q and min q' - ν for each problem.
    ratio
        The bound on q·R/q'·R' to prove.
    """
    unit = 2.0**-62
    q_gaps = (tops.max(axis=1, keepdims=True) - tops) * unit + offsets[:, :1]
    other_gaps = (bottoms - bottoms.min(axis=1, keepdims=True)) * unit + offsets[:, 1:]
    first, second = np.sqrt(q_gaps) @ frequencies[0], np.sqrt(other_gaps) @ frequencies[1]
    greatest, least = tops.max(axis=1) * unit, bottoms.min(axis=1) * unit
    room = (slack + frequencies.sum()) ** 2
    left = greatest + offsets[:, 0] - ratio * (least - offsets[:, 1])
    # A few dozen rounding errors of 2^-53 each, relative to these terms.
    left += _ROUNDING * (greatest + offsets[:, 0] + ratio * (least + offsets[:, 1]))
    right = (np.cbrt(first**2) + np.cbrt(ratio * second**2)) ** 3
    return np.asarray(left * room <= right * (1 - _ROUNDING))


class _Dual:
    """Dual bound at fixed μ and ν; every root is rounded so that the bound stays valid."""

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
        """Return whether the dual proves that no distribution in F has a larger ratio."""
        roots = self._first_cube_root + _cube_root_below(self._second_square * ratio)
        return (self._upper - ratio * self._lower) * self._room <= roots**3


def _shortened(value: float) -> Fraction:
    """Return an offset as a fraction with 24 significant bits."""
    mantissa, exponent = math.frexp(value)
    return Fraction(round(mantissa * 2**_DUAL_BITS)) * Fraction(2) ** (exponent - _DUAL_BITS)


def _weighted_roots(weights: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    """Return a lower bound on Σ weight·√value."""
    return sum((w * _root_below(v) for w, v in zip(weights, values, strict=True) if w), Fraction(0))


def _root_below(value: Fraction) -> Fraction:
    """Return a lower bound on a square root, to 160 bits."""
    return Fraction(math.isqrt((value.numerator << 2 * _ROOT_BITS) // value.denominator), 1 << _ROOT_BITS)


def _cube_root_below(value: Fraction) -> Fraction:
    """Return a lower bound on a cube root, to 160 bits."""
    number = (value.numerator << 3 * _ROOT_BITS) // value.denominator
    return Fraction(_integer_cube_root(number), 1 << _ROOT_BITS)


def _integer_cube_root(number: int) -> int:
    """Return ⌊∛number⌋ by Newton's method from above."""
    if number == 0:
        return 0
    root = 1 << -(-number.bit_length() // 3)
    while True:
        smaller = (2 * root + number // (root * root)) // 3
        if smaller >= root:
            return root
        root = smaller
