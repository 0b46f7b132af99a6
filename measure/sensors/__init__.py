"""Instruments, one file each, behind one protocol (`protocol.Sensor`), by name."""

from __future__ import annotations

from iojoule.measure.sensors.registry import KNOWN, open_sensor

__all__ = ["KNOWN", "open_sensor"]
