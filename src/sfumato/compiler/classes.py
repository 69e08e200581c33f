"""Designs for questions that do not distinguish all values: values with the same weights report the same.

A question about districts does not distinguish the places of a district. If all places of one district have the same
epsilon to all places of another, the best mechanism over the districts is the best one over the places, because places
of a district can be averaged (see ``solvers.coarsening``). There may be thousands of places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.compiler.solvers.coarsening import classes_of
from sfumato.compiler.solvers.slice import LARGEST_SEARCHED
from sfumato.domain import Domain
from sfumato.mechanisms import TOTAL, TableMechanism
from sfumato.policy import Pairwise, PairwisePolicy, Policy, Uniform, structure_of
from sfumato.questions import Workload

__all__ = ["Classes"]


@dataclass(frozen=True, eq=False)
class Classes:
    """A policy and a question over the classes of values that the question does not distinguish.

    Parameters
    ----------
    policy
        The policy over classes.
    question
        The question over classes.
    class_of
        The class of each value.
    """

    policy: PairwisePolicy
    question: Workload
    class_of: npt.NDArray[np.int64]

    @classmethod
    def of(cls, policy: Policy, rows: Floats) -> Classes | None:
        """Return the classes of a question with the matrix ``rows``; None if it distinguishes all values.

        Return None also if the epsilons between the values of two classes differ, or are too many to compare.
        """
        class_of = classes_of(rows)
        count, size = int(class_of.max()) + 1, len(class_of)
        if count == size or count < 2 or count > LARGEST_SEARCHED:
            return None
        question = Workload(rows[:, np.unique(class_of, return_index=True)[1]])
        domain, simplest = Domain.range(count), structure_of(policy)
        if isinstance(simplest, Uniform):
            return cls(Uniform(domain, simplest.epsilon), question, class_of)
        if not isinstance(policy, PairwisePolicy) or size > LARGEST_SEARCHED:
            return None
        matrix = policy.effective_epsilon_matrix()
        least, greatest = np.full((count, count), matrix.codes.max()), np.zeros((count, count), dtype=np.int64)
        np.minimum.at(least, (class_of[:, None], class_of), matrix.codes)
        np.maximum.at(greatest, (class_of[:, None], class_of), matrix.codes)
        if (least != greatest)[~np.eye(count, dtype=bool)].any():
            return None
        np.fill_diagonal(greatest, 0)
        epsilons = [[matrix.epsilon(code) for code in row] for row in greatest.tolist()]
        return cls(Pairwise(domain, epsilons), question, class_of)

    def together(self, prior: Floats) -> Floats:
        """Return the distribution of the classes, given that of the values."""
        return np.bincount(self.class_of, weights=prior).astype(np.float64)

    def spread(self, prior: Floats) -> Floats:
        """Return a distribution of the values with a given distribution of the classes, even within each class."""
        return np.asarray((prior / np.bincount(self.class_of))[self.class_of])

    def expand(self, mechanism: TableMechanism, domain: Domain, prior: Floats) -> TableMechanism:
        """Return the mechanism over values that reports what a mechanism over classes reports for the class.

        ``prior`` is the distribution of the values for which it is designed.
        """
        weights, size = mechanism.weights[self.class_of], len(self.class_of)
        if np.allclose(prior, 1 / size, rtol=1e-9, atol=0):
            return TableMechanism(domain, weights)
        shares = [max(int(probability * (TOTAL - size)), 1) for probability in prior]
        shares[int(np.argmax(prior))] += TOTAL - sum(shares)
        return TableMechanism(domain, weights, design_prior=shares)
