"""What the exporter offers: the last step of the meter, which has a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from iojoule.api.application.meter import LiveMeter
from iojoule.meter.cpu import CpuReading
from iojoule.meter.groups import ENDED_GROUPS, IDLE, UNATTRIBUTED, GroupReading
from iojoule.meter.meter import Reading

OTHERS = "other"
"""Groups beyond the most that have a series of their own."""

_NO_GROUPS = frozenset({IDLE, UNATTRIBUTED, ENDED_GROUPS})


@dataclass(frozen=True)
class GroupJoules:
    """A counter of one group on one drive.

    Attributes:
        device: Kernel name of the drive.
        group: Path of the control group; `idle`, `unattributed`, `ended` or `other`.
        joules: Since the exporter began; never falls.
        cpu_joules: What the CPU drew for it, likewise.
        quality: See `GroupReading.quality`.
    """

    device: str
    group: str
    joules: float
    cpu_joules: float
    quality: str


@dataclass(frozen=True)
class Publication:
    """One step of the meter.

    Attributes:
        readings: Of every drive.
        cpu: What the CPU drew for each of them, by the key of the drive; None where that is not
            known.
        groups: Of every group; empty where nobody asked for them.
        left_out: Block devices that are no drive of their own, with the code of the reason.
        step_seconds: What the step took.
        unix_seconds: When it ended.
        steps: How many there were.
    """

    readings: tuple[Reading, ...] = ()
    cpu: dict[str, CpuReading] | None = None
    groups: tuple[GroupJoules, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    step_seconds: float = 0.0
    unix_seconds: float = 0.0
    steps: int = 0


class Publisher:
    """Steps a meter on its beat and keeps the last step; use it in a `with` statement.

    Args:
        live: The meter; it is closed at the end.
        groups_max: Groups with a series of their own; the others are one series.

    Attributes:
        after: Called after each step, in the meter's thread.
        last: The last one.
    """

    def __init__(
        self,
        live: LiveMeter,
        groups_max: int = 500,
    ) -> None:
        self._live = live
        self.after: Callable[[Publication], None] | None = None
        self._ending = threading.Event()
        self._thread = ThreadPoolExecutor(1, "meter")
        self._run: Future[None] | None = None
        self._named = _NamedGroups(groups_max)
        self.last = Publication(tuple(live.readings), left_out=live.left_out)

    def __enter__(self) -> Publisher:
        self._run = self._thread.submit(self._follow)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.shutdown()
        self._live.close()

    def wait(self) -> None:
        """Until the meter fails, which it raises, or is ended."""
        if self._run is not None:
            self._run.result()

    def publish(self) -> None:
        """Keep what the meter's last step told."""
        live = self._live
        groups = self._named.joules(live.groups.readings()) if live.groups is not None else ()
        self.last = Publication(
            readings=tuple(live.readings),
            cpu=dict(live.cpu.readings) if live.cpu is not None else None,
            groups=tuple(groups),
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


class _NamedGroups:
    """Counters of groups, of which so many have a name; the rest add up to `other`.

    A group keeps its counter while it lives: one that got none pays into `other` from then on.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._named: set[tuple[str, str]] = set()
        self._counted: dict[tuple[str, str], GroupJoules] = {}
        self._others: dict[str, GroupJoules] = {}

    def joules(self, readings: Iterable[GroupReading]) -> list[GroupJoules]:
        """The counters now."""
        out: list[GroupJoules] = []
        present: set[tuple[str, str]] = set()
        for reading in readings:
            key = (reading.drive, reading.group)
            present.add(key)
            own = GroupJoules(
                *key,
                reading.joules - reading.inherited_joules,
                reading.cpu_joules - reading.inherited_cpu_joules,
                reading.quality,
            )
            if reading.group in _NO_GROUPS or key in self._named:
                out.append(own)
            elif len(self._named) < self._most and key not in self._counted:
                self._named.add(key)
                out.append(own)
            else:
                nothing = GroupJoules(reading.drive, OTHERS, 0.0, 0.0, reading.quality)
                before = self._counted.get(key, nothing)
                self._counted[key] = own
                so_far = self._others.get(reading.drive, nothing)
                self._others[reading.drive] = replace(
                    so_far,
                    joules=so_far.joules + own.joules - before.joules,
                    cpu_joules=so_far.cpu_joules + own.cpu_joules - before.cpu_joules,
                )
        self._named &= present
        self._counted = {key: value for key, value in self._counted.items() if key in present}
        return [*out, *self._others.values()]
