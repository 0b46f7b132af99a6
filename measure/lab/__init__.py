"""A testbed without NVMe hardware: instruments and drives whose true behaviour is known."""
