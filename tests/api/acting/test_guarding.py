"""When a guard sees a breach and when it does not."""

from pathlib import Path
from typing import Any

import pytest

from iojoule.api.acting import guarding
from iojoule.api.acting.errors import SlaBreachedError
from iojoule.api.acting.guarding import Guard, Seen, watch
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.block_io import BlockWindow, Reading, Served
from iojoule.measure.sensors.protocol import Scope
from tests.api.acting.answers import answer

DRIVE = BlockDevice(Path("/dev/x"), "x", "1:1", 1, 512)


def seen(
    latency_ns: float | None = 1e6,
    *,
    requests: int = 1000,
    busy: float = 0.5,
    watts: float | None = None,
) -> Seen:
    block = BlockWindow(5.0, requests, 4096 * requests, latency_ns, busy)
    return Seen(lambda _: block, {} if watts is None else {Scope.DEVICE: watts})


def guard(**sla: Any) -> Guard:
    return Guard(answer(sla=sla))


def test_one_bad_window_is_noise_and_two_in_a_row_are_a_breach() -> None:
    one = guard(latency_mean_ns_max=2e6)
    good, bad = seen(1e6), seen(3e6)
    assert [one.take(window) for window in (bad, good, bad)] == [None] * 3
    said = one.take(bad)
    assert said is not None
    assert "latency_mean_ns is 3.00 ms, the bound 2.00 ms" in said


def test_a_percentile_is_held_against_what_is_expected_of_it() -> None:
    # the recommendation expects a p99 of four times the mean
    one = guard(latency_p99_ns_max=10e6)
    assert [one.take(seen(2.4e6)) for _ in range(3)] == [None] * 3
    assert [one.take(seen(2.6e6)) is None for _ in range(2)] == [True, False]


def test_a_percentile_that_is_not_expected_cannot_be_watched() -> None:
    one = guard(latency_p50_ns_max=1.0)
    assert [one.take(seen(1e9)) for _ in range(3)] == [None] * 3
    assert "not watched" in one.watched([])[0]


def test_what_is_carried_counts_only_while_the_drive_is_busy() -> None:
    one = guard(iops_min=1000)
    assert [one.take(seen(busy=0.6)) for _ in range(3)] == [None] * 3
    assert [one.take(seen(busy=1.0)) is None for _ in range(2)] == [True, False]


def test_power_is_held_against_its_bound_where_it_is_metered() -> None:
    one = guard(device_power_watts_max=5.0)
    assert [one.take(seen()) for _ in range(3)] == [None] * 3
    assert [one.take(seen(watts=5.5)) is None for _ in range(2)] == [True, False]
    assert "no --power meter" in one.watched([])[0]
    assert one.watched([Scope.DEVICE])[0].endswith("by the mean")


def test_drive_and_cpu_together_need_both_meters() -> None:
    one = guard(device_cpu_power_watts_max=5.0)
    assert [one.take(seen(watts=9)) for _ in range(3)] == [None] * 3
    both = Seen(seen().block, {Scope.DEVICE: 3.0, Scope.CPU: 3.0})
    assert [one.take(both) is None for _ in range(2)] == [True, False]


def test_what_is_only_preferred_takes_nothing_back() -> None:
    one = guard(latency_mean_ns_max=2e6, soft=["latency_mean_ns_max"])
    assert [one.take(seen(9e6)) for _ in range(3)] == [None] * 3
    assert "only preferred" in one.watched([])[0]


def test_a_bound_on_reads_is_held_against_reads() -> None:
    one = guard(latency_mean_ns_max=2e6, directions={"latency_mean_ns_max": "read"})
    slow, fast = seen(9e6).block(None), seen(1e6).block(None)
    writes = Seen(lambda direction: fast if direction == "read" else slow, {})
    reads = Seen(lambda direction: slow if direction == "read" else fast, {})
    assert [one.take(writes) for _ in range(3)] == [None] * 3
    assert [one.take(reads) is None for _ in range(2)] == [True, False]


def test_endurance_does_not_show_in_a_window() -> None:
    one = guard(endurance_years_min=5.0)
    assert [one.take(seen(9e9)) for _ in range(3)] == [None] * 3
    assert "over years" in one.watched([])[0]


def test_a_few_requests_say_nothing_but_a_drive_that_hangs_does() -> None:
    one = guard(latency_mean_ns_max=2e6)
    assert [one.take(seen(9e6, requests=3)) for _ in range(3)] == [None] * 3
    assert [one.take(seen(5e9, requests=0)) is None for _ in range(2)] == [True, False]


class Clock:
    """Time that passes when somebody waits, and a drive that becomes slow at a moment."""

    def __init__(self, slow_at: float) -> None:
        self.now, self.slow_at = 0.0, slow_at
        self.waited_ms, self.requests = 0.0, 0.0

    def sleep(self, seconds: float) -> None:
        # 100 requests a second, of 1 ms before the moment and of 50 ms after it
        slow = min(max(self.now + seconds - self.slow_at, 0.0), seconds)
        self.now += seconds
        self.requests += 100 * seconds
        self.waited_ms += 100 * (50 * slow + (seconds - slow))

    def monotonic(self) -> float:
        return self.now

    def read(self, _: object) -> Reading:
        read = Served(round(self.requests), 0, round(self.waited_ms))
        return Reading(round(self.now * 1e9), read, Served(0, 0, 0), 0, 1)


@pytest.mark.parametrize("slow_at", [0.0, 11.0, 12.4, 14.9, 17.5])
def test_a_rise_of_latency_is_seen_within_15_seconds(
    monkeypatch: pytest.MonkeyPatch, slow_at: float
) -> None:
    clock = Clock(slow_at)
    monkeypatch.setattr(guarding, "time", clock)
    monkeypatch.setattr(guarding, "read_counters", clock.read)
    asked = answer(sla={"latency_mean_ns_max": 10e6})
    with pytest.raises(SlaBreachedError, match="latency_mean_ns"):
        watch(asked, DRIVE, [], 600, lambda _: None)
    assert clock.now - slow_at <= 15.1


def test_a_quiet_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1e9)
    monkeypatch.setattr(guarding, "time", clock)
    monkeypatch.setattr(guarding, "read_counters", clock.read)
    said: list[str] = []
    watch(answer(sla={"latency_mean_ns_max": 10e6}), DRIVE, [], 60, said.append)
    assert clock.now >= 60
    assert len(said) == 1
