"""Power states: the operational ones cap the power over every window, the others save and delay."""

from typing import Any

import numpy as np
import pytest

from iojoule.sim.errors import ConfigError
from iojoule.sim.result import ScenarioResult
from tests.errors import having
from tests.sim.physical.drives import MS, READS, SECOND, US, WRITES, drive, run

STEP_NS = MS
ENERGY: dict[str, Any] = {
    "page_read_joules": (60e-6,) * 3,
    "page_program_joules": (500e-6,) * 3,
    "block_erase_joules": 1e-3,
    "controller_idle_watts": 0.5,
    "controller_active_watts": 1.0,
    "controller_joules_per_byte": 200e-12,
    "link_joules_per_byte": 50e-12,
    "power_step_ns": STEP_NS,
}
STATES = [
    {"max_power_watts": 9.0},
    {"max_power_watts": 2.0, "exit_latency_ns": 200 * US},
    {
        "max_power_watts": 0.05,
        "operational": False,
        "entry_latency_ns": MS,
        "exit_latency_ns": 3 * MS,
        "idle_power_watts": 0.04,
    },
    {
        "max_power_watts": 0.005,
        "operational": False,
        "entry_latency_ns": MS,
        "exit_latency_ns": 9 * MS,
    },
]
WINDOW_NS = 500 * MS
LOAD = {**READS, "queue_depth": 64, "stop_ns": 3 * SECOND}


def in_state(state: int, **power: Any) -> Any:
    options = {"states": STATES, "initial_state": state, "cap_window_ns": WINDOW_NS, **power}
    return drive(physical={"energy": ENERGY, "power": options})


def watts(result: ScenarioResult) -> np.ndarray:
    assert result.device.physical is not None
    return np.asarray(result.device.physical.power_watts)


def largest_mean(series: np.ndarray, window: int) -> float:
    sums = np.concatenate([[0.0], np.cumsum(series)])
    return float(np.max(sums[window:] - sums[:-window]) / window)


@pytest.mark.parametrize("read_percent", [100, 60, 0])
def test_the_cap_holds_over_every_window(read_percent: int) -> None:
    free = run(in_state(0), {**LOAD, "read_percent": read_percent})
    capped = run(in_state(1), {**LOAD, "read_percent": read_percent})
    window = WINDOW_NS // STEP_NS
    assert largest_mean(watts(free), window) > 2.2
    assert largest_mean(watts(capped), window) <= 2.0
    # and is used up: the mean is not far below it while there is work
    assert float(np.mean(watts(capped)[500:2500])) > 1.85
    assert capped.flows[0].iops < 0.8 * free.flows[0].iops
    assert capped.device.physical is not None
    assert capped.device.physical.throttled_ns > SECOND


def test_the_cap_is_the_lower_of_maximum_and_active_power() -> None:
    states = [{"max_power_watts": 9.0, "active_power_watts": 2.0}]
    options = {"states": states, "cap_window_ns": WINDOW_NS}
    result = run(drive(physical={"energy": ENERGY, "power": options}), LOAD)
    assert largest_mean(watts(result), WINDOW_NS // STEP_NS) <= 2.0


def test_a_burst_may_exceed_the_cap_for_a_moment() -> None:
    burst = {**LOAD, "host": {"burst_requests": 1000, "burst_gap_ns": 300 * MS}}
    result = run(in_state(1, cap_burst_ns=50 * MS), burst)
    assert float(np.max(watts(result))) > 2.2
    assert largest_mean(watts(result), WINDOW_NS // STEP_NS) <= 2.0


def test_a_cap_below_what_the_controller_draws_is_refused() -> None:
    hungry = {**ENERGY, "controller_active_watts": 2.5}
    options = {"states": STATES, "initial_state": 1}
    with pytest.raises(ConfigError, check=having(field="physical.power.states")):
        run(drive(physical={"energy": hungry, "power": options}), LOAD)


def test_idle_power_is_that_of_the_state_apst_chose() -> None:
    """Idle for 50 ms, then state 2; after 200 ms there state 3, which declares no idle power."""
    moves = [
        {"from_state": 0, "to_state": 2, "idle_ns": 50 * MS},
        {"from_state": 2, "to_state": 3, "idle_ns": 200 * MS},
    ]
    device = in_state(0, autonomous_transitions=moves)
    device = device.model_copy(
        update={"physical": device.physical.model_copy(update={"idle_tail_ns": SECOND})}
    )
    result = run(device, {**READS, "stop_ns": 0, "total_requests": 10})
    series = watts(result)
    assert result.device.physical is not None
    end_ms = result.flows[0].flow_last_completion_ns // MS
    assert series[end_ms + 5 : end_ms + 45] == pytest.approx(0.5)
    assert series[end_ms + 55 : end_ms + 245] == pytest.approx(0.04)
    assert series[end_ms + 260 : end_ms + 990] == pytest.approx(0.005)
    spent = result.device.physical.power_state_ns
    assert result.device.physical.power_transitions == 2
    assert sum(spent) == result.flows[0].sim_end_ns
    assert spent[3] == pytest.approx(749 * MS, rel=0.01)


def test_waking_costs_the_exit_latency() -> None:
    """Reads 100 ms apart, asleep after 20 ms: each waits for the drive to wake."""
    moves = [{"from_state": 0, "to_state": 2, "idle_ns": 20 * MS}]
    paced = {**READS, "stop_ns": SECOND, "host": {"think_time_ns": 100 * MS}}
    awake = run(in_state(0), paced).flows[0]
    asleep = run(in_state(0, autonomous_transitions=moves), paced)
    flow = asleep.flows[0]
    assert flow.device_latency.all.p50_ns == awake.device_latency.all.p50_ns + 3 * MS
    assert asleep.device.power_watts_mean is not None
    # 80 of 103 ms asleep at 0.04 W
    assert asleep.device.power_watts_mean < 0.16


def test_a_command_during_entry_waits_for_entry_and_exit() -> None:
    moves = [{"from_state": 0, "to_state": 2, "idle_ns": 20 * MS}]
    paced = {**READS, "stop_ns": SECOND, "host": {"think_time_ns": 20 * MS + 400 * US}}
    awake = run(in_state(0), paced).flows[0].device_latency.all
    asleep = run(in_state(0, autonomous_transitions=moves), paced).flows[0].device_latency.all
    # of the millisecond of entry some 0.4 ms are over when the command comes
    assert asleep.p50_ns == pytest.approx(awake.p50_ns + 0.6 * MS + 3 * MS, rel=0.01)


def test_the_host_may_set_a_state_while_running() -> None:
    commands = [{"time_ns": SECOND, "state": 1}, {"time_ns": 2 * SECOND, "state": 0}]
    result = run(in_state(0, commands=commands), LOAD)
    series = watts(result)
    fast, slow = float(np.mean(series[200:900])), float(np.mean(series[1200:1900]))
    assert slow < 2.0 < fast
    assert float(np.mean(series[2200:2900])) == pytest.approx(fast, rel=0.02)
    assert result.device.physical is not None
    assert result.device.physical.power_state_ns[1] == pytest.approx(SECOND, rel=0.01)


def test_a_sleeping_state_set_by_the_host_lasts_until_the_next_command() -> None:
    options = {"commands": [{"time_ns": 0, "state": 3}]}
    paced = {**WRITES, "stop_ns": 0, "total_requests": 2, "host": {"think_time_ns": 100 * MS}}
    result = run(in_state(0, **options), paced)
    assert result.flows[0].device_latency.all.max_ns > 9 * MS
    assert result.flows[0].device_latency.all.min_ns < MS


def test_a_cap_with_hysteresis_holds_too_and_throttles_in_longer_turns() -> None:
    plain = run(in_state(1), LOAD)
    held = run(in_state(1, cap_reopen_ns=8 * MS), LOAD)
    window = WINDOW_NS // STEP_NS
    assert largest_mean(watts(held), window) <= 2.0
    assert float(np.mean(watts(held)[500:2500])) > 1.85
    assert np.std(watts(held)[500:2500]) > 1.5 * np.std(watts(plain)[500:2500])
    with pytest.raises(ValueError, match="work would never go on"):
        in_state(1, cap_reopen_ns=11 * MS)


def test_a_busy_controller_draws_more_and_less_for_each_further_command() -> None:
    busy = {
        **ENERGY,
        "page_read_joules": (0.0,) * 3,
        "controller_joules_per_byte": 0.0,
        "link_joules_per_byte": 0.0,
        "controller_busy_watts": 0.8,
        "controller_busy_commands": 64,
        "controller_busy_exponent": 0.5,
    }
    for depth, extra in ((1, 0.1), (4, 0.2), (16, 0.4), (64, 0.8), (128, 0.8)):
        host = {"engine": "none"}
        flow = {**READS, "queue_depth": depth, "stop_ns": SECOND, "host": host}
        result = run(drive(physical={"energy": busy}), flow)
        assert float(np.median(watts(result))) == pytest.approx(1.0 + extra, rel=0.02)
