"""Subset selection in nested blocks."""
