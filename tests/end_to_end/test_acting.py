"""A recommendation on the virtual drive: set, proven, taken back; and a guard that takes it back.

`pytest -s` prints what was measured.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iojoule.measure.host.changes import SysfsValue
from iojoule.measure.host.journal import HostState
from iojoule.measure.lab import life
from iojoule.measure.lab.client import LabClient
from tests.api.acting.answers import answer_data
from tests.measure.lab.conftest import missing_for_a_disk

IOJOULE = Path(sys.executable).with_name("iojoule")
READS = """
scope = "device"
[workload]
operation = "read"
useful_request_bytes = 4096
"""
REVERTED_WITHIN_SECONDS = 30


@dataclass
class Bed:
    """The lab, tuned by hand before anything is done to it."""

    lab: LabClient
    folder: Path

    @property
    def queue(self) -> Path:
        return Path("/sys/class/block") / Path(self.lab.state["drive"]).name / "queue"

    def words(
        self, name: str, *, current: Any, recommended: Any, sla: Any, **more: Any
    ) -> list[str]:
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(answer_data(recommended, current, sla, **more)))
        state = self.lab.state
        return [
            "--recommendation", str(file), "--drive", state["drive"],
            "--controller", state["controller"],
            "--power", f"powersensor3:{state['powersensor3']}",
        ]  # fmt: skip

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [IOJOULE, *words],
            env={
                **os.environ, **self.lab.environment(),
                "IOJOULE_JOURNALS": str(self.folder / "state"),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        said, _ = process.communicate(timeout=500)
        return process.returncode, said

    def snapshot(self) -> dict[str, str]:
        """All that can be read of the queue, and the state of the drive."""
        found = {"power_state": str(self.lab.status()["disk"]["power_state"])}
        for file in sorted(self.queue.rglob("*")):
            try:
                found[str(file)] = file.read_text() if file.is_file() else ""
            except OSError:
                continue
        return found

    @contextmanager
    def reading(self, depth: int, seconds: int) -> Iterator[None]:
        """An application that reads at random."""
        process = subprocess.Popen(
            ["fio", "--name=reads", f"--filename={self.lab.state['drive']}", "--direct=1",
             "--rw=randread", "--bs=4k", f"--iodepth={depth}", "--ioengine=io_uring",
             "--time_based", f"--runtime={seconds}", "--allow_file_create=0"],
            cwd=self.folder, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    if reason := missing_for_a_disk():
        pytest.skip(reason)
    for program in ("fio", "nvme"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("acting")
    with life.up(folder / "lab") as client:
        client.disk.ask("moves")
        one = Bed(client, folder)
        tuned = {
            "scheduler": "mq-deadline", "nr_requests": "77", "iosched/read_expire": "112",
            "iosched/async_depth": "50",
        }  # fmt: skip
        # a host that somebody has tuned; the loop device keeps it beyond the lab
        with HostState("the lab", folder / "tuned") as state:
            for name, value in tuned.items():
                state.set(SysfsValue(str(one.queue / name)), value)
            yield one
    life.down(folder / "lab")


CHANGE = {
    "current": {"scheduler": "mq-deadline", "queue_depth": 1},
    "recommended": {"scheduler": "none", "queue_depth": 32, "power_state": 1},
}


def test_it_is_set_proven_and_taken_back(bed: Bed) -> None:
    before = bed.snapshot()
    serial = str(bed.lab.state["serial"])
    words = bed.words("capped", **CHANGE, sla={"device_power_watts_max": 6.0})
    undo = str(bed.folder / "undo.json")
    code, said = bed.run("apply", *words, "--run", "--serial", serial, "--undo", undo)
    assert code == 0, said
    applied = bed.snapshot()
    assert applied["power_state"] == "1"
    assert "[none]" in applied[str(bed.queue / "scheduler")]

    (bed.folder / "reads.toml").write_text(READS)
    code, said = bed.run(
        "verify", *words, "--workload", str(bed.folder / "reads.toml"), "--pairs", "8",
        "--seconds", "2", "--ramp-seconds", "0.5", "--out", str(bed.folder / "verify"),
    )  # fmt: skip
    sys.stdout.write(said)
    assert code == 0, said
    assert bed.snapshot() == applied, "a verification leaves what was applied"
    found = json.loads((bed.folder / "verify" / "verification.json").read_text())
    assert found["verdict"] == "proven"
    for name, joules in {"before": [], "after": []}.items():
        for file in bed.folder.glob(f"verify/runs/*-{name}/run.json"):
            run = json.loads(file.read_text())
            truth = bed.lab.record(run["begin_monotonic_ns"], run["end_monotonic_ns"])
            joules.append(1e9 * truth["device_energy_joules"] / truth["read"]["bytes"])
        assert found[f"{name}_joules_per_gb"] == pytest.approx(sum(joules) / len(joules), rel=0.02)

    code, said = bed.run("undo", undo)
    assert code == 0, said
    assert bed.snapshot() == before
    assert not list((bed.folder / "state").glob("restore-*"))


@pytest.mark.soak
def test_the_same_demand_is_served_before_and_after(bed: Bed) -> None:
    before = bed.snapshot()
    demand = 80.0  # one read at a time takes 8 ms
    words = bed.words("demand", **CHANGE, sla={}, demand_bytes_per_second=demand * 4096)
    asked = bed.folder / "demand.toml"
    asked.write_text(f"{READS}demand_operations_per_second = {demand}\n")
    code, said = bed.run(
        "verify", *words, "--workload", str(asked), "--pairs", "4", "--seconds", "3",
        "--ramp-seconds", "1", "--out", str(bed.folder / "demand"),
    )  # fmt: skip
    sys.stdout.write(said)
    assert code in (0, 30), said
    found = json.loads((bed.folder / "demand" / "verification.json").read_text())
    [served] = found["bounds"]
    assert (served["bound"], served["kept"]) == ("demand_bytes_per_second", "yes")
    assert served["mean"] == pytest.approx(demand * 4096, rel=0.02)
    assert bed.snapshot() == before


def test_a_rise_of_latency_takes_a_guarded_change_back(bed: Bed) -> None:
    before = bed.snapshot()
    words = bed.words("guarded", **CHANGE, sla={"latency_mean_ns_max": 60e6})
    with bed.reading(4, 120):
        guarded = bed.start(
            "apply", *words, "--run", "--serial", str(bed.lab.state["serial"]),
            "--undo", str(bed.folder / "guarded-undo.json"), "--guard", "100",
        )  # fmt: skip
        time.sleep(20)
        assert guarded.poll() is None, guarded.communicate()[0]
        assert bed.snapshot()["power_state"] == "1"
        began = time.monotonic()
        with bed.reading(96, 60):
            said, _ = guarded.communicate(timeout=2 * REVERTED_WITHIN_SECONDS)
            took = time.monotonic() - began
    sys.stdout.write(f"{said}\ntaken back {took:.1f} s after the load had risen\n")
    assert guarded.returncode == 29, said
    assert "latency_mean_ns is" in said
    assert took <= REVERTED_WITHIN_SECONDS
    assert bed.snapshot() == before


@pytest.mark.soak
def test_a_guard_that_sees_nothing_leaves_the_change(bed: Bed) -> None:
    before = bed.snapshot()
    undo = str(bed.folder / "quiet-undo.json")
    words = bed.words("quiet", **CHANGE, sla={"latency_mean_ns_max": 60e6})
    with bed.reading(4, 60):
        code, said = bed.run(
            "apply", *words, "--run", "--serial", str(bed.lab.state["serial"]),
            "--undo", undo, "--guard", "15",
        )  # fmt: skip
    assert code == 0, said
    assert bed.snapshot()["power_state"] == "1"
    assert bed.run("undo", undo)[0] == 0
    assert bed.snapshot() == before
