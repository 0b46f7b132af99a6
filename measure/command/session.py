"""Runs the measured program with idle time, repeats, sensors and counters.

The program has a process group of its own, so that every signal reaches it exactly once. The first
signal is passed on as it came, the second becomes SIGTERM, any further SIGKILL.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from iojoule import __version__
from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError, IojouleError
from iojoule.measure.command.record import (
    COVERAGE_MIN,
    RESULT,
    CommandResult,
    CommandRun,
    IdleRecord,
    energies,
    joules_per_unit,
    shares,
    summary,
)
from iojoule.measure.command.request import CommandRequest, Metric, read_output, sensors_for
from iojoule.measure.drive.block_io import (
    Counters,
    Disk,
    DriveIo,
    counters,
    find_disk,
    is_on_disk,
    unwritten_bytes,
)
from iojoule.measure.errors import DriveError, SensorError
from iojoule.measure.host.guard import handled
from iojoule.measure.recording import Recording
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.sensors import open_sensor

STDOUT, STDERR = "stdout.txt", "stderr.txt"
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended; times are CLOCK_MONOTONIC, and CPU time includes waited-for children."""

    begin_ns: int
    end_ns: int
    exit_status: int | None
    killed_by: str | None
    cpu_seconds: float

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
    arrived = Signals()
    with handled(arrived.handle):
        yield arrived


def find_command(command: Sequence[str]) -> str:
    """The program's path, found as a shell would. Raises InputError if none can be executed."""
    path = shutil.which(command[0])
    if path is None:
        raise InputError(
            f"{command[0]}: no such program; name one on the PATH or with its folder, and put what "
            "a shell must understand into sh -c '...'"
        )
    return path


def run(command: Sequence[str], folder: Path, arrived: Signals) -> ProgramResult:
    """Run a program to its end; stdout.txt and stderr.txt in the folder take its output.

    Raises InputError if the system refuses to execute it.
    """
    terminal = sys.stdin is not None and sys.stdin.isatty()
    with (folder / STDOUT).open("wb") as out, (folder / STDERR).open("wb") as err:
        begin = time.monotonic_ns()
        try:
            # a program in the background may not read from the terminal: it would be stopped
            process = subprocess.Popen(
                command,
                stdout=out,
                stderr=err,
                process_group=0,
                stdin=subprocess.DEVNULL if terminal else None,
            )
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
    return ProgramResult(
        begin_ns=begin,
        end_ns=end,
        exit_status=code if code >= 0 else None,
        killed_by=signal.Signals(-code).name if code < 0 else None,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
    )


LEAD_SECONDS = 0.3
"""Sensors run so long before the program."""
_TAIL_READINGS = 2
_TAIL_SECONDS_MAX = 3.0
_CACHED_SHARE = 0.01
_CACHED_BYTES = 1 << 20
_CACHED = (
    "{} were still in the page cache at the end: neither this I/O nor its energy is counted; let "
    "the program sync, or use --sync"
)


@dataclass
class _Session:
    """A request while it is carried out."""

    request: CommandRequest
    disk: Disk | None
    sensors: list[str]
    result: CommandResult
    say: Callable[[str], None]
    arrived: Signals
    tail_seconds: float = LEAD_SECONDS

    def keep(self, **changed: object) -> None:
        """Take something into the result and write it down at once."""
        self.result = self.result.model_copy(update=changed)
        path = self.request.folder / RESULT
        try:
            write_text_atomically(path, self.result.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}); make room") from None

    @contextmanager
    def recording(self, folder: Path) -> Iterator[Recorder]:
        """Record all sensors into a folder until `stop` or an exception.

        Raises SensorError if one fails.
        """
        opened = [open_sensor(text) for text in self.sensors]
        slowest = min(sensor.probe().nominal_hertz for sensor in opened)
        self.tail_seconds = min(max(LEAD_SECONDS, _TAIL_READINGS / slowest), _TAIL_SECONDS_MAX)
        recorder = Recorder(opened, folder)
        recorder.start()
        try:
            time.sleep(LEAD_SECONDS)
            yield recorder
        except BaseException:
            with suppress(SensorError):
                recorder.stop()
            raise

    def stop(self, recorder: Recorder) -> tuple[Recording | None, dict[str, str]]:
        """End a recording; what was recorded, and which sensors failed why."""
        time.sleep(self.tail_seconds)
        try:
            recording = recorder.stop()
        except SensorError as error:
            return None, {"recording": error.message}
        return recording, recording.failures

    def counters(self) -> Counters | None:
        """The drive's counters; None where there is no drive (any more)."""
        try:
            return counters(self.disk) if self.disk is not None else None
        except DriveError:
            return None


def measure_command(
    request: CommandRequest, *, say: Callable[[str], None] = lambda _: None
) -> CommandResult:
    """Run the program and store what was recorded; must be called in the main thread.

    Returns the result, also stored in the folder. A program that fails or is interrupted, and a
    sensor that fails during a run, are part of it.

    Raises:
        InputError: The request is impossible; nothing was run.
        DriveError: The drive is missing.
        SensorError: A sensor cannot be used; nothing was run.
        UnsafeDriveError: It is no whole drive.
    """
    request.checked()
    find_command(request.command)
    disk = find_disk(request.drive) if request.drive else None
    sensors, notes = sensors_for(request, disk)
    request.folder.mkdir(parents=True, exist_ok=True)
    if disk is not None and is_on_disk(request.folder, disk):
        notes.append(
            f"{request.folder} lies on {disk.path}: what is recorded is written to the measured "
            "drive; name a folder elsewhere"
        )
    result = CommandResult(
        iojoule_version=__version__,
        command=list(request.command),
        unit=request.unit or request.work,
        work_metric=request.work,
        work_is_rate=request.work_is_rate,
        drive=str(request.drive) if request.drive else None,
        sensors=sensors,
        notes=notes,
    )
    with signals() as arrived:
        session = _Session(request, disk, sensors, result, say, arrived)
        _conduct(session)
    return session.result


def _conduct(session: _Session) -> None:
    request = session.request
    session.keep()
    try:
        if request.idle_seconds:
            session.say(f"idle power: {request.idle_seconds:g} s")
            idle = _idle(session)
            session.keep(idle=idle, notes=session.result.notes + _idle_notes(idle))
        for number in range(1, request.repeats + 1):
            if session.arrived.received:
                break
            if number > 1 and not session.arrived.wait(request.settle_seconds):
                break
            session.say(f"run {number} of {request.repeats}: {' '.join(request.command)[:60]}")
            run = _run(session, number)
            runs = [*session.result.runs, run]
            session.keep(runs=runs, summary=summary(runs))
            if not run.whole:
                break
    except IojouleError as error:
        if not session.result.runs:
            raise
        session.keep(failure=error.message)
    if session.arrived.received:
        session.keep(interrupted=True)


def _idle(session: _Session) -> IdleRecord:
    with session.recording(session.request.folder / "idle") as recorder:
        before = session.counters()
        begin = time.monotonic_ns()
        session.arrived.wait(session.request.idle_seconds)
        end = time.monotonic_ns()
        after = session.counters()
        recording, failures = session.stop(recorder)
    return IdleRecord(
        seconds=(end - begin) * 1e-9,
        power=energies(recording, begin, end) if recording else {},
        drive_io=after.since(before) if after and before else None,
        failures=failures,
    )


def _idle_notes(idle: IdleRecord) -> list[str]:
    notes = [
        f"idle power of {scope} is unknown: {record.reason}"
        for scope, record in idle.power.items()
        if record.mean_watts is None
    ]
    if idle.drive_io is not None and idle.drive_io.device_commands_low > idle.seconds:
        notes.append(
            f"the drive was not idle before the first run: {idle.drive_io.device_commands_low} "
            "commands reached it; idle power may be too high"
        )
    return notes


def _run(session: _Session, number: int) -> CommandRun:
    request = session.request
    folder = request.folder / f"run-{number}"
    folder.mkdir()
    started = datetime.now(UTC)
    with session.recording(folder) as recorder:
        cached, before = unwritten_bytes(), session.counters()
        recorder.mark()
        ended = run(request.command, folder, session.arrived)
        if request.sync:
            os.sync()
        end_ns = time.monotonic_ns() if request.sync else ended.end_ns
        recorder.mark()
        still_cached, after = unwritten_bytes(), session.counters()
        recording, failures = session.stop(recorder)
    notes: list[str] = []
    metrics = _find(request.metrics, folder, notes)
    work = _work(request, metrics, ended.seconds)
    seconds = (end_ns - ended.begin_ns) * 1e-9
    resting = session.result.idle.power if session.result.idle else None
    power = energies(recording, ended.begin_ns, end_ns, resting) if recording else {}
    notes += [
        f"no figure of {scope}: {statistics.reason}"
        for scope, statistics in power.items()
        if statistics.reason
    ]
    drive_io = after.since(before) if after and before else None
    if session.disk is not None and drive_io is None:
        notes.append(f"{session.disk.path} vanished meanwhile: its I/O is unknown")
    left = still_cached - cached if still_cached is not None and cached is not None else None
    return CommandRun(
        number=number,
        started_utc=started,
        seconds=ended.seconds,
        window_seconds=seconds,
        begin_monotonic_ns=ended.begin_ns,
        end_monotonic_ns=end_ns,
        exit_status=ended.exit_status,
        killed_by=ended.killed_by,
        interrupted=bool(session.arrived.received),
        metrics=metrics,
        work=work,
        power=power,
        joules_per_unit=joules_per_unit(power, seconds, work),
        shares=shares(power),
        drive_io=drive_io,
        unwritten_bytes=left,
        program_cpu_seconds=ended.cpu_seconds,
        host_cpu_seconds=_host_cpu_seconds(recording, ended.begin_ns, end_ns),
        failures=failures,
        notes=notes if request.sync else notes + _cache_notes(left, drive_io),
    )


def _find(metrics: Sequence[Metric], folder: Path, notes: list[str]) -> dict[str, float | None]:
    outputs = [read_output(folder / name) for name in (STDOUT, STDERR)]
    values: dict[str, float | None] = {}
    for metric in metrics:
        try:
            values[metric.name] = metric.find(outputs)
        except InputError as error:
            values[metric.name] = None
            notes.append(error.message)
            continue
        if values[metric.name] is None:
            notes.append(
                f"--metric {metric.name}: nothing in the output matches {metric.pattern.pattern!r}"
            )
    return values


def _work(
    request: CommandRequest, metrics: dict[str, float | None], program_seconds: float
) -> float | None:
    value = metrics.get(request.work) if request.work else None
    if value is None or value <= 0:
        return None
    return value * program_seconds if request.work_is_rate else value


def _host_cpu_seconds(recording: Recording | None, begin_ns: int, end_ns: int) -> float | None:
    if recording is None:
        return None
    try:
        busy = recording.counter("cpu-busy-seconds", begin_ns, end_ns, sensor="cpu")
    except SensorError:
        return None
    return busy.delta if busy is not None and busy.coverage >= COVERAGE_MIN else None


def _cache_notes(left: int | None, drive_io: DriveIo | None) -> list[str]:
    """Whether much of what the program wrote had not reached the drive when it ended."""
    written = drive_io.write_bytes if drive_io else 0
    if left is None or left < max(_CACHED_BYTES, _CACHED_SHARE * written):
        return []
    return [_CACHED.format(f"{left / 1e6:.1f} MB")]
