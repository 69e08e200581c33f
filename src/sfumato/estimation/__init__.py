"""Estimation: frequencies with standard errors, intervals and covariance, from exact counts."""

from sfumato.estimation import information_privacy
from sfumato.estimation.combination import combine
from sfumato.estimation.frequencies import estimate, estimate_groups
from sfumato.estimation.groups import GroupedEstimate
from sfumato.estimation.prior_learning import LearntPrior, learn_prior
from sfumato.estimation.result import Estimate, LinearEstimate

__all__ = [
    "Estimate",
    "GroupedEstimate",
    "LearntPrior",
    "LinearEstimate",
    "combine",
    "estimate",
    "estimate_groups",
    "information_privacy",
    "learn_prior",
]


# For the other packages of Sfumato; not part of the public interface.
from sfumato.estimation.frequencies import estimator_of_method as estimator_of_method
from sfumato.estimation.noise import EventEstimate as EventEstimate, Events as Events
