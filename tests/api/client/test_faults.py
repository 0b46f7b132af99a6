"""Connections that break, services that are busy or away: nothing is made twice, nothing hangs."""

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from iojoule.api.client import Client
from iojoule.api.client import connection as following
from iojoule.api.client.connection import Connection, backoff, pause_of
from iojoule.api.client.errors import ServiceError, UnreachableError, error_of
from iojoule.api.exit_codes import error_classes
from iojoule.api.http.simulations import EXAMPLE as SIMULATE
from iojoule.api.problem_document import problem_of, slug_of
from iojoule.api.state import api_keys
from iojoule.api.state.errors import (
    ChangedError,
    ConflictError,
    ForbiddenError,
    NoKeyError,
    NotFoundError,
    TooManyError,
    UnavailableError,
)
from iojoule.api.state.place import Place, State
from iojoule.datasets.errors import InputError, IojouleError
from tests.api.client.between import Between, between
from tests.api.client.test_client import LONG, TABLE
from tests.errors import having
from tests.service import ServiceProcess

BUSY = (429, {"Retry-After": "2"}, b"")
AWAY = (503, {}, b"")


def test_a_busy_service_is_asked_again_when_it_says(
    far: Client, middle: Between, hasty: list[float]
) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    middle.next(BUSY, (503, {"Retry-After": soon}, b""), AWAY, (502, {"Retry-After": "?"}, b""))
    assert far.health().status == "ok"
    assert len(middle.asked) == 5
    assert hasty[0] == 2.0
    assert 25.0 < hasty[1] <= 30.0
    assert all(seconds < 10.0 for seconds in hasty[2:])


def test_a_service_that_stays_busy_is_left_alone(
    far: Client, middle: Between, hasty: list[float]
) -> None:
    middle.next(*[BUSY] * 6)
    with pytest.raises(TooManyError):
        far.health()
    assert (len(middle.asked), len(hasty)) == (6, 5)
    middle.next((503, {"Retry-After": "3600"}, b""))
    with pytest.raises(UnavailableError):
        far.health()
    middle.next(AWAY)
    with pytest.raises(UnavailableError):
        far.readiness()
    assert len(middle.asked) == 1
    assert len(hasty) == 5


def test_a_service_may_stand_below_a_path(middle: Between) -> None:
    with Client(f"{middle.url}/energy/") as client:
        middle.next((200, {}, b"{}"), (200, {}, b"{}"))
        assert client.result("1/../2") == {}
        assert client.sidecar("a b") == {}
    assert middle.asked == [
        "GET /energy/jobs/1%2F..%2F2/result", "GET /energy/datasets/a%20b/sidecar"
    ]  # fmt: skip


def test_threads_share_a_client(client: Client, device: str) -> None:
    def ask(depth: int) -> int:
        (told,) = client.predict(device, [{"queue_depth": depth}]).predictions
        return int(told.model_dump()["queue_depth"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(1, 33))) == list(range(1, 33))


def test_waits_grow_and_differ() -> None:
    random.seed(3)
    for attempt in range(9):
        full = min(0.25 * 2**attempt, 10.0)
        assert all(0.5 * full <= backoff(attempt) <= full for _ in range(20))
    assert len({backoff(2) for _ in range(9)}) > 1
    assert (
        pause_of(httpx.Response(503, headers={"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}), 0)
        == 0
    )
    assert pause_of(httpx.Response(500), 0) is None
    assert pause_of(httpx.Response(409, headers={"retry-after": "1"}), 0) is None


def test_an_answer_that_is_lost_makes_nothing_twice(
    far: Client, middle: Between, client: Client, tmp_path: Path
) -> None:
    before = {one.id for one in client.jobs()}
    middle.next("lose", "break", "lose")
    job = far.simulate(SIMULATE)
    assert middle.asked == ["POST /simulations"] * 4
    assert len({headers["idempotency-key"] for _, headers in middle.seen}) == 1
    assert {one.id for one in client.jobs()} - before == {job.id}
    assert far.simulate(SIMULATE).id != job.id

    known = {one.id for one in client.datasets()}
    (tmp_path / "runs.csv").write_bytes(TABLE)
    middle.next("lose")
    kept = far.upload(tmp_path / "runs.csv")
    assert {one.id for one in client.datasets()} - known == {kept.id}


def test_a_key_of_ones_own_names_one_request(client: Client) -> None:
    first = client.simulate(SIMULATE, idempotency_key="mine")
    assert client.simulate(SIMULATE, idempotency_key="mine").id == first.id
    with pytest.raises(IojouleError, check=having(field="Idempotency-Key")) as refused:
        client.simulate({**SIMULATE, "vary": {}}, idempotency_key="mine")
    assert refused.value.field == "Idempotency-Key"


def test_calling_off_and_choosing_a_version_survive_a_lost_answer(
    far: Client, middle: Between, device: str
) -> None:
    job = far.simulate(LONG)
    middle.next("lose")
    assert far.cancel(job).cancel_requested
    middle.next(None, "lose")
    assert far.use_profile(device, 0).version == 0
    assert [one.partition(" ")[0] for one in middle.asked] == ["GET", "PUT", "PUT", "GET"]


def test_who_decided_on_what_is_no_more_is_told(client: Client, device: str) -> None:
    seen = client.current_profile(device)
    chosen = client.use_profile(device, 0, decided_on=seen)
    assert chosen.etag != seen.etag
    with pytest.raises(ChangedError):
        client.use_profile(device, 0, decided_on=seen)
    assert client.use_profile(device, 0, decided_on=chosen).version == 0
    with pytest.raises(NotFoundError):
        client.use_profile(device, 99)


def test_a_service_that_is_gone_is_said_to_be(hasty: list[float]) -> None:
    with Client("http://127.0.0.1:9", retries=2) as nobody:
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9 does not answer"):
            nobody.devices()
        assert len(hasty) == 2


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ((200, {"Content-Type": "text/html"}, b"<html>"), ServiceError, "same version"),
        ((200, {}, b'{"status": "ok"}'), ServiceError, "iojoule_version"),
        ((302, {"Location": "https://elsewhere.example/"}, b""), ServiceError, "elsewhere.example"),
        ((500, {"Content-Type": "application/problem+json"}, b"{"), ServiceError, "500"),
        ((404, {"Content-Type": "text/plain"}, b"no"), NotFoundError, "GET /healthz with 404"),
        ((418, {}, b""), InputError, "418"),
    ],
)  # fmt: skip
def test_what_answers_may_be_no_service_of_iojoule(
    far: Client, middle: Between, answer: object, kind: type[Exception], said: str
) -> None:
    middle.next(answer)
    with pytest.raises(kind, match=said):
        far.health()


def test_every_error_comes_back_as_what_it_was() -> None:
    kinds = [kind for kind in error_classes() if kind is not IojouleError]
    named = [kind for kind in kinds if "title" in vars(kind)]
    assert len({slug_of(kind) for kind in named}) == len(named)
    for kind in named:
        back = error_of(problem_of(kind("said", field="a.0.b")))
        assert (type(back), back.field, back.pointer) == (kind, "a.0.b", "/a/0/b")
    assert type(error_of(problem_of(IojouleError("said")))) is ServiceError


@pytest.mark.parametrize(
    "told",
    [b"[]", b"null", b'"x"', b'{"status": "many"}', b'{"status": 1e999}', b'{"field": ["a"]}'],
)
def test_a_malformed_problem_is_an_error_by_its_status(
    far: Client, middle: Between, told: bytes
) -> None:
    middle.next((404, {"Content-Type": "application/problem+json"}, told))
    with pytest.raises(NotFoundError):
        far.health()


def test_an_answer_that_is_no_object_is_a_fault_of_the_service(
    far: Client, middle: Between
) -> None:
    middle.next(*[(200, {}, told) for told in (b"<html>", b"[1]")] * 2)
    for ask in (far.result, far.sidecar) * 2:
        with pytest.raises(ServiceError):
            ask("1")


def test_nobody_waits_longer_than_told_for_a_service_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "OUTAGE_SECONDS", 1.0)
    with Client("http://127.0.0.1:9", retries=0) as client, pytest.raises(TimeoutError):
        client.wait("1", timeout_seconds=0.0)


def test_keys_open_what_they_may(
    iojoule: Any, tmp_path: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(Place.of(tmp_path))
    state.open()
    with state.database.write() as connection:
        reader = api_keys.create(connection, "reader", api_keys.Scope.READ)[1]
    state.close()
    process = ServiceProcess(tmp_path, "--workers", "0", "--require-key")
    try:
        with Client(process.url, key=reader) as client:
            assert client.predict(device, [{}]).device == device
            with pytest.raises(ForbiddenError, match="scope write"):
                client.simulate(SIMULATE)
        with Client(process.url) as stranger, pytest.raises(NoKeyError):
            stranger.devices()
        asked = ("devices", "show", device, "--server", process.url)
        assert iojoule(*asked).code == NoKeyError.exit_code
        monkeypatch.setenv("IOJOULE_KEY", reader)
        assert iojoule(*asked).code == 0
    finally:
        process.stop()


def events(middle: Between) -> list[str]:
    return [headers.get("last-event-id", "") for one, headers in middle.seen if "events" in one]


def test_events_that_break_off_go_on_where_they_were(
    far: Client, middle: Between, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "sleep", lambda seconds: None)
    job = far.simulate(LONG)
    middle.next(700, "break", 700)
    told = far.follow(job)
    seen = [next(told)]
    client.cancel(job)
    seen += told
    assert seen[-1].state == "cancelled"
    assert len({one.model_dump_json() for one in seen}) == len(seen)
    numbers = [int(one or 0) for one in events(middle)]
    assert numbers == sorted(numbers)
    assert len(numbers) >= 3


@pytest.mark.parametrize(
    "fault",
    [
        (429, {"Retry-After": "2"}, b""),
        (200, {"Content-Type": "text/html"}, b"<html>"),
        (200, {"Content-Type": "text/event-stream"}, b"data: {\n\n"),
        (502, {}, b""),
    ],
)  # fmt: skip
def test_where_events_do_not_get_through_the_job_is_asked_for(
    far: Client, middle: Between, fault: object
) -> None:
    job = far.simulate(SIMULATE)
    middle.next(fault)
    assert [one.state for one in far.follow(job)][-1] == "done"
    assert middle.asked[0].endswith("/events")
    assert set(middle.asked[1:]) == {f"GET /jobs/{job.id}"}


def test_streams_without_events_are_given_up(
    far: Client, middle: Between, hasty: list[float]
) -> None:
    job = far.simulate(SIMULATE)
    empty = (200, {"Content-Type": "text/event-stream"}, b": nothing\n\n")
    middle.next(*[empty] * 3)
    assert list(far.follow(job))[-1].state == "done"
    assert len(events(middle)) == 3


def test_a_job_that_does_not_change_is_not_sent_again(far: Client, middle: Between) -> None:
    job = far.simulate(LONG)
    middle.next()
    with pytest.raises(TimeoutError):
        far.wait(job, timeout_seconds=0.0)
    middle.next(*[(304, {}, b"")] * 2)
    with pytest.raises(TimeoutError):
        far.wait(job, timeout_seconds=0.4)
    far.cancel(job)
    conditions = [headers.get("if-none-match") for one, headers in middle.seen if "GET" in one]
    assert conditions
    middle.next()
    with pytest.raises(ConflictError):
        far.wait(job)  # until then each look may find it changed
    connection: Connection = far._connection
    first = connection.ask("GET", "/jobs/{id}", job.id)
    known = {"If-None-Match": first.headers["etag"]}
    assert connection.ask("GET", "/jobs/{id}", job.id, headers=known).status_code == 304


@pytest.mark.slow
def test_a_service_that_is_killed_and_comes_back_is_followed_on(tmp_path: Path) -> None:
    process = ServiceProcess(tmp_path)
    try:
        with between(lambda: process.url) as middle, Client(middle.url) as far:
            job = far.simulate(
                {**LONG, "scenario": {"flows": [{"queue_depth": 4, "total_requests": 3_000_000}]}}
            )
            told = far.follow(job)
            next(told)
            process.kill()
            process.start()
            assert list(told)[-1].state == "done"
            assert far.result(job)["scenarios"]
    finally:
        process.stop()


def test_a_service_that_stays_away_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = ServiceProcess(tmp_path)
    with Client(process.url) as client:
        told = client.follow(client.simulate(LONG))
        next(told)
        process.kill()
        now = iter(range(0, 10_000, 50))
        monkeypatch.setattr(following.time, "monotonic", lambda: float(next(now)))
        monkeypatch.setattr(following, "sleep", lambda seconds: None)
        with pytest.raises(UnreachableError):
            list(told)
