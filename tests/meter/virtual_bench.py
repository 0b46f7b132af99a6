"""Drives in virtual time, measured and fitted as `iojoule measure` and `fit` do real ones."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import numpy as np

from iojoule.datasets.characteristics import (
    Characteristics,
    Evidence,
    ExperimentResult,
    Row,
    Status,
)
from iojoule.datasets.measured_drive import DeclaredState, MeasuredDrive
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.characterise.experiment import Experiment, Extent, Job, ScaleName, extent_of
from iojoule.measure.characterise.experiments.idle_states import IdleStates
from iojoule.measure.characterise.experiments.settle import SettleTime
from iojoule.measure.characterise.experiments.slc_cache import Background, SlcCache
from iojoule.measure.characterise.workbench import TRACE_BINS_MAX, TRACE_STEP_SECONDS
from iojoule.measure.recording.statistics import batch_standard_error
from iojoule.model.fit.measured import fit_measured
from iojoule.sim.device import DeviceConfig
from tests.meter.virtual_drive import SECOND, STEP, Done, Load, VirtualDrive

RUN_SECONDS, RAMP_SECONDS = 4.0, 0.5
AFTER_SECONDS_MAX, QUIET_SECONDS = 20.0, 1.5
"""How long a campaign waits after a run until the drive has been at rest for so long."""
BASELINE_SECONDS = 2.0

TEN = [
    *((Load("randread", kib, depth), 0) for kib in (4, 64) for depth in (1, 4, 16)),
    *((Load("randwrite", kib, depth), 0) for kib in (4, 64) for depth in (1, 8)),
]
"""Loads, each with a power state."""
MANY = [
    *((Load("randread", kib, depth), 0) for kib in (4, 16, 64) for depth in (1, 4, 16, 64)),
    *((Load("read", kib, depth), 0) for kib in (16, 64) for depth in (1, 8)),
    *((Load("randwrite", kib, depth), 0) for kib in (4, 16, 64) for depth in (1, 4, 16)),
    *((Load("randread", 16, depth), state) for state in (1, 2) for depth in (2, 16)),
    *((Load("randwrite", 16, depth), state) for state in (1, 2) for depth in (2, 16)),
    *((Load("randrw", 16, depth), 0) for depth in (1, 8)),
]
EXPERIMENTS: tuple[Experiment, ...] = (IdleStates(), SlcCache(), SettleTime(), Background())


def declared(device: DeviceConfig) -> list[DeclaredState]:
    """What the drive says of its power states."""
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


def fitted(
    name: str, device: DeviceConfig, loads: Iterable[tuple[Load, int]], *, characterised: bool
) -> DeviceProfile:
    """By runs of a campaign, and by what characterising found."""
    awake = without_sleep(device)
    measured = MeasuredDrive(
        model=name,
        capacity_bytes=awake.capacity_bytes,
        block_bytes=512,
        power_states=tuple(declared(awake)),
    )
    found = None
    if characterised:
        found = Characteristics(
            generator="test", scale="quick", began_utc="", drive=measured, answers=answers(awake)
        )
    rows = campaign(name, awake, loads)
    return fit_measured(name, rows, [], measured, found).profile


def without_sleep(device: DeviceConfig) -> DeviceConfig:
    """The same drive with its autonomous transitions off."""
    power = device.physical.power.model_copy(update={"autonomous_transitions": ()})
    physical = device.physical.model_copy(update={"power": power})
    return device.model_copy(update={"physical": physical})


def campaign(
    name: str, device: DeviceConfig, loads: Iterable[tuple[Load, int]]
) -> list[Measurement]:
    """A row for each load, each after a rest."""
    drive, rng = VirtualDrive(device), random.Random(1)
    drive.use()
    idle = resting(drive)["power_watts"]
    rows = []
    for load, state in loads:
        drive.set_power_state(state)
        drive.rest(0.2)
        begin_ns = drive.now_ns + round(RAMP_SECONDS * SECOND)
        done = drive.run(load, rng, RAMP_SECONDS + RUN_SECONDS)
        end_ns = drive.now_ns
        at_rest = drive.device.physical.power.states[state].idle_power_watts
        rest_until(drive, at_rest, QUIET_SECONDS, AFTER_SECONDS_MAX)
        left = drive.joules(end_ns, drive.now_ns)
        over = np.flatnonzero(left > 1.03 * at_rest * STEP / SECOND)
        seconds = (int(over[-1]) + 1) * STEP / SECOND if len(over) else 0.0
        values = {
            "device_power_watts": drive.watts(begin_ns, begin_ns + round(RUN_SECONDS * SECOND)),
            "idle_power_watts": idle,
            "host_bytes_written": sum(one.size for one in done if one.writes),
            "background_energy_joules": max(
                float(left.sum()) - at_rest * len(left) * STEP / SECOND, 0.0
            ),
            "background_seconds": seconds,
        }
        rows.append(_measurement(name, load, state, done, begin_ns, values))
    return rows


def rest_until(
    drive: VirtualDrive, watts: float, quiet_seconds: float, most_seconds: float
) -> bool:
    """Wait until it drew hardly more than that for so long; whether it did."""
    begin_ns, needed = drive.now_ns, round(quiet_seconds * SECOND)
    while drive.now_ns - begin_ns < most_seconds * SECOND:
        drive.rest(0.1)
        recent_ns = drive.now_ns - needed
        if recent_ns > begin_ns and drive.watts(recent_ns, drive.now_ns) <= 1.03 * watts:
            return True
    return False


def _measurement(
    name: str, load: Load, state: int, done: list[Done], begin_ns: int, values: dict[str, float]
) -> Measurement:
    end_ns = begin_ns + round(RUN_SECONDS * SECOND)
    inside = [one for one in done if begin_ns <= one.done_ns < end_ns]
    operation = {"randrw": "mixed", "randwrite": "write"}.get(load.rw, "read")
    iops = len(inside) / RUN_SECONDS
    took = np.array([one.done_ns - one.since_ns for one in inside])
    mixed = {"read_fraction": 0.7} if operation == "mixed" else {}
    return Measurement.model_validate(
        {
            "workload": {
                "operation": operation,
                "pattern": "sequential" if load.rw == "read" else "random",
                **mixed,
            },
            "configuration": {
                "request_bytes": load.kib * 1024,
                "queue_depth": load.depth,
                "engine": "io_uring",
                "scheduler": "none",
                "power_state": state,
            },
            "conditions": {"host_id": "bench", "device_model": name},
            "observations": {
                "iops": iops,
                "throughput_bytes_per_second": iops * load.kib * 1024,
                "latency_mean_ns": float(took.mean()),
                "latency_p50_ns": float(np.percentile(took, 50)),
                "latency_p99_ns": float(np.percentile(took, 99)),
                **values,
            },
        }
    )


def answers(device: DeviceConfig) -> dict[str, ExperimentResult]:
    """What quick experiments find of a drive."""
    extent = extent_of(ScaleName.QUICK, device.capacity_bytes)
    drive = VirtualDrive(device)
    drive.use()
    idle = resting(drive)
    found = {}
    for experiment in EXPERIMENTS:
        bench = VirtualBench(drive, extent, idle)
        experiment.measure(bench, extent)
        evidence = bench.evidence()
        found[experiment.name] = ExperimentResult(
            title=experiment.title,
            purpose=experiment.purpose,
            sources=experiment.sources,
            status=Status.ANSWERED,
            estimates=experiment.estimate(evidence),
            evidence=evidence,
        )
    return found


def resting(drive: VirtualDrive) -> Row:
    """Idle power."""
    drive.rest(BASELINE_SECONDS)
    begin_ns = drive.now_ns
    drive.rest(BASELINE_SECONDS)
    return Row(label="idle", values=_power(drive, begin_ns, drive.now_ns))


class VirtualBench:
    """A `Bench` whose drive is simulated."""

    def __init__(self, drive: VirtualDrive, extent: Extent, idle: Row) -> None:
        self._drive = drive
        self._extent = extent
        self._rows = [idle]
        self._traces: list[tuple[int, Job, list[Done]]] = []
        self._rng = random.Random(1)
        self._ended_ns: int | None = None

    @property
    def power_states(self) -> list[int]:
        """All that it declares."""
        return list(range(len(self._drive.device.physical.power.states)))

    def evidence(self) -> Evidence:
        """All rows, with bytes and watts over time until the end of what follows a traced run."""
        series: dict[str, tuple[float, ...]] = {}
        for place, job, done in self._traces:
            row, after = self._rows[place], self._rows[min(place + 1, len(self._rows) - 1)]
            begin, end = int(row["span_begin_ns"]), int(after["span_end_ns"])
            step = int(max(TRACE_STEP_SECONDS, (end - begin) / SECOND / TRACE_BINS_MAX) * SECOND)
            ends = np.arange(begin, end - step + 1, step) + step
            moved, _ = np.histogram(
                [one.done_ns for one in done],
                bins=np.append(begin, ends),
                weights=[one.size for one in done],
            )
            watts = [self._drive.watts(int(last) - step, int(last)) for last in ends]
            series |= {
                f"{job.label} seconds": tuple((ends - begin) / SECOND),
                f"{job.label} bytes": tuple(moved),
                f"{job.label} watts": tuple(watts),
            }
        return Evidence(rows=tuple(self._rows), series=series)

    def run(self, job: Job) -> Row:
        """As fio does."""
        drive, extent = self._drive, self._extent
        began_ns = drive.now_ns
        load = Load(
            ("rand" if job.pattern is Pattern.RANDOM else "") + job.operation,
            job.request_bytes // 1024,
            job.queue_depth,
            per_second=int(job.operations_per_second or 0),
        )
        if job.bytes_total is None:
            begin_ns = began_ns + round(extent.ramp_seconds * SECOND)
            done = drive.run(load, self._rng, extent.ramp_seconds + job.seconds)
            end_ns = begin_ns + round(job.seconds * SECOND)
        else:
            begin_ns = began_ns
            done = drive.run(load, self._rng, size_total=job.bytes_total)
            end_ns = drive.now_ns
        drive.rest((-drive.now_ns % STEP) / SECOND)
        self._ended_ns = drive.now_ns
        inside = [one for one in done if begin_ns <= one.done_ns <= end_ns]
        seconds = (end_ns - begin_ns) / SECOND
        values = {
            "request_bytes": job.request_bytes,
            "queue_depth": job.queue_depth,
            "bytes_written": job.bytes_written if job.operation is not Operation.READ else 0,
            "iops": len(inside) / seconds,
            "throughput_bytes_per_second": len(inside) * job.request_bytes / seconds,
            **_power(drive, begin_ns, end_ns),
        }
        if job.trace:
            self._traces.append((len(self._rows), job, done))
        return self._keep(job.label, began_ns, begin_ns, values)

    def rest(self, label: str, seconds: float) -> Row:
        """Nothing."""
        begin_ns = self._drive.now_ns
        self._drive.rest(seconds)
        power = _power(self._drive, begin_ns, self._drive.now_ns)
        return self._keep(label, begin_ns, begin_ns, {"state_held": 1.0, **power})

    def quiet(self, label: str) -> Row:
        """Until idle power was drawn for `quiet_seconds`."""
        idle, begin_ns = self._rows[0], self._drive.now_ns
        since_ns, self._ended_ns = self._ended_ns or begin_ns, None
        extent = self._extent
        watts = idle["power_watts"]
        quiet = rest_until(self._drive, watts, extent.quiet_seconds, extent.quiet_seconds_max)
        return self._keep(label, since_ns, begin_ns, {"quiet": float(quiet)})

    def power_state(self, number: int) -> None:
        """Set it."""
        self._drive.set_power_state(number)
        self._drive.rest(self._extent.settle_seconds)

    def wake(self, label: str) -> Row:
        """One read."""
        begin_ns = self._drive.now_ns
        (one,) = self._drive.run(Load("randread", 4, 1), self._rng, size_total=4096)
        self._drive.rest((-self._drive.now_ns % STEP) / SECOND)
        return self._keep(
            label, begin_ns, begin_ns, {"latency_ns": float(one.done_ns - one.since_ns)}
        )

    def _keep(self, label: str, span_ns: int, begin_ns: int, values: dict[str, float]) -> Row:
        end_ns = float(self._drive.now_ns)
        spans = {"span_begin_ns": float(span_ns), "span_end_ns": end_ns}
        times = {"begin_ns": float(begin_ns), "end_ns": end_ns}
        self._rows.append(Row(label=label, values={**times, **spans, **values}))
        return self._rows[-1]


def _power(drive: VirtualDrive, begin_ns: int, end_ns: int) -> dict[str, float]:
    watts = drive.joules(begin_ns, end_ns) * (SECOND / STEP)
    error = batch_standard_error(watts)
    return {
        "power_watts": float(watts.mean()),
        "power_error_watts": 0.0 if math.isnan(error) else error,
    }
