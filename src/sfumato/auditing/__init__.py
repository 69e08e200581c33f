"""Audits: exact proofs that a mechanism obeys a policy, and lower bounds for samplers without source code.

``audit`` reads the sampler that runs with a branching interpreter and returns a ``Certificate``.
``audit_sampler`` bounds the privacy loss of a black box from its outputs. ``amplify`` bounds the central level of
reports that arrive without identity and order.
"""

from sfumato.auditing.audits import audit, verify
from sfumato.auditing.black_box import audit_sampler
from sfumato.auditing.black_box.result import SamplerAudit
from sfumato.auditing.certificate import Certificate
from sfumato.auditing.prior_sets import PriorBox, PriorMixtures, PriorSet, PriorSetAudit, audit_priors
from sfumato.auditing.regions import ErrorRegion, PolicyRegion, error_region, policy_region
from sfumato.auditing.shuffling import Amplification, AmplifiedPair, BatchComposition, amplify, compose_batches
from sfumato.mechanisms import Channel

__all__ = [
    "Amplification",
    "AmplifiedPair",
    "BatchComposition",
    "Certificate",
    "Channel",
    "ErrorRegion",
    "PolicyRegion",
    "PriorBox",
    "PriorMixtures",
    "PriorSet",
    "PriorSetAudit",
    "SamplerAudit",
    "amplify",
    "audit",
    "audit_priors",
    "audit_sampler",
    "compose_batches",
    "error_region",
    "policy_region",
    "verify",
]


# For the other packages of Sfumato; not part of the public interface.
from sfumato.auditing.audits import required_coverage as required_coverage, stated_columns as stated_columns
from sfumato.auditing.certificate import Coverage as Coverage
from sfumato.auditing.interpreter import sampler_law as sampler_law
from sfumato.auditing.shuffling import (
    checked_delta as checked_delta,
    is_certified as is_certified,
    upper_level as upper_level,
)
