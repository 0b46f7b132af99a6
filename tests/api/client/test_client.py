import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule import __version__
from iojoule.api.client import Client
from iojoule.api.http.app import create_app
from iojoule.api.http.datasets import UPLOAD
from iojoule.api.http.fleet import EXAMPLE as PLAN
from iojoule.api.http.operations import route_of
from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.api.http.simulations import EXAMPLE as SIMULATE
from iojoule.api.http.workloads import EXAMPLE as FIO_JOB
from iojoule.api.jobs.simulation_request import SimulationRequest
from iojoule.api.state.errors import ConflictError, NotFoundError
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError, UnknownDeviceError
from iojoule.datasets.profile import load_shipped_profile
from iojoule.datasets.schema import Conditions
from iojoule.recommender.request import WorkloadProfile
from tests.errors import having
from tests.service import ServiceProcess

TABLE = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"].encode()
FIO_RESULT = Path(__file__).parents[2] / "datasets/fio/phases.json"
LONG = {
    "drive": "samsung-980-pro-1tb",
    "scenario": {"flows": [{"queue_depth": 4, "total_requests": 1_000_000_000}]},
}


@pytest.fixture(scope="module")
def dataset(served: ServiceProcess) -> str:
    with Client(served.url) as one:
        return one.upload(TABLE, form="csv", device="samsung-980-pro-1tb").id


@pytest.fixture(scope="module")
def simulated(served: ServiceProcess) -> str:
    with Client(served.url) as one:
        return one.wait(one.simulate(SIMULATE)).id


def test_every_operation_has_a_method(
    client: Client, device: str, dataset: str, simulated: str, tmp_path: Path
) -> None:
    question = RECOMMEND["workload_profile"]
    calls: dict[tuple[str, str], Callable[[], Any]] = {
        ("POST", "/recommend"): lambda: client.recommend(device, question),
        ("POST", "/predict"): lambda: client.predict(device, PREDICT["configurations"]),
        ("POST", "/what-if"): lambda: client.what_if(device, question, {"growth": 1.5}),
        ("POST", "/fleet"): lambda: client.read_fleet(json.dumps(PLAN["fleet"])),
        ("POST", "/fleet/plan"): lambda: client.fleet_plan(PLAN["fleet"], gap=0.1),
        ("POST", "/fleet/frontier"): lambda: client.fleet_frontier(PLAN["fleet"], points=2),
        ("POST", "/workloads"): lambda: client.read_workload(FIO_JOB),
        ("GET", "/workloads/presets"): client.presets,
        ("GET", "/devices"): client.devices,
        ("GET", "/devices/{id}"): lambda: client.device(device),
        ("GET", "/devices/{id}/power-law"): lambda: client.power_law(device),
        ("GET", "/devices/{id}/model-card"): lambda: client.model_card(device),
        ("GET", "/devices/{id}/profiles"): lambda: list(client.profiles(device)),
        ("GET", "/devices/{id}/profiles/current"): lambda: client.current_profile(device),
        ("PUT", "/devices/{id}/profiles/current"): lambda: client.use_profile(device, 0),
        ("GET", "/devices/{id}/profiles/{version}"): lambda: client.profile(device, 0),
        ("GET", "/devices/{id}/calibrations"): lambda: list(client.calibrations(device)),
        ("POST", "/devices/{id}/calibrations"): lambda: client.calibrate(
            device, {"datasets": [dataset], "drive": device}
        ),
        ("GET", "/datasets"): lambda: list(client.datasets()),
        ("POST", "/datasets"): lambda: client.upload(TABLE, form="csv"),
        ("GET", "/datasets/{id}"): lambda: client.dataset(dataset),
        ("GET", "/datasets/{id}/data"): lambda: client.download(dataset, tmp_path / "it.parquet"),
        ("GET", "/datasets/{id}/sidecar"): lambda: client.sidecar(dataset),
        ("GET", "/simulations"): client.simulated_drives,
        ("POST", "/simulations"): lambda: client.simulate(SIMULATE),
        ("GET", "/jobs"): lambda: list(client.jobs()),
        ("GET", "/jobs/{id}"): lambda: client.job(simulated),
        ("GET", "/jobs/{id}/result"): lambda: client.result(simulated),
        ("GET", "/jobs/{id}/events"): lambda: list(client.follow(simulated)),
        ("POST", "/jobs/{id}/cancel"): lambda: client.cancel(client.simulate(LONG)),
        ("PATCH", "/jobs/{id}"): lambda: client.share_job(simulated),
        ("DELETE", "/jobs/{id}"): lambda: client.delete_job(client.wait(client.simulate(SIMULATE))),
        ("PATCH", "/datasets/{id}"): lambda: client.share_dataset(dataset),
        ("DELETE", "/datasets/{id}"): lambda: client.delete_dataset(
            client.upload(TABLE, form="csv").id
        ),
        ("GET", "/audit"): lambda: list(client.audit()),
        ("GET", "/healthz"): client.health,
        ("GET", "/readyz"): client.readiness,
        ("GET", "/metrics"): client.metrics,
    }
    described = create_app().openapi()["paths"]
    there = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert set(calls) == there
    sent: list[tuple[str, str | None]] = []
    client._connection.http.event_hooks["request"].append(
        lambda request: sent.append((request.method, route_of(request.method, request.url.path)))
    )
    for operation, call in calls.items():
        sent.clear()
        call()
        assert operation in sent


def test_answers_are_what_the_service_computes(client: Client, device: str) -> None:
    told = client.recommend(device, WorkloadProfile.model_validate(RECOMMEND["workload_profile"]))
    assert told.recommended is not None
    assert told.iojoule_version == __version__
    predicted = client.predict(device, PREDICT["configurations"])
    assert [one.queue_depth for one in predicted.predictions] == [16, 8]
    assert predicted.predictions[0].evidence_by_quantity["device_power_watts"]
    assert client.recommend(device, "ycsb-a").device == device
    assert [one.id for one in client.devices().devices] == list(load_catalogue().ids)
    assert client.device("Samsung 980 PRO").id == device
    assert client.profile(device, 0) == load_shipped_profile(device)
    assert client.read_workload(FIO_JOB).workload.read_fraction == pytest.approx(0.7)
    assert "iojoule_build_info" in client.metrics()
    assert client.readiness().database == "sqlite"


def test_what_must_be_simulated_is_waited_for(client: Client, device: str) -> None:
    told: list[str] = []
    found = client.what_if(
        device, RECOMMEND["workload_profile"], {"geometry.channels": 4},
        watch=lambda job: told.append(job.state),
    )  # fmt: skip
    assert found.changes == {"geometry.channels": 4}
    assert told[-1] == "done"
    with pytest.raises(InputError, check=having(field="changes")):
        client.what_if(device, RECOMMEND["workload_profile"], {"geometry.chanels": 4})


def test_conditions_reach_the_service(client: Client, device: str) -> None:
    wide = client.recommend(device, "ycsb-a", conditions=Conditions(temperature_celsius_mean=45))
    assert wide.recommended is not None
    with pytest.raises(InputError) as caught:
        client.recommend(device, "ycsb-a", conditions={"pcie_generation": "fast"})
    assert caught.value.pointer == "/conditions/pcie_generation"


def test_problems_are_the_errors_that_the_service_met(client: Client, device: str) -> None:
    with pytest.raises(UnknownDeviceError, match="samsung-980-pro-1tb") as unknown:
        client.device("samsung-980")
    assert unknown.value.request_id
    with pytest.raises(InputError) as impossible:
        client.predict(device, [{"queue_depth": 4}, {"queue_depth": 0}])
    assert impossible.value.pointer == "/configurations/1/queue_depth"
    assert impossible.value.field == "configurations.1.queue_depth"
    with pytest.raises(NotFoundError):
        client.job("0" * 28)
    with pytest.raises(NotFoundError):
        next(client.follow("0" * 28))


def test_lists_are_asked_for_page_by_page_as_they_are_taken(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iojoule.api.client.client.PAGE", 2)
    made = [client.simulate(SIMULATE).id for _ in range(5)]
    sent: list[str] = []
    client._connection.http.event_hooks["request"].append(
        lambda request: sent.append(str(request.url))
    )
    taken = client.jobs()
    assert not sent
    assert [next(taken).id for _ in range(2)] == made[:2:-1]
    assert len(sent) == 1
    assert [next(taken).id for _ in range(3)] == made[2::-1]
    assert len(sent) == 3


def test_an_upload_comes_back_as_it_was_kept(client: Client, device: str, tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_bytes(TABLE)
    kept = client.upload(table, device=device)
    assert kept.upload_sha256 == hashlib.sha256(TABLE).hexdigest()
    assert (kept.device, kept.rows) == (device, 2)
    client.download(kept.id, tmp_path / "runs.parquet")
    assert hashlib.sha256((tmp_path / "runs.parquet").read_bytes()).hexdigest() == kept.data_sha256
    assert client.sidecar(kept.id)["provenance"]
    again = client.upload(tmp_path / "runs.parquet")
    assert again.rows == 2
    with pytest.raises(InputError, match=r"say form="):
        client.upload(tmp_path / "runs")
    with pytest.raises(InputError, match="cannot be read"):
        client.upload(tmp_path / "none.csv")


def test_a_folder_is_uploaded_as_one(client: Client, tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        (tmp_path / "runs" / day).mkdir(parents=True)
        shutil.copy(FIO_RESULT, tmp_path / "runs" / day)
    kept = client.upload(tmp_path / "runs")
    assert (kept.rows, kept.format) == (4, "zip")
    assert not [*tmp_path.glob("*.zip")]


def test_a_job_is_followed_to_its_end(client: Client) -> None:
    job = client.simulate(SimulationRequest.model_validate(SIMULATE))
    states = [one.state for one in client.follow(job)]
    assert states[-1] == "done"
    assert len(client.result(job)["scenarios"]) == 3
    told: list[float] = []
    assert client.wait(job, watch=lambda one: told.append(one.progress)).state == "done"
    assert told == [1.0]


def test_waiting_ends_with_what_the_job_met(client: Client, device: str, dataset: str) -> None:
    failing = client.calibrate(device, {"datasets": [dataset], "drive": device, "designs": 8})
    with pytest.raises(InputError):
        client.wait(failing)
    assert client.job(failing).error is not None
    job = client.simulate(LONG)
    with pytest.raises(TimeoutError, match=job.id):
        client.wait(job, timeout_seconds=0.3)
    with pytest.raises(ConflictError, match="once it is done"):
        client.result(job)
    client.cancel(job)
    with pytest.raises(ConflictError, match="called off"):
        client.wait(job)


def test_the_environment_names_service_and_key(
    served: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IOJOULE_SERVER", raising=False)
    with pytest.raises(InputError, match="IOJOULE_SERVER"):
        Client()
    for wrong in ("127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://[::1"):
        with pytest.raises(InputError, match=r"write it as http://127\.0\.0\.1:8080"):
            Client(wrong)
    monkeypatch.setenv("IOJOULE_SERVER", served.url + "/")
    monkeypatch.setenv("IOJOULE_KEY", "iojoule_1_2")
    with Client() as client:
        assert client.server == served.url
        assert client.health().status == "ok"
        assert client._connection.http.headers["authorization"] == "Bearer iojoule_1_2"
    with pytest.raises(InputError, check=having(field="key")):
        Client(served.url, key="a\nb")


QUESTION = RECOMMEND["workload_profile"]
HEAVY = (
    "numpy", "scipy", "pyarrow", "sklearn", "moocore", "matplotlib", "fastapi", "starlette",
    "sqlalchemy", "uvicorn", "iojoule.model.evaluate.predictor", "iojoule.recommender.recommend",
    "iojoule.sim._core", "iojoule.recommender._kernel",
)  # fmt: skip


def test_asking_needs_nothing_that_computes(served: ServiceProcess) -> None:
    script = f"""
import sys
from iojoule.api.client import Client
light = {{"httpx", "pydantic", *{HEAVY!r}}} & set(sys.modules)
with Client({served.url!r}) as client:
    client.recommend("samsung-980-pro-1tb", "ycsb-a")
    client.predict("samsung-980-pro-1tb", [{{"jobs": 2}}])
    client.wait(client.simulate({SIMULATE!r}))
    list(client.datasets())
    client.what_if("samsung-980-pro-1tb", {QUESTION!r}, {{"growth": 1.5}})
    client.power_law("samsung-980-pro-1tb")
    client.model_card("samsung-980-pro-1tb")
    client.profile("samsung-980-pro-1tb", 0)
print(light, set({HEAVY!r}) & set(sys.modules))
"""
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["set()", "set()"]
