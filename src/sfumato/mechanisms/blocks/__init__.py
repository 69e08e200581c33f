"""Randomizers within blocks of values, and the base of nested ones."""
