"""Sfumato: a compiler for context-aware local privacy.

Say which values must be hard to tell apart, and by how much (a policy); get exact randomizers (mechanisms), and an
exact certificate that the one obeys the other (audit).
"""

from typing import TYPE_CHECKING, Any

from sfumato import errors, mechanisms, plotting
from sfumato._core import Epsilon
from sfumato.auditing import (
    Certificate,
    Law,
    PriorBox,
    SamplerAudit,
    audit,
    audit_again,
    audit_priors,
    audit_sampler,
    error_region,
    law_of,
    policy_region,
)
from sfumato.collecting import Aggregate, aggregate
from sfumato.compiler import (
    ExpectedLoss,
    Optimum,
    Plan,
    RobustInformation,
    SquaredError,
    design,
    optimal,
    plan,
    robust_information,
)
from sfumato.domain import Domain
from sfumato.errors import SfumatoError
from sfumato.estimation import Estimate, GroupedEstimate, combine, estimate, estimate_groups, learn_prior
from sfumato.mechanisms import mechanism_from_spec
from sfumato.policy import (
    Anything,
    AtLeast,
    Blocks,
    ChiSquare,
    HighLow,
    Known,
    Metric,
    Pairwise,
    Policy,
    Prior,
    Secret,
    Uniform,
    implies,
    load_policy,
    policy_from_dict,
    save_policy,
    structure_of,
)
from sfumato.randomness import InsecureSeeded

if TYPE_CHECKING:
    from sfumato.device import Ledger, LocalPriors, Questionnaire, Simulation, cross_table, privatize, simulate

__all__ = [
    "Aggregate",
    "Anything",
    "AtLeast",
    "Blocks",
    "Certificate",
    "ChiSquare",
    "Domain",
    "Epsilon",
    "Estimate",
    "ExpectedLoss",
    "GroupedEstimate",
    "HighLow",
    "InsecureSeeded",
    "Known",
    "Law",
    "Ledger",
    "LocalPriors",
    "Metric",
    "Optimum",
    "Pairwise",
    "Plan",
    "Policy",
    "Prior",
    "PriorBox",
    "Questionnaire",
    "RobustInformation",
    "SamplerAudit",
    "Secret",
    "SfumatoError",
    "Simulation",
    "SquaredError",
    "Uniform",
    "aggregate",
    "audit",
    "audit_again",
    "audit_priors",
    "audit_sampler",
    "combine",
    "cross_table",
    "design",
    "error_region",
    "errors",
    "estimate",
    "estimate_groups",
    "implies",
    "law_of",
    "learn_prior",
    "load_policy",
    "mechanism_from_spec",
    "mechanisms",
    "optimal",
    "plan",
    "plotting",
    "policy_from_dict",
    "policy_region",
    "privatize",
    "robust_information",
    "save_policy",
    "simulate",
    "structure_of",
]

#: Names of the device role. They are imported when they are first used, so that a collector never loads the code that
#: handles raw values.
_DEVICE = frozenset({"Ledger", "LocalPriors", "Questionnaire", "Simulation", "cross_table", "privatize", "simulate"})


if not TYPE_CHECKING:  # a type checker would take every name for defined

    def __getattr__(name: str) -> Any:
        if name not in _DEVICE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from sfumato import device

        globals()[name] = value = getattr(device, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
