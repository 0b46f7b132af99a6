"""Laws 5 to 8: load."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.model.evaluate.power_limit import with_limits
from iojoule.recommender.validation.laws.drawing import (
    DEPTHS,
    JOBS,
    NEARLY_IDLE,
    Source,
    capacity,
    draw_current,
    draw_demand,
    draw_work,
    in_flight,
    pick,
    question,
    row_at,
    rows_of,
    scopes,
    told,
)
from iojoule.recommender.validation.laws.registry import (
    Finding,
    NotApplicableError,
    law,
    obeys,
)
from iojoule.recommender.validation.laws.subject import (
    POWER,
    Answer,
    Subject,
    estimate,
    figure,
    value,
)

SLEEPING_WATTS = 0.1
"""Threads that sleep may differ by so many watts, and by this share of what work adds: wake-ups
that come together are fewer."""
SLEEPING_SHARE = 0.1

RISING = (1e-6, 0.01, 0.1, 0.3, 0.6, 0.9)
"""Shares of the capacity at which activity must not fall."""

QUEUEING = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
"""Shares of the capacity at which waiting must not fall; from `GROWS_FROM` on it must grow."""
GROWS_FROM = 0.8

LATE = ("latency_mean_ns", "latency_p99_ns")

TIE = 0.01
"""Share within which one answer does not cost less than another."""


@law(
    5,
    "Activity follows the rate that is asked for",
    "Wake-ups, core time, busy threads and polling are those of the demanded rate. At a rate near "
    "zero a configuration costs the idle power of its own idle settings, plus what really spins.",
    "one configuration at next to no work against others with the same idle settings (jobs, depth, "
    "size, engine): equal watts; at 0.1 to 3 % of capacity 32 threads cost what one does; watts "
    "never fall as the demand grows",
)
def activity_follows_the_rate(subject: Subject, source: Source) -> Iterator[Finding]:
    """One configuration against its own twin, at rest, hardly busy and over load."""
    work = draw_work(subject.profile, source)
    size = work["useful_request_bytes"]
    one = draw_current(subject.profile, source, size)
    twin = draw_current(subject.profile, source, size) | {"power_state": one["power_state"]}
    idle, other = (row_at(subject, work, way, NEARLY_IDLE) for way in (one, twin))
    for scope in scopes(idle):
        watts, twins = value(idle, POWER[scope]), value(other, POWER[scope])
        yield obeys(
            told(work, one, None, f"next to no work, against {_way(twin)}, scope {scope}"),
            f"{watts:.3f} W, as idle as the other",
            f"{twins:.3f} W",
            abs(watts - twins) / SLEEPING_WATTS - 1.0,
        )
    few, many = (one | {"queue_depth": 1, "jobs": jobs} for jobs in (1, 32))
    rate = float(10 ** source.uniform(-3.0, -1.5)) * capacity(subject, work, few)
    rest, alone, crowd = (
        row_at(subject, work, way, at)
        for way, at in ((few, NEARLY_IDLE), (few, rate), (many, rate))
    )
    for scope in scopes(alone):
        base, single, crowded = (value(row, POWER[scope]) for row in (rest, alone, crowd))
        allowed = SLEEPING_WATTS + SLEEPING_SHARE * abs(single - base)
        yield obeys(
            told(work, few, rate, f"1 job and 32, scope {scope}"),
            f"{single:.3f} W +- {allowed:.2f} W",
            f"{crowded:.3f} W",
            abs(crowded - single) / allowed - 1.0,
        )
    most = capacity(subject, work, one)
    rising = [row_at(subject, work, one, most * share) for share in RISING]
    for scope in scopes(idle):
        seen = [value(row, POWER[scope]) for row in rising]
        worst = max(low / high - 1.0 for low, high in pairwise(seen))
        yield obeys(
            told(work, one, None, f"{', '.join(map(str, RISING))} of capacity, scope {scope}"),
            "watts that do not fall",
            " ".join(f"{watts:.3f}" for watts in seen),
            worst / 1e-3 - 1.0,
        )


def _way(used: Answer) -> str:
    return f"{used['engine']} {used['queue_depth']} x {used['jobs']}"


@law(
    6,
    "A busier drive answers later",
    "Under an open loop the queueing delay, counted from arrival and including the wait for a "
    "slot, grows with the demand and without bound towards capacity. Where the demand lies inside "
    "capacity's own interval the upper end is unbounded.",
    "one configuration under Poisson arrivals at 30 to 99.9 % of its capacity: mean and "
    "percentiles do not fall from 50 % on, grow from 80 % on, are at 99.9 % three times those at "
    "50 %; upper ends are unbounded where the demand is above the lower end of the capacity",
)
def busier_answers_later(subject: Subject, source: Source) -> Iterator[Finding]:
    """One configuration over load."""
    work = draw_work(subject.profile, source)
    if source.random() < 0.7:
        work["arrival_process"] = "poisson"
    one = draw_current(subject.profile, source, work["useful_request_bytes"], spinning=True)
    most = capacity(subject, work, one)
    rows = [row_at(subject, work, one, most * share) for share in QUEUEING]
    for name in ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "latency_p999_ns"):
        seen = [value(row, name) for row in rows]
        if np.isnan(seen).any():
            continue
        probe = told(work, one, None, f"{name} at {QUEUEING[0]:g} to {QUEUEING[-1]:g} of capacity")
        shown = " ".join(f"{latency / 1e3:.4g}" for latency in seen) + " us"
        with np.errstate(invalid="ignore"):
            steps = np.diff(np.minimum(seen, 1e300)) / np.minimum(seen[:-1], 1e300)
        falls = -float(steps[1:].min()) - 1e-6
        yield obeys(probe, "does not fall from half the capacity on", shown, falls)
        busy = [step for step, share in zip(steps, QUEUEING[1:], strict=True) if share > GROWS_FROM]
        yield obeys(probe, "grows from 80 % of the capacity on", shown, 1e-4 - min(busy))
        at_half = seen[QUEUEING.index(0.5)]
        growth = 2.0 if name == "latency_p50_ns" else 3.0
        yield obeys(
            probe,
            f"{growth:g} times as long at 99.9 % as at 50 %",
            shown,
            growth - seen[-1] / at_half if np.isfinite(seen[-1]) else 0.0,
        )
    for share, row in zip(QUEUEING, rows, strict=True):
        able, asked = figure(row, "capacity_bytes_per_second"), most * share
        if able is None or not able.low < asked:
            continue
        for name in ("latency_mean_ns", "latency_p99_ns"):
            late = figure(row, name)
            if late is not None:
                yield obeys(
                    told(work, one, asked, f"capacity from {able.low / 1e6:.4g} MB/s, {name}"),
                    "an unbounded upper end",
                    f"{late.high / 1e3:.4g} us",
                    0.0 if np.isinf(late.high) else 1.0,
                )
        break


@law(
    7,
    "More work never costs less",
    "More work never costs less; a looser bound, a larger cap, a wider choice never costs more "
    "(within 1 %), among rows that may be recommended.",
    "pairs of random questions that differ in demand, in the requests in flight, in a latency "
    "bound, in a power cap or in the choice of one knob (the last three also with today's "
    "configuration, which keeps both bounds): watts of the first row; what is feasible under the "
    "tighter question is feasible under the looser; of two NVMe power limits the lower one gives "
    "no more throughput and no more power, power stays within the limit, and offering limits as "
    "a choice costs nothing",
)
def more_never_costs_less(subject: Subject, source: Source) -> Iterator[Finding]:
    """Pairs of questions."""
    profile = subject.profile
    work = draw_work(profile, source)
    one = draw_current(profile, source, work["useful_request_bytes"])
    full = row_at(subject, work, one, 0.3 * capacity(subject, work, one))
    scope, most = pick(source, scopes(full)), capacity(subject, work, one)
    demand = float(source.uniform(0.02, 0.6)) * most
    free: Answer = {
        "queue_depth": _some(source, DEPTHS),
        "jobs": _some(source, JOBS),
        "power_state": [0],
        "engine": [one["engine"]],
        "completion": ["interrupt"],
    }

    def cost(
        demanded: float, sla: Answer, choice: Answer, most: int = 256, today: Answer | None = None
    ) -> float:
        asked = question(
            work,
            today,
            demanded,
            scope=scope,
            objective="watts",
            sla=sla,
            free=choice,
            concurrency_max=most,
        )
        found = subject.recommend(asked)
        if today is not None and not found["current"]["meets_sla"]:
            return np.inf  # what then is recommended need not save, so that it is another question
        rows = [row for row in rows_of(found) if row["meets_sla"]]
        return value(rows[0], POWER[scope]) if rows else np.inf

    cheap = cost(demand, {}, free)
    plain = told(work, None, demand, f"scope {scope}")
    dear = cost(demand * float(source.uniform(1.05, 1.5)), {}, free)
    yield _no_dearer(f"{plain}, and more demand", cheap, dear)
    limit = pick(source, (1, 4, 16))
    few, many = (cost(demand, {}, free, most=most) for most in (limit, limit * 4))
    yield _no_dearer(f"{plain}, {limit} requests in flight and four times as many", many, few)
    for today in (None, one):
        probe = told(work, today, demand, f"scope {scope}")
        for name in (name for name in LATE if figure(full, name) is not None):
            bound = value(full, name) * float(np.exp(source.uniform(-2.0, 1.5)))
            loose, tight = (
                cost(demand, {f"{name}_max": bound * factor}, free, today=today)
                for factor in (float(source.uniform(1.05, 2.0)), 1.0)
            )
            yield _no_dearer(f"{probe}, {name}_max={bound:.4g} and looser", loose, tight)
        base = cost(demand, {}, free, today=today)
        cap, name = base * float(source.uniform(0.95, 1.3)), f"{POWER[scope]}_max"
        if np.isfinite(cap):
            loose, tight = (
                cost(demand, {name: watts}, free, today=today) for watts in (cap * 1.3, cap)
            )
            yield _no_dearer(f"{probe}, {name}={cap:.4g} and more", loose, tight)
        for knob in source.choice(list(free), 2, replace=False):
            wide = cost(demand, {}, free | {str(knob): "all"}, today=today)
            yield _no_dearer(f"{probe}, {knob} of {free[knob]} and of all", wide, base)
    if limits := _draw_limits(subject, source, work, one):
        yield from _lower_limit_does_less(subject, work, one, limits)
        wide = cost(demand, {}, free | {"power_limit_watts": [0.0, *limits]})
        yield _no_dearer(f"{plain}, and power limits of {limits}", wide, cheap)


def _draw_limits(subject: Subject, source: Source, work: Answer, one: Answer) -> list[float]:
    """Two power limits, the lower first; none where the drive or its profile takes none."""
    drawn = value(row_at(subject, work, one | {"power_state": 0}), POWER["device"])
    lower = drawn * float(source.uniform(0.4, 1.1))
    limits = [round(watts, 3) for watts in (lower, lower * float(source.uniform(1.05, 1.6)))]
    try:
        with_limits(subject.profile, limits)
    except InputError:
        return []
    return limits


def _lower_limit_does_less(
    subject: Subject, work: Answer, one: Answer, limits: list[float]
) -> Iterator[Finding]:
    """One configuration at full speed under two power limits, and under none."""
    rows = [
        row_at(subject, work, one | {"power_state": 0, "power_limit_watts": watts})
        for watts in (*limits, 0.0)
    ]
    for watts, row in zip(limits, rows, strict=False):
        most = estimate(row[POWER["device"]]).high
        probe = told(work, one, None, f"limited to {watts} W")
        yield obeys(probe, "no more than the limit is drawn", f"{most:.4g} W", most - watts - 1e-6)
    for name in ("capacity_bytes_per_second", POWER["device"]):
        for (watts, lower), higher in zip(zip(limits, rows, strict=False), rows[1:], strict=True):
            less, more = value(lower, name), value(higher, name)
            yield obeys(
                told(work, one, None, f"limited to {watts} W, and to more or not at all"),
                f"no higher {name} under the lower limit",
                f"{less:.5g} against {more:.5g}",
                less / more - 1.0 - 1e-9,
            )


def _some(source: Source, items: tuple[int, ...]) -> list[int]:
    """A few of the items, the first always among them."""
    count = int(source.integers(1, len(items) - 1))
    return [items[0], *sorted(int(one) for one in source.choice(items[1:], count, replace=False))]


def _no_dearer(probe: str, less: float, more: float) -> Finding:
    """Whether the easier question costs no more than the harder; infinite is infeasible."""
    seen = f"{less:.4g} W against {more:.4g} W"
    if np.isinf(more):
        return obeys(probe, "no more than infeasible", seen, 0.0)
    return obeys(probe, "the easier costs at most 1 % more", seen, less / more - 1.0 - TIE - 1e-9)


@law(
    8,
    "Nobody invents clients",
    "Requests in flight, counted in the application's requests, stay at most what it has today "
    "unless the workload says that more can be had. With neither, each row states the concurrency "
    "it needs.",
    "random questions with depth, jobs and size free: depth x jobs x request size of every shown "
    "row over the application's request size, against today's or `concurrency_max`; without "
    "either, the row's own `concurrency`",
)
def no_invented_clients(subject: Subject, source: Source) -> Iterator[Finding]:
    """The same question with today's configuration, a limit, and neither."""
    profile = subject.profile
    work = draw_work(profile, source)
    size = work["useful_request_bytes"]
    if work.get("pattern") == "sequential" or source.random() < 0.3:
        work["request_bytes_coalescible"] = size * int(2 ** source.integers(1, 5))
    one = draw_current(profile, source, size, most=32)
    demand = draw_demand(subject, source, work, [one], share=0.6, least=0.05)
    today = float(one["queue_depth"] * one["jobs"])
    more: list[tuple[float, dict[str, Any]]] = [(today, {})]
    limit = int(today * pick(source, (1, 2, 4)))
    more.append((float(limit), {"concurrency_max": limit}))
    for most, stated in more:
        asked = question(work, one, demand, **stated)
        probe = told(work, one, demand, *(f"{name} {text}" for name, text in stated.items()))
        needed = [in_flight(row, size) for row in rows_of(subject.recommend(asked))]
        if needed:
            yield obeys(
                probe,
                f"at most {most:g} requests in flight",
                f"up to {max(needed):g}",
                max(needed) / most - 1.0 - 1e-9,
            )
    for stated in ({}, {"concurrency_max": "unbounded"}):
        found = subject.recommend(question(work, None, demand, **stated))
        rows = rows_of(found)
        if not rows:
            raise NotApplicableError("nothing is feasible")
        wrong = [
            row
            for row in rows
            if not abs(_stated(row.get("concurrency")) - in_flight(row, size)) <= 1e-6
        ]
        yield obeys(
            told(work, None, demand, "no current", *map(str, stated.values())),
            "every row states the requests in flight it needs",
            f"{len(wrong)} of {len(rows)} rows do not",
            float(len(wrong) > 0),
        )


def _stated(concurrency: Any) -> float:
    if isinstance(concurrency, dict):
        concurrency = concurrency.get("value")
    return float("nan") if concurrency is None else float(concurrency)
