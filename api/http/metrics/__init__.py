"""GET /metrics: what the service counts of itself."""
