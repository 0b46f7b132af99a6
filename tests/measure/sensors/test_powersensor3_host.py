"""The vendor's program, played by a stand-in that reads the emulated device."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.lab.powersensor3 import ConstantPower, EmulatedPowerSensor3
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Sensor
from tests.measure.powersensors import Readings, finish, read_until
from tests.pressure import CpuPressure, skip_if_busy

STAND_IN = Path(__file__).with_name("psrun_stand_in.py")
WATTS = (1.5, 4.0)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[EmulatedPowerSensor3]:
    # slow enough for a stand-in that is not compiled
    with EmulatedPowerSensor3(tmp_path, ConstantPower(*WATTS), hertz=2000) as emulator:
        yield emulator


@pytest.fixture
def psrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "psrun"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("IOJOULE_PSRUN", str(path))
    # the stand-in has no helper that lives on
    monkeypatch.setattr("iojoule.measure.sensors.powersensor3_host.RELEASE_SECONDS", 0.0)
    return path


def started(device: EmulatedPowerSensor3, options: str = "") -> tuple[Sensor, Readings]:
    sensor, readings = open_sensor(f"powersensor3-host:{device.path}{options}"), Readings()
    sensor.start()
    read_until(sensor, readings, lambda: len(readings) >= 600)
    return sensor, readings


@pytest.mark.usefixtures("psrun")
def test_it_measures_what_our_own_reader_does(device: EmulatedPowerSensor3) -> None:
    pressure = CpuPressure()
    sensor, readings = started(device, ",pairs=1+0,names=12v+3v3")
    delivery = finish(sensor, readings)
    assert [rail.name for rail in sensor.probe().rails] == ["12v", "3v3"]
    assert readings.values.mean(axis=0) == pytest.approx([4.0, 1.5], abs=0.05)
    assert delivery.samples == len(readings)
    if delivery.lost:  # a busy host reads too late, and the pseudo-terminal holds but 4 KiB
        skip_if_busy(pressure.share())
    assert delivery.lost == device.frames_dropped == 0
    assert not delivery.errors


@pytest.mark.usefixtures("psrun")
@pytest.mark.parametrize(
    ("mode", "words"), [("exits", "ended by itself.*Input/output"), ("hangs", "delivers nothing")]
)
def test_its_exits_and_hangs_stay_in_the_child(
    device: EmulatedPowerSensor3, monkeypatch: pytest.MonkeyPatch, mode: str, words: str
) -> None:
    monkeypatch.setenv("STAND_IN", mode)
    monkeypatch.setattr("iojoule.measure.sensors.powersensor3_host.STALL_SECONDS", 0.4)
    monkeypatch.setattr("iojoule.measure.sensors.powersensor3_host.END_SECONDS", 0.2)
    sensor, readings = started(device)
    device.disconnect()
    with pytest.raises(SensorError, match=words):
        read_until(sensor, readings, lambda: False)
    delivery = finish(sensor, readings)
    assert delivery.errors
    assert delivery.samples == len(readings)


@pytest.mark.usefixtures("psrun")
@pytest.mark.parametrize(
    ("mode", "words"), [("ends", "ended at once.*No such device"), ("old", "older than")]
)
def test_a_program_that_does_not_serve_is_named(
    device: EmulatedPowerSensor3, monkeypatch: pytest.MonkeyPatch, mode: str, words: str
) -> None:
    monkeypatch.setenv("STAND_IN", mode)
    with pytest.raises(SensorError, match=words):
        open_sensor(f"powersensor3-host:{device.path}").probe()


def test_what_is_missing_is_named(device: EmulatedPowerSensor3, psrun: Path) -> None:
    with pytest.raises(SensorError, match="is not there: plug the device in"):
        open_sensor(f"powersensor3-host:{device.path}x").probe()
    psrun.unlink()
    with pytest.raises(SensorError, match="IOJOULE_PSRUN"):
        open_sensor(f"powersensor3-host:{device.path}").probe()
