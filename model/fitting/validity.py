"""Conditions behind measurements: where a fit of them is valid."""

from __future__ import annotations

from collections.abc import Sequence

from iojoule.datasets.profile import ValidFor
from iojoule.datasets.schema import Measurement

TEMPERATURE_MARGIN_CELSIUS = 5.0
"""A drive's sensor reads whole kelvins at one place of the board: two drives of one model side by
side differ by a few."""


def valid_for(stated: ValidFor, measurements: Sequence[Measurement]) -> ValidFor:
    """The conditions of the measurements; what the recipe states wins, what varied is all kept."""
    seen = [one.conditions for one in measurements]
    known: dict[str, object] = {
        "firmware": stated.firmware or sorted({one.firmware for one in seen if one.firmware}),
        "pcie_generation": stated.pcie_generation
        or sorted({one.pcie_generation for one in seen if one.pcie_generation}),
    }
    for field in ("aspm_policy", "power_loss_protection", "device_serial_hash"):
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
