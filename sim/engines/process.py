"""Runs one program in a directory of its own, within limits, and says what it used."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.1
"""How long the program may go on after the caller called it off."""
SPOKEN_BYTES = 1 << 20
"""Of standard output and error, no more than this is kept: the end of it."""


@dataclass(frozen=True)
class ProcessLimits:
    """What the program may use; 0 seconds means any time."""

    memory_bytes: int
    wall_seconds: float
    file_bytes: int


@dataclass(frozen=True)
class Execution:
    """How a program ended and what it used.

    `returncode` is negative for a signal, as in `subprocess`. `stopped` says why it was killed
    from here: "wall_seconds" or "cancelled", None when it ended by itself.
    """

    returncode: int
    stdout: str
    stderr: str
    user_seconds: float
    wall_seconds: float
    peak_bytes: int
    stopped: str | None

    @property
    def signal_name(self) -> str | None:
        """Name of the signal that ended it, such as SIGSEGV."""
        return signal.Signals(-self.returncode).name if self.returncode < 0 else None


def execute(
    command: Sequence[str],
    directory: Path,
    limits: ProcessLimits,
    cancelled: Callable[[], bool] = lambda: False,
) -> Execution:
    """Run `command` in `directory` with no input; leaves stdout.txt and stderr.txt there.

    The program leads a process group of its own, which is killed when the time is over, when
    `cancelled()` says so or when this thread is interrupted. Safe in threads.

    Raises:
        OSError: The program cannot be started.
    """
    said, complained = directory / "stdout.txt", directory / "stderr.txt"
    start = time.monotonic()
    with said.open("wb") as out, complained.open("wb") as err:
        # fork and exec happen at once, so the limits reach a program that has just begun; they
        # are not set before exec because code between the two is not safe with threads.
        child = subprocess.Popen(
            list(command),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,
        )
    try:
        _limit(child.pid, limits)
        stopped = _wait(child.pid, start + (limits.wall_seconds or float("inf")), cancelled)
    finally:
        # Nobody has waited for it yet, so the number still means this program and no other.
        os.killpg(child.pid, signal.SIGKILL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return Execution(
        returncode=child.returncode,
        stdout=_end_of(said),
        stderr=_end_of(complained),
        user_seconds=usage.ru_utime,
        wall_seconds=time.monotonic() - start,
        peak_bytes=usage.ru_maxrss * 1024,
        stopped=stopped,
    )


def _limit(pid: int, limits: ProcessLimits) -> None:
    for kind, most in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.prlimit(pid, kind)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.prlimit(pid, kind, (most, most))


def _wait(pid: int, deadline: float, cancelled: Callable[[], bool]) -> str | None:
    """Return when the program has ended (None) or must be stopped (why)."""
    descriptor = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        while not poller.poll(POLL_SECONDS * 1000):
            if cancelled():
                return "cancelled"
            if time.monotonic() >= deadline:
                return "wall_seconds"
    finally:
        os.close(descriptor)
    return None


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - SPOKEN_BYTES))
        return file.read().decode("utf-8", errors="replace")
