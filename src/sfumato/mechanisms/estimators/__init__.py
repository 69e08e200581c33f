"""Estimators that several families share: the base class, inclusion counts, likelihood, intervals."""
