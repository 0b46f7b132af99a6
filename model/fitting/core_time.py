"""Core time of requests from measured CPU time: what a byte costs beyond the request itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from iojoule.datasets.profile import Parameter
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Completion, Evidence
from iojoule.model.fitting.export import rounded
from iojoule.model.host_work import PAGE_BYTES

Floats = NDArray[np.float64]

FEWEST_SIZES = 3
"""Request sizes of a session that tell a byte's cost from a request's."""

_SCALE = np.array([1e-6, 1e-6, 1e-11])


def core_seconds_per_byte(measurements: Sequence[Measurement]) -> Parameter | None:
    """Core time of a byte beyond the first page; None where CPU time was not measured over sizes.

    Interrupt-driven rows only: who polls is busy whatever the size. Non-negative least squares of
    the core time of a request over a constant, the share of requests that wake a core and the
    bytes, relative errors, constant and wake-up by session (a host is not equally fast every day).
    The sd is that of a jackknife over request sizes.
    """
    sessions: dict[str, list[Floats]] = defaultdict(list)
    for one in measurements:
        row = _row(one)
        if row is not None:
            sessions[f"{one.conditions.host_id} {one.conditions.session_id}"].append(row)
    told = {
        name: np.array(rows)
        for name, rows in sessions.items()
        if len({row[1] for row in rows}) >= FEWEST_SIZES
    }
    if not told:
        return None
    sizes = np.unique(np.concatenate([rows[:, 1] for rows in told.values()]))
    value = _slope(told, None)
    left = np.array([_slope(told, size) for size in sizes])
    sd = float(np.sqrt((len(sizes) - 1) / len(sizes) * np.sum((left - left.mean()) ** 2)))
    runs = sum(len(rows) for rows in told.values())
    return Parameter(
        name="core_seconds_per_byte",
        value=rounded(value)[0],
        sd=rounded(max(sd, 0.1 * value))[0],
        unit="s/B",
        evidence=Evidence.MEASURED,
        source=f"CPU time of {runs} runs of {len(sizes)} request sizes",
    )


def _slope(sessions: dict[str, Floats], without: float | None) -> float:
    """Seconds a byte, with one size left out."""
    design, target = [], []
    for place, rows in enumerate(sessions.values()):
        for woken, moved, each in rows[rows[:, 1] != without]:
            line = np.zeros(2 * len(sessions) + 1)
            line[2 * place], line[2 * place + 1], line[-1] = _SCALE * (1.0, woken, moved)
            design.append(line / each)
            target.append(1.0)
    found, _ = nnls(np.array(design), np.array(target))
    return float(found[-1] * _SCALE[2])


def _row(one: Measurement) -> Floats | None:
    """Share of requests that wake a core, bytes beyond the first page, core seconds a request."""
    seen, how = one.observations, one.configuration
    if not seen.cpu_utilisation or not seen.iops or how.submission_polling:
        return None
    if how.completion is Completion.POLLED:
        return None
    woken = 1.0 - min(seen.cpu_utilisation / how.jobs, 1.0) * min(how.queue_depth - 1, 1)
    if seen.context_switches_per_second is not None:
        woken = min(seen.context_switches_per_second / seen.iops, 1.0)
    moved = max(how.request_bytes - PAGE_BYTES, 0.0)
    return np.array([woken, moved, seen.cpu_utilisation / seen.iops])
