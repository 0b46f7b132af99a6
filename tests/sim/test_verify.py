import csv
from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.verify import COLUMNS, read_cases, verify, verify_all
from iojoule.sim.workload import FlowConfig, Scenario

DEVICE = DeviceConfig(preconditioning=False, gc_preemptible=False, mapping_ideal=True)
SCENARIO = Scenario(flows=(FlowConfig(stop_ns=1_000_000, queue_depth=4),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One case whose reference is what the simulator itself says."""
    inputs = tmp_path / "cases"
    inputs.mkdir()
    (inputs / "a.ssd.xml").write_text(write_device_xml(DEVICE), encoding="ascii")
    (inputs / "a.wl.xml").write_text(write_workload_xml([SCENARIO], DEVICE), encoding="ascii")
    result = EmbeddedEngine().run(DEVICE, SCENARIO)
    row = {name: reading(result, result.flows[0]) for name, reading in COLUMNS.items()}
    write(tmp_path, {"case": "a", "group": "own", "mqsim_user_s": 1.0, **row})
    return tmp_path


def write(folder: Path, row: dict[str, object]) -> None:
    with (folder / "golden.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)


def changed(folder: Path, **values: object) -> None:
    with (folder / "golden.csv").open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    write(folder, {**row, **values})


def test_equal_results_are_equal(folder: Path) -> None:
    (verdict,) = verify_all(read_cases(folder))
    assert verdict.equal
    assert verdict.compared == len(COLUMNS) == 30


def test_a_mean_may_be_rounded_and_a_count_may_not(folder: Path) -> None:
    mean = EmbeddedEngine().run(DEVICE, SCENARIO).flows[0].drt_ns
    changed(folder, drt_ns=mean + 0.9, serviced=1)
    (verdict,) = verify_all(read_cases(folder))
    assert [(each.column, each.expected) for each in verdict.differences] == [("serviced", 1.0)]
    changed(folder, drt_ns=mean + 1.1)
    (verdict,) = verify_all(read_cases(folder))
    assert [each.column for each in verdict.differences] == ["serviced", "drt_ns"]


def test_a_run_that_fails_is_a_verdict(folder: Path) -> None:
    text = (folder / "cases" / "a.ssd.xml").read_text(encoding="ascii")
    hybrid = text.replace(">PAGE_LEVEL<", ">HYBRID<")
    (folder / "cases" / "a.ssd.xml").write_text(hybrid, encoding="ascii")
    (case,) = read_cases(folder)
    verdict = verify(case, EmbeddedEngine())
    assert not verdict.equal
    assert "no implementation" in (verdict.failure or "")


def test_a_folder_without_references_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_cases(tmp_path / "none")
    write(folder, {"case": "a", "group": "b"})
    with pytest.raises(InputError, match="has no column serviced"):
        read_cases(folder)


def test_a_case_without_inputs_is_refused(folder: Path) -> None:
    (folder / "cases" / "a.wl.xml").unlink()
    with pytest.raises(InputError, match=r"a\.wl\.xml: is not there"):
        read_cases(folder)
