"""The service as it is served, on a free port of the loopback, in a thread of the tests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from iojoule.api.http.app import create_app
from iojoule.api.http.protocol import GuardedProtocol
from iojoule.api.jobs.worker import Worker
from iojoule.api.state import jobs
from iojoule.api.state.place import Place, State


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> State:
    """What the running service keeps."""
    return State(Place.of(tmp_path_factory.mktemp("state")))


@pytest.fixture(scope="session")
def service(store: State) -> Iterator[httpx.Client]:
    """A client of a running service."""
    with serving(store) as client:
        yield client


@pytest.fixture
def worker(store: State) -> Worker:
    """What runs jobs, one by one as a test says so; those of tests before are out of the way."""
    with store.database.write() as connection:
        for one in jobs.listed(connection, 1000, None, state="queued").items:
            jobs.cancel(connection, one.id)
    return Worker(store, beat_seconds=0.05)


@contextmanager
def serving(
    store: State,
    *,
    require_key: bool = False,
    keep_days: float | None = None,
    hosts: tuple[str, ...] = (),
) -> Iterator[httpx.Client]:
    """A client of a service that keeps its things there."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(store, require_key=require_key, keep_days=keep_days, hosts=hosts),
            loop="uvloop", http=GuardedProtocol, log_level="critical", access_log=False,
        )
    )  # fmt: skip
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    port = listener.getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as one:
            yield one
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
