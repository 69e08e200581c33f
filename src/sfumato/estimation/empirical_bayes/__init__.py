"""Empirical Bayes: frequencies shrunk towards a prior that is fitted to all of them (methods "bayes" and "best").

- ``mixture``: the maximum-likelihood prior, and posteriors.
- ``shrinkage``: observations with the law of their errors, known totals, and values that share a prior.
- ``smoothing``: priors that neighbouring values share.
- ``choice``: the choice between "simplex" and "bayes".
"""

from sfumato.domain import Domain
from sfumato.estimation.empirical_bayes.choice import Choice, choose
from sfumato.estimation.empirical_bayes.shrinkage import Posterior, SharedPrior, Shrinkage
from sfumato.estimation.empirical_bayes.smoothing import fit_smooth, lattice_of

__all__ = ["Choice", "Posterior", "Shrinkage", "choose", "fit_posterior"]


def fit_posterior(model: Shrinkage, domain: Domain, *, smooth: bool) -> Posterior:
    """Fit the prior of all frequencies; with ``smooth``, one that neighbouring values share."""
    return fit_smooth(model, lattice_of(domain)) if smooth else SharedPrior().fit(model)
