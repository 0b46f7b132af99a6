from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.measure.errors import HostStateError
from iojoule.meter.counters import APPEARED, RESET, VANISHED, BlockCounters, difference
from tests.meter.hosts import Clock, Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    host.nvme("nvme0n1", "S1")
    return host


@pytest.fixture
def counters(host: Host) -> Iterator[BlockCounters]:
    counters = BlockCounters(host.proc, host.sysfs)
    yield counters
    counters.close()


def test_an_interval_is_what_the_drive_completed(host: Host, counters: BlockCounters) -> None:
    before = counters.read()
    host.did("nvme0n1", reads=10, writes=3, size=8192, ms=250)
    values = host.counters["nvme0n1"]
    values[4] += 2  # flushes count as writes of no bytes
    values[15] += 2
    values[11], values[13] = 1, 16384  # and a discard moves none
    host.write()
    found = difference(before, counters.read())
    assert (found.read_commands[0], found.read_bytes[0]) == (10, 81920)
    assert (found.write_commands[0], found.write_bytes[0]) == (3, 24576)
    assert (found.flushes[0], found.discards[0]) == (2, 1)
    assert found.in_flight_seconds[0] == 0.25
    assert found.seconds > 0
    assert not found.problems


def test_times_wrap_at_32_bits(host: Host, counters: BlockCounters) -> None:
    host.counters["nvme0n1"][3] = (1 << 32) - 100
    host.write()
    before = counters.read()
    host.did("nvme0n1", reads=1, ms=300)
    assert difference(before, counters.read()).in_flight_seconds[0] == pytest.approx(0.3)


@pytest.mark.parametrize("fields", [11, 15, 17])
def test_lines_of_older_kernels_are_shorter(host: Host, fields: int) -> None:
    line = "259 0 nvme0n1 " + " ".join(str(number) for number in range(1, fields + 1))
    (host.proc / "diskstats").write_text(line + "\n")
    counters = BlockCounters(host.proc, host.sysfs)
    values = counters.read().values
    counters.close()
    assert values[0, :fields].tolist() == list(range(1, fields + 1))
    assert not values[0, fields:].any()


def test_counters_that_fell_give_no_interval(host: Host, counters: BlockCounters) -> None:
    host.did("nvme0n1", reads=1000)
    before = counters.read()
    host.counters["nvme0n1"] = [0] * 17
    host.did("nvme0n1", reads=3)
    found = difference(before, counters.read())
    assert (len(found), found.problems) == (0, {"nvme0n1": RESET})


def test_a_name_with_a_slash_is_found(host: Host) -> None:
    host.disk("cciss!c0d0")
    host.counters["cciss/c0d0"] = host.counters.pop("cciss!c0d0")
    host.write()
    assert "cciss!c0d0" in [drive.name for drive in Clock(host).look().drives]


def test_drives_come_and_go(host: Host, counters: BlockCounters) -> None:
    first = counters.read()
    host.nvme("nvme1n1", "S2")
    second = counters.read()
    host.remove("nvme0n1")
    third = counters.read()
    assert difference(first, second).problems == {"nvme1n1": APPEARED}
    assert len(difference(first, second)) == 1
    assert difference(second, third).problems == {"nvme0n1": VANISHED}


def test_another_drive_under_the_same_name_and_number_is_noticed(
    host: Host, counters: BlockCounters
) -> None:
    host.did("nvme0n1", reads=1000)
    before = counters.read()
    host.swap("nvme0n1", "S2")
    host.did("nvme0n1", reads=3)
    now = counters.read()
    assert [drive.key for drive in (*before.drives, *now.drives)] == ["S1", "S2"]
    assert difference(before, now).problems == {"nvme0n1": APPEARED}


def test_a_drive_is_known_by_its_serial_under_another_name(
    host: Host, counters: BlockCounters
) -> None:
    """It is still one drive, though its counters began anew."""
    before = counters.read()
    host.remove("nvme0n1")
    host.nvme("nvme3n1", "S1")
    now = counters.read()
    assert now.drives[0].key == before.drives[0].key
    assert difference(before, now).problems == {"nvme3n1": APPEARED}


def test_time_in_suspension_is_told_apart(host: Host) -> None:
    clock = Clock(host)
    before, now, slept = clock.look(), clock.look(), clock.look(suspended=3600.0)
    assert difference(before, now).suspended_seconds == 0.0
    assert difference(now, slept).suspended_seconds == 3600.0
    assert difference(before, slept).seconds == 2.0


def test_without_the_counters_there_is_no_meter(tmp_path: Path) -> None:
    with pytest.raises(HostStateError):
        BlockCounters(tmp_path, tmp_path)


@pytest.mark.parametrize("value", [(1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_counter_beyond_what_a_row_holds_ends_no_meter(host: Host, value: int) -> None:
    clock = Clock(host)
    before = clock.look()
    name = before.drives[0].name
    for place in range(17):
        host.counters[name][place] = value
        host.write()
        assert clock.look().drives == before.drives
