"""The reader against the emulated device over a real pseudo-terminal."""

import fcntl
import os
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.lab.powersensor3 import ConstantPower, EmulatedPair, EmulatedPowerSensor3
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.powersensor3 import PowerSensor3
from iojoule.measure.sensors.protocol import Flag, Kind, Scope
from tests.measure.powersensors import Readings, finish, read_until
from tests.pressure import CpuPressure, skip_if_busy

WATTS = (1.5, 4.0)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[EmulatedPowerSensor3]:
    with EmulatedPowerSensor3(tmp_path, ConstantPower(*WATTS)) as emulator:
        yield emulator


def started(device: EmulatedPowerSensor3, frames: int = 4000) -> tuple[PowerSensor3, Readings]:
    sensor, readings = PowerSensor3(str(device.path)), Readings()
    sensor.start()
    read_until(sensor, readings, lambda: len(readings) >= frames)
    return sensor, readings


def test_it_says_what_it_can_measure(device: EmulatedPowerSensor3) -> None:
    probe = PowerSensor3(str(device.path)).probe()
    assert [rail.name for rail in probe.rails] == ["slot-3v3", "slot-12v"]
    assert {(rail.kind, rail.scope) for rail in probe.rails} == {(Kind.POWER, Scope.DEVICE)}
    # one level of the 10 A sensor is 27 mA
    assert probe.rails[1].resolution == pytest.approx(12 * 0.02688, rel=0.02)
    assert probe.rails[1].offset_uncertainty is None
    assert probe.nominal_hertz == 20_000
    assert probe.identity["version"] == "F411-1.6.1"


def test_watts_times_and_counts(device: EmulatedPowerSensor3) -> None:
    pressure = CpuPressure()
    sensor, readings = started(device, 10_000)
    delivery = finish(sensor, readings)
    assert delivery.samples == len(readings)
    if delivery.samples + delivery.lost != device.frames_sent:
        skip_if_busy(pressure.share())  # it loses whole turns of the 10-bit clock
    assert delivery.samples + delivery.lost == device.frames_sent
    assert not delivery.errors
    resolution = [rail.resolution or 0 for rail in sensor.probe().rails]
    for watts, seen, step in zip(WATTS, readings.values.T, resolution, strict=True):
        # noise and quantisation average out; what is left is far below one level
        assert seen.mean() == pytest.approx(watts, abs=step / 10)
    assert (np.diff(readings.times_ns) > 0).all()
    assert delivery.first_ns == readings.times_ns[0]
    assert delivery.last_ns == readings.times_ns[-1]


def test_a_marker_comes_back_once(device: EmulatedPowerSensor3) -> None:
    sensor, readings = started(device)
    sensor.mark()
    seen = len(readings)
    read_until(sensor, readings, lambda: len(readings) >= seen + 3000)
    finish(sensor, readings)
    assert np.count_nonzero(readings.flags & Flag.MARKER) == 1


@pytest.mark.parametrize("fault", ["none", "only-garbage", "lost-frames"])
def test_a_stop_right_after_a_marker_does_not_hang_it(
    device: EmulatedPowerSensor3, fault: str
) -> None:
    sensor = PowerSensor3(str(device.path))
    for _ in range(5):
        sensor.start()
        sensor.read(0.1)
        match fault:
            case "only-garbage":
                device.only_garbage()
            case "lost-frames":
                device.drop_frames(1, out_of=1)
        sensor.mark()
        sensor.stop()
        device.heal()


AMBIGUOUS_FRAMES = 512
"""The least common multiple of a frame's 50 us and the clock's 1024 us, in frames."""


@pytest.mark.parametrize(("dropped", "out_of"), [(1, 10), (30, 700)])
def test_dropped_frames_are_counted(
    device: EmulatedPowerSensor3, dropped: int, out_of: int
) -> None:
    pressure = CpuPressure()
    sensor, readings = started(device)
    device.drop_frames(dropped, out_of=out_of)
    read_until(sensor, readings, lambda: device.frames_dropped > 0 and len(readings) >= 9_000)
    device.heal()
    seen = len(readings)
    read_until(sensor, readings, lambda: len(readings) >= seen + 3_000)
    delivery = finish(sensor, readings)
    off = delivery.lost - device.frames_dropped
    if off and off % AMBIGUOUS_FRAMES == 0:
        # stamps repeat after so many frames; only times of arrival tell how often, and a busy host
        # takes them late
        skip_if_busy(pressure.share())
    assert delivery.lost == device.frames_dropped > 0
    assert delivery.samples + delivery.lost == device.frames_sent
    assert np.count_nonzero(readings.flags & Flag.GAP) > 0


def test_garbage_between_frames_is_survived(device: EmulatedPowerSensor3) -> None:
    pressure = CpuPressure()
    sensor, readings = started(device)
    device.garbage(30, every_frames=200)
    read_until(sensor, readings, lambda: len(readings) >= 9_000)
    device.heal()
    read_until(sensor, readings, lambda: len(readings) >= 12_000)
    delivery = finish(sensor, readings)
    if delivery.samples + delivery.lost != device.frames_sent:
        skip_if_busy(pressure.share())  # it loses whole turns of the 10-bit clock
    assert delivery.samples + delivery.lost == device.frames_sent
    assert "bytes" in delivery.errors[0]
    assert readings.values.mean(axis=0) == pytest.approx(WATTS, abs=0.05)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (EmulatedPowerSensor3.stall, "stalled"),
        (EmulatedPowerSensor3.disconnect, "unplugged"),
        (EmulatedPowerSensor3.only_garbage, "no whole frame"),
    ],
)
def test_a_fault_is_named(
    device: EmulatedPowerSensor3,
    fault: Callable[[EmulatedPowerSensor3], None],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("iojoule.measure.sensors.powersensor3.STALL_SECONDS", 0.3)
    sensor, readings = started(device)
    fault(device)
    with pytest.raises(SensorError, match=words):
        read_until(sensor, readings, lambda: False)
    delivery = finish(sensor, readings)
    assert any(words in error for error in delivery.errors)
    assert sensor.stop() == delivery


def test_a_device_that_never_answers(
    device: EmulatedPowerSensor3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iojoule.measure.sensors.powersensor3.REPLY_SECONDS", 0.3)
    device.never_answer()
    with pytest.raises(SensorError, match="does not answer"):
        PowerSensor3(str(device.path)).start()
    device.heal()
    PowerSensor3(str(device.path)).probe()


def test_it_comes_back_after_a_reconnect(device: EmulatedPowerSensor3) -> None:
    sensor, _ = started(device)
    device.disconnect()
    sensor.stop()
    device.reconnect()
    again, readings = started(device)
    assert finish(again, readings).samples >= 4000


def test_only_one_program_may_have_it_and_every_byte_gets_through(
    device: EmulatedPowerSensor3,
) -> None:
    sensor, readings = started(device)
    with pytest.raises(SensorError, match="in use"):
        PowerSensor3(str(device.path)).probe()
    finish(sensor, readings)
    descriptor = os.open(device.path, os.O_RDWR | os.O_NOCTTY)
    try:
        flags = termios.tcgetattr(descriptor)[0]
    finally:
        os.close(descriptor)
    # 0D must not become 0A, or 16 of the 1024 levels come out wrong
    assert not flags & (termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)


def test_another_holder_of_the_lock_is_respected(device: EmulatedPowerSensor3) -> None:
    # the vendor's programs take this lock
    descriptor = os.open(device.path, os.O_RDWR | os.O_NOCTTY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(SensorError, match="in use"):
            PowerSensor3(str(device.path)).probe()
    finally:
        os.close(descriptor)


def test_what_is_no_serial_port_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="not there"):
        PowerSensor3(str(tmp_path / "ttyACM0")).probe()
    (tmp_path / "file").touch()
    with pytest.raises(SensorError, match="not a serial port"):
        PowerSensor3(str(tmp_path / "file")).probe()


def test_a_refused_permission_names_the_group(
    device: EmulatedPowerSensor3, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("iojoule.measure.sensors.serial_port.os.open", refuse)
    with pytest.raises(SensorError, match=r"dialout.*udev"):
        PowerSensor3(str(device.path)).probe()


def test_the_user_chooses_and_names_the_pairs(device: EmulatedPowerSensor3) -> None:
    sensor = open_sensor(f"powersensor3:{device.path},pairs=1,names=drive,offset=0.1,gain=0.01")
    (rail,) = sensor.probe().rails
    assert (rail.name, rail.offset_uncertainty, rail.gain_uncertainty) == ("drive", 0.1, 0.01)
    readings = Readings()
    sensor.start()
    read_until(sensor, readings, lambda: len(readings) >= 4000)
    finish(sensor, readings)
    assert readings.values.mean(axis=0) == pytest.approx([WATTS[1]], abs=0.05)


def test_full_scale_is_the_last_level_at_the_voltage_of_the_pair(
    device: EmulatedPowerSensor3,
) -> None:
    for rail in PowerSensor3(str(device.path)).probe().rails:
        assert rail.full_scale is not None
        assert rail.resolution is not None
        # zero current lies in the middle of the converter's 1,024 levels
        assert rail.full_scale == pytest.approx(rail.resolution * 1023 / 2, rel=0.01)


def test_a_pair_that_is_not_in_use_is_refused(device: EmulatedPowerSensor3) -> None:
    with pytest.raises(SensorError, match=r"pair 2 is not in use \(pairs 0, 1 in use\)"):
        open_sensor(f"powersensor3:{device.path},pairs=2").probe()
    with pytest.raises(SensorError, match="one name for each pair"):
        open_sensor(f"powersensor3:{device.path},pairs=0+1,names=drive")


def test_a_negative_sensitivity_is_a_reversed_polarity(tmp_path: Path) -> None:
    pairs = [EmulatedPair("reversed", 12.0, sensitivity=-0.12)]
    with EmulatedPowerSensor3(tmp_path, ConstantPower(6.0), pairs=pairs) as device:
        sensor, readings = started(device)
        finish(sensor, readings)
    assert readings.values.mean() == pytest.approx(6.0, abs=0.05)


def test_another_device_is_named(tmp_path: Path) -> None:
    with (
        EmulatedPowerSensor3(tmp_path, ConstantPower(*WATTS), version="Marlin 2.1") as device,
        pytest.raises(SensorError, match="no PowerSensor3"),
    ):
        PowerSensor3(str(device.path)).probe()
