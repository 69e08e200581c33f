"""The mechanisms that Barg and Ye compare, and the four regimes of ε in their tables."""

from __future__ import annotations

import math
from collections.abc import Callable

from sfumato.domain import Domain
from sfumato.mechanisms import HadamardResponse, Mechanism, RandomizedResponse, SubsetSelection, UnaryEncoding

__all__ = ["MECHANISMS", "REGIMES", "published_hadamard"]


def published_hadamard(domain: Domain, epsilon: str) -> HadamardResponse:
    """The published rule: as many matrices as the greatest power of two below e^ε and 2k (Acharya et al. 2019)."""
    k = len(domain)
    blocks = 2 ** math.floor(min(float(epsilon) / math.log(2), math.log2(2 * k)))
    size = 1 << max(1, (-(-k // blocks)).bit_length())  # at least ⌈k/B⌉ + 1 rows
    return HadamardResponse(domain, epsilon, block_size=size, blocks=blocks)


#: RR, RAPPOR, SS and HR of the slides.
MECHANISMS: dict[str, Callable[[Domain, str], Mechanism]] = {
    "RR": RandomizedResponse,
    "RAPPOR": UnaryEncoding,
    "SS": SubsetSelection,
    "HR": published_hadamard,
}

#: An epsilon in each regime of the slides' tables, as a function of ln k.
REGIMES: dict[str, Callable[[float], float]] = {
    "(0, 1)": lambda _: 0.5,
    "(1, log k)": lambda log: (1 + log) / 2,
    "(log k, 2 log k)": lambda log: 1.5 * log,
    "(2 log k, ∞)": lambda log: 2.5 * log,
}
