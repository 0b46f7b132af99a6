"""What measurements must be before a profile is fitted on them: named, with the remedy.

A session is one sitting with one drive, one host and one firmware; sessions may differ, and the fit
knows how much. So what contradicts itself inside a session is refused, what differs between
sessions is only told.

Which measurements a profile is fitted on, and which tell of something else.

What a flush costs, from runs that differ in nothing but their flushes.

A job that flushes after every n of its writes, and then waits, needs for a request

    1 / x = 1 / x0 + w s / n

where x0 is its rate without flushes, w the share of writes and s the time of a flush. So a pair of
runs gives s whatever the depth, if the drive writes back about as much at each flush.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.littles_law import FAIL_ABOVE, USUAL_CAUSES, WARN_ABOVE
from iojoule.datasets.profile import FlushCost, Parameter, PowerLimit
from iojoule.datasets.schema import Configuration, Measurement
from iojoule.datasets.verdict import usable
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.evaluate.power_limit import state_within
from iojoule.model.fit.power_states import twin_key

ONE_A_SESSION = {
    "device_serial_hash": "drives",
    "firmware": "firmware versions",
    "host_id": "hosts",
}
"""Conditions that cannot change within a session, and what several of them are."""

REPEATS_WARN, REPEATS_REFUSE = 1.25, 2.0
"""Ratio of the slowest to the fastest repeat: the public sweeps of one drive a week apart differ
by 1.47 at most, repeats of one sitting by less than 1.1."""

MOST_FAILING = 0.2
"""Share of runs off Little's law above which the whole dataset is in doubt."""

STUCK_ROWS = 5
"""A figure that stays the same to the last digit over so many other configurations is stuck."""

FEWEST = 3
"""Runs of one kind (operation and pattern) without which there is nothing to fit."""

SIZES, DEPTHS = (4096, 16384, 65536, 262144), (1, 4, 16, 64, 256)
"""A good first plan over request size and requests in flight."""


@dataclass(frozen=True)
class Checked:
    """Measurements that may be fitted, and what their reader should know."""

    measurements: list[Measurement]
    notes: list[str]


def check(measurements: Sequence[Measurement]) -> Checked:
    """Put measurements through every gate.

    Raises:
        DataQualityError: They contradict themselves; names where, and the remedy.
        InputError: There are too few; says what to measure next.
    """
    chosen, notes = list(measurements), []
    _refuse_stuck(chosen)
    for gate in (_mixed, _throttled, _littles_law, _repeats):
        chosen, stated = gate(chosen)
        notes += stated
    return Checked(chosen, notes + _too_few(chosen))


def named(measurement: Measurement) -> str:
    """A run by what was set and when."""
    chosen = measurement.configuration
    session = measurement.conditions.session
    return (
        f"{measurement.workload.pattern} {measurement.workload.operation} "
        f"of {chosen.request_bytes} bytes, depth "
        f"{chosen.queue_depth} x {chosen.jobs}" + (f", session {session}" if session else "")
    )


def _few(items: Iterable[str]) -> str:
    listed = list(items)
    return "; ".join(listed[:3]) + (f"; and {len(listed) - 3} more" if len(listed) > 3 else "")


def _mixed(rows: list[Measurement]) -> tuple[list[Measurement], list[str]]:
    """Several drives, hosts or firmware versions: told by session, or refused."""
    notes = []
    for field, many in ONE_A_SESSION.items():
        sessions: dict[str, set[str]] = {}
        silent = 0
        for measurement in rows:
            value = getattr(measurement.conditions, field)
            if value is None:
                silent += 1
            else:
                sessions.setdefault(measurement.conditions.session, set()).add(str(value))
        for session, values in sessions.items():
            if len(values) > 1:
                where = f"session {session}" if session else "runs without session_id"
                raise DataQualityError(
                    f"{where}: {len(values)} {many} ({_few(sorted(values))}); a session is of one: "
                    f"give the runs of each {field} their own session_id, or fit them apart",
                    field=field,
                )
        every = sorted(set().union(*sessions.values()))
        if len(every) > 1:
            notes.append(
                f"{len(every)} {many} ({_few(every)}), told apart by session: the profile is of "
                "their middle, and its intervals know how far they lie apart"
            )
        if every and silent:
            notes.append(
                f"{silent} of {len(rows)} runs do not say their {field}; they are taken for "
                f"{every[0] if len(every) == 1 else 'any of them'}"
            )
    return rows, notes


def _throttled(rows: list[Measurement]) -> tuple[list[Measurement], list[str]]:
    hot = [
        measurement
        for measurement in rows
        if (measurement.conditions.thermal_throttle_seconds or 0.0) > 0
    ]
    if not hot:
        return rows, []
    if len(hot) == len(rows):
        raise DataQualityError(
            f"all {len(rows)} runs were throttled by heat ({named(hot[0])}); cool the drive and "
            "measure again",
            field="thermal_throttle_seconds",
        )
    message = (
        f"{len(hot)} runs are left out, throttled by heat: {_few(map(named, hot))}; cool the drive "
        "and measure them again"
    )
    return _without(rows, hot), [message]


def _without(rows: list[Measurement], those: list[Measurement]) -> list[Measurement]:
    out = {id(measurement) for measurement in those}
    return [measurement for measurement in rows if id(measurement) not in out]


def _littles_law(rows: list[Measurement]) -> tuple[list[Measurement], list[str]]:
    """Leave out the runs that are more than 8 % off; many of them condemn the dataset."""
    wrong, doubtful, judged = [], [], 0
    for run in rows:
        distance = abs(_littles_ratio(run) - 1.0)
        judged += bool(np.isfinite(distance))
        if distance > FAIL_ABOVE:
            wrong.append(run)
        elif distance > WARN_ABOVE:
            doubtful.append(run)
    notes = []
    if wrong:
        message = (
            f"{len(wrong)} of {judged} runs are more than {FAIL_ABOVE:.0%} off Little's law: "
            f"{_few(f'{named(run)}: ratio {_littles_ratio(run):.3f}' for run in wrong)}; "
            f"{USUAL_CAUSES}"
        )
        if len(wrong) > MOST_FAILING * judged:
            raise DataQualityError(f"{message}; correct what is stated or measure again")
        notes.append(f"left out: {message}")
    if doubtful:
        notes.append(
            f"{len(doubtful)} of {judged} runs are more than {WARN_ABOVE:.0%} off Little's law: "
            f"{_few(map(named, doubtful))}"
        )
    return _without(rows, wrong), notes


def _littles_ratio(measurement: Measurement) -> float:
    """Throughput x mean latency / requests in flight; NaN where the law says nothing."""
    ratio = measurement.littles_ratio() if measurement.at_full_speed else None
    return float("nan") if ratio is None else ratio


Sitting = dict[str, list[float]]
"""Operations a second of repeats, by session."""


def repeats(rows: Sequence[Measurement]) -> list[tuple[Measurement, Sitting]]:
    """Repeats of each configuration: one of them, and what each session saw."""
    sittings: dict[tuple[object, ...], tuple[Measurement, Sitting]] = {}
    for measurement in rows:
        # what was written changes the drive: such runs are a series, not repeats
        if (
            not measurement.observations.iops
            or measurement.state.host_bytes_written_since_purge is not None
        ):
            continue
        key: tuple[object, ...] = (
            measurement.workload.model_dump_json(),
            measurement.configuration.model_dump_json(),
            measurement.state.model_dump_json(),
            measurement.conditions.cpu_cores_available,
        )
        _, sessions = sittings.setdefault(key, (measurement, {}))
        sessions.setdefault(measurement.conditions.session, []).append(
            measurement.observations.iops
        )
    return list(sittings.values())


def spread_within(sessions: Sitting) -> float:
    """Ratio of the fastest to the slowest repeat of one session, of the worst session."""
    return max(max(values) / min(values) for values in sessions.values())


def _repeats(rows: list[Measurement]) -> tuple[list[Measurement], list[str]]:
    """Repeats of one sitting must agree; sessions may differ, and are told."""
    torn, apart = [], []
    for example, sessions in repeats(rows):
        within = spread_within(sessions)
        middle = [float(np.median(values)) for values in sessions.values()]
        if within > REPEATS_REFUSE:
            raise DataQualityError(
                f"{named(example)}: repeats of one session contradict each other by a factor "
                f"of {within:.2f} in throughput; give runs of different sittings their own "
                "session_id, leave the wrong ones out, or measure again"
            )
        if within > REPEATS_WARN:
            torn.append(f"{named(example)}: factor {within:.2f}")
        elif max(middle) / min(middle) > REPEATS_WARN:
            apart.append(
                f"{named(example)}: factor {max(middle) / min(middle):.2f} between "
                f"{' and '.join(sorted(sessions))}"
            )
    notes = []
    if torn:
        notes.append(f"unsteady repeats within a session: {_few(torn)}; measure them longer")
    if apart:
        notes.append(f"sessions differ, and are fitted as such: {_few(apart)}")
    return rows, notes


FIGURES = ("iops", "latency_mean_ns", "latency_p99_ns", "device_power_watts", "cpu_power_watts")
"""What must differ between configurations; a wall meter of whole watts may well not."""

POWERS = ("device_power_watts", "cpu_power_watts", "system_power_watts")
"""What is never 0 while the drive serves."""


def _refuse_stuck(rows: list[Measurement]) -> None:
    """A figure that never moves was not measured; power of 0 W under load neither."""
    for name in FIGURES:
        known = [
            (measurement, value)
            for measurement in rows
            if (value := getattr(measurement.observations, name)) is not None
        ]
        settings = {run.configuration.model_dump_json() for run, _ in known}
        if len(settings) >= STUCK_ROWS and len({value for _, value in known}) == 1:
            raise DataQualityError(
                f"{name} is {known[0][1]:g} in all {len(known)} runs of {len(settings)} "
                "configurations: the column is constant, a sensor that is stuck or a wrong column "
                "of the table; correct it or leave it out",
                field=name,
            )
    for run in rows:
        if (run.observations.iops or 0) > 0:
            _refuse_impossible_power(run)


def _refuse_impossible_power(measurement: Measurement) -> None:
    watts = {
        name: value
        for name in POWERS
        if (value := getattr(measurement.observations, name)) is not None
    }
    for name, value in watts.items():
        if value <= 0:
            raise DataQualityError(
                f"{named(measurement)}: {name} is {value:g} while the drive serves; "
                "the sensor was not on its supply or its sign is wrong",
                field=name,
            )
    wall = watts.pop("system_power_watts", None)
    if wall is not None and wall < sum(watts.values()):
        raise DataQualityError(
            f"{named(measurement)}: system_power_watts is {wall:g}, less than its parts "
            f"({', '.join(f'{name} {value:g}' for name, value in watts.items())}); a sensor's unit "
            "or scale is wrong, or the columns are exchanged",
            field="system_power_watts",
        )


def _too_few(rows: list[Measurement]) -> list[str]:
    """Say what is missing, and what to measure next."""
    kinds: dict[str, list[Measurement]] = {}
    for measurement in rows:
        if measurement.observations.iops or measurement.observations.latency_mean_ns:
            kind = f"{measurement.workload.pattern} {measurement.workload.operation}"
            kinds.setdefault(kind, []).append(measurement)
    alone = {kind: own for kind, own in kinds.items() if not kind.endswith("mixed")}
    if not alone or max(map(len, alone.values())) < FEWEST:
        have = ", ".join(f"{len(own)} of {kind}" for kind, own in alone.items()) or "none"
        raise InputError(
            f"too few runs with throughput or latency, of reads or writes alone ({have}): at least "
            f"{FEWEST} of one kind are needed, better request sizes "
            f"{', '.join(map(str, SIZES))} at depths {', '.join(map(str, DEPTHS))}; "
            "`iojoule measure plan --plan quick` lists them"
        )
    return [note for kind, own in alone.items() if (note := _thin(kind, own))]


def _thin(kind: str, own: list[Measurement]) -> str | None:
    sizes = {measurement.configuration.request_bytes for measurement in own}
    depths = {
        measurement.configuration.queue_depth * measurement.configuration.jobs
        for measurement in own
    }
    if len(sizes) >= 3 and len(depths) >= 3:
        return None
    missing = []
    if len(sizes) < 3:
        missing.append("request sizes " + ", ".join(str(s) for s in SIZES if s not in sizes))
    if len(depths) < 3:
        missing.append("requests in flight " + ", ".join(str(d) for d in DEPTHS if d not in depths))
    return (
        f"{kind}: {len(own)} runs over {len(sizes)} sizes and {len(depths)} numbers of requests in "
        f"flight; beyond them it is extrapolated. Measure next: {' and '.join(missing)}"
    )


LEAST_SHARE = 0.1
"""Flushes that take less of the time than this are lost in what repeats differ by."""

LEAST_LOG_SD = 0.1
"""Of the time of a flush: how far one session lies from another is not in the pairs."""


def waits_for_flushes(measurement: Measurement) -> bool:
    """Whether a run is one of flushes: it says nothing of what a drive does without them."""
    return (
        bool(measurement.workload.flush_every_writes)
        and measurement.workload.operation is not Operation.READ
    )


def fit_flush(measurements: Sequence[Measurement]) -> FlushCost | None:
    """The time of a flush; None where no run with flushes has a twin without any.

    Runs with forced unit access are not looked at: they leave nothing to flush.
    """
    without: dict[str, list[float]] = defaultdict(list)
    for measurement in measurements:
        if not waits_for_flushes(measurement) and measurement.observations.iops:
            without[_key(measurement)].append(measurement.observations.iops)
    seconds, every = [], []
    for measurement in measurements:
        twins = without.get(_key(measurement))
        if not waits_for_flushes(measurement) or not measurement.observations.iops or not twins:
            continue
        apart = measurement.workload.flush_every_writes or 1
        share = 1.0 - float(measurement.workload.read_fraction or 0.0)
        longer = measurement.configuration.jobs * (
            1.0 / measurement.observations.iops - 1.0 / np.median(twins)
        )
        if (
            longer * measurement.observations.iops / measurement.configuration.jobs < LEAST_SHARE
            or share == 0.0
        ):
            continue
        seconds.append(longer * apart / share)
        every.append(apart)
    if not seconds:
        return None
    middle = float(np.median(seconds))
    # half the distance between the 5th and the 95th percentile, as of a normal distribution
    low, high = np.quantile(np.log(seconds), [0.05, 0.95])
    return FlushCost(
        seconds=Parameter(
            name="flush_seconds",
            value=middle,
            sd=max(float(high - low) / 3.29, LEAST_LOG_SD),
            unit="s",
            evidence=Evidence.MEASURED,
            source=f"{len(seconds)} runs beside the same ones without flushes",
        ),
        every_writes=(min(every), max(every)),
    )


def _key(measurement: Measurement) -> str:
    """All that was asked of a run but its flushes, and the state that it met."""
    workload = measurement.workload.model_copy(update={"flush_every_writes": None})
    parts = (workload, measurement.configuration, measurement.state.model_copy(update=_HISTORY))
    return "".join(part.model_dump_json() for part in parts)


_HISTORY = {"host_bytes_written_since_purge": None, "seconds_since_last_write": None}
"""Of the state, what differs between any two runs."""


HELD_BACK = 0.95
"""A run that is no faster than this share of its twin without a limit was held back by it."""

LEAST_HELD_BACK = 3

LEAST_SHARE_SD = 0.02
"""Sd of the share of a limit that is drawn; other loads scatter so much."""

TOO_FEW_UNDER_A_LIMIT = (
    f"fewer than {LEAST_HELD_BACK} with watts were held back; sweep `power_limit_watts = [0, ...]`"
)


BY_STATES = 0.5
"""A drive keeps limits by its power states where what held back runs draw scatters less about the
caps of states than this share of its scatter about the limits."""


def fit_limit(
    unlimited: Sequence[Measurement],
    limited: Sequence[Measurement],
    cap_watts: Sequence[float] = (),
) -> PowerLimit | None:
    """How the drive keeps a power limit; None where too few runs were held back by one.

    Args:
        unlimited: Runs without a limit.
        limited: Runs under one.
        cap_watts: Declared caps of the operational power states.
    """
    twins = {
        (run.workload.operation, twin_key(run)): run.observations.throughput_bytes_per_second
        for run in unlimited
        if not run.configuration.power_state and run.at_full_speed
    }
    shares = []
    for run in limited:
        limit, seen = run.configuration.power_limit_watts, run.observations
        twin = twins.get((run.workload.operation, twin_key(run)))
        if run.configuration.power_state or not run.at_full_speed:
            continue
        if not (limit and twin and seen.throughput_bytes_per_second and seen.device_power_watts):
            continue
        if seen.throughput_bytes_per_second < HELD_BACK * twin:
            shares.append((limit, seen.device_power_watts / limit))
    if len(shares) < LEAST_HELD_BACK:
        return None
    drawn = np.array([share for _, share in shares])
    scatter = float(drawn.std(ddof=1) / drawn.mean())
    by_states = False
    if cap_watts:
        caps = [cap_watts[state_within(cap_watts, limit)] for limit, _ in shares]
        of_caps = drawn * [limit / cap for (limit, _), cap in zip(shares, caps, strict=True)]
        by_states = float(of_caps.std(ddof=1) / of_caps.mean()) < BY_STATES * scatter
    return PowerLimit(
        kept_by_states=by_states,
        share_drawn=Parameter(
            name="share_drawn",
            value=float(np.median(drawn)),
            sd=max(float(drawn.std(ddof=1)), LEAST_SHARE_SD),
            unit="1",
            evidence=Evidence.MEASURED,
            source=f"{len(shares)} runs that a power limit held back",
        ),
        measured_watts=sorted({limit for limit, _ in shares}),
    )


@dataclass(frozen=True)
class Selected:
    """Measurements that may be fitted together.

    Attributes:
        measurements: These.
        flush: What a flush costs, by those that waited for one; None = they do not say.
        limited: Those under a power limit.
        notes: What was left out, and what its reader should know.
    """

    measurements: list[Measurement]
    flush: FlushCost | None
    limited: list[Measurement]
    notes: list[str]


def select(measurements: Sequence[Measurement], *, with_doubtful: bool = False) -> Selected:
    """Choose what may be fitted: good runs of one size, no flushes, power verified and unlimited.

    Raises:
        DataQualityError: They contradict themselves (`gates`).
        InputError: There are too few; says what to measure next.
    """
    judged = usable(measurements, with_doubtful=with_doubtful)
    chosen, notes = judged.measurements, list(judged.notes)
    if measurements and not chosen:
        raise DataQualityError(f"nothing is left to fit: {'; '.join(notes)}", field="verdict")
    sizes = [run for run in chosen if run.workload.request_bytes_mix is not None]
    if sizes:
        chosen = [run for run in chosen if run.workload.request_bytes_mix is None]
        notes.append(f"{len(sizes)} measurements of several sizes at once are left out")
    flush = fit_flush(chosen)
    flushing = [run for run in chosen if waits_for_flushes(run)]
    if flushing:
        chosen = [run for run in chosen if not waits_for_flushes(run)]
        found_out = (
            "they have no twins without flushes"
            if flush is None
            else f"a flush takes {1e3 * flush.seconds.value:.3g} ms"
        )
        notes.append(
            f"{len(flushing)} measurements with flushes say what a flush costs, nothing else: "
            f"{found_out}"
        )
    unverified = [run for run in chosen if run.conditions.power_state_verified is False]
    if unverified:
        chosen = [run for run in chosen if run.conditions.power_state_verified is not False]
        notes.append(
            f"{len(unverified)} measurements are left out: nobody verified their power state"
        )
    limited = [run for run in chosen if run.configuration.power_limit_watts]
    checked = check([run for run in chosen if not run.configuration.power_limit_watts])
    return Selected(checked.measurements, flush, limited, notes + checked.notes)


def within_limits(
    rows: list[Measurement], limited: list[Measurement], cap_watts: Sequence[float]
) -> tuple[PowerLimit | None, list[Measurement], list[str]]:
    """How the drive keeps a power limit, all that may be fitted, and what its reader should know.

    Runs under a limit that is kept by power states are runs in these.

    Args:
        rows: Runs without a limit.
        limited: Runs under one.
        cap_watts: Declared caps of the operational power states.
    """
    if not limited:
        return None, rows, []
    limit = fit_limit(rows, limited, cap_watts)
    begins = f"{len(limited)} measurements under a power limit say "
    if limit is not None and limit.kept_by_states:
        in_states = [
            run.model_copy(update={"configuration": _in_state_within(run.configuration, cap_watts)})
            for run in limited
        ]
        return limit, [*rows, *in_states], [f"{begins}that the drive keeps it by its power states"]
    found_out = (
        TOO_FEW_UNDER_A_LIMIT
        if limit is None
        else f"a drive that is held back draws {100 * limit.share_drawn.value:.3g} % of it"
    )
    return limit, rows, [f"{begins}how it is kept, nothing else: {found_out}"]


def _in_state_within(configuration: Configuration, cap_watts: Sequence[float]) -> Configuration:
    watts = configuration.power_limit_watts or 0.0
    state = max(state_within(cap_watts, watts), configuration.power_state or 0)
    return configuration.model_copy(update={"power_state": state, "power_limit_watts": None})
