"""Against the real program, where IOJOULE_MQSIM names one."""

import csv
import os
import shutil
from pathlib import Path

import pytest

from iojoule.datasets.errors import IojouleError
from iojoule.sim.engines import EngineError, Limits, RunOptions
from iojoule.sim.engines.mqsim import (
    DEVICE_FILE,
    RESULT_FILE,
    WORKLOAD_FILE,
    MqsimEngine,
    write_inputs,
)
from iojoule.sim.engines.mqsim_process import raise_if_failed, raise_if_lost
from iojoule.sim.errors import LimitError
from iojoule.sim.findings import Finding, RefusedError
from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.formats.mqsim_result import read_serviced
from iojoule.sim.known_defects import findings
from iojoule.sim.workload import Scenario
from tests.sim.failing_inputs import FAILING_INPUTS
from tests.sim.recordings import FOLDER, MIXED, ONE_CHIP, RUNS, record

pytestmark = pytest.mark.skipif(
    not os.environ.get("IOJOULE_MQSIM"), reason="IOJOULE_MQSIM does not name MQSim's binary"
)


@pytest.fixture(scope="module")
def mqsim() -> MqsimEngine:
    return MqsimEngine()


@pytest.mark.parametrize("name", RUNS)
def test_recorded_runs_repeat_to_the_byte(name: str, mqsim: MqsimEngine, tmp_path: Path) -> None:
    record(name, mqsim, tmp_path)
    for path in (FOLDER / name).iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_a_scenario_alone_is_that_of_its_file(mqsim: MqsimEngine, tmp_path: Path) -> None:
    # the drive's seed matters to preconditioning a cached mapping table only
    drive = ONE_CHIP.model_copy(
        update={
            "preconditioning": True,
            "mapping_ideal": False,
            "cmt_bytes": 4096,
            "blocks_per_plane": 1024,
            "pages_per_block": 64,
            "gc_threshold": 0.02,
        }
    )
    flow = MIXED.model_copy(update={"initial_occupancy_percent": 50, "total_requests": 200})
    scenario = Scenario(flows=(flow,)).on(drive)
    (tmp_path / DEVICE_FILE).write_text(write_device_xml(drive))
    (tmp_path / WORKLOAD_FILE).write_text(write_workload_xml([scenario] * 3))
    mqsim.execute(tmp_path, RunOptions())
    together = [
        (tmp_path / RESULT_FILE.replace("_1", f"_{number}")).read_bytes() for number in (1, 2, 3)
    ]
    assert len(set(together)) > 1, "the seed must matter for this to show anything"
    for number, expected in enumerate(together):
        alone = tmp_path / str(number)
        alone.mkdir()
        write_inputs(alone, drive, scenario, number)
        mqsim.execute(alone, RunOptions())
        assert (alone / RESULT_FILE).read_bytes() == expected


def test_memory_and_time_are_limited(mqsim: MqsimEngine) -> None:
    device, scenario = RUNS["reads"]
    large = device.model_copy(update={"blocks_per_plane": 2**19})
    with pytest.raises(LimitError) as stopped:
        mqsim.run(large, scenario, RunOptions(limits=Limits(memory_bytes=256 << 20)))
    assert stopped.value.limit == "memory_bytes"
    endless = Scenario(flows=(scenario.flows[0].model_copy(update={"total_requests": 10**9}),))
    with pytest.raises(LimitError) as stopped:
        mqsim.run(device, endless, RunOptions(limits=Limits(wall_seconds=0.3)))
    assert stopped.value.limit == "wall_seconds"


FAILURES = {name: case.name for name, case in FAILING_INPUTS.items()}
FAILURES["mixed_streaming"] = "unknown_word"
"""Each row of failures.csv and the name of the cause."""
BY_THE_READER = {"mixed_streaming": "mixed_streaming"}
"""What the reader of the input files already knows better than MQSim's own words."""
SILENT = ("dram_4300", "relay2", "normal_negative")
"""In these MQSim ends well with a wrong result, which only a look at the inputs can tell."""


def test_every_failure_that_is_known_has_a_name(reference: Path) -> None:
    with (reference / "failures.csv").open(newline="") as file:
        assert {row["case"] for row in csv.DictReader(file)} == set(FAILURES)


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_told_by_its_name(
    case: str, mqsim: MqsimEngine, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reference)
    names: set[str] = set()
    try:
        drive = read_drive(reference / "failures" / f"{case}.ssd.xml")
        workload = read_workload(reference / "failures" / f"{case}.wl.xml")
        names |= {finding.name for finding in (*drive.findings, *workload.findings)}
        result = mqsim.run(drive.device, workload.with_traces(0), RunOptions())
        names |= {warning.rpartition("[")[2].rstrip("]") for warning in result.warnings}
    except (RefusedError, EngineError) as error:
        names = {error.name}
    assert BY_THE_READER.get(case, FAILURES[case]) in names


@pytest.mark.parametrize("case", [case for case in FAILURES if case not in SILENT])
def test_a_failure_of_the_program_itself_is_named(
    case: str, mqsim: MqsimEngine, reference: Path, tmp_path: Path
) -> None:
    shutil.copy(reference / "failures" / f"{case}.ssd.xml", tmp_path / DEVICE_FILE)
    shutil.copy(reference / "failures" / f"{case}.wl.xml", tmp_path / WORKLOAD_FILE)
    (tmp_path / "traces").symlink_to(reference / "traces")
    known: tuple[Finding, ...] = ()
    try:
        flows = read_workload(tmp_path / WORKLOAD_FILE).scenarios[0].flows
        known = findings(read_drive(tmp_path / DEVICE_FILE).device, flows)
    except IojouleError:
        pass  # what cannot be read has no traps to blame
    ended = mqsim.execute(tmp_path, RunOptions())

    def judge() -> None:
        raise_if_failed(ended, known)
        raise_if_lost(read_serviced(ended.stdout), known, tolerate=False)

    with pytest.raises(EngineError) as failed:
        judge()
    by_its_words = {"bandwidth_3e9": "not_a_number"}
    assert failed.value.name == by_its_words.get(case, FAILURES[case])
