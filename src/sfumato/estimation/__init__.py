"""Estimation: frequencies with standard errors, intervals and covariance, from exact counts.

- :func:`estimate` estimates the frequencies of one collection.
- :func:`estimate_groups` estimates them for each public group of people.
- :func:`estimate_waves` estimates them for each wave of a repeated survey, with changes between waves.
- :func:`combine` combines the estimates of cohorts that used different mechanisms.
- :func:`learn_prior` derives a prior for the next collection.
"""

from sfumato.estimation import information_privacy
from sfumato.estimation.answers import Answers
from sfumato.estimation.associations import Association, CramersV, OddsRatio
from sfumato.estimation.combination import CombinedEstimate, combine
from sfumato.estimation.consistency import ConsistentTables
from sfumato.estimation.cross_tables import CrossTable, cross_table
from sfumato.estimation.distributions import DistributionEstimate
from sfumato.estimation.empirical_bayes import Choice
from sfumato.estimation.estimates import Estimate
from sfumato.estimation.frequencies import estimate
from sfumato.estimation.group_answers import Comparison, GroupedAnswers
from sfumato.estimation.grouping import estimate_groups
from sfumato.estimation.groups import FrequencyTable, GroupedEstimate
from sfumato.estimation.linear import LinearEstimate
from sfumato.estimation.marginals import MarginalTables
from sfumato.estimation.mechanism_estimates import MechanismEstimate, PartialEstimate
from sfumato.estimation.noise import EventEstimate, Events
from sfumato.estimation.prior_learning import LearntPrior, learn_prior
from sfumato.estimation.quantiles import QuantileAnswers, QuantileEstimate
from sfumato.estimation.sources import FrequencyEstimate
from sfumato.estimation.waves import WaveEstimates, WaveTable, estimate_waves
from sfumato.estimation.weighting import WeightClass, WeightedEstimate
from sfumato.mechanisms import Fit

__all__ = [
    "Answers",
    "Association",
    "Choice",
    "CombinedEstimate",
    "Comparison",
    "ConsistentTables",
    "CramersV",
    "CrossTable",
    "DistributionEstimate",
    "Estimate",
    "EventEstimate",
    "Events",
    "Fit",
    "FrequencyEstimate",
    "FrequencyTable",
    "GroupedAnswers",
    "GroupedEstimate",
    "LearntPrior",
    "LinearEstimate",
    "MarginalTables",
    "MechanismEstimate",
    "OddsRatio",
    "PartialEstimate",
    "QuantileAnswers",
    "QuantileEstimate",
    "WaveEstimates",
    "WaveTable",
    "WeightClass",
    "WeightedEstimate",
    "combine",
    "cross_table",
    "estimate",
    "estimate_groups",
    "estimate_waves",
    "information_privacy",
    "learn_prior",
]


# Imported by other packages of Sfumato; not part of the public interface.
from sfumato.estimation.binning import mean_notes as mean_notes
from sfumato.estimation.estimates import estimate_notes as estimate_notes, outside_column as outside_column
from sfumato.estimation.estimators import check_estimable as check_estimable
from sfumato.estimation.frequencies import METHODS as METHODS, shrunk as shrunk
from sfumato.estimation.plausibility import (
    Plausibility as Plausibility,
    implausible as implausible,
    plausibility as plausibility,
)
