"""Measurement of drives, hosts and programs: plans, guards, runs, sensors, records."""
