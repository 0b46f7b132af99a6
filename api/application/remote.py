"""Has a service compute requests, and gives back what this process would have computed."""
# ruff: noqa: D102 - `Backend` and `FlatPredictions` describe the methods

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iojoule.api.application.backend import Backend, Calibration, Excluded, Watch
from iojoule.datasets.errors import InputError, IojouleError
from iojoule.datasets.vocabulary import number_of

if TYPE_CHECKING:
    from iojoule.api.application.devices import DeviceDetail, DeviceSummary
    from iojoule.api.application.fields import FieldTable
    from iojoule.api.application.fleet import FrontierAnswer
    from iojoule.api.application.recommend import RecommendationAnswer
    from iojoule.api.application.simulate import Plan as Runs
    from iojoule.api.application.what_if_response import WhatIfAnswer
    from iojoule.api.client import Client
    from iojoule.api.http.schemas import JobStatus
    from iojoule.api.jobs.calibration_request import CalibrationRequest
    from iojoule.datasets.profile import SourceRecord
    from iojoule.datasets.schema import AskedConditions
    from iojoule.recommender.fleet.document import Aim, Fleet
    from iojoule.recommender.fleet.plan import Plan
    from iojoule.recommender.request import WorkloadProfile
    from iojoule.sim.result import ScenarioResult
    from iojoule.sim.sweep import Axis, LeftOut


@dataclass(frozen=True)
class RemotePredictions:
    """Predictions of a service; attributes and methods as `backend.FlatPredictions`."""

    columns: tuple[str, ...]
    response: dict[str, Any]
    without_effect: Sequence[str]
    model_name: str
    cpu_host: str | None
    quantities: tuple[str, ...]
    answered: tuple[str, ...]

    @property
    def device(self) -> str:
        return str(self.response["device"])

    @property
    def profile_version(self) -> str:
        return str(self.response["profile_version"])

    @property
    def defaults_used(self) -> Mapping[str, Any]:
        return dict(self.response["defaults_used"])

    @property
    def evidence(self) -> Sequence[str]:
        return [row["evidence"] for row in self.response["predictions"]]

    def values(self) -> list[list[float | None]]:
        rows = self.response["predictions"]
        return [[number_of(row[name]) for row in rows] for name in self.answered]

    def records(self) -> Iterator[dict[str, Any]]:
        names = (*self.columns, *self.answered, "evidence", "evidence_by_quantity")
        for row in self.response["predictions"]:
            yield {name: row[name] for name in names}

    def document(self) -> dict[str, Any]:
        return {
            **self.response,
            "without_effect": self.without_effect,
            "predictions": list(self.records()),
        }


@dataclass(frozen=True)
class RemoteBackend(Backend):
    """Has a service compute requests.

    Attributes:
        client: Of the service.
        drive: Device model, for requests about one drive.
        note: Told of what the service stores or goes on with.
    """

    client: Client
    drive: str = ""
    note: Callable[[str], None] = lambda text: None

    def recommend(
        self,
        workload: WorkloadProfile,
        conditions: AskedConditions,
        settings: str | None = None,
    ) -> RecommendationAnswer:
        return self.client.recommend(self.drive, workload, conditions=conditions, settings=settings)

    def predict(self, table: FieldTable, conditions: AskedConditions) -> RemotePredictions:
        from iojoule.api.application.fields import check_names, field_value
        from iojoule.api.http.computed_schemas import ROWS_MAX
        from iojoule.model.evaluate.quantities import ANSWERED, QUANTITIES

        check_names(table.names, table.place, (*ANSWERED, "evidence"))
        common = conditions.model_dump(mode="json", exclude_none=True)
        value = cache(field_value)
        rows = []
        for number, row in enumerate(table.rows):
            cells = {name: cell.strip() for name, cell in zip(table.names, row, strict=True)}
            stated = {
                name: value(name, cell, table.where(number)) for name, cell in cells.items() if cell
            }
            rows.append({**common, **stated})
        response: dict[str, Any] = {}
        for start in range(0, len(rows), ROWS_MAX):
            try:
                part = self.client.predict(self.drive, rows[start : start + ROWS_MAX])
            except InputError as error:
                raise _placed(error, start, table) from None
            _join(response, part.model_dump(mode="json"))
        known = self.client.device(self.drive)
        power = known.profile is not None and known.profile.cpu_power
        return RemotePredictions(
            columns=tuple(table.names),
            response=response,
            without_effect=[name for name in table.names if name in response["without_effect"]],
            model_name=known.model,
            cpu_host="the service's reference host" if power else None,
            quantities=QUANTITIES,
            answered=ANSWERED,
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
        return self.client.what_if(
            self.drive,
            workload,
            changes,
            drives=drives,
            conditions=conditions,
            watch=_job_watch(watch, "what if", 0, 1),
        )

    def fleet_plans(self, fleet: Fleet, aim: Aim, gap: float) -> Sequence[Plan]:
        return self.client.fleet_plan(fleet, aim=aim, gap=gap).plans

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
        return self.client.fleet_frontier(
            fleet, points=points, least_watts=least_watts, most_watts=most_watts, gap=gap
        )

    def devices(self) -> Sequence[DeviceSummary]:
        return self.client.devices().devices

    def device(self, name: str) -> DeviceDetail:
        return self.client.device(name)

    def sources(self, devices: Iterable[str]) -> list[SourceRecord]:
        profiles = [self.client.device(name).profile for name in devices]
        return [one for profile in profiles if profile is not None for one in profile.sources]

    def simulate(
        self, runs: Runs, watch: Watch | None = None
    ) -> Sequence[ScenarioResult | LeftOut]:
        """A job for each scenario of a drive, in which values vary; the plan's runs of them."""
        from iojoule.api.jobs.simulation_request import RUNS_MAX, SimulationRequest

        fixed = {axis.field: axis.values[0] for axis in runs.axes if len(axis.values) == 1}
        varied = [axis for axis in runs.axes if axis.field not in fixed]
        if (count := prod(len(axis.values) for axis in varied)) > RUNS_MAX:
            raise InputError(
                f"{count} combinations are more than a service runs in a job ({RUNS_MAX}); vary "
                "less, or leave out --server"
            )
        vary = {axis.field: list(axis.values) for axis in varied}
        groups = [
            [
                self.client.simulate(
                    SimulationRequest(drive=drive, set=fixed, scenario=scenario, vary=vary)
                )
                for scenario in scenarios
            ]
            for drive in runs.drives
            for scenarios in runs.scenarios
        ]
        self.wait([job for group in groups for job in group], "simulating", watch)
        told = (
            result
            for group in groups
            for of_scenarios in zip(*(self._designs(job, varied) for job in group), strict=True)
            for result in of_scenarios
        )
        planned = {job.run for job in runs.jobs}
        return [result for place, result in enumerate(told, start=1) if place in planned]

    def _designs(self, job: JobStatus, axes: Sequence[Axis]) -> list[ScenarioResult | LeftOut]:
        """What came of each combination of varied values."""
        from iojoule.sim.result import ScenarioResult
        from iojoule.sim.sweep import LeftOut, combinations

        told = self.client.result(job)
        rows = [*told["scenarios"], *told.get("left_out", ())]
        by_values = {json.dumps(row.pop("varied", {})): row for row in rows}
        found: list[ScenarioResult | LeftOut] = []
        for values in combinations(axes):
            row = by_values[json.dumps(values)]
            row.pop("ssd")
            lost = "reason" in row
            found.append(LeftOut(row["reason"]) if lost else ScenarioResult.model_validate(row))
        return found

    def calibrate(
        self, datasets: Sequence[Path], request: CalibrationRequest, watch: Watch | None = None
    ) -> Calibration:
        """Uploads files and folders of datasets; ids are those of datasets of the service."""
        from iojoule.api.state.ids import is_id

        ids = []
        for path in datasets:
            if is_id(str(path)) and not path.exists():
                ids.append(str(path))
                continue
            for file in _files(path):
                dataset = self.client.upload(file, device=self.drive)
                self.note(f"{file}: uploaded as dataset {dataset.id}")
                ids.append(dataset.id)
        job = self.client.calibrate(self.drive, request.model_copy(update={"datasets": ids}))
        self.note(f"job {job.id}")
        self.wait([job], "calibrating", watch)
        result = self.client.result(job)
        version = next(one for one in self.client.profiles(self.drive) if one.job_id == job.id)
        self.note(
            f"{self.client.server} answers for {result['device']} with version {version.version} "
            "from now on; `iojoule profile use` takes that back"
        )
        return Calibration(
            profile=self.client.profile(self.drive, version.version),
            notes=result["notes"],
            excluded=[Excluded(one["what"], one["reason"]) for one in result["excluded"]],
        )

    def wait(self, jobs: Sequence[JobStatus], stage: str, watch: Watch | None = None) -> None:
        """Wait until jobs are done, one after the other.

        Raises:
            IojouleError: One failed, with its error, or was cancelled.
        """
        place = 0
        try:
            for place, job in enumerate(jobs):
                self.client.wait(job, watch=_job_watch(watch, stage, place, len(jobs)))
        except KeyboardInterrupt:
            for job in jobs[place:]:
                self.note(f"{self.client.server} goes on: `iojoule jobs follow|cancel {job.id}`")
            raise


def _job_watch(
    watch: Watch | None, stage: str, place: int, jobs: int
) -> Callable[[JobStatus], None] | None:
    """Tells a watch of one job among several."""
    if watch is None:
        return None

    def changed(job: JobStatus) -> None:
        state = job.stage if job.state == "running" and job.stage else job.state
        watch(f"{stage}: {state}", place + job.progress, jobs)

    return changed


def _join(response: dict[str, Any], part: dict[str, Any]) -> None:
    """Add a part of the rows to the response."""
    if not response:
        response |= part
        return
    response["predictions"] += part["predictions"]
    response["defaults_used"] |= part["defaults_used"]
    response["without_effect"] = [
        name for name in response["without_effect"] if name in part["without_effect"]
    ]


def _placed(error: InputError, start: int, table: FieldTable) -> IojouleError:
    """The same error with the row of the table, instead of its place in the request's body."""
    place, _, text = error.message.partition(": ")
    # a body that is not valid is told as /configurations/3/FIELD, other rows as configurations[3]
    kind, row, field = [*place.strip("/]").replace("[", "/").split("/"), "", ""][:3]
    if kind != "configurations" or not row.isdigit():
        return error
    named = f"{field}: " if field else ""
    again = type(error)(f"{table.where(start + int(row))}: {named}{text}", field=error.field)
    again.pointer, again.request_id = error.pointer, error.request_id
    return again


def _files(path: Path) -> Iterator[Path]:
    """The files of measurements at a path: itself, or the datasets of a folder."""
    if not path.is_dir():
        yield path if path.suffix else path.with_suffix(".parquet")
        return
    files = sorted(path.glob("*.parquet"))
    if not files:
        raise InputError(f"{path}: holds no dataset (.parquet); name a folder that does")
    yield from files
