"""A campaign that sweeps the power limit of the virtual drive, from the plan to the dataset."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.api.application.meter_basis import ask, ask_again
from iojoule.datasets.store import read_dataset
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.drive.power_measurement import NO_LIMIT, POWER_LIMIT, power_word
from iojoule.measure.errors import DriveError
from iojoule.measure.lab.client import LabClient
from tests.measure.lab.conftest import awake_lab, need

pytestmark = pytest.mark.slow

IOJOULE = str(Path(sys.executable).with_name("iojoule"))
PLAN = """
schema_version = 1
name = "limits"
repeats = 1
[run]
seconds = 2
ramp_seconds = 0.5
[settle]
baseline_seconds = 1
seconds = 0.1
[[sweep]]
name = "reads"
operation = "read"
request_bytes = "16KiB"
queue_depth = 32
power_limit_watts = [0, 4.5, 3.5]
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabClient]:
    for program in ("fio", "nvme"):
        need(program)
    with awake_lab(tmp_path / "lab") as client:
        for name, value in client.environment().items():
            monkeypatch.setenv(name, value)
        yield client


def campaign(lab: LabClient, folder: Path, plan: str) -> subprocess.CompletedProcess[str]:
    file = folder / "plan.toml"
    file.write_text(plan)
    state = lab.state
    return subprocess.run(
        [
            IOJOULE, "measure", "run", "--plan", str(file), "--out", str(folder / "out"),
            "--drive", state["drive"], "--controller", state["controller"],
            "--power", f"powersensor3:{state['powersensor3']}",
        ],
        env={**os.environ, "IOJOULE_JOURNALS": str(folder / "state")},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip


def test_watts_stay_below_each_limit_and_it_is_lifted(lab: LabClient, tmp_path: Path) -> None:
    controller = NvmeController(Path(lab.state["controller"]))
    done = campaign(lab, tmp_path, PLAN)
    assert done.returncode == 0, done.stderr
    dataset = read_dataset(tmp_path / "out" / "measurements.parquet")
    watts = {
        run.configuration.power_limit_watts: run.observations.device_power_watts
        for run in dataset.measurements()
    }
    sys.stdout.write(f"watts by limit: {watts}\n")
    assert set(watts) == {0.0, 4.5, 3.5}
    assert watts[3.5] <= 3.5 < watts[4.5] <= 4.5 < watts[0.0]
    idle = {run.observations.idle_power_watts for run in dataset.measurements()}
    assert None not in idle
    assert controller.feature(POWER_LIMIT) == NO_LIMIT
    assert lab.disk.status()["power_state"] == 0


def test_the_limit_of_somebody_else_is_kept_or_refused(lab: LabClient, tmp_path: Path) -> None:
    controller = NvmeController(Path(lab.state["controller"]))
    theirs, said = power_word(4.5), ask(controller)
    controller.set_feature(POWER_LIMIT, theirs)
    assert (said.power_limited, ask_again(controller, said).power_limited) == (False, True)
    unaware = campaign(lab, tmp_path, PLAN.replace("power_limit_watts = [0, 4.5, 3.5]", ""))
    assert unaware.returncode == DriveError.exit_code
    assert controller.set_feature_command(POWER_LIMIT, NO_LIMIT) in unaware.stderr
    done = campaign(lab, tmp_path, PLAN.replace("[0, 4.5, 3.5]", "[0]"))
    assert done.returncode == 0, done.stderr
    assert controller.feature(POWER_LIMIT) == theirs
