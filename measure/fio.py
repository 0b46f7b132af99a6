"""fio: the job file of a run, running it under watch, and reading its result.

Options as fio 3.33 documents them (HOWTO.rst). Faults that the options avoid: fio creates a missing
target (allow_file_create=0), omits a bare `hipri` from its own record, and hides queueing in an
open loop without io_submit_mode=offload (coordinated omission).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.fio_file import (
    PERCENTILES,
    FioFile,
    Stats,
    direction_stats,
    find_files,
    load,
    percentile,
    together,
)
from iojoule.datasets.programs import (
    find_program,
    optional_program,
    program_environment,
    run_program,
)
from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Completion, Engine, MixDispatch, Operation, Pattern
from iojoule.measure.errors import CampaignError, FioError
from iojoule.measure.host.host_files import PROC, process_fields
from iojoule.measure.point import Point

LOG_STEP_MS = 100
"""Step of fio's bandwidth log, from which the measured part of a run is known."""

LOG_PREFIX = "fio"
"""The log is written as fio_bw.log in the run's folder."""

_RINGS = (Engine.IO_URING, Engine.IO_URING_CMD)


@dataclass(frozen=True)
class JobTarget:
    """What a job reads and writes."""

    filename: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class JobTiming:
    """Duration of a job; `io_bytes` ends it earlier, `offload` submits from a separate thread."""

    seconds: float
    ramp_seconds: float
    io_bytes: int | None = None
    time_based: bool = True
    offload: bool = True


@dataclass(frozen=True)
class JobHost:
    """What a job is told about the host; None = fio's default."""

    cpus: str | None = None
    numa_memory_node: int | None = None
    spdk_plugin: str | None = None
    data: str = "random"
    fsync_at_end: bool = False
    seed: int = 1


def fio_job(
    workload: Workload,
    configuration: Configuration,
    target: JobTarget,
    timing: JobTiming,
    host: JobHost,
) -> str:
    """The text of the job file. Raises CampaignError if fio cannot express the workload."""
    common: dict[str, Any] = {
        "filename": target.filename,
        **_area(workload, configuration, target),
        "allow_file_create": 0,
        **_sizes(workload, configuration),
        **_engine(configuration, host),
        "iodepth": configuration.queue_depth,
        "numjobs": configuration.jobs,
        **_timing(timing),
        **_arrivals(workload, configuration, timing),
        **_writes(workload, host),
        **_placement(configuration, host),
        "randrepeat": 0,
        "allrandrepeat": 0,
        "randseed": host.seed,
        "norandommap": 1,
        "random_generator": "tausworthe64",
        "group_reporting": 1,
        "lat_percentiles": 1,
        "clat_percentiles": 0,
        "write_bw_log": LOG_PREFIX,
        "log_avg_msec": LOG_STEP_MS,
        "log_unix_epoch": 1,
        "per_job_logs": 0,
    }
    lines = ["[global]", *(_line(name, value) for name, value in common.items()), ""]
    for name, options in _jobs(workload, configuration):
        lines += [f"[{name}]", *(_line(key, value) for key, value in options.items()), ""]
    return "\n".join(lines)


def _line(name: str, value: Any) -> str:
    return f"{name}={value}"


def _sizes(workload: Workload, configuration: Configuration) -> dict[str, Any]:
    if workload.request_bytes_mix is not None:
        return {"bssplit": workload.request_bytes_mix}
    return {"bs": configuration.request_bytes}


def _area(workload: Workload, configuration: Configuration, target: JobTarget) -> dict[str, Any]:
    """Random jobs share the area; each sequential job has its own stretch of it."""
    wanted = workload.working_set_bytes
    size = target.size_bytes if wanted is None else min(int(wanted), target.size_bytes)
    request = configuration.request_bytes
    options = {"offset": target.offset_bytes, "size": size}
    if workload.pattern is Pattern.SEQUENTIAL and configuration.jobs > 1:
        each = size // configuration.jobs // request * request
        options |= {"size": each, "offset_increment": each}
    if options["size"] < request:
        raise CampaignError(
            f"request_bytes {request}: does not fit into {size} bytes shared by "
            f"{configuration.jobs} jobs; enlarge the target or the working set",
            field="request_bytes",
        )
    return options


def _engine(configuration: Configuration, host: JobHost) -> dict[str, Any]:
    engine = configuration.engine or Engine.IO_URING
    if engine is Engine.SPDK:
        if host.spdk_plugin is None:
            raise CampaignError(
                "engine spdk: name your own fio plugin of SPDK and the drive's address in the plan "
                "(host.spdk_plugin, host.spdk_address)",
                field="engine",
            )
        return {"ioengine": f"external:{host.spdk_plugin}", "thread": 1, "direct": 1}
    options: dict[str, Any] = {"ioengine": engine.value}
    if engine is not Engine.IO_URING_CMD:
        # its character node has no page cache to pass by and refuses O_DIRECT (Linux 6.0 and later)
        options["direct"] = 1
    if engine in _RINGS:
        options["hipri"] = int(configuration.completion is Completion.POLLED)
        if configuration.submission_polling:
            options["sqthread_poll"] = 1
    if engine is Engine.IO_URING_CMD:
        options["cmd_type"] = "nvme"
    return options


def _timing(timing: JobTiming) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if timing.time_based:
        options |= {"time_based": 1, "runtime": f"{round(timing.seconds * 1000)}ms"}
    if timing.ramp_seconds:
        options["ramp_time"] = f"{round(timing.ramp_seconds * 1000)}ms"
    if timing.io_bytes is not None:
        options["io_size"] = timing.io_bytes
    return options


def _arrivals(
    workload: Workload, configuration: Configuration, timing: JobTiming
) -> dict[str, Any]:
    """The demand; a rate is of all jobs together, fio's of each job.

    The io_uring engines refuse offloaded submission (fio, engines/io_uring.c, FIO_NO_OFFLOAD):
    there a drive that falls behind shows as unserved demand, not as latency.
    """
    options: dict[str, Any] = {}
    operations = workload.demand_operations_per_second
    if workload.demand_bytes_per_second:
        operations = workload.demand_bytes_per_second / configuration.request_bytes
    if operations:
        each = max(1, round(operations / configuration.jobs))
        shares = {Operation.READ: (each, 0), Operation.WRITE: (0, each)}
        read, write = shares.get(workload.operation, _split(each, workload.read_fraction or 0.5))
        options["rate_iops"] = f"{read},{write}" if read and write else max(read, write)
        options["rate_process"] = workload.arrival_process or "linear"
        if timing.offload and (configuration.engine or Engine.IO_URING) not in _RINGS:
            options["io_submit_mode"] = "offload"
    if workload.think_time_ns:
        options["thinktime"] = f"{max(1, round(workload.think_time_ns / 1000))}us"
        options["thinktime_blocks"] = 1
    return options


def _split(total: int, share: float) -> tuple[int, int]:
    first = min(max(1, round(total * share)), max(1, total - 1))
    return first, max(1, total - first)


def _writes(workload: Workload, host: JobHost) -> dict[str, Any]:
    if workload.operation is Operation.READ:
        return {}
    # random data is made once and scrambled for every request: refill_buffers would spend the time
    # between two requests on making it anew
    options: dict[str, Any] = (
        {"zero_buffers": 1} if host.data == "zero" else {"scramble_buffers": 1}
    )
    if workload.flush_every_writes:
        options["fdatasync"] = workload.flush_every_writes
    if workload.force_unit_access:
        options["sync"] = "dsync"
    if host.fsync_at_end:
        options["end_fsync"] = 1
    return options


def _placement(configuration: Configuration, host: JobHost) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if host.cpus is not None:
        options["cpus_allowed"] = host.cpus
    if configuration.job_numa_node is not None:
        options["numa_cpu_nodes"] = configuration.job_numa_node
        options["numa_mem_policy"] = f"bind:{configuration.job_numa_node}"
    if host.numa_memory_node is not None:
        options["numa_mem_policy"] = f"bind:{host.numa_memory_node}"
    return options


def _jobs(workload: Workload, configuration: Configuration) -> list[tuple[str, dict[str, Any]]]:
    prefix = "rand" if workload.pattern is Pattern.RANDOM else ""
    if workload.operation is not Operation.MIXED:
        return [(workload.operation.value, {"rw": f"{prefix}{workload.operation.value}"})]
    share = workload.read_fraction if workload.read_fraction is not None else 0.5
    if workload.mix_dispatch is not MixDispatch.SEPARATED:
        return [("mixed", {"rw": f"{prefix}rw", "rwmixread": round(share * 100)})]
    if configuration.queue_depth < 2:
        raise CampaignError(
            "mix_dispatch separated: needs a depth of at least 2, one request for each direction",
            field="queue_depth",
        )
    reads, writes = _split(configuration.queue_depth, share)
    return [
        ("reads", {"rw": f"{prefix}read", "iodepth": reads}),
        ("writes", {"rw": f"{prefix}write", "iodepth": writes}),
    ]


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
    """An fio that is recent enough."""

    path: str
    version: tuple[int, int]

    def command(self) -> list[str]:
        """The command that runs a folder's job file; to be run in that folder."""
        return [self.path, f"--output={RESULT_FILE}", "--output-format=json+", JOB_FILE]


def find_fio() -> Fio:
    """Find fio. Raises FioError if it is missing, does not run, or is too old."""
    path = find_program(
        os.environ.get(FIO_VARIABLE) or "fio",
        f"apt-get install fio, or name one with {FIO_VARIABLE}",
        FioError,
    )
    try:
        hangs = FioError(f"{path}: does not run (--version took 20 s)")
        done = run_program([path, "--version"], seconds=20, hangs=hangs)
    except OSError as error:
        raise FioError(f"{path}: does not run ({error})") from None
    output = done.stdout.decode(errors="replace")
    match = _VERSION.search(output)
    if match is None:
        raise FioError(f"{path}: says {output.strip()!r} when asked for its version; is it fio?")
    version = int(match[1]), int(match[2])
    if version < OLDEST:
        raise FioError(
            f"{path}: is fio {version[0]}.{version[1]}; {OLDEST[0]}.{OLDEST[1]} or newer is needed"
        )
    return Fio(path, version)


def run_fio(
    fio: Fio, folder: Path, expected_seconds: float, watch: Callable[[], str | None] = lambda: None
) -> None:
    """Run the job file in a folder; result and messages are files there.

    `watch` is called ten times a second; a reason that it returns ends the run, as does a run of
    1.5 times the expected time and a minute. Raises FioError if fio failed, hung or was ended.
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
    """Every process that a process began, directly or not (field 4)."""
    parents: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        if fields := process_fields(int(folder.name)):
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    processes: list[int] = []
    left = [number]
    while left:
        own = parents.get(left.pop(), [])
        processes += own
        left += own
    return processes


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
    text_line = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return (text_line[:600] or "it said nothing") + _hint(text_line)


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


def _hint(message: str) -> str:
    return next((hint for words, hint in _HINTS.items() if words in message), "")


_NS_PER_MS = 1_000_000
_LATE_NS = 25 * _NS_PER_MS


@dataclass(frozen=True)
class FioResult:
    """A run of fio.

    Attributes:
        begin_unix_ns: Begin of the measured part, on CLOCK_REALTIME.
        littles_ratio: Throughput x mean latency / concurrency; None where undefined.
        usual_p999_ns: 99.9th percentile of latency, without as many of the slowest requests as
            one stall of the drive holds up; None where fio gave no histogram.
        pause_unix_ns: Begin and end of the longest time in which no job completed a request,
            within the steps of fio's log.
    """

    observations: Mapping[str, float]
    begin_unix_ns: int
    end_unix_ns: int
    requests: int
    littles_ratio: float | None
    usual_p999_ns: float | None
    pause_unix_ns: tuple[int, int]
    notes: tuple[str, ...]


def read_fio_result(folder: Path, point: Point) -> FioResult:
    """Read fio's result. Raises FioError if a job failed or did nothing, or the file is cut off."""
    try:
        file = load(find_files([folder / RESULT_FILE])[0])
    except InputError as error:
        raise FioError(f"{error.message}; {messages(folder)}") from None
    failed = [job for job in file.run.jobs if job.error]
    if failed:
        raise FioError(f"job {failed[0].jobname}: error {failed[0].error}: {messages(folder)}")
    directions = {
        name: [
            direction_stats(part) for job in file.run.jobs if (part := getattr(job, name)).total_ios
        ]
        for name in ("read", "write")
    }
    known = {name: together(parts) for name, parts in directions.items() if parts}
    if not known:
        raise FioError(f"not one request was completed: {messages(folder)}")
    total = together(list(known.values()))
    observations = _observed(total, "")
    if len(known) == 2:
        for name, stats in known.items():
            observations |= _observed(stats, f"{name}_")
    observations["context_switches_per_second"] = (
        sum(job.ctx for job in file.run.jobs) / total.runtime_seconds
    )
    # user plus system time in cores, as the importer of fio's files has it
    observations["cpu_utilisation"] = (
        sum((job.usr_cpu + job.sys_cpu) / 100 for job in file.run.jobs)
        / len(file.run.jobs)
        * _processes(point)
    )
    steps = _logged_ns(folder)
    begin, end = _window(folder, file, total.runtime_seconds, steps)
    return FioResult(
        observations,
        begin,
        end,
        total.requests,
        _littles_ratio(point, total),
        _usual_p999(point, total),
        _longest_pause(begin, begin + int(total.runtime_seconds * 1e9), steps),
        _notes(folder, file),
    )


def _observed(stats: Stats, prefix: str) -> dict[str, float]:
    fields = {
        f"{prefix}throughput_bytes_per_second": stats.bytes_per_second,
        f"{prefix}iops": stats.iops,
    }
    if stats.mean_ns:
        fields[f"{prefix}latency_mean_ns"] = stats.mean_ns
    for name in PERCENTILES:
        if stats.percentiles_ns.get(name):
            fields[f"{prefix}latency_{name}_ns"] = stats.percentiles_ns[name]
    return fields


def _littles_ratio(point: Point, total: Stats) -> float | None:
    workload, configuration = point.workload, point.configuration
    if not workload.at_full_speed or total.mean_ns is None:
        return None
    in_flight = configuration.queue_depth * configuration.jobs
    return total.iops * total.mean_ns * 1e-9 / in_flight


def _processes(point: Point) -> int:
    """How many processes fio runs: separated directions have jobs of their own."""
    separated = point.workload.mix_dispatch is MixDispatch.SEPARATED
    return point.configuration.jobs * (2 if separated else 1)


def _usual_p999(point: Point, total: Stats) -> float | None:
    if total.bins is None:
        return None
    bins = dict(total.bins)
    left = point.configuration.queue_depth * point.configuration.jobs
    for latency in sorted(bins, reverse=True):
        taken = min(left, bins[latency])
        bins[latency] -= taken
        left -= taken
    if not any(bins.values()):
        return min(bins)
    return percentile({latency: count for latency, count in bins.items() if count}, 99.9)


def _logged_ns(folder: Path) -> list[int]:
    """Ends of the steps of fio's log, of all jobs, in order; empty without a log.

    A step ends with the first completion after its time, so that a long one is a pause.
    """
    try:
        lines = (folder / f"{LOG_PREFIX}_bw.log").read_text().splitlines()
        return sorted({int(line.partition(",")[0]) * _NS_PER_MS for line in lines})
    except (OSError, ValueError):
        return []  # fewer requests than one step of the log


def _longest_pause(begin: int, end: int, steps: Sequence[int]) -> tuple[int, int]:
    # completions may have filled the step before the pause
    pauses = [
        (min(first + LOG_STEP_MS * _NS_PER_MS, last), last)
        for first, last in pairwise([begin, *steps, max([end, *steps])])
    ]
    return max(pauses, key=lambda pause: pause[1] - pause[0])


def _window(
    folder: Path, file: FioFile, runtime_seconds: float, steps: Sequence[int]
) -> tuple[int, int]:
    """A stretch on CLOCK_REALTIME that lies inside the measured part.

    Two times bound its begin from above: the first entry of fio's log, stamped with the end of its
    step (fio may omit steps before it), and the time at which fio wrote its result less the runtime
    (fio polls for ended jobs every 10 ms, fio 3.33 backend.c, do_usleep). The earlier one is late
    by less than `_LATE_NS`, by which the stretch ends sooner.
    """
    length = int(runtime_seconds * 1e9)
    begins = [_written_ns(folder, file) - length]
    if steps:
        begins.append(steps[0] - LOG_STEP_MS * _NS_PER_MS)
    begin = min(begins)
    return begin, begin + max(length - _LATE_NS, length // 2)


def _written_ns(folder: Path, file: FioFile) -> int:
    written = file.run.timestamp_ms
    if written is not None:
        return written * _NS_PER_MS
    return (folder / RESULT_FILE).stat().st_mtime_ns


def _notes(folder: Path, file: FioFile) -> tuple[str, ...]:
    try:
        lines = (folder / MESSAGES_FILE).read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return (*file.notes, *(line.strip() for line in lines if line.strip()))
