"""Watches how a drive rests, without a command to it: gaps in diskstats, and who ends them.

A gap is a time in which no request was completed or in flight, over at least one interval between
two reads of /proc/diskstats. It begins and ends in the middle of the intervals in which counters
moved: each end is at most half of one off, to either side. Commands that do not pass the block
layer, such as SMART reads, are in no counter: whoever is known to send them, or has the controller
open, is listed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from iojoule.measure.drive.block_device import Stat
from iojoule.measure.errors import HostStateError
from iojoule.meter.idle import Gaps

INTERVAL_SECONDS = 0.01
"""Between two reads of diskstats, of 20 microseconds each on a host with few drives."""

READ_SHARE = 0.05
"""Share of the time in which they are read at most: on a host with many drives less often."""

LEAST_GAP_SECONDS = 0.1
"""A gap of at least this length whose end is looked into."""

LOOK_EVERY_SECONDS = 0.25
"""Processes are looked at no more often: that takes milliseconds on a large host."""

SEARCH_EVERY_SECONDS, SEARCH_SHARE = 1.0, 0.05
"""How often, and in which share of the time at most, open files are searched for the drive."""

POLLING_TOOLS = {
    "smartd": "reads SMART",
    "smartctl": "reads SMART",
    "smartctl_exporter": "reads SMART",
    "scrutiny-collector-metrics": "reads SMART",
    "skdump": "reads SMART",
    "udisksd": "reads SMART",
    "nvme": "sends admin commands",
    "nvme_exporter": "sends admin commands",
    "hddtemp": "reads temperatures",
    "hddfancontrol": "reads temperatures",
    "sensors": "reads hwmon",
    "sensord": "reads hwmon",
    "fancontrol": "reads hwmon",
    "coolercontrold": "reads hwmon",
    "thermald": "reads hwmon",
    "node_exporter": "reads hwmon",
    "prometheus-node-exporter": "reads hwmon",
    "netdata": "reads hwmon",
    "telegraf": "reads hwmon or SMART",
    "collectd": "reads hwmon or SMART",
    "zabbix_agentd": "reads SMART where asked to",
    "zabbix_agent2": "reads SMART where asked to",
    "glances": "reads hwmon",
    "btop": "reads hwmon",
    "conky": "reads hwmon",
    "psensor": "reads hwmon",
}
"""Program -> what it is known to do to drives; whether it does so here is its configuration."""


@dataclass(frozen=True)
class Poller:
    """A process that may send commands to the drive which no counter shows.

    Attributes:
        pid: Process.
        program: Its name.
        cgroup: Its control group.
        reason: What the program is known for, or what it has open.
        certain: Whether it had the drive's node or its temperature open.
    """

    pid: int
    program: str
    cgroup: str | None
    reason: str
    certain: bool


@dataclass(frozen=True)
class Waker:
    """A process whose I/O counters moved when gaps ended.

    /proc/PID/io names no drive, and counts writes when a page becomes dirty: who writes through
    the page cache shows before the drive is woken, or not at all.

    Attributes:
        pid: Process.
        program: Its name.
        cgroup: Its control group.
        wakes: Ends of gaps at which its counters had moved.
        read_bytes, write_bytes: In the watch.
    """

    pid: int
    program: str
    cgroup: str | None
    wakes: int
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class Watched:
    """How a drive rested.

    Attributes:
        gaps: Without I/O.
        reads, writes: Requests completed in the watch.
        ends: Ends of gaps of `LEAST_GAP_SECONDS` or more.
        unattributed: Those of them at which no process had moved its counters.
        wakers: Most wakes first.
        pollers: Those who may send commands that are not counted.
    """

    gaps: Gaps
    reads: int
    writes: int
    ends: int
    unattributed: int
    wakers: tuple[Waker, ...]
    pollers: tuple[Poller, ...]


@dataclass
class _Drive:
    """The state of the watch of one drive."""

    counters: tuple[int, ...]
    first: tuple[int, ...]
    quiet_since: float | None
    busy_until: float
    begun_before: bool = False
    gaps: list[float] = field(default_factory=list)
    ends: int = 0
    unattributed: int = 0
    wakes: dict[tuple[int, str], int] = field(default_factory=dict)


def watch(
    names: Sequence[str],
    seconds: float,
    *,
    proc: Path = Path("/proc"),
    nodes: Mapping[str, Sequence[Path]] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Watched]:
    """Watch drives for a time; reads files of the kernel only.

    Args:
        names: Kernel names of the drives.
        seconds: How long.
        proc: Root of the process file system.
        nodes: Name -> nodes of the drive and files of its temperature, to see who has them open.
        clock, sleep: Time.

    Returns:
        By name, those that stayed: a drive that vanishes, or whose name another one takes, is left
        out.

    Raises:
        HostStateError: diskstats cannot be read or has not all of the drives at the beginning, or
            the last of them has vanished.
    """
    processes = _Processes(proc, nodes or {})
    begin = now = clock()
    first = _counters(proc, names)
    if missing := sorted(set(names) - set(first)):
        raise _vanished(proc, missing)
    drives = {
        name: _Drive(counters, counters, None if counters[2] else begin, begin, not counters[2])
        for name, counters in first.items()
    }
    cost = 0.0
    while now - begin < seconds:
        sleep(min(max(INTERVAL_SECONDS, cost / READ_SHARE), max(begin + seconds - now, 0.0)))
        before, now = now, clock()
        ended = []
        counted = _counters(proc, tuple(drives))
        cost = clock() - now
        for name in list(drives):
            counters = counted.get(name)
            if counters is None or _fell(drives[name].counters, counters):
                del drives[name]
            elif _step(drives[name], counters, before, now):
                ended.append(drives[name])
        if not drives:
            raise _vanished(proc, names)
        processes.look(now, ended)
    processes.look(now, [], at_the_end=True)
    return {
        name: _result(drive, begin, now, processes, processes.pollers_of(name))
        for name, drive in drives.items()
    }


def _step(drive: _Drive, counters: tuple[int, ...], before: float, now: float) -> bool:
    """Take one read of the counters into the watch; returns whether a long gap has ended."""
    busy = counters[:2] != drive.counters[:2] or counters[2] > 0
    drive.counters = counters
    if not busy:
        if drive.quiet_since is None:
            drive.quiet_since = drive.busy_until
        return False
    middle = (before + now) / 2
    drive.busy_until = now if counters[2] else middle
    since, drive.quiet_since = drive.quiet_since, None
    if since is None or before <= since:
        # no whole interval without I/O
        drive.begun_before = drive.begun_before and bool(drive.gaps)
        return False
    drive.gaps.append(middle - since)
    if middle - since < LEAST_GAP_SECONDS:
        return False
    drive.ends += 1
    return True


def _result(
    drive: _Drive, begin: float, end: float, processes: _Processes, pollers: tuple[Poller, ...]
) -> Watched:
    gaps = list(drive.gaps)
    resting = drive.quiet_since is not None and end > drive.quiet_since
    if resting and drive.quiet_since is not None:
        gaps.append(end - drive.quiet_since)
    observed = Gaps(np.array(gaps), end - begin, drive.begun_before and bool(gaps), resting)
    wakers = (
        replace(processes.waker(key), wakes=drive.wakes.get(key, 0)) for key in processes.moved
    )
    return Watched(
        gaps=observed,
        reads=drive.counters[0] - drive.first[0],
        writes=drive.counters[1] - drive.first[1],
        ends=drive.ends,
        unattributed=drive.unattributed,
        wakers=tuple(
            sorted(wakers, key=lambda waker: (-waker.wakes, -waker.read_bytes, waker.pid))
        ),
        pollers=pollers,
    )


def _counters(proc: Path, names: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Completed reads, and other requests, and those in flight, of the drives that are there."""
    try:
        lines = (proc / "diskstats").read_text().splitlines()
    except OSError as error:
        raise HostStateError(f"{proc}/diskstats: cannot be read ({error.strerror})") from None
    counters = {}
    for line in lines:
        words = line.split()
        if len(words) > 11 and words[2] in names:
            fields = [int(word) for word in words[3:]]
            others = fields[Stat.WRITES] + sum(
                fields[at] for at in (Stat.DISCARDS, Stat.FLUSHES) if at < len(fields)
            )
            counters[words[2]] = (fields[Stat.READS], others, fields[Stat.IN_FLIGHT])
    return counters


def _fell(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """Whether a counter did: it is another drive, or the same one after a reset."""
    return now[0] < before[0] or now[1] < before[1]


def _vanished(proc: Path, names: Sequence[str]) -> HostStateError:
    return HostStateError(f"{proc}/diskstats: has no {', '.join(names)}; has it vanished?")


class _Processes:
    """What the processes of the host do, looked at no more often than allowed."""

    def __init__(self, proc: Path, nodes: Mapping[str, Sequence[Path]]) -> None:
        self._proc = proc
        self._nodes = nodes
        self._last: dict[tuple[int, str], tuple[int, int]] = dict(self._io())
        self._first = dict(self._last)
        self._looked_at = -np.inf
        self._search_at = -np.inf
        self._waiting: list[_Drive] = []
        self._pollers: dict[str, dict[int, Poller]] = {name: {} for name in nodes}
        self.moved: dict[tuple[int, str], None] = {}

    def look(self, now: float, ended: Sequence[_Drive], *, at_the_end: bool = False) -> None:
        """Charge drives whose gaps have ended to those whose counters have moved since."""
        self._waiting += ended
        if now >= self._search_at:
            begin = time.monotonic()
            self._look_for_pollers()
            took = time.monotonic() - begin
            self._search_at = now + max(SEARCH_EVERY_SECONDS, took / SEARCH_SHARE)
        if now - self._looked_at < LOOK_EVERY_SECONDS and not at_the_end:
            return
        if not self._waiting and not at_the_end:
            return
        self._looked_at = now
        counters = dict(self._io())
        moved = [key for key, value in counters.items() if value != self._last.get(key, (0, 0))]
        self._last |= counters
        self.moved |= dict.fromkeys(moved)
        for drive in self._waiting:
            drive.unattributed += not moved
            for key in moved:
                drive.wakes[key] = drive.wakes.get(key, 0) + 1
        self._waiting = []

    def waker(self, key: tuple[int, str]) -> Waker:
        """What is known of a process."""
        read, written = self._last[key]
        read_first, written_first = self._first.get(key, (0, 0))
        pid, program = key
        cgroup = self._cgroup(pid)
        # a number of a process that ended may be given again
        moved = max(read - read_first, 0), max(written - written_first, 0)
        return Waker(pid, program, cgroup, 0, *moved)

    def pollers_of(self, name: str) -> tuple[Poller, ...]:
        """Those seen in the whole watch; certain ones first."""
        pollers = self._pollers.get(name, {}).values()
        return tuple(sorted(pollers, key=lambda poller: (not poller.certain, poller.pid)))

    def _folders(self) -> Iterator[tuple[int, Path]]:
        for folder in self._proc.glob("[0-9]*"):
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                yield int(folder.name), folder

    def _io(self) -> Iterator[tuple[tuple[int, str], tuple[int, int]]]:
        """(pid, program) -> bytes read and written; others' processes only as root."""
        for pid, folder in self._folders():
            text = _text(folder / "io")
            read = re.search(r"^read_bytes: (\d+)", text, re.MULTILINE)
            written = re.search(r"^write_bytes: (\d+)", text, re.MULTILINE)
            if read and written:
                yield (pid, _name(folder)), (int(read[1]), int(written[1]))

    def _look_for_pollers(self) -> None:
        for pid, folder in self._folders():
            program, opened = _program(folder), _opened(folder)
            for name, nodes in self._nodes.items():
                known = self._pollers[name]
                held = sorted(opened & {str(node) for node in nodes})
                if held:
                    reason = f"has {held[0]} open"
                    known[pid] = Poller(pid, program, self._cgroup(pid), reason, True)
                elif program in POLLING_TOOLS and pid not in known:
                    reason = POLLING_TOOLS[program]
                    known[pid] = Poller(pid, program, self._cgroup(pid), reason, False)

    def _cgroup(self, pid: int) -> str | None:
        """Its group in the unified hierarchy, else the first that is no root."""
        text = _text(self._proc / str(pid) / "cgroup")
        lines = [line.split(":", 2) for line in text.splitlines()]
        paths = {words[0]: words[2] for words in lines if len(words) == 3}
        below = [path for path in (paths.get("0"), *paths.values()) if path and path != "/"]
        return below[0] if below else None


def _name(folder: Path) -> str:
    """The name of the process; of a kernel worker without what it works on at the time."""
    name = _text(folder / "comm")
    return re.split(r"[-+]", name)[0] if name.startswith("kworker/") else name


def _program(folder: Path) -> str:
    """The name of the program; of a kernel thread that of the thread."""
    words = _text(folder / "cmdline").split("\0")
    # comm holds 15 characters
    return Path(words[0]).name if words[0] else _text(folder / "comm")


def _opened(folder: Path) -> set[str]:
    try:
        return {str(link.readlink()) for link in (folder / "fd").iterdir()}
    except OSError:
        return set()  # it ended, or belongs to another user


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\n")
    except OSError:
        return ""
