"""What never becomes a request: answered in time, within limits, and as a problem."""

import json
import socket
import time
from contextlib import closing
from typing import Any

import httpx
import pytest

from iojoule.api.http import gate, protocol
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
    assert sent(service, b"GET / HTTP/1.1\r\nHost: localhost\r\n", long)[0] in (431, 0)
    many = b"".join(b"X-%d: 1\r\n" % n for n in range(40_000))
    assert sent(service, b"GET / HTTP/1.1\r\nHost: localhost\r\n", many)[0] in (431, 0)
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
    monkeypatch.setattr(gate, "PIECE_SECONDS", 0.2)
    assert sent(service, pieces[0], b"[")[0] == 408
