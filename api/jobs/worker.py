"""A worker: takes one job after the other and runs it, until it is told to stop."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import threading
import time

from iojoule.api.jobs.running import KINDS, Outcome, Running, Watched, kind_of
from iojoule.api.problem_document import problem_of
from iojoule.api.state import jobs
from iojoule.api.state.errors import StorageFullError, UnavailableError
from iojoule.api.state.jobs import Job
from iojoule.api.state.place import State
from iojoule.datasets.errors import IojouleError

POLL_SECONDS = 0.2
RETRY_SECONDS = 1.0
BEAT_SECONDS = 1.0
"""How often a worker renews its lease, tells progress and hears whether it should stop."""

_log = logging.getLogger(__name__)


class Worker:
    """Runs jobs of a state.

    Args:
        state: Opened.
        name: Unlike that of any other worker; None makes one.
        lease_seconds: After so much silence another worker takes over.
        beat_seconds: How often the lease is renewed.
    """

    def __init__(
        self,
        state: State,
        name: str | None = None,
        *,
        lease_seconds: float = jobs.LEASE_SECONDS,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self.state = state
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.stopping = threading.Event()
        self._lease, self._beat = lease_seconds, beat_seconds

    def run(self) -> None:
        """Work until `stopping` is set; a database that is away is waited for."""
        while not self.stopping.is_set():
            try:
                worked = self.run_one()
            except (UnavailableError, StorageFullError) as error:
                _log.warning("%s", error.message)
                self.stopping.wait(RETRY_SECONDS)
                continue
            if not worked:
                self.stopping.wait(POLL_SECONDS)

    def run_one(self) -> bool:
        """Take a job and run it; whether there was one.

        Raises:
            UnavailableError: The database went away; the job's lease will run out.
        """
        job = jobs.take(self.state.database, self.name, KINDS, self._lease)
        if job is None:
            return False
        _log.info("job %s (%s): attempt %d", job.id, job.kind, job.attempt)
        watched, over = Watched(), threading.Event()
        heart = threading.Thread(
            target=self._keep, args=(job, watched, over), name="heart", daemon=True
        )
        heart.start()
        try:
            outcome = self._attempt(job, watched)
        finally:
            over.set()
            heart.join()
        self._end(job, outcome)
        return True

    def _attempt(self, job: Job, watched: Watched) -> Outcome | Exception:
        folder = self.state.work_folder(job.id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            running = Running(job.id, job.request, self.state, folder, watched)
            return kind_of(job.kind)(running)
        except Exception as error:  # noqa: BLE001 - whatever a job raises is how the job ends
            return error

    def _keep(self, job: Job, watched: Watched, over: threading.Event) -> None:
        """Renew the lease until the job is over; stop it when it is called off or lost."""
        while not over.wait(self._beat):
            if self.stopping.is_set():
                watched.stop.set()
            try:
                heard = jobs.beat(self.state.database, job, *watched.said(), self._lease)
            except (UnavailableError, StorageFullError) as error:
                _log.warning("job %s: %s", job.id, error.message)
                continue  # it may be back before the lease runs out, or before anybody takes over
            if heard.cancel or not heard.mine:
                watched.stop.set()

    def _end(self, job: Job, outcome: Outcome | Exception) -> None:
        """Say how the job ended, as often as it takes until the database has heard it."""
        while True:
            try:
                return self._say(job, outcome)
            except (UnavailableError, StorageFullError) as error:
                if self.stopping.is_set():
                    raise
                _log.warning("job %s: %s", job.id, error.message)
                time.sleep(RETRY_SECONDS)

    def _say(self, job: Job, outcome: Outcome | Exception) -> None:
        with self.state.database.read() as connection:
            now = jobs.find(connection, job.id)
        if now.attempt != job.attempt or now.state != "running":
            _log.warning("job %s: somebody else has it or ended it; dropped", job.id)
            return
        if isinstance(outcome, Outcome):
            brings = outcome.publish
            publish = None if brings is None else lambda connection: brings(connection, self.state)
            with self.state.files.keeping():
                digest = self.state.files.keep_bytes(outcome.document)
                jobs.end(
                    self.state.database,
                    job,
                    "done",
                    result_sha256=digest,
                    result_bytes=len(outcome.document),
                    publish=publish,
                )
        elif now.cancel_requested:
            jobs.end(self.state.database, job, "cancelled")
        elif self.stopping.is_set() or isinstance(outcome, UnavailableError | StorageFullError):
            self.stopping.wait(RETRY_SECONDS)
            jobs.give_back(self.state.database, job)
            return  # what was computed so far stays for whoever goes on
        else:
            jobs.end(self.state.database, job, "failed", error=_problem(job, outcome))
        shutil.rmtree(self.state.work_folder(job.id), ignore_errors=True)


def _problem(job: Job, error: Exception) -> dict[str, object]:
    """What went wrong as problem+json has it."""
    if isinstance(error, IojouleError):
        return problem_of(error)
    _log.error("job %s (%s)", job.id, job.kind, exc_info=error)
    if isinstance(error, MemoryError):
        detail = "the worker has not enough memory for this; ask for less"
    else:
        detail = "a fault of the service, not of the request; please report it"
    return {"type": "about:blank", "title": "Internal error", "status": 500, "detail": detail}
