"""PowerSensor3 through the vendor's own host library: a second opinion on our reader.

It needs the vendor's program `psrun` (github.com/nlesc-recruit/PowerSensor3, host library 1.6.1;
tried on the emulated device), found by the option `program=`, the environment variable
IOJOULE_PSRUN, or on the PATH. The library is C++ without a C interface, ends its process when the
device is unplugged, and has no time-outs; so it stays in a child process: `psrun -d DEVICE -f FIFO
-- cat` writes every frame as a line of text into a named pipe and ends when the standard input of
`cat` does. The first line names the columns, for instance
`marker time dt_micro device_timestamp current0 voltage0 power0 power_total`.

The lines carry the device's time stamp, so that lost frames and times are found as with our own
reader. The library leaves ICRNL set on the port, which turns byte 0D into 0A and 16 of the 1024
levels into others; the port is made raw before it starts. It cannot send a marker.
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
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.device_clock import DeviceClock
from iojoule.measure.sensors.powersensor3_protocol import NOMINAL_HERTZ, WRAP_US
from iojoule.measure.sensors.protocol import (
    Chunk,
    Delivery,
    Flag,
    Kind,
    Probe,
    Rail,
    Scope,
    empty_chunk,
)
from iojoule.measure.sensors.serial_port import SerialPort

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
    """The path of psrun: as named, by the environment, or from the PATH.

    Raises SensorError if missing.
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

    Raises SensorError if it does not start, or the device is silent.
    """

    def __init__(self, program: str, device: str) -> None:
        self.program, self.device = program, device
        self.errors: list[str] = []
        self._folder = tempfile.TemporaryDirectory(prefix="iojoule-psrun-")
        self._output = (Path(self._folder.name) / "output").open("w+b")
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
                stdin=subprocess.PIPE,
                stdout=self._output,
                stderr=self._output,
                env=program_environment(),  # it looks for `cat` by itself
            )
            self._columns = self._header()
        except OSError as error:
            self.end()
            raise SensorError(f"{program} cannot be run: {error.strerror}") from error
        except SensorError:
            self.end()
            raise
        self.pairs = tuple(int(m[1]) for name in self._columns if (m := _POWER.fullmatch(name)))

    def lines(self) -> bytes:
        """Whole lines of a few milliseconds, possibly none.

        Raises SensorError if psrun ended or stalled.
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
        """Device time stamps, shape (n,), and watts, shape (n, pairs).

        Raises SensorError if malformed.
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
            self._output.close()
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
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        # its first line is its version
        words = [line.strip() for line in lines if line.strip() and "psrun version" not in line]
        message = f"{reason} ({words[-1]})" if words else reason
        self.errors.append(message)
        return SensorError(message)


DRAIN_SECONDS = 0.5
NOMINAL_PERIOD_US = 1e6 / NOMINAL_HERTZ["F411"]


def from_options(options: Options) -> PowerSensor3Host:
    """`powersensor3-host:/dev/ttyACM0[,pairs=0+1][,names=a+b][,scope=device][,program=PSRUN]`."""
    options.known("pairs", "names", "scope", "program")
    return PowerSensor3Host(
        options.needed_address("powersensor3-host:/dev/ttyACM0"),
        pairs=options.many("pairs", int),
        names=options.many("names", str),
        scope=options.scope(),
        program=options.get("program", str),
    )


class PowerSensor3Host:
    """One device, read by the vendor's library in a child process.

    By default all pairs in use are recorded, named `pair0` and so on.
    """

    def __init__(
        self,
        path: str,
        *,
        pairs: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        scope: Scope = Scope.DEVICE,
        program: str | None = None,
    ) -> None:
        if names is not None and (pairs is None or len(names) != len(pairs)):
            raise SensorError("powersensor3-host: one name for each pair, as in pairs=0,names=a")
        self.name = f"powersensor3-host:{path}"
        self._path, self._wanted, self._names, self._scope = path, pairs, names, scope
        self._program = program
        self._pairs: tuple[int, ...] = ()
        self._probe: Probe | None = None
        self._run: Psrun | None = None
        self._clock = DeviceClock(WRAP_US, NOMINAL_PERIOD_US)
        self._watts = np.empty((0, 0))
        self._delivery = Delivery(0, 0, (), None, None)
        self._rest: Chunk | None = None

    def probe(self) -> Probe:
        """Runs psrun briefly to find the pairs in use.

        Raises SensorError if it or the device is missing.
        """
        if self._probe is None:
            run, self._probe = self._launch()
            run.end()
        return self._probe

    def start(self) -> None:
        """Start psrun. Raises SensorError as `probe`."""
        self.stop()
        self._run, self._probe = self._launch()
        self._clock = DeviceClock(WRAP_US, NOMINAL_PERIOD_US)
        self._watts = np.empty((0, len(self._pairs)))
        self._delivery, self._rest = Delivery(0, 0, (), None, None), None

    def read(self, timeout_seconds: float) -> Chunk:
        """Watts since the last call. Raises SensorError if psrun ended or the device stalled."""
        if self._run is None:
            rest, self._rest = self._rest, None
            return rest or empty_chunk(self._watts.shape[1])
        end = time.monotonic() + timeout_seconds
        while True:
            self._take_in(self._run, self._run.lines())
            chunk = self._settled(everything=False)
            if len(chunk) or time.monotonic() >= end:
                return chunk

    def stop(self) -> Delivery:
        """End psrun, which lets the device rest; `read` then returns what was still held."""
        run, self._run = self._run, None
        if run is not None:
            self._take_in(run, run.end())
            self._rest = self._settled(everything=True)
            counts = self._delivery
            self._delivery = Delivery(
                counts.samples, counts.lost, tuple(run.errors), counts.first_ns, counts.last_ns
            )
        return self._delivery

    def _launch(self) -> tuple[Psrun, Probe]:
        program = find_psrun(self._program)
        # says what is wrong with the port, where psrun would wait for ever or end silently,
        # leaves it raw, and ends a stream that a killed program left behind
        with SerialPort(self._path) as port:
            port.write(b"T")
            port.drain(quiet_seconds=0.05, limit_seconds=DRAIN_SECONDS)
        run = Psrun(program, self._path)
        try:
            return run, self._describe(run)
        except SensorError:
            run.end()
            raise

    def _describe(self, run: Psrun) -> Probe:
        wanted = run.pairs if self._wanted is None else tuple(self._wanted)
        missing = [pair for pair in wanted if pair not in run.pairs]
        if missing or not wanted:
            what = f"pair {missing[0]} is not in use" if missing else "nothing is connected to it"
            raise SensorError(
                f"{self.name}: {what} (in use: {', '.join(map(str, run.pairs)) or 'none'}): choose "
                "others with pairs=, or configure it with psconfig"
            )
        self._pairs = wanted
        names = self._names or [f"pair{pair}" for pair in wanted]
        rails = tuple(Rail(name, "watts", Kind.POWER, self._scope) for name in names)
        return Probe(rails, NOMINAL_HERTZ["F411"], {"program": run.program})

    def _take_in(self, run: Psrun, lines: bytes) -> None:
        if not lines:
            return
        arrived_ns = time.monotonic_ns()
        stamps_us, watts = run.parse(lines, self._pairs)
        self._clock.add(stamps_us, np.full(len(stamps_us), arrived_ns, dtype=np.int64))
        self._watts = np.concatenate([self._watts, watts])

    def _settled(self, *, everything: bool) -> Chunk:
        timed = self._clock.take(everything=everything)
        count = len(timed.monotonic_ns)
        watts, self._watts = self._watts[:count], self._watts[count:]
        if count:
            so_far = self._delivery
            self._delivery = Delivery(
                samples=so_far.samples + count,
                lost=so_far.lost + int(timed.lost_before.sum()),
                errors=(),
                first_ns=so_far.first_ns or int(timed.monotonic_ns[0]),
                last_ns=int(timed.monotonic_ns[-1]),
            )
        flags = (timed.lost_before > 0) * np.uint8(Flag.GAP)
        return Chunk(timed.monotonic_ns, watts, flags.astype(np.uint8))
