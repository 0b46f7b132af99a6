"""PowerSensor3: watts of up to four rails at 20 kHz over USB.

A reader of the serial protocol (`powersensor3_protocol`) without vendor software. The rails are the
device's pairs of a current and a voltage sensor. Only the user knows which of them feed the drive:
an M.2 slot uses 3.3 V, a card or a U.2 drive 12 V and 3.3 V.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.device_clock import DeviceClock
from iojoule.measure.sensors.powersensor3_protocol import (
    FRAME_BYTES,
    MAXIMUM_LEVEL,
    PAIRS,
    RECORD_BYTES,
    SENSORS,
    WRAP_US,
    FrameDecoder,
    Frames,
    SensorRecord,
    Version,
    parse_version,
)
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

STALL_SECONDS = 1.0
POLL_SECONDS = 0.005
"""The kernel holds about 4 kB for a tty, at 20 kHz that is 11 ms; then the device loses frames."""
GATHER_SECONDS = 0.04


@dataclass(frozen=True)
class TimedFrames:
    """Frames whose times are settled, and how many were lost before each."""

    levels: NDArray[np.uint16]
    markers: NDArray[np.bool_]
    times_ns: NDArray[np.int64]
    lost: NDArray[np.int64]


class Stream:
    """Frames with their times, from a port that streams."""

    def __init__(self, port: SerialPort, nominal_hertz: float) -> None:
        self._port = port
        self._clock = DeviceClock(WRAP_US, 1e6 / nominal_hertz)
        self._decoder = FrameDecoder()
        self._levels = np.empty((0, SENSORS), dtype=np.uint16)
        self._markers = np.empty(0, dtype=np.bool_)
        self._arrivals: list[tuple[int, int]] = []  # bytes so far, and when they came
        self._heard = self._understood = time.monotonic()
        self._rest: TimedFrames | None = None
        self._frames = self._lost = 0
        self._errors: list[str] = []
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._marks_awaited = 0
        self._marked = -math.inf

    def mark(self) -> None:
        """Have the next frame carry the marker."""
        self._port.write(b"M")
        self._marks_awaited += 1
        self._marked = time.monotonic()

    def read(self, timeout_seconds: float) -> TimedFrames:
        """What is settled; after `finish`, once, all the rest."""
        if self._rest is not None:
            rest, self._rest = self._rest, self._take()
            return rest
        end = time.monotonic() + timeout_seconds
        while True:
            self._gather(GATHER_SECONDS)
            self._watch()
            taken = self._take()
            if len(taken.times_ns) or time.monotonic() >= end:
                return taken

    def finish(self) -> None:
        """End the stream and take in its last frames."""
        try:
            while self._marks_awaited > 0 and time.monotonic() < self._marked + MARK_SECONDS:
                self._gather(POLL_SECONDS)
            self._port.write(b"T")
            end = time.monotonic() + DRAIN_SECONDS
            while self._gather(4 * POLL_SECONDS) and time.monotonic() < end:
                pass
        except SensorError as error:
            self._errors.append(error.message)
        self._take_in(self._decoder.feed(b"", last=True))
        self._rest = self._take(everything=True)

    def delivery(self) -> Delivery:
        """What there was in all."""
        errors = list(dict.fromkeys(self._errors))
        if self._decoder.discarded_bytes:
            errors.append(f"{self._decoder.discarded_bytes} bytes belonged to no whole frame")
        return Delivery(self._frames, self._lost, tuple(errors), self._first_ns, self._last_ns)

    def _take(self, *, everything: bool = False) -> TimedFrames:
        timed = self._clock.take(everything=everything)
        count = len(timed.monotonic_ns)
        self._frames += count
        self._lost += int(timed.lost_before.sum())
        if count:
            self._first_ns = self._first_ns or int(timed.monotonic_ns[0])
            self._last_ns = int(timed.monotonic_ns[-1])
        levels, self._levels = self._levels[:count], self._levels[count:]
        markers, self._markers = self._markers[:count], self._markers[count:]
        return TimedFrames(levels, markers, timed.monotonic_ns, timed.lost_before)

    def _gather(self, seconds: float) -> int:
        """Take in what arrives within a while; returns how many bytes."""
        parts: list[bytes] = []
        before = total = self._decoder.received_bytes
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                time.sleep(POLL_SECONDS)
                part = self._port.available()
                if part:
                    total += len(part)
                    parts.append(part)
                    self._arrivals.append((total, time.monotonic_ns()))
        finally:
            # what came before the device vanished still counts
            if parts:
                self._heard = time.monotonic()
                self._take_in(self._decoder.feed(b"".join(parts)))
        return total - before

    def _take_in(self, frames: Frames) -> None:
        if not len(frames):
            return
        self._understood = self._heard
        ends, arrivals = np.array(self._arrivals, dtype=np.int64).T
        indices = np.searchsorted(ends, frames.ends)
        # the frame that the decoder holds back may have come with the newest but one
        self._arrivals = self._arrivals[int(indices[-1]) :]
        self._clock.add(frames.stamps_us, arrivals[indices])
        self._marks_awaited -= int(np.count_nonzero(frames.markers))
        self._levels = np.concatenate([self._levels, frames.levels])
        self._markers = np.concatenate([self._markers, frames.markers])

    def _watch(self) -> None:
        now = time.monotonic()
        if now - self._heard > STALL_SECONDS:
            self._fail(f"sent nothing for {STALL_SECONDS:g} s: its stream stalled; replug it")
        if now - self._understood > STALL_SECONDS:
            self._fail(
                f"sent no whole frame for {STALL_SECONDS:g} s, only bytes that cannot be "
                "understood: check the cable, and that nothing else talks to it"
            )

    def _fail(self, reason: str) -> None:
        message = f"{self._port.path} {reason}"
        self._errors.append(message)
        raise SensorError(message)


REPLY_SECONDS = 1.0
"""The device answers within milliseconds, and resets itself where the host takes 2 s."""
DRAIN_SECONDS = 0.5
MARK_SECONDS = 0.5
"""The firmware hangs for good where `T` arrives before the frame that carries a marker is out: so
long a marker is waited for, which may be among frames that are lost."""


@dataclass(frozen=True)
class Pair:
    """Current sensor 2 * index and voltage sensor 2 * index + 1, which measure one rail."""

    index: int
    name: str
    current: SensorRecord
    voltage: SensorRecord

    def watts(self, levels: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Watts of frames' levels, shape (n, 8) -> (n,)."""
        amperes = self.current.values(levels[:, 2 * self.index])
        return amperes * self.voltage.values(levels[:, 2 * self.index + 1])

    def watts_per_level(self, levels: NDArray[np.uint16]) -> float:
        """Watts between two levels of the current, at the voltage of a frame."""
        volts = float(self.voltage.values(levels[0, 2 * self.index + 1]))
        return abs(volts) * self.current.step

    def full_scale_watts(self, levels: NDArray[np.uint16]) -> float:
        """Watts at the last level of the current, at the voltage of a frame."""
        ends = self.current.values(np.array([0, MAXIMUM_LEVEL], dtype=np.uint16))
        volts = float(self.voltage.values(levels[0, 2 * self.index + 1]))
        return float((ends * volts).max())


def from_options(options: Options) -> PowerSensor3:
    """`powersensor3:/dev/ttyACM0[,pairs=0+1][,names=a+b][,scope=device][,offset=W][,gain=F]`."""
    options.known("pairs", "names", "scope", "offset", "gain")
    return PowerSensor3(
        options.needed_address("powersensor3:/dev/ttyACM0"),
        pairs=options.many("pairs", int),
        names=options.many("names", str),
        scope=options.scope(),
        offset_watts=options.get("offset", float),
        gain=options.get("gain", float),
    )


class PowerSensor3:
    """The sensor of one device.

    Args:
        pairs: Pairs to record, 0 to 3; None = all in use.
        names: One name for each of them; None = as the device calls them.
        offset_watts: Calibration uncertainty of each rail at zero; None = unknown.
        gain: Calibration uncertainty as a fraction of the value; None = unknown.
    """

    def __init__(
        self,
        path: str,
        *,
        pairs: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        scope: Scope = Scope.DEVICE,
        offset_watts: float | None = None,
        gain: float | None = None,
    ) -> None:
        if names is not None and (pairs is None or len(names) != len(pairs)):
            raise SensorError("powersensor3: one name for each pair, as in pairs=0+1,names=a+b")
        self.name = f"powersensor3:{path}"
        self._path = path
        self._wanted = None if pairs is None else tuple(pairs)
        self._names = names
        self._scope = scope
        self._uncertainty = (offset_watts, gain)
        self._pairs: tuple[Pair, ...] = ()
        self._probe: Probe | None = None
        self._port: SerialPort | None = None
        self._writing = threading.Lock()
        self._stream: Stream | None = None
        self._delivery = Delivery(0, 0, (), None, None)

    def probe(self) -> Probe:
        """Version, configuration and rails, as the device states them. Raises SensorError."""
        if self._probe is None or self._port is None:
            with SerialPort(self._path) as port:
                self._probe = self._identify(port)
        return self._probe

    def start(self) -> None:
        """Identify the device and start its stream. Raises SensorError."""
        self.stop()
        self._delivery = Delivery(0, 0, (), None, None)
        port = SerialPort(self._path)
        try:
            self._probe = self._identify(port)
            self._stream = Stream(port, self._probe.nominal_hertz)
            port.write(b"S")
        except BaseException:
            self._stream = None
            port.close()
            raise
        self._port = port

    def read(self, timeout_seconds: float) -> Chunk:
        """Watts of the rails since the last call.

        Raises SensorError if no byte or no whole frame came for a second, or the device vanished.
        """
        if self._stream is None:
            raise SensorError(f"{self.name} was not started")
        return self._chunk(self._stream.read(timeout_seconds))

    def mark(self) -> None:
        """Set the marker on the next frame; where it is in the series, `Flag.MARKER` says."""
        with self._writing:
            if self._port is not None and self._stream is not None:
                self._stream.mark()

    def stop(self) -> Delivery:
        """End the stream and give the port back; `read` then returns what was still held."""
        with self._writing:
            port, self._port = self._port, None
        if self._stream is not None and port is not None:
            try:
                self._stream.finish()
            finally:
                port.close()
            self._delivery = self._stream.delivery()
        return self._delivery

    def _chunk(self, taken: TimedFrames) -> Chunk:
        if not len(taken.times_ns):
            return empty_chunk(len(self._pairs))
        flags = taken.markers * np.uint8(Flag.MARKER) | (taken.lost > 0) * np.uint8(Flag.GAP)
        watts = np.column_stack([pair.watts(taken.levels) for pair in self._pairs])
        return Chunk(taken.times_ns, watts, flags.astype(np.uint8))

    def _identify(self, port: SerialPort) -> Probe:
        port.write(b"T")
        port.drain(quiet_seconds=0.05, limit_seconds=DRAIN_SECONDS)
        port.write(b"V")
        version = _version(port)
        records = _records(port)
        self._pairs = _choose(self.name, records, self._wanted, self._names)
        port.write(b"I")
        frames = FrameDecoder().feed(port.exactly(FRAME_BYTES, REPLY_SECONDS), last=True)
        offset, gain = self._uncertainty
        rails = tuple(
            Rail(
                name=pair.name,
                unit="watts",
                kind=Kind.POWER,
                scope=self._scope,
                resolution=pair.watts_per_level(frames.levels) if len(frames) else None,
                offset_uncertainty=offset,
                gain_uncertainty=gain,
                full_scale=pair.full_scale_watts(frames.levels) if len(frames) else None,
            )
            for pair in self._pairs
        )
        identity = {"version": f"{version.board}-{version.firmware}"}
        for pair in self._pairs:
            for label, record in (("current", pair.current), ("voltage", pair.voltage)):
                identity[f"pair {pair.index} {label}"] = (
                    f"{record.sensor_type}, vref {record.vref_volts:.6g} V, "
                    f"sensitivity {record.sensitivity:.6g}"
                )
        return Probe(rails, version.nominal_hertz, identity)


def _version(port: SerialPort) -> Version:
    line = port.line(REPLY_SECONDS)
    if not line:
        raise SensorError(
            f"{port.path} does not answer: is it a PowerSensor3? replug it, and end what uses it"
        )
    try:
        return parse_version(line)
    except ValueError as error:
        raise SensorError(f"{port.path} is no PowerSensor3 that is known: {error}") from error


def _records(port: SerialPort) -> tuple[SensorRecord, ...]:
    """The configuration; the device waits for a byte after each record, also after the last."""
    port.write(b"R")
    records: list[SensorRecord] = []
    for sensor in range(SENSORS):
        data = port.exactly(RECORD_BYTES, REPLY_SECONDS)
        try:
            records.append(SensorRecord.decode(data))
        except ValueError as error:
            raise SensorError(
                f"{port.path} sends no usable configuration of sensor {sensor} ({error}); "
                "replug it, then look at it with the vendor's psconfig -p"
            ) from error
        port.write(b"s")
    if port.exactly(1, REPLY_SECONDS) != b"D":
        raise SensorError(f"{port.path} does not end its configuration as it must: replug it")
    return tuple(records)


def _choose(
    sensor: str,
    records: Sequence[SensorRecord],
    wanted: Sequence[int] | None,
    names: Sequence[str] | None,
) -> tuple[Pair, ...]:
    in_use = [
        pair
        for pair in range(PAIRS)
        if all(record.in_use and record.sensitivity for record in records[2 * pair : 2 * pair + 2])
    ]
    known = "pairs " + ", ".join(map(str, in_use)) if in_use else "no pair"
    missing = [pair for pair in wanted or () if pair not in in_use]
    if missing or not in_use:
        what = f"pair {missing[0]} is not in use" if missing else "nothing is connected to it"
        raise SensorError(
            f"{sensor}: {what} ({known} in use): choose others with pairs=, or configure it "
            "with the vendor's psconfig"
        )
    chosen = in_use if wanted is None else list(wanted)
    own = [records[2 * pair].pair_name or f"pair{pair}" for pair in chosen]
    called = names or [
        name if own.count(name) == 1 and name != "NA" else f"pair{pair}"
        for pair, name in zip(chosen, own, strict=True)
    ]
    return tuple(
        Pair(pair, name, records[2 * pair], records[2 * pair + 1])
        for pair, name in zip(chosen, called, strict=True)
    )
