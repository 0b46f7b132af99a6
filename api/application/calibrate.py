"""Calibrates the simulator on datasets and puts what it says into the fitted profile."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import iojoule
from iojoule.api.application.fit import fit_datasets
from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.profile import DeviceProfile, path_key
from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import dataset_paths, read_dataset
from iojoule.datasets.vocabulary import Completion
from iojoule.sim.calibration.calibrate import (
    CalibrationFolder,
    Problem,
    Settings,
    Timing,
    calibrate_timing,
)
from iojoule.sim.calibration.judge import HoldOut, Judged, held_out, judge
from iojoule.sim.calibration.observations import (
    Excluded,
    Point,
    Series,
    described,
    gate,
    hosts_of,
    points_and_series,
)
from iojoule.sim.calibration.parameters import (
    COMPAT_READS,
    USUAL_COLLECTION,
    USUAL_READS,
    ParameterSpace,
    refuse_unknown_to_mqsim,
)
from iojoule.sim.calibration.section import make_section
from iojoule.sim.calibration.tables import Path as HostPath
from iojoule.sim.calibration.tables import make_tables
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import engine as engine_of
from iojoule.sim.result import EngineName, Mode
from iojoule.sim.workers import Pool
from iojoule.sim.workers.local import HERE

Watch = Callable[[str, int, int], None]
"""Told of what is done: the stage, so many of its runs, and all of them."""


@dataclass(frozen=True)
class Wishes:
    """What is asked for besides the datasets and the drive.

    Attributes:
        engine: Which simulator.
        hold_out: Measurements to leave out and to be judged by.
        parameters: Timing parameters; none takes the usual ones that the data can tell.
        settings: How long and how.
        tables: Whether to make the tables that a profile answers from.
    """

    engine: EngineName = EngineName.EMBEDDED
    hold_out: Sequence[HoldOut] = ()
    parameters: Sequence[str] = ()
    settings: Settings = field(default_factory=Settings)
    tables: bool = True


@dataclass(frozen=True)
class Calibrated:
    """The outcome.

    Attributes:
        profile: As `fit` makes it, with the section `simulated`.
        notes: What was assumed, left out or contradicts itself.
        excluded: Measurements that did not pass the gate.
    """

    profile: DeviceProfile
    notes: list[str]
    excluded: list[Excluded]
    judged: Judged
    timing: Timing


def calibrate_datasets(
    paths: Sequence[Path],
    device: DeviceConfig,
    title: str,
    name: str | None,
    wishes: Wishes,
    *,
    pool: Pool = HERE,
    watch: Watch | None = None,
) -> Calibrated:
    """Fit the profile, calibrate the drive, and join both.

    Args:
        paths: Datasets, or folders of them.
        device: The drive: its geometry stays, its timing is the start.
        title: Of the drive, for people.
        name: Catalogue id where the measurements do not name the drive.
        wishes: How.
        pool: Where it is simulated.
        watch: Told of progress.

    Raises:
        InputError: What was measured cannot be used; says why and what to measure.
    """
    if wishes.engine is EngineName.EMBEDDED and device.mode is not Mode.PHYSICAL:
        raise InputError(
            "the drive is one of compat mode, which has no host and no joules; say --ssd with a "
            "drive of physical mode, or --engine mqsim"
        )
    # one thread each: the simulations run side by side, and sums stay in one order
    with threadpool_limits(1):
        return _calibrate(paths, device, title, name, wishes, pool, watch)


def _calibrate(
    paths: Sequence[Path],
    device: DeviceConfig,
    title: str,
    name: str | None,
    wishes: Wishes,
    pool: Pool,
    watch: Watch | None,
) -> Calibrated:
    fitted = fit_datasets(paths, name)
    measurements: list[Measurement] = []
    for path in dataset_paths(paths):
        measurements += read_dataset(path).measurements()
    kept, excluded, doubts = gate(measurements)
    if not kept:
        reasons = Counter(each.reason for each in excluded).most_common(3)
        raise DataQualityError(
            "no measurement can be used: " + "; ".join(f"{n} x {why}" for why, n in reasons)
        )
    usable = [measurements[index] for index in kept]
    out = held_out(usable, wishes.hold_out)
    points, series = points_and_series(usable, out)
    if wishes.engine is EngineName.MQSIM:
        # it knows neither how a host costs time nor how long a cache of writes lasts
        device, series = device.model_copy(update={"mode": Mode.COMPAT}), []
    space = ParameterSpace(device, _wanted(wishes, series), hosts_of(points, series))
    engine = engine_of(wishes.engine)
    problem = Problem(space, points, series, engine)
    folder = CalibrationFolder(wishes.settings.folder, _plan(problem, wishes))

    def stage(said: str) -> Callable[[int, int], None] | None:
        return None if watch is None else lambda done, of: watch(said, done, of)

    timing = calibrate_timing(problem, wishes.settings, folder, pool=pool, watch=stage("designs"))
    physical = wishes.engine is EngineName.EMBEDDED
    judged = judge(
        timing, points, series, engine, pool=pool, with_energy=physical, watch=stage("comparing")
    )
    tables = []
    if wishes.tables and physical:
        found = host_paths(points, fitted.profile)
        kinds = sorted(
            {
                (p.measurement.workload.operation, p.measurement.workload.pattern)
                for p in points
                if not p.held_out
            }
        )
        tables = make_tables(timing, judged, found, kinds, engine, pool=pool, watch=stage("tables"))
    source = f"calibrated on {len(problem.target.measured)} targets of {len(usable)} measurements"
    section = make_section(
        timing, judged, tables, excluded, engine=wishes.engine.value, drive=title, source=source
    )
    profile = fitted.profile.model_copy(update={"simulated": section})
    notes = [*fitted.notes, *doubts, *_assumed(series)]
    return Calibrated(profile, notes, excluded, judged, timing)


def _wanted(wishes: Wishes, series: Sequence[Series]) -> list[str]:
    if wishes.parameters:
        if wishes.engine is EngineName.MQSIM:
            refuse_unknown_to_mqsim(wishes.parameters)
        return list(wishes.parameters)
    if wishes.engine is EngineName.MQSIM:
        return list(COMPAT_READS)
    return [*USUAL_READS, *(USUAL_COLLECTION if series else ())]


def _assumed(series: Sequence[Series]) -> list[str]:
    if not any(each.measurement.state.fill_fraction is None for each in series):
        return []
    return [
        (
            "a series of writes does not say how full the drive was (fill_fraction): the namespace "
            "is taken to have been written over once, in order, before it"
        )
    ]


def host_paths(points: Sequence[Point], profile: DeviceProfile) -> list[HostPath]:
    """The ways from host to drive that were measured; of several hosts the one measured most."""
    found: dict[str, Counter[str]] = {}
    examples: dict[tuple[str, str], Point] = {}
    defaults = profile.defaults
    for each in points:
        chosen = each.measurement.configuration
        engine = chosen.engine.value if chosen.engine else str(defaults["engine"])
        polled = Completion.POLLED.value if engine == "spdk" else str(defaults["completion"])
        completion = chosen.completion.value if chosen.completion else polled
        key = path_key(engine, completion, bool(chosen.submission_polling), "none")
        found.setdefault(key, Counter())[each.host] += 1
        examples.setdefault((key, each.host), each)
    paths = []
    for key, of_hosts in found.items():
        host = of_hosts.most_common(1)[0][0]
        example = examples[key, host].measurement
        engine_said = example.configuration.engine
        paths.append(HostPath(key, host, engine_said.value if engine_said else None, example))
    return paths


def _plan(problem: Problem, wishes: Wishes) -> dict[str, Any]:
    """What a folder of state belongs to."""
    target = problem.target
    measured = json.dumps(
        [target.measured.tolist(), [described(each.measurement) for each in problem.points]]
    )
    drive = problem.space.device.model_dump_json()
    return {
        "iojoule": iojoule.__version__,
        "engine": wishes.engine.value,
        "parameters": [[p.name, p.low, p.high] for p in problem.space.parameters],
        "drive": hashlib.sha256(drive.encode()).hexdigest(),
        "measurements": hashlib.sha256(measured.encode()).hexdigest(),
    }
