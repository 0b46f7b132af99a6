"""Calibration finds what is hidden in a drive, and goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.model.evaluate.bands import Floats
from iojoule.sim.calibration.calibrate import CalibrationFolder, Problem, Settings, calibrate_timing
from iojoule.sim.calibration.judge import judge
from iojoule.sim.calibration.observations import points_and_series
from iojoule.sim.calibration.parameters import ParameterSpace
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.workers import open_pool
from tests.sim.calibration.hidden import HIDDEN, PRESET, TRUTH, measured

ENGINE = EmbeddedEngine()


@pytest.fixture(scope="module")
def problem() -> Problem:
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16, 64))
    points, _ = points_and_series(rows, [row.configuration.request_bytes == 16384 for row in rows])
    return Problem(ParameterSpace(PRESET, list(TRUTH), ["bench"]), points, [], ENGINE)


def test_hidden_parameters_are_found_and_left_out_sizes_predicted(problem: Problem) -> None:
    settings = Settings()
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16, 64))
    points, _ = points_and_series(rows, [row.configuration.request_bytes == 16384 for row in rows])
    timing = calibrate_timing(problem, settings, CalibrationFolder(None, {}))
    found = problem.space.values(timing.cube)
    assert found["page_read_ns"] == pytest.approx(TRUTH["page_read_ns"], rel=0.05)
    judged = judge(timing, points, [], ENGINE)
    for row in judged.rows:
        assert abs(row.throughput[1]) < 0.03
        assert abs(row.throughput[0]) + 0.005 > abs(row.throughput[1])
        assert abs(row.watts[1]) < 0.05


def test_a_killed_run_goes_on_where_it_stopped(problem: Problem, tmp_path: Path) -> None:
    settings = Settings(rounds=1, designs=8, folder=tmp_path)
    first = calibrate_timing(problem, settings, CalibrationFolder(tmp_path, {"plan": 1}))
    runs = sorted(tmp_path.glob("run-*.json"))
    runs[0].unlink()
    runs[1].write_text('{"half": ')
    stamps = {path: path.stat().st_mtime_ns for path in runs[2:]}
    again = calibrate_timing(problem, settings, CalibrationFolder(tmp_path, {"plan": 1}))
    assert np.array_equal(first.cube, again.cube)
    assert {path: path.stat().st_mtime_ns for path in runs[2:]} == stamps
    assert runs[0].is_file()


class HalfPossible(Problem):
    """Better the further page_read_ns goes up, and impossible from the middle of its range on."""

    def outputs(self, cube: Floats, *, brief: bool = False) -> Floats:
        told = self.target.measured + cube[0] - 1
        return np.where(cube[0] < 0.5, told, np.nan)


def test_steps_of_which_none_can_be_simulated_are_passed_over(problem: Problem) -> None:
    space = ParameterSpace(PRESET, ["page_read_ns"], ["bench"])
    half = HalfPossible(space, problem.points, [], ENGINE)
    timing = calibrate_timing(half, Settings(), CalibrationFolder(None, {}))
    assert 0.4 < timing.cube[0] < 0.5


@pytest.mark.slow
def test_a_dask_cluster_finds_the_same_to_the_bit(problem: Problem, two_workers: str) -> None:
    settings = Settings(rounds=1, designs=8)
    here = calibrate_timing(problem, settings, CalibrationFolder(None, {}))
    told: list[tuple[int, int]] = []
    with open_pool(dask=two_workers) as pool:
        there = calibrate_timing(
            problem,
            settings,
            CalibrationFolder(None, {}),
            pool=pool,
            watch=lambda *said: told.append(said),
        )
        assert np.array_equal(here.cube, there.cube)
        assert np.array_equal(here.estimate.outputs, there.estimate.outputs)
        assert np.array_equal(here.posterior.draws, there.posterior.draws)
        points = problem.points[:3]
        rows = judge(there, points, [], ENGINE, pool=pool).rows
    assert rows == judge(here, points, [], ENGINE).rows
    assert [done for done, _ in told[:-1]] == list(range(1, len(told)))
    assert told[-1][0] == told[-1][1]


def test_the_state_of_another_calibration_is_refused(tmp_path: Path) -> None:
    CalibrationFolder(tmp_path, {"plan": 1})
    with pytest.raises(InputError, match="another calibration"):
        CalibrationFolder(tmp_path, {"plan": 2})


def test_too_few_points_are_refused_with_what_to_measure() -> None:
    points, _ = points_and_series(measured(HIDDEN, (4096,), (1, 8)), [False, False])
    space = ParameterSpace(PRESET, list(TRUTH), ["bench"])
    with pytest.raises(InputError, match="measure at least"):
        Problem(space, points, [], ENGINE)


def test_an_unknown_parameter_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"page_raed_ns.*page_read_ns"):
        ParameterSpace(PRESET, ["page_raed_ns"], ["bench"])


def test_hosts_have_costs_of_their_own_and_the_drive_is_shared() -> None:
    space = ParameterSpace(PRESET, ["page_read_ns", "request_cost"], ["a", "b"])
    assert space.names == ["page_read_ns", "request_cost (a)", "request_cost (b)"]
    cube = np.array([0.5, 0.0, 1.0])
    (drive_a, cost_a), (drive_b, cost_b) = space.drive(cube, "a"), space.drive(cube, "b")
    assert drive_a == drive_b
    assert (cost_a, cost_b) == (0.3, 2.0)
