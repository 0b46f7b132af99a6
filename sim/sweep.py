"""Runs many configurations at once: every combination of the values that are varied.

Threads serve, because the native core lets others go on while it runs, and an external engine is a
process anyway.
"""

from __future__ import annotations

import re
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from pydantic import BaseModel

from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Engine, RunOptions
from iojoule.sim.errors import CancelledError, ConfigError
from iojoule.sim.formats.building import Places, build, did_you_mean, place_in, refusal
from iojoule.sim.result import ScenarioResult
from iojoule.sim.workload import ID_FIELDS, Scenario

MAX_COMBINATIONS = 100_000
_POLL_SECONDS = 0.2


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
"""Takes the number of a job and the share of it that is done; called from any thread."""


def run_jobs(
    jobs: Sequence[Job],
    engine: Engine,
    *,
    workers: int = 1,
    options: RunOptions | None = None,
    watch: Watch | None = None,
) -> list[ScenarioResult]:
    """The results in the order of the jobs, `workers` of them under way at a time.

    Raises:
        IojouleError: A run failed; the others are called off. Of several the first job's is raised.
    """
    options, stopped = options or RunOptions(), threading.Event()

    def run(index: int) -> ScenarioResult:
        def cancelled() -> bool:
            return stopped.is_set() or options.cancelled()

        if cancelled():
            raise CancelledError("the run was called off before it began")
        progress = None if watch is None else lambda share: watch(index, share)
        job = jobs[index]
        own = replace(options, scenario_number=job.number, progress=progress, cancelled=cancelled)
        try:
            result = engine.run(job.device, job.scenario, own)
        except ConfigError as error:
            place = place_in(job.places, error.field or "")
            raise ConfigError(f"{place}: {error.message}" if place else error.message,
                              field=error.field) from error  # fmt: skip
        if watch is not None:
            watch(index, 1.0)
        return result

    if workers <= 1 and len(jobs) == 1:
        return [run(0)]
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        futures = [pool.submit(run, index) for index in range(len(jobs))]
        try:
            _await(futures)
        finally:
            # also on Ctrl-C: what runs ends soon, what waits does not begin
            stopped.set()
            for future in futures:
                future.cancel()
    return _results(futures)


def _await(futures: Sequence[Future[ScenarioResult]]) -> None:
    """Return when all are done or one has failed; wakes up so that Ctrl-C is heard."""
    while True:
        done, pending = wait(futures, timeout=_POLL_SECONDS, return_when=FIRST_EXCEPTION)
        if not pending or any(future.exception() for future in done):
            return


def _results(futures: Sequence[Future[ScenarioResult]]) -> list[ScenarioResult]:
    failures = [f.exception() for f in futures if f.done() and not f.cancelled() and f.exception()]
    own = [failure for failure in failures if not isinstance(failure, CancelledError)]
    for failure in (*own, *failures):
        if failure is not None:
            raise failure
    return [future.result() for future in futures]


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
