"""HTTP: connections, bodies, refusals, routing, limits, logs and metrics. Knows nothing of collections."""
