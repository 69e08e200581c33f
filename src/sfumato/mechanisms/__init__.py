"""Mechanisms: exact randomizers of one value, each with its stated law and the sampler that runs.

This package exports every mechanism of the library; ``families.py`` is the only list of them. ``register`` adds a
mechanism that is defined elsewhere.
"""

from typing import TYPE_CHECKING

from sfumato.mechanisms.base import (
    Finished as Finished,
    Mechanism as Mechanism,
    mechanism_from_spec as mechanism_from_spec,
)
from sfumato.mechanisms.candidates import (
    Candidate as Candidate,
    CandidateRequest as CandidateRequest,
    most_outputs as most_outputs,
    short_bits as short_bits,
)
from sfumato.mechanisms.draws import Draws as Draws, Field as Field, Layout as Layout
from sfumato.mechanisms.estimators.base import Estimator as Estimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable as NotIdentifiable
from sfumato.mechanisms.estimators.marginals import MarginalEstimator as MarginalEstimator
from sfumato.mechanisms.families import *
from sfumato.mechanisms.memoized.instantaneous import InstantaneousResponse as InstantaneousResponse
from sfumato.mechanisms.mixture import Mixture as Mixture
from sfumato.mechanisms.parts import (
    BlockMechanism as BlockMechanism,
    HighLowCyclic as HighLowCyclic,
    HighLowHadamard as HighLowHadamard,
    HighLowSubset as HighLowSubset,
    UtilityOptimizedRR as UtilityOptimizedRR,
)
from sfumato.mechanisms.registry import mechanism_classes as mechanism_classes, register as register
from sfumato.mechanisms.reports.base import ReportFormat as ReportFormat
from sfumato.mechanisms.reports.bitmap import BitmapFormat as BitmapFormat
from sfumato.mechanisms.reports.index import IndexFormat as IndexFormat
from sfumato.mechanisms.secret.conditional import (
    ConditionalReporting as ConditionalReporting,
    ConditionalUnary as ConditionalUnary,
)
from sfumato.mechanisms.secret.independent import IndependentReporting as IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse as SecretRandomizedResponse
from sfumato.mechanisms.systems.base import SetSystem as SetSystem
from sfumato.mechanisms.table.binary import (
    BinaryOptimal as BinaryOptimal,
    PriorBinary as PriorBinary,
    PriorSymmetric as PriorSymmetric,
    binary_for_policy as binary_for_policy,
    one_sided_as_printed as one_sided_as_printed,
)

if not TYPE_CHECKING:  # type checkers re-export the names of a starred import only if the module has no __all__
    __all__ = [
        "BinaryOptimal",
        "BitmapFormat",
        "Candidate",
        "CandidateRequest",
        "ConditionalReporting",
        "ConditionalUnary",
        "Draws",
        "Estimator",
        "Field",
        "Finished",
        "HighLowCyclic",
        "HighLowHadamard",
        "HighLowSubset",
        "IndependentReporting",
        "IndexFormat",
        "InstantaneousResponse",
        "Layout",
        "MarginalEstimator",
        "Mechanism",
        "Mixture",
        "NotIdentifiable",
        "PriorBinary",
        "PriorSymmetric",
        "ReportFormat",
        "SecretRandomizedResponse",
        "SetSystem",
        "UtilityOptimizedRR",
        "binary_for_policy",
        "mechanism_from_spec",
        "one_sided_as_printed",
        "register",
        *(kind.__name__ for kind in mechanism_classes().values()),
    ]


# Used by the other packages of Sfumato; not part of the public interface.
from sfumato.mechanisms.attributes import attribute_guesses as attribute_guesses
from sfumato.mechanisms.base import LARGEST_MATRIX as LARGEST_MATRIX, surrogate_of as surrogate_of
from sfumato.mechanisms.candidates import LARGEST_TABLE as LARGEST_TABLE
from sfumato.mechanisms.channel import Channel as Channel
from sfumato.mechanisms.components import can_be_component as can_be_component
from sfumato.mechanisms.draws import (
    BitDraws as BitDraws,
    Decision as Decision,
    RecordedDraws as RecordedDraws,
    RecordingDraws as RecordingDraws,
)
from sfumato.mechanisms.estimators.answers import (
    answers_error as answers_error,
    identifies_answers as identifies_answers,
)
from sfumato.mechanisms.estimators.base import (
    HistogramEstimator as HistogramEstimator,
    SamplingDistribution as SamplingDistribution,
    with_some_mass as with_some_mass,
)
from sfumato.mechanisms.estimators.forms import Cohort as Cohort, Form as Form, FormLaw as FormLaw, tilted as tilted
from sfumato.mechanisms.estimators.likelihood import Fit as Fit
from sfumato.mechanisms.estimators.limits import (
    ScoreLaw as ScoreLaw,
    confidence_limits as confidence_limits,
    relative_spread as relative_spread,
    variance_coefficients as variance_coefficients,
)
from sfumato.mechanisms.estimators.matrix import efficient_estimator as efficient_estimator
from sfumato.mechanisms.kernels import write_thresholds as write_thresholds
from sfumato.mechanisms.kernels.base import Kernel as Kernel
from sfumato.mechanisms.memoized.mechanism import (
    check_lifetime as check_lifetime,
    memoized_variants as memoized_variants,
    permanent_pair as permanent_pair,
)
from sfumato.mechanisms.memoized.tables import response_tables as response_tables
from sfumato.mechanisms.nested_cyclic.sizes import least_nested_risk as least_nested_risk
from sfumato.mechanisms.parts.sizes import best_high_low_mixture as best_high_low_mixture
from sfumato.mechanisms.provenance import (
    is_library_format as is_library_format,
    is_library_mechanism as is_library_mechanism,
)
from sfumato.mechanisms.registry import (
    Family as Family,
    all_families as all_families,
    count_law_for as count_law_for,
    estimator_for as estimator_for,
    kernel_for as kernel_for,
    mechanism_classes as mechanism_classes,
)
from sfumato.mechanisms.repeated import (
    further_promises as further_promises,
    greatest_stale_share as greatest_stale_share,
    keeps_answers as keeps_answers,
    links_reports as links_reports,
    repeating as repeating,
    shared_moments as shared_moments,
)
from sfumato.mechanisms.reports.columns import (
    HASH_ATTRIBUTE as HASH_ATTRIBUTE,
    REPORT_COLUMN as REPORT_COLUMN,
    reports_to_column as reports_to_column,
)
from sfumato.mechanisms.sampled_parts.restriction import policy_of_part as policy_of_part
from sfumato.mechanisms.secret.base import information as information
from sfumato.mechanisms.split_mix import ranks as ranks, split_mix_keys as split_mix_keys
from sfumato.mechanisms.systems.base import OUTSIDE as OUTSIDE
from sfumato.mechanisms.systems.designs.families import LARGEST_OUTPUTS as LARGEST_OUTPUTS
from sfumato.mechanisms.table.alias import TOTAL as TOTAL, TOTAL_BITS as TOTAL_BITS
from sfumato.mechanisms.tightest import candidate_columns as candidate_columns
from sfumato.mechanisms.unary.mechanism import (
    IndependentBits as IndependentBits,
    has_independent_steps as has_independent_steps,
    independent_bits_of as independent_bits_of,
)
