import copy

import httpx
import pytest

from iojoule.api.http.simulations import EXAMPLE
from iojoule.api.jobs.admission import REQUESTS_MAX
from iojoule.api.state import jobs
from iojoule.api.state.errors import TooManyError
from iojoule.api.state.idempotency import Key
from iojoule.api.state.place import State
from tests.api.http.test_problems import problem


def test_a_queue_that_is_full_takes_nothing_new(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "WAITING_MAX", 1)
    key = Key("POST /x", "one", "0" * 64)
    with state.database.write() as connection:
        first = jobs.submit(connection, "simulation", {}, key=key)
    with state.database.write() as connection, pytest.raises(TooManyError, match="wait already"):
        jobs.submit(connection, "simulation", {})
    with state.database.write() as connection:
        # what was taken before is answered as before
        assert jobs.submit(connection, "simulation", {}, key=key).id == first.id
        jobs.cancel(connection, first.id)
        assert jobs.submit(connection, "simulation", {}).state == "queued"


def test_a_full_queue_says_when_to_come_again(
    service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "WAITING_MAX", 0)
    response = service.post("/simulations", json=EXAMPLE)
    assert problem(response, 429)["type"] == "urn:iojoule:problem:too-much-at-the-moment"
    assert int(response.headers["retry-after"]) > 0


def test_runs_of_too_many_requests_are_refused_before_they_wait(service: httpx.Client) -> None:
    asked = copy.deepcopy(EXAMPLE)
    asked["scenario"]["flows"][0]["total_requests"] = REQUESTS_MAX + 1
    found = problem(service.post("/simulations", json=asked), 422)
    assert found["field"] == "/scenario"
    assert str(REQUESTS_MAX) in found["detail"]
