"""What is answered where a file that is kept is no longer what was kept."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from iojoule.api.application.profiles import profile_of
from iojoule.api.http.simulations import EXAMPLE as SIMULATION
from iojoule.api.jobs.worker import Worker
from iojoule.api.state import datasets, jobs, profiles
from iojoule.api.state.place import State
from tests.api.http.test_datasets import CSV, EXAMPLE, upload
from tests.api.http.test_problems import problem

DEVICE = "samsung-980-pro-1tb"
DAMAGED = "urn:iojoule:problem:stored-data-are-damaged"


def changed(path: Path) -> None:
    """One bit of it, as a disk would: name and length stay."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def assert_refused(service: httpx.Client, url: str, store: State, digest: str, names: str) -> None:
    """It was given, and is not any more once its file is damaged or lost; a copy brings it back."""
    path = store.files.path(digest)
    whole, before = path.read_bytes(), service.get(url)
    assert before.status_code == 200, before.text
    for harm in (changed, Path.unlink):
        harm(path)
        for headers in (
            {},
            {"If-None-Match": before.headers.get("etag", "*")},
            {"Range": "bytes=0-3"},
        ):
            answer = service.get(url, headers=headers)
            found = problem(answer, 500)
            assert found["type"] == DAMAGED
            assert names in found["detail"]
            assert digest in found["detail"]
            assert "iojoule restore" in found["detail"]
            assert "etag" not in answer.headers
        path.write_bytes(whole)
        assert service.get(url).content == before.content


@pytest.mark.parametrize("part", ["data", "sidecar"])
def test_a_damaged_dataset_is_not_given(service: httpx.Client, store: State, part: str) -> None:
    kept = upload(service, EXAMPLE, CSV, f"?device={DEVICE}").json()
    with store.database.read() as connection:
        row = datasets.find(connection, kept["id"])
    digest = row.data_sha256 if part == "data" else row.sidecar_sha256
    assert_refused(service, kept[f"{part}_url"], store, digest, kept["id"])


def test_a_damaged_result_is_not_given(service: httpx.Client, store: State, worker: Worker) -> None:
    job = service.post("/simulations", json=SIMULATION).json()
    assert worker.run_one()
    with store.database.read() as connection:
        digest = jobs.find(connection, job["id"]).result_sha256
    assert digest is not None
    assert_refused(service, f"{job['url']}/result", store, digest, job["id"])


def test_a_damaged_profile_is_not_given(service: httpx.Client, store: State) -> None:
    with store.files.keeping(), store.database.write() as connection:
        kept = profiles.publish(connection, store, profile_of(DEVICE), None)
        # what the other tests ask is answered from what iojoule brings
        profiles.show(connection, DEVICE, None, profiles.shown(connection, DEVICE).revision)
    url = f"/devices/{DEVICE}/profiles/{kept.number}"
    assert_refused(service, url, store, kept.sha256, f"version {kept.number} of {DEVICE}")
