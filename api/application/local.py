"""Computes requests in this process, or with processes that it starts or reaches."""
# ruff: noqa: D102 - `Backend` and `FlatPredictions` describe the methods

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from iojoule.api.application.backend import Backend, Calibration, Excluded, Watch

if TYPE_CHECKING:
    from iojoule.api.application.devices import DeviceDetail, DeviceSummary
    from iojoule.api.application.fields import FieldTable
    from iojoule.api.application.fleet import FrontierAnswer
    from iojoule.api.application.predict import Answers
    from iojoule.api.application.recommend import RecommendationAnswer
    from iojoule.api.application.simulate import Plan as Runs
    from iojoule.api.application.what_if_response import WhatIfAnswer
    from iojoule.api.jobs.calibration_request import CalibrationRequest
    from iojoule.datasets.profile import DeviceProfile, SourceRecord
    from iojoule.datasets.schema import AskedConditions
    from iojoule.recommender.fleet.document import Aim, Fleet
    from iojoule.recommender.fleet.plan import Plan
    from iojoule.recommender.request import WorkloadProfile
    from iojoule.sim.engines import RunOptions
    from iojoule.sim.result import ScenarioResult
    from iojoule.sim.sweep import LeftOut
    from iojoule.sim.workers import Pool
    from iojoule.sim.workers.checkpoint import Kept

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Resources:
    """Where long computations run, and where their results are stored.

    Attributes:
        jobs: Processes of this machine; None: as many as the computation takes by default.
        dask: Address of a Dask scheduler whose workers compute instead.
        state: Folder of results, from which an interrupted computation goes on; with `dask` there
            is one by default, until everything is done.
        part: Tells this part of a computation from those that others compute for the same folder.
    """

    jobs: int | None = None
    dask: str | None = None
    state: Path | None = None
    part: str = ""

    def pool(self, default: int) -> AbstractContextManager[Pool]:
        """What computes, with so many processes by default."""
        from iojoule.sim.workers import open_pool

        return open_pool(self.jobs or default, dask=self.dask)

    @property
    def stores(self) -> bool:
        """Whether results are stored: in a folder that was named, or for workers elsewhere."""
        return self.state is not None or self.dask is not None

    def folder(self, *request: Any) -> Path | None:
        """Where the results of a request are stored; None: nowhere."""
        if self.state is None and self.dask is not None:
            from iojoule.api.state.place import state_folder
            from iojoule.sim.workers.checkpoint import key_of

            return state_folder() / "results" / key_of(*request)
        return self.state

    @contextmanager
    def results(self, kind: type[M], keys: Sequence[str]) -> Iterator[Kept[M] | None]:
        """Stores results of these keys; a folder by default is deleted when all are there."""
        from iojoule.sim.workers.checkpoint import Kept

        folder = self.folder(*keys)
        if folder is None:
            yield None
            return
        results = Kept(folder, kind, self.part)
        complete = False
        try:
            yield results
            complete = True
        finally:
            results.close(delete=complete and self.state is None)


@dataclass(frozen=True)
class LocalBackend(Backend):
    """Computes requests here.

    Attributes:
        chosen: Profile of the drive, for requests about one drive.
        profiles: Files of profiles of a fleet's drives, instead of those that ship.
        resources: Where long computations run.
        gaps: Whether predictions include what gaps and writes leave behind.
        engine: Which simulator.
        options: Limits of simulations; None: the usual ones.
        device_id: Device model of calibrated measurements that do not name it.
    """

    chosen: DeviceProfile | None = None
    profiles: Sequence[Path] = ()
    resources: Resources = field(default_factory=Resources)
    gaps: bool = False
    engine: str = "embedded"
    options: RunOptions | None = None
    device_id: str | None = None

    @property
    def profile(self) -> DeviceProfile:
        """Of the drive that requests are about."""
        assert self.chosen is not None, "requests about one drive need its profile"
        return self.chosen

    def recommend(
        self,
        workload: WorkloadProfile,
        conditions: AskedConditions,
        settings: str | None = None,
    ) -> RecommendationAnswer:
        from iojoule.api.application.recommend import answer
        from iojoule.recommender.recommend import Recommender

        return answer(Recommender.under(self.profile, conditions), workload, settings)

    def predict(self, table: FieldTable, conditions: AskedConditions) -> Answers:
        from iojoule.api.application.predict import ask
        from iojoule.api.application.predictors import Predictors

        predictors = Predictors(self.profile, conditions)
        return ask(
            predictors,
            table.names,
            table.rows,
            where=table.where,
            place=table.place,
            gaps=self.gaps,
        )

    def what_if(
        self,
        workload: WorkloadProfile,
        changes: Mapping[str, Any],
        *,
        drives: int,
        conditions: AskedConditions,
        watch: Watch | None = None,
    ) -> WhatIfAnswer:
        from iojoule.api.application.what_if import what_if
        from iojoule.recommender.what_if.situation import Situation

        base = Situation(self.profile, workload, drives=drives, conditions=conditions)
        return what_if(base, changes)

    def fleet_plans(self, fleet: Fleet, aim: Aim, gap: float) -> Sequence[Plan]:
        from iojoule.api.application.fleet import profiles_for
        from iojoule.recommender.fleet.planner import Planner

        return Planner(fleet, profiles_for(fleet, self.profiles)).plans(aim, gap=gap)

    def fleet_frontier(
        self,
        fleet: Fleet,
        *,
        points: int,
        least_watts: float | None,
        most_watts: float | None,
        gap: float,
        watch: Watch | None = None,
    ) -> FrontierAnswer:
        from iojoule.api.application.fleet import FrontierAnswer, profiles_for
        from iojoule.recommender.fleet.plan import Tried
        from iojoule.recommender.fleet.planner import Planner

        planner = Planner(fleet, profiles_for(fleet, self.profiles))
        budgets = planner.budgets_between(least_watts, most_watts, points)
        keys = planner.frontier_keys(budgets, gap)
        count = 0

        def done(place: int, result: object) -> None:
            nonlocal count
            count += 1
            if watch is not None:
                watch("budgets", count, len(budgets))

        with self.resources.pool(1) as pool, self.resources.results(Tried, keys) as kept:
            curve = planner.frontier(budgets, gap=gap, pool=pool, kept=kept, done=done)
        return FrontierAnswer(fleet=fleet.name, points=curve)

    def devices(self) -> Sequence[DeviceSummary]:
        from iojoule.api.application.devices import list_devices

        return list_devices()

    def device(self, name: str) -> DeviceDetail:
        from iojoule.api.application.devices import show_device

        return show_device(name)

    def sources(self, devices: Iterable[str]) -> list[SourceRecord]:
        from iojoule.api.application.profiles import profile_in, profile_of

        if self.chosen is not None:
            return self.chosen.sources
        given = {profile.device: profile for profile in map(profile_in, self.profiles)}
        return [one for name in devices for one in (given.get(name) or profile_of(name)).sources]

    def simulate(
        self, runs: Runs, watch: Watch | None = None
    ) -> Sequence[ScenarioResult | LeftOut]:
        from iojoule.sim.engines import RunOptions, engine
        from iojoule.sim.result import EngineName, ScenarioResult
        from iojoule.sim.sweep import job_keys, run_designs
        from iojoule.sim.workers import cores

        simulator, options = engine(EngineName(self.engine)), self.options or RunOptions()
        # a key takes the hash of all sources, which is longer than many a simulation
        keys = job_keys(runs.jobs, simulator, options) if self.resources.stores else []
        with (
            self.resources.pool(1 if runs.one_configuration else cores()) as pool,
            self.resources.results(ScenarioResult, keys) as kept,
        ):
            return run_designs(
                runs.jobs,
                simulator,
                pool=pool,
                options=options,
                kept=kept,
                watch=None if watch is None else shares(watch, "simulating", len(runs.jobs)),
            )

    def calibrate(
        self, datasets: Sequence[Path], request: CalibrationRequest, watch: Watch | None = None
    ) -> Calibration:
        from iojoule.api.application.calibrate import Wishes, calibrate_datasets
        from iojoule.api.application.simulate import drive_of
        from iojoule.sim.calibration.calibrate import Settings
        from iojoule.sim.calibration.judge import parse_hold_out
        from iojoule.sim.errors import WorkersLostError
        from iojoule.sim.result import EngineName
        from iojoule.sim.workers import cores

        drive = drive_of(request.drive, request.set)
        places = [str(path.resolve()) for path in datasets]
        folder = self.resources.folder(places, self.engine, request.model_dump())
        wishes = Wishes(
            engine=EngineName(self.engine),
            hold_out=[parse_hold_out(text) for text in request.hold_out],
            parameters=request.parameters,
            settings=Settings(rounds=request.rounds, designs=request.designs, folder=folder),
            tables=request.tables,
        )
        with self.resources.pool(cores()) as pool:
            try:
                result = calibrate_datasets(
                    datasets, drive, request.drive, self.device_id, wishes, pool=pool, watch=watch
                )
            except WorkersLostError as error:
                if folder is None:
                    raise
                raise WorkersLostError(
                    f"{error.message}; simulated designs are stored in {folder}, from where the "
                    "same command goes on"
                ) from None
        if folder is not None and self.resources.state is None:
            rmtree(folder)
        excluded = [Excluded(each.what, each.reason) for each in result.excluded]
        return Calibration(result.profile, result.notes, excluded)


def shares(watch: Watch, stage: str, runs: int) -> Any:
    """Tells a watch how much of all runs is done, from the share of each run."""
    done = [0.0] * runs

    def run_share(run: int, share: float) -> None:
        done[run] = max(done[run], share)
        watch(stage, sum(done), runs)

    return run_share
