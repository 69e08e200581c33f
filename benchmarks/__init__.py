"""Measurements of this package on the machine they run on; ``python -m benchmarks.<name>`` runs one."""
