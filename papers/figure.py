"""Figures of experiments: panels of curves in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato._core import import_optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Curve", "Panel", "draw"]

#: Maximum number of panels in a row.
_PANELS_PER_ROW = 4


@dataclass(frozen=True)
class Curve:
    """A labelled curve; ``ours`` is drawn bold, and ``printed``, an erroneous curve of the paper, is dashed."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    ours: bool = False
    printed: bool = False
    points: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log: str = ""


def draw(title: str, panels: Sequence[Panel]) -> Figure:
    """Draw all panels in one figure, with one legend if all panels have the same labels."""
    across = min(len(panels), _PANELS_PER_ROW)
    down = -(-len(panels) // across)
    figure: Figure = import_optional("matplotlib.figure", "plot", "drawing a figure").Figure(
        figsize=(1.2 + 3.4 * across, 0.6 + 2.9 * down), layout="constrained"
    )
    figure.suptitle(title)
    every: list[Any] = list(figure.subplots(down, across, squeeze=False).ravel())
    for axes, panel in zip(every, panels, strict=False):
        _draw_panel(axes, panel)
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    alike = len({tuple(curve.label for curve in panel.curves) for panel in panels}) == 1
    for axes in every[:1] if alike else every[: len(panels)]:
        axes.legend(frameon=False, fontsize="x-small")
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    """Draw one panel."""
    for curve in panel.curves:
        if curve.points:
            # Rasterize the points, because thousands of vector points make a large file.
            axes.plot(curve.x, curve.y, ".", markersize=3, alpha=0.5, rasterized=True, label=curve.label)
            continue
        style = "--" if curve.printed else "-"
        axes.plot(curve.x, curve.y, style, linewidth=2.4 if curve.ours else 1.2, label=curve.label)
    if "x" in panel.log:
        axes.set_xscale("log")
    if "y" in panel.log:
        axes.set_yscale("log")
    axes.set_title(panel.title, fontsize="medium")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
