"""The fast engine: closed forms, the event engine beside it, batches, bad input."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import engine
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.fast import DriveState, FastEngine, FastResult, FastSimulation
from iojoule.sim.errors import ConfigError
from iojoule.sim.result import EngineName
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario
from tests.sim.engines.fast_cases import CASES, QUANTITIES, case, row, rows, within
from tests.sim.physical.drives import MS, READS, SECOND, US, drive

PAGE = 8192
READ_JOULES = 5e-6


def feed(
    device: DeviceConfig,
    arrival_ns: list[int] | np.ndarray,
    pages: list[int] | np.ndarray,
    *,
    is_write: bool = False,
    interval_seconds: float | None = None,
    batch: int = 1 << 20,
) -> FastResult:
    """What requests of one page each do."""
    made = FastSimulation(device, interval_seconds=interval_seconds)
    offsets, kinds = np.asarray(pages) * PAGE, np.full(len(pages), is_write)
    for i in range(0, len(pages), batch):
        part = slice(i, i + batch)
        made.feed(arrival_ns[part], offsets[part], np.full(len(pages), PAGE)[part], kinds[part])
    return made.result()


def metered(**changes: object) -> DeviceConfig:
    """The small drive, of which a page read takes 5 uJ."""
    return drive(physical={"energy": {"page_read_joules": [READ_JOULES] * 3}}, **changes)


def test_a_read_takes_command_sensing_and_transfer() -> None:
    # channel: 0.29 us command, 8192 + 448 bytes at 800 MB/s; link: packets of 128 bytes at 4 GB/s
    packets = PAGE // 128 * 28
    link_ns = (PAGE + packets) / 4 + (4 + 28 + 28 + 64 + 28) / 4 + (16 + 28) / 4
    expected = 290 + 75_000 + 8640 / 0.8 + link_ns
    result = feed(drive(), [0], [0])
    assert result.latency.p50_ns == pytest.approx(expected, abs=0.01 * US * 5)
    assert result.simulated_seconds == pytest.approx(result.latency.max_ns / SECOND)


def test_energy_is_count_times_energy_of_an_operation() -> None:
    count = 1000
    result = feed(metered(), np.arange(count) * 20 * US, np.arange(count))
    assert result.joules["array_read"] == pytest.approx(count * READ_JOULES)
    assert result.reads == count
    assert result.bytes_read == count * PAGE


def test_dies_saturate_at_their_number_over_the_time_of_a_read() -> None:
    count, dies = 4000, 2  # one on a channel: there they do not wait for each other
    result = feed(drive(chips_per_channel=1), np.zeros(count, dtype=np.int64), np.arange(count))
    of_a_die_ns = 290 + 75_000 + 8640 / 0.8
    assert result.simulated_seconds * SECOND == pytest.approx(count * of_a_die_ns / dies, rel=0.01)


def test_batches_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    arrivals, pages = np.cumsum(rng.integers(0, 60 * US, 3000)), rng.integers(0, 4000, 3000)
    whole = feed(metered(), arrivals, pages)
    parts = feed(metered(), arrivals, pages, batch=7)
    assert whole == parts


def test_intervals_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(6)
    arrivals, pages = np.cumsum(rng.integers(0, 100 * US, 20_000)), rng.integers(0, 4000, 20_000)
    result = feed(metered(), arrivals, pages, interval_seconds=0.1)
    assert sum(each.requests for each in result.intervals) == 20_000
    joules = sum(each.watts * each.seconds for each in result.intervals)
    assert joules == pytest.approx(sum(result.joules.values()), rel=1e-9)
    assert {each.state for each in result.intervals} == {DriveState.cached}


def test_intervals_add_up_to_the_whole_also_where_the_drive_still_works_at_the_end() -> None:
    device = drive(
        flash_technology="tlc",
        physical={
            "idle_tail_ns": 13 * MS,
            "slc": {"static_blocks_per_plane": 4, "fold_idle_ns": 10 * MS},
            "energy": {"array_program_watts": 0.02},
        },
    )
    arrivals, pages = np.arange(100) * 3 * US, np.arange(100)
    wholes = []
    for interval_seconds in (None, 1.0, 0.001):
        result = feed(device, arrivals, pages, is_write=True, interval_seconds=interval_seconds)
        wholes.append(sum(result.joules.values()))
        if interval_seconds is not None:
            joules = sum(each.watts * each.seconds for each in result.intervals)
            assert joules == pytest.approx(wholes[-1], rel=1e-9)
    assert wholes == pytest.approx([wholes[0]] * 3, rel=1e-9)


def test_joules_count_when_they_are_spent_also_after_the_last_request() -> None:
    burst = feed(
        metered(), np.zeros(4000, dtype=int), np.arange(4000), interval_seconds=0.01
    ).intervals
    # four dies read at once, so that each interval takes alike
    assert len(burst) > 8
    middle = [each.watts for each in burst[1:-1]]
    assert middle == pytest.approx([np.mean(middle)] * len(middle), rel=0.05)
    assert [each.requests for each in burst[1:]] == [0] * (len(burst) - 1)


def test_writes_that_overwrite_the_drive_collect() -> None:
    rng = np.random.default_rng(7)
    capacity = FastSimulation(drive()).capacity_bytes // PAGE
    pages = rng.integers(0, capacity, 3 * capacity)
    arrivals = np.arange(len(pages)) * 2000 * US
    result = feed(drive(), arrivals, pages, is_write=True, interval_seconds=1.0)
    assert result.write_amplification is not None
    assert result.write_amplification > 1.1
    assert result.intervals[-2].state is DriveState.collecting


def test_writes_that_overflow_the_buffer_are_all_served_at_the_pace_of_the_dies() -> None:
    count, slots, dies, program_ns = 1000, 128, 4, 750 * US
    result = feed(drive(), np.arange(count) * 100, np.arange(count), is_write=True)
    assert result.requests == count
    wait_ns = (count - slots) / dies * program_ns
    assert result.latency.max_ns == pytest.approx(wait_ns, rel=0.03)
    assert result.latency.mean_ns == pytest.approx(wait_ns * (1 - slots / count) / 2, rel=0.03)


@pytest.mark.parametrize("seed", range(24))
def test_what_is_fed_is_served_as_a_trace_of_the_engines(seed: int, tmp_path: Path) -> None:
    """At loads from a hundredth to many times what the drive can serve."""
    count, rng = 3000, np.random.default_rng(seed)
    places = [1, 8, 32, 512, 65535][seed % 5]
    filled = 50 if seed % 2 else 0
    fetched = {
        "preconditioning": filled > 0, "io_queue_depth": 65535, "queue_fetch_size": places,
    }  # fmt: skip
    device = case(seed)[0].model_copy(update=fetched)
    made = FastSimulation(device, occupancy_percent=filled)
    arrival_ns = np.cumsum(rng.exponential(1e9 / 10 ** rng.uniform(2.5, 5.0), count)).astype(int)
    sectors = rng.choice([8, 16, 64, 256], count)
    first = rng.integers(0, (made.capacity_bytes // 512 - 256) // 8, count) * 8
    writes = rng.random(count) < rng.choice([0.0, 0.5, 1.0])
    made.feed(arrival_ns, first * 512, sectors * 512, writes)
    fed = made.result()
    path = tmp_path / "requests.trace"
    rows = zip(arrival_ns, first, sectors, writes, strict=True)
    path.write_text("".join(f"{at} 0 {at_sector} {n} {1 - w}\n" for at, at_sector, n, w in rows))
    flow = FlowConfig(kind=FlowKind.TRACE, trace_path=str(path), initial_occupancy_percent=filled)
    scenario = Scenario(flows=(flow,))
    near, exact = (each.run(device, scenario) for each in (FastEngine(), EmbeddedEngine()))
    assert fed.requests == near.flows[0].serviced == count
    for told, most in ((near, 1e-3), (exact, 0.1)):
        latency = told.flows[0].device_latency.all
        assert fed.latency.mean_ns == pytest.approx(latency.mean_ns, rel=most)
        assert fed.latency.p99_ns == pytest.approx(latency.p99_ns, rel=most)
        assert sum(fed.joules.values()) == pytest.approx(
            told.device.energy_joules_total, rel=most / 5
        )


@pytest.mark.parametrize("suspension", ["none", "program_erase"])
@pytest.mark.parametrize("cache_register", [False, True])
def test_each_moment_in_which_a_die_works_counts_once(
    suspension: str, *, cache_register: bool
) -> None:
    """Reads overlap through the cache register, and with a program that they suspend."""
    device = drive(suspension=suspension, physical={"nand": {"cache_register": cache_register}})
    flow = FlowConfig(**{**READS, "read_percent": 70, "queue_depth": 16})
    scenario = Scenario(flows=(flow,))
    exact, near = (each.run(device, scenario) for each in (EmbeddedEngine(), FastEngine()))
    assert near.device.die_busy_ns is not None
    assert exact.device.die_busy_ns is not None
    end_ns = near.flows[0].sim_end_ns
    assert max(near.device.die_busy_ns) <= end_ns
    share = sum(exact.device.die_busy_ns) / exact.flows[0].sim_end_ns
    assert sum(near.device.die_busy_ns) / end_ns == pytest.approx(share, rel=0.02)


@pytest.mark.parametrize("read_percent", [100, 70, 0])
def test_the_event_engine_says_the_same(read_percent: int) -> None:
    flow = FlowConfig(
        **{**READS, "read_percent": read_percent, "queue_depth": 8, "stop_ns": SECOND}
    )
    scenario = Scenario(flows=(flow,))
    exact, near = (each.run(metered(), scenario) for each in (EmbeddedEngine(), FastEngine()))
    assert near.engine is EngineName.FAST
    for asked in ("drt_ns", "p50_ns", "p99_ns", "iops"):
        expected = getattr(exact.flows[0], asked)
        assert getattr(near.flows[0], asked) == pytest.approx(expected, rel=0.02), asked
    assert near.device.energy_joules_total == pytest.approx(
        exact.device.energy_joules_total, rel=0.02
    )


def test_random_drives_and_workloads_give_nearly_the_same() -> None:
    lines = list(rows(12))
    assert within(lines, "joules") >= 0.75
    assert within(lines, "write_amplification") == 1


@pytest.mark.slow
def test_a_thousand_random_drives_and_workloads() -> None:
    lines = list(rows(CASES))
    assert within(lines, "joules") >= 0.97
    assert within(lines, "write_amplification") >= 0.98
    assert within(lines) >= 0.93
    without_warning = [line for line in lines if not line["outside"]]
    assert len(without_warning) > 300
    assert within(without_warning) >= 0.99
    assert max(abs(line["joules"]) for line in without_warning) < 0.02


@pytest.mark.parametrize(
    "seed",
    [500210, 500237, 500165, 600204, 500190, 601600, 601573, 602571, 601535, 602564, 1233, 881],
)
def test_what_does_not_depend_on_order_is_the_same_as_with_events(seed: int) -> None:
    """Waits for a mapping page; commands, programs and mapping data on a channel;
    what is suspended; whose turn it is to be written.
    """
    line = row(seed)
    assert line is not None
    assert max(abs(line[name]) for name in QUANTITIES) < 0.004


def told(device: DeviceConfig, **changes: object) -> list[str]:
    """Codes of its warnings."""
    flow = FlowConfig(**{**READS, "stop_ns": 0, "total_requests": 4000, **changes})
    warnings = FastEngine().run(device, Scenario(flows=(flow,))).warnings
    return re.findall(r"\[(fast_\w+)\]", " ".join(warnings))


def test_runs_outside_the_region_that_was_checked_are_warned_of() -> None:
    slowly = {"arrivals_per_second": 200.0}
    assert told(drive(), queue_depth=1) == []
    assert told(drive(), queue_depth=4, host=slowly) == []
    assert told(drive(), queue_depth=4) == ["fast_closed_loop"]
    full = drive(preconditioning=True)
    writes = {"read_percent": 0, "initial_occupancy_percent": 100, "host": slowly}
    assert "fast_collection" in told(full, **writes)


def test_it_is_found_by_name() -> None:
    assert isinstance(engine(EngineName.FAST), FastEngine)


@pytest.mark.parametrize(
    ("arrivals", "pages", "field"),
    [([5, 4], [0, 0], "arrival_ns"), ([-1], [0], "arrival_ns"), ([0], [1 << 40], "offset_bytes")],
)
def test_requests_that_cannot_be_are_refused(
    arrivals: list[int], pages: list[int], field: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        feed(drive(), arrivals, pages)
    assert refused.value.field == field


def test_compat_mode_is_refused() -> None:
    with pytest.raises(ConfigError):
        FastSimulation(DeviceConfig())


def test_a_trace_longer_than_the_clock_reaches_is_refused() -> None:
    days = 86_400 * SECOND
    result = feed(metered(), [0, 99 * days], [0, 1], interval_seconds=86_400)
    assert result.simulated_seconds == pytest.approx(99 * 86_400)
    assert [each.reads for each in result.intervals] == [1, *[0] * 98, 1]
    with pytest.raises(ConfigError, match="100 days"):
        feed(metered(), [0, 365 * days], [0, 1])
