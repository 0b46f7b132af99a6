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
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from iojoule.api.application.meter_basis import DriveState, ask, in_state
from iojoule.datasets.profile import DeviceProfile, read_profile
from iojoule.measure.drive.nvme import POWER_MANAGEMENT, NvmeController
from iojoule.measure.lab import life
from iojoule.measure.lab.client import LabClient
from iojoule.meter.counters import BlockCounters, Snapshot
from iojoule.meter.meter import Meter
from iojoule.meter.readings import Basis
from iojoule.model.prior.classes import class_profile
from tests.measure.lab.conftest import missing_for_a_disk, need
from tests.meter.virtual_load import LOADS, PHYSICS, drive_text

pytestmark = pytest.mark.soak

IOJOULE = str(Path(sys.executable).parent / "iojoule")
SECONDS = 600
INSTRUMENT_SECONDS = 60
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


class Recorded:
    """Counters once a second, with what the drive truly drew and the state it was in."""

    def __init__(self, lab: LabClient) -> None:
        self.drive = Path(str(lab.state["drive"]))
        self.nvme = NvmeController(Path(str(lab.state["controller"])))
        self.said: DriveState = ask(self.nvme)
        self.looks: list[Snapshot] = []
        self.truth: list[float] = []
        self.states: list[int] = []
        self._state = 0
        counters = BlockCounters(also=(self.drive.name,), only=(self.drive.name,))
        self.looks.append(counters.read())
        begin = time.monotonic_ns()
        load = Thread(target=self._load, args=(time.monotonic() + SECONDS,))
        load.start()
        while load.is_alive():
            time.sleep(max(0.0, 1.0 - (time.monotonic_ns() - begin) / 1e9))
            self.looks.append(counters.read())
            end = time.monotonic_ns()
            self.truth.append(lab.disk.joules(begin, end) / ((end - begin) / 1e9))
            self.states.append(self._state)
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

    def error(self, profile: DeviceProfile, source: str, *, instrument: bool) -> tuple[float, bool]:
        """Error of the joules after the first minute, and whether they are in the interval."""
        (drive,) = self.looks[0].drives
        bases = [
            in_state(Basis(profile, source), drive, Path("/sys"), replace(self.said, power_state=n))
            for n in range(3)
        ]
        meter = Meter(lambda _: bases[0])
        meter.step(self.looks[0])
        sums, passed = np.zeros(4), 0.0
        for look, watts, state in zip(self.looks[1:], self.truth, self.states, strict=True):
            meter.rebase(drive.key, bases[state])
            measured = {drive.name: (watts, 0.01)}
            with_it = instrument and passed < INSTRUMENT_SECONDS
            (reading,) = meter.step(look, measured if with_it else None)
            passed += reading.seconds
            if passed > INSTRUMENT_SECONDS:
                told = (reading.watts, reading.watts_low, reading.watts_high, watts)
                sums += reading.seconds * np.array(told)
        joules, low, high, truth = sums
        return float(joules / truth - 1.0), bool(low <= truth <= high)


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
    recorded = Recorded(lab)
    of_kind = class_profile(rotates=False, nvme=True)
    profiles = {"fitted": many, "ten runs": ten, "kind": of_kind}
    found = {
        (name, instrument): recorded.error(
            profile, "class" if name == "kind" else "profile", instrument=instrument
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
