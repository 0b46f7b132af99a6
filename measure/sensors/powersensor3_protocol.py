"""The bytes that a PowerSensor3 and its host exchange: packets, frames, configuration records.

Pure functions of bytes, used by the reader (`powersensor3`) and by the lab's emulator. Source: the
project's firmware and host library 1.6.1 (github.com/nlesc-recruit/PowerSensor3). Not checked on
hardware.

A packet is two bytes, `1 iii aaaa` `0 m bbbbbb`: sensor id, a level of ten bits, a marker bit. A
frame is nine packets: a time stamp (id 7 with m = 1; the device's microseconds modulo 1024), then
the sensors 0 to 7. Even sensors measure a current, odd ones a voltage; two make a pair.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SENSORS = 8
PAIRS = 4
MAXIMUM_LEVEL = 1023
REFERENCE_VOLTS = 3.3
WRAP_US = 1024
"""The time stamp of a frame counts microseconds modulo this."""
FRAME_BYTES = 2 * (SENSORS + 1)
RECORD_BYTES = 41
SHUTDOWN = b"\xff\x3f\xff\x3f"
"""What ends a session that was closed with `X`."""

NOMINAL_HERTZ = {"F411": 20_000.0, "F401": 17_500.0, "F407": 34_100.0}
"""Frames a second by the microcontroller that the version names."""

_RECORD = struct.Struct("<16s16sff?")
_VERSION = re.compile(r"(F4\d\d)-(\d+\.\d+\.\d+)(-DEMO)?\s*")

# What is fixed in the 18 bytes of a frame. With it, no two frames can be found overlapping: at an
# odd distance the top bits contradict each other, at an even one only packet 0 is id 7 with m = 1.
_FIXED_BITS = np.array([0xF0, 0xC0, 0xF0, 0x80] + [0xF0, 0xC0] * (SENSORS - 1), dtype=np.uint8)
_FIXED = np.array(
    [0xF0, 0x40] + [byte for sensor in range(SENSORS) for byte in (0x80 | sensor << 4, 0x00)],
    dtype=np.uint8,
)


@dataclass(frozen=True)
class SensorRecord:
    """The configuration of one sensor, as the device stores it.

    Attributes:
        sensor_type: For instance `MLX10` (current) or `voltage`; at most 16 bytes.
        pair_name: At most 16 bytes.
        vref_volts: Converter input at zero current or voltage.
        sensitivity: Volts per ampere for a current sensor, the gain for a voltage sensor; a
            negative sign reverses the polarity.
    """

    sensor_type: str
    pair_name: str
    vref_volts: float
    sensitivity: float
    in_use: bool

    def encode(self) -> bytes:
        """The 41 bytes of the record."""
        texts = (text.encode("utf-8")[:16] for text in (self.sensor_type, self.pair_name))
        return _RECORD.pack(*texts, self.vref_volts, self.sensitivity, self.in_use)

    @classmethod
    def decode(cls, data: bytes) -> SensorRecord:
        """The record in 41 bytes. Raises ValueError for another length, or non-finite numbers."""
        if len(data) != RECORD_BYTES:
            raise ValueError(f"a configuration record has {RECORD_BYTES} bytes, not {len(data)}")
        kind, name, vref, sensitivity, in_use = _RECORD.unpack(data)
        if in_use and not (math.isfinite(vref) and math.isfinite(sensitivity)):
            raise ValueError(f"vref {vref}, sensitivity {sensitivity}: not numbers")
        return cls(_text(kind), _text(name), vref, sensitivity, in_use)

    def values(self, levels: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Amperes or volts of raw levels, `(3.3 * level / 1023 - vref) / sensitivity`."""
        volts = levels.astype(np.float64) * (REFERENCE_VOLTS / MAXIMUM_LEVEL)
        scaled: NDArray[np.float64] = (volts - self.vref_volts) / self.sensitivity
        return scaled

    @property
    def step(self) -> float:
        """Amperes or volts between one level and the next."""
        return REFERENCE_VOLTS / MAXIMUM_LEVEL / abs(self.sensitivity)


class Version(NamedTuple):
    """What the device answers to `V`."""

    board: str
    firmware: str
    demo: bool

    @property
    def nominal_hertz(self) -> float:
        """Frames a second; 20 kHz for a board that is not known."""
        return NOMINAL_HERTZ.get(self.board, NOMINAL_HERTZ["F411"])


def parse_version(line: bytes) -> Version:
    """Read the answer to `V`. Raises ValueError if it is not one."""
    match = _VERSION.fullmatch(line.decode("ascii", errors="replace"))
    if not match:
        raise ValueError(f"{line!r} is not a version such as b'F411-1.6.1\\r\\n'")
    return Version(match[1], match[2], bool(match[3]))


@dataclass(frozen=True)
class Frames:
    """Whole frames in order of arrival.

    Attributes:
        stamps_us: uint16, shape (n,): device microseconds modulo 1024.
        levels: uint16, shape (n, 8).
        markers: bool, shape (n,).
        ends: int64, shape (n,): bytes of the stream up to and with the frame's last one.
    """

    stamps_us: NDArray[np.uint16]
    levels: NDArray[np.uint16]
    markers: NDArray[np.bool_]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.stamps_us)


def encode_frames(
    times_us: NDArray[np.int64], levels: NDArray[np.integer], markers: NDArray[np.bool_]
) -> bytes:
    """The bytes of frames: device microseconds (n,), levels 0 to 1023 (n, 8), markers (n,)."""
    packets = np.empty((len(times_us), SENSORS + 1), dtype=np.uint16)
    packets[:, 0] = times_us & (WRAP_US - 1)
    packets[:, 1:] = levels
    frames = np.empty((len(times_us), SENSORS + 1, 2), dtype=np.uint8)
    frames[:, :, 0] = packets >> 6
    frames[:, :, 1] = packets & 0x3F
    flat = frames.reshape(-1, FRAME_BYTES)
    flat |= _FIXED
    flat[:, 3] |= markers.astype(np.uint8) << 6
    return flat.tobytes()


class FrameDecoder:
    """Finds the frames in a stream of bytes.

    A frame is known by its fixed bits (53 of 144). One that touches bytes of no frame may match by
    chance, so it is discarded too. The device's clock tells how many are lost.
    """

    def __init__(self) -> None:
        self.received_bytes = 0
        self.discarded_bytes = 0
        self._rest = b""
        self._clean = True  # whether the rest begins where a frame ended, or the stream began

    def feed(self, data: bytes, *, last: bool = False) -> Frames:
        """Complete frames; unless `last`, the newest waits until its successor is known."""
        buffer = np.frombuffer(self._rest + data, dtype=np.uint8)
        base = self.received_bytes - len(self._rest)
        self.received_bytes += len(data)
        starts = _frame_starts(buffer)
        preceded = np.diff(starts, prepend=-FRAME_BYTES) == FRAME_BYTES
        if len(starts):
            preceded[0] &= self._clean
        after = len(buffer) - (int(starts[-1]) + FRAME_BYTES) if len(starts) else 0
        held = len(starts) > 0 and not last and after < FRAME_BYTES
        followed = np.append(preceded[1:], last and after < FRAME_BYTES)[: len(starts)]
        good = starts[preceded & followed]
        if held:
            keep, self._clean = int(starts[-1]), bool(preceded[-1])
        else:
            keep = len(buffer) if last else max(len(buffer) - FRAME_BYTES + 1, 0)
            self._clean &= keep == 0
        self._rest = buffer[keep:].tobytes()
        self.discarded_bytes += keep - len(good) * FRAME_BYTES
        rows = buffer[good[:, np.newaxis] + np.arange(FRAME_BYTES)].astype(np.uint16)
        packets = ((rows[:, 0::2] & 0x0F) << 6 | rows[:, 1::2] & 0x3F).astype(np.uint16)
        return Frames(
            stamps_us=packets[:, 0],
            levels=packets[:, 1:],
            markers=(rows[:, 3] & 0x40) != 0,
            ends=good + (base + FRAME_BYTES),
        )


def _frame_starts(buffer: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where in the buffer whole frames begin, in order and never overlapping."""
    count = len(buffer) - FRAME_BYTES + 1
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    # the first packet leaves about one place in eighteen; the rest is checked there only
    head = (buffer[:count] & 0xF0) == 0xF0
    head &= (buffer[1 : count + 1] & 0xC0) == 0x40
    starts = np.flatnonzero(head)
    rows = buffer[starts[:, np.newaxis] + np.arange(FRAME_BYTES)]
    matches: NDArray[np.bool_] = ((rows & _FIXED_BITS) == _FIXED).all(axis=1)
    return starts[matches]


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", errors="replace").strip()
