"""Workload profiles from what is there, over HTTP."""

from pathlib import Path

import httpx
import pytest

from iojoule.recommender.workload import load_workload
from iojoule.recommender.workloads.presets import presets

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_presets_name_their_sources(service: httpx.Client) -> None:
    listed = service.get("/workloads/presets").json()["presets"]
    assert [one["profile"]["name"] for one in listed] == [one.name for one in presets()]
    assert all(one["sources"] for one in listed)


def test_every_preset_can_be_asked_as_it_is(service: httpx.Client) -> None:
    for one in service.get("/workloads/presets").json()["presets"]:
        question = {"device": "samsung-980-pro-1tb", "workload_profile": one["profile"]}
        answer = service.post("/recommend", json=question)
        assert answer.status_code == 200, answer.text


def test_a_job_file_says_the_same_as_on_the_command_line(service: httpx.Client) -> None:
    path = EXAMPLES / "oltp.fio"
    sent = service.post("/workloads", content=path.read_bytes())
    assert sent.status_code == 200, sent.text
    expected = load_workload(path).model_dump(mode="json", exclude_unset=True)
    assert sent.json()["workload"] == expected["workload"]
    assert sent.json()["current"] == expected["current"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "is none of fio-job"),
        (b"\xff\xfe", "no UTF-8 text: byte 0"),
        (b"[job]\nrw=randtrim\nbs=4k\n", "rw=randtrim"),
        (b"fio version 2 iolog\nx y\n", "line 2"),
    ],
)
def test_what_cannot_be_read_is_a_problem(service: httpx.Client, body: bytes, says: str) -> None:
    found = service.post("/workloads", content=body)
    assert found.status_code == 422
    assert found.headers["content-type"] == "application/problem+json"
    assert says in found.json()["detail"]
