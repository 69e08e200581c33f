"""Reproduce the figures and tables of the papers: ``sfumato reproduce NAME``.

To add an experiment, add a module with an ``EXPERIMENT`` to ``experiments``. The command finds every such module.
"""

from sfumato.papers import data
from sfumato.papers.experiment import Experiment, Run, all_experiments, experiment_named
from sfumato.papers.result import Claim, Result, Row

__all__ = ["Claim", "Experiment", "Result", "Row", "Run", "all_experiments", "data", "experiment_named"]


# For the other packages of Sfumato; not part of the public interface.
from sfumato.papers.data.folder import data_folder as data_folder
from sfumato.papers.figure import draw as draw
