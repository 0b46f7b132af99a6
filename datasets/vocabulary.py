"""The closed word lists of the schema: engines, schedulers, evidence and their rules."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Literal

UNBOUNDED: Literal["unbounded"] = "unbounded"
"""An end without a bound, as in latencies of a demand that may exceed the capacity."""


def number_of(value: Any) -> Any:
    """A value of a document as a number: infinite where it is the word `unbounded`."""
    return math.inf if value == UNBOUNDED else value


def documented(value: float) -> float | str:
    """A number as documents hold it: the word `unbounded` where it is infinite."""
    return UNBOUNDED if math.isinf(value) else value


class Operation(StrEnum):
    """What the requests of a workload do."""

    READ = "read"
    WRITE = "write"
    MIXED = "mixed"


class MixDispatch(StrEnum):
    """How a mixed workload sends its two directions."""

    INTERLEAVED = "interleaved"
    SEPARATED = "separated"


class Pattern(StrEnum):
    """Order of the addresses."""

    SEQUENTIAL = "sequential"
    RANDOM = "random"


class Durability(StrEnum):
    """What the application needs to survive a power cut."""

    NONE = "none"
    ORDERED = "ordered"
    PER_COMMIT = "per_commit"


class Engine(StrEnum):
    """I/O engine, in fio's words."""

    PSYNC = "psync"
    POSIXAIO = "posixaio"
    LIBAIO = "libaio"
    IO_URING = "io_uring"
    IO_URING_CMD = "io_uring_cmd"
    SPDK = "spdk"


class Completion(StrEnum):
    """How the host learns that a request is done."""

    INTERRUPT = "interrupt"
    POLLED = "polled"


class Scheduler(StrEnum):
    """Linux block-layer scheduler."""

    NONE = "none"
    MQ_DEADLINE = "mq-deadline"
    KYBER = "kyber"
    BFQ = "bfq"


class LinkPowerPolicy(StrEnum):
    """What a host lets the link of a SATA drive do between requests (ALPM), in Linux' words.

    `link_power_management_policy` of the drive's port (Documentation/ABI/testing/
    sysfs-class-scsi_host); the link stays awake in the first.
    """

    MAX_PERFORMANCE = "max_performance"
    MEDIUM_POWER = "medium_power"
    MED_POWER_WITH_DIPM = "med_power_with_dipm"
    MIN_POWER_WITH_PARTIAL = "min_power_with_partial"
    MIN_POWER = "min_power"


class DeviceState(StrEnum):
    """What the flash is doing; follows from what was done to the drive."""

    FRESH = "fresh"
    CACHED = "cached"
    STEADY = "steady"
    COLLECTING = "collecting"


class Verdict(StrEnum):
    """Whether a run may be believed; `datasets.verdict` says why."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    FAILED = "failed"


class Evidence(StrEnum):
    """What a prediction rests on, strongest first; `assumed`: on nothing that could be cited."""

    MEASURED = "measured"
    INTERPOLATED = "interpolated"
    SIMULATED = "simulated"
    PUBLISHED = "published"
    EXTRAPOLATED = "extrapolated"
    DATASHEET = "datasheet"
    ASSUMED = "assumed"


ASSUMPTION = "assumption"
"""How the source of a number begins that was neither measured, published nor rated."""


def is_assumption(source: str) -> bool:
    """Whether a number with this source is an assumption."""
    return source.strip().lower().startswith(ASSUMPTION)


HostStanding = Literal["known", "assumed", "unknown"]
"""Whether the power of a host was measured or published, or it is an assumption, or nothing is
said of it."""

POLLING_ENGINES = frozenset({Engine.IO_URING, Engine.IO_URING_CMD, Engine.SPDK})
"""Engines that can poll for completions (fio: hipri; SPDK has no other way)."""

BYPASSING_ENGINES = frozenset({Engine.IO_URING_CMD, Engine.SPDK})
"""Engines whose requests never pass the block layer, so that no scheduler sees them."""

ONE_AT_A_TIME = frozenset({Engine.PSYNC, Engine.POSIXAIO})
"""Engines of which one job has one request at the drive, whatever its queue depth: the C library
serves the requests to one file in turn (glibc, sysdeps/pthread/aio_misc.c). 16 KiB reads at depth 4
reach 973 MB/s with posixaio, 1,040 with psync at depth 1 and 2,793 with io_uring (000 5.9 a)."""


def depth_at_drive(engine: Engine | str | None, queue_depth: int) -> int:
    """Requests of one job that the drive sees at a time."""
    return 1 if engine is not None and Engine(engine) in ONE_AT_A_TIME else queue_depth


def merges_requests(engine: Engine | str | None) -> bool:
    """Whether several requests of a job may pass the block layer together, which merges them."""
    return engine is None or Engine(engine) not in BYPASSING_ENGINES | ONE_AT_A_TIME


def impossible(
    engine: Engine | str | None,
    completion: Completion | str | None,
    *,
    queue_depth: int | None = None,
    scheduler: Scheduler | str | None = None,
    submission_polling: bool | None = None,
    interface: str | None = None,
) -> tuple[str, str] | None:
    """Say why a configuration cannot exist.

    Args:
        engine: I/O engine.
        completion: How the host learns that a request is done.
        queue_depth: Requests in flight of one job.
        scheduler: Of the block layer.
        submission_polling: Whether a kernel thread polls for requests.
        interface: How the drive is attached: nvme, sata or sas.

    Returns:
        `(field, reason)`, or None when the configuration is possible. What is None is unknown
        and contradicts nothing.
    """
    if interface not in (None, "nvme"):
        if engine is not None and Engine(engine) in BYPASSING_ENGINES:
            return "engine", (
                f"{engine} speaks NVMe to the drive, and this one is attached by {interface}; use "
                "io_uring, libaio or psync"
            )
        if interface == "sata" and completion == Completion.POLLED:
            return "completion", (
                "a SATA drive has no queues that could be polled; say interrupt, or leave it out"
            )
    if engine == Engine.SPDK and completion == Completion.INTERRUPT:
        return "completion", "spdk is always polled; leave completion out or say polled"
    if (
        completion == Completion.POLLED
        and engine is not None
        and Engine(engine) not in POLLING_ENGINES
    ):
        return "completion", f"{engine} cannot poll for completions; use io_uring or spdk"
    if engine == Engine.PSYNC and queue_depth is not None and queue_depth > 1:
        return "queue_depth", "psync holds one request at a time: depth 1 and more jobs instead"
    if (
        engine is not None
        and Engine(engine) in BYPASSING_ENGINES
        and scheduler not in (None, Scheduler.NONE)
    ):
        return "scheduler", f"{engine} bypasses the block layer, so no scheduler can act: say none"
    if (
        submission_polling
        and engine is not None
        and engine not in (Engine.IO_URING, Engine.IO_URING_CMD)
    ):
        return "submission_polling", f"{engine} has no submission polling; only io_uring has"
    return None


class IntervalFor(StrEnum):
    """What an answer's intervals are about: what was measured, measured again where.

    Attributes:
        SAME_HOST: On the drive and host that were measured: what runs of one session scatter, and
            how far an answer between measured configurations may err.
        ANOTHER_HOST: On another day or host, and another drive of the same model.
        ANOTHER_DRIVE: On a drive of another model, of the same interface.
    """

    SAME_HOST = "same-host"
    ANOTHER_HOST = "another-host"
    ANOTHER_DRIVE = "another-drive"
