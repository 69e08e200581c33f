"""Number theory for cyclic designs: primes, primitive roots, primitive polynomials and their recurrences.

All numbers are small: a design has at most 2^22 residues, so trial division suffices.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from sfumato._core import Integers

__all__ = [
    "divisors",
    "first_primitive_polynomial",
    "is_prime",
    "is_primitive_polynomial",
    "least_primitive_root",
    "next_prime",
    "prime_factors",
    "recurrence",
]

Polynomial = tuple[int, ...]


@functools.lru_cache(maxsize=1024)
def prime_factors(number: int) -> tuple[int, ...]:
    """Return the distinct prime factors of a positive integer, ascending."""
    factors, rest, candidate = [], number, 2
    while candidate * candidate <= rest:
        if rest % candidate == 0:
            factors.append(candidate)
            while rest % candidate == 0:
                rest //= candidate
        candidate += 1 if candidate == 2 else 2
    return (*factors, rest) if rest > 1 else tuple(factors)


def is_prime(number: int) -> bool:
    """Return whether an integer is prime."""
    return number > 1 and prime_factors(number) == (number,)


def next_prime(number: int) -> int:
    """Return the least prime that is at least ``number``."""
    return next(candidate for candidate in itertools.count(max(number, 2)) if is_prime(candidate))


def divisors(number: int) -> list[int]:
    """Return all divisors of a positive integer, ascending."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


@functools.lru_cache(maxsize=256)
def least_primitive_root(prime: int) -> int:
    """Return the least integer whose powers are all nonzero residues modulo an odd prime."""
    factors = prime_factors(prime - 1)
    return next(g for g in itertools.count(2) if all(pow(g, (prime - 1) // r, prime) != 1 for r in factors))


# -- primitive polynomials -----------------------------------------------------------------------------------


def _product(prime: int, polynomial: Polynomial, left: Sequence[int], right: Sequence[int]) -> list[int]:
    """Return a product of two residues modulo a monic polynomial; residues are coefficients from the constant term."""
    degree = len(polynomial) - 1
    product = [0] * (2 * degree - 1)
    for i, a in enumerate(left):
        if a:
            for j, b in enumerate(right):
                product[i + j] += a * b
    for i in range(2 * degree - 2, degree - 1, -1):
        leading = product[i] % prime
        if leading:
            for j in range(degree):
                product[i - degree + j] -= leading * polynomial[j]
    return [c % prime for c in product[:degree]]


def _power_of_x(prime: int, polynomial: Polynomial, exponent: int) -> list[int]:
    """Return x^exponent modulo a monic polynomial of degree at least 1."""
    degree = len(polynomial) - 1
    base = [0, 1, *[0] * (degree - 2)] if degree > 1 else [-polynomial[0] % prime]
    power = [1, *[0] * (degree - 1)]
    for bit in f"{exponent:b}":
        power = _product(prime, polynomial, power, power)
        if bit == "1":
            power = _product(prime, polynomial, power, base)
    return power


@functools.lru_cache(maxsize=256)
def is_primitive_polynomial(prime: int, polynomial: Polynomial) -> bool:
    """Return whether the powers of x are all nonzero residues modulo a monic polynomial: a proof by factoring.

    If x has order prime^degree - 1, then x generates as many residues as there are nonzero ones, so the residues form a
    field.
    """
    degree = len(polynomial) - 1
    order = prime**degree - 1
    one = [1, *[0] * (degree - 1)]
    if _power_of_x(prime, polynomial, order) != one:
        return False
    return all(_power_of_x(prime, polynomial, order // r) != one for r in prime_factors(order))


@functools.lru_cache(maxsize=256)
def first_primitive_polynomial(prime: int, degree: int) -> Polynomial:
    """Return the primitive polynomial whose coefficients, from the leading one down, come first in order."""
    for coefficients in itertools.product(range(prime), repeat=degree):
        polynomial = (*coefficients[::-1], 1)
        # Modulo x^n + c, the order of x is at most n·(prime-1), too few unless n = 1.
        is_binomial = degree > 1 and not any(coefficients[:-1])
        if polynomial[0] and not is_binomial and is_primitive_polynomial(prime, polynomial):
            return polynomial
    raise AssertionError("every degree has a primitive polynomial")


def recurrence(prime: int, polynomial: Polynomial, length: int) -> Integers:
    """Return the first terms of the linear recurring sequence of a monic polynomial, with start 0, …, 0, 1.

    s_{i+N} = Σ_j c_j·s_{i+j} if x^N = Σ_j c_j·x^j modulo the polynomial, so the known terms are doubled at a time.
    """
    degree = len(polynomial) - 1
    terms = np.zeros(max(length, 2 * degree), np.int64)
    terms[degree - 1] = 1
    for i in range(degree, 2 * degree):
        terms[i] = -sum(c * int(s) for c, s in zip(polynomial, terms[i - degree : i], strict=False)) % prime
    known = 2 * degree
    while known < length:
        more = min(known - degree + 1, length - known)
        total = np.zeros(more, np.int64)
        for j, c in enumerate(_power_of_x(prime, polynomial, known)):
            if c:
                total += c * terms[j : j + more]
                total %= prime
        terms[known : known + more] = total
        known += more
    return terms[:length]


def prime_powers(most: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs (prime, power) with prime^power at most ``most``."""
    for prime in filter(is_prime, range(2, most + 1)):
        power = 1
        while prime**power <= most:
            yield prime, power
            power += 1
