"""Many what-ifs: every combination of axes, or a list of points, each as it would be by itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from iojoule.datasets.errors import IojouleError
from iojoule.recommender.what_if.answering import Answerer
from iojoule.recommender.what_if.changes import kind_of
from iojoule.recommender.what_if.outcome import Outcome, Totals
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.recommender.workload import Free
from iojoule.sim.sweep import Axis, combinations
from iojoule.sim.workers import Pool, cores

ENDS = ("", "_low", "_high")

SIMULATED_SECONDS = 1.0
ANSWERED_SECONDS = 0.05
"""About what a point takes; only their ratio matters."""

WORTH_A_PROCESS = 3.0
"""Seconds of work that a further process must have."""

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Sweep:
    """What is asked, and at which points.

    Attributes:
        base: How things are.
        points: What is changed, point by point.
        axes: What is swept, in order: fields of the points.
    """

    base: Situation
    points: tuple[Point, ...]
    axes: tuple[str, ...]

    @classmethod
    def over(cls, base: Situation, axes: Sequence[Axis], fixed: Point) -> Sweep:
        """Every combination of the axes' values, with the fixed changes at each.

        Raises:
            InputError: Too many combinations, or a field that cannot be changed or is swept twice.
        """
        for field in (*fixed, *(axis.field for axis in axes)):
            kind_of(field)
        points = tuple({**fixed, **values} for values in combinations(axes))
        return cls(base, points, tuple(axis.field for axis in axes))

    def fingerprint(self) -> str:
        """The same for the same question: drive and its conditions, workload, points."""
        base = self.base
        told = {
            "profile": base.profile.model_dump(mode="json"),
            "workload": base.workload.model_dump(mode="json"),
            "surroundings": [base.drives, base.preset, repr(base.geometry), repr(base.cap)],
            "conditions": base.conditions.model_dump(mode="json"),
            "points": [dict(point) for point in self.points],
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class _Shared:
    """What every point needs: the same in each process."""

    base: Situation
    profile_of: ProfileOf
    fingerprint: str

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shared) and other.fingerprint == self.fingerprint


Record = dict[str, Any]
"""One point as a flat row: what was changed, and what followed."""


def run(
    sweep: Sweep,
    profile_of: ProfileOf,
    pool: Pool,
    *,
    known: Mapping[int, Record] | None = None,
    done: Callable[[int, Record], None] | None = None,
) -> list[Record]:
    """Answer every point that is not known yet.

    Args:
        sweep: The points.
        profile_of: Finds other drives; a function of a module, so that it has a name elsewhere.
        pool: Computes.
        known: Records of points that were answered before, by place.
        done: Told of each new record with its place, as they come.

    Returns:
        A record a point, in their order: the same to the bit wherever they are computed.
    """
    found = dict(known or {})
    left = [place for place in range(len(sweep.points)) if place not in found]
    shared = _Shared(sweep.base, profile_of, sweep.fingerprint())
    told = pool.map(
        _record_at,
        [dict(sweep.points[place]) for place in left],
        shared=shared,
        seconds=[_seconds(sweep.points[place]) for place in left],
        done=None if done is None else lambda index, record: done(left[index], record),
    )
    found |= dict(zip(left, told, strict=True))
    return [found[place] for place in range(len(sweep.points))]


def processes_for(sweep: Sweep) -> int:
    """Processes of this machine that a sweep is worth: to start one takes about a second."""
    work = sum(_seconds(point) for point in sweep.points)
    return max(1, min(cores(), int(work / WORTH_A_PROCESS)))


def _seconds(point: Point) -> float:
    simulated = any(kind_of(field).simulated for field in point)
    return SIMULATED_SECONDS if simulated else ANSWERED_SECONDS


@lru_cache(maxsize=2)
def _answerer(shared: _Shared) -> Answerer:
    return Answerer(shared.base, shared.profile_of)


def _record_at(shared: _Shared, point: dict[str, Any]) -> Record:
    """A point that cannot be answered says why, and the others go on."""
    try:
        return record(_answerer(shared).ask(point))
    except IojouleError as error:
        return {**empty(), "problem": error.message}


def columns() -> dict[str, type]:
    """What a record holds beside the changed fields, with its type."""
    found: dict[str, type] = {
        "problem": str, "feasible": bool, "host": str, "compared_scope": str,
    }  # fmt: skip
    found |= dict.fromkeys((f"recommended_{name}" for name in Free.model_fields), str)
    for name in Totals.model_fields:
        found |= {f"{name}{end}": float for end in ENDS} | {f"{name}_evidence": str}
        found |= {f"change_{name}{end}": float for end in ENDS}
    found |= {f"saving_percent{end}": float for end in ENDS}
    found |= {
        "cap_kept_by": str, "cap_active_drives": float, "cap_power_watts": float,
        "cap_served_share": float, "cap_deferred_bytes": float, "cap_catch_up_seconds": float,
    }  # fmt: skip
    return found


def empty() -> Record:
    """A record that knows nothing."""
    return dict.fromkeys(columns())


def record(outcome: Outcome) -> Record:
    """The outcome of a point as a flat row."""
    row, side = empty(), outcome.changed
    row["feasible"] = side.feasible
    row["host"], row["compared_scope"] = outcome.host, outcome.compared_scope.value
    best = side.row
    if best is not None:
        for name in Free.model_fields:
            value = getattr(best.configuration, name)
            row[f"recommended_{name}"] = None if value is None else str(value)
    for name in Totals.model_fields:
        known = None if side.totals is None else getattr(side.totals, name)
        if known is not None:
            row |= _ends(name, known)
            row[f"{name}_evidence"] = known.evidence.value
    for each in outcome.differences:
        row |= _ends(f"change_{each.quantity}", each.change)
    if side.answer.saving is not None:
        row |= _ends("saving_percent", side.answer.saving.percent)
    if side.cap is not None:
        row |= {
            "cap_kept_by": side.cap.kept_by,
            "cap_active_drives": float(side.cap.active_drives),
            "cap_power_watts": side.cap.power_watts.value if side.cap.power_watts else None,
            "cap_served_share": side.cap.served_share,
            "cap_deferred_bytes": side.cap.deferred_bytes,
            "cap_catch_up_seconds": side.cap.catch_up_seconds,
        }
    return row


def _ends(name: str, told: Any) -> Record:
    return {f"{name}{end}": getattr(told, end[1:] or "value") for end in ENDS}
