"""Bytes that are almost requests, sent to a real service: it lives, keeps its size and answers."""

import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import closing, suppress

import httpx
import orjson
import pytest

from iojoule.api.http.predict import EXAMPLE
from tests.end_to_end.served import Served

INPUTS = int(os.environ.get("IOJOULE_FUZZ_INPUTS", "5000"))
MORE_INPUTS = 20_000
SEED = 20261123
GROWTH_BYTES_MAX = 96 << 20
"""Beyond what it had after the first thousand inputs."""

BODY = orjson.dumps(EXAMPLE)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
WHOLE = [
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET /devices?limit=2 HTTP/1.1\r\nHost: elsewhere\r\nAccept: */*\r\n\r\n",
    b"HEAD /jobs HTTP/1.0\r\nHost: localhost\r\n\r\n",
    POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY,
    POST + CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    POST + CHUNKED + b"2;a=b\r\n{}\r\n0\r\nX-Trailer: 1\r\nHost: elsewhere\r\n\r\n",
    POST + b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /datasets HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n" + CHUNKED
    + b"8\r\nread,1\r\n\r\n0\r\n\r\n",
]  # fmt: skip
BITS = [
    b"\r\n", b"\n", b"\r", b"\x00", b"\xff", b":", b" ", b"0\r\n\r\n", b"ffffffffffffffff\r\n",
    b"-1\r\n", b"1;x=" + b"y" * 5000 + b"\r\n", b"Content-Length: 18446744073709551616\r\n",
    b"Content-Length: 1\r\n", b"Transfer-Encoding: gzip, chunked\r\n", CHUNKED, b"HTTP/1.1",
    b"a:\r\n" * 2000, b"X: " + b"z" * 70_000 + b"\r\n", b"Expect: 100-continue\r\n", b"%00%ff",
    b"9" * 5000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("wire") / "state", workers=0) as one:
        yield one


def made(source: random.Random) -> bytes:
    """One to a hundred requests, mostly with something wrong in them."""
    count = source.choice([1, 1, 1, 2, 5, 100])
    said = bytearray(b"".join(source.choice(WHOLE) for _ in range(count)))
    for _ in range(source.choice([0, 1, 1, 2, 4, 16])):
        place = source.randrange(len(said) + 1)
        match source.randrange(5):
            case 0:
                said[place : place + 1] = bytes([source.randrange(256)])
            case 1:
                del said[place : place + source.randrange(1, 40)]
            case 2:
                said[place:place] = source.choice(BITS)
            case 3:
                said[place:place] = said[place : place + source.randrange(1, 200)]
            case _:
                del said[place:]
    return bytes(said)


def sent(port: int, said: bytes, source: random.Random) -> bytes:
    """What is answered until the service hangs up, or nobody waits for it."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as connection:
        # leaves no port behind that cannot be taken again for a minute
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        answer = b""
        with suppress(ConnectionError):
            cut = source.randrange(len(said) + 1)
            connection.sendall(said[:cut])
            connection.sendall(said[cut:])
            if source.random() < 0.2:  # else gone without a word
                with suppress(OSError):  # hung up by the service already
                    connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(1 << 18):
                    answer += piece
        return answer


@pytest.mark.parametrize("inputs", [INPUTS, pytest.param(MORE_INPUTS, marks=pytest.mark.soak)])
def test_bytes_that_are_almost_requests_harm_nobody(served: Served, inputs: int) -> None:
    source = random.Random(SEED)
    first = 0
    with httpx.Client(base_url=served.url, timeout=60, trust_env=False) as client:
        for number in range(inputs):
            answer = sent(served.port, made(source), source)
            assert answer[:5] in (b"", b"HTTP/"), (SEED, number)
            assert b"HTTP/1.1 500" not in answer, (SEED, number)
            if number % 1000 == 999:
                assert client.get("/healthz").status_code == 200, (SEED, number)
                first = first or served.resident_bytes()
        assert served.process.poll() is None
        assert client.get("/healthz").status_code == 200
        assert client.post("/predict", json=EXAMPLE).status_code == 200
        assert served.resident_bytes() < first + GROWTH_BYTES_MAX
    assert "Traceback" not in served.log(), served.log()[-4000:]
