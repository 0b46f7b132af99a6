"""Calibrates a drive on measurements; simulated designs are stored, so that a run resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.model.evaluate.bands import Floats
from iojoule.sim.calibration.history_matching import (
    Matched,
    Posterior,
    Simulate,
    Target,
    Wave,
    gaussian_log_likelihood,
    match,
    place_of,
    sample_posterior,
    spread,
)
from iojoule.sim.calibration.observations import REPEAT_SD, Point, Series, hosts_of
from iojoule.sim.calibration.parameters import ParameterSpace
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

SCHEMA_VERSION = 1


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

    def read(self, cube: Floats) -> Floats | None:
        """The outputs at a point of the cube, or None where it was not simulated yet."""
        if self.path is None:
            return None
        try:
            told = json.loads((self.path / _name(cube)).read_bytes())
            return np.array(told["outputs"], dtype=float)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # half a file of another program's making: simulated once more

    def write(self, cube: Floats, outputs: Floats) -> None:
        """Keep the outputs of a point of the cube.

        Raises:
            InputError: The disk is full or the folder cannot be written.
        """
        if self.path is not None:
            said = {"cube": cube.tolist(), "outputs": outputs.tolist()}
            _write(self.path / _name(cube), json.dumps(said))


def _name(cube: Floats) -> str:
    return f"run-{hashlib.sha256(np.ascontiguousarray(cube).tobytes()).hexdigest()[:20]}.json"


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

FINALISTS = 12
"""Likely points of the posterior that are simulated to choose the final estimate among them."""


@dataclass(frozen=True)
class Settings:
    """How to calibrate.

    Attributes:
        waves: Of history matching.
        designs: Simulated a wave; None takes eight for each parameter.
        seed: Of everything that is drawn.
        folder: Keeps what was simulated; None keeps nothing.
    """

    waves: int = 3
    designs: int | None = None
    seed: int = 0
    folder: Path | None = None


@dataclass(frozen=True)
class Timing:
    """The calibrated timing.

    Attributes:
        space: The parameters.
        cube: The estimate as a point of the unit cube.
        posterior: How well it is known.
        matched: What history matching found.
    """

    space: ParameterSpace
    cube: Floats
    posterior: Posterior
    matched: Matched


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

    def outputs(self, cube: Floats) -> Floats:
        """Simulate one design; NaN where the drive cannot be simulated there."""
        try:
            told = [run_point(self.space, cube, each, self.engine).log_iops for each in self.points]
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
            chosen_places = spread(places, ALIKE_POINTS, 0)
            kept += [
                each for each, place in zip(same, places, strict=True) if place[0] in chosen_places
            ]
        else:
            kept += same
    return kept


def calibrate_timing(
    problem: Problem,
    settings: Settings,
    folder: CalibrationFolder,
    *,
    pool: Pool = HERE,
    told: Callable[[Wave], None] | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Timing:
    """Find the timing parameters.

    Args:
        problem: What is fitted.
        settings: How.
        folder: Keeps what was simulated.
        pool: Where designs are simulated.
        told: Called after each wave.
        watch: Told of designs done and of all that there will be.

    Raises:
        InputError: No design could be simulated.
    """
    space = problem.space
    designs = settings.designs or max(24, 8 * len(space))
    total = settings.waves * designs + FINALISTS
    simulate = simulator(problem, pool, folder, watch, total)
    matched = match(
        problem.target,
        simulate,
        space.start(),
        waves=settings.waves,
        designs=designs,
        seed=settings.seed,
        told=told,
    )
    posterior = sample_posterior(problem.target, matched, settings.seed)
    finalists = np.concatenate(
        [posterior.mean[None, :], spread(posterior.draws, FINALISTS - 1, settings.seed)]
    )
    outputs = simulate(finalists)
    usable = np.isfinite(outputs).all(axis=1)
    cubes = np.concatenate([finalists[usable], matched.cubes])
    made = np.concatenate([outputs[usable], matched.outputs])
    logs = gaussian_log_likelihood(
        problem.target, made, np.zeros((1, made.shape[1])), matched.discrepancy_sd
    )
    return Timing(space, cubes[int(np.argmax(logs))], posterior, matched)


def simulator(
    problem: Problem,
    pool: Pool,
    folder: CalibrationFolder,
    watch: Callable[[int, int], None] | None,
    total: int,
) -> Simulate:
    """Runs designs in a pool, and those that the folder holds not at all."""
    before = 0

    def simulate(cubes: Floats) -> Floats:
        nonlocal before
        outputs = [folder.read(cube) for cube in cubes]
        missing = [
            place
            for place, kept in enumerate(outputs)
            if kept is None or len(kept) != len(problem.target.measured)
        ]
        known = before + len(cubes) - len(missing)
        done = 0

        def keep(index: int, made: Floats) -> None:
            nonlocal done
            done += 1
            folder.write(cubes[missing[index]], made)
            if watch is not None:
                watch(known + done, total)

        made = pool.map(_outputs, [cubes[place] for place in missing], shared=problem, done=keep)
        for place, one in zip(missing, made, strict=True):
            outputs[place] = one
        before += len(cubes)
        found = np.array(outputs)
        if not np.isfinite(found).all(axis=1).any():
            raise InputError(
                "no choice of parameters could be simulated; try the drive and one measurement "
                "with `iojoule sim against` to see why"
            )
        return found

    return simulate


def _outputs(problem: Problem, cube: Floats) -> Floats:
    return problem.outputs(cube)
