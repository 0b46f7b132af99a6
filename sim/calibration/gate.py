"""Which measurements a calibration may rest on: the others are left out, each with its reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from iojoule.datasets.littles_law import FAIL_ABOVE
from iojoule.datasets.schema import Measurement
from iojoule.datasets.verdict import usable
from iojoule.datasets.vocabulary import Operation
from iojoule.sim.against import SECTOR_BYTES

UNSTEADY = "unsteady"
"""A session with this word in its id is labelled as such."""

REPEATS_APART = 0.25
"""Runs of one configuration further apart than this contradict each other."""


@dataclass(frozen=True)
class Excluded:
    """A measurement that is left out.

    Attributes:
        index: Its place among the measurements, from 0.
        what: What it is, for people.
        reason: Why it is left out.
    """

    index: int
    what: str
    reason: str


def gate(measurements: Sequence[Measurement]) -> tuple[list[int], list[Excluded], list[str]]:
    """The measurements that may be used, those that may not, and what else is to be doubted.

    Returns:
        Indices of the usable ones, the excluded ones, and a sentence for every configuration whose
        usable repeats contradict each other.
    """
    kept: list[int] = []
    excluded: list[Excluded] = []
    for index, each in enumerate(measurements):
        reason = _reason(each)
        if reason is None:
            kept.append(index)
        else:
            excluded.append(Excluded(index, described(each), reason))
    return kept, excluded, list(_contradictions([measurements[index] for index in kept]))


def _reason(each: Measurement) -> str | None:
    seen, conditions = each.observations, each.conditions
    ratio = each.littles_ratio()
    if not usable([each]).measurements:
        return f"its campaign calls it {each.judgement.verdict}: {each.judgement.verdict_reasons}"
    if UNSTEADY in (conditions.session_id or ""):
        return f"session {conditions.session_id} is labelled unsteady"
    if conditions.thermal_throttle_seconds:
        return f"the drive throttled for {conditions.thermal_throttle_seconds:g} s"
    if conditions.power_state_verified is False:
        return "nobody verified its power state"
    if ratio is not None and abs(ratio - 1) > FAIL_ABOVE and not _held_back(each):
        return f"throughput x latency / concurrency is {ratio:.3f}, off Little's law"
    if not seen.throughput_bytes_per_second and not seen.iops:
        return "it has no throughput"
    if each.workload.operation is Operation.MIXED or each.workload.request_bytes_mix:
        return "mixed runs are not simulated here"
    if _held_back(each):
        return "a rate, a think time or flushes held it back"
    if each.configuration.request_bytes % SECTOR_BYTES:
        return f"its size is no multiple of {SECTOR_BYTES} bytes"
    if (each.conditions.cpu_cores_available or each.configuration.jobs) < each.configuration.jobs:
        return "more jobs than cores: it tells of the host's scheduling"
    if each.configuration.scheduler not in (None, "none"):
        return f"the simulated host has no scheduler {each.configuration.scheduler}"
    return None


def _held_back(each: Measurement) -> bool:
    asked = each.workload
    return bool(
        asked.think_time_ns
        or asked.flush_every_writes
        or asked.demand_bytes_per_second
        or asked.demand_operations_per_second
        or asked.force_unit_access
    )


def described(each: Measurement) -> str:
    """A measurement in a few words."""
    chosen, about = each.configuration, each.conditions
    engine = chosen.engine.value if chosen.engine else "any engine"
    place = about.session_id or about.series_id or "no session"
    return (
        f"{each.workload.pattern} {each.workload.operation} of {chosen.request_bytes} bytes, depth "
        f"{chosen.queue_depth} x {chosen.jobs}, {engine}, {place}"
    )


def _contradictions(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Configurations whose runs differ by more than chance; series over time are no repeats."""
    alike: dict[str, list[Measurement]] = defaultdict(list)
    for each in measurements:
        if each.state.host_bytes_written_since_purge is None:
            key = (each.workload, each.configuration, each.state, each.conditions.host_id)
            alike["|".join(part if isinstance(part, str) else part.model_dump_json()
                           for part in key if part is not None)].append(each)  # fmt: skip
    for same in alike.values():
        rates = [iops_of(one) for one in same]
        if len(rates) > 1 and max(rates) > (1 + REPEATS_APART) * min(rates):
            yield (
                f"{described(same[0])}: {len(rates)} runs between {min(rates):.0f} and "
                f"{max(rates):.0f} IOPS (median {median(rates):.0f}) contradict each other; leave "
                "the wrong session out"
            )


def iops_of(each: Measurement) -> float:
    """Requests a second, from the bytes where they are not stated."""
    seen = each.observations
    if seen.iops:
        return seen.iops
    return (seen.throughput_bytes_per_second or 0.0) / each.configuration.request_bytes
