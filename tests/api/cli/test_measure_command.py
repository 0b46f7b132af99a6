"""`iojoule measure command`, with the emulated PowerSensor3 and a powercap tree made by hand."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.measure.command import session
from iojoule.measure.lab.powersensor3 import ConstantPower, EmulatedPowerSensor3


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LEAD_SECONDS", 0.05)


@pytest.fixture
def powercap(tmp_path: Path) -> Iterator[Path]:
    """A tree whose package takes 10 W, as far as the clock of a thread goes."""
    root = tmp_path / "powercap"
    zone = root / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("1000000000\n")
    (zone / "energy_uj").write_text("0\n")
    over = threading.Event()

    def count() -> None:
        joules = 0
        while not over.wait(0.01):
            joules += 100_000
            fresh = zone / ".energy_uj"
            fresh.write_text(f"{joules}\n")
            fresh.replace(zone / "energy_uj")

    thread = threading.Thread(target=count)
    thread.start()
    yield root
    over.set()
    thread.join()


def test_drive_and_cpu_around_a_program(iojoule, tmp_path: Path, powercap: Path) -> None:
    with EmulatedPowerSensor3(tmp_path, ConstantPower(1.0, 2.0)) as emulated:
        said = iojoule(
            "measure", "command", "--power", f"powersensor3:{emulated.path}",
            "--rapl-root", powercap, "--metric", r"tps=tps = (\S+)", "--rate", "tps",
            "--unit", "transaction", "--out", tmp_path / "out", "-o", "json", "--repeat", "5",
            "--", "sh", "-c", "sleep 0.5; echo tps = 1,000.0",
        )  # fmt: skip
    assert said.code == 0, said.err
    # a busy machine loses samples of the emulated sensor; a run that lost too many has no watts
    run, *_ = [run for run in json.loads(said.out)["runs"] if run["power"]["device"]["mean_watts"]]
    assert run["power"]["device"]["mean_watts"] == pytest.approx(3.0, rel=0.02)
    assert run["joules_per_unit"]["device"]["value"] == pytest.approx(0.003, rel=0.02)
    assert run["power"]["cpu"]["energy_joules"] > 0.5
    assert run["joules_per_unit"]["device_cpu"]["value"] > 0.003
    assert 0 < run["shares"]["device"] < 1
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == json.loads(said.out)


def test_the_table_says_what_the_work_costs(iojoule, tmp_path: Path, powercap: Path) -> None:
    said = iojoule(
        "measure", "command", "--rapl-root", powercap, "--metric", "n=n: (.*)", "--work", "n",
        "--unit", "item", "--repeat", "2", "--out", tmp_path / "out",
        "--", "sh", "-c", "sleep 0.2; echo n: 50",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "2 of 2 runs count" in said.out
    assert "CPU, energy per item" in said.out
    assert "the drive's power is not measured" in said.err


def test_one_line_of_csv_per_run(iojoule, tmp_path: Path) -> None:
    said = iojoule(
        "measure", "command", "--out", tmp_path / "out", "-o", "csv", "--metric", "n=n(.)",
        "echo", "n4",
    )  # fmt: skip
    assert said.code == 0, said.err
    (row,) = csv.DictReader(io.StringIO(said.out))
    assert (row["exit_status"], row["metric_n"]) == ("0", "4.0")


def test_a_program_that_fails_gives_a_code_of_its_own(iojoule, tmp_path: Path) -> None:
    said = iojoule("measure", "command", "--out", tmp_path / "out", "sh", "-c", "exit 3")
    assert said.code == 28
    assert "returned 3" in said.err
    assert json.loads((tmp_path / "out" / "result.json").read_text())["runs"][0]["exit_status"] == 3


def test_work_that_is_not_found_is_an_error_but_kept(iojoule, tmp_path: Path) -> None:
    said = iojoule(
        "measure", "command", "--out", tmp_path / "out", "--metric", "n=n: (.*)", "--work", "n",
        "true",
    )  # fmt: skip
    assert said.code == 3
    assert "no work was found" in said.err
    assert (tmp_path / "out" / "result.json").exists()


def test_an_interrupt_is_kept_and_said(iojoule, tmp_path: Path) -> None:
    started = tmp_path / "out" / "run-1" / "stdout.txt"

    def interrupt() -> None:
        pause = threading.Event()
        while not started.exists():
            pause.wait(0.02)
        pause.wait(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    said = iojoule("measure", "command", "--out", tmp_path / "out", "sleep", "60")
    thread.join()
    assert said.code == 130
    assert json.loads((tmp_path / "out" / "result.json").read_text())["interrupted"] is True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--work", "a", "--rate", "b"], "exclude each other"),
        (["--metric", "a=b"], "has no group"),
        (["--work", "a"], "no --metric is called so"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    iojoule, tmp_path: Path, options: list[str], said: str
) -> None:
    outcome = iojoule("measure", "command", "--out", tmp_path / "out", *options, "true")
    assert outcome.code == 3
    assert said in outcome.err
    assert not (tmp_path / "out").exists()
