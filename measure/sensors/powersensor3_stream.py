"""The stream of a PowerSensor3: frames with their times, and what became of the others."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.device_clock import DeviceClock
from iojoule.measure.sensors.powersensor3_protocol import SENSORS, WRAP_US, FrameDecoder, Frames
from iojoule.measure.sensors.protocol import Delivery
from iojoule.measure.sensors.serial_port import SerialPort

STALL_SECONDS = 1.0
DRAIN_SECONDS = 0.5
POLL_SECONDS = 0.005
"""The kernel holds about 4 kB for a tty, at 20 kHz that is 11 ms; then the device loses frames."""
GATHER_SECONDS = 0.04


@dataclass(frozen=True)
class Taken:
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
        self._rest: Taken | None = None
        self._frames = self._lost = 0
        self._errors: list[str] = []
        self._first_ns: int | None = None
        self._last_ns: int | None = None

    def read(self, timeout_seconds: float) -> Taken:
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

    def _take(self, *, everything: bool = False) -> Taken:
        timed = self._clock.take(everything=everything)
        count = len(timed.monotonic_ns)
        self._frames += count
        self._lost += int(timed.lost_before.sum())
        if count:
            self._first_ns = self._first_ns or int(timed.monotonic_ns[0])
            self._last_ns = int(timed.monotonic_ns[-1])
        levels, self._levels = self._levels[:count], self._levels[count:]
        markers, self._markers = self._markers[:count], self._markers[count:]
        return Taken(levels, markers, timed.monotonic_ns, timed.lost_before)

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
        places = np.searchsorted(ends, frames.ends)
        # the frame that the decoder holds back may have come with the newest but one
        self._arrivals = self._arrivals[int(places[-1]) :]
        self._clock.add(frames.stamps_us, arrivals[places])
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
