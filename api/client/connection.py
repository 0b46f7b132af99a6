"""Sends requests to a service, again where that helps, and turns its problems into errors."""

from __future__ import annotations

import ipaddress
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import BufferedReader
from math import inf
from pathlib import Path
from time import sleep
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from httpx_sse import EventSource, SSEError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from iojoule import __version__
from iojoule.api.client.errors import ServiceError, UnreachableError, error_of, members_of
from iojoule.api.http.schemas import JobStatus
from iojoule.api.state.errors import ConflictError, TooManyError, UnavailableError
from iojoule.datasets.errors import InputError, IojouleError

M = TypeVar("M")

AGAIN = frozenset({429, 502, 503, 504})
"""Too much at the moment, or something on the way is away: later may be better."""

BACKOFF_SECONDS = 0.25
"""Before the second attempt where the service names no time; twice as much before each other."""

RETRY_AFTER_MAX_SECONDS = 60.0
"""A service that wants to be left alone for longer is left alone altogether."""

TIMEOUT_SECONDS = 120.0

_LOST = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.ReadError,
    httpx.WriteError,
    httpx.CloseError,
    httpx.RemoteProtocolError,
)
"""The connection broke or was not made: what was asked may or may not have been done."""


class Connection:
    """A service, and how often it is asked again; may be shared by threads.

    Every operation of the service may be asked twice: questions change nothing, what makes
    something bears an idempotency key, and what changes something says which state it changes.

    Args:
        server: Its address; None takes `$IOJOULE_SERVER`.
        key: Shown with every request; None takes `$IOJOULE_KEY`, where there is one.
        retries: How often a request is sent again.
        timeout_seconds: How long an answer may take.

    Raises:
        InputError: The address is none, or there is none.
    """

    def __init__(
        self,
        server: str | None = None,
        key: str | None = None,
        *,
        retries: int = 5,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.server = _address(server or os.environ.get("IOJOULE_SERVER", ""))
        self.retries = retries
        key = key or os.environ.get("IOJOULE_KEY") or None
        headers = {"User-Agent": f"iojoule/{__version__}"}
        if key is not None:
            headers["Authorization"] = f"Bearer {_printable(key)}"
        self.http = httpx.Client(
            base_url=self.server,
            headers=headers,
            timeout=httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, 10.0)),
            trust_env=not _is_loopback(httpx.URL(self.server).host),  # no proxy knows it
        )

    def ask(
        self,
        method: str,
        path: str,
        *names: str | int,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        again: bool = True,
    ) -> httpx.Response:
        """The answer to a request, sent again while that may help.

        Args:
            method: GET, POST, PUT, PATCH or DELETE.
            path: Of the operation, as the service's description has it.
            names: Take the places of `{...}` in the path, in order.
            query: Parameters; None is left out.
            body: Text, bytes or a file as they are, values as JSON.
            headers: Besides the usual ones.
            again: Whether to send it again at all.

        Raises:
            IojouleError: The service's problem, or it was not reached.
        """
        url, said = _filled(path, names), f"{method} {path}"
        content, kind = _content(body)
        kind |= headers or {}
        parameters = {name: one for name, one in (query or {}).items() if one is not None}
        for attempt in range(self.retries + 1 if again else 1):
            last = not again or attempt == self.retries
            with _opened(content) as sent:
                request = self.http.build_request(
                    method, url, params=parameters, content=sent, headers=kind
                )
                try:
                    response = self.http.send(request)
                except _LOST as error:
                    if last:
                        raise self.unreachable(error) from None
                    sleep(backoff(attempt))
                    continue
                except httpx.HTTPError as error:
                    raise self.unreachable(error) from None
            pause = None if last else pause_of(response, attempt)
            if pause is None:
                return self.passed(response, said)
            sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def stream(
        self, path: str, *names: str | int, headers: Mapping[str, str], silence_seconds: float
    ) -> AbstractContextManager[httpx.Response]:
        """A GET whose answer is read as it comes; broken off after so long a silence."""
        timeout = httpx.Timeout(silence_seconds, connect=10.0)
        return self.http.stream("GET", _filled(path, names), headers=dict(headers), timeout=timeout)

    def passed(self, response: httpx.Response, said: str) -> httpx.Response:
        """The answer where it is one; raises the error that it stands for elsewhere."""
        if response.is_success or response.status_code == 304:
            return response
        raise self._refusal(response, said)

    def _refusal(self, response: httpx.Response, said: str) -> IojouleError:
        status = response.status_code
        kind = response.headers.get("content-type", "").partition(";")[0]
        try:
            problem = from_json(response.read()) if kind == "application/problem+json" else None
        except ValueError:
            problem = None
        if response.is_redirect:
            elsewhere = response.headers.get("location")
            detail = f"{self.server} sends elsewhere, to {elsewhere}; ask there"
        else:
            detail = f"{self.server} answers {said} with {status} {response.reason_phrase}"
        known = {"status": status, "detail": detail, **members_of(problem)}
        return error_of(known, f"{self.server} {said}")

    def unreachable(self, error: Exception) -> UnreachableError:
        """That the service does not answer, and why."""
        why = str(error) or type(error).__name__
        return UnreachableError(
            f"{self.server} does not answer ({why}); is it running, and is that its address?"
        )

    def read(self, response: httpx.Response, kind: type[M] | TypeAdapter[M]) -> M:
        """An answer as what it is; raises ServiceError where it is something else."""
        adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
        try:
            return adapter.validate_json(response.content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise ServiceError(
                f"{response.url}: is not what iojoule {__version__} takes for an answer ({place}: "
                f"{first['msg']}; {error.error_count()} such); does a service of the same version "
                "run there?"
            ) from None


def pause_of(response: httpx.Response, attempt: int) -> float | None:
    """How long to wait before asking again, s; None: this answer is the one."""
    if response.status_code not in AGAIN:
        return None
    said = response.headers.get("retry-after", "")
    if said.isascii() and said.isdigit():
        seconds = float(said)
    elif said:
        try:
            seconds = (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return backoff(attempt)
    else:
        return backoff(attempt)
    return None if seconds > RETRY_AFTER_MAX_SECONDS else max(seconds, 0.0)


def backoff(attempt: int) -> float:
    """Seconds before the attempt after this one, counted from 0.

    Full time or down to half of it, so that many clients do not come back at one moment.
    """
    return min(BACKOFF_SECONDS * 2.0**attempt, 10.0) * random.uniform(0.5, 1.0)


def _address(server: str) -> str:
    if not server:
        raise InputError(
            "no service is named: say server=, or set IOJOULE_SERVER, as http://127.0.0.1:8080",
            field="server",
        )
    try:
        url = httpx.URL(server)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(
            f"{server}: is no address of a service; write it as http://127.0.0.1:8080",
            field="server",
        )
    return server.rstrip("/")


def _printable(key: str) -> str:
    if not (key.isascii() and key.isprintable()):
        raise InputError("the key holds what no key holds; copy it again", field="key")
    return key.strip()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _filled(path: str, names: tuple[str | int, ...]) -> str:
    """The path with names in the places of its `{...}`."""
    for name in names:
        if name == "":
            raise InputError(f"{path}: a name is empty; say one")
        before, _, rest = path.partition("{")
        path = f"{before}{quote(str(name), safe='')}{rest.partition('}')[2]}"
    return path


def _content(body: Any) -> tuple[Callable[[], Any] | None, dict[str, str]]:
    """What opens the body of a request anew for each attempt, and its content type."""
    if body is None:
        return None, {}
    if isinstance(body, Path):
        return lambda: _file(body), {}
    if isinstance(body, bytes):
        return lambda: body, {}
    if isinstance(body, str):
        return body.encode, {"Content-Type": "text/plain"}
    sent = to_json(body)
    return lambda: sent, {"Content-Type": "application/json"}


def _file(path: Path) -> BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None


@contextmanager
def _opened(content: Callable[[], Any] | None) -> Iterator[Any]:
    """The body of one attempt: bytes, or a file that is read piece by piece."""
    opened = None if content is None else content()
    with opened if isinstance(opened, BufferedReader) else nullcontext():
        yield opened


EVENTS, JOB = "/jobs/{id}/events", "/jobs/{id}"

SILENCE_SECONDS = 45.0
"""The service sends a comment every 15 s; what is silent for longer is a broken connection."""

OUTAGE_SECONDS = 120.0
"""Jobs survive the service; so long a follower waits for it to come back."""

FRUITLESS = 3
"""So many streams without an event in turn, and something on the way does not let them pass."""

POLL_SECONDS, POLL_MAX_SECONDS = 0.25, 2.0


class _NoStreamError(Exception):
    """Events do not get here; the job can be asked for all the same."""


def follow(connection: Connection, job: str, until: float | None = None) -> Iterator[JobStatus]:
    """A job now and at each change, until it has ended.

    Args:
        connection: The service.
        job: Its id.
        until: Monotonic time at which to stop all the same, s; None: never.

    Raises:
        NotFoundError: There is no such job.
        UnreachableError: The service is away for longer than OUTAGE_SECONDS.
    """
    known = None
    told = _told(connection, job) if until is None else _polled(connection, job, until)
    for status in told:
        if status != known:
            yield status
        known = status


def _told(connection: Connection, job: str) -> Iterator[JobStatus]:
    try:
        yield from _events(connection, job)
    except _NoStreamError:
        yield from _polled(connection, job)


def wait(
    connection: Connection,
    job: str,
    *,
    timeout_seconds: float | None = None,
    watch: Callable[[JobStatus], object] | None = None,
) -> JobStatus:
    """Wait until a job is done; arguments and errors as `Client.wait`."""
    end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    for status in follow(connection, job, end):
        if watch is not None:
            watch(status)
        if status.state == "done":
            return status
        if status.error is not None:
            raise error_of(status.error.model_dump(), f"job {status.id}")
        if status.state == "cancelled":
            raise ConflictError(f"job {status.id} was called off")
    raise TimeoutError(f"job {job} is not done after {timeout_seconds} s")


def has_ended(job: JobStatus) -> bool:
    """Whether it will not change any more."""
    return job.state in ("done", "failed", "cancelled")


class _Outage:
    """Waits for a service that is away, longer each time, and not for ever."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._attempt = 0

    def over(self) -> None:
        self._since, self._attempt = None, 0

    def wait(self, error: UnreachableError) -> None:
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since > OUTAGE_SECONDS:
            raise error
        sleep(backoff(self._attempt))
        self._attempt += 1


def _events(connection: Connection, job: str) -> Iterator[JobStatus]:
    last, fruitless, outage = "", 0, _Outage()
    while fruitless < FRUITLESS:
        told = False
        try:
            for event, status in _stream(connection, job, last):
                told, last = True, event
                yield status
                if has_ended(status):
                    return
            outage.over()
        except httpx.TransportError as error:
            if not told and not isinstance(error, httpx.ReadTimeout | httpx.RemoteProtocolError):
                outage.wait(connection.unreachable(error))
                continue
            outage.over()
        except UnavailableError as error:
            outage.wait(UnreachableError(error.message))
            continue
        except (TooManyError, ServiceError):
            break
        fruitless = 0 if told else fruitless + 1
    raise _NoStreamError


def _stream(connection: Connection, job: str, last: str) -> Iterator[tuple[str, JobStatus]]:
    """One connection's worth of events, each with its id; those up to `last` are not told again."""
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if last:
        headers["Last-Event-ID"] = last
    with connection.stream(EVENTS, job, headers=headers, silence_seconds=SILENCE_SECONDS) as answer:
        connection.passed(answer, f"GET {EVENTS}")
        try:
            for event in EventSource(answer).iter_sse():
                if event.data:
                    yield event.id, JobStatus.model_validate_json(event.data)
        except (SSEError, ValidationError, UnicodeDecodeError) as error:
            raise _NoStreamError from error


def _polled(connection: Connection, job: str, until: float = inf) -> Iterator[JobStatus]:
    headers: dict[str, Any] = {}
    outage, pause = _Outage(), POLL_SECONDS
    while True:
        try:
            answer = connection.ask("GET", JOB, job, headers=headers)
            outage.over()
        except (UnreachableError, UnavailableError) as error:
            if time.monotonic() >= until:
                return
            outage.wait(UnreachableError(error.message))
            continue
        if answer.status_code != httpx.codes.NOT_MODIFIED:
            status = connection.read(answer, JobStatus)
            headers = {"If-None-Match": answer.headers.get("etag", '""')}
            yield status
            if has_ended(status):
                return
            pause = POLL_SECONDS
        left = until - time.monotonic()
        if left <= 0:
            return
        sleep(min(pause, left))
        pause = min(pause * 1.5, POLL_MAX_SECONDS)
