"""The write path: cache, flush, FUA, partial writes, mapping units."""

from typing import Any

import pytest

from iojoule.sim.result import DeviceResult, PhysicalResult, ScenarioResult
from tests.sim.physical.drives import MS, READS, SECOND, US, WRITES, drive, run

PROGRAM_NS = 750_000
CHECK = {"check_consistency": True}


def physical(result: ScenarioResult) -> PhysicalResult:
    assert result.device.physical is not None
    return result.device.physical


def programs(device: DeviceResult) -> int:
    return device.pages_programmed_by_origin.user


def test_a_full_cache_slows_the_host_to_the_flash() -> None:
    """Four dies of 1 / 761 us each, a cache of 128 pages."""
    result = run(drive(), {**WRITES, "queue_depth": 8, "stop_ns": SECOND})
    flow = result.flows[0]
    assert flow.device_latency.all.min_ns < 20 * US
    late = (flow.serviced - 128) / (flow.flow_last_completion_ns / 1e9)
    assert late == pytest.approx(4 / (PROGRAM_NS + 361 + 8640 / 0.8) * 1e9, rel=0.02)


def test_writes_to_the_same_page_coalesce_in_the_cache() -> None:
    """2 % of the space are 245 pages; a cache of 1024 holds all of it."""
    device = drive(cache_bytes=8 << 20, physical=CHECK)
    small = {**WRITES, "working_set_percent": 2, "queue_depth": 4, "stop_ns": SECOND}
    result = run(device, small)
    assert result.device.cache_hits_write is not None
    assert programs(result.device) < 0.2 * result.flows[0].serviced
    assert result.flows[0].serviced <= result.device.cache_hits_write + programs(result.device)


def test_a_flush_waits_until_the_cache_is_in_flash() -> None:
    """Eight writes of a page each on four dies are two rounds of programs."""
    flow = {**WRITES, "stop_ns": SECOND, "address_distribution": "streaming"}
    flushed = run(drive(physical=CHECK), {**flow, "host": {"flush_every_writes": 8}})
    waits = physical(flushed)
    assert waits.flushes == flushed.flows[0].serviced // 8
    mean_ns = waits.flush_wait_sum_ns / waits.flushes
    assert mean_ns == pytest.approx(2 * (PROGRAM_NS + 11_161), rel=0.05)
    free = run(drive(), {**flow, "total_requests": 100, "stop_ns": 0})
    assert physical(free).flushes == 0


def test_power_loss_protection_makes_flush_and_fua_free() -> None:
    host = {"flush_every_writes": 1, "force_unit_access": True}
    flow = {**WRITES, "stop_ns": 100 * MS, "host": host}
    volatile = run(drive(), flow)
    protected = run(drive(physical={"controller": {"power_loss_protection": True}}), flow)
    assert volatile.flows[0].drt_ns > PROGRAM_NS
    assert protected.flows[0].device_latency.all.min_ns < 20 * US
    assert protected.flows[0].iops > 3 * volatile.flows[0].iops


def test_forced_unit_access_ends_in_flash() -> None:
    flow = {**WRITES, "stop_ns": 100 * MS, "host": {"force_unit_access": True}}
    assert run(drive(), flow).flows[0].device_latency.all.min_ns > PROGRAM_NS


def test_a_flush_does_not_wait_for_what_came_after_it() -> None:
    """One flow flushes, another writes all the time; flushes still end."""
    busy = {**WRITES, "queue_depth": 64, "seed": 9, "stop_ns": SECOND}
    flushing = {**WRITES, "host": {"flush_every_writes": 4}, "stop_ns": SECOND}
    result = run(drive(physical=CHECK), busy, flushing)
    assert physical(result).flushes > 10
    assert physical(result).flush_wait_sum_ns / physical(result).flushes < 60 * MS


def test_part_of_a_unit_is_read_before_it_is_written() -> None:
    device = drive(preconditioning=True, physical=CHECK)
    half = {
        **WRITES,
        "size_mean_sectors": 8,
        "alignment_sectors": 8,
        "initial_occupancy_percent": 100,
        "stop_ns": 100 * MS,
    }
    result = run(device, half)
    assert physical(result).fill_reads == result.device.cache_misses_write
    whole = run(device, {**half, "size_mean_sectors": 16, "alignment_sectors": 16})
    assert physical(whole).fill_reads == 0


@pytest.mark.parametrize("allocation", ["striped", "round_robin"])
def test_small_mapping_units_share_a_page(allocation: str) -> None:
    """Units of 4 KiB on pages of 8 KiB: two random writes a program instead of one, no fills."""
    options: dict[str, Any] = {
        **CHECK,
        "nand": {"mapping_unit_bytes": 4096, "write_allocation": allocation},
    }
    flow = {**WRITES, "size_mean_sectors": 8, "alignment_sectors": 8, "queue_depth": 16}
    result = run(drive(physical=options), {**flow, "stop_ns": SECOND})
    counts = physical(result)
    assert counts.unit_bytes == 4096
    assert counts.fill_reads == 0
    assert counts.units_written / programs(result.device) > 1.98


def test_a_lonely_unit_is_programmed_after_its_wait() -> None:
    options = {
        "nand": {"mapping_unit_bytes": 4096, "unwritten_reads": "zeros"},
        "controller": {"partial_page_wait_ns": 5 * MS},
    }
    flow = {
        **WRITES,
        "size_mean_sectors": 8,
        "alignment_sectors": 8,
        "stop_ns": 0,
        "total_requests": 3,
        "host": {"think_time_ns": 20 * MS},
    }
    result = run(drive(physical=options), flow)
    assert programs(result.device) == 3


def test_round_robin_writes_fill_whole_rows() -> None:
    """Random writes on two planes: striping seldom finds a partner, free choice always does."""
    flow = {**WRITES, "queue_depth": 64, "stop_ns": SECOND}
    rates = {}
    for allocation in ("striped", "round_robin"):
        options = {**CHECK, "nand": {"write_allocation": allocation}}
        result = run(drive(planes_per_die=2, physical=options), flow)
        rates[allocation] = result.flows[0].iops
        if allocation == "round_robin":
            assert result.device.cmd_prog < 0.05 * result.device.cmd_mp_prog
    assert rates["round_robin"] > 1.6 * rates["striped"]


def test_trim_forgets_data() -> None:
    """What is trimmed reads as zeros, without the flash."""
    options = {**CHECK, "nand": {"unwritten_reads": "zeros"}}
    device = drive(preconditioning=True, physical=options)
    flow = {**READS, "initial_occupancy_percent": 100, "queue_depth": 8, "stop_ns": SECOND}
    kept = run(device, flow)
    trimmed = run(device, {**flow, "host": {"trim_percent": 50}})
    assert kept.device.pages_read == kept.flows[0].serviced
    assert trimmed.device.pages_read < 0.6 * trimmed.flows[0].serviced_read  # type: ignore[operator]


@pytest.mark.parametrize("allocation", ["round_robin", "striped"])
@pytest.mark.parametrize("seed", range(12))
def test_trims_leave_room_in_a_small_cache(allocation: str, seed: int) -> None:
    """Large writes wait for room that trimmed data give up at once, wherever they waited."""
    device = drive(
        channels=1, chips_per_channel=1, cache_bytes=1 << 16,
        physical={**CHECK, "nand": {"write_allocation": allocation}},
    )  # fmt: skip
    done = run(
        device,
        {**READS, "stop_ns": 0, "total_requests": 40},
        {
            **WRITES, "stop_ns": 0, "total_requests": 60, "size_mean_sectors": 128, "seed": seed,
            "address_distribution": "random_hotcold", "host": {"trim_percent": 20},
        },
    )  # fmt: skip
    assert done.flows[1].serviced == 60


def test_priorities_share_a_die_in_proportion_and_starve_nobody() -> None:
    device = drive(scheduler="priority_out_of_order")
    flow = {**READS, "queue_depth": 64, "stop_ns": SECOND}
    result = run(device, *({**flow, "priority": p, "seed": 5} for p in ("high", "medium", "low")))
    high, medium, low = (each.iops for each in result.flows)
    assert high / medium == pytest.approx(2, rel=0.1)
    assert medium / low == pytest.approx(2, rel=0.1)
