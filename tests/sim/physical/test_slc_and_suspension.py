"""Pseudo-SLC cache: fast, then not, then folded. Suspension: reads need not wait for programs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.sim.result import ScenarioResult
from tests.sim.physical.drives import MS, READS, SECOND, US, WRITES, drive, run

TLC: dict[str, Any] = {
    "flash_technology": "tlc",
    "page_program_ns": (900_000,) * 3,
    "blocks_per_plane": 96,
    "pages_per_block": 96,
    "plane_allocation": "CWDP",
}
SLC = {"static_blocks_per_plane": 2, "dynamic_blocks_per_plane": 30, "page_program_ns": 150_000}
SEQUENTIAL = {**WRITES, "address_distribution": "streaming", "queue_depth": 8}


def with_slc(**slc: Any) -> Any:
    return drive(**TLC, physical={"slc": {**SLC, **slc}, "check_consistency": True})


def rates(result: ScenarioResult, steps: int) -> np.ndarray:
    """Bytes written per second in each step of 100 ms."""
    series = result.flows[0].series
    assert series is not None
    return np.asarray(series.bytes_written[:steps]) * 10.0


def slc_pages(result: ScenarioResult) -> int:
    assert result.device.physical is not None
    return result.device.physical.slc_pages_programmed


def test_writes_are_fast_until_the_cache_is_full() -> None:
    """32 blocks a plane of a third of their pages: 4096 pages of 8 KiB; then programs of 900 us."""
    flow = {**SEQUENTIAL, "stop_ns": SECOND}
    result = run(with_slc(), flow, series_step_ns=100 * MS)
    rate = rates(result, 10)
    fast = 4 * 8192 / (150_000 + 361 + 8640 / 0.8) * 1e9
    slow = 4 * 8192 / (900_000 + 361 + 8640 / 0.8) * 1e9
    # the first tenth of a second also fills the 1 MiB of memory
    assert rate[0] == pytest.approx(fast + 10 * (1 << 20), rel=0.03)
    assert rate[-4:] == pytest.approx(slow, rel=0.05)
    assert slc_pages(result) == 4 * 32 * 32


def test_a_filled_drive_has_only_the_static_part() -> None:
    """The dynamic part is borrowed from free blocks, of which a used drive has few."""
    device = drive(**TLC, preconditioning=True, physical={"slc": SLC, "check_consistency": True})
    flow = {**SEQUENTIAL, "initial_occupancy_percent": 100, "stop_ns": SECOND}
    assert slc_pages(run(device, flow)) == pytest.approx(4 * 2 * 32, abs=4 * 32)


def test_the_cache_is_folded_while_the_host_is_idle() -> None:
    """Two bursts of 3500 pages: with folding in between the second finds an empty cache."""
    burst = {"burst_requests": 3500, "burst_gap_ns": 20 * SECOND}
    flow = {**SEQUENTIAL, "stop_ns": 0, "total_requests": 7000, "host": burst}
    folded = run(with_slc(fold_idle_ns=100 * MS), flow)
    unfolded = run(with_slc(fold_idle_ns=100 * SECOND), flow)
    assert slc_pages(folded) == 7000
    assert slc_pages(unfolded) < 4200
    assert folded.device.physical is not None
    assert folded.device.physical.slc_folds >= 4 * 26
    # folding programs every page once more
    assert folded.device.write_amplification == pytest.approx(1.95, abs=0.06)


def test_folding_costs_energy_after_the_last_write() -> None:
    energy = {"page_program_joules": (100e-6,) * 3, "slc_page_program_joules": 30e-6}
    device = drive(
        **TLC,
        physical={
            "slc": {**SLC, "fold_idle_ns": 100 * MS},
            "energy": {**energy, "power_step_ns": 100 * MS},
            "finish_folding": True,
        },
    )
    result = run(device, {**SEQUENTIAL, "stop_ns": 0, "total_requests": 4096})
    assert result.device.physical is not None
    watts = result.device.physical.power_watts
    assert watts is not None
    last_write = result.flows[0].flow_last_completion_ns // (100 * MS)
    assert result.flows[0].sim_end_ns > 3 * result.flows[0].flow_last_completion_ns
    assert min(watts[last_write + 3 : -2]) > 0
    total = 4096 * 30e-6 + result.device.pages_programmed_by_origin.gc * 100e-6
    assert result.device.energy_joules_total == pytest.approx(total, rel=1e-6)


def test_writes_may_wait_for_folding_instead() -> None:
    flow = {**SEQUENTIAL, "stop_ns": 4 * SECOND}
    direct, fold = run(with_slc(), flow), run(with_slc(when_full="fold"), flow)
    assert fold.device.physical is not None
    assert fold.device.physical.slc_folds > 100
    assert slc_pages(fold) == fold.device.pages_programmed_by_origin.user
    assert fold.flows[0].iops < direct.flows[0].iops


def test_slc_pages_are_read_faster() -> None:
    device = with_slc(page_read_ns=20_000)
    written = {**SEQUENTIAL, "stop_ns": 0, "total_requests": 2000}
    reads = {
        **READS,
        "address_distribution": "streaming",
        "queue_depth": 1,
        "stop_ns": 0,
        "total_requests": 3,
        "host": {"arrivals_per_second": 1.0, "arrivals": "periodic"},
    }
    result = run(device, {**written, "seed": 1}, {**reads, "seed": 1})
    assert result.device.physical is not None
    assert result.device.physical.slc_pages_read == 0  # flows have their own addresses
    mixed = run(device, {**SEQUENTIAL, "read_percent": 50, "working_set_percent": 5})
    assert mixed.device.physical is not None
    assert mixed.device.physical.slc_pages_read > 0


MIXED = {**READS, "read_percent": 70, "queue_depth": 8, "stop_ns": 2 * SECOND}
SUSPENDING = {
    "preconditioning": True,
    "overprovisioning_ratio": 0.3,
    "suspend_program_for_read_ns": 20_000,
    "suspend_program_ns": 10_000,
    "suspend_erase_for_read_ns": 20_000,
    "suspend_erase_for_write_ns": 20_000,
    "suspend_erase_ns": 20_000,
}


def suspended(suspension: str) -> ScenarioResult:
    device = drive(**SUSPENDING, suspension=suspension, physical={"check_consistency": True})
    return run(device, {**MIXED, "initial_occupancy_percent": 100})


def test_suspension_lowers_the_tail_of_reads() -> None:
    latency = {}
    for name in ("none", "erase", "program", "program_erase"):
        read = suspended(name).flows[0].device_latency.read
        assert read is not None
        latency[name] = read
    none, erase, program, both = latency.values()
    # in the tail reads wait for an erase of 3.8 ms, and on average for a program of 750 us
    assert none.p999_ns > 3_500_000
    assert erase.p999_ns < 0.7 * none.p999_ns
    assert program.p50_ns < 0.3 * none.p50_ns
    assert program.mean_ns < 0.5 * none.mean_ns
    assert both.p50_ns == program.p50_ns
    assert both.p999_ns < 0.8 * min(none.p999_ns, program.p999_ns)


def test_only_what_may_be_suspended_is() -> None:
    for name, programs, erases in (
        ("none", False, False),
        ("erase", False, True),
        ("program", True, False),
        ("program_erase", True, True),
    ):
        counts = suspended(name).device.physical
        assert counts is not None
        assert (counts.program_suspends > 0) is programs
        assert (counts.erase_suspends > 0) is erases


def test_a_read_that_comes_while_a_program_is_loaded_suspends_it_when_it_begins(
    tmp_path: Path,
) -> None:
    """Its data are on the way for 432 us, and the program takes 750 us."""
    device = drive(
        **SUSPENDING, suspension="program", channels=1, chips_per_channel=1,
        channel_megatransfers_per_second=20,
    )  # fmt: skip
    trace = {"kind": "trace", "trace_path": str(tmp_path / "trace")}
    done_ns = []
    for arrival_ns in (50 * US, 200 * US, 400 * US):
        (tmp_path / "trace").write_text(f"0 0 0 16 0\n{arrival_ns} 0 800 16 1\n")
        read = run(device, trace).flows[0].device_latency.read
        assert read is not None
        done_ns.append(arrival_ns + read.max_ns)
    assert done_ns == pytest.approx([done_ns[0]] * 3, abs=20)
    # loaded, suspended, sensed, out; 0.2 us around each
    assert done_ns[0] == pytest.approx((432 + 10 + 75 + 432) * US, rel=0.03)


def test_a_suspended_program_ends_in_spite_of_endless_reads() -> None:
    """Reads saturate the die; the writes beside them still get through."""
    device = drive(**SUSPENDING, suspension="program_erase", channels=1, chips_per_channel=1)
    reads = {**READS, "queue_depth": 64, "stop_ns": SECOND}
    writes = {**WRITES, "caching": "turned_off", "stop_ns": SECOND, "seed": 3}
    result = run(device, reads, writes)
    # a write waits at most 20 ms for its turn, and is suspended at most 10 times for 1 ms
    assert result.flows[1].serviced >= 25
    assert result.flows[1].device_latency.all.max_ns < 50 * MS
