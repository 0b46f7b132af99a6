"""Watts and joules of drives for Prometheus and OpenTelemetry."""
