import io
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iojoule.api.http import datasets
from iojoule.api.http.datasets import UPLOAD
from iojoule.api.state.place import State
from iojoule.api.uploads import reading
from tests.api.http.test_problems import problem

PARQUET, CSV, JSON = "application/vnd.apache.parquet", "text/csv", "application/json"
ZIP = "application/zip"
EXAMPLE = UPLOAD["requestBody"]["content"][CSV]["examples"]["worked"]["value"]


def parquet(columns: dict[str, list[Any]]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


GOOD = {"operation": ["read"] * 2, "request_bytes": [4096] * 2, "queue_depth": [1, 4],
        "iops": [1e4, 4e4]}  # fmt: skip


def upload(
    service: httpx.Client, content: bytes | str, kind: str, query: str = "", **headers: str
) -> httpx.Response:
    headers = {"Content-Type": kind, **headers}
    return service.post(f"/datasets{query}", content=content, headers=headers)


def test_parquet_is_kept_and_given_back(service: httpx.Client) -> None:
    answer = upload(service, parquet(GOOD), PARQUET, "?device=samsung-980-pro-1tb")
    assert answer.status_code == 201, answer.text
    kept = answer.json()
    assert answer.headers["location"] == kept["url"]
    assert (kept["rows"], kept["device"], kept["format"]) == (2, "samsung-980-pro-1tb", "parquet")
    assert service.get(kept["url"]).json() == kept
    data = service.get(kept["data_url"])
    assert data.headers["etag"] == f'"{kept["data_sha256"]}"'
    assert pq.read_table(io.BytesIO(data.content))["iops"].to_pylist() == GOOD["iops"]
    (source,) = service.get(kept["sidecar_url"]).json()["provenance"]["sources"]
    assert (source["name"], source["sha256"]) == ("upload", kept["upload_sha256"])
    assert service.get("/datasets").json()["datasets"][0] == kept


def test_fio_and_csv_are_read_and_one_key_gives_one_dataset(
    service: httpx.Client, root: Path
) -> None:
    phases = (root / "tests" / "datasets" / "fio" / "phases.json").read_bytes()
    kept = upload(service, phases, f"{JSON}; charset=utf-8").json()
    assert (kept["rows"], kept["format"]) == (2, "fio")
    key = {"Idempotency-Key": "table"}
    first = upload(service, EXAMPLE, CSV, **key).json()
    assert first["fields"][-1] == "device_power_watts"
    assert upload(service, EXAMPLE, CSV, **key).json() == first
    problem(upload(service, EXAMPLE, CSV, "?device=micron-7450", **key), 422)


def zipped(**files: str | bytes) -> bytes:
    """An archive; the same at all times, for it is in the names of tests that workers compare."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def test_an_archive_is_a_folder_of_results(service: httpx.Client, root: Path) -> None:
    phases = (root / "tests" / "datasets" / "fio" / "phases.json").read_bytes()
    folder = {"a/phases.json": phases, "../../b/phases.json": phases, "/notes": "on Monday"}
    kept = upload(service, zipped(**folder), ZIP)
    assert kept.status_code == 201, kept.text
    assert (kept.json()["rows"], kept.json()["format"]) == (4, "zip")
    provenance = service.get(kept.json()["sidecar_url"]).json()["provenance"]
    assert [one["source"] for one in provenance["excluded"]] == ["notes"]


@pytest.mark.parametrize("limit", ["UNPACKED_BYTES_MAX", "UNPACKED_FILES_MAX"])
def test_an_archive_that_unfolds_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(reading, limit, 1)
    path = tmp_path / "upload"
    path.write_bytes(zipped(a="{}", b="{}"))
    told = reading.read({"path": str(path), "format": "zip", "device": None, "columns": None})
    assert told["error"] == "InputError"
    assert not [*path.with_name("unpacked").iterdir()]


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (zipped(a="{}")[:-9], ZIP, "no zip archive"),
        (zipped(a="{}").replace(b"a", b"b", 1), ZIP, "no zip archive"),
        (zipped(**{"n" * 300: "{}"}), ZIP, "cannot be unpacked"),
        (zipped(a="just notes"), ZIP, "fio"),
        (zipped(), ZIP, "fio"),
        (parquet(GOOD)[:-20], PARQUET, "not a readable Parquet file"),
        (parquet(GOOD | {"colour": ["red"] * 2}), PARQUET, "unknown field 'colour'"),
        (parquet(GOOD | {"queue_depth": [0, 1]}), PARQUET, "row 1"),
        (parquet(GOOD | {"latency_mean_ns": [1e5, 9e5]}), PARQUET, "Little's law"),
        (b"", PARQUET, "not a readable Parquet file"),
        ("operation,iops\nread,fast\n", CSV, "line 2"),
        (",".join(f"c{n}" for n in range(200_000)), CSV, "columns or more"),
        ("opération\n".encode("latin1"), CSV, "not a header in UTF-8"),
        ("{}", JSON, "not fio's JSON"),
        ('{"fio version": "fio-3.33", "jobs": [', JSON, "the upload"),
    ],
)
def test_what_is_no_set_of_measurements_is_refused(
    service: httpx.Client, content: bytes | str, kind: str, words: str
) -> None:
    found = problem(upload(service, content, kind), 422)
    assert words in found["detail"]
    assert "/incoming/" not in found["detail"]


def test_other_kinds_of_files_are_refused(service: httpx.Client) -> None:
    problem(upload(service, b"BZh9", "application/x-bzip2"), 415)
    problem(upload(service, EXAMPLE, CSV, **{"Content-Encoding": "gzip"}), 415)


def test_too_much_is_refused_and_leaves_nothing(
    service: httpx.Client, store: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "UPLOAD_BYTES_MAX", 1000)
    problem(upload(service, b"x" * 1001, CSV), 413)
    assert not list((store.place.folder / "incoming").iterdir())


def test_an_upload_that_does_not_arrive_is_given_up(
    service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time
    from collections.abc import Iterator

    monkeypatch.setattr(datasets, "PIECE_SECONDS", 0.2)

    def slow() -> Iterator[bytes]:
        yield b"operation,iops\n"
        time.sleep(1.0)
        yield b"read,1\n"

    found = service.post("/datasets", content=slow(), headers={"Content-Type": CSV})
    problem(found, 408)


def test_a_drive_that_is_not_there_is_said_before_anything_is_read(service: httpx.Client) -> None:
    problem(upload(service, EXAMPLE, CSV, "?device=nothing"), 404)
    problem(upload(service, EXAMPLE, CSV, "?columns=../../etc/passwd"), 422)
    other = parquet(GOOD | {"device_model": ["micron-7450"] * 2})
    found = problem(upload(service, other, PARQUET, "?device=samsung-980-pro-1tb"), 422)
    assert found["field"] == "/device"


def test_a_range_of_the_measurements(service: httpx.Client) -> None:
    data = f"/datasets/{upload(service, EXAMPLE, CSV).json()['id']}/data"
    part = service.get(data, headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"PAR1")
    problem(service.get(data, headers={"Range": "bytes=5-1"}), 400)
    beyond = service.get(data, headers={"Range": "bytes=99999999-"})
    problem(beyond, 416)
    assert beyond.headers["content-range"].startswith("bytes */")
    assert service.head(data).headers["content-length"] == str(len(service.get(data).content))


@pytest.mark.parametrize("path", ["", "/data", "/sidecar"])
def test_a_dataset_that_is_not_there(service: httpx.Client, path: str) -> None:
    problem(service.get(f"/datasets/..%2f..%2fx{path}"), 404)
    problem(service.get(f"/datasets/0123{path}"), 404)
