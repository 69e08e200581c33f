"""Random sampling plus fake data (RS+FD): one attribute is reported, and the others are invented.

Arcolezi, Couchot, Al Bouna and Xiao 2021, "Random Sampling Plus Fake Data: Multidimensional Frequency Estimates With
Local Differential Privacy" (CIKM), sections 3 and 4. A person draws one of d attributes, reports it by a classical
mechanism, and reports uniform or empty values of the others in the same way. The collector does not see which attribute
was drawn. The paper therefore raises the level of the drawn attribute to ε' = ln(d·(e^ε - 1) + 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["FakeData"]

Floats = npt.NDArray[np.float64]


class FakeData:
    """RS+FD with randomized response and uniform fake values (GRR), or with unary encoding of zeros (OUE-z).

    Parameters
    ----------
    sizes
        Number of values of each attribute.
    epsilon
        Level ε of the paper, which ``amplified`` raises to ε'.
    protocol
        ``"grr"`` or ``"oue-z"``.
    amplified
        Whether the drawn attribute is reported at ε'. Without it, the report has level ε for the whole tuple.
    """

    def __init__(self, sizes: Sequence[int], epsilon: float, protocol: str = "grr", *, amplified: bool = True) -> None:
        self.sizes, self.protocol = tuple(sizes), protocol
        self.level = math.log(len(sizes) * math.expm1(epsilon) + 1) if amplified else epsilon

    def _rates(self, size: int) -> tuple[float, float, float]:
        """Return the probability of the true value, of another value, and of a value in fake data."""
        if self.protocol == "grr":
            true = math.exp(self.level) / (math.exp(self.level) + size - 1)
            return true, (1 - true) / (size - 1), 1 / size
        other = 1 / (math.exp(self.level) + 1)
        return 0.5, other, other

    def count_rates(self, attribute: int, frequencies: Floats) -> Floats:
        """Return the probability that a report contains each value of an attribute (δ in the paper)."""
        true, other, fake = self._rates(self.sizes[attribute])
        d = len(self.sizes)
        return np.asarray((other + frequencies * (true - other) + (d - 1) * fake) / d)

    def estimate(self, attribute: int, shares: Floats) -> Floats:
        """Return unbiased frequencies from the share of reports that contain each value."""
        true, other, fake = self._rates(self.sizes[attribute])
        d = len(self.sizes)
        return np.asarray((d * shares - (d - 1) * fake - other) / (true - other))

    def variances(self, attribute: int, frequencies: Floats) -> Floats:
        """Return the variance of each frequency from one report: d²·δ(1 - δ)/(p - q)² (eq. 4 and 6 of the paper)."""
        true, other, _ = self._rates(self.sizes[attribute])
        rates = self.count_rates(attribute, frequencies)
        return np.asarray((len(self.sizes) / (true - other)) ** 2 * rates * (1 - rates))

    def tuple_law(self, values: Sequence[int]) -> Floats:
        """Return the probability of every report of a person with these values, for GRR; one axis per attribute."""
        law = np.zeros(self.sizes)
        for drawn in range(len(self.sizes)):
            part = np.ones(())
            for attribute, size in enumerate(self.sizes):
                true, other, fake = self._rates(size)
                digits = np.full(size, fake)
                if attribute == drawn:
                    digits = np.where(np.arange(size) == values[attribute], true, other)
                part = np.multiply.outer(part, digits)
            law += part / len(self.sizes)
        return law
