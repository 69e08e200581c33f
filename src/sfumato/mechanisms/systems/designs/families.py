"""Cyclic difference families: sets of residues whose differences are balanced.

A family has m base blocks, each with d of the residues modulo v. Every nonzero residue is a difference of two elements
of one base block equally often, counted over all base blocks. All shifts of all base blocks then form a 2-design: every
residue lies in equally many of them, and so does every pair of residues.

The families of this module have this property by theorems. A Singer set has it if its polynomial is primitive, which is
proved when a document is read. A residue family has it because multiplication by the primitive root permutes its base
blocks, up to sign, and maps every nonzero residue to every other. Mechanisms with few outputs also count the
differences (``correlation.is_balanced``).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato._core import Integers, checked_integer
from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.mechanisms.systems.designs.numbers import (
    first_primitive_polynomial,
    is_prime,
    is_primitive_polynomial,
    least_primitive_root,
    recurrence,
)

__all__ = [
    "LARGEST_OUTPUTS",
    "DifferenceFamily",
    "ResidueFamily",
    "SingerSet",
    "design_from_document",
    "residues_document",
    "singer_document",
]

#: Maximum number of outputs of a design; bounds the memory and time of an estimate.
LARGEST_OUTPUTS = 2**22
_SUBJECT = "a cyclic design"


@dataclass(frozen=True)
class DifferenceFamily(ABC):
    """Base class of cyclic difference families.

    ``modulus`` is v, ``blocks`` is m, and ``size`` is d. Subclasses derive the elements from a few integers.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def modulus(self) -> int:
        """Number v of residues."""

    @property
    @abstractmethod
    def blocks(self) -> int:
        """Number m of base blocks."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number d of elements in each base block."""

    @property
    def outputs(self) -> int:
        """Number m·v of shifted base blocks."""
        return self.blocks * self.modulus

    @property
    def elements(self) -> Integers:
        """The elements of the base blocks, a row per block, each in ascending order."""
        return _elements(self)

    @abstractmethod
    def _base_blocks(self) -> Integers:
        """Return the elements of the base blocks, a row per block, each in ascending order."""

    @abstractmethod
    def _source(self) -> dict[str, Any]:
        """Return the integers that determine the family."""

    def document(self) -> dict[str, Any]:
        """Return the family as a JSON-compatible dictionary, which does not contain the elements."""
        shape = {"modulus": self.modulus, "blocks": self.blocks, "size": self.size}
        return {"kind": self.kind} | self._source() | shape


@functools.lru_cache(maxsize=8)
def _elements(family: DifferenceFamily) -> Integers:
    """Return the elements of a family; several mechanisms often share one family."""
    elements = family._base_blocks()
    if elements.shape != (family.blocks, family.size):
        must = f"have {family.size} elements in each of {family.blocks} base blocks"
        raise InvalidInput(_SUBJECT, "the design", must, elements.shape)
    elements.flags.writeable = False
    return elements


@dataclass(frozen=True)
class SingerSet(DifferenceFamily):
    """Singer difference set: the hyperplane of trace zero in a projective space over a field of q elements.

    With q = prime^power and t = dimension, v = (q^t-1)/(q-1) and d = (q^(t-1)-1)/(q-1). There is one base block (Singer
    1938). ``polynomial`` is a primitive polynomial of degree power·t over the integers modulo ``prime``: its
    coefficients from the constant term to the leading one, which is 1.
    """

    kind = "singer"

    prime: int
    power: int
    dimension: int
    polynomial: tuple[int, ...]

    @classmethod
    def of(cls, prime: int, power: int, dimension: int) -> SingerSet:
        """Return the set for the first primitive polynomial in lexicographic order."""
        return cls(prime, power, dimension, first_primitive_polynomial(prime, power * dimension))

    @property
    def modulus(self) -> int:
        return _points(self.prime**self.power, self.dimension)

    @property
    def blocks(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return _points(self.prime**self.power, self.dimension - 1)

    def _base_blocks(self) -> Integers:
        terms = recurrence(self.prime, self.polynomial, self.power * self.modulus)
        is_zero = (terms.reshape(self.power, self.modulus) == 0).all(axis=0)
        return np.flatnonzero(is_zero)[None].astype(np.int64)

    def _source(self) -> dict[str, Any]:
        return {
            "prime": self.prime,
            "power": self.power,
            "dimension": self.dimension,
            "polynomial": list(self.polynomial),
        }


def _points(q: int, dimension: int) -> int:
    """Return 1 + q + … + q^(dimension-1), the number of points of a projective space."""
    return sum(q**i for i in range(dimension))


@dataclass(frozen=True)
class ResidueFamily(DifferenceFamily):
    """Difference family of power residues modulo an odd prime q (Wilson 1972).

    Let g be the least primitive root, and H the subgroup of ``order`` h. The first base block A is the union of the
    cosets H, gH, …, of which there are ``cosets``, and of {0} if ``zero`` is 1. The others are gA, g²A, …, one for each
    coset of H if h is even, and of H ∪ -H if h is odd. With h = (q-1)/2 odd and one coset, the only base block is the
    set of nonzero squares (Paley 1933).
    """

    kind = "residues"

    prime: int
    order: int
    cosets: int
    zero: int

    @property
    def modulus(self) -> int:
        return self.prime

    @property
    def blocks(self) -> int:
        return (self.prime - 1) // (self.order if self.order % 2 == 0 else 2 * self.order)

    @property
    def size(self) -> int:
        return self.cosets * self.order + self.zero

    def _base_blocks(self) -> Integers:
        powers = recurrence(self.prime, (-least_primitive_root(self.prime) % self.prime, 1), self.prime - 1)
        steps = (self.prime - 1) // self.order
        exponents = (np.arange(self.cosets)[:, None] + steps * np.arange(self.order)).ravel()
        rows = powers[(exponents + np.arange(self.blocks)[:, None]) % (self.prime - 1)]
        if self.zero:
            rows = np.concatenate([rows, np.zeros((self.blocks, 1), np.int64)], axis=1)
        return np.sort(rows, axis=1)

    def _source(self) -> dict[str, Any]:
        return {"prime": self.prime, "order": self.order, "cosets": self.cosets, "zero": self.zero}


# -- designs in a spec ---------------------------------------------------------------------------------------


def singer_document(prime: int, power: int, dimension: int) -> dict[str, Any]:
    """Return the document of a Singer set, or raise InvalidInput if there is none or it is too large."""
    return SingerSet.of(*_read_space({"prime": prime, "power": power, "dimension": dimension})).document()


def residues_document(prime: int, order: int, cosets: int, zero: int) -> dict[str, Any]:
    """Return the document of a residue family, or raise InvalidInput if there is none or it is too large."""
    return _read_residues({"prime": prime, "order": order, "cosets": cosets, "zero": zero}).document()


def design_from_document(document: Any) -> DifferenceFamily:
    """Return the family that a document of ``DifferenceFamily.document`` states, or raise InvalidInput."""
    readers = {SingerSet.kind: _read_singer, ResidueFamily.kind: _read_residues}
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in readers:
        raise UnknownSpec(_SUBJECT, "design", f"be a dictionary with a kind, one of {', '.join(readers)}", document)
    design = readers[kind](document)
    expected = design.document()
    for key in ("modulus", "blocks", "size"):
        if type(document.get(key)) is not int or document[key] != expected[key]:
            raise InvalidInput(_SUBJECT, key, f"be {expected[key]}, as the other entries imply", document.get(key))
    if set(document) != set(expected):
        unknown = sorted(map(str, set(document) - set(expected)))
        raise InvalidInput(_SUBJECT, "design", f"have only the keys {', '.join(expected)}", unknown)
    return design


def _read(document: dict[str, Any], key: str, low: int, high: int) -> int:
    """Return an integer of a document."""
    value = document.get(key)
    if type(value) is not int:
        raise InvalidInput(_SUBJECT, key, f"be an integer in [{low}, {high}]", value)
    return checked_integer(_SUBJECT, key, value, low, high)


def _read_prime(document: dict[str, Any], least: int) -> int:
    """Return the prime of a document."""
    prime = _read(document, "prime", least, LARGEST_OUTPUTS)
    if not is_prime(prime):
        raise InvalidInput(_SUBJECT, "prime", "be a prime number", prime)
    return prime


def _read_space(document: dict[str, Any]) -> tuple[int, int, int]:
    """Return the prime, power and dimension of a document for a Singer set."""
    prime, power = _read_prime(document, 2), _read(document, "power", 1, 22)
    dimension = _read(document, "dimension", 3, 22)
    if _points(prime**power, dimension) > LARGEST_OUTPUTS:
        must = f"give at most {LARGEST_OUTPUTS} residues together with prime and power"
        raise InvalidInput(_SUBJECT, "dimension", must, dimension)
    return prime, power, dimension


def _read_singer(document: dict[str, Any]) -> SingerSet:
    """Return the Singer set of a document; raise InvalidInput unless its polynomial is primitive."""
    prime, power, dimension = _read_space(document)
    polynomial = document.get("polynomial")
    degree = power * dimension
    if (
        not isinstance(polynomial, (list, tuple))
        or len(polynomial) != degree + 1
        or not all(type(c) is int and 0 <= c < prime for c in polynomial)
        or polynomial[-1] != 1
    ):
        must = f"be the {degree + 1} coefficients of a monic polynomial of degree {degree} modulo {prime}"
        raise InvalidInput(_SUBJECT, "polynomial", must, polynomial)
    if not is_primitive_polynomial(prime, tuple(polynomial)):
        raise InvalidInput(_SUBJECT, "polynomial", f"be primitive modulo {prime}", polynomial)
    return SingerSet(prime, power, dimension, tuple(polynomial))


def _read_residues(document: dict[str, Any]) -> ResidueFamily:
    """Return the residue family of a document."""
    prime = _read_prime(document, 3)
    order = _read(document, "order", 1, prime - 1)
    if (prime - 1) % order:
        raise InvalidInput(_SUBJECT, "order", f"divide {prime - 1}", order)
    zero = _read(document, "zero", 0, 1)
    cosets = _read(document, "cosets", 1, (prime - 1) // order)
    design = ResidueFamily(prime, order, cosets, zero)
    if not 1 < design.size < prime:
        raise InvalidInput(_SUBJECT, "cosets", f"give sets of 2 to {prime - 1} residues", cosets)
    if design.outputs > LARGEST_OUTPUTS:
        raise InvalidInput(_SUBJECT, "order", f"give at most {LARGEST_OUTPUTS} shifted blocks", order)
    return design
