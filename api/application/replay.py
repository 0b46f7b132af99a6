"""A trace, or a synthetic day, on a simulated drive: a time line of watts, latency and state."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from iojoule.api.application.traces import placed
from iojoule.datasets.errors import InputError
from iojoule.datasets.traces.day import SyntheticDay
from iojoule.datasets.traces.read import Batch, TraceReader
from iojoule.datasets.traces.volumes import survey
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits
from iojoule.sim.engines.fast import FastResult, FastSimulation, Interval
from iojoule.sim.result import Mode
from iojoule.sim.scale_model import scale_model

REQUESTS_WHOLE = 40_000_000
"""Longest day that is simulated whole by default; of longer ones about as many requests are."""

_AHEAD = 4
"""Batches that are read before the drive takes them."""


@dataclass(frozen=True)
class Replay:
    """What came of it.

    Attributes:
        result: Of the engine.
        notes: What to know of the requests.
        ranges: Volume -> where its address range begins on the drive, where there are several.
        scale: Of the model that `result` is of; counts, times and joules of the whole are so many
            times those.
    """

    result: FastResult
    notes: tuple[str, ...]
    ranges: dict[str, int] = field(default_factory=dict)
    scale: float = 1.0

    @property
    def powered(self) -> bool:
        """Whether anything is known of what the drive draws."""
        return self.result.device.energy_joules is not None

    @property
    def requests(self) -> int:
        """Of the whole trace or day."""
        return self._whole(self.result.requests)

    @property
    def seconds(self) -> float:
        """From time 0 until the drive has come to rest."""
        return self.result.simulated_seconds * self.scale

    @property
    def joules(self) -> dict[str, float] | None:
        """By component; None: nothing is known."""
        joules = self.result.device.energy_joules
        return joules and {name: each * self.scale for name, each in joules.items()}

    @property
    def intervals(self) -> list[Interval]:
        """The time line."""
        return [
            replace(
                each,
                start_seconds=each.start_seconds * self.scale,
                seconds=each.seconds * self.scale,
                reads=self._whole(each.reads),
                writes=self._whole(each.writes),
                bytes_read=self._whole(each.bytes_read),
                bytes_written=self._whole(each.bytes_written),
            )
            for each in self.result.intervals
        ]

    def _whole(self, count: int) -> int:
        return round(count * self.scale)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        result = self.result
        return {
            "requests": self.requests,
            "reads": self._whole(result.reads),
            "writes": self._whole(result.writes),
            "bytes_read": self._whole(result.bytes_read),
            "bytes_written": self._whole(result.bytes_written),
            "simulated_seconds": self.seconds,
            "scale": self.scale,
            "energy_joules": self.joules,
            "energy_unknown": result.device.energy_unknown,
            "write_amplification": result.write_amplification,
            "latency": result.latency.model_dump(),
            "read_latency": result.read_latency.model_dump(),
            "write_latency": result.write_latency.model_dump(),
            "volume_ranges_bytes": self.ranges,
            "intervals": [
                asdict(interval) | ({} if self.powered else {"watts": None})
                for interval in self.intervals
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
    result = simulation.result()
    return Replay(result, (*reader.notes(), *result.warnings), ranges)


def replay_day(
    device: DeviceConfig,
    *,
    requests: int,
    volumes: int,
    seed: int,
    scale: float | None,
    interval_seconds: float,
    limits: Limits,
) -> Replay:
    """Replay a synthetic day; the requests are drawn in a thread of their own.

    Args:
        scale: Simulate a model of the day and the drive (`sim.scale_model`); None: 1 for a day of
            at most `REQUESTS_WHOLE`, and else what comes near to so many.

    Raises:
        InputError: The drive cannot hold the volumes, or cannot be simulated.
    """
    model, scale = scale_model(device, requests / REQUESTS_WHOLE if scale is None else scale)
    simulation = _drive(model, interval_seconds / scale, limits)
    day = SyntheticDay(simulation.capacity_bytes, requests, volumes, seed, scale)
    for batch in ahead(day.batches):
        simulation.feed(*batch[:4])
    notes = [
        "a synthetic day with the statistics of the Alibaba block traces of 2020, no real trace"
    ]
    if scale > 1:
        whole = replace(day, space_bytes=round(day.space_bytes * scale), scale=1.0)
        notes.append(
            f"this is a scale model, 1:{scale:.4g}: the same load per second, with {scale:.4g} "
            "times fewer seconds, pages per block and addresses. Its busiest second has "
            f"{day.busiest_second():,.0f} requests, that of a whole day about "
            f"{whole.busiest_second():,.0f}: if the drive cannot keep up there, its mean and tail "
            "latencies are higher than shown. --scale 1 simulates the whole day"
        )
    result = simulation.result()
    return Replay(result, (*notes, *result.warnings), scale=scale)


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
