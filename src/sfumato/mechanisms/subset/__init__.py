"""Subset selection."""
