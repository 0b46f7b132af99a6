import errno
from pathlib import Path
from typing import Any

import pytest

from iojoule.api.http.datasets import UPLOAD
from iojoule.api.uploads.reading import read

TABLE = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]


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
