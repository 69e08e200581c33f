"""The device: everything that touches raw values.

The collector never imports this package, neither directly nor through another one; a test checks it.
"""

from sfumato.device.client import Client, CollectionInfo, Receipt
from sfumato.device.ledger import Cost, Ledger, Release
from sfumato.device.local_priors import EventEstimate, LocalPriors, LocalTotal
from sfumato.device.privatization import privatize
from sfumato.device.questionnaire import CrossTable, Questionnaire, QuestionnairePlan, Sampling, Strategy, cross_table
from sfumato.device.simulation import Simulation, simulate
from sfumato.device.transport import CollectorRefused, CollectorUnreachable

__all__ = [
    "Client",
    "CollectionInfo",
    "CollectorRefused",
    "CollectorUnreachable",
    "Cost",
    "CrossTable",
    "EventEstimate",
    "Ledger",
    "LocalPriors",
    "LocalTotal",
    "Questionnaire",
    "QuestionnairePlan",
    "Receipt",
    "Release",
    "Sampling",
    "Simulation",
    "Strategy",
    "cross_table",
    "privatize",
    "simulate",
]


# For the other packages of Sfumato; not part of the public interface.
from sfumato.device.client import new_batch_name as new_batch_name
from sfumato.device.privatization import privatize_indices as privatize_indices
from sfumato.device.values import read_values as read_values
