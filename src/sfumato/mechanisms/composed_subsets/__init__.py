"""Subset selection composed over blocks and values."""
