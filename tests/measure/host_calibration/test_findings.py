"""What a calibration concludes from readings of a known host."""

from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.profile import HostProfile
from iojoule.datasets.vocabulary import Engine, Evidence
from iojoule.measure.errors import SensorError
from iojoule.measure.host.facts import HostControls, host_facts
from iojoule.measure.host_calibration.host_profile import (
    CalibrationResults,
    LoadReading,
    host_profile,
)
from iojoule.measure.host_calibration.loads import Load, LoadResult
from iojoule.model.evaluate import host_power, system_power
from iojoule.model.evaluate.host_work import load_of
from tests.measure.host_calibration.known_host import Truth

TRUTH = Truth(dram_watts=0.0)
LOADS = [0.0, 0.0, 0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0]


def readings(*, packages: bool, wall: bool) -> list[LoadReading]:
    found = []
    for busy in LOADS:
        cpus = int(np.ceil(busy))
        load = Load("burn" if busy else "idle", cpus, min(busy, 1.0) or 1.0)
        watts = TRUTH.cpu_watts(busy)
        found.append(
            LoadReading(
                done=LoadResult(load, 0, 10**10, own_cores=busy),
                busy_cores=busy,
                hertz=None,
                cpu_watts=(watts, 0.02) if packages else None,
                dram_watts=None,
                wall_watts=(TRUTH.wall_watts(watts), 0.1) if wall else None,
            )
        )
    return found


def concluded(rows: list[LoadReading], tmp_path: Path) -> HostProfile:
    controls = HostControls(tmp_path)
    return host_profile(
        CalibrationResults(host_facts(), controls, 4, rows, ["rapl"], [], "2026-01-02")
    )


def test_packages_alone_give_no_wall(tmp_path: Path) -> None:
    found = concluded(readings(packages=True, wall=False), tmp_path)
    assert found.system is None
    assert found.power.dram is None
    busy = np.array([0.1, 1.5, 3.0])
    value, _ = host_power.watts(found.power, load_of(busy, np.ceil(busy), np.zeros(3)))
    np.testing.assert_allclose(value, [TRUTH.cpu_watts(one) for one in busy], rtol=0.03)


def test_the_wall_alone_tells_the_rise_and_not_the_idle_part(tmp_path: Path) -> None:
    found = concluded(readings(packages=False, wall=True), tmp_path)
    assert any("from the wall alone" in gap for gap in found.gaps)
    idle, *_ = found.power.parameters
    assert idle.evidence is Evidence.DATASHEET
    assert abs(idle.value - TRUTH.idle_watts) < 1.645 * idle.sd
    # what a load adds at the wall comes out again, whatever share of idle was assumed
    assert found.system is not None
    busy = np.array([0.0, 1.0, 4.0])
    cpu, sd = host_power.watts(found.power, load_of(busy, np.ceil(busy), np.zeros(3)))
    wall, _ = system_power.watts(found.system, cpu, np.zeros(3))
    truth = [TRUTH.wall_watts(TRUTH.cpu_watts(one)) for one in busy]
    np.testing.assert_allclose(wall, truth, rtol=0.04)
    assert (sd > 3.0).all()


def test_core_time_of_an_engine_comes_from_both_depths(tmp_path: Path) -> None:
    rows = readings(packages=True, wall=False)
    for depth, each in ((1, 8e-6), (32, 3e-6)):
        load = Load("engine", 1, engine=Engine.LIBAIO, depth=depth)
        rows.append(
            LoadReading(
                LoadResult(load, 0, 10**10, 1e4 * each, 1e4, 4e7, 1e4),
                1e4 * each,
                None,
                (TRUTH.cpu_watts(1e4 * each), 0.02),
                None,
                None,
            )
        )
    found = concluded(rows, tmp_path)
    assert found.performance is not None
    (path,) = found.performance.paths
    assert path.core_time_ns + path.wakeup_ns == pytest.approx(8000)
    assert path.core_time_ns + path.wakeup_ns * 32**-0.8 == pytest.approx(3000)


def test_too_few_windows_with_power_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="--minutes"):
        concluded(readings(packages=True, wall=False)[:4], tmp_path)
    with pytest.raises(SensorError, match="--minutes"):
        concluded(readings(packages=False, wall=False), tmp_path)
