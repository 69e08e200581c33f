"""What estimators of several families share: the base class, inclusion counts, likelihood, intervals."""
