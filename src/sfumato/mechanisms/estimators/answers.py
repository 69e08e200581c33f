"""Which questions an estimator answers, and with what error, without a matrix of all answers and values."""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.questions import Question

__all__ = ["answers_error", "identifies_answers"]

#: Number of answers up to which variances are computed one by one, without the covariance of all frequencies.
_FEW = 16


def identifies_answers(estimator: Estimator, question: Question) -> bool:
    """Return whether the reports determine all answers to a question, which is fitted to the domain."""
    if estimator.is_complete:
        return True
    if question.axes is None:
        return all(map(estimator.identifies, question.rows()))
    try:
        for axes in question.axes:
            estimator.marginal(question.domain.shape, axes)
    except NotIdentifiable:
        return False
    return True


def answers_error(estimator: Estimator, question: Question, p: Floats) -> float:
    """Return the sum of the variances of the answers from one report at p; infinite if one is not identified."""
    if not identifies_answers(estimator, question):
        return np.inf
    if question.axes is not None:
        marginals = (estimator.marginal(question.domain.shape, axes) for axes in question.axes)
        return sum(marginal.squared_error(p) for marginal in marginals)
    rows = question.matrix(p)
    if len(rows) <= _FEW or not estimator.is_complete:
        return float(sum(estimator.variance(row, p) for row in rows))
    return float(np.einsum("ij,ij->", rows @ estimator.covariance(p), rows))
