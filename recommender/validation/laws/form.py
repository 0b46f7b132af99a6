"""Laws 12 to 14: the form of predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from iojoule.datasets.profile.document import FACTS_RECIPE
from iojoule.recommender.validation.laws.drawing import (
    DEPTHS,
    JOBS,
    KIB,
    Source,
    draw_current,
    draw_demand,
    draw_work,
    kinds,
    pick,
    question,
    rows_of,
    told,
    ways,
)
from iojoule.recommender.validation.laws.registry import (
    Finding,
    NotApplicableError,
    law,
    obeys,
)
from iojoule.recommender.validation.laws.subject import (
    Answer,
    Figure,
    Subject,
    estimate,
)

MORE_DRIVES = "evidence: more measured drives and sizes"
"""What would mend the failures that are expected."""

RARE = (1e-9, 1e-6)
"""Shares of the other operation that change nothing, and what they may change."""
NOTHING = 0.01

PREDICTED = (
    "throughput_bytes_per_second",
    "iops",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "device_power_watts",
    "cpu_power_watts",
    "system_power_watts",
    "cpu_utilisation",
)


@law(
    12,
    "One request in a million changes nothing",
    "In every predicted quantity of all requests together, mixes tend to the pure operations at "
    "both ends.",
    "predictions of random configurations with a share of 1e-9 and 1e-6 of the other operation "
    "against the pure one: every quantity and the ends of its interval within 1 %",
)
def rare_requests(subject: Subject, source: Source) -> Iterator[Finding]:
    """One configuration at both ends of the mix."""
    work = draw_work(subject.profile, source, ("mixed",))
    size = work["useful_request_bytes"]
    used = draw_current(subject.profile, source, size, spinning=True)
    if source.random() < 0.3:
        used |= {"device_state": pick(source, ("steady", "cached"))}
    for pure, ends in (("read", [1.0 - one for one in RARE]), ("write", list(RARE))):
        base = {"pattern": work["pattern"], **used}
        mixes = [{**base, "operation": "mixed", "read_fraction": share} for share in ends]
        alone, *mixed = subject.predict([{**base, "operation": pure}, *mixes])
        for share, found in zip(ends, mixed, strict=True):
            probe = told(work | {"read_fraction": share}, used, None, f"against pure {pure}")
            for name in PREDICTED:
                if name in alone and name in found:
                    apart = _apart(alone[name], found[name])
                    yield obeys(
                        f"{probe}, {name}",
                        alone[name].text,
                        found[name].text,
                        apart / NOTHING - 1.0,
                    )


def _apart(one: Figure, other: Figure) -> float:
    """Largest relative difference of the values and of the ends of their intervals."""
    pairs = ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    found = [abs(b - a) / max(abs(a), 1e-12) if a != b else 0.0 for a, b in pairs]
    return float(np.max(found))


REPEATABILITY = 0.05
"""Share by which runs of one session differ."""

_SIZE_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128)
_DEPTH_STEPS = (1, 2, 4, 6, 8, 16, 32, 64, 128)
_MEASURED = ("measured",)


@law(
    13,
    "Between two measured neighbours lies what is between them",
    "What lies between two measured configurations (one session, within its repeatability, same "
    "alignment, same number of commands a request) is predicted between them, unless the interval "
    "says otherwise.",
    "pairs of predictions with evidence `measured` that differ in request size or in depth only: "
    "mean and 99th percentile latency in between, against the range of both",
    expected_failure=f"{MORE_DRIVES}",
)
def between_neighbours(subject: Subject, source: Source) -> Iterator[Finding]:
    """A few pairs of measured neighbours."""
    pairs = _neighbours(subject)
    if not pairs:
        raise NotApplicableError("no two measured configurations are neighbours")
    for _ in range(4):
        axis, low, high, between = pick(source, pairs)
        one, other, *inner = subject.predict([low, high, *between])
        for row, found in zip(between, inner, strict=True):
            for name in ("latency_mean_ns", "latency_p99_ns"):
                if name not in found or found[name].evidence in _MEASURED:
                    continue
                ends = sorted((one[name].value, other[name].value))
                least, most = ends[0] / (1 + REPEATABILITY), ends[1] * (1 + REPEATABILITY)
                seen = found[name]
                outside = max(seen.low / most, least / max(seen.high, 1e-300)) - 1.0
                probe = (
                    f"{row['operation']} {row['pattern']}, {row['engine']} "
                    f"{row['queue_depth']} x {row['jobs']}, {row['request_bytes'] // KIB} KiB, "
                    f"between {axis} {low[axis]} and {high[axis]}, {name}"
                )
                yield obeys(
                    probe,
                    f"{ends[0] / 1e3:.4g} to {ends[1] / 1e3:.4g} us",
                    f"{seen.value / 1e3:.4g} [{seen.low / 1e3:.4g}, {seen.high / 1e3:.4g}] us",
                    outside,
                    excused=MORE_DRIVES,
                )


Pair = tuple[str, Answer, Answer, list[Answer]]


def _neighbours(subject: Subject) -> list[Pair]:
    """Pairs of measured configurations, and configurations in between; kept."""
    if "neighbours" not in subject.memo:
        profile = subject.profile
        rows: list[Answer] = []
        for kind in kinds(profile):
            surface = profile.surface(kind["operation"], kind["pattern"])
            if surface is None or surface.evidence.value not in _MEASURED:
                continue
            for engine, completion, polling in ways(profile, spinning=True):
                way = {
                    **kind,
                    "engine": engine,
                    "completion": completion,
                    "submission_polling": polling,
                }
                rows += [
                    {**way, "request_bytes": 4 * KIB * step, "queue_depth": depth, "jobs": jobs}
                    for step in _SIZE_STEPS
                    for depth in ((1,) if engine == "psync" else _DEPTH_STEPS)
                    for jobs in JOBS
                ]
        found = subject.predict(rows) if rows else []
        known = [
            row
            for row, one in zip(rows, found, strict=True)
            if one["latency_mean_ns"].evidence in _MEASURED
        ]
        most = profile.max_transfer_bytes
        pairs = _pairs(known, "request_bytes", [4 * KIB * step for step in _SIZE_STEPS], most)
        subject.memo["neighbours"] = pairs + _pairs(known, "queue_depth", list(_DEPTH_STEPS), most)
    pairs_found: list[Pair] = subject.memo["neighbours"]
    return pairs_found


def _pairs(known: list[Answer], axis: str, steps: list[int], most: int) -> list[Pair]:
    lines: dict[tuple[Any, ...], list[Answer]] = defaultdict(list)
    for row in known:
        lines[tuple(item for item in row.items() if item[0] != axis)].append(row)
    found = []
    for line in lines.values():
        line.sort(key=lambda row: int(row[axis]))
        for low, high in pairwise(line):
            inner = [{**low, axis: at} for at in steps if low[axis] < at < high[axis]]
            same_commands = -(-low["request_bytes"] // most) == -(-high["request_bytes"] // most)
            if inner and same_commands:
                found.append((axis, low, high, inner))
    return found


LONGEST_NS = 1e11
"""No request of a drive in work takes 100 s: hosts give up after 30 s (Linux, nvme_core io_timeout)
and reset it. The upper end of an interval may lie just below saturation: `LONGEST_END_NS`."""

LONGEST_END_NS = 3.6e12

WIDEST_UNMEASURED = 4.0
"""Median of high / low of the IOPS of a drive that nobody measured."""


@law(
    14,
    "No interval beyond the possible",
    "No latency of years, no throughput above the link, no saving above 100 %. An unmeasured "
    "drive's 90 % interval of IOPS has a median width (high / low) of at most 4.",
    "every estimate of random predictions (with gaps and bursts) and answers: ends in order around "
    "the value, powers and speeds not negative, latency below 100 s (its end 1 h) unless "
    "unbounded, throughput and capacity within the link, savings at most 100 %; of an unmeasured "
    "drive the median width",
    expected_failure=f"the width of an unmeasured drive's interval: {MORE_DRIVES}",
)
def possible_intervals(subject: Subject, source: Source) -> Iterator[Finding]:
    """One prediction with gaps, one answer, and the widths of an unmeasured drive."""
    profile = subject.profile
    work = draw_work(profile, source)
    size = work["useful_request_bytes"]
    used = draw_current(profile, source, size, spinning=True)
    asked = {name: cell for name, cell in work.items() if name != "useful_request_bytes"} | used
    link = _link(subject) / max(work.get("read_fraction", 1.0), 1 - work.get("read_fraction", 1.0))
    rows = [asked, *(asked | _gap(subject, source) for _ in range(GAPS_DRAWN))]
    for row, answered in zip(rows, subject.predict(rows), strict=True):
        gaps = [f"{one} {row[one]:.3g}" for one in _GAP if one in row]
        probe = told(work, row, None, *gaps)
        for name, found in answered.items():
            yield _possible(f"{probe}, {name}", name, found, link, size)
    rest = {name: cell for name, cell in _gap(subject, source).items() if name in _OF_WORKLOAD}
    if rest and source.random() < 0.3:
        work |= rest
        demand = None
    else:
        demand = draw_demand(subject, source, work, [used], share=0.7, least=0.01)
    answer = subject.recommend(question(work, used, demand))
    probe = told(work, used, demand, *(f"{one} {work[one]:.3g}" for one in _GAP if one in work))
    for row in [answer["current"], *rows_of(answer)[:4]]:
        for name, stated in row.items():
            if isinstance(stated, dict) and {"value", "low", "high"} <= set(stated):
                yield _possible(f"{probe}, {name}", name, estimate(stated), link, size)
    saving = answer.get("saving") or {}
    if saving.get("percent") is not None:
        percent = estimate(saving["percent"])
        yield obeys(f"{probe}, saving", "at most 100 %", percent.text, percent.high / 100.0 - 1.0)
    if profile.recipe == FACTS_RECIPE:
        yield _width(subject, work)


GAPS_DRAWN = 12
_OF_WORKLOAD = ("idle_gap_seconds_p50", "idle_gap_seconds_p99", "burst_bytes")
_GAP = ("idle_gap_seconds_p50", "burst_bytes", "apst_enabled")


def _gap(subject: Subject, source: Source) -> Answer:
    """Random gaps between bursts, half of them of one request at a time."""
    if subject.profile.idle is None:
        return {}
    gap = float(10 ** source.uniform(-6, 4))
    found: Answer = {
        "idle_gap_seconds_p50": gap,
        "idle_gap_seconds_p99": gap * float(source.uniform(1.0, 100.0)),
        "burst_bytes": float(10 ** source.uniform(3.6, 10)),
    }
    if source.random() < 0.5:
        found |= {"queue_depth": 1, "jobs": 1}
    if subject.drive is None or subject.drive.interface != "sata":
        found["apst_enabled"] = bool(source.random() < 0.5)
    return found


def _possible(probe: str, name: str, one: Figure, link: float, size: int) -> Finding:
    """Whether an estimate is one that can be."""
    unordered = not (one.low <= one.value * (1 + 1e-9) and one.value <= one.high * (1 + 1e-9))
    if unordered or np.isnan([one.value, one.low, one.high]).any() or one.low < 0:
        return obeys(probe, "low <= value <= high, none negative", one.text, float("inf"))
    if name.startswith("latency"):
        limits = ((one.value, LONGEST_NS), (one.high, LONGEST_END_NS))
        over = max((end / most for end, most in limits if np.isfinite(end)), default=0.0)
        return obeys(probe, "below 100 s (its end 1 h), or unbounded", one.text, over - 1.0)
    if name in ("throughput_bytes_per_second", "capacity_bytes_per_second", "iops"):
        most = link / size if name == "iops" else link
        return obeys(probe, f"at most {most:.4g}, the link", one.text, one.high / most - 1.0 - 1e-3)
    # energy x latency is unbounded where latency is
    ends = [one.value] if name.startswith("edp") else [one.value, one.high]
    finite = bool(np.isfinite(ends).all())
    return obeys(probe, "finite", one.text, 0.0 if finite else float("inf"))


def _width(subject: Subject, work: Answer) -> Finding:
    rows = [
        {
            "operation": kind["operation"],
            "pattern": kind["pattern"],
            "request_bytes": 4096 * step,
            "queue_depth": depth,
        }
        for kind in kinds(subject.profile)
        if kind["operation"] != "mixed"
        for step in (1, 4, 32)
        for depth in DEPTHS[::2]
    ]
    widths = [one["iops"].high / one["iops"].low for one in subject.predict(rows)]
    width = float(np.median(widths))
    return obeys(
        f"IOPS of {len(rows)} configurations of an unmeasured drive",
        f"high / low of {WIDEST_UNMEASURED:g} in the median",
        f"{width:.2f}",
        width / WIDEST_UNMEASURED - 1.0,
        excused=MORE_DRIVES,
    )


FASTEST_LINK = 32e9 * 128 / 130 / 8 * 4
"""PCIe 5.0 x4, bytes a second."""


def _link(subject: Subject) -> float:
    """The link of a drive, bytes a second; the fastest there is where the profile says none."""
    stated = subject.profile.link_bytes_per_second
    return FASTEST_LINK if stated is None else stated.value
