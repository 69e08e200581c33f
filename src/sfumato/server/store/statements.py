"""The tables of a store, and the SQL statements that all databases share.

===========  =======================================================================================================
table        contents
===========  =======================================================================================================
collections  the constant parts of a collection, such as its question and presentation, and its metadata (column
             ``about``), which is short, because lists read it
progress     the state of a collection, and its numbers of reports and batches; a transaction that counts locks the row
released     a copy of the counts as of the last release, for readers without a token, and for collections that release
             reports in groups
counts       the counts of a collection, in pages; pages with only zeros have no row; the pages of a
             wave follow those of the wave before
batches      a hash of every counted batch id, and its receipt: a digest of the payload and the number of reports
recent       new batch ids with their receipts, one row per transaction, moved to ``batches`` later (SQLite only)
raw          stored reports as binary batches, by day of arrival; the reports of one transaction are shuffled, and later
             those of one day (column ``mixed``)
tokens       hashes of one-time tokens; the report that a token was spent on is not recorded
admins       hashes of admin tokens
identity     one row: a random id of the store, and the last day on which old reports were deleted
roles        hashes of tokens of authors, owners and readers, with their collection, expiry and grantor (``management``)
changes      the log: who changed what and when; nothing about participants
migrations   the steps that the store has run, with their digests
===========  =======================================================================================================

The statements that create the tables are in ``migrations``. Statements that differ between databases (locks, batch ids)
are in ``sqlite`` and ``postgresql``. The statements here differ
only in the mark of a parameter.
"""

from __future__ import annotations

from sfumato.server.store.migrations import CREATE_MIGRATIONS

__all__ = ["Statements"]


class Statements:
    """The shared statements, for a database that marks parameters with ``mark``.

    Statements whose names end with ``_in`` are completed by a list of values (``list_of``), and those whose names begin
    with ``insert_`` by rows of values (``rows_of``).
    """

    def __init__(self, mark: str) -> None:
        self.mark = self._mark = mark
        # -- migrations
        self.create_migrations = CREATE_MIGRATIONS
        self.count_migrations = "SELECT COUNT(*) FROM migrations"
        self.add_migration = f"INSERT INTO migrations (step) VALUES ({mark})"
        self.migrations = "SELECT step, digest FROM migrations ORDER BY step"
        self.record_digest = f"UPDATE migrations SET digest = {mark} WHERE step = {mark}"
        # -- identity
        self.identity = "SELECT id, last_day FROM identity"
        self.add_identity = f"INSERT INTO identity VALUES ({mark}, NULL, 0)"
        self.change_last_day = f"UPDATE identity SET last_day = {mark}"
        # The value must change, because SQLite does not write an unchanged page.
        self.touch = "UPDATE identity SET touched = 1 - touched"
        # -- counting
        self.batches_in = "SELECT batch, receipt FROM batches WHERE batch"
        self.insert_batches = "INSERT INTO batches VALUES"
        self.tokens_in = f"SELECT token_hash, spent FROM tokens WHERE collection = {mark} AND token_hash"
        self.spend_tokens_in = f"UPDATE tokens SET spent = 1 WHERE collection = {mark} AND token_hash"
        self.pages_in = f"SELECT page, counts FROM counts WHERE collection = {mark} AND page"
        self.insert_pages = "INSERT INTO counts VALUES"
        self.or_replace_page = " ON CONFLICT (collection, page) DO UPDATE SET counts = excluded.counts"
        self.add_progress = (
            f"UPDATE progress SET reports = reports + {mark}, batches = batches + {mark} WHERE collection = {mark}"
        )
        # A single statement reads a consistent state. LEFT JOIN, because an empty collection has no pages.
        self.counts = (
            "SELECT progress.reports, counts.page, counts.counts FROM progress "
            f"LEFT JOIN counts ON counts.collection = progress.collection WHERE progress.collection = {mark}"
        )
        self.released_counts = (
            "SELECT progress.released_reports, released.page, released.counts FROM progress "
            f"LEFT JOIN released ON released.collection = progress.collection WHERE progress.collection = {mark}"
        )
        self.release = (
            "UPDATE progress SET released_reports = reports, released_batches = batches "
            f"WHERE collection = {mark} AND reports - released_reports >= release_every"
        )
        # Collections without groups whose counts differ from their last release by a step, also after an undo.
        advanced = f"release_every IS NULL AND abs(reports - released_reports) >= {mark}"
        self.unreleased = f"SELECT id, about FROM progress JOIN collections ON id = collection WHERE {advanced}"
        self.release_step = (
            "UPDATE progress SET released_reports = reports, released_batches = batches "
            f"WHERE collection = {mark} AND {advanced}"
        )
        self.forget_released = f"DELETE FROM released WHERE collection = {mark}"
        self.copy_counts = (
            f"INSERT INTO released SELECT collection, page, counts FROM counts WHERE collection = {mark} ORDER BY page"
        )
        pages = f"collection = {mark} AND page >= {mark} AND page < {mark}"
        self.forget_released_pages = f"DELETE FROM released WHERE {pages}"
        self.copy_pages = f"INSERT INTO released SELECT collection, page, counts FROM counts WHERE {pages}"
        self.add_released = (
            f"UPDATE progress SET released_reports = released_reports + {mark} WHERE collection = {mark}"
        )
        self.wave_pages = f"SELECT page, counts FROM counts WHERE collection = {mark} ORDER BY page"
        self.released_wave_pages = f"SELECT page, counts FROM released WHERE collection = {mark} ORDER BY page"
        # -- stored reports
        self.insert_reports = "INSERT INTO raw VALUES"
        self.forget_reports = (
            f"DELETE FROM raw WHERE collection = {mark} AND (day, number) IN (SELECT day, number FROM raw "
            f"WHERE collection = {mark} AND day < {mark} ORDER BY day, number LIMIT {mark})"
        )
        self.unshuffled_collections = f"SELECT DISTINCT collection FROM raw WHERE mixed = 0 AND day < {mark}"
        self.unshuffled_rows = (
            f"SELECT day, number, length(reports) FROM raw WHERE collection = {mark} AND day < {mark} AND mixed = 0 "
            f"ORDER BY day, number LIMIT {mark}"
        )
        unshuffled = f"FROM raw WHERE collection = {mark} AND day = {mark} AND mixed = 0 AND number <= {mark}"
        self.reports_to_shuffle = f"SELECT reports {unshuffled}"
        self.delete_unshuffled = f"DELETE {unshuffled}"
        # -- collections
        self.add_collection = (
            "INSERT INTO collections "
            "(id, created, previous, policy, mechanism, certificate, about, key_hash, question, presentation) "
            f"VALUES {self._row(10)}"
        )
        self.open_collection = (
            "INSERT INTO progress (collection, state, reports, batches, release_every) "
            f"VALUES ({mark}, 'open', 0, 0, {mark})"
        )
        self.collection = (
            "SELECT id, number, created, previous, policy, mechanism, certificate, about, key_hash, question, "
            f"presentation FROM collections WHERE id = {mark}"
        )
        # What may be shown: with release_every, the numbers of the last release.
        numbers = self.shown_numbers = ", ".join(
            f"CASE WHEN release_every IS NULL THEN {name} ELSE released_{name} END" for name in ("reports", "batches")
        )
        self.progress = (
            f"SELECT state, {numbers}, released_reports, released_batches, about, key_hash "
            "FROM progress JOIN collections ON id = collection "
            f"WHERE collection = {mark}"
        )
        self.collections = (
            f"SELECT number, id, about, state, {numbers}, released_reports, released_batches FROM collections "
            f"JOIN progress ON collection = id WHERE number > {mark} ORDER BY number LIMIT {mark}"
        )
        self.states = "SELECT state, COUNT(*) FROM progress GROUP BY state"
        self.metadata = f"SELECT about FROM collections WHERE id = {mark}"
        self.change_state = f"UPDATE progress SET state = {mark} WHERE collection = {mark}"
        self.change_metadata = f"UPDATE collections SET about = {mark} WHERE id = {mark}"
        # -- keys and tokens
        self.replace_key = f"UPDATE collections SET key_hash = {mark} WHERE id = {mark}"
        self.insert_tokens = "INSERT INTO tokens VALUES"
        self.any_admin = "SELECT 1 FROM admins LIMIT 1"
        self.add_admin = f"INSERT INTO admins VALUES ({mark}, {mark})"
        self.is_admin = f"SELECT 1 FROM admins WHERE token_hash = {mark}"
        self.admins = "SELECT token_hash, created FROM admins ORDER BY created, token_hash"
        self.remove_admin = f"DELETE FROM admins WHERE token_hash = {mark} AND (SELECT COUNT(*) FROM admins) > 1"

    def list_of(self, statement: str, values: int) -> str:
        """Return a statement that ends with a list of this many values."""
        return f"{statement} IN {self._row(values)}"

    def rows_of(self, statement: str, rows: int, columns: int, end: str = "") -> str:
        """Return a statement that inserts this many rows."""
        return f"{statement} {', '.join([self._row(columns)] * rows)}{end}"

    def _row(self, columns: int) -> str:
        """Return the parameter marks of one row, in parentheses."""
        return f"({', '.join([self._mark] * columns)})"
