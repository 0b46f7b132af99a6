"""`iojoule simulate --trace` and `--day`: a time line of watts, latency and state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iojoule.api.application.replay import Replay, replay_day, replay_trace
from iojoule.api.application.traces import reader_of
from iojoule.api.cli import console
from iojoule.api.reports.quantities import quantity
from iojoule.datasets.traces.read import Selection
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits
from iojoule.sim.engines.fast import Interval

TITLES = ("from", "requests/s", "read", "written", "watts", "mean latency", "p99", "state")


DAY_VOLUMES = 1000


@dataclass(frozen=True)
class Replayed:
    """A drive under a trace or a synthetic day.

    Attributes:
        device: The drive.
        interval_seconds: Of the time line.
        limits: Of the run.
    """

    device: DeviceConfig
    interval_seconds: float
    limits: Limits

    def trace(self, paths: Sequence[Path], trace_format: str | None, **selection: Any) -> Replay:
        """Under the requests of files that `Selection` takes."""
        reader = reader_of(paths, trace_format, Selection(**selection))
        return replay_trace(
            self.device, reader, interval_seconds=self.interval_seconds, limits=self.limits
        )

    def day(self, requests: int, scale: float | None) -> Replay:
        """Under a synthetic day of about so many requests, or a model of it."""
        return replay_day(
            self.device,
            requests=requests,
            volumes=DAY_VOLUMES,
            seed=1,
            scale=scale,
            interval_seconds=self.interval_seconds,
            limits=self.limits,
        )


def emit_replay(replay: Replay, *, as_json: bool) -> None:
    """Write the answer on standard output, and what is to be known of it on standard error."""
    if as_json:
        console.emit_json(replay.document())
    else:
        console.emit_table(*_parts(replay))
    for note in replay.notes:
        console.note(note)


def _parts(replay: Replay) -> list[object]:
    result = replay.result
    table = console.new_table(TITLES, title="Time line")
    for interval in replay.intervals:
        table.add_row(*_cells(interval, powered=replay.powered))
    joules, seconds = replay.joules, replay.seconds
    watts = quantity("watts", sum(joules.values()) / seconds) if joules else "unknown power"
    total = (
        f"{replay.requests} requests in {quantity('seconds', seconds)}: {watts} on average, "
        f"p99 {quantity('_ns', result.latency.p99_ns)}"
    )
    unknown = result.device.energy_unknown
    lacking = [f"Without what nobody knows: {', '.join(unknown)}."] if unknown else []
    return [table, "", total, *lacking]


def _cells(interval: Interval, *, powered: bool) -> list[str]:
    seconds = interval.seconds
    busy = interval.requests > 0 or interval.latency_mean_ns > 0
    return [
        quantity("seconds", interval.start_seconds),
        f"{interval.requests / seconds:.4g}",
        quantity("bytes_per_second", interval.bytes_read / seconds),
        quantity("bytes_per_second", interval.bytes_written / seconds),
        quantity("watts", interval.watts) if powered else "unknown",
        quantity("_ns", interval.latency_mean_ns),
        quantity("_ns", interval.latency_p99_ns),
        interval.state.value if busy else f"idle, {interval.state.value}",
    ]
