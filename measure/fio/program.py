"""The fio program: finding it, its version, and running one job file under watch."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.programs import find_program, optional_program, program_environment
from iojoule.measure.errors import FioError

FIO_VARIABLE = "IOJOULE_FIO"
"""Environment variable that names another fio than the one on the PATH."""

OLDEST = (3, 20)
"""lat_percentiles, per_job_logs and log_unix_epoch are all there from this version on."""

OLDEST_FOR_URING_CMD = (3, 31)

JOB_FILE = "job.fio"
RESULT_FILE = "fio.json"
MESSAGES_FILE = "fio.messages"

_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 60.0
_TERMINATE_SECONDS = 10.0
_VERSION = re.compile(r"fio-(\d+)\.(\d+)")


@dataclass(frozen=True)
class Fio:
    """An fio that is recent enough.

    Attributes:
        path: The program.
        version: Its version.
    """

    path: str
    version: tuple[int, int]

    def command(self) -> list[str]:
        """The command that runs a folder's job file; to be run in that folder."""
        return [
            self.path,
            f"--output={RESULT_FILE}",
            "--output-format=json+",
            JOB_FILE,
        ]


def find_fio() -> Fio:
    """Find fio.

    Raises:
        FioError: It is missing, does not run, or is too old.
    """
    path = find_program(
        os.environ.get(FIO_VARIABLE) or "fio",
        f"apt-get install fio, or name one with {FIO_VARIABLE}",
        FioError,
    )
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=False,
            env=program_environment(),
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FioError(f"{path}: does not run ({error})") from None
    found = _VERSION.search(said)
    if found is None:
        raise FioError(f"{path}: says {said.strip()!r} when asked for its version; is it fio?")
    version = int(found[1]), int(found[2])
    if version < OLDEST:
        raise FioError(
            f"{path}: is fio {version[0]}.{version[1]}; {OLDEST[0]}.{OLDEST[1]} or newer is needed"
        )
    return Fio(path, version)


def run_fio(
    fio: Fio,
    folder: Path,
    expected_seconds: float,
    watch: Callable[[], str | None] = lambda: None,
) -> None:
    """Run the job file in a folder; its result and messages are files there.

    Args:
        fio: The program.
        folder: Holds the job file.
        expected_seconds: fio is ended when it takes a minute and half as long again.
        watch: Asked ten times a second; a reason ends the run.

    Raises:
        FioError: fio failed, hung, or was ended for the reason that `watch` gave.
    """
    limit = 1.5 * expected_seconds + _GRACE_SECONDS
    with _started(fio, folder) as process:
        deadline = time.monotonic() + limit
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)
                break
            reason = watch()
            if reason is None and time.monotonic() > deadline:
                reason = f"fio did not end within {limit:.0f} s; the drive hangs or has vanished"
            if reason is not None:
                raise FioError(reason)
    if process.returncode != 0:
        raise FioError(f"fio ended with {_status(process.returncode)}: {messages(folder)}")


@contextlib.contextmanager
def _started(fio: Fio, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Fio in a session of its own, ended with the block, and by the kernel if we are killed."""
    command = fio.command()
    guard = optional_program("setpriv")
    if guard is not None:
        command = [guard, "--pdeathsig", "TERM", *command]
    with (folder / MESSAGES_FILE).open("wb") as messages_file:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=messages_file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=program_environment(),
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End fio, then, if it hangs, kill it with its jobs, which are in sessions of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_TERMINATE_SECONDS)
        return
    for number in [*_descendants(process.pid), process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_TERMINATE_SECONDS)


def _descendants(number: int) -> list[int]:
    """Every process that a process began, directly or not (proc(5), stat: field 4)."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    found: list[int] = []
    left = [number]
    while left:
        own = parents.get(left.pop(), [])
        found += own
        left += own
    return found


def _status(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"


def messages(folder: Path) -> str:
    """What fio said, in one line, with a hint where the cause is known."""
    try:
        text = (folder / MESSAGES_FILE).read_text(errors="replace")
    except OSError:
        text = ""
    with contextlib.suppress(OSError):
        # what fio says of an engine precedes the JSON in its output file
        text += (folder / RESULT_FILE).read_text(errors="replace").partition("{")[0]
    said = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return (said[:600] or "it said nothing") + _hint(said)


_HINTS = {
    "Operation not supported": (
        "; polling (hipri) needs a drive with poll queues: load nvme with poll_queues=N, or say "
        "completion = interrupt"
    ),
    "Function not implemented": "; this kernel refuses the engine: choose another one in the plan",
    "doesn't support": "; this kernel refuses the engine: choose another one in the plan",
    "not loadable": "; this fio was built without the engine: choose another one in the plan",
    "Permission denied": "; give this user read and write permission on the drive",
    "Operation not permitted": (
        "; the kernel refuses (sysctl kernel.io_uring_disabled, memory lock limits, seccomp)"
    ),
    "No such device": "; the drive has vanished",
    "Remote I/O error": "; the drive has vanished or refuses the command",
    "Input/output error": "; the drive reports an error: look at dmesg and at its SMART log",
}


def _hint(said: str) -> str:
    return next((hint for words, hint in _HINTS.items() if words in said), "")
