"""The vendor's program psrun as a child process that writes every frame as a line of text.

`psrun -d DEVICE -f FILE -- COMMAND` dumps while COMMAND runs. Here the file is a named pipe and the
command `cat`, which ends when we close its input. The first line names the columns, for instance
`marker time dt_micro device_timestamp current0 voltage0 power0 power_total`. Source: host library
1.6.1 of github.com/nlesc-recruit/PowerSensor3; tried with its programs on the emulated device.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from iojoule.datasets.programs import find_program, program_environment
from iojoule.measure.errors import SensorError

PROGRAM_VARIABLE = "IOJOULE_PSRUN"
START_SECONDS = 5.0
STALL_SECONDS = 1.0
END_SECONDS = 2.0
GATHER_SECONDS = 0.02
RELEASE_SECONDS = 0.25
"""A helper of the library quietens the device for 0.1 s more, and holds the port meanwhile."""
PIPE_BYTES = 1 << 20
"""Half a second of lines; the library stops reading the device while the pipe is full."""
_STAMP = "device_timestamp"
_POWER = re.compile(r"power(\d)")


def find_psrun(program: str | None) -> str:
    """The path of psrun.

    Args:
        program: As the user named it; None = as the environment says, or from the PATH.

    Raises:
        SensorError: There is none.
    """
    named = program or os.environ.get(PROGRAM_VARIABLE) or "psrun"
    return find_program(
        named,
        "it is the vendor's: build PowerSensor3's host library, then name its psrun with program= "
        f"or {PROGRAM_VARIABLE}; or use powersensor3, which needs neither",
        SensorError,
    )


class Psrun:
    """One run; always `end` it.

    Args:
        program: The path of psrun.
        device: The serial port.

    Attributes:
        pairs: The pairs in use.
        errors: What went wrong.

    Raises:
        SensorError: It does not start, or the device does not answer it.
    """

    def __init__(self, program: str, device: str) -> None:
        self.program, self.device = program, device
        self.errors: list[str] = []
        self._folder = tempfile.TemporaryDirectory(prefix="iojoule-psrun-")
        self._said = (Path(self._folder.name) / "said").open("w+b")
        fifo = Path(self._folder.name) / "frames"
        os.mkfifo(fifo)
        # opened before psrun does, which would wait for a reader
        self._pipe = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._rest = b""
        self._heard = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                [program, "-d", device, "-f", fifo, "--", "cat"],
                stdin=subprocess.PIPE, stdout=self._said, stderr=self._said,
                env=program_environment(),  # it looks for `cat` by itself
            )  # fmt: skip
            self._columns = self._header()
        except OSError as error:
            self.end()
            raise SensorError(f"{program} cannot be run: {error.strerror}") from error
        except SensorError:
            self.end()
            raise
        self.pairs = tuple(int(m[1]) for name in self._columns if (m := _POWER.fullmatch(name)))

    def lines(self) -> bytes:
        """Whole lines that came within a few milliseconds, possibly none.

        Raises:
            SensorError: It ended, or nothing came for a second.
        """
        time.sleep(GATHER_SECONDS)
        data = self._available()
        if data is None:
            raise self._failed(f"{self.program} ended by itself: the device was unplugged")
        if not data and time.monotonic() - self._heard > STALL_SECONDS:
            raise self._failed(
                f"{self.program} delivers nothing for {STALL_SECONDS:g} s: the device stalled or "
                "was unplugged; replug it"
            )
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        self._rest = rest
        return whole + newline

    def parse(
        self, lines: bytes, pairs: Sequence[int]
    ) -> tuple[NDArray[np.uint16], NDArray[np.float64]]:
        """Device time stamps, shape (n,), and watts of some pairs, shape (n, pairs).

        Raises:
            SensorError: The lines are not what psrun writes.
        """
        wanted = [f"power{pair}" for pair in pairs]
        types: dict[str, pa.DataType] = {_STAMP: pa.uint16(), **dict.fromkeys(wanted, pa.float64())}
        try:
            table = csv.read_csv(
                io.BytesIO(lines),
                read_options=csv.ReadOptions(column_names=self._columns, use_threads=False),
                parse_options=csv.ParseOptions(delimiter=" "),
                convert_options=csv.ConvertOptions(
                    include_columns=[_STAMP, *wanted], column_types=types
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._failed(f"{self.program} writes lines of another form: {error}") from error
        watts = np.column_stack([table[name].to_numpy() for name in wanted])
        return table[_STAMP].to_numpy(), watts

    def end(self) -> bytes:
        """Let it end, and its lines that were still under way; safe to call twice."""
        process, self._process = self._process, None
        data = b""
        if process is not None:
            data = self._wait_for_end(process)
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
            self._said.close()
            self._folder.cleanup()
        whole, newline, _ = (self._rest + data).rpartition(b"\n")
        self._rest = b""
        return whole + newline

    def _wait_for_end(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdin is not None
        process.stdin.close()
        data = b""
        end = time.monotonic() + END_SECONDS
        while process.poll() is None and time.monotonic() < end:
            # it must be able to write its last lines
            data += self._available() or b""
            time.sleep(GATHER_SECONDS)
        if process.poll() is None:
            self.errors.append(f"{self.program} did not end by itself and was killed")
            process.kill()
            process.wait()
        data += self._available() or b""
        time.sleep(RELEASE_SECONDS)
        return data

    def _header(self) -> list[str]:
        end = time.monotonic() + START_SECONDS
        gathered = b""
        while b"\n" not in gathered:
            assert self._process is not None
            ended = self._process.poll() is not None
            gathered += self._available() or b""
            if b"\n" in gathered:
                break
            if ended:
                raise self._failed(f"{self.program} ended at once")
            if time.monotonic() > end:
                raise self._failed(
                    f"{self.device} does not answer {self.program} within {START_SECONDS:g} s"
                )
            select.select([], [], [], GATHER_SECONDS)
        line, _, self._rest = gathered.partition(b"\n")
        columns = line.decode("ascii", errors="replace").split()
        if _STAMP not in columns:
            raise self._failed(
                f"{self.program} writes no {_STAMP}: it is older than host library 1.4"
            )
        return columns

    def _available(self) -> bytes | None:
        """What is in the pipe; None once the other end is closed."""
        parts: list[bytes] = []
        while True:
            try:
                part = os.read(self._pipe, PIPE_BYTES)
            except BlockingIOError:
                break
            if not part:
                return b"".join(parts) or None
            parts.append(part)
        if parts:
            self._heard = time.monotonic()
        return b"".join(parts)

    def _failed(self, reason: str) -> SensorError:
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        # its first line is its version
        words = [line.strip() for line in said if line.strip() and "psrun version" not in line]
        message = f"{reason} ({words[-1]})" if words else reason
        self.errors.append(message)
        return SensorError(message)
