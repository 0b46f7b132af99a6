"""Many what-ifs: every combination of axes, or a list of points, each as it would be by itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from iojoule.datasets.errors import IojouleError
from iojoule.datasets.schema import Section
from iojoule.recommender.request import Free
from iojoule.recommender.what_if.changes import kind_of
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.outcome import Outcome, Totals
from iojoule.recommender.what_if.situation import ProfileOf, Situation
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
        "problem": str,
        "feasible": bool,
        "host": str,
        "compared_scope": str,
    }
    found |= dict.fromkeys((f"recommended_{name}" for name in Free.model_fields), str)
    for name in Totals.model_fields:
        found |= {f"{name}{end}": float for end in ENDS} | {f"{name}_evidence": str}
        found |= {f"change_{name}{end}": float for end in ENDS}
    found |= {f"saving_percent{end}": float for end in ENDS}
    found |= {
        "cap_kept_by": str,
        "cap_active_drives": float,
        "cap_power_watts": float,
        "cap_served_share": float,
        "cap_deferred_bytes": float,
        "cap_catch_up_seconds": float,
    }
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


CLOSE = 0.005
"""A threshold is sought until its two sides are so close, relative to the value."""


NOTHING_MEETS = "nothing meets the SLA"


class Threshold(Section):
    """Where the answer changes along one axis.

    Attributes:
        field: The axis.
        held: The other swept fields, and what they are held at.
        below: Greatest value that still has the answer before; `above` the least with the next.
        before: The answer below, in words; `after` above.
    """

    field: str
    held: dict[str, Any]
    below: float
    above: float
    before: str
    after: str


def answer_of(record: Record) -> str:
    """What is recommended, in a line; the same words mean the same answer."""
    if not record["feasible"]:
        return NOTHING_MEETS
    said = [
        f"{name} {value}"
        for name in Free.model_fields
        if (value := record[f"recommended_{name}"]) is not None
    ]
    if record["cap_kept_by"] is not None:
        said.append(f"cap kept by {record['cap_kept_by']}")
    return ", ".join(said)


def thresholds(
    points: Sequence[Point],
    records: Sequence[Record],
    axes: Sequence[str],
    ask: Callable[[Mapping[str, Any]], Record] | None = None,
) -> list[Threshold]:
    """Every change of the answer between neighbouring values of a numeric axis.

    Args:
        points: What was changed.
        records: What followed, one a point.
        axes: What was swept.
        ask: Answers further points, so that a threshold can be sought between two of them; None
            leaves it at the neighbours.
    """
    found = []
    for field in axes:
        for held, line in _lines(points, records, axes, field):
            swept = {name: value for name, value in held.items() if name in axes}
            for (low, one), (high, other) in pairwise(line):
                for below, above, before, after in _changes(
                    (low, answer_of(one)), (high, answer_of(other)), _asker(field, held, ask)
                ):
                    found.append(
                        Threshold(
                            field=field,
                            held=swept,
                            below=below,
                            above=above,
                            before=before,
                            after=after,
                        )
                    )
    return found


Ask = Callable[[float], str]
"""The answer at a value of an axis."""


def _asker(
    field: str, held: Mapping[str, Any], ask: Callable[[Mapping[str, Any]], Record] | None
) -> Ask | None:
    return None if ask is None else lambda value: answer_of(ask({**held, field: value}))


def _changes(
    low: tuple[float, str], high: tuple[float, str], ask: Ask | None
) -> Iterator[tuple[float, float, str, str]]:
    """Every change between two points that differ: where, from what to what.

    Each is sought by halving towards the first value with another answer; then what is left above.
    """
    while low[1] != high[1]:
        found = high
        if ask is not None:
            low, found = _first(low, high, ask)
        yield low[0], found[0], low[1], found[1]
        low = found


def _first(
    low: tuple[float, str], high: tuple[float, str], ask: Ask
) -> tuple[tuple[float, str], tuple[float, str]]:
    """Neighbours as close as is asked for: the last with the answer of `low`, and another one."""
    before = low[1]
    while high[0] - low[0] > CLOSE * abs(high[0]):
        middle = 0.5 * (low[0] + high[0])
        told = ask(middle)
        if told == before:
            low = (middle, told)
        else:
            high = (middle, told)
    return low, high


def _lines(
    points: Sequence[Point], records: Sequence[Record], axes: Sequence[str], field: str
) -> Iterator[tuple[dict[str, Any], list[tuple[float, Record]]]]:
    """The points that differ in one field only, by its rising value."""
    lines: dict[str, tuple[dict[str, Any], list[tuple[float, Record]]]] = {}
    for point, record in zip(points, records, strict=True):
        value = point.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if record["problem"] is not None:
            continue
        held = {name: other for name, other in point.items() if name != field}
        lines.setdefault(repr(sorted(held.items())), (held, []))[1].append((float(value), record))
    for held, line in lines.values():
        yield held, sorted(line, key=lambda each: each[0])
