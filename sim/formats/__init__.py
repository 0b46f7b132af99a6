"""Drives, workloads and results as files: MQSim's XML in and out, TOML with units in the names."""
