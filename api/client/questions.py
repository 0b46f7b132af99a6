"""What the service answers while one waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from iojoule.api.client.asking import named, plain

if TYPE_CHECKING:
    from pydantic import BaseModel

    from iojoule.api.application.what_if_response import WhatIfAnswer
    from iojoule.api.client.connection import Connection
    from iojoule.api.http.devices.schemas import DeviceDetail, DeviceList, Document, PowerLaw
    from iojoule.api.http.fleet.schemas import FleetAnswer, FrontierAnswer
    from iojoule.api.http.health.schemas import Health, Readiness
    from iojoule.api.http.jobs.schemas import JobStatus
    from iojoule.api.http.predict.schemas import PredictResponse
    from iojoule.api.http.recommend.schemas import RecommendationAnswer
    from iojoule.api.http.simulations.schemas import SimulatedDrives
    from iojoule.api.http.workloads.schemas import PresetList
    from iojoule.datasets.schema import Conditions
    from iojoule.recommender.fleet.document import Aim, Fleet
    from iojoule.recommender.workload import WorkloadProfile
    from iojoule.recommender.workloads.sources import SourceKind

_ACCEPTED = 202


class Questions:
    """Asks what changes nothing. Each method raises IojouleError with the service's problem.

    Models and plain mappings are taken alike; the service judges both.
    """

    _connection: Connection

    def recommend(
        self,
        device: str,
        workload_profile: WorkloadProfile | Mapping[str, Any] | str,
        *,
        conditions: Conditions | Mapping[str, Any] | None = None,
    ) -> RecommendationAnswer:
        """Which configurations to use.

        Args:
            device: Id, model or alias of the drive.
            workload_profile: The question, or the name of a preset such as `ycsb-a`.
            conditions: Of the drive, where they are known.
        """
        from iojoule.api.http.recommend.schemas import RecommendationAnswer

        body = {
            "device": device,
            "workload_profile": plain(workload_profile),
            "conditions": plain(conditions or {}),
        }
        answer = self._connection.ask("POST", "/recommend", body=body)
        return self._connection.read(answer, RecommendationAnswer)

    def predict(
        self, device: str, configurations: Iterable[BaseModel | Mapping[str, Any]]
    ) -> PredictResponse:
        """What configurations do, with 90 % intervals; one prediction each, in order.

        Args:
            device: Id, model or alias of the drive.
            configurations: Fields of workload, configuration, state and conditions side by side.
        """
        from iojoule.api.http.predict.schemas import PredictResponse

        body = {"device": device, "configurations": [plain(one) for one in configurations]}
        answer = self._connection.ask("POST", "/predict", body=body)
        return self._connection.read(answer, PredictResponse)

    def what_if(
        self,
        device: str,
        workload_profile: WorkloadProfile | Mapping[str, Any],
        changes: Mapping[str, Any],
        *,
        drives: int = 1,
        conditions: Conditions | Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        watch: Callable[[JobStatus], object] | None = None,
    ) -> WhatIfAnswer:
        """What would follow if something were otherwise.

        A drive that would be built otherwise (`geometry.*`) is simulated by a job of the service,
        which is waited for.

        Args:
            device: Id, model or alias of the drive.
            workload_profile: How things are.
            changes: Field -> new value; `iojoule what-if changes` lists the fields.
            drives: That share the load today.
            conditions: Of the drive; None: nothing is known of them.
            idempotency_key: Names this request where it becomes a job; None: a new one for each
                call.
            watch: Told of the job at each change.
        """
        from iojoule.api.application.what_if_response import WhatIfAnswer

        body = {
            "device": device, "workload_profile": plain(workload_profile), "changes": changes,
            "drives": drives, "conditions": plain(conditions or {}),
        }  # fmt: skip
        headers = named(idempotency_key)
        answer = self._connection.ask("POST", "/what-if", body=body, headers=headers)
        if answer.status_code == _ACCEPTED:
            from iojoule.api.client.following import wait
            from iojoule.api.http.jobs.schemas import JobStatus

            job = self._connection.read(answer, JobStatus)
            wait(self._connection, job.id, watch=watch)
            answer = self._connection.ask("GET", "/jobs/{id}/result", job.id)
        return self._connection.read(answer, WhatIfAnswer)

    def fleet_plan(
        self, fleet: Fleet | Mapping[str, Any], *, aim: Aim = "least_watts", gap: float = 0.001
    ) -> FleetAnswer:
        """What every drive of a fleet does under each budget, and the stages to get there.

        Args:
            fleet: Drives, power domains, classes of work, budgets.
            aim: Least watts for the demand, or most demand within the watts.
            gap: Relative gap to the best plan at which to stop.
        """
        from iojoule.api.http.fleet.schemas import FleetAnswer

        body = {"fleet": plain(fleet), "aim": aim, "gap": gap}
        return self._connection.read(
            self._connection.ask("POST", "/fleet/plan", body=body), FleetAnswer
        )

    def fleet_frontier(
        self,
        fleet: Fleet | Mapping[str, Any],
        *,
        points: int = 12,
        least_watts: float | None = None,
        most_watts: float | None = None,
        gap: float = 0.001,
    ) -> FrontierAnswer:
        """How much demand each of so many budgets buys.

        Args:
            fleet: As for `fleet_plan`; its budgets do not count.
            points: How many budgets.
            least_watts: The lowest; None: what the fleet draws at rest.
            most_watts: The highest; None: what serves everything.
            gap: As for `fleet_plan`.
        """
        from iojoule.api.http.fleet.schemas import FrontierAnswer

        body = {
            "fleet": plain(fleet), "points": points, "least_watts": least_watts,
            "most_watts": most_watts, "gap": gap,
        }  # fmt: skip
        answer = self._connection.ask("POST", "/fleet/frontier", body=body)
        return self._connection.read(answer, FrontierAnswer)

    def read_workload(
        self, text: str, *, kind: SourceKind | str | None = None, job: str | None = None
    ) -> WorkloadProfile:
        """The workload profile that a fio job file, fio iolog, blkparse text or trace describes.

        Args:
            text: Of the file.
            kind: What it is; None: its first line tells.
            job: Section of a fio job file.
        """
        from iojoule.recommender.workload import WorkloadProfile

        query = {"kind": None if kind is None else str(kind), "job": job}
        answer = self._connection.ask("POST", "/workloads", query=query, body=text)
        return self._connection.read(answer, WorkloadProfile)

    def presets(self) -> PresetList:
        """Workload profiles of well-known benchmarks."""
        from iojoule.api.http.workloads.schemas import PresetList

        return self._connection.read(self._connection.ask("GET", "/workloads/presets"), PresetList)

    def devices(self) -> DeviceList:
        """Every SSD model, and whether its performance and power can be predicted."""
        from iojoule.api.http.devices.schemas import DeviceList

        return self._connection.read(self._connection.ask("GET", "/devices"), DeviceList)

    def device(self, device: str) -> DeviceDetail:
        """What is known of one SSD model, by id, model or alias."""
        from iojoule.api.http.devices.schemas import DeviceDetail

        return self._connection.read(
            self._connection.ask("GET", "/devices/{id}", device), DeviceDetail
        )

    def power_law(self, device: str) -> PowerLaw:
        """How the power of a drive follows from its work, and the measurements behind it."""
        from iojoule.api.http.devices.schemas import PowerLaw

        return self._connection.read(
            self._connection.ask("GET", "/devices/{id}/power-law", device), PowerLaw
        )

    def model_card(self, device: str) -> Document:
        """What the profile of a drive rests on and how far it errs, section by section."""
        from iojoule.api.http.devices.schemas import CARD

        answer = self._connection.ask("GET", "/devices/{id}/model-card", device)
        return self._connection.read(answer, CARD)

    def simulated_drives(self) -> SimulatedDrives:
        """Which drives can be simulated."""
        from iojoule.api.http.simulations.schemas import SimulatedDrives

        return self._connection.read(self._connection.ask("GET", "/simulations"), SimulatedDrives)

    def health(self) -> Health:
        """That the service is up, and which profiles it holds."""
        from iojoule.api.http.health.schemas import Health

        return self._connection.read(self._connection.ask("GET", "/healthz"), Health)

    def readiness(self) -> Readiness:
        """That the service can do everything; asked once, and raises UnavailableError elsewhere."""
        from iojoule.api.http.health.schemas import Readiness

        answer = self._connection.ask("GET", "/readyz", again=False)
        return self._connection.read(answer, Readiness)

    def metrics(self) -> str:
        """The service's figures as Prometheus reads them."""
        return self._connection.ask("GET", "/metrics").text
