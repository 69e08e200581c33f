"""Hadamard response."""
