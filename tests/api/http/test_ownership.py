"""What one owner keeps is nothing to another: over all operations that the service has."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from iojoule.api.http.operations import OPERATIONS
from iojoule.api.http.simulations import EXAMPLE as SIMULATION
from iojoule.api.jobs.worker import Worker
from iojoule.api.state import api_keys, jobs, profiles, tables
from iojoule.api.state.api_keys import ApiKey, Scope
from iojoule.api.state.callers import Limits
from iojoule.api.state.place import Place, State
from iojoule.datasets.profile import load_shipped_profile
from tests.api.http.conftest import serving
from tests.api.http.test_datasets import CSV, EXAMPLE
from tests.api.http.test_problems import problem

DEVICE = "samsung-980-pro-1tb"
ANN = "Ann of storage"
MARK = 2113
"""Requests of a simulation of ann's: a number that nothing else of the service says."""


@dataclass(frozen=True)
class Keys:
    """A key of each person; ben has two, one of which rotates the other out."""

    ann: ApiKey
    ben: ApiKey
    ben_too: ApiKey
    reader: ApiKey
    admin: ApiKey
    texts: dict[str, str]

    def of(self, key: ApiKey) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.texts[key.id]}"}


def keys_in(state: State) -> Keys:
    """Keys of ann, ben, a reader and an administrator."""
    wanted = {
        "ann": (ANN, Scope.WRITE), "ben": ("ben", Scope.WRITE), "ben_too": ("ben", Scope.WRITE),
        "reader": ("rita", Scope.READ), "admin": ("root", Scope.ADMIN),
    }  # fmt: skip
    with state.database.write() as connection:
        made = {
            name: api_keys.create(connection, name, scope, owner=owner)
            for name, (owner, scope) in wanted.items()
        }
    texts = {key.id: text for key, text in made.values()}
    return Keys(**{name: key for name, (key, _) in made.items()}, texts=texts)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> State:
    state = State(Place.of(tmp_path_factory.mktemp("owned")))
    state.open()
    return state


@pytest.fixture(scope="module")
def keys(kept: State) -> Keys:
    return keys_in(kept)


@pytest.fixture(scope="module")
def locked(kept: State, keys: Keys) -> Iterator[httpx.Client]:
    with serving(kept, require_key=True) as client:
        yield client


def asked(number: int) -> dict[str, Any]:
    flow = {**SIMULATION["scenario"]["flows"][0], "total_requests": number}
    return {"drive": SIMULATION["drive"], "scenario": {"flows": [flow]}}


@dataclass(frozen=True)
class Owned:
    """What somebody keeps: a dataset, a job that is done, and one that waits."""

    dataset: str
    done: str
    waiting: str

    @property
    def ids(self) -> tuple[str, ...]:
        return self.dataset, self.done, self.waiting


def made_by(client: httpx.Client, headers: dict[str, str], state: State, number: int) -> Owned:
    rows = EXAMPLE.replace("4096", str(512 * number))
    dataset = client.post("/datasets", content=rows, headers={"Content-Type": CSV, **headers})
    assert dataset.status_code == 201, dataset.text
    job = client.post("/simulations", json=asked(number), headers=headers)
    assert job.status_code == 202, job.text
    assert Worker(state, beat_seconds=0.05).run_one()
    waiting = client.post("/simulations", json=asked(number), headers=headers)
    return Owned(dataset.json()["id"], job.json()["id"], waiting.json()["id"])


def rows_of(state: State, owned: Owned) -> list[dict[str, Any]]:
    with state.database.read() as connection:
        return [
            dict(row)
            for table in (tables.jobs, tables.datasets)
            for row in connection.execute(
                select(table).where(table.c.id.in_(owned.ids)).order_by(table.c.id)
            ).mappings()
        ]


def places(template: str, owned: Owned) -> Iterator[tuple[str, bool]]:
    """Paths of a route that name what is owned, if it names something; a new kind is a fault."""
    if template.startswith("/datasets/{id}"):
        yield template.replace("{id}", owned.dataset), True
    elif template.startswith("/jobs/{id}"):
        yield template.replace("{id}", owned.done), True
        yield template.replace("{id}", owned.waiting), True
    else:
        filled = template.replace("{version}", "1").replace("{place:path}", "jobs")
        if "/devices/" in filled:
            filled = filled.replace("{id}", DEVICE)
        assert "{" not in filled, f"say here what {template} names"
        yield filled, False


@pytest.mark.parametrize("asking", ["ben", "reader"])
def test_no_operation_gives_anything_of_another_owner(
    asking: str, locked: httpx.Client, kept: State, keys: Keys
) -> None:
    owned = made_by(locked, keys.of(keys.ann), kept, MARK)
    with kept.files.keeping(), kept.database.write() as connection:  # made by a job of ann's
        profiles.publish(connection, kept, load_shipped_profile(DEVICE), owned.done)
    before = rows_of(kept, owned)
    secrets = [*owned.ids, ANN, str(512 * MARK), f'"total_requests":{MARK}']
    secrets += [row[name] for row in before for name in ("result_sha256", "upload_sha256",
                "data_sha256", "sidecar_sha256") if row.get(name)]  # fmt: skip
    headers = keys.of(getattr(keys, asking))
    described = locked.get("/openapi.json").json()["paths"]
    there = {(method.upper(), path) for path, methods in described.items() for method in methods}
    for method, template in sorted(there | set(OPERATIONS)):
        if (method, template) in (("GET", "/openapi.json"), ("GET", "/ui/{place:path}")):
            continue
        for path, named in places(template, owned):
            bodies = ({}, {"shared": True}, {"datasets": [owned.dataset], "drive": DEVICE})
            for sent in bodies if method in ("POST", "PUT", "PATCH") else (None,):
                answer = locked.request(method, path, json=sent, headers=headers)
                told = answer.text + json.dumps(dict(answer.headers))
                if named:  # 422: the body is judged before anything is looked for
                    refused = {404, 422} if asking == "ben" else {403, 404}
                    assert answer.status_code in refused, (method, path, told)
                for id_ in owned.ids:  # but what the question itself named
                    told = told.replace(path, "").replace(f"there is no job {id_}", "")
                    told = told.replace(f"there is no dataset {id_}", "")
                assert not [one for one in secrets if str(one) in told], (method, path, told)
    assert rows_of(kept, owned) == before
    for listing in ("/jobs?limit=200", "/datasets?limit=200"):
        assert not set(owned.ids) & {
            one["id"] for one in next(iter(locked.get(listing, headers=headers).json().values()))
        }
    with kept.database.write() as connection:
        jobs.cancel(connection, owned.waiting)


def test_keys_of_one_owner_share_and_a_rotation_loses_nothing(
    locked: httpx.Client, kept: State, keys: Keys
) -> None:
    owned = made_by(locked, keys.of(keys.ben), kept, 2000)
    for key in (keys.ben_too, keys.admin):
        headers = keys.of(key)
        for url in (f"/datasets/{owned.dataset}", f"/jobs/{owned.done}/result"):
            assert locked.get(url, headers=headers).status_code == 200
        found = [one["id"] for one in locked.get("/jobs", headers=headers).json()["jobs"]]
        assert {owned.done, owned.waiting} <= set(found)
    cancelled = locked.post(f"/jobs/{owned.waiting}/cancel", headers=keys.of(keys.ben_too))
    assert cancelled.json()["state"] == "cancelled"


def test_pages_of_a_list_hold_only_what_is_theirs(
    locked: httpx.Client, kept: State, keys: Keys
) -> None:
    made = [
        locked.post("/simulations", json=asked(2000), headers=keys.of(key)).json()["id"]
        for key in (keys.ann, keys.ben, keys.ann, keys.ben, keys.ann, keys.ben)
    ]
    found, cursor = [], ""
    while cursor is not None:
        query = f"?limit=1&state=queued{f'&cursor={cursor}' if cursor else ''}"
        page = locked.get(f"/jobs{query}", headers=keys.of(keys.ben)).json()
        found += [one["id"] for one in page["jobs"]]
        cursor = page["next_cursor"]
    assert found == made[5:0:-2]
    with kept.database.write() as connection:
        for id_ in made:
            jobs.cancel(connection, id_)


def test_what_is_shared_is_read_by_all_and_changed_by_its_owner(
    locked: httpx.Client, kept: State, keys: Keys
) -> None:
    owned = made_by(locked, keys.of(keys.ann), kept, 2001)
    ann, ben = keys.of(keys.ann), keys.of(keys.ben)
    for kind, id_, part in (("datasets", owned.dataset, "data"), ("jobs", owned.done, "result")):
        url = f"/{kind}/{id_}"
        assert locked.patch(url, json={"shared": True}, headers=ann).json()["shared"]
        assert locked.get(url, headers=ben).json()["owner"] == ANN
        assert locked.get(f"{url}/{part}", headers=keys.of(keys.reader)).status_code == 200
        assert id_ in locked.get(f"/{kind}", headers=ben).text
        for method in ("PATCH", "DELETE"):
            sent = {"json": {"shared": False}} if method == "PATCH" else {}
            problem(locked.request(method, url, headers=ben, **sent), 403)
        assert not locked.patch(url, json={"shared": False}, headers=ann).json()["shared"]
        problem(locked.get(url, headers=ben), 404)
    problem(locked.delete(f"/jobs/{owned.waiting}", headers=ann), 409)
    locked.post(f"/jobs/{owned.waiting}/cancel", headers=ann)
    for url in (f"/jobs/{owned.waiting}", f"/jobs/{owned.done}", f"/datasets/{owned.dataset}"):
        assert locked.delete(url, headers=ann).status_code == 204
        problem(locked.get(url, headers=ann), 404)
    assert rows_of(kept, owned) == []


def test_admins_read_who_changed_what_over_http(
    locked: httpx.Client, kept: State, keys: Keys
) -> None:
    headers = {**keys.of(keys.ann), "X-Request-Id": "who-asked"}
    job = locked.post("/simulations", json=asked(2000), headers=headers).json()
    locked.post(f"{job['url']}/cancel", headers=headers)
    for key in (keys.ann, keys.reader):
        problem(locked.get("/audit", headers=keys.of(key)), 403)
    found = locked.get("/audit?limit=2", headers=keys.of(keys.admin)).json()
    assert [one["action"] for one in found["entries"]] == ["job.cancel", "job.submit"]
    assert found["next_cursor"]
    for one in found["entries"]:
        assert (one["object"], one["owner"], one["key_id"]) == (
            f"job/{job['id']}",
            ANN,
            keys.ann.id,
        )
        assert (one["request_id"], one["remote_address"]) == ("who-asked", "127.0.0.1")


def test_a_profile_keeps_what_it_rests_on(locked: httpx.Client, kept: State, keys: Keys) -> None:
    owned = made_by(locked, keys.of(keys.ann), kept, 2002)
    headers = keys.of(keys.admin)
    with kept.files.keeping(), kept.database.write() as connection:
        profiles.publish(connection, kept, load_shipped_profile(DEVICE), owned.done)
    problem(locked.delete(f"/jobs/{owned.done}", headers=headers), 409)
    asked_for = {"datasets": [owned.dataset], "drive": DEVICE}
    job = locked.post(f"/devices/{DEVICE}/calibrations", json=asked_for, headers=headers)
    assert job.status_code == 202, job.text
    problem(locked.delete(f"/datasets/{owned.dataset}", headers=headers), 409)
    with kept.database.write() as connection:
        jobs.cancel(connection, owned.waiting)
        jobs.cancel(connection, job.json()["id"])


def test_without_keys_everything_is_everybodys(kept: State, keys: Keys) -> None:
    with serving(kept) as client:
        made = client.post("/simulations", json=asked(2000)).json()
        assert (made["owner"], made["shared"]) == (None, True)
        problem(client.patch(made["url"], json={"shared": False}), 409)
    with serving(kept, require_key=True) as client:
        assert client.get(made["url"], headers=keys.of(keys.ben)).status_code == 200
        for method, path in (("POST", f"{made['url']}/cancel"), ("DELETE", made["url"])):
            problem(client.request(method, path, headers=keys.of(keys.ben)), 403)
        cancelled = client.post(f"{made['url']}/cancel", headers=keys.of(keys.admin))
        assert cancelled.json()["state"] == "cancelled"


def until(client: httpx.Client, headers: dict[str, str], status: int) -> httpx.Response:
    """What the service answers once it knows of a change of keys."""
    end = time.monotonic() + 20
    while (answer := client.get("/devices", headers=headers)).status_code != status:
        assert time.monotonic() < end, answer.text
        time.sleep(0.05)
    return answer


def test_an_expired_key_opens_nothing_and_ends_what_it_follows(tmp_path: Path) -> None:
    state = State(Place.of(tmp_path))
    state.open()
    keys = keys_in(state)
    headers = keys.of(keys.ben)
    with serving(state, require_key=True) as client:
        until(client, headers, 200)
        job = client.post("/simulations", json=asked(2000), headers=headers).json()
        url = job["events_url"]
        with client.stream("GET", url, headers=headers) as events:
            lines = events.iter_lines()
            assert next(lines)
            with state.database.write() as connection:
                connection.execute(
                    update(tables.api_keys)
                    .where(tables.api_keys.c.id == keys.ben.id)
                    .values(expires_at=1.0)
                )
            list(lines)  # ends, though the job waits on
        found = problem(until(client, headers, 401), 401)
        assert found["type"] == "urn:iojoule:problem:key-has-expired"
        for method, template in OPERATIONS:
            if OPERATIONS[method, template].scope is not None:
                path = template.replace("{id}", job["id"]).replace("{version}", "1")
                answer = client.request(method, path, headers=headers)
                assert problem(answer, 401)["type"] == found["type"]
                assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        wrong = {"Authorization": headers["Authorization"][:-3] + "xyz"}
        found = problem(client.get("/devices", headers=wrong), 401)
        assert found["type"] == "urn:iojoule:problem:no-valid-key"  # nothing is said of the key
    state.close()


def test_quotas_say_which_limit_how_much_is_used_and_when_it_frees(tmp_path: Path) -> None:
    state = State(Place.of(tmp_path))
    state.open()
    keys = keys_in(state)
    limits = Limits(jobs_waiting_max=1, stored_bytes_max=1, compute_seconds_max=5.0)
    with state.database.write() as connection:
        api_keys.change(connection, keys.ben.id, dataclasses.asdict(limits))
    headers = keys.of(keys.ben)
    with serving(state, require_key=True) as client:
        assert client.post("/simulations", json=asked(2000), headers=headers).status_code == 202
        answer = client.post("/simulations", json=asked(2000), headers=headers)
        found = problem(answer, 429)
        assert found["type"] == "urn:iojoule:problem:quota-used-up"
        assert (found["limit"]["name"], found["limit"]["used"]) == ("jobs-waiting", 1)
        assert int(answer.headers["retry-after"]) > 0
        answer = client.post("/datasets", content=EXAMPLE, headers={"Content-Type": CSV, **headers})
        found = problem(answer, 403)
        assert found["type"] == "urn:iojoule:problem:storage-quota-used-up"
        assert (found["limit"]["name"], found["limit"]["limit"]) == ("bytes", 1)
        assert client.get("/datasets", headers=headers).json()["datasets"] == []
        with state.database.write() as connection:
            for one in jobs.listed(connection, 10, None).items:
                jobs.cancel(connection, one.id)
            row = {"owner": "ben", "day": int(time.time() // 86400), "seconds": 6.0}
            connection.execute(tables.compute_use.insert().values(**row))
        answer = client.post("/simulations", json=asked(2000), headers=headers)
        found = problem(answer, 429)["limit"]
        assert (found["name"], found["limit"], found["used"]) == ("compute-seconds", 5, 6)
        assert found["frees_at"].endswith(("00:00:00Z", "00:00:00+00:00")) or (
            0 < int(answer.headers["retry-after"]) <= 86400
        )
        assert client.post("/simulations", json=asked(2000), headers=keys.of(keys.ann)).is_success
    state.close()
