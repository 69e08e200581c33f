"""Figures of estimates over time: trends, changes between waves, and means over waves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._core import percent, quantity, register_plot
from sfumato.estimation import WaveEstimates, WaveTable
from sfumato.plotting.style import BAND, FREQUENCY, INK, MOST_BARS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_wave_table", "plot_waves"]

#: Number of values whose trend is drawn if the caller selects none.
_MOST_LINES = 6
#: Number of waves above which their names are turned.
_MOST_NAMES = 8


@register_plot(WaveEstimates)
def plot_waves(waves: WaveEstimates, confidence: float = 0.95, values: Sequence[Any] | None = None) -> Figure:
    """Plot the estimated frequency of each value over the waves of a survey, with its confidence interval as a band.

    Parameters
    ----------
    waves
        The estimates of the waves, from :func:`estimate_waves`.
    confidence
        Confidence level of the intervals, above 0 and below 1.
    values
        The values to draw. By default, the six values with the largest mean frequencies.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), "ln 3")
    >>> counts = {week: sf.aggregate(mechanism, [0] * (60 - week) + [1] * (40 + week)) for week in range(1, 5)}
    >>> plot_waves(sf.estimate_waves(mechanism, counts)).axes[0].get_title()
    'Estimated frequencies in 4 waves, 95% intervals'
    """
    estimates = list(waves.waves.values())
    if values is None:
        most = np.argsort(-np.mean([each.frequencies for each in estimates], axis=0), kind="stable")
        chosen = np.sort(most[:_MOST_LINES]).tolist()
    else:
        chosen = [waves.domain.index(value) for value in values]
    limits = [each.interval(confidence) for each in estimates]
    places = np.arange(len(estimates))
    figure, axes = new_figure(max(6.0, 0.28 * len(places)), 4.0)
    for x in chosen:
        low, high = (np.array([pair[side][x] for pair in limits]) for side in (0, 1))
        (line,) = axes.plot(places, [each.frequencies[x] for each in estimates], marker="o", markersize=3)
        line.set_label(str(waves.domain.label(x)))
        axes.fill_between(places, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    turned = {"rotation": 45, "ha": "right"} if len(places) > _MOST_NAMES else {}
    axes.set_xticks(places, [str(wave) for wave in waves], **turned)
    axes.set_xlabel("wave")
    axes.set_ylabel(FREQUENCY)
    axes.set_ylim(bottom=0)
    axes.set_title(f"Estimated frequencies in {quantity(len(places), 'wave')}, {percent(confidence)} intervals")
    axes.legend(frameon=False)
    return figure


@register_plot(WaveTable)
def plot_wave_table(table: WaveTable, confidence: float = 0.95) -> Figure:
    """Plot changes between two waves, or means over waves, as one bar per value with its confidence interval.

    If there are more than 60 values, the figure shows only the 60 with the largest absolute numbers, in domain order.

    Parameters
    ----------
    table
        A table from ``WaveEstimates.change`` or ``WaveEstimates.mean``.
    confidence
        Confidence level of the intervals, above 0 and below 1.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), "ln 3")
    >>> counts = {week: sf.aggregate(mechanism, [0] * (60 - week) + [1] * (40 + week)) for week in range(1, 5)}
    >>> plot_wave_table(sf.estimate_waves(mechanism, counts).change(1, 4)).axes[0].get_title()
    'Change of frequencies: 1 to 4'
    """
    chosen = np.sort(np.argsort(-np.abs(table.numbers), kind="stable")[:MOST_BARS])
    low, high = (limits[chosen] for limits in table.interval(confidence))
    places = np.arange(len(chosen))
    figure, axes = new_figure(max(6.0, 0.28 * len(chosen)), 4.0)
    is_change = table.quantity == "change"
    axes.bar(places, table.numbers[chosen], color=BAND, label=table.quantity)
    axes.vlines(places, low, high, color=INK, linewidth=1.5, label=f"{percent(confidence)} interval")
    axes.axhline(0, color="grey", linewidth=0.8)
    turned = {"rotation": 45, "ha": "right"} if len(places) > _MOST_NAMES else {}
    axes.set_xticks(places, [str(table.domain.label(x)) for x in chosen.tolist()], **turned)
    axes.set_xlabel("value")
    axes.set_ylabel("change (fraction of people)" if is_change else FREQUENCY)
    names = " to ".join(map(str, table.waves))
    mean = f"Mean frequencies over {quantity(len(table.waves), 'wave')}"
    axes.set_title(f"Change of frequencies: {names}" if is_change else mean)
    axes.legend(frameon=False)
    return figure
