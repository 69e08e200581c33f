"""Mechanisms for a secret next to a public attribute."""
