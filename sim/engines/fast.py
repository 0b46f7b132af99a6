"""The fast engine: the physical drive with fewer events, for long traces and many designs.

It is the event engine's drive: the same cache, mapping, collection, power states and energy. A read
costs one event: when it has been sensed, its way over the channel and the link is settled against
their next free times. `docs/results/fast-engine.csv` says how near the results are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits, RunOptions
from iojoule.sim.engines.embedded import (
    NS_PER_SECOND,
    EmbeddedEngine,
    device_result,
    latency_summary,
    native,
    native_limits,
)
from iojoule.sim.physical_options import HostEngine
from iojoule.sim.result import DeviceResult, EngineName, LatencySummary, ScenarioResult
from iojoule.sim.workload import FlowConfig, FlowKind, Generator, Scenario


class FastEngine(EmbeddedEngine):
    """Runs scenarios as `EmbeddedEngine` does; physical mode only."""

    name: ClassVar = EngineName.FAST
    ahead: ClassVar = True

    def run(
        self, device: DeviceConfig, scenario: Scenario, options: RunOptions | None = None
    ) -> ScenarioResult:
        """See `EmbeddedEngine.run`; warns outside the region in which it was checked."""
        result = super().run(device, scenario, options)
        told = (*_closed_loops(scenario.flows), *outside_region(result.device, BESIDE))
        return result.model_copy(update={"warnings": (*result.warnings, *told)})


BESIDE = "; use --engine embedded to be sure"
"""What to do about a warning, where the event engine can be had instead."""


def _closed_loops(flows: Iterable[FlowConfig]) -> Iterator[str]:
    for number, flow in enumerate(flows):
        depth = flow.host.jobs * (1 if flow.host.engine is HostEngine.psync else flow.queue_depth)
        open_loop = (
            flow.kind is FlowKind.TRACE
            or flow.generator is Generator.BANDWIDTH
            or flow.host.arrivals_per_second > 0
        )
        if depth > 1 and not open_loop:
            yield _told(
                f"flows[{number}] is a closed loop of {depth} requests, in which small "
                "differences of order add up",
                "one of twelve",
                "fast_closed_loop",
                BESIDE,
            )


def outside_region(device: DeviceResult, remedy: str = "") -> Iterator[str]:
    """Why the fast engine may be further from the event engine than it is elsewhere."""
    physical = device.physical
    assert physical is not None  # the engine runs nothing else
    if physical.units_moved > 0:
        yield _told(
            "data are moved inside the drive, and small differences decide when",
            "one of forty",
            "fast_collection",
            remedy,
        )


def _told(why: str, share: str, code: str, remedy: str) -> str:
    return (
        f"{why}: p50, p99 or joules differ from the event engine's by more than 2 % in {share} "
        f"such runs{remedy} [{code}]"
    )


class DriveState(StrEnum):
    """What the drive did with writes in an interval."""

    cached = "cached"
    """They went into the pseudo-SLC cache, or there were none."""
    steady = "steady"
    """They went into native blocks, and nothing was moved."""
    collecting = "collecting"
    """Data were moved: garbage collection, folding or wear levelling."""


@dataclass(frozen=True)
class Interval:
    """One interval of a trace; requests count where they arrive, latencies where they are settled.

    Percentiles are within 0.4 %.
    """

    start_seconds: float
    seconds: float
    watts: float
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    latency_mean_ns: float
    latency_p99_ns: int
    state: DriveState

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes


@dataclass(frozen=True)
class FastResult:
    """What a trace did; latencies count from arrival to completion.

    Attributes:
        simulated_seconds: From time 0 to the end, when the drive has come to rest.
        latency, read_latency, write_latency: Percentiles are within
            `percentile_relative_error`.
        device: Joules by component, write amplification, counts of the drive.
        intervals: The time line; empty unless `interval_seconds` was given.
    """

    requests: int
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    simulated_seconds: float
    latency: LatencySummary
    read_latency: LatencySummary
    write_latency: LatencySummary
    device: DeviceResult
    intervals: tuple[Interval, ...]

    @property
    def joules(self) -> dict[str, float]:
        """Energy by component."""
        return self.device.energy_joules or {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where it may be further from the event engine than elsewhere."""
        return tuple(outside_region(self.device))

    @property
    def write_amplification(self) -> float | None:
        """Pages programmed over pages programmed for the host; None without any."""
        return self.device.write_amplification


class FastSimulation:
    """A drive to which requests are fed in batches, in the order of arrival.

    State is kept from batch to batch and memory does not grow with the number of requests. The core
    works without the interpreter's lock; one simulation serves one thread at a time.
    """

    def __init__(
        self,
        device: DeviceConfig,
        *,
        occupancy_percent: int = 0,
        interval_seconds: float | None = None,
        limits: Limits | None = None,
    ) -> None:
        """An idle drive at time 0.

        Args:
            device: A drive in physical mode.
            occupancy_percent: How much of it is written before the first request, where the drive
                has `preconditioning`.
            interval_seconds: Step of the time line; None: no time line.
            limits: Only memory counts here.

        Raises:
            ConfigError: The drive cannot be simulated.
            LimitError: Its tables would need more memory than allowed.
        """
        self._interval_ns = round((interval_seconds or 0) * NS_PER_SECOND)
        self._device = device
        self._lock = threading.Lock()
        self._core = _core.FastSimulation(
            native(device),
            occupancy_percent=occupancy_percent,
            interval_ns=self._interval_ns,
            limits=native_limits(limits or Limits()),
        )

    @property
    def capacity_bytes(self) -> int:
        """What the drive offers; offset and size must stay within it."""
        return self._core.bytes

    @property
    def requests(self) -> int:
        """How many were fed."""
        return self._core.fed

    def feed(
        self,
        arrival_ns: ArrayLike,
        offset_bytes: ArrayLike,
        size_bytes: ArrayLike,
        is_write: ArrayLike,
    ) -> None:
        """Simulate a batch of requests that arrive after all those before.

        Sizes count in the whole sectors of 512 bytes that they touch.

        Raises:
            ConfigError: A request is out of order, empty or not on the drive; what came before it
                counts.
            ModelError: The drive can do no more, e.g. it is worn out.
        """
        with self._lock:
            self._core.feed(
                _column(arrival_ns, np.int64),
                _column(offset_bytes, np.int64),
                _column(size_bytes, np.int64),
                _column(is_write, np.uint8),
            )

    def result(self) -> FastResult:
        """Let the drive come to rest and tell what happened; nothing can be fed afterwards."""
        with self._lock:
            told = self._core.finish()
        flow = told.flows[0]
        return FastResult(
            requests=flow.serviced,
            reads=flow.serviced_read,
            writes=flow.serviced_write,
            bytes_read=flow.bytes_read,
            bytes_written=flow.bytes_written,
            simulated_seconds=told.device.sim_end_ns / NS_PER_SECOND,
            latency=latency_summary(flow.device),
            read_latency=latency_summary(flow.device_read),
            write_latency=latency_summary(flow.device_write),
            device=device_result(told.device, self._device),
            intervals=tuple(self._intervals(told.device.sim_end_ns)),
        )

    def _intervals(self, end_ns: int) -> Any:
        for number, each in enumerate(self._core.intervals):
            start_ns = number * self._interval_ns
            seconds = min(self._interval_ns, max(end_ns - start_ns, 1)) / NS_PER_SECOND
            yield Interval(
                start_seconds=start_ns / NS_PER_SECOND,
                seconds=seconds,
                watts=each.joules / seconds,
                reads=each.reads,
                writes=each.writes,
                bytes_read=each.bytes_read,
                bytes_written=each.bytes_written,
                latency_mean_ns=each.latency_mean_ns,
                latency_p99_ns=each.latency_p99_ns,
                state=_state(each),
            )


def _state(interval: _core.FastInterval) -> DriveState:
    if interval.units_moved > 0:
        return DriveState.collecting
    native_pages = interval.pages_programmed - interval.slc_pages_programmed
    return DriveState.steady if native_pages > 0 else DriveState.cached


def _column(values: ArrayLike, kind: type[np.generic]) -> Any:
    return np.ascontiguousarray(values, dtype=kind)
