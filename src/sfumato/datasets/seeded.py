"""Reproducible numbers for simulations: uniform, normal, Jeffreys-prior distributions, counts, shuffles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.randomness import insecure_generator

__all__ = ["SeededNumbers"]


class SeededNumbers:
    """A reproducible generator of random numbers and counts for simulations; not secure.

    Parameters
    ----------
    seed
        Seed; the same seed and the same sequence of calls give the same numbers.

    Examples
    --------
    >>> from sfumato.datasets import SeededNumbers
    >>> int(SeededNumbers(1).multinomial(100, [0.5, 0.5]).sum())
    100
    """

    def __init__(self, seed: int) -> None:
        self._generator = insecure_generator(seed)

    def uniforms(self, count: int) -> Floats:
        """Draw uniform doubles in [0, 1).

        Parameters
        ----------
        count
            Number of draws.

        Returns
        -------
        numpy.ndarray
            An array of ``count`` independent numbers.
        """
        return self._generator.random(count)

    def normals(self, count: int) -> Floats:
        """Draw standard normal doubles.

        Parameters
        ----------
        count
            Number of draws.

        Returns
        -------
        numpy.ndarray
            An array of ``count`` independent numbers.
        """
        return self._generator.standard_normal(count)

    def jeffreys(self, cells: int) -> Floats:
        """Draw a distribution from the Jeffreys prior, Dirichlet(½, …, ½).

        Parameters
        ----------
        cells
            Number of outcomes.

        Returns
        -------
        numpy.ndarray
            An array of ``cells`` probabilities that sum to one.
        """
        return self._generator.dirichlet(np.full(cells, 0.5))

    def multinomial(self, n: int, distribution: Floats) -> Integers:
        """Draw an outcome for each of ``n`` people, and return the number of people per outcome.

        Parameters
        ----------
        n
            Number of people.
        distribution
            Probabilities of the outcomes; they sum to one.

        Returns
        -------
        numpy.ndarray
            Number of people per outcome, in the order of ``distribution``; the numbers sum to ``n``.
        """
        return self._generator.multinomial(n, distribution)

    def shuffled(self, count: int) -> npt.NDArray[np.intp]:
        """Draw a random permutation.

        Parameters
        ----------
        count
            Length of the permutation.

        Returns
        -------
        numpy.ndarray
            The numbers 0, 1, …, count - 1 in random order.
        """
        return self._generator.permutation(count)
