"""Runs the measured program: its output into files, signals to it first.

The program gets a process group of its own, so that every signal reaches it exactly once, whether
somebody pressed Ctrl-C or signalled iojoule alone. The first signal is passed on as it came, the
second becomes SIGTERM, any further SIGKILL.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from iojoule.datasets.errors import InputError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STDOUT, STDERR = "stdout.txt", "stderr.txt"
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Attributes:
        begin_ns: CLOCK_MONOTONIC before it was started.
        end_ns: After it was gone.
        exit_status: What it returned; None where a signal ended it.
        killed_by: Name of the signal that ended it.
        cpu_seconds: User and system time of it and of the children it waited for.
    """

    begin_ns: int
    end_ns: int
    exit_status: int | None
    killed_by: str | None
    cpu_seconds: float

    @property
    def succeeded(self) -> bool:
        """Whether it returned 0."""
        return self.exit_status == 0

    @property
    def seconds(self) -> float:
        """Its run time."""
        return (self.end_ns - self.begin_ns) * 1e-9


class Signals:
    """The signals that arrived, and the program they are passed on to."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self._group: int | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals."""
        self.received.append(number)
        self._pass_on()

    def attach(self, group: int | None) -> None:
        """Pass signals to this process group from now on; one that came before, too."""
        self._group = group
        if group is not None and self.received:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._group is None:
            return
        first, *more = self.received
        number = first if not more else signal.SIGTERM if len(more) == 1 else signal.SIGKILL
        try:
            os.killpg(self._group, number)
        except ProcessLookupError:
            return

    def wait(self, seconds: float) -> bool:
        """Sleep; whether no signal came."""
        until = time.monotonic() + seconds
        while not self.received and (left := until - time.monotonic()) > 0:
            time.sleep(min(_LOOK_SECONDS, left))
        return not self.received


@contextmanager
def signals() -> Iterator[Signals]:
    """Handle the signals inside; must be entered in the main thread."""
    one = Signals()
    before = {number: signal.signal(number, one.handle) for number in SIGNALS}
    try:
        yield one
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def find_program(command: Sequence[str]) -> str:
    """Where the program is: the user's own, so it is looked for as a shell would, also for root.

    Raises:
        InputError: There is none of that name that may be run.
    """
    found = shutil.which(command[0])
    if found is None:
        raise InputError(
            f"{command[0]}: no such program; name one on the PATH or with its folder, and put what "
            "a shell must understand into sh -c '...'"
        )
    return found


def run(command: Sequence[str], folder: Path, arrived: Signals) -> Ended:
    """Run a program to its end; stdout.txt and stderr.txt in the folder hold what it prints.

    Raises:
        InputError: The system does not run it.
    """
    terminal = sys.stdin is not None and sys.stdin.isatty()
    with (folder / STDOUT).open("wb") as out, (folder / STDERR).open("wb") as err:
        begin = time.monotonic_ns()
        try:
            # a program in the background may not read from the terminal: it would be stopped
            process = subprocess.Popen(
                command, stdout=out, stderr=err, process_group=0,
                stdin=subprocess.DEVNULL if terminal else None,
            )  # fmt: skip
        except OSError as error:
            raise InputError(f"{command[0]}: cannot be run ({error.strerror})") from None
        arrived.attach(process.pid)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            arrived.attach(None)
        end = time.monotonic_ns()
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code  # so that nothing waits for it again
    return Ended(
        begin_ns=begin,
        end_ns=end,
        exit_status=code if code >= 0 else None,
        killed_by=signal.Signals(-code).name if code < 0 else None,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
    )
