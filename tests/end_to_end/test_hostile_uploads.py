"""What nobody should send, sent to a real service: refused as documented, and nothing is left."""

import gzip
import io
import json
import random
import socket
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iojoule.api.http.access import PIECE_SECONDS
from iojoule.api.http.datasets import UPLOAD, UPLOAD_BYTES_MAX
from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.http.protocol import HEAD_SECONDS
from iojoule.api.http.schemas import FORMATS
from tests.api.http.test_datasets import zipped
from tests.api.http.test_problems import problem
from tests.end_to_end.served import Served

PARQUET, CSV, JSON, ZIP = FORMATS
TABLE = UPLOAD["requestBody"]["content"][CSV]["examples"]["worked"]["value"]
FIO = UPLOAD["requestBody"]["content"][JSON]["examples"]["worked"]["value"]
GROWTH_BYTES_MAX = 400 << 20
"""Of the service itself, beyond what it had: less than one file that it may be sent unfolds to."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("hostile") / "state", workers=0) as one:
        yield one


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=180, trust_env=False) as one:
        assert one.post("/predict", json=PREDICT).is_success
        yield one


@pytest.fixture(autouse=True)
def unharmed(served: Served, client: httpx.Client) -> Iterator[None]:
    """Whatever came: nothing is left of it, the service answers, and has not grown much."""
    kept, before = set(served.kept()), served.resident_bytes()
    yield
    for _ in range(100):
        if not served.left():
            break
        time.sleep(0.1)
    assert not served.left()
    assert set(served.kept()) == kept
    assert client.post("/predict", json=PREDICT).is_success
    assert served.resident_bytes() < before + GROWTH_BYTES_MAX
    assert "Traceback" not in served.log()


def sent(client: httpx.Client, body: bytes, kind: str, query: str = "") -> httpx.Response:
    return client.post(f"/datasets{query}", content=body, headers={"Content-Type": kind})


def parquet(table: pa.Table, **how: object) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **how)
    return stream.getvalue()


def spoken(served: Served, *pieces: bytes, close: bool = False, pause: float = 0) -> bytes:
    """What is answered to pieces sent one after the other; `close`: hung up after the last."""
    address = ("127.0.0.1", served.port)
    with closing(socket.create_connection(address, timeout=3 * PIECE_SECONDS)) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        if close:
            return b""
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            pass  # refused and hung up while the rest was still being sent
        return answer


def head(length: int | None, kind: str = CSV, path: str = "/datasets") -> bytes:
    framed = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: {kind}\r\n{framed}\r\n\r\n"
    ).encode()


def test_what_is_too_large_is_refused_with_a_length_or_without(client: httpx.Client) -> None:
    too_much = bytes(UPLOAD_BYTES_MAX + 1)
    pieces = (too_much[: 1 << 20] for _ in range(UPLOAD_BYTES_MAX // (1 << 20) + 1))
    headers = {"Content-Type": CSV}
    problem(client.post("/datasets", content=too_much, headers=headers), 413)
    problem(client.post("/datasets", content=pieces, headers=headers), 413)
    headers = {"Content-Type": JSON}
    problem(client.post("/predict", content=too_much, headers=headers), 413)


def test_a_length_that_lies_is_refused_before_it_is_sent(served: Served) -> None:
    answer = spoken(served, head(1 << 50), b"operation,iops\n")
    assert answer.split()[1] == b"413"


@pytest.mark.parametrize("length", [1000, None])
def test_who_hangs_up_in_the_middle_leaves_nothing(served: Served, length: int | None) -> None:
    framed = b"operation" if length else b"9\r\noperation\r\n"
    for _ in range(20):
        spoken(served, head(length), framed, close=True)
    spoken(served, head(1 << 20, JSON, "/predict"), b'{"device":', close=True)


def test_slow_ones_are_not_waited_for_and_hold_up_nobody(
    served: Served, client: httpx.Client
) -> None:
    address = ("127.0.0.1", served.port)
    slow = {
        # one that never ends its head, one that never ends its body, one that says nothing
        "head": (b"POST /datasets HTTP/1.1\r\nHost: localhost\r\nX: ", 0),
        "body": (head(1000), 0),
        "nothing": (b"", 0),
    }
    connections = [
        (name, socket.create_connection(address, timeout=2 * (HEAD_SECONDS + PIECE_SECONDS)))
        for name in slow
        for _ in range(20 if name != "body" else 4)
    ]
    try:
        for name, connection in connections:
            connection.sendall(slow[name][0])
        assert client.post("/predict", json=PREDICT).is_success
        for _, connection in connections:
            answer = connection.recv(65536)
            assert answer.split()[1] == b"408", answer
    finally:
        for _, connection in connections:
            connection.close()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_packed_bodies_are_not_unpacked(client: httpx.Client, coding: str) -> None:
    bomb = gzip.compress(bytes(256 << 20))
    packed = {"Content-Encoding": coding}
    answer = client.post("/datasets", content=bomb, headers={"Content-Type": CSV, **packed})
    problem(answer, 415)
    answer = client.post("/predict", content=bomb, headers={"Content-Type": JSON, **packed})
    problem(answer, 415)


def zip_of_zeros() -> bytes:
    """A gigabyte in a megabyte."""
    return zipped(**dict.fromkeys(("a.json", "b.json"), bytes(512 << 20)))


def zip_that_lies() -> bytes:
    """Its table says two bytes, where half a gigabyte unfolds."""
    honest = zipped(**{"a.json": bytes(512 << 20)})
    return honest.replace(struct.pack("<I", 512 << 20), struct.pack("<I", 2))


def zip_of_many() -> bytes:
    return zipped(**{f"{number}.json": "{}" for number in range(100_000)})


def zip_of_one_again_and_again() -> bytes:
    """Fifty thousand entries that all name the same megabyte."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", bytes(1 << 20))
        archive.filelist *= 50_000
    return stream.getvalue()


def zip_of_deep_folders() -> bytes:
    return zipped(**{"d/" * 1500 + "a.json": "{}"})


def zip_of_links() -> bytes:
    """A link to a file of the host and one to a folder, and a file through the latter."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, target in (("a.json", "/etc/passwd"), ("etc", "/etc")):
            link = zipfile.ZipInfo(name)
            link.create_system, link.external_attr = 3, 0o120777 << 16
            archive.writestr(link, target)
        archive.writestr("etc/iojoule-was-here", "{}")
    return stream.getvalue()


@pytest.mark.parametrize(
    "make",
    [
        zip_of_zeros,
        zip_that_lies,
        zip_of_many,
        zip_of_one_again_and_again,
        zip_of_deep_folders,
        zip_of_links,
    ],
)
def test_an_archive_that_unfolds_to_more_or_elsewhere_is_refused(
    client: httpx.Client, make: Callable[[], bytes]
) -> None:
    body = make()
    assert len(body) <= UPLOAD_BYTES_MAX
    detail = problem(sent(client, body, ZIP), 422)["detail"]
    assert "root:" not in detail
    assert not Path("/etc/iojoule-was-here").exists()


def bomb_of_one_value() -> bytes:
    """A few kB that say 2,000 bytes fifty million times: 100 GB of text."""
    rows = 50_000_000
    firsts = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(rows * 4))])
    column = pa.DictionaryArray.from_arrays(firsts, pa.array(["x" * 2000]))
    return parquet(pa.table({"operation": column}), store_schema=False, compression="zstd")


def bomb_of_zeros() -> bytes:
    """Five fields of 100 million runs that are all alike: 4 GB."""
    rows = 100_000_000
    zeros = pa.Array.from_buffers(pa.float64(), rows, [None, pa.py_buffer(bytes(rows * 8))])
    names = ["iops", "latency_mean_ns", "device_power_watts", "queue_depth", "request_bytes"]
    return parquet(pa.table(dict.fromkeys(names, zeros)), compression="zstd")


def many_groups() -> bytes:
    table = pa.table({"operation": ["read"] * 60_000, "iops": [1.0] * 60_000})
    return parquet(table, row_group_size=1, compression="none")


def many_columns() -> bytes:
    """A tenth of a million: more do not fit into an upload."""
    return parquet(pa.table({f"c{n}": [1] for n in range(100_000)}), compression="none")


def deep_table() -> bytes:
    kind: pa.DataType = pa.int32()
    for _ in range(200):
        kind = pa.list_(kind)
    return parquet(pa.table({"iops": pa.nulls(1, kind)}))


@pytest.mark.parametrize(
    "make", [bomb_of_one_value, bomb_of_zeros, many_groups, many_columns, deep_table],
    ids=["text", "zeros", "row groups", "columns", "depth"],
)  # fmt: skip
def test_parquet_that_unfolds_to_more_is_refused(client: httpx.Client, make: object) -> None:
    assert callable(make)
    body = make()
    assert len(body) <= UPLOAD_BYTES_MAX
    problem(sent(client, body, PARQUET), 422)


def test_parquet_whose_description_lies_is_refused(client: httpx.Client) -> None:
    whole = parquet(pa.table({"operation": ["read"] * 2, "iops": [1.0, 2.0]}))
    footer = int.from_bytes(whole[-8:-4], "little")
    chosen = random.Random(7)
    lies = [
        whole[:-8] + b"\xff\xff\xff\xff" + whole[-4:],  # a description of 4 GiB
        whole[:-8] + b"\x00\x00\x00\x00" + whole[-4:],
        whole[: len(whole) // 2],
        b"PAR1" * 1000,
    ]
    for _ in range(6):
        changed = bytearray(whole)
        for _ in range(8):
            changed[len(whole) - 8 - chosen.randrange(footer)] = chosen.randrange(256)
        lies.append(bytes(changed))
    for lie in lies:
        answer = sent(client, lie, PARQUET)
        assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    "body",
    [
        TABLE.encode("utf-16"), "opération,iops\nread,1\n".encode("latin-1"), b"\xff\xfe\xfd",
        TABLE.encode().replace(b"random", b"ran\x00dom"), b"\x00" * 1000,
        ",".join(f"c{n}" for n in range(1_000_000)).encode() + b"\n",
        b"operation,iops\n" + b"read," * 1_000_000, b"operation,iops\nread,1e999\n",
        b"operation,iops\nread,nan\n", b'operation,iops\n"read,1\n' * 100_000,
        b"operation,operation\nread,write\n", b"operation,iops\r\r\rread,1\r", b"\n" * 1_000_000,
        b"operation," + b"x" * 40_000_000 + b"\nread,1\n",
    ],
    ids=["utf-16", "latin-1", "no text", "NUL", "all NUL", "10^6 columns", "10^6 cells",
         "1e999", "nan", "quotes", "twice", "CR", "empty lines", "one name"],
)  # fmt: skip
def test_tables_that_are_none_are_refused(client: httpx.Client, body: bytes) -> None:
    problem(sent(client, body, CSV), 422)


def fio(**changed: object) -> bytes:
    return json.dumps({**FIO, **changed}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000, b'{"a":' * 500_000, b"1" * 10_000_000, fio()[:-40],
        fio(jobs="x" * 30_000_000), fio(jobs=[{"jobname": "x" * 30_000_000}]),
        fio(jobs=[{}] * 300_000), fio().replace(b"160000.0", b"NaN"),
        fio().replace(b"160000.0", b"1e999"), fio().replace(b"4800000", b"9" * 5000),
        b'{"fio version": "\xff"}', b'{"fio version": "\\ud800", "jobs": []}', b"null", b'"fio"',
    ],
    ids=["lists", "objects", "number", "cut off", "text", "name", "jobs", "NaN", "1e999",
         "digits", "no text", "half a pair", "null", "word"],
)  # fmt: skip
def test_json_that_fio_never_wrote_is_refused(client: httpx.Client, body: bytes) -> None:
    problem(sent(client, body, JSON), 422)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"device":' * 100_000, b"9" * 1_000_000])
@pytest.mark.parametrize("path", ["/predict", "/recommend", "/what-if", "/fleet", "/fleet/plan",
                                  "/simulations"])  # fmt: skip
def test_questions_that_are_nested_without_end_are_refused(
    client: httpx.Client, path: str, body: bytes
) -> None:
    answer = client.post(path, content=body, headers={"Content-Type": JSON})
    assert answer.status_code in (400, 422)
    problem(answer, answer.status_code)


NAMES = ["../../../etc/passwd", "/etc/passwd", "a\\..\\b", "..%2f..%2fx", "x" * 5000, "CON", "%00"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_clients_choose_name_nothing(
    served: Served, client: httpx.Client, name: str
) -> None:
    before = {path for path in served.folder.rglob("*") if "content" not in path.parts}
    named = {"Content-Type": CSV, "Content-Disposition": f'attachment; filename="{name}"'}
    # refused for what it holds, so that nothing is kept
    problem(client.post("/datasets", content=b"x\n1\n", headers=named), 422)
    files = {"file": (name, TABLE, CSV)}
    problem(client.post("/datasets", files=files), 415)
    for query in ("device", "columns"):
        answer = client.post("/datasets", params={query: name}, content=TABLE,
                             headers={"Content-Type": CSV})  # fmt: skip
        assert answer.status_code in (404, 422)
        problem(answer, answer.status_code)
    for path in ("/datasets", "/jobs", "/devices", "/ui/assets"):
        assert client.get(f"{path}/{name}").status_code in (404, 414, 422)
    after = {path for path in served.folder.rglob("*") if "content" not in path.parts}
    assert {path.name for path in after - before} <= {"service.sqlite-wal", "service.sqlite-shm"}


@pytest.mark.parametrize(
    "kind",
    ["", "text/html", "application/x-tar", "multipart/form-data; boundary=x", "text/csv/x",
     "application/json+x", "image/svg+xml", "text/csv, application/json", "*/*", "x" * 10_000],
)  # fmt: skip
def test_other_kinds_of_files_are_not_looked_into(client: httpx.Client, kind: str) -> None:
    problem(sent(client, b"operation,iops\nread,1\n", kind), 415)
