"""Verdicts on the runs of a campaign, unstable points, likely causes, and what to run next.

Modelled on pyperf's `check`: every diagnostic has a number and an advice. Verdicts are stored ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from iojoule.datasets.schema import Measurement
from iojoule.datasets.verdict import IDLE_DRIFT_SHARE
from iojoule.datasets.vocabulary import Verdict
from iojoule.measure.campaign.folder import CampaignState, RunRecord, Status

CONFIDENCE = 0.90
GOAL = 0.05
"""Half-width of the interval of a point's mean that counts as stable, as a fraction of it."""

_CHECKED = {
    "throughput_bytes_per_second": "throughput",
    "latency_p99_ns": "p99 latency",
    "device_power_watts": "drive power",
}
_FEW_REQUESTS_FOR_P99 = 1000
_LOST_SHARE = 0.001


@dataclass(frozen=True)
class Finding:
    """A diagnostic of a campaign's data; no runs = the whole campaign.

    `verdict` and `code` (of its reason) are empty where it is no verdict on runs.
    """

    runs: tuple[int, ...]
    what: str
    why: str
    advice: str
    verdict: str = ""
    code: str = ""


def check(records: Sequence[RunRecord], state: CampaignState) -> list[Finding]:
    """What is unstable about a campaign, beside the verdicts on its runs."""
    done = [
        record
        for record in records
        if record.status is Status.DONE and record.measurement is not None
    ]
    by_point: dict[str, list[RunRecord]] = {}
    for record in done:
        by_point.setdefault(f"{record.sweep}/{record.point}", []).append(record)
    findings: list[Finding] = []
    for group in by_point.values():
        findings += _scatter(group)
    for record in done:
        findings += _single(record)
    findings += _drift(state)
    return findings


def verdicts(records: Sequence[RunRecord]) -> list[Finding]:
    """The verdict on every run: one line a reason of what is not good, one for all that is."""
    findings = []
    for record in records:
        name = _name(record) if record.measurement else record.sweep
        if record.verdict is not None:
            word = record.verdict.verdict.value
            findings += [
                Finding((record.number,), name, reason.said, reason.remedy, word, reason.code.value)
                for reason in record.verdict.reasons
            ]
        elif record.status is Status.FAILED:  # of an older iojoule
            advice = "mend the cause, then `iojoule measure resume`"
            findings.append(
                Finding(
                    (record.number,), name, record.reason or "unknown", advice, Verdict.FAILED.value
                )
            )
    findings.sort(key=lambda finding: finding.verdict != Verdict.FAILED)
    good = tuple(
        record.number for record in records if record.is_good and record.verdict is not None
    )
    unjudged = tuple(
        record.number for record in records if record.is_good and record.verdict is None
    )
    if good:
        findings.append(Finding(good, f"{len(good)} runs", "", "", Verdict.GOOD.value))
    if unjudged:
        findings.append(
            Finding(unjudged, f"{len(unjudged)} runs", "made by an older iojoule", "", "not judged")
        )
    return findings


def _scatter(group: Sequence[RunRecord]) -> Iterator[Finding]:
    numbers = tuple(record.number for record in group)
    seen = [record.measurement.observations for record in group if record.measurement is not None]
    if len(seen) < 2:
        yield Finding(
            numbers,
            f"{_name(group[0])}: measured once",
            "without a repeat nothing is known of its scatter",
            "set repeats = 3 in the plan",
        )
        return
    for field, name in _CHECKED.items():
        values = np.array(
            [value for observation in seen if (value := getattr(observation, field)) is not None]
        )
        if len(values) < 2 or values.mean() == 0:
            continue
        half = half_width(values) / values.mean()
        if half > GOAL:
            more = repeats_needed(values)
            yield Finding(
                numbers,
                f"{_name(group[0])}: {name} is known within {half:.0%} only "
                f"({len(values)} repeats)",
                _reason(group),
                f"repeat it about {more} times in all, or longer runs",
            )


def half_width(values: np.ndarray) -> float:
    """Half-width of the 90 % interval of the mean (Student's t), in the unit of the values."""
    return _half_width(float(values.std(ddof=1)), len(values))


def _half_width(sd: float, count: int) -> float:
    return float(student.ppf(0.5 + CONFIDENCE / 2, count - 1)) * sd / math.sqrt(count)


def repeats_needed(values: np.ndarray) -> int:
    """How many repeats bring the half-width down to the goal if the scatter stays as it is."""
    relative = float(values.std(ddof=1) / values.mean())
    count = len(values)
    while count < 200 and _half_width(relative, count) > GOAL:
        count += 1
    return count


def _reason(group: Sequence[RunRecord]) -> str:
    """The first difference between the repeats that would explain scatter."""
    measured = [record.measurement for record in group if record.measurement is not None]
    for explain in (_throttled, _states, _temperatures, _after_writes):
        reason = explain(measured)
        if reason is not None:
            return reason
    return "no condition that was recorded differs between the repeats"


def _throttled(measured: Sequence[Measurement]) -> str | None:
    seconds = [measurement.conditions.thermal_throttle_seconds or 0 for measurement in measured]
    return "the drive throttled by heat in some of them" if any(seconds) else None


def _states(measured: Sequence[Measurement]) -> str | None:
    states = {measurement.state.device_state for measurement in measured}
    return "the drive was in different states" if len(states) > 1 else None


def _temperatures(measured: Sequence[Measurement]) -> str | None:
    known = [
        value
        for measurement in measured
        if (value := measurement.conditions.temperature_celsius_mean) is not None
    ]
    if known and max(known) - min(known) > 10:
        return f"the drive was between {min(known):g} and {max(known):g} degrees Celsius"
    return None


def _after_writes(measured: Sequence[Measurement]) -> str | None:
    waits = [
        value
        for measurement in measured
        if (value := measurement.state.seconds_since_last_write) is not None
    ]
    if waits and min(waits) < 5:
        return "some began within 5 s of the end of a run that wrote"
    return None


def _single(record: RunRecord) -> Iterator[Finding]:
    assert record.measurement is not None
    number = (record.number,)
    requests = (record.measurement.observations.iops or 0) * (
        ((record.end_monotonic_ns or 0) - (record.begin_monotonic_ns or 0)) / 1e9
    )
    if requests < _FEW_REQUESTS_FOR_P99:
        yield Finding(
            number,
            f"{_name(record)}: {requests:.0f} requests",
            "a 99th percentile of fewer than 1,000 requests rests on fewer than 10 of them",
            f"run it {_FEW_REQUESTS_FOR_P99 / max(requests, 1):.1f} times as long",
        )
    for scope, power in record.power.items():
        total = power.samples + power.lost
        if total and power.lost / total > _LOST_SHARE:
            yield Finding(
                number,
                f"{_name(record)}: {power.lost / total:.2%} of the {scope} power samples are lost",
                "the host did not read the sensor in time, or its cable is bad",
                "keep cores free of fio's jobs (host.cpus), or use another port",
            )


def _drift(state: CampaignState) -> Iterator[Finding]:
    for number, baselines in state.idle.items():
        levels = [baseline.mean_watts for baseline in baselines]
        if len(levels) < 2 or not levels[0]:
            continue
        change = levels[-1] / levels[0] - 1
        if abs(change) > IDLE_DRIFT_SHARE:
            yield Finding(
                (),
                f"idle power in state {number} changed by {change:+.1%} over the campaign",
                "the drive warmed up, housekeeping was not over, or the sensor's zero moved",
                "let the drive settle longer (settle.after_writes_seconds_max), zero the sensor",
            )


def _name(record: RunRecord) -> str:
    assert record.measurement is not None
    words: Mapping[str, object] = {
        **record.measurement.workload.model_dump(mode="json", exclude_none=True),
        **record.measurement.configuration.model_dump(mode="json", exclude_none=True),
    }
    shown = ("operation", "pattern", "request_bytes", "queue_depth", "jobs", "engine")
    parts = [str(words[name]) for name in shown if name in words]
    state = words.get("power_state")
    return f"{record.sweep} {' '.join(parts)}" + (f" PS{state}" if state is not None else "")
