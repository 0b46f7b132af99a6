"""The live drive does what a whole run does, with somebody else's clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import native
from iojoule.sim.errors import ConfigError
from tests.errors import having
from tests.sim.physical.drives import MS, READS, SECOND, US, WRITES, drive, latency_ns, run

STEP_NS = 50 * US
LINK: dict[str, Any] = {"max_payload_bytes": 4096, "packet_overhead_bytes": 0, "latency_ns": 1000}
QUIET: dict[str, Any] = {
    "controller_idle_watts": 0.5,
    "controller_active_watts": 1.0,
    "power_step_ns": STEP_NS,
}


def live(device: DeviceConfig) -> _core.LiveDrive:
    return _core.LiveDrive(native(device))


def joules(drive_: _core.LiveDrive) -> np.ndarray:
    _, steps = drive_.take_steps()
    return np.asarray(steps)


def test_a_single_read_takes_the_sum_of_its_parts() -> None:
    device = drive(physical={"link": LINK, "controller": {"command_latency_ns": 7 * US}})
    drive_ = live(device)
    drive_.submit("read", 0, 16, 77, 5 * MS)
    [(cookie, done_ns)] = drive_.advance(SECOND)
    assert cookie == 77
    expected = run(device, {**READS, "stop_ns": 0, "total_requests": 1})
    assert done_ns - 5 * MS == expected.flows[0].device_latency.all.min_ns
    parts = latency_ns(4 * 1000, 7 * US, device.page_read_ns[0])  # three ways out, one back
    assert parts < done_ns - 5 * MS < parts + 20 * US


@pytest.mark.parametrize("flow", [READS, WRITES])
def test_the_same_arrivals_have_the_same_completions(flow: dict[str, Any]) -> None:
    """Periodic requests, one after the other in address order, run at once and step by step."""
    device = drive(physical={"link": LINK})
    period_ns, count = 20 * US, 400
    batch = run(
        device,
        {
            **flow,
            "address_distribution": "streaming",
            "stop_ns": 0,
            "total_requests": count,
            "host": {"arrivals_per_second": 1e9 / period_ns, "arrivals": "periodic"},
        },
        series_step_ns=MS,
    )
    drive_ = live(device)
    kind = "read" if flow is READS else "write"
    done: list[tuple[int, int]] = []
    for number in range(count):
        at_ns = (number + 1) * period_ns
        drive_.submit(kind, 16 * number, 16, at_ns, at_ns)
        done += drive_.advance(at_ns + period_ns // 3)
    done += drive_.advance(SECOND)
    latencies = sorted(done_ns - at_ns for at_ns, done_ns in done)
    summary = batch.flows[0].device_latency.all
    assert len(done) == summary.count
    assert latencies[0] == summary.min_ns
    assert latencies[-1] == summary.max_ns
    assert sum(latencies) / count == pytest.approx(summary.mean_ns, abs=1)
    assert [at for _, at in done] == sorted(at for _, at in done)


def test_joules_are_counts_times_joules_and_time_times_watts() -> None:
    energy = {**QUIET, "page_read_joules": (60e-6,) * 3, "controller_joules_per_command": 2e-6}
    drive_ = live(drive(physical={"energy": energy}))
    for number in range(50):
        drive_.submit("read", 16 * number, 16, number, number * MS)
    done = drive_.advance(100 * MS)
    busy_ns = sum(done_ns - number * MS for number, done_ns in done)
    assert len(done) == 50
    total = float(joules(drive_).sum())
    # a command is in the drive from its arrival there, a moment after it was put into the queue
    expected = 50 * 62e-6 + 0.1 * 0.5 + busy_ns * 1e-9 * 0.5
    assert total == pytest.approx(expected, rel=1e-3)


def test_a_program_under_way_counts_while_it_lasts() -> None:
    energy = {**QUIET, "page_program_joules": (1e-3,) * 3}
    device = drive(physical={"energy": energy}, page_program_ns=(10 * MS,) * 3)
    drive_ = live(device)
    drive_.submit("write", 0, 16, 1, 0)
    drive_.advance(5 * MS)
    half = joules(drive_)
    drive_.advance(20 * MS)
    rest = joules(drive_)
    assert len(half) == 100
    assert half[20:] == pytest.approx((1e-3 / 10e-3 + 1.0) * STEP_NS * 1e-9, rel=1e-6)
    assert float(half.sum() + rest.sum()) == pytest.approx(
        1e-3 + 0.02 * 0.5 + 0.0101 * 0.5, rel=0.02
    )


def test_the_clock_passes_without_events() -> None:
    drive_ = live(drive(physical={"energy": QUIET}))
    assert drive_.advance(3 * SECOND) == []
    assert drive_.now_ns == 3 * SECOND
    assert float(joules(drive_).sum()) == pytest.approx(1.5)


def test_taking_the_series_keeps_it_short() -> None:
    drive_ = live(drive(physical={"energy": QUIET}))
    for second in range(1, 6):
        drive_.submit("read", 0, 16, second, second * SECOND)
        drive_.advance(second * SECOND + 500 * MS)
        first_ns, steps = drive_.take_steps()
        assert first_ns == (0 if second == 1 else (second - 1) * SECOND + 500 * MS)
        assert len(steps) == (1500 * MS if second == 1 else SECOND) // STEP_NS


@pytest.mark.parametrize("flow", [READS, WRITES])
def test_whoever_comes_when_due_misses_no_completion(flow: dict[str, Any]) -> None:
    """With a slow link that is far less often than there are events."""
    drive_ = live(drive(physical={"link": {**LINK, "latency_ns": 300 * US}}))
    kind = "read" if flow is READS else "write"
    for number in range(64):
        drive_.submit(kind, 16 * number, 16, number, number * 10 * US)
    looks, done = 0, 0
    while done < 64:
        due_ns = drive_.due_ns
        found = drive_.advance(due_ns)
        assert all(done_ns == due_ns for _, done_ns in found)
        done += len(found)
        looks += 1
    assert looks < 200


def test_a_power_state_can_be_set_at_any_time() -> None:
    states = [
        {"max_power_watts": 9.0},
        {
            "max_power_watts": 5.0,
            "operational": False,
            "idle_power_watts": 0.1,
            "exit_latency_ns": 4 * MS,
        },
    ]
    drive_ = live(drive(physical={"energy": QUIET, "power": {"states": states}}))
    drive_.set_power_state(1, 10 * MS)
    assert drive_.power_state == 1
    drive_.submit("read", 0, 16, 1, 20 * MS)
    [(_, done_ns)] = drive_.advance(SECOND)
    assert done_ns - 20 * MS > 4 * MS
    assert drive_.power_state == 0
    with pytest.raises(ConfigError, check=having(field="physical.power.states")):
        drive_.set_power_state(2, SECOND)


def test_without_its_cache_a_write_waits_for_the_flash() -> None:
    device = drive()
    drive_ = live(device)
    drive_.submit("write", 0, 16, 1, 0)
    [(_, cached_ns)] = drive_.advance(100 * MS)
    drive_.set_write_cache(False)
    drive_.submit("write", 64, 16, 2, 100 * MS)
    [(_, through_ns)] = drive_.advance(200 * MS)
    assert through_ns - 100 * MS > device.page_program_ns[0] > cached_ns


def test_what_is_not_on_the_drive_is_refused() -> None:
    drive_ = live(drive())
    with pytest.raises(ConfigError, check=having(field="sectors")):
        drive_.submit("read", drive_.sectors - 8, 16, 1, 0)
    with pytest.raises(ConfigError, check=having(field="mode")):
        live(drive(mode="compat"))


def test_a_drive_as_text_says_everything() -> None:
    device = drive(physical={"power": {"states": [{"max_power_watts": 0.1}] * 2}}, gc_policy="fifo")
    text = _core.drive_text(native(device))
    assert _core.drive_text(_core.read_drive_text(text)) == text
    said = {line.split()[0].split(".")[-1] for line in text.splitlines()}
    asked = set(DeviceConfig.model_fields) - {"physical", "page_read_ns", "page_program_ns"}
    assert asked <= said
    physical = type(device.physical).model_fields
    for group in ("nand", "link", "controller", "slc", "energy"):
        names = set(type(getattr(device.physical, group)).model_fields)
        assert names - {"page_read_joules", "page_program_joules"} <= said, group
    assert set(physical) - {"nand", "link", "controller", "slc", "energy", "power"} <= said
    with pytest.raises(ConfigError, check=having(field="speed")):
        _core.read_drive_text("speed 3\n")
    with pytest.raises(ConfigError, check=having(field="channels")):
        _core.read_drive_text("channels many\n")
