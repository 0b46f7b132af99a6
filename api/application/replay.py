"""A trace, or a synthetic day, on a simulated drive: a time line of watts, latency and state."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from iojoule.api.application.traces import placed
from iojoule.datasets.errors import InputError
from iojoule.datasets.traces.day import SyntheticDay
from iojoule.datasets.traces.read import Batch, TraceReader
from iojoule.datasets.traces.volumes import survey
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits
from iojoule.sim.engines.fast import FastResult, FastSimulation
from iojoule.sim.result import Mode

_AHEAD = 4
"""Batches that are read before the drive takes them."""


@dataclass(frozen=True)
class Replay:
    """What came of it.

    Attributes:
        result: Of the engine.
        notes: What to know of the requests.
        ranges: Volume -> where its address range begins on the drive, where there are several.
    """

    result: FastResult
    notes: tuple[str, ...]
    ranges: dict[str, int]

    @property
    def powered(self) -> bool:
        """Whether anything is known of what the drive draws."""
        return self.result.device.energy_joules is not None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        result = self.result
        return {
            "requests": result.requests,
            "reads": result.reads,
            "writes": result.writes,
            "bytes_read": result.bytes_read,
            "bytes_written": result.bytes_written,
            "simulated_seconds": result.simulated_seconds,
            "energy_joules": result.device.energy_joules,
            "energy_unknown": result.device.energy_unknown,
            "write_amplification": result.write_amplification,
            "latency": result.latency.model_dump(),
            "read_latency": result.read_latency.model_dump(),
            "write_latency": result.write_latency.model_dump(),
            "volume_ranges_bytes": self.ranges,
            "intervals": [
                asdict(interval) | ({} if self.powered else {"watts": None})
                for interval in result.intervals
            ],
            "notes": list(self.notes),
        }


def replay_trace(
    device: DeviceConfig, reader: TraceReader, *, interval_seconds: float, limits: Limits
) -> Replay:
    """Replay a trace; several volumes get an address range each, for which it is read twice.

    Raises:
        InputError: The trace or the drive is not what it must be.
    """
    simulation = _drive(device, interval_seconds, limits)
    seen = survey(reader)
    ranges: dict[str, int] = {}
    if len(seen.volumes) > 1:
        reader = placed(reader, seen)
        ranges = dict(reader.selection.ranges or {})
    reader = reader.on_drive(simulation.capacity_bytes)
    for batch in ahead(reader.batches):
        simulation.feed(*batch[:4])
    return Replay(simulation.result(), reader.notes(), ranges)


def replay_day(
    device: DeviceConfig,
    *,
    requests: int,
    volumes: int,
    seed: int,
    interval_seconds: float,
    limits: Limits,
) -> Replay:
    """Replay a synthetic day; the requests are drawn in a thread of their own.

    Raises:
        InputError: The drive cannot hold the volumes, or cannot be simulated.
    """
    simulation = _drive(device, interval_seconds, limits)
    day = SyntheticDay(simulation.capacity_bytes, requests, volumes, seed)
    for batch in ahead(day.batches):
        simulation.feed(*batch[:4])
    note = "a synthetic day with the statistics of the Alibaba block traces of 2020, no real trace"
    return Replay(simulation.result(), (note,), {})


def _drive(device: DeviceConfig, interval_seconds: float, limits: Limits) -> FastSimulation:
    if device.mode is not Mode.PHYSICAL:
        raise InputError(
            "a trace is replayed on a drive in physical mode: take a preset, or --mode physical"
        )
    return FastSimulation(device, interval_seconds=interval_seconds, limits=limits)


def ahead(batches: Callable[[], Iterator[Batch]]) -> Iterator[Batch]:
    """The batches, made in a thread of their own while the receiver works on those before."""
    ready: queue.Queue[Batch | BaseException | None] = queue.Queue(_AHEAD)
    ended = threading.Event()

    def offer(item: Batch | BaseException | None) -> None:
        while not ended.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def produce() -> None:
        try:
            for batch in batches():
                offer(batch)
                if ended.is_set():
                    return
            offer(None)
        except BaseException as error:  # noqa: BLE001 - raised again where the batches are taken
            offer(error)

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        ended.set()
        thread.join()
