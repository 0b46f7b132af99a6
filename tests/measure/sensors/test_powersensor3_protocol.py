import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.sensors.powersensor3_protocol import (
    FRAME_BYTES,
    FrameDecoder,
    Frames,
    SensorRecord,
    encode_frames,
    parse_version,
)

texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=16)
floats32 = st.floats(-100, 100, width=32)


def frames_of(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    times = 7 + 50 * np.arange(count, dtype=np.int64)
    return times, random.integers(0, 1024, (count, 8)), random.random(count) < 0.3


def joined(parts: list[Frames]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.concatenate([part.stamps_us for part in parts]),
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.markers for part in parts]),
    )


def test_a_frame_has_the_bits_that_the_firmware_sends() -> None:
    levels = np.array([[1023, 0, 512, 1, 2, 3, 4, 0b1010110011]])
    frame = encode_frames(np.array([1024 + 0b0110100101]), levels, np.array([True]))
    assert frame[:2] == bytes([0b1111_0110, 0b01_100101])  # time stamp: id 7 with the marker bit
    assert frame[2:4] == bytes([0b1000_1111, 0b01_111111])  # sensor 0 carries the marker
    assert frame[4:6] == bytes([0b1001_0000, 0b00_000000])
    assert frame[16:18] == bytes([0b1111_1010, 0b00_110011])
    assert len(frame) == FRAME_BYTES


@given(count=st.integers(0, 60), seed=st.integers(0, 99), cuts=st.lists(st.integers(0, 1080)))
def test_what_is_encoded_is_decoded_however_it_is_cut(
    count: int, seed: int, cuts: list[int]
) -> None:
    times, levels, markers = frames_of(count, seed)
    data = encode_frames(times, levels, markers)
    decoder = FrameDecoder()
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parts = [decoder.feed(data[a:b]) for a, b in pairwise(places)]
    parts.append(decoder.feed(b"", last=True))
    stamps, decoded, marks = joined(parts)
    assert np.array_equal(stamps, times % 1024)
    assert np.array_equal(decoded, levels)
    assert np.array_equal(marks, markers)
    assert decoder.discarded_bytes == 0
    ends = np.concatenate([part.ends for part in parts])
    assert np.array_equal(ends, FRAME_BYTES * np.arange(1, count + 1))


@given(
    garbage=st.dictionaries(st.integers(0, 20), st.binary(min_size=1, max_size=40), max_size=6),
    seed=st.integers(0, 99),
    cut=st.integers(1, 60),
)
def test_garbage_between_frames_costs_none_but_its_neighbours(
    garbage: dict[int, bytes], seed: int, cut: int
) -> None:
    times, levels, markers = frames_of(20, seed)
    data, touched = b"", set()
    for frame in range(21):
        if frame in garbage:
            data += garbage[frame]
            touched |= {frame - 1, frame}
        if frame < 20:
            one = slice(frame, frame + 1)
            data += encode_frames(times[one], levels[one], markers[one])
    decoder = FrameDecoder()
    parts = [decoder.feed(data[begin : begin + cut]) for begin in range(0, len(data), cut)]
    parts.append(decoder.feed(b"", last=True))
    stamps, decoded, _ = joined(parts)
    whole = [frame for frame in range(20) if frame not in touched]
    assert set((times[whole] % 1024).tolist()) <= set(stamps.tolist())
    rows = {tuple(row) for row in levels.tolist()}
    assert {tuple(row) for row in decoded.tolist()} <= rows
    assert decoder.received_bytes == len(data)
    assert decoder.discarded_bytes == len(data) - FRAME_BYTES * len(stamps)


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes_are_survived(data: bytes, cut: int) -> None:
    decoder = FrameDecoder()
    found = [len(decoder.feed(data[begin : begin + cut])) for begin in range(0, len(data), cut)]
    found.append(len(decoder.feed(b"", last=True)))
    assert decoder.received_bytes == len(data)
    assert decoder.discarded_bytes + FRAME_BYTES * sum(found) == len(data)


@given(kind=texts, name=texts, vref=floats32, sensitivity=floats32, in_use=st.booleans())
def test_a_record_comes_back(
    kind: str, name: str, vref: float, sensitivity: float, in_use: bool
) -> None:
    record = SensorRecord(kind, name, vref, sensitivity, in_use)
    assert len(record.encode()) == 41
    assert SensorRecord.decode(record.encode()) == record


def test_a_record_is_laid_out_as_the_firmware_has_it() -> None:
    data = b"MLX10".ljust(16, b"\0") + b"slot".ljust(16, b"\0") + struct.pack("<ff", 1.65, 0.12)
    record = SensorRecord.decode(data + b"\1")
    assert (record.sensor_type, record.pair_name, record.in_use) == ("MLX10", "slot", True)
    levels = np.array([0, 1023, 600], dtype=np.uint16)
    expected = (3.3 * levels / 1023 - record.vref_volts) / record.sensitivity
    assert record.values(levels) == pytest.approx(expected)
    assert record.step == pytest.approx(0.02688, rel=1e-3)


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 40, b"\0" * 32 + struct.pack("<ff", float("nan"), 1) + b"\1"]
)
def test_a_damaged_record_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"41|not numbers"):
        SensorRecord.decode(data)


@pytest.mark.parametrize(
    ("line", "board", "hertz"),
    [
        (b"F411-1.6.1\r\n", "F411", 20_000),
        (b"F401-1.6.0\r\n", "F401", 17_500),
        (b"F407-1.6.1-DEMO\r\n", "F407", 34_100),
        (b"F446-2.0.0\r\n", "F446", 20_000),
    ],
)
def test_versions(line: bytes, board: str, hertz: float) -> None:
    version = parse_version(line)
    assert version.board == board
    assert version.nominal_hertz == hertz
    assert version.demo == (b"DEMO" in line)


def test_another_device_has_no_version() -> None:
    with pytest.raises(ValueError, match="not a version"):
        parse_version(b"Marlin 2.1\n")
