"""Sfumato: a compiler for context-aware local privacy.

State which values must be hard to distinguish, and by how much (a policy). Sfumato returns exact randomizers
(mechanisms) and an exact certificate that a mechanism obeys the policy (audit).
"""

import functools
import importlib
from typing import TYPE_CHECKING, Any

from sfumato import errors, mechanisms
from sfumato._core import Epsilon, Progress, load_plots_with
from sfumato.auditing import (
    Amplification,
    Certificate,
    Channel,
    PriorBox,
    SamplerAudit,
    amplify,
    audit,
    audit_priors,
    audit_sampler,
    compose_batches,
    error_region,
    policy_region,
    verify,
)
from sfumato.collecting import Aggregate, PairCounts, aggregate, aggregate_files, aggregate_groups, aggregate_pairs
from sfumato.domain import Domain
from sfumato.errors import SfumatoError
from sfumato.estimation import (
    Estimate,
    GroupedEstimate,
    WaveEstimates,
    combine,
    cross_table,
    estimate,
    estimate_groups,
    estimate_waves,
    learn_prior,
)
from sfumato.mechanisms import mechanism_from_spec, register
from sfumato.policy import (
    Anything,
    AtLeast,
    Blocks,
    ChiSquare,
    Graph,
    HighLow,
    Known,
    Metric,
    Pairwise,
    PerValue,
    Policy,
    Prior,
    Product,
    Secret,
    Uniform,
    implies,
    load_policy,
    policy_from_dict,
    save_policy,
    structure_of,
)
from sfumato.questions import (
    Distribution,
    Frequencies,
    Marginals,
    Mean,
    Quantiles,
    Question,
    Ranges,
    Workload,
    load_question,
)
from sfumato.randomness import InsecureSeeded

if TYPE_CHECKING:
    __version__: str
    from sfumato import plotting
    from sfumato.compiler import (
        ExpectedLoss,
        Optimum,
        Plan,
        Questionnaire,
        RobustInformation,
        SquaredError,
        design,
        optimal,
        plan,
        robust_information,
    )
    from sfumato.device import Ledger, LocalPriors, Simulation, privatize, simulate

__all__ = [
    "Aggregate",
    "Amplification",
    "Anything",
    "AtLeast",
    "Blocks",
    "Certificate",
    "Channel",
    "ChiSquare",
    "Distribution",
    "Domain",
    "Epsilon",
    "Estimate",
    "ExpectedLoss",
    "Frequencies",
    "Graph",
    "GroupedEstimate",
    "HighLow",
    "InsecureSeeded",
    "Known",
    "Ledger",
    "LocalPriors",
    "Marginals",
    "Mean",
    "Metric",
    "Optimum",
    "PairCounts",
    "Pairwise",
    "PerValue",
    "Plan",
    "Policy",
    "Prior",
    "PriorBox",
    "Product",
    "Progress",
    "Quantiles",
    "Question",
    "Questionnaire",
    "Ranges",
    "RobustInformation",
    "SamplerAudit",
    "Secret",
    "SfumatoError",
    "Simulation",
    "SquaredError",
    "Uniform",
    "WaveEstimates",
    "Workload",
    "aggregate",
    "aggregate_files",
    "aggregate_groups",
    "aggregate_pairs",
    "amplify",
    "audit",
    "audit_priors",
    "audit_sampler",
    "combine",
    "compose_batches",
    "cross_table",
    "design",
    "error_region",
    "errors",
    "estimate",
    "estimate_groups",
    "estimate_waves",
    "implies",
    "learn_prior",
    "load_policy",
    "load_question",
    "mechanism_from_spec",
    "mechanisms",
    "optimal",
    "plan",
    "plotting",
    "policy_from_dict",
    "policy_region",
    "privatize",
    "register",
    "robust_information",
    "save_policy",
    "simulate",
    "structure_of",
    "verify",
]

#: Names that are imported on first use. Importing Sfumato stays fast, and a collector never loads the code that handles
#: raw values.
_LATE = {
    "compiler": {
        "ExpectedLoss",
        "Optimum",
        "Plan",
        "Questionnaire",
        "RobustInformation",
        "SquaredError",
        "design",
        "optimal",
        "plan",
        "robust_information",
    },
    "device": {"Ledger", "LocalPriors", "Simulation", "privatize", "simulate"},
    "plotting": set(),
}


def _load(package: str) -> Any:
    """Import a subpackage."""
    return importlib.import_module(f"{__name__}.{package}")


if not TYPE_CHECKING:  # with this function, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return importlib.import_module("importlib.metadata").version(__name__)
        if name in _LATE:
            return _load(name)
        for package, names in _LATE.items():
            if name in names:
                globals()[name] = value = getattr(_load(package), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


load_plots_with(functools.partial(_load, "plotting"))
