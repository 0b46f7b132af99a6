"""Runs of the simulator from files: which there are, what is to be said of them, their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iojoule.datasets.errors import InputError, close_names
from iojoule.sim.device import DeviceConfig
from iojoule.sim.errors import ModelError
from iojoule.sim.findings import Finding, refuse_errors
from iojoule.sim.formats.files import (
    DriveFile,
    WorkloadFile,
    known_findings,
    read_drive,
    read_workload,
)
from iojoule.sim.presets import drive_path
from iojoule.sim.result import Mode, ScenarioResult
from iojoule.sim.sweep import Axis, Job, LeftOut, combinations, parse_axis, values_text, with_values
from iojoule.sim.workload import FlowConfig, Scenario

if TYPE_CHECKING:
    from iojoule.datasets.schema import Measurement


@dataclass(frozen=True)
class Plan:
    """The runs that were asked for.

    Attributes:
        jobs: Drives, workloads, varied values and scenarios, the last varying fastest.
        findings: What is to be said before they run.
        one_configuration: One drive and one workload, nothing varied.
        drives: Files, or names of presets.
        scenarios: Of each workload file.
        axes: What is varied.
        left_out: Designs that came to no result, and why.
    """

    jobs: list[Job]
    findings: list[Finding]
    one_configuration: bool
    drives: Sequence[str] = ()
    scenarios: Sequence[tuple[Scenario, ...]] = ()
    axes: Sequence[Axis] = ()
    left_out: Sequence[tuple[Job, str]] = ()

    def design(self, job: Job) -> str:
        """What a job has and not all jobs have: its files and varied values."""
        alike = {axis.field for axis in self.axes if len(axis.values) == 1}
        varied = job.labels["varied"]
        told = {k: v for k, v in varied.items() if k not in alike} or varied
        if len(self.scenarios) > 1:
            told = {"workload": Path(job.labels["workload"]).stem} | told
        if len(self.drives) > 1:
            told = {"ssd": Path(job.labels["ssd"]).stem} | told
        return values_text(told)


def plan_runs(
    drives: Sequence[str], workloads: Sequence[Path], mode: Mode | None, axes: Sequence[Axis]
) -> Plan:
    """Read all files and check every combination.

    Args:
        drives: Files, or names of presets.
        workloads: Files.
        mode: For all; None leaves each drive's own, which is compat for MQSim's XML.
        axes: What is varied.

    A varied design that cannot be run is left out, unless none can that has one of its values.

    Raises:
        InputError: A file cannot be used, or a combination or a varied value cannot be run.
    """
    read = [read_drive(drive_path(name)) for name in drives]
    asked = [read_workload(path) for path in workloads]
    one = len(drives) == len(workloads) == 1 and not axes
    plan = Plan([], [], one, drives, [file.scenarios for file in asked], axes)
    plan.findings.extend(finding for file in read for finding in file.findings)
    plan.findings.extend(finding for file in asked for finding in file.findings)
    lost: list[tuple[Job, InputError]] = []
    for drive in read if mode is None else (each.in_mode(mode) for each in read):
        for workload in asked:
            for values in combinations(axes):
                _add(plan, drive, workload, values, lost)
    plan.findings[:] = dict.fromkeys(plan.findings)
    return without(plan, lost)


def without(plan: Plan, lost: Sequence[tuple[Job, InputError]]) -> Plan:
    """The plan that lists designs as left out which cannot be run.

    Raises:
        InputError: One of them has a varied value that no design can have.
    """
    possible = {each for job in plan.jobs for each in _values(job)}
    for job, error in lost:
        if not possible.issuperset(_values(job)):
            raise error
    return replace(plan, left_out=[(job, error.message) for job, error in lost])


def _values(job: Job) -> set[tuple[str, str]]:
    """Varied fields and their values."""
    return {(name, repr(value)) for name, value in job.labels.get("varied", {}).items()}


def _add(
    plan: Plan,
    drive: DriveFile,
    workload: WorkloadFile,
    values: dict[str, Any],
    lost: list[tuple[Job, InputError]],
) -> None:
    for number in range(len(workload.scenarios)):
        labels: dict[str, Any] = {"ssd": str(drive.path), "workload": str(workload.path)}
        if values:
            labels["varied"] = values
        if len(workload.scenarios) > 1:
            labels["scenario"] = number + 1
        scenario = workload.with_traces(number)
        places, run = _places(drive, workload, number), len(plan.jobs) + len(lost) + 1
        job = Job(drive.device, scenario, number, labels, places, run)
        try:
            if values:
                device, scenario = with_values(job.device, scenario, values)
                job = replace(job, device=device, scenario=scenario)
            varied = replace(drive, drive=replace(drive.drive, device=job.device))
            flows = replace(workload, scenarios=(scenario,) * (number + 1))
            plan.findings.extend(refuse_errors(known_findings(varied, flows, number)))
        except InputError as error:
            if not values:
                raise
            lost.append((job, error))
        else:
            plan.jobs.append(job)


def _places(drive: DriveFile, workload: WorkloadFile, number: int) -> dict[str, str]:
    """Where fields of the drive, and of the flows of one scenario, stand."""
    prefix = f"scenarios[{number}]."
    flows = {
        name.removeprefix(prefix): place
        for name, place in workload.places.items()
        if name.startswith(prefix)
    }
    return {**drive.drive.places, **flows}


GIB = 1 << 30

PARTS: dict[str, Callable[[DeviceConfig], float]] = {
    "die": lambda drive: drive.planes / drive.planes_per_die,
    "channel": lambda drive: drive.channels,
    "flash_gib": lambda drive: drive.physical_pages * drive.page_bytes / GIB,
    "cache_gib": lambda drive: drive.cache_bytes / GIB,
}
"""What a drive costs by: how many of it a drive has."""


PRICE_MAX = 1e12
"""Largest price of a part; sums of such prices stay finite."""


def parse_prices(text: str) -> dict[str, float]:
    """Prices as `die=3,channel=1.5`, in any unit of money.

    Raises:
        InputError: A part is unknown, or a price is none.
    """
    prices = {}
    for word in text.split(","):
        name, _, said = word.partition("=")
        name = name.strip()
        if name not in PARTS:
            raise InputError(
                f"--cost {name}: has no price{close_names(name, PARTS)}; what has: "
                + ", ".join(PARTS)
            )
        try:
            prices[name] = float(said)
        except ValueError:
            prices[name] = math.nan
        if not 0 <= prices[name] <= PRICE_MAX:
            raise InputError(
                f"--cost {name}={said}: is no price; write a number from 0 to {PRICE_MAX:.0e}"
            )
    return prices


def on_front(
    plan: Plan, results: Sequence[ScenarioResult], prices: Mapping[str, float]
) -> tuple[Plan, list[ScenarioResult]]:
    """The designs that no other beats in joules a request, p99 latency and cost.

    Joules of a whole run would favour who serves less of it: a closed loop serves what it can. Of
    equals the first is kept.

    Args:
        plan: Runs of one scenario.
        results: Of them; the p99 of a design is that of its worst flow.
        prices: Of parts; each job of the front is labelled with its cost.

    Raises:
        InputError: Nothing is known of the joules.
    """
    import numpy as np

    from iojoule.recommender.pareto import non_dominated

    costs = []
    for job, result in zip(plan.jobs, results, strict=True):
        joules = result.device.energy_joules_total
        if joules is None:
            raise InputError(
                "--front compares joules, and this drive has none: compat mode has no energy; say "
                "--mode physical with a drive whose energy is known"
            )
        served = sum(flow.serviced for flow in result.flows)
        each = joules / served if served else math.inf
        money = sum(price * PARTS[name](job.device) for name, price in prices.items())
        costs.append((each, max(flow.p99_ns for flow in result.flows), money))
    best = np.flatnonzero(non_dominated(np.array(costs, dtype=float)))
    jobs = [
        replace(plan.jobs[row], labels={**plan.jobs[row].labels, "cost": costs[row][2]})
        for row in best
    ]
    return replace(plan, jobs=jobs), [results[int(row)] for row in best]


def that_ran(
    plan: Plan, told: Sequence[ScenarioResult | LeftOut], *, whole: bool = True
) -> tuple[Plan, list[ScenarioResult]]:
    """The jobs that have a result, and their results; `Plan.left_out` lists the others.

    Raises:
        ModelError: No job of a whole plan has a result; names the first one and its reason.
    """
    pairs = list(zip(plan.jobs, told, strict=True))
    ran = [(job, each) for job, each in pairs if not isinstance(each, LeftOut)]
    lost = [(job, each.reason) for job, each in pairs if isinstance(each, LeftOut)]
    if whole and lost and not ran:
        first, reason = lost[0]
        raise ModelError(
            f"none of {len(lost)} designs can be simulated; {plan.design(first)}: {reason}"
        )
    jobs = [job for job, _ in ran]
    left_out = [*plan.left_out, *lost]
    return replace(plan, jobs=jobs, left_out=left_out), [result for _, result in ran]


def document(plan: Plan, results: Sequence[ScenarioResult]) -> dict[str, Any]:
    """The JSON document of results; of several configurations each says which it is.

    Where something was varied, `left_out` lists the designs that came to no result.
    """
    scenarios = []
    for job, result in zip(plan.jobs, results, strict=True):
        labels = {} if plan.one_configuration else dict(job.labels)
        told = result.model_dump(mode="json")
        first = {name: told.pop(name) for name in ("device", "flows")}
        scenarios.append(labels | first | told)
    if not plan.axes:
        return {"scenarios": scenarios}
    left_out = [{**job.labels, "reason": reason} for job, reason in plan.left_out]
    return {"scenarios": scenarios, "left_out": left_out}


def doubts(results: Sequence[ScenarioResult], said: Sequence[Finding]) -> Iterator[str]:
    """What the engines had to say, each once, without what was said before the runs."""
    known = {finding.name for finding in said}
    seen: set[str] = set()
    for result in results:
        for warning in result.warnings:
            name = warning.rpartition("[")[2].rstrip("]")
            if warning not in seen and name not in known:
                yield warning
            seen.add(warning)


def drive_with(name: str, settings: Sequence[str]) -> DeviceConfig:
    """The drive of a file or preset with fields changed, each setting as FIELD=VALUE.

    Raises:
        IojouleError: The file, a field or a value is not what it must be.
    """
    return drive_of(name, setting_values(settings))


def drive_of(name: str, values: dict[str, Any]) -> DeviceConfig:
    """The drive of a file or preset with fields changed; errors as `drive_with`."""
    device = read_drive(drive_path(name)).device
    nothing_asked = Scenario(flows=(FlowConfig(stop_ns=1),))
    return with_values(device, nothing_asked, values)[0]


def setting_values(settings: Sequence[str]) -> dict[str, Any]:
    """Field -> value of settings as FIELD=VALUE; raises InputError where one names several."""
    axes = [parse_axis(setting) for setting in settings]
    for axis in axes:
        if len(axis.values) > 1:
            raise InputError(f"--set {axis.field}: takes one value")
    return {axis.field: axis.values[0] for axis in axes}


def measured(path: Path, columns: str | None) -> list[Measurement]:
    """The measurements of a dataset, or of a CSV file by its column map.

    Args:
        path: The dataset or the CSV file.
        columns: The map's file, or the name of one that ships; None where `path` is a dataset.

    Raises:
        InputError: One of them cannot be read.
    """
    from iojoule.datasets.importers.column_map import load_column_map, public_map, public_maps
    from iojoule.datasets.importers.csv import import_csv
    from iojoule.datasets.store import read_dataset

    if columns is None:
        return read_dataset(path).measurements()
    column_map = public_map(columns) if columns in public_maps() else load_column_map(columns)
    return import_csv(path, column_map).measurements()
