"""Writes the fio job file of one run; whoever has it can repeat the run without iojoule.

Options as fio 3.33 documents them (HOWTO.rst). Traps that the options avoid: fio creates a target
that is missing (allow_file_create=0), a bare `hipri` is left out of fio's own record, and an open
loop without io_submit_mode=offload hides queueing (coordinated omission).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Completion, Engine, MixDispatch, Operation, Pattern
from iojoule.measure.errors import CampaignError

LOG_STEP_MS = 100
"""Step of fio's bandwidth log, from which the measured part of a run is known."""

LOG_PREFIX = "fio"
"""The log is written as fio_bw.log in the run's folder."""

_RINGS = (Engine.IO_URING, Engine.IO_URING_CMD)


@dataclass(frozen=True)
class JobTarget:
    """What a job reads and writes.

    Attributes:
        filename: Device node, or for SPDK the address of the drive.
        offset_bytes: First byte used.
        size_bytes: So many bytes from there.
    """

    filename: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class JobTiming:
    """How long a job runs, and who sends what is demanded of it.

    Attributes:
        seconds: Measured time.
        ramp_seconds: Time before it.
        io_bytes: Ends it earlier where so much was transferred.
        time_based: Whether the time ends it.
        offload: Whether a thread of its own sends what is demanded, where the engine lets it.
    """

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


def job_file(
    workload: Workload,
    configuration: Configuration,
    target: JobTarget,
    timing: JobTiming,
    host: JobHost,
) -> str:
    """The text of the job file.

    Raises:
        CampaignError: The workload cannot be written as an fio job.
    """
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
    found = {"offset": target.offset_bytes, "size": size}
    if workload.pattern is Pattern.SEQUENTIAL and configuration.jobs > 1:
        each = size // configuration.jobs // request * request
        found |= {"size": each, "offset_increment": each}
    if found["size"] < request:
        raise CampaignError(
            f"request_bytes {request}: does not fit into {size} bytes shared by "
            f"{configuration.jobs} jobs; enlarge the target or the working set",
            field="request_bytes",
        )
    return found


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
    found: dict[str, Any] = {}
    if timing.time_based:
        found |= {"time_based": 1, "runtime": f"{round(timing.seconds * 1000)}ms"}
    if timing.ramp_seconds:
        found["ramp_time"] = f"{round(timing.ramp_seconds * 1000)}ms"
    if timing.io_bytes is not None:
        found["io_size"] = timing.io_bytes
    return found


def _arrivals(
    workload: Workload, configuration: Configuration, timing: JobTiming
) -> dict[str, Any]:
    """Rates are those of all jobs together; fio's are of each job.

    The io_uring engines refuse offloaded submission (fio, engines/io_uring.c, FIO_NO_OFFLOAD):
    there a drive that falls behind shows as a demand that is not served, and not as latency.
    """
    found: dict[str, Any] = {}
    operations = workload.demand_operations_per_second
    if workload.demand_bytes_per_second:
        operations = workload.demand_bytes_per_second / configuration.request_bytes
    if operations:
        each = max(1, round(operations / configuration.jobs))
        shares = {Operation.READ: (each, 0), Operation.WRITE: (0, each)}
        read, write = shares.get(workload.operation, _split(each, workload.read_fraction or 0.5))
        found["rate_iops"] = f"{read},{write}" if read and write else max(read, write)
        found["rate_process"] = workload.arrival_process or "linear"
        if timing.offload and (configuration.engine or Engine.IO_URING) not in _RINGS:
            found["io_submit_mode"] = "offload"
    if workload.think_time_ns:
        found["thinktime"] = f"{max(1, round(workload.think_time_ns / 1000))}us"
        found["thinktime_blocks"] = 1
    return found


def _split(total: int, share: float) -> tuple[int, int]:
    first = min(max(1, round(total * share)), max(1, total - 1))
    return first, max(1, total - first)


def _writes(workload: Workload, host: JobHost) -> dict[str, Any]:
    if workload.operation is Operation.READ:
        return {}
    # random data is made once and scrambled for every request: refill_buffers would spend the time
    # between two requests on making it anew
    found: dict[str, Any] = {"zero_buffers": 1} if host.data == "zero" else {"scramble_buffers": 1}
    if workload.flush_every_writes:
        found["fdatasync"] = workload.flush_every_writes
    if workload.force_unit_access:
        found["sync"] = "dsync"
    if host.fsync_at_end:
        found["end_fsync"] = 1
    return found


def _placement(configuration: Configuration, host: JobHost) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if host.cpus is not None:
        found["cpus_allowed"] = host.cpus
    if configuration.job_numa_node is not None:
        found["numa_cpu_nodes"] = configuration.job_numa_node
        found["numa_mem_policy"] = f"bind:{configuration.job_numa_node}"
    if host.numa_memory_node is not None:
        found["numa_mem_policy"] = f"bind:{host.numa_memory_node}"
    return found


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
