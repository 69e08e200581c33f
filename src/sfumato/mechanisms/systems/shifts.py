"""Shifts of the base blocks of a difference family: cyclic designs, of about log2 k bits per report."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Integers, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES
from sfumato.mechanisms.candidates import Candidate, CandidateRequest, most_outputs
from sfumato.mechanisms.draws import Field, Layout
from sfumato.mechanisms.mixture import ONE, Mixture
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.systems.base import MixtureDraws, SetSystem
from sfumato.mechanisms.systems.designs.choice import best_design
from sfumato.mechanisms.systems.designs.correlation import (
    difference_counts,
    gather,
    gather_exactly,
    is_balanced,
    spread,
    spread_exactly,
)
from sfumato.mechanisms.systems.designs.families import (
    LARGEST_OUTPUTS,
    DifferenceFamily,
    design_from_document,
    residues_document,
    singer_document,
)

__all__ = ["CYCLIC", "CyclicDesign", "Shifts"]

#: Maximum number of outputs of a design whose differences are counted at construction; bounds the time to about 10 ms.
_COUNTED_OUTPUTS = 2**14


@dataclass(frozen=True)
class Shifts(SetSystem):
    """The v shifts of each base block of a difference family; values are residues modulo v."""

    size: int
    design: DifferenceFamily
    layout = Layout(64, (Field.number(32, 32), Field.number(0, 32)))

    def __post_init__(self) -> None:
        # The property holds by proof (see families.py). The estimate relies on it, privacy does not.
        is_counted = self.design.outputs <= _COUNTED_OUTPUTS
        assert not is_counted or is_balanced(self.design), "all differences must be equally frequent"

    @property
    def outputs(self) -> int:
        return self.design.outputs

    @property
    def density(self) -> Fraction:
        return Fraction(self.design.size, self.design.modulus)

    def member(self, x: int, number: int) -> int:
        block, element = divmod(number, self.design.size)
        return self._shift(block, x + int(self.design.elements[block, element]))

    def _shift(self, block: int, residue: int) -> int:
        """Return the report of a base block and a residue."""
        return block * self.design.modulus + residue % self.design.modulus

    def surrogate(self) -> Shifts:
        # A design of few residues with the same kind of sampler, with one base block or several.
        document = singer_document(2, 1, 3) if self.design.blocks == 1 else residues_document(7, 2, 1, 0)
        return Shifts(min(self.size, SURROGATE_VALUES), design_from_document(document))

    def draws(self) -> MixtureDraws:
        return MixtureDraws(choices=self.outputs, forced=self.design.elements.size, modulus=self.design.modulus)

    def forced_shifts(self) -> Integers:
        """Return the forced reports of the value 0, from which those of other values are shifted."""
        return (self.design.elements + self.design.modulus * np.arange(self.design.blocks)[:, None]).ravel()

    # -- the sets --------------------------------------------------------------------------------------------

    def contains(self, report: int, x: int) -> bool:
        block, residue = divmod(report, self.design.modulus)
        return bool(self._is_element[block, (residue - x) % self.design.modulus])

    @functools.cached_property
    def _is_element(self) -> npt.NDArray[np.bool_]:
        """Whether each base block contains each residue."""
        is_element = np.zeros((self.design.blocks, self.design.modulus), dtype=bool)
        np.put_along_axis(is_element, self.design.elements, True, axis=1)
        return is_element

    def spread(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if weights.dtype.kind == "f":
            return spread(self.design, weights)
        return spread_exactly(self.design, weights.tolist())

    def gather(self, outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if outputs.dtype.kind != "f":
            return gather_exactly(self.design, outputs)[: self.size]
        # Subtracting the mean keeps the rounding error of the transform in proportion to the differences.
        mean = float(outputs.mean())
        return gather(self.design, outputs - mean)[: self.size] + mean * self.design.elements.size

    def separating(self, x: int, other: int) -> int:
        # No base block is equal to its shift by x - other: a single one has that difference less than d times, and with
        # several the modulus is prime, so that only all residues are equal to a shift.
        shifts = (self._shift(0, x + int(element)) for element in self.design.elements[0])
        return next(report for report in shifts if not self.contains(report, other))

    @property
    def pair_density(self) -> Fraction:
        return (self.density * self.design.modulus - 1) / (self.design.modulus - 1)

    def symmetry_classes(self) -> Integers:
        # Two values are in λ(x - x') sets together, which is counted and not taken from the proof.
        return np.zeros(self.size, np.int64) if is_balanced(self.design) else np.arange(self.size)

    def pair_kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        differences: Integers = (values[:, None] - values) % self.design.modulus
        return np.asarray(difference_counts(self.design)[differences])

    def document(self) -> dict[str, Any]:
        return {"design": self.design.document()}


class CyclicDesign(Mixture):
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
        subject, values = "CyclicDesign", checked_domain("CyclicDesign", domain)
        level = Epsilon(epsilon, subject=subject)
        if len(values) < 2:
            hint = "Use RandomizedResponse for a single value."
            raise InvalidInput(subject, "domain", "have at least two values", domain, hint=hint)
        if design is None:
            family = best_design(len(values), level, max_outputs=most_outputs(max_bits) or math.inf)
        else:
            family = design_from_document(design)
        if len(values) > family.modulus:
            must = f"be at least {len(values)}, the number of values"
            raise InvalidInput(subject, "the modulus of the design", must, family.modulus)
        self.design = family
        super().__init__(values, level, Shifts(len(values), family))
        if threshold is not None and checked_integer(subject, "threshold", threshold, 0, ONE) != self.threshold:
            must = f"be {self.threshold}, which epsilon and the design determine"
            raise InvalidInput(subject, "threshold", must, threshold)

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


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield a cyclic design for every policy on two values or more."""
    domain = request.policy.domain
    size = len(domain)
    if 2 <= size < LARGEST_OUTPUTS:
        build = functools.partial(CyclicDesign, domain, request.epsilon, max_bits=request.preferred_bits)
        # If bitmaps are short too, subset selection has at most the risk of any cyclic design.
        yield "cyclic", Candidate(build, "k log k", classical=True, compared=not request.is_short(size))


CYCLIC = Family(
    mechanisms=(CyclicDesign,),
    kernel="sfumato.mechanisms.kernels.shifts:build",
    candidates=_candidates,
    in_browser=True,
    memory="sfumato.mechanisms.memoized.shifts:CYCLIC",
)
