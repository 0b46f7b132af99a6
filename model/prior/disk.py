"""A hard disk that nobody measured: surfaces, watts and idle behaviour that its mechanics give.

The surfaces follow from `model.prior.disk_facts`, the watts from the share of the time that the arm
moves and that data pass the heads:

    P = P_idle + (P_seek - P_idle) seeks/s t_seek + (P_transfer - P_idle) bytes/s / rate,

which is the linear law of `model.evaluate.device_power` with t_seek (P_seek - P_idle) joules a
request to a random place and none for one that follows the last. Writes go to the disk's cache,
which sorts many of them: they are placed as with a full queue whatever the host keeps in flight.

What a SATA SSD that nobody watched in its gaps does there: its link may sleep (ALPM).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from iojoule.datasets.catalogue import Fact
from iojoule.datasets.links import NCQ_DEPTH, SATA_BYTES_PER_SECOND
from iojoule.datasets.profile import (
    DevicePower,
    Hull,
    IdleBehaviour,
    IntervalWidth,
    LadderEntry,
    LinkPower,
    MixedEffect,
    Parameter,
    ResidualTable,
    Standby,
    Surface,
    Tail,
)
from iojoule.datasets.profile.drive import CurveDoubt, FactUsed
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern
from iojoule.model.evaluate import sata_link
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.device_power import PARAMETERS
from iojoule.model.evaluate.idle_gaps import REST_SECONDS
from iojoule.model.evaluate.surface import log_smooth_max
from iojoule.model.prior.disk_facts import (
    QUEUE_EXPONENT,
    SETTLE_SECONDS,
    DiskFacts,
    Known,
    positioning_quantiles,
    queued_share,
    rotation_seconds,
)
from iojoule.model.prior.document import number, six_digits
from iojoule.model.prior.surfaces import CAPACITY_SHARPNESS, FACTOR, FORM_SD, HOST_SD, LINK_SHARE

KNOTS = np.arange(12.0, 25.0)
"""log2 of the request sizes at which curves are written down: 4 KiB to 16 MiB."""

DEPTHS, JOBS = np.arange(10.0), np.arange(6.0)
"""log2 of depths and jobs at which the queueing of a single arm is written down."""

WHOLE_REQUEST_BYTES = 2**30
"""A request that the block layer splits lies in one piece: its parts need one positioning, so that
it counts as one command."""

READ_AHEAD_BYTES = 2**20
"""What a disk reads or writes of one sequential stream before it turns to another one: assumption,
about a track."""

WRITE_QUEUE = 64.0
"""Writes among which the cache picks the next one; more than commands can be queued: assumption,
about a third of a cache of 64 MiB in requests of 64 KiB and below."""

EXPONENT_SD = 0.05
"""Of `model.prior.disk_facts.QUEUE_EXPONENT`: firmware differs."""

OVERHEAD_SECONDS = (6e-5, 0.5)
"""Of a command that the cache answers, and log sd: assumption, a SATA frame exchange and
firmware."""


def disk_surfaces(disk: DiskFacts, source: str) -> list[Surface]:
    """The four surfaces with their doubt; evidence is the data sheet."""
    return [
        _surface(disk, operation, pattern, source)
        for operation in (Operation.READ, Operation.WRITE)
        for pattern in (Pattern.RANDOM, Pattern.SEQUENTIAL)
    ]


@dataclass(frozen=True)
class _Service:
    """Seconds that one request takes the disk, by size; shape (knots,).

    Attributes:
        positioning: Seek and rotation of a single command; 0 where requests follow each other.
        transfer: Under the heads.
        answer: Least time that the host waits for an answer of the cache and the link.
        queue: Commands that the disk chooses among whatever the host does.
    """

    positioning: float
    transfer: Floats
    answer: Floats
    queue: float


def _service(disk: DiskFacts, operation: Operation, pattern: Pattern) -> _Service:
    size = np.exp2(KNOTS)
    overhead = OVERHEAD_SECONDS[0] + size / (LINK_SHARE * SATA_BYTES_PER_SECOND)
    writes = operation is Operation.WRITE
    seek = disk.write_seek if writes else disk.seek
    positioning = 0.0
    if pattern is Pattern.RANDOM:
        positioning = seek.value + rotation_seconds(disk.rpm.value)
    return _Service(positioning, size / disk.mean_rate, overhead, WRITE_QUEUE if writes else 1.0)


def _surface(
    disk: DiskFacts,
    operation: Literal[Operation.READ, Operation.WRITE],
    pattern: Pattern,
    source: str,
) -> Surface:
    service = _service(disk, operation, pattern)
    least = service.queue**-QUEUE_EXPONENT if service.queue > 1.0 else 1.0
    most = min(least, float(queued_share(np.array([float(NCQ_DEPTH)]))[0]))
    if pattern is Pattern.RANDOM:
        unloaded = service.positioning * least + service.transfer
        capacity = 1.0 / (service.positioning * most + service.transfer)
    else:
        unloaded, capacity = service.answer, 1.0 / service.transfer
    return Surface(
        operation=operation,
        pattern=pattern,
        evidence=Evidence.DATASHEET,
        source=source,
        log2_request_bytes=KNOTS.tolist(),
        unloaded_latency_ns=six_digits(1e9 * unloaded),
        capacity_operations_per_second=six_digits(capacity),
        sharpness=[CAPACITY_SHARPNESS] * len(KNOTS),
        transfer_bytes_per_second=six_digits([disk.mean_rate])[0],
        access_unit_bytes=4096,
        relative_sd=0.3,
        tails=_tails(disk, operation, pattern),
        residuals=[_queueing(disk, service, unloaded, capacity, pattern)],
        hulls={"none": Hull(normals=[], offsets=[], fixed=(None, None, None))},
        widths=[
            IntervalWidth(
                quantity=name,
                region="outside",
                factor=FACTOR,
                floor_sd=sd,
                sd_per_octave=0.0,
                scores=0,
            )
            for name, sd in TAIL_SD.items()
        ],
        doubt=_doubt(disk, service, operation, pattern, most),
    )


def _queueing(
    disk: DiskFacts, service: _Service, unloaded: Floats, capacity: Floats, pattern: Pattern
) -> ResidualTable:
    """What one arm makes of several requests, beside the curve of many dies.

    Random: N requests in flight take N (positioning queued_share(N) + transfer). Several sequential
    streams: the arm goes from one to the next after `READ_AHEAD_BYTES`.
    """
    size = np.exp2(KNOTS)
    depth, jobs = DEPTHS[:, None, None], JOBS[None, :, None]
    flying = np.exp2(depth + jobs)
    if pattern is Pattern.RANDOM:
        share = np.minimum(queued_share(flying), service.queue**-QUEUE_EXPONENT)
        seconds = flying * (service.positioning * share + service.transfer)
    else:
        arm = disk.seek.value + rotation_seconds(disk.rpm.value)
        chunk = np.maximum(size, READ_AHEAD_BYTES)
        between = np.where(jobs > 0, arm * queued_share(np.exp2(jobs)) * size / chunk, 0.0)
        seconds = np.exp(
            log_smooth_max(
                np.log(service.answer),
                np.log(flying * (service.transfer + between)),
                CAPACITY_SHARPNESS,
            )
        )
    curve = log_smooth_max(np.log(unloaded), np.log(flying / capacity), CAPACITY_SHARPNESS)
    beside = np.log(seconds) - curve
    return ResidualTable(
        log2_queue_depth=DEPTHS.tolist(),
        log2_jobs=JOBS.tolist(),
        log2_request_bytes=KNOTS.tolist(),
        paths=["any"],
        values={"latency": [round(float(value), 4) for value in beside.ravel()]},
    )


Quantile = Literal["p50", "p99", "p999"]

TAIL_SD: dict[Quantile, float] = {"p50": 0.15, "p99": 0.35, "p999": 0.5}
"""Log sd of a percentile around the law below."""

FAR_TAIL: dict[Quantile, tuple[float, float]] = {"p99": (0.99, 1.0), "p999": (0.999, 2.0)}
"""Level of a percentile, and its excess over the mean for each other command that the disk may take
first, in single services. Alone it follows from the mechanics. Shortest access time first leaves
far requests waiting: assumption, three times the mean at depth 32."""

SEQUENTIAL_TAIL: dict[Quantile, float] = {"p99": 0.5, "p999": 1.2}
"""Log of the percentile over the mean: tracks and heads change on the way (assumption)."""


def _tails(disk: DiskFacts, operation: Operation, pattern: Pattern) -> list[Tail]:
    seek = disk.write_seek if operation is Operation.WRITE else disk.seek
    mean = seek.value + rotation_seconds(disk.rpm.value)

    def tail(name: Quantile, intrinsic: float, each: float | None) -> Tail:
        return Tail(
            quantile=name,
            intrinsic=intrinsic,
            collision=[] if each is None else [each] * len(KNOTS),
            exponent=1.0,
            saturation=NCQ_DEPTH**QUEUE_EXPONENT * 8.0,
            host_damping=0.0,
        )

    posterior = [tail("p50", -0.02, None)]
    for name in FAR_TAIL:
        if pattern is Pattern.RANDOM:
            level, each = FAR_TAIL[name]
            far = positioning_quantiles(
                disk.track_to_track.value, seek.value, disk.rpm.value, np.array([level])
            )
            posterior.append(tail(name, float(far[0]) / mean - 1.0, each))
        else:
            posterior.append(tail(name, SEQUENTIAL_TAIL[name], None))
    return posterior


def _doubt(
    disk: DiskFacts, service: _Service, operation: Operation, pattern: Pattern, most: float
) -> CurveDoubt:
    """Standard deviations of both ends of the curve from those of the facts, shape (knots,)."""
    seek = disk.write_seek if operation is Operation.WRITE else disk.seek
    if pattern is Pattern.RANDOM:
        turn = rotation_seconds(disk.rpm.value)
        arm = service.positioning - turn
        rows = []
        for share in (1.0 if service.queue == 1.0 else most, most):
            whole = share * service.positioning + service.transfer
            rows.append(
                np.stack(
                    [
                        share * arm / whole * seek.sd,
                        share * turn / whole * disk.rpm.sd,
                        service.transfer / whole * disk.outer_rate.sd,
                        share
                        * service.positioning
                        / whole
                        * EXPONENT_SD
                        * math.log(max(service.queue, NCQ_DEPTH if share == most else 1.0)),
                    ]
                )
            )
        first, second = rows
    else:
        first = np.full((1, len(KNOTS)), OVERHEAD_SECONDS[1])
        second = np.full((1, len(KNOTS)), 0.0)
    unloaded = np.sqrt((first**2).sum(axis=0))
    capacity = np.sqrt((second**2).sum(axis=0))
    if pattern is Pattern.SEQUENTIAL:
        capacity = np.full(len(KNOTS), disk.outer_rate.sd)
        together = np.zeros(len(KNOTS))
    else:
        # what slows a single request slows the queue as well
        together = -np.clip((first * second).sum(axis=0) / (unloaded * capacity), 0.0, 1.0)
    return CurveDoubt(
        unloaded_sd=six_digits(unloaded),
        capacity_sd=six_digits(capacity),
        correlation=six_digits(together),
        sharpness_sd=0.0,
        host_sd=HOST_SD,
        form_sd=FORM_SD,
        factor=FACTOR,
    )


def disk_power(disk: DiskFacts, source: str) -> DevicePower:
    """The law with its covariance; evidence is the data sheet."""
    idle, rate = disk.idle.value, disk.mean_rate
    arm = disk.seek.value
    settling = disk.write_seek.value
    risen = max(disk.seek_watts.value - idle, 0.05 * idle)
    # sorted writes move the arm for as little of their time as a full queue does
    settling *= WRITE_QUEUE**-QUEUE_EXPONENT
    reading = max(disk.read_watts.value - idle, 0.05 * idle)
    writing = max(disk.write_watts.value - idle, 0.05 * idle)
    values = [idle, reading / rate, risen * arm, writing / rate, risen * settling, 0.0]
    sds = [
        idle * disk.idle.sd,
        values[1] * 0.4,
        values[2] * 0.4,
        values[3] * 0.4,
        values[4] * 0.4,
        0.0,
    ]
    units = ("W", "J/B", "J", "J/B", "J", "W")
    most = idle + max(risen, reading, writing)
    return DevicePower(
        parameters=[
            number(name, value, sd, unit, source)
            for name, value, sd, unit in zip(PARAMETERS, values, sds, units, strict=True)
        ],
        covariance=np.diag(np.square(sds)).tolist(),
        idle_watts=[_watts("idle_watts_ps0", disk.rest)],
        cap_watts=[six_digits([most])[0]],
        peak_watts=number("peak_watts", most, 0.15 * most, "W", source),
        measured_read_operations_per_second_max=0.0,
        measured_bytes_per_second_max=0.0,
        relative_sd=0.05,
        condition="nobody measured this drive's power: from its data sheet and mechanics",
    )


def disk_idle(disk: DiskFacts, *, sata: bool) -> IdleBehaviour:
    """What the disk does when no request comes."""
    settle = Known(*SETTLE_SECONDS, None, "from the last request to active idle")
    return IdleBehaviour(
        settle_seconds=_known("settle_seconds", settle, "s"),
        wake_seconds=number("wake_seconds", 0.0, 0.0, "s", "spinning, it is ready"),
        link=LinkPower(
            slumber_watts=number(
                "slumber_watts",
                *sata_link.disk_slumber_watts(disk.rest.value),
                "W",
                sata_link.SOURCE,
            ),
            exit_seconds=number("exit_seconds", *sata_link.EXIT_SECONDS, "s", sata_link.SOURCE),
        )
        if sata
        else None,
        standby=Standby(
            watts=_watts("standby_watts", disk.standby),
            entry_seconds=_known("entry_seconds", disk.spin_down_seconds, "s"),
            exit_seconds=_known("exit_seconds", disk.spin_up_seconds, "s"),
            spin_up_watts=_known("spin_up_watts", disk.spin_up_watts, "W"),
            cycles_rated=_known("cycles_rated", disk.cycles, "1"),
        ),
    )


def disk_mixes() -> list[MixedEffect]:
    """Mixes of a single arm: random ones take turns, sequential ones become random in part."""
    why = "assumption: a single arm"
    return [
        MixedEffect(
            pattern=pattern,
            latency_factor=number("latency_factor", factor, sd, "1", why),
            tail_factor=number("tail_factor", 1.3, 0.4, "1", why),
        )
        for pattern, factor, sd in ((Pattern.RANDOM, 1.0, 0.2), (Pattern.SEQUENTIAL, 3.0, 0.5))
    ]


_UNITS = {
    "rpm": "rpm",
    "seek": "s",
    "write_seek": "s",
    "track_to_track": "s",
    "outer_rate": "bytes/s",
    "idle": "W",
    "seek_watts": "W",
    "read_watts": "W",
    "write_watts": "W",
    "standby": "W",
    "spin_up_seconds": "s",
    "spin_up_watts": "W",
    "spin_down_seconds": "s",
    "cycles": "1",
}

_NEXT = {
    "rpm": "random reads of 4 KiB at depth 1",
    "seek": "random reads of 4 KiB at depth 1",
    "write_seek": "random writes of 4 KiB at depth 1",
    "track_to_track": "random reads within a small part of the disk",
    "outer_rate": "sequential reads of 1 MiB",
    "idle": "ten minutes idle with a power sensor (iojoule measure characterise)",
    "standby": "ten minutes in standby (hdparm -y) with a power sensor",
    "spin_up_seconds": "a read after `hdparm -y`, timed",
    "spin_up_watts": "a read after `hdparm -y`, with a power sensor",
    "spin_down_seconds": "`hdparm -y`, with a power sensor",
    "cycles": "rated starts and stops in the disk's data sheet",
}


def disk_entries(disk: DiskFacts) -> list[LadderEntry]:
    """One entry a quantity: its value, its interval and the fact that told it."""
    entries = []
    for name, unit in _UNITS.items():
        known: Known = getattr(disk, name)
        fact = known.fact
        used = []
        if fact is not None:
            used = [
                FactUsed(
                    name=fact.metric, value=float(fact.value), unit=fact.unit, source=fact.source
                )
            ]
        entries.append(
            LadderEntry(
                quantity=f"disk_{name}",
                rung="datasheet",
                evidence=Evidence.DATASHEET if fact is not None else Evidence.ASSUMED,
                unit=unit,
                value=six_digits([known.value])[0],
                relative_half_width=six_digits([FACTOR * known.sd])[0],
                facts=used,
                next=_NEXT.get(name, "random reads and writes with a power sensor"),
            )
        )
    return entries


def _watts(name: str, known: Known) -> Parameter:
    """Watts with their sd in watts."""
    return number(name, known.value, known.value * known.sd, "W", known.source)


def _known(name: str, known: Known, unit: str) -> Parameter:
    """A quantity with its log sd."""
    return number(name, known.value, known.sd, unit, known.source)


STATED_SD = 0.15
"""Log sd of a published Slumber power: of another drive of the model, and read off a figure."""


def sata_idle(idle_watts: Parameter, slumber: Fact | None) -> IdleBehaviour:
    """Gaps of a SATA SSD.

    Args:
        idle_watts: With the link awake.
        slumber: What the drive draws in Slumber, where somebody published it.
    """
    share, log_sd = sata_link.SLUMBER_SHARE
    watts, source = share * idle_watts.value, sata_link.SOURCE
    if slumber is not None:
        watts, log_sd, source = float(slumber.value), STATED_SD, slumber.source
    watts = min(watts, idle_watts.value)

    return IdleBehaviour(
        settle_seconds=number(
            "settle_seconds", REST_SECONDS, 0.5, "s", "assumption: as the 980 PRO (000 5.9 F13)"
        ),
        wake_seconds=number(
            "wake_seconds", 0.0, 0.0, "s", "assumption: none while the link is awake"
        ),
        link=LinkPower(
            slumber_watts=number("slumber_watts", watts, log_sd * watts, "W", source),
            exit_seconds=number("exit_seconds", *sata_link.EXIT_SECONDS, "s", sata_link.SOURCE),
        ),
    )
