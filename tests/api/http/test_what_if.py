"""What-ifs over HTTP are those of the command line, but for what reads files."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from iojoule.api.application.profiles import profile_of
from iojoule.api.application.what_if import what_if
from iojoule.api.http.what_if import EXAMPLE
from iojoule.api.jobs.running import Watched
from iojoule.api.jobs.worker import Worker
from iojoule.api.reports.report_file import data_of
from iojoule.api.state import jobs
from iojoule.api.state.place import State
from iojoule.recommender.request import parse_workload
from iojoule.recommender.what_if.situation import Situation
from iojoule.sim.engines import Limits
from tests.api.conftest import Iojoule
from tests.api.http.test_problems import problem


def asked(service: httpx.Client, changes: dict[str, Any]) -> httpx.Response:
    return service.post("/what-if", json={**EXAMPLE, "changes": changes})


def test_the_answer_is_that_of_the_command_line(service: httpx.Client) -> None:
    found = service.post("/what-if", json=EXAMPLE)
    assert found.status_code == 200, found.text
    base = Situation(profile_of(EXAMPLE["device"]), parse_workload(EXAMPLE["workload_profile"]))
    assert found.json() == what_if(base, EXAMPLE["changes"]).model_dump(mode="json")


def test_no_growth_changes_nothing(service: httpx.Client) -> None:
    found = asked(service, {"growth": 1.0}).json()
    assert found["same_configuration"]
    assert all(one["change"]["value"] == 0 for one in found["differences"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"geometry.chanels": 4}, "/changes"),
        ({"geometry.channels": 0}, "/changes"),
        ({"geometry.flash": "qlc"}, "/changes"),
        ({"geometry.channels": 4, "preset": "/etc/passwd"}, "/changes/preset"),
        ({"preset": "/etc/passwd"}, "/changes/preset"),
        ({"preset": 1}, "/changes/preset"),
        ({"grwoth": 2}, "/changes/grwoth"),
        ({"grwoth.much": 2}, "/changes"),
        ({"device": "../profile.json"}, None),
    ],
)
def test_what_cannot_be_changed_is_named(
    service: httpx.Client, changes: dict[str, Any], field: str | None
) -> None:
    found = asked(service, changes)
    assert found.status_code in (404, 422)
    assert field is None or found.json()["field"] == field


READS: dict[str, Any] = {
    **EXAMPLE,
    "workload_profile": {
        "workload": {"operation": "read", "demand_operations_per_second": 30000},
        "free": {"queue_depth": [4, 16], "power_state": [0, 1]},
        "sla": {"latency_p99_ns_max": 2000000},
    },
}


def test_a_drive_built_otherwise_is_a_job_whose_result_is_that_of_the_command_line(
    service: httpx.Client,
    worker: Worker,
    iojoule: Iojoule,
    tmp_path: Path,
) -> None:
    sent = {**READS, "changes": {"geometry.channels": 4, "growth": 1.5}}
    answer = service.post("/what-if", json=sent)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["url"]
    assert answer.json()["kind"] == "what-if"
    worker.run_one()
    job = service.get(answer.json()["url"]).json()
    assert (job["state"], job["error"]) == ("done", None)
    found = service.get(job["result_url"]).json()
    assert found["changed"]["geometry"] == {"channels": 4}
    assert found["changed"]["totals"]["latency_p99_ns"]["evidence"] == "simulated"
    page = service.get(job["result_url"], headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    told = data_of(page.text, "page")
    assert told["answer"] == found
    assert told["asked"]["request"]["changes"] == sent["changes"]
    question = tmp_path / "question.json"
    question.write_text(json.dumps(READS["workload_profile"]))
    said = iojoule(
        "what-if", "--device", READS["device"], "--workload", question,
        "-c", "geometry.channels=4", "-c", "growth=1.5", "-o", "json",
    )  # fmt: skip
    assert found == json.loads(said.out)


def test_what_takes_too_much_to_simulate_fails_and_says_why(
    service: httpx.Client, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "iojoule.api.jobs.what_if.LIMITS", Limits(memory_bytes=1 << 20, wall_seconds=600.0)
    )
    job = service.post("/what-if", json={**READS, "changes": {"geometry.channels": 16}}).json()
    worker.run_one()
    failed = service.get(job["url"]).json()
    assert failed["state"] == "failed"
    assert failed["error"]["status"] == 422
    assert "more than the limit" in failed["error"]["detail"]


def test_it_is_called_off_while_it_simulates(
    service: httpx.Client,
    worker: Worker,
    store: State,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = service.post("/what-if", json={**READS, "changes": {"geometry.channels": 2}}).json()

    def call_off(watched: Watched, *_: Any) -> None:
        with store.database.write() as connection:
            jobs.cancel(connection, job["id"])
        watched.stop.set()

    monkeypatch.setattr(Watched, "say", call_off)
    worker.run_one()
    assert service.get(job["url"]).json()["state"] == "cancelled"


@pytest.mark.parametrize(
    "field",
    ["flows", "flows.queue_depth", "flows[0].queue_depth", "flows.trace_path", "flows[0].nothing"],
)
def test_flows_are_no_geometry_of_a_drive(service: httpx.Client, store: State, field: str) -> None:
    def count() -> int:
        with store.database.read() as connection:
            return len(jobs.listed(connection, 1000, None).items)

    before = count()
    for others in ({}, {"geometry.channels": 4}):
        changes = {**others, f"geometry.{field}": 4}
        body = problem(service.post("/what-if", json={**READS, "changes": changes}), 422)
        assert body["field"] == "/changes"
    assert count() == before


def test_one_key_gives_one_job(service: httpx.Client) -> None:
    sent = {**READS, "changes": {"geometry.link_lanes": 2}}
    key = {"Idempotency-Key": "what-if"}
    first, again = (service.post("/what-if", json=sent, headers=key).json() for _ in range(2))
    assert first["id"] == again["id"]
    problem(service.post("/what-if", json=READS | {"changes": {"geometry.channels": 2}},
                         headers=key), 422)  # fmt: skip


def test_conditions_that_the_drive_cannot_be_under_are_named(service: httpx.Client) -> None:
    body = {**EXAMPLE, "conditions": {"pcie_generation": 9}}
    told = problem(service.post("/what-if", json=body), 422)
    assert told["field"] == "/conditions/pcie_generation"
    simulated = {**body, "changes": {"geometry.channels": 4}}
    assert service.post("/what-if", json=simulated).status_code == 422


def test_a_preset_is_taken_as_recommend_takes_it(service: httpx.Client) -> None:
    body = {**EXAMPLE, "workload_profile": "ycsb-b", "changes": {"drives": 2}}
    assert service.post("/what-if", json=body).status_code == 200
    unknown = service.post("/what-if", json={**body, "workload_profile": "nonsense"})
    assert unknown.status_code == 422
    assert "ycsb" in unknown.text
