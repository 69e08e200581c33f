"""Exact epsilons, and certified decisions about e^ε.

An epsilon is stored as the real number ``r + c₁·ln p₁ + … + cₘ·ln pₘ`` with rational r and cᵢ and distinct primes pᵢ.
The numbers 1, ln p₁, …, ln pₘ are linearly independent over the rationals, so two epsilons are equal if and only if
their parts are. For example, "ln 9" equals "2*ln 3", and "0.1" is exactly one tenth, not the nearest float.

Every decision that privacy depends on is the sign of a sum ``Σ cᵢ·e^εᵢ`` with rational cᵢ. It takes two steps, which
guarantees that raising the precision terminates:

1. Algebra: integer powers of primes move into cᵢ, and terms with equal exponents are added up. The sum is zero only if
   no term remains. Distinct algebraic exponents of e are linearly independent over the algebraic numbers
   (Lindemann-Weierstrass), and so are distinct products of fractional prime powers over the rationals (Besicovitch
   1940). Powers too long to write out are first collected relative to one another: 3^900000000 - 2·(3^900000000/2) + 1
   needs no number of that length.
2. Interval arithmetic (Arb, through python-flint): double the precision until the interval excludes zero.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import flint

__all__ = [
    "INFINITE",
    "ZERO",
    "Epsilon",
    "EpsilonLike",
    "Terms",
    "arb_precision",
    "ceil_of_log",
    "chi_square_is_likelier",
    "digits_of",
    "dot",
    "exact_fraction",
    "exceeds",
    "excess",
    "floor_of_log",
    "floor_of_ratio",
    "information",
    "integer_kernel",
    "sign_of_sum",
    "to_arb",
]

_ACCEPTED = "a number, Fraction, Decimal, 'inf', or a string such as '0.1', 'ln 3', '1/2*ln 3'"

#: Largest finite epsilon; a larger one is almost certainly a mistake.
_LARGEST = 10**12
#: Maximum bits in the denominator of an epsilon.
_LONGEST_FRACTION_BITS = 4096
#: Maximum bits in the numerator and denominator of a decimal or a string; Python writes no integer of 4,301 digits.
_LONGEST_NUMBER_BITS = 14_000
#: Largest epsilon whose bounds on e^ε are computed as integers; for larger ones these integers would be long.
_LARGEST_BOUNDED = 10**4
#: Maximum digits of an integer under a logarithm; factoring longer integers may take very long.
_LONGEST_LOG = 40
#: Precision in bits of the bounds on e^ε, which decide nearly every comparison without Arb.
_BOUND_BITS = 160
#: Bits of the longest ratio of two prime-power products that is computed before longer ones are tried.
_NEAR_BITS = 2**16

_TERM = re.compile(
    r"(?:(?P<factor>\d++(?:\.\d++)?(?:/\d++)?)\s*+\*?\s*+)?"
    r"ln\s*+(?P<open>\()?\s*+(?P<argument>\d++(?:\.\d++)?(?:/\d++)?)\s*+(?(open)\))$",
    re.ASCII,
)
#: A decimal or a fraction as a string; exact arithmetic with longer digits or exponents would fill the memory.
_NUMBER = re.compile(
    r"\s*[+-]?(\d{1,4300}/\d{1,4300}|(\d{1,4300}(\.\d{0,4300})?|\.\d{1,4300})(e[+-]?0{0,9}\d{1,4})?)\s*",
    re.ASCII | re.IGNORECASE,
)


@functools.total_ordering
class Epsilon:
    """Exact privacy level: a rational number plus rational multiples of logarithms such as ln 3, or infinity.

    Epsilons are compared, added, and multiplied by integers and fractions, all exactly. ``float(epsilon)`` is the
    nearest float.

    Parameters
    ----------
    value
        An int, float, Fraction, Decimal, Epsilon or string, at least 0 and at most 10^12, or infinite. A float means
        its shortest decimal: 0.1 is one tenth. A string may be a number, a fraction, ``"inf"``, a logarithm such as
        ``"ln 3"`` or ``"1/2*ln 3"``, or a sum of these.
    subject
        Function or class that an error message names.
    parameter
        Parameter that an error message names.

    Raises
    ------
    InvalidInput
        If the value is negative, NaN, too large, or not a number.

    Examples
    --------
    >>> Epsilon("ln 9") == 2 * Epsilon("ln 3")
    True
    >>> Epsilon(0.1) + Epsilon("1/2")
    Epsilon('0.6')
    >>> Epsilon("ln 3") < Epsilon("1.0986122886681098")
    True
    """

    __slots__ = ("_bounds", "_hash", "is_infinite", "logs", "rational")

    rational: Fraction
    logs: tuple[tuple[int, Fraction], ...]
    is_infinite: bool
    _bounds: tuple[int, int, int] | None
    _hash: int

    def __new__(cls, value: EpsilonLike, *, subject: str = "Epsilon", parameter: str = "epsilon") -> Epsilon:
        """Parse ``value`` exactly; reject negative numbers, NaN and unknown notation."""
        if isinstance(value, Epsilon):
            parsed = value
        else:
            try:
                parsed = _parse(value)
            except (ValueError, ArithmeticError, TypeError):
                raise InvalidInput(subject, parameter, f"be {_ACCEPTED}", value) from None
        if parsed < ZERO:
            raise InvalidInput(subject, parameter, "be at least 0", value)
        if not parsed.is_infinite and parsed > _LARGEST_EPSILON:
            raise InvalidInput(subject, parameter, f"be at most {_LARGEST}, or 'inf' for no protection", value)
        return parsed

    @classmethod
    def _of(cls, rational: Fraction, logs: dict[int, Fraction] | None = None) -> Epsilon:
        """Return an epsilon with these parts, without checking its sign."""
        self = object.__new__(cls)
        self.rational = rational
        self.logs = tuple(sorted((p, c) for p, c in (logs or {}).items() if c))
        self.is_infinite = False
        self._bounds = None
        self._hash = hash((self.rational, self.logs))
        return self

    @classmethod
    def _infinite(cls) -> Epsilon:
        """Return the infinite epsilon."""
        self = cls._of(Fraction(0))
        self.is_infinite = True
        self._hash = hash("infinite epsilon")
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.rational, self.logs, self.is_infinite))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Epsilon):
            return NotImplemented
        return (self.is_infinite, self.rational, self.logs) == (other.is_infinite, other.rational, other.logs)

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: Epsilon) -> bool:
        if not isinstance(other, Epsilon):
            return NotImplemented
        if self == other or self.is_infinite:
            return False
        if other.is_infinite:
            return True
        if not self.logs and not other.logs:
            return self.rational < other.rational
        # The two are not equal here, so the interval excludes zero at some precision.
        return _sign_by_intervals(lambda: other._ball() - self._ball()) > 0

    def __add__(self, other: Epsilon) -> Epsilon:
        if not isinstance(other, Epsilon):
            return NotImplemented
        if self.is_infinite or other.is_infinite:
            return INFINITE
        logs = dict(self.logs)
        for prime, exponent in other.logs:
            logs[prime] = logs.get(prime, Fraction(0)) + exponent
        return Epsilon._of(self.rational + other.rational, logs)

    def __mul__(self, factor: int | Fraction) -> Epsilon:
        if not isinstance(factor, (int, Fraction)):
            return NotImplemented
        if self.is_infinite:
            # 0·∞ = 0: values at distance zero must be indistinguishable at every epsilon.
            return ZERO if factor == 0 else self
        return Epsilon._of(self.rational * factor, {p: c * factor for p, c in self.logs})

    __rmul__ = __mul__

    def __neg__(self) -> Epsilon:
        return self * -1

    def __truediv__(self, divisor: int | Fraction) -> Epsilon:
        return self * (1 / Fraction(divisor))

    def ratio_to(self, unit: Epsilon) -> Fraction | None:
        """Return this epsilon as a rational multiple of another.

        Parameters
        ----------
        unit
            The other epsilon.

        Returns
        -------
        Fraction or None
            The rational q with ``self == q * unit``, or None if no such q exists.

        Examples
        --------
        >>> Epsilon("ln 9").ratio_to(Epsilon("ln 3"))
        Fraction(2, 1)
        """
        if self.is_infinite or unit.is_infinite:
            return None
        parts, unit_parts = self._parts(), unit._parts()
        if not parts:
            return Fraction(0)
        if parts.keys() != unit_parts.keys():
            return None
        ratios = {parts[key] / unit_parts[key] for key in parts}
        return ratios.pop() if len(ratios) == 1 else None

    def _parts(self) -> dict[int, Fraction]:
        """Return the non-zero parts: the exponent of each prime, and the rational part under the key 1."""
        parts = dict(self.logs)
        if self.rational:
            parts[1] = self.rational
        return parts

    def exp_if_rational(self) -> Fraction | None:
        """Return e^ε if it is a rational number.

        Returns
        -------
        Fraction or None
            The exact value of e^ε, for example for ε = 0 or ε = ln 3/2; None if it is irrational or infinite.
        """
        if self.is_infinite or self.rational or any(c.denominator != 1 for _, c in self.logs):
            return None
        return math.prod((Fraction(p) ** int(c) for p, c in self.logs), start=Fraction(1))

    def exp_bounds(self) -> tuple[int, int, int]:
        """Return integer lower and upper bounds on e^ε, scaled by a power of two.

        Returns
        -------
        tuple of int
            Integers (low, high, shift) with ``low ≤ e^ε·2^shift ≤ high``, accurate to about 150 bits.

        Raises
        ------
        ValueError
            If the epsilon is infinite.
        """
        if self._bounds is None:
            if self.is_infinite:
                raise ValueError("e^ε is infinite")
            with arb_precision(_BOUND_BITS):
                ball = self._ball().exp()
                self._bounds = _integer_bounds(ball)
        return self._bounds

    def __float__(self) -> float:
        if self.is_infinite:
            return math.inf
        with arb_precision(128):
            return float(self._ball())

    def upper_float(self) -> float:
        """Return a float that is at least ε.

        Returns
        -------
        float
            The nearest float, or the next float above it if the nearest one may be smaller than ε.
        """
        nearest = float(self)
        if math.isinf(nearest) or (not self.logs and Fraction(nearest) >= self.rational):
            return nearest
        return math.nextafter(nearest, math.inf)

    def as_promise(self) -> Epsilon:
        """Return this epsilon, or a slightly larger one if this one cannot be written to a file.

        The sum of two valid epsilons may exceed 10^12 or have a very long denominator. A policy may state a larger
        epsilon instead, because that is a weaker promise. A mechanism must not use the larger one.

        Returns
        -------
        Epsilon
            This epsilon, a rational number slightly above it, or infinity if it exceeds 10^12.
        """
        if self.is_infinite or self > _LARGEST_EPSILON:
            return INFINITE
        longest = max(part.denominator for part in (self.rational, *(c for _, c in self.logs)))
        if longest.bit_length() <= _LONGEST_FRACTION_BITS:
            return self
        with arb_precision(4 * _BOUND_BITS):
            above = self._ball().upper().fmpq()
        return Epsilon._of(Fraction(math.ceil(Fraction(int(above.p), int(above.q)) * 2**_BOUND_BITS), 2**_BOUND_BITS))

    def exp(self) -> float:
        """Return e^ε as a float, for error estimates and plots.

        Privacy decisions use :meth:`exp_bounds` instead, because a float may be rounded down.

        Returns
        -------
        float
            The value of e^ε with a relative error of a few units in the last place, or infinity if it exceeds the
            largest float.
        """
        if self.is_infinite or float(self) > 710:  # e^709.78 is the largest float
            return math.inf
        with arb_precision(128):
            return float(self._ball().exp())

    def _ball(self) -> flint.arb:
        """Return an Arb ball that contains the epsilon, at the current precision."""
        import flint

        ball = to_arb(self.rational)
        for prime, exponent in self.logs:
            ball += to_arb(exponent) * flint.arb(prime).log()
        return ball

    def __str__(self) -> str:
        """Return the canonical string: ``Epsilon(str(e)) == e`` for every non-negative epsilon."""
        if self.is_infinite:
            return "inf"
        if not self.logs:
            return _decimal_text(self.rational)
        together = _log_text(dict(self.logs))
        if together is None or len(together) > _LONGEST_LOG:  # the parser rejects a logarithm of such a long number
            terms = [_one_log_text(prime, exponent) for prime, exponent in self.logs]
        else:
            terms = [together]
        if self.rational:
            terms.insert(0, _decimal_text(self.rational))
        return "+".join(terms)

    def __repr__(self) -> str:
        return f"Epsilon({str(self)!r})"


EpsilonLike = Epsilon | int | float | Fraction | Decimal | str


def _rebuild(rational: Fraction, logs: tuple[tuple[int, Fraction], ...], infinite: bool) -> Epsilon:
    """Return a pickled epsilon."""
    return INFINITE if infinite else Epsilon._of(rational, dict(logs))


def _parse(value: object) -> Epsilon:
    """Return the epsilon of any accepted value, which may still be negative."""
    if isinstance(value, str):
        return _parse_text(value)
    if _is_float(value) and str(value).lower() in ("inf", "infinity"):  # math.isinf is true for a large Decimal
        return INFINITE
    return Epsilon._of(_of_reasonable_length(exact_fraction(value)))


def _is_float(value: Any) -> bool:
    """Return whether a value is a float, a Decimal, or a NumPy floating-point scalar of any width."""
    return isinstance(value, (float, Decimal)) or getattr(getattr(value, "dtype", None), "kind", "") == "f"


def _of_reasonable_length(value: Fraction) -> Fraction:
    # A long numerator alone makes the value too large, which Epsilon rejects with its own message.
    """Return a fraction unless its denominator is too long."""
    if value.denominator.bit_length() > _LONGEST_FRACTION_BITS:
        raise ValueError("too many digits")
    return value


def _parse_text(text: str) -> Epsilon:
    """Return the epsilon of a string: a sum of numbers and logarithms."""
    total = ZERO
    for part in text.replace("log", "ln").split("+") if "e+" not in text.lower() else [text]:
        term = part.strip()
        if term.lower() in {"inf", "infinity", "∞"}:
            total += INFINITE
        elif match := _TERM.match(term):
            factor = _of_reasonable_length(Fraction(match["factor"] or 1))
            total += Epsilon._of(Fraction(0), _prime_exponents(Fraction(match["argument"]))) * factor
        else:
            total += Epsilon._of(_of_reasonable_length(exact_fraction(term)))
    return total


def exact_fraction(value: object) -> Fraction:
    """Return a number as an exact fraction; a float means its shortest decimal.

    >>> exact_fraction(0.1)
    Fraction(1, 10)
    """
    dtype_kind = getattr(getattr(value, "dtype", None), "kind", "")
    if isinstance(value, bool) or dtype_kind == "b":
        raise TypeError("a Boolean is not accepted as a number")
    if dtype_kind in ("i", "u"):
        return Fraction(int(value))  # type: ignore[call-overload]
    if dtype_kind == "f" or isinstance(value, float):
        # str of a NumPy scalar is the shortest decimal for its width; repr would include its type.
        return Fraction(str(value) if dtype_kind else float.__repr__(value))
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError("a number must be a decimal or a fraction, with an exponent of at most 9999")
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if not isinstance(value, (Decimal, str)):
        raise TypeError(f"not a number: {type(value).__name__}")
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > 9999:
        raise ValueError("a number must not have an exponent beyond 9999")
    number = Fraction(value)
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _LONGEST_NUMBER_BITS:
        raise ValueError("a number must have at most 4,000 digits")
    return number


def _prime_exponents(argument: Fraction) -> dict[int, Fraction]:
    """Return the exponent of each prime factor of a positive rational."""
    import flint

    if argument <= 0 or max(len(str(argument.numerator)), len(str(argument.denominator))) > _LONGEST_LOG:
        raise ValueError(argument)
    exponents: dict[int, Fraction] = {}
    for number, sign in ((argument.numerator, 1), (argument.denominator, -1)):
        if number > 1:
            for prime, multiplicity in flint.fmpz(number).factor():
                exponents[int(prime)] = Fraction(sign * int(multiplicity))
    return exponents


def _log_text(exponents: dict[int, Fraction]) -> str | None:
    """Return ``factor*ln argument``, with the largest factor that leaves integer exponents; None if it is too long."""
    scale = math.lcm(*(c.denominator for c in exponents.values()))
    factor = Fraction(math.gcd(*(int(c * scale) for c in exponents.values())), scale)
    powers = {p: int(c / factor) for p, c in exponents.items()}
    # An upper bound of the bits that the argument and the factor take, before either is written out.
    bits = scale.bit_length() + sum(abs(power) * p.bit_length() for p, power in powers.items())
    if bits > 8 * _LONGEST_LOG:
        return None
    argument = math.prod((Fraction(p) ** power for p, power in powers.items()), start=Fraction(1))
    return _scaled_log_text(factor, argument)


def _one_log_text(prime: int, exponent: Fraction) -> str:
    """Return the logarithm of one prime, or of its inverse if the exponent is negative."""
    return _scaled_log_text(abs(exponent), Fraction(prime) if exponent > 0 else Fraction(1, prime))


def _scaled_log_text(factor: Fraction, argument: Fraction) -> str:
    return f"ln {argument}" if factor == 1 else f"{factor}*ln {argument}"


def _decimal_text(value: Fraction) -> str:
    """Return a terminating decimal if there is a short one, otherwise p/q."""
    denominator, places = value.denominator, 0
    while denominator != 1 and places < 20:
        factor = math.gcd(denominator, 10)
        if factor == 1:
            return str(value)
        denominator //= factor
        places += 1
    if denominator != 1:
        return str(value)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}")


# -- certified decisions ---------------------------------------------------------------------------------

# The working precision of python-flint is global to the process: hold this lock while using it.
_arb_lock = threading.RLock()


@contextmanager
def arb_precision(bits: int) -> Iterator[None]:
    """Set the precision of Arb for the block, and lock it, because the setting is global to the process."""
    import flint

    with _arb_lock:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


def to_arb(value: Fraction) -> flint.arb:
    """Return an Arb ball that contains a rational, at the current precision."""
    import flint

    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _integer_bounds(ball: flint.arb) -> tuple[int, int, int]:
    """Return integers (low, high, shift) with ``low ≤ x·2^shift ≤ high`` for every x in a ball."""

    def dyadic(end: flint.arb) -> tuple[int, int]:
        mantissa, exponent = end.man_exp()
        return int(mantissa), int(exponent)

    (low, low_exponent), (high, high_exponent) = dyadic(ball.lower()), dyadic(ball.upper())
    shift = max(0, -low_exponent, -high_exponent)
    return low << (low_exponent + shift), high << (high_exponent + shift), shift


def _sign_by_intervals(ball_at_current_precision: Any, most_bits: float = math.inf) -> int:
    """Return the sign of a non-zero real number, or 0 if the maximum precision does not determine it."""
    bits = 128
    while bits <= most_bits:
        with arb_precision(bits):
            ball = ball_at_current_precision()
            if ball > 0:
                return 1
            if ball < 0:
                return -1
        bits *= 2
    return 0


def sign_of_sum(terms: Iterable[tuple[Fraction | int, Epsilon]]) -> int:
    """Return the certified sign (-1, 0 or 1) of ``Σ coefficient·e^epsilon`` for finite epsilons.

    >>> sign_of_sum([(3, ZERO), (-1, Epsilon("ln 3"))])
    0
    >>> sign_of_sum([(Fraction("2.718281828459045"), ZERO), (-1, Epsilon(1))])
    -1
    """
    exact_terms = [(Fraction(coefficient), epsilon) for coefficient, epsilon in terms]
    if any(epsilon.is_infinite for _, epsilon in exact_terms):
        raise ValueError("all epsilons of the sum must be finite; an infinite epsilon constrains nothing")
    with arb_precision(128):
        # This precision nearly always suffices, and then no large power of a prime has to be written out.
        ball = _sum_ball(exact_terms)
        if ball > 0 or ball < 0:
            return 1 if ball > 0 else -1
    for near_bits, most_bits in ((_NEAR_BITS, 4 * _NEAR_BITS), (math.inf, math.inf)):
        remaining = _collected(exact_terms, near_bits)
        if len({value > 0 for value, _ in remaining}) <= 1:
            return 0 if not remaining else (1 if remaining[0][0] > 0 else -1)
        sign = _sign_by_intervals(functools.partial(_sum_ball, remaining), most_bits)
        if sign:
            return sign
    raise AssertionError("a non-zero sum has a sign")


#: A sum of coefficients times e^ε.
Terms = list[tuple[Fraction, Epsilon]]


def _collected(terms: Terms, near_bits: float) -> Terms:
    """Return the same sum with terms merged whose ratio is rational and at most ``near_bits`` long.

    No term of the result is zero.
    """
    alike: dict[tuple[Fraction, tuple[tuple[int, Fraction], ...]], list[tuple[Fraction, dict[int, int]]]] = {}
    for coefficient, epsilon in terms:
        whole = {prime: math.floor(exponent) for prime, exponent in epsilon.logs}
        fractional = tuple((prime, c - whole[prime]) for prime, c in epsilon.logs if c != whole[prime])
        alike.setdefault((epsilon.rational, fractional), []).append((coefficient, whole))
    collected = []
    for (rational, fractional), members in alike.items():
        for cluster in _clusters(members, near_bits):
            # Powers that all terms of a cluster share are not multiplied out, because they may be very long.
            primes = {prime for _, whole in cluster for prime in whole}
            shared = {prime: min(whole.get(prime, 0) for _, whole in cluster) for prime in primes}
            total = Fraction(0)
            for coefficient, whole in cluster:
                powers = (prime ** (whole.get(prime, 0) - least) for prime, least in shared.items())
                total += coefficient * math.prod(powers)
            exponents = dict(fractional)
            for prime, least in shared.items():
                exponents[prime] = exponents.get(prime, Fraction(0)) + least
            if total:
                collected.append((total, Epsilon._of(rational, exponents)))
    return collected


def _clusters(
    members: list[tuple[Fraction, dict[int, int]]], near_bits: float
) -> list[list[tuple[Fraction, dict[int, int]]]]:
    """Group the terms that are linked by ratios of at most about ``near_bits`` bits."""

    def near(one: dict[int, int], other: dict[int, int]) -> bool:
        return sum(abs(one.get(p, 0) - other.get(p, 0)) * p.bit_length() for p in {*one, *other}) <= near_bits

    clusters: list[list[tuple[Fraction, dict[int, int]]]] = []
    for member in members:
        linked = [c for c in clusters if any(near(member[1], whole) for _, whole in c)]
        clusters = [c for c in clusters if c not in linked] + [[member, *(m for c in linked for m in c)]]
    return clusters


def _sum_ball(terms: Iterable[tuple[Fraction, Epsilon]]) -> flint.arb:
    """Return an Arb ball that contains a sum, at the current precision."""
    import flint

    return sum((to_arb(c) * e._ball().exp() for c, e in terms), flint.arb(0))


def exceeds(smaller: int | Fraction, larger: int | Fraction, epsilon: Epsilon) -> bool:
    """Return whether ``smaller > e^ε·larger`` for non-negative rationals; the answer is certified.

    An infinite epsilon constrains nothing, even if ``larger`` is zero.
    """
    if epsilon.is_infinite or smaller == 0:
        return False
    if larger == 0:
        return True
    left, right = smaller.numerator * larger.denominator, larger.numerator * smaller.denominator
    power = float(epsilon)
    if 0 <= power >= left.bit_length() - right.bit_length() + 1:  # ln(left/right) is below 0.7 times this length
        return False
    if power < _LARGEST_BOUNDED:
        low, high, shift = epsilon.exp_bounds()
        if left << shift <= low * right:
            return False
        if left << shift > high * right:
            return True
    return sign_of_sum([(Fraction(smaller), ZERO), (-Fraction(larger), epsilon)]) > 0


def excess(smaller: int | Fraction, larger: int | Fraction, epsilon: Epsilon) -> float:
    """Return ``ln(smaller/larger) - ε`` to about float precision for display; -inf if the epsilon does not bind."""
    if epsilon.is_infinite or smaller == 0:
        return -math.inf
    if larger == 0:
        return math.inf
    bits = 256
    while True:
        with arb_precision(bits):
            ball = to_arb(Fraction(smaller) / Fraction(larger)).log() - epsilon._ball()
            if ball.rel_accuracy_bits() > 53 or bits > 4096:
                return float(ball)
        bits *= 2


def information(joint: Iterable[tuple[Fraction, Fraction]]) -> float:
    """Return ``Σ probability·ln ratio`` in nats to float precision, from pairs of exact (probability, ratio).

    If little is revealed, the terms nearly cancel; the precision is raised until the sum is accurate.
    """
    import flint

    terms = [(probability, ratio) for probability, ratio in joint if probability and ratio != 1]
    bits = 256
    while True:
        with arb_precision(bits):
            ball = sum((to_arb(probability) * to_arb(ratio).log() for probability, ratio in terms), flint.arb(0))
            if ball.rel_accuracy_bits() > 53 or not terms or bits > 4096:
                return float(ball)
        bits *= 2


def integer_kernel(equations: Iterable[Sequence[Fraction]]) -> list[list[int]]:
    """Return a basis of the integer vectors that are orthogonal to every row of ``equations``.

    The basis generates all of them and is reduced, so its vectors are short (Lenstra, Lenstra and Lovász 1982).
    """
    import flint

    rows = []
    for equation in equations:
        scale = math.lcm(*(entry.denominator for entry in equation))
        rows.append([int(entry * scale) for entry in equation])
    # U·A' = L with a unimodular U: the rows of U that correspond to zero rows of L are a basis.
    reduced, transform = flint.fmpz_mat([list(column) for column in zip(*rows, strict=True)]).lll(True)
    kernel = [row for row, image in zip(transform.tolist(), reduced.tolist(), strict=True) if not any(image)]
    return [[int(entry) for entry in row] for row in (flint.fmpz_mat(kernel).lll().tolist() if kernel else [])]


def floor_of_ratio(
    numerator: tuple[Fraction, Fraction], denominator: tuple[Fraction, Fraction], epsilon: Epsilon
) -> int:
    """Return the certified ``⌊(a·t + b) / (c·t + d)⌋`` with t = e^ε, where c·t + d > 0."""
    (a, b), (c, d) = numerator, denominator

    def at_least(m: int) -> bool:
        return sign_of_sum([(a - m * c, epsilon), (b - m * d, ZERO)]) >= 0

    bits = _BOUND_BITS
    while True:
        with arb_precision(bits):
            t = epsilon._ball().exp()
            ball = (to_arb(a) * t + to_arb(b)) / (to_arb(c) * t + to_arb(d))
            if ball.is_finite() and ball.rad() < 1:
                # Do not convert to a fraction: the one of e^-(10^12) does not fit into memory.
                guess = int(ball.mid().floor().fmpz())
                break
        bits *= 2
    while not at_least(guess):
        guess -= 1
    while at_least(guess + 1):
        guess += 1
    return guess


def floor_of_log(numerator: Terms, denominator: Terms, step: Epsilon) -> Epsilon:
    """Return the certified largest multiple of a step that is at most ln(numerator/denominator).

    Numerator and denominator are sums as in ``sign_of_sum``, with numerator ≥ denominator. The result is at most the
    largest epsilon that can be stated.

    >>> floor_of_log([(Fraction(3), ZERO)], [(Fraction(1), ZERO)], Epsilon("0.001"))
    Epsilon('1.098')
    """
    return min(step * _last(lambda steps: _sign_above(numerator, denominator, step * steps) >= 0), _LARGEST_EPSILON)


def ceil_of_log(numerator: Terms, denominator: Terms, step: Epsilon) -> Epsilon:
    """Return the certified smallest multiple of a step that is at least 0 and ln(numerator/denominator)."""
    return step * (_last(lambda steps: _sign_above(numerator, denominator, step * steps) > 0) + 1)


def digits_of(epsilon: Epsilon) -> Epsilon:
    """Return a step, a power of ten of at most 10^-9, that gives epsilons of this size nine digits or more."""
    if float(epsilon) < sys.float_info.min:  # the logarithm of a subnormal float is not accurate
        return epsilon / 10**9
    return Epsilon._of(Fraction(1, 10 ** (9 + max(0, math.ceil(-math.log10(float(epsilon)))))))


def _sign_above(numerator: Terms, denominator: Terms, epsilon: Epsilon) -> int:
    """Return the sign of numerator - e^epsilon·denominator."""
    return sign_of_sum([*numerator, *((-c, e + epsilon) for c, e in denominator)])


def _last(holds: Callable[[int], bool]) -> int:
    """Return the largest integer from 0 for which ``holds`` is true, or -1; once false, it must stay false."""
    low, high = -1, 0
    while holds(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def chi_square_is_likelier(bound: Fraction, degrees: int, probability: Fraction) -> bool:
    """Return whether a chi-square variable exceeds ``bound`` with more than ``probability`` < 1; certified.

    The tail is the regularized incomplete gamma function Q(degrees/2, bound/2). Equality to 4096 bits counts as true.
    """
    if bound <= 0:
        return True  # a chi-square variable exceeds zero with probability one

    def margin() -> flint.arb:
        tail = to_arb(bound / 2).gamma_upper(to_arb(Fraction(degrees, 2)), regularized=1)
        return tail - to_arb(probability)

    return _sign_by_intervals(margin, 4096) >= 0


ZERO = Epsilon._of(Fraction(0))
INFINITE = Epsilon._infinite()
_LARGEST_EPSILON = Epsilon._of(Fraction(_LARGEST))


def dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    """Return the exact inner product of two vectors of fractions."""
    return sum((a * b for a, b in zip(first, second, strict=True)), Fraction(0))
