"""The calibrated simulator as tables: what a profile holds of it, for operations it was fitted on.

Every cell is simulated at the estimate and at a few draws of the posterior. The learned residual is
added; the spread of the draws, the residual's own sd and, far from any measurement, what simulators
of SSDs usually err are joined in the cell's sd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from iojoule.sim.calibration.residual import Residual, place_of
from iojoule.sim.calibration.runs import Outcome, drive_of, run_flow
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Engine
from iojoule.sim.physical_options import EnergyOptions
from iojoule.sim.workers import Pool
from iojoule.sim.workers.local import HERE
from iojoule.sim.workers.pool import counter

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
JOBS = (1, 8)
LARGEST_BYTES = 1 << 20

DRAWS = 3
"""Of the posterior, for the spread."""

STATE_SD = 0.3
"""Log sd for power states below PS0: their caps are declared, and nobody measured points there."""

RUN_SECONDS = 0.01
"""About what a run of a cell takes."""

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
    return [
        _Table(timing, judged, paths, operation, pattern, engine).made(pool, watch)
        for operation, pattern in kinds
    ]


Cell = tuple[Path, int, int, int, int]
"""Path, power state, queue depth, jobs and request size in bytes."""


class _Table:
    def __init__(
        self,
        timing: Timing,
        judged: Judged,
        paths: Sequence[Path],
        operation: Operation,
        pattern: Pattern,
        engine: Engine,
    ) -> None:
        self.timing, self.judged, self.paths, self.engine = timing, judged, paths, engine
        self.operation, self.pattern = operation, pattern
        device = timing.space.device
        unit = device.physical.nand.mapping_unit_bytes or device.page_bytes
        self.sizes = [1 << e for e in range((unit - 1).bit_length(), LARGEST_BYTES.bit_length())]
        states = device.physical.power.states if judged.energy is not None else ()
        self.states = [0] + [i for i, state in enumerate(states) if state.operational and i]
        random = np.random.default_rng(0)
        draws = timing.posterior.draws
        self.draws = draws[random.choice(len(draws), size=min(DRAWS, len(draws)), replace=False)]

    def made(self, pool: Pool, watch: Callable[[int, int], None] | None) -> SimulatedTable:
        cells = list(product(self.paths, self.states, DEPTHS, JOBS, self.sizes))
        runs = [1 if state else 1 + len(self.draws) for _, state, *_ in cells]
        told = pool.map(
            _cell,
            cells,
            shared=self,
            seconds=[RUN_SECONDS * each for each in runs],
            done=counter(watch, len(cells)),
        )
        return SimulatedTable(
            operation=self.operation,  # type: ignore[arg-type]
            pattern=self.pattern,
            table=ResidualTable(
                log2_queue_depth=[float(np.log2(one)) for one in DEPTHS],
                log2_jobs=[float(np.log2(one)) for one in JOBS],
                log2_request_bytes=[float(np.log2(one)) for one in self.sizes],
                paths=[f"{path.key} ps{state}" for path, state in product(self.paths, self.states)],
                values={name: [float(f"{each[name]:.6g}") for each in told] for name in told[0]},
            ),
        )

    def cell(self, path: Path, state: int, depth: int, jobs: int, size: int) -> dict[str, float]:
        """Values of one cell by quantity: logs, and their sd."""
        point = self._point(path, depth, jobs, size)
        best = self._run(point, self.timing.cube, state)
        spread = [self._run(point, cube, state) for cube in self.draws] if state == 0 else []
        group = group_of(self.operation.value, self.pattern.value, path.host, path.engine)
        at = np.array([place_of(point.features(), group, self.judged.groups)])
        concurrency = np.log(depth * jobs * 1e9)
        shift, sd = _residual(self.judged.throughput, at)
        apart = STATE_SD if state else 0.0
        found = {
            "latency": float(concurrency - best.log_iops - shift),
            "latency_sd": _joined(sd, [one.log_iops for one in spread], apart),
        }
        for index, name in enumerate(("p50", "p99", "p999")):
            shift_, sd_ = _residual(self.judged.tails[index], at)
            found[name] = float(best.log_tails[index] + shift_)
            found[f"{name}_sd"] = _joined(sd_, [one.log_tails[index] for one in spread], 0.0)
        energy = self.judged.energy
        if energy is not None:
            base = float(energy.values[energy.fields.index("controller_active_watts")])
            watts = base + (best.watts - base) * float(np.exp(shift))
            shift_, sd_ = _residual(self.judged.watts, at)
            found["watts"] = float(np.log(watts) + shift_)
            share = (watts - base) / watts
            others = [np.log(one.watts) for one in spread]
            found["watts_sd"] = float(np.hypot(_joined(sd_, others, 0.0), share * sd))
        return found

    def _point(self, path: Path, depth: int, jobs: int, size: int) -> Point:
        workload = path.example.workload.model_copy(
            update={"operation": self.operation, "pattern": self.pattern, "read_fraction": None}
        )
        chosen = path.example.configuration.model_copy(
            update={"request_bytes": size, "queue_depth": depth, "jobs": jobs}
        )
        example = path.example.model_copy(update={"workload": workload, "configuration": chosen})
        # how long to simulate: a request takes about so long alone, and a drive moves some GB/s
        guess = min(depth * jobs / 80e-6, 8e5, 3e9 / size)
        nan = float("nan")
        return Point(example, path.host, guess, nan, (nan, nan, nan), nan)

    def _run(self, point: Point, cube: Floats, state: int) -> Outcome:
        device, cost = drive_of(self.timing.space, cube, point)
        if self.judged.energy is not None:
            device = with_energy(device, self.judged.energy)
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
        return run_flow(device, cost, point, self.engine)


def _residual(residual: Residual, at: Floats) -> tuple[float, float]:
    mean, sd = residual(at)
    return float(mean[0]), float(sd[0])


def _joined(sd: float, spread: Sequence[float], apart: float) -> float:
    own = float(np.std(spread)) if len(spread) > 1 else 0.0
    return float(np.sqrt(sd**2 + own**2 + apart**2))


def _cell(table: _Table, cell: Cell) -> dict[str, float]:
    return table.cell(*cell)
