"""`iojoule apply`, `undo` and `verify` on the virtual drive: shown, refused, set, taken back."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from iojoule import datasets
from iojoule.measure.errors import CampaignError, SensorError, UnsafeDriveError
from iojoule.measure.lab.client import LabClient
from tests.api.acting.answers import answer_data
from tests.measure.lab.conftest import lab, shared_lab

__all__ = ["lab", "shared_lab"]

READS = """
[workload]
operation = "read"
useful_request_bytes = 4096
"""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOJOULE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def words(lab: LabClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Recommendation, drive and controller; the lab's environment is in force."""
    if shutil.which("fio") is None or shutil.which("nvme") is None:
        pytest.skip("fio or nvme-cli is not installed")
    for name, value in lab.environment().items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "answer.json"
    wanted = {"scheduler": "mq-deadline", "power_state": 1, "queue_depth": 16}
    file.write_text(json.dumps(answer_data(wanted, {"scheduler": "none"})))
    return [
        "--recommendation", str(file), "--drive", str(lab.state["drive"]),
        "--controller", str(lab.state["controller"]),
    ]  # fmt: skip


def queue(lab: LabClient) -> dict[str, str]:
    """Every attribute of the drive's queue that can be read."""
    found = {}
    folder = Path("/sys/class/block") / Path(lab.state["drive"]).name / "queue"
    for file in sorted(folder.rglob("*")):
        try:
            found[str(file)] = file.read_text() if file.is_file() else ""
        except OSError:
            continue
    return found


def test_it_is_shown_and_nothing_is_set(iojoule, words: list[str], lab: LabClient) -> None:
    before = queue(lab)
    said = iojoule("apply", *words)
    assert said.code == 0
    assert "echo mq-deadline > /sys/class/block/" in said.out
    assert f"nvme set-feature {lab.state['controller']} --feature-id=0x2 --value=0x1" in said.out
    assert "iodepth" in said.out
    assert "nothing was set: --run does it" in said.err
    assert queue(lab) == before
    assert lab.status()["disk"]["power_state"] == 0


def test_it_says_the_same_to_programs(iojoule, words: list[str], lab: LabClient) -> None:
    told = json.loads(iojoule("apply", *words, "-o", "json").out)
    assert [(one["what"], one["now"], one["then"]) for one in told["steps"]] == [
        ("scheduler", "none", "mq-deadline"), ("power_state", "0", "1"),
    ]  # fmt: skip
    assert told["serial"] == lab.state["serial"]
    assert [one["name"] for one in told["options"]] == ["iodepth"]
    csv = iojoule("apply", *words, "-o", "csv").out.splitlines()
    assert csv[0] == "what,now,then,command,undo_command"
    assert len(csv) == 3


def test_a_file_for_another_program_is_printed_and_nothing_set(
    iojoule, words: list[str], lab: LabClient
) -> None:
    before = queue(lab)
    told = iojoule("apply", *words, "--as", "tuned")
    assert told.code == 0, told.err
    assert "[main]" in told.out.splitlines()
    assert "mq-deadline" in told.out
    profile = Path(datasets.__file__).parent / "profiles" / "samsung-980-pro-1tb.json"
    cost = iojoule("apply", *words, "--as", "iocost", "--profile", profile)
    assert cost.code == 0, cost.err
    assert " rrandiops=" in cost.out
    for wrong in (["--run"], ["--persist"], ["--profile", str(profile)]):
        assert iojoule("apply", *words, "--as", "tuned", *wrong).code == 2
    assert queue(lab) == before


def test_advice_for_a_database_says_what_is_refused(iojoule, words: list[str]) -> None:
    said = iojoule("apply", *words, "--application", "postgresql").out
    assert re.search(r"effective_io_concurrency +16 ", said)
    assert "not advised" in said


def test_it_is_set_and_taken_back(
    iojoule, words: list[str], lab: LabClient, tmp_path: Path
) -> None:
    before = queue(lab)
    for serial in ([], ["--serial", "S1"]):
        refused = iojoule("apply", *words, "--run", *serial)
        assert refused.code == UnsafeDriveError.exit_code
        assert queue(lab) == before
    done = iojoule("apply", *words, "--run", "--serial", lab.state["serial"])
    assert done.code == 0, done.err
    assert lab.status()["disk"]["power_state"] == 1
    assert "nothing to set" in iojoule("apply", *words).out
    again = iojoule("apply", *words, "--run", "--serial", lab.state["serial"])
    assert "nothing differs" in again.err
    undone = iojoule("undo", tmp_path / "iojoule-undo.json")
    assert undone.code == 0, undone.err
    assert "values were put back" in undone.out
    assert queue(lab) == before
    assert lab.status()["disk"]["power_state"] == 0
    gone = iojoule("undo", tmp_path / "iojoule-undo.json")
    assert (gone.code, "no such file" in gone.err) == (CampaignError.exit_code, True)


KILLED = """
import os, signal, sys
from iojoule.measure.host.changes import SysfsValue
from iojoule.measure.host.journal import HostState
HostState("the lab").set(SysfsValue(sys.argv[1]), "mq-deadline")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_not_taken_for_in_force(
    iojoule, words: list[str], lab: LabClient
) -> None:
    before = queue(lab)
    scheduler = f"/sys/class/block/{Path(lab.state['drive']).name}/queue/scheduler"
    subprocess.run([sys.executable, "-c", KILLED, scheduler], check=False)
    assert queue(lab) != before
    done = iojoule("apply", *words, "--run", "--serial", lab.state["serial"], "-o", "json")
    assert [one["what"] for one in json.loads(done.out)["steps"]] == ["scheduler", "power_state"]
    assert "[mq-deadline]" in queue(lab)[scheduler]
    assert iojoule("undo", "iojoule-undo.json").code == 0
    assert queue(lab) == before


def test_a_controller_that_ignores_it_is_found_out(
    iojoule, words: list[str], lab: LabClient, tmp_path: Path
) -> None:
    before = queue(lab)
    lab.fault("controller", "ignore")
    done = iojoule("apply", *words, "--run", "--serial", lab.state["serial"])
    lab.fault("controller", "none")
    assert done.code == 21
    assert "but is at 0" in done.err
    assert queue(lab) == before, "the scheduler that was set already is back"
    assert not (tmp_path / "iojoule-undo.json").exists()


def test_a_guard_without_a_change_is_refused(iojoule, words: list[str]) -> None:
    said = iojoule("apply", *words, "--guard", "60")
    assert (said.code, "--run" in said.err) == (2, True)


class TestVerify:
    @pytest.fixture
    def verify(self, words: list[str], tmp_path: Path) -> list[str]:
        file = tmp_path / "reads.toml"
        file.write_text(READS)
        return ["verify", *words, "--workload", str(file), "--out", str(tmp_path / "runs")]

    def test_every_command_is_shown(self, iojoule, verify: list[str]) -> None:
        said = iojoule(*verify, "--dry-run", "--pairs", "4")
        assert said.code == 0, said.err
        assert said.out.count("iodepth=4\n") == said.out.count("iodepth=16\n") == 4
        assert "--feature-id=0x2 --value=0x1" in said.out

    def test_without_a_meter_nothing_is_begun(
        self, iojoule, verify: list[str], tmp_path: Path
    ) -> None:
        said = iojoule(*verify)
        assert (said.code, "needs a meter for device" in said.err) == (SensorError.exit_code, True)
        assert not (tmp_path / "runs").exists()
