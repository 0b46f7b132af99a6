import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from iojoule.api.http import app
from iojoule.api.http.schemas import JobStatus
from iojoule.api.http.simulations import EXAMPLE
from iojoule.api.jobs.worker import Worker
from iojoule.api.state.place import Place, State
from iojoule.api.state.tables import jobs
from tests.api.http.conftest import serving
from tests.api.http.test_problems import problem


@pytest.fixture
def job(service: httpx.Client) -> Iterator[dict[str, Any]]:
    answer = service.post("/simulations", json=EXAMPLE)
    assert answer.status_code == 202
    assert answer.headers["location"] == answer.json()["url"]
    yield answer.json()
    service.post(f"{answer.headers['location']}/cancel")


def test_a_job_is_followed_to_its_result(
    service: httpx.Client, worker: Worker, job: dict[str, Any]
) -> None:
    assert (job["state"], job["progress"], job["result_url"]) == ("queued", 0.0, None)
    problem(service.get(f"{job['url']}/result"), 409)
    worker.run_one()
    answer = service.get(job["url"])
    done = JobStatus.model_validate_json(answer.content)
    assert (done.state, done.progress, done.error) == ("done", 1.0, None)
    same = {"If-None-Match": answer.headers["etag"]}
    assert service.get(job["url"], headers=same).status_code == 304
    assert done.result_url is not None
    result = service.get(done.result_url)
    assert len(result.json()["scenarios"]) == 3
    assert result.json()["iojoule_version"]


def events(service: httpx.Client, url: str, **headers: str) -> list[tuple[str, str, Any]]:
    """Name, id and data of the events of a job until its end."""
    answer = service.get(url, headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in answer.text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[0] != ":")
        if lines:
            found.append((lines["event"], lines["id"], json.loads(lines["data"])))
    return found


def test_events_tell_each_change_once(
    service: httpx.Client, worker: Worker, job: dict[str, Any]
) -> None:
    with service.stream("GET", job["events_url"]) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: queued"
        worker.run_one()
        assert "event: done" in list(lines)
    (last,) = events(service, job["events_url"])
    assert last[0] == "done"
    assert last[2]["result_url"]
    assert not events(service, job["events_url"], **{"Last-Event-ID": last[1]})


def test_a_waiting_job_is_cancelled(service: httpx.Client, job: dict[str, Any]) -> None:
    answer = service.post(f"{job['url']}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    problem(service.get(f"{job['url']}/result"), 409)


def test_what_is_over_cannot_be_cancelled(
    service: httpx.Client, worker: Worker, job: dict[str, Any]
) -> None:
    worker.run_one()
    problem(service.post(f"{job['url']}/cancel"), 409)


@pytest.mark.parametrize("path", ["", "/result", "/events"])
def test_a_job_that_is_not_there(service: httpx.Client, path: str) -> None:
    problem(service.get(f"/jobs/0123{path}"), 404)


def test_pages_hold_every_job_once(service: httpx.Client, job: dict[str, Any]) -> None:
    more = [service.post("/simulations", json=EXAMPLE).json()["id"] for _ in range(4)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = service.get("/jobs", params={"limit": 2, **cursor}).json()
        assert len(page["jobs"]) <= 2
        seen += [one["id"] for one in page["jobs"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert len(seen) == len(set(seen))
    assert seen[:4] == more[::-1]
    assert job["id"] in seen


@pytest.mark.parametrize("query", ["limit=0", "limit=1000", "cursor=ä", "state=lost", "kind=x"])
def test_impossible_pages_are_refused(service: httpx.Client, query: str) -> None:
    assert problem(service.get(f"/jobs?{query}"), 422)["field"].endswith(query.split("=")[0])


def test_one_key_gives_one_job(service: httpx.Client) -> None:
    key = {"Idempotency-Key": "one"}
    first = service.post("/simulations", json=EXAMPLE, headers=key).json()
    assert service.post("/simulations", json=EXAMPLE, headers=key).json()["id"] == first["id"]
    assert service.post("/simulations", json=EXAMPLE).json()["id"] != first["id"]
    other = EXAMPLE | {"vary": {}}
    found = problem(service.post("/simulations", json=other, headers=key), 422)
    assert found["field"] == "/Idempotency-Key"


def test_a_whole_number_may_be_written_with_a_point(service: httpx.Client) -> None:
    flows = [{"queue_depth": 4.0, "total_requests": 2e3, "channel_ids": [1.0]}]
    job = service.post("/simulations", json=EXAMPLE | {"scenario": {"flows": flows}})
    assert job.status_code == 202, job.text
    half = EXAMPLE | {"scenario": {"flows": [{"queue_depth": 4.5, "total_requests": 2000}]}}
    problem(service.post("/simulations", json=half), 422)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"drive": "samsung-980-por-1tb"}, "/drive"),
        ({"drive": "../../etc/passwd"}, "/drive"),
        ({"set": {"chanels": 4}}, "/set"),
        ({"vary": {"flows.queue_depht": [1]}}, "/vary"),
        ({"vary": {"flows.queue_depth": list(range(1, 99))}}, "/vary"),
        ({"scenario": {"flows": []}}, "/scenario/flows"),
        ({"scenario": {"flows": [{"queue_depth": 0, "stop_ns": 1}]}},
         "/scenario/flows/0/queue_depth"),
        ({"scenario": {"flows": [{"kind": "trace", "trace_path": "/etc/passwd"}]}},
         "/scenario/flows/0/kind"),
        ({"engine": "mqsim"}, "/engine"),
    ],
)  # fmt: skip
def test_what_cannot_be_simulated_is_pointed_at(
    service: httpx.Client, change: dict[str, Any], field: str
) -> None:
    found = problem(service.post("/simulations", json=EXAMPLE | change), 422)
    assert found["field"] == field


def test_a_service_lets_go_of_what_ended_longer_ago_than_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "SWEEP_SECONDS", 0.05)
    state = State(Place.of(tmp_path / "state"))
    with serving(state, keep_days=30) as client:
        old, young = (client.post("/simulations", json=EXAMPLE).json() for _ in range(2))
        for job in (old, young):
            client.post(f"{job['url']}/cancel")
        with state.database.write() as connection:
            older = {"finished_at": jobs.c.finished_at - 31 * 86400.0}
            connection.execute(update(jobs).where(jobs.c.id == old["id"]).values(older))
        while client.get(old["url"]).is_success:
            time.sleep(0.02)
        problem(client.get(old["url"]), 404)
        assert client.get(young["url"]).json()["state"] == "cancelled"
        assert [one["id"] for one in client.get("/jobs").json()["jobs"]] == [young["id"]]
