"""Random work and configurations that a profile can be asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.frame import operational_states
from iojoule.recommender.validation.laws.registry import NotApplicableError
from iojoule.recommender.validation.laws.subject import POWER, Answer, Subject, figure, value

Source = np.random.Generator

KIB = 1024
SIZES = (4, 8, 12, 16, 32, 64, 128, 256)
"""Request sizes that are drawn, KiB; the first counts four times."""

NEARLY_IDLE = 1e-3
"""Bytes a second that are next to no work: a request of 4 KiB in 47 days."""

NVME_ONLY = ("io_uring_cmd", "spdk")
"""Engines that speak NVMe to the drive."""

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
JOBS = (1, 2, 4, 8, 16)


def pick(source: Source, items: Sequence[Any]) -> Any:
    """One of some items."""
    return items[int(source.integers(len(items)))]


def kinds(profile: DeviceProfile) -> list[dict[str, Any]]:
    """Every operation and pattern that a profile answers for, mixes among them."""
    known = {(str(one.operation.value), str(one.pattern.value)) for one in profile.surfaces}
    found = [{"operation": operation, "pattern": pattern} for operation, pattern in sorted(known)]
    mixed = [
        {"operation": "mixed", "pattern": pattern}
        for pattern in ("random", "sequential")
        if {("read", pattern), ("write", pattern)} <= known
    ]
    return found + mixed


def draw_work(
    profile: DeviceProfile, source: Source, operations: Sequence[str] | None = None
) -> dict[str, Any]:
    """A workload without demand: operation, pattern, size, and of a mix its share of reads.

    Raises:
        NotApplicableError: The profile answers for none of the operations.
    """
    known = [one for one in kinds(profile) if operations is None or one["operation"] in operations]
    if not known:
        raise NotApplicableError(f"the profile answers for no {' or '.join(operations or ())}")
    work = dict(pick(source, known))
    if work["operation"] == "mixed":
        work["read_fraction"] = round(float(source.uniform(0.05, 0.95)), 2)
    work["useful_request_bytes"] = KIB * pick(source, (SIZES[0],) * 3 + SIZES)
    return work


def ways(profile: DeviceProfile, *, spinning: bool) -> list[tuple[str, str, bool]]:
    """Engine, completion and submission polling that a profile knows and its drive allows.

    Args:
        profile: Of the drive.
        spinning: Whether threads may poll; never on a SATA drive.
    """
    known = {
        (str(one.engine.value), str(one.completion.value), one.submission_polling)
        for one in profile.host.paths
    }
    if interface(profile) == "sata":
        known = {one for one in known if one[0] not in NVME_ONLY}
        spinning = False
    return sorted(one for one in known if spinning or (one[1] == "interrupt" and not one[2]))


def interface(profile: DeviceProfile) -> str | None:
    """How the drive is attached, by the catalogue; None where it does not know the drive."""
    try:
        return str(load_catalogue().get(profile.device).interface)
    except UnknownDeviceError:
        return None


def draw_current(
    profile: DeviceProfile,
    source: Source,
    size: int,
    *,
    spinning: bool = False,
    most: int = 256,
) -> dict[str, Any]:
    """A configuration that the profile knows, of requests of `size` bytes.

    Args:
        profile: Whose ways through the host and power states there are.
        source: Of randomness.
        size: Bytes a request.
        spinning: Whether threads may poll.
        most: Most requests in flight.
    """
    engine, completion, polling = pick(source, ways(profile, spinning=spinning))
    depth = 1 if engine == "psync" else pick(source, [one for one in DEPTHS if one <= most])
    jobs = pick(source, [one for one in JOBS if one * depth <= most])
    return {
        "request_bytes": size,
        "queue_depth": depth,
        "jobs": jobs,
        "engine": engine,
        "completion": completion,
        "submission_polling": polling,
        "scheduler": "none",
        "power_state": pick(source, operational_states(profile)),
    }


def question(
    work: Mapping[str, Any],
    current: Mapping[str, Any] | None,
    demand: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A workload profile as plain data; Poisson arrivals where a demand is stated."""
    stated = dict(work)
    if demand is not None:
        stated["demand_bytes_per_second"] = demand
        stated.setdefault("arrival_process", "poisson")
    asked: dict[str, Any] = {"workload": stated, **more}
    if current is not None:
        asked["current"] = dict(current)
    return asked


def row_at(
    subject: Subject,
    work: Mapping[str, Any],
    current: Mapping[str, Any],
    demand: float | None = None,
    **more: Any,
) -> Answer:
    """The row of one configuration at a demand (bytes a second), or at full speed.

    Args:
        subject: What answers.
        work: The workload.
        current: The configuration.
        demand: Useful bytes a second; None for as fast as possible.
        more: Other fields of the workload profile.
    """
    return subject.today(fixed(work, current, demand, **more))


def fixed(
    work: Mapping[str, Any],
    current: Mapping[str, Any],
    demand: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """As `question`, of one configuration that may not change."""
    free = {"power_state": [current["power_state"]]}
    return question(work, current, demand, **more) | {"free": free}


def capacity(subject: Subject, work: Mapping[str, Any], current: Mapping[str, Any]) -> float:
    """Useful bytes a second that a configuration can serve, at rest and under load.

    Under load the state of the drive may be another: the least of both is what can be asked for.
    """
    alone = value(row_at(subject, work, current), "capacity_bytes_per_second")
    loaded = value(row_at(subject, work, current, 0.9 * alone), "capacity_bytes_per_second")
    return float(np.nanmin([alone, loaded]))


def draw_demand(
    subject: Subject,
    source: Source,
    work: Mapping[str, Any],
    configurations: Sequence[Mapping[str, Any]],
    *,
    share: float,
    least: float,
) -> float | None:
    """A demand that some configurations can serve, bytes a second, or none: as fast as possible.

    Args:
        subject: What answers.
        source: Of randomness.
        work: The workload.
        configurations: Those that serve it.
        share: How often there is a demand.
        least: The least load, as a share of the capacity; the most is 0.9.
    """
    if source.random() >= share:
        return None
    load = float(source.uniform(least, 0.9))
    return load * min(capacity(subject, work, one) for one in configurations)


def told(
    work: Mapping[str, Any],
    current: Mapping[str, Any] | None = None,
    demand: float | None = None,
    *rest: str,
) -> str:
    """A question in a line."""
    parts = [f"{work['operation']} {work.get('pattern', 'random')}"]
    if "read_fraction" in work:
        parts[0] += f" {work['read_fraction']:g} read"
    parts.append(f"{work['useful_request_bytes'] / KIB:g} KiB")
    if current:
        polled = current.get("completion") == "polled" or current.get("submission_polling")
        parts.append(
            f"{current['engine']}{' polling' if polled else ''} "
            f"{current['queue_depth']} x {current['jobs']} PS{current['power_state']}"
        )
    if demand is not None:
        parts.append(f"{demand / 1e6:.4g} MB/s")
    return ", ".join([*parts, *rest])


def rows_of(answer: Mapping[str, Any]) -> list[Answer]:
    """The recommended row and those of the Pareto set."""
    first = [answer["recommended"]] if answer.get("recommended") else []
    return [*first, *answer.get("pareto", ())]


def in_flight(row: Mapping[str, Any], useful_bytes: float) -> float:
    """Requests of the application in flight that a row's configuration needs."""
    used = row["configuration"]
    found: float = used["queue_depth"] * used["jobs"] * used["request_bytes"] / useful_bytes
    return found


def polls(row: Mapping[str, Any]) -> bool:
    """Whether a thread spins for completions or submissions."""
    used = row["configuration"]
    return bool(
        used["completion"] == "polled" or used["submission_polling"] or used["engine"] == "spdk"
    )


def scopes(row: Mapping[str, Any]) -> list[str]:
    """Scopes whose power a row knows.

    Raises:
        NotApplicableError: None at all.
    """
    known = [one for one in POWER if figure(row, POWER[one]) is not None]
    if not known:
        raise NotApplicableError("no power is known")
    return known
