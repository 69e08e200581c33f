"""When a search must end, on a clock that a test can replace; and the threads that it computes with."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato._core import import_late
from sfumato.errors import SolverFailed

__all__ = ["GRACE", "NEVER", "Deadline", "OutOfTime", "Pace", "one_thread"]


#: Processor time in seconds from which on the pace of a computation is measured.
_MEASURABLE = 0.05
#: Computations are taken to be slowed down by other programs by at most this factor.
_MOST_SLOWNESS = 4.0


class OutOfTime(SolverFailed):
    """A search ended before it had any mechanism to show."""

    def __init__(self, reason: str = "the search for the optimal mechanism did not fit in its time") -> None:
        super().__init__(f"{reason}: give it more (max_seconds)")


def _programs_per_core() -> float:
    """Return how many programs have competed for each core in the last minute; 1 where the system does not say."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 1.0


class Pace:
    """How much longer computations take than their processor time, because other programs keep the cores busy.

    Parameters
    ----------
    clock, processor
        Functions that return the time, and the processor time of this process, in seconds.
    expected
        What is assumed until enough was computed to measure it.
    """

    def __init__(self, clock: Callable[[], float], processor: Callable[[], float], assumed: float = 1.0) -> None:
        self._clock, self._processor, self._assumed = clock, processor, assumed
        self._start = clock(), processor()

    @property
    def slowness(self) -> float:
        """Time over processor time since the start, between 1 and a limit: waiting for a disk looks the same."""
        worked = self._processor() - self._start[1]
        if worked < _MEASURABLE:
            return min(max(self._assumed, 1.0), _MOST_SLOWNESS)
        return min(max((self._clock() - self._start[0]) / worked, 1.0), _MOST_SLOWNESS)


class Deadline:
    """The moment at which a search must end.

    Every loop of a search asks ``passed``, and every call of a solver is given what is ``left``. What cannot be
    interrupted is begun only where it ``fits``.

    Parameters
    ----------
    seconds
        Time from now until the deadline; infinite for none.
    clock
        Function that returns the time in seconds. Tests replace it by one that counts its calls.
    pace
        How busy the machine is; measured from now unless given, and not at all with another clock.
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
        """Seconds until the deadline, 0 after it."""
        return max(self._end - self._clock(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the deadline is over."""
        return self._clock() >= self._end

    def part(self, fraction: float, reserve: float = 0.0) -> Deadline:
        """Return an earlier deadline, after this fraction of the time that is left without a reserve in seconds."""
        return Deadline(fraction * max(self.left - reserve, 0.0), self._clock, self._pace)

    def extended(self, seconds: float) -> Deadline:
        """Return a deadline this number of seconds later, counted from now where this one is over."""
        return Deadline(self.left + seconds, self._clock, self._pace)

    def fits(self, seconds: float) -> bool:
        """Return whether a computation of this processor time ends before the deadline, as busy as the machine is."""
        return seconds * (1.0 if self._pace is None else self._pace.slowness) <= self.left

    def require(self) -> None:
        """Raise OutOfTime after the deadline."""
        if self.passed:
            raise OutOfTime


#: Seconds that the first mechanism may take beyond the deadline, so that a short search has something to show.
GRACE = 1.0
#: The deadline of a computation that may take as long as it takes.
NEVER = Deadline(math.inf)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute linear algebra on one thread within the block.

    Matrices of a search have some hundred rows. Threads gain little there, and where other programs keep the cores busy
    they wait for one another: at 40 values a factorization then took 20 times as long on two threads as on one.
    """
    import_late("scipy.linalg")  # brings another linear algebra library, which must be loaded to be limited
    with import_late("threadpoolctl").threadpool_limits(limits=1, user_api="blas"):
        yield
