"""Audits: exact proofs that a mechanism obeys a policy, and lower bounds for samplers without source code.

``audit`` reads the sampler that runs with a branching interpreter and returns a ``Certificate``.
``audit_sampler`` bounds the privacy loss of a black box from its outputs.
"""

from sfumato.auditing.audits import audit, verify
from sfumato.auditing.black_box import audit_sampler
from sfumato.auditing.black_box.result import SamplerAudit
from sfumato.auditing.certificate import Certificate
from sfumato.auditing.prior_sets import PriorBox, PriorMixtures, PriorSet, PriorSetAudit, audit_priors
from sfumato.auditing.regions import ErrorRegion, PolicyRegion, error_region, policy_region
from sfumato.mechanisms import Channel

__all__ = [
    "Certificate",
    "Channel",
    "ErrorRegion",
    "PolicyRegion",
    "PriorBox",
    "PriorMixtures",
    "PriorSet",
    "PriorSetAudit",
    "SamplerAudit",
    "audit",
    "audit_priors",
    "audit_sampler",
    "error_region",
    "policy_region",
    "verify",
]


# For the other packages of Sfumato; not part of the public interface.
from sfumato.auditing.audits import required_coverage as required_coverage, stated_columns as stated_columns
from sfumato.auditing.certificate import Coverage as Coverage
from sfumato.auditing.interpreter import sampler_law as sampler_law
