"""The whole way on the virtual drive: measure, fit, recommend, and how true all of it is."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from iojoule.measure.host.host_files import process_start
from tests.pressure import CpuPressure, skip_if_busy

ROOT = Path(__file__).resolve().parents[2]
WATTS_WITHIN = 0.02
PERFORMANCE_WITHIN = 0.03
PREDICTED_WATTS_WITHIN = 0.05
PREDICTED_INSIDE = 0.85
REGRET_MAX = 0.03


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if (
        os.geteuid() != 0
        or not Path("/dev/fuse").exists()
        or not Path("/dev/loop-control").exists()
    ):
        pytest.skip("the lab's disk needs root, /dev/fuse and loop devices")
    for program in ("fio", "nvme", "fusermount3"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    out = tmp_path_factory.mktemp("lab-demo") / "out"
    pressure = CpuPressure()
    done = subprocess.run(
        [ROOT / "scripts" / "lab_demo.sh", out], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (out / "pressure.json").write_text(json.dumps(pressure.share()))
    return out


def test_what_was_measured_is_what_happened(demo: Path) -> None:
    medians = json.loads((demo / "compared.json").read_text())["median_errors"]
    assert medians["device_power_watts"] < WATTS_WITHIN
    assert medians["cpu_power_watts"] < WATTS_WITHIN
    assert medians["throughput_bytes_per_second"] < PERFORMANCE_WITHIN


def test_latency_is_what_the_drive_took(demo: Path) -> None:
    skip_if_busy(json.loads((demo / "pressure.json").read_text()))
    medians = json.loads((demo / "compared.json").read_text())["median_errors"]
    assert medians["latency_mean_ns"] < PERFORMANCE_WITHIN


def test_predictions_between_what_was_measured_are_compared_with_the_true_physics(
    demo: Path,
) -> None:
    judged = json.loads((demo / "judged.json").read_text())
    sizes = {item["request_bytes"] for item in judged["predictions"]}
    assert {8192, 32768, 49152} < sizes, "sizes that the plan does not measure"
    assert judged["summary"]["device_power_watts"]["median_error"] < PREDICTED_WATTS_WITHIN
    assert judged["summary"]["device_power_watts"]["inside"] >= PREDICTED_INSIDE


def test_the_recommendation_costs_hardly_more_than_the_best_on_the_true_physics(
    demo: Path,
) -> None:
    recommended = json.loads((demo / "judged.json").read_text())["recommendation"]
    assert recommended["keeps_sla"]
    assert recommended["regret"] <= REGRET_MAX


def test_nothing_is_left_behind(demo: Path) -> None:
    lab = json.loads((demo / "lab.json").read_text())
    folder = str(Path(lab["controller"]).parent)
    assert folder not in Path("/proc/self/mountinfo").read_text()
    assert not Path(folder).exists()
    for process in lab["processes"].values():
        assert process_start(process["pid"]) is None
    assert not list((demo / "state").glob("restore-*.json"))
