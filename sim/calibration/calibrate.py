"""Calibrates a drive on measurements; simulated designs are stored, so that a run resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import json_of
from iojoule.model.evaluate.bands import Floats
from iojoule.sim.calibration.estimate import (
    REACHES,
    STEPS,
    Estimate,
    Fit,
    Posterior,
    Target,
    posterior,
    search,
)
from iojoule.sim.calibration.observations import REPEAT_SD, Point, Series, hosts_of
from iojoule.sim.calibration.parameters import ParameterSpace
from iojoule.sim.calibration.residual import place_of
from iojoule.sim.calibration.runs import (
    OBSERVATION_SD,
    Marks,
    measured_marks,
    run_point,
    run_series,
    simulated_marks,
)
from iojoule.sim.engines import Engine
from iojoule.sim.errors import ConfigError, LimitError, ModelError
from iojoule.sim.findings import RefusedError
from iojoule.sim.workers import Pool
from iojoule.sim.workers.local import HERE

SCHEMA_VERSION = 2


class CalibrationFolder:
    """Simulated designs by the hash of their parameters, one JSON file each.

    Args:
        path: The folder; None keeps nothing.
        plan: What is calibrated on what; another plan may not go on in the same folder.

    Raises:
        InputError: The folder holds another calibration, or cannot be written.
    """

    def __init__(self, path: Path | None, plan: dict[str, Any]) -> None:
        self.path = path
        if path is None:
            return
        text = json.dumps({"schema_version": SCHEMA_VERSION, **plan}, indent=1, sort_keys=True)
        kept = path / "plan.json"
        try:
            path.mkdir(parents=True, exist_ok=True)
            if kept.is_file() and kept.read_text(encoding="utf-8") != text:
                raise InputError(
                    f"{path}: holds the state of another calibration (other measurements, drive, "
                    "parameters or version); name another folder, or delete it to begin again"
                )
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be used ({error}); name another folder") from None
        if not kept.is_file():
            _write(kept, text)

    def read(self, cube: Floats, *, brief: bool) -> Floats | None:
        """The outputs at a point of the cube, or None where it was not simulated yet."""
        if self.path is None:
            return None
        try:
            told = json_of((self.path / _name(cube, brief)).read_bytes())
            return np.array(told["outputs"], dtype=float)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # half a file of another program's making: simulated once more

    def write(self, cube: Floats, outputs: Floats, *, brief: bool) -> None:
        """Keep the outputs of a point of the cube.

        Raises:
            InputError: The disk is full or the folder cannot be written.
        """
        if self.path is not None:
            said = {"cube": cube.tolist(), "outputs": outputs.tolist()}
            _write(self.path / _name(cube, brief), json.dumps(said))


def _name(cube: Floats, brief: bool) -> str:
    hashed = hashlib.sha256(np.ascontiguousarray(cube).tobytes()).hexdigest()[:20]
    return f"run-{hashed}{'-brief' if brief else ''}.json"


def _write(path: Path, text: str) -> None:
    try:
        write_text_atomically(path, text)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}); make room and run the same command "
            "again: what was simulated is kept"
        ) from None


LEAST_POINTS = 8
"""With fewer points, however few parameters, nothing is calibrated."""

ALIKE_POINTS = 20
"""Of points that differ in size alone the fit takes so many, evenly over log size."""

FINALISTS = 3
"""Designs at the end that are simulated as long as points are compared."""

LAST_REACH = 0.1
"""How far the last step may go: it corrects for what short runs see otherwise than long ones."""


@dataclass(frozen=True)
class Settings:
    """How to calibrate.

    Attributes:
        rounds: Of Gauss-Newton steps; each measures the slopes anew.
        designs: Spread over the ranges at first, the drive as it is among them.
        seed: Of everything that is drawn.
        folder: Keeps what was simulated; None keeps nothing.
    """

    rounds: int = 2
    designs: int = 12
    seed: int = 0
    folder: Path | None = None


@dataclass(frozen=True)
class Timing:
    """The calibrated timing.

    Attributes:
        space: The parameters.
        estimate: The best design.
        posterior: How well it is known.
    """

    space: ParameterSpace
    estimate: Estimate
    posterior: Posterior

    @property
    def cube(self) -> Floats:
        """The estimate as a point of the unit cube."""
        return self.estimate.cube


class Problem:
    """What is fitted to what: the points and series of the fit, and their targets.

    Args:
        space: The parameters.
        points: All points; those held out are left out here.
        series: All series, likewise.
        engine: Simulates.

    Raises:
        InputError: There are too few points for the parameters; says what to measure.
    """

    def __init__(
        self,
        space: ParameterSpace,
        points: Sequence[Point],
        series: Sequence[Series],
        engine: Engine,
    ) -> None:
        self.space, self.engine = space, engine
        self.hosts = hosts_of(points, series)
        self.points = thinned([each for each in points if not each.held_out])
        self.series: list[tuple[Series, Marks]] = []
        for each in series:
            marks = measured_marks(each)
            if not np.isnan(marks.cliff):
                self.series.append((each, marks))
        outputs = len(self.points) + sum(len(marks.logs()) for _, marks in self.series)
        if outputs < max(LEAST_POINTS, len(space)):
            raise InputError(
                f"{outputs} points are too few to calibrate {len(space)} parameters; measure at "
                "least reads of three sizes at four depths, or fit fewer parameters"
            )
        self.target = self._target()

    def _target(self) -> Target:
        measured = [np.log(each.iops) for each in self.points]
        deviations = [REPEAT_SD] * len(self.points)
        groups = [*self.hosts, "series"]
        features = [place_of(each.features(), each.host, groups) for each in self.points]
        for index, (_, marks) in enumerate(self.series):
            logs = marks.logs()
            measured += logs
            deviations += [OBSERVATION_SD] * len(logs)
            features += [
                place_of([100.0 * (index + 1), 10.0 * mark, 0.0], "series", groups)
                for mark in range(len(logs))
            ]
        return Target(np.array(measured), np.array(deviations), np.array(features))

    def outputs(self, cube: Floats, *, brief: bool = False) -> Floats:
        """Simulate one design; NaN where the drive cannot be simulated there.

        Args:
            cube: The design.
            brief: Whether points run only as long as a search needs.
        """
        try:
            told = [
                run_point(self.space, cube, each, self.engine, brief=brief).log_iops
                for each in self.points
            ]
            for series, marks in self.series:
                course = run_series(self.space, cube, series, self.engine)
                told += simulated_marks(course, marks, series).logs()
        except (ConfigError, LimitError, ModelError, RefusedError):
            return np.full(len(self.target.measured), np.nan)
        return np.array(told)


def thinned(points: Sequence[Point]) -> list[Point]:
    """Of points that differ in size alone, ALIKE_POINTS at most."""
    alike: dict[tuple[object, ...], list[Point]] = {}
    for each in points:
        asked, chosen = each.measurement.workload, each.measurement.configuration
        key = (each.host, asked.operation, asked.pattern, chosen.queue_depth, chosen.jobs)
        alike.setdefault((*key, chosen.engine, chosen.completion), []).append(each)
    kept: list[Point] = []
    for same in alike.values():
        places = np.array([[each.features()[0]] for each in same])
        if len(same) > ALIKE_POINTS:
            chosen_places = _spread(places, ALIKE_POINTS, 0)
            kept += [
                each for each, place in zip(same, places, strict=True) if place[0] in chosen_places
            ]
        else:
            kept += same
    return kept


def _spread(sample: Floats, count: int, seed: int) -> Floats:
    """`count` of the sample's points, far from each other (greedy maximin)."""
    random = np.random.default_rng(seed)
    if len(sample) <= count:
        return sample
    pool = sample[random.permutation(len(sample))[: 40 * count]]
    chosen = [0]
    distance = np.linalg.norm(pool - pool[0], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(pool - pool[chosen[-1]], axis=1))
    return pool[chosen]


def calibrate_timing(
    problem: Problem,
    settings: Settings,
    folder: CalibrationFolder,
    *,
    pool: Pool = HERE,
    watch: Callable[[int, int], None] | None = None,
) -> Timing:
    """Find the timing parameters: a search on short runs, then a last step on long ones.

    Args:
        problem: What is fitted.
        settings: How.
        folder: Keeps what was simulated.
        pool: Where designs are simulated.
        watch: Told of designs done and of how many there will be at most.

    Raises:
        InputError: No design could be simulated.
    """
    space, target, start = problem.space, problem.target, problem.space.start()
    steps = settings.rounds * len(REACHES) * STEPS
    at_most = settings.designs + steps + (settings.rounds + 1) * len(space) + FINALISTS
    simulated = _Designs(problem, pool, folder, watch, at_most)
    found = search(
        target,
        simulated.briefly,
        start,
        rounds=settings.rounds,
        designs=settings.designs,
        seed=settings.seed,
    )
    (at_length,) = simulated.at_length(found.cube[None, :])
    fit = Fit(target, start, found.discrepancy_sd)
    corrected = fit.step(found.cube, at_length, found.slopes, LAST_REACH)
    others = np.array([corrected, (corrected + found.cube) / 2])
    cubes = np.concatenate([found.cube[None, :], others])
    outputs = np.concatenate([at_length[None, :], simulated.at_length(others)])
    misfits = np.nan_to_num(fit.misfits(cubes, outputs), nan=np.inf)
    best = int(np.argmin(misfits))
    estimate = replace(found, cube=cubes[best], outputs=outputs[best])
    if watch is not None:
        watch(at_most, at_most)
    return Timing(space, estimate, posterior(fit, estimate, settings.seed))


class _Designs:
    """Runs designs in a pool, and those that the folder holds not at all."""

    def __init__(
        self,
        problem: Problem,
        pool: Pool,
        folder: CalibrationFolder,
        watch: Callable[[int, int], None] | None,
        at_most: int,
    ) -> None:
        self._problem, self._pool, self._folder = problem, pool, folder
        self._watch, self._at_most, self._done = watch, at_most, 0
        self._possible = {True: False, False: False}  # by whether runs are brief

    def briefly(self, cubes: Floats) -> Floats:
        """Outputs as a search needs them."""
        return self._run(cubes, brief=True)

    def at_length(self, cubes: Floats) -> Floats:
        """Outputs as points are compared."""
        return self._run(cubes, brief=False)

    def _run(self, cubes: Floats, *, brief: bool) -> Floats:
        outputs = [self._folder.read(cube, brief=brief) for cube in cubes]
        missing = [
            place
            for place, kept in enumerate(outputs)
            if kept is None or len(kept) != len(self._problem.target.measured)
        ]
        self._done += len(cubes) - len(missing)

        def keep(index: int, made: Floats) -> None:
            self._done += 1
            self._folder.write(cubes[missing[index]], made, brief=brief)
            if self._watch is not None:
                self._watch(self._done, self._at_most)

        made = self._pool.map(
            _outputs,
            [(cubes[place], brief) for place in missing],
            shared=self._problem,
            done=keep,
        )
        for place, one in zip(missing, made, strict=True):
            outputs[place] = one
        found = np.array(outputs)
        self._possible[brief] |= bool(np.isfinite(found).all(axis=1).any())
        if not self._possible[brief]:
            raise InputError(
                "no choice of parameters could be simulated; try the drive and one measurement "
                "with `iojoule sim against` to see why"
            )
        return found


def _outputs(problem: Problem, design: tuple[Floats, bool]) -> Floats:
    cube, brief = design
    return problem.outputs(cube, brief=brief)
