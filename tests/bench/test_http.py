"""Budget: a recommendation over HTTP takes at most 1.5 times the in-process time plus 3 ms."""

from __future__ import annotations

import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.workload import Free, parse_workload

DEVICE = "samsung-980-pro-1tb"
CANDIDATES = 20_000
FACTOR, OVERHEAD_SECONDS = 1.5, 0.003
REQUESTS = 60


def question(number: int) -> dict[str, Any]:
    """Every question is another one, so that no answer can be kept from before."""
    return {
        "workload": {
            "operation": "mixed",
            "read_fraction": 0.7,
            "useful_request_bytes": 4096,
            "request_bytes_coalescible": 65536,
            "demand_operations_per_second": 20_000.0 + number,
        },
        "current": {"queue_depth": 32, "jobs": 4},
        "free": dict.fromkeys(Free.model_fields, "all"),
        "sla": {"latency_p99_ns_max": 5e6 + number},
    }


@pytest.fixture
def connection() -> Iterator[http.client.HTTPConnection]:
    """A connection to a service of its own process, on a free port of the loopback."""
    command = [sys.executable, "-c", "from iojoule.api.cli import main; main()"]
    with subprocess.Popen(
        [*command, "serve", "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        said = re.search(r"http://127\.0\.0\.1:(\d+)", server.stderr.readline())
        assert said
        client = http.client.HTTPConnection("127.0.0.1", int(said[1]), timeout=60)
        try:
            yield client
        finally:
            client.close()
            server.terminate()


def asked(client: http.client.HTTPConnection, number: int) -> tuple[float, int]:
    """Seconds until the whole answer is there, and the candidates in it."""
    body = json.dumps({"device": DEVICE, "workload_profile": question(number)})
    start = time.perf_counter()
    client.request("POST", "/recommend", body, {"Content-Type": "application/json"})
    response = client.getresponse()
    answer = response.read()
    seconds = time.perf_counter() - start
    assert response.status == 200, answer
    return seconds, json.loads(answer)["counts"]["total"]


def test_http_adds_little(connection: http.client.HTTPConnection) -> None:
    recommender = Recommender(load_shipped_profile(DEVICE))
    recommender.recommend(parse_workload(question(-1)))
    asked(connection, -1)
    inside, outside, total = [], [], 0
    for number in range(REQUESTS):  # by turns, so that both meet the same machine
        workload = parse_workload(question(number))
        start = time.perf_counter()
        recommender.recommend(workload)
        inside.append(time.perf_counter() - start)
        seconds, total = asked(connection, REQUESTS + number)
        outside.append(seconds)
    here, there = statistics.median(inside), statistics.median(outside)
    print(
        f"\nPOST /recommend: {total:,} candidates, median {there * 1e3:.1f} ms, in process "
        f"{here * 1e3:.1f} ms, allowed {(FACTOR * here + OVERHEAD_SECONDS) * 1e3:.1f} ms"
    )
    assert total >= CANDIDATES
    assert there <= FACTOR * here + OVERHEAD_SECONDS
