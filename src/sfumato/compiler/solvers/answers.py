"""The answers whose squared error a search minimises: linear functions of the frequencies, over groups of values.

The answers are W·p. Their least variance from one report is tr(W·J⁻·W') - |W·p|². Because the frequencies sum to one,
it does not change if a constant is subtracted from a row of W. With rows of mean zero at p, it is tr(W·J⁻·W').

W may have fewer rows than there are values. The best J may then be singular, with W in its range: the best mechanism
for a mean has few outputs. The search therefore minimises tr((W'W + δ·1)·J⁻¹) with a small δ, so that J stays regular.
The design then estimates all frequencies, most of them poorly. After rounding to exact probabilities, its answers are
still unbiased, which those of a singular design would not be. The bound is that of W alone (see ``estimation``).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.compiler.solvers.rays import distinct

__all__ = ["Answers", "rays_of_answers"]

#: The small number δ, relative to the mean of the diagonal of W'W. A mean then loses about 0.01% of its precision.
_REGULAR = 1e-10
#: Singular value, relative to the greatest weight, below which a direction of W counts as zero.
_NEGLIGIBLE = 1e-12
#: Difference of the weights of two values, relative to the greatest, up to which an answer does not distinguish them.
_SAME = 1e-9
#: Maximum number of directions of W for which rays are proposed, minimum number of limits per direction, and number of
#: limits of all directions.
_MOST_DIRECTIONS, _LEAST_LIMITS, _MOST_RAYS = 64, 3, 128


@dataclass(frozen=True, eq=False)
class Answers:
    """Linear functions of the frequencies of groups, reduced to at most one row per group.

    Parameters
    ----------
    rows
        One row per function and one column per group.
    prior
        The distribution p of the groups, at which rows have the mean zero.
    """

    rows: Floats
    prior: Floats

    @classmethod
    def of(cls, matrix: Floats, group_of: npt.NDArray[np.int64], prior: Floats) -> Answers | None:
        """Return the answers W·p for a matrix W over values; None if a row distinguishes values of a group.

        ``prior`` is the distribution of the groups.
        """
        first = np.unique(group_of, return_index=True)[1]
        rows = matrix[:, first]
        if np.abs(matrix - rows[:, group_of]).max(initial=0.0) > _SAME * np.abs(matrix).max():
            return None
        return cls(np.zeros((0, len(prior))), prior)._with(rows, prior)

    @staticmethod
    def _with(rows: Floats, prior: Floats) -> Answers:
        """Return centred answers with the same sum of squares and at most as many rows as there are groups."""
        centred = rows - (rows @ prior)[:, None]
        _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
        positive = sizes > _NEGLIGIBLE * np.abs(rows).max(initial=1e-300)
        return Answers(sizes[positive, None] * directions[positive], prior)

    def at(self, prior: Floats) -> Answers:
        """Return the same answers with rows of mean zero at another distribution."""
        return self._with(self.rows, prior)

    def among(self, coordinates: npt.NDArray[np.intp], prior: Floats) -> Answers:
        """Return the answers as functions of some groups, at their conditional distribution."""
        return self._with(self.rows[:, coordinates], prior)

    @functools.cached_property
    def square(self) -> Floats:
        """The matrix W'W."""
        return np.asarray(self.rows.T @ self.rows)

    def regular_rows(self, multiple: float = _REGULAR) -> Floats:
        """Return the rows of W, and √δ times those of the identity; δ is relative to the mean diagonal of W'W."""
        size = len(self.prior)
        return np.concatenate([self.rows, np.sqrt(multiple * self.scale / size) * np.eye(size)])

    def factor(self, multiple: float = _REGULAR) -> Floats:
        """Return a square matrix F with F'F = W'W + δ·1."""
        rows = self.regular_rows(multiple)
        return np.asarray(np.linalg.cholesky(rows.T @ rows).T)

    @property
    def scale(self) -> float:
        """The trace of W'W."""
        return float(np.sum(self.rows**2))

    @property
    def least(self) -> float:
        """The variance of the answers from one report without any noise."""
        return float(np.sum(self.rows**2 @ self.prior))


def rays_of_answers(answers: Answers, epsilons: Floats) -> Floats:
    """Return likelihood vectors that distinguish values by their weights in the answers, under a pairwise policy.

    Each vector belongs to a set S of values: e^-E(S,x), where E(S,x) is the least epsilon from a value of S to x. The
    sets contain the values above or below some limits of a direction of W. The directions of all prefixes are waves, so
    the sets are those of square waves.

    Parameters
    ----------
    answers
        The answers, whose directions are used, the one of greatest weight first.
    epsilons
        The epsilons between groups as shortest paths.
    """
    directions = answers.rows[:_MOST_DIRECTIONS]
    limits = np.linspace(0, 1, max(_LEAST_LIMITS, _MOST_RAYS // len(directions)) + 2)[1:-1]
    above = [
        direction > limit
        for direction in directions
        for limit in np.unique(np.quantile(direction, limits, method="lower"))
    ]
    sets = [chosen for chosen in [*above, *(~some for some in above)] if chosen.any() and not chosen.all()]
    return distinct(np.array([np.exp(-epsilons[chosen].min(axis=0)) for chosen in sets]).reshape(-1, len(epsilons)))
