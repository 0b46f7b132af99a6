"""Power fields of NVMe drives, byte by byte."""

from __future__ import annotations

import struct

import pytest

from iojoule.measure.drive import power_measurement as power
from iojoule.measure.drive.ocp import power_fields
from iojoule.measure.errors import DriveError
from tests.measure.drive.test_ocp import page

RUNNING, GAPS, ESTIMATED, STAMPED, OVERFLOWED = 1, 2, 4, 8, 16
CENTIWATT = 2 << 16


def power_log(
    *,
    generation: int = 7,
    attributes: int = RUNNING,
    intervals: int = 100,
    mean: int = CENTIWATT | 412,
    maximum: int = CENTIWATT | 900,
    percent: int = 3,
    counts: tuple[int, ...] = (),
    stride: int = 8,
    size: int | None = None,
) -> bytes:
    data = bytearray(64 + stride * len(counts))
    struct.pack_into("<BBHII", data, 0, 0, generation, attributes, size or len(data), intervals)
    struct.pack_into("<HH", data, 12, len(counts), 9)
    struct.pack_into("<HHH", data, 24, stride, 250, len(counts))
    struct.pack_into("<I", data, 32, 5)
    struct.pack_into("<II", data, 40, mean, maximum)
    data[48:54] = (1_700_000_000_000).to_bytes(6, "little")
    data[56] = percent
    for number, count in enumerate(counts):
        struct.pack_into("<II", data, 64 + stride * number, count, CENTIWATT | 25 * number)
    return bytes(data)


@pytest.mark.parametrize(
    ("word", "watts"),
    [
        (412, None),
        (1 << 16 | 41_200, 4.12),
        (2 << 16 | 412, 4.12),
        (3 << 16 | 412, None),
        (0, None),
        (0x3F << 20 | 2 << 16 | 412, 4.12),
        (2 << 16 | 0xFFFF, 655.35),
    ],
    ids=["scale 0", "scale 1", "scale 2", "scale 3", "word 0", "type bits", "largest"],
)
def test_watts_of_a_word(word: int, watts: float | None) -> None:
    assert power.power_watts(word) == (None if watts is None else pytest.approx(watts))


@pytest.mark.parametrize(
    ("watts", "word"),
    [(4.12, 1 << 16 | 41_200), (8.25, CENTIWATT | 825), (6.5535, 1 << 16 | 65_535)],
)
def test_the_word_of_watts_is_the_finest_that_fits(watts: float, word: int) -> None:
    assert power.power_word(watts) == word
    assert power.limit_watts(word) == pytest.approx(watts)


def test_a_limit_is_never_rounded_up() -> None:
    assert power.power_watts(power.power_word(7.9999)) == pytest.approx(7.99)


@pytest.mark.parametrize("watts", [0.0, -1.0, 656.0, float("nan"), float("inf")])
def test_watts_that_no_word_holds(watts: float) -> None:
    with pytest.raises(DriveError):
        power.power_word(watts)


def test_no_limit() -> None:
    assert power.limit_watts(0) is None
    assert power.limit_watts(CENTIWATT) is None
    assert power.limit_watts(412) is None
    assert power.same_limit(0, CENTIWATT)
    assert not power.same_limit(0, CENTIWATT | 500)


def test_a_log_with_its_histogram() -> None:
    log = power.parse_power_log(power_log(counts=(4, 0, 96), attributes=RUNNING | STAMPED))
    assert (log.generation, log.running, log.intervals, log.minutes_left) == (7, True, 100, 9)
    assert (log.mean_watts, log.maximum_watts) == (pytest.approx(4.12), pytest.approx(9.0))
    assert log.joules == pytest.approx(412.0)
    assert (log.error_fraction, log.overflow_count) == (0.03, 5)
    assert log.maximum_at_ms == 1_700_000_000_000
    assert [entry.count for entry in log.bins] == [4, 0, 96]
    assert [entry.lower_watts for entry in log.bins] == pytest.approx([0.0, 0.25, 0.5])
    assert log.complete
    assert log.fault is None


def test_descriptors_follow_the_stated_stride() -> None:
    log = power.parse_power_log(power_log(counts=(4, 0, 96), stride=16))
    assert [entry.count for entry in log.bins] == [4, 0, 96]
    narrow = bytearray(power_log(counts=(4,)))
    narrow[24] = 4
    with pytest.raises(DriveError):
        power.parse_power_log(bytes(narrow))


def test_a_log_shorter_than_it_states() -> None:
    whole = power_log(counts=(4, 0, 96))
    cut = power.parse_power_log(whole[:76])
    assert [entry.count for entry in cut.bins] == [4]
    assert not cut.complete
    assert power.parse_power_log(whole[:64]).bins == ()
    stated = power.parse_power_log(power_log(counts=(4, 0, 96), size=72))
    assert len(stated.bins) == 1
    with pytest.raises(DriveError):
        power.parse_power_log(whole[:63])


def test_an_unknown_version() -> None:
    with pytest.raises(DriveError):
        power.parse_power_log(b"\x01" + power_log()[1:])


@pytest.mark.parametrize(
    ("percent", "fraction"), [(0, 0.0), (100, 1.0), (101, None), (254, None), (255, None)]
)
def test_the_stated_error(percent: int, fraction: float | None) -> None:
    assert power.parse_power_log(power_log(percent=percent)).error_fraction == fraction


def test_what_is_no_measurement() -> None:
    assert power.parse_power_log(power_log(attributes=ESTIMATED)).fault is not None
    gaps = power.parse_power_log(power_log(attributes=GAPS))
    assert gaps.fault is not None
    assert gaps.joules is None
    assert power.parse_power_log(power_log(mean=412)).joules is None
    assert power.parse_power_log(power_log()).maximum_at_ms is None
    assert power.parse_power_log(power_log(attributes=OVERFLOWED)).overflowed
    assert power.parse_power_log(power_log(attributes=0xC << 12)).kind == 0xC


def test_the_whole_log_is_read_after_its_header() -> None:
    whole = power_log(counts=(4, 0, 96))
    asked: list[int] = []

    def read(identifier: int, size: int) -> bytes:
        assert identifier == power.POWER_MEASUREMENT
        asked.append(size)
        return whole[:size]

    assert len(power.read_power_log(read).bins) == 3
    assert asked == [64, 88]


def identify(**fields: int) -> bytes:
    data = bytearray(4096)
    struct.pack_into("<I", data, 96, fields.get("attributes", 0))
    struct.pack_into("<HBBH", data, 390, *(fields.get(name, 0) for name in ("mup", "v", "s", "m")))
    data[2048 + 3] = fields.get("fine", 0)
    data[4] = 65
    return bytes(data)


def test_what_identify_declares() -> None:
    found = power.parse_abilities(identify(attributes=1 << 21, mup=850, v=5, s=4, m=60))
    assert found.measures
    assert found.unlimited_power_watts == pytest.approx(8.5)
    assert found.sample_interval_seconds == pytest.approx(0.005)
    assert found.longest_stop_minutes == 60
    none = power.parse_abilities(identify(v=5))
    assert not none.measures
    assert none.unlimited_power_watts is None
    assert none.sample_interval_seconds is None
    with pytest.raises(DriveError):
        power.parse_abilities(bytes(100))


def smart(hours: int, word: int) -> bytes:
    data = bytearray(512)
    data[3] = 100
    struct.pack_into("<QI", data, 232, hours, word)
    return bytes(data)


def test_power_in_the_smart_log() -> None:
    found = power.parse_smart_power(smart(20, 0x3F << 20 | CENTIWATT | 412))
    assert found.interval_power_watts == pytest.approx(4.12)
    assert found.resolution_watts == 0.01
    assert found.lifetime_joules == 72_000.0
    none = power.parse_smart_power(smart(0, 0))
    assert (none.lifetime_joules, none.interval_power_watts) == (None, None)
    assert power.parse_smart_power(smart(0, 3 << 16 | 412)).interval_power_watts is None


def test_the_threshold() -> None:
    found = power.parse_threshold(1 << 31 | 2 << 20 | CENTIWATT | 700)
    assert (found.watts, found.kind, found.enabled) == (pytest.approx(7.0), 2, True)


def test_starting_and_stopping_values() -> None:
    assert power.start_value(5) == 0x50001
    assert power.STOP_VALUE == 0


def test_power_fields_of_ocp() -> None:
    data = bytearray(page(version=5))
    struct.pack_into("<HH", data, 260, 25, 18)
    data[264:270] = (123_456_789_012).to_bytes(6, "little")
    found = power_fields(bytes(data))
    assert found is not None
    assert (found.peak_capability, found.average_limit) == (25, 18)
    assert found.lifetime == 123_456_789_012
    assert power_fields(page(version=4)) is None
    assert power_fields(page(version=5, guid=bytes(16))) is None
