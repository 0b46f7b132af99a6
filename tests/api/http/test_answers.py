import json
from typing import Any

import httpx

from iojoule import __version__
from iojoule.api.application.recommend import RecommendationAnswer
from iojoule.api.http.calibrations import EXAMPLE as CALIBRATE
from iojoule.api.http.computed_schemas import PredictResponse
from iojoule.api.http.datasets import UPLOAD
from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.api.http.simulations import EXAMPLE as SIMULATE
from iojoule.api.jobs.worker import Worker
from iojoule.api.state.place import State
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.profile import shipped_profiles
from iojoule.model.evaluate.quantities import ANSWERED


def test_healthz_names_the_profiles(service: httpx.Client) -> None:
    health = service.get("/healthz").json()
    assert health["status"] == "ok"
    assert health["iojoule_version"] == __version__
    assert set(health["profiles"]) == set(shipped_profiles())


def test_devices_are_those_of_the_catalogue(service: httpx.Client) -> None:
    listed = service.get("/devices").json()
    assert [one["id"] for one in listed["devices"]] == list(load_catalogue().ids)
    assert {one["id"] for one in listed["devices"] if one["performance"]} == set(shipped_profiles())


def test_a_device_has_facts_and_what_its_profile_answers(
    service: httpx.Client, device: str
) -> None:
    for name in (device, "Samsung 980 PRO"):
        one = service.get(f"/devices/{name}").json()
        assert one["id"] == device
        assert one["iojoule_version"] == __version__
        assert one["facts"][0]["source"]
        assert one["declared_power_note"] == "a declared cap is not a measured power"
        assert one["profile"]["gaps"]
    unmeasured = service.get("/devices/micron-7450").json()
    assert not unmeasured["measured"]
    assert {one["evidence"] for one in unmeasured["profile"]["fitted"]} == {"datasheet"}
    assert service.get("/devices/virtualbox-nvme").json()["profile"] is None


def test_predictions_come_in_order_with_versions_and_defaults(service: httpx.Client) -> None:
    response = service.post("/predict", json=PREDICT)
    answer = PredictResponse.model_validate_json(response.content).model_dump()
    assert answer["profile_version"]
    assert answer["iojoule_version"] == __version__
    assert answer["defaults_used"]["pattern"] == "random"
    first, second = response.json()["predictions"]
    assert first["queue_depth"] == 16
    assert second["power_state"] == 1
    assert set(ANSWERED) <= set(first)
    assert first["iops_low"] < first["iops"] < first["iops_high"]
    assert first["dram_power_watts"] is None
    assert first["evidence"]
    assert first["evidence_by_quantity"]["device_power_watts"]


def test_the_service_and_the_command_line_predict_the_same(
    service: httpx.Client, iojoule: Any, device: str
) -> None:
    told = service.post("/predict", json={"device": device, "configurations": [{"jobs": 4}]}).json()
    shown = json.loads(iojoule("predict", "--device", device, "--set", "jobs=4", "-o", "json").out)
    assert told == shown


def test_a_recommendation_is_what_the_schema_says(service: httpx.Client) -> None:
    response = service.post("/recommend", json=RECOMMEND)
    answer = RecommendationAnswer.model_validate_json(response.content)
    assert answer.iojoule_version == __version__
    assert answer.recommended is not None
    assert len(answer.pareto) >= 3
    assert answer.evidence["iops"]
    assert answer.defaults_used["scheduler"] == "none"


def test_a_recommendation_is_stated_in_the_settings_of_an_application(
    service: httpx.Client,
) -> None:
    told = service.post("/recommend", json=RECOMMEND | {"settings": "postgresql=18"}).json()
    assert "io_method" in {line["name"] for line in told["settings"]["settings"]}
    assert told["settings"]["text"].splitlines()[-1]
    refused = service.post("/recommend", json=RECOMMEND | {"settings": "oracle"})
    assert refused.status_code == 422
    assert "postgresql" in refused.text


def test_known_conditions_narrow_a_recommendation(service: httpx.Client) -> None:
    def width(**conditions: Any) -> float:
        answer = service.post("/recommend", json=RECOMMEND | {"conditions": conditions}).json()
        capacity = answer["current"]["capacity_bytes_per_second"]
        return float(capacity["high"] / capacity["low"])

    assert width(pcie_generation=3) < width()


def test_limits_in_watts_are_asked_about_everywhere_with_the_same_figures(
    service: httpx.Client, iojoule: Any, device: str
) -> None:
    limits = [3.5, 4.5, 0.0]
    asked = [{"queue_depth": 32, "power_limit_watts": watts} for watts in limits]
    told = service.post("/predict", json={"device": device, "configurations": asked}).json()
    rows = told["predictions"]
    speeds = [row["iops"] for row in rows]
    assert speeds == sorted(speeds)
    assert all(
        row["device_power_watts_high"] <= watts
        for row, watts in zip(rows, limits, strict=True)
        if watts
    )
    line = ("--set", "queue_depth=32", "--set", "power_limit_watts=3.5", "-o", "json")
    shown = json.loads(iojoule("predict", "--device", device, *line).out)
    assert shown["predictions"] == rows[:1]
    profile = RECOMMEND["workload_profile"]
    free = profile["free"] | {"power_limit_watts": [0, 4.5], "power_state": [0]}
    body = RECOMMEND | {"workload_profile": profile | {"free": free}}
    answer = service.post("/recommend", json=body).json()
    assert {one["configuration"]["power_limit_watts"] for one in answer["pareto"]} <= {0, 4.5, None}
    today = profile["current"] | {"power_limit_watts": 4.5, "power_state": 0}
    asked_if = {"device": device, "workload_profile": profile | {"current": today}}
    changed = service.post(
        "/what-if", json=asked_if | {"changes": {"current.power_limit_watts": 3.5}}
    ).json()
    before, after = (
        changed[side]["answer"]["current"]["configuration"]["power_limit_watts"]
        for side in ("base", "changed")
    )
    assert (before, after) == (4.5, 3.5)


def test_conditions_say_what_the_intervals_are_about(service: httpx.Client) -> None:
    kinds = ("same-host", "another-host", "another-drive")
    asked = [{"queue_depth": 1, "interval_for": kind} for kind in kinds]
    body = {"device": RECOMMEND["device"], "configurations": asked}
    found = service.post("/predict", json=body).json()["predictions"]
    widths = [one["iops_high"] / one["iops_low"] for one in found]
    assert widths == sorted(set(widths))
    conditions = {"interval_for": "next-door"}
    refused = service.post("/recommend", json=RECOMMEND | {"conditions": conditions})
    assert refused.status_code == 422


def test_no_feasible_configuration_is_an_answer(service: httpx.Client) -> None:
    question = json.loads(json.dumps(RECOMMEND))
    question["workload_profile"]["sla"]["latency_p99_ns_max"] = 1000
    answer = service.post("/recommend", json=question).json()
    assert answer["recommended"] is None
    assert answer["nearest_misses"][0]["shortfalls"]


DATASET = CALIBRATE["datasets"][0]


def operations(service: httpx.Client) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of everything that the service does."""
    paths = service.get("/openapi.json").json()["paths"]
    return [(method, path, told) for path, all_ in paths.items() for method, told in all_.items()]


def test_every_operation_is_described(service: httpx.Client) -> None:
    found = operations(service)
    assert len(found) >= 10
    for _, _, told in found:
        assert told["summary"]
        assert {"200", "201", "202", "204"} & set(told["responses"])
        assert "application/problem+json" in told["responses"]["default"]["content"]
        assert "422" not in told["responses"]


def made(service: httpx.Client, store: State) -> dict[str, str]:
    """Ids of what has to be there before it can be asked for, by how its path begins."""
    headers = {"Content-Type": "text/csv"}
    table = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]
    dataset = service.post("/datasets", content=table, headers=headers).json()["id"]
    done, waiting = (service.post("/simulations", json=SIMULATE).json()["id"] for _ in range(2))
    while service.get(f"/jobs/{done}").json()["state"] != "done":
        assert Worker(store).run_one()
    return {"/jobs/{id}/cancel": waiting, "/jobs/{id}": done, "/datasets/{id}": dataset}


def test_every_example_of_the_description_is_answered(service: httpx.Client, store: State) -> None:
    spare = made(service, store)  # to be deleted
    ids = made(service, store)
    for method, path, told in operations(service):
        filled = path
        for begin, id_ in (spare if method == "delete" else ids).items():
            if path.startswith(begin):
                filled = filled.replace("{id}", id_)
        for parameter in told.get("parameters", []):
            if parameter["in"] == "path":
                example = parameter["schema"]["examples"][0]
                filled = filled.replace(f"{{{parameter['name']}}}", str(example))
        for kind, body in told.get("requestBody", {"content": {"": {}}})["content"].items():
            if body.get("schema", {}).get("format") == "binary":
                continue  # a description is text
            one = {"": {"value": body.get("example", "")}}
            for example in body.get("examples", one).values():
                value = example["value"]
                content = value if isinstance(value, str) else json.dumps(value)
                content = content.replace(DATASET, ids["/datasets/{id}"])
                headers = {"Content-Type": kind}
                if method == "put":  # decided on what is there now
                    headers["If-Match"] = service.get(filled).headers["etag"]
                answer = service.request(method, filled, content=content, headers=headers)
                assert answer.is_success, (method, filled, answer.text)
                assert str(answer.status_code) in told["responses"], (method, filled)


def test_the_documentation_is_served(service: httpx.Client) -> None:
    assert service.get("/ui/api").status_code == 200


def test_a_preset_stands_for_its_workload_profile(service: httpx.Client) -> None:
    question = {"device": RECOMMEND["device"], "workload_profile": "ycsb-c"}
    assert service.post("/recommend", json=question).json()["workload"] == "ycsb-c"
    refused = service.post("/recommend", json=question | {"workload_profile": "ycsb-q"})
    assert refused.status_code == 422
    assert "there is no preset ycsb-q" in refused.json()["detail"]


def test_a_missing_price_is_named(service: httpx.Client) -> None:
    profile = RECOMMEND["workload_profile"] | {"objective": "cost"}
    refused = service.post("/recommend", json=RECOMMEND | {"workload_profile": profile})
    assert refused.json()["field"] == "/workload_profile/factors/electricity_price_per_kwh"
    priced = profile | {"factors": {"electricity_price_per_kwh": 0.3, "currency": "EUR"}}
    answer = service.post("/recommend", json=RECOMMEND | {"workload_profile": priced}).json()
    assert answer["saving"]["cost_per_year"]["value"] > 0
