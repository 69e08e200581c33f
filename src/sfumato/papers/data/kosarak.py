"""Kosarak: clicks on the pages of a Hungarian news portal (FIMI repository, given by F. Bodon)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato.papers.data.folder import Loaded, bad_line, first_existing, text_lines

__all__ = ["PAGES", "page_clicks"]

_ORIGINAL = ("kosarak.dat", "kosarak.dat.gz")
_COUNTS = "kosarak_page_counts.npz"

#: Pages and clicks of the whole file.
PAGES, CLICKS = 41_270, 8_019_015


def page_clicks(folder: Path | None) -> Loaded[npt.NDArray[np.float64]]:
    """How often each page was clicked: from the original file, from an estimate of its counts, or invented."""
    original = first_existing(folder, *_ORIGINAL)
    if original is not None:
        return Loaded(_counted(original), f"all clicks, from {original.name}", False)
    counts = first_existing(folder, _COUNTS)
    if counts is not None:
        estimate = np.load(counts)["stratified_full_estimate"][1:].astype(np.float64)
        return Loaded(estimate, f"a stand-in: an estimate of the full counts from two parts ({counts.name})", True)
    weights = 1 / np.arange(1, PAGES + 1)
    return Loaded(CLICKS * weights / weights.sum(), "a stand-in: invented clicks with Zipf frequencies", True)


def _counted(path: Path) -> npt.NDArray[np.float64]:
    """One session a line, the numbers of its pages separated by blanks; pages count from one."""
    clicks = np.zeros(PAGES + 1)
    with text_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                pages = np.array(line.split(), dtype=np.int64)
            except ValueError:
                raise bad_line(path, number, "be page numbers separated by blanks", line) from None
            if len(pages) and not 1 <= pages.min() <= pages.max() <= PAGES:
                raise bad_line(path, number, f"have page numbers from 1 to {PAGES}", line)
            np.add.at(clicks, pages, 1)
    return clicks[1:]
