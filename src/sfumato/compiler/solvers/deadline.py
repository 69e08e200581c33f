"""When a search must end, on a clock that a test can replace; and the threads that it computes with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato.compiler.solvers.extra import needed
from sfumato.errors import CannotDecide

__all__ = ["GRACE", "NEVER", "Deadline", "OutOfTime", "one_thread"]


class OutOfTime(CannotDecide):
    """A search ended before it had any mechanism to show."""

    def __init__(self, what: str = "the search for the optimal mechanism did not fit in its time") -> None:
        super().__init__(f"{what}: give it more (max_seconds)")


class Deadline:
    """The moment at which a search must end.

    Every loop of a search asks ``passed``, and every call of a solver is given what is ``left``.

    Parameters
    ----------
    seconds
        Time from now until the deadline; infinite for none.
    clock
        Function that returns the time in seconds. Tests replace it by one that counts its calls.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._end = self._start + seconds

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

    def part(self, share: float, reserve: float = 0.0) -> Deadline:
        """Return an earlier deadline, after this share of the time that is left without a reserve in seconds."""
        return Deadline(share * max(self.left - reserve, 0.0), self._clock)

    def extended(self, seconds: float) -> Deadline:
        """Return a deadline this number of seconds later, counted from now where this one is over."""
        return Deadline(self.left + seconds, self._clock)

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
    needed("scipy.linalg")  # brings a linear algebra library of its own, which must be loaded to be limited
    with needed("threadpoolctl").threadpool_limits(limits=1, user_api="blas"):
        yield
