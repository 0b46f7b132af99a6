import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Message, Receive

from iojoule.api.http import access
from iojoule.api.http.access import Access, AccessControl
from iojoule.api.http.app import create_app
from iojoule.api.http.datasets import UPLOAD
from iojoule.api.http.operations import COMPUTE, LANES, OPERATIONS, needed, route_of
from iojoule.api.http.predict import EXAMPLE
from iojoule.api.http.simulations import EXAMPLE as SIMULATION
from iojoule.api.http.what_if import EXAMPLE as WHAT_IF
from iojoule.api.state import api_keys
from iojoule.api.state.api_keys import Scope
from iojoule.api.state.callers import Limits
from iojoule.api.state.errors import UnavailableError
from iojoule.api.state.place import Place, State
from tests.api.http.conftest import serving
from tests.api.http.test_problems import JSON, problem

TABLE = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[State, dict[Scope, str]]:
    """A state with a key of each scope."""
    state = State(Place.of(tmp_path_factory.mktemp("keys")))
    state.open()
    with state.database.write() as connection:
        made = {scope: api_keys.create(connection, scope, scope)[1] for scope in Scope}
    return state, made


@pytest.fixture(scope="module")
def locked(keys: tuple[State, dict[Scope, str]]) -> Iterator[httpx.Client]:
    """A service that asks for keys."""
    with serving(keys[0], require_key=True) as client:
        yield client


def bearing(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_every_operation_is_listed_with_what_it_needs() -> None:
    described = create_app().openapi()["paths"]
    there = {(method.upper(), path) for path, methods in described.items() for method in methods}
    page = {("GET", "/"), ("GET", "/ui/{place:path}"), ("GET", "/openapi.json")}
    assert there | page == set(OPERATIONS)


def test_nothing_over_http_changes_the_host() -> None:
    changing = {one for one in OPERATIONS if one[0] != "GET"}
    assert changing == {
        # answered from memory
        ("POST", "/recommend"), ("POST", "/predict"), ("POST", "/what-if"),
        ("POST", "/fleet"), ("POST", "/fleet/plan"), ("POST", "/fleet/frontier"),
        ("POST", "/workloads"),
        # kept below the state's folder, under names of the service's own
        ("POST", "/datasets"), ("POST", "/simulations"), ("POST", "/jobs/{id}/cancel"),
        ("POST", "/devices/{id}/calibrations"), ("PUT", "/devices/{id}/profiles/current"),
        # rows of the owner's; files go with the next sweep
        ("PATCH", "/datasets/{id}"), ("DELETE", "/datasets/{id}"),
        ("PATCH", "/jobs/{id}"), ("DELETE", "/jobs/{id}"),
    }  # fmt: skip


def test_what_is_not_listed_is_for_admins() -> None:
    assert route_of("DELETE", "/devices/x") is None
    assert needed("DELETE", None).scope is Scope.ADMIN
    assert needed("HEAD", route_of("HEAD", "/devices")).scope is Scope.READ


@pytest.mark.parametrize("path", ["/devices", "/jobs", "/metrics", "/nothing/here"])
def test_without_a_key_one_is_asked_for(path: str, locked: httpx.Client) -> None:
    response = locked.get(path)
    assert problem(response, 401)["type"] == "urn:iojoule:problem:no-valid-key"
    assert response.headers["www-authenticate"].startswith("Bearer ")
    for wrong in ("Bearer nonsense", "Basic dXNlcjpwYXNz", "Bearer"):
        problem(locked.get(path, headers={"Authorization": wrong}), 401)


def test_two_who_choose_the_same_word_do_not_get_each_others_answers(
    keys: tuple[State, dict[Scope, str]], locked: httpx.Client
) -> None:
    def sent(scope: Scope, asked: dict[str, Any]) -> httpx.Response:
        headers = {**bearing(keys[1][scope]), "Idempotency-Key": "try-1"}
        return locked.post("/simulations", json=asked, headers=headers)

    mine, theirs = (sent(scope, SIMULATION) for scope in (Scope.WRITE, Scope.ADMIN))
    assert mine.status_code == theirs.status_code == 202
    assert mine.json()["id"] != theirs.json()["id"]
    assert sent(Scope.WRITE, SIMULATION).json()["id"] == mine.json()["id"]
    # nor hears one that the other has used the word for something else
    problem(sent(Scope.WRITE, SIMULATION | {"vary": {}}), 422)
    assert locked.post(
        "/datasets", content=TABLE,
        headers={**bearing(keys[1][Scope.ADMIN]), "Idempotency-Key": "try-1",
                 "Content-Type": "text/csv"},
    ).status_code == 201  # fmt: skip


def test_what_a_question_makes_the_service_simulate_needs_the_scope_of_simulating(
    keys: tuple[State, dict[Scope, str]], locked: httpx.Client
) -> None:
    asked = {"growth": Scope.READ, "geometry.channels": Scope.WRITE}
    for field, least in asked.items():
        for scope, key in keys[1].items():
            sent = locked.post(
                "/what-if", json=WHAT_IF | {"changes": {field: 4}}, headers=bearing(key)
            )
            assert sent.is_success == scope.includes(least)
            if not sent.is_success:
                assert problem(sent, 403)["type"] == "urn:iojoule:problem:not-allowed"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/"])
def test_probes_and_the_page_are_open(path: str, locked: httpx.Client) -> None:
    assert locked.get(path).status_code < 400


def test_each_scope_does_what_it_is_for(
    locked: httpx.Client, keys: tuple[State, dict[Scope, str]], device: str
) -> None:
    asked = {
        Scope.READ: ("POST", "/predict"),
        Scope.WRITE: ("POST", "/jobs/0123/cancel"),
        Scope.ADMIN: ("PUT", f"/devices/{device}/profiles/current"),
    }
    for scope, key in keys[1].items():
        for wanted, (method, path) in asked.items():
            response = locked.request(method, path, json=EXAMPLE, headers=bearing(key))
            if scope.includes(wanted):
                assert response.status_code not in (401, 403), response.text
            else:
                problem(response, 403)
                assert f'scope="{wanted}"' in response.headers["www-authenticate"]


def test_the_description_says_which_scope(locked: httpx.Client) -> None:
    described = locked.get("/openapi.json").json()
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert described["paths"]["/datasets"]["post"]["security"] == [{"key": ["write"]}]
    assert described["paths"]["/healthz"]["get"]["security"] == []


def test_on_loopback_no_key_is_needed_and_the_description_says_so(service: httpx.Client) -> None:
    assert service.get("/devices").status_code == 200
    described = service.get("/openapi.json").json()
    assert described["paths"]["/devices"]["get"]["security"] == [{}, {"key": ["read"]}]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("localhost:8080", 200), ("127.0.0.1:1", 200), ("[::1]", 200),
        ("[::1]:80", 200), ("evil.example", 421), ("evil.example:8080", 421),
        ("localhost.evil.example", 421),
    ],
)  # fmt: skip
def test_without_keys_it_answers_as_this_machine_only(
    host: str, status: int, service: httpx.Client
) -> None:
    response = service.get("/devices", headers={"Host": host})
    if status == 200:
        assert response.status_code == 200
    else:
        problem(response, status)


def test_a_revoked_key_opens_nothing(tmp_path: Path) -> None:
    state = State(Place.of(tmp_path))
    state.open()
    with state.database.write() as connection:
        made, text = api_keys.create(connection, "x", Scope.READ)
    access = Access(required=True)
    access.refresh(state)
    assert api_keys.opened_by(access.keys, text) == made
    with state.database.write() as connection:
        api_keys.revoke(connection, made.id)
    access.refresh(state)
    assert api_keys.opened_by(access.keys, text) is None
    state.close()


def test_use_is_recorded_apart_from_requests_and_none_is_lost(tmp_path: Path) -> None:
    state = State(Place.of(tmp_path))
    state.open()
    with state.database.write() as connection:
        made, text = api_keys.create(connection, "x", Scope.READ)
    access, headers = Access(required=True), Headers({"authorization": f"Bearer {text}"})
    access.refresh(state)
    for _ in range(3):
        access.check("GET", headers, OPERATIONS["GET", "/devices"])

    def last_used() -> float | None:
        with state.database.read() as connection:
            return api_keys.find(connection, made.id).last_used_at

    assert last_used() is None
    away = State(Place.of(tmp_path / "file"))
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError):
        access.record_use(away)
    access.record_use(state)
    assert last_used() == pytest.approx(time.time(), abs=60.0)
    assert access.used == {}
    state.close()


def test_a_key_that_asks_too_often_is_told_when_to_come_again(tmp_path: Path) -> None:
    state = State(Place.of(tmp_path))
    state.open()
    limits = Limits(requests_per_second=0.01)
    with state.database.write() as connection:
        slow = api_keys.create(connection, "slow", Scope.READ, limits=limits)[1]
        other = api_keys.create(connection, "other", Scope.READ, limits=limits)[1]
    with serving(state, require_key=True) as client:
        for key in (slow, other):
            assert client.get("/jobs", headers=bearing(key)).status_code == 200
            answer = client.get("/jobs", headers=bearing(key))
            found = problem(answer, 429)
            assert found["type"] == "urn:iojoule:problem:rate-exceeded"
            assert (found["limit"]["name"], found["limit"]["limit"]) == ("rate", 0.01)
            assert 90 <= int(answer.headers["retry-after"]) <= 100
        assert client.get("/healthz").status_code == 200
    state.close()


def test_what_finds_no_place_is_told_to_come_again() -> None:
    inner = FastAPI()
    app = AccessControl(inner, Access())
    app._in_progress[COMPUTE] = COMPUTE.requests_max

    async def ask(path: str) -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post(path)

    response = anyio.run(ask, "/predict")
    problem(response, 429)
    assert int(response.headers["retry-after"]) > 0
    assert anyio.run(ask, "/jobs/1/cancel").status_code == 404
    assert len({lane.name for lane in LANES}) == len(LANES)


def test_places_are_given_back(service: httpx.Client) -> None:
    for _ in range(COMPUTE.requests_max + 1):
        assert service.post("/predict", content=b"{", headers=JSON).status_code == 400


def status_of(receive: Receive) -> int:
    """Of a prediction whose body comes like this."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def ask() -> None:
        scope = {
            "type": "http", "method": "POST", "path": "/predict", "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        }  # fmt: skip
        await create_app()(scope, receive, send)

    anyio.run(ask)
    return int(sent[0]["status"])


def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "PIECE_SECONDS", 0.01)

    async def never() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    assert status_of(never) == 408


def test_a_body_that_trickles_does_not_keep_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "PIECE_SECONDS", 0.1)
    pieces = iter(range(1000))

    async def trickles() -> Message:
        next(pieces)
        await anyio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    assert status_of(trickles) == 408


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:1"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:1"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
    ],
)
def test_pages_of_strangers_compute_nothing(
    headers: dict[str, str], passes: bool, service: httpx.Client, locked: httpx.Client,
    keys: tuple[State, dict[Scope, str]],
) -> None:  # fmt: skip
    for client, key in ((service, {}), (locked, bearing(keys[1][Scope.ADMIN]))):
        found = client.post("/workloads", content=b"[a]\nrw=read\n", headers=headers | key)
        assert (found.status_code != 403) == passes
        if not passes:
            problem(found, 403)
        assert client.get("/devices", headers=headers | key).status_code == 200


@pytest.mark.parametrize("require_key", [False, True])
def test_allowed_hosts_are_used_with_and_without_keys(
    require_key: bool, keys: tuple[State, dict[Scope, str]]
) -> None:
    key = bearing(keys[1][Scope.ADMIN]) if require_key else {}
    document = b"[a]\nrw=read\n"
    allowed = ("Drives.example", "drives.example:8080", "localhost", "127.0.0.1:1", "[::1]")
    refused = ("evil.example", "evil.drives.example", "drives.example.evil.example")
    with serving(keys[0], require_key=require_key, hosts=("Drives.Example",)) as client:
        for host in allowed:
            headers = {**key, "Host": host}
            assert client.get("/devices", headers=headers).status_code == 200
            page = headers | {"Origin": "http://drives.example", "Sec-Fetch-Site": "same-site"}
            assert client.post("/workloads", content=document, headers=page).is_success
        for host in refused:
            # the host is refused before the key is looked at
            problem(client.get("/devices", headers={**key, "Host": host}), 421)
            problem(client.get("/devices", headers={"Host": host}), 421)
            page = {**key, "Host": "drives.example", "Origin": f"http://{host}"}
            problem(client.post("/workloads", content=document, headers=page), 403)
        without = client.get("/devices", headers={"Host": "drives.example"})
        assert without.status_code == (401 if require_key else 200)


def test_with_keys_and_no_list_of_hosts_the_key_decides(
    locked: httpx.Client, keys: tuple[State, dict[Scope, str]]
) -> None:
    headers = {**bearing(keys[1][Scope.READ]), "Host": "any.example"}
    assert locked.get("/devices", headers=headers).status_code == 200
    page = headers | {"Origin": "http://other.example"}
    problem(locked.post("/workloads", content=b"[a]\nrw=read\n", headers=page), 403)
