"""The operations of the API: their types, their table, and their handlers."""
