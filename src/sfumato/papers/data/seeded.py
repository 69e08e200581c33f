"""Reproducible numbers for simulations: uniform, normal, Jeffreys-prior distributions, shuffles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.compiler import CountDraws
from sfumato.randomness import InsecureSeeded

__all__ = ["SeededNumbers"]


class SeededNumbers(CountDraws):
    """Draws numbers as well as counts; the same seed gives the same numbers to the same sequence of calls."""

    def __init__(self, seed: int) -> None:
        super().__init__(InsecureSeeded(seed))

    def uniforms(self, count: int) -> Floats:
        """Doubles in (0, 1), neither end among them."""
        return self._uniforms(count)

    def normals(self, count: int) -> Floats:
        """Standard normal doubles (Box and Muller 1958)."""
        radius = np.sqrt(-2 * np.log(self.uniforms(count)))
        return np.asarray(radius * np.cos(2 * np.pi * self.uniforms(count)))

    def jeffreys(self, cells: int) -> Floats:
        """A distribution on ``cells`` from the Jeffreys prior, Dirichlet(½, …, ½): squares of normals, normalised."""
        squares = self.normals(cells) ** 2
        return np.asarray(squares / squares.sum())

    def shuffled(self, count: int) -> npt.NDArray[np.intp]:
        """The numbers 0, 1, …, count - 1 in random order."""
        return np.argsort(self.uniforms(count), kind="stable")
