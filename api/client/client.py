"""The client of a service: one method for each operation, with the service's own types."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from iojoule.api.client.errors import ServiceError
from iojoule.datasets.atomic import output_file, write_atomically
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    import pydantic
    from pydantic import BaseModel

    from iojoule.api import power_law_answer
    from iojoule.api.application import devices as device_facts
    from iojoule.api.application import fleet as fleets
    from iojoule.api.application import recommend as recommendations
    from iojoule.api.application import what_if_response as what_if_answer
    from iojoule.api.client import connection as connections
    from iojoule.api.http import computed_schemas, schemas
    from iojoule.api.jobs.calibration_request import CalibrationRequest
    from iojoule.api.jobs.simulation_request import SimulationRequest
    from iojoule.api.reports import document as content
    from iojoule.api.state import errors as state_errors
    from iojoule.datasets import profile as profiles
    from iojoule.datasets.profile import DeviceProfile
    from iojoule.datasets.schema import Conditions
    from iojoule.recommender import request as workloads
    from iojoule.recommender.fleet import document as fleet_files
    from iojoule.recommender.fleet.document import Aim, Fleet
    from iojoule.recommender.request import WorkloadProfile
    from iojoule.recommender.workloads.sources import SourceKind
else:

    class _LazyModule:
        """Imports a module when one of its names is first used: the client imports fast."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    pydantic = _LazyModule("pydantic")
    device_facts = _LazyModule("iojoule.api.application.devices")
    fleets = _LazyModule("iojoule.api.application.fleet")
    power_law_answer = _LazyModule("iojoule.api.power_law_answer")
    recommendations = _LazyModule("iojoule.api.application.recommend")
    what_if_answer = _LazyModule("iojoule.api.application.what_if_response")
    connections = _LazyModule("iojoule.api.client.connection")
    content = _LazyModule("iojoule.api.reports.document")
    computed_schemas = _LazyModule("iojoule.api.http.computed_schemas")
    schemas = _LazyModule("iojoule.api.http.schemas")
    state_errors = _LazyModule("iojoule.api.state.errors")
    profiles = _LazyModule("iojoule.datasets.profile")
    fleet_files = _LazyModule("iojoule.recommender.fleet.document")
    workloads = _LazyModule("iojoule.recommender.request")

PAGE = 100
"""Rows of one page of a list."""

_ACCEPTED = 202


@dataclass(frozen=True)
class Current:
    """The current version of a device's profile.

    Attributes:
        etag: Of this choice: a change that names it fails once there is another.
    """

    device: str
    version: int
    etag: str


class Client:
    """A service, one method an operation; may be shared by threads.

    Responses are the models of the service itself; arguments may be models or plain mappings. Each
    method raises IojouleError with the service's problem, with the field (`field`, `pointer`) and
    the request (`request_id`). Temporary failures are retried, and an operation that changes
    something takes effect once however often it was sent.

    Args:
        server: Its address, such as `http://127.0.0.1:8080`; None takes `$IOJOULE_SERVER`.
        key: API key; None takes `$IOJOULE_KEY`, if set.
        retries: How often a request is sent again when the connection breaks or the service is
            busy (429) or away (503); it waits as long as the service says, or longer each time.
        timeout_seconds: Timeout of a response.

    Raises:
        InputError: There is no address, or it is invalid.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        key: str | None = None,
        retries: int = 5,
        timeout_seconds: float = 120.0,
    ) -> None:
        self._connection = connections.Connection(
            server, key, retries=retries, timeout_seconds=timeout_seconds
        )

    @property
    def server(self) -> str:
        """Address of the service."""
        return self._connection.server

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._connection.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def recommend(
        self,
        device: str,
        workload_profile: WorkloadProfile | Mapping[str, Any] | str,
        *,
        conditions: Conditions | Mapping[str, Any] | None = None,
        settings: str | None = None,
    ) -> recommendations.RecommendationAnswer:
        """Which configurations to use.

        Args:
            device: Id, model or alias of the drive.
            workload_profile: The question, or the name of a preset such as `ycsb-a`.
            conditions: Of the drive, where they are known.
            settings: An application in whose settings it is stated too, as `postgresql=17`.
        """
        body = {
            "device": device,
            "workload_profile": _plain(workload_profile),
            "conditions": _plain(conditions or {}),
        }
        if settings is not None:
            body["settings"] = settings
        answer = self._connection.ask("POST", "/recommend", body=body)
        return self._connection.read(answer, recommendations.RecommendationAnswer)

    def predict(
        self, device: str, configurations: Iterable[BaseModel | Mapping[str, Any]]
    ) -> computed_schemas.PredictResponse:
        """What configurations do, with 90 % intervals; one prediction each, in order.

        Args:
            device: Id, model or alias of the drive.
            configurations: Fields of workload, configuration, state and conditions side by side.
        """
        body = {"device": device, "configurations": [_plain(row) for row in configurations]}
        answer = self._connection.ask("POST", "/predict", body=body)
        return self._connection.read(answer, computed_schemas.PredictResponse)

    def what_if(
        self,
        device: str,
        workload_profile: WorkloadProfile | Mapping[str, Any],
        changes: Mapping[str, Any],
        *,
        drives: int = 1,
        conditions: Conditions | Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        watch: Callable[[schemas.JobStatus], object] | None = None,
    ) -> what_if_answer.WhatIfAnswer:
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
        body = {
            "device": device,
            "workload_profile": _plain(workload_profile),
            "changes": changes,
            "drives": drives,
            "conditions": _plain(conditions or {}),
        }
        headers = _key_header(idempotency_key)
        answer = self._connection.ask("POST", "/what-if", body=body, headers=headers)
        if answer.status_code == _ACCEPTED:
            job = self._connection.read(answer, schemas.JobStatus)
            connections.wait(self._connection, job.id, watch=watch)
            answer = self._connection.ask("GET", "/jobs/{id}/result", job.id)
        return self._connection.read(answer, what_if_answer.WhatIfAnswer)

    def fleet_plan(
        self, fleet: Fleet | Mapping[str, Any], *, aim: Aim = "least_watts", gap: float = 0.001
    ) -> fleets.FleetAnswer:
        """What every drive of a fleet does under each budget, and the stages to get there.

        Args:
            fleet: Drives, power domains, classes of work, budgets.
            aim: Least watts for the demand, or most demand within the watts.
            gap: Relative gap to the best plan at which to stop.
        """
        body = {"fleet": _plain(fleet), "aim": aim, "gap": gap}
        return self._connection.read(
            self._connection.ask("POST", "/fleet/plan", body=body), fleets.FleetAnswer
        )

    def fleet_frontier(
        self,
        fleet: Fleet | Mapping[str, Any],
        *,
        points: int = 12,
        least_watts: float | None = None,
        most_watts: float | None = None,
        gap: float = 0.001,
    ) -> fleets.FrontierAnswer:
        """How much demand each of so many budgets buys.

        Args:
            fleet: As for `fleet_plan`; its budgets do not count.
            points: How many budgets.
            least_watts: The lowest; None: what the fleet draws at rest.
            most_watts: The highest; None: what serves everything.
            gap: As for `fleet_plan`.
        """
        body = {
            "fleet": _plain(fleet),
            "points": points,
            "least_watts": least_watts,
            "most_watts": most_watts,
            "gap": gap,
        }
        answer = self._connection.ask("POST", "/fleet/frontier", body=body)
        return self._connection.read(answer, fleets.FrontierAnswer)

    def read_fleet(self, text: str) -> Fleet:
        """The fleet that the text of a fleet file describes, TOML or JSON."""
        answer = self._connection.ask("POST", "/fleet", body=text)
        return self._connection.read(answer, fleet_files.Fleet)

    def read_workload(
        self,
        text: str,
        *,
        kind: SourceKind | str | None = None,
        job: str | None = None,
        page_cache: str | None = None,
        read_ahead: str | None = None,
    ) -> WorkloadProfile:
        """The workload profile that a fio job file, fio iolog, blkparse text or trace describes.

        Args:
            text: Of the file.
            kind: What it is; None: its first line tells.
            job: Section of a fio job file.
            page_cache: Memory that keeps the files of buffered jobs, for instance 16GiB.
            read_ahead: With it, `read_ahead_kb` of the drive; None: 128KiB.
        """
        query = {
            "kind": None if kind is None else str(kind),
            "job": job,
            "page_cache": page_cache,
            "read_ahead": read_ahead,
        }
        answer = self._connection.ask("POST", "/workloads", query=query, body=text)
        return self._connection.read(answer, workloads.WorkloadProfile)

    def presets(self) -> computed_schemas.PresetList:
        """Workload profiles of well-known benchmarks."""
        return self._connection.read(
            self._connection.ask("GET", "/workloads/presets"), computed_schemas.PresetList
        )

    def devices(self) -> computed_schemas.DeviceList:
        """Every SSD model, and whether its performance and power can be predicted."""
        return self._connection.read(
            self._connection.ask("GET", "/devices"), computed_schemas.DeviceList
        )

    def device(self, device: str) -> device_facts.DeviceDetail:
        """What is known of one SSD model, by id, model or alias."""
        return self._connection.read(
            self._connection.ask("GET", "/devices/{id}", device), device_facts.DeviceDetail
        )

    def power_law(self, device: str) -> power_law_answer.PowerLaw:
        """How the power of a drive follows from its work, and the measurements behind it."""
        return self._connection.read(
            self._connection.ask("GET", "/devices/{id}/power-law", device),
            power_law_answer.PowerLaw,
        )

    def model_card(self, device: str) -> content.Document:
        """What the profile of a drive rests on and how far it errs, section by section."""
        answer = self._connection.ask("GET", "/devices/{id}/model-card", device)
        return self._connection.read(answer, pydantic.TypeAdapter(content.Document))

    def simulated_drives(self) -> schemas.SimulatedDrives:
        """Which drives can be simulated."""
        return self._connection.read(
            self._connection.ask("GET", "/simulations"), schemas.SimulatedDrives
        )

    def health(self) -> schemas.Health:
        """That the service is up, and which profiles it holds."""
        return self._connection.read(self._connection.ask("GET", "/healthz"), schemas.Health)

    def readiness(self) -> schemas.Readiness:
        """That the service can do everything; asked once, and raises UnavailableError elsewhere."""
        answer = self._connection.ask("GET", "/readyz", again=False)
        return self._connection.read(answer, schemas.Readiness)

    def metrics(self) -> str:
        """The service's figures as Prometheus reads them."""
        return self._connection.ask("GET", "/metrics").text

    def datasets(self) -> Iterator[schemas.DatasetSummary]:
        """Datasets, the newest first; asked for page by page as they are taken."""
        return _pages(self._connection, schemas.DatasetList, "datasets", "/datasets")

    def upload(
        self,
        file: Path | str | bytes,
        *,
        form: str | None = None,
        device: str | None = None,
        columns: str | None = None,
        idempotency_key: str | None = None,
    ) -> schemas.DatasetSummary:
        """Upload measurements: Parquet, a table as CSV, or what fio writes.

        Args:
            file: A path, read piece by piece as it is sent, or the content itself. A folder of
                fio's results is sent as an archive.
            form: parquet, csv, fio (its JSON) or zip (an archive of its results); None: the
                ending of the path tells.
            device: The drive, where the file does not name it.
            columns: Name of a column map that comes with iojoule, for a table.
            idempotency_key: Names this upload; None: a new one for each call.
        """
        if not isinstance(file, bytes) and Path(file).is_dir():
            with tempfile.TemporaryDirectory(prefix="iojoule-") as folder:
                packed = shutil.make_archive(f"{folder}/results", "zip", file)
                return self.upload(
                    packed,
                    form=form,
                    device=device,
                    columns=columns,
                    idempotency_key=idempotency_key,
                )
        content = file if isinstance(file, bytes) else Path(file)
        form = form or _form_of(content)
        kinds = {known: kind for kind, known in schemas.FORMATS.items()}
        if form not in kinds:
            raise InputError(f"{form!r}: is no form of a dataset; there are {', '.join(kinds)}")
        answer = self._connection.ask(
            "POST",
            "/datasets",
            query={"device": device, "columns": columns},
            body=content,
            headers={"Content-Type": kinds[form], **_key_header(idempotency_key)},
        )
        return self._connection.read(answer, schemas.DatasetSummary)

    def dataset(self, dataset: str) -> schemas.DatasetSummary:
        """What is known of a dataset."""
        answer = self._connection.ask("GET", "/datasets/{id}", dataset)
        return self._connection.read(answer, schemas.DatasetSummary)

    def share_dataset(self, dataset: str, shared: bool = True) -> schemas.DatasetSummary:
        """Let everybody with a key read a dataset, or its owner alone."""
        body = {"shared": shared}
        answer = self._connection.ask("PATCH", "/datasets/{id}", dataset, body=body)
        return self._connection.read(answer, schemas.DatasetSummary)

    def delete_dataset(self, dataset: str) -> None:
        """Delete a dataset; raises ConflictError where a calibration names it."""
        self._connection.ask("DELETE", "/datasets/{id}", dataset)

    def download(self, dataset: str, path: Path | str) -> None:
        """Write the measurements of a dataset to a Parquet file, whole or not at all.

        Raises:
            ServiceError: What came is not what the service keeps.
        """
        answer = self._connection.ask("GET", "/datasets/{id}/data", dataset)
        digest = hashlib.sha256(answer.content).hexdigest()
        if answer.headers.get("etag") != f'"{digest}"':
            raise ServiceError(f"{answer.url}: did not arrive as the service keeps it; ask again")
        path = Path(path)
        with output_file(path):
            write_atomically(path, lambda stream: stream.write(answer.content))

    def sidecar(self, dataset: str) -> dict[str, Any]:
        """Where the measurements of a dataset come from, doubts, and what was left out."""
        answer = self._connection.ask("GET", "/datasets/{id}/sidecar", dataset)
        return self._connection.read(answer, dict[str, Any])

    def simulate(
        self,
        request: SimulationRequest | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> schemas.JobStatus:
        """Put a simulation into the queue.

        Args:
            request: A drive, what is asked of it, and what is varied.
            idempotency_key: Names this request: sent again, it is the same job; None: a new one
                for each call.
        """
        return self._submit("/simulations", (), request, idempotency_key)

    def calibrate(
        self,
        device: str,
        request: CalibrationRequest | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> schemas.JobStatus:
        """Put the calibration of a device's profile into the queue; arguments as `simulate`."""
        return self._submit("/devices/{id}/calibrations", (device,), request, idempotency_key)

    def calibrations(self, device: str) -> Iterator[schemas.JobStatus]:
        """The calibrations of a device, the newest first."""
        return _pages(
            self._connection, schemas.JobList, "jobs", "/devices/{id}/calibrations", device
        )

    def jobs(
        self, *, kind: str | None = None, state: schemas.JobState | None = None
    ) -> Iterator[schemas.JobStatus]:
        """Jobs, the newest first; asked for page by page as they are taken."""
        return _pages(self._connection, schemas.JobList, "jobs", "/jobs", kind=kind, state=state)

    def job(self, job: str | schemas.JobStatus) -> schemas.JobStatus:
        """A job as it is now."""
        return self._job(self._connection.ask("GET", "/jobs/{id}", _id(job)))

    def follow(self, job: str | schemas.JobStatus) -> Iterator[schemas.JobStatus]:
        """A job now and whenever it changes, until it has ended.

        A broken connection is made again, and a service that is away for less than two minutes
        waited for; where events do not get through, the job is asked for now and then.
        """
        return connections.follow(self._connection, _id(job))

    def wait(
        self,
        job: str | schemas.JobStatus,
        *,
        timeout_seconds: float | None = None,
        watch: Callable[[schemas.JobStatus], object] | None = None,
    ) -> schemas.JobStatus:
        """Wait until a job is done.

        Args:
            job: Which.
            timeout_seconds: How long; None: as long as it takes.
            watch: Told of the job at each change.

        Raises:
            IojouleError: It failed, with what it met.
            ConflictError: It was called off.
            TimeoutError: It goes on, and nobody waits for it here any more.
        """
        return connections.wait(
            self._connection, _id(job), timeout_seconds=timeout_seconds, watch=watch
        )

    def result(self, job: str | schemas.JobStatus) -> dict[str, Any]:
        """What a job gave; raises ConflictError before it is done."""
        answer = self._connection.ask("GET", "/jobs/{id}/result", _id(job))
        return self._connection.read(answer, dict[str, Any])

    def cancel(self, job: str | schemas.JobStatus) -> schemas.JobStatus:
        """Call a job off; raises ConflictError where it is over."""
        return self._job(self._connection.ask("POST", "/jobs/{id}/cancel", _id(job)))

    def share_job(self, job: str | schemas.JobStatus, shared: bool = True) -> schemas.JobStatus:
        """Let everybody with a key read a job and its result, or its owner alone."""
        body = {"shared": shared}
        return self._job(self._connection.ask("PATCH", "/jobs/{id}", _id(job), body=body))

    def delete_job(self, job: str | schemas.JobStatus) -> None:
        """Delete a job that has ended, with its result.

        Raises:
            ConflictError: It has not ended, or a version of a profile rests on it.
        """
        self._connection.ask("DELETE", "/jobs/{id}", _id(job))

    def _submit(
        self,
        path: str,
        names: tuple[str, ...],
        request: BaseModel | Mapping[str, Any],
        key: str | None,
    ) -> schemas.JobStatus:
        answer = self._connection.ask(
            "POST", path, *names, body=_plain(request), headers=_key_header(key)
        )
        return self._job(answer)

    def _job(self, answer: Any) -> schemas.JobStatus:
        return self._connection.read(answer, schemas.JobStatus)

    def profiles(self, device: str) -> Iterator[schemas.KeptProfile]:
        """Versions of a device's profile, the newest first; 0 comes with iojoule."""
        return _pages(
            self._connection, schemas.ProfileList, "profiles", "/devices/{id}/profiles", device
        )

    def profile(self, device: str, version: int) -> DeviceProfile:
        """A version of a device's profile."""
        answer = self._connection.ask("GET", "/devices/{id}/profiles/{version}", device, version)
        return self._connection.read(answer, profiles.DeviceProfile)

    def current_profile(self, device: str) -> Current:
        """Which version of a device's profile answers, and what a change is to be decided on."""
        return self._current(self._connection.ask("GET", "/devices/{id}/profiles/current", device))

    def use_profile(
        self, device: str, version: int, *, decided_on: Current | None = None
    ) -> Current:
        """Let a version of a device's profile answer from now on.

        Args:
            device: Id, model or alias.
            version: Its number; 0 is the one that comes with iojoule.
            decided_on: What `current_profile` said; None: what it says now.

        Raises:
            ChangedError: Somebody else chose since.
        """
        known = decided_on or self.current_profile(device)
        try:
            answer = self._connection.ask(
                "PUT",
                "/devices/{id}/profiles/current",
                device,
                body={"version": version},
                headers={"If-Match": known.etag},
            )
        except state_errors.ChangedError:
            # the connection may have broken after the first attempt came through
            now = self.current_profile(device)
            if now.version == version and decided_on is None:
                return now
            raise
        return self._current(answer)

    def _current(self, answer: Any) -> Current:
        told = self._connection.read(answer, schemas.CurrentProfile)
        return Current(told.device, told.version, answer.headers.get("etag", ""))

    def audit(self) -> Iterator[schemas.AuditEntry]:
        """Changes, the newest first; asked for page by page as they are taken."""
        return _pages(self._connection, schemas.AuditList, "entries", "/audit")


def _plain(value: BaseModel | Mapping[str, Any] | str) -> Any:
    """A model as plain values, without unset fields; anything else as it is."""
    if isinstance(value, Mapping | str):
        return value
    return value.model_dump(mode="json", exclude_unset=True)


def _key_header(key: str | None) -> dict[str, str]:
    """The header with the idempotency key of a request; None: a new one."""
    return {"Idempotency-Key": key or uuid.uuid4().hex}


def _pages(
    connection: connections.Connection, model: Any, field: str, path: str, *names: str, **query: Any
) -> Iterator[Any]:
    """The rows of a list, one page after the other."""
    cursor = None
    while True:
        answer = connection.ask(
            "GET", path, *names, query={**query, "limit": PAGE, "cursor": cursor}
        )
        page = connection.read(answer, model)
        yield from getattr(page, field)
        cursor = page.next_cursor
        if cursor is None:
            return


def _id(job: str | schemas.JobStatus) -> str:
    return job if isinstance(job, str) else job.id


def _form_of(content: bytes | Path) -> str:
    endings = {".parquet": "parquet", ".csv": "csv", ".json": "fio", ".zip": "zip"}
    ending = "" if isinstance(content, bytes) else content.suffix.lower()
    if ending not in endings:
        raise InputError("say form=: parquet, csv, fio or zip; the name of the file does not tell")
    return endings[ending]
