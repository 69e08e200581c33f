"""The family of local hashing."""

from __future__ import annotations

from sfumato.mechanisms.local_hashing.mechanism import LocalHashing
from sfumato.mechanisms.registry import Family

__all__ = ["LOCAL_HASHING", "LocalHashing"]

LOCAL_HASHING = Family(
    mechanisms=(LocalHashing,),
    kernel="sfumato.mechanisms.local_hashing.kernel:build",
    in_browser=True,
    examples="sfumato.mechanisms.local_hashing.examples:examples",
    memory="sfumato.mechanisms.local_hashing.memory:BUCKETS",
)
