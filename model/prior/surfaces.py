"""Surfaces of a drive that nobody measured, from its point in the prior."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from iojoule.datasets.profile import Hull, IntervalWidth, Surface, Tail
from iojoule.datasets.profile.drive import CurveDoubt
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.surface import log_smooth_max
from iojoule.model.prior.document import CURVE, six_digits
from iojoule.model.prior.posterior import Posterior

KNOTS = np.arange(12.0, 21.0)
"""log2 of the request sizes at which curves are written down: 4 KiB to 1 MiB."""

FORM_SD = 0.15
"""Log sd of drives around the physical curve (`model.fit.learn_prior`)."""

HOST_SD = 0.4
"""Log sd of the costs of a host that nobody measured (likewise)."""

FACTOR = 1.746
"""Standard deviations on each side of 90 %: Student's t with 16 degrees of freedom, the weight of
the stated spread (assumptions.toml, spread_drives: 12) and the median of the number of drives that
tell of a parameter of the curves (learned.json, drives: 4)."""

TAIL_FORM_SD = {"p50": 0.15, "p99": 0.25, "p999": 0.5}
"""Log sd of a percentile around the tail law within one drive: what the law misses on the rows of
reads of the 980 PRO, the 860 PRO and the DC500M once its factor fits the drive."""

PRIOR_SD = {"p50": 0.15, "p99": 0.5, "p999": 0.7}
"""Log sd of a percentile's ratio to the mean where only other drives show it: the spread of the
980 PRO's and 860 PRO's tail laws around the law below."""

SEQUENTIAL_WRITES_SD = 0.35
"""Log sd of a percentile of sequential writes over the mean: a buffer takes them, and they leave
nothing to collect (an assumption; random writes of a DC500M within its queue stay within 0.05)."""

STALLS_SD = {True: 0.4, False: 1.1}
"""Log sd of that of random writes, by class: an assumption. Erasing a block takes some 3 to 10 ms,
30 to 100 times the mean of a shallow write: where one write in a hundred meets it, the 99th
percentile is that much longer, else not at all. Consumer drives promise nothing about it; those of
the data centre erase in slices (quality of service is on their data sheets)."""

SATA_COMMANDS = 32
"""Commands that a SATA drive holds at once (Serial ATA, native command queuing)."""

HOST_QUEUE_FACTOR = {"p50": 1.0, "p99": 3.5, "p999": 3.5}
"""Percentile over the mean where more than those are in flight, over that where the drive holds
all: the rest wait in the host's queue, which serves some jobs long before others. About the
geometric mean of the DC500M's and the 860 PRO's rows, two drives behind one host adapter
(sata_ssd_fio_grids); that of p99 stands for p99.9."""

HOST_QUEUE_SD = 1.0
"""Log sd of that factor: the queue's fairness decides. The 99th percentile of those rows is a
quarter to 45 times the mean, for one drive and one request size."""

LINK_SHARE = 0.95
"""Share of a link's rate that data can take: headers of PCIe packets of 256 bytes leave about
0.93 to 0.96 (PCI Express Base specification, transaction layer packets)."""

CAPACITY_SHARPNESS = 4.0
"""Of the bend between operations and bytes a second (`model.fit.performance`)."""


def curve_parameters(posterior: Posterior, flow: str, link: float | None) -> tuple[Floats, Floats]:
    """Log parameters in the order of CURVE within the link, and their covariance (5, 5)."""
    mean, covariance = posterior.part([f"{flow}_{name}" for name in CURVE])
    if link is not None:
        mean = mean.copy()
        mean[3] = min(mean[3], np.log(LINK_SHARE * link))
    return mean, covariance


def prior_surface(
    posterior: Posterior, flow: str, link: float | None, source: str, access_unit_bytes: int = 4096
) -> Surface:
    """The surface of one operation and pattern with its doubt; evidence is the data sheet."""
    operation, pattern = flow.split("_")
    mean, covariance = curve_parameters(posterior, flow, link)
    size = np.exp2(KNOTS)
    latency, transfer, operations, rate, sharpness = mean
    unloaded = np.exp(latency) + size / np.exp(transfer) * 1e9
    capacity = -log_smooth_max(
        np.full_like(size, -operations), np.log(size) - rate, CAPACITY_SHARPNESS
    )
    tails = [prior_tail_of(posterior, operation, name) for name in ("p50", "p99", "p999")]
    return Surface(
        operation=Operation(operation),  # type: ignore[arg-type]
        pattern=Pattern(pattern),
        evidence=Evidence.DATASHEET,
        source=source,
        log2_request_bytes=KNOTS.tolist(),
        unloaded_latency_ns=six_digits(unloaded),
        capacity_operations_per_second=six_digits(np.exp(capacity)),
        sharpness=six_digits(np.full(len(KNOTS), np.exp(sharpness))),
        transfer_bytes_per_second=six_digits(np.exp([transfer]))[0],
        access_unit_bytes=access_unit_bytes,
        relative_sd=0.5,
        tails=tails,
        hulls={"none": _queue_hull(posterior)},
        widths=[tail_width for tail in tails for tail_width in tail_widths(posterior, flow, tail)],
        doubt=curve_doubt(mean, covariance),
    )


def prior_tail_of(posterior: Posterior, operation: str, name: str, knots: int = len(KNOTS)) -> Tail:
    """The tail law of other drives with this drive's expected factor on the excess."""
    law = prior_tail(name, knots)
    if name == "p50":
        return law
    factor = posterior.value(f"{operation}_tail")
    queue: dict[str, float] = {}
    if _is_sata(posterior):
        queue = {"queue_commands": SATA_COMMANDS, "queue_factor": HOST_QUEUE_FACTOR[name]}
    return law.model_copy(
        update={
            "intrinsic": six_digits(np.array([factor * law.intrinsic]))[0],
            "collision": six_digits(factor * np.array(law.collision)),
            **queue,
        }
    )


def _is_sata(posterior: Posterior) -> bool:
    return posterior.share("sata") > 0.5


def tail_widths(
    posterior: Posterior, flow: str, tail: Tail, *, rows: int = 0
) -> list[IntervalWidth]:
    """What a percentile's own doubt adds to the mean's: the law's within a drive, and its factor's.

    Inside is where a SATA drive holds all commands in flight; other drives hold tens of thousands.

    Args:
        posterior: What is expected of the drive.
        flow: Operation and pattern.
        tail: The law.
        rows: Rows that the law was learned on; four weigh as the prior of its factor does.
    """
    form = np.array([TAIL_FORM_SD[tail.quantile]])
    between = 0.0
    if tail.quantile != "p50":
        between = posterior.sd(f"{flow.split('_')[0]}_tail") / math.sqrt(1.0 + rows / 4.0)
        form = np.hypot(form, _stalls_sd(posterior, flow) / math.sqrt(1.0 + rows / 4.0))
    outside = np.maximum(form, HOST_QUEUE_SD) if _is_sata(posterior) else form
    regions: tuple[tuple[Literal["inside", "outside"], Floats], ...] = (
        ("inside", form),
        ("outside", outside),
    )
    return [
        IntervalWidth(
            quantity=tail.quantile,
            region=region,
            factor=FACTOR,
            floor_sd=six_digits(floor)[0],
            excess_sd=six_digits(np.array([between]))[0],
            sd_per_octave=0.0,
            scores=0,
        )
        for region, floor in regions
    ]


def _stalls_sd(posterior: Posterior, flow: str) -> float:
    """Log sd of what interrupts writes."""
    if not flow.startswith("write"):
        return 0.0
    if flow.endswith("sequential"):
        return SEQUENTIAL_WRITES_SD
    share = posterior.share("datacentre")
    share += (1.0 - share) * posterior.share("xpoint")  # erases nothing
    return math.sqrt(share * STALLS_SD[True] ** 2 + (1.0 - share) * STALLS_SD[False] ** 2)


def _queue_hull(posterior: Posterior) -> Hull:
    """Where the drive holds all commands in flight: log2(depth) + log2(jobs) up to its queue."""
    if not _is_sata(posterior):
        return Hull(normals=[], offsets=[], fixed=(None, None, None))
    return Hull(
        normals=[(1.0, 1.0, 0.0)], offsets=[math.log2(SATA_COMMANDS)], fixed=(None, None, None)
    )


def curve_doubt(mean: Floats, covariance: Floats, knots: Floats = KNOTS) -> CurveDoubt:
    """Standard deviations at the knots from the covariance of the five log parameters."""
    size = np.exp2(knots)
    latency, transfer, operations, rate, _ = mean
    own = np.exp(latency) / (np.exp(latency) + size / np.exp(transfer) * 1e9)
    counted = 1.0 / (
        1.0 + np.exp(np.clip(CAPACITY_SHARPNESS * (operations + np.log(size) - rate), -50, 50))
    )
    nothing = np.zeros_like(size)
    unloaded = np.stack([own, own - 1.0, nothing, nothing, nothing], axis=1)
    capacity = np.stack([nothing, nothing, counted, 1.0 - counted, nothing], axis=1)
    both = np.einsum("ni,ij,nj->n", unloaded, covariance, capacity)
    first = np.sqrt(np.einsum("ni,ij,nj->n", unloaded, covariance, unloaded))
    second = np.sqrt(np.einsum("ni,ij,nj->n", capacity, covariance, capacity))
    return CurveDoubt(
        unloaded_sd=six_digits(first),
        capacity_sd=six_digits(second),
        correlation=six_digits(np.clip(both / (first * second), -1.0, 1.0)),
        sharpness_sd=six_digits(np.sqrt(covariance[4:5, 4]))[0],
        host_sd=HOST_SD,
        form_sd=FORM_SD,
        factor=FACTOR,
    )


def prior_tail(name: str, sizes: int) -> Tail:
    """The tail law of a drive whose percentile was never observed.

    Between the laws fitted on the 980 PRO's and the 860 PRO's random reads.
    """
    if name == "p50":
        return Tail(
            quantile="p50",
            intrinsic=-0.06,
            collision=[],
            exponent=1.0,
            saturation=1.0,
            host_damping=0.0,
        )
    return Tail(
        quantile="p99" if name == "p99" else "p999",
        intrinsic=0.3 if name == "p99" else 0.8,
        collision=[0.3 if name == "p99" else 0.6] * sizes,
        exponent=0.65,
        saturation=5.0,
        host_damping=0.5,
    )


def prior_widths(name: str, latency_sd: float) -> list[IntervalWidth]:
    """Widths that go with `prior_tail`: a stated prior, no scores."""
    spread = float(np.hypot(PRIOR_SD[name], latency_sd))
    return [
        IntervalWidth(
            quantity=name,  # type: ignore[arg-type]
            region=region,
            factor=NORMAL_90,
            floor_sd=round(spread, 4),
            sd_per_octave=0.0 if region == "inside" else 0.1,
            scores=0,
        )
        for region in ("inside", "outside")
    ]
