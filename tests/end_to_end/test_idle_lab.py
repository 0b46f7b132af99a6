"""What `iojoule idle` says a table saves, against the joules of the virtual drive.

What was measured is printed.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from iojoule.api.cli.app import run
from iojoule.measure.host.changes import NvmeTransitions
from iojoule.measure.lab import life
from iojoule.measure.lab.client import LabClient
from tests.measure.lab.conftest import missing_for_a_disk

SECONDS = 40


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabClient]:
    if reason := missing_for_a_disk():
        pytest.skip(reason)
    if shutil.which("nvme") is None and shutil.which("nvme", path="/usr/sbin") is None:
        pytest.skip("nvme-cli is not installed")
    try:
        with life.up(tmp_path / "lab") as client:
            for name, value in client.environment().items():
                monkeypatch.setenv(name, value)
            monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "state"))
            monkeypatch.chdir(tmp_path)
            yield client
    finally:
        life.down(tmp_path / "lab")


@contextmanager
def reading(path: str, mean_gap_seconds: float) -> Iterator[None]:
    """A program that reads 4 KiB after gaps of an exponential distribution."""
    stop, rng = threading.Event(), random.Random(1)

    def read() -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 4096) as buffer:
            while not stop.wait(rng.expovariate(1 / mean_gap_seconds)):
                os.preadv(handle, [buffer], 4096 * rng.randrange(1000))
        os.close(handle)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def watts(lab: LabClient, begin_ns: int) -> float:
    now = time.monotonic_ns()
    return lab.disk.joules(begin_ns, now) / ((now - begin_ns) / 1e9)


@pytest.mark.parametrize("mean_gap_seconds", [0.5, 2.0])
def test_the_saving_is_what_the_drive_then_draws_less(
    lab: LabClient, capsys: pytest.CaptureFixture[str], mean_gap_seconds: float
) -> None:
    state = lab.state
    words = ["idle", "--drive", state["drive"], "--controller", state["controller"]]
    words += ["--wake-latency-max", "50ms", "-o", "json"]
    change = NvmeTransitions(state["controller"], 1)
    change.set(change.value_of(()))
    # the same gaps twice: forty seconds hold few of them, and others would save more or less
    with reading(state["drive"], mean_gap_seconds):
        begin = time.monotonic_ns()
        assert run([*words, "--ask-drive", "--watch", str(SECONDS)]) == 0
        before = watts(lab, begin)
        advice = json.loads(capsys.readouterr().out)[0]["advice"]
        assert run([*words, "--watch", "10", "--write-table", "--serial", state["serial"]]) == 0
    with reading(state["drive"], mean_gap_seconds):
        begin = time.monotonic_ns()
        time.sleep(SECONDS)
        after = watts(lab, begin)
    assert run(["undo", "iojoule-undo.json"]) == 0
    expected = advice["tables"][0]["saving_milliwatts"]
    measured = 1e3 * (before - after)
    with capsys.disabled():
        sys.stdout.write(f"\nsaved {measured:.0f} mW, expected {expected}\n")
    assert expected["low"] <= measured <= expected["high"]
    assert measured == pytest.approx(expected["value"], rel=0.05)


def test_a_sleeping_drive_sleeps_on(lab: LabClient, capsys: pytest.CaptureFixture[str]) -> None:
    """Unasked it sends no command: the state, the joules and the counters of the drive say so."""
    change = NvmeTransitions(lab.state["controller"], 1)
    change.set(json.dumps(json.loads(change.get()) | {"enabled": True}))
    until = time.monotonic() + 60
    while (asleep := lab.status()["disk"])["power_state"] != 4 and time.monotonic() < until:
        time.sleep(0.5)
    time.sleep(1.0)  # the entry takes its time
    begin = time.monotonic_ns()
    assert run(["idle", "--drive", lab.state["drive"], "--watch", "5"]) == 0
    assert watts(lab, begin) == pytest.approx(0.05, rel=0.01)
    now = lab.status()["disk"]
    assert now["power_state"] == asleep["power_state"] == 4
    assert now["read_commands"] == asleep["read_commands"]
    capsys.readouterr()


def residency(lab: LabClient, seconds: float) -> tuple[float, float]:
    """Share of time in a sleep state under sparse reads, as the lab says, and watts."""
    asleep = looks = 0
    begin, until = time.monotonic_ns(), time.monotonic() + seconds
    with reading(lab.state["drive"], 10.0):
        while time.monotonic() < until:
            asleep += lab.status()["disk"]["power_state"] >= 3
            looks += 1
            time.sleep(0.02)
    return asleep / looks, watts(lab, begin)


@contextmanager
def exported(lab: LabClient) -> Iterator[None]:
    """The exporter on the lab's drive, scraped once a second."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    drive = Path(lab.state["drive"]).name
    process = subprocess.Popen(
        [Path(sys.executable).parent / "iojoule", "exporter", "--port", str(port), "--drive", drive]
    )
    stop = threading.Event()
    scrapes: list[int] = []

    def scrape() -> None:
        while not stop.wait(1.0):
            with suppress(httpx.TransportError):
                scrapes.append(httpx.get(f"http://127.0.0.1:{port}/metrics").status_code)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
        assert scrapes.count(200) > 10
    finally:
        stop.set()
        thread.join()
        process.terminate()
        process.wait()


@contextmanager
def asked_for_health(lab: LabClient) -> Iterator[None]:
    """A monitor that asks the drive for its health once a second, as `smartctl -A` does."""
    stop = threading.Event()
    command = ["/usr/sbin/smartctl", "-A", "-d", "nvme", lab.state["controller"]]
    codes: list[int] = []

    def ask() -> None:
        while not stop.wait(1.0):
            ran = subprocess.run(command, capture_output=True, check=False)
            codes.append(ran.returncode & 0b11)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
        assert codes
        assert not any(codes), "smartctl could not open the drive"
    finally:
        stop.set()
        thread.join()


@pytest.mark.soak
def test_the_exporter_wakes_no_drive(lab: LabClient, capsys: pytest.CaptureFixture[str]) -> None:
    """Residency in sleep states with the exporter, without it, and beside smartctl.

    The reads come at the same gaps each time. The lab's drive answers admin commands asleep, so
    smartctl costs it no sleep; what is shown is that the exporter sends none and adds nothing.
    """
    if not Path("/usr/sbin/smartctl").exists():
        pytest.skip("smartctl is not installed: apt-get install smartmontools")
    change = NvmeTransitions(lab.state["controller"], 1)
    change.set(json.dumps(json.loads(change.get()) | {"enabled": True}))
    found = {}
    for name, beside in {
        "alone": (),
        "exporter": (exported,),
        "smartctl": (asked_for_health,),
        "smartctl and exporter": (asked_for_health, exported),
    }.items():
        with ExitStack() as stack:
            for each in beside:
                stack.enter_context(each(lab))
            time.sleep(5.0)
            found[name] = residency(lab, 90.0)
    with capsys.disabled():
        for name, (share, mean_watts) in found.items():
            sys.stdout.write(f"\n{name}: {100 * share:.1f} % asleep, {mean_watts:.3f} W")
        sys.stdout.write("\n")
    assert found["exporter"][0] == pytest.approx(found["alone"][0], abs=0.01)
    assert found["smartctl and exporter"][0] == pytest.approx(found["smartctl"][0], abs=0.01)
    assert found["alone"][0] > 0.2
