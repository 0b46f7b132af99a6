"""The calibrated simulator as tables: what a profile holds of it, for operations it was fitted on.

Every cell is simulated at the estimate and at a few draws of the posterior. The learned residual is
added; the spread of the draws, the residual's own sd and, far from any measurement, what simulators
of SSDs usually err are joined in the cell's sd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from iojoule.datasets.profile import ResidualTable, SimulatedTable
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.model.evaluate.bands import Floats
from iojoule.sim.calibration.calibrate import Timing
from iojoule.sim.calibration.energy import EnergyFit
from iojoule.sim.calibration.judge import Judged, group_of
from iojoule.sim.calibration.observations import Point
from iojoule.sim.calibration.parameters import ParameterSpace
from iojoule.sim.calibration.residual import place_of
from iojoule.sim.calibration.runs import Outcome, drive_of, run_flow
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Engine
from iojoule.sim.errors import ConfigError
from iojoule.sim.physical_options import EnergyOptions
from iojoule.sim.workers import Pool
from iojoule.sim.workers.local import HERE
from iojoule.sim.workers.pool import counter

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
JOBS = (1, 8)
LARGEST_BYTES = 1 << 20

DRAWS = 3
"""Of the posterior, for the spread."""

SATURATED = 0.01
"""If throughput rises by less than this (log) from one depth to the next, the drive is saturated:
requests only wait longer, and the spread of the shallower depth is used."""

STATE_SD = 0.3
"""Log sd for power states below PS0: their caps are declared, and nobody measured points there."""

RUN_SECONDS, BYTE_SECONDS = 0.002, 5e-8
"""About what a run of a cell takes, and what a line takes for each byte of a request and job."""

ALONE_SECONDS, FASTEST_BYTES_PER_SECOND = 80e-6, 3e9
"""A request alone takes about so long, and a drive moves so much: how long a line's first run is
simulated. The others go by what the run before them served."""

CAP_BURST_NS = 100_000
"""A capped drive spends its allowance within the few milliseconds that a cell is simulated."""


@dataclass(frozen=True)
class Path:
    """A way from the host to the drive: its name in profiles, and a run that took it."""

    key: str
    host: str
    engine: str | None
    example: Measurement


def with_energy(device: DeviceConfig, energy: EnergyFit) -> DeviceConfig:
    """The drive that draws the fitted joules and watts."""
    fitted: dict[str, object] = {}
    for name, value in zip(energy.fields, energy.values, strict=True):
        fitted[name] = (float(value),) * 3 if name.startswith("page_") else float(value)
        if name.startswith("page_"):
            fitted[f"slc_{name}"] = float(value)
    old = device.physical.energy
    fitted["controller_idle_watts"] = min(
        old.idle_watts,
        float(energy.values[energy.fields.index("controller_active_watts")]),
    )
    options = device.physical.model_copy(update={"energy": EnergyOptions.model_validate(fitted)})
    return device.model_copy(update={"physical": options})


def make_tables(
    timing: Timing,
    judged: Judged,
    paths: Sequence[Path],
    kinds: Sequence[tuple[Operation, Pattern]],
    engine: Engine,
    *,
    pool: Pool = HERE,
    watch: Callable[[int, int], None] | None = None,
) -> list[SimulatedTable]:
    """Simulate every cell.

    Args:
        timing: The calibrated timing.
        judged: Energy and residuals.
        paths: Host paths to answer for.
        kinds: Operations and patterns that were calibrated.
        engine: Simulates.
        pool: Where cells are simulated.
        watch: Told of cells done and of their number.
    """
    return [_table(timing, judged, paths, kind, engine, pool, watch) for kind in kinds]


@dataclass(frozen=True)
class Line:
    """Cells that differ in queue depth alone, which tell each other how long to run."""

    path: Path
    state: int
    jobs: int
    request_bytes: int


def _table(
    timing: Timing,
    judged: Judged,
    paths: Sequence[Path],
    kind: tuple[Operation, Pattern],
    engine: Engine,
    pool: Pool,
    watch: Callable[[int, int], None] | None,
) -> SimulatedTable:
    device = timing.space.device
    unit = device.physical.nand.mapping_unit_bytes or device.page_bytes
    sizes = [1 << e for e in range((unit - 1).bit_length(), LARGEST_BYTES.bit_length())]
    draws = timing.posterior.draws
    chosen = np.random.default_rng(0).choice(len(draws), min(DRAWS, len(draws)), replace=False)
    runs = _Runs(timing.space, timing.cube, draws[chosen], judged.energy, *kind, engine)
    declared = device.physical.power.states if judged.energy is not None else ()
    further = [i for i, state in enumerate(declared) if state.operational and i]
    states = [0] + [i for i in further if paths and _works(runs, Line(paths[0], i, 1, sizes[0]))]
    lines = [Line(*each) for each in product(paths, states, JOBS, sizes)]
    told = pool.map(
        _simulated,
        lines,
        shared=runs,
        seconds=[_seconds(each, len(chosen)) for each in lines],
        done=counter(watch, len(lines)),
    )
    of_lines = [_values(runs, judged, *each) for each in zip(lines, told, strict=True)]
    operation, pattern = kind
    shape = (len(paths) * len(states), len(JOBS), len(sizes), len(DEPTHS))
    values = {
        # depths come before jobs and sizes in a table
        name: np.reshape([each[name] for each in of_lines], shape).transpose(0, 3, 1, 2).ravel()
        for name in of_lines[0]
    }
    return SimulatedTable(
        operation=operation,  # type: ignore[arg-type]
        pattern=pattern,
        table=ResidualTable(
            log2_queue_depth=[float(np.log2(one)) for one in DEPTHS],
            log2_jobs=[float(np.log2(one)) for one in JOBS],
            log2_request_bytes=[float(np.log2(one)) for one in sizes],
            paths=[f"{path.key} ps{state}" for path, state in product(paths, states)],
            values={
                name: [float(f"{each:.6g}") for each in column] for name, column in values.items()
            },
        ),
    )


def _seconds(line: Line, draws: int) -> float:
    """About what a line takes: deep queues of large requests most of it."""
    runs = 1 if line.state else 1 + draws
    return runs * (len(DEPTHS) * RUN_SECONDS + line.jobs * line.request_bytes * BYTE_SECONDS)


@dataclass(frozen=True)
class _Runs:
    """What workers need to simulate a line: they learn nothing, and residuals stay at home."""

    space: ParameterSpace
    cube: Floats
    draws: Floats
    energy: EnergyFit | None
    operation: Operation
    pattern: Pattern
    engine: Engine

    def point(self, line: Line, depth: int, iops: float) -> Point:
        """A cell as a point that was not measured and serves about so many requests a second."""
        example = line.path.example
        workload = example.workload.model_copy(
            update={"operation": self.operation, "pattern": self.pattern, "read_fraction": None}
        )
        chosen = example.configuration.model_copy(
            update={"request_bytes": line.request_bytes, "queue_depth": depth, "jobs": line.jobs}
        )
        example = example.model_copy(update={"workload": workload, "configuration": chosen})
        nan = float("nan")
        return Point(example, line.path.host, iops, nan, (nan, nan, nan), nan)

    def run(self, point: Point, cube: Floats, state: int, *, brief: bool = False) -> Outcome:
        """Simulate a point in a power state at a point of the cube."""
        device, cost = drive_of(self.space, cube, point)
        if self.energy is not None:
            device = with_energy(device, self.energy)
        power = device.physical.power.model_copy(
            update={
                "initial_state": state,
                "cap_burst_ns": CAP_BURST_NS,
                "cap_reopen_ns": 0,
                "autonomous_transitions": (),
            }
        )
        device = device.model_copy(
            update={"physical": device.physical.model_copy(update={"power": power})}
        )
        return run_flow(device, cost, point, self.engine, brief=brief)


def _works(runs: _Runs, line: Line) -> bool:
    """Whether the state's declared cap lies above what the drive was measured to draw."""
    try:
        runs.run(runs.point(line, 1, 1 / ALONE_SECONDS), runs.cube, line.state, brief=True)
    except ConfigError:
        return False
    return True


Simulated = tuple[Outcome, list[Outcome]]
"""At the estimate, and at the draws, of which only the spread is used: short runs suffice."""


def _simulated(runs: _Runs, line: Line) -> list[Simulated]:
    """One line, by depth."""
    found: list[Simulated] = []
    rate = min(line.jobs / ALONE_SECONDS, FASTEST_BYTES_PER_SECOND / line.request_bytes)
    first = runs.run(runs.point(line, DEPTHS[0], rate), runs.cube, line.state, brief=True)
    rate = float(np.exp(first.log_iops))
    for depth in DEPTHS:
        # a deeper queue serves at least the rate of the shallower one, so the warm-up that
        # follows from that rate is long enough to fill the queue
        point = runs.point(line, depth, rate)
        best = runs.run(point, runs.cube, line.state)
        rate = float(np.exp(best.log_iops))
        if line.state:
            drawn = []
        elif found and best.log_iops - found[-1][0].log_iops < SATURATED:
            drawn = found[-1][1]
        else:
            at_rate = replace(point, iops=rate)
            drawn = [runs.run(at_rate, cube, 0, brief=True) for cube in runs.draws]
        found.append((best, drawn))
    return found


def _values(
    runs: _Runs, judged: Judged, line: Line, told: Sequence[Simulated]
) -> dict[str, Floats]:
    """Values of a line's cells by quantity, logs and their sd, each of shape (depths,)."""
    path = line.path
    group = group_of(runs.operation.value, runs.pattern.value, path.host, path.engine)
    features = [runs.point(line, depth, 1.0).features() for depth in DEPTHS]
    at = np.array([place_of(each, group, judged.groups) for each in features])
    apart = STATE_SD if line.state else 0.0
    best = [each[0] for each in told]
    shift, sd = judged.throughput(at)
    spread = _spread([[one.log_iops for one in draws] for _, draws in told])
    log_iops = np.array([one.log_iops for one in best]) + shift
    found = {
        "latency": np.log(np.array(DEPTHS) * line.jobs * 1e9) - log_iops,
        "latency_sd": np.sqrt(sd**2 + spread**2 + apart**2),
    }
    tails = np.array([one.log_tails for one in best])
    for index, name in enumerate(("p50", "p99", "p999")):
        tail_shift, tail_sd = judged.tails[index](at)
        spread = _spread([[one.log_tails[index] for one in draws] for _, draws in told])
        found[name] = tails[:, index] + tail_shift
        found[f"{name}_sd"] = np.hypot(tail_sd, spread)
    energy = judged.energy
    if energy is not None:
        base = float(energy.values[energy.fields.index("controller_active_watts")])
        watts = base + (np.array([one.watts for one in best]) - base) * np.exp(shift)
        watts_shift, watts_sd = judged.watts(at)
        spread = _spread([[float(np.log(one.watts)) for one in draws] for _, draws in told])
        found["watts"] = np.log(watts) + watts_shift
        found["watts_sd"] = np.hypot(np.hypot(watts_sd, spread), (watts - base) / watts * sd)
    return found


def _spread(drawn: Sequence[Sequence[float]]) -> Floats:
    """Standard deviation among the draws of each cell; none, none."""
    return np.array([np.std(each) if each else 0.0 for each in drawn])
