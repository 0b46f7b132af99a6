"""Where a drive is bound by one thing, its rate and latency follow from that thing alone."""

import math
from pathlib import Path

import pytest

from tests.sim.physical.drives import MS, READS, SECOND, US, WRITES, drive, run

STREAM = {**READS, "address_distribution": "streaming"}
"""Reads in address order spread evenly over the dies, whatever the depth."""

NO_SPARE = {"nand": {"transfer_metadata": False}}
READ_COMMAND_NS = 290
PAGE = 8192


def wire_ns(payload: int, gigabytes_per_second: float = 4.0) -> float:
    """Packets of 128 bytes with 28 bytes around each; at least one."""
    packets = max(1, math.ceil(payload / 128))
    return (payload + 28 * packets) / gigabytes_per_second


SUBMISSION_NS = wire_ns(4) + wire_ns(0) + wire_ns(64)
COMPLETION_NS = wire_ns(16)


def test_latency_of_one_read_is_the_sum_of_its_parts() -> None:
    device = drive(physical={"nand": {"ecc_decode_ns": 1500}, "link": {"latency_ns": 200}})
    result = run(device, READS)
    channel_ns = (PAGE + 448) / 0.8
    expected = (
        (SUBMISSION_NS + 3 * 200)
        + READ_COMMAND_NS
        + 75_000
        + channel_ns
        + 1500
        + (wire_ns(PAGE) + COMPLETION_NS + 200)
    )
    assert result.flows[0].drt_ns == pytest.approx(expected, abs=4)


def test_latency_of_one_cached_write_ends_in_memory() -> None:
    result = run(drive(), {**WRITES, "stop_ns": 20 * MS})
    dram_ns = 26 + PAGE / (800e6 * 4) * 1e9
    expected = SUBMISSION_NS + wire_ns(0) + wire_ns(PAGE) + dram_ns + COMPLETION_NS
    assert result.flows[0].device_latency.all.min_ns == pytest.approx(expected, abs=4)


def test_the_link_does_not_stand_idle_while_a_write_waits_for_memory(tmp_path: Path) -> None:
    """A slow memory takes the data of a write; a read's data go to the host meanwhile."""
    device = drive(dram_megatransfers_per_second=20)  # 102 us a page
    latency_ns = []
    for write in ("", f"{40 * US} 0 16 16 0\n"):
        (tmp_path / "trace").write_text(f"0 0 0 16 1\n{write}")
        flow = run(device, {"kind": "trace", "trace_path": str(tmp_path / "trace")}).flows[0]
        read, written = flow.device_latency.read, flow.device_latency.write
        assert read is not None
        latency_ns.append(read.max_ns)
    assert written is not None
    assert 40 * US + written.max_ns > 1.3 * latency_ns[0]  # its completion leaves much later
    assert latency_ns[1] == pytest.approx(latency_ns[0], abs=1)


def test_latency_of_one_uncached_write_ends_in_flash() -> None:
    result = run(drive(physical=NO_SPARE), {**WRITES, "caching": "turned_off"})
    expected = (
        SUBMISSION_NS + wire_ns(0) + wire_ns(PAGE) + 361 + PAGE / 0.8 + 750_000 + COMPLETION_NS
    )
    assert result.flows[0].drt_ns == pytest.approx(expected, abs=4)


@pytest.mark.parametrize("megatransfers", [37, 333, 800, 1600, 4300])
def test_a_slow_channel_bounds_throughput_at_any_rate(megatransfers: int) -> None:
    device = drive(
        channel_megatransfers_per_second=megatransfers,
        chips_per_channel=16,
        page_read_ns=(20_000,) * 3,
        link_lane_gigabytes_per_second=10.0,
        physical=merge_register(NO_SPARE),
    )
    result = run(device, {**STREAM, "queue_depth": 256, "stop_ns": 400 * MS})
    page_ns = PAGE / megatransfers * 1000 + READ_COMMAND_NS
    assert result.flows[0].iops == pytest.approx(2 / page_ns * 1e9, rel=0.01)
    assert result.device.channel_busy_ns is not None
    for busy_ns in result.device.channel_busy_ns:
        assert busy_ns == pytest.approx(result.flows[0].flow_last_completion_ns, rel=0.01)


def merge_register(physical: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    return {"nand": {**physical["nand"], "cache_register": True}}


@pytest.mark.parametrize("dies", [1, 2, 4])
def test_dies_work_in_parallel(dies: int) -> None:
    device = drive(
        dies_per_chip=dies,
        channel_megatransfers_per_second=100_000,
        link_lane_gigabytes_per_second=10.0,
        physical=NO_SPARE,
    )
    result = run(device, {**STREAM, "queue_depth": 64, "stop_ns": SECOND})
    # a die is taken from the command to the end of its data
    page_ns = READ_COMMAND_NS + 75_000 + PAGE / 100
    assert result.flows[0].iops == pytest.approx(4 * dies / page_ns * 1e9, rel=0.01)


def test_a_cache_register_hides_the_transfer_behind_the_array() -> None:
    device = drive(
        channel_megatransfers_per_second=333, physical=merge_register(NO_SPARE), channels=4
    )
    result = run(device, {**STREAM, "queue_depth": 64, "stop_ns": SECOND})
    assert result.flows[0].iops == pytest.approx(8 / (75_000 + READ_COMMAND_NS) * 1e9, rel=0.01)


@pytest.mark.parametrize("planes", [1, 2, 4])
def test_planes_of_a_die_read_at_once(planes: int) -> None:
    device = drive(planes_per_die=planes, plane_allocation="PCWD", physical=NO_SPARE)
    sequential = {
        **READS,
        "address_distribution": "streaming",
        "size_mean_sectors": 16 * planes,
        "alignment_sectors": 16 * planes,
    }
    result = run(device, sequential)
    command_ns = READ_COMMAND_NS + 650 * (planes - 1)
    last_out_ns = planes * PAGE / 0.8
    expected = SUBMISSION_NS + command_ns + 75_000 + last_out_ns + wire_ns(PAGE) + COMPLETION_NS
    assert result.flows[0].drt_ns == pytest.approx(expected, abs=5)
    assert result.device.cmd_mp_read == (result.flows[0].serviced if planes > 1 else 0)


def test_writes_are_bound_by_their_programs() -> None:
    device = drive(physical={**NO_SPARE, "controller": {"dirty_pages_per_plane": 8}})
    flow = {**WRITES, "queue_depth": 64, "address_distribution": "streaming", "stop_ns": SECOND}
    result = run(device, flow)
    page_ns = 361 + PAGE / 0.8 + 750_000
    measured = result.device.pages_programmed_by_origin.user / result.flows[0].sim_end_ns * 1e9
    assert measured == pytest.approx(4 / page_ns * 1e9, rel=0.01)


def test_the_link_bounds_large_reads() -> None:
    device = drive(link_lane_gigabytes_per_second=0.1, chips_per_channel=8, physical=NO_SPARE)
    result = run(device, {**READS, "size_mean_sectors": 256, "queue_depth": 32})
    expected = 0.4e9 * 128 / 156
    assert result.flows[0].bandwidth_bytes_per_second == pytest.approx(expected, rel=0.01)


def test_the_firmware_bounds_small_reads() -> None:
    device = drive(chips_per_channel=32, physical={"controller": {"command_occupancy_ns": 5000}})
    result = run(device, {**READS, "size_mean_sectors": 1, "queue_depth": 128})
    assert result.flows[0].iops == pytest.approx(200_000, rel=0.01)


def test_memory_bounds_cache_hits() -> None:
    device = drive(dram_megatransfers_per_second=100, cache_bytes=64 << 20)
    flow = {
        **READS,
        "queue_depth": 64,
        "caching": "read_cache",
        "working_set_percent": 2,
        "stop_ns": SECOND,
    }
    result = run(device, flow)
    assert result.device.cache_hits_read is not None
    assert result.device.cache_hits_read > 0.95 * result.flows[0].serviced
    hit_ns = 26 + PAGE / 0.4
    assert result.flows[0].iops == pytest.approx(1e9 / hit_ns, rel=0.02)


def test_throughput_times_latency_is_the_requests_under_way() -> None:
    for depth in (1, 7, 40):
        flow = run(drive(), {**READS, "queue_depth": depth, "stop_ns": SECOND}).flows[0]
        assert flow.iops * flow.e2e_ns / 1e9 == pytest.approx(depth, rel=0.01)


def test_requests_are_split_at_the_largest_transfer() -> None:
    device = drive(physical={"controller": {"max_transfer_bytes": 65536}})
    flow = {**READS, "size_mean_sectors": 512, "queue_depth": 2}
    result = run(device, flow)
    assert result.device.physical is not None
    assert result.device.physical.commands == 4 * result.flows[0].serviced


def test_a_read_of_a_part_of_a_page_takes_its_share_of_the_time() -> None:
    options = {"mapping_unit_bytes": 4096, "partial_read_bytes": 4096, "partial_read_share": 0.4}
    device = drive(physical={"nand": options})
    whole = run(device, READS).flows[0].drt_ns
    part = run(device, {**READS, "size_mean_sectors": 8, "alignment_sectors": 8}).flows[0].drt_ns
    moved_ns = (4096 + 224) / 0.8 + wire_ns(PAGE) - wire_ns(PAGE - 4096)
    assert whole - part == pytest.approx(0.6 * 75_000 + moved_ns, abs=6)


def test_every_further_page_of_host_memory_costs_the_link() -> None:
    plain = drive()
    costly = drive(physical={"link": {"further_page_ns": 700}})
    for size_sectors, further in ((8, 0), (16, 1)):
        reads = {**READS, "size_mean_sectors": size_sectors, "alignment_sectors": size_sectors}
        added = run(costly, reads).flows[0].drt_ns - run(plain, reads).flows[0].drt_ns
        assert added == pytest.approx(further * 700, abs=4)
