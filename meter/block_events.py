"""Requests and sectors by drive and kind from block tracepoints: what io.stat does not tell apart.

Kinds show what a drive's unattributed I/O is: flushes, journal (metadata writes), readahead. The
meter works without them. They need bpftrace, CAP_SYS_ADMIN and tracefs, which is mounted in a mount
namespace of its own, so that the host's mounts stay as they are.

Only a counting map is used: 0.4 us a request by BPF's own run-time statistics, 4 % of a core at
100,000 requests/s, while a map of requests costs a drive at 250,000 requests/s a fifth of them. The
owner of a request is not among the tracepoint's fields, and `comm` names the thread that submits,
which may be a kernel worker: no group is charged by it.

Sources: include/trace/events/block.h and blk_fill_rwbs (kernel/trace/blktrace.c) of Linux.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import orjson

from iojoule.datasets.errors import IojouleError
from iojoule.datasets.programs import find_program, program_environment
from iojoule.measure.errors import HostStateError

SECTOR_BYTES = 512
_SYS_ADMIN = 1 << 21
_MINOR_BITS = 20
_TRACEFS = "/sys/kernel/tracing"
_PROGRAM = """\
tracepoint:block:block_rq_complete {{
  @requests[args->dev, args->rwbs] = stats(args->nr_sector);
}}
interval:ms:{milliseconds} {{ print(@requests); printf("end"); }}
"""
_LAST_WORDS = 2000


class Operation(Enum):
    """What a request does."""

    READ = "R"
    WRITE = "W"
    DISCARD = "D"
    FLUSH = "F"
    OTHER = "N"


@dataclass(frozen=True)
class Kind:
    """A request's operation and flags, from the letters `rwbs`.

    Attributes:
        operation: See there.
        preflush: Asks for a flush before it.
        force_unit_access: Is complete when it is durable.
        readahead: Nothing waits for it yet.
        sync: Something waits for it.
        metadata: Of a file system, its journal included.
    """

    operation: Operation
    preflush: bool = False
    force_unit_access: bool = False
    readahead: bool = False
    sync: bool = False
    metadata: bool = False

    @classmethod
    def of(cls, letters: str) -> Kind:
        """From the letters: [F] operation [F] [A] [S] [M]; other operations are OTHER."""
        preflush = len(letters) > 1 and letters[0] == "F" and letters[1] in "RWDFNZ"
        body = letters[1:] if preflush else letters
        try:
            operation = Operation(body[:1])
        except ValueError:
            operation = Operation.OTHER
        flags = body[1:]
        return cls(operation, preflush, "F" in flags, "A" in flags, "S" in flags, "M" in flags)


@dataclass(frozen=True)
class Requests:
    """Completed requests of one kind."""

    count: int
    bytes: int


Totals = Mapping[tuple[str, str], Requests]
"""By "major:minor" and letters `rwbs`; since the start, never falling."""


def why_unavailable(root: Path = Path("/")) -> str | None:
    """Why block events cannot be counted here, with the remedy; None where nothing is known."""
    try:
        _command(1.0, root)
    except IojouleError as error:
        return error.message
    return None


class BlockEventCounter:
    """Counts in the kernel while it is open; a context manager.

    Args:
        interval_seconds: How often the totals are brought up to date.
        root: Where /proc and /sys are.

    Raises:
        HostStateError: Counting is not possible here; the message says why and what to do.
    """

    def __init__(self, interval_seconds: float = 1.0, root: Path = Path("/")) -> None:
        self._interval_seconds = interval_seconds
        self._errors = b""
        self._buffer = b""
        self._newest: dict[str, dict[str, int]] = {}
        self._totals: Totals = {}
        self._complete = False
        self._process = subprocess.Popen(
            _command(interval_seconds, root),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=program_environment(),
        )
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)

    def __enter__(self) -> BlockEventCounter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the counting."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def totals(self) -> Totals:
        """The newest totals; does not wait, and is empty before the first.

        Raises:
            HostStateError: bpftrace has ended; the message holds its own.
        """
        self._buffer += self._available(self._process.stdout)
        self._errors = (self._errors + self._available(self._process.stderr))[-_LAST_WORDS:]
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            if line.strip():
                self._take(line)
        if self._process.poll() is not None:
            message = self._errors.decode(errors="replace").strip()
            raise HostStateError(
                f"bpftrace ended with code {self._process.returncode}: {message or 'no message'}; "
                "run `bpftrace -l 'tracepoint:block:*'` as root to see what this kernel offers"
            )
        return self._totals

    def wait(self, patience_seconds: float = 30.0) -> Totals:
        """The first totals after the start.

        Raises:
            HostStateError: bpftrace has ended, or there are none in time.
        """
        deadline = time.monotonic() + patience_seconds
        while not self.totals() and not self._complete:
            if time.monotonic() > deadline:
                raise HostStateError(f"bpftrace has counted nothing in {patience_seconds:g} s")
            time.sleep(min(0.05, self._interval_seconds))
        return self._totals

    @staticmethod
    def _available(stream: object) -> bytes:
        parts = []
        while True:
            try:
                part = os.read(stream.fileno(), 1 << 16)  # type: ignore[attr-defined]
            except BlockingIOError:
                break
            if not part:
                break
            parts.append(part)
        return b"".join(parts)

    def _take(self, line: bytes) -> None:
        """A line of bpftrace's JSON; totals are complete when their end is printed."""
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            return  # a warning
        if message.get("type") == "stats":
            self._newest = message["data"].get("@requests", {})
        elif message.get("type") == "printf":
            self._totals = totals_of(self._newest)
            self._complete = True


def totals_of(requests: Mapping[str, Mapping[str, int]]) -> Totals:
    """Totals from the map; keys are "number of the device,letters" with major << 20 | minor."""
    totals = {}
    for key, values in requests.items():
        number, _, letters = key.partition(",")
        major, minor = int(number) >> _MINOR_BITS, int(number) & (1 << _MINOR_BITS) - 1
        volume = values["total"] * SECTOR_BYTES
        totals[f"{major}:{minor}", letters] = Requests(values["count"], volume)
    return totals


def _command(interval_seconds: float, root: Path) -> list[str]:
    bpftrace = find_program(
        "bpftrace", "install it (Debian: apt-get install bpftrace)", HostStateError
    )
    unshare = find_program("unshare", "install util-linux", HostStateError)
    shell = find_program("sh", "install a shell", HostStateError)
    _require_permission(root)
    program = _PROGRAM.format(milliseconds=max(round(1000 * interval_seconds), 1))
    script = f'mount -t tracefs tracefs {_TRACEFS} && exec "$0" -f json -e "$1"'
    return [unshare, "--mount", shell, "-c", script, bpftrace, program]


def _require_permission(root: Path) -> None:
    status = (root / "proc/self/status").read_text()
    [capabilities] = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff")]
    if not int(capabilities, 16) & _SYS_ADMIN:
        raise HostStateError("block events need CAP_SYS_ADMIN: run as root")
    if "tracefs" not in (root / "proc/filesystems").read_text().split():
        raise HostStateError("block events need tracefs, which this kernel does not have")
    lockdown = root / "sys/kernel/security/lockdown"
    if lockdown.exists() and "[confidentiality]" in lockdown.read_text():
        raise HostStateError("block events are barred by the kernel's lockdown (confidentiality)")
