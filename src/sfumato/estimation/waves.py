"""Estimates over time: one per wave of a survey, and changes and means whose errors respect the shared answers.

People who take part in several waves are not independent samples, and a device that keeps a permanent answer reports
about it again. The covariance between two waves follows from pairs of reports of the same people. Without such pairs,
the counts do not determine it, and bounds are used.
"""

from __future__ import annotations

import functools
import itertools
import math
import types
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sfumato._core import (
    MOST_ROWS,
    Floats,
    FrozenData,
    Result,
    check_keys,
    checked_type,
    is_number,
    percent,
    plot_result,
    quantity,
    read_flag,
    read_items,
    read_only,
    read_string,
    reads_document,
    unused_name,
)
from sfumato.collecting import Aggregate, PairCounts, group_document, read_group
from sfumato.domain import Domain
from sfumato.errors import Description, InvalidInput, LimitExceeded, UnknownLabel
from sfumato.estimation.documents import VERSION, check_document, numbers, read_header, read_numbers_of
from sfumato.estimation.estimates import Estimate, value_table
from sfumato.estimation.frequencies import estimate
from sfumato.estimation.linear import LinearEstimate, check_confidence
from sfumato.estimation.mechanism_estimates import MechanismEstimate
from sfumato.mechanisms import (
    Estimator,
    Mechanism,
    greatest_stale_share,
    keeps_answers,
    mechanism_from_spec,
    shared_moments,
)

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["WaveEstimates", "WaveTable", "estimate_waves"]

_FUNCTION = "estimate_waves"
#: Methods of ``estimate`` whose standard errors are those of the estimator of the mechanism.
_METHODS = ("unbiased", "simplex", "mle")
#: Maximum number of values for bounds that depend on the share of people who change; they need a matrix of moments.
_MOST_VALUES = 2000
#: Maximum number of frequencies printed in the row of a wave.
_MOST_SHOWN = 5

#: Number of people who took part in two waves: the least and the greatest possible number.
Common = tuple[float, float]


@dataclass(frozen=True, eq=False, repr=False)
class WaveEstimates(FrozenData, Result):
    """One estimate per wave of a survey that is repeated, with changes between waves and means over waves.

    ``result["May"]`` returns the :class:`Estimate` of one wave, with its intervals. :func:`estimate_waves` returns
    objects of this class.

    Parameters
    ----------
    waves
        The estimate of each wave by its name, in the order of time.
    pairs
        Joint counts of the reports of the people who took part in two waves, by the names of the two waves.
    overlap
        What is known about the people who took part in two waves (see :func:`estimate_waves`).
    change_rate
        The greatest share of people whose value changes from one wave to the next, or None if it is not known.

    Notes
    -----
    Let p and p' be the frequencies of two waves, and u(x) the share of people who have the value x in both. φ_v(y) is
    the frequency of v estimated from one report y. Two reports of a person about different values are independent. Two
    reports about the same value x share a stored answer, and E[φ_v(Y)·φ_v(Y') | x] = C_v(x) is known. The covariance of
    the two estimates of v from one person is therefore Σ_x u(x)·C_v(x) - p_v·p'_v.

    - With linked reports (``pairs``), the covariance is estimated without bias from the people themselves. Intervals of
      changes then have their nominal coverage, up to the normal approximation.
    - Without them, u is not known. The variance of a change uses the u with the least covariance, at the estimated
      frequencies, if at most a share r = ``change_rate``·(number of steps) of people change. Then Σ_x u(x) ≥ 1 - r and
      (p_x + p'_x - r)/2 ≤ u(x) ≤ min(p_x, p'_x). The variance of a mean uses the greatest covariance, by the inequality
      of Cauchy and Schwarz. Such intervals are conservative: they cover at least nominally.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), "ln 3")
    >>> april, may = [0] * 60 + [1] * 40, [0] * 50 + [1] * 50
    >>> counts = {"April": sf.aggregate(mechanism, april), "May": sf.aggregate(mechanism, may)}
    >>> result = sf.estimate_waves(mechanism, counts, overlap=0)
    >>> print(result)
    2 waves, method unbiased, frequency ± standard error of 2 values
    wave   reports               no              yes
    April      100  0.7000 ± 0.0980  0.3000 ± 0.0980
    May        100  0.5000 ± 0.1000  0.5000 ± 0.1000
    >>> print(result.change("April", "May")["yes"])
    0.2 ± 0.14
    """

    waves: Mapping[Any, MechanismEstimate]
    pairs: Mapping[tuple[Any, Any], PairCounts]
    overlap: float | Mapping[tuple[Any, Any], int] | None = None
    change_rate: float | None = None

    format: ClassVar[str] = "sfumato-wave-estimates"

    def __post_init__(self) -> None:
        for name in ("waves", "pairs", "overlap"):
            value = getattr(self, name)
            if isinstance(value, Mapping):
                object.__setattr__(self, name, types.MappingProxyType(dict(value)))

    def __getstate__(self) -> dict[str, Any]:
        # A read-only mapping cannot be pickled.
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in super().__getstate__().items()}

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that produced the reports of all waves."""
        return next(iter(self.waves.values())).mechanism

    @property
    def domain(self) -> Domain:
        """The domain: the values whose frequencies are estimated, in domain order."""
        return self.mechanism.domain

    def __getitem__(self, wave: Hashable) -> MechanismEstimate:
        """Return the estimate of a wave; raise UnknownLabel, which is also a KeyError, for an unknown wave."""
        if wave not in self:
            raise UnknownLabel("WaveEstimates", "the wave", f"be one of {list(self.waves)}", wave)
        return self.waves[wave]

    def __len__(self) -> int:
        return len(self.waves)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.waves)

    def __contains__(self, wave: object) -> bool:
        try:
            return wave in self.waves
        except TypeError:  # a list, or a tuple with a list inside
            return False

    @property
    def greatest_biases(self) -> Floats:
        """The greatest bias of the frequencies of each wave, because devices report about earlier values.

        It is 0 unless the mechanism has ``max_changes`` or ``refresh_every``. Such devices keep answering about the
        last value that they know. The bound assumes that the waves here are all waves since the start of the survey,
        and that at most a share ``change_rate`` of people change from one wave to the next; without it, that all people
        may. Intervals do not include it. Devices whose ledger has a budget may report about earlier values sooner.
        """
        rate = 1.0 if self.change_rate is None else self.change_rate
        return np.array([greatest_stale_share(self.mechanism, step, rate) for step in range(len(self.waves))])

    @property
    def warnings(self) -> tuple[str, ...]:
        """The greatest bias in words, if devices may report about earlier values; otherwise empty."""
        biases = self.greatest_biases.tolist()
        if not any(biases):
            return ()
        worst = max(biases)
        wave, share = list(self.waves)[biases.index(worst)], math.ceil(worst * 1000 - 1e-6) / 1000
        known = "" if self.change_rate is None else f" if at most {percent(self.change_rate)} of people change per wave"
        return (
            f"Devices may report about earlier values: up to {percent(share)} of people in wave {wave!r}{known}. "
            "Frequencies may be wrong by as much, which errors and intervals do not include.",
        )

    # -- changes and means -------------------------------------------------------------------------------------

    def change(self, first: Hashable, second: Hashable) -> WaveTable:
        """Estimate the frequency of every value in one wave minus its frequency in an earlier one.

        Parameters
        ----------
        first
            Name of the wave from which the change starts; its frequencies are subtracted.
        second
            Name of the wave in which the change ends.

        Returns
        -------
        WaveTable
            A mapping from values to changes, each with its error and interval (:class:`LinearEstimate`).

        Raises
        ------
        InvalidInput
            If both names are the same, or one of them is not a wave.
        LimitExceeded
            If ``change_rate`` is set, the two waves are not linked, and the domain has more than 2,000 values.
        """
        if first == second:
            raise InvalidInput("change", "the waves", "be two different waves", Description(f"{first!r} twice"))
        start, end = self[first], self[second]
        covariance = self._covariance(first, second, least=True)
        most = start.standard_errors * end.standard_errors
        shared = np.clip(covariance, -most, most)
        variances = start.standard_errors**2 + end.standard_errors**2 - 2 * shared
        return WaveTable(
            "change",
            (first, second),
            self.domain,
            end.unbiased - start.unbiased,
            np.sqrt(np.maximum(variances, 0)),
            unseen=np.maximum(start._far / start.n, end._far / end.n),
            is_linked=self._is_known(first, second),
        )

    def mean(self) -> WaveTable:
        """Estimate the mean frequency of every value over all waves, each with the same weight.

        Returns
        -------
        WaveTable
            A mapping from values to mean frequencies, each with its error and interval (:class:`LinearEstimate`).
        """
        names, estimates = list(self.waves), list(self.waves.values())
        variances = np.sum([each.standard_errors**2 for each in estimates], axis=0)
        for first, second in itertools.combinations(names, 2):
            most = self[first].standard_errors * self[second].standard_errors
            variances = variances + 2 * np.clip(self._covariance(first, second, least=False), -most, most)
        return WaveTable(
            "frequency",
            tuple(names),
            self.domain,
            np.mean([each.unbiased for each in estimates], axis=0),
            np.sqrt(np.maximum(variances, 0)) / len(names),
            unseen=np.max([each._far / each.n for each in estimates], axis=0) / len(names),
            is_linked=all(self._is_known(*pair) for pair in itertools.combinations(names, 2)),
        )

    def _is_known(self, first: Hashable, second: Hashable) -> bool:
        """Return whether the covariance between two waves is known or estimated, and not only bounded."""
        return self._pair(first, second) is not None or self._common(first, second)[1] == 0

    def _pair(self, first: Hashable, second: Hashable) -> PairCounts | None:
        """Return the joint counts of two waves in either order, or None."""
        return self.pairs.get((first, second), self.pairs.get((second, first)))

    def _common(self, first: Hashable, second: Hashable) -> Common:
        """Return the least and the greatest number of people who took part in both waves."""
        n, m = self[first].n, self[second].n
        if isinstance(self.overlap, Mapping):
            known = self.overlap.get((first, second), self.overlap.get((second, first)))
            return (0, min(n, m)) if known is None else (known, known)
        if self.overlap is None:
            return 0, min(n, m)
        return self.overlap * min(n, m), self.overlap * min(n, m)

    def _covariance(self, first: Hashable, second: Hashable, *, least: bool) -> Floats:
        """Return the covariance of each value's frequencies in two waves, or its least or greatest possible value."""
        start, end = self[first], self[second]
        total = start.n * end.n
        pair = self._pair(first, second)
        if pair is not None:
            return _linked_covariance(self.mechanism.estimator, pair) * (pair.n / total)
        p, q = start.nearest, end.nearest
        few, many = self._common(first, second)
        if many == 0:
            return np.zeros(len(p))
        if not least:
            each = np.sqrt(shared_moments(self.mechanism, p) * shared_moments(self.mechanism, q)) - p * q
            return np.asarray(np.maximum(few * each, many * each) / total)
        names = list(self.waves)
        steps = abs(names.index(first) - names.index(second))
        changed = 1.0 if self.change_rate is None else min(1.0, self.change_rate * steps)
        each = self._least_moments(p, q, changed) - p * q
        return np.asarray(np.minimum(few * each, many * each) / total)

    def _least_moments(self, p: Floats, q: Floats, changed: float) -> Floats:
        """Return the least Σ_x u(x)·C_v(x) for each value v, if at most a share ``changed`` of people change."""
        # People who leave x, p_x - u(x), and people who come to x, q_x - u(x), are different people who change. Those
        # who leave, come and stay are at most all people.
        most = np.minimum(p, q)
        least = np.minimum(most, np.maximum(np.maximum(p + q - 1, (p + q - changed) / 2), 0.0))
        # Of the rest of the people who may stay, as many as possible change, at the greatest moments first.
        free = most - least
        leaving = max(float(most.sum()) - (1 - changed), 0.0)
        if not keeps_answers(self.mechanism):  # two reports about x may be independent: C_v(x) = [v = x]
            return least + np.maximum(free - leaving, 0.0)
        if changed >= 1:
            return np.asarray(shared_moments(self.mechanism, least))
        moments = self._shared_moments
        order = np.argsort(-moments, axis=0, kind="stable")
        mass = free[order]
        staying = np.clip(np.cumsum(mass, axis=0) - leaving, 0.0, mass)
        return np.asarray((staying * np.take_along_axis(moments, order, axis=0)).sum(axis=0) + least @ moments)

    @functools.cached_property
    def _shared_moments(self) -> Floats:
        """The matrix of C_v(x), with a row for each value x."""
        size = len(self.domain)
        if size > _MOST_VALUES:
            raise LimitExceeded(
                f"the share of people who change is used for at most {_MOST_VALUES:,} values, not {size:,}. Leave out "
                "change_rate, or pass pairs of linked reports."
            )
        return np.array([shared_moments(self.mechanism, unit) for unit in np.eye(size)])

    # -- tables and pictures -----------------------------------------------------------------------------------

    def to_pandas(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pandas.DataFrame:
        """Return the frequencies as a pandas DataFrame with one row per wave and value.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals of a wave together contain the true frequencies with this confidence (Bonferroni
            correction). If False, each interval does so on its own.

        Returns
        -------
        pandas.DataFrame
            The column ``wave`` and the columns of ``Estimate.to_pandas``.
        """
        return super().to_pandas(confidence, simultaneous=simultaneous)

    def to_arrow(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals of a wave together contain the true frequencies with this confidence (Bonferroni
            correction). If False, each interval does so on its own.

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``. Labels that are tuples become strings.
        """
        return super().to_arrow(confidence, simultaneous=simultaneous)

    def plot(self, confidence: float = 0.95, values: Sequence[Any] | None = None) -> Figure:
        """Draw the frequency of each value over the waves as a line, with its interval as a band.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.
        values
            The values to draw. By default, the six values with the largest mean frequencies.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence, values)
        return figure

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        tables = [each._columns(confidence, simultaneous=simultaneous) for each in self.waves.values()]
        size = len(self.domain)
        columns: dict[str, Any] = {"wave": [wave for wave in self.waves for _ in range(size)]}
        for name in tables[0]:
            parts: list[Any] = [table[name] for table in tables]
            arrays = isinstance(parts[0], np.ndarray)
            joined = np.concatenate(parts) if arrays else list(itertools.chain.from_iterable(parts))
            columns[unused_name(name, columns)] = joined
        return columns

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        most = np.argsort(-np.mean([each.frequencies for each in self.waves.values()], axis=0), kind="stable")
        chosen = (most[:_MOST_SHOWN] if len(self.domain) > _MOST_SHOWN else np.arange(len(self.domain))).tolist()
        rows = list(self.waves.items())[:MOST_ROWS]
        columns: dict[str, Sequence[Any]] = {
            "wave": [str(wave) for wave, _ in rows],
            "reports": [each.n for _, each in rows],
        }
        for x in chosen:
            cells = [f"{each.frequencies[x]:.4f} ± {each.standard_errors[x]:.4f}" for _, each in rows]
            columns[unused_name(str(self.domain.label(x)), columns)] = cells
        return columns

    def _left_out(self) -> int:
        return max(0, len(self.waves) - MOST_ROWS)

    def _title(self) -> str:
        size, most = len(self.domain), _MOST_SHOWN
        values = f"the {most} most frequent of {size:,} values" if size > most else quantity(size, "value")
        method = next(iter(self.waves.values())).method
        return f"{quantity(len(self.waves), 'wave')}, method {method}, frequency ± standard error of {values}"

    def _notes(self) -> Sequence[str]:
        return self.warnings

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The spec of the mechanism, the estimate of every wave, the joint counts, and what is known about people.

        Raises
        ------
        InvalidInput
            If the name of a wave is not a string, a finite number, a boolean, None, a date, a time or a tuple of these.
        """
        waves = []
        for wave, each in self.waves.items():
            document = each.to_dict()
            del document["mechanism"]
            waves.append({"wave": group_document(wave, "WaveEstimates"), "estimate": document})
        overlap: Any = self.overlap
        if isinstance(overlap, Mapping):
            overlap = [{**_names_document(names), "people": people} for names, people in overlap.items()]
        return {
            "format": self.format,
            "version": VERSION,
            "mechanism": self.mechanism.spec,
            "waves": waves,
            "pairs": [{**_names_document(names), "counts": pair.to_dict()} for names, pair in self.pairs.items()],
            "overlap": overlap,
            "change_rate": self.change_rate,
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> WaveEstimates:
        """Return the estimates that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        WaveEstimates
            Estimates equal to those that were written, with the same errors and intervals.

        Raises
        ------
        InvalidInput
            If the dict is malformed, has one wave twice or none, or contradicts itself (see ``Estimate.from_dict``).
        """
        subject = "WaveEstimates.from_dict"
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("mechanism", "waves", "pairs", "overlap", "change_rate"))
        mechanism = mechanism_from_spec(document["mechanism"])
        waves: dict[Any, MechanismEstimate] = {}
        for row in read_items(subject, "waves", document["waves"]):
            row = check_keys(subject, "a row of waves", row, required=("wave", "estimate"))
            wave, each = read_group(subject, row["wave"]), Estimate.from_dict(row["estimate"], mechanism=mechanism)
            if wave in waves or not isinstance(each, MechanismEstimate) or each.method not in _METHODS:
                raise InvalidInput(subject, "waves", "have one estimate of frequencies for each wave", row["wave"])
            waves[wave] = each
        if not waves:
            raise InvalidInput(subject, "waves", "contain at least one wave", document["waves"])
        pairs = {}
        for names, row in _read_rows(subject, "pairs", document["pairs"], "counts"):
            pairs[names] = PairCounts.from_dict(row)
            _check_pair(mechanism, waves, names, pairs[names])
        overlap = document["overlap"]
        if isinstance(overlap, list):
            overlap = dict(_read_rows(subject, "overlap", overlap, "people"))
        return cls(waves, pairs, _checked_overlap(waves, overlap), _checked_rate(document["change_rate"]))

    def __repr__(self) -> str:
        n = sum(each.n for each in self.waves.values())
        return f"WaveEstimates(waves={len(self.waves)}, n={n}, values={len(self.domain)}, linked={len(self.pairs)})"


@dataclass(frozen=True, eq=False, repr=False)
class WaveTable(FrozenData, Result, Mapping[Any, LinearEstimate]):
    """A mapping from values to changes between two waves, or to mean frequencies over several waves.

    ``WaveEstimates.change`` and ``WaveEstimates.mean`` return such tables. ``table[value]`` is a
    :class:`LinearEstimate`, whose interval is normal. Numbers are those of the unbiased estimates, whatever the method.

    Parameters
    ----------
    quantity
        ``"change"`` (the later wave minus the earlier one) or ``"frequency"`` (the mean over waves).
    waves
        The names of the waves.
    domain
        The domain of the values.
    numbers
        The change or the mean frequency of each value, shape (k,), in domain order.
    standard_errors
        The standard error of each number, shape (k,).
    unseen
        The distance by which one additional report could move each number, shape (k,) (see :class:`LinearEstimate`).
    is_linked
        Whether all covariances between waves are known: from linked reports, or because the waves have no people in
        common. If False, the standard errors are upper bounds.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), "ln 3")
    >>> april, may = [0] * 60 + [1] * 40, [0] * 50 + [1] * 50
    >>> counts = {"April": sf.aggregate(mechanism, april), "May": sf.aggregate(mechanism, may)}
    >>> pairs = {("April", "May"): sf.aggregate_pairs(mechanism, april, may)}
    >>> print(sf.estimate_waves(mechanism, counts, pairs=pairs).change("April", "May"))
    change: April to May, 95% intervals
    value    change  standard_error       low      high
    no     -0.20000         0.05864  -0.31493  -0.08507
    yes     0.20000         0.05864   0.08507   0.31493
    """

    quantity: str
    waves: tuple[Any, ...]
    domain: Domain
    numbers: Floats
    standard_errors: Floats
    unseen: Floats
    is_linked: bool

    format: ClassVar[str] = "sfumato-wave-table"

    def __post_init__(self) -> None:
        for name in ("numbers", "standard_errors", "unseen"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __getitem__(self, label: object) -> LinearEstimate:
        """Return the number of one value; raise UnknownLabel if the label is not a value of the domain."""
        if label not in self.domain:
            raise UnknownLabel("WaveTable", "the label", f"be a value of {self.domain!r}", label)
        x = self.domain.index(label)
        number, error, unseen = (float(array[x]) for array in (self.numbers, self.standard_errors, self.unseen))
        return LinearEstimate(number, error, unseen=unseen)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.domain)

    def __len__(self) -> int:
        return len(self.domain)

    def __contains__(self, label: object) -> bool:
        return label in self.domain

    __eq__ = FrozenData.__eq__
    __hash__ = FrozenData.__hash__

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the lower and upper confidence limits of each number.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1. If ``is_linked`` is False, the intervals cover with at least this
            probability.

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, each of shape (k,), in domain order.
        """
        check_confidence(confidence)
        arrays = (self.numbers, self.standard_errors, self.unseen)
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        limits = [LinearEstimate(number, error, unseen=unseen).interval(confidence) for number, error, unseen in rows]
        low, high = np.array(limits).T
        return low, high

    def to_pandas(self, confidence: float = 0.95) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame with one row per value.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pandas.DataFrame
            The columns ``value``, ``change`` or ``frequency``, ``standard_error``, ``low`` and ``high``, with rows in
            domain order. Grid and product domains add columns, as in ``Estimate.to_pandas``.
        """
        return super().to_pandas(confidence)

    def to_arrow(self, confidence: float = 0.95) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``. Labels that are tuples become strings.
        """
        return super().to_arrow(confidence)

    def plot(self, confidence: float = 0.95) -> Figure:
        """Draw one bar per value with its confidence interval; negative changes extend below 0.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence)
        return figure

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        low, high = self.interval(confidence)
        columns = {self.quantity: self.numbers, "standard_error": self.standard_errors, "low": low, "high": high}
        return value_table(self.domain, columns)

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        top = np.arange(len(self))
        if len(self) > MOST_ROWS:
            top = np.argsort(-np.abs(self.numbers), kind="stable")[:MOST_ROWS]
        low, high = self.interval()
        columns = {self.quantity: self.numbers, "standard_error": self.standard_errors, "low": low, "high": high}
        labels = [str(self.domain.label(x)) for x in top.tolist()]
        return {"value": labels, **{name: [f"{cell:.5f}" for cell in column[top]] for name, column in columns.items()}}

    def _left_out(self) -> int:
        return max(0, len(self) - MOST_ROWS)

    def _title(self) -> str:
        shown = " to ".join(map(str, self.waves))
        if self.quantity != "change":
            shown = f"mean over {quantity(len(self.waves), 'wave')}"
        return f"{self.quantity}: {shown}, {percent(0.95)} intervals"

    def _notes(self) -> Sequence[str]:
        if self.is_linked:
            return ()
        return ("The standard errors are upper bounds, because reports of the same people are not linked.",)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per field.
        """
        arrays = {name: numbers(getattr(self, name)) for name in ("numbers", "standard_errors", "unseen")}
        return {
            "format": self.format,
            "version": VERSION,
            "quantity": self.quantity,
            "waves": [group_document(wave, "WaveTable") for wave in self.waves],
            "domain": self.domain.to_dict(),
            **arrays,
            "is_linked": self.is_linked,
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> WaveTable:
        """Return the table that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        WaveTable
            A table equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed. Its numbers are not checked, because it has no counts.
        """
        subject, names = "WaveTable.from_dict", ("numbers", "standard_errors", "unseen")
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("quantity", "waves", "domain", *names, "is_linked"))
        domain = Domain.from_dict(document["domain"])
        quantity = read_string(subject, "quantity", document["quantity"])
        if quantity not in ("change", "frequency"):
            raise InvalidInput(subject, "quantity", "be 'change' or 'frequency'", quantity)
        waves = tuple(read_group(subject, wave) for wave in read_items(subject, "waves", document["waves"]))
        values, errors, unseen = (read_numbers_of(subject, name, document[name], len(domain)) for name in names)
        if min(float(errors.min()), float(unseen.min())) < 0:
            raise InvalidInput(subject, "standard_errors", "be at least 0", document["standard_errors"])
        is_linked = read_flag(subject, "is_linked", document["is_linked"])
        return cls(quantity, waves, domain, values, errors, unseen, is_linked)

    def __repr__(self) -> str:
        return f"WaveTable({self.quantity!r}, waves={len(self.waves)}, values={len(self)}, is_linked={self.is_linked})"


def estimate_waves(
    mechanism: Mechanism,
    aggregates: Mapping[Any, Aggregate],
    method: str = "unbiased",
    *,
    pairs: Mapping[tuple[Any, Any], PairCounts] | None = None,
    overlap: float | Mapping[tuple[Any, Any], int] | None = None,
    change_rate: float | None = None,
) -> WaveEstimates:
    """Estimate the frequencies in each wave of a repeated survey, with changes between waves and means over waves.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports of all waves, such as one from ``design(policy, lifetime=...)``.
    aggregates
        The counts of each wave, from :func:`aggregate`, by the name of the wave and in the order of time.
    method
        A method of :func:`estimate`: ``"unbiased"``, ``"simplex"`` or ``"mle"``.
    pairs
        Joint counts of all people who took part in two waves, from :func:`aggregate_pairs`, by the names of the two
        waves. The errors of a change between linked waves are nominal; between others, they are bounds.
    overlap
        The people who took part in two waves, if no pairs link them: 1 for a panel, 0 for different people in every
        wave, or another share of the people of the smaller wave. For a rotating sample, a mapping from pairs of waves
        to the number of common people. None, or a pair that is not in the mapping, allows every number.
    change_rate
        The greatest share of people whose value changes from one wave to the next, if you know a bound. It narrows the
        intervals of changes between waves that are not linked. By default, all values may change.

    Returns
    -------
    WaveEstimates
        The estimate of each wave. Its methods estimate changes and means.

    Raises
    ------
    InvalidInput
        If there are no waves, counts are empty or do not belong to the mechanism, pairs or overlaps do not fit the
        waves, or the reports do not distinguish all values.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), "ln 3")
    >>> counts = {week: sf.aggregate(mechanism, [0] * (60 - week) + [1] * (40 + week)) for week in range(1, 5)}
    >>> result = sf.estimate_waves(mechanism, counts, overlap=1)
    >>> print(result.change(1, 4)["yes"])
    0.06 ± 0.15
    >>> result.change(1, 4).is_linked
    False
    """
    if not isinstance(aggregates, Mapping):
        raise InvalidInput(_FUNCTION, "the aggregates", "be a mapping from names of waves to aggregates", aggregates)
    if not aggregates:
        raise InvalidInput(_FUNCTION, "the aggregates", "contain at least one wave", {})
    if method not in _METHODS:
        raise InvalidInput(_FUNCTION, "method", f"be one of {', '.join(_METHODS)}", method)
    checked_type(_FUNCTION, "the mechanism", mechanism, Mechanism)
    if not mechanism.estimator.is_complete:
        hint = "Estimate each wave with estimate(), and compare its sums."
        must = "distinguish all values in its reports"
        raise InvalidInput(_FUNCTION, "the mechanism", must, mechanism, hint=hint)
    waves: dict[Any, MechanismEstimate] = {}
    for wave, counts in aggregates.items():
        if getattr(counts, "n", 1) == 0:
            hint = "Leave out waves without reports."
            got = Description(f"no reports in {wave!r}")
            raise InvalidInput(_FUNCTION, "every wave", "have at least one report", got, hint=hint)
        result = estimate(mechanism, counts, method)
        assert isinstance(result, MechanismEstimate)
        waves[wave] = result
    linked = {} if pairs is None else dict(pairs)
    for names, pair in linked.items():
        _check_pair(mechanism, waves, names, pair)
    return WaveEstimates(waves, linked, _checked_overlap(waves, overlap), _checked_rate(change_rate))


def _names_document(names: tuple[Any, Any]) -> dict[str, Any]:
    """Return the names of two waves as documents store them."""
    return {key: group_document(name, "WaveEstimates") for key, name in zip(("first", "second"), names, strict=True)}


def _read_rows(subject: str, parameter: str, document: Any, key: str) -> Iterator[tuple[tuple[Any, Any], Any]]:
    """Yield the names of two waves and the entry for them, from rows of a document."""
    for row in read_items(subject, parameter, document):
        row = check_keys(subject, f"a row of {parameter}", row, required=("first", "second", key))
        yield (read_group(subject, row["first"]), read_group(subject, row["second"])), row[key]


def _checked_rate(rate: Any) -> float | None:
    """Return the share of people who change, or raise InvalidInput."""
    if rate is not None and not (is_number(rate) and 0 <= rate <= 1):
        raise InvalidInput(_FUNCTION, "change_rate", "lie between 0 and 1", rate)
    return None if rate is None else float(rate)


def _two_waves(parameter: str, waves: Mapping[Any, Any], names: Any) -> tuple[Any, Any]:
    """Return the two waves that a key names, or raise InvalidInput."""
    if not (isinstance(names, tuple) and len(names) == 2 and names[0] != names[1] and all(n in waves for n in names)):
        must = f"have keys that name two of the waves {list(waves)}"
        raise InvalidInput(_FUNCTION, parameter, must, names)
    return names[0], names[1]


def _check_pair(mechanism: Mechanism, waves: Mapping[Any, MechanismEstimate], names: Any, pair: PairCounts) -> None:
    """Raise InvalidInput unless joint counts can be those of two waves."""
    first, second = _two_waves("pairs", waves, names)
    hint = "Count them with aggregate_pairs(mechanism, first, second)."
    checked_type(_FUNCTION, f"the pairs of {names!r}", pair, PairCounts)
    pair.check(mechanism)
    for wave, part in ((first, pair.first), (second, pair.second)):
        if (part.counts > waves[wave].counts.counts).any() or part.n > waves[wave].n:
            must = f"count only reports of the waves {first!r} and {second!r}"
            raise InvalidInput(_FUNCTION, f"the pairs of {names!r}", must, pair, hint=hint)


def _checked_overlap(waves: Mapping[Any, MechanismEstimate], overlap: Any) -> Any:
    """Return the overlap if it fits the waves, or raise InvalidInput."""
    if isinstance(overlap, Mapping):
        for names, number in overlap.items():
            first, second = _two_waves("overlap", waves, names)
            most = min(waves[first].n, waves[second].n)
            if type(number) is not int or not 0 <= number <= most:
                must = f"be a number of people from 0 to {most}"
                raise InvalidInput(_FUNCTION, f"the overlap of {names!r}", must, number)
        return dict(overlap)
    if overlap is not None and not (is_number(overlap) and 0 <= overlap <= 1):
        hint = "Pass 1 for a panel, 0 for different people, or a mapping from pairs of waves to numbers of people."
        raise InvalidInput(_FUNCTION, "overlap", "be a share between 0 and 1", overlap, hint=hint)
    return None if overlap is None else float(overlap)


def _linked_covariance(estimator: Estimator, pair: PairCounts) -> Floats:
    """Return the unbiased covariance, over people, of the scores of their two reports for each value."""
    if pair.n < 2:
        return np.zeros(estimator.size)
    # The estimate is affine in the counts, so the covariance of two scores is a quadratic form of joint counts.
    size = len(pair.joint)
    constant = estimator.frequencies(np.zeros(size))
    slopes = np.array([estimator.frequencies(unit) - constant for unit in np.eye(size)]).T
    products = (slopes @ pair.joint) * slopes
    means = [slopes @ (part.counts / math.sqrt(pair.n)) for part in (pair.first, pair.second)]
    return np.asarray((products.sum(axis=1) - means[0] * means[1]) / (pair.n - 1))
