"""Time that is counted instead of measured, for searches that must not depend on the speed of the machine."""

from __future__ import annotations

import pytest

from sfumato.compiler import designing, planning
from sfumato.compiler.solvers import optimization
from sfumato.compiler.solvers.deadline import Deadline
from support.clocks import Clock


@pytest.fixture
def counted_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every reading of the clock take a millisecond, for the limits of plans, designs and searches."""
    for module in (designing, optimization, planning):
        monkeypatch.setattr(module, "Deadline", lambda seconds: Deadline(seconds, Clock(0.001)))
