"""Mechanisms: exact randomizers of one value, each with the law it states and the sampler that runs."""

from sfumato.mechanisms.base import Finished, Mechanism, mechanism_from_spec
from sfumato.mechanisms.hadamard import HadamardResponse
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.subset import SubsetSelection
from sfumato.mechanisms.table import TableMechanism
from sfumato.mechanisms.unary import UnaryEncoding

__all__ = [
    "Finished",
    "HadamardResponse",
    "Mechanism",
    "RandomizedResponse",
    "SubsetSelection",
    "TableMechanism",
    "UnaryEncoding",
    "mechanism_from_spec",
]
