"""Workload profiles from what is there, over HTTP."""

import copy
from pathlib import Path

import httpx
import pytest

from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.recommender.request import load_workload
from iojoule.recommender.workloads.presets import presets
from tests.api.http.test_problems import problem

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


NUMBERS = [
    "bs", "bsrange", "bssplit", "iodepth", "numjobs", "rate", "rate_iops", "thinktime",
    "thinktime_blocks", "fsync", "fdatasync", "rwmixread", "size", "cpus_allowed",
]  # fmt: skip


@pytest.mark.parametrize("option", NUMBERS)
@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_numbers_without_end_are_refused_or_left_out(
    service: httpx.Client, option: str, digits: int
) -> None:
    number = "9" * digits
    values = {"bsrange": f"4k-{number}", "bssplit": f"4k/{number}:8k/"}
    job = f"[global]\nrw=randrw\nthinktime=1ms\n{option}={values.get(option, number)}\n[a]\n"
    for part in ("", "k"):
        answer = service.post(
            "/workloads", content=job.strip("\n").replace("\n[a]", f"{part}\n[a]")
        )
        if not answer.is_success:
            problem(answer, 422)


def test_thinktime_blocks_may_have_a_unit(service: httpx.Client) -> None:
    job = "[a]\nrw=randread\nthinktime=1ms\nthinktime_blocks=1k\n"
    found = service.post("/workloads", content=job)
    assert found.status_code == 200
    assert found.json()["workload"]["burst_bytes"] == 1024 * 4096


@pytest.mark.parametrize("mix", ["9" * 5000 + "/50:4096/50", "4096/" + "9" * 5000])
def test_a_mix_of_sizes_without_end_is_refused(service: httpx.Client, mix: str) -> None:
    asked = copy.deepcopy(RECOMMEND)
    asked["workload_profile"]["workload"]["request_bytes_mix"] = mix
    problem(service.post("/recommend", json=asked), 422)
