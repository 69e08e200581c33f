"""Mechanisms: exact randomizers of one value, each with the law it states and the sampler that runs."""

from sfumato.mechanisms.base import Finished, Mechanism, mechanism_from_spec
from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.high_low.hadamard import HighLowHadamard
from sfumato.mechanisms.high_low.randomized_response import UtilityOptimizedRR
from sfumato.mechanisms.high_low.subset import HighLowSubset
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.prior.binary import PriorBinary
from sfumato.mechanisms.prior.symmetric import PriorSymmetric
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.reports.validity import check_reports
from sfumato.mechanisms.secret.conditional import ConditionalReporting, ConditionalUnary
from sfumato.mechanisms.secret.independent import IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.table.binary import BinaryOptimal
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

__all__ = [
    "BinaryOptimal",
    "BlockMechanism",
    "ComposedSubsets",
    "ConditionalReporting",
    "ConditionalUnary",
    "Finished",
    "HadamardResponse",
    "HighLowHadamard",
    "HighLowSubset",
    "IndependentReporting",
    "Mechanism",
    "NestedSubsets",
    "PriorBinary",
    "PriorSymmetric",
    "RandomizedResponse",
    "SecretRandomizedResponse",
    "SubsetSelection",
    "TableMechanism",
    "UnaryEncoding",
    "UtilityOptimizedRR",
    "UtilityOptimizedRappor",
    "check_reports",
    "mechanism_from_spec",
]


# For the other packages of Sfumato; not part of the public interface.
from sfumato.mechanisms.base import LARGEST_MATRIX as LARGEST_MATRIX
from sfumato.mechanisms.channel import Channel as Channel
from sfumato.mechanisms.composed_subsets.mechanism import MOST_BLOCKS as MOST_BLOCKS
from sfumato.mechanisms.draws import (
    BitDraws as BitDraws,
    Decision as Decision,
    Draws as Draws,
    Field as Field,
    Layout as Layout,
    RecordedDraws as RecordedDraws,
    RecordingDraws as RecordingDraws,
)
from sfumato.mechanisms.estimators.base import (
    Estimator as Estimator,
    HistogramEstimator as HistogramEstimator,
    SamplingDistribution as SamplingDistribution,
    with_some_mass as with_some_mass,
)
from sfumato.mechanisms.estimators.forms import Cohort as Cohort, Form as Form, FormLaw as FormLaw, tilted as tilted
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable as NotIdentifiable
from sfumato.mechanisms.estimators.likelihood import Fit as Fit
from sfumato.mechanisms.estimators.limits import (
    ScoreLaw as ScoreLaw,
    confidence_limits as confidence_limits,
    relative_spread as relative_spread,
)
from sfumato.mechanisms.estimators.matrix import efficient_estimator as efficient_estimator
from sfumato.mechanisms.estimators.registry import estimator_for as estimator_for
from sfumato.mechanisms.kernels import kernel_for as kernel_for, write_thresholds as write_thresholds
from sfumato.mechanisms.kernels.base import Kernel as Kernel
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism as PartitionedMechanism
from sfumato.mechanisms.prior.designs import (
    prior_hadamard as prior_hadamard,
    prior_response as prior_response,
    prior_subset as prior_subset,
    prior_table as prior_table,
)
from sfumato.mechanisms.reports.columns import (
    REPORT_COLUMN as REPORT_COLUMN,
    reports_to_column as reports_to_column,
)
from sfumato.mechanisms.reports.counting import (
    check_counts as check_counts,
    count_reports as count_reports,
    count_size as count_size,
)
from sfumato.mechanisms.reports.validity import checked_pieces as checked_pieces, piece_rows as piece_rows
from sfumato.mechanisms.secret.base import information as information, offered_sizes as offered_sizes
from sfumato.mechanisms.secret.conditional import is_too_large as is_too_large
from sfumato.mechanisms.secret.randomized_response import known_response as known_response
from sfumato.mechanisms.table.alias import TOTAL as TOTAL, TOTAL_BITS as TOTAL_BITS
from sfumato.mechanisms.table.metric_exponential import best_exponential as best_exponential
from sfumato.mechanisms.two_level import (
    ONE as ONE,
    OUTSIDE as OUTSIDE,
    MixtureMechanism as MixtureMechanism,
    TwoLevelMechanism as TwoLevelMechanism,
)
from sfumato.mechanisms.unary.mechanism import IndependentBits as IndependentBits
