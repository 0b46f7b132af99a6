"""An emulated PowerSensor3: a pseudo-terminal that speaks its protocol.

It reports the watts of a `PowerSource` with the real resolution of ten bits, noise, and the
firmware's behaviour, defects included. Faults are injected at run time. Runs in a thread
(`EmulatedPowerSensor3.start`) or as a program:
`python -m iojoule.measure.lab.powersensor3 FOLDER --watts 1.5 --watts 4`.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.errors import LabError
from iojoule.measure.sensors.powersensor3_protocol import (
    MAXIMUM_LEVEL,
    PAIRS,
    RECORD_BYTES,
    REFERENCE_VOLTS,
    SENSORS,
    SHUTDOWN,
    SensorRecord,
    encode_frames,
)


class PowerSource(Protocol):
    """Who knows the true watts."""

    step_ns: int
    """Time between two values."""

    def watts(self, until_ns: int) -> tuple[int, NDArray[np.float64]]:
        """Watts since the last call, up to `until_ns` (CLOCK_MONOTONIC).

        Returns the time of the first value, and values `step_ns` apart, shape (n, pairs); n may be
        0.
        """


class ConstantPower:
    """The same watts for ever; `set` changes them."""

    step_ns = 50_000

    def __init__(self, *watts: float) -> None:
        self._watts = np.array(watts, dtype=np.float64)
        self._next_ns = time.monotonic_ns()

    def set(self, *watts: float) -> None:
        """From now on these."""
        self._watts = np.array(watts, dtype=np.float64)

    def watts(self, until_ns: int) -> tuple[int, NDArray[np.float64]]:
        """See `PowerSource`."""
        begin = self._next_ns
        count = max((until_ns - begin) // self.step_ns, 0)
        self._next_ns += count * self.step_ns
        return begin, np.broadcast_to(self._watts, (count, len(self._watts)))


@dataclass(frozen=True)
class Faults:
    """Current faults.

    Attributes:
        mute: Commands are read and not answered.
        only_garbage: Random bytes instead of frames.
        garbage_bytes: This many random bytes come in between,
        garbage_every: on average once in so many frames.
        drop: This many frames are lost at the begin
        drop_of: of every so many.
        silent_until_ns: No frame is sent before then (CLOCK_MONOTONIC).
        full_scale_until_ns: The first current sensor shows its highest level until then.
    """

    stalled: bool = False
    mute: bool = False
    only_garbage: bool = False
    garbage_bytes: int = 0
    garbage_every: int = 1
    drop: int = 0
    drop_of: int = 1
    silent_until_ns: int = 0
    full_scale_until_ns: int = 0
    drift_watts: float = 0.0

    def survivors(self, numbers: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these frames leave the device, as places."""
        leaves = (numbers % self.drop_of >= self.drop) & (times >= self.silent_until_ns)
        return np.flatnonzero(leaves)

    def mistaken(self, watts: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the rails draw, as the device takes it."""
        if not self.drift_watts:
            return watts
        moved = watts.copy()
        moved[:, 0] += self.drift_watts
        return moved

    def clip(self, levels: NDArray[np.uint16], times: NDArray[np.int64]) -> NDArray[np.uint16]:
        """What the converters say, the first current sensor at full scale where it is."""
        levels[times < self.full_scale_until_ns, 0] = MAXIMUM_LEVEL
        return levels

    def spoil(self, data: bytes, random: np.random.Generator) -> bytes:
        """Frames as they arrive."""
        if self.only_garbage:
            # without bit 7 nothing looks like the begin of a frame
            return random.integers(0, 128, len(data), dtype=np.uint8).tobytes()
        if not self.garbage_bytes:
            return data
        positions = np.flatnonzero(random.random(len(data)) < 1 / (18 * self.garbage_every))
        parts, begin = [], 0
        for place in positions.tolist():
            parts += [data[begin:place], random.bytes(self.garbage_bytes)]
            begin = place
        return b"".join([*parts, data[begin:]])


BATCH_SECONDS = 0.008
TRANSMIT_BYTES = 1 << 16
"""What the emulated device keeps while the host does not read; then it loses frames."""
HOST_TIMEOUT_SECONDS = 2.0
"""How long the firmware waits for the host within `R` and `W` before it resets itself."""
CURRENT_NOISE_LEVELS = 0.8
ZERO_CURRENT_VOLTS = 1.65
"""Output of a current sensor without current."""
VOLTAGE_NOISE_LEVELS = 0.6


@dataclass(frozen=True)
class EmulatedPair:
    """One rail: constant voltage, and its sensors; 0.12 V/A is the 10 A current sensor."""

    name: str
    volts: float
    sensitivity: float = 0.12
    gain: float = 0.09

    def records(self) -> tuple[SensorRecord, SensorRecord]:
        """The configuration of the pair's current and voltage sensor."""
        current = SensorRecord("MLX10", self.name, ZERO_CURRENT_VOLTS, self.sensitivity, True)
        return current, SensorRecord("voltage", self.name, 0.0, self.gain, True)


SLOT_PAIRS = (EmulatedPair("slot-3v3", 3.3, gain=0.3), EmulatedPair("slot-12v", 12.0))
"""The two rails of a PCIe slot."""


class EmulatedPowerSensor3:
    """An emulated device behind the link `folder/name`, which survives a reconnect.

    Args:
        source: The true watts, one column per pair.
        noise: Factor; 0 = none.
        version: Answer to `V`.

    Attributes:
        path: The link, to be opened like `/dev/ttyACM0`.
        frames_sent: Frames of the current or last stream, dropped ones included.
        frames_dropped: Those that never left the device.
    """

    def __init__(
        self,
        folder: Path,
        source: PowerSource,
        *,
        pairs: Sequence[EmulatedPair] = SLOT_PAIRS,
        name: str = "ttyACM0",
        seed: int = 1,
        noise: float = 1.0,
        hertz: float = 20_000.0,
        version: str = "F411-1.6.1",
    ) -> None:
        self.path = folder / name
        self.frames_sent = self.frames_dropped = 0
        self._source = source
        self._volts = [pair.volts for pair in pairs]
        self._records = [record for pair in pairs for record in pair.records()]
        empty = SensorRecord("NA", "NA", 0.0, 0.0, False)
        self._records += [empty] * (SENSORS - len(self._records))
        self._noise = noise * np.array([CURRENT_NOISE_LEVELS, VOLTAGE_NOISE_LEVELS] * PAIRS)
        self._random = np.random.default_rng(seed)
        self._period_ns = 1e9 / hertz
        self._version = version
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._descriptors: tuple[int, int] | None = None
        self._faults = Faults()
        self._forget()
        self._connect()

    def __enter__(self) -> EmulatedPowerSensor3:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Serve in a thread of this process."""
        self._thread = threading.Thread(target=self.serve, name="powersensor3-lab", daemon=True)
        self._thread.start()

    def serve(self) -> None:
        """Serve in the calling thread until `close` is called from another one."""
        while not self._ending.is_set():
            with self._lock:
                master = self._descriptors[0] if self._descriptors else None
                pause = BATCH_SECONDS if self._streaming or self._outbox else 0.05
            if master is None:
                self._ending.wait(pause)
            elif self._streaming:
                # commands wait for the end of a batch; waking for each byte would cost more
                self._ending.wait(pause)
            else:
                # another thread may just have pulled the cable
                with contextlib.suppress(OSError, ValueError):
                    select.select([master], [], [], pause)
            with self._lock:
                self._turn()

    def close(self) -> None:
        """End the thread and take the terminal away."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._hang_up()
        self.path.unlink(missing_ok=True)

    def disconnect(self) -> None:
        """Fault: pull the cable."""
        with self._lock:
            self._hang_up()

    def reconnect(self) -> None:
        """Plug it in again: a new terminal behind the same link, nothing streaming."""
        with self._lock:
            self._hang_up()
            self._forget()
            self._connect()

    def stall(self) -> None:
        """Fault: stop sending, as if the firmware hung; until `heal`."""
        self._faults = Faults(stalled=True)

    def never_answer(self) -> None:
        """Fault: take every command and answer none; until `heal`."""
        self._faults = Faults(mute=True)

    def garbage(self, count: int, *, every_frames: int = 1000) -> None:
        """Fault: so many random bytes at random places, once in so many frames; until `heal`."""
        self._faults = Faults(garbage_bytes=count, garbage_every=every_frames)

    def only_garbage(self) -> None:
        """Fault: random bytes instead of frames; until `heal`."""
        self._faults = Faults(only_garbage=True)

    def drop_frames(self, count: int, *, out_of: int) -> None:
        """Fault: lose the first `count` of every `out_of` frames; until `heal`."""
        self._faults = Faults(drop=count, drop_of=out_of)

    def lose_frames(self, seconds: float) -> None:
        """Fault: lose every frame for so long; until then or `heal`."""
        self._faults = Faults(silent_until_ns=time.monotonic_ns() + int(seconds * 1e9))

    def clip(self, seconds: float) -> None:
        """Fault: the first current sensor is at its full scale for so long, or until `heal`."""
        self._faults = Faults(full_scale_until_ns=time.monotonic_ns() + int(seconds * 1e9))

    def drift(self, watts: float) -> None:
        """Fault: the zero of the first rail moves by so much; until `heal`."""
        self._faults = Faults(drift_watts=watts)

    def heal(self) -> None:
        """End every fault but a disconnection."""
        self._faults = Faults()

    def _forget(self) -> None:
        self._streaming = False
        self._hung = False
        self._markers = 0
        self._counter = 0
        self._inbox = b""
        self._outbox = bytearray()
        self._awaiting: tuple[str, int, float] | None = None
        self._first_ns = 0
        self._shown = np.zeros(len(self._volts))

    def _connect(self) -> None:
        try:
            master, slave = os.openpty()
        except OSError as error:
            raise LabError(f"no pseudo-terminal to be had: {error.strerror}") from error
        os.set_blocking(master, False)
        attributes = termios.tcgetattr(slave)
        # the usual settings of a tty stay, for a reader must bring its own; but an echo of what we
        # send before one comes would look like commands
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._descriptors = (master, slave)
        partial = self.path.with_name(f".{self.path.name}.part")
        partial.unlink(missing_ok=True)
        partial.symlink_to(os.ttyname(slave))
        partial.replace(self.path)

    def _hang_up(self) -> None:
        for descriptor in self._descriptors or ():
            os.close(descriptor)
        self._descriptors = None
        self._streaming = False

    def _turn(self) -> None:
        now = time.monotonic_ns()
        begin, watts = self._source.watts(now)
        if self._descriptors is None:
            return
        if self._streaming:
            self._stream(now, begin, watts)
        if len(watts):
            self._shown = np.asarray(watts[-1], dtype=np.float64)
        self._receive(self._descriptors[0])
        self._send(self._descriptors[0])

    def _stream(self, now: int, begin: int, watts: NDArray[np.float64]) -> None:
        first = self.frames_sent
        count = int((now - self._first_ns) / self._period_ns) + 1 - first
        if count <= 0:
            return
        numbers = np.arange(first, first + count)
        times = self._first_ns + (numbers * self._period_ns).astype(np.int64)
        if len(watts):
            indices = np.clip((times - begin) // self._source.step_ns, 0, len(watts) - 1)
            rows = np.asarray(watts)[indices]
        else:
            rows = np.broadcast_to(self._shown, (count, len(self._shown)))
        self.frames_sent += count
        self._counter += SENSORS * count
        faults = self._faults
        sent = faults.survivors(numbers, times)
        if faults.stalled:
            return
        markers = np.zeros(count, dtype=np.bool_)
        markers[: self._markers] = True
        self._markers = max(self._markers - count, 0)
        levels = faults.clip(self._levels(faults.mistaken(rows[sent])), times[sent])
        data = encode_frames(times[sent] // 1000, levels, markers[sent])
        room = max(TRANSMIT_BYTES - len(self._outbox), 0) // 18 * 18
        self.frames_dropped += count - len(sent) + max(len(data) - room, 0) // 18
        self._outbox += faults.spoil(data[:room], self._random)

    def _levels(self, watts: NDArray[np.float64]) -> NDArray[np.uint16]:
        """What the converters read, shape (n, 8)."""
        exact = np.zeros((len(watts), SENSORS))
        for pair, volts in enumerate(self._volts):
            for sensor, value in ((2 * pair, watts[:, pair] / volts), (2 * pair + 1, volts)):
                record = self._records[sensor]
                seen = value * record.sensitivity + record.vref_volts
                exact[:, sensor] = seen * (MAXIMUM_LEVEL / REFERENCE_VOLTS)
        exact += self._random.standard_normal(exact.shape, dtype=np.float32) * self._noise
        levels: NDArray[np.uint16] = np.clip(np.rint(exact), 0, MAXIMUM_LEVEL).astype(np.uint16)
        return levels

    def _receive(self, master: int) -> None:
        try:
            self._inbox += os.read(master, 4096)
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        if self._faults.mute or self._faults.stalled or self._hung:
            self._inbox = b""
            return
        while self._inbox and not self._hung:
            if self._awaiting and not self._continue():
                return
            if self._inbox and not self._awaiting:
                command, self._inbox = chr(self._inbox[0]), self._inbox[1:]
                self._obey(command)

    def _continue(self) -> bool:
        """Go on with `R` or `W`; whether there was something to go on with."""
        assert self._awaiting is not None
        command, sensor, since = self._awaiting
        needed = 1 if command == "R" else RECORD_BYTES
        if time.monotonic() - since > HOST_TIMEOUT_SECONDS:
            self._forget()
            return True
        if len(self._inbox) < needed:
            return False
        taken, self._inbox = self._inbox[:needed], self._inbox[needed:]
        if command == "W":
            self._records[sensor] = SensorRecord.decode(taken)
            self._outbox += b"S"
        sensor += 1
        self._awaiting = (command, sensor, time.monotonic()) if sensor < SENSORS else None
        if sensor == SENSORS:
            self._outbox += b"D"
        elif command == "R":
            self._outbox += self._records[sensor].encode()
        return True

    def _obey(self, command: str) -> None:
        match command:
            case "R":
                self._awaiting = ("R", 0, time.monotonic())
                self._outbox += self._records[0].encode()
            case "W":
                self._awaiting = ("W", 0, time.monotonic())
            case "S":
                self._streaming = True
                self._first_ns = time.monotonic_ns()
                self._counter = self.frames_sent = self.frames_dropped = 0
            case "T" | "X":
                # the firmware waits for its markers in the loop that would send them
                self._hung = self._streaming and self._markers > 0
                self._streaming = False
                if command == "X" and not self._hung:
                    self._outbox += SHUTDOWN
            case "M":
                self._markers += 1
            case "I":
                if not self._streaming:
                    stamp = np.array([time.monotonic_ns() // 1000])
                    shown = self._levels(self._shown[np.newaxis, :])
                    marked = np.array([self._markers > 0])
                    self._outbox += encode_frames(stamp, shown, marked)
            case "V":
                self._outbox += f"{self._version}\r\n".encode()
            case "Q":
                self._outbox += (self._counter & 0xFFFFFFFF).to_bytes(4, "little")
            case _:
                pass  # B blinks; Z and Y (reset, firmware update) are closed here

    def _send(self, master: int) -> None:
        while self._outbox:
            try:
                written = os.write(master, self._outbox)
            except BlockingIOError:
                return
            del self._outbox[:written]


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve constant watts until a signal ends it; says the link's path on standard output."""
    parser = argparse.ArgumentParser(prog="python -m iojoule.measure.lab.powersensor3")
    parser.add_argument("folder", type=Path, help="where the link ttyACM0 is put")
    parser.add_argument("--watts", type=float, action="append", help="of one rail; repeatable")
    options = parser.parse_args(arguments)
    watts = options.watts or [1.5, 4.0]
    pairs = [*SLOT_PAIRS, EmulatedPair("ext-12v", 12.0), EmulatedPair("ext-5v", 5.0, gain=0.2)]
    if len(watts) > PAIRS:
        parser.error(f"a PowerSensor3 has {PAIRS} pairs at most")
    source = ConstantPower(*watts)
    # before there are threads, for one that lets a signal through dies of it
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with EmulatedPowerSensor3(options.folder, source, pairs=pairs[: len(watts)]) as emulator:
        sys.stdout.write(f"{emulator.path}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
        sys.stdout.write(f"{emulator.frames_sent} {emulator.frames_dropped}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
