import copy
import json
from typing import Any

import anyio
import httpx
import pytest

from iojoule.api.exit_codes import error_classes
from iojoule.api.http.app import create_app
from iojoule.api.http.computed_schemas import ROWS_MAX
from iojoule.api.http.recommend import EXAMPLE
from iojoule.api.http.requests import BODY_BYTES_MAX
from iojoule.api.problem_document import MEDIA_TYPE, pointer
from iojoule.datasets.errors import IojouleError

JSON = {"Content-Type": "application/json"}


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == MEDIA_TYPE
    body = response.json()
    assert body["status"] == status
    assert {"type", "title", "detail", "instance"} <= set(body)
    assert body["instance"] == response.url.path
    return body


def predict(device: str, **fields: Any) -> dict[str, Any]:
    return {"device": device, "configurations": [{}, fields]}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"queue_depth": 0}, "queue_depth"),
        ({"request_bytes": -4096}, "request_bytes"),
        ({"operation": "mixed", "read_fraction": 1.2}, "read_fraction"),
        ({"operation": "mixed"}, "read_fraction"),
        ({"engine": "spdk", "completion": "interrupt"}, "completion"),
        ({"engine": "aio"}, "engine"),
        ({"power_state": 4}, "power_state"),
        ({"power_limit_watts": 0.5}, "power_limit_watts"),
        ({"power_limit_watts": 5, "power_state": 1}, "power_limit_watts"),
        ({"queue_depht": 1}, "queue_depht"),
        ({"iops": 1}, "iops"),
        ({"queue_depth": 1.5}, "queue_depth"),
        ({"queue_depth": "many"}, "queue_depth"),
    ],
)
def test_an_impossible_configuration_is_pointed_at(
    fields: dict[str, Any], place: str, service: httpx.Client, device: str
) -> None:
    found = problem(service.post("/predict", json=predict(device, **fields)), 422)
    assert found["field"] == f"/configurations/1/{place}"
    assert found["errors"][0]["field"] == found["field"]
    assert found["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("place", "value", "status"),
    [
        ("/workload_profile/workload/read_fraction", 1.2, 422),
        ("/workload_profile/workload/useful_request_bytes", -1, 422),
        ("/workload_profile/current/queue_depth", 0, 422),
        ("/workload_profile/current/power_state", 4, 422),
        ("/workload_profile/sla/latency_p99_max", 5, 422),
        ("/workload_profile/sla/confidence", 2, 422),
        ("/workload_profile/workload/demand_operations_per_second", 1.6e308, 422),
        ("/workload_profile/workload/demand_operations_per_second", 5e-324, 422),
        ("/workload_profile/workload/read_fraction", True, 422),
        ("/workload_profile/free/queue_depth", [], 422),
        ("/workload_profile/objective", "happiness", 422),
        ("/workload_profile/request_bytes_coalescible", 4096, 422),
        ("/profile", 1, 422),
        ("/device", "samsung-980-por-1tb", 404),
        ("/device", "virtualbox-nvme", 409),
        ("/device", None, 422),
    ],
)
def test_an_impossible_workload_is_pointed_at(
    place: str, value: Any, status: int, service: httpx.Client
) -> None:
    question = copy.deepcopy(EXAMPLE)
    *above, last = place.split("/")[1:]
    inner = question
    for key in above:
        inner = inner[key]
    inner[last] = value
    assert problem(service.post("/recommend", json=question), status)["field"] == place


@pytest.mark.parametrize("generation", [5, 0])
def test_conditions_that_the_drive_cannot_be_under_are_pointed_at(
    generation: int, service: httpx.Client
) -> None:
    question = EXAMPLE | {"conditions": {"pcie_generation": generation}}
    found = problem(service.post("/recommend", json=question), 422)
    assert found["field"] == "/conditions/pcie_generation"


def test_a_contradictory_sla_names_the_bound(service: httpx.Client) -> None:
    question = copy.deepcopy(EXAMPLE)
    question["workload_profile"]["sla"]["latency_p50_ns_max"] = 9e9
    found = problem(service.post("/recommend", json=question), 422)
    assert found["field"] == "/workload_profile/sla/latency_p99_ns_max"
    assert "latency_p50_ns_max" in found["detail"]


def test_what_is_wrong_in_a_list_does_not_also_make_it_too_short(service: httpx.Client) -> None:
    asked = {"drive": "samsung-980-pro-1tb", "scenario": {"flows": [{"queue_depth": 0}]}}
    found = problem(service.post("/simulations", json=asked), 422)
    assert {one["field"] for one in found["errors"]} == {"/scenario/flows/0/queue_depth"}
    none = problem(service.post("/simulations", json=asked | {"scenario": {"flows": []}}), 422)
    assert none["field"] == "/scenario/flows"


def test_an_unknown_drive_names_the_closest(service: httpx.Client) -> None:
    found = problem(service.get("/devices/samsung-980-por-1tb"), 404)
    assert found["type"] == "urn:iojoule:problem:unknown-device"
    assert "samsung-980-pro-1tb" in found["detail"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "01", "+1"])
@pytest.mark.parametrize("path", ["/predict", "/recommend"])
def test_what_json_has_no_number_for_is_refused(
    number: str, path: str, service: httpx.Client, device: str
) -> None:
    body = json.dumps(
        {"device": device, "configurations": [{"queue_depth": "@"}]}
        if path == "/predict"
        else {
            "device": device,
            "workload_profile": {
                "workload": {"operation": "read"},
                "sla": {"latency_p99_ns_max": "@"},
            },
        }
    ).replace('"@"', number)
    problem(service.post(path, content=body, headers=JSON), 400)


@pytest.mark.parametrize("body", ['{"device":', "", "{'a': 1}", "\x00", '{"a": 1} {}'])
def test_a_body_that_is_no_json(body: str, service: httpx.Client) -> None:
    response = service.post("/predict", content=body, headers=JSON)
    problem(response, 400 if body else 422)


@pytest.mark.parametrize("body", ["[]", "null", "1", '"text"', "{}"])
def test_a_body_of_another_shape(body: str, service: httpx.Client) -> None:
    problem(service.post("/predict", content=body, headers=JSON), 422)


def test_a_body_of_another_kind(service: httpx.Client) -> None:
    problem(
        service.post("/predict", content=b"device=1", headers={"Content-Type": "text/csv"}), 415
    )
    problem(service.post("/predict", content=b"{}"), 415)


def test_too_much_at_once(service: httpx.Client, device: str) -> None:
    found = problem(
        service.post("/predict", content=b" " * (BODY_BYTES_MAX + 1), headers=JSON), 413
    )
    assert str(BODY_BYTES_MAX) in found["detail"]
    many = {"device": device, "configurations": [{}] * (ROWS_MAX + 1)}
    assert problem(service.post("/predict", json=many), 422)["field"] == "/configurations"
    none = {"device": device, "configurations": []}
    assert problem(service.post("/predict", json=none), 422)["field"] == "/configurations"


def test_paths_and_methods_that_do_not_exist(service: httpx.Client) -> None:
    problem(service.get("/nothing"), 404)
    found = service.get("/predict")
    problem(found, 405)
    assert found.headers["allow"] == "POST"
    # all methods of the path, not those of one route
    assert service.delete("/datasets").headers["allow"] == "GET, HEAD, POST"
    assert service.delete("/devices/x/profiles/current").headers["allow"] == "GET, HEAD, PUT"
    problem(service.delete("/devices"), 405)
    assert service.head("/predict").status_code == 405
    assert service.head("/jobs/x/events").status_code == 405  # its answer has no end


@pytest.mark.parametrize("path", ["/", "/ui/", "/devices", "/metrics", "/openapi.json", "/jobs/x"])
def test_head_is_get_without_the_body(path: str, service: httpx.Client) -> None:
    head, get = service.head(path), service.get(path)
    assert head.status_code == get.status_code
    assert head.headers["content-type"] == get.headers["content-type"] if get.content else True
    assert head.content == b""


def test_a_file_that_the_page_does_not_have_is_missing(service: httpx.Client) -> None:
    problem(service.get("/ui/missing.js"), 404)
    problem(service.get("/ui/assets/missing.js"), 404)


@pytest.mark.parametrize("asked", ["bytes=5-1", "bytes=0-9", "bytes=99999999-", "x"])
def test_the_page_is_sent_whole(asked: str, service: httpx.Client) -> None:
    whole, part = service.get("/ui/"), service.get("/ui/", headers={"Range": asked})
    assert (part.status_code, part.content) == (whole.status_code, whole.content)


@pytest.mark.parametrize("kind", list(error_classes()))
def test_every_error_class_has_its_status(
    kind: type[IojouleError], service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise kind("this is wrong; do that", field="a.b")

    monkeypatch.setattr("iojoule.api.http.devices.devices.list_devices", fail)
    found = problem(service.get("/devices"), kind.http_status)
    assert found["title"] == kind.title
    assert found["detail"] == "this is wrong; do that"
    assert found["field"] == "/a/b"
    assert found["type"].startswith("urn:iojoule:problem:")


def test_a_fault_of_our_own_tells_nothing_of_the_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("iojoule.api.http.devices.devices.list_devices", fail)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/devices")

    found = problem(anyio.run(ask), 500)
    assert "secret" not in json.dumps(found)


def test_pointers_escape_what_json_pointers_escape() -> None:
    assert pointer(["a", 1, "b/c", "d~e"]) == "/a/1/b~1c/d~0e"
