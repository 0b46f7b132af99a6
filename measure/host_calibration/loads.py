"""The loads of a calibration: which run for how long under which settings, and what they did."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Completion, Engine, Operation, Pattern
from iojoule.measure.errors import HostStateError
from iojoule.measure.fio import (
    JOB_FILE,
    Fio,
    JobHost,
    JobTarget,
    JobTiming,
    fio_job,
    read_fio_result,
    run_fio,
)
from iojoule.measure.host.facts import HostControls
from iojoule.measure.point import Point

LoadKind = Literal["idle", "burn", "wake", "copy", "null", "engine"]

SETTLE_SECONDS = 1.0
"""A load runs so long before its window begins."""

SHORTEST_SECONDS = 1.5
"""A window of less says little of a counter that is read ten times a second."""

READINGS = 32
"""A meter's mean needs thirty fresh readings (`recording.power`)."""

DEEP = 32
"""Depth of the second run of an engine: wake-ups are rare there."""

DUTIES = (0.05, 0.2, 0.5)
WAKE_RATES = (500.0, 3000.0)
ENGINES = (Engine.PSYNC, Engine.LIBAIO, Engine.IO_URING)


@dataclass(frozen=True)
class Load:
    """One load.

    Attributes:
        kind: idle = nothing runs.
        amount: Busy share of `burn`, or wake-ups a second.
        hertz: Frequency limit of the CPUs.
        sleep_limit: Deepest allowed sleep state.
    """

    kind: LoadKind
    cpus: int = 0
    amount: float = 1.0
    hertz: float | None = None
    sleep_limit: int | None = None
    engine: Engine | None = None
    depth: int = 1

    @property
    def words(self) -> str:
        """What people call it."""
        description = {
            "idle": "idle",
            "burn": f"{self.cpus} CPUs busy" + (f" {self.amount:.0%}" if self.amount < 1 else ""),
            "wake": f"{self.amount:g} wake-ups a second",
            "copy": "copying memory",
            "null": "fio without a drive",
            "engine": f"fio {self.engine} depth {self.depth}",
        }[self.kind]
        if self.hertz is not None:
            description += f" at {self.hertz / 1e9:.2g} GHz"
        if self.sleep_limit is not None:
            description += f", no sleep deeper than state {self.sleep_limit}"
        return description


@dataclass(frozen=True)
class LoadPlan:
    """Loads in the order in which they run, and the length of a window."""

    loads: tuple[Load, ...]
    window_seconds: float

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return len(self.loads) * (self.window_seconds + 2 * SETTLE_SECONDS)


def plan_loads(
    cpus: int,
    controls: HostControls,
    minutes: float,
    slowest_hertz: float,
    *,
    target: bool,
) -> LoadPlan:
    """Loads for the given CPUs within about `minutes`; a slow meter takes longer.

    Idle comes first, in the middle and last, so that drift shows; the rest in random order, so that
    drift does not look like an effect. `slowest_hertz` is the reading rate of the slowest meter.
    Raises InputError if the time is too short.
    """
    busy = _loads(cpus, target) + _frequencies(cpus, controls) + _sleep(controls)
    random.Random(1).shuffle(busy)
    half = len(busy) // 2
    idle = Load("idle")
    loads = (idle, *busy[:half], idle, *busy[half:], idle)
    each = minutes * 60.0 / len(loads) - 2 * SETTLE_SECONDS
    if each < SHORTEST_SECONDS:
        needed = len(loads) * (SHORTEST_SECONDS + 2 * SETTLE_SECONDS) / 60.0
        raise InputError(
            f"--minutes {minutes:g}: {len(loads)} loads need at least {needed:.1f} minutes",
            field="minutes",
        )
    return LoadPlan(loads, max(each, READINGS / slowest_hertz))


def _loads(cpus: int, target: bool) -> list[Load]:
    counts = sorted({1, min(2, cpus), cpus // 2 or 1, cpus})
    loads = [Load("burn", count) for count in counts]
    loads += [Load("burn", 1, duty) for duty in DUTIES]
    loads.append(Load("burn", cpus, 0.5))
    loads += [Load("wake", 1, rate) for rate in WAKE_RATES]
    loads += [Load("copy", 1), Load("null", 1)]
    if target:
        loads += [
            Load("engine", 1, engine=engine, depth=depth)
            for engine in ENGINES
            for depth in ((1,) if engine is Engine.PSYNC else (1, DEEP))
        ]
    return loads


def _frequencies(cpus: int, controls: HostControls) -> list[Load]:
    """A light and a full load of one CPU and a full one of all, at the lowest and in the middle."""
    span = controls.frequency_range_hertz()
    if span is None or not controls.may_set_frequency() or span[1] <= span[0]:
        return []
    low, high = span
    return [
        replace(load, hertz=hertz)
        for hertz in (low, 0.5 * (low + high))
        for load in (Load("burn", 1, 0.2), Load("burn", 1), Load("burn", cpus))
    ]


def _sleep(controls: HostControls) -> list[Load]:
    if not controls.may_set_sleep():
        return []
    # what is switched off already cannot be told from what a load switches off
    return [Load("idle", sleep_limit=limit) for limit in range(controls.deepest_sleep() or 0)]


LOAD = Path(__file__).with_name("load_program.py")
REQUEST_BYTES = 4096
TARGET_BYTES = 64 << 20
_END_SECONDS = 20.0
_NULL_JOB = """[global]
ioengine=null
rw=randread
bs={request}
size=1g
iodepth=1
time_based=1
runtime={milliseconds}ms
randrepeat=0
norandommap=1
lat_percentiles=1
clat_percentiles=0
group_reporting=1
cpus_allowed={cpu}

[null]
"""


@dataclass(frozen=True)
class LoadResult:
    """What a load did; its window is in CLOCK_MONOTONIC ns."""

    load: Load
    begin_ns: int
    end_ns: int
    own_cores: float = 0.0
    wakeups_per_second: float = 0.0
    bytes_per_second: float = 0.0
    operations_per_second: float = 0.0


@dataclass(frozen=True)
class Bench:
    """What loads run on; without a target file there are no real engines."""

    cpus: Sequence[int]
    fio: Fio
    folder: Path
    target: Path | None

    def run(self, number: int, load: Load, seconds: float) -> LoadResult:
        """Run one load.

        Raises:
            FioError: fio failed.
            HostStateError: A load ended by itself.
        """
        if load.kind in ("null", "engine"):
            return self._fio(number, load, seconds)
        arguments = {
            "idle": [],
            "burn": ["burn", str(load.amount)],
            "wake": ["wake", str(load.amount)],
            "copy": ["copy", "1"],
        }[load.kind]
        with _running_programs(self.cpus[: load.cpus], arguments) as programs:
            time.sleep(SETTLE_SECONDS)
            begin = time.monotonic_ns()
            time.sleep(seconds)
            end = time.monotonic_ns()
            outputs = [_end(program) for program in programs]
        return LoadResult(
            load,
            begin,
            end,
            sum(output["busy_cores"] for output in outputs),
            sum(output["wakeups_per_second"] for output in outputs),
            sum(output["bytes_per_second"] for output in outputs),
        )

    def _fio(self, number: int, load: Load, seconds: float) -> LoadResult:
        folder = self.folder / f"fio-{number}"
        folder.mkdir(parents=True)
        whole = seconds + 2 * SETTLE_SECONDS
        point = Point(
            Workload(operation=Operation.READ, pattern=Pattern.RANDOM),
            Configuration(
                request_bytes=REQUEST_BYTES,
                queue_depth=load.depth,
                jobs=1,
                engine=load.engine,
                completion=Completion.INTERRUPT,
            ),
        )
        cpu = self.cpus[0]
        if load.kind == "null":
            text = _NULL_JOB.format(
                request=REQUEST_BYTES, milliseconds=round(whole * 1000), cpu=cpu
            )
        else:
            target = JobTarget(str(self.target), 0, TARGET_BYTES)
            timing = JobTiming(whole, 0.0)
            text = fio_job(
                point.workload, point.configuration, target, timing, JobHost(cpus=str(cpu))
            )
        (folder / JOB_FILE).write_text(text)
        run_fio(self.fio, folder, whole)
        end = time.monotonic_ns() - round(SETTLE_SECONDS * 0.5e9)
        seen = read_fio_result(folder, point).observations
        return LoadResult(
            load,
            end - round(seconds * 1e9),
            end,
            seen["cpu_utilisation"],
            seen["context_switches_per_second"],
            seen["throughput_bytes_per_second"] if load.kind == "engine" else 0.0,
            seen["iops"],
        )


@contextlib.contextmanager
def _running_programs(
    cpus: Sequence[int], arguments: Sequence[str]
) -> Iterator[list[subprocess.Popen[str]]]:
    """One program of loads a CPU; they end with the block, and with this process."""
    programs: list[subprocess.Popen[str]] = []
    try:
        for cpu in cpus:
            kind, amount = arguments
            programs.append(
                subprocess.Popen(
                    [sys.executable, "-I", "-S", str(LOAD), kind, str(cpu), amount],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        yield programs
    finally:
        for program in programs:
            if program.poll() is None:
                program.kill()
            program.wait()
            for stream in (program.stdin, program.stdout):
                if stream is not None:
                    stream.close()


def _end(program: subprocess.Popen[str]) -> dict[str, float]:
    try:
        output, _ = program.communicate(timeout=_END_SECONDS)
        fields: dict[str, float] = json.loads(output)
    except (subprocess.TimeoutExpired, ValueError):
        raise HostStateError(
            f"a load of the calibration failed ({LOAD.name}, status {program.returncode}); free "
            "memory or processes and start again"
        ) from None
    return fields


@contextlib.contextmanager
def target_file(folder: Path | None) -> Iterator[Path | None]:
    """A file of random bytes in the user's folder, removed afterwards.

    Raises InputError on failure.
    """
    if folder is None:
        yield None
        return
    path = folder / f".iojoule-host-{time.monotonic_ns():x}"
    try:
        with path.open("xb") as stream, Path("/dev/urandom").open("rb") as source:
            for _ in range(TARGET_BYTES >> 20):
                stream.write(source.read(1 << 20))
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InputError(
            f"{folder}: no file of {TARGET_BYTES >> 20} MiB can be made there ({error.strerror}); "
            "name a folder on the drive's file system that this user may write to"
        ) from None
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
