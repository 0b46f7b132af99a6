"""How long a simulation will take: enough to tell long ones from short ones before they run."""

from __future__ import annotations

from pathlib import Path

from iojoule.sim.device import SECTOR_BYTES, DeviceConfig
from iojoule.sim.workload import FlowConfig, FlowKind, Generator, Scenario

SECONDS_A_RUN = 0.002
SECONDS_A_READ, SECONDS_A_WRITE = 1e-6, 4e-6
SECONDS_A_PAGE_READ, SECONDS_A_PAGE_WRITTEN = 0.7e-6, 1.5e-6
SECONDS_A_PRECONDITIONED_PAGE = 1e-8
"""As measured on one core of 2.5 GHz; only their ratios matter."""

TRACE_LINE_BYTES = 30


def predicted_seconds(device: DeviceConfig, scenario: Scenario) -> float:
    """About how long a run takes: a factor of two off is usual, and does no harm.

    A flow makes requests as fast as its queues, the firmware, the flash and the link allow; writes
    are done when the cache has them, as long as it has room.
    """
    seconds = SECONDS_A_RUN
    for flow in scenario.flows:
        pages, reads = _pages(device, flow), flow.read_percent / 100
        read = SECONDS_A_READ + pages * SECONDS_A_PAGE_READ
        write = SECONDS_A_WRITE + pages * SECONDS_A_PAGE_WRITTEN
        seconds += _requests(device, flow) * (reads * read + (1 - reads) * write)
        if device.preconditioning:
            filled = device.physical_pages * flow.initial_occupancy_percent / 100
            seconds += filled * SECONDS_A_PRECONDITIONED_PAGE
    return seconds


def _pages(device: DeviceConfig, flow: FlowConfig) -> float:
    return max(1.0, flow.size_mean_sectors / device.sectors_per_page)


def _requests(device: DeviceConfig, flow: FlowConfig) -> float:
    if flow.kind is FlowKind.TRACE:
        return _lines(flow.trace_path) * flow.trace_percent / 100 * flow.trace_replays
    if not flow.stop_ns:
        return float(flow.total_requests)
    size, seconds = flow.size_mean_sectors * SECTOR_BYTES, flow.stop_ns * 1e-9
    if flow.host.arrivals_per_second:
        return flow.host.arrivals_per_second * seconds
    if flow.generator is Generator.BANDWIDTH:
        return flow.bandwidth_bytes_per_second / size * seconds
    return _closed_loop(device, flow, size)


def _closed_loop(device: DeviceConfig, flow: FlowConfig, size: int) -> float:
    host, firmware, reads = flow.host, device.physical.controller, flow.read_percent / 100
    pages = _pages(device, flow)
    link_ns = size / (device.link_lane_gigabytes_per_second * device.link_lanes)
    host_ns = host.submit_cpu_ns + host.complete_cpu_ns + host.wake_ns + host.think_time_ns
    latency_ns = reads * max(device.page_read_ns) + firmware.command_latency_ns + link_ns + host_ns
    flash_ns = pages * (
        reads * max(device.page_read_ns) + (1 - reads) * max(device.page_program_ns)
    )
    rate = min(
        flow.queue_depth * host.jobs / latency_ns,
        1 / max(link_ns, firmware.command_occupancy_ns),
    )
    cached = 0.0 if reads == 1 else device.cache_bytes / size / (1 - reads)
    return min(rate * flow.stop_ns, cached + device.planes / flash_ns * flow.stop_ns)


def _lines(path: str) -> float:
    try:
        return Path(path).stat().st_size / TRACE_LINE_BYTES
    except OSError:
        return 0.0  # who replays it says so
