"""Fitting how writes change the drive's state: the cache, the rate beyond it, the work afterwards.

A series of writes says most; what it does not show is taken from what was characterised and from
published figures, each weighted by how far it may be off.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from iojoule.datasets.profile import Parameter, WriteCache, WriteState
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern
from iojoule.model.fitting.background import after_write, background_work, number, random_factor
from iojoule.model.fitting.long_writes import fit_long_writes
from iojoule.model.fitting.recipe import Recipe, WriteStateRecipe
from iojoule.model.prior.cache import FOLDING_FROM, RANDOM_RATE

Floats = NDArray[np.float64]

SERIES_ROWS_MIN = 30
"""So many rows make a series."""

FIRST_SECONDS = 30
"""So many of a series, at most a quarter of it, show what the drive does with an empty cache: a
long series is past its cliff for the most part."""

CLIFF_LOG_SD = 0.05
"""How far a cliff seen once may be off: fill and wear differ from one run to the next."""

SHARE_PRIOR = (0.094, 0.6)
"""Cache of a consumer drive over its capacity, and its log sd: geometric mean and spread of 6.3 %,
18 %, 6.1 % (002 5.4, bytes written before the cliff) and 11 % (000 4.1, declared)."""


@dataclass(frozen=True)
class Series:
    """A drive's writes second by second since it was purged; arrays of one length.

    Attributes:
        bytes_written: Host bytes before each second.
        bytes_per_second: Throughput in it.
        watts: Mean device power in it.
        request_bytes: Bytes a request.
    """

    bytes_written: Floats
    bytes_per_second: Floats
    watts: Floats
    request_bytes: float

    def until(self, rows: int) -> Series:
        """The first rows alone."""
        return Series(
            self.bytes_written[:rows],
            self.bytes_per_second[:rows],
            self.watts[:rows],
            self.request_bytes,
        )


def write_series(measurements: list[Measurement]) -> Series | None:
    """The longest series that knows bytes written, throughput and power; None where none does.

    Rows belong together where they share the series and everything the host set.
    """
    rows = [
        one
        for one in measurements
        if one.workload.operation is Operation.WRITE
        and one.state.host_bytes_written_since_purge is not None
        and one.observations.device_power_watts is not None
        and one.observations.throughput_bytes_per_second is not None
    ]
    keys = [(one.conditions.series_id, one.configuration.model_dump_json()) for one in rows]
    if not keys:
        return None
    longest = Counter(keys).most_common(1)[0][0]
    rows = [one for one, key in zip(rows, keys, strict=True) if key == longest]
    if len(rows) < SERIES_ROWS_MIN:
        return None
    rows.sort(key=lambda one: one.state.host_bytes_written_since_purge or 0.0)
    return Series(
        np.array([one.state.host_bytes_written_since_purge for one in rows], dtype=float),
        np.array([one.observations.throughput_bytes_per_second for one in rows], dtype=float),
        np.array([one.observations.device_power_watts for one in rows], dtype=float),
        float(rows[0].configuration.request_bytes),
    )


def cliff_of(series: Series) -> tuple[int, int] | None:
    """First second of filling up and first second of a full cache; None where none is seen.

    It fills up from the first three seconds in a row that draw 15 % more than the median of the
    first ones, and is full from the first three that take less than 60 % of their throughput.
    """
    begin = slice(min(len(series.watts) // 4, FIRST_SECONDS))
    busy = series.watts > 1.15 * np.median(series.watts[begin])
    slow = series.bytes_per_second < 0.6 * np.median(series.bytes_per_second[begin])
    filling, full = _first_run(busy), _first_run(slow)
    if filling is None or full is None or full <= filling:
        return None
    return filling, full


def _first_run(flags: NDArray[np.bool_], length: int = 3) -> int | None:
    run = np.convolve(flags, np.ones(length), "valid") == length
    return int(np.argmax(run)) if run.any() else None


def fit_write_state(series: Series | None, recipe: Recipe) -> WriteState | None:
    """Find where the cache is full and what the drive then takes; None where nothing tells.

    Args:
        series: Writes over time, if there are any.
        recipe: Published and characterised figures, capacity and power states of the drive.
    """
    told = recipe.write_state or WriteStateRecipe()
    seen = cliff_of(series) if series is not None else None
    if seen is None and not told.cache:
        return None
    if series is not None and seen is not None:
        places = _measured_places(series, seen)
        found = fit_long_writes(series, *seen)
        rate, recovery, long_writes = found.rate, found.recovery, found.long_writes
    else:
        published = _published_rate(told)
        if published is None:
            return None
        places = _published_places(told, recipe, series)
        rate, recovery = published
        long_writes = None
    background = background_work(told, recipe)
    joules = told.background_joules_per_byte
    base = background[0]
    from_time = base.seconds_per_byte.value * base.watts_above_idle.value
    log_sd = np.hypot(
        base.seconds_per_byte.sd, base.watts_above_idle.sd / base.watts_above_idle.value
    )
    return WriteState(
        cached_bytes=places[0],
        transition_bytes=places[1],
        collecting_bytes_per_second=rate,
        recovery_bytes_per_second_per_byte=recovery,
        background_joules_per_byte=number(
            "background_joules_per_byte",
            joules.value if joules else from_time,
            joules.sd if joules else from_time * float(log_sd),
            "J/B",
            joules.source if joules else "seconds and watts of the background work at PS0",
            joules.evidence if joules else base.seconds_per_byte.evidence,
        ),
        background_seconds_after_write={
            one.power_state: after_write(one, told) for one in background
        },
        cache=_cache(places[1], told),
        background=background,
        random_factor=random_factor(told, recipe),
        sequential_collecting_bytes_per_second=_sequential_rate(told, rate),
        overwriting_seconds=_overwriting(told),
        long_writes=long_writes,
    )


_CHANGE = "change of throughput and power in the write series"


def _measured_places(series: Series, seen: tuple[int, int]) -> tuple[Parameter, Parameter]:
    cached, over = (float(series.bytes_written[second]) for second in seen)
    return (
        number("cached_bytes", cached, CLIFF_LOG_SD * cached, "bytes", _CHANGE, Evidence.MEASURED),
        number("transition_bytes", over, CLIFF_LOG_SD * over, "bytes", _CHANGE, Evidence.MEASURED),
    )


def _published_places(
    told: WriteStateRecipe, recipe: Recipe, series: Series | None
) -> tuple[Parameter, Parameter]:
    """The figures' weighted mean in logs; a series that saw no cliff cuts off what lies below."""
    centres = [np.log(one.bytes) for one in told.cache]
    sds = [one.log_sd for one in told.cache]
    if recipe.capacity_bytes is not None and recipe.drive_class == "consumer":
        centres.append(np.log(SHARE_PRIOR[0] * recipe.capacity_bytes))
        sds.append(SHARE_PRIOR[1])
    weights = np.array(sds) ** -2.0
    centre, sd = float(np.average(centres, weights=weights)), float(weights.sum() ** -0.5)
    if series is not None:
        cut = norm.cdf(np.log(series.bytes_written[-1] + 1.0), centre, sd)
        low, middle, high = norm.ppf(cut + (1.0 - cut) * np.array([0.16, 0.5, 0.84]), centre, sd)
        centre, sd = float(middle), float(high - low) / 2
    size = float(np.exp(centre))
    source = "; ".join(one.source for one in told.cache)
    words = [one.evidence for one in told.cache]
    evidence = Evidence.MEASURED if Evidence.MEASURED in words else Evidence.PUBLISHED
    return (
        number(
            "cached_bytes", FOLDING_FROM * size, FOLDING_FROM * size * sd, "bytes", source, evidence
        ),
        number("transition_bytes", size, size * sd, "bytes", source, evidence),
    )


def _published_rate(told: WriteStateRecipe) -> tuple[Parameter, Parameter] | None:
    """Rate of random writes beyond the cliff: as published, else from that of sequential ones."""
    nothing = number(
        "recovery_bytes_per_second_per_byte", 0.0, 0.0, "1/s", "not known", Evidence.PUBLISHED
    )
    for pattern, (factor, more) in (
        (Pattern.RANDOM, (1.0, 0.0)),
        (Pattern.SEQUENTIAL, RANDOM_RATE),
    ):
        for one in told.collecting:
            if one.pattern is pattern:
                return (
                    number(
                        "collecting_bytes_per_second",
                        factor * one.bytes_per_second,
                        float(np.hypot(one.log_sd, more)),
                        "bytes/s, sd relative",
                        one.source,
                        Evidence.PUBLISHED,
                    ),
                    nothing,
                )
    return None


def _sequential_rate(told: WriteStateRecipe, random: Parameter) -> Parameter:
    """Rate of sequential writes beyond the cliff: as seen, else from that of random ones."""
    value, sd = random.value / RANDOM_RATE[0], float(np.hypot(random.sd, RANDOM_RATE[1]))
    source, evidence = "assumption: twice that of random writes", Evidence.EXTRAPOLATED
    for one in told.collecting:
        if one.pattern is Pattern.SEQUENTIAL:
            value, sd = one.bytes_per_second, one.log_sd
            source, evidence = one.source, Evidence.PUBLISHED
    return number(
        "sequential_collecting_bytes_per_second",
        value,
        sd,
        "bytes/s, sd relative",
        source,
        evidence,
    )


def _overwriting(told: WriteStateRecipe) -> Parameter | None:
    """The figures' weighted mean in logs; figures of one paper are never surer than the surest."""
    figures = told.overwriting
    if not figures:
        return None
    weights = [one.log_sd**-2.0 for one in figures]
    value = float(np.exp(np.average(np.log([one.seconds for one in figures]), weights=weights)))
    return number(
        "overwriting_seconds",
        value,
        min(one.log_sd for one in figures),
        "s, sd of its log",
        "; ".join(one.source for one in figures),
        Evidence.PUBLISHED,
    )


def _cache(over: Parameter, told: WriteStateRecipe) -> WriteCache:
    static = told.static_bytes
    return WriteCache(
        capacity_bytes=number(
            "capacity_bytes",
            over.value,
            over.sd / over.value,
            "bytes, sd of its log",
            over.source,
            over.evidence,
        ),
        static_bytes=number(
            "static_bytes",
            min(static.value if static else 0.05 * over.value, over.value),
            static.sd if static else 0.05 * over.value,
            "bytes",
            static.source if static else "assumption: a twentieth of the cache is fixed",
            static.evidence if static else Evidence.DATASHEET,
        ),
        bits_per_cell=told.bits_per_cell,
    )
