"""Central privacy levels of reports that arrive without identity and order, certified for every pair of values.

``amplify`` bounds the central (ε, δ) of one batch from the exact law of the mechanism. ``compose_batches`` bounds that
of several batches.
"""

from sfumato.auditing.shuffling.amplifying import amplify
from sfumato.auditing.shuffling.composition import BatchComposition, compose_batches
from sfumato.auditing.shuffling.result import Amplification, AmplifiedPair

__all__ = ["Amplification", "AmplifiedPair", "BatchComposition", "amplify", "compose_batches"]


# For the other packages of Sfumato; not part of the public interface.
from sfumato.auditing.shuffling.amplifying import is_certified as is_certified, upper_level as upper_level
from sfumato.auditing.shuffling.deltas import checked_delta as checked_delta
