"""Surfaces of a drive that nobody measured, from its point in the prior."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import Hull, IntervalWidth, Surface, Tail
from iojoule.datasets.profile.evidence import CurveDoubt
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern
from iojoule.model.curve import log_smooth_max
from iojoule.model.fitting.tails import prior_tail
from iojoule.model.prior.document import CURVE
from iojoule.model.prior.posterior import Posterior

Floats = NDArray[np.float64]

KNOTS = np.arange(12.0, 21.0)
"""log2 of the request sizes at which curves are written down: 4 KiB to 1 MiB."""

FORM_SD = 0.15
"""Log sd of drives around the physical curve (`model.fitting.prior.curve_update`)."""

HOST_SD = 0.4
"""Log sd of the costs of a host that nobody measured (likewise)."""

FACTOR = 1.782
"""Standard deviations on each side of 90 %: Student's t with 12 degrees of freedom, the weight of
the stated spread (assumptions.toml, spread_drives)."""

TAIL_FORM_SD = {"p50": 0.15, "p99": 0.3, "p999": 0.5}
"""Log sd of a percentile around the tail law within one drive: what the law misses on the rows of
the 980 PRO and the 860 PRO once its factor fits the drive."""

LINK_SHARE = 0.95
"""Share of a link's rate that data can take: headers of PCIe packets of 256 bytes leave about
0.93 to 0.96 (PCI Express Base specification, transaction layer packets)."""

CAPACITY_SHARPNESS = 4.0
"""Of the bend between operations and bytes a second (`model.fitting.parameters`)."""


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
        unloaded_latency_ns=_digits(unloaded),
        capacity_operations_per_second=_digits(np.exp(capacity)),
        sharpness=_digits(np.full(len(KNOTS), np.exp(sharpness))),
        transfer_bytes_per_second=_digits(np.exp([transfer]))[0],
        access_unit_bytes=access_unit_bytes,
        relative_sd=0.5,
        tails=tails,
        residual=None,
        hulls={"none": Hull(normals=[], offsets=[], fixed=(None, None, None))},
        widths=[tail_width(posterior, operation, tail) for tail in tails],
        doubt=curve_doubt(mean, covariance),
    )


def prior_tail_of(posterior: Posterior, operation: str, name: str, knots: int = len(KNOTS)) -> Tail:
    """The tail law of other drives with this drive's expected factor on the excess."""
    law = prior_tail(name, knots)
    if name == "p50":
        return law
    factor = posterior.value(f"{operation}_tail")
    return law.model_copy(
        update={
            "intrinsic": _digits(np.array([factor * law.intrinsic]))[0],
            "collision": _digits(factor * np.array(law.collision)),
        }
    )


def tail_width(posterior: Posterior, operation: str, tail: Tail, *, rows: int = 0) -> IntervalWidth:
    """What a percentile's own doubt adds to the mean's: the factor's, and the law's within a drive.

    The excess moves the percentile by less than its own factor, so this errs on the wide side.
    `rows` that the law was learned on take from the factor's doubt: four weigh as the prior does.
    """
    between = 0.0 if tail.quantile == "p50" else posterior.sd(f"{operation}_tail")
    between /= math.sqrt(1.0 + rows / 4.0)
    return IntervalWidth(
        quantity=tail.quantile,
        region="outside",
        factor=FACTOR,
        floor_sd=_digits(np.hypot([between], TAIL_FORM_SD[tail.quantile]))[0],
        sd_per_octave=0.0,
        scores=0,
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
        unloaded_sd=_digits(first),
        capacity_sd=_digits(second),
        correlation=_digits(np.clip(both / (first * second), -1.0, 1.0)),
        sharpness_sd=_digits(np.sqrt(covariance[4:5, 4]))[0],
        host_sd=HOST_SD,
        form_sd=FORM_SD,
        factor=FACTOR,
    )


def _digits(values: Floats) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
