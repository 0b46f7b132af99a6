"""Workload profiles from what is there: job files, traces, what was observed, presets."""
