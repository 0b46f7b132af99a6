"""The drive's own meter over a time in which its mean cannot show what a second drew."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.drive.power_measurement import power_word
from iojoule.measure.sensors import drive_power
from iojoule.measure.sensors.drive_power import DrivePower


class Meter:
    """A controller that measures a power of so many watts in each second."""

    def __init__(self, watts: Sequence[float], monkeypatch: pytest.MonkeyPatch) -> None:
        self.watts, self.now, self.begin, self.generation = watts, 0.0, 0.0, 0
        monkeypatch.setattr(NvmeController, "log", lambda *_: self.log())
        monkeypatch.setattr(NvmeController, "set_feature", lambda _, __, value: self.set(value))
        monkeypatch.setattr(drive_power, "time", SimpleNamespace(monotonic=lambda: self.now))

    def set(self, value: int) -> None:
        self.begin, self.generation = self.now, self.generation + value & 0xFF

    def energy(self, until: float) -> float:
        whole = math.floor(until)
        return sum(self.watts[:whole]) + (until - whole) * self.watts[whole]

    def log(self) -> bytes:
        count = math.floor(self.now - self.begin)
        joules = self.energy(self.begin + count) - self.energy(self.begin)
        data = bytearray(64)
        running = int(self.generation > 0)
        struct.pack_into("<BBHII", data, 0, 0, self.generation, running, 64, count)
        struct.pack_into("<I", data, 40, power_word(joules / count) if count else 0)
        return bytes(data)


def test_energy_follows_the_power_for_hours_and_never_falls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watts = [9.0] * 1800 + [0.3] * 600 + [8.0] * 600
    meter = Meter([*watts, 8.0, 8.0, 8.0, 8.0], monkeypatch)
    sensor = DrivePower("/dev/nvme0", source="log")
    sensor.begin()
    told = []
    for second in range(1, len(watts) + 1):
        meter.now = second * 1.0007
        told.append(sensor.poll()[0])
    assert all(before <= after for before, after in itertools.pairwise(told))
    for begin, end in ((100, 1790), (1830, 2390), (2430, 2990)):
        mean = (told[end] - told[begin]) / (end - begin) / 1.0007
        assert mean == pytest.approx(np.mean(watts[begin:end]), rel=0.01, abs=0.01)
