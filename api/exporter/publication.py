"""What the exporter offers: the last step of the meter, which has a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from iojoule.api.application.meter import LiveMeter
from iojoule.meter.cpu import CpuReading
from iojoule.meter.group_sums import GroupReadings
from iojoule.meter.readings import Readings


@dataclass(frozen=True)
class Publication:
    """One step of the meter; what is made of it is made when it is read.

    Attributes:
        readings: Of every drive.
        cpu: What the CPU drew for each of them, by the key of the drive; None where that is not
            known.
        groups: Of every group; None where nobody asked for them.
        left_out: Block devices that are no drive of their own, with the code of the reason.
        step_seconds: What the step took.
        unix_seconds: When it ended.
        steps: How many there were.
    """

    readings: Readings
    cpu: dict[str, CpuReading] | None = None
    groups: GroupReadings | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    step_seconds: float = 0.0
    unix_seconds: float = 0.0
    steps: int = 0


class Publisher:
    """Steps a meter on its beat and keeps the last step; use it in a `with` statement.

    Args:
        live: The meter; nobody else steps it meanwhile.

    Attributes:
        after: Called after each step, in the meter's thread.
        last: The last one.
    """

    def __init__(self, live: LiveMeter) -> None:
        self._live = live
        self.after: Callable[[Publication], None] | None = None
        self._ending = threading.Event()
        self._thread = ThreadPoolExecutor(1, "meter")
        self._run: Future[None] | None = None
        self.last = Publication(live.readings, left_out=live.left_out)

    def __enter__(self) -> Publisher:
        self._run = self._thread.submit(self._follow)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.shutdown()

    def wait(self) -> None:
        """Until the meter fails, which it raises, or is ended."""
        if self._run is not None:
            self._run.result()

    def publish(self) -> None:
        """Keep what the meter's last step told."""
        live = self._live
        self.last = Publication(
            readings=live.readings,
            cpu=dict(live.cpu.readings) if live.cpu is not None else None,
            groups=live.groups.readings() if live.groups is not None else None,
            left_out=live.left_out,
            step_seconds=live.step_seconds,
            unix_seconds=time.time(),
            steps=self.last.steps + 1,
        )
        if self.after is not None:
            self.after(self.last)

    def _follow(self) -> None:
        for _ in self._live.follow(sleep=self._sleep):
            if self._ending.is_set():
                return
            self.publish()

    def _sleep(self, seconds: float) -> None:
        self._ending.wait(seconds)
