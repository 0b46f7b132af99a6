"""A profile from the drive's own meter (log 25h) alone, beside one from a PowerSensor3 (5 minutes).

Both campaigns run on one virtual drive; predictions are compared and printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.profile import DeviceProfile, read_profile
from iojoule.datasets.store import read_dataset
from iojoule.measure.lab.client import LabClient
from iojoule.model.evaluate.predictor import Predictor
from tests.measure.lab.conftest import awake_lab, need

pytestmark = pytest.mark.soak

IOJOULE = str(Path(sys.executable).with_name("iojoule"))
PLAN = """
schema_version = 1
name = "own-meter"
repeats = 1
bytes_written_max = "4GB"
[run]
seconds = 7
ramp_seconds = 1.5
[settle]
baseline_seconds = 8
seconds = 0.2
window_seconds = 3
after_writes_seconds_max = 15
[[sweep]]
name = "reads"
operation = "read"
request_bytes = ["4KiB", "16KiB", "64KiB"]
queue_depth = [1, 8]
[[sweep]]
name = "writes"
operation = "write"
request_bytes = ["4KiB", "64KiB"]
queue_depth = 4
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[LabClient]:
    for program in ("fio", "nvme"):
        need(program)
    with awake_lab(tmp_path / "lab") as client:
        yield client


def profile_of(lab: LabClient, out: Path, power: str) -> DeviceProfile:
    """Measure with this sensor alone, and fit."""
    state = lab.state
    plan = out.with_suffix(".toml")
    plan.write_text(PLAN)
    environment = {**os.environ, **lab.environment(), "IOJOULE_JOURNALS": str(out.parent / "state")}
    run = [
        "measure", "run", "--plan", str(plan), "--out", str(out), "--drive", state["drive"],
        "--controller", state["controller"], "--power", power, "--serial", state["serial"],
    ]  # fmt: skip
    for words in (run, ["fit", str(out), "-o", str(out.with_suffix(".json"))]):
        subprocess.run([IOJOULE, *words], env=environment, check=True)
    return read_profile(out.with_suffix(".json"))


def test_watts_from_the_drive_s_own_meter(lab: LabClient, tmp_path: Path) -> None:
    powers = {
        "sensor": f"powersensor3:{lab.state['powersensor3']}",
        "own": f"drive-power:{lab.state['controller']}",
    }
    profiles = {name: profile_of(lab, tmp_path / name, power) for name, power in powers.items()}
    for measured in read_dataset(tmp_path / "own" / "measurements.parquet").measurements():
        assert measured.observations.device_power_watts is not None
        assert measured.observations.cpu_power_watts is None
    grid = [(size, depth) for size in (4096, 8192, 65536) for depth in (1, 2, 8)]
    asked = {
        "operation": [*["read"] * len(grid), "write"],
        "request_bytes": [*(size for size, _ in grid), 4096],
        "queue_depth": [*(depth for _, depth in grid), 4],
    }
    told = {
        name: Predictor(profile).predict_columns(asked, len(grid) + 1)[0]
        for name, profile in profiles.items()
    }
    for name in ("device_power_watts", "throughput_bytes_per_second"):
        ratio = told["own"][name].value / told["sensor"][name].value
        sys.stdout.write(f"{name}: {np.round(100 * (ratio - 1), 1)} %\n")
        assert ratio == pytest.approx(1.0, abs=0.05)
    assert np.isnan(told["own"]["cpu_power_watts"].value).all()
