"""How the work arrives and what was done to the drive before, from columns of questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.columns import Codes, Floats, flags, optional_numbers, read_column, refuse

P99_SIGMAS = 2.3263478740408408
"""Standard deviations from the median to the 99th percentile of a normal distribution."""


def habits_of(columns: Mapping[str, Any], rows: int) -> dict[str, Floats]:
    """How the work arrives and what was done to the drive before, as fields of a frame.

    Raises:
        InputError: An impossible value; the message names row and field.
    """
    gap, gap_log_sd = _gaps(columns, rows)
    return {
        "fill_fraction": optional_numbers("fill_fraction", columns, rows, 1.0),
        "seconds_idle": np.nan_to_num(
            optional_numbers("seconds_since_last_write", columns, rows), nan=0.0
        ),
        "gap_seconds": gap,
        "gap_log_sd": gap_log_sd,
        "burst_bytes": optional_numbers("burst_bytes", columns, rows),
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
