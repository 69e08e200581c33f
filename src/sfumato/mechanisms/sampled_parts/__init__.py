"""The family of sampled parts: every person reports one attribute, or one group of attributes."""

from __future__ import annotations

from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.sampled_parts.estimator import SampledPartsEstimator
from sfumato.mechanisms.sampled_parts.mechanism import SampledParts

__all__ = ["SAMPLED_PARTS", "SampledParts"]

SAMPLED_PARTS = Family(
    mechanisms=(SampledParts,),
    estimator=SampledPartsEstimator,
    kernel="sfumato.mechanisms.sampled_parts.kernel:build",
    in_browser=True,
)
