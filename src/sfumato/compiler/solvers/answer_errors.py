"""The error of a mechanism's unbiased answers to a question."""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats, import_late
from sfumato.mechanisms import Mechanism, NotIdentifiable, answers_error
from sfumato.questions import Question

__all__ = ["error_of_answers", "worst_error_of_answers"]


def error_of_answers(mechanism: Mechanism, question: Question, prior: Floats) -> float:
    """Return the sum of the variances of the answers from one report at p; infinite if one is not identified."""
    try:
        return answers_error(mechanism.estimator, question, prior)
    except NotIdentifiable:
        return np.inf


def worst_error_of_answers(mechanism: Mechanism, question: Question) -> float:
    """Return the greatest sum of the variances of the answers from one report, over all distributions of values."""
    size, rows = len(mechanism.domain), question.matrix()
    moments = np.array([error_of_answers(mechanism, question, axis) for axis in np.eye(size)])
    if not np.isfinite(moments).all():
        return np.inf
    worst = _worst_distribution(moments + np.sum(rows**2, axis=0), rows)
    return error_of_answers(mechanism, question, worst)


def _worst_distribution(moments: Floats, rows: Floats) -> Floats:
    """Return the distribution p with the greatest moments·p - |W·p|²."""
    sparse, clarabel = import_late("scipy.sparse"), import_late("clarabel")
    size = len(moments)
    scale = float(np.abs(moments).max()) or 1.0
    constraints = sparse.vstack([sparse.csr_matrix(np.ones((1, size))), -sparse.identity(size)]).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(size)]
    curvature = sparse.csc_matrix(np.triu(2 * rows.T @ rows / scale))
    offset = np.concatenate([[1.0], np.zeros(size)])
    solution = clarabel.DefaultSolver(curvature, -moments / scale, constraints, offset, cones, settings).solve()
    worst = np.maximum(np.array(solution.x), 0.0)
    return np.asarray(worst / worst.sum())
