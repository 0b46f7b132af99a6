"""What a calibration refuses to rest on, and what is left out to judge it by."""

from __future__ import annotations

from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Measurement
from iojoule.sim.calibration.judge import held_out, parse_hold_out
from iojoule.sim.calibration.observations import gate


def run(**changes: Any) -> Measurement:
    sections: dict[str, dict[str, Any]] = {
        "workload": {"operation": "read"},
        "configuration": {"request_bytes": 4096, "queue_depth": 4},
        "state": {},
        "conditions": {"session_id": "one", "host_id": "bench"},
        "observations": {"iops": 50_000.0, "latency_mean_ns": 80_000.0},
    }
    for section, values in changes.items():
        sections[section] = {**sections[section], **values}
    return Measurement.model_validate(sections)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"conditions": {"session_id": "sizes-unsteady"}}, "unsteady"),
        ({"conditions": {"thermal_throttle_seconds": 3.0}}, "throttled for 3 s"),
        ({"conditions": {"power_state_verified": False}}, "verified"),
        ({"observations": {"iops": 60_000.0}}, "Little's law"),
        ({"workload": {"think_time_ns": 1000.0}}, "held it back"),
        ({"workload": {"operation": "mixed", "read_fraction": 0.5}}, "mixed"),
        (
            {
                "configuration": {"jobs": 2},
                "conditions": {"cpu_cores_available": 1},
                "observations": {"iops": 100_000.0},
            },
            "more jobs than cores",
        ),
        ({"configuration": {"scheduler": "bfq"}}, "no scheduler bfq"),
        ({"configuration": {"power_state": 2}}, "power state"),
        ({"configuration": {"engine": "io_uring_cmd"}}, "io_uring_cmd"),
    ],
)
def test_runs_that_tell_of_something_else_are_left_out(
    changes: dict[str, Any], reason: str
) -> None:
    kept, excluded, _ = gate([run(), run(**changes)])
    assert kept == [0]
    assert excluded[0].index == 1
    assert reason in excluded[0].reason
    assert "4096 bytes" in excluded[0].what


def test_repeats_that_contradict_each_other_are_named() -> None:
    far = {"iops": 80_000.0, "latency_mean_ns": 50_000.0}
    kept, _, doubts = gate([run(), run(observations=far)])
    assert kept == [0, 1]
    assert "contradict each other" in doubts[0]


def test_values_and_ranges_are_held_out() -> None:
    rows = [run(configuration={"request_bytes": size}) for size in (4096, 8192, 16384)]
    assert held_out(rows, [parse_hold_out("request_bytes=8192")]) == [False, True, False]
    assert held_out(rows, [parse_hold_out("request_bytes=8000..")]) == [False, True, True]
    assert held_out(rows, [parse_hold_out("operation=write,read")][:0]) == [False] * 3
    rows[1] = run(configuration={"submission_polling": True, "engine": "io_uring"})
    assert held_out(rows, [parse_hold_out("submission_polling=true")]) == [False, True, False]


@pytest.mark.parametrize(
    "text", ["request_bytes", "request_bites=4096", "iops=3", "request_bytes=a..b"]
)
def test_what_cannot_be_held_out_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="hold-out"):
        parse_hold_out(text)


def test_holding_out_nothing_or_everything_is_refused() -> None:
    rows = [run(), run(configuration={"request_bytes": 8192})]
    with pytest.raises(InputError, match="no measurement"):
        held_out(rows, [parse_hold_out("request_bytes=512")])
    with pytest.raises(InputError, match="no measurement"):
        held_out(rows, [parse_hold_out("host_id=1..2")])
    with pytest.raises(InputError, match="every measurement"):
        held_out(rows, [parse_hold_out("request_bytes=1..99999")])
