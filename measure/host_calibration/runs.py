"""Starts the loads of a calibration and says what they did."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Completion, Operation, Pattern
from iojoule.measure.errors import HostStateError
from iojoule.measure.fio import (
    JOB_FILE,
    Fio,
    JobHost,
    JobTarget,
    JobTiming,
    fio_job,
    read_outcome,
    run_fio,
)
from iojoule.measure.host_calibration.plan import SETTLE_SECONDS, Step
from iojoule.measure.point import Point

LOAD = Path(__file__).with_name("load.py")
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
class Done:
    """What a load did.

    Attributes:
        step: What it was.
        begin_ns: When its window begins, CLOCK_MONOTONIC.
        end_ns: When it ends.
        own_cores: Cores that its processes kept busy.
        wakeups_per_second: How often they slept.
        bytes_per_second: What they moved.
        operations_per_second: Requests that they made.
    """

    step: Step
    begin_ns: int
    end_ns: int
    own_cores: float = 0.0
    wakeups_per_second: float = 0.0
    bytes_per_second: float = 0.0
    operations_per_second: float = 0.0


@dataclass(frozen=True)
class Bench:
    """What loads run on.

    Attributes:
        cpus: Numbers of the CPUs that may be used.
        fio: The program.
        folder: For the files of the runs.
        target: A file that may be read; None: no real engine.
    """

    cpus: Sequence[int]
    fio: Fio
    folder: Path
    target: Path | None

    def run(self, number: int, step: Step, seconds: float) -> Done:
        """Make one step.

        Raises:
            FioError: fio failed.
            HostStateError: A load ended by itself.
        """
        if step.kind in ("null", "engine"):
            return self._fio(number, step, seconds)
        arguments = {
            "idle": [],
            "burn": ["burn", str(step.amount)],
            "wake": ["wake", str(step.amount)],
            "copy": ["copy", "1"],
        }[step.kind]
        with _loads(self.cpus[: step.cpus], arguments) as loads:
            time.sleep(SETTLE_SECONDS)
            begin = time.monotonic_ns()
            time.sleep(seconds)
            end = time.monotonic_ns()
            said = [_end(load) for load in loads]
        return Done(
            step,
            begin,
            end,
            sum(one["busy_cores"] for one in said),
            sum(one["wakeups_per_second"] for one in said),
            sum(one["bytes_per_second"] for one in said),
        )

    def _fio(self, number: int, step: Step, seconds: float) -> Done:
        folder = self.folder / f"fio-{number}"
        folder.mkdir(parents=True)
        whole = seconds + 2 * SETTLE_SECONDS
        point = Point(
            Workload(operation=Operation.READ, pattern=Pattern.RANDOM),
            Configuration(
                request_bytes=REQUEST_BYTES,
                queue_depth=step.depth,
                jobs=1,
                engine=step.engine,
                completion=Completion.INTERRUPT,
            ),
        )
        cpu = self.cpus[0]
        if step.kind == "null":
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
        seen = read_outcome(folder, point).observations
        return Done(
            step,
            end - round(seconds * 1e9),
            end,
            seen["cpu_utilisation"],
            seen["context_switches_per_second"],
            seen["throughput_bytes_per_second"] if step.kind == "engine" else 0.0,
            seen["iops"],
        )


@contextlib.contextmanager
def _loads(cpus: Sequence[int], arguments: Sequence[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """One load a CPU; they end with the block, and with this process."""
    loads: list[subprocess.Popen[str]] = []
    try:
        for cpu in cpus:
            kind, amount = arguments
            loads.append(
                subprocess.Popen(
                    [sys.executable, "-I", "-S", str(LOAD), kind, str(cpu), amount],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        yield loads
    finally:
        for load in loads:
            if load.poll() is None:
                load.kill()
            load.wait()
            for stream in (load.stdin, load.stdout):
                if stream is not None:
                    stream.close()


def _end(load: subprocess.Popen[str]) -> dict[str, float]:
    """Let a load end and say what it did."""
    try:
        said, _ = load.communicate(timeout=_END_SECONDS)
        found: dict[str, float] = json.loads(said)
    except (subprocess.TimeoutExpired, ValueError):
        raise HostStateError(
            f"a load of the calibration failed ({LOAD.name}, status {load.returncode}); free "
            "memory or processes and start again"
        ) from None
    return found


@contextlib.contextmanager
def target_file(folder: Path | None) -> Iterator[Path | None]:
    """A file of random bytes in a folder that the user named, removed afterwards.

    Raises:
        InputError: It cannot be made there.
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
