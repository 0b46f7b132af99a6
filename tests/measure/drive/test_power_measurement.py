"""Power fields of NVMe drives, byte by byte."""

from __future__ import annotations

import struct

import pytest

from iojoule.measure.drive import power_measurement as power
from iojoule.measure.errors import DriveError

RUNNING, GAPS, ESTIMATED = 1, 2, 4
CENTIWATT = 2 << 16


def power_log(*, attributes: int = RUNNING, mean: int = CENTIWATT | 412, percent: int = 3) -> bytes:
    data = bytearray(64)
    struct.pack_into("<BBHII", data, 0, 0, 7, attributes, len(data), 100)
    struct.pack_into("<I", data, 40, mean)
    data[56] = percent
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


def test_the_header_of_the_log() -> None:
    log = power.parse_power_log(power_log())
    assert (log.generation, log.running, log.intervals) == (7, True, 100)
    assert (log.mean_watts, log.error_fraction) == (pytest.approx(4.12), 0.03)
    assert log.joules == pytest.approx(412.0)
    assert log.fault is None
    with pytest.raises(DriveError):
        power.parse_power_log(power_log()[:63])


def test_a_mean_of_0_with_a_scale_is_no_reading() -> None:
    log = power.parse_power_log(power_log(mean=CENTIWATT))
    assert (log.mean_watts, log.joules) == (None, None)


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


def smart(word: int) -> bytes:
    data = bytearray(512)
    struct.pack_into("<I", data, 240, word)
    return bytes(data)


@pytest.mark.parametrize(
    ("word", "power_and_step"),
    [(0x3F << 20 | CENTIWATT | 412, (4.12, 0.01)), (0, None), (3 << 16 | 412, None)],
)
def test_power_in_the_smart_log(word: int, power_and_step: tuple[float, float] | None) -> None:
    found = power.interval_power(smart(word))
    assert found == (None if power_and_step is None else pytest.approx(power_and_step))
