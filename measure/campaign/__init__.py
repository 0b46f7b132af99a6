"""Campaigns: a plan of runs, its cost, its conduct, its progress, and whether its data are good."""
