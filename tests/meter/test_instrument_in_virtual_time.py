"""What a minute of an instrument is worth to drives whose physics nobody told the meter."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from iojoule.api.application.meter_basis import DriveState, in_state
from iojoule.datasets.measured_drive import DeclaredState, MeasuredDrive
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.measure.drive.transition_table import Transition
from iojoule.meter.meter import Meter
from iojoule.meter.readings import Basis
from iojoule.model.fit.measured import fit_measured
from iojoule.model.prior.classes import class_profile
from iojoule.sim.device import DeviceConfig
from tests.meter.hosts import Clock, Host
from tests.meter.virtual_load import PHYSICS, Load, Second, VirtualDrive, record

MINUTE = 60
SEEDS = (11, 12)
TEN = [
    *(Load("randread", kib, depth) for kib in (4, 64) for depth in (1, 4, 16)),
    *(Load("randwrite", kib, depth) for kib in (4, 64) for depth in (1, 8)),
]


def declared(device: DeviceConfig) -> list[DeclaredState]:
    return [
        DeclaredState(
            index=index,
            max_power_watts=state.max_power_watts,
            operational=state.operational,
            entry_latency_us=state.entry_latency_ns // 1000,
            exit_latency_us=state.exit_latency_ns // 1000,
            idle_power_watts=state.idle_power_watts,
        )
        for index, state in enumerate(device.physical.power.states)
    ]


def said(device: DeviceConfig) -> DriveState:
    moves = device.physical.power.autonomous_transitions
    table = tuple(
        Transition(move.from_state, move.to_state, move.idle_ns // 1_000_000) for move in moves
    )
    return DriveState(declared(device), 0, table)


def of_ten_runs(path: Path, physics: str) -> DeviceProfile:
    """Fitted to ten runs of four seconds."""
    drive, rng, rows = VirtualDrive(path, physics), random.Random(1), []
    for load in TEN:
        drive.run(None, 20, rng)
        drive.align()
        first = len(drive.looks)
        drive.run(load, 4, rng)
        drive.align()
        last = first + 3
        writes = load.rw == "randwrite"
        done = np.array(drive.looks[last][0]) - np.array(drive.looks[first][0])
        count, took_ms = (done[4], done[7]) if writes else (done[0], done[3])
        iops, latency_ns = count / (last - first), took_ms / count * 1e6
        rows.append(
            Measurement.model_validate(
                {
                    "workload": {"operation": "write" if writes else "read", "pattern": "random"},
                    "configuration": {
                        "request_bytes": load.kib * 1024,
                        "queue_depth": load.depth,
                        "engine": "io_uring",
                        "scheduler": "none",
                        "power_state": 0,
                    },
                    "conditions": {"host_id": "bench", "device_model": physics},
                    "observations": {
                        "iops": iops,
                        "throughput_bytes_per_second": iops * load.kib * 1024,
                        "latency_mean_ns": latency_ns,
                        "device_power_watts": drive.watts(first + 1, last + 1),
                    },
                }
            )
        )
    measured = MeasuredDrive(
        model=physics,
        capacity_bytes=drive.device.capacity_bytes,
        block_bytes=512,
        power_states=tuple(declared(drive.device)),
    )
    return fit_measured(physics, rows, [], measured, None).profile


def error(
    profile: DeviceProfile, source: str, seconds: list[Second], states: DriveState, *, helped: bool
) -> tuple[float, bool]:
    """Of the joules after the first minute, and whether they are in the interval."""
    with TemporaryDirectory() as folder:
        host = Host(Path(folder))
        host.nvme("nvme0n1", "S1")
        clock = Clock(host)
        (drive,) = clock.counters.read().drives
        bases = [
            in_state(Basis(profile, source), drive, host.sysfs, replace(states, power_state=state))
            for state in range(3)
        ]
        meter = Meter(lambda _: bases[0])
        meter.step(clock.look())
        sums = np.zeros(4)
        for second, passed in enumerate(seconds):
            host.counters["nvme0n1"] = list(passed.counters)
            host.write()
            meter.rebase(drive.key, bases[passed.power_state])
            with_it = helped and second < MINUTE
            (reading,) = meter.step(
                clock.look(), {drive.name: (passed.watts, 0.01)} if with_it else None
            )
            if second >= MINUTE:
                sums += (reading.watts, reading.watts_low, reading.watts_high, passed.watts)
        clock.counters.close()
    watts, low, high, truth = sums
    return float(watts / truth - 1.0), bool(low <= truth <= high)


@pytest.mark.soak
def test_a_minute_of_an_instrument_halves_the_error_of_a_kind(tmp_path: Path) -> None:
    """Not that of ten runs: what they miss most is work after writes, which few minutes show."""
    kind = class_profile(rotates=False, nvme=True)
    found: dict[str, list[tuple[float, bool, float]]] = {"kind": [], "ten runs": []}
    for physics in PHYSICS:
        ten = of_ten_runs(tmp_path / "ten.toml", physics)
        states = said(VirtualDrive(tmp_path / "drive.toml", physics).device)
        for seed in SEEDS:
            seconds = record(tmp_path / "drive.toml", physics, seed)
            for name, profile, source in (("kind", kind, "class"), ("ten runs", ten, "profile")):
                alone, inside = error(profile, source, seconds, states, helped=False)
                helped, _ = error(profile, source, seconds, states, helped=True)
                found[name].append((alone, inside, helped))
                sys.stdout.write(
                    f"{physics}, {seed}, {name}: {alone:+.1%}, {inside=}, "
                    f"after a minute of an instrument {helped:+.1%}\n"
                )
    before, after = (np.abs([each[place] for each in found["kind"]]) for place in (0, 2))
    assert np.median(after) <= np.median(before) / 2
    assert all(inside for _, inside, _ in found["kind"])
    assert np.median([abs(alone) for alone, _, _ in found["ten runs"]]) <= 0.15
