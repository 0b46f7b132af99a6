"""What if something were different: drive, workload, SLA, number of drives, price, a power cap."""
