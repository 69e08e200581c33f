"""Mechanisms for sensitive and harmless values, made of a mechanism for the sensitive ones."""
