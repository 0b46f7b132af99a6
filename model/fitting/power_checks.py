"""Checking the power laws on what they did not see: larger requests, later seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DevicePower, WriteState
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation
from iojoule.model import device_power
from iojoule.model.fitting.performance import FittedSurface, fit_surface
from iojoule.model.fitting.power import fit_device_power, power_rows
from iojoule.model.fitting.recipe import DevicePowerRecipe
from iojoule.model.fitting.rows import rows_of
from iojoule.model.fitting.write_state import Series

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Misfit:
    """Errors of a group of predictions, relative."""

    name: str
    rows: int
    median: float
    largest: float
    bias: float

    @classmethod
    def of(cls, name: str, predicted: Floats, observed: Floats) -> Misfit:
        """Compare arrays of one shape."""
        error = predicted / observed - 1.0
        return cls(
            name,
            len(error),
            float(np.median(np.abs(error))),
            float(np.abs(error).max()),
            float(error.mean()),
        )


def watts(power: DevicePower, x: Floats) -> Floats:
    """Power of the law at PS0."""
    value, _ = device_power.active_watts(power, x, np.zeros(len(x), dtype=np.intp))
    return value


def larger_requests(
    measurements: list[Measurement],
    recipe: DevicePowerRecipe,
    surface: FittedSurface,
    limit_bytes: int = 524_288,
) -> list[Misfit]:
    """Fit read power up to `limit_bytes` and predict 1 to 2 MiB.

    Once with the measured throughput and once with the throughput predicted by a surface that
    never saw requests above the limit either.
    """
    reads = [
        one
        for one in measurements
        if one.workload.operation is Operation.READ
        and one.observations.device_power_watts is not None
    ]
    seen = [one for one in reads if one.configuration.request_bytes <= limit_bytes]
    tested = [one for one in reads if one.configuration.request_bytes >= 1 << 20]
    if len(seen) < 5 or not tested:
        return []
    transfer = surface.settings.max_transfer_bytes
    # published points of the full range would leak what lies beyond the limit
    own = recipe.model_copy(update={"points": []})
    power = fit_device_power(power_rows(seen, transfer, None), own)
    performance = [
        one
        for one in measurements
        if one.workload.operation is Operation.READ
        and one.workload.pattern == tested[0].workload.pattern
        and one.configuration.request_bytes <= limit_bytes
    ]
    fitted = fit_surface(
        rows_of(performance, host_cores=surface.settings.host_cores), surface.settings
    )
    rows = rows_of(tested, host_cores=surface.settings.host_cores)
    requests = rows.queue_depth * rows.jobs
    rate = requests / fitted.evaluate(rows)["latency"] * 1e9 * rows.request_bytes
    observed = np.array([one.observations.device_power_watts for one in tested], dtype=float)
    measured = np.array(
        [one.observations.throughput_bytes_per_second for one in tested], dtype=float
    )
    out = []
    for name, throughput in (("measured throughput", measured), ("predicted throughput", rate)):
        zero = np.zeros(len(tested))
        commands = throughput / np.minimum(rows.request_bytes, transfer)
        x = device_power.regressors(throughput, commands, zero, zero, zero)
        out.append(Misfit.of(f"power at 1 to 2 MiB, {name}", watts(power, x), observed))
    out.append(Misfit.of("throughput at 1 to 2 MiB, depth 1", rate, measured))
    return out


def series_watts(power: DevicePower, state: WriteState, series: Series) -> Floats:
    """Predict a write series from the bytes written alone, second by second."""
    full, over = state.cached_bytes.value, state.transition_bytes.value
    collecting = np.clip((series.bytes_written - full) / (over - full), 0.0, 1.0)
    zero = np.zeros(len(series.watts))
    operations = series.bytes_per_second / series.request_bytes
    return watts(
        power, device_power.regressors(zero, zero, series.bytes_per_second, operations, collecting)
    )


def energy_from_totals(
    power: DevicePower,
    state: WriteState,
    total_bytes: float,
    seconds: float,
    cached_bytes_per_second: float,
    request_bytes: float,
) -> float:
    """Energy in joules of writing `total_bytes` within `seconds` to a purged drive.

    The law is linear, so the energy needs only how long the drive collects: the time left after
    the cache has filled at its own rate.

    Args:
        power: The device-power law.
        state: Where the cache is full.
        total_bytes: Host bytes written.
        seconds: Duration.
        cached_bytes_per_second: Rate at which the cache takes these writes.
        request_bytes: Bytes a request.
    """
    filling = (state.cached_bytes.value + state.transition_bytes.value) / 2
    collecting = max(seconds - filling / cached_bytes_per_second, 0.0)
    if total_bytes <= filling:
        collecting = 0.0
    value = {parameter.name: parameter.value for parameter in power.parameters}
    return (
        value["base_watts"] * seconds
        + value["write_joules_per_byte"] * total_bytes
        + value["write_joules_per_operation"] * total_bytes / request_bytes
        + value["background_watts"] * collecting
    )
