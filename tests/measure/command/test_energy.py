"""Joules per unit and their ranges, against closed forms."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from iojoule.measure.command.record import (
    CommandRun,
    EnergyRecord,
    joules_per_unit,
    shares,
    summary,
)

T19 = 1.7291328115214  # Student's t, 95 %, 19 degrees of freedom
T2 = 2.9199855803537


def power(
    watts: float | None, error: float | None = 0.0, calibration: float | None = 0.0
) -> EnergyRecord:
    return EnergyRecord(
        sensor="fake",
        rails=["a"],
        mean_watts=watts,
        standard_error_watts=error,
        calibration_uncertainty_watts=calibration,
        coverage=1.0,
        energy_joules=None if watts is None else watts * 10,
        reason=None if watts else "it failed",
    )


def run(
    number: int,
    watts: float,
    *,
    work: float = 100.0,
    calibration: float | None = 0.0,
    exit_status: int = 0,
    interrupted: bool = False,
) -> CommandRun:
    parts = {"device": power(watts, 0.1, calibration)}
    return CommandRun(
        number=number,
        started_utc=datetime.now(UTC),
        seconds=10.0,
        window_seconds=10.0,
        begin_monotonic_ns=0,
        end_monotonic_ns=10**10,
        exit_status=exit_status,
        interrupted=interrupted,
        work=work,
        power=parts,
        joules_per_unit=joules_per_unit(parts, 10.0, work),
        program_cpu_seconds=1.0,
    )


def test_energy_per_unit_with_chance_and_calibration() -> None:
    found = joules_per_unit({"device": power(2.0, 0.03, 0.5), "cpu": power(30.0, 0.04)}, 10.0, 100)
    device, both = found["device"], found["device_cpu"]
    assert device.value == pytest.approx(0.2)
    assert device.high == pytest.approx(0.2 + (T19 * 0.03 + 0.5) * 0.1)
    assert both.value == pytest.approx(3.2)
    # chance adds in squares, calibration as it is
    assert both.low == pytest.approx(3.2 - (T19 * 0.05 + 0.5) * 0.1)


def test_an_unknown_calibration_is_said_and_not_taken_for_none() -> None:
    one = joules_per_unit({"device": power(2.0, 0.03, None)}, 10.0, 100)["device"]
    assert one.calibration is None
    assert one.high == pytest.approx(0.2 + T19 * 0.03 * 0.1)


def test_a_failed_sensor_gives_no_number() -> None:
    parts = {"device": power(None), "cpu": power(30.0)}
    assert set(joules_per_unit(parts, 10.0, 100)) == {"cpu"}
    assert shares(parts) == {}


def test_no_work_no_figure() -> None:
    assert joules_per_unit({"device": power(2.0)}, 10.0, None) == {}
    assert joules_per_unit({"device": power(2.0)}, 10.0, 0.0) == {}


def test_shares_are_of_drive_cpu_and_dram() -> None:
    parts = {"device": power(2.0), "cpu": power(7.0), "dram": power(1.0), "system": power(99.0)}
    assert shares(parts) == pytest.approx({"device": 0.2, "cpu": 0.7, "dram": 0.1})


def test_repeats_are_a_mean_with_students_range() -> None:
    found = summary(
        [run(1, 1.0, calibration=0.2), run(2, 2.0, calibration=0.2), run(3, 3.0, calibration=0.2)]
    )
    watts = found["device_watts"]
    assert (watts.value, watts.runs) == (2.0, 3)
    assert watts.high == pytest.approx(2.0 + T2 / 3**0.5 + 0.2)  # sd is 1
    per_unit = found["device_joules_per_unit"]
    assert per_unit.value == pytest.approx(0.2)
    assert per_unit.calibration == pytest.approx(0.02)
    assert found["work_per_second"].value == 10.0


def test_runs_that_failed_or_were_interrupted_do_not_count() -> None:
    found = summary([run(1, 1.0), run(2, 9.0, exit_status=3), run(3, 9.0, interrupted=True)])
    assert found["device_watts"].value == 1.0
    assert found["device_watts"].runs == 1
    assert summary([run(1, 9.0, exit_status=1)]) == {}
