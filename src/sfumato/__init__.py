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
from sfumato._robust_information import RobustInformation, robust_information
from sfumato._simulate import Simulation, simulate
from sfumato.certificate import Certificate
from sfumato.domain import Domain
from sfumato.entropy import InsecureSeeded
from sfumato.errors import SfumatoError
from sfumato.exact import Epsilon
from sfumato.laws import Law, law_of
from sfumato.ledger import Ledger
from sfumato.local_priors import LocalPriors
from sfumato.mechanisms import mechanism_from_spec
from sfumato.optimize import ExpectedLoss, Optimum, SquaredError, optimal
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
from sfumato.prior_learning import learn_prior
from sfumato.prior_sets import PriorBox, audit_priors
from sfumato.questionnaire import Questionnaire, cross_table
from sfumato.regions import error_region, policy_region

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
    "policy_from_dict",
    "policy_region",
    "privatize",
    "robust_information",
    "save_policy",
    "simulate",
    "structure_of",
]
