"""Meters behind hwmon and behind a program of the user's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Kind, Scope


@pytest.fixture
def hwmon(tmp_path: Path) -> Path:
    """Two chips: one of power, one that counts energy as well."""
    for number, (name, files) in enumerate(
        [
            ("ina226", {"power1_input": "4120000\n"}),
            ("shunt", {"power2_input": "1\n", "energy2_input": "7000000\n"}),
            ("nvme", {"temp1_input": "41000\n"}),
        ]
    ):
        folder = tmp_path / f"hwmon{number}"
        folder.mkdir()
        for file, content in {"name": f"{name}\n", **files}.items():
            (folder / file).write_text(content, encoding="ascii")
    return tmp_path


def test_power_of_a_chip_by_its_name(hwmon: Path) -> None:
    sensor = open_sensor(f"hwmon:ina226,root={hwmon},every=0.001")
    (rail,) = sensor.probe().rails
    assert (rail.kind, rail.scope, rail.gain_uncertainty) == (Kind.POWER, Scope.DEVICE, None)
    sensor.start()
    assert sensor.read(1.0).values[0, 0] == pytest.approx(4.12)


def test_energy_comes_before_power_and_may_not_go_back(hwmon: Path) -> None:
    sensor = open_sensor(f"hwmon:hwmon1,channel=2,scope=system,root={hwmon},every=0.001")
    (rail,) = sensor.probe().rails
    assert (rail.kind, rail.scope) == (Kind.ENERGY, Scope.SYSTEM)
    sensor.start()
    assert sensor.read(1.0).values[0, 0] == pytest.approx(7.0)
    (hwmon / "hwmon1" / "energy2_input").write_text("3\n", encoding="ascii")
    with pytest.raises(SensorError):
        sensor.read(1.0)


@pytest.mark.parametrize("content", ["", "nonsense", "-5"])
def test_a_file_without_power(hwmon: Path, content: str) -> None:
    (hwmon / "hwmon0" / "power1_input").write_text(content, encoding="ascii")
    with pytest.raises(SensorError):
        open_sensor(f"hwmon:ina226,root={hwmon}").probe()


@pytest.mark.parametrize(
    "text", ["hwmon", "hwmon:nvme", "hwmon:none", "hwmon:ina226,channel=2", "hwmon:x,scope=host"]
)
def test_a_chip_that_is_not_there(hwmon: Path, text: str) -> None:
    with pytest.raises(SensorError):
        open_sensor(f"{text},root={hwmon}").probe()


def test_two_chips_of_one_name(hwmon: Path) -> None:
    (hwmon / "hwmon1" / "name").write_text("ina226\n", encoding="ascii")
    with pytest.raises(SensorError, match="hwmon0, hwmon1"):
        open_sensor(f"hwmon:ina226,root={hwmon}").probe()


def test_a_chip_that_vanishes(hwmon: Path) -> None:
    sensor = open_sensor(f"hwmon:ina226,root={hwmon},every=0.001")
    sensor.start()
    (hwmon / "hwmon0" / "power1_input").unlink()
    with pytest.raises(SensorError):
        sensor.read(1.0)


def script(tmp_path: Path, source: str) -> Path:
    path = tmp_path / "meter"
    path.write_text(f"#!{sys.executable}\n{source}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_program_that_prints_watts(tmp_path: Path) -> None:
    sensor = open_sensor(f"program:{script(tmp_path, 'print(4.5, 230)')},every=0.001")
    assert sensor.probe().rails[0].kind is Kind.POWER
    sensor.start()
    assert [sensor.read(1.0).values[0, 0] for _ in range(2)] == [4.5, 4.5]


def test_a_program_that_counts_joules(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("100", encoding="ascii")
    source = f"print(open({str(state)!r}).read())"
    sensor = open_sensor(f"program:{script(tmp_path, source)},unit=joules,every=0.001")
    sensor.start()
    assert sensor.read(1.0).values[0, 0] == 100.0
    state.write_text("90", encoding="ascii")
    with pytest.raises(SensorError):
        sensor.read(1.0)


@pytest.mark.parametrize("source", ["", "print('nan')", "print('much')", "print(-1)", "exit(3)"])
def test_a_program_without_a_number(tmp_path: Path, source: str) -> None:
    with pytest.raises(SensorError):
        open_sensor(f"program:{script(tmp_path, source)}").probe()


def test_a_program_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iojoule.measure.sensors.program.TIMEOUT_SECONDS", 0.2)
    with pytest.raises(SensorError):
        open_sensor(f"program:{script(tmp_path, 'import time; time.sleep(60)')}").probe()


@pytest.mark.parametrize(
    "text", ["program", "program:x,unit=volts", "program:'x", "program:/none/such"]
)
def test_a_program_that_is_none(text: str) -> None:
    with pytest.raises(SensorError):
        open_sensor(text).probe()


@pytest.fixture
def supplies(tmp_path: Path) -> Path:
    """A charger, a laptop's battery and that of a mouse."""
    written = {
        "AC/type": "Mains", "BAT0/type": "Battery", "BAT0/status": "Discharging",
        "BAT0/power_now": "8123000", "hidpp_battery_0/type": "Battery",
        "hidpp_battery_0/scope": "Device",
    }  # fmt: skip
    for name, text in written.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{text}\n", encoding="ascii")
    return tmp_path


def test_a_battery_that_discharges_feeds_the_whole_machine(supplies: Path) -> None:
    sensor = open_sensor(f"battery,root={supplies},every=0.001")
    (rail,) = sensor.probe().rails
    assert (rail.scope, rail.kind) == (Scope.SYSTEM, Kind.POWER)
    sensor.start()
    assert sensor.read(0.1).values[0, 0] == pytest.approx(8.123)
    sensor.stop()


def test_a_battery_without_power_states_current_and_voltage(supplies: Path) -> None:
    (supplies / "BAT0/power_now").unlink()
    (supplies / "BAT0/current_now").write_text("-700000\n", encoding="ascii")
    (supplies / "BAT0/voltage_now").write_text("12000000\n", encoding="ascii")
    sensor = open_sensor(f"battery:BAT0,root={supplies},every=0.001")
    sensor.start()
    assert sensor.read(0.1).values[0, 0] == pytest.approx(8.4)
    sensor.stop()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("BAT0/status", "Charging"),
        ("BAT0/status", "Full"),
        ("BAT0/type", "UPS"),
        ("BAT0/power_now", "much"),
        ("AC/type", "Battery"),
    ],
)
def test_what_a_battery_does_not_tell_is_refused(supplies: Path, name: str, content: str) -> None:
    (supplies / name).write_text(content, encoding="ascii")
    with pytest.raises(SensorError):
        open_sensor(f"battery,root={supplies}").probe()
