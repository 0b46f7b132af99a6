"""Fitting how writes change the drive's state: the cache, the rate beyond it, the work afterwards.

A series of writes says most; what it does not show is taken from what was characterised and from
published figures, each weighted by how far it may be off.

Learning what comes after a full cache from a series of random writes
(`model.evaluate.device_state`).

How many bytes the drive answers before its flash takes them, from writes below full speed.

At full speed a write buffer is always full, so that no such run tells its size. Below that, writes
that come by chance wait for the flash only once the buffer is full: runs with a demand show it in
their mean and p99.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.optimize import least_squares
from scipy.special import ndtr, ndtri

from iojoule.datasets.profile import (
    BackgroundWork,
    DeviceProfile,
    LongWrites,
    Parameter,
    WriteCache,
    WriteState,
)
from iojoule.datasets.schema import Measurement, to_row
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.demanded import FIELDS, demands
from iojoule.model.evaluate.device_state import EXPECTED_FORM, grown
from iojoule.model.evaluate.equal_work import work_of
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.latency import Arrivals, ServedLatency, alone_of
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.fit.background import after_write, background_work, number, random_factor
from iojoule.model.fit.rows import SETTINGS
from iojoule.model.prior.cache import FOLDING_FROM, RANDOM_RATE
from iojoule.model.recipe import Figure, Recipe, WriteStateRecipe

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
    all_spells, start, collecting = [], full, True
    for second in range(full, len(rate)):
        high, low = smooth[second] >= RECOVERED * fast, smooth[second] < FALLEN * fast
        if (high if collecting else low) and second > start:
            all_spells.append(Spell(slice(start, second), collecting, True))
            start, collecting = second, not collecting
    all_spells.append(Spell(slice(start, len(rate)), collecting, False))
    return all_spells


@dataclass(frozen=True)
class LongFit:
    """What a series says of its time after the cliff: parameters of `WriteState`."""

    rate: Parameter
    recovery: Parameter
    long_writes: LongWrites


def fit_long_writes(series: Series, filling: int, full: int) -> LongFit:
    """Fit rate, recovery and spells to a series."""
    fast = float(np.median(series.bytes_per_second[: max(filling, 1)]))
    cache = float(series.bytes_written[full])
    every = spells(series.bytes_per_second, full, fast)
    own = [spell for spell in every if spell.collecting]
    rows = np.concatenate([_settled(spell.rows) for spell in own])
    past = np.concatenate(
        [
            series.bytes_written[_settled(spell.rows)] - series.bytes_written[spell.rows.start]
            for spell in own
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
        _measured(
            "collecting_bytes_per_second",
            first,
            float(np.hypot(sds[0], LEVEL_LOG_SD)),
            "bytes/s, sd relative",
        ),
        _measured("recovery_bytes_per_second_per_byte", slope, sds[1], "1/s"),
        LongWrites(
            recovered_bytes_per_second=_measured(
                "recovered_bytes_per_second", fast, 0.0, "bytes/s"
            ),
            seen_bytes=_measured("seen_bytes", float(past.max()), 0.0, "bytes"),
            spell_bytes=_lengths(series, [spell for spell in own if spell.over]),
            again_share=_again(series, [spell for spell in every if not spell.collecting], cache),
            spells_seen=sum(spell.over for spell in own),
            spell_watts=_measured(
                "spell_watts",
                float(watts.mean()),
                float(np.hypot(watts_sd / np.sqrt(len(watts)), 0.01 * watts.mean())),
                "W",
            ),
            second_log_sd=_measured("second_log_sd", spread, 0.0, "1"),
            watts_sd=_measured("watts_sd", watts_sd, 0.0, "W"),
            correlation_seconds=_measured("correlation_seconds", memory, 0.0, "s"),
        ),
    )


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
    prior, prior_sd = (prior * missing for prior in RECOVERY_PRIOR)

    def differences(parameters: Floats) -> Floats:
        first, kappa = np.exp(parameters[0]) * level, parameters[1]
        return np.asarray(np.log(rate / (first * grown(kappa * past / cache, EXPECTED_FORM))))

    noise = SECOND_LOG_SD
    for _ in range(3):  # the noise and its memory follow from the fit, and weigh the prior

        def misses(parameters: Floats, noise: float = noise) -> Floats:
            beside = (parameters[1] - prior) / prior_sd
            return np.append(differences(parameters) / noise, beside)

        solution = least_squares(misses, np.array([0.0, prior]), bounds=([-3.0, 0.0], [3.0, 50.0]))
        off = differences(solution.x)
        if len(off) >= SECONDS_MIN:
            noise = max(float(np.std(off)), 0.005) * float(np.sqrt(_memory(off)))
    jacobian = np.asarray(solution.jac, dtype=float)
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    first, kappa = float(np.exp(solution.x[0]) * level), float(solution.x[1])
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


def _written(series: Series, spell: Spell) -> float:
    rows = spell.rows
    return float(series.bytes_per_second[rows].sum())


def _spread(logs: Floats, least: float) -> float:
    """Log sd of the next one of a few: their own, and what their mean may be off."""
    if len(logs) < 2:
        return ONE_SPELL_SD
    return max(float(np.std(logs, ddof=1) * np.sqrt(1.0 + 1.0 / len(logs))), least)


def _lengths(series: Series, over: list[Spell]) -> Parameter | None:
    if not over:
        return None
    logs = np.log([_written(series, spell) for spell in over])
    return _measured(
        "spell_bytes",
        float(np.exp(logs.mean())),
        _spread(logs, SPELL_LEAST_SD),
        "bytes, sd of its log",
    )


def _again(series: Series, fast: list[Spell], cache: float) -> Parameter:
    over = [spell for spell in fast if spell.over]
    if over:
        logs = np.log([_written(series, spell) / cache for spell in over])
        return _measured(
            "again_share",
            min(float(np.exp(logs.mean())), 1.0),
            _spread(logs, AGAIN_LEAST_SD),
            "1, sd of its log",
        )
    value, sd = AGAIN_PRIOR
    at_least = max((_written(series, spell) / cache for spell in fast), default=0.0)
    return number(
        "again_share",
        min(max(value, 1.5 * at_least), 1.0),
        sd,
        "1, sd of its log",
        "assumption: a fiftieth to all of the cache, as much as was seen at least",
        Evidence.ASSUMED,
    )


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
        measurement
        for measurement in measurements
        if measurement.workload.operation is Operation.WRITE
        and measurement.state.host_bytes_written_since_purge is not None
        and measurement.observations.device_power_watts is not None
        and measurement.observations.throughput_bytes_per_second is not None
    ]
    keys = [(row.conditions.series_id, row.configuration.model_dump_json()) for row in rows]
    if not keys:
        return None
    longest = Counter(keys).most_common(1)[0][0]
    rows = [row for row, key in zip(rows, keys, strict=True) if key == longest]
    if len(rows) < SERIES_ROWS_MIN:
        return None
    rows.sort(key=lambda row: row.state.host_bytes_written_since_purge or 0.0)
    return Series(
        np.array([row.state.host_bytes_written_since_purge for row in rows], dtype=float),
        np.array([row.observations.throughput_bytes_per_second for row in rows], dtype=float),
        np.array([row.observations.device_power_watts for row in rows], dtype=float),
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
    stated = recipe.write_state or WriteStateRecipe()
    seen = cliff_of(series) if series is not None else None
    if seen is None and not stated.cache:
        return None
    if series is not None and seen is not None:
        parameters = _measured_places(series, seen)
        long_writes_fit = fit_long_writes(series, *seen)
        rate, recovery, long_writes = (
            long_writes_fit.rate,
            long_writes_fit.recovery,
            long_writes_fit.long_writes,
        )
    else:
        published = _published_rate(stated)
        if published is None:
            return None
        parameters = _published_places(stated, recipe, series)
        rate, recovery = published
        long_writes = None
    background = background_work(stated, recipe)
    return WriteState(
        cached_bytes=parameters[0],
        transition_bytes=parameters[1],
        collecting_bytes_per_second=rate,
        recovery_bytes_per_second_per_byte=recovery,
        background_joules_per_byte=_background_joules(stated, background[0]),
        background_seconds_after_write={
            work.power_state: after_write(work, stated) for work in background
        },
        cache=_cache(parameters[1], stated),
        background=background,
        random_factor=random_factor(stated, recipe),
        sequential_collecting_bytes_per_second=_sequential_rate(stated, rate),
        overwriting_seconds=_overwriting(stated),
        background_delay_seconds=_as_seen("background_delay_seconds", stated),
        full_work_joules=_as_seen("full_work_joules", stated),
        long_writes=long_writes,
    )


def _background_joules(stated: WriteStateRecipe, base: BackgroundWork) -> Parameter:
    """As stated, which may be none at all; else what the seconds and watts at PS0 make."""
    name, unit, joules = "background_joules_per_byte", "J/B", stated.background_joules_per_byte
    if joules is not None:
        return number(name, joules.value, joules.sd, unit, joules.source, joules.evidence)
    seconds, watts = base.seconds_per_byte, base.watts_above_idle
    value = seconds.value * watts.value
    sd = value * float(np.hypot(seconds.sd, watts.sd / watts.value))
    source = "seconds and watts of the background work at PS0"
    return number(name, value, sd, unit, source, seconds.evidence)


def _as_seen(name: str, stated: WriteStateRecipe) -> Parameter | None:
    figure: Figure | None = getattr(stated, name)
    if figure is None:
        return None
    return number(name, figure.value, figure.sd, figure.unit, figure.source, figure.evidence)


_CHANGE = "change of throughput and power in the write series"


def _measured_places(series: Series, seen: tuple[int, int]) -> tuple[Parameter, Parameter]:
    cached, over = (float(series.bytes_written[second]) for second in seen)
    return (
        number("cached_bytes", cached, CLIFF_LOG_SD * cached, "bytes", _CHANGE, Evidence.MEASURED),
        number("transition_bytes", over, CLIFF_LOG_SD * over, "bytes", _CHANGE, Evidence.MEASURED),
    )


def _published_places(
    stated: WriteStateRecipe, recipe: Recipe, series: Series | None
) -> tuple[Parameter, Parameter]:
    """The figures' weighted mean in logs; a series that saw no cliff cuts off what lies below."""
    centres = [np.log(figure.bytes) for figure in stated.cache]
    sds = [figure.log_sd for figure in stated.cache]
    if recipe.capacity_bytes is not None and recipe.drive_class == "consumer":
        centres.append(np.log(SHARE_PRIOR[0] * recipe.capacity_bytes))
        sds.append(SHARE_PRIOR[1])
    weights = np.array(sds) ** -2.0
    centre, sd = float(np.average(centres, weights=weights)), float(weights.sum() ** -0.5)
    if series is not None:
        cut = ndtr((np.log(series.bytes_written[-1] + 1.0) - centre) / sd)
        quantiles = ndtri(cut + (1.0 - cut) * np.array([0.16, 0.5, 0.84]))
        low, middle, high = centre + sd * quantiles
        centre, sd = float(middle), float(high - low) / 2
    size = float(np.exp(centre))
    source = "; ".join(figure.source for figure in stated.cache)
    words = [figure.evidence for figure in stated.cache]
    evidence = Evidence.MEASURED if Evidence.MEASURED in words else Evidence.PUBLISHED
    seen = [figure.folding_from for figure in stated.cache if figure.folding_from is not None]
    folding = float(np.mean(seen)) * size if seen else FOLDING_FROM * size
    return (
        number("cached_bytes", folding, folding * sd, "bytes", source, evidence),
        number("transition_bytes", size, size * sd, "bytes", source, evidence),
    )


def _published_rate(stated: WriteStateRecipe) -> tuple[Parameter, Parameter] | None:
    """Rate of random writes beyond the cliff: as published, else from that of sequential ones."""
    nothing = number(
        "recovery_bytes_per_second_per_byte", 0.0, 0.0, "1/s", "not known", Evidence.PUBLISHED
    )
    for pattern, (factor, more) in (
        (Pattern.RANDOM, (1.0, 0.0)),
        (Pattern.SEQUENTIAL, RANDOM_RATE),
    ):
        for rate in stated.collecting:
            if rate.pattern is pattern:
                return (
                    number(
                        "collecting_bytes_per_second",
                        factor * rate.bytes_per_second,
                        float(np.hypot(rate.log_sd, more)),
                        "bytes/s, sd relative",
                        rate.source,
                        rate.evidence if factor == 1.0 else Evidence.EXTRAPOLATED,
                    ),
                    nothing,
                )
    return None


def _sequential_rate(stated: WriteStateRecipe, random: Parameter) -> Parameter:
    """Rate of sequential writes beyond the cliff: as seen, else from that of random ones."""
    value, sd = random.value / RANDOM_RATE[0], float(np.hypot(random.sd, RANDOM_RATE[1]))
    source, evidence = "assumption: twice that of random writes", Evidence.EXTRAPOLATED
    for rate in stated.collecting:
        if rate.pattern is Pattern.SEQUENTIAL:
            value, sd = rate.bytes_per_second, rate.log_sd
            source, evidence = rate.source, rate.evidence
    return number(
        "sequential_collecting_bytes_per_second",
        value,
        sd,
        "bytes/s, sd relative",
        source,
        evidence,
    )


def _overwriting(stated: WriteStateRecipe) -> Parameter | None:
    """The figures' weighted mean in logs; figures of one paper are never surer than the surest."""
    figures = stated.overwriting
    if not figures:
        return None
    weights = [figure.log_sd**-2.0 for figure in figures]
    value = float(
        np.exp(np.average(np.log([figure.seconds for figure in figures]), weights=weights))
    )
    return number(
        "overwriting_seconds",
        value,
        min(figure.log_sd for figure in figures),
        "s, sd of its log",
        "; ".join(figure.source for figure in figures),
        Evidence.PUBLISHED,
    )


def _cache(over: Parameter, stated: WriteStateRecipe) -> WriteCache:
    static = stated.static_bytes
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
        bits_per_cell=stated.bits_per_cell,
    )


SEEN = ("latency_mean_ns", "latency_p99_ns")
"""Latencies that tell of a buffer."""

LOADS = (0.2, 0.95)
"""Below, nothing waits; above, a run does not reach its steady state."""

RUNS_MIN = 4
"""Fewer runs are chance."""

SIZES = np.geomspace(1 << 16, 1 << 34, 73)
"""Bytes that are tried: 64 KiB to 16 GiB, a quarter of an octave apart."""

RUN_LOG_SD = 0.05
"""What repeats of a run differ by; an assumption."""

FREEDOM = 4.0
"""Degrees of freedom of the t distribution that errors come from: a few runs may be far off."""

DROP = 0.5 * NORMAL_90**2
"""By how much the log likelihood falls at the ends of a 90 % interval."""


def with_write_buffer(profile: DeviceProfile, measurements: Sequence[Measurement]) -> DeviceProfile:
    """The profile with the write buffer that runs below full speed show.

    As it was where there are too few of them, or where they are as likely without any buffer.
    """
    runs = list(_runs(profile, measurements))
    if len(runs) < RUNS_MIN:
        return profile
    none = sum(run.log_likelihood(0.0) for run in runs)
    likely = np.array([sum(run.log_likelihood(size) for run in runs) for size in SIZES])
    best = likely.max()
    if best < none + DROP:
        return profile
    # where larger ones are as likely, the runs never filled it: the least that explains them
    within = SIZES[likely >= best - DROP]
    size = within[0] if within[-1] == SIZES[-1] else SIZES[likely.argmax()]
    sd = max(np.log(within[-1] / within[0]) / (2.0 * NORMAL_90), 0.1)
    buffer = number(
        "write_buffer_bytes",
        float(size),
        float(sd),
        "bytes",
        f"{len(runs)} runs of writes below full speed",
        Evidence.MEASURED,
    )
    return profile.model_copy(update={"write_buffer_bytes": buffer})


@dataclass(frozen=True)
class _Run:
    """A run with a demand: what its latencies may be, and what they were."""

    latencies: ServedLatency
    written: float
    seen: dict[str, float]

    def log_likelihood(self, buffer_bytes: float) -> float:
        """Of what was seen, with so large a buffer."""
        requests = np.array([buffer_bytes / self.written])
        latencies = replace(self.latencies, buffer_requests=requests)
        total = 0.0
        for name, seen in self.seen.items():
            value, high = latencies.at(name)[0], latencies.at(name, 1.0)[0]
            if not np.isfinite(high):
                continue
            sd = np.hypot(np.log(high / value) / NORMAL_90, RUN_LOG_SD)
            z = np.log(seen / value) / sd
            total -= 0.5 * (FREEDOM + 1.0) * np.log1p(z * z / FREEDOM) + np.log(sd)
        return float(total)


def _runs(profile: DeviceProfile, measurements: Sequence[Measurement]) -> Iterator[_Run]:
    own = [measurement for measurement in measurements if _tells(profile, measurement)]
    if not own:
        return
    rows = [to_row(run) for run in own]
    names = ("operation", "pattern", "read_fraction", "power_state", *SETTINGS, *FIELDS)
    columns = {name: [row[name] for row in rows] for name in names}
    frame, _ = make_frame(profile, columns, len(own))
    predictor = Predictor(profile)
    prediction, alone = predictor.predict(frame), predictor.predict(alone_of(frame))
    for place, (run, demand) in enumerate(zip(own, demands(frame, columns), strict=True)):
        if demand is None or demand.arrivals not in (Arrivals.POISSON, Arrivals.EVEN):
            continue
        at = slice(place, place + 1)
        row = frame.take(at)
        latencies = work_of(row, prediction.rows(at), demand, alone.rows(at)).latencies
        load = float(latencies.rate[0] / latencies.capacity[0])
        if LOADS[0] <= load <= LOADS[1]:
            written = float(row.request_bytes[0] * (1.0 - row.read_fraction[0]))
            seen = {name: value for name in SEEN if (value := getattr(run.observations, name))}
            yield _Run(latencies, written, seen)


def _tells(profile: DeviceProfile, measurement: Measurement) -> bool:
    """Whether a run has writes below full speed, without pauses and flushes, cache in play."""
    workload, full = measurement.workload, profile.write_state
    return (
        workload.operation is not Operation.READ
        and bool(workload.demand_bytes_per_second or workload.demand_operations_per_second)
        and not (
            workload.think_time_ns or workload.flush_every_writes or workload.force_unit_access
        )
        and measurement.state.device_state != "collecting"
        and (
            full is None
            or (measurement.state.host_bytes_written_since_purge or 0.0) < full.cached_bytes.value
        )
        and any(getattr(measurement.observations, name) for name in SEEN)
    )
