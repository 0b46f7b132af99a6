"""Reading columns of questions: arrays, lists or one value for all rows, as numbers and codes.

How the work arrives and what was done to the drive before, from columns of questions.

The host's settings in a question: of its processors, and of how a SATA drive may rest.

Governor, frequency, turbo, sleep states and NUMA nodes; the policy of the drive's link, and the
timer after which a disk stops its platters.

They travel as one array of shape (n, 8), a column each, NaN where nothing is said: then the host
is set as where the profile's paths and power were found, the link awake and the disk spinning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, HostOperation
from iojoule.model.evaluate.bands import Codes, Floats
from iojoule.model.evaluate.sata_link import POLICIES


def refuse(bad: NDArray[np.bool_], field: str, values: Any, reason: str) -> None:
    """Refuse a column where `bad` is true anywhere, naming the first row."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"row {row + 1}: {field}: {values[row]} {reason}", field=field)


def read_column(given: Any, rows: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column as an array of n values, and which of them are left out (None, NaN).

    One value for all rows becomes a view without copies, which the readers below recognise.
    """
    if isinstance(given, np.ndarray) and given.dtype != object:
        values = given
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        values = np.empty(rows, dtype=object)
        values[:] = given
    else:
        cell = np.empty((), dtype=object)
        cell[()] = given
        values = np.broadcast_to(cell, (rows,))
    return values, left_out(values)


def filled(values: NDArray[Any], missing: NDArray[np.bool_], default: Any) -> NDArray[Any]:
    """The column with `default` where a value is missing."""
    if missing.all():
        return read_column(default, len(values))[0]
    if values.dtype != object and isinstance(default, int | float):
        return np.where(missing, default, values)
    return np.where(missing, np.array(default, dtype=object), values.astype(object))


def _is_constant(values: NDArray[Any]) -> bool:
    return values.strides == (0,) and len(values) > 0


def left_out(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value is None or NaN."""
    if _is_constant(values):
        value = values[0]
        return np.full(len(values), value is None or bool(value != value))
    if values.dtype == object:
        nothing = np.asarray(values == np.array(None, dtype=object), dtype=bool)
        return np.asarray(nothing | np.asarray(values != values, dtype=bool))
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.zeros(len(values), dtype=bool)


def codes_of(field: str, values: NDArray[Any], words: tuple[str, ...]) -> Codes:
    """Places in `words`."""
    if _is_constant(values):
        return np.full(len(values), codes_of(field, values[:1].copy(), words)[0], dtype=np.intp)
    codes = np.full(len(values), -1, dtype=np.intp)
    for code, word in enumerate(words):
        codes[values == word] = code
    refuse(codes < 0, field, values, f"is not one of {', '.join(words)}")
    return codes


def whole_numbers(field: str, values: NDArray[Any], low: float, high: float) -> Floats:
    """Whole numbers from `low` to `high`."""
    if _is_constant(values):
        return np.full(len(values), whole_numbers(field, values[:1].copy(), low, high)[0])
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        bad = np.array([not _is_number(value) for value in values])
        refuse(bad, field, values, "is not a number")
        raise
    with np.errstate(invalid="ignore"):
        bad = ~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)))
    refuse(bad, field, values, f"is not a whole number from {low:,.0f} to {high:,.0f}")
    return numbers


def optional_numbers(
    field: str, columns: Mapping[str, Any], rows: int, most: float = np.inf
) -> Floats:
    """A column of numbers from 0 to `most`, NaN where left out."""
    values, missing = read_column(columns.get(field), rows)
    if missing.all():
        return np.full(rows, np.nan)
    try:
        numbers = filled(values, missing, np.nan).astype(np.float64)
    except (TypeError, ValueError):
        bad = ~missing & np.array([not _is_number(value) for value in values])
        refuse(bad, field, values, "is not a number")
        raise
    upper = "" if most == np.inf else f" or above {most:g}"
    refuse((numbers < 0) | (numbers > most), field, values, f"is below 0{upper}")
    return numbers


def flags(field: str, columns: Mapping[str, Any], rows: int) -> Floats:
    """1 where true, 0 where false or left out."""
    values, missing = read_column(columns.get(field), rows)
    if missing.all():
        return np.zeros(rows)
    return np.asarray(filled(values, missing, False).astype(bool).astype(np.float64))


def numbers_or_nan(values: NDArray[Any]) -> Floats:
    """Numbers as they are, NaN where left out."""
    missing = left_out(values)
    if missing.all():
        return np.full(len(values), np.nan)
    return filled(values, missing, np.nan).astype(np.float64)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


P99_SIGMAS = 2.3263478740408408
"""Standard deviations from the median to the 99th percentile of a normal distribution."""


DEMANDS = ("demand_bytes_per_second", "demand_operations_per_second")
"""Columns that state a demand."""


def demanded_bytes(
    columns: Mapping[str, Any], rows: int, operation_bytes: Floats | float
) -> Floats:
    """Demanded bytes a second, NaN where no demand is stated.

    Args:
        columns: Field name to values.
        rows: Number of questions.
        operation_bytes: Bytes of an operation of the application.

    Raises:
        InputError: A demand is not above 0; names row and field.
    """
    stated = [numbers_or_nan(read_column(columns.get(name), rows)[0]) for name in DEMANDS]
    for name, values in zip(DEMANDS, stated, strict=True):
        refuse(values <= 0.0, name, values, "is no demand; it must be above 0")
    by_bytes, by_operations = stated
    return np.where(np.isnan(by_bytes), by_operations * operation_bytes, by_bytes)


def habits_of(
    columns: Mapping[str, Any], rows: int, operation_bytes: Floats | float
) -> dict[str, Floats]:
    """How the work arrives and what was done to the drive before, as fields of a frame.

    Where a gap and a demand are stated, what is demanded during a gap comes in one burst. Pauses
    for thinking make no bursts: each slot pauses by itself.

    Args:
        columns: Field name to values.
        rows: Number of questions.
        operation_bytes: Bytes of an operation of the application.

    Raises:
        InputError: An impossible value; the message names row and field.
    """
    gap, gap_log_sd = _gaps(columns, rows)
    burst = optional_numbers("burst_bytes", columns, rows)
    pause = optional_numbers("idle_gap_seconds_p50", columns, rows)
    pause[pause == 0] = np.nan
    in_a_gap = demanded_bytes(columns, rows, operation_bytes) * pause
    return {
        "fill_fraction": optional_numbers("fill_fraction", columns, rows, 1.0),
        "seconds_idle": np.nan_to_num(
            optional_numbers("seconds_since_last_write", columns, rows), nan=0.0
        ),
        "gap_seconds": gap,
        "gap_log_sd": gap_log_sd,
        "burst_bytes": np.where(burst > 0, burst, in_a_gap),
        "apst": flags("apst_enabled", columns, rows),
    }


def _gaps(columns: Mapping[str, Any], rows: int) -> tuple[Floats, Floats]:
    """Median gap in seconds, NaN where none is stated, and the sd of its logarithm."""
    gap = optional_numbers("idle_gap_seconds_p50", columns, rows)
    think = optional_numbers("think_time_ns", columns, rows) * 1e-9
    gap = np.where(np.isnan(gap), think, gap)
    gap[gap == 0] = np.nan
    long = optional_numbers("idle_gap_seconds_p99", columns, rows)
    refuse(
        np.isfinite(long) & ~(long >= gap),
        "idle_gap_seconds_p99",
        long,
        "needs a median gap that is not longer: state idle_gap_seconds_p50 or think_time_ns",
    )
    spread = np.log(np.where(np.isfinite(long), long, 1.0) / np.where(np.isfinite(long), gap, 1.0))
    return gap, spread / P99_SIGMAS


def background_state(columns: Mapping[str, Any], power_state: Codes) -> Codes:
    """Power state while the drive works on its own behalf; that of the run where none is said."""
    after = optional_numbers("post_write_power_state", columns, len(power_state), 31.0)
    return np.where(np.isnan(after), power_state, np.nan_to_num(after)).astype(np.intp)


def limited_states(
    profile: DeviceProfile, columns: Mapping[str, Any], power_state: Codes
) -> tuple[Codes, Floats]:
    """The states that stand for the limits of rows (`model.evaluate.power_limit`), and the limits.

    A limit of 0 is none, NaN is not said.

    Raises:
        InputError: A row has a limit and a power state below PS0, or one that no state stands for.
    """
    limit = optional_numbers("power_limit_watts", columns, len(power_state))
    limited = limit > 0
    if not limited.any():
        return power_state, limit
    refuse(
        limited & (power_state > 0),
        "power_limit_watts",
        limit,
        "W limit the drive at PS0 only; leave power_state out, or the limit",
    )
    states = {watts: state for state, watts in profile.limit_states.items()}
    refuse(
        limited & ~np.isin(limit, list(states)),
        "power_limit_watts",
        limit,
        "W limit the drive, which is not asked about here: ask `iojoule predict` or `recommend`",
    )
    standing = [states.get(watts, 0) for watts in limit.tolist()]
    return np.where(limited, np.array(standing, dtype=np.intp), power_state), limit


def check_link(profile: DeviceProfile, columns: Mapping[str, Any], apst: Floats) -> None:
    """Sleep power was taken at one link policy and is carried to no other."""
    known, given = profile.idle, columns.get("aspm_policy")
    if known is None or known.aspm_policy is None or given is None:
        return
    cells, gone = read_column(given, len(apst))
    other = ~gone & (cells != known.aspm_policy)
    refuse(
        other & (apst > 0),
        "aspm_policy",
        cells,
        f"is not the link policy of the measured sleep power ({known.aspm_policy}), which does "
        "not hold for another: measure idle power there (iojoule measure characterise), or leave "
        "apst_enabled out",
    )


def check_demand(profile: DeviceProfile, field: str, rate: float, read_fraction: float) -> None:
    """Refuse a demand that the drive's link cannot carry, whatever the drive does.

    Args:
        profile: Of the drive.
        field: That states the demand.
        rate: The demand, bytes a second.
        read_fraction: Share of reads, 0 to 1.

    Raises:
        InputError: Names the field.
    """
    link = profile.link_bytes_per_second
    # PCIe carries both directions at once, SATA one at a time
    busier = max(read_fraction, 1.0 - read_fraction) if profile.interface == "nvme" else 1.0
    if link is not None and rate * busier > link.value * (1.0 + 1e-9):
        raise InputError(
            f"{field}: {rate / 1e6:.4g} MB/s are more than the {link.value / 1e6:.4g} MB/s that "
            f"the link of {profile.model_name} carries ({link.source}); lower the demand, or "
            "spread it over several drives",
            field=field,
        )


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
    settings = as_reference(rows)
    for place, name in enumerate(HOST):
        cells = column(name, None)
        stated = ~left_out(cells)
        if not stated.any():
            continue
        if name not in _WORDS:
            settings[stated, place] = cells[stated].astype(np.float64)
            continue
        for row in np.flatnonzero(stated):
            settings[row, place] = _cell(name, cells[row], int(row))
    return settings


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
    stated = np.isfinite(settings)
    if not stated.any():
        return
    stated[:, REST] = False
    clock = operation.clock if operation else None
    known = {
        GOVERNOR: clock is not None,
        FREQUENCY: clock is not None,
        TURBO: clock is not None,
        CSTATE: operation is not None and bool(operation.idle_states),
        JOB_NODE: operation is not None and operation.numa is not None,
    }
    for place, settings_known in known.items():
        bad = stated[:, place] & (not settings_known)
        if place == JOB_NODE:  # the drive's own node costs nothing, whatever the host
            bad &= settings[:, JOB_NODE] != settings[:, DEVICE_NODE]
        if bad.any():
            raise _unknown(int(np.argmax(bad)), HOST[place], host_id)
    if clock is not None:
        low = stated[:, FREQUENCY] & (settings[:, FREQUENCY] < 0.999 * clock.minimum_hertz.value)
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
    stated = np.isfinite(settings)
    stated[:, STANDBY] &= settings[:, STANDBY] > 0  # a timer of 0 is switched off
    idle, name = profile.idle, profile.model_name
    if stated[:, LINK].any() and (idle is None or idle.link is None):
        why = (
            "its profile does not know what its link saves; leave it out"
            if profile.interface == "sata"
            else f"it is attached by {profile.interface or 'an unknown interface'}; leave it out"
        )
        raise _impossible(stated, LINK, f"only SATA links have one, and of {name} {why}")
    if stated[:, STANDBY].any() and (idle is None or idle.standby is None):
        why = (
            "its profile does not know what standing still saves"
            if profile.is_disk
            else "it has no platters to stop"
        )
        raise _impossible(stated, STANDBY, f"{name}: {why}; leave it out")


def _impossible(stated: NDArray[np.bool_], place: int, why: str) -> InputError:
    row = int(np.argmax(stated[:, place]))
    return InputError(f"row {row + 1}: {HOST[place]}: {why}", field=HOST[place])


def _unknown(row: int, name: str, host_id: str) -> InputError:
    return InputError(
        f"row {row + 1}: {name}: the profile does not know what this does on the host {host_id}; "
        f"leave it out, or {_REMEDY}",
        field=name,
    )
