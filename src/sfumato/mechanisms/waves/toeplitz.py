"""Symmetric positive definite Toeplitz matrices: products and solutions by Fourier transforms."""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats

__all__ = ["Toeplitz"]

#: Relative residual at which conjugate gradients stop, and their maximum number.
_RESIDUAL, _MOST_STEPS = 1e-15, 1000


class Toeplitz:
    """The matrix T with entries T[i, j] = column[|i - j|], and its inverse.

    The inverse is a difference of products of triangular Toeplitz matrices that its first column x determines (Gohberg
    and Semencul 1972). With L(a) the lower triangular Toeplitz matrix of first column a, and x* = (0, x_(n-1), …, x_1),

        T⁻¹ = (L(x)·L(x)' - L(x*)·L(x*)')/x_0.

    Conjugate gradients with the nearest circulant matrix as preconditioner give x (T. Chan 1988, "An optimal circulant
    preconditioner for Toeplitz systems"). All products take n·log n steps.
    """

    def __init__(self, column: Floats) -> None:
        self.size = len(column)
        self._column = column
        # A circulant matrix of order 2n has the Toeplitz matrix as its first block.
        self._symbol = np.fft.rfft(np.concatenate([column, [0.0], column[:0:-1]])).real
        first = self._first_of_inverse()
        last = np.concatenate([[0.0], first[:0:-1]])
        #: The vectors x and x*, both divided by √x_0. T⁻¹[i+1, j+1] - T⁻¹[i, j] is the difference of their products.
        self.generators = np.array([first, last]) / np.sqrt(first[0])
        self._factors = np.fft.rfft(self.generators, 2 * self.size)

    def _first_of_inverse(self) -> Floats:
        """Return the first column of the inverse."""
        places = np.arange(self.size)
        reversed_column = np.concatenate([[0.0], self._column[:0:-1]])
        nearest = np.fft.rfft(((self.size - places) * self._column + places * reversed_column) / self.size).real
        residual = np.zeros(self.size)
        residual[0] = 1.0
        solution = np.zeros(self.size)
        direction, product = residual, 0.0
        for step in range(_MOST_STEPS):
            improved = np.fft.irfft(np.fft.rfft(residual) / nearest, self.size)
            previous, product = product, float(residual @ improved)
            direction = improved + (product / previous if step else 0.0) * direction
            image = self.times(direction)
            length = product / float(direction @ image)
            solution = solution + length * direction
            residual = residual - length * image
            if np.sqrt(residual @ residual) <= _RESIDUAL:
                break
        return solution

    def times(self, vectors: Floats) -> Floats:
        """Return T·vector for each vector; the last axis has n entries."""
        length = 2 * self.size
        return np.asarray(np.fft.irfft(np.fft.rfft(vectors, length) * self._symbol, length)[..., : self.size])

    def solve(self, vectors: Floats, *, refine: bool = True) -> Floats:
        """Return T⁻¹·vector for each vector; the last axis has n entries. ``refine`` removes rounding errors."""
        solutions = self._inverse_times(vectors)
        return solutions + self._inverse_times(vectors - self.times(solutions)) if refine else solutions

    def _inverse_times(self, vectors: Floats) -> Floats:
        """Return T⁻¹·vector by the formula of Gohberg and Semencul."""
        length = 2 * self.size
        transformed = np.fft.rfft(vectors, length)
        total = np.zeros_like(transformed)
        for sign, factor in zip((1, -1), self._factors, strict=True):
            products = np.fft.irfft(transformed * factor.conj(), length)[..., : self.size]
            total += sign * factor * np.fft.rfft(products, length)
        return np.asarray(np.fft.irfft(total, length)[..., : self.size])
