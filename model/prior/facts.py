"""What identify data and data sheets say of a drive, as observations of the prior's quantities.

Large requests of a drive that nobody measured.

Random ones go as sequential ones: a request that covers all channels and dies is a run of its own,
so where it lies does not matter any more. Writes get there at smaller sizes, for a drive gathers
them in its buffer and programs them one after the other wherever they belong; once it is not the
number of requests that limits, random writes reach the sequential rate (PC Perspective, review of
the MyDigitalSSD SBX, 2018, on all drives there). The learned prior does not know that its
quantities of both patterns meet.

Large writes lose a little of their rate to small ones on SATA drives: a write of 4 MiB reaches the
drive as a burst of commands, and the next burst waits for the last of them.

How many bits a flash cell holds: from a fact, or from what is published of a product line.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.catalogue import Drive, Fact, catalogued, slug
from iojoule.datasets.links import (
    INDUSTRIAL_CELSIUS,
    LANE_BYTES_PER_SECOND,
    LINK_LANES,
    SATA_BYTES_PER_SECOND,
)
from iojoule.datasets.measured_drive import MeasuredDrive
from iojoule.datasets.profile import DriveRating, Surface
from iojoule.datasets.profile.drive import CurveDoubt, FactUsed
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.model.prior.disk_facts import DiskFacts, disk_facts
from iojoule.model.prior.document import load_assumptions

JOINING_LOG2_BYTES = {Operation.READ: (16.0, 19.0), Operation.WRITE: (14.0, 17.0)}
"""Between which sizes the patterns meet. Reads: from 64 KiB, a page on a few dies, to 512 KiB, a
page of 16 KiB on each of 32 dies. Writes: from 16 KiB, one page, to 128 KiB, about what is
programmed at once (three pages of TLC on two to four planes)."""

PATTERN_SD = 0.1
"""Log sd by which large random requests differ from sequential ones on one drive. Random writes
against sequential ones: 8 % at 4 MiB on a SATA drive (001-043), 1 % at 256 KiB on a PM9A3 against
its data sheet (004-067), nothing at 128 KiB on the ZN540 (other_nvme_fio)."""

SMALL_OVER_LARGE: Sequence[tuple[frozenset[str], float]] = (
    (frozenset({"001-041", "001-166"}), 1.12),
    (frozenset({"001-042"}), 1.13),
    (frozenset({"001-043"}), 1.08),
    (frozenset({"001-047"}), 1.0 / 1.02),
    (frozenset(), 1.0),
    (frozenset(), 1.0),
)
"""Throughput of writes of 32 KiB over that of 4 MiB on two SATA drives in a desktop, and the
findings that state it: sequential with and without the page cache on one of them, random through
the cache on both, and no difference for sequential writes of the other, with and without (001,
section 4). Random direct writes are left out: they differ by what one request at a time costs."""


def large_write_loss(without: Collection[str] = ()) -> tuple[float, float]:
    """Log of what a SATA drive loses on writes of several commands, and the log sd of one setting.

    Mean and predictive deviation of the published settings; those that rest on the findings named
    are left out.
    """
    logs = [np.log(ratio) for facts, ratio in SMALL_OVER_LARGE if not facts & set(without)]
    sd = float(np.std(logs, ddof=1) * np.sqrt(1.0 + 1.0 / len(logs)))
    return float(np.mean(logs)), sd


def join_large_requests(surfaces: Sequence[Surface]) -> list[Surface]:
    """The surfaces with large random requests drawn to the sequential ones, in log units."""
    sequential = {
        surface.operation: surface for surface in surfaces if surface.pattern is Pattern.SEQUENTIAL
    }
    return [
        _joined(surface, sequential[surface.operation])
        if surface.pattern is Pattern.RANDOM and surface.operation in sequential
        else surface
        for surface in surfaces
    ]


def apart_share(operation: Operation, log2_request_bytes: float) -> float:
    """What is left of the difference between the patterns at a size: from 1 down to 0."""
    apart, joined = JOINING_LOG2_BYTES[operation]
    return float(np.clip((joined - log2_request_bytes) / (joined - apart), 0.0, 1.0))


def _joined(random: Surface, sequential: Surface) -> Surface:
    share = np.array([apart_share(random.operation, size) for size in random.log2_request_bytes])

    def between(name: str) -> list[float]:
        logs = [np.log(np.array(getattr(side, name))) for side in (random, sequential)]
        values = np.exp(share * logs[0] + (1.0 - share) * logs[1])
        return [float(f"{value:.6g}") for value in values]

    return random.model_copy(
        update={
            "unloaded_latency_ns": between("unloaded_latency_ns"),
            "capacity_operations_per_second": between("capacity_operations_per_second"),
            "sharpness": between("sharpness"),
            # beyond the last knot, whose pattern it follows
            "transfer_bytes_per_second": between("transfer_bytes_per_second")[-1],
            "doubt": _joined_doubt(random.doubt, sequential.doubt, share),
        }
    )


def _joined_doubt(
    random: CurveDoubt | None, sequential: CurveDoubt | None, share: NDArray[np.float64]
) -> CurveDoubt | None:
    """The doubt of each knot's parameters is that of the pattern that they are taken from."""
    if random is None or sequential is None:
        return random

    def between(name: str, apart: float) -> list[float]:
        ends = [np.array(getattr(side, name)) for side in (random, sequential)]
        taken = np.hypot(ends[1], apart) if apart else ends[1]
        return [float(f"{value:.6g}") for value in share * ends[0] + (1.0 - share) * taken]

    return random.model_copy(
        update={
            "unloaded_sd": between("unloaded_sd", PATTERN_SD),
            "capacity_sd": between("capacity_sd", PATTERN_SD),
            "correlation": between("correlation", 0.0),
        }
    )


LINES = {
    "QLC": ("660p", "670p", " p3 ", "qvo", "p5316"),
    "MLC": ("850 pro", "860 pro", "950 pro", "970 pro", "sm961", "p3500", "p3700", "5410s", "9100"),
}
"""Product lines by the cells that articles and data sheets say they have, where the catalogue has
no fact of it: 660p (evantechbook.com), 670p (Tom's Hardware), P3 (pgrid.app), 870 QVO
(pugetsystems.com), P5316, P3500, E 5410s (Intel), 970 PRO (ssdwiki.com), SM961 (legitreviews.com),
9100 (anandtech.com); Samsung's older PRO lines as it sold them ("2-bit MLC"), P3700 as P3500."""


def cell_named(stated: str | None, model: str) -> str:
    """TLC, QLC, MLC, SLC or unknown.

    Args:
        stated: Kind of memory cell as a fact states it; None where none does.
        model: Name of the model.
    """
    for word in ("QLC", "TLC", "MLC", "SLC"):
        if word in (stated or "").upper():
            return word
    name = f" {model.casefold()} "
    return next(
        (word for word, lines in LINES.items() if any(line in name for line in lines)), "unknown"
    )


LEAST_CAP_WATTS = 0.5
"""A lower cap of an operational state is no cap of a real drive (emulated drives say 0.01 W)."""

ACTIVE_BELOW_CAP = 0.85
"""Declared active power above this share of the cap is the cap said twice: KIOXIA's tables, in all
their states, declare caps of 1.1 times it."""

_READ, _WRITE = {"read_watts": 1.0}, {"write_watts": 1.0}
_ACTIVE = {"read_watts": 0.5, "write_watts": 0.5}
_APART = apart_share(Operation.WRITE, 15.0)
_STEADY_WRITES = {"write_random_operations_per_second": 1.0, "write_steady_share": 1.0}
_WRITE_LATENCY = {"write_random_latency_ns": 0.5, "write_sequential_latency_ns": 0.5}


def _only(quantity: str) -> dict[str, float]:
    return {quantity: 1.0}


METRICS: Mapping[str, tuple[Mapping[str, float], str]] = {
    "capacity": (_only("capacity_bytes"), "declared"),
    "sequential_read_throughput": (_only("read_sequential_bytes_per_second"), "rated"),
    "sequential_read_throughput_64k": (_only("read_sequential_bytes_per_second"), "rated"),
    "sequential_read_throughput_128k": (_only("read_sequential_bytes_per_second"), "rated"),
    "sequential_read_throughput_max": (_only("read_sequential_bytes_per_second"), "rated_up_to"),
    "sequential_read_throughput_128k_max": (
        _only("read_sequential_bytes_per_second"),
        "rated_up_to",
    ),
    "sequential_write_throughput": (_only("write_sequential_bytes_per_second"), "rated"),
    "sequential_write_throughput_u2": (_only("write_sequential_bytes_per_second"), "rated"),
    "sequential_write_throughput_64k": (_only("write_sequential_bytes_per_second"), "rated"),
    "sequential_write_throughput_128k": (_only("write_sequential_bytes_per_second"), "rated"),
    "sequential_write_throughput_max": (_only("write_sequential_bytes_per_second"), "rated_up_to"),
    "sequential_write_throughput_128k_max": (
        _only("write_sequential_bytes_per_second"),
        "rated_up_to",
    ),
    "random_read_iops": (_only("read_random_operations_per_second"), "rated"),
    "random_read_4k_iops": (_only("read_random_operations_per_second"), "rated"),
    "random_read_4k_qd16_iops": (_only("read_random_operations_per_second"), "rated"),
    "random_read_4k_iops_max": (_only("read_random_operations_per_second"), "rated_up_to"),
    "random_write_iops": (_STEADY_WRITES, "rated_steady_write"),
    "random_write_iops_u2": (_STEADY_WRITES, "rated_steady_write"),
    "random_write_iops_3dwpd": (_STEADY_WRITES, "rated_steady_write"),
    "random_write_4k_iops": (_STEADY_WRITES, "rated_steady_write"),
    "random_write_4k_iops_p5600": (_STEADY_WRITES, "rated_steady_write"),
    "random_write_4k_iops_steady": (_STEADY_WRITES, "rated_steady_write"),
    "random_write_iops_steady": (_STEADY_WRITES, "rated_steady_write"),
    "random_write_4k_iops_burst": (_only("write_random_operations_per_second"), "rated"),
    "random_write_iops_burst": (_only("write_random_operations_per_second"), "rated"),
    "random_write_4k_qd1_iops": (_only("write_random_latency_ns"), "rated_qd1"),
    "random_read_4k_qd1_iops": (_only("read_random_latency_ns"), "rated_qd1"),
    "sequential_write_throughput_burst": (_only("write_sequential_bytes_per_second"), "rated"),
    "random_write_4k_qd16_iops": (_only("write_random_operations_per_second"), "rated"),
    "random_write_4k_iops_max": (_only("write_random_operations_per_second"), "rated_up_to"),
    "linear_cost_read_throughput": (_only("read_sequential_bytes_per_second"), "linear_cost"),
    "linear_cost_random_read_rate": (
        _only("read_random_operations_per_second"),
        "linear_cost_operations",
    ),
    "linear_cost_sequential_read_rate": (
        _only("read_sequential_operations_per_second"),
        "linear_cost_operations",
    ),
    "linear_cost_write_throughput": (
        _only("write_sequential_bytes_per_second"),
        "linear_cost_write",
    ),
    "linear_cost_random_write_rate": (_STEADY_WRITES, "linear_cost_random_write"),
    "linear_cost_sequential_write_rate": (
        _only("write_sequential_operations_per_second"),
        "linear_cost_write",
    ),
    "read_latency": (_only("read_random_latency_ns"), "rated_latency"),
    "read_latency_random": (_only("read_random_latency_ns"), "rated_latency"),
    "read_latency_qd1_min": (_only("read_random_latency_ns"), "rated_latency"),
    "read_latency_sequential": (_only("read_sequential_latency_ns"), "rated_latency"),
    "sequential_latency_typical": (_only("read_sequential_latency_ns"), "rated_latency"),
    "typical_latency_rw_max": (
        {"read_random_latency_ns": 0.5, "write_random_latency_ns": 0.5},
        "rated_latency",
    ),
    "write_latency": (_WRITE_LATENCY, "rated_latency"),
    "write_latency_qd1": (_WRITE_LATENCY, "rated_latency"),
    "write_latency_random": (_only("write_random_latency_ns"), "rated_latency"),
    "write_latency_sequential": (_only("write_sequential_latency_ns"), "rated_latency"),
    "idle_power": (_only("idle_watts"), "rated_idle"),
    "idle_power_typical": (_only("idle_watts"), "rated_idle"),
    "idle_power_max": (_only("idle_watts"), "rated_idle_max"),
    "active_power_read": (_READ, "rated_watts"),
    "typical_read_power": (_READ, "rated_watts"),
    "active_power_write": (_WRITE, "rated_watts"),
    "typical_write_power": (_WRITE, "rated_watts"),
    "max_mean_active_write_power": (_WRITE, "rated_watts"),
    "active_power": (_ACTIVE, "rated_watts"),
    "active_power_typical": (_ACTIVE, "rated_watts"),
    "active_power_max": (_ACTIVE, "rated_watts_max"),
    "declared_active_power_ps0": (_ACTIVE, "declared_watts"),
    "rated_power": (_ACTIVE, "label"),
    "tdp": (_only("cap_watts"), "declared"),
    "max_power": (_only("cap_watts"), "declared"),
    "max_power_ps0": (_only("cap_watts"), "declared"),
    "declared_ps0_max_power": (_only("cap_watts"), "declared"),
    "power_limited_mode": (_only("cap_watts"), "declared"),
}
"""Metric of the catalogue -> the quantities it tells of, and the kind of fact it is."""

MEASURED_METRICS: Mapping[str, tuple[Mapping[str, float], str]] = {
    "measured_random_read_4k_qd1_latency_mean": (
        _only("read_random_latency_ns"),
        "measured_latency",
    ),
    "measured_random_write_4k_qd1_latency_mean": (
        _only("write_random_latency_ns"),
        "measured_latency",
    ),
    "measured_random_read_4k_iops": (_only("read_random_operations_per_second"), "measured_rate"),
    "measured_sequential_read_power": (_READ, "measured_watts"),
    "measured_sequential_over_random_write_32k": (
        {"write_sequential_bytes_per_second": _APART, "write_random_bytes_per_second": -_APART},
        "measured_ratio",
    ),
    # random writes of this size go as sequential ones (model/prior/facts.py)
    "measured_random_write_256k_qd64_throughput": (
        _only("write_sequential_bytes_per_second"),
        "measured_rate",
    ),
    "measured_random_write_256k_qd64_power": (_WRITE, "measured_watts"),
    "measured_idle_power_ps0": (_only("idle_watts"), "rated_idle"),
    "idle_power_by_difference": (_only("idle_watts"), "rated_idle_max"),
    "measured_peak_power": (_ACTIVE, "measured_watts"),
    "measured_power_max": (_ACTIVE, "measured_watts"),
    "measured_power_min": (_only("idle_watts"), "measured_least_watts"),
}
"""Likewise for what somebody measured of the drive: it is learned from, and answers for the drive
itself, but no data sheet says it."""

OWN_METRICS = frozenset(
    {
        "measured_sequential_over_random_write_32k",
        "measured_random_write_256k_qd64_throughput",
        "measured_random_write_256k_qd64_power",
    }
)
"""Facts that answer for their own drive only. They are findings by which profiles are judged; the
prior is not learned again for each of these, so it must not know them through others' drives."""

_IN_SI = {"s": ("ns", 1e9), "MB/s": ("bytes/s", 1e6)}

CELL_METRICS = ("nand_cell", "memory_cell", "nand_type")
"""Metrics of the catalogue that name the kind of memory cell."""

LATENCY_KINDS = ("rated_latency", "measured_latency", "rated_qd1")
LATENCY_BYTES = 4096
"""Latencies are stated for 4 KiB. The quantity is what does not grow with the request, so that the
time to transfer 4 KiB is taken off: little of a flash page, a sixth of an Optane drive's 10 us."""

LEAST_OWN_SHARE = 0.5
"""So much of a stated latency is no transfer, whatever the transfer is expected to take."""


@dataclass(frozen=True)
class Observation:
    """One fact: its logarithm is a weighted sum of quantities, plus its kind's offset and error."""

    weights: Mapping[str, float]
    log_value: float
    sd: float
    kind: str
    fact: FactUsed
    measured: bool = False


@dataclass(frozen=True)
class DriveFacts:
    """What is known of one drive; None = it does not say.

    Attributes:
        caps_watts: Caps of the operational states from PS0 on.
        link_bytes_per_second: Rate of the link, where it is known.
        cell: Kind of memory cell as stated (TLC, QLC ...).
        generation: Of its PCIe link.
        qlc: Whether its cells hold four bits.
        past_cache: Rated sequential writes past the cache.
        cache: Rated size of the cache for writes.
        rating: Interface, link and temperatures beyond which the drive is not made.
        disk: Mechanics and watts of a hard disk, which no prior of SSDs knows.
        slumber: Power with the link of a SATA drive in Slumber.
    """

    device: str
    model: str
    sata: bool | None
    datacentre: bool | None
    xpoint: bool | None
    observations: list[Observation] = field(default_factory=list)
    caps_watts: list[float] = field(default_factory=list)
    capacity_bytes: int | None = None
    max_transfer_bytes: int | None = None
    link_bytes_per_second: float | None = None
    endurance: Fact | None = None
    firmware: str | None = None
    cell: str | None = None
    generation: int | None = None
    qlc: bool | None = None
    past_cache: Fact | None = None
    cache: Fact | None = None
    rating: DriveRating = field(default_factory=DriveRating)
    disk: DiskFacts | None = None
    slumber: Fact | None = None

    def without_measurements(self) -> DriveFacts:
        """The same drive, known by identify data and data sheet only."""
        observations = [fact for fact in self.observations if not fact.measured]
        return replace(self, observations=observations)

    def having(self, more: list[Observation]) -> DriveFacts:
        """The same drive with more observations."""
        return replace(self, observations=[*self.observations, *more])


def observation(
    weights: Mapping[str, float], kind: str, fact: FactUsed, *, own_sd: float = 0.0, measured: bool
) -> Observation:
    """An observation with the error of its kind; `own_sd` comes on top (log units)."""
    sd = math.hypot(load_assumptions().kinds[kind].sd, own_sd)
    return Observation(weights, math.log(fact.value), sd, kind, fact, measured)


DESCRIBING = frozenset(
    {
        "capacity",
        "pcie_generation",
        "pcie_lanes",
        "max_transfer_size",
        "hardware_class",
        "endurance_bytes_written",
        "slc_cache",
        "sequential_write_throughput_steady",
        "operating_temperature_min",
        "operating_temperature_max",
        *CELL_METRICS,
    }
)
"""Metrics that say what a drive is; they are read by name (`facts_of`, `rating_of`)."""


def unused_metrics(drive: Drive) -> Iterator[tuple[int, str]]:
    """Places of facts that no prediction uses, and what to write instead where a name is close."""
    known = [*METRICS, *MEASURED_METRICS, *DESCRIBING]
    for index, fact in enumerate(drive.facts):
        if fact.metric in known:
            continue
        close = get_close_matches(fact.metric, known, n=1, cutoff=0.8)
        meant = f"; did you mean {close[0]}?" if close else ""
        yield index, f"no prediction uses {fact.metric}{meant}"


def facts_of(drive: Drive) -> DriveFacts:
    """What the catalogue says of a drive."""
    if drive.medium == "disk":
        return _disk(drive)
    caps = [state.max_power_watts for state in drive.operational_states]
    first = [state.index for state in drive.operational_states] == list(range(len(caps)))
    # a table whose operational states all declare the same watts declares no cap
    usable = first and bool(caps) and min(caps) >= LEAST_CAP_WATTS
    usable = usable and not (len(caps) > 1 and len(set(caps)) == 1)
    link = _link(drive)
    tells = drive.drive_class not in ("unknown", "emulated")
    xpoint = _xpoint(drive.model, known=tells)
    observations = list(_catalogue_observations(drive, xpoint=bool(xpoint)))
    if usable:
        state = drive.operational_states[0]
        observations = [item for item in observations if "cap_watts" not in item.weights]
        observations += list(_declared(caps[0], state.active_power_watts, None, state.source))
    if link is not None:
        observations.append(_of("link_bytes_per_second", link[0], "bytes/s", "link", link[1]))
    capacity, transfer = drive.fact("capacity"), drive.fact("max_transfer_size")
    hardware = drive.fact("hardware_class")
    cell = next(filter(None, map(drive.fact, CELL_METRICS)), None)
    rating = rating_of(drive)
    return DriveFacts(
        device=drive.id,
        model=drive.model,
        sata=drive.interface == "sata",
        # what a drive draws and how fast it is follows from what it is built of, not who buys it
        datacentre=(hardware.value if hardware else drive.drive_class) == "datacentre"
        if tells
        else None,
        xpoint=xpoint,
        observations=observations,
        caps_watts=caps if usable else [],
        capacity_bytes=int(float(capacity.value)) if capacity is not None else None,
        max_transfer_bytes=int(float(transfer.value)) if transfer is not None else None,
        link_bytes_per_second=link[0] if link is not None else _least_link(observations),
        endurance=drive.fact("endurance_bytes_written"),
        cell=None if cell is None else str(cell.value),
        generation=rating.pcie_generation,
        qlc=_qlc(drive, None if cell is None else str(cell.value)),
        past_cache=drive.fact("sequential_write_throughput_steady"),
        cache=drive.fact("slc_cache"),
        rating=rating,
        slumber=drive.fact("slumber_power"),
    )


def _disk(drive: Drive) -> DriveFacts:
    capacity, link = drive.fact("capacity"), _link(drive)
    return DriveFacts(
        device=drive.id,
        model=drive.model,
        sata=drive.interface == "sata",
        datacentre=drive.drive_class == "datacentre",
        xpoint=False,
        capacity_bytes=int(float(capacity.value)) if capacity is not None else None,
        link_bytes_per_second=link[0] if link is not None else None,
        rating=rating_of(drive),
        disk=disk_facts(drive),
    )


def rating_of(drive: Drive) -> DriveRating:
    """What the catalogue says the drive is made for; None where it does not."""
    generation, lanes = drive.fact("pcie_generation"), drive.fact("pcie_lanes")
    low, high = (drive.fact(f"operating_temperature_{end}") for end in ("min", "max"))
    celsius = None
    if high is not None:
        celsius = (0.0 if low is None else float(low.value), float(high.value))
    elif drive.drive_class == "industrial":
        celsius = INDUSTRIAL_CELSIUS
    return DriveRating(
        interface=None if drive.interface == "unknown" else drive.interface,
        medium="disk" if drive.medium == "disk" else None,
        pcie_generation=None if generation is None else int(float(generation.value)),
        pcie_lanes=None if lanes is None else int(float(lanes.value)),
        temperature_celsius=celsius,
    )


def facts_of_measured(drive: MeasuredDrive, device: str) -> DriveFacts:
    """What a drive says of itself; its class shows in its caps only."""
    source = "the drive's identify data"
    observations = [_of("capacity_bytes", drive.capacity_bytes, "bytes", "capacity", source)]
    caps = drive.caps_watts
    if caps and min(caps) >= LEAST_CAP_WATTS:
        state = drive.power_states[0]
        observations += list(
            _declared(caps[0], state.active_power_watts, state.idle_power_watts, source)
        )
    else:
        caps = []
    return DriveFacts(
        device=device,
        model=drive.model,
        sata=False if drive.power_states else None,  # only NVMe has power states
        datacentre=None,
        xpoint=_xpoint(drive.model, known=True),
        observations=observations,
        caps_watts=caps,
        capacity_bytes=drive.capacity_bytes,
        max_transfer_bytes=drive.max_transfer_bytes,
        firmware=drive.firmware,
        rating=DriveRating(interface="nvme" if drive.power_states else None),
    )


def merged(facts: DriveFacts, known: DriveFacts) -> DriveFacts:
    """What a drive says of itself, and what the catalogue knows of its model beside that."""
    stated = {tuple(fact.weights) for fact in facts.observations if fact.kind == "declared"}
    more = [
        fact
        for fact in known.observations
        if not (fact.kind == "declared" and tuple(fact.weights) in stated)
    ]
    return replace(
        known,
        observations=[*facts.observations, *more],
        caps_watts=facts.caps_watts or known.caps_watts,
        capacity_bytes=facts.capacity_bytes,
        max_transfer_bytes=facts.max_transfer_bytes or known.max_transfer_bytes,
        firmware=facts.firmware,
    )


def _xpoint(model: str, *, known: bool) -> bool | None:
    """Whether the memory is no flash: product lines of such drives say so in their names."""
    name = model.casefold()
    if "optane" in name or "low-latency" in name:
        return True
    return False if known else None


def _catalogue_observations(drive: Drive, *, xpoint: bool) -> Iterator[Observation]:
    seen: set[tuple[str, ...]] = set()
    for fact in drive.facts:
        measured = fact.metric in MEASURED_METRICS
        known = MEASURED_METRICS.get(fact.metric) or METRICS.get(fact.metric)
        if known is None or isinstance(fact.value, str) or fact.value <= 0:
            continue
        weights, kind = known
        if not measured:
            weights, kind = _write_condition(drive, fact.metric, weights, kind)
        if fact.metric == "measured_power_max" and _writes_draw_less(drive, float(fact.value)):
            weights = _READ
        key = (*weights, kind)
        if key in seen:  # the preferred figure comes first
            continue
        seen.add(key)
        unit, scale = _IN_SI.get(fact.unit, (fact.unit, 1.0))
        value = float(fact.value) * scale
        if kind == "rated_qd1":  # one request in flight: latency is the inverse of the rate
            unit, value = "ns", 1e9 / value
        used = FactUsed(name=fact.metric, value=value, unit=unit, source=fact.source)
        fact_seen = observation(weights, kind, used, measured=measured)
        if kind in LATENCY_KINDS:
            own = _own_latency_ns(
                used.value, weights, sata=drive.interface == "sata", xpoint=xpoint
            )
            fact_seen = replace(fact_seen, log_value=math.log(own))
        yield fact_seen


def _write_condition(
    drive: Drive, metric: str, weights: Mapping[str, float], kind: str
) -> tuple[Mapping[str, float], str]:
    """What a rated figure of random writes tells of, where its name states no condition.

    Sheets of the data centre rate writes of a drive that has been written full; those of consumer
    drives name what the cache takes.
    """
    if not metric.startswith("random_write_") or metric.endswith(("_steady", "_burst", "qd1_iops")):
        return weights, kind
    if metric.endswith("qd16_iops"):
        return weights, kind
    if drive.drive_class in ("datacentre", "industrial"):
        return _STEADY_WRITES, "rated_steady_write"
    return _only("write_random_operations_per_second"), "rated_up_to"


def _qlc(drive: Drive, stated: str | None) -> bool | None:
    cell = cell_named(stated, drive.model)
    return None if cell == "unknown" and stated is None else cell == "QLC"


def _writes_draw_less(drive: Drive, most_watts: float) -> bool:
    """Whether the most that a drive was seen to draw, W, must have been drawn while reading."""
    writing = drive.fact("measured_random_write_256k_qd64_power")
    return writing is not None and float(writing.value) < most_watts


def _own_latency_ns(
    stated_ns: float, weights: Mapping[str, float], *, sata: bool, xpoint: bool
) -> float:
    """A stated latency without the transfer of its 4 KiB, at its group's stated rate."""
    quantities = load_assumptions().quantities
    transfers = []
    for name in weights:
        rate = quantities[name.replace("latency_ns", "transfer_bytes_per_second")]
        log_rate = math.log(rate.centre) + rate.sata * sata + rate.xpoint * xpoint
        transfers.append(LATENCY_BYTES / math.exp(log_rate) * 1e9)
    return max(stated_ns - sum(transfers) / len(transfers), LEAST_OWN_SHARE * stated_ns)


def _declared(
    cap: float, active: float | None, idle: float | None, source: str
) -> Iterator[Observation]:
    """What the descriptor of PS0 says; active power equal to the cap, or absurd, says nothing."""
    yield _of("cap_watts", cap, "W", "max_power_ps0", source)
    if active is not None and 0.3 * cap < active < ACTIVE_BELOW_CAP * cap:
        used = FactUsed(name="declared_active_power_ps0", value=active, unit="W", source=source)
        yield observation(_ACTIVE, "declared_watts", used, measured=False)
    if idle is not None and 0.02 * cap < idle < cap:
        used = FactUsed(name="declared_idle_power_ps0", value=idle, unit="W", source=source)
        yield observation(_only("idle_watts"), "rated_idle", used, measured=False)


def _of(quantity: str, value: float, unit: str, name: str, source: str) -> Observation:
    used = FactUsed(name=name, value=float(value), unit=unit, source=source)
    return observation(_only(quantity), "declared", used, measured=False)


def _least_link(observations: list[Observation]) -> float:
    """Rate of the slowest link that an NVMe drive of unknown generation can have, bytes/s.

    Four lanes of the first generation, 3.0 at least, that carries what is rated: an assumption, for
    nothing says that the drive needs a faster one. Where nothing is rated, four lanes of PCIe 5.0,
    which no drive of the catalogue exceeds.
    """
    rates = ("read_sequential_bytes_per_second", "write_sequential_bytes_per_second")
    rated = [fact.fact.value for fact in observations if next(iter(fact.weights)) in rates]
    links = [4 * lane for generation, lane in LANE_BYTES_PER_SECOND.items() if generation >= 3]
    if not rated:
        return links[-1]
    return next((link for link in links if link >= max(rated)), links[-1])


def _link(drive: Drive) -> tuple[float, str] | None:
    """Rate of the link and its source; an NVMe drive that names no lanes has four."""
    if drive.interface == "sata":
        return SATA_BYTES_PER_SECOND, "Serial ATA, 6 Gbit/s"
    fact, lanes = drive.fact("pcie_generation"), drive.fact("pcie_lanes")
    if fact is None or isinstance(fact.value, str):
        return None
    count = LINK_LANES if lanes is None else int(float(lanes.value))
    return LANE_BYTES_PER_SECOND[int(fact.value)] * count, fact.source


def identified(drive: MeasuredDrive) -> DriveFacts:
    """Facts of a drive by its identify data, and by the catalogue where it knows the model."""
    known = catalogued(drive.model)
    if known is None:
        return facts_of_measured(drive, slug(drive.model))
    return merged(facts_of_measured(drive, known.id), facts_of(known))


def known_facts(name: str, measured: MeasuredDrive | None) -> DriveFacts:
    """Identify data and data sheet of a drive; one that nobody knows says nothing."""
    if measured is not None:
        facts = identified(measured)
        known = catalogued(name)
        return facts if known is None or facts.device == known.id else facts_of(known)
    known = catalogued(name)
    if known is not None and known.drive_class != "emulated":
        return facts_of(known)
    return DriveFacts(device=slug(name), model=name, sata=None, datacentre=None, xpoint=None)
