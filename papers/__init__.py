"""Reproduce the figures and tables of the papers: ``python -m papers NAME``, from a checkout of Sfumato.

To add an experiment, add a module with an ``EXPERIMENT`` to ``experiments``. The command finds every such module.
"""

from papers.experiment import Experiment, Run, all_experiments, experiment_named
from papers.result import Claim, Result, Row

__all__ = ["Claim", "Experiment", "Result", "Row", "Run", "all_experiments", "experiment_named"]
