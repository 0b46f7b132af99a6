"""What never becomes a request: answered in time, within limits, and as a problem."""

import json
import re
import socket
import time
from contextlib import ExitStack, closing, suppress
from typing import Any

import httpx
import pytest

from iojoule.api.http import access, protocol
from iojoule.api.http.operations import OTHER
from iojoule.api.problem_document import MEDIA_TYPE


def sent(service: httpx.Client, *pieces: bytes, pause: float = 0.0) -> tuple[int, dict[str, Any]]:
    """The status and the problem that pieces are answered with, until the service closes."""
    port = service.base_url.port
    with closing(socket.create_connection(("127.0.0.1", port or 0), timeout=20)) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            return 0, {}
    head, _, body = answer.partition(b"\r\n\r\n")
    assert MEDIA_TYPE.encode() in head.lower(), head
    return int(head.split()[1]), json.loads(body)


def until_closed(connection: socket.socket) -> bytes:
    """What comes until the service hangs up."""
    answer = b""
    try:
        while piece := connection.recv(1 << 18):
            answer += piece
    except ConnectionError:
        pass
    return answer


def flooded(service: httpx.Client, head: bytes, piece: bytes, most: int) -> tuple[int, bytes]:
    """How many bytes of `piece`, over and over, the service took before it hung up; its answer."""
    port = service.base_url.port
    taken = 0
    with closing(socket.create_connection(("127.0.0.1", port or 0), timeout=20)) as connection:
        connection.sendall(head)
        try:
            while taken < most:
                connection.sendall(piece)
                taken += len(piece)
        except ConnectionError:
            pass
        return taken, until_closed(connection)


def held(service: httpx.Client, lane: str) -> int:
    """LabPaths of a lane that are taken."""
    (found,) = re.findall(
        rf'^iojoule_http_requests_in_progress{{lane="{lane}"}} (\S+)$',
        service.get("/metrics").text, re.MULTILINE,
    )  # fmt: skip
    return int(float(found))


POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "line",
    [b"nonsense", b"GET / HTTP/9.9\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"CONNECT elsewhere:443 HTTP/1.1\r\n\r\n",
     POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
     POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
)  # fmt: skip
def test_what_is_no_request_is_refused(service: httpx.Client, line: bytes) -> None:
    status, problem = sent(service, line + b"\r\n\r\n")
    assert status == problem["status"] == 400


def test_a_head_that_does_not_come_is_not_waited_for(
    service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    assert sent(service)[0] == 408  # a connection that says nothing
    drops = [b"GET /healthz HTTP/1.1\r\n", *(b"X-%d: 1\r\n" % n for n in range(4))]
    assert sent(service, *drops, pause=0.1)[0] in (408, 0)  # one that says a little, for ever
    assert service.get("/healthz").is_success
    assert service.get("/healthz").is_success  # on the same connection


def test_a_head_has_a_limit(service: httpx.Client) -> None:
    long = b"X: " + b"x" * (protocol.HEAD_BYTES_MAX + 1)
    start = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    assert sent(service, start, long)[0] in (431, 0)
    assert sent(service, start + long)[0] in (431, 0)  # all in a piece or two
    assert (
        sent(service, start + long[: len(long) // 2], long[len(long) // 2 :], pause=0.2)[0] == 431
    )
    many = b"".join(b"X-%d: 1\r\n" % n for n in range(40_000))
    assert sent(service, start, many)[0] in (431, 0)
    assert service.get("/healthz").is_success


def test_a_body_that_takes_long_may_take_long(
    service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    head = (
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n"
    )
    pieces = [head + b"Content-Type: application/json\r\n\r\n", b"[", b" ", b" ", b"]"]
    assert sent(service, *pieces, pause=0.15)[0] == 422
    monkeypatch.setattr(access, "PIECE_SECONDS", 0.2)
    assert sent(service, pieces[0], b"[")[0] == 408


CHUNKED = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
FLOODS = {
    "trailers": (b"2\r\n{}\r\n0\r\n", b"X-Trailer: %s\r\n" % (b"x" * 8000)),
    "short trailers": (b"2\r\n{}\r\n0\r\n", b"a:\r\n" * 2000),
    "one trailer": (b"2\r\n{}\r\n0\r\nX-Trailer: ", b"x" * 8000),
    "an extension": (b"2;x=", b"x" * 8000),
    "extensions": (b"", b"1;x=%s\r\n \r\n" % (b"x" * 8000)),
}


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("head", [POST, POST.replace(b"localhost", b"elsewhere")],
                         ids=["let in", "turned away"])  # fmt: skip
def test_what_stands_around_a_body_has_a_limit(
    service: httpx.Client, head: bytes, flood: str
) -> None:
    begin, piece = FLOODS[flood]
    # what the sockets hold between the two comes on top
    most = 200 * protocol.HEAD_BYTES_MAX
    taken, answer = flooded(service, head + CHUNKED + begin, piece, most)
    assert taken < most
    assert answer[9:12] in (b"431", b"421", b"")  # nothing where the reset was faster
    assert service.get("/healthz").is_success


@pytest.mark.parametrize("begin", [b"2\r\n{}\r\n0\r\n", b"2", b""])
@pytest.mark.parametrize("head", [POST, POST.replace(b"localhost", b"elsewhere")])
def test_what_stands_around_a_body_must_come_in_time(
    service: httpx.Client, monkeypatch: pytest.MonkeyPatch, head: bytes, begin: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    port = service.base_url.port
    with closing(socket.create_connection(("127.0.0.1", port or 0), timeout=20)) as connection:
        connection.sendall(head + CHUNKED + begin)
        drops = (b"X-%d: 1\r\n" if begin.endswith(b"0\r\n") else b";x=%d" for _ in range(600))
        hung_up = False
        for number, drop in enumerate(drops if begin else [b"1\r\n \r\n"] * 600):
            try:
                connection.sendall(drop % number if b"%" in drop else drop)
            except ConnectionError:
                hung_up = True
                break
            time.sleep(0.05)
            if not begin and head is POST and number > 20:
                return  # a body that comes is waited for
        assert hung_up
    assert service.get("/healthz").is_success


def test_trailers_are_no_fields_of_any_request(service: httpx.Client) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    trailer = b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Request-Id: smuggled\r\n\r\n"
    port = service.base_url.port
    with closing(socket.create_connection(("127.0.0.1", port or 0), timeout=20)) as connection:
        connection.sendall(ask + trailer + ask + b"Connection: close\r\n\r\n")
        answer = until_closed(connection)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert b"smuggled" not in answer


def test_many_requests_at_once_wait_or_are_sent_away(service: httpx.Client) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    port = service.base_url.port
    few = protocol.PIPELINE_MAX // 2
    for count, last in ((few, b"Connection: close\r\n\r\n"), (20_000, b"\r\n")):
        with closing(socket.create_connection(("127.0.0.1", port or 0), timeout=20)) as connection:
            with suppress(ConnectionError):
                connection.sendall((ask + b"\r\n") * (count - 1) + ask + last)
            answers = until_closed(connection).count(b"HTTP/1.1 200")
        assert answers == few if count == few else answers < count
    assert service.get("/healthz").is_success


def test_who_does_not_read_keeps_a_place_and_is_cut_off(
    service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 3.0)
    idle = held(service, OTHER.name)  # this question
    port = service.base_url.port
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", port or 0))
        count = protocol.PIPELINE_MAX
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * count)
        places = set()
        for _ in range(1000):
            places.add(held(service, OTHER.name))
            if idle in places and idle + 1 in places:
                break
            time.sleep(0.02)
        assert idle + 1 in places
        for _ in range(1000):
            if held(service, OTHER.name) == idle:
                break
            time.sleep(0.02)
        assert held(service, OTHER.name) == idle
        length = int(service.get("/openapi.json").headers["content-length"])
        assert len(until_closed(connection)) < count * length


def test_a_large_answer_comes_whole_to_who_reads_slowly(
    service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "PIECE_BYTES", 1000)
    whole = service.get("/openapi.json").content
    with service.stream("GET", "/openapi.json") as response:
        pieces = []
        for piece in response.iter_raw(4096):
            pieces.append(piece)
            time.sleep(0.002)
    assert b"".join(pieces) == whole


def test_connections_without_a_request_give_way_to_new_ones(
    service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "connections_max", lambda: 6)
    address = ("127.0.0.1", service.base_url.port or 0)
    head = POST + b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    with ExitStack() as stack:

        def opened(*pieces: bytes) -> socket.socket:
            connection = stack.enter_context(closing(socket.create_connection(address, timeout=20)))
            for piece in pieces:
                connection.sendall(piece)
            return connection

        at_work = opened(head, b"[")
        while not held(service, "compute"):
            pass
        idle = [opened() for _ in range(4)] + [opened(b"GET / HT") for _ in range(8)]
        assert service.get("/healthz").is_success
        assert [until_closed(each) for each in idle[:6]] == [b""] * 6
        at_work.sendall(b"]")
        assert at_work.recv(65536).startswith(b"HTTP/1.1 422")
