"""Laws 15 and 16: answers follow from the facts of a drive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.schema import Conditions
from iojoule.recommender.validation.laws.drawing import (
    DEPTHS,
    Source,
    kinds,
    pick,
    question,
    row_at,
)
from iojoule.recommender.validation.laws.form import MORE_DRIVES
from iojoule.recommender.validation.laws.registry import (
    Finding,
    NotApplicableError,
    law,
    obeys,
)
from iojoule.recommender.validation.laws.subject import Answer, Subject, figure

MATTERS = (
    "capacity",
    "dram",
    "generation",
    "idle",
    "iops",
    "lanes",
    "latency",
    "linear_cost",
    "nand",
    "power",
    "rate",
    "slc",
    "throughput",
    "tdp",
    "watts",
)
"""Words in the names of facts that matter to an answer."""

ALIKE = 1e-3
"""Answers that differ by less are one answer."""


@law(
    15,
    "Different drives get different answers",
    "Answers differ where a fact that matters differs: generation, NAND, rated figures, declared "
    "power states.",
    "predictions of the drive against those of other drives of the catalogue whose facts differ, "
    "over operations, sizes, depths and power states: some figure differs by more than 0.1 %",
    expected_failure=MORE_DRIVES,
)
def different_drives(subject: Subject, source: Source) -> Iterator[Finding]:
    """One drive against ten others."""
    own = subject.drive
    if own is None or not subject.drives:
        raise NotApplicableError("the catalogue does not know the drive")
    mine = _signature(subject)
    for name in source.choice(subject.drives, min(10, len(subject.drives)), replace=False):
        drive = load_catalogue().get(str(name))
        differing = sorted(_facts(own) ^ _facts(drive), key=str)
        if not differing:
            continue
        theirs = _signature(subject.other(str(name)))
        shared = [one for one in mine if one in theirs]
        apart = max((abs(mine[one] / theirs[one] - 1.0) for one in shared), default=float("inf"))
        unlike = apart if mine.keys() == theirs.keys() else float("inf")
        yield obeys(
            f"{own.id} and {name}, {len(differing)} facts differ ({differing[0][0]})",
            "figures that differ",
            f"largest difference {unlike:.2g}",
            0.0 if unlike > ALIKE else 1.0 - unlike / ALIKE,
            excused=MORE_DRIVES,
        )


def _facts(drive: Drive) -> set[tuple[str, Any]]:
    facts = {
        (one.metric, one.value)
        for one in drive.facts
        if any(word in one.metric for word in MATTERS) and one.metric != "power_states"
    }
    states = {(f"power_state_{one.index}", one.max_power_watts) for one in drive.operational_states}
    return facts | states | {("interface", drive.interface)}


_WORK = ("operation", "pattern", "useful_request_bytes")


def _signature(subject: Subject) -> dict[str, float]:
    """Figures over a small grid, and watts at a low demand, where idle power tells; kept."""
    if "signature" not in subject.memo:
        rows = [
            {**kind, "request_bytes": 4096 * step, "queue_depth": depth, "jobs": jobs}
            for kind in kinds(subject.profile)
            if kind["operation"] != "mixed"
            for step, depth, jobs in ((1, 1, 1), (1, 32, 4), (32, 8, 1), (64, 32, 4))
        ]
        subject.memo["signature"] = {
            f"{row['operation']} {row['pattern']} {row['request_bytes']} {row['queue_depth']} "
            f"{name}": one.value
            for row, found in zip(rows, subject.predict(rows), strict=True)
            for name, one in found.items()
            if one.value
        }
        work = {**rows[0], "useful_request_bytes": 4096}
        used = {"queue_depth": 1, "jobs": 1, "power_state": 0}
        low = row_at(subject, {name: work[name] for name in _WORK}, used, 1e6)
        watts = figure(low, "device_power_watts")
        if watts is not None:
            subject.memo["signature"]["watts at 1 MB/s"] = watts.value
    found_: dict[str, float] = subject.memo["signature"]
    return found_


@law(
    16,
    "What cannot be is refused",
    "Completion polling and SPDK on SATA, temperatures outside the drive's rating and a PCIe "
    "generation that the drive does not have are refused. What may be but was not measured is "
    "answered wider.",
    "predictions and questions with impossible settings and conditions: refused; the drive's own "
    "generation and a temperature within every rating: answered, no narrower than without",
)
def impossible_is_refused(subject: Subject, source: Source) -> Iterator[Finding]:
    """Impossible settings, impossible conditions, and possible ones that nobody measured."""
    drive = subject.drive
    kind = pick(source, [one for one in kinds(subject.profile) if one["operation"] != "mixed"])
    row = {**kind, "request_bytes": 4096, "queue_depth": pick(source, DEPTHS)}
    if drive is not None and drive.interface == "sata":
        for way in (
            {"engine": "io_uring", "completion": "polled"},
            {"engine": "spdk"},
            {"engine": "io_uring_cmd", "completion": "interrupt"},
        ):
            name = " ".join(way.values())
            yield _refused(
                f"predict with {name} on SATA", lambda way=way: subject.predict([{**row, **way}])
            )
            work = {**kind, "useful_request_bytes": 4096}
            depth = {"queue_depth": 1, "jobs": 1}
            yield _refused(
                f"recommend, today {name} on SATA",
                lambda way=way, work=work, depth=depth: subject.recommend(
                    question(work, {**depth, **way})
                ),
            )
    low, high = _rating(drive)
    for degrees in (high + float(source.uniform(5, 60)), low - float(source.uniform(5, 60))):
        yield _refused(
            f"temperature_celsius_mean {degrees:.0f}",
            lambda degrees=degrees: subject.predict_under(
                {"temperature_celsius_mean": degrees}, row
            ),
        )
    own = None if drive is None else drive.fact("pcie_generation")
    beyond = 6 + int(source.integers(3)) if own is None else int(own.value) + 1
    if drive is None or drive.interface == "nvme":
        yield _refused(
            f"pcie_generation {beyond}",
            lambda: subject.predict_under({"pcie_generation": beyond}, row),
        )
    possible: list[dict[str, Any]] = [{"temperature_celsius_mean": float(source.uniform(30, 55))}]
    if own is not None:
        possible.append({"pcie_generation": int(own.value)})
        possible.append({"pcie_generation": max(int(own.value) - 1, 1)})
    for conditions in possible:
        if "pcie_generation" in conditions and _measured_at(subject, conditions):
            continue
        # one request at a time: no link cuts the interval off
        yield _wider(subject, conditions, row | {"queue_depth": 1})


def _measured_at(subject: Subject, conditions: Answer) -> bool:
    return conditions["pcie_generation"] in subject.profile.valid_for.pcie_generation


def _refused(probe: str, ask: Any) -> Finding:
    try:
        ask()
    except IojouleError as error:
        return obeys(probe, "refused", type(error).__name__, 0.0)
    return obeys(probe, "refused", "answered", float("inf"))


def _wider(subject: Subject, conditions: Answer, row: Answer) -> Finding:
    probe = f"{conditions}, possible but not measured"
    same = dict(conditions)
    for name in conditions:
        listed = getattr(subject.profile.valid_for, name, None)
        if isinstance(listed, list) and listed:
            same[name] = listed[0]
    try:
        found = subject.predict_under(conditions, row)
        if same == conditions:
            same = Conditions().model_dump(exclude_none=True)
        base = subject.predict_under(same, row)
    except IojouleError as error:
        return obeys(probe, "an answer, wider", f"{type(error).__name__}", float("inf"))
    if same == {}:
        return obeys(probe, "an answer", found.text, 0.0)
    ratio = (found.high / found.low) / (base.high / base.low)
    return obeys(probe, f"no narrower than {base.text}", found.text, 1.0 - ratio - 1e-9)


WIDEST_RATING = (-40.0, 85.0)
"""The widest industrial rating of drives, where the catalogue does not know this one's."""


def _rating(drive: Drive | None) -> tuple[float, float]:
    """Rated temperatures of a drive; a temperature that somebody measured is no rating."""
    ends = list(WIDEST_RATING)
    for fact in () if drive is None else drive.facts:
        rated = "temperature" in fact.metric and any(
            word in fact.metric for word in ("operating", "rated", "rating")
        )
        if rated and not isinstance(fact.value, str):
            for place, end in enumerate(("min", "max")):
                if end in fact.metric.split("_"):
                    ends[place] = float(fact.value)
    return ends[0], ends[1]
