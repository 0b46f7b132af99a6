"""What every configuration of a grid truly does on a simulated drive, at full speed.

One table is of one kind of work; it is simulated once without noise, then the drive's hidden
effects are put on top. What a configuration draws at a demand that comes in bursts follows from its
table and the drive's idle power (`at_work`): bursts are served at full speed, and between them the
drive rests. How late it answers follows from how they arrive (`validating.chance`).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.api.validating.drives import (
    CAP_QUANTILES,
    SPLIT_SLOWER,
    SPLIT_TAIL,
    STATES,
    HiddenDrive,
)
from iojoule.datasets.schema import Configuration, Workload
from iojoule.sim import _core
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.sweep import Job, run_jobs
from iojoule.sim.workers import cores, open_pool
from iojoule.sim.workload import FlowConfig, Scenario

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

REQUESTS = 24_000
"""A simulated run has at least so many: with a quarter of them p99 is not yet what it settles at,
because garbage collection has hardly begun."""
SECTOR_BYTES = 512
COLUMNS = ("iops", "latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "watts", "cores")
KNOBS = ("request_bytes", "queue_depth", "jobs", "completion", "power_state")


@dataclass(frozen=True)
class Grid:
    """The configurations whose truth is known: every combination."""

    request_bytes: tuple[int, ...] = (4096, 8192, 16384, 32768, 65536)
    queue_depth: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    jobs: tuple[int, ...] = (1, 4)
    completion: tuple[str, ...] = ("interrupt", "polled")
    power_state: tuple[int, ...] = STATES

    def configurations(self) -> list[Configuration]:
        """All of them, the last knob varying fastest."""
        return [
            Configuration.model_validate(dict(zip(KNOBS, values, strict=True)) | ENGINE)
            for values in itertools.product(*(getattr(self, name) for name in KNOBS))
        ]

    def place(self, chosen: Configuration) -> int:
        """Row of a configuration."""
        shape = [len(getattr(self, name)) for name in KNOBS]
        cells = [getattr(self, name).index(getattr(chosen, name) or 0) for name in KNOBS]
        return int(np.ravel_multi_index(cells, shape))


ENGINE = {"engine": "io_uring"}


@dataclass(frozen=True)
class Work:
    """A kind of work; random, as that is where configurations differ most."""

    operation: str
    read_fraction: float

    @property
    def workload(self) -> dict[str, Any]:
        """The fields of a workload profile."""
        fields: dict[str, Any] = {"operation": self.operation, "pattern": "random"}
        if self.operation == "mixed":
            fields["read_fraction"] = self.read_fraction
        return fields


WORKS = (Work("read", 1.0), Work("write", 0.0), Work("mixed", 0.7), Work("mixed", 0.3))
"""What is asked about."""


@dataclass(frozen=True)
class Table:
    """Full speed of a grid's configurations; arrays have shape (configurations,).

    Attributes:
        drive: Whose.
        work: Of which kind.
        grid: The configurations.
        request_bytes: Of each; likewise its power state.
        iops: Requests a second.
        latency: Quantity -> ns.
        watts: Of the drive, leakage apart.
        cores: Busy cores of the host.
        slower: Factor by which hidden effects stretch the time that everything takes.
        tail: Factor on p99 besides.
    """

    drive: HiddenDrive
    work: Work
    grid: Grid
    request_bytes: Floats
    power_state: Rows
    iops: Floats
    latency: Mapping[str, Floats]
    watts: Floats
    cores: Floats
    slower: Floats | float = 1.0
    tail: Floats | float = 1.0

    def at_work(self, demand: float | None) -> dict[str, Floats]:
        """What is observed at a demand in bytes a second; None is as fast as possible.

        Where a configuration cannot carry the demand, it does what it can.
        """
        capacity = self.iops * self.request_bytes
        served = capacity if demand is None else np.minimum(capacity, demand)
        busy = served / capacity
        device = self.at_rest_and_work(demand)
        host = self.drive.host
        cpu = host.base_watts + busy * (host.watts(self.cores) - host.base_watts)
        return self.observed(served, self.latency, device, cpu)

    def at_rest_and_work(self, demand: float | None) -> Floats:
        """Mean power of the drive at a demand in bursts, leakage apart."""
        capacity = self.iops * self.request_bytes
        busy = np.ones(len(capacity)) if demand is None else np.minimum(demand / capacity, 1.0)
        return np.asarray(busy * self.watts + (1 - busy) * self.idle_watts)

    @property
    def idle_watts(self) -> Floats:
        """Power at rest, leakage apart, shape (configurations,)."""
        return np.array(self.drive.idle_watts)[self.power_state]

    def observed(
        self, served: Floats, latency: Mapping[str, Floats], device: Floats, cpu: Floats
    ) -> dict[str, Floats]:
        """What is seen of every configuration at a rate.

        Args:
            served: Bytes a second that it serves.
            latency: ns by quantity.
            device: Mean power of the drive, leakage apart.
            cpu: Mean power of the CPU.
        """
        device = self.drive.with_leakage(device)
        return {
            **latency,
            "capacity_bytes_per_second": self.iops * self.request_bytes,
            "served_bytes_per_second": served,
            "device_power_watts": device,
            "cpu_power_watts": cpu,
            "device_cpu_power_watts": device + cpu,
        }


Tick = Callable[[str, int, int], None]
"""Takes what is under way, how much of it is done, and of how much."""


def tables(
    drives: Sequence[HiddenDrive],
    works: Sequence[Work],
    grid: Grid,
    *,
    kept: Path | None = None,
    tick: Tick | None = None,
) -> dict[tuple[int, Work], Table]:
    """The table of every drive (by its place) and kind of work.

    Args:
        drives: The drives.
        works: The kinds of work.
        grid: The configurations.
        kept: Folder in which simulated tables are kept for the next time.
        tick: Told of the progress.
    """
    chosen = grid.configurations()
    total = len(drives) * len(works) * len(chosen)
    found: dict[tuple[int, Work], Table] = {}
    for place, drive in enumerate(drives):
        for work in works:
            done = len(found) * len(chosen)
            values = _simulated(drive, work, chosen, kept, done, total, tick)
            found[place, work] = _with_effects(drive, work, grid, chosen, values)
    return found


def _simulated(
    drive: HiddenDrive,
    work: Work,
    chosen: Sequence[Configuration],
    kept: Path | None,
    done: int,
    total: int,
    tick: Tick | None,
) -> Floats:
    jobs = [
        Job(drive.states[one.power_state or 0], Scenario(flows=(flow_of(work, one),)))
        for one in chosen
    ]
    path = None if kept is None else kept / f"{digest_of(jobs)}.npy"
    if path is not None and path.is_file():
        return np.asarray(np.load(path, allow_pickle=False), dtype=float)
    finished: set[int] = set()

    def watch(index: int, share: float) -> None:
        if share >= 1.0:
            finished.add(index)
            if tick is not None:
                tick("simulating what is true", done + len(finished), total)

    with open_pool(cores()) as pool:
        results = run_jobs(jobs, EmbeddedEngine(), pool=pool, watch=watch)
    rows = []
    for configuration, result in zip(chosen, results, strict=True):
        flow = result.flows[0]
        latency = flow.end_to_end_latency.all
        seconds = (flow.flow_last_completion_ns - flow.measured_from_ns) * 1e-9
        polled = configuration.completion == "polled"
        busy = float(configuration.jobs) if polled else (flow.host_cpu_seconds or 0.0) / seconds
        rows.append(
            (
                flow.iops,
                latency.mean_ns,
                latency.p50_ns,
                latency.p99_ns,
                result.device.power_watts_mean or 0.0,
                busy,
            )
        )
    values = np.array(rows, dtype=float)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, values)
    return values


def digest_of(jobs: Sequence[Job]) -> str:
    """Names results by everything that they follow from, the compiled core included."""
    digest = hashlib.sha256(Path(_core.__file__).read_bytes())
    for job in jobs:
        digest.update(job.device.model_dump_json().encode())
        digest.update(job.scenario.model_dump_json().encode())
    return digest.hexdigest()[:24]


def flow_of(work: Work, chosen: Configuration, **host: Any) -> FlowConfig:
    """The simulator's flow of a configuration; `host` are further options of `HostOptions`."""
    sectors = chosen.request_bytes // SECTOR_BYTES
    return FlowConfig.model_validate(
        {
            "read_percent": round(100 * work.read_fraction),
            "size_mean_sectors": sectors,
            "alignment_sectors": sectors,
            "queue_depth": chosen.queue_depth,
            # the end of a run, when the queue empties, must not count
            "total_requests": REQUESTS + 16 * chosen.queue_depth * chosen.jobs,
            "initial_occupancy_percent": 60,
            "host": {
                "engine": str(chosen.engine),
                "completion": str(chosen.completion),
                "jobs": chosen.jobs,
                **host,
            },
        }
    )


def _with_effects(
    drive: HiddenDrive, work: Work, grid: Grid, chosen: Sequence[Configuration], values: Floats
) -> Table:
    """The table with the hidden effects but leakage, which depends on the demand."""
    column = {name: values[:, place].copy() for place, name in enumerate(COLUMNS)}
    size = np.array([one.request_bytes for one in chosen], dtype=float)
    state = np.array([one.power_state or 0 for one in chosen], dtype=np.intp)
    idle = np.array(drive.idle_watts)[state]
    stretched, tail = np.ones(len(size)), np.ones(len(size))
    if drive.split_bytes is not None:
        parts = (size // drive.split_bytes).astype(int)
        slower = np.array([SPLIT_SLOWER.get(part, 1.0) for part in parts])
        tail = np.array([SPLIT_TAIL.get(part, 1.0) for part in parts]) / slower
        column["latency_p99_ns"] *= tail
        _slow(column, slower, idle)
        stretched *= slower
    if drive.capped:
        engages, holds = np.quantile(column["watts"], CAP_QUANTILES)
        over = column["watts"] > engages
        # dynamic power falls with the rate
        slower = (column["watts"] - idle) / np.maximum(holds - idle, 1e-9)
        slower = np.where(over, np.maximum(slower, 1.0), 1.0)
        _slow(column, slower, idle)
        stretched *= slower
    latency = {name: column[name] for name in COLUMNS if name.startswith("latency")}
    return Table(
        drive,
        work,
        grid,
        size,
        state,
        column["iops"],
        latency,
        column["watts"],
        column["cores"],
        stretched,
        tail,
    )


def _slow(column: dict[str, Floats], slower: Floats, idle: Floats) -> None:
    """Stretch every latency; rate and dynamic power fall likewise, polling cores stay busy."""
    for name in ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns"):
        column[name] *= slower
    column["iops"] /= slower
    column["watts"] = idle + (column["watts"] - idle) / slower


def measured_workload(work: Work) -> Workload:
    """The workload of a measurement at full speed."""
    return Workload.model_validate(work.workload)
