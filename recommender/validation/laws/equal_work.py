"""Laws 1 to 4: equal work on an equal host."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from iojoule.recommender.validation.laws.drawing import (
    NEARLY_IDLE,
    Source,
    capacity,
    draw_current,
    draw_demand,
    draw_work,
    pick,
    polls,
    question,
    row_at,
    scopes,
    told,
)
from iojoule.recommender.validation.laws.registry import (
    Finding,
    NotApplicableError,
    law,
    obeys,
)
from iojoule.recommender.validation.laws.subject import POWER, Answer, Subject, figure, value

SAME_WATTS, SAME_SHARE = 0.2, 0.02
"""Differences of power that are none: W, and share of the power."""

OTHERS_TRIED = 12
"""Other drives that are looked at for one that can do the same work."""

KWH_PER_WATT_YEAR = 8.766


def same(watts: float) -> float:
    """What two readings of so many watts may differ by."""
    return max(SAME_WATTS, SAME_SHARE * abs(watts))


def _comparable(subject: Subject, source: Source, work: Answer, current: Answer) -> str:
    """A random other drive that serves this work in this configuration."""
    for _ in range(OTHERS_TRIED):
        other = pick(source, subject.drives)
        known = {
            (one.operation.value, one.pattern.value)
            for one in subject.other(other).profile.surfaces
        }
        asked = ("read", "write") if work["operation"] == "mixed" else (work["operation"],)
        ways = {
            (one.engine.value, one.completion.value, one.submission_polling)
            for one in subject.other(other).profile.host.paths
        }
        way = (current["engine"], current["completion"], current["submission_polling"])
        if way in ways and all((one, work["pattern"]) in known for one in asked):
            return str(other)
    raise NotApplicableError("no other drive of the catalogue does the drawn work")


def _power(side: Answer) -> tuple[Answer, float, float]:
    """Row of a side, its totals' power and that of its drives."""
    row = side["answer"]["recommended"] or side["answer"]["current"]
    totals = side["totals"] or {}
    return row, value(totals, "power_watts"), value(totals, "device_power_watts")


@law(
    1,
    "Another drive is no other host",
    "What-if on a drive keeps the host's law and settings; the same configuration costs the same "
    "CPU watts, but for the time spent polling or waiting for that drive. Where the host of one "
    "side is unknown, only the drive's watts are compared.",
    "what-if to a random drive of the catalogue, the configuration fixed and interrupt-driven: "
    "equal CPU watts, and a change of power that is that of the drives; the same for several "
    "drives that share the load of one; the same where the host of the first is unknown",
)
def equal_host(subject: Subject, source: Source) -> Iterator[Finding]:
    """One what-if to another drive, and one to more drives."""
    work = draw_work(subject.profile, source)
    current = draw_current(subject.profile, source, work["useful_request_bytes"])
    current["power_state"] = 0
    if not subject.drives:
        raise NotApplicableError("no other drives to compare with")
    other = _comparable(subject, source, work, current)
    most = min(capacity(one, work, current) for one in (subject, subject.other(other)))
    demand = float(source.uniform(0.02, 0.3)) * most
    asked = question(work, current, demand, free={"power_state": [0]}, scope="device_cpu")
    unknown = subject.with_profile(host_power=None, system_power=None)
    changes: list[tuple[Subject, dict[str, Any]]] = [
        (subject, {"drive": other}),
        (subject, {"drives": int(source.integers(2, 5))}),
        (unknown, {"drive": other}),
    ]
    for base, change in changes:
        found = base.what_if(asked, change)
        (before, whole, drives), (after, new, new_drives) = map(
            _power, (found["base"], found["changed"])
        )
        probe = told(
            work,
            current,
            demand,
            f"what-if {change}",
            *(["host unknown"] if base is unknown else []),
        )
        cpu, cpu_after = value(before, "cpu_power_watts"), value(after, "cpu_power_watts")
        if "drive" in change and np.isfinite(cpu) and np.isfinite(cpu_after):
            yield obeys(
                probe,
                f"CPU {cpu:.2f} W on both sides",
                f"{cpu_after:.2f} W",
                abs(cpu_after - cpu) / same(cpu) - 1.0,
            )
        if any(one["quantity"] == "power_watts" for one in found["differences"]):
            apart = (new - whole) - (new_drives - drives)
            allowed = same(cpu if np.isfinite(cpu) else 0.0)
            yield obeys(
                probe,
                "power changes by that of the drives",
                f"host changes by {apart:+.2f} W",
                abs(apart) / allowed - 1.0,
            )


@law(
    2,
    "What is saved behind a supply is saved at its wall, and more",
    "For parts that the metered supply feeds and with everything else unchanged, a saving of drive "
    "and CPU is at least as large at the wall.",
    "pairs of random configurations at one demand, and at full speed: the difference of system "
    "watts is at least that of drive and CPU",
)
def wall_saving(subject: Subject, source: Source) -> Iterator[Finding]:
    """All pairs of a few configurations that do the same work."""
    work = draw_work(subject.profile, source)
    size = work["useful_request_bytes"]
    drawn = [draw_current(subject.profile, source, size, spinning=True) for _ in range(5)]
    demand = draw_demand(subject, source, work, drawn, share=0.7, least=0.02)
    rows = [row_at(subject, work, one, demand, scope="device_cpu") for one in drawn]
    pairs = [(value(row, POWER["device_cpu"]), value(row, POWER["system"])) for row in rows]
    if not np.isfinite(pairs).all():
        raise NotApplicableError("no power at the wall is known")
    for one, other in combinations(range(len(rows)), 2):
        high, low = (one, other) if pairs[one][0] >= pairs[other][0] else (other, one)
        saved, at_wall = (pairs[high][place] - pairs[low][place] for place in (0, 1))
        if saved < SAME_WATTS:
            continue
        yield obeys(
            told(work, drawn[high], demand, f"to {told(work, drawn[low])}"),
            f"at least {saved:.2f} W at the wall",
            f"{at_wall:.2f} W",
            (0.99 * saved - at_wall) / saved,
        )


@law(
    3,
    "A watt of the drive is not bought with ten of the CPU",
    "With scope device no row is recommended whose expected increase of CPU power exceeds its "
    "saving of drive power; where CPU power is unknown, busy polling is not recommended.",
    "random questions of scope device with today's configuration stated and its SLA kept: the "
    "increase of CPU watts of the recommended row against its saving; the same question where the "
    "CPU's power is unknown, with polling free: no polling unless today polls",
)
def drive_watt_for_cpu_watt(subject: Subject, source: Source) -> Iterator[Finding]:
    """One question with today's configuration, asked with and without the law of the CPU."""
    profile = subject.profile
    work = draw_work(profile, source)
    current = draw_current(profile, source, work["useful_request_bytes"], spinning=True)
    demand = float(source.uniform(0.02, 0.8)) * capacity(subject, work, current)
    free: dict[str, Any] = {"completion": "all", "submission_polling": "all"}
    for name in ("queue_depth", "jobs", "engine", "power_state"):
        if source.random() < 0.6:
            free[name] = "all"
    asked = question(work, current, demand, scope="device", free=free)
    probe = told(work, current, demand, f"free {' '.join(free)}")
    for unknown in (False, True):
        judged = subject.with_profile(host_power=None, system_power=None) if unknown else subject
        found = judged.recommend(asked)
        row, today = found["recommended"], found["current"]
        if row is None or not today["meets_sla"]:
            continue
        cpu, cpu_today = value(row, "cpu_power_watts"), value(today, "cpu_power_watts")
        if np.isfinite(cpu) and np.isfinite(cpu_today):
            saved = value(today, POWER["device"]) - value(row, POWER["device"])
            more, allowed = cpu - cpu_today, max(saved, 0.0) + 0.02
            yield obeys(
                probe,
                f"CPU takes at most {max(saved, 0.0):.3f} W more",
                f"{more:+.2f} W",
                (more - allowed) / allowed if np.isfinite(saved) else more,
            )
        elif not polls(today):
            yield obeys(
                f"{probe}, CPU power unknown",
                "no busy polling",
                f"{row['configuration']['engine']}, {row['configuration']['completion']}"
                f"{', submission polling' if row['configuration']['submission_polling'] else ''}",
                float(polls(row)),
            )


@law(
    4,
    "No absolute saving contains idle power that nothing would switch off",
    "A configuration that finishes sooner saves what it draws less, not the idle power of the rest "
    "of the time; and a percentage says of what.",
    "work as fast as possible: kWh a year saved against the watts of today, less the same work at "
    "the recommended speed with idle power in the rest of the year; under a demand: percent "
    "against the row's own power; a field that names what the percentage is of",
)
def idle_is_not_saved(subject: Subject, source: Source) -> Iterator[Finding]:
    """One saving as fast as possible, or at a demand."""
    work = draw_work(subject.profile, source)
    current = draw_current(subject.profile, source, work["useful_request_bytes"])
    full = row_at(subject, work, current)
    scope = pick(source, scopes(full))
    demand = draw_demand(subject, source, work, [current], share=0.4, least=0.05)
    found = subject.recommend(question(work, current, demand, scope=scope, concurrency_max=256))
    row, saving = found["recommended"], found["saving"]
    if row is None or saving is None or row["configuration"] == found["current"]["configuration"]:
        return
    probe = told(work, current, demand, f"scope {scope}")
    today, power = found["current"], POWER[scope]
    kwh, watts = figure(saving, "kwh_per_year"), value(saving, "watts")
    speed = "throughput_bytes_per_second"
    if demand is None and kwh is not None:
        other = {name: row["configuration"][name] for name in current}
        # either's idle power may be that of the rest of the year: the lower allows for more
        idle = min(
            value(row_at(subject, work, used, NEARLY_IDLE, scope=scope), power)
            for used in (current, other)
        )
        share = min(value(today, speed) / value(row, speed), 1.0)
        most = value(today, power) - share * value(row, power) - (1.0 - share) * idle
        most_kwh = KWH_PER_WATT_YEAR * most
        allowed = max(0.02 * abs(most_kwh), 0.5)
        yield obeys(
            probe,
            f"at most {most_kwh:.1f} kWh a year",
            f"{kwh.value:.1f} kWh",
            (kwh.value - most_kwh) / allowed - 1.0,
        )
    percent = figure(saving, "percent")
    if demand is not None and percent is not None:
        true = 100.0 * watts / value(today, power)
        yield obeys(
            probe,
            f"{true:.1f} % of today's power of the scope",
            f"{percent.value:.1f} %",
            abs(percent.value - true) - 0.5,
        )
    if percent is not None:
        said = [name for name, told_ in saving.items() if "percent" in name and _words(told_)]
        yield obeys(
            probe,
            "a field of the saving that says what the percentage is of",
            ", ".join(said) or "none",
            float(not said),
        )


def _words(told_: Any) -> bool:
    return isinstance(told_, str) and bool(told_)
