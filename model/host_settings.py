"""The host's settings in a question: of its processors, and of how a SATA drive may rest.

Governor, frequency, turbo, sleep states and NUMA nodes; the policy of the drive's link, and the
timer after which a disk stops its platters.

They travel as one array of shape (n, 8), a column each, NaN where nothing is said: then the host
is set as where the profile's paths and power were found, the link awake and the disk spinning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, HostOperation
from iojoule.model.columns import left_out
from iojoule.model.sata_link import POLICIES

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
    "link_power_policy",
    "standby_timer_seconds",
)
"""Fields that set the host, in the order of the array's columns."""

GOVERNOR, FREQUENCY, CSTATE, TURBO, JOB_NODE, DEVICE_NODE, LINK, STANDBY = range(len(HOST))

REST = (LINK, STANDBY)
"""Columns that say how the drive rests; the others set the processors."""

_WORDS: dict[str, tuple[str, ...]] = {
    "cpu_governor": GOVERNORS,
    "link_power_policy": tuple(policy.value for policy in POLICIES),
}
"""Fields whose cells hold the index of a word."""

_REMEDY = "find it with `iojoule measure host -o HOST.json` and say --host HOST.json"


def as_reference(rows: int) -> Floats:
    """Settings of which nothing is said, shape (rows, 8)."""
    return np.full((rows, len(HOST)), np.nan)


def row_of(stated: Mapping[str, Any]) -> Floats:
    """One row from field values; None and missing are NaN.

    Raises:
        InputError: A word that Linux does not have.
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
        if name not in _WORDS:
            found[stated, place] = cells[stated].astype(np.float64)
            continue
        for row in np.flatnonzero(stated):
            found[row, place] = _cell(name, cells[row], int(row))
    return found


def _cell(name: str, value: Any, row: int) -> float:
    if value is None:
        return float("nan")
    words = _WORDS.get(name)
    if words is None:
        return float(value)
    if value not in words:
        raise InputError(
            f"row {row + 1}: {name}: {value} is not one of {', '.join(words)}", field=name
        )
    return float(words.index(value))


def check(settings: Floats, operation: HostOperation | None, host_id: str) -> None:
    """Refuse settings of which the profile cannot say what they do; names row and field.

    Raises:
        InputError: The message names the remedy.
    """
    said = np.isfinite(settings)
    if not said.any():
        return
    said[:, REST] = False
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


def check_rest(settings: Floats, profile: DeviceProfile) -> None:
    """Refuse ways to rest that this drive does not have; names row and field.

    Raises:
        InputError: Its interface has no such link, it is no disk, or the profile does not know.
    """
    said = np.isfinite(settings)
    said[:, STANDBY] &= settings[:, STANDBY] > 0  # a timer of 0 is switched off
    idle, name = profile.idle, profile.model_name
    if said[:, LINK].any() and (idle is None or idle.link is None):
        why = (
            "its profile does not know what its link saves; leave it out"
            if profile.interface == "sata"
            else f"it is attached by {profile.interface or 'an unknown interface'}; leave it out"
        )
        raise _impossible(said, LINK, f"only SATA links have one, and of {name} {why}")
    if said[:, STANDBY].any() and (idle is None or idle.standby is None):
        why = (
            "its profile does not know what standing still saves"
            if profile.is_disk
            else "it has no platters to stop"
        )
        raise _impossible(said, STANDBY, f"{name}: {why}; leave it out")


def _impossible(said: NDArray[np.bool_], place: int, why: str) -> InputError:
    row = int(np.argmax(said[:, place]))
    return InputError(f"row {row + 1}: {HOST[place]}: {why}", field=HOST[place])


def _unknown(row: int, name: str, host_id: str) -> InputError:
    return InputError(
        f"row {row + 1}: {name}: the profile does not know what this does on the host {host_id}; "
        f"leave it out, or {_REMEDY}",
        field=name,
    )
