"""What a watched run says of writes that bypass the block layer, and of the write cache."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Completion, Engine, Operation
from iojoule.measure.campaign.folder import CampaignState
from iojoule.measure.campaign.run_record import RunObservation
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.point import Point


def watched(
    engine: Engine, sysfs: Path, *, controller: Any = None, operation: Operation = Operation.READ
) -> RunObservation:
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
    return RunObservation(
        cast(Any, run), sysfs, cast(Any, rig), cast(Any, None), CampaignState(), None
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
