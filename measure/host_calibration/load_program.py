"""A load of known shape on one CPU until standard input closes; then prints its work as JSON.

Run by path and with the standard library alone, so that it starts at once:
    load_program.py burn CPU DUTY | wake CPU RATE | copy CPU
"""

from __future__ import annotations

import json
import os
import resource
import select
import sys
import time
from collections.abc import Callable

PERIOD_SECONDS = 0.01
"""A partial load is busy for its share of this."""

COPY_BYTES = 64 << 20
"""Beyond the caches of most processors."""

_LOOK_SECONDS = 0.05


def burn(duty: float, ended: Callable[[], bool]) -> int:
    """Count, for a share of the time; returns no bytes."""
    while not ended():
        until = time.perf_counter() + PERIOD_SECONDS * duty
        value = 0
        while time.perf_counter() < until:
            for _ in range(200):
                value += 1
        if duty < 1.0:
            time.sleep(PERIOD_SECONDS * (1.0 - duty))
    return 0


def wake(rate: float, ended: Callable[[], bool]) -> int:
    """Sleep and wake so often a second; returns no bytes."""
    due = time.perf_counter()
    while not ended():
        due = max(due + 1.0 / rate, time.perf_counter())
        time.sleep(max(due - time.perf_counter(), 0.0))
    return 0


def copy(_: float, ended: Callable[[], bool]) -> int:
    """Copy memory; returns the bytes read and written."""
    source, target = bytearray(os.urandom(1 << 20)) * (COPY_BYTES >> 20), bytearray(COPY_BYTES)
    moved = 0
    while True:
        target[:] = source
        moved += 2 * COPY_BYTES
        if ended():
            return moved


def _ending() -> Callable[[], bool]:
    """Whether standard input has closed; looked at rarely, because looking is work too."""
    looked = 0.0

    def ended() -> bool:
        nonlocal looked
        now = time.monotonic()
        if now - looked < _LOOK_SECONDS:
            return False
        looked = now
        return bool(select.select([sys.stdin], [], [], 0)[0])

    return ended


def main() -> None:
    """Carry out what the command line says."""
    kind, cpu, *more = sys.argv[1:]
    os.sched_setaffinity(0, {int(cpu)})
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    moved = {"burn": burn, "wake": wake, "copy": copy}[kind](float([*more, "1"][0]), _ending())
    seconds, used = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF)
    spent = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    done = {
        "busy_cores": spent / seconds,
        "wakeups_per_second": (used.ru_nvcsw - before.ru_nvcsw) / seconds,
        "bytes_per_second": moved / seconds,
    }
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main()
