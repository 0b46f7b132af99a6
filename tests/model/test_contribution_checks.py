from typing import Any

import numpy as np
import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.contribution import Check, Instrument, RunSamples
from iojoule.datasets.errors import DataQualityError
from iojoule.datasets.measured_drive import DeclaredState, MeasuredDrive
from iojoule.datasets.schema import Measurement, from_row
from iojoule.datasets.verdict import COVERAGE_DOUBTFUL
from iojoule.model.fit.contributions import (
    CAP_EXCEEDED,
    METERS_APART,
    UNSTEADY_SHARE,
    contribution_checks,
    refuse_failed,
    unsteady_runs,
)

KNOWN = load_catalogue().get("samsung-980-pro-1tb")
WALL = Instrument(kind="netio", scope="system", rails=1)
PSYS = Instrument(kind="rapl", scope="system", rails=1)


def told(**changes: Any) -> MeasuredDrive:
    states = tuple(
        DeclaredState(
            index=state.index,
            max_power_watts=state.max_power_watts,
            operational=state.operational,
            entry_latency_us=0,
            exit_latency_us=0,
        )
        for state in KNOWN.power_states
    )
    base = MeasuredDrive(
        model="Samsung SSD 980 PRO 1TB",
        firmware="1B2QGXA7",
        capacity_bytes=1_000_204_886_016,
        block_bytes=512,
        max_transfer_bytes=524_288,
        power_states=states,
    )
    return base.model_copy(update=changes)


def rows(count: int = 12, **values: Any) -> list[Measurement]:
    """Reads over depth; a value that is a list is that of each run."""
    made = []
    for place in range(count):
        iops = 10_000.0 * (place + 1) ** 0.5
        row = {
            "operation": "read",
            "request_bytes": 4096,
            "queue_depth": place + 1,
            "power_state": 0,
            "iops": iops,
            "latency_mean_ns": (place + 1) / iops * 1e9,
            "device_power_watts": 2.0 + place / 10,
        }
        row |= {
            name: value[place] if isinstance(value, list) else value
            for name, value in values.items()
        }
        made.append(from_row(row))
    return made


def samples(count: int = 12, **values: Any) -> list[RunSamples]:
    made = []
    for place in range(count):
        own = {
            name: value[place] if isinstance(value, list) else value
            for name, value in values.items()
        }
        made.append(RunSamples.model_validate({"row": place + 1} | own))
    return made


def found(
    name: str,
    measurements: list[Measurement] | None = None,
    runs: list[RunSamples] | None = None,
    drive: MeasuredDrive | None = None,
    instruments: tuple[Instrument, ...] = (),
) -> Check:
    checks = contribution_checks(
        rows() if measurements is None else measurements, runs or [], drive, KNOWN, instruments
    )
    return next(check for check in checks if check.name == name)


def test_what_nobody_measured_is_not_known_and_refuses_nothing() -> None:
    checks = contribution_checks(rows(), [], None, None, ())
    judged = {check.name for check in checks if check.verdict == "passed"}
    assert judged == {"one_drive_one_host", "one_session", "littles_law", "gates"}
    assert {check.verdict for check in checks} == {"passed", "not known"}
    refuse_failed(checks)


def test_a_refusal_bears_the_name_of_the_first_check_that_failed() -> None:
    bad = contribution_checks(
        rows(host_id=["a"] * 6 + ["b"] * 6), samples(coverage=0.2), told(), KNOWN, ()
    )
    with pytest.raises(DataQualityError) as refused:
        refuse_failed(bad)
    assert refused.value.field == "one_drive_one_host"
    assert refused.value.exit_code == 8


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "passed"),
        ({"capacity_bytes": 960_197_124_096}, "passed"),
        ({"capacity_bytes": 500_107_862_016}, "failed"),
        ({"max_transfer_bytes": 131_072}, "failed"),
        ({"power_states": told().power_states[:2]}, "failed"),
        ({"power_states": ()}, "passed"),
        # another firmware may declare another table
        ({"power_states": told().power_states[:2], "firmware": "5B2QGXA7"}, "passed"),
    ],
)
def test_identify_data_beside_the_catalogue(changes: dict[str, Any], verdict: str) -> None:
    assert found("identify", drive=told(**changes)).verdict == verdict


@pytest.mark.parametrize(
    "values", [{"firmware": "5B2QGXA7"}, {"max_transfer_bytes": 131_072.0}, {"power_state": 3}]
)
def test_identify_data_beside_the_runs(values: dict[str, Any]) -> None:
    assert found("identify", rows(**values), drive=told()).verdict == "failed"


def test_runs_of_one_drive_do_not_overlap() -> None:
    apart = samples(started_seconds=[5.0 * place for place in range(12)], wall_seconds=4.9)
    assert found("one_session", runs=apart).verdict == "passed"
    over = samples(started_seconds=[3.0 * place for place in range(12)], wall_seconds=4.9)
    assert found("one_session", runs=over).verdict == "failed"


@pytest.mark.parametrize(
    ("name", "field", "good", "bad"),
    [
        ("coverage", "coverage", COVERAGE_DOUBTFUL, COVERAGE_DOUBTFUL - 0.01),
        ("clipped_sensor", "clipped_seconds", 0.0, 0.5),
        ("second_meter", "second_meter_ratio", 1 + 0.9 * METERS_APART, 1 - 1.1 * METERS_APART),
    ],
)
def test_one_bad_run_fails_and_is_named(name: str, field: str, good: float, bad: float) -> None:
    assert found(name, runs=samples(**{field: good})).verdict == "passed"
    one = found(name, runs=samples(**{field: [good] * 4 + [bad] + [good] * 7}))
    assert (one.verdict, one.runs) == ("failed", (5,))


def test_a_meter_of_coarse_steps_may_show_one_value_for_a_while() -> None:
    coarse = {"scatter_watts": 0.0, "measured_seconds": 10.0}
    steady = found("stuck_sensor", runs=samples(longest_constant_seconds=4.0, **coarse))
    stuck = found("stuck_sensor", runs=samples(longest_constant_seconds=9.0, **coarse))
    assert (steady.verdict, stuck.verdict) == ("passed", "failed")


def test_a_run_that_lost_its_noise_is_stuck() -> None:
    one = samples(
        scatter_watts=[0.2] * 11 + [0.01], longest_constant_seconds=0.0003, measured_seconds=10.0
    )
    assert found("stuck_sensor", runs=one).runs == (12,)
    fine = Instrument(kind="powersensor3", scope="device", rails=1, resolution_watts=0.02)
    coarse = fine.model_copy(update={"resolution_watts": 0.1})
    assert found("stuck_sensor", runs=one, instruments=(fine,)).verdict == "passed"
    assert found("stuck_sensor", runs=one, instruments=(coarse,)).verdict == "failed"


def test_unsteady_runs_are_counted_and_stand_apart() -> None:
    few = samples(watts_slope=[0.2] * 4 + [0.01] * 8, watts_excursion=0.1)
    assert found("steady", runs=few).verdict == "passed"
    assert unsteady_runs(few) == {0, 1, 2, 3}
    many = samples(throughput_excursion=[0.3] * 5 + [0.1] * 7)
    assert found("steady", runs=many).verdict == "failed"
    assert found("steady", runs=many).limit == UNSTEADY_SHARE


def test_power_keeps_to_what_the_drive_declares() -> None:
    cap = KNOWN.power_states[0].max_power_watts
    one = rows(device_power_watts=[2.0] * 11 + [1.01 * CAP_EXCEEDED * cap])
    check = found("declared_cap", one, drive=told())
    assert (check.verdict, check.runs) == ("failed", (12,))
    assert found("declared_cap", rows(), drive=told()).value == pytest.approx(3.1 / cap)


@pytest.mark.parametrize(
    ("slope", "instrument", "verdict"),
    [
        (1.15, WALL, "passed"),
        (0.5, WALL, "failed"),
        (2.5, WALL, "failed"),
        (0.0, PSYS, "failed"),
    ],
)
def test_what_is_drawn_behind_the_supply_shows_at_the_wall(
    slope: float, instrument: Instrument, verdict: str
) -> None:
    drive = np.linspace(2.0, 6.0, 12)
    cpu = np.linspace(20.0, 40.0, 12)
    wall = 60.0 + slope * (drive + cpu)
    one = rows(
        device_power_watts=drive.tolist(),
        cpu_power_watts=cpu.tolist(),
        system_power_watts=wall.tolist(),
    )
    check = found("wall_meter", one, instruments=(instrument,))
    assert check.verdict == verdict
    if instrument is WALL:
        assert check.value == pytest.approx(slope)


def test_a_counter_of_the_platform_need_not_contain_the_drive() -> None:
    drive = np.linspace(6.0, 2.0, 12)
    cpu = np.linspace(20.0, 22.0, 12)
    one = rows(
        device_power_watts=drive.tolist(),
        cpu_power_watts=cpu.tolist(),
        system_power_watts=(30.0 + 1.1 * cpu).tolist(),
    )
    assert found("wall_meter", one, instruments=(PSYS,)).verdict == "passed"
    assert found("wall_meter", one, instruments=(WALL,)).verdict == "failed"


def test_repeats_count_whatever_was_written_before() -> None:
    twice = [
        from_row(
            {
                "operation": "read",
                "request_bytes": 4096,
                "iops": iops,
                "session_id": "s",
                "latency_mean_ns": 1e9 / iops,
                "seconds_since_last_write": seconds,
            }
        )
        for iops, seconds in ((10_000.0, 3.0), (25_000.0, 9.0))
    ]
    check = found("repeats", twice)
    assert (check.verdict, check.value) == ("failed", pytest.approx(2.5))
