"""The tables, as the steps by which they came about. A step that was released never changes: new ones are added.

``BYTES``, ``WHOLE``, ``NUMBERED`` and ``CLUSTERED`` stand for each database's own words.

collections   what never changes about a collection, and what is said about it
progress      its state and how much was counted; whoever counts holds this row, so nobody counts beside them
counts        the counts of a collection, in pages; a page is there once one of its counts is above zero
batches       a hash of every batch id that was counted, and its receipt: a digest of what came, and how many reports
recent        the same of the newest, a transaction in a row, where the database does well to sort them later (SQLite)
raw           the reports themselves while they are kept, as binary batches, by the day they came on; those of one
              transaction, and later those of one day, are mixed
tokens        one-time tokens, hashed; which report one was spent on is written nowhere
admins        admin tokens, hashed
"""

from __future__ import annotations

__all__ = ["MIGRATIONS"]

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE collections (
            number NUMBERED, id TEXT NOT NULL UNIQUE, created WHOLE NOT NULL, previous TEXT REFERENCES collections (id),
            policy TEXT NOT NULL, mechanism TEXT NOT NULL, certificate TEXT NOT NULL, about TEXT NOT NULL,
            key_hash BYTES)""",
        """CREATE TABLE progress (
            collection TEXT PRIMARY KEY REFERENCES collections (id), state TEXT NOT NULL,
            reports WHOLE NOT NULL, batches WHOLE NOT NULL)""",
        """CREATE TABLE counts (
            collection TEXT NOT NULL, page WHOLE NOT NULL, counts BYTES NOT NULL,
            PRIMARY KEY (collection, page))""",
        """CREATE TABLE batches (
            batch BYTES PRIMARY KEY, receipt BYTES NOT NULL) CLUSTERED""",
        "CREATE TABLE recent (number NUMBERED, records BYTES NOT NULL)",
        """CREATE TABLE raw (
            collection TEXT NOT NULL, day WHOLE NOT NULL, number WHOLE NOT NULL, mixed WHOLE NOT NULL,
            reports BYTES NOT NULL, PRIMARY KEY (collection, day, number)) CLUSTERED""",
        "CREATE INDEX unmixed ON raw (day, collection, number) WHERE mixed = 0",
        """CREATE TABLE tokens (
            collection TEXT NOT NULL REFERENCES collections (id), token_hash BYTES NOT NULL, spent WHOLE NOT NULL,
            PRIMARY KEY (collection, token_hash))""",
        "CREATE TABLE admins (token_hash BYTES PRIMARY KEY, created WHOLE NOT NULL)",
    ),
)
