"""`iojoule lab` where there is no lab, and, where there can be one, its whole life."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iojoule.measure.errors import LabError
from iojoule.measure.lab import system as programs
from tests.measure.lab.conftest import missing_for_a_disk


@pytest.mark.parametrize(
    "words", [["status"], ["record"], ["fault", "disk", "eio"], ["run", "--", "true"]]
)
def test_without_a_lab_it_says_how_to_begin_one(iojoule, tmp_path: Path, words: list[str]) -> None:
    done = iojoule("lab", words[0], "--dir", tmp_path / "lab", *words[1:])
    assert done.code == LabError.exit_code
    assert "begin one: iojoule lab up" in done.err


def test_down_without_a_lab_is_no_error(iojoule, tmp_path: Path) -> None:
    done = iojoule("lab", "down", "--dir", tmp_path / "lab")
    assert done.code == 0
    assert "there was no lab" in done.err


def iojoule_program(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("iojoule"), "lab", *words],
        env={**os.environ, "IOJOULE_LAB": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_up_run_fault_record_down(tmp_path: Path) -> None:
    if reason := missing_for_a_disk():
        pytest.skip(reason)
    folder = tmp_path / "lab"
    up = iojoule_program("up", "--shell", folder=folder)
    try:
        assert up.returncode == 0, up.stderr
        exports = dict(line[7:].split("=", 1) for line in up.stdout.splitlines())
        assert exports["IOJOULE_LAB_DRIVE"].startswith("/dev/loop")
        assert exports["LD_PRELOAD"].endswith(programs.PRELOAD)
        ran = iojoule_program(
            "run", "--", "sh", "-c", "echo $IOJOULE_LAB_CONTROLLER", folder=folder
        )
        assert ran.stdout == f"{folder}/controller.sock\n"
        assert iojoule_program("fault", "rapl", "missing", folder=folder).returncode == 0
        assert not (folder / "powercap").exists()
        status = json.loads(iojoule_program("status", folder=folder).stdout)
        assert status["running"] == {"server": True, "disk": True}
        told = json.loads(iojoule_program("record", "--last", "0.2", folder=folder).stdout)
        assert told["device_power_watts"] > 0
    finally:
        down = iojoule_program("down", folder=folder)
    assert down.returncode == 0
    assert not folder.exists()


def test_a_profile_and_a_recommendation_are_judged_by_the_true_physics(
    iojoule, tmp_path: Path
) -> None:
    asked = Path(__file__).resolve().parents[3] / "examples" / "lab.toml"
    profile = "datasets/profiles/samsung-980-pro-1tb.json"
    path = Path(__file__).resolve().parents[3] / profile
    answered = iojoule("recommend", "--profile", path, "--workload", asked, "-o", "json")
    (tmp_path / "answer.json").write_text(answered.out)
    done = iojoule(
        "lab", "judge", path, "--recommendation", tmp_path / "answer.json", "--workload", asked,
        "-o", "json",
    )  # fmt: skip
    assert done.code == 0, done.err
    judged = json.loads(done.out)
    assert judged["summary"]["throughput_bytes_per_second"]["inside"] < 0.1, "another drive's"
    assert judged["recommendation"]["regret"] >= 0
    alone = iojoule("lab", "judge", path, "--workload", asked)
    assert alone.code == 2
