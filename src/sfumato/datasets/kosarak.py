"""Kosarak: clicks on the pages of a Hungarian news portal (FIMI repository, provided by F. Bodon)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato.datasets.folder import Loaded, bad_line, first_existing, text_lines

__all__ = ["PAGES", "page_clicks"]

_ORIGINAL = ("kosarak.dat", "kosarak.dat.gz")
_COUNTS = "kosarak_page_counts.npz"

#: Number of pages and of clicks in the whole file.
PAGES, CLICKS = 41_270, 8_019_015


def page_clicks(folder: Path | None) -> Loaded[npt.NDArray[np.float64]]:
    """Return the number of clicks on each of 41,270 pages in the data set Kosarak.

    Kosarak holds the clicks on a Hungarian news portal (FIMI repository, provided by F. Bodon). The function uses the
    first data in this list that the folder has:

    1. ``kosarak.dat`` or ``kosarak.dat.gz``: the original file.
    2. ``kosarak_page_counts.npz``: an estimate of the counts from two parts of the file, a stand-in for the original.
    3. No file: invented clicks with Zipf frequencies, also a stand-in.

    Parameters
    ----------
    folder
        Folder with the data files, as :func:`data_folder` returns it, or None for invented data.

    Returns
    -------
    Loaded
        ``value`` is an array with the number of clicks on pages 1, 2, …, 41,270. Its entries are not integers if the
        clicks are a stand-in.

    Examples
    --------
    >>> from sfumato.datasets import page_clicks
    >>> len(page_clicks(None).value)
    41270
    """
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
    """Count the clicks of the original file: one session per line, with page numbers from one, separated by spaces."""
    clicks = np.zeros(PAGES + 1)
    with text_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                pages = np.array(line.split(), dtype=np.int64)
            except ValueError:
                raise bad_line(path, number, "be page numbers separated by spaces", line) from None
            if len(pages) and not 1 <= pages.min() <= pages.max() <= PAGES:
                raise bad_line(path, number, f"have page numbers from 1 to {PAGES}", line)
            np.add.at(clicks, pages, 1)
    return clicks[1:]
