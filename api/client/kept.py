"""What the service keeps: datasets, jobs and versions of profiles."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iojoule.api.client.asking import named, plain
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from iojoule.api.client.connection import Connection
    from iojoule.api.client.current import Current
    from iojoule.api.http.audit.schemas import AuditEntry
    from iojoule.api.http.datasets.schemas import DatasetSummary
    from iojoule.api.http.jobs.schemas import JobState, JobStatus
    from iojoule.api.http.profiles.schemas import KeptProfile
    from iojoule.api.jobs.calibration_request import CalibrationRequest
    from iojoule.api.jobs.simulation_request import SimulationRequest
    from iojoule.datasets.profile import DeviceProfile

PAGE = 100
"""Rows of a list that are asked for at a time."""


class Datasets:
    """Uploads measurements and reads what was uploaded."""

    _connection: Connection

    def datasets(self) -> Iterator[DatasetSummary]:
        """Datasets, the newest first; asked for page by page as they are taken."""
        from iojoule.api.http.datasets.schemas import DatasetList

        return _pages(self._connection, DatasetList, "datasets", "/datasets")

    def upload(
        self,
        file: Path | str | bytes,
        *,
        form: str | None = None,
        device: str | None = None,
        columns: str | None = None,
        idempotency_key: str | None = None,
    ) -> DatasetSummary:
        """Upload measurements: Parquet, a table as CSV, or what fio writes as JSON.

        Args:
            file: A path, read piece by piece as it is sent, or the content itself.
            form: parquet, csv or fio; None: the ending of the path tells.
            device: The drive, where the file does not name it.
            columns: Name of a column map that comes with iojoule, for a table.
            idempotency_key: Names this upload; None: a new one for each call.
        """
        from iojoule.api.http.datasets.schemas import FORMATS, DatasetSummary

        content = file if isinstance(file, bytes) else Path(file)
        form = form or _form_of(content)
        kinds = {known: kind for kind, known in FORMATS.items()}
        if form not in kinds:
            raise InputError(f"{form!r}: is no form of a dataset; there are {', '.join(kinds)}")
        answer = self._connection.ask(
            "POST", "/datasets", query={"device": device, "columns": columns}, body=content,
            headers={"Content-Type": kinds[form], **named(idempotency_key)},
        )  # fmt: skip
        return self._connection.read(answer, DatasetSummary)

    def dataset(self, dataset: str) -> DatasetSummary:
        """What is known of a dataset."""
        from iojoule.api.http.datasets.schemas import DatasetSummary

        answer = self._connection.ask("GET", "/datasets/{id}", dataset)
        return self._connection.read(answer, DatasetSummary)

    def share_dataset(self, dataset: str, shared: bool = True) -> DatasetSummary:
        """Let everybody with a key read a dataset, or its owner alone."""
        from iojoule.api.http.datasets.schemas import DatasetSummary

        body = {"shared": shared}
        answer = self._connection.ask("PATCH", "/datasets/{id}", dataset, body=body)
        return self._connection.read(answer, DatasetSummary)

    def delete_dataset(self, dataset: str) -> None:
        """Delete a dataset; raises ConflictError where a calibration names it."""
        self._connection.ask("DELETE", "/datasets/{id}", dataset)

    def download(self, dataset: str, path: Path | str) -> None:
        """Write the measurements of a dataset to a Parquet file, whole or not at all.

        Raises:
            ServiceError: What came is not what the service keeps.
        """
        from iojoule.api.client.errors import ServiceError

        answer = self._connection.ask("GET", "/datasets/{id}/data", dataset)
        digest = hashlib.sha256(answer.content).hexdigest()
        if answer.headers.get("etag") != f'"{digest}"':
            raise ServiceError(f"{answer.url}: did not arrive as the service keeps it; ask again")
        path = Path(path)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            beside.write_bytes(answer.content)
            beside.replace(path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise InputError(f"{path}: cannot be written ({error.strerror}); check it") from None

    def sidecar(self, dataset: str) -> dict[str, Any]:
        """Where the measurements of a dataset come from, doubts, and what was left out."""
        return _object(self._connection.ask("GET", "/datasets/{id}/sidecar", dataset).json())


class Jobs:
    """Starts what takes long, and follows it."""

    _connection: Connection

    def simulate(
        self,
        request: SimulationRequest | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> JobStatus:
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
    ) -> JobStatus:
        """Put the calibration of a device's profile into the queue; arguments as `simulate`."""
        return self._submit("/devices/{id}/calibrations", (device,), request, idempotency_key)

    def calibrations(self, device: str) -> Iterator[JobStatus]:
        """The calibrations of a device, the newest first."""
        from iojoule.api.http.jobs.schemas import JobList

        return _pages(self._connection, JobList, "jobs", "/devices/{id}/calibrations", device)

    def jobs(
        self, *, kind: str | None = None, state: JobState | None = None
    ) -> Iterator[JobStatus]:
        """Jobs, the newest first; asked for page by page as they are taken."""
        from iojoule.api.http.jobs.schemas import JobList

        return _pages(self._connection, JobList, "jobs", "/jobs", kind=kind, state=state)

    def job(self, job: str | JobStatus) -> JobStatus:
        """A job as it is now."""
        return self._job(self._connection.ask("GET", "/jobs/{id}", _id(job)))

    def follow(self, job: str | JobStatus) -> Iterator[JobStatus]:
        """A job now and whenever it changes, until it has ended.

        A broken connection is made again, and a service that is away for less than two minutes
        waited for; where events do not get through, the job is asked for now and then.
        """
        from iojoule.api.client.following import follow

        return follow(self._connection, _id(job))

    def wait(
        self,
        job: str | JobStatus,
        *,
        timeout_seconds: float | None = None,
        watch: Callable[[JobStatus], object] | None = None,
    ) -> JobStatus:
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
        from iojoule.api.client.following import wait

        return wait(self._connection, _id(job), timeout_seconds=timeout_seconds, watch=watch)

    def result(self, job: str | JobStatus) -> dict[str, Any]:
        """What a job gave; raises ConflictError before it is done."""
        return _object(self._connection.ask("GET", "/jobs/{id}/result", _id(job)).json())

    def cancel(self, job: str | JobStatus) -> JobStatus:
        """Call a job off; raises ConflictError where it is over."""
        return self._job(self._connection.ask("POST", "/jobs/{id}/cancel", _id(job)))

    def share_job(self, job: str | JobStatus, shared: bool = True) -> JobStatus:
        """Let everybody with a key read a job and its result, or its owner alone."""
        body = {"shared": shared}
        return self._job(self._connection.ask("PATCH", "/jobs/{id}", _id(job), body=body))

    def delete_job(self, job: str | JobStatus) -> None:
        """Delete a job that has ended, with its result.

        Raises:
            ConflictError: It has not ended, or a version of a profile rests on it.
        """
        self._connection.ask("DELETE", "/jobs/{id}", _id(job))

    def _submit(
        self, path: str, names: tuple[str, ...], request: BaseModel | Mapping[str, Any],
        key: str | None,
    ) -> JobStatus:  # fmt: skip
        answer = self._connection.ask("POST", path, *names, body=plain(request), headers=named(key))
        return self._job(answer)

    def _job(self, answer: Any) -> JobStatus:
        from iojoule.api.http.jobs.schemas import JobStatus

        return self._connection.read(answer, JobStatus)


class Audit:
    """Reads who changed what."""

    _connection: Connection

    def audit(self) -> Iterator[AuditEntry]:
        """Changes, the newest first; asked for page by page as they are taken."""
        from iojoule.api.http.audit.schemas import AuditList

        return _pages(self._connection, AuditList, "entries", "/audit")


class Profiles:
    """Versions of profiles, and which one answers."""

    _connection: Connection

    def profiles(self, device: str) -> Iterator[KeptProfile]:
        """Versions of a device's profile, the newest first; 0 comes with iojoule."""
        from iojoule.api.http.profiles.schemas import ProfileList

        return _pages(self._connection, ProfileList, "profiles", "/devices/{id}/profiles", device)

    def profile(self, device: str, version: int) -> DeviceProfile:
        """A version of a device's profile."""
        from iojoule.datasets.profile import DeviceProfile

        answer = self._connection.ask("GET", "/devices/{id}/profiles/{version}", device, version)
        return self._connection.read(answer, DeviceProfile)

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
        from iojoule.api.state.errors import ChangedError

        known = decided_on or self.current_profile(device)
        try:
            answer = self._connection.ask(
                "PUT", "/devices/{id}/profiles/current", device, body={"version": version},
                headers={"If-Match": known.etag},
            )  # fmt: skip
        except ChangedError:
            # the connection may have broken after the first attempt came through
            now = self.current_profile(device)
            if now.version == version and decided_on is None:
                return now
            raise
        return self._current(answer)

    def _current(self, answer: Any) -> Current:
        from iojoule.api.client.current import Current
        from iojoule.api.http.profiles.schemas import CurrentProfile

        told = self._connection.read(answer, CurrentProfile)
        return Current(told.device, told.version, answer.headers.get("etag", ""))


def _pages(
    connection: Connection, model: Any, field: str, path: str, *names: str, **query: Any
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


def _id(job: str | JobStatus) -> str:
    return job if isinstance(job, str) else job.id


def _form_of(content: bytes | Path) -> str:
    endings = {".parquet": "parquet", ".csv": "csv", ".json": "fio"}
    ending = "" if isinstance(content, bytes) else content.suffix.lower()
    if ending not in endings:
        raise InputError("say form=: parquet, csv or fio; the name of the file does not tell")
    return endings[ending]


def _object(told: Any) -> dict[str, Any]:
    return dict(told)
