"""Laws 9 to 11: the state of the drive, over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.validation.laws.drawing import (
    Source,
    capacity,
    draw_current,
    draw_work,
    pick,
    question,
    row_at,
    rows_of,
    told,
)
from iojoule.recommender.validation.laws.registry import (
    Finding,
    NotApplicableError,
    law,
    obeys,
)
from iojoule.recommender.validation.laws.subject import Answer, Subject, figure, value

CLIFF = 0.8
"""Steady capacity over that of a drive at rest, above which there is no cliff to be seen."""

BEYOND_STEADY = 1.1
"""What may be carried for ever, over the upper end of the steady capacity."""

DRAWN_FOR_A_CLIFF = 8
"""Configurations that are drawn to find one that is slower when the drive is steady."""

STEADY: dict[str, Any] = {"state": {"device_state": "steady"}}

SHORT_SECONDS = 1.0
"""A horizon within which no drive fills its cache."""

DAY_SECONDS = 86400.0


@law(
    9,
    "Writing for ever is steady",
    "The balance of inflow, folding and garbage collection over the horizon (a year unless said) "
    "decides the state that is judged: what the drive cannot clear in its gaps fills the cache.",
    "a demand of writes or of a mix between the steady capacity and that of the drive at rest: no "
    "row may carry it, as none does where the drive is said to be steady; over a horizon of a "
    "second it may; a horizon of a day is a demand for ever too",
)
def writing_for_ever(subject: Subject, source: Source) -> Iterator[Finding]:
    """One demand beyond what can be written for ever."""
    profile = subject.profile
    for _ in range(DRAWN_FOR_A_CLIFF):
        work = draw_work(profile, source, ("write", "mixed"))
        if work["operation"] == "mixed":
            work["read_fraction"] = round(float(source.uniform(0.05, 0.6)), 2)
        one = draw_current(profile, source, work["useful_request_bytes"])
        rest = value(row_at(subject, work, one, 1.0), "capacity_bytes_per_second")
        steady = figure(row_at(subject, work, one, 1.0, **STEADY), "capacity_bytes_per_second")
        if steady is not None and steady.high * BEYOND_STEADY < CLIFF * rest:
            break
    else:
        raise NotApplicableError("the profile knows no cliff of writes")
    low = steady.high * BEYOND_STEADY
    demand = float(np.exp(source.uniform(np.log(low), np.log(rest * 0.95))))
    writes = demand * (1.0 - work.get("read_fraction", 0.0))
    probe = told(work, one, demand, f"steady at most {steady.high / 1e6:.4g} MB/s")
    yield from _no_more_than_steady(probe, subject, work, one, demand, low, {})
    found, said_steady = (
        subject.recommend(question(work, one, demand, **state)) for state in ({}, STEADY)
    )
    counts = found["counts"]["feasible"], said_steady["counts"]["feasible"]
    yield obeys(
        probe,
        f"{counts[1]} configurations feasible, as where it is said to be steady",
        f"{counts[0]}",
        (counts[0] - counts[1]) / max(counts[1], 1.0),
    )
    short = row_at(subject, work, one, demand, horizon_seconds=SHORT_SECONDS)
    able = value(short, "capacity_bytes_per_second")
    yield obeys(
        f"{probe}, horizon {SHORT_SECONDS:g} s",
        f"capacity of at least {demand / 1e6:.4g} MB/s",
        f"{able / 1e6:.4g} MB/s",
        1.0 - able / demand,
    )
    if writes * DAY_SECONDS > 2.0 * (profile.capacity_bytes or 4e12):
        day = {"horizon_seconds": DAY_SECONDS}
        yield from _no_more_than_steady(probe, subject, work, one, demand, low, day)


def _no_more_than_steady(
    probe: str,
    subject: Subject,
    work: Answer,
    used: Answer,
    demand: float,
    most: float,
    horizon: Answer,
) -> Iterator[Finding]:
    """Whether what is carried for ever is at most the steady capacity."""
    said = f"{probe}, horizon {horizon.get('horizon_seconds', 'left out')}"
    row = row_at(subject, work, used, demand, **horizon)
    able = value(row, "capacity_bytes_per_second")
    yield obeys(
        said,
        f"capacity of at most {most / 1e6:.4g} MB/s",
        f"{able / 1e6:.4g} MB/s",
        able / most - 1.0,
    )
    met = bool(row["meets_sla"])
    yield obeys(said, "the demand is not met", f"meets_sla {met}", float(met))


@law(
    10,
    "What comes later changes nothing before",
    "The first n seconds of a time line do not depend on what follows.",
    "random phases of writing and resting, alone and followed by others, and with the last one "
    "longer: every figure and label of the common steps is the same",
)
def later_changes_nothing(subject: Subject, source: Source) -> Iterator[Finding]:
    """One time line and two that go on."""
    profile = subject.profile
    if profile.device_power is None or profile.write_state is None:
        raise NotApplicableError("the profile follows no writes over time")
    work = draw_work(profile, source, ("write",))
    fields: dict[str, Any] = {
        "operation": "write",
        "pattern": work["pattern"],
        "request_bytes": work["useful_request_bytes"],
        "queue_depth": pick(source, (1, 8, 32)),
        "jobs": pick(source, (1, 4)),
    }
    if source.random() < 0.5:
        cache = profile.write_state.transition_bytes.value
        fields["host_bytes_written_since_purge"] = float(source.uniform(0.0, 1.1)) * cache
    phases = [_phase(profile, source) for _ in range(int(source.integers(1, 4)))]
    name, seconds, rate = phases[-1]
    more = [_phase(profile, source) for _ in range(int(source.integers(1, 3)))]
    longer = [*phases[:-1], (name, seconds * float(source.integers(2, 12)), rate)]
    step = pick(source, (1.0, 2.0, 5.0))
    short = subject.timeline(fields, phases, step)
    # steps of a stretch may be cut at its end, so the last of the shorter one is left out
    steps = len(short["seconds"]) - 1
    for what, then in (("followed by more", [*phases, *more]), ("with a longer end", longer)):
        long = subject.timeline(fields, then, step)
        probe = (
            f"{fields['pattern']} {fields['request_bytes'] // 1024} KiB "
            f"{fields['queue_depth']} x {fields['jobs']}, {_said(phases)}, {what}: "
            f"{_said(then[len(phases) - 1 :])}"
        )
        for quantity, before in short.items():
            one, other = (
                np.asarray(part[:steps], dtype=float) for part in (before, long[quantity])
            )
            scale = np.maximum(np.maximum(np.abs(one), np.abs(other)), 1e-9)
            apart = np.abs(one - other) / scale
            worst = int(np.argmax(apart)) if steps else 0
            most = float(apart[worst]) if steps else 0.0
            yield obeys(
                f"{probe}, {quantity}",
                f"{one[worst] if steps else 0.0:.6g} as before",
                f"{other[worst] if steps else 0.0:.6g} at step {worst + 1}",
                most - 1e-9,
            )


def _phase(profile: DeviceProfile, source: Source) -> tuple[str, float, float | None]:
    if source.random() < 0.3:
        return "idle", float(source.integers(5, 200)), None
    link = profile.link_bytes_per_second
    most = 2e9 if link is None else min(2e9, link.value)
    rate = None if source.random() < 0.6 else float(10 ** source.uniform(7.5, np.log10(most)))
    return "write", float(source.integers(5, 250)), rate


def _said(phases: list[tuple[str, float, float | None]]) -> str:
    return " ".join(
        f"{name}={seconds:g}" + (f"@{rate:.3g}" if rate else "") for name, seconds, rate in phases
    )


@law(
    11,
    "What is unknown holds no promise",
    "A bound that depends on something with neither value nor interval (the cost of a flush in "
    "this profile) is not shown to hold, never met.",
    "writes and mixes that flush (every 1 to 64 writes, or with forced unit access) under a bound "
    "on latency or throughput that the same work without flushes keeps, on the profile without any "
    "cost of a flush: no shown row meets the SLA, and none is recommended",
)
def unknown_holds_nothing(subject: Subject, source: Source) -> Iterator[Finding]:
    """One bound on writes that flush at an unknown cost."""
    profile = subject.profile
    if profile.valid_for.power_loss_protection:
        raise NotApplicableError("with power-loss protection a flush has nothing to do")
    unknown = subject.with_profile(flush=None)
    work = draw_work(profile, source, ("write", "mixed"))
    one = draw_current(profile, source, work["useful_request_bytes"])
    demand = float(source.uniform(0.02, 0.3)) * capacity(unknown, work, one)
    calm = row_at(unknown, work, one, demand)
    bounds = [
        name
        for name in ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "latency_p999_ns")
        if (known := figure(calm, name)) is not None and np.isfinite(known.high)
    ]
    name = pick(source, [*bounds, "throughput"])
    if name == "throughput":
        sla = {"throughput_bytes_per_second_min": demand}
    else:
        known = figure(calm, name)
        assert known is not None
        sla = {f"{name}_max": known.high * float(source.uniform(1.1, 3.0))}
    if not row_at(unknown, work, one, demand, sla=sla)["meets_sla"]:
        return
    flushes: dict[str, Any] = pick(
        source,
        [{"force_unit_access": True}]
        + [{"flush_every_writes": count, "durability": "per_commit"} for count in (1, 1, 8, 64)],
    )
    probe = told(
        work,
        one,
        demand,
        *(f"{field} {told_}" for field, told_ in flushes.items()),
        *(f"{field} {bound:.4g}" for field, bound in sla.items()),
    )
    found = unknown.recommend(question(work | flushes, one, demand, sla=sla))
    rows = [found["current"], *rows_of(found)]
    met = sum(bool(row["meets_sla"]) for row in rows)
    yield obeys(probe, "no row is said to meet the SLA", f"{met} of {len(rows)} rows", float(met))
    yield obeys(
        probe,
        "nothing is recommended as keeping the bound",
        "nothing"
        if found["recommended"] is None
        else f"a row with meets_sla {found['recommended']['meets_sla']}",
        float(found["recommended"] is not None and found["recommended"]["meets_sla"]),
    )
