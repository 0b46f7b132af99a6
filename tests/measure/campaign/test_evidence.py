"""What of a run's recording becomes evidence, and what is in no evidence."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.verdict import judge
from iojoule.datasets.vocabulary import Completion, Engine, Operation
from iojoule.measure.campaign.folder import CampaignState
from iojoule.measure.campaign.plan import RunPlan
from iojoule.measure.campaign.run_record import (
    Clocks,
    RunObservation,
    clock_evidence,
    counted_rates,
    sampled_evidence,
)
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.fio import FioResult
from iojoule.measure.point import Point
from iojoule.measure.recording.statistics import PowerStatistics
from iojoule.measure.sensors.protocol import Scope

SECOND = 1_000_000_000
RAILS = {
    "disk-reads": 10.0,
    "disk-writes": 5.0,
    "disk-reads-merged": 0.0,
    "disk-writes-merged": 0.0,
    "disk-read-bytes": 1e6,
    "disk-write-bytes": 0.0,
    "disk-in-flight": 0.0,
    "cpu-interrupts": 100.0,
}


class Recording:
    """Every counter runs at the rate that RAILS says; nothing was in flight, nothing paused."""

    rail_names = RAILS.keys()

    def rate(self, rails: Sequence[str], begin: int, end: int) -> float:
        return sum(RAILS[rail] for rail in rails)

    def gauge(self, rail: str, begin: int, end: int) -> SimpleNamespace:
        return SimpleNamespace(mean=RAILS[rail])

    def longest_pause_seconds(self, rail: str, begin: int, end: int) -> float:
        return 0.1

    def sampled(self, scope: Scope, begin: int, end: int) -> tuple[None, float]:
        return None, 0.5


def watched(engine: Engine, sysfs: Path) -> RunObservation:
    queue = sysfs / "class" / "block" / "nvme0n1" / "queue"
    queue.mkdir(parents=True)
    (queue / "max_sectors_kb").write_text("128\n")
    (queue / "max_segments").write_text("16\n")
    device = BlockDevice(Path("/dev/nvme0n1"), "nvme0n1", "259:0", 1 << 30, 512, sysfs)
    configuration = Configuration(
        request_bytes=65536, engine=engine, completion=Completion.INTERRUPT
    )
    run = SimpleNamespace(point=Point(Workload(operation=Operation.READ), configuration))
    rig = SimpleNamespace(drive=SimpleNamespace(device=device))
    plan = SimpleNamespace(run=RunPlan())
    made = RunObservation(
        cast(Any, run), sysfs, cast(Any, rig), cast(Any, plan), CampaignState(), None
    )
    made.recording = cast(Any, Recording())
    made.clocks_before = made.clocks_after = Clocks(7 * SECOND, 0)
    made.fio_began_ns, made.fio_ended_ns = 0, 10 * SECOND
    return made


def fio_result() -> FioResult:
    return FioResult(
        {"throughput_bytes_per_second": 1e6, "iops": 15.3, "latency_mean_ns": 65e6},
        7 * SECOND,
        17 * SECOND,
        153,
        1.0,
        9e7,
        (9 * SECOND, 11 * SECOND),
        (),
    )


def power() -> PowerStatistics:
    return cast(
        Any,
        SimpleNamespace(sensor="m", mean_watts=2.6, standard_error_watts=0.01, coverage=0.97),
    )


def seen(one: RunObservation) -> Any:
    clocks = clock_evidence(one, fio_result(), 0, 10 * SECOND)
    return sampled_evidence(clocks, one, fio_result(), {Scope.DEVICE: power()}, 0, 10 * SECOND)


def test_counters_pauses_and_power_become_evidence(tmp_path: Path) -> None:
    found = seen(watched(Engine.IO_URING, tmp_path))
    assert found.measured_seconds == 10
    assert (found.pause_seconds, found.in_flight_in_pause) == (2.0, 0.0)
    assert found.device.commands_per_second == 15
    assert found.device.largest_command_bytes == 65536, "each page may be a segment"
    assert found.power[0].full_scale_seconds == 0.5
    codes = [one.code.value for one in judge(found).reasons]
    assert codes == ["full_scale", "fio_slept"]


def test_what_bypasses_the_block_layer_tells_nothing_of_fios_sleep(tmp_path: Path) -> None:
    found = seen(watched(Engine.IO_URING_CMD, tmp_path))
    assert found.in_flight_in_pause is None
    assert not found.device.holds_own
    assert [one.code.value for one in judge(found).reasons] == ["full_scale", "stall"]
    steady = replace(found, pause_seconds=0.1, power=())
    assert [one.code.value for one in judge(steady).reasons] == ["foreign_io"]


@pytest.mark.parametrize(
    ("wall", "boot", "code"),
    [(2.0, 0.0, "clock_step"), (-3600.0, 0.0, "clock_step"), (60.0, 60.0, "host_suspended")],
)
def test_two_clocks_are_compared(tmp_path: Path, wall: float, boot: float, code: str) -> None:
    one = watched(Engine.IO_URING, tmp_path)
    one.clocks_after = Clocks(int((7 + wall) * SECOND), int(boot * SECOND))
    found = judge(clock_evidence(one, fio_result(), 0, 10 * SECOND))
    assert [each.code.value for each in found.reasons] == [code]


def test_a_part_that_was_measured_at_another_time_is_refused(tmp_path: Path) -> None:
    one = watched(Engine.IO_URING, tmp_path)
    found = judge(clock_evidence(one, fio_result(), 2 * SECOND, 12 * SECOND))
    assert [each.code.value for each in found.reasons] == ["clock_mismatch"]


def test_commands_are_those_that_the_block_layer_counted(tmp_path: Path) -> None:
    found = counted_rates(watched(Engine.IO_URING, tmp_path), 0, SECOND)
    assert found["device_commands_per_second"] == 15
    assert found["interrupts_per_second"] == 100


def test_commands_that_bypass_the_block_layer_are_unknown_and_not_none(tmp_path: Path) -> None:
    one = watched(Engine.IO_URING_CMD, tmp_path)
    assert counted_rates(one, 0, SECOND) == {"interrupts_per_second": 100}
    one.rig.drive.device.queue("iostats_passthrough").write_text("1\n")
    assert counted_rates(one, 0, SECOND)["device_commands_per_second"] == 15
