"""The host's settings in a question: governor, frequency, turbo, sleep states, NUMA nodes.

They travel as one array of shape (n, 6), a column each, NaN where nothing is said: then the host
is set as where the profile's paths and power were found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import HostOperation
from iojoule.model.columns import left_out

Floats = NDArray[np.float64]

GOVERNORS = ("performance", "powersave", "userspace", "ondemand", "conservative", "schedutil")
"""Governors of Linux (Documentation/admin-guide/pm/cpufreq.rst); a cell holds the index."""

HOST = (
    "cpu_governor",
    "cpu_frequency_max_hertz",
    "cstate_limit",
    "turbo_enabled",
    "job_numa_node",
    "device_numa_node",
)
"""Fields that set the host, in the order of the array's columns."""

GOVERNOR, FREQUENCY, CSTATE, TURBO, JOB_NODE, DEVICE_NODE = range(len(HOST))

_REMEDY = "find it with `iojoule measure host -o HOST.json` and say --host HOST.json"


def as_reference(rows: int) -> Floats:
    """Settings of which nothing is said, shape (rows, 6)."""
    return np.full((rows, len(HOST)), np.nan)


def row_of(stated: Mapping[str, Any]) -> Floats:
    """One row from field values; None and missing are NaN.

    Raises:
        InputError: A governor that Linux does not have.
    """
    return np.array([_cell(name, stated.get(name), 0) for name in HOST])


def read(column: Callable[[str, Any], NDArray[np.object_]], rows: int) -> Floats:
    """Settings of n questions from their columns.

    Raises:
        InputError: A governor that Linux does not have; names row and field.
    """
    found = as_reference(rows)
    for place, name in enumerate(HOST):
        cells = column(name, None)
        stated = ~left_out(cells)
        if not stated.any():
            continue
        if name != "cpu_governor":
            found[stated, place] = cells[stated].astype(np.float64)
            continue
        for row in np.flatnonzero(stated):
            found[row, place] = _cell(name, cells[row], int(row))
    return found


def _cell(name: str, value: Any, row: int) -> float:
    if value is None:
        return float("nan")
    if name != "cpu_governor":
        return float(value)
    if value not in GOVERNORS:
        raise InputError(
            f"row {row + 1}: cpu_governor: {value} is not one of {', '.join(GOVERNORS)}",
            field="cpu_governor",
        )
    return float(GOVERNORS.index(value))


def check(settings: Floats, operation: HostOperation | None, host_id: str) -> None:
    """Refuse settings of which the profile cannot say what they do; names row and field.

    Raises:
        InputError: The message names the remedy.
    """
    said = np.isfinite(settings)
    if not said.any():
        return
    clock = operation.clock if operation else None
    known = {
        GOVERNOR: clock is not None,
        FREQUENCY: clock is not None,
        TURBO: clock is not None,
        CSTATE: operation is not None and bool(operation.idle_states),
        JOB_NODE: operation is not None and operation.numa is not None,
    }
    for place, answers in known.items():
        bad = said[:, place] & (not answers)
        if place == JOB_NODE:  # the drive's own node costs nothing, whatever the host
            bad &= settings[:, JOB_NODE] != settings[:, DEVICE_NODE]
        if bad.any():
            raise _unknown(int(np.argmax(bad)), HOST[place], host_id)
    if clock is not None:
        low = said[:, FREQUENCY] & (settings[:, FREQUENCY] < 0.999 * clock.minimum_hertz.value)
        if low.any():
            row = int(np.argmax(low))
            raise InputError(
                f"row {row + 1}: cpu_frequency_max_hertz: {settings[row, FREQUENCY]:g} is below "
                f"the {clock.minimum_hertz.value:g} Hz that the host {host_id} offers at the least",
                field="cpu_frequency_max_hertz",
            )


def _unknown(row: int, name: str, host_id: str) -> InputError:
    return InputError(
        f"row {row + 1}: {name}: the profile does not know what this does on the host {host_id}; "
        f"leave it out, or {_REMEDY}",
        field=name,
    )
