"""Cyclic designs: reports of about log2 k bits with nearly the error of subset selection."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import EpsilonLike, Integers, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished, read_epsilon
from sfumato.mechanisms.candidates import most_outputs
from sfumato.mechanisms.cyclic.choice import best_design
from sfumato.mechanisms.cyclic.correlation import difference_counts, is_balanced, spread_exactly
from sfumato.mechanisms.cyclic.designs import (
    DifferenceFamily,
    design_from_document,
    residues_document,
    singer_document,
)
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.two_level import ONE, OUTSIDE, MixtureDraws, MixtureMechanism, mixing_threshold

__all__ = ["CyclicDesign", "cyclic_surrogate"]

#: Maximum number of outputs of a design whose differences are counted at construction; bounds the time to about 10 ms.
_COUNTED_OUTPUTS = 2**14


class CyclicDesign(MixtureMechanism):
    """Cyclic design: report a shifted set of residues, likelier if it contains the true value.

    Values are residues modulo v. There are m base blocks of d residues each; a report is the number of one of their m·v
    shifts, an index of about log2 k bits. The risk (the expected squared error of the estimated frequencies) is close
    to that of :class:`SubsetSelection` with subsets of the same density, whose reports have k bits.

    Parameters
    ----------
    domain
        The k values, at least two.
    epsilon
        The level ε of classical local differential privacy.
    design
        The difference family, as the dictionary that a stored spec holds. By default, it has the shortest reports among
        the families within 0.5% of the least risk at the uniform distribution.
    max_bits
        Maximum report size in bits for the default design; 8 bits more than the index of a value by default.
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    With probability γ the report is drawn uniformly from the m·d shifts whose set contains the true value. Otherwise it
    is drawn uniformly from all shifts. With t = e^ε and density u = d/v, γ = (t-1)u/((t-1)u+1), rounded down to a
    multiple of 2^-64, so that ε holds exactly. Privacy requires only that each base block has exactly d residues.

    In a cyclic difference family, every nonzero residue is equally often a difference of two elements of a base block.
    So every two values lie together in equally many sets, and the share of reports whose set contains a value estimates
    its frequency without bias. Two kinds of families are known to the library:

    - ``"singer"``: one base block, from a primitive polynomial over a finite field of q elements; density about 1/q
      (Singer 1938);
    - ``"residues"``: unions of cosets of power residues modulo a prime (Paley 1933, Wilson 1972).

    The spec holds the integers that determine the family, not the residues. The proof is in
    ``docs/proofs/cyclic-design.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import CyclicDesign
    >>> mechanism = CyclicDesign(Domain.range(1000), 1)
    >>> mechanism.bits, mechanism.design.kind
    (11, 'residues')
    >>> small = CyclicDesign(Domain.range(7), "ln 3", design=CyclicDesign.singer(2, 1, 3))
    >>> small.design.elements.tolist()
    [[0, 1, 3]]
    """

    name = "cyclic-design"

    def __init__(
        self,
        domain: Domain,
        epsilon: EpsilonLike,
        *,
        design: dict[str, Any] | None = None,
        max_bits: int | None = None,
        threshold: int | str | None = None,
    ) -> None:
        subject = "CyclicDesign"
        self.domain = checked_domain(subject, domain)
        self.epsilon = read_epsilon(subject, epsilon)
        if len(domain) < 2:
            hint = "Use RandomizedResponse for a single value."
            raise InvalidInput(subject, "domain", "have at least two values", domain, hint=hint)
        if design is None:
            family = best_design(len(domain), self.epsilon, max_outputs=most_outputs(max_bits) or math.inf)
        else:
            family = design_from_document(design)
        self._set_up(family, threshold)

    def _set_up(self, design: DifferenceFamily, threshold: int | str | None) -> None:
        """Set the design and the threshold; raise InvalidInput if they disagree with the values or the level."""
        if len(self.domain) > design.modulus:
            must = f"be at least {len(self.domain)}, the number of values"
            raise InvalidInput("CyclicDesign", "the modulus of the design", must, design.modulus)
        # The property holds by proof (see designs.py). The estimate relies on it, privacy does not.
        assert design.outputs > _COUNTED_OUTPUTS or is_balanced(design), "all differences must be equally frequent"
        self.design = design
        self.density = Fraction(design.size, design.modulus)
        self.threshold = mixing_threshold(self.epsilon, self.density)
        if threshold is not None and checked_integer("CyclicDesign", "threshold", threshold, 0, ONE) != self.threshold:
            must = f"be {self.threshold}, which epsilon and the design determine"
            raise InvalidInput("CyclicDesign", "threshold", must, threshold)
        self.layout = Layout(64, (Field.number(32, 32), Field.number(0, 32)))

    @staticmethod
    def singer(prime: int, power: int, dimension: int) -> dict[str, Any]:
        """Return the design of a Singer difference set over the field of q = prime^power elements.

        Parameters
        ----------
        prime
            The characteristic of the field, a prime number.
        power
            The degree of the field over the integers modulo ``prime``.
        dimension
            The dimension t of the vector space, at least 3. The set has (q^(t-1)-1)/(q-1) of the (q^t-1)/(q-1)
            residues.

        Returns
        -------
        dict
            The design, for the parameter ``design`` of the constructor.
        """
        return singer_document(prime, power, dimension)

    @staticmethod
    def residues(prime: int, order: int, *, cosets: int = 1, zero: int = 0) -> dict[str, Any]:
        """Return the design of a family of power residues.

        Parameters
        ----------
        prime
            The number q of residues, an odd prime.
        order
            The order h of the subgroup of power residues, a divisor of q-1.
        cosets
            The number of cosets of the subgroup in a base block.
        zero
            1 if base blocks contain the residue 0 as well, else 0.

        Returns
        -------
        dict
            The design, for the parameter ``design`` of the constructor. Its sets have cosets·h + zero residues.
        """
        return residues_document(prime, order, cosets, zero)

    # -- the sampler -----------------------------------------------------------------------------------------

    def step(self, state: int, draws: Draws) -> Finished:
        if not draws.bernoulli(self.threshold, ONE):
            return Finished(draws.below(self.outputs))
        if state == OUTSIDE:
            return Finished(OUTSIDE)
        block, member = divmod(draws.below(self.design.elements.size), self.design.size)
        return Finished(self._shift(block, state + int(self.design.elements[block, member])))

    def _shift(self, block: int, residue: int) -> int:
        """Return the report of a base block and a residue."""
        return block * self.design.modulus + residue % self.design.modulus

    def audit_surrogate(self) -> CyclicDesign:
        return type(self)(
            Domain.range(min(len(self.domain), SURROGATE_VALUES)), self.epsilon, design=cyclic_surrogate(self.design)
        )

    def draws(self) -> MixtureDraws:
        return MixtureDraws(choices=self.outputs, forced=self.design.elements.size, modulus=self.design.modulus)

    def forced_shifts(self) -> Integers:
        return (self.design.elements + self.design.modulus * np.arange(self.design.blocks)[:, None]).ravel()

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.design.outputs

    def in_set(self, report: int, x: int) -> bool:
        block, residue = divmod(report, self.design.modulus)
        return bool(self._is_element[block, (residue - x) % self.design.modulus])

    @functools.cached_property
    def _is_element(self) -> npt.NDArray[np.bool_]:
        """Whether each base block contains each residue."""
        is_element = np.zeros((self.design.blocks, self.design.modulus), dtype=bool)
        np.put_along_axis(is_element, self.design.elements, True, axis=1)
        return is_element

    def members(self, values: Sequence[int]) -> npt.NDArray[np.bool_]:
        shifts = (np.arange(self.design.modulus) - np.asarray(values, np.int64)[:, None]) % self.design.modulus
        return np.moveaxis(self._is_element[:, shifts], 1, 0).reshape(len(values), self.outputs)

    def symmetry_classes(self) -> Integers:
        # Two values are in λ(x - x') sets together, which is counted and not taken from the proof.
        size = len(self.domain)
        return np.zeros(size, np.int64) if is_balanced(self.design) else np.arange(size)

    def pair_kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        differences: Integers = (values[:, None] - values) % self.design.modulus
        return np.asarray(difference_counts(self.design)[differences])

    def empty_outputs(self) -> int:
        return int((self._members == 0).sum())

    @functools.cached_property
    def _members(self) -> Integers:
        """Number of values in the set of each output."""
        return spread_exactly(self.design, [1] * len(self.domain)).astype(np.int64)

    def separating(self, x: int, other: int) -> int:
        # No base block is equal to its shift by x - other: a single one has that difference less than d times, and with
        # several the modulus is prime, so that only all residues are equal to a shift.
        shifts = (self._shift(0, x + int(element)) for element in self.design.elements[0])
        return next(report for report in shifts if not self.in_set(report, other))

    def lightest(self, weights: Sequence[Fraction]) -> int:
        return self._extreme(weights, heaviest=False)

    def heaviest(self, weights: Sequence[Fraction]) -> int:
        return self._extreme(weights, heaviest=True)

    def _extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        """Return the output of the lightest or heaviest set that is neither empty nor the whole domain."""
        scale = math.lcm(*(weight.denominator for weight in weights))
        sums = spread_exactly(self.design, [int(weight * scale) for weight in weights])
        binding = np.flatnonzero((self._members > 0) & (self._members < len(self.domain)))
        best = max if heaviest else min
        return int(best(binding.tolist(), key=sums.__getitem__))

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon), "design": self.design.document(), "threshold": str(self.threshold)}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> CyclicDesign:
        return cls(domain, **parameters)


def cyclic_surrogate(design: DifferenceFamily) -> dict[str, Any]:
    """Return a design of few residues with the same kind of sampler, with one base block or several."""
    return singer_document(2, 1, 3) if design.blocks == 1 else residues_document(7, 2, 1, 0)
