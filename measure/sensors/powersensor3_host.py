"""PowerSensor3 through the vendor's own host library: a second opinion on our reader.

What it needs: the vendor's program `psrun` (github.com/nlesc-recruit/PowerSensor3, host library
1.6), found by the option `program=`, the environment variable IOJOULE_PSRUN, or on the PATH. The
library is C++ without a C interface, ends its process when the device is unplugged, and has no
time-outs; so it stays in a child process: `psrun -d DEVICE -f FIFO -- cat` writes every frame as a
line of text into a named pipe and ends when the standard input of `cat` does. Nothing is linked or
imported, and psrun's own Python bindings are not needed.

The lines carry the device's time stamp, so that lost frames and times are found as with our own
reader. The library leaves ICRNL set on the port, which turns byte 0D into 0A and 16 of the 1024
levels into others; the port is made raw before it starts. It cannot be told to send a marker.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.device_clock import DeviceClock
from iojoule.measure.sensors.options import Options
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
from iojoule.measure.sensors.psrun import Psrun, find_psrun
from iojoule.measure.sensors.serial_port import SerialPort

DRAIN_SECONDS = 0.5
NOMINAL_PERIOD_US = 1e6 / NOMINAL_HERTZ["F411"]


def from_options(options: Options) -> PowerSensor3Host:
    """`powersensor3-host:/dev/ttyACM0[,pairs=0+1][,names=a+b][,scope=device][,program=PSRUN]`.

    Raises:
        SensorError: An option is not what it must be.
    """
    options.known("pairs", "names", "scope", "program")
    return PowerSensor3Host(
        options.needed_address("powersensor3-host:/dev/ttyACM0"),
        pairs=options.many("pairs", int),
        names=options.many("names", str),
        scope=options.get("scope", Scope) or Scope.DEVICE,
        program=options.get("program", str),
    )


class PowerSensor3Host:
    """One device, read by the vendor's library in a child process.

    Args:
        path: Its serial port.
        pairs: Pairs to record; None = all in use.
        names: One name for each of them; None = `pair0` and so on.
        scope: What they feed.
        program: The vendor's psrun; None = as the environment says, or from the PATH.
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
        """Runs psrun for a moment to learn which pairs are in use.

        Raises:
            SensorError: psrun is missing, or the device does not answer it.
        """
        if self._probe is None:
            run, self._probe = self._launch()
            run.end()
        return self._probe

    def start(self) -> None:
        """Start psrun.

        Raises:
            SensorError: See `probe`.
        """
        self.stop()
        self._run, self._probe = self._launch()
        self._clock = DeviceClock(WRAP_US, NOMINAL_PERIOD_US)
        self._watts = np.empty((0, len(self._pairs)))
        self._delivery, self._rest = Delivery(0, 0, (), None, None), None

    def read(self, timeout_seconds: float) -> Chunk:
        """Watts of the rails since the last call.

        Raises:
            SensorError: psrun ended, or the device stalled.
        """
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
        # says what is wrong with the port, where psrun would wait for ever or end without a word,
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
