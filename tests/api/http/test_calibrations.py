import io
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.jobs.worker import Worker
from iojoule.api.state import jobs
from iojoule.api.state.place import State
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.store import Dataset
from tests.api.http.test_problems import problem
from tests.sim.calibration.hidden import HIDDEN, measured

PATH = "/devices/samsung-980-pro-1tb"


@pytest.fixture(scope="module")
def dataset(service: httpx.Client) -> str:
    """Measurements of a drive that differs from the one that iojoule knows."""
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16))
    stream = io.BytesIO()
    table = Dataset.from_measurements(rows, Provenance(importer="test")).table
    pq.write_table(table, stream)
    kept = service.post(
        "/datasets",
        content=stream.getvalue(),
        headers={"Content-Type": "application/vnd.apache.parquet"},
    )
    assert kept.status_code == 201, kept.text
    return str(kept.json()["id"])


@pytest.fixture
def worker(store: State, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """What runs jobs, in this very process, one by one as a test says so."""
    monkeypatch.setattr("iojoule.api.jobs.calibration.cores", lambda: 1)
    with store.database.write() as connection:
        for one in jobs.listed(connection, 1000, None, state="queued").items:
            jobs.cancel(connection, one.id)
    return Worker(store, beat_seconds=0.05)


def request(dataset: str, **more: Any) -> dict[str, Any]:
    quick = {"parameters": ["page_read_ns"], "rounds": 1, "designs": 8, "tables": False}
    return {"datasets": [dataset], "drive": "samsung-980-pro-1tb", **quick, **more}


def current(service: httpx.Client) -> tuple[int, str]:
    answer = service.get(f"{PATH}/profiles/current")
    return answer.json()["version"], answer.headers["etag"]


def test_a_calibration_publishes_a_version_that_answers_and_can_be_rolled_back(
    service: httpx.Client, store: State, worker: Worker, dataset: str
) -> None:
    before = service.post("/predict", json=PREDICT).json()
    version, etag = current(service)
    answer = service.post(f"{PATH}/calibrations", json=request(dataset))
    assert answer.status_code == 202, answer.text
    assert worker.run_one()
    job = service.get(answer.json()["url"]).json()
    assert (job["state"], job["error"]) == ("done", None)
    assert service.get(job["result_url"]).json()["calibration"]["parameters"]
    listed = service.get(f"{PATH}/profiles").json()
    assert (listed["current"], listed["profiles"][0]["job_id"]) == (version + 1, job["id"])
    assert listed["profiles"][-1]["origin"] == "iojoule"
    newest = service.get(listed["profiles"][0]["url"]).json()
    assert newest["profile_version"] == f"calibration-{version + 1}"
    assert service.get(f"{PATH}/calibrations").json()["jobs"][0]["id"] == job["id"]

    # somebody who decided before the calibration ended is told so
    problem(service.put(f"{PATH}/profiles/current", json={"version": 0}), 428)
    stale = {"If-Match": etag}
    problem(service.put(f"{PATH}/profiles/current", json={"version": 0}, headers=stale), 412)
    fresh = {"If-Match": current(service)[1]}
    missing = service.put(f"{PATH}/profiles/current", json={"version": 99}, headers=fresh)
    problem(missing, 404)
    again = service.put(f"{PATH}/profiles/current", json={"version": version + 1}, headers=fresh)
    assert again.json() == {"device": "samsung-980-pro-1tb", "version": version + 1}
    calibrated = service.post("/predict", json=PREDICT).json()
    assert calibrated["profile_version"] == f"calibration-{version + 1}"
    shown = service.get(PATH).json()
    assert shown["profile"]["profile_version"] == calibrated["profile_version"]

    back = {"If-Match": again.headers["etag"]}
    assert service.put(f"{PATH}/profiles/current", json={"version": 0}, headers=back).is_success
    assert service.post("/predict", json=PREDICT).json() == before


def test_a_dataset_that_tells_too_little_fails_the_job_and_publishes_nothing(
    service: httpx.Client, worker: Worker, dataset: str
) -> None:
    before = service.get(f"{PATH}/profiles").json()
    asked = request(dataset, hold_out=["request_bytes=4096,16384"])
    job = service.post(f"{PATH}/calibrations", json=asked).json()
    worker.run_one()
    failed = service.get(job["url"]).json()
    assert failed["state"] == "failed"
    assert "too few" in failed["error"]["detail"]
    assert service.get(f"{PATH}/profiles").json() == before


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"datasets": []}, "/datasets"),
        ({"datasets": ["0123"]}, "/datasets/0"),
        ({"drive": "/etc/passwd"}, "/drive"),
        ({"set": {"chanels": 4}}, "/set"),
        ({"hold_out": ["x"]}, "/hold_out/0"),
        ({"rounds": 0}, "/rounds"),
        ({"parameters": ["page_read_ns", "command_ns"]}, "/parameters/1"),
        ({"folder": "/tmp"}, "/folder"),
    ],
)
def test_what_cannot_be_calibrated_is_pointed_at(
    service: httpx.Client, dataset: str, change: dict[str, Any], field: str
) -> None:
    found = problem(service.post(f"{PATH}/calibrations", json=request(dataset) | change), 422)
    assert found["field"] == field


def test_measurements_of_another_drive_are_refused(service: httpx.Client, dataset: str) -> None:
    answer = service.post("/devices/micron-7450/calibrations", json=request(dataset))
    assert "samsung-980-pro-1tb" in problem(answer, 422)["detail"]


def test_a_device_without_calibrations_answers_with_what_iojoule_brings(
    service: httpx.Client,
) -> None:
    listed = service.get("/devices/micron-7450/profiles").json()
    assert [one["version"] for one in listed["profiles"]] == [0]
    assert service.get("/devices/virtualbox-nvme/profiles").json()["profiles"] == []
    problem(service.get("/devices/nothing/profiles"), 404)
    problem(service.get("/devices/micron-7450/profiles/7"), 404)
