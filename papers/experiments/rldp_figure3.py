"""Lopuhaä-Zwakenberg, Goseling, Figure 3: protocols on synthetic tables where S has 3 or 5 values."""

from __future__ import annotations

from papers.experiment import Experiment, Run
from papers.experiments._robust import PAPER
from papers.experiments._sizes import run_sizes
from papers.result import Result

__all__ = ["EXPERIMENT"]


def _run(run: Run) -> Result:
    return run_sizes(
        run, run.of(((2, 2), (2, 3)), tuple((secrets, others) for secrets in (3, 5) for others in (3, 5, 7, 9)))
    )


EXPERIMENT = Experiment("rldp-figure3", "Protocols on tables with 3 and 5 secrets", f"{PAPER}, Figure 3", _run)
