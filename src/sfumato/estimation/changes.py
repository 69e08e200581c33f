"""Estimates from reports about changes of a status: the share of people in every wave, and its changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    FrozenData,
    Integers,
    Result,
    checked_integer,
    checked_type,
    plain_integer,
    plot_result,
    quantity,
    read_items,
    read_only,
    reads_document,
)
from sfumato.errors import Description, InvalidInput
from sfumato.estimation.documents import VERSION, check_document, read_header
from sfumato.estimation.linear import LinearEstimate, check_confidence
from sfumato.mechanisms import ChangeSchedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ChangeEstimates", "estimate_changes"]

_FUNCTION = "estimate_changes"


@dataclass(frozen=True, eq=False, repr=False)
class ChangeEstimates(FrozenData, Result):
    """The share of people who are counted in every wave, and its changes, from reports about changes.

    :func:`estimate_changes` returns objects of this class.

    Parameters
    ----------
    schedule
        The schedule of the reports.
    counts
        The number of reports of each wave, scale and sign, shape (waves, scales, 2).

    Notes
    -----
    The mean sign of n reports about an interval, as -1 and 1, estimates the gain g of the schedule times the mean
    change of the status. The change therefore has a variance of at most 1/(g²·n), which is reached if no person
    changes. A share is the sum of the changes over the intervals that make up the waves so far. The reports of one
    person are independent given the statuses. So the variance of the share is at most the sum of these bounds if
    people rise at most once, or if the schedule is dyadic. Otherwise a person may leave out the wave of a fall, and two
    rises add up. With at most h rises, 1/(g²·n) is then replaced by (1/g² + h - 1)/n. The standard errors are the
    bounds. ``docs/proofs/change-schedule.md`` has the proof.

    People may leave out waves, and then report fewer intervals. The estimates stay unbiased, and their errors state the
    smaller numbers of reports, if the waves that people leave out do not depend on their statuses.

    Devices ignore changes after ``max_changes``. The estimates are unbiased for the statuses that devices report about
    (:meth:`ChangeSchedule.effective_statuses`), and biased for the true ones if people change more often.

    Examples
    --------
    >>> import sfumato as sf
    >>> schedule = sf.mechanisms.ChangeSchedule(sf.Domain(["no", "yes"]), ["yes"], "ln 3", waves=2)
    >>> result = sf.estimate_changes(schedule, {0: [1] * 60 + [0] * 40, 1: [1] * 55 + [0] * 45})
    >>> print(result)
    2 waves, share of people who are counted, and its change from the wave before
    wave  reports  frequency  standard_error  change  change_error
       0      100        0.4             0.2     0.4           0.2
       1      100        0.6         0.28284     0.2           0.2
    >>> print(result.frequency(1))
    0.6 ± 0.28
    """

    schedule: ChangeSchedule
    counts: Integers

    format: ClassVar[str] = "sfumato-change-estimates"

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", read_only(self.counts, np.int64))

    def frequency(self, wave: int) -> LinearEstimate:
        """Estimate the share of people who are counted in a wave.

        Parameters
        ----------
        wave
            Number of the wave, from 0.

        Returns
        -------
        LinearEstimate
            The share, with an upper bound of its standard error.

        Raises
        ------
        InvalidInput
            If an interval that the share needs has no reports.
        """
        number = self._checked(wave)
        return self._sum(number, self.schedule.intervals(number))

    def change(self, wave: int) -> LinearEstimate:
        """Estimate the change of this share from the wave before to a wave.

        Parameters
        ----------
        wave
            Number of the wave, from 0. In the first wave, the change starts from a share of 0.

        Returns
        -------
        LinearEstimate
            The change, with an upper bound of its standard error.

        Raises
        ------
        InvalidInput
            If no report of the wave is about one wave.
        """
        number = self._checked(wave)
        return self._sum(number, [(0, number)])

    def _checked(self, wave: int) -> int:
        """Return the number of a wave, or raise InvalidInput."""
        return checked_integer("ChangeEstimates", "wave", plain_integer(wave), 0, self.schedule.waves - 1)

    def _greatest_variance(self, intervals: int) -> float:
        """Return a bound of the variance of one report in a sum over a number of intervals."""
        schedule = self.schedule
        rises = 1 if schedule.dyadic else (min(schedule.max_changes, intervals) + 1) // 2
        return 1 / schedule.gain**2 + rises - 1

    def _sum(self, wave: int, intervals: Sequence[tuple[int, int]]) -> LinearEstimate:
        """Return the sum of the changes over intervals."""
        value = variance = 0.0
        greatest = self._greatest_variance(len(intervals))
        for scale, end in intervals:
            low, high = self.counts[end, scale].tolist()
            if low + high == 0:
                must = f"have reports about all its intervals; that of {1 << scale} waves up to {end} has none"
                raise InvalidInput("ChangeEstimates", "the wave", must, wave)
            value += (high - low) / (high + low) / self.schedule.gain
            variance += greatest / (high + low)
        return LinearEstimate(value, math.sqrt(variance))

    def plot(self, confidence: float = 0.95) -> Figure:
        """Draw the share of people who are counted over the waves as a line, with its interval as a band.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (``pip install "sfumato[plot]"``).
        """
        figure: Figure = plot_result(self, confidence)
        return figure

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        check_confidence(confidence)
        width = NormalDist().inv_cdf((1 + confidence) / 2)
        schedule, totals = self.schedule, self.counts.sum(axis=2)
        people = np.where(totals, totals, np.nan)  # an interval without reports makes its sums undefined
        changes = (self.counts[:, :, 1] - self.counts[:, :, 0]) / people / schedule.gain
        variances = self._greatest_variance(1) / people
        if schedule.dyadic:
            sums = [tuple(zip(*schedule.intervals(wave), strict=True)) for wave in range(schedule.waves)]
            shares = np.array([changes[ends, scales].sum() for scales, ends in sums])
            errors = np.sqrt([variances[ends, scales].sum() for scales, ends in sums])
        else:
            greatest = np.array([self._greatest_variance(wave + 1) for wave in range(schedule.waves)])
            shares, errors = np.cumsum(changes[:, 0]), np.sqrt(greatest * np.cumsum(1 / people[:, 0]))
        columns: dict[str, Any] = {
            "wave": list(range(schedule.waves)),
            "reports": totals.sum(axis=1).tolist(),
        }
        tables = (("", "frequency", shares, errors), ("change_", "change", changes[:, 0], np.sqrt(variances[:, 0])))
        for prefix, name, numbers, deviations in tables:
            columns |= {
                name: numbers,
                f"{prefix or 'standard_'}error": deviations,
                f"{prefix}low": numbers - width * deviations,
                f"{prefix}high": numbers + width * deviations,
            }
        return columns

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        columns = self._columns()
        return {name: columns[name] for name in columns if not name.endswith(("low", "high"))}

    def _title(self) -> str:
        waves = quantity(self.schedule.waves, "wave")
        return f"{waves}, share of people who are counted, and its change from the wave before"

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The schedule and the counts.
        """
        return {
            "format": self.format,
            "version": VERSION,
            "schedule": self.schedule.to_dict(),
            "counts": self.counts.tolist(),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> ChangeEstimates:
        """Return the estimates that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        ChangeEstimates
            Estimates equal to those that were written.

        Raises
        ------
        InvalidInput
            If the dict is malformed.
        """
        subject = "ChangeEstimates.from_dict"
        read_header(subject, document, cls.format)
        content = check_document(subject, document, ("schedule", "counts"))
        schedule = ChangeSchedule.from_dict(content["schedule"])
        counts = np.zeros((schedule.waves, schedule.scales, 2), dtype=np.int64)
        for wave, rows in enumerate(read_items(subject, "counts", content["counts"], schedule.waves)):
            for scale, row in enumerate(read_items(subject, f"counts of wave {wave}", rows, schedule.scales)):
                most = 2**62 if schedule.is_due(scale, wave) else 0
                for sign, count in enumerate(read_items(subject, f"counts of wave {wave}", row, 2)):
                    counts[wave, scale, sign] = checked_integer(subject, f"counts of wave {wave}", count, 0, most)
        return cls(schedule, counts)

    def __repr__(self) -> str:
        return f"ChangeEstimates(waves={self.schedule.waves}, reports={self.counts.sum()})"


def estimate_changes(schedule: ChangeSchedule, reports: Mapping[int, npt.ArrayLike]) -> ChangeEstimates:
    """Estimate the share of people who are counted in every wave, and its changes, from reports about changes.

    Parameters
    ----------
    schedule
        The schedule of the reports.
    reports
        The reports of each wave by its number, from 0: an array of numbers, or a list of the arrays that
        :meth:`Ledger.answer_change` returned. People may leave out waves if that does not depend on their statuses.

    Returns
    -------
    ChangeEstimates
        The estimates, with upper bounds of their standard errors.

    Raises
    ------
    InvalidInput
        If a wave or a report does not belong to the schedule.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["not yet", "infected before"])
    >>> schedule = sf.mechanisms.ChangeSchedule(domain, ["infected before"], "ln 3", waves=2)
    >>> print(sf.estimate_changes(schedule, {0: [1] * 55 + [0] * 45}).change(0))
    0.2 ± 0.2
    """
    checked_type(_FUNCTION, "the schedule", schedule, ChangeSchedule)
    if not isinstance(reports, Mapping):
        raise InvalidInput(_FUNCTION, "the reports", "be a mapping from numbers of waves to reports", reports)
    counts = np.zeros((schedule.waves, schedule.scales, 2), dtype=np.int64)
    for wave, each in reports.items():
        number = checked_integer(_FUNCTION, "the wave", plain_integer(wave), 0, schedule.waves - 1)
        counts[number] = _counted(schedule, number, each)
    return ChangeEstimates(schedule, counts)


def _counted(schedule: ChangeSchedule, wave: int, reports: npt.ArrayLike) -> Integers:
    """Return the number of reports of each scale and sign in a wave."""
    listed = isinstance(reports, (list, tuple)) and not all(isinstance(each, int) for each in reports)
    parts = [np.ravel(part) for part in reports] if listed else [np.ravel(reports)]  # type: ignore[union-attr]
    flat = np.concatenate([part for part in parts if part.size] or [np.zeros(0, dtype=np.int64)])
    sizes = [2 * scale + sign for scale in range(schedule.scales) if schedule.is_due(scale, wave) for sign in (0, 1)]
    if flat.dtype.kind not in "iu" or not np.isin(flat, sizes).all():
        got = Description(f"{flat[~np.isin(flat, sizes)][:3].tolist()}" if flat.dtype.kind in "iu" else f"{flat.dtype}")
        raise InvalidInput(_FUNCTION, f"the reports of wave {wave}", f"be integers of {sizes}", got)
    return np.bincount(flat.astype(np.int64), minlength=2 * schedule.scales).reshape(-1, 2)
