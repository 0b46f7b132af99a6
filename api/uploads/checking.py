"""Has an upload read by a process that may fail, run out of memory or be killed."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from iojoule.api.exit_codes import error_classes
from iojoule.api.state.datasets import Checked
from iojoule.api.state.errors import UnavailableError
from iojoule.datasets.errors import InputError
from iojoule.datasets.programs import python_command

SECONDS = 120.0
"""Of waiting; a busy machine may take twice the processor time that is allowed."""


def check(path: Path, form: str, device: str | None, columns: str | None) -> Checked:
    """Read an upload; the dataset is then beside it.

    Args:
        path: The upload, alone in its folder.
        form: parquet, csv, fio, or zip: a folder of fio's results.
        device: Catalogue id of the drive where the file does not name it.
        columns: Name of a column map that comes with iojoule, for a table.

    Raises:
        InputError: It is no set of measurements, or reading it takes too much; says where and
            what to do.
        UnavailableError: Somebody killed what reads it.
    """
    asked = {"path": str(path), "format": form, "device": device, "columns": columns}
    told = _read(asked)
    if "error" in told:
        kinds = {kind.__name__: kind for kind in error_classes()}
        kind = kinds.get(told["error"])
        if kind is None:
            raise InputError(_TOO_MUCH)
        raise kind(told["message"], field=told["field"])
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    data, sidecar = path.with_name("dataset.parquet"), path.with_name("dataset.json")
    return Checked(data=data, sidecar=sidecar, format=form, upload_sha256=digest, **told)


_TOO_MUCH = (
    "the upload cannot be read within the memory and time that one upload may take; split it, or "
    "import it with `iojoule import` on a machine of your own"
)


def _read(asked: dict[str, Any]) -> dict[str, Any]:
    command = python_command("-m", "iojoule.api.uploads")
    # one thread and the plain allocator: what others reserve ahead would count as used
    environment = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
        if done.returncode == -signal.SIGKILL:
            raise UnavailableError("reading the upload was interrupted; send it again")
        told: dict[str, Any] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return {"error": "Ended"}
    return told
