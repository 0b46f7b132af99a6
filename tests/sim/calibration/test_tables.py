"""What a profile holds of the calibrated simulator is what long simulations say."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.profile import SimulatedTable
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Completion, Engine, Operation, Pattern
from iojoule.sim.calibration.calibrate import Timing
from iojoule.sim.calibration.energy import EnergyFit, own_energy
from iojoule.sim.calibration.estimate import Estimate, Posterior
from iojoule.sim.calibration.judge import Judged
from iojoule.sim.calibration.observations import Point
from iojoule.sim.calibration.parameters import ParameterSpace
from iojoule.sim.calibration.residual import Residual
from iojoule.sim.calibration.runs import ENERGY_FIELDS, run_point
from iojoule.sim.calibration.tables import Path, make_tables
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.physical_options import PowerOptions
from tests.sim.calibration.hidden import PRESET, TRUTH, question

NAN = float("nan")


def through_the_kernel(size: int, depth: int, jobs: int = 1) -> Measurement:
    asked = question(size, depth, jobs)
    by_kernel = {"engine": Engine.IO_URING, "completion": Completion.INTERRUPT}
    chosen = asked.configuration.model_copy(update=by_kernel)
    return asked.model_copy(update={"configuration": chosen})


# the power states' caps bind in tables and not in short runs, so there are none here
UNCAPPED = PRESET.model_copy(
    update={"physical": PRESET.physical.model_copy(update={"power": PowerOptions()})}
)
SPACE = ParameterSpace(UNCAPPED, list(TRUTH), ["bench"])
EXAMPLE = through_the_kernel(4096, 1)


def made(space: ParameterSpace, energy: EnergyFit | None) -> SimulatedTable:
    start = space.start()
    draws = np.clip(start + np.array([[-0.05], [0.0], [0.05]]), 0.0, 1.0)
    known = Posterior(np.full(len(start), 0.05), np.eye(len(start)), draws)
    estimate = Estimate(start, np.empty(0), np.empty((0, len(start))), 0.02, 1)
    unknown = Residual(None, 0.02, ())
    judged = Judged([], energy, unknown, (unknown, unknown, unknown), unknown, ())
    path = Path("io_uring interrupt none", "bench", "io_uring", EXAMPLE)
    kinds = [(Operation.READ, Pattern.RANDOM)]
    (table,) = make_tables(Timing(space, estimate, known), judged, [path], kinds, EmbeddedEngine())
    return table


@pytest.fixture(scope="module")
def table() -> SimulatedTable:
    return made(SPACE, None)


def iops(table: SimulatedTable) -> np.ndarray:
    """Requests a second over depth, jobs and size."""
    axes = table.table
    in_flight = np.add.outer(axes.log2_queue_depth, axes.log2_jobs)[..., None] * np.log(2)
    latency = np.reshape(axes.values["latency"], (*in_flight.shape[:2], -1))
    return np.exp(in_flight - latency) * 1e9


def test_a_deeper_queue_is_served_no_slower(table: SimulatedTable) -> None:
    served = iops(table)
    assert (served[1:] > 0.97 * served[:-1]).all()


@pytest.mark.parametrize(
    ("size", "depth", "jobs"),
    [(4096, 1, 1), (4096, 256, 1), (4096, 64, 8), (65536, 16, 1), (1 << 20, 256, 8)],
)
def test_a_cell_is_what_a_long_run_serves(
    table: SimulatedTable, size: int, depth: int, jobs: int
) -> None:
    place = tuple(
        np.argmin(np.abs(np.array(axis) - np.log2(value)))
        for axis, value in (
            (table.table.log2_queue_depth, depth),
            (table.table.log2_jobs, jobs),
            (table.table.log2_request_bytes, size),
        )
    )
    cell = iops(table)[place]
    # twelve times as long as if it were served as fast as the cell says
    long_run = Point(
        through_the_kernel(size, depth, jobs), "bench", cell / 12, NAN, (NAN,) * 3, NAN
    )
    told = run_point(SPACE, SPACE.start(), long_run, EmbeddedEngine())
    assert cell == pytest.approx(np.exp(told.log_iops), rel=0.03)


def test_what_is_not_known_of_the_timing_widens_a_cell(table: SimulatedTable) -> None:
    assert min(table.table.values["latency_sd"]) >= 0.02
    assert max(table.table.values["latency_sd"]) > 0.03


def test_of_a_state_whose_cap_is_below_the_measured_watts_nothing_is_told() -> None:
    own = own_energy(PRESET, ENERGY_FIELDS)
    # PS1 is capped at 4.48 W, PS2 at 3.18
    own[ENERGY_FIELDS.index("controller_active_watts")] = 3.5
    energy = EnergyFit(ENERGY_FIELDS, own, 0 * own, np.eye(len(own)), own, own)
    told = made(ParameterSpace(PRESET, list(TRUTH), ["bench"]), energy).table.paths
    assert [name.rpartition(" ")[2] for name in told] == ["ps0", "ps1"]
