"""Measurement campaigns: plan, cost, runs, verdicts and datasets."""
