"""Pairs of census attributes, a secret and another, as in RLDP Figures 10 and 11."""

from __future__ import annotations

__all__ = ["PAIRS", "QUICK_PAIRS"]

#: The paper names the attributes, but only one pair, 6 x 42; we chose the others.
PAIRS = (
    ("sex", "race"),
    ("race", "sex"),
    ("sex", "education"),
    ("race", "occupation"),
    ("relationship", "education"),
    ("relationship", "native-country"),
)
QUICK_PAIRS = PAIRS[:1]
