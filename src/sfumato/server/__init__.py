"""The collector: a service that takes randomized reports, counts each exactly once, and estimates from the counts.

No raw value reaches it: there is no operation that takes one, and this package does not import what could randomize.
"""

__all__ = []


# For the other packages of Sfumato; not part of the public interface.
from sfumato.server.api.tokens import (
    ADMIN as ADMIN,
    fingerprint as fingerprint,
    new_token as new_token,
    token_hash as token_hash,
)
from sfumato.server.run import (
    check_address as check_address,
    check_proxies as check_proxies,
    check_workers as check_workers,
    serve as serve,
    studio_address as studio_address,
)
from sfumato.server.settings import Settings as Settings
from sfumato.server.store import open_store as open_store
from sfumato.server.store.base import Store as Store, Unavailable as Unavailable
