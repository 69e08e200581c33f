"""Benchmarks of this package on the local machine; ``python -m benchmarks.<name>`` runs one."""
