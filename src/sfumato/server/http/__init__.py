"""HTTP: connections, bodies, responses, routing, limits, logs and metrics. Independent of collections."""
