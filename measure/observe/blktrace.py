"""Every request of a live drive, where the host may trace (blktrace of the package blktrace)."""

from __future__ import annotations

import math
import subprocess
import tempfile
import time
from dataclasses import dataclass

from iojoule.datasets.programs import find_program, program_environment
from iojoule.measure.command.block_io import Disk
from iojoule.measure.errors import HostStateError

_REMEDY = (
    "blktrace needs root, a kernel with CONFIG_BLK_DEV_IO_TRACE and `mount -t debugfs none "
    "/sys/kernel/debug`; without --blktrace the block layer's counters do"
)


PATIENCE_SECONDS = 20.0
"""Enough to print a few million events."""


@dataclass(frozen=True)
class Traced:
    """What blkparse printed, and when the trace began."""

    began_unix_seconds: float
    text: str


def capture(disk: Disk, seconds: float, *, patience_seconds: float = PATIENCE_SECONDS) -> Traced:
    """Trace a drive for some whole seconds.

    Args:
        disk: The drive.
        seconds: How long.
        patience_seconds: How long the programs may take to end after that.

    Raises:
        HostStateError: The programs are missing or the host does not let them; says what they said.
    """
    blktrace, blkparse = (
        find_program(name, f"apt-get install blktrace, or {_REMEDY}", HostStateError)
        for name in ("blktrace", "blkparse")
    )
    environment = program_environment()
    began = time.time()
    words = [blktrace, "-d", str(disk.path), "-w", str(math.ceil(seconds)), "-o", "-"]
    with tempfile.TemporaryFile() as complaints:
        tracer = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=complaints, env=environment)
        try:
            parsed = subprocess.run(
                [blkparse, "-q", "-i", "-"],
                stdin=tracer.stdout,
                capture_output=True,
                check=False,
                env=environment,
                timeout=math.ceil(seconds) + patience_seconds,
            )
            failed = parsed.returncode != 0 or tracer.wait(patience_seconds) != 0
        except subprocess.TimeoutExpired:
            # where the kernel refuses, blktrace complains and then waits for ever
            failed = True
        finally:
            tracer.kill()
            tracer.communicate()
        complaints.seek(0)
        said = complaints.read().decode(errors="replace").strip().splitlines()
    if failed:
        why = said[0] if said else "no reason given"
        raise HostStateError(f"{disk.path}: cannot be traced: {why}; {_REMEDY}")
    return Traced(began, parsed.stdout.decode(errors="replace"))
