"""Whether a picture that a page's code draws is the one that the page shows."""

from __future__ import annotations

import re
from pathlib import Path

from support import ROOT

__all__ = ["as_shown"]

FIGURES = ROOT / "docs" / "figures"

#: Names that a drawing gives to its own parts: they are digests of what is drawn.
_DIGEST = re.compile(r"[mpC][0-9a-f_]{10,}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_NEARLY = 0.1


def as_shown(drawn: Path) -> bool:
    """The same lines, words and colours as the figure of this name in docs/figures.

    Places may differ by a tenth of a point: another processor rounds otherwise.
    """
    texts = [_plain(path.read_text(encoding="utf-8")) for path in (drawn, FIGURES / drawn.name)]
    first, second = ([float(number) for number in _NUMBER.findall(text)] for text in texts)
    return _NUMBER.sub("#", texts[0]) == _NUMBER.sub("#", texts[1]) and all(
        a == b or abs(a - b) < _NEARLY for a, b in zip(first, second, strict=True)
    )


def _plain(svg: str) -> str:
    """Without what a figure is kept without, and without what is packed (the scale of colours) or named by a digest."""
    left_out = r"<!DOCTYPE.*?>\s*| *<metadata>.*?</metadata>\n|base64,[^\"]*"
    return _DIGEST.sub("", re.sub(left_out, "", svg, flags=re.DOTALL))
