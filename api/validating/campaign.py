"""A profile of a simulated drive, fitted on what a campaign of a working day would have seen of it.

The runs are a part of the grid, by default every other size and depth: half of the sizes and depths
that are asked about were never run. Each shows the truth with the noise of a run of half a minute.
Of writes and mixes a few more have a demand that arrives by chance: they tell of the write buffer.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iojoule.api.application.fit import fit_datasets
from iojoule.api.validating.chance import Simulate, at_random_work, simulator
from iojoule.api.validating.drives import STATES, HiddenDrive
from iojoule.api.validating.truth import ENGINE, Grid, Table, Work, measured_workload
from iojoule.datasets.measured_drive import FILE_NAME, DeclaredState, MeasuredDrive
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.schema import Conditions, Configuration, Measurement, Observations, Workload
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.measure.campaign.runs import space_filling
from iojoule.measure.point import Point
from iojoule.model.evaluate.validity import under

Floats = NDArray[np.float64]

RUNS = 144
"""Of each kind of work: with the pauses between them two hours each."""
PACED_LOADS = (0.4, 0.7)
"""Rates of the runs with a demand, as shares of the full speed."""
NOISE = {
    "throughput": 0.015,
    "latency": 0.01,
    "tail": 0.04,
    "device": 0.015,
    "cpu": 0.02,
    "idle": 0.01,
}
"""Log standard deviations of one run's throughput, of its mean latency and p99 besides, and of
power; as in the rehearsals of adaptive campaigns (docs/measuring.md)."""


def fitted(
    drive: HiddenDrive,
    tables: Mapping[Work, Table],
    source: np.random.Generator,
    *,
    runs: int = RUNS,
    every: bool = False,
    simulate: Simulate | None = None,
) -> DeviceProfile:
    """The profile that `iojoule fit` makes of the drive's campaign.

    It answers about this very drive, under the conditions that its runs were made under.

    Args:
        drive: Which one.
        tables: Its truth.
        source: Of the noise.
        runs: Of each kind of work at the most, spread evenly.
        every: Run every configuration once instead.
        simulate: Open loops; None simulates them here and keeps nothing.
    """
    measured: list[Measurement] = []
    for table in tables.values():
        grid = table.grid if every else measured_part(table.grid)
        chosen = grid.configurations()
        measured += _campaign(table, chosen, source, len(chosen) if every else runs)
        if table.work.operation != "read":
            measured += _paced(table, source, simulate or simulator())
    name = f"Simulated {drive.name}"
    with tempfile.TemporaryDirectory(prefix="iojoule-validate-") as made:
        folder = Path(made)
        (folder / FILE_NAME).write_text(_told(drive, name).model_dump_json(), encoding="utf-8")
        dataset = Dataset.from_measurements(measured, Provenance(importer="validate"))
        write_dataset(dataset, folder / "runs")
        return under(fit_datasets([folder], name).profile, _conditions(drive))


def measured_part(grid: Grid) -> Grid:
    """Every other size and depth."""
    return Grid(
        grid.request_bytes[::2],
        grid.queue_depth[::2],
        grid.jobs,
        grid.completion,
        grid.power_state,
    )


def _campaign(
    table: Table, chosen: Sequence[Configuration], source: np.random.Generator, runs: int
) -> list[Measurement]:
    points = [Point(measured_workload(table.work), one) for one in chosen]
    truth = table.at_work(None)
    order = space_filling(points, min(runs, len(points)), int(source.integers(1 << 31)))
    return [_run(table, truth, points[place].workload, chosen[place], source) for place in order]


def _paced(table: Table, source: np.random.Generator, simulate: Simulate) -> list[Measurement]:
    """Runs with Poisson arrivals, at shares of what the configuration carries."""
    found = []
    part = measured_part(table.grid)
    middle = part.queue_depth[len(part.queue_depth) // 2]
    for size in part.request_bytes:
        chosen = Configuration.model_validate(
            {
                "request_bytes": size,
                "queue_depth": middle,
                "power_state": 0,
                "completion": "interrupt",
                **ENGINE,
            }
        )
        row = table.grid.place(chosen)
        for load in PACED_LOADS:
            demand = float(load * table.iops[row] * size)
            truth = at_random_work(table, np.array([row]), demand, simulate)
            asked = measured_workload(table.work).model_copy(
                update={"demand_bytes_per_second": demand, "arrival_process": "poisson"}
            )
            found.append(_run(table, truth, asked, chosen, source))
    return found


def _run(
    table: Table,
    truth: Mapping[str, Floats],
    workload: Workload,
    chosen: Configuration,
    source: np.random.Generator,
) -> Measurement:
    """A run as it is seen, with its noise; its rate is that of its demand where it has one."""
    row, drive = table.grid.place(chosen), table.drive
    by = {name: float(np.exp(sd * source.standard_normal())) for name, sd in NOISE.items()}
    faster = 1.0 if workload.demand_bytes_per_second else by["throughput"]
    longer = by["latency"] / faster
    median = truth["latency_p50_ns"][row] * longer
    served = truth["served_bytes_per_second"][row] * faster
    rests = drive.with_leakage(np.array(drive.idle_watts))
    seen = Observations(
        throughput_bytes_per_second=served,
        iops=served / chosen.request_bytes,
        latency_mean_ns=truth["latency_mean_ns"][row] * longer,
        latency_p50_ns=median,
        latency_p99_ns=max(truth["latency_p99_ns"][row] * longer * by["tail"], median),
        device_power_watts=truth["device_power_watts"][row] * by["device"],
        cpu_power_watts=truth["cpu_power_watts"][row] * by["cpu"],
        idle_power_watts=rests[table.power_state[row]] * by["idle"],
    )
    return Measurement(
        workload=workload, configuration=chosen, conditions=_conditions(drive), observations=seen
    )


def _conditions(drive: HiddenDrive) -> Conditions:
    """Those of the campaign and, as it is the same drive in the same host, of every question."""
    return Conditions(
        device_serial_hash=hashlib.sha256(drive.name.encode()).hexdigest(),
        firmware="1",
        pcie_generation=4,
        pcie_lanes=4,
        temperature_celsius_mean=40.0,
        aspm_policy="disabled",
        power_loss_protection=False,
        percentage_used=0.0,
        host_id="simulated",
    )


def _told(drive: HiddenDrive, name: str) -> MeasuredDrive:
    """What the drive says of itself."""
    return MeasuredDrive(
        model=name,
        capacity_bytes=1_000_204_886_016,
        block_bytes=512,
        max_transfer_bytes=drive.split_bytes or 1 << 20,
        power_states=tuple(
            DeclaredState(
                index=state,
                max_power_watts=drive.declared_caps_watts[state],
                operational=True,
                entry_latency_us=0,
                exit_latency_us=0,
            )
            for state in STATES
        ),
    )
