"""The emulated device, command by command, as its firmware has them."""

import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iojoule.measure.lab.powersensor3 import ConstantPower, EmulatedPowerSensor3
from iojoule.measure.sensors.powersensor3 import PowerSensor3
from iojoule.measure.sensors.powersensor3_protocol import (
    FRAME_BYTES,
    RECORD_BYTES,
    FrameDecoder,
    SensorRecord,
)
from iojoule.measure.sensors.serial_port import SerialPort

SECONDS = 5.0


@pytest.fixture
def device(tmp_path: Path) -> Iterator[EmulatedPowerSensor3]:
    with EmulatedPowerSensor3(tmp_path, ConstantPower(1.5, 4.0)) as emulator:
        yield emulator


@pytest.fixture
def port(device: EmulatedPowerSensor3) -> Iterator[SerialPort]:
    with SerialPort(str(device.path)) as opened:
        yield opened


def records(port: SerialPort) -> list[SensorRecord]:
    port.write(b"R")
    found = []
    for sensor in range(8):
        found.append(SensorRecord.decode(port.exactly(RECORD_BYTES, SECONDS)))
        if sensor in (0, 7):
            assert port.exactly(1, 0.1) == b""  # it waits for a byte after each record
        port.write(b"x")
    assert port.exactly(1, SECONDS) == b"D"
    return found


def test_version_configuration_and_one_frame(port: SerialPort) -> None:
    port.write(b"V")
    assert port.line(SECONDS) == b"F411-1.6.1\r\n"
    found = records(port)
    assert [record.in_use for record in found] == [True] * 4 + [False] * 4
    port.write(b"MI")
    frames = FrameDecoder().feed(port.exactly(FRAME_BYTES, SECONDS), last=True)
    assert frames.markers.tolist() == [True]


def test_a_configuration_can_be_written(port: SerialPort) -> None:
    new = [SensorRecord(f"kind{n}", "pair", 1.5 + n, 0.25, n < 2) for n in range(8)]
    port.write(b"W")
    for record in new:
        port.write(record.encode())
        assert port.exactly(1, SECONDS) == b"S"
    assert port.exactly(1, SECONDS) == b"D"
    assert records(port) == new


def test_streaming_counting_and_the_end_of_a_session(port: SerialPort) -> None:
    port.write(b"S")
    data = port.exactly(200 * FRAME_BYTES, SECONDS)
    port.write(b"I")  # ignored while it streams
    port.write(b"X")
    decoder = FrameDecoder()
    rest = bytearray()
    while not rest.endswith(b"\xff\x3f\xff\x3f"):
        part = port.exactly(1, SECONDS)
        assert part, "no end of the session"
        rest += part
    frames = decoder.feed(data)
    steps = np.diff(frames.stamps_us.astype(int)) % 1024
    assert set(steps.tolist()) == {50}
    port.write(b"Q")
    (counter,) = struct.unpack("<I", port.exactly(4, SECONDS))
    assert counter == (len(data) + len(rest) - 4) // FRAME_BYTES * 8


def test_dangerous_commands_do_nothing(port: SerialPort) -> None:
    port.write(b"ZYBV")
    assert port.line(SECONDS) == b"F411-1.6.1\r\n"


def test_it_hangs_as_the_firmware_does_when_stopped_before_its_marker_is_out(
    port: SerialPort,
) -> None:
    port.write(b"S")
    port.exactly(FRAME_BYTES, SECONDS)
    port.write(b"MT")
    port.drain(0.2, SECONDS)
    port.write(b"V")
    assert port.line(0.3) == b""


def test_the_link_stays_when_the_device_is_plugged_in_again(device: EmulatedPowerSensor3) -> None:
    before = device.path.readlink()
    device.disconnect()
    device.reconnect()
    PowerSensor3(str(device.path)).probe()
    assert device.path.is_symlink()
    assert before.is_relative_to("/dev/pts")
    device.close()
    assert not device.path.is_symlink()


def test_it_runs_as_a_program_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "iojoule.measure.lab.powersensor3", tmp_path, "--watts", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = process.stdout.readline().strip()
        (rail,) = PowerSensor3(path).probe().rails
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert rail.name == "slot-3v3"
