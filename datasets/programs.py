"""Programs that iojoule starts: where they are found, and with what environment.

Root runs only what root alone could have put there. Without root the PATH counts, but none of its
entries that mean the current folder. There is no variable that switches this off: a user who could
set it for a process of root would choose what root runs.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from iojoule.datasets.errors import IojouleError

FOLDERS = tuple(
    Path(folder)
    for folder in (
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    )
)
"""Where root looks, and others after their PATH: sbin is not on every PATH."""

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_LINKS_MAX = 40
"""As many as the kernel follows (path_resolution(7))."""

SAFE_PATH = "PYTHONSAFEPATH"
"""Variable that does for every Python what -P does for one (python(1))."""


def find_program(name: str, remedy: str, error: type[IojouleError]) -> str:
    """The absolute path of a program.

    Args:
        name: A name that is looked for, or a path that the user states.
        remedy: What to do where it is missing.
        error: What is raised.

    Raises:
        IojouleError: Of the kind `error`: there is none, or only one that root must not run. It
            names the program, where it was looked for, and the remedy.
    """
    program, refused = _look(name)
    if program is not None:
        return program
    if refused:
        raise error(
            f"{name}: root does not run {'; '.join(refused)}. A user who may write there could "
            "change what root does: install it below /usr or /usr/local as root, or chown root and "
            "chmod go-w what is named here"
        )
    where = "" if "/" in name else f" in {os.pathsep.join(map(str, _searched()))}"
    raise error(f"{name}: no such program{where}; {remedy}")


def optional_program(name: str) -> str | None:
    """The absolute path of a program that can be done without; None where there is none to run."""
    return _look(name)[0]


def require_safe(path: str, error: type[IojouleError]) -> None:
    """Refuse a file with code, such as a plugin, that root must not load; without root any is.

    Raises:
        IojouleError: Of the kind `error`; says why and what to do.
    """
    if os.geteuid() != 0:
        return
    why = _unsafe(Path(path)) if Path(path).is_absolute() else "is not named by its absolute path"
    if why is not None:
        raise error(
            f"{path}: root does not load it: {why}. Install it as root where only root may write"
        )


def program_environment() -> dict[str, str]:
    """The environment of a program of the system: this process's, but the PATH of `find_program`.

    Variables of the loader stay. They have had their effect on this process already, sudo and
    set-user-id programs drop them, and by LD_PRELOAD `nvme` finds the controller of the lab.
    """
    return {**os.environ, "PATH": os.pathsep.join(map(str, _searched()))}


OUTPUT_BYTES_MAX = 16 << 20
"""No program of the system has as much to say of a drive or a meter."""


def run_program(
    command: Sequence[str], *, seconds: float, hangs: IojouleError, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program of the system to its end, whatever its exit code.

    It has a session of its own: Ctrl-C is for iojoule, which has to restore through such programs.
    Where it does not end in order, what it started ends with it.

    Args:
        command: Its path (`find_program`) and words.
        seconds: How long it may take; a drive that hangs never answers.
        hangs: What is raised then; an error of its kind where the program prints without end.
        stdin: What it reads, at most a pipe full.
    """
    until = time.monotonic() + seconds
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=program_environment(),
    ) as process:
        try:
            out, errors = _outputs(process, stdin, until)
            process.wait(max(until - time.monotonic(), 0.0))
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise hangs from None
            if isinstance(error, OverflowError):
                raise type(hangs)(f"{Path(command[0]).name} {error}") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def _outputs(process: subprocess.Popen[bytes], stdin: bytes, until: float) -> tuple[bytes, bytes]:
    """Standard output and error, up to their ends.

    Raises:
        subprocess.TimeoutExpired: They did not end in time.
        OverflowError: They are too long.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(stdin)
    pieces: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    total = 0
    with selectors.DefaultSelector() as waiting:
        for number in pieces:
            waiting.register(number, selectors.EVENT_READ)
        while waiting.get_map():
            left = until - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(process.args, 0.0)
            for key, _ in waiting.select(left):
                piece = os.read(key.fd, 1 << 16)
                pieces[key.fd].append(piece)
                total += len(piece)
                if not piece:
                    waiting.unregister(key.fd)
            if total > OUTPUT_BYTES_MAX:
                raise OverflowError(f"printed more than {OUTPUT_BYTES_MAX >> 20} MiB")
    out, errors = map(b"".join, pieces.values())
    return out, errors


def python_command(*words: str) -> list[str]:
    """The command that runs this Python without importing from the current folder (-P)."""
    return [sys.executable, "-P", *words]


@contextmanager
def safe_import_path() -> Iterator[None]:
    """Python processes that multiprocessing starts inside import nothing from the current folder.

    It runs them with -c, for which Python searches that folder first, and hands -P on only where
    this process has it (multiprocessing.util._args_from_interpreter_flags).
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        restore_safe_path(before)


def restore_safe_path(before: str | None) -> None:
    """Set the variable as it was, also where it was inherited: programs of the user's get it."""
    if before is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = before


def _searched() -> tuple[Path, ...]:
    if os.geteuid() == 0:
        return FOLDERS
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    # an empty entry is the current folder, too (execvp(3))
    return tuple(
        dict.fromkeys((*(Path(entry) for entry in entries if entry.startswith("/")), *FOLDERS))
    )


def _look(name: str) -> tuple[str | None, list[str]]:
    """The program, and those that root must not run, each with the reason."""
    stated = "/" in name
    candidates = [Path(name).absolute()] if stated else [folder / name for folder in _searched()]
    refused = []
    for candidate in candidates:
        if shutil.which(candidate) is None:
            continue
        why = _unsafe(candidate) if os.geteuid() == 0 else None
        if why is None:
            return str(candidate), []
        refused.append(f"{candidate}, because {why}")
    return None, refused


def _unsafe(path: Path) -> str | None:
    """Why another user than root could have put something there; None = none could."""
    try:
        passed = list(_passed(path))
        for here in passed:
            status = here.lstat()
            if status.st_uid != 0:
                return f"{here} belongs to user {status.st_uid}"
            if stat.S_ISLNK(status.st_mode) or not status.st_mode & _OTHERS:
                continue
            # in a sticky folder (/tmp) only root moves root's files, but any user adds a program
            sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
            if not sticky or here == passed[-1].parent:
                return f"{here} may be written by others than root"
    except OSError as error:
        return f"it cannot be looked at ({error.strerror})"
    return None


def _passed(path: Path) -> Iterator[Path]:
    """Every folder, link and file on the way of an absolute path, the file itself last."""
    here, left, links = Path("/"), list(reversed(path.parts[1:])), 0
    yield here
    while left:
        part = left.pop()
        here = here.parent if part == ".." else here / part
        yield here
        if here.is_symlink() and links < _LINKS_MAX:
            links += 1
            target = here.readlink()
            here = Path("/") if target.is_absolute() else here.parent
            left += [part for part in reversed(target.parts) if part != "/"]
