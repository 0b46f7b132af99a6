"""What a record says of requests that pass the block layer, and of those that bypass it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Completion, Engine, Operation
from iojoule.measure.campaign import run_record
from iojoule.measure.campaign.folder import CampaignState
from iojoule.measure.campaign.watched_run import Watched
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.errors import DriveError
from iojoule.measure.point import Point

RAILS = {
    "disk-reads": 10.0,
    "disk-writes": 5.0,
    "disk-reads-merged": 0.0,
    "disk-writes-merged": 0.0,
    "disk-read-bytes": 1e6,
    "disk-write-bytes": 0.0,
    "cpu-interrupts": 100.0,
}


class Recording:
    """Every counter runs at the rate that RAILS says."""

    sensors = ("all",)

    def rails(self, sensor: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in RAILS]

    def counter(self, rail: str, begin: int, end: int) -> SimpleNamespace:
        return SimpleNamespace(per_second=RAILS[rail])


def watched(
    engine: Engine, sysfs: Path, *, controller: Any = None, operation: Operation = Operation.READ
) -> Watched:
    queue = sysfs / "class" / "block" / "nvme0n1" / "queue"
    queue.mkdir(parents=True)
    (queue.parent / "stat").write_text("0 0 0 0 0 0 0 0 0 0 0\n")
    device = BlockDevice(Path("/dev/nvme0n1"), "nvme0n1", "259:0", 1 << 30, 512, sysfs)
    configuration = Configuration(
        request_bytes=4096, engine=engine, completion=Completion.INTERRUPT
    )
    run = SimpleNamespace(point=Point(Workload(operation=operation), configuration))
    rig = SimpleNamespace(
        drive=SimpleNamespace(device=device, controller=None), controller=controller
    )
    made = Watched(cast(Any, run), sysfs, cast(Any, rig), cast(Any, None), CampaignState(), None)
    made.recording = cast(Any, Recording())
    return made


def outcome(bytes_per_second: float) -> Any:
    return SimpleNamespace(observations={"throughput_bytes_per_second": bytes_per_second})


def test_commands_are_those_that_the_block_layer_counted(tmp_path: Path) -> None:
    found = run_record._counted(watched(Engine.IO_URING, tmp_path), 0, 10**9)
    assert found["device_commands_per_second"] == 15
    assert found["interrupts_per_second"] == 100


def test_commands_that_bypass_the_block_layer_are_unknown_and_not_none(tmp_path: Path) -> None:
    one = watched(Engine.IO_URING_CMD, tmp_path)
    assert run_record._counted(one, 0, 10**9) == {"interrupts_per_second": 100}
    one.rig.drive.device.queue("iostats_passthrough").write_text("1\n")
    assert run_record._counted(one, 0, 10**9)["device_commands_per_second"] == 15


def test_somebody_else_is_noticed_beside_requests_that_are_not_counted(tmp_path: Path) -> None:
    run_record._require_alone(watched(Engine.IO_URING, tmp_path / "a"), outcome(1e6), 0, 10**9)
    with pytest.raises(DriveError, match=r"somebody else moved 1\.00 MB/s"):
        run_record._require_alone(
            watched(Engine.IO_URING_CMD, tmp_path / "b"), outcome(1e6), 0, 10**9
        )


def test_what_bypasses_the_block_layer_is_written_as_the_drive_counts(tmp_path: Path) -> None:
    counts = iter([1_024_000, 5_120_000])
    controller = SimpleNamespace(smart=lambda: SimpleNamespace(host_bytes_written=next(counts)))
    one = watched(Engine.IO_URING_CMD, tmp_path, controller=controller, operation=Operation.WRITE)
    one.look_before()
    one.look_after()
    assert one.state.bytes_written == 4_096_000


@pytest.mark.parametrize(("feature", "cache"), [(0, False), (1, True)])
def test_a_write_cache_is_on_where_the_drive_says_so(
    tmp_path: Path, feature: int, cache: bool
) -> None:
    controller = SimpleNamespace(
        smart=lambda: SimpleNamespace(host_bytes_written=0), feature=lambda _: feature
    )
    one = watched(Engine.IO_URING, tmp_path, controller=controller)
    one.rig.drive.controller = cast(Any, SimpleNamespace(volatile_write_cache=True))  # type: ignore[misc]
    one.look_before()
    assert one.write_cache_enabled is cache
