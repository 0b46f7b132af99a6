"""Conditions and specimens behind measurements: where a fit is valid, and how specimens differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import ValidFor
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.fitting.recipe import Figure

TEMPERATURE_MARGIN_CELSIUS = 5.0
"""A drive's sensor reads whole kelvins at one place of the board: two drives of one model side by
side differ by a few."""

PRIOR_WEIGHT = 4.0
"""The stated difference between specimens weighs as much as so many specimens."""

LEAST_TWINS = 3
"""Configurations that a specimen must share with others to be compared."""


def valid_for(stated: ValidFor, measurements: Sequence[Measurement]) -> ValidFor:
    """The conditions of the measurements; what the recipe states wins, what varied is all kept."""
    seen = [one.conditions for one in measurements]
    known: dict[str, object] = {
        "firmware": stated.firmware or sorted({one.firmware for one in seen if one.firmware}),
        "pcie_generation": stated.pcie_generation
        or sorted({one.pcie_generation for one in seen if one.pcie_generation}),
    }
    for field in ("aspm_policy", "power_loss_protection"):
        values = {getattr(one, field) for one in seen}
        if getattr(stated, field) is None and len(values) == 1:
            known[field] = values.pop()
    degrees = [
        value
        for one in seen
        for value in (
            one.temperature_celsius_start,
            one.temperature_celsius_mean,
            one.temperature_celsius_max,
        )
        if value is not None
    ]
    if stated.temperature_celsius is None and degrees:
        known["temperature_celsius"] = (
            min(degrees) - TEMPERATURE_MARGIN_CELSIUS,
            max(degrees) + TEMPERATURE_MARGIN_CELSIUS,
        )
    return stated.model_copy(update=known)


def between_drives(stated: Figure, measurements: Sequence[Measurement]) -> Figure:
    """How specimens of one model differ: the stated prior, and what several serials show.

    Each specimen's mean log latency over the configurations that others ran too is compared; its
    variance meets a scaled inverse chi-squared prior around the stated one (Gelman et al.,
    Bayesian Data Analysis, section 3.2). One serial leaves the prior as it is.
    """
    by_configuration: dict[tuple[object, ...], dict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in measurements:
        serial, latency = one.conditions.device_serial_hash, one.observations.latency_mean_ns
        if serial is None or not latency:
            continue
        work, chosen = one.workload, one.configuration
        key = (
            work.operation, work.pattern, work.read_fraction, chosen.request_bytes,
            chosen.queue_depth, chosen.jobs, chosen.engine, chosen.completion, chosen.scheduler,
            chosen.power_state, one.conditions.host_id,
        )  # fmt: skip
        by_configuration[key][serial].append(math.log(latency))
    apart: dict[str, list[float]] = defaultdict(list)
    for specimens in by_configuration.values():
        if len(specimens) > 1:
            means = {serial: float(np.mean(values)) for serial, values in specimens.items()}
            middle = float(np.mean(list(means.values())))
            for serial, mean in means.items():
                apart[serial].append(mean - middle)
    shifts = [float(np.mean(values)) for values in apart.values() if len(values) >= LEAST_TWINS]
    if len(shifts) < 2:
        return stated
    scatter = sum((one - float(np.mean(shifts))) ** 2 for one in shifts)
    variance = (PRIOR_WEIGHT * stated.value**2 + scatter) / (PRIOR_WEIGHT + len(shifts) - 1)
    return Figure(
        value=float(f"{math.sqrt(variance):.6g}"),
        sd=0.0,
        unit="1",
        source=f"{len(shifts)} specimens beside the prior: {stated.source}",
        evidence=Evidence.MEASURED,
    )
