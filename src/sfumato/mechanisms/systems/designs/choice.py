"""Choice of a cyclic design: the risk depends only on the numbers of residues and of elements per block."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from sfumato._core import Epsilon, quantity
from sfumato.errors import NoMechanism
from sfumato.mechanisms.candidates import short_bits
from sfumato.mechanisms.estimators.mixture import mixture_moments
from sfumato.mechanisms.systems.designs.families import LARGEST_OUTPUTS, DifferenceFamily, ResidueFamily, SingerSet
from sfumato.mechanisms.systems.designs.numbers import divisors, next_prime, prime_powers

__all__ = ["best_design"]

#: Ratio to the least risk within which the design with the shortest reports is chosen.
_NEARLY_LEAST = 1.005
#: Least e^ε - 1 at which some γ is at least 2^-64, the precision of thresholds.
_LEAST_ODDS = 2.0**-64
#: Number of primes, from the number of values on, whose residue families are compared.
_PRIMES = 12
#: Numbers of cosets on either side of the best density that are compared.
_NEAR = 2


def best_design(
    values: int, epsilon: Epsilon, *, unprotected: int = 0, max_outputs: float = math.inf
) -> DifferenceFamily:
    """Return the design of least risk at the uniform distribution, with short reports.

    Among the designs within 0.5% of the least risk, it has the shortest reports.

    Parameters
    ----------
    values
        Number of protected values, at least 2.
    epsilon
        The level ε.
    unprotected
        Number of unprotected values of the same part.
    max_outputs
        Maximum number of outputs; 8 bits more than the values need by default, and at most 2^22.
    """
    most = max(int(min(max_outputs, LARGEST_OUTPUTS, 1 << short_bits(values))), 0)
    odds = math.expm1(min(float(epsilon), 700.0))

    def risk(modulus: int, size: int) -> float:
        if odds < _LEAST_ODDS:
            return 0.0  # no design learns anything, so the one with the shortest reports is chosen
        chance = odds * size / modulus
        of_value, of_unprotected = mixture_moments(
            values, size / modulus, (size - 1) / max(modulus - 1, 1), chance / (chance + 1), 1 / (chance + 1)
        )
        return float(values * of_value + unprotected * of_unprotected) - 1  # |p|² at the uniform distribution

    options = [(risk(modulus, size), outputs, build) for modulus, size, outputs, build in _options(values, odds, most)]
    if not options:
        advice = "Use HadamardResponse." if values > LARGEST_OUTPUTS else "Increase max_bits, or use another mechanism."
        raise NoMechanism(
            f"no cyclic design with at most {quantity(most, 'output')} has {quantity(values, 'value')}. {advice}"
        )
    limit = _NEARLY_LEAST * min(risk for risk, _, _ in options)
    good = [option for option in options if option[0] <= limit]
    _, _, build = min(good, key=lambda option: ((option[1] + unprotected - 1).bit_length(), option[0], option[1]))
    return build()


Option = tuple[int, int, int, Callable[[], DifferenceFamily]]


def _options(values: int, odds: float, most: int) -> Iterator[Option]:
    """Yield residues, elements per block, outputs, and a function that returns the design."""
    yield from _singer_options(values, most)
    yield from _residue_options(values, odds, most)


def _singer_options(values: int, most: int) -> Iterator[Option]:
    """Yield the Singer sets that hold the values."""
    for prime, power in prime_powers(math.isqrt(most)):
        q = prime**power
        for dimension in itertools.count(3):
            modulus = (q**dimension - 1) // (q - 1)
            if modulus > most:
                break
            if modulus >= values:
                size = (modulus - 1) // q
                yield modulus, size, modulus, _singer(prime, power, dimension)


def _singer(prime: int, power: int, dimension: int) -> Callable[[], DifferenceFamily]:
    """Return a function that returns a Singer set; finding its polynomial takes time."""
    return lambda: SingerSet.of(prime, power, dimension)


def _residue_options(values: int, odds: float, most: int) -> Iterator[Option]:
    """Yield residue families of the next primes with sets near the best density 1/(e^ε+1)."""
    prime = next_prime(max(values, 3))
    for _ in range(_PRIMES):
        if prime > most:
            return
        for order in divisors(prime - 1):
            nearest = int(prime / (odds + 2)) // order
            cosets = range(max(1, nearest - _NEAR), nearest + _NEAR + 1)
            for count, zero in itertools.product(cosets, (0, 1)):
                design = ResidueFamily(prime, order, count, zero)
                if 1 < design.size < prime and count * order < prime and design.outputs <= most:
                    yield prime, design.size, design.outputs, _constant(design)
        prime = next_prime(prime + 1)


def _constant(design: DifferenceFamily) -> Callable[[], DifferenceFamily]:
    """Return a function that returns a design."""
    return lambda: design
