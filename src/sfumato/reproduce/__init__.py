"""The papers' figures and tables again: ``sfumato reproduce NAME``.

To add an experiment, add a file to ``experiments``: the command knows every module there that has an ``EXPERIMENT``.
"""

from sfumato.reproduce.experiment import Experiment, Run, all_experiments, experiment_named
from sfumato.reproduce.result import Claim, Result, Row

__all__ = ["Claim", "Experiment", "Result", "Row", "Run", "all_experiments", "experiment_named"]
