"""What the service does while its database is away, and on two replicas at once."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.http.simulations import EXAMPLE
from iojoule.api.jobs.worker import Worker
from iojoule.api.state.place import Place, State
from tests.api.http.conftest import serving
from tests.api.http.test_problems import problem
from tests.postgresql import PostgresqlServer, programs

pytestmark = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")


@contextmanager
def server() -> Iterator[PostgresqlServer]:
    made = PostgresqlServer()
    try:
        yield made
    finally:
        made.delete()


def test_the_service_outlives_its_database(tmp_path: Path) -> None:
    with server() as database:
        store = State(Place.of(tmp_path, database.new_database()))
        worker = Worker(store)
        with serving(store) as service:
            assert service.get("/readyz").json()["database"] == "postgresql"
            job = service.post("/simulations", json=EXAMPLE).json()
            database.stop()
            found = problem(service.get("/readyz"), 503)
            assert "does not answer" in found["detail"]
            refused = service.post("/simulations", json=EXAMPLE)
            problem(refused, 503)
            assert refused.headers["retry-after"]
            # what needs nothing that is kept answers as ever
            assert service.post("/predict", json=PREDICT).status_code == 200
            assert service.get("/healthz").status_code == 200
            thread = threading.Thread(target=worker.run)
            thread.start()
            database.start()
            assert service.get("/readyz").json()["status"] == "ready"
            end = time.monotonic() + 60
            while service.get(job["url"]).json()["state"] != "done":
                assert time.monotonic() < end
                time.sleep(0.1)
            worker.stopping.set()
            thread.join()


def test_what_one_replica_keeps_the_other_one_gives(
    tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    place = Place.of(tmp_path, postgresql.new_database())
    with serving(State(place)) as one, serving(State(place)) as other:
        key = {"Idempotency-Key": "once"}
        made = [each.post("/simulations", json=EXAMPLE, headers=key) for each in (one, other)]
        assert made[0].json()["id"] == made[1].json()["id"]
        path = "/devices/samsung-980-pro-1tb/profiles/current"
        etag = {"If-Match": one.get(path).headers["etag"]}
        assert one.put(path, json={"version": 0}, headers=etag).status_code == 200
        problem(other.put(path, json={"version": 0}, headers=etag), 412)
