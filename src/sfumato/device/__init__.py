"""The device: everything that touches raw values.

The collector never imports this package, neither directly nor through another one; a test checks it.
"""

from sfumato.device.client import Client, CollectionInfo, Receipt, WaveSchedule
from sfumato.device.ledger import Cost, Ledger, Release
from sfumato.device.ledger_levels import Level
from sfumato.device.local_priors import EventEstimate, LocalPriors, LocalTotal
from sfumato.device.privatization import privatize
from sfumato.device.simulation import Simulation, simulate
from sfumato.device.transport import CollectorRefused, CollectorUnreachable

__all__ = [
    "Client",
    "CollectionInfo",
    "CollectorRefused",
    "CollectorUnreachable",
    "Cost",
    "EventEstimate",
    "Ledger",
    "Level",
    "LocalPriors",
    "LocalTotal",
    "Receipt",
    "Release",
    "Simulation",
    "WaveSchedule",
    "privatize",
    "simulate",
]


# Names that were part of this package before; their homes are the compiler and estimation.
from sfumato.compiler import (
    Questionnaire as Questionnaire,
    QuestionnairePlan as QuestionnairePlan,
    Sampling as Sampling,
    Strategy as Strategy,
)

# For the other packages of Sfumato; not part of the public interface.
from sfumato.device.client import new_batch_name as new_batch_name
from sfumato.device.privatization import privatize_indices as privatize_indices
from sfumato.device.values import (
    EncodedRows as EncodedRows,
    check_present as check_present,
    read_indices as read_indices,
    read_values as read_values,
)
from sfumato.estimation import CrossTable as CrossTable, cross_table as cross_table
