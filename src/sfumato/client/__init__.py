"""Talking to a collector: reports go out, each counted exactly once, whatever the network does."""

from sfumato.client.client import Client, CollectionInfo, Receipt
from sfumato.client.transport import CollectorRefused, CollectorUnreachable

__all__ = ["Client", "CollectionInfo", "CollectorRefused", "CollectorUnreachable", "Receipt"]
