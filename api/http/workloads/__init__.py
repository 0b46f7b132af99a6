"""GET /workloads/presets and POST /workloads: workload profiles from what is there."""
