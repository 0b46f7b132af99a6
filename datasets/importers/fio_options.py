"""From fio's job options to workload and configuration.

What an option means is fio's HOWTO; what the schema cannot hold is refused or mentioned by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.units import parse_fio_size
from iojoule.datasets.schema import DIGITS_MAX
from iojoule.datasets.vocabulary import BYPASSING_ENGINES, Scheduler

ENGINES = {
    "psync": "psync",
    "sync": "psync",
    "pvsync": "psync",
    "pvsync2": "psync",
    "libaio": "libaio",
    "posixaio": "posixaio",
    "io_uring": "io_uring",
    "io_uring_cmd": "io_uring_cmd",
    "spdk": "spdk",
}
"""fio's engines in the schema's words; SPDK's plugin is recognised by its path."""

_MODES = {
    "read": ("read", "sequential"),
    "write": ("write", "sequential"),
    "randread": ("read", "random"),
    "randwrite": ("write", "random"),
    "rw": ("mixed", "sequential"),
    "readwrite": ("mixed", "sequential"),
    "randrw": ("mixed", "random"),
}

_ALIASES = {"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange"}

UNRECORDED = (
    "random_distribution",
    "percentage_random",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete",
    "io_submit_mode",
    "latency_target",
    "flow",
    "verify",
    "zonemode",
    "buffer_compress_percentage",
    "dedupe_percentage",
)
"""Options that change what is measured and that the schema has no field for."""

_COMPLETION = {True: "polled", False: "interrupt"}

_TIME_UNITS = {
    "ns": 1,
    "nsec": 1,
    "us": 10**3,
    "usec": 10**3,
    "ms": 10**6,
    "msec": 10**6,
    "s": 10**9,
    "sec": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


@dataclass(frozen=True)
class JobSetup:
    """What one job was asked to do, in the schema's words.

    Attributes:
        fields: Workload, configuration and condition fields of one job; `jobs` is 1, demands are
            per job.
        numjobs: How many clones of the job the options ask for.
        devices: The drives it ran on, as far as the options name any.
        buffered: Whether the page cache took part, as far as is known.
        notes: What the schema does not hold, or what was not in force.
    """

    fields: Mapping[str, Any]
    numjobs: int
    devices: frozenset[str]
    notes: tuple[str, ...] = ()
    buffered: bool = False

    @property
    def held_back(self) -> bool:
        """Whether a rate or a think time keeps the depth down."""
        names = ("demand_bytes_per_second", "demand_operations_per_second", "think_time_ns")
        return any(self.fields.get(name) for name in names)


@dataclass
class _Reader:
    """The options of one job and where complaints about them point."""

    options: Mapping[str, str]
    where: str
    notes: list[str] = field(default_factory=list)

    def text(self, name: str, default: str = "") -> str:
        return self.options.get(name, default).strip()

    def recorded(self, name: str) -> bool | None:
        """A switch; None where the JSON does not have it."""
        return None if name not in self.options else self.text(name) not in ("0", "false")

    def number(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        size = parse_fio_size(text)
        if size is None:
            raise self.refused(name, "is not a number")
        return size

    def refused(self, name: str, why: str) -> InputError:
        return InputError(f"{self.where}: {name}={self.text(name)} {why}", field=name)


@dataclass(frozen=True)
class Sizes:
    """Bytes of the requests of one direction."""

    least: float
    mean: float


def job_setup(
    options: Mapping[str, str], where: str, sizes: tuple[Sizes, Sizes] | None = None
) -> JobSetup:
    """Read the options of a job (global ones included).

    Args:
        options: Option -> text, as fio writes them.
        where: File and job, for messages.
        sizes: Of reads and of writes, for rates; None: those of the options.

    Raises:
        InputError: An option that a measurement cannot express; names it and the remedy.
    """
    named = {_ALIASES.get(name, name): value for name, value in options.items()}
    reader = _Reader(named, where)
    fields = _operation(reader)
    fields["request_bytes"] = _request_bytes(reader, fields["operation"])
    fields |= _engine(reader)
    fields["cpu_cores_available"] = _cores(reader)
    fields |= _demand(reader, fields, sizes)
    if fields["operation"] != "read":
        fields |= _flushes(reader)
    direct = reader.recorded("direct") or named.get("buffered") == "0"
    buffered = not direct and fields["engine"] not in ("spdk", "io_uring_cmd")
    if buffered:
        reader.notes.append("direct=0: the page cache took part, not the drive alone")
    present = [f"{name}={named[name]}" for name in UNRECORDED if name in named]
    if present:
        reader.notes.append(f"not recorded: {', '.join(present)}")
    devices = _devices(reader.text("filename"))
    if devices and (size := parse_fio_size(reader.text("size"))):
        fields["working_set_bytes"] = float(size)
    known = {name: value for name, value in fields.items() if value is not None}
    jobs = max(1, reader.number("numjobs", 1))
    return JobSetup(known, jobs, devices, tuple(reader.notes), buffered)


def _operation(reader: _Reader) -> dict[str, Any]:
    mode = reader.text("rw", "read").lower()
    if "trim" in mode:
        raise reader.refused("rw", "trims; only reads and writes can be imported")
    if mode not in _MODES:
        raise reader.refused(
            "rw", f"cannot be expressed; can be imported: {', '.join(sorted(_MODES))}"
        )
    operation, pattern = _MODES[mode]
    if operation != "mixed":
        return {"operation": operation, "pattern": pattern}
    share = 100 - reader.number("rwmixwrite", 50)
    share = reader.number("rwmixread", share)
    if share in (0, 100):
        return {"operation": "read" if share else "write", "pattern": pattern}
    return {
        "operation": "mixed",
        "pattern": pattern,
        "read_fraction": share / 100,
        "mix_dispatch": "interleaved",
    }


def _request_bytes(reader: _Reader, operation: str) -> int:
    for name in ("bsrange", "bssplit", "bs"):
        if reader.text(name) and (name != "bs" or "-" in reader.text(name)):
            raise reader.refused(
                name, "mixes request sizes, a measurement holds one; import runs of one size"
            )
    parts = reader.text("bs", "4k").split(",")[:2]
    sizes = [parse_fio_size(part.strip() or "4k") for part in parts]
    if not all(sizes):
        raise reader.refused("bs", "is not a size like 4k")
    read, write = sizes[0] or 0, sizes[-1] or 0
    if operation == "mixed" and read != write:
        raise reader.refused("bs", "differs between reads and writes; import runs of one size")
    return write if operation == "write" else read


def _engine(reader: _Reader) -> dict[str, Any]:
    stated = reader.text("ioengine", "psync")
    engine = "spdk" if "spdk" in stated.lower() else ENGINES.get(stated)
    if engine is None:
        raise reader.refused(
            "ioengine", f"is not known; can be imported: {', '.join(ENGINES)}, the plugin of SPDK"
        )
    depth = reader.number("iodepth", 1)
    if depth < 1:
        raise reader.refused("iodepth", "is not a depth; at least one request is in flight")
    if engine == "psync" and depth > 1:
        reader.notes.append(f"ioengine={stated} holds one request: depth 1, not {depth}")
        depth = 1
    rings = engine in ("io_uring", "io_uring_cmd")
    if "hipri" in reader.options and not rings:
        reader.notes.append(f"hipri with ioengine={stated} is not taken for polling")
    return {
        "engine": engine,
        "queue_depth": depth,
        "completion": _completion(reader) if rings else _COMPLETION[engine == "spdk"],
        "submission_polling": reader.recorded("sqthread_poll") if rings else None,
        "scheduler": _scheduler(reader) if engine not in BYPASSING_ENGINES else None,
    }


def _scheduler(reader: _Reader) -> str | None:
    """The block-layer scheduler that fio set; without the option it is whatever was there."""
    stated = reader.text("ioscheduler")
    if stated and stated not in list(Scheduler):
        reader.notes.append(f"ioscheduler={stated} is none of {', '.join(Scheduler)}")
        return None
    return stated or None


def _cores(reader: _Reader) -> int | None:
    """How many cores `cpus_allowed` leaves to the job and its clones, as in 0-3,8."""
    listed = reader.text("cpus_allowed")
    if not re.fullmatch(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", listed):
        return None
    allowed: set[int] = set()
    for part in listed.split(","):
        first, _, last = part.partition("-")
        allowed |= set(range(int(first), min(int(last or first), 65535) + 1))
    return len(allowed) or None


def _completion(reader: _Reader) -> str | None:
    """Whether io_uring polled; fio leaves a bare `hipri` out of the JSON, so None is unknown."""
    polled = reader.recorded("hipri")
    return None if polled is None else _COMPLETION[polled]


def _demand(
    reader: _Reader, fields: Mapping[str, Any], sizes: tuple[Sizes, Sizes] | None
) -> dict[str, Any]:
    """Rates and think times of one job.

    A rate applies to each direction by itself, so that those of a mixed job decide its mix;
    `rate_iops` counts in requests of the least size, and `rate` counts where both are stated
    (fio's HOWTO, rate_iops; __setup_rate in backend.c).
    """
    demand: dict[str, Any] = {}
    size = fields["request_bytes"]
    of_each = sizes or (Sizes(size, size), Sizes(size, size))
    by_bytes, by_operations = _rates(reader, "rate"), _rates(reader, "rate_iops")
    moved = [
        rate or requests * each.least
        for rate, requests, each in zip(by_bytes, by_operations, of_each, strict=True)
    ]
    operation = fields["operation"]
    served = {"read": (0,), "write": (1,), "mixed": (0, 1)}[operation]
    if any(moved[direction] for direction in served):
        if not all(moved[direction] for direction in served):
            raise reader.refused(
                "rate" if reader.text("rate") else "rate_iops",
                "limits one direction of a mixed job, and the other goes as fast as it can; state "
                "both",
            )
        requests = {direction: moved[direction] / of_each[direction].mean for direction in served}
        if all(by_bytes[direction] for direction in served):
            demand["demand_bytes_per_second"] = sum(moved[direction] for direction in served)
        else:
            demand["demand_operations_per_second"] = sum(requests.values())
        demand["arrival_process"] = reader.text("rate_process", "linear")
        if operation == "mixed":
            demand["read_fraction"] = requests[0] / sum(requests.values())
    think = _nanoseconds(reader, "thinktime")
    blocks = max(1, reader.number("thinktime_blocks", 1))
    if think:
        demand["think_time_ns"] = think / blocks
        if blocks > 1:
            reader.notes.append(f"thinktime is taken per request: every {blocks}th pauses")
    return demand


def _rates(reader: _Reader, name: str) -> tuple[float, float]:
    """Of reads and of writes; 0 where none is stated."""
    text = reader.text(name)
    if not text:
        return 0.0, 0.0
    parts = [parse_fio_size(part) if part.strip() else 0 for part in text.split(",")]
    if None in parts:
        raise reader.refused(name, "is not a rate like 10m")
    return float(parts[0] or 0), float(parts[min(1, len(parts) - 1)] or 0)


def _nanoseconds(reader: _Reader, name: str) -> float | None:
    """A time as fio writes it; without a unit in microseconds."""
    text = reader.text(name)
    if not text:
        return None
    time_ns = parse_fio_time(text, "us")
    if time_ns is None:
        raise reader.refused(name, "is not a time like 100us")
    return time_ns or None


def parse_fio_time(text: str, unit: str) -> float | None:
    """A time as fio writes it, in nanoseconds; `unit` is meant where none is written."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or len(match[1]) > DIGITS_MAX or (match[2] or unit) not in _TIME_UNITS:
        return None
    return float(match[1]) * _TIME_UNITS[match[2] or unit]


def _flushes(reader: _Reader) -> dict[str, Any]:
    every = [reader.number(name, 0) for name in ("fsync", "fdatasync")]
    synchronous = reader.text("sync", "0").lower() not in ("0", "none", "")
    return {
        "flush_every_writes": min([number for number in every if number], default=None),
        "force_unit_access": True if synchronous else None,
    }


def _devices(filename: str) -> frozenset[str]:
    """Whole drives among the files of a job; partitions and namespaces count as their drive."""
    names = set()
    for part in re.split(r"(?<!\\):", filename):
        match = re.match(r"/dev/(nvme\d+|ng\d+|sd[a-z]+|vd[a-z]+|[a-z]+\d*)", part)
        if match:
            names.add(match[1].replace("ng", "nvme") if re.match(r"ng\d", match[1]) else match[1])
    return frozenset(names)
