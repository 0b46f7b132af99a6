"""`iojoule calibrate --server`: the same calibration, and the version that comes of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.provenance import Provenance
from iojoule.datasets.store import Dataset, write_dataset
from tests.service import ServiceProcess
from tests.sim.calibration.hidden import HIDDEN, measured

DEVICE = "samsung-980-pro-1tb"
QUICK = ("--ssd", DEVICE, "--device", DEVICE, "--parameters", "page_read_ns", "--rounds", "1",
         "--designs", "8", "--no-tables")  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service that nobody else asks, for what it answers with changes."""
    process = ServiceProcess(tmp_path / "state")
    yield process
    process.stop()


def predicted(iojoule: Any, *where: str | Path) -> Any:
    return json.loads(iojoule("predict", *where, "-o", "json").out)


@pytest.mark.slow
def test_a_service_calibrates_as_the_command_does(
    iojoule: Any, own: ServiceProcess, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16))
    runs.mkdir()
    write_dataset(Dataset.from_measurements(rows, Provenance(importer="test")), runs / "mine")
    told_before = predicted(iojoule, "--device", DEVICE)["profile_version"]
    told, written = [], []
    for name, where in (("here.json", ()), ("there.json", ("--server", own.url))):
        done = iojoule("calibrate", runs, *QUICK, "-o", tmp_path / name, "--format", "json", *where)
        assert done.code == 0, done.err
        told.append(json.loads(done.out))
        written.append(json.loads((tmp_path / name).read_text()))
    assert told[1] == told[0]
    assert written[1]["simulated"] == written[0]["simulated"]
    assert "uploaded as dataset" in done.err
    assert f"answers for {DEVICE} with version 1" in done.err

    at = ("--device", DEVICE, "--server", own.url)
    listed = json.loads(iojoule("profile", "versions", *at, "-o", "json").out)
    assert [(one["version"], one["current"]) for one in listed] == [(1, True), (0, False)]
    while (served := predicted(iojoule, *at))["profile_version"] == told_before:
        pass  # within a second on every replica
    assert served == predicted(iojoule, "--profile", tmp_path / "there.json")
    assert served["profile_version"] == "calibration-1"

    # what was uploaded may be named again, and a calibration that fails says why
    kept = listed[0]["job_id"]
    dataset = json.loads(iojoule("jobs", "show", kept, *at[2:], "-o", "json").out)
    (id_,) = dataset["request"]["datasets"]
    failed = iojoule("calibrate", id_, *QUICK, "--hold-out", "request_bytes=4096,16384",
                     "-o", tmp_path / "none.json", *at[2:])  # fmt: skip
    assert failed.code == 3, failed.err
    assert "too few" in failed.err
    assert not (tmp_path / "none.json").exists()
