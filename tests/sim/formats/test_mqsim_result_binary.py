"""The result file beside that of the real program, where IOJOULE_MQSIM names one."""

import csv
import os
import shutil
from pathlib import Path

import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.mqsim import (
    DEVICE_FILE,
    RESULT_FILE,
    WORKLOAD_FILE,
    MqsimEngine,
    write_inputs,
)
from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.formats.mqsim_result import write_result_xml
from iojoule.sim.workload import CachingMode, Priority, Scenario
from tests.reference_data import MQSIM_RUNS
from tests.sim.recordings import MIXED, ONE_CHIP, READS, TWO_CHIPS

pytestmark = pytest.mark.skipif(
    not os.environ.get("IOJOULE_MQSIM"), reason="IOJOULE_MQSIM does not name MQSim's binary"
)

SHORT_SECONDS = 0.3
"""The reference cases for which MQSim took less, some 60 of every group but SATA."""


def short_cases() -> list[str]:
    if not MQSIM_RUNS.is_dir():
        return []
    with (MQSIM_RUNS / "golden.csv").open(encoding="utf-8", newline="") as file:
        taken = {row["case"]: float(row["mqsim_user_s"]) for row in csv.DictReader(file)}
    return [case for case, took in taken.items() if took < SHORT_SECONDS]


def embedded(device: DeviceConfig, scenario: Scenario) -> str:
    return write_result_xml(EmbeddedEngine().run(device, scenario, RunOptions(queues=True)), device)


@pytest.mark.parametrize("case", short_cases())
def test_a_reference_case_has_the_same_file(
    case: str, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(reference / "cases" / f"{case}.ssd.xml", tmp_path / DEVICE_FILE)
    shutil.copy(reference / "cases" / f"{case}.wl.xml", tmp_path / WORKLOAD_FILE)
    (tmp_path / "traces").symlink_to(reference / "traces")
    MqsimEngine().execute(tmp_path, RunOptions())
    monkeypatch.chdir(tmp_path)
    asked = read_drive(DEVICE_FILE).device
    assert embedded(asked, read_workload(WORKLOAD_FILE).with_traces(0)) == Path(
        RESULT_FILE
    ).read_text("ascii")


CHANGED_MAPPING = ONE_CHIP.model_copy(update={"mapping_ideal": False, "cmt_bytes": 1024})
SMALL_CACHE = ONE_CHIP.model_copy(update={"cache_bytes": 1 << 16})
PARTS = MIXED.model_copy(
    update={
        "priority": Priority.HIGH,
        "read_percent": 30,
        "size_mean_sectors": 24,
        "aligned": False,
        "working_set_percent": 10,
        "queue_depth": 16,
        "total_requests": 600,
    }
)
HELD = {
    "evicted_writes_read_what_they_do_not_cover": (SMALL_CACHE, (PARTS,)),
    "evicted_writes_by_class": (
        SMALL_CACHE.model_copy(update={"scheduler": TWO_CHIPS.scheduler}),
        (PARTS, PARTS.model_copy(update={"priority": Priority.URGENT, "read_percent": 100})),
    ),
    "evicted_writes_of_another_flow": (
        SMALL_CACHE,
        (PARTS, PARTS.model_copy(update={"seed": 9, "read_percent": 0})),
    ),
    "no_cache_by_class": (
        SMALL_CACHE.model_copy(update={"scheduler": TWO_CHIPS.scheduler}),
        (
            PARTS.model_copy(
                update={"caching": CachingMode.TURNED_OFF, "priority": Priority.URGENT}
            ),
        ),
    ),
    "flows_that_do_not_begin_at_a_page_of_16_kib": (
        SMALL_CACHE.model_copy(update={"page_bytes": 16384}),
        (PARTS, PARTS.model_copy(update={"seed": 9, "read_percent": 0}), PARTS),
    ),
    "mapping_pages_that_are_never_written": (
        CHANGED_MAPPING,
        (READS.model_copy(update={"read_percent": 0, "total_requests": 300}),),
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_what_no_reference_case_has_is_the_same(name: str, tmp_path: Path) -> None:
    device, flows = HELD[name]
    scenario = Scenario(flows=flows).on(device)
    write_inputs(tmp_path, device, scenario, 0)
    MqsimEngine().execute(tmp_path, RunOptions())
    theirs = (tmp_path / RESULT_FILE).read_text("ascii")
    assert embedded(device, scenario) == theirs
