"""Instruments, one file each, behind one protocol (`protocol.Sensor`), by name."""
