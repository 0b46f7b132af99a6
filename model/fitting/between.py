"""How far drives of one model, and sessions of one drive, differ where several ran the same.

Effects of configuration and drive on log(requests in flight / IOPS) are additive; the drives' are
shrunk towards what is assumed without data, a scaled inverse chi-squared prior worth
`PRIOR_DRIVES` drives (Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6):

    sd^2 = (n0 s0^2 + sum of squared drive effects) / (n0 + drives - 1).

With one drive that is the prior itself, never zero. A mixed model needs about ten drives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import Parameter
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.fitting.recipe import Figure
from iojoule.model.fitting.rows import PUBLISHED
from iojoule.model.prior.document import load_assumptions

PRIOR_DRIVES = 4.0
"""Drives that the assumed spread counts for: two drives alone say little of all others."""

PRIOR_SESSIONS = 2.0
"""Sessions that those of other drives count for."""

ROUNDS = 50
"""Alternating means of configurations and drives; balanced data need one."""


def drive_effects(measurements: Sequence[Measurement]) -> dict[str, float]:
    """Log factors of latency by drive, of configurations that at least two drives ran."""
    cells: dict[tuple[str, str], list[float]] = {}
    for one in measurements:
        drive, iops = one.conditions.device_serial_hash, one.observations.iops
        if drive is None or not iops or one.state.host_bytes_written_since_purge is not None:
            continue
        key = one.workload.model_dump_json() + one.configuration.model_dump_json()
        cells.setdefault((key, drive), []).append(float(np.log(one.concurrency() / iops)))
    drives_of: dict[str, set[str]] = {}
    for key, drive in cells:
        drives_of.setdefault(key, set()).add(drive)
    shared = {cell: np.mean(v) for cell, v in cells.items() if len(drives_of[cell[0]]) > 1}
    drives = sorted({drive for _, drive in shared})
    keys = sorted({key for key, _ in shared})
    if len(drives) < 2:
        return {}
    value = np.array(list(shared.values()))
    key_place = {key: index for index, key in enumerate(keys)}
    key_at = np.array([key_place[key] for key, _ in shared])
    drive_at = np.array([drives.index(drive) for _, drive in shared])
    effect = np.zeros(len(drives))
    for _ in range(ROUNDS):
        level = np.bincount(key_at, value - effect[drive_at]) / np.bincount(key_at)
        effect = np.bincount(drive_at, value - level[key_at]) / np.bincount(drive_at)
        effect -= effect.mean()
    return dict(zip(drives, effect.tolist(), strict=True))


def between_sessions(measurements: Sequence[Measurement]) -> Parameter | None:
    """Log sd of another session's times around the profile's answers; None of one session alone.

    The squares of each session's distances from the mean of all, at the configurations that several
    of one drive and host ran, average to one variance a session; the sessions then count like
    drives above, from the prior of other drives' sessions on. Another session lies around the mean
    of k others with that variance times 1 + 1 / k. Unsteady sessions count: days are so.
    """
    cells: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in measurements:
        session = one.conditions.session_id or one.conditions.series_id or ""
        iops = one.observations.iops
        if session.startswith(PUBLISHED) or not iops or not one.at_full_speed:
            continue
        if one.state.host_bytes_written_since_purge is not None:
            continue
        where = f"{one.conditions.device_serial_hash} {one.conditions.host_id}"
        key = one.workload.model_dump_json() + one.configuration.model_dump_json()
        times = cells.setdefault((where, key), {}).setdefault(session, [])
        times.append(float(np.log(one.concurrency() / iops)))
    squares, freedom = 0.0, 0
    sessions: set[str] = set()
    for runs in cells.values():
        if len(runs) > 1:
            levels = np.array([np.mean(times) for times in runs.values()])
            squares += float(((levels - levels.mean()) ** 2).sum())
            freedom += len(runs) - 1
            sessions |= set(runs)
    if len(sessions) < 2:
        return None
    prior = load_assumptions().conditions["session"].sd
    counted = PRIOR_SESSIONS + len(sessions) - 1
    total = PRIOR_SESSIONS * prior**2 + (len(sessions) - 1) * squares / freedom
    sd = float(np.sqrt(total / counted * (1.0 + 1.0 / len(sessions))))
    return Parameter(
        name="between_sessions_relative_sd",
        value=float(f"{sd:.7g}"),
        sd=float(f"{sd / np.sqrt(2.0 * counted):.7g}"),
        unit="1",
        evidence=Evidence.MEASURED,
        source=f"{len(sessions)} sessions on the same configurations, with those of other drives",
    )


def between_drives(measurements: Sequence[Measurement], assumed: Figure) -> Figure:
    """Relative sd between drives: the assumption, moved by the drives that were measured."""
    effects = drive_effects(measurements)
    if not effects:
        return assumed
    total = PRIOR_DRIVES * assumed.value**2 + sum(value**2 for value in effects.values())
    sd = float(np.sqrt(total / (PRIOR_DRIVES + len(effects) - 1)))
    freedom = PRIOR_DRIVES + len(effects) - 1
    return assumed.model_copy(
        update={
            "value": sd,
            "sd": sd / float(np.sqrt(2.0 * freedom)),
            "source": f"{len(effects)} drives on the same configurations, with {assumed.source}",
            "evidence": Evidence.MEASURED,
        }
    )
