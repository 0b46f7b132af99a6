import json
import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from iojoule.api import logs
from iojoule.api.http import metrics
from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.api.http.simulations import EXAMPLE as SIMULATE
from iojoule.datasets.vocabulary import Evidence
from tests.api.http.test_problems import problem


def samples(service: httpx.Client) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    response = service.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(response.text)
        for one in family.samples
    }


def total(found: dict[tuple[str, tuple[tuple[str, str], ...]], float], name: str) -> float:
    return sum(value for (known, _), value in found.items() if known == name)


def test_requests_are_measured_by_route_and_never_by_path(
    service: httpx.Client, device: str
) -> None:
    count = "iojoule_http_request_duration_seconds_count"
    labels = (("method", "GET"), ("route", "/devices/{id}"), ("status", "200"))
    before = samples(service)
    service.get(f"/devices/{device}")
    service.get("/made/up/by/somebody")
    service.request("INVENTED", "/made/up")
    after = samples(service)
    assert after[count, labels] == before.get((count, labels), 0) + 1
    told = {value for _, labels in after for name, value in labels if name == "route"}
    assert "none" in told
    assert not any("made" in route or device in route for route in told)


def test_predictions_are_counted_by_evidence(service: httpx.Client) -> None:
    before = total(samples(service), "iojoule_predictions_total")
    service.post("/predict", json=PREDICT)
    service.post("/recommend", json=RECOMMEND)
    after = samples(service)
    assert total(after, "iojoule_predictions_total") == before + 3
    words = {labels[0][1] for name, labels in after if name == "iojoule_predictions_total"}
    assert words <= set(Evidence)


def test_a_recommender_is_made_once(service: httpx.Client) -> None:
    service.post("/recommend", json=RECOMMEND)
    before = samples(service)
    service.post("/recommend", json=RECOMMEND)
    after = samples(service)
    lookups, misses = ("iojoule_recommender_cache_lookups_total", ()), (
        "iojoule_recommender_cache_misses_total", (),
    )  # fmt: skip
    assert after[lookups] > before[lookups]
    assert after[misses] == before[misses]


def test_jobs_are_counted_by_kind_and_state(service: httpx.Client) -> None:
    before = total(samples(service), "iojoule_jobs")
    service.post("/simulations", json=SIMULATE)
    after = samples(service)
    assert total(after, "iojoule_jobs") == before + 1
    assert after["iojoule_jobs", (("kind", "simulation"), ("state", "queued"))] >= 1
    assert after["iojoule_state_up", ()] == 1


def test_without_the_database_the_other_figures_are_given() -> None:
    told = metrics.exposition(None).decode()
    assert "iojoule_state_up 0.0" in told
    assert "iojoule_jobs{" not in told


def test_an_id_that_came_is_kept_and_another_is_made(service: httpx.Client) -> None:
    kept = service.get("/devices", headers={"X-Request-Id": "grid-7.a"})
    assert kept.headers["x-request-id"] == "grid-7.a"
    for nonsense in ("", "a b", "x" * 129, "a;b"):
        made = service.get("/devices", headers={"X-Request-Id": nonsense})
        assert re.fullmatch("[0-9a-f]{32}", made.headers["x-request-id"])


def test_a_problem_names_the_request(service: httpx.Client) -> None:
    for response in (
        service.get("/devices/nothing", headers={"X-Request-Id": "a"}),
        service.get("/nothing", headers={"X-Request-Id": "a"}),
        service.post("/predict", content=b"{", headers={"X-Request-Id": "a"}),
        service.get("/devices", headers={"X-Request-Id": "a", "Host": "evil.example"}),
    ):
        assert problem(response, response.status_code)["request_id"] == "a"
        assert response.headers["x-request-id"] == "a"


def requests(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [one for one in caplog.records if one.getMessage() == "request"]


def test_a_line_is_json_with_the_request_whatever_it_asks(
    service: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="iojoule.api.http.telemetry"):
        service.get('/devices/x%0A{"forged": 1}', headers={"X-Request-Id": "b-1"})
        until = time.monotonic() + 10.0  # the line is written once the answer has left
        while not (found := requests(caplog)) and time.monotonic() < until:
            time.sleep(0.01)
    record = found[0]
    token = logs.request_id.set("b-1")
    line = logs.JsonLines().format(record)
    logs.request_id.reset(token)
    assert "\n" not in line
    told = json.loads(line)
    assert told["request_id"] == "b-1"
    assert told["route"] == "/devices/{id}"
    assert told["status"] == 404
    assert told["level"] == "info"
    assert told["seconds"] > 0


def test_a_line_holds_what_went_wrong() -> None:
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "%s", ("no",), None)
    record.exc_info = (ZeroDivisionError, ZeroDivisionError("division"), None)
    told = json.loads(logs.JsonLines().format(record))
    assert told["message"] == "no"
    assert "ZeroDivisionError: division" in told["exception"]


def test_processes_of_one_service_count_together(tmp_path: Path) -> None:
    environment = {**os.environ, metrics.MULTIPROCESS_VARIABLE: str(tmp_path)}
    begin = "from iojoule.api.http import metrics; metrics.count_predictions(['measured']); "
    for end in ("", "print(metrics.exposition(None).decode())"):
        done = subprocess.run(
            [sys.executable, "-c", begin + end], env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
    assert 'iojoule_predictions_total{evidence="measured"} 2.0' in done.stdout


def test_the_dashboard_asks_for_what_there_is(root: Path, service: httpx.Client) -> None:
    service.get("/devices")
    board = json.loads((root / "deploy" / "grafana-dashboard.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:iojoule|process)_\w+", target["expr"])
    }
    told = service.get("/metrics").text
    there = set(re.findall(r"^# TYPE (\w+) ", told, re.MULTILINE))
    there |= {f"{name}_bucket" for name in there} | {f"{name}_count" for name in there}
    assert asked
    assert asked <= there
