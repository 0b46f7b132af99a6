import errno
import json
import random
from pathlib import Path
from typing import Any

import pytest

from iojoule.api.http.datasets import UPLOAD
from iojoule.api.uploads.reading import read
from tests.api.http.test_datasets import zipped

EXAMPLES = UPLOAD["requestBody"]["content"]
TABLE = EXAMPLES["text/csv"]["examples"]["worked"]["value"]


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, "StorageFullError"), (errno.EACCES, "InputError")]
)
def test_a_disk_that_is_full_is_not_the_fault_of_the_upload(
    number: int, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("iojoule.datasets.store.write_atomically", fail)
    path = tmp_path / "upload"
    path.write_text(TABLE)
    told = read({"path": str(path), "format": "csv", "device": None, "columns": None})
    assert told["error"] == error
    assert str(tmp_path) not in told["message"]


def test_a_damaged_archive_is_read_or_refused(tmp_path: Path) -> None:
    run = json.dumps(EXAMPLES["application/json"]["examples"]["worked"]["value"])
    whole = zipped(**{f"run{number}/out.json": run for number in range(3)})
    source = random.Random(20)
    outcomes = set()
    for number in range(300):
        body = bytearray(whole)
        for _ in range(source.randint(1, 8)):
            body[source.randrange(len(body))] = source.randrange(256)
        path = tmp_path / str(number) / "upload"
        path.parent.mkdir()
        path.write_bytes(body)
        told = read({"path": str(path), "format": "zip", "device": None, "columns": None})
        outcomes.add(told.get("error", "read"))
        assert str(tmp_path) not in told.get("message", "")
    assert outcomes == {"read", "InputError"}
