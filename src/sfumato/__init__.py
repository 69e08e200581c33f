"""Sfumato: a compiler for context-aware local privacy.

Say which values must be hard to tell apart, and by how much (a policy); get exact randomizers (mechanisms), and an
exact certificate that the one obeys the other (audit).
"""

from sfumato import errors, mechanisms
from sfumato._aggregate import Aggregate, aggregate
from sfumato._audit import audit, audit_again
from sfumato._audit_sampler import SamplerAudit, audit_sampler
from sfumato._design import design
from sfumato._estimate import Estimate, GroupedEstimate, combine, estimate, estimate_groups
from sfumato._plan import Plan, plan
from sfumato._privatize import privatize
from sfumato._simulate import Simulation, simulate
from sfumato.certificate import Certificate
from sfumato.domain import Domain
from sfumato.entropy import InsecureSeeded
from sfumato.errors import SfumatoError
from sfumato.exact import Epsilon
from sfumato.laws import Law, law_of
from sfumato.ledger import Ledger
from sfumato.mechanisms import mechanism_from_spec
from sfumato.optimize import ExpectedLoss, Optimum, SquaredError, optimal
from sfumato.policy import (
    Anything,
    Blocks,
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
from sfumato.questionnaire import Questionnaire, cross_table
from sfumato.regions import error_region, policy_region

__all__ = [
    "Aggregate",
    "Anything",
    "Blocks",
    "Certificate",
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
    "Metric",
    "Optimum",
    "Pairwise",
    "Plan",
    "Policy",
    "Prior",
    "Questionnaire",
    "SamplerAudit",
    "Secret",
    "SfumatoError",
    "Simulation",
    "SquaredError",
    "Uniform",
    "aggregate",
    "audit",
    "audit_again",
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
    "load_policy",
    "mechanism_from_spec",
    "mechanisms",
    "optimal",
    "plan",
    "policy_from_dict",
    "policy_region",
    "privatize",
    "save_policy",
    "simulate",
    "structure_of",
]
