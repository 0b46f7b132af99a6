"""Divides the joules of one control group among its processes: an estimate, never a total.

Source: /proc/PID/io (proc_pid_io(5)). `read_bytes` are fetches from storage; `write_bytes` rise
when a page is dirtied, up to 30 s before a drive is written, and `cancelled_write_bytes` were never
written; neither names a drive. Processes that have ended, or whose file may not be read (owner or
CAP_SYS_PTRACE), are not seen: what the group did beyond the sum of its processes is the remainder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iojoule.meter.attribution import MEMORY_SECONDS, Part

Floats = NDArray[np.float64]

WRITE_BACK_SECONDS = 30.0
"""Age at which the kernel writes dirty pages (vm.dirty_expire_centisecs)."""
QUALITY = "estimate"

_READ, _WRITTEN, _EARLIER = range(3)
"""Columns of volumes: bytes read, bytes written lately, bytes written until background work."""


class ProcessKey(NamedTuple):
    """A process; its start in clock ticks after boot parts it from a later one of the same PID."""

    pid: int
    started_ticks: int


@dataclass(frozen=True)
class ProcessShares:
    """The joules of a group, divided.

    Attributes:
        processes: N keys.
        names: N command names (comm, at most 15 characters).
        joules: Shape (N, 7), columns `Part`.
        remainder: Shape (7,); joules of processes that are not seen, and all idle joules.
        unreadable: Processes whose counters may not be read.
        quality: Always "estimate".
    """

    processes: tuple[ProcessKey, ...]
    names: tuple[str, ...]
    joules: Floats
    remainder: Floats
    unreadable: int
    quality: str = QUALITY


class ProcessSplitter:
    """Divides the joules of one group, interval after interval.

    Args:
        proc: Mount point of procfs.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._before: dict[ProcessKey, tuple[int, int]] = {}
        self._volumes: dict[ProcessKey, Floats] = {}
        self._group = np.zeros(3)
        self._read_at_ticks: int | None = None

    def step(
        self,
        pids: Iterable[int],
        *,
        seconds: float,
        joules: Floats,
        read_bytes: float,
        write_bytes: float,
    ) -> ProcessShares:
        """Divide the joules of one interval; in the first one nothing is known of processes.

        Args:
            pids: Processes of the group now (cgroup.procs).
            seconds: Length of the interval.
            joules: Shape (7,), columns `Part`; what the group was charged with.
            read_bytes: What the group read from its drives in the interval.
            write_bytes: What it wrote.
        """
        ticks = self._uptime_ticks()
        present: dict[ProcessKey, tuple[int, int]] = {}
        names: dict[ProcessKey, str] = {}
        unreadable = 0
        for pid in pids:
            try:
                key, names_key = self._identity(pid)
                present[key] = self._counters(pid)
                names[key] = names_key
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended since it was listed
            except PermissionError:
                unreadable += 1
        decay = np.array(
            [0.0, np.exp(-seconds / WRITE_BACK_SECONDS), np.exp(-seconds / MEMORY_SECONDS)]
        )
        self._group = self._group * decay + (read_bytes, write_bytes, write_bytes)
        volumes = {}
        for key, now in present.items():
            read, written = (
                max(count - before, 0)
                for count, before in zip(now, self._baseline(key, now), strict=True)
            )
            earlier = self._volumes.get(key, np.zeros(3))
            volumes[key] = earlier * decay + (read, written, written)
        self._before, self._volumes, self._read_at_ticks = present, volumes, ticks
        shares, remainder = self._divide(joules)
        keys = tuple(volumes)
        return ProcessShares(keys, tuple(names[key] for key in keys), shares, remainder, unreadable)

    def _divide(self, joules: Floats) -> tuple[Floats, Floats]:
        volumes = np.array(list(self._volumes.values())).reshape(-1, 3)
        whole = np.maximum(volumes.sum(axis=0), self._group)
        fractions = np.divide(volumes, whole, where=whole > 0, out=np.zeros_like(volumes))
        shares = np.zeros((len(volumes), len(Part)))
        for part, column in (
            (Part.READ, _READ),
            (Part.WRITE, _WRITTEN),
            (Part.FLUSH, _WRITTEN),
            (Part.BACKGROUND, _EARLIER),
        ):
            shares[:, part] = joules[part] * fractions[:, column]
        moved, most = volumes[:, [_READ, _WRITTEN]].sum(axis=1), whole[[_READ, _WRITTEN]].sum()
        for part in (Part.AWAKE, Part.CPU):
            shares[:, part] = joules[part] * moved / (most if most > 0 else 1.0)
        return shares, np.maximum(joules - shares.sum(axis=0), 0.0)

    def _baseline(self, key: ProcessKey, now: tuple[int, int]) -> tuple[int, int]:
        """Counters at the start of the interval; 0 for a process that started within it."""
        if key in self._before:
            return self._before[key]
        if self._read_at_ticks is not None and key.started_ticks >= self._read_at_ticks:
            return 0, 0
        return now  # it was moved into the group, or this is the first interval

    def _uptime_ticks(self) -> int:
        seconds = float((self._proc / "uptime").read_text().split()[0])
        return int(seconds * os.sysconf("SC_CLK_TCK"))

    def _identity(self, pid: int) -> tuple[ProcessKey, str]:
        """Key and name; the name stands in parentheses and may hold any character."""
        text = (self._proc / str(pid) / "stat").read_text(errors="replace")
        name = text[text.index("(") + 1 : text.rindex(")")]
        # field 22, counted from field 3, which follows the name
        return ProcessKey(pid, int(text[text.rindex(")") + 2 :].split()[19])), name

    def _counters(self, pid: int) -> tuple[int, int]:
        """Bytes read, and bytes dirtied that were not cancelled."""
        text = (self._proc / str(pid) / "io").read_text()
        fields = dict(line.split(": ") for line in text.splitlines())
        written = int(fields["write_bytes"]) - int(fields["cancelled_write_bytes"])
        return int(fields["read_bytes"]), max(written, 0)
