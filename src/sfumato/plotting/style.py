"""Size and colours of all figures, and the function that writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._core import import_optional, replacing
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BAND", "FREQUENCY", "INK", "MOST_BARS", "TRUTH", "display", "label_ticks", "new_figure", "save"]

#: Maximum number of bars; more frequencies are drawn as a line with a band.
MOST_BARS = 60
#: Colours of lines and the best bar, of bars and bands, and of the truth.
INK, BAND, TRUTH = "#1f4e79", "#9dc3e6", "#c55a11"
FREQUENCY = "frequency (fraction of people)"
#: Maximum characters of a label; the rest of it is cut.
_LONGEST_LABEL = 28
#: Inches that one character of an upright label takes.
_CHARACTER = 0.095


def display(label: object) -> str:
    """Return a label for a figure: tuples joined by dots, long labels cut, dollar signs not read as formulas."""
    shown = " · ".join(map(str, label)) if isinstance(label, tuple) else str(label)
    shown = " ".join(shown.split())
    if len(shown) > _LONGEST_LABEL:
        shown = f"{shown[: _LONGEST_LABEL - 1]}…"
    return shown.replace("$", r"\$")


def label_ticks(axes: Any, places: Any, labels: Any, width: float) -> None:
    """Label the ticks of the horizontal axis; turn the labels if they would overlap on a figure of this width."""
    shown = [display(label) for label in labels]
    is_wide = max(map(len, shown)) * _CHARACTER > 0.85 * width / len(shown)
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_wide or len(shown) > 8 else {}
    axes.set_xticks(places, shown, **turned)


def new_figure(width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure of this size in inches, with one pair of axes."""
    figure: Figure = import_optional("matplotlib.figure", "plot", "drawing a figure").Figure(
        figsize=(width, height), layout="constrained"
    )
    return figure, figure.add_subplot()


def save(figure: Figure, path: Path | str) -> None:
    """Write a figure to an SVG or PNG file.

    The function writes the whole file or nothing, and replaces an existing file. The same figure produces the same
    bytes. PNG files have 150 dots per inch.

    Parameters
    ----------
    figure
        A matplotlib figure, such as one that a function of this module returned.
    path
        Path of the file, which must end in ``.svg`` or ``.png``; the ending selects the format.

    Raises
    ------
    InvalidInput
        If the path has another ending, or the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sfumato import Domain, Uniform
    >>> from sfumato.plotting import plot_epsilons, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "levels.svg"
    ...     save(plot_epsilons(Uniform(Domain.range(3), 1)), path)
    ...     path.exists()
    True
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".svg", ".png"):
        raise InvalidInput(str(path), "the name of the plot file", "end in .svg or .png", Path(path).name)
    import matplotlib

    metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
    with replacing(path) as file, matplotlib.rc_context({"svg.hashsalt": "sfumato", "svg.fonttype": "none"}):
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=metadata)
