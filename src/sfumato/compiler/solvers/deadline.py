"""Deadlines of searches, on a clock that tests can replace."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

from sfumato.errors import SolverFailed

__all__ = ["GRACE", "NEVER", "Deadline", "OutOfTime", "Pace"]


#: Minimum processor time in seconds before the pace of a computation is measured.
_MEASURABLE = 0.05
#: Maximum factor by which other programs are assumed to slow down a computation.
_MOST_SLOWNESS = 4.0


class OutOfTime(SolverFailed):
    """The time limit ended a search before it found any mechanism."""

    def __init__(self, reason: str = "the search for the optimal mechanism exceeded its time limit") -> None:
        super().__init__(f"{reason}. Raise max_seconds.")


def _programs_per_core() -> float:
    """Return the number of programs per core in the last minute; 1 if the system does not report its load."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 1.0


class Pace:
    """Elapsed time relative to processor time, which grows while other programs keep the cores busy.

    Parameters
    ----------
    clock, processor
        Functions that return the time, and the processor time of this process, in seconds.
    assumed
        Slowness that is assumed until enough processor time has been measured.
    """

    def __init__(self, clock: Callable[[], float], processor: Callable[[], float], assumed: float = 1.0) -> None:
        self._clock, self._processor, self._assumed = clock, processor, assumed
        self._start = clock(), processor()

    @property
    def slowness(self) -> float:
        """Elapsed time divided by processor time since the start, between 1 and a limit; disk waits count too."""
        worked = self._processor() - self._start[1]
        if worked < _MEASURABLE:
            return min(max(self._assumed, 1.0), _MOST_SLOWNESS)
        return min(max((self._clock() - self._start[0]) / worked, 1.0), _MOST_SLOWNESS)


class Deadline:
    """The time by which a search must end.

    Every loop of a search checks ``passed``, and every call of a solver receives the time that is ``left``. A
    computation that cannot be interrupted starts only if it ``fits``.

    Parameters
    ----------
    seconds
        Time from now until the deadline in seconds; infinite for no deadline.
    clock
        Function that returns the time in seconds. Tests replace it with a function that counts its calls.
    pace
        Load of the machine. By default it is measured from now on, or ignored if ``clock`` is not the system clock.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic, pace: Pace | None = None) -> None:
        self._clock = clock
        self._start = clock()
        self._end = self._start + seconds
        if pace is None and clock is time.monotonic:
            pace = Pace(clock, time.process_time, _programs_per_core())
        self._pace = pace

    @property
    def spent(self) -> float:
        """Seconds since the deadline was set."""
        return self._clock() - self._start

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 after it."""
        return max(self._end - self._clock(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return self._clock() >= self._end

    def part(self, fraction: float, reserve: float = 0.0) -> Deadline:
        """Return an earlier deadline, after this fraction of the remaining time minus a reserve in seconds."""
        return Deadline(fraction * max(self.left - reserve, 0.0), self._clock, self._pace)

    def extended(self, seconds: float) -> Deadline:
        """Return a deadline this many seconds later, counted from now if this deadline has passed."""
        return Deadline(self.left + seconds, self._clock, self._pace)

    def fits(self, seconds: float) -> bool:
        """Return whether a computation of this processor time would end before the deadline under the current load."""
        return seconds * (1.0 if self._pace is None else self._pace.slowness) <= self.left

    def require(self) -> None:
        """Raise OutOfTime after the deadline."""
        if self.passed:
            raise OutOfTime


#: Seconds that a search for the first mechanism may take beyond the deadline, so that a short search has a result.
GRACE = 1.0
#: Deadline of a computation without a time limit.
NEVER = Deadline(math.inf)
