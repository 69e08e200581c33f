"""The verb ``design``: the best mechanism for a policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato._plan import plan
from sfumato.candidates import candidates
from sfumato.errors import CannotDecide, InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.policy import Policy

__all__ = ["design"]


def design(
    policy: Policy,
    n: int | None = None,
    *,
    mechanism: str | None = None,
    utility: str = "estimation",
    p: Sequence[float] | npt.NDArray[np.float64] | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,  # noqa: ARG001
) -> Mechanism:
    """The mechanism that ``plan`` recommends, or the one asked for by its short name.

    Candidates are the mechanisms made for the structure of the policy, and classical ones at the greatest ε that
    implies it.
    """
    if utility != "estimation":
        raise CannotDecide(f"utility {utility!r} is not supported yet; only 'estimation' is")
    if mechanism is not None:
        suitable = candidates(policy, max_bits)
        if mechanism not in suitable:
            must = f"be one of {', '.join(suitable)} for this policy"
            raise InvalidInput("design", "mechanism", must, mechanism)
        return suitable[mechanism].build()
    return plan(policy, n or 1, p=p, max_bits=max_bits).best.mechanism
