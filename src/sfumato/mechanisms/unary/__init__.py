"""Unary encoding."""
