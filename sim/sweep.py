"""Runs many configurations at once: every combination of the values that are varied."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from iojoule.datasets.errors import InputError
from iojoule.sim.cost import predicted_seconds
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Engine, RunOptions
from iojoule.sim.errors import ConfigError
from iojoule.sim.formats.building import Places, build, did_you_mean, place_in, refusal
from iojoule.sim.result import ScenarioResult
from iojoule.sim.trace_files import TraceFiles
from iojoule.sim.workers import Pool
from iojoule.sim.workers.kept import Kept, key_of, map_kept
from iojoule.sim.workers.local import HERE
from iojoule.sim.workload import ID_FIELDS, Scenario

MAX_COMBINATIONS = 100_000


@dataclass(frozen=True)
class Job:
    """One run: a scenario on a drive.

    Attributes:
        number: The scenario's place in its file.
        labels: What tells this run from the others, such as the drive's file and what was varied.
        places: Where fields stand in the files, for what the engine has to complain of.
    """

    device: DeviceConfig
    scenario: Scenario
    number: int = 0
    labels: Mapping[str, Any] = field(default_factory=dict)
    places: Places = field(default_factory=dict)


Watch = Callable[[int, float], None]
"""Takes the number of a job and the share of it that is done."""


def run_jobs(
    jobs: Sequence[Job],
    engine: Engine,
    *,
    pool: Pool = HERE,
    options: RunOptions | None = None,
    kept: Kept[ScenarioResult] | None = None,
    watch: Watch | None = None,
) -> list[ScenarioResult]:
    """The results in the order of the jobs.

    Args:
        jobs: What to run.
        engine: Simulates; sent to other processes as it is.
        pool: Where. Other machines are sent the traces.
        options: For all runs.
        kept: Keeps the results as they come, and has those of a run that was cut short.
        watch: Told of a job's share when it is done, and of a single job's as it goes on.

    Raises:
        IojouleError: A run failed; the others are called off.
    """
    options = options or RunOptions()
    if len(jobs) == 1 and not pool.remote:
        progress = None if watch is None else partial(watch, 0)
        pool, options = HERE, replace(options, progress=progress)

    def done(index: int, _: ScenarioResult) -> None:
        if watch is not None:
            watch(index, 1.0)

    traces = [flow.trace_path for job in jobs for flow in job.scenario.flows if flow.trace_path]
    return map_kept(
        pool, _run, jobs, shared=(engine, options, TraceFiles(traces if pool.remote else ())),
        kept=kept, keys=job_keys(jobs, engine, options) if kept is not None else [""] * len(jobs),
        seconds=[predicted_seconds(job.device, job.scenario) for job in jobs], done=done,
    )  # fmt: skip


def job_keys(jobs: Sequence[Job], engine: Engine, options: RunOptions) -> list[str]:
    """What names each job's result among kept ones: all that it depends on."""
    how = [type(engine).__name__, vars(engine), asdict(options.limits), options.queues]
    how.append(options.series_step_ns)
    return [key_of(how, job.number, _asked(job), _traces(job.scenario)) for job in jobs]


def _asked(job: Job) -> list[Any]:
    return [job.device.model_dump(mode="json"), job.scenario.model_dump(mode="json")]


def _traces(scenario: Scenario) -> list[tuple[int, int]]:
    """Tells trace files from what they were before they were written again."""
    paths = [Path(flow.trace_path) for flow in scenario.flows if flow.trace_path]
    told = [path.stat() for path in paths if path.is_file()]
    return [(each.st_size, each.st_mtime_ns) for each in told]


def _run(shared: tuple[Engine, RunOptions, TraceFiles], job: Job) -> ScenarioResult:
    engine, options, traces = shared
    own = replace(options, scenario_number=job.number)
    try:
        return traces.run(engine, job.device, job.scenario, own)
    except ConfigError as error:
        place = place_in(job.places, error.field or "")
        raise ConfigError(f"{place}: {error.message}" if place else error.message,
                          field=error.field) from error  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """A field and the values that it takes in turn.

    The field is one of the drive, such as `channels` or `physical.slc.dynamic_blocks_per_plane`,
    or one of the flows: `flows.queue_depth` is that of all flows, `flows[1].queue_depth` of one.
    """

    field: str
    values: tuple[Any, ...]


def parse_axis(text: str) -> Axis:
    """The axis that `FIELD=VALUE,VALUE,...` says; values as in TOML, words without quotes.

    Raises:
        InputError: It says none.
    """
    name, equals, said = text.partition("=")
    if not equals or not name.strip() or not said.strip():
        raise InputError(f"{text}: must be FIELD=VALUE,VALUE,..., such as channels=4,8,16")
    try:
        values = tomllib.loads(f"v = [{said}]")["v"]
    except (ValueError, RecursionError):
        values = [_value(part.strip()) for part in said.split(",")]
    return Axis(name.strip(), tuple(values))


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (ValueError, RecursionError):
        return text


def combinations(axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """Every combination of the axes' values, the last axis varying fastest.

    Raises:
        InputError: There are more than MAX_COMBINATIONS, or a field is named twice.
    """
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > MAX_COMBINATIONS:
        raise InputError(f"{count} combinations are more than {MAX_COMBINATIONS}; vary less")
    names = [axis.field for axis in axes]
    if len(set(names)) < len(names):
        raise InputError("a field is varied twice; list all of its values in one place")
    for values in product(*(axis.values for axis in axes)):
        yield dict(zip(names, values, strict=True))


def with_values(
    device: DeviceConfig, scenario: Scenario, values: Mapping[str, Any]
) -> tuple[DeviceConfig, Scenario]:
    """The drive and scenario with these fields set.

    A flow on all channels (chips, dies, planes) stays on all of them when their number is varied.

    Raises:
        RefusedError: There is no such field, or it cannot have the value.
    """
    drive, flows = device.model_dump(), [flow.model_dump() for flow in scenario.flows]
    for flow in flows:
        for ids, count in ID_FIELDS.items():
            if count in values and flow[ids] == tuple(range(getattr(device, count))):
                flow[ids] = ()
    for name, value in values.items():
        of_flows = re.fullmatch(r"flows(?:\[(\d+)\])?\.(.+)", name)
        if of_flows is None:
            put_field(drive, device, name, name, value)
            continue
        chosen = range(len(flows)) if of_flows[1] is None else [int(of_flows[1])]
        for index in chosen:
            if index >= len(flows):
                raise refusal("unknown_key", name, f"there are {len(flows)} flows; count from 0")
            put_field(flows[index], scenario.flows[index], of_flows[2], name, value)
    said = ", ".join(f"{name} = {value}" for name, value in values.items())
    places = {"": said}
    made = build(DeviceConfig, drive, places)
    return made, build(Scenario, {"flows": flows}, places)


def put_field(values: dict[str, Any], model: BaseModel, path: str, name: str, value: Any) -> None:
    """Set what `path` names inside nested groups."""
    first, _, rest = path.partition(".")
    known = list(type(model).model_fields)
    if first not in known:
        raise refusal("unknown_key", name, f"no such field; {did_you_mean(first, known)}", name)
    inner = getattr(model, first)
    if not rest:
        values[first] = value
    elif isinstance(inner, BaseModel):
        put_field(values[first], inner, rest, name, value)
    else:
        raise refusal("unknown_key", name, f"{first} has no fields of its own", name)
