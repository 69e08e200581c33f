"""Figures of central levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato._core import register_plot, rounded_up
from sfumato.auditing import Amplification
from sfumato.plotting.style import INK, MOST_BARS, TRUTH, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_amplification"]


@register_plot(Amplification)
def plot_amplification(amplification: Amplification) -> Figure:
    """Plot the level of one report and the central level of every kind of protected pair.

    If there are more than 60 kinds, the figure shows the 60 with the greatest central levels.

    Parameters
    ----------
    amplification
        The levels, from :func:`amplify`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import sfumato as sf
    >>> policy = sf.Uniform(sf.Domain(["none", "flu", "hiv"]), 2)
    >>> result = sf.amplify(sf.mechanisms.RandomizedResponse(policy.domain, 2), policy, 10_000, "1e-6")
    >>> plot_amplification(result).axes[0].get_xlabel()
    'ε at δ = 1e-06'
    """
    rows = amplification.rows[:MOST_BARS]
    places = np.arange(len(rows))[::-1]
    figure, axes = new_figure(6.4, max(2.0, 0.35 * len(rows) + 1.4))
    axes.plot([float(row.local) for row in rows], places, "|", color=TRUTH, markersize=12, label="one report")
    axes.plot([row.epsilon.upper_float() for row in rows], places, "o", color=INK, label="batch, upper bound")
    lower = [(float(row.lower), place) for row, place in zip(rows, places, strict=True) if row.lower is not None]
    if lower:
        axes.plot(*zip(*lower, strict=True), "o", color=INK, fillstyle="none", label="batch, lower bound")
    axes.set_yticks(places, [f"{row.value} / {row.other}" for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"ε at δ = {rounded_up(amplification.delta, 6)}")
    axes.set_title(f"Central levels of {amplification.n:,} shuffled reports")
    axes.legend(frameon=False)
    return figure
