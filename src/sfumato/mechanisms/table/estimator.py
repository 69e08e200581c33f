"""Estimator of tables."""

from __future__ import annotations

from sfumato.mechanisms.estimators.matrix import MatrixEstimator
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism

__all__ = ["table_estimator"]


def table_estimator(mechanism: TableMechanism) -> MatrixEstimator:
    """Return the estimator of least variance at the distribution that the table was designed for."""
    return MatrixEstimator.of(mechanism, None if mechanism.design_prior is None else mechanism.design_prior / TOTAL)
