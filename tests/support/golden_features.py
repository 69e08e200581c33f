"""What the library can do with each mechanism of the golden corpus, read from the code that runs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.registry import all_families, count_law_for, kernel_for, memory_form_for
from sfumato.spark.tasks import mechanism_of
from support.golden_cases import CASES, LARGE

__all__ = ["FEATURES", "has_feature"]

#: Bytes per value that the moments of a large mechanism may allocate; a matrix takes 80,000 for 10,000 values.
_BYTES_PER_VALUE = 8_000


def _examples(name: str) -> list[Mechanism]:
    return [build() for key, build in CASES.items() if key.partition("/")[0] == name and "million" not in key]


def _samples(name: str) -> bool:
    mechanism = _examples(name)[0]
    values = mechanism.domain.decode(np.arange(4) % len(mechanism.domain))
    reports = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(1))
    return sf.aggregate(mechanism, np.asarray(reports)).n == 4


def _in_browser(name: str) -> bool:
    return any(
        kind.name == _examples(name)[0].name
        for family in all_families()
        if family.in_browser
        for kind in family.mechanisms
    )


def _in_spark(name: str) -> bool:
    """Return whether an executor rebuilds the mechanism from its spec, which is all that it receives."""
    mechanism = _examples(name)[0]
    return mechanism_of(mechanism.to_json()) == mechanism


def _is_large(name: str) -> bool:
    build = LARGE[name]
    return build is not None and len(build().domain) == 10_000


def _has_closed_moments(name: str) -> bool:
    """Return whether the risk over 10,000 values is computed without a matrix."""
    build = LARGE[name]
    if build is None:
        return False
    mechanism = build()
    tracemalloc.start()
    try:
        mechanism.risk(1)
        return tracemalloc.get_traced_memory()[1] < _BYTES_PER_VALUE * len(mechanism.domain)
    except SfumatoError:
        return False
    finally:
        tracemalloc.stop()


FEATURES: dict[str, Callable[[str], bool]] = {
    "sampler": _samples,
    "kernel": lambda name: any(kernel_for(mechanism) is not None for mechanism in _examples(name)),
    "browser": _in_browser,
    "memory": lambda name: any(memory_form_for(mechanism) is not None for mechanism in _examples(name)),
    "count_law": lambda name: any(count_law_for(mechanism) is not None for mechanism in _examples(name)),
    "closed_moments": _has_closed_moments,
    "spark": _in_spark,
    "large_k": _is_large,
}


def has_feature(name: str, feature: str) -> bool:
    """Return whether the library supports a feature for the mechanism with a recorded name."""
    return FEATURES[feature](name)
