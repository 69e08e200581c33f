"""Reproducible numbers for simulations: uniform, normal, Jeffreys-prior distributions, counts, shuffles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.randomness import insecure_generator

__all__ = ["SeededNumbers"]


class SeededNumbers:
    """Draws numbers and counts; the same seed gives the same numbers to the same sequence of calls."""

    def __init__(self, seed: int) -> None:
        self._generator = insecure_generator(seed)

    def uniforms(self, count: int) -> Floats:
        """Doubles in [0, 1)."""
        return self._generator.random(count)

    def normals(self, count: int) -> Floats:
        """Standard normal doubles."""
        return self._generator.standard_normal(count)

    def jeffreys(self, cells: int) -> Floats:
        """A distribution on ``cells`` from the Jeffreys prior, Dirichlet(½, …, ½)."""
        return self._generator.dirichlet(np.full(cells, 0.5))

    def multinomial(self, n: int, distribution: Floats) -> Integers:
        """How n people fall on the outcomes of a distribution."""
        return self._generator.multinomial(n, distribution)

    def shuffled(self, count: int) -> npt.NDArray[np.intp]:
        """The numbers 0, 1, …, count - 1 in random order."""
        return self._generator.permutation(count)
