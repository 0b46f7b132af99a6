"""Fleet plans replayed: simulated drives in the modes that a plan gives them, 1 ms at a time.

A drive of `simulated_drives` is measured as a campaign would, a profile is fitted, a fleet of it is
planned, and each planned mode runs on the simulator at its planned load. The power of a domain is
the sum of its drives' traces, each from an offset of its own, or all in step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.api.application.fit import fit_datasets
from iojoule.datasets.measured_drive import FILE_NAME, DeclaredState, MeasuredDrive
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.schema import Configuration, Measurement
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.measure.campaign.runs import space_filling
from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.plan import Assignment, Plan
from iojoule.recommender.fleet.planner import Planner
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.workload import FlowConfig, Scenario
from tests.end_to_end.rehearsal import SimulatedBench
from tests.end_to_end.simulated_drives import Case
from tests.sim.physical.drives import merged

Floats = NDArray[np.float64]

Traces = Callable[[Assignment], Sequence[Floats]]
"""Answers what one drive draws in a mode, W in steps of 1 ms, in as many runs as there are."""

DEVICE = "simulated"
RUNS = 80
"""Measurements of a campaign, spread over all that may be set."""

DRIVES = 40
"""In each rack."""

ENDLESS = 1e13
"""More bytes a second than any fleet here serves: the limit binds, not the demand."""

NEARLY_FULL = 0.95
"""Share of a mode's capacity at which peaks are measured."""

STEP_NS = 1_000_000
TRACE_STEPS = 400
WARM_STEPS = 50
"""1 ms each: of a trace, and what is left out before it."""

STEPS = WARM_STEPS + TRACE_STEPS

OWN_TRACES = 4
"""Traces of one mode with different requests; drives take turns with them."""


def fitted(one: Case, folder: Path) -> DeviceProfile:
    """The profile of a campaign on a drawn drive, which says its caps and is seen idle."""
    bench = SimulatedBench(one, seed=1)
    measured = []
    for row in space_filling(list(one.points), RUNS, 1):
        seen = bench.measure(one.points[row])
        drive = one.drives[seen.configuration.power_state or 0]
        idle = seen.observations.model_copy(update={"idle_power_watts": idle_watts(drive)})
        measured.append(seen.model_copy(update={"observations": idle}))
    caps = [drive.physical.power.states[0].max_power_watts for drive in one.drives]
    return profile_of(measured, caps, folder)


def profile_of(
    measured: Sequence[Measurement], caps_watts: Sequence[float], folder: Path
) -> DeviceProfile:
    """Fitted as `iojoule fit` does, to runs and to what the drive says of its power states."""
    told = MeasuredDrive(
        model=DEVICE, capacity_bytes=10**12, block_bytes=512,
        power_states=tuple(
            DeclaredState(
                index=state, max_power_watts=cap, operational=True, entry_latency_us=0,
                exit_latency_us=0,
            )
            for state, cap in enumerate(caps_watts)
        ),
    )  # fmt: skip
    (folder / FILE_NAME).write_text(told.model_dump_json(), encoding="utf-8")
    dataset = Dataset.from_measurements(list(measured), Provenance(importer="rehearsal"))
    write_dataset(dataset, folder / "runs")
    return fit_datasets([folder], DEVICE).profile


def fleet_of(workload: dict[str, Any], **more: Any) -> Fleet:
    """Two racks of one drive model that serve one class, planned by the drives' watts alone.

    Args:
        workload: Profile of the class.
        more: Of the fleet, and `limit_watts` of each rack, `peak_over_mean` of the drives.
    """
    rack = {"limit_watts": more.pop("limit_watts", None)}
    group = {
        "device": DEVICE, "count": DRIVES, "classes": ["work"],
        "peak_over_mean": more.pop("peak_over_mean", None),
    }  # fmt: skip
    return Fleet.model_validate(
        {
            "scope": "device",
            "domains": [{"name": f"rack-{n}", **rack} for n in (1, 2)],
            "drives": [{"name": f"g{n}", "domain": f"rack-{n}", **group} for n in (1, 2)],
            "classes": [
                {
                    "name": "work", "workload": workload, "redirectable": True, "importance": 1.0,
                    "demand_bytes_per_second": ENDLESS,
                }
            ],
            **more,
        }
    )  # fmt: skip


def work_of(one: Case) -> dict[str, Any]:
    """The class of workload that a case asks about, without demand or bounds."""
    asked = one.question.workload.model_copy(update={"demand_bytes_per_second": None})
    return {"workload": asked.model_dump(exclude_none=True)}


@dataclass(frozen=True)
class Replay:
    """What a domain drew, W, in steps of 1 ms.

    Attributes:
        spread: Every drive from an offset of its own.
        aligned: All drives of a mode in step, every mode at its highest peak at once.
    """

    spread: Floats
    aligned: Floats


def replayed(plan: Plan, domain: str, seed: int, traces: Traces) -> Replay:
    """The sum of what the drives of a domain draw under a plan, mode by mode as `traces` has it."""
    known = [
        (mode.drives, traces(mode))
        for group in plan.groups
        if group.domain == domain
        for mode in group.assignments
    ]
    return summed(known, seed)


def summed(traces: Sequence[tuple[int, Sequence[Floats]]], seed: int) -> Replay:
    """Traces of so many drives each, put together."""
    source = np.random.default_rng(seed)
    length = len(traces[0][1][0])
    spread, aligned = np.zeros(length), np.zeros(length)
    for drives, own in traces:
        aligned += drives * np.roll(own[0], -int(np.argmax(own[0])))
        for drive in range(drives):
            spread += np.roll(own[drive % len(own)], source.integers(length))
    return Replay(spread, aligned)


def traces_of(one: Case) -> Traces:
    """Traces of the drawn drive in a mode: requests arrive by chance at the planned load."""
    known: dict[str, list[Floats]] = {}

    def traces(mode: Assignment) -> list[Floats]:
        drive, chosen = one.drives[mode.power_state], mode.configuration
        if chosen is None:
            return [np.full(TRACE_STEPS, idle_watts(drive))]
        key = f"{chosen.model_dump_json()} {mode.load_bytes_per_second:.6g}"
        if key not in known:
            flows = (_flow(one, chosen, mode.load_bytes_per_second, n) for n in range(OWN_TRACES))
            known[key] = [_simulated(drive, flow) for flow in flows]
        return known[key]

    return traces


def idle_watts(drive: DeviceConfig) -> float:
    """Of a drive that is ready and does nothing."""
    return drive.physical.energy.idle_watts


def _flow(one: Case, chosen: Configuration, load: float, number: int) -> FlowConfig:
    asked = one.question.workload
    reads = {"read": 100, "write": 0}.get(
        str(asked.operation), round(100 * (asked.read_fraction or 0.5))
    )
    sectors = chosen.request_bytes // 512
    host: dict[str, Any] = {
        "engine": str(chosen.engine), "completion": str(chosen.completion), "jobs": chosen.jobs,
    }  # fmt: skip
    if load:
        coalescible = asked.request_bytes_coalescible or chosen.request_bytes
        useful = min(chosen.request_bytes, coalescible)
        host |= {"arrivals_per_second": load / useful, "arrivals": "exponential"}
    return FlowConfig.model_validate(
        {
            "read_percent": reads, "size_mean_sectors": sectors, "alignment_sectors": sectors,
            "queue_depth": chosen.queue_depth, "initial_occupancy_percent": 60,
            "seed": 1 + number, "host": host, "stop_ns": (STEPS + WARM_STEPS) * STEP_NS,
        }
    )  # fmt: skip


def _simulated(drive: DeviceConfig, flow: FlowConfig) -> Floats:
    sampled = DeviceConfig.model_validate(
        merged(drive.model_dump(), {"physical": {"energy": {"power_step_ns": STEP_NS}}})
    )
    sampled = sampled.model_copy(update={"io_queue_depth": max(2, flow.queue_depth)})
    result = EmbeddedEngine().run(sampled, Scenario(flows=(flow,)))
    physical = result.device.physical
    assert physical is not None
    assert physical.power_watts is not None
    return np.array(physical.power_watts)[WARM_STEPS:STEPS]


def peak_over_mean(one: Case, planner: Planner, percentile: float) -> float:
    """What a user would state: the highest ratio of 1 ms power over its mean, near full speed.

    Requests arrive by chance here too. A queue that is always full smooths power: a drive that
    draws 5.4 W steadily then draws 6.1 W in one of a hundred milliseconds at 98 % of that rate.
    """
    ratios = [1.0]
    for modes in planner.modes.values():
        for mode in modes:
            load = NEARLY_FULL * mode.capacity_bytes_per_second
            flow = _flow(one, mode.configuration, load, OWN_TRACES)
            trace = _simulated(one.drives[mode.power_state], flow)
            ratios.append(float(np.quantile(trace, percentile) / trace.mean()))
    return max(ratios)
