"""The operations of the API: their types, the table of them, and what answers each."""
