"""Budget of a calibration: ten parameters on a 72-point dataset within a minute on two cores."""

from __future__ import annotations

import time

from iojoule.sim.calibration.calibrate import CalibrationFolder, Problem, Settings, calibrate_timing
from iojoule.sim.calibration.judge import judge
from iojoule.sim.calibration.observations import points_and_series
from iojoule.sim.calibration.parameters import ParameterSpace
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.workers import open_pool
from tests.sim.calibration.hidden import HIDDEN, PRESET, measured

BUDGET_SECONDS = 60

TEN = (
    "page_read_ns", "page_read_spread", "partial_read_share", "command_latency_ns",
    "command_occupancy_ns", "channel_megatransfers_per_second", "suspend_program_ns",
    "gc_threshold", "request_cost", "further_page_ns",
)  # fmt: skip


def test_ten_parameters_on_72_points() -> None:
    sizes = (4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288)
    rows = measured(HIDDEN, sizes, (1, 4, 16, 64), (1, 2))
    rows += measured(HIDDEN, sizes, (256,))
    points, _ = points_and_series(rows, [False] * len(rows))
    assert len(points) == 72
    space = ParameterSpace(PRESET, TEN, ["bench"])
    engine = EmbeddedEngine()
    problem = Problem(space, points, [], engine)
    start = time.perf_counter()
    with open_pool(2) as pool:
        timing = calibrate_timing(problem, Settings(), CalibrationFolder(None, {}), pool=pool)
        judged = judge(timing, points, [], engine, pool=pool)
    seconds = time.perf_counter() - start
    errors = sorted(abs(row.throughput[1]) for row in judged.rows)
    print(f"\ncalibrate 10 parameters, 72 points: {seconds:.0f} s, median error {errors[36]:.3f}")
    assert seconds < BUDGET_SECONDS
    assert errors[36] < 0.05
