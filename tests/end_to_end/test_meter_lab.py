"""The meter's joules against those of virtual drives with different physics.

It takes an hour and a quarter. What was measured is printed: for a fitted profile, one of ten runs,
and one of the drive's kind.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from iojoule.api.application.meter_basis import DriveState, ask
from iojoule.datasets.profile import DeviceProfile, read_profile
from iojoule.measure.drive.nvme import POWER_MANAGEMENT, NvmeController
from iojoule.measure.lab import life
from iojoule.measure.lab.client import LabClient
from iojoule.meter.counters import BlockCounters
from iojoule.model.prior.classes import class_profile
from tests.measure.lab.conftest import missing_for_a_disk, need
from tests.meter.judgement import Passed, judged
from tests.meter.virtual_drive import LOADS, PHYSICS, drive_text

pytestmark = pytest.mark.soak

IOJOULE = str(Path(sys.executable).parent / "iojoule")
SECONDS = 600
PLAN = """
schema_version = 1
name = "meter"
seed = 1
bytes_written_max = "4GB"
run = {{ seconds = 4, ramp_seconds = 0.5 }}

[settle]
baseline_seconds = 2
seconds = 0.2
after_writes_seconds_max = 20
window_seconds = 1.5
{sweeps}
"""
SWEEP = """
[[sweep]]
name = "{name}"
operation = "{operation}"
pattern = "{pattern}"
request_bytes = {sizes}
queue_depth = {depths}
engine = "io_uring"
scheduler = "none"
power_state = {states}
{more}
"""
MANY = [
    ("reads", "read", "random", '["4KiB", "16KiB", "64KiB"]', "[1, 4, 16, 64]", "0", ""),
    ("ordered", "read", "sequential", '["16KiB", "64KiB"]', "[1, 8]", "0", ""),
    ("writes", "write", "random", '["4KiB", "16KiB", "64KiB"]', "[1, 4, 16]", "0", ""),
    ("capped-reads", "read", "random", '"16KiB"', "[2, 16]", "[1, 2]", ""),
    ("capped-writes", "write", "random", '"16KiB"', "[2, 16]", "[1, 2]", ""),
    ("mixed", "mixed", "random", '"16KiB"', "[1, 8]", "0", "read_fraction = 0.7"),
]
TEN = [
    ("reads", "read", "random", '["4KiB", "64KiB"]', "[1, 4, 16]", "0", ""),
    ("writes", "write", "random", '["4KiB", "64KiB"]', "[1, 8]", "0", ""),
]
FIELDS = ("name", "operation", "pattern", "sizes", "depths", "states", "more")


class Watched:
    """A drive looked at once a second, with what it truly drew and the state it was in."""

    def __init__(self, lab: LabClient) -> None:
        self.drive = Path(str(lab.state["drive"]))
        self.nvme = NvmeController(Path(str(lab.state["controller"])))
        self.said: DriveState = ask(self.nvme)
        self.seconds: list[Passed] = []
        self._state = 0
        counters = BlockCounters(also=(self.drive.name,), only=(self.drive.name,))
        self.begin = counters.read()
        begin = time.monotonic_ns()
        load = Thread(target=self._load, args=(time.monotonic() + SECONDS,))
        load.start()
        while load.is_alive():
            time.sleep(max(0.0, 1.0 - (time.monotonic_ns() - begin) / 1e9))
            look, end = counters.read(), time.monotonic_ns()
            watts = lab.disk.joules(begin, end) / ((end - begin) / 1e9)
            self.seconds.append(Passed(look, watts, self._state))
            begin = end
        counters.close()

    def _load(self, until: float) -> None:
        rng = random.Random(11)
        while time.monotonic() < until:
            for load in rng.sample(LOADS, len(LOADS)):
                state = rng.choice([0, 0, 0, 1, 2])
                if state != self._state:
                    self.nvme.set_feature(POWER_MANAGEMENT, state)
                    self._state = state
                seconds = rng.randint(3, 7) * (1 if load else 3)
                if load is None:
                    time.sleep(seconds)
                    continue
                subprocess.run(
                    ["fio", "--name=load", f"--filename={self.drive}", "--direct=1", "--size=500M",
                     "--ioengine=io_uring", "--time_based", f"--runtime={seconds}",
                     "--output=/dev/null", *load.words],
                    check=True,
                )  # fmt: skip


def profile_of(lab: LabClient, out: Path, sweeps: list[tuple[str, ...]]) -> DeviceProfile:
    """Measure the lab's drive and fit."""
    state = lab.state
    environment = {**os.environ, **lab.environment(), "IOJOULE_JOURNALS": str(out.parent / "state")}
    drive = [
        "--drive", state["drive"], "--controller", state["controller"],
        "--power", f"powersensor3:{state['powersensor3']}", "--rapl-root", state["rapl_root"],
        "--serial", state["serial"],
    ]  # fmt: skip
    plan = out.with_suffix(".toml")
    written = (SWEEP.format(**dict(zip(FIELDS, sweep, strict=True))) for sweep in sweeps)
    plan.write_text(PLAN.format(sweeps="".join(written)))
    commands = [["measure", "run", "--plan", str(plan), "--out", str(out), *drive]]
    fitted = [str(out)]
    if sweeps is MANY:
        asked = str(out.with_name("asked"))
        only = ["--scale", "quick", "--only", "idle,slc-cache,settle,background"]
        commands.append(["measure", "characterise", "--out", asked, *only, *drive])
        fitted.append(asked)
    commands.append(["fit", *fitted, "-o", str(out.with_suffix(".json"))])
    for words in commands:
        subprocess.run([IOJOULE, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
    return read_profile(out.with_suffix(".json"))


@pytest.fixture(params=PHYSICS)
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LabClient]:
    if reason := missing_for_a_disk():
        pytest.skip(reason)
    for program in ("fio", "nvme"):
        need(program)
    preset = tmp_path / f"{request.param}.toml"
    preset.write_text(drive_text(request.param))
    try:
        with life.up(tmp_path / "lab", str(preset)) as client:
            yield client
    finally:
        life.down(tmp_path / "lab")


def test_joules_of_ten_minutes_of_changing_load(
    lab: LabClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many, ten = profile_of(lab, tmp_path / "many", MANY), profile_of(lab, tmp_path / "ten", TEN)
    for name, value in lab.environment().items():
        monkeypatch.setenv(name, value)
    watched = Watched(lab)
    of_kind = class_profile(rotates=False, nvme=True)
    profiles = {"fitted": many, "ten runs": ten, "kind": of_kind}
    found = {
        (name, instrument): judged(
            profile,
            "class" if name == "kind" else "profile",
            watched.said,
            watched.begin,
            watched.seconds,
            instrument=instrument,
        )
        for name, profile in profiles.items()
        for instrument in (False, True)
    }
    for (name, instrument), (error, inside) in found.items():
        sys.stdout.write(f"{name}, {instrument=}: {100 * error:+.1f} %, {inside=}\n")
    assert abs(found["fitted", False][0]) <= 0.05
    assert abs(found["ten runs", False][0]) <= 0.15
    assert found["kind", False][1]
    assert abs(found["fitted", True][0]) <= 0.05
    assert abs(found["kind", True][0]) <= abs(found["kind", False][0]) / 2
