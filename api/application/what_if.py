"""What-ifs and their sweeps as the command line, notebooks and the service hand them out."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from iojoule import __version__
from iojoule.api.application.profiles import profile_in, profile_of
from iojoule.api.application.recommend import stated_value
from iojoule.api.application.what_if_response import WhatIfAnswer
from iojoule.api.reports.what_if import verdict
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Section
from iojoule.recommender.request import read_text
from iojoule.recommender.what_if.changes import kind_of
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.outcome import Outcome
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.recommender.what_if.sweep import (
    Record,
    Sweep,
    Threshold,
    record,
    run,
    thresholds,
)
from iojoule.sim.modified_drive import UNBOUNDED, Simulating
from iojoule.sim.sweep import parse_axis
from iojoule.sim.workers import Pool

SAVE_SECONDS = 10.0
"""What was answered is stored so often while a sweep goes on."""


CONTINUOUS = ("growth", "demand", "demand_iops", "mix", "cap")
"""Axes on which a threshold is sought between the points, where nothing must be simulated."""


class SweepAnswer(Section):
    """What a sweep found.

    Attributes:
        file: Where all of it is stored.
        points: How many there are; `feasible` those with an answer that meets the SLA, `failed`
            those that cannot be answered.
        axes: What was swept.
        thresholds: From which value on the answer changes.
        records: A row a point: what was changed, and what followed.
    """

    iojoule_version: str = __version__
    file: str
    points: int
    feasible: int
    failed: int
    axes: list[str]
    thresholds: list[Threshold]
    records: list[Record]


def named_profile(named: str) -> DeviceProfile:
    """The profile in a file, or of a drive of the catalogue.

    Raises:
        IojouleError: Neither.
    """
    path = Path(named)
    return profile_in(path) if path.suffix == ".json" else profile_of(named)


def what_if(
    base: Situation,
    changes: Mapping[str, Any],
    named: ProfileOf = named_profile,
    simulating: Simulating = UNBOUNDED,
) -> WhatIfAnswer:
    """What the changes change.

    Args:
        base: How things are.
        changes: Field -> new value.
        named: Finds the profile of another drive.
        simulating: How a drive that nobody built is simulated.

    Raises:
        IojouleError: A change is not what it must be, or there is no answer.
    """
    found = Answerer(base, named, simulating).ask(changes)
    fields = {name: getattr(found, name) for name in Outcome.model_fields}
    return WhatIfAnswer.model_construct(
        **fields, summary=verdict(found), iojoule_version=__version__
    )


def stated_changes(said: Mapping[str, str]) -> dict[str, Any]:
    """The values of FIELD=VALUE as TOML writes them; what is no TOML is text."""
    for field in said:
        kind_of(field)
    return {field: stated_value(text) for field, text in said.items()}


def sweep_of(
    base: Situation,
    axes: Sequence[str],
    listed: Path | None,
    fixed: Mapping[str, Any],
) -> Sweep:
    """The sweep over axes (`FIELD=VALUE,VALUE,...`), at each point of a list where one is given.

    Args:
        base: How things are.
        axes: Swept in every combination, the last fastest.
        listed: A CSV file whose header names fields and whose rows are points.
        fixed: Changed at every point.

    Raises:
        InputError: One of them is not what it must be.
    """
    parsed = [parse_axis(text) for text in axes]
    names, rows = ([], [{}]) if listed is None else _read_list(listed)
    stated = Counter([*fixed, *names, *(axis.field for axis in parsed)])
    if twice := sorted(field for field, times in stated.items() if times > 1):
        raise InputError(
            f"{', '.join(twice)}: is stated more than once among changes, axes and points; say it "
            "once",
            field=twice[0],
        )
    parts = [Sweep.over(base, parsed, {**fixed, **row}).points for row in rows]
    points = tuple(point for part in parts for point in part)
    return Sweep(base, points, (*names, *(axis.field for axis in parsed)))


def _read_list(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    header, *rows = list(csv.reader(read_text(path).splitlines())) or [[]]
    names = [name.strip() for name in header]
    if not names or not rows:
        raise InputError(f"{path}: holds no points; write a header of fields and a row a point")
    found = []
    for number, cells in enumerate(rows, 2):
        if len(cells) != len(names):
            raise InputError(
                f"{path}: line {number} has {len(cells)} cells for {len(names)} fields"
            )
        told = {name: cell.strip() for name, cell in zip(names, cells, strict=True) if cell.strip()}
        found.append(stated_changes(told))
    return names, found


def run_sweep(
    sweep: Sweep,
    path: Path,
    pool: Pool,
    *,
    watch: Callable[[int, int], None] | None = None,
    clock: Callable[[], float],
) -> SweepAnswer:
    """Run a sweep into a Parquet file; where the file holds a part of it, the rest.

    What was answered is stored from time to time, and when the run is interrupted or fails.

    Args:
        sweep: The points.
        path: The file.
        pool: Computes.
        watch: Told how many points are answered, and of how many.
        clock: Seconds.

    Raises:
        IojouleError: The file holds something else or cannot be written, or the workers are lost.
    """
    # a what-if without a sweep needs no Parquet, the extra `fit`
    from iojoule.recommender.what_if.sweep_file import read_sweep, write_sweep

    found = read_sweep(sweep, path) if path.exists() else {}
    stored = clock()

    def done(place: int, told: Record) -> None:
        nonlocal stored
        found[place] = told
        if watch is not None:
            watch(len(found), len(sweep.points))
        if clock() - stored >= SAVE_SECONDS:
            write_sweep(sweep, found, path)
            stored = clock()

    try:
        records = run(sweep, named_profile, pool, known=dict(found), done=done)
    finally:
        if found:
            write_sweep(sweep, found, path)
    kinds = [kind_of(field) for point in sweep.points[:1] for field in point]
    seek = len(sweep.axes) == 1 and sweep.axes[0] in CONTINUOUS
    seek = seek and not any(kind.simulated for kind in kinds)
    asked = Answerer(sweep.base, named_profile) if seek else None
    return SweepAnswer(
        file=str(path),
        points=len(records),
        feasible=sum(bool(each["feasible"]) for each in records),
        failed=sum(each["problem"] is not None for each in records),
        axes=list(sweep.axes),
        thresholds=thresholds(
            sweep.points,
            records,
            sweep.axes,
            None if asked is None else lambda point: record(asked.ask(point)),
        ),
        records=[
            {**{f"change.{name}": value for name, value in point.items()}, **told}
            for point, told in zip(sweep.points, records, strict=True)
        ],
    )
