"""Mechanisms for a known prior."""
