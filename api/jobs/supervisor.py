"""Keeps workers running beside the service, as processes of their own."""

from __future__ import annotations

import logging
import os
import secrets
import subprocess
import threading

from iojoule.api.logs import LOG_VARIABLE, LogForm
from iojoule.api.state import jobs
from iojoule.api.state.errors import StorageFullError, UnavailableError
from iojoule.api.state.place import DATABASE_VARIABLE, State
from iojoule.datasets.programs import python_command

RESTART_SECONDS = 1.0
STOP_SECONDS = 10.0
"""How long a worker may take to give its job back before it is killed."""

_log = logging.getLogger(__name__)


class Supervisor:
    """Starts workers, and another one for each that dies; stops them when the block ends.

    A worker reads its standard input and stops when that closes, so none outlives a service that
    was killed.

    Args:
        state: Opened.
        workers: How many.
        log: Form of their logs.
    """

    def __init__(self, state: State, workers: int, *, log: LogForm = LogForm.TEXT) -> None:
        self._log_form = log
        self._state, self._stopping = state, threading.Event()
        self._keepers = [
            threading.Thread(target=self._keep, name=f"worker-{number}", daemon=True)
            for number in range(workers)
        ]

    def __enter__(self) -> Supervisor:
        for keeper in self._keepers:
            keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for keeper in self._keepers:
            keeper.join()

    def _keep(self) -> None:
        while not self._stopping.is_set():
            name = f"served-{secrets.token_hex(8)}"
            with self._start(name) as process:
                while process.poll() is None and not self._stopping.wait(0.1):
                    pass
                if self._stopping.is_set():
                    _stop(process)
                    return
            _log.error("worker %d ended with %d; starting another", process.pid, process.returncode)
            try:
                jobs.abandon(self._state.database, name)
            except (UnavailableError, StorageFullError) as error:
                _log.warning("%s", error.message)  # its lease will run out
            self._stopping.wait(RESTART_SECONDS)

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        place = self._state.place
        command = python_command("-m", "iojoule.api.jobs", str(place.folder), name)
        # the URL may hold a password, which others could read in a command line
        own = {DATABASE_VARIABLE: place.database, LOG_VARIABLE: self._log_form}
        # a session of its own: Ctrl-C is for the service, which then tells its workers
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, env={**os.environ, **own}, start_new_session=True
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
