"""Learning what comes after a full cache from a series of random writes (`model.collecting`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.optimize import least_squares

from iojoule.datasets.profile import LongWrites, Parameter
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.collecting import EXPECTED_FORM, grown
from iojoule.model.fitting.background import number

if TYPE_CHECKING:
    from iojoule.model.fitting.write_state import Series

Floats = NDArray[np.float64]

RECOVERY_PRIOR = (0.5, 0.3)
"""Share of the way back to full speed that a drive has gone after as many bytes as its cache holds,
and its sd: between none (it never catches up) and all of it (each byte written past the cache folds
one that is in it, so that nothing is left to fold), all alike likely. Assumption."""

AGAIN_PRIOR = (0.14, 1.13)
"""Share of the cache that is free after a spell, and its log sd: assumption, anything from a
fiftieth to all of it alike likely in logs."""

AGAIN_LEAST_SD, SPELL_LEAST_SD = 0.2, 0.15
"""Log sds of free share and of length that spells keep however alike those seen were."""

ONE_SPELL_SD = 0.5
"""Log sd of either where one was seen: the next may be half or twice as long. Assumption."""

LEVEL_LOG_SD = 0.03
"""How far the collecting rate of another run may be off: fill and wear differ."""

RECOVERED, FALLEN = 0.85, 0.6
"""Shares of full speed at which a spell is over, and at which the next has begun (as at the first
cliff, `write_state.cliff_of`)."""

FALL_SECONDS = 3
"""In which the rate falls to that of a spell, at most half of it (as many as show a cliff)."""

SECONDS_MIN = 20
"""So many seconds of collecting say how single ones differ; fewer have the priors below."""

SECOND_LOG_SD, WATTS_SD = 0.05, 0.06
"""Of single seconds where too few were seen: those of the 980 PRO's public series."""

_MEDIAN_SECONDS = 5

_AFTER_CACHE = "write series, after the cache was full"


@dataclass(frozen=True)
class Spell:
    """A stretch of a series after its cliff.

    Attributes:
        rows: Its seconds.
        collecting: Whether the drive collects, else the cache takes writes again.
        over: Whether its end was seen.
    """

    rows: slice
    collecting: bool
    over: bool


def spells(rate: Floats, full: int, fast: float) -> list[Spell]:
    """Spells of collecting and of full speed from second `full` on, in order."""
    smooth = median_filter(rate, size=_MEDIAN_SECONDS, mode="nearest")
    found, start, collecting = [], full, True
    for second in range(full, len(rate)):
        high, low = smooth[second] >= RECOVERED * fast, smooth[second] < FALLEN * fast
        if (high if collecting else low) and second > start:
            found.append(Spell(slice(start, second), collecting, True))
            start, collecting = second, not collecting
    found.append(Spell(slice(start, len(rate)), collecting, False))
    return found


@dataclass(frozen=True)
class LongFit:
    """What a series says of its time after the cliff: parameters of `WriteState`."""

    rate: Parameter
    recovery: Parameter
    long_writes: LongWrites


def fit_long_writes(series: Series, filling: int, full: int) -> LongFit:
    """Fit rate, recovery and spells to a series.

    Args:
        series: The series.
        filling: Second in which it begins to fill up, and `full` the first of a full cache
            (`write_state.cliff_of`).
        full: Likewise.
    """
    fast = float(np.median(series.bytes_per_second[: max(filling, 1)]))
    cache = float(series.bytes_written[full])
    every = spells(series.bytes_per_second, full, fast)
    own = [one for one in every if one.collecting]
    rows = np.concatenate([_settled(one.rows) for one in own])
    past = np.concatenate(
        [
            series.bytes_written[_settled(one.rows)] - series.bytes_written[one.rows.start]
            for one in own
        ]
    )
    rate = series.bytes_per_second[rows]
    first, slope, sds, off = _line(past, rate, cache, fast)
    few = len(rows) < SECONDS_MIN
    memory = 0.5 if few else _memory(off) / 2.0
    watts = series.watts[rows]
    spread = SECOND_LOG_SD if few else float(np.std(off))
    watts_sd = WATTS_SD if few else float(np.std(watts))
    return LongFit(
        _measured("collecting_bytes_per_second", first, float(np.hypot(sds[0], LEVEL_LOG_SD)),
                  "bytes/s, sd relative"),
        _measured("recovery_bytes_per_second_per_byte", slope, sds[1], "1/s"),
        LongWrites(
            recovered_bytes_per_second=_measured(
                "recovered_bytes_per_second", fast, 0.0, "bytes/s"
            ),
            seen_bytes=_measured("seen_bytes", float(past.max()), 0.0, "bytes"),
            spell_bytes=_lengths(series, [one for one in own if one.over]),
            again_share=_again(series, [one for one in every if not one.collecting], cache),
            spells_seen=sum(one.over for one in own),
            spell_watts=_measured(
                "spell_watts", float(watts.mean()),
                float(np.hypot(watts_sd / np.sqrt(len(watts)), 0.01 * watts.mean())), "W"
            ),
            second_log_sd=_measured("second_log_sd", spread, 0.0, "1"),
            watts_sd=_measured("watts_sd", watts_sd, 0.0, "W"),
            correlation_seconds=_measured("correlation_seconds", memory, 0.0, "s"),
        ),
    )  # fmt: skip


def _settled(rows: slice) -> NDArray[np.intp]:
    """The seconds of a spell without its first ones, in which the rate still falls."""
    return np.arange(rows.start + min(FALL_SECONDS, (rows.stop - rows.start) // 2), rows.stop)


def _measured(name: str, value: float, sd: float, unit: str) -> Parameter:
    return number(name, value, sd, unit, _AFTER_CACHE, Evidence.MEASURED)


def _line(
    past: Floats, rate: Floats, cache: float, fast: float
) -> tuple[float, float, tuple[float, float], Floats]:
    """Rate at the beginning of a spell and its recovery, 1/s, with `RECOVERY_PRIOR`.

    Returns:
        Rate, recovery, relative sd of the rate and sd of the recovery, and the log differences of
        the seconds from the line.
    """
    level = float(np.median(rate))
    missing = max(fast / level - 1.0, 0.1)
    prior, prior_sd = (one * missing for one in RECOVERY_PRIOR)

    def differences(parameters: Floats) -> Floats:
        first, kappa = np.exp(parameters[0]) * level, parameters[1]
        return np.asarray(np.log(rate / (first * grown(kappa * past / cache, EXPECTED_FORM))))

    noise = SECOND_LOG_SD
    for _ in range(3):  # the noise and its memory follow from the fit, and weigh the prior

        def misses(parameters: Floats, noise: float = noise) -> Floats:
            beside = (parameters[1] - prior) / prior_sd
            return np.append(differences(parameters) / noise, beside)

        found = least_squares(misses, np.array([0.0, prior]), bounds=([-3.0, 0.0], [3.0, 50.0]))
        off = differences(found.x)
        if len(off) >= SECONDS_MIN:
            noise = max(float(np.std(off)), 0.005) * float(np.sqrt(_memory(off)))
    jacobian = np.asarray(found.jac, dtype=float)
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    first, kappa = float(np.exp(found.x[0]) * level), float(found.x[1])
    sds = np.sqrt(np.diag(covariance))
    per_byte = first / cache
    # the logarithm's mean is below that of the rate itself, which is what bytes add up from
    first *= float(np.mean(np.exp(off))) if len(off) >= SECONDS_MIN else 1.0
    return first, kappa * per_byte, (float(sds[0]), float(sds[1] * per_byte)), off


def _memory(off: Floats) -> float:
    """Variance of the mean of many seconds over that of as many independent ones; at least 1.

    1 and twice the sum of the autocorrelations up to the first that is not positive (Geyer,
    Practical Markov Chain Monte Carlo, 1992, in its simplest form).
    """
    centred = off - off.mean()
    power = float(centred @ centred)
    total = 1.0
    for lag in range(1, len(off) // 2):
        shared = float(centred[lag:] @ centred[:-lag]) / max(power, 1e-30)
        if shared <= 0.0:
            break
        total += 2.0 * shared
    return total


def _written(series: Series, one: Spell) -> float:
    rows = one.rows
    return float(series.bytes_per_second[rows].sum())


def _spread(logs: Floats, least: float) -> float:
    """Log sd of the next one of a few: their own, and what their mean may be off."""
    if len(logs) < 2:
        return ONE_SPELL_SD
    return max(float(np.std(logs, ddof=1) * np.sqrt(1.0 + 1.0 / len(logs))), least)


def _lengths(series: Series, over: list[Spell]) -> Parameter | None:
    if not over:
        return None
    logs = np.log([_written(series, one) for one in over])
    return _measured(
        "spell_bytes", float(np.exp(logs.mean())), _spread(logs, SPELL_LEAST_SD),
        "bytes, sd of its log",
    )  # fmt: skip


def _again(series: Series, fast: list[Spell], cache: float) -> Parameter:
    over = [one for one in fast if one.over]
    if over:
        logs = np.log([_written(series, one) / cache for one in over])
        return _measured(
            "again_share", min(float(np.exp(logs.mean())), 1.0), _spread(logs, AGAIN_LEAST_SD),
            "1, sd of its log",
        )  # fmt: skip
    value, sd = AGAIN_PRIOR
    at_least = max((_written(series, one) / cache for one in fast), default=0.0)
    return number(
        "again_share",
        min(max(value, 1.5 * at_least), 1.0),
        sd,
        "1, sd of its log",
        "assumption: a fiftieth to all of the cache, as much as was seen at least",
        Evidence.ASSUMED,
    )
