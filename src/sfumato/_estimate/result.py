"""What an estimate is: frequencies with their covariance, from which every interval follows."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._estimate.decoder import Decoder
from sfumato._estimate.likelihood import Fit
from sfumato.domain import Domain
from sfumato.errors import CannotDecide, InvalidInput, MissingExtra

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["Estimate", "LinearEstimate"]

Floats = npt.NDArray[np.float64]

#: A dense covariance of more values than this is refused (it would take over 3 GB).
_LARGEST_COVARIANCE = 20_000
#: A standard deviation of one report below this is none: all reports said the same of the value.
_SILENT = 1e-7


@dataclass(frozen=True)
class LinearEstimate:
    """An estimated number with its standard error."""

    value: float
    standard_error: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A normal confidence interval."""
        reach = _quantile(level) * self.standard_error
        return self.value - reach, self.value + reach

    def p_value(self, null: float = 0.0) -> float:
        """Two-sided: how probable so large a distance from ``null`` is if it is the truth."""
        if self.standard_error == 0:
            return float(self.value == null)
        return 2 * NormalDist().cdf(-abs(self.value - null) / self.standard_error)

    def __sub__(self, other: LinearEstimate) -> LinearEstimate:
        """The difference of two estimates from different people."""
        error = float(np.hypot(self.standard_error, other.standard_error))
        return LinearEstimate(self.value - other.value, error)

    def __str__(self) -> str:
        return f"{self.value:.6g} ± {self.standard_error:.2g}"


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated frequencies of the values of a domain.

    ``frequencies`` are those of the chosen method. Errors and intervals are those of the *unbiased* estimate, whatever
    the method: a projection can only come closer to the truth, and honest intervals do not shrink because of it.
    """

    domain: Domain
    n: int
    method: str
    frequencies: Floats
    unbiased: Floats
    #: The nearest distribution to the unbiased estimate, at which variances are computed: never negative, consistent.
    nearest: Floats
    decoder: Decoder
    fit: Fit | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """The values that the frequencies belong to, in the same order."""
        return self.domain.labels

    @functools.cached_property
    def standard_errors(self) -> Floats:
        """The standard error of each frequency: randomization and sampling together."""
        return np.sqrt(np.maximum(self.decoder.variances(self.nearest), 0) / self.n)

    @functools.cached_property
    def covariance(self) -> Floats:
        """The covariance matrix of the unbiased frequencies."""
        if len(self.domain) > _LARGEST_COVARIANCE:
            raise CannotDecide(
                f"a covariance of {len(self.domain)} values is refused (at most {_LARGEST_COVARIANCE}); "
                "standard_errors has its diagonal"
            )
        return self.decoder.covariance(self.nearest) / self.n

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper limits, within [0, 1]. ``simultaneous``: all of them hold together (Bonferroni)."""
        tests = len(self.domain) if simultaneous else 1
        errors = self.standard_errors
        reach = _quantile(level, tests) * errors
        low, high = self.unbiased - reach, self.unbiased + reach
        silent = errors * self.n**0.5 < _SILENT
        if np.any(silent):
            low[silent], high[silent] = self._limits_of_silence(silent, (1 - level) / tests)
        # A projected or fitted point may lie outside: the interval is widened to hold it, never moved.
        low, high = np.minimum(low, self.frequencies), np.maximum(high, self.frequencies)
        return np.clip(low, 0, 1), np.clip(high, 0, 1)

    def _limits_of_silence(self, silent: npt.NDArray[np.bool_], alpha: float) -> tuple[Floats, Floats]:
        """The limits of frequencies for which all reports said the same, so that no error can be computed from them.

        If another report had a share of more than 1 - α^(1/n), at least one of n would have been another but for
        probability α (Clopper and Pearson); each may count as much as one report can.
        """
        try:
            least, greatest = self.decoder.reach()
        except CannotDecide:  # combined cohorts: nothing is known of how much a report can count
            return np.zeros(int(silent.sum())), np.ones(int(silent.sum()))
        share, told = 1 - alpha ** (1 / self.n), self.unbiased[silent]
        return told - share * (told - least[silent]), told + share * (greatest[silent] - told)

    @property
    def expected_tv(self) -> float:
        """The expected total variation error of the unbiased frequencies, in the normal approximation."""
        return float(np.sum(self.standard_errors)) * float(np.sqrt(2 / np.pi)) / 2

    def linear(self, weights: Mapping[Any, float] | Sequence[float] | Floats) -> LinearEstimate:
        """The estimate of Σ weight·frequency: a share of a group, a mean of numeric labels, a contrast."""
        vector = self._weights(weights)
        variance = max(self.decoder.variance(vector, self.nearest), 0.0) / self.n
        return LinearEstimate(float(vector @ self.unbiased), variance**0.5)

    def share(self, values: Sequence[Any]) -> LinearEstimate:
        """The share of people whose value is one of these."""
        return self.linear(dict.fromkeys(values, 1.0))

    def mean(self) -> LinearEstimate:
        """The mean of numeric labels."""
        labels = self.domain.labels
        if not all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels):
            raise InvalidInput("mean", "the labels", "be numbers", labels[0])
        return self.linear(np.array(labels, dtype=np.float64))

    def _weights(self, weights: Mapping[Any, float] | Sequence[float] | Floats) -> Floats:
        size = len(self.domain)
        vector = np.zeros(size)
        try:
            if isinstance(weights, Mapping):
                vector[[self.domain.index(label) for label in weights]] = list(weights.values())
            else:
                vector = np.asarray(weights, dtype=np.float64)
        except InvalidInput:
            raise
        except (TypeError, ValueError):
            raise InvalidInput("linear", "weights", "be numbers", weights) from None
        if vector.shape != (size,) or not np.isfinite(vector).all():
            raise InvalidInput("linear", "weights", f"be {size} finite numbers", weights)
        return vector

    def influence(self, fraction: float) -> Floats:
        """The most that a fraction of dishonest reports can move each frequency, up or down."""
        if not 0 <= fraction <= 1:
            raise InvalidInput("influence", "fraction", "lie in [0, 1]", fraction)
        low, high = self.decoder.reach()
        return fraction * np.maximum(high - self.nearest, self.nearest - low)

    def to_arrow(self, level: float = 0.95) -> pyarrow.Table:
        """A table: value, frequency, standard_error, low, high."""
        try:
            import pyarrow
        except ImportError:
            raise MissingExtra("arrow", "an estimate as an Arrow table") from None
        low, high = self.interval(level)
        labels = [str(v) if isinstance(v, tuple) else v for v in self.domain.labels]
        return pyarrow.table(
            {
                "value": labels,
                "frequency": self.frequencies,
                "standard_error": self.standard_errors,
                "low": low,
                "high": high,
            }
        )

    def plot(self, level: float = 0.95, truth: Any = None) -> Figure:
        """A picture: bars with their intervals, a line where there are many, a map where the domain is a grid."""
        from sfumato.plot import plot_estimate

        return plot_estimate(self, level, truth)

    def __str__(self) -> str:
        low, high = self.interval()
        rows = [
            f"{label!s:>12}  {frequency:9.5f}  [{a:.5f}, {b:.5f}]"
            for label, frequency, a, b in zip(self.domain, self.frequencies, low, high, strict=False)
        ]
        shown = rows if len(rows) <= 20 else [*rows[:20], f"… {len(rows) - 20} more"]
        return "\n".join([f"{self.n} reports, method {self.method}, 95% intervals", *shown])


def _quantile(level: float, tests: int = 1) -> float:
    if not 0 < level < 1:
        raise InvalidInput("interval", "level", "lie between 0 and 1", level)
    below = 1 - (1 - level) / (2 * tests)
    if below == 1:
        raise InvalidInput("interval", "level", "be so far from 1 that a number between can be told", level)
    return NormalDist().inv_cdf(below)
