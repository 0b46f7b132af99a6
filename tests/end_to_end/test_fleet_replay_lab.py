"""A fleet of the lab's drives: planned modes run under fio, and their 1 ms power is replayed.

The profile is fitted to runs of the lab drive's physics. Then every mode that a plan uses runs on
the lab itself at its planned load, and the power sensor's samples of each millisecond are summed
over the drives of a rack. `pytest -s` prints the figures.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from iojoule.datasets.errors import InfeasibleError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Configuration, Measurement
from iojoule.measure.lab.client import LabClient
from iojoule.measure.lab.drives import find
from iojoule.measure.sensors.powersensor3 import PowerSensor3
from iojoule.recommender.fleet.plan import Assignment
from iojoule.recommender.fleet.planner import Planner
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.workload import FlowConfig, Scenario
from tests.end_to_end.fleet_replay import (
    DEVICE,
    NEARLY_FULL,
    Floats,
    fleet_of,
    profile_of,
    replayed,
)
from tests.measure.lab.conftest import awake_lab, need

DEPTHS, SIZES, STATES = (1, 2, 4, 8, 16, 32), (4096, 16384, 65536), (0, 1, 2)
RUN_SECONDS, RAMP_SECONDS = 5.0, 1.5
SAMPLES_PER_MS = 20
PERCENTILE = 0.99
WORK = {
    "workload": {"operation": "read", "useful_request_bytes": 4096},
    "current": {"engine": "libaio"},
    "free": {"queue_depth": list(DEPTHS), "power_state": list(STATES)},
}


def measured(request_bytes: int, queue_depth: int, power_state: int) -> Measurement:
    """Ten simulated seconds of random reads."""
    device = find("lab-nvme").device
    power = device.physical.power.model_copy(
        update={"initial_state": power_state, "autonomous_transitions": ()}
    )
    device = device.model_copy(
        update={"physical": device.physical.model_copy(update={"power": power})}
    )
    sectors = request_bytes // 512
    flow = FlowConfig(
        size_mean_sectors=sectors, alignment_sectors=sectors, queue_depth=queue_depth,
        working_set_percent=100, stop_ns=10 * 10**9,
    )  # fmt: skip
    result = EmbeddedEngine().run(device, Scenario(flows=(flow,)))
    (told,) = result.flows
    return Measurement.model_validate(
        {
            "workload": {"operation": "read", "pattern": "random"},
            "configuration": {
                "request_bytes": request_bytes, "queue_depth": queue_depth, "jobs": 1,
                "engine": "libaio", "completion": "interrupt", "power_state": power_state,
            },
            "observations": {
                "throughput_bytes_per_second": told.bandwidth_bytes_per_second,
                "iops": told.iops,
                "latency_mean_ns": told.end_to_end_latency.all.mean_ns,
                "device_power_watts": result.device.power_watts_mean,
                "idle_power_watts": power.states[power_state].idle_power_watts,
            },
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> DeviceProfile:
    rows = [measured(size, depth, state) for size in SIZES for depth in DEPTHS for state in STATES]
    caps = [find("lab-nvme").device.physical.power.states[one].max_power_watts for one in STATES]
    return profile_of(rows, caps, tmp_path_factory.mktemp("lab-profile"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabClient]:
    need("fio")
    with awake_lab(tmp_path_factory.mktemp("fleet") / "lab") as client:
        yield client


class Drive:
    """The lab's drive in one mode after another, each once."""

    def __init__(self, lab: LabClient) -> None:
        self.lab = lab
        self._known: dict[str, Floats] = {}

    def traces(self, mode: Assignment) -> Sequence[Floats]:
        """What it draws in a mode at the planned load, W in steps of 1 ms."""
        load = mode.load_bytes_per_second
        return [self.trace(mode.configuration, mode.power_state, load)]

    def trace(self, chosen: Configuration | None, power_state: int, load: float) -> Floats:
        """Likewise."""
        key = f"{chosen and chosen.model_dump_json()} {power_state} {load:.4g}"
        if key not in self._known:
            self.lab.disk.ask(f"state {power_state}")
            self._known[key] = self._run(chosen, load)
        return self._known[key]

    def _run(self, chosen: Configuration | None, load: float) -> Floats:
        if chosen is None:
            return self._watch()
        words = [
            "fio", "--name=mode", f"--filename={self.lab.state['drive']}", "--direct=1",
            "--rw=randread", f"--bs={chosen.request_bytes}", f"--iodepth={chosen.queue_depth}",
            f"--numjobs={chosen.jobs}", "--ioengine=libaio", "--time_based",
            f"--runtime={RAMP_SECONDS + RUN_SECONDS + 2:.0f}", "--allow_file_create=0",
        ]  # fmt: skip
        each = load / chosen.request_bytes / chosen.jobs
        words += [f"--rate_iops={max(1, round(each))}", "--rate_process=poisson"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            return self._watch()
        finally:
            process.wait(60)

    def _watch(self) -> Floats:
        """The sensor's mean of each millisecond, from the end of the ramp on."""
        sensor = PowerSensor3(self.lab.state["powersensor3"])
        time.sleep(RAMP_SECONDS)
        sensor.start()
        watts: list[Floats] = []
        wanted = int(RUN_SECONDS * 1000) * SAMPLES_PER_MS
        while sum(map(len, watts)) < wanted:
            watts.append(sensor.read(1.0).values.sum(axis=1))
        sensor.stop()
        return np.concatenate(watts)[:wanted].reshape(-1, SAMPLES_PER_MS).mean(axis=1)


def test_a_rack_of_lab_drives_exceeds_its_limit_no_longer_than_stated(
    profile: DeviceProfile, lab: LabClient
) -> None:
    drive = Drive(lab)
    free = Planner(fleet_of(WORK), {DEVICE: profile})
    busiest = max(
        (mode for modes in free.modes.values() for mode in modes), key=lambda one: one.full_watts
    )
    busy = NEARLY_FULL * busiest.capacity_bytes_per_second
    full = drive.trace(busiest.configuration, busiest.power_state, busy)
    ratio = max(1.0, float(np.quantile(full, PERCENTILE) / full.mean()))
    told: dict[str, dict[str, float]] = {
        "profile's peak": {},
        "measured peak": {"peak_over_mean": ratio},
        "measured, and no correlation": {"peak_over_mean": ratio, "power_correlation": 0.0},
    }
    for name, more in told.items():
        whole = Planner(fleet_of(WORK, **more), {DEVICE: profile}).plans("most_demand")[0]
        for share in (0.8, 1.0):
            limit = share * whole.domains[0].percentile_watts
            asked = fleet_of(WORK, limit_watts=limit * (1 + 1e-6), **more)
            try:
                plan = Planner(asked, {DEVICE: profile}).plans("most_demand")[0]
            except InfeasibleError:  # drives at rest may draw more
                assert share < 1.0
                continue
            runs = [replayed(plan, "rack-1", seed, drive.traces) for seed in (1, 2, 3)]
            spread = np.concatenate([run.spread for run in runs])
            over = [float(np.mean(watts > limit)) for watts in (spread, runs[0].aligned)]
            sys.stdout.write(
                f"lab, {name} {share:.0%}: limit {limit:.0f} W, mean {spread.mean():.0f} W, 99% "
                f"of the time below {np.quantile(spread, PERCENTILE):.0f} W "
                f"({np.quantile(runs[0].aligned, PERCENTILE):.0f} W in step), above the limit "
                f"{over[0]:.2%} ({over[1]:.2%} in step)\n"
            )
            assert over[0] <= 1.0 - PERCENTILE
            if "power_correlation" not in more:
                assert over[1] <= 1.0 - PERCENTILE
