"""Utility-optimized RAPPOR: one bit per value, harmless values revealed."""
