"""The mechanisms that Barg and Ye compare, and the four regimes of ε in their tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.compiler import least_risk
from sfumato.domain import Domain
from sfumato.mechanisms import HadamardResponse, Mechanism, RandomizedResponse, SubsetSelection, UnaryEncoding
from sfumato.policy import Uniform

__all__ = ["MECHANISMS", "REGIMES", "Compared", "published_hadamard"]


def published_hadamard(domain: Domain, epsilon: str) -> HadamardResponse:
    """Return Hadamard response with the published number of matrices (Acharya et al. 2019).

    The number is the greatest power of two that is at most e^ε and 2k.
    """
    k = len(domain)
    blocks = 2 ** math.floor(min(float(epsilon) / math.log(2), math.log2(2 * k)))
    size = 1 << max(1, (-(-k // blocks)).bit_length())  # at least ⌈k/B⌉ + 1 rows
    return HadamardResponse(domain, epsilon, block_size=size, blocks=blocks)


@dataclass(frozen=True)
class Compared:
    """A mechanism of the slides.

    ``make`` constructs it. ``needed_bits`` is the minimum number of bits per report if all values are equally frequent.
    ``published_risk`` is the formula of the slides, or None. ``our_risk`` is that of the best mechanism of this kind.
    """

    make: Callable[[Domain, str], Mechanism]
    needed_bits: Callable[[Mechanism], float]
    published_risk: Callable[[Domain, str], float] | None
    our_risk: Callable[[Domain, str], float | None]


def _length(mechanism: Mechanism) -> float:
    """Return the length of a report in bits."""
    return mechanism.bits


def _set_number(mechanism: Mechanism) -> float:
    """Return the number of bits that number all subsets."""
    return math.log2(mechanism.outputs)


def _entropy_of_bits(mechanism: Mechanism) -> float:
    """Return an upper bound on the entropy of a bitmap."""
    k = len(mechanism.domain)
    other = 1 / (1 + math.exp(float(mechanism.parameters()["epsilon"]) / 2))
    # One bit per value, independent given the true value; the true value adds at most log2 k.
    noise = -other * math.log2(other) - (1 - other) * math.log2(1 - other)
    return min(k * noise + math.log2(k), k)


def _response_risk(domain: Domain, epsilon: str) -> float:
    """Return the published risk of randomized response."""
    k, t = len(domain), math.exp(float(epsilon))
    return ((t + k - 1) / (t - 1)) ** 2 * (1 - 1 / k)


def _subset_risk(domain: Domain, epsilon: str) -> float:
    """Return the published risk of subset selection."""
    k, t, d = len(domain), math.exp(float(epsilon)), SubsetSelection(domain, epsilon).size
    return (k - 1) ** 2 / (k * (t - 1) ** 2) * (d * t + k - d) ** 2 / (d * (k - d))


def _least_risk(domain: Domain, epsilon: str) -> float | None:
    """Return the smallest risk of any mechanism."""
    return least_risk(Uniform(domain, epsilon))


#: RR, RAPPOR, SS and HR of the slides.
MECHANISMS: dict[str, Compared] = {
    "RR": Compared(RandomizedResponse, _length, _response_risk, _least_risk),
    "RAPPOR": Compared(
        UnaryEncoding,
        _entropy_of_bits,
        None,
        lambda domain, epsilon: UnaryEncoding(domain, epsilon, optimized=True).risk(1),
    ),
    "SS": Compared(SubsetSelection, _set_number, _subset_risk, _least_risk),
    "HR": Compared(
        published_hadamard, _length, None, lambda domain, epsilon: HadamardResponse(domain, epsilon).risk(1)
    ),
}

#: An epsilon in each regime of the slides' tables, as a function of ln k.
REGIMES: dict[str, Callable[[float], float]] = {
    "(0, 1)": lambda _: 0.5,
    "(1, log k)": lambda log: (1 + log) / 2,
    "(log k, 2 log k)": lambda log: 1.5 * log,
    "(2 log k, ∞)": lambda log: 2.5 * log,
}
