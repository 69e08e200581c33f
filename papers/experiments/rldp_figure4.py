"""Lopuhaä-Zwakenberg, Goseling, Figure 4: protocols on synthetic tables where S has 7 or 9 values."""

from __future__ import annotations

from papers.experiment import Experiment, Run
from papers.experiments._robust import PAPER
from papers.experiments._sizes import run_sizes
from papers.result import Result

__all__ = ["EXPERIMENT"]


def _run(run: Run) -> Result:
    return run_sizes(
        run, run.of(((2, 2), (3, 2)), tuple((secrets, others) for secrets in (7, 9) for others in (3, 5, 7, 9)))
    )


EXPERIMENT = Experiment("rldp-figure4", "Protocols on tables with 7 and 9 secrets", f"{PAPER}, Figure 4", _run)
