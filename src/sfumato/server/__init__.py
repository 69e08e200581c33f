"""The collector: a service that receives randomized reports, counts each exactly once, and estimates from the counts.

Raw values never reach the collector: no operation accepts one, and this package does not import code that randomizes.

A module imports only from its own row of this table or from rows above it; ``tests/test_architecture.py`` checks that:

========  ==========================================================================================
part      contents
========  ==========================================================================================
settings  store and limits of a collector process
store     collections, counts, batches and tokens in SQLite or PostgreSQL, with the statements of each
http      connections, bodies, responses, routing, the middleware around all requests, logs and metrics
jobs      work outside the event loop: writer thread, reading threads, planner process, retention
api       the table of operations, their types and handlers, the OpenAPI document
pages     Studio, survey and results: the page routes and the static files
app       the ASGI application, which combines the parts above
run       the start of the application under uvicorn
========  ==========================================================================================

A report passes through these modules:

1. ``http.connections`` parses the request.
2. ``http.middleware`` applies limits and finds the route.
3. ``api.ingest`` validates the report.
4. ``jobs.writer`` groups it with others.
5. ``store.base`` counts the group in one transaction.
"""

__all__ = []


# For the other packages of Sfumato; not part of the public interface.
from sfumato.server.api.tokens import (
    ADMIN as ADMIN,
    AUTHOR as AUTHOR,
    fingerprint as fingerprint,
    new_token as new_token,
    token_hash as token_hash,
)
from sfumato.server.run import (
    check_address as check_address,
    check_proxies as check_proxies,
    check_uvicorn as check_uvicorn,
    check_workers as check_workers,
    serve as serve,
    studio_address as studio_address,
)
from sfumato.server.settings import Settings as Settings
from sfumato.server.store import management as management, open_store as open_store
from sfumato.server.store.base import Store as Store, Unavailable as Unavailable
from sfumato.server.store.copies import (
    back_up as back_up,
    check_store as check_store,
    restore as restore,
    summary_of as summary_of,
    upgrade_store as upgrade_store,
)
from sfumato.server.store.records import FOLLOWING_STATES as FOLLOWING_STATES, METADATA as METADATA
