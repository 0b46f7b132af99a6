"""The law of a drive's power with the measurements that it rests on: lines, bands and points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.api.power_law_answer import (
    Direction,
    Law,
    LawLine,
    LawMeasurement,
    LawPoint,
    PowerLaw,
)
from iojoule.datasets.profile import (
    DevicePower,
    DeviceProfile,
    PowerPoints,
)
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.quantities import NORMAL_90

Floats = NDArray[np.float64]

COMMAND_BYTES = (4096, 131072)
"""Sizes of the commands for which the law is drawn: an operation counts most, and a byte."""

NO_POINTS_BYTES_PER_SECOND = 1e9
"""How far a line goes in a direction in which nothing was measured."""

STEPS = 60

_COLUMN: dict[Direction, int] = {"read": 1, "write": 3}
_COLLECTING = 5

UNKNOWN = (
    "nobody measured or published the power of this drive, so no answer in watts is given; attach "
    "a power sensor, repeat the sweep, and fit again"
)


def power_law(profile: DeviceProfile) -> PowerLaw:
    """The law of a profile; a profile holds no measurement, but its residuals give them back."""
    power = profile.device_power
    return PowerLaw(
        device=profile.device,
        model_name=profile.model_name,
        profile_version=profile.profile_version,
        law=None if power is None else _law(profile, power),
        note=UNKNOWN if power is None else None,
        sources=profile.sources,
    )


def _law(profile: DeviceProfile, power: DevicePower) -> Law:
    points = profile.assessment.power if profile.assessment else None
    x, watts = measured(power, points)
    lines = [
        law_line(power, operation, fastest(x, operation), size, collecting=collecting)
        for operation in _COLUMN
        for size in COMMAND_BYTES
        for collecting in (False, True)
        if not collecting or _collects(x, operation, size)
    ]
    return Law(
        condition=power.condition,
        parameters=power.parameters,
        peak_watts=power.peak_watts,
        idle_watts=power.idle_watts,
        relative_sd=power.relative_sd,
        measured_bytes_per_second_max=power.measured_bytes_per_second_max,
        measured_read_operations_per_second_max=power.measured_read_operations_per_second_max,
        lines=lines,
        measurements=_measurements(x, watts, points),
        measurements_total=0 if points is None else points.total,
    )


def measured(law: DevicePower, points: PowerPoints | None) -> tuple[Floats, Floats]:
    """Regressors, shape (n, 6), and measured watts of the stored points."""
    if points is None or not points.watts:
        return np.zeros((0, 6)), np.zeros(0)
    x = device_power.regressors(
        np.array(points.read_bytes_per_second),
        np.array(points.read_operations_per_second),
        np.array(points.write_bytes_per_second),
        np.array(points.write_operations_per_second),
        np.array(points.collecting),
    )
    answer = device_power.active_value(law, x, np.array(points.power_state, dtype=np.intp))
    return x, answer * np.exp(points.watts)


def of_direction(x: Floats, operation: Direction) -> NDArray[np.bool_]:
    """Which points only read, or only write: a mixed run belongs to neither."""
    first = _COLUMN[operation]
    return np.asarray((x[:, first] > 0) & (x[:, 4 - first] == 0))


def fastest(x: Floats, operation: Direction) -> float:
    """How far a line goes: a little beyond the fastest point, in bytes a second."""
    own = of_direction(x, operation)
    return (
        float(x[own, _COLUMN[operation]].max() * 1.1) if own.any() else NO_POINTS_BYTES_PER_SECOND
    )


def _collects(x: Floats, operation: Direction, request_bytes: int) -> bool:
    collected = of_direction(x, operation) & (x[:, _COLLECTING] > device_power.FOLDING_SHARE)
    return operation == "write" and request_bytes == COMMAND_BYTES[0] and bool(collected.any())


def law_line(
    law: DevicePower, operation: Direction, most: float, request_bytes: int, *, collecting: bool
) -> LawLine:
    """The law for commands of one size, from rest to `most` bytes a second."""
    rate = np.linspace(0.0, most, STEPS)
    pair, none = (rate, rate / request_bytes), (np.zeros_like(rate), np.zeros_like(rate))
    rates = (*pair, *none) if operation == "read" else (*none, *pair)
    x = device_power.regressors(*rates, np.full_like(rate, float(collecting)))
    value, sd = device_power.active_watts(law, x, np.zeros(len(rate), dtype=np.intp))
    half = NORMAL_90 * sd
    order = list(Evidence)
    first = _COLUMN[operation]
    return LawLine(
        operation=operation,
        request_bytes=request_bytes,
        collecting=collecting,
        evidence=max((one.evidence for one in law.parameters[first : first + 2]), key=order.index),
        points=[
            LawPoint(
                bytes_per_second=float(one),
                operations_per_second=float(one / request_bytes),
                device_power_watts=float(middle),
                device_power_watts_low=float(middle - reach),
                device_power_watts_high=float(middle + reach),
            )
            for one, middle, reach in zip(rate, value, half, strict=True)
        ],
    )


def _measurements(x: Floats, watts: Floats, points: PowerPoints | None) -> list[LawMeasurement]:
    if points is None:
        return []
    out = []
    for row, one, size, state in zip(
        x, watts, points.request_bytes, points.power_state, strict=True
    ):
        read, write = bool(row[1] > 0), bool(row[3] > 0)
        total = float(row[1] + row[3])
        out.append(
            LawMeasurement(
                operation=None if read == write else "read" if read else "write",
                power_state=state,
                request_bytes=size,
                bytes_per_second=total,
                operations_per_second=total / size,
                collecting=float(row[_COLLECTING]),
                device_power_watts=float(one),
            )
        )
    return out
