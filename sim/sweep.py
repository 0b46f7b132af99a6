"""Runs every combination of varied parameters on a pool: run times, trace files, results."""

from __future__ import annotations

import re
import tomllib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from pydantic import BaseModel

from iojoule.datasets.errors import InputError
from iojoule.sim.device import SECTOR_BYTES, DeviceConfig
from iojoule.sim.engines import Engine, RunOptions
from iojoule.sim.errors import ConfigError, LimitError, ModelError, TraceError
from iojoule.sim.formats.building import Places, build, did_you_mean, place_in, refusal
from iojoule.sim.result import ScenarioResult
from iojoule.sim.workers import Pool
from iojoule.sim.workers.checkpoint import Kept, key_of, map_kept
from iojoule.sim.workers.local import HERE
from iojoule.sim.workers.pool import R
from iojoule.sim.workload import ID_FIELDS, FlowConfig, FlowKind, Generator, Scenario

SECONDS_A_RUN = 0.002
SECONDS_A_READ, SECONDS_A_WRITE = 1e-6, 4e-6
SECONDS_A_PAGE_READ, SECONDS_A_PAGE_WRITTEN = 0.7e-6, 1.5e-6
SECONDS_A_PRECONDITIONED_PAGE = 1e-8
"""As measured on one core of 2.5 GHz; only their ratios matter."""

TRACE_LINE_BYTES = 30


def predicted_seconds(device: DeviceConfig, scenario: Scenario) -> float:
    """About how long a run takes: a factor of two off is usual, and does no harm.

    A flow makes requests as fast as its queues, the firmware, the flash and the link allow; writes
    are done when the cache has them, as long as it has room.
    """
    seconds = SECONDS_A_RUN
    for flow in scenario.flows:
        pages, reads = _pages(device, flow), flow.read_percent / 100
        read = SECONDS_A_READ + pages * SECONDS_A_PAGE_READ
        write = SECONDS_A_WRITE + pages * SECONDS_A_PAGE_WRITTEN
        seconds += _requests(device, flow) * (reads * read + (1 - reads) * write)
        if device.preconditioning:
            filled = device.physical_pages * flow.initial_occupancy_percent / 100
            seconds += filled * SECONDS_A_PRECONDITIONED_PAGE
    return seconds


def _pages(device: DeviceConfig, flow: FlowConfig) -> float:
    return max(1.0, flow.size_mean_sectors / device.sectors_per_page)


def _requests(device: DeviceConfig, flow: FlowConfig) -> float:
    if flow.kind is FlowKind.TRACE:
        return _lines(flow.trace_path) * flow.trace_percent / 100 * flow.trace_replays
    if not flow.stop_ns:
        return float(flow.total_requests)
    size, seconds = flow.size_mean_sectors * SECTOR_BYTES, flow.stop_ns * 1e-9
    if flow.host.arrivals_per_second:
        return flow.host.arrivals_per_second * seconds
    if flow.generator is Generator.BANDWIDTH:
        return flow.bandwidth_bytes_per_second / size * seconds
    return _closed_loop(device, flow, size)


def _closed_loop(device: DeviceConfig, flow: FlowConfig, size: int) -> float:
    host, firmware, reads = flow.host, device.physical.controller, flow.read_percent / 100
    pages = _pages(device, flow)
    link_ns = size / (device.link_lane_gigabytes_per_second * device.link_lanes)
    host_ns = host.submit_cpu_ns + host.complete_cpu_ns + host.wake_ns + host.think_time_ns
    latency_ns = reads * max(device.page_read_ns) + firmware.command_latency_ns + link_ns + host_ns
    flash_ns = pages * (
        reads * max(device.page_read_ns) + (1 - reads) * max(device.page_program_ns)
    )
    rate = min(
        flow.queue_depth * host.jobs / latency_ns,
        1 / max(link_ns, firmware.command_occupancy_ns),
    )
    cached = 0.0 if reads == 1 else device.cache_bytes / size / (1 - reads)
    return min(rate * flow.stop_ns, cached + device.planes / flash_ns * flow.stop_ns)


def _lines(path: str) -> float:
    try:
        return Path(path).stat().st_size / TRACE_LINE_BYTES
    except OSError:
        return 0.0  # who replays it says so


class TraceFiles:
    """Files by their path; a copy in another process has copies of the files.

    Args:
        paths: Of this machine; what is missing is left to whoever replays it.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._here = {path: path for path in sorted(set(paths)) if Path(path).is_file()}

    def __getstate__(self) -> dict[str, bytes]:
        return {path: Path(here).read_bytes() for path, here in self._here.items()}

    def __setstate__(self, content: dict[str, bytes]) -> None:
        folder = Path(mkdtemp(prefix="iojoule-traces-"))
        weakref.finalize(self, rmtree, folder, ignore_errors=True)
        self._here = {}
        for number, (path, told) in enumerate(content.items()):
            here = folder / f"{number}{Path(path).suffix}"
            here.write_bytes(told)
            self._here[path] = str(here)

    def run(
        self, engine: Engine, device: DeviceConfig, scenario: Scenario, options: RunOptions
    ) -> ScenarioResult:
        """`engine.run`, whose result and errors name the files as the scenario does."""
        used = {f.trace_path for f in scenario.flows if f.trace_path in self._here}
        if not used:
            return engine.run(device, scenario, options)
        flows = tuple(
            flow.model_copy(update={"trace_path": self._here.get(flow.trace_path, flow.trace_path)})
            for flow in scenario.flows
        )
        try:
            result = engine.run(device, Scenario(flows=flows), options)
        except TraceError as error:
            raise self._named(error) from None
        return result.model_copy(
            update={
                "flows": tuple(
                    flow.model_copy(update={"name": self._there(flow.name)})
                    for flow in result.flows
                ),
                "warnings": tuple(map(self._there, result.warnings)),
            }
        )

    def _there(self, text: str) -> str:
        for path, here in self._here.items():
            text = text.replace(here, path)
        return text

    def _named(self, error: TraceError) -> TraceError:
        named = TraceError(self._there(error.message), field=error.field)
        named.path, named.line = self._there(error.path), error.line
        return named


MAX_COMBINATIONS = 100_000


@dataclass(frozen=True)
class Job:
    """One run: a scenario on a drive.

    Attributes:
        number: The scenario's place in its file.
        run: Its place among all that were planned, from 1, also where only a part of them runs.
        labels: What tells this run from the others, such as the drive's file and what was varied.
        places: Where fields stand in the files, for what the engine has to complain of.
    """

    device: DeviceConfig
    scenario: Scenario
    number: int = 0
    labels: Mapping[str, Any] = field(default_factory=dict)
    places: Places = field(default_factory=dict)
    run: int = 1


@dataclass(frozen=True)
class LeftOut:
    """A design that came to no result, and why."""

    reason: str


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
    return _on_pool(_run, jobs, engine, pool, options, kept, watch)


def run_designs(
    jobs: Sequence[Job],
    engine: Engine,
    *,
    pool: Pool = HERE,
    options: RunOptions | None = None,
    kept: Kept[ScenarioResult] | None = None,
    watch: Watch | None = None,
) -> list[ScenarioResult | LeftOut]:
    """As `run_jobs`, but a varied drive that comes to a halt or exceeds a limit is left out."""
    return _on_pool(_run_design, jobs, engine, pool, options, kept, watch)


_Shared = tuple[Engine, RunOptions, TraceFiles]


def _on_pool(
    run: Callable[[_Shared, Job], R],
    jobs: Sequence[Job],
    engine: Engine,
    pool: Pool,
    options: RunOptions | None,
    kept: Kept[ScenarioResult] | None,
    watch: Watch | None,
) -> list[R]:
    options = options or RunOptions()
    if len(jobs) == 1 and not pool.remote:
        progress = None if watch is None else partial(watch, 0)
        pool, options = HERE, replace(options, progress=progress)

    def done(index: int, _: R) -> None:
        if watch is not None:
            watch(index, 1.0)

    traces = [flow.trace_path for job in jobs for flow in job.scenario.flows if flow.trace_path]
    return map_kept(
        pool,
        run,
        jobs,
        shared=(engine, options, TraceFiles(traces if pool.remote else ())),
        kept=kept,
        keys=job_keys(jobs, engine, options) if kept is not None else [""] * len(jobs),
        seconds=[predicted_seconds(job.device, job.scenario) for job in jobs],
        done=done,
    )


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


def _run_design(shared: _Shared, job: Job) -> ScenarioResult | LeftOut:
    try:
        return _run(shared, job)
    except (ConfigError, LimitError, ModelError) as error:
        if "varied" not in job.labels:
            raise
        return LeftOut(error.message)


def _run(shared: _Shared, job: Job) -> ScenarioResult:
    engine, options, traces = shared
    own = replace(options, scenario_number=job.number)
    try:
        return traces.run(engine, job.device, job.scenario, own)
    except ConfigError as error:
        field = error.field or ""
        # what is varied stands in no file
        place = "" if field in job.labels.get("varied", {}) else place_in(job.places, field)
        raise ConfigError(
            f"{place}: {error.message}" if place else error.message, field=error.field
        ) from error


def values_text(values: Mapping[str, Any]) -> str:
    """Fields and their values in one line, such as `channels = 4, seed = 1`."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())


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
    name, equals, listed = text.partition("=")
    if not equals or not name.strip() or not listed.strip():
        raise InputError(f"{text}: must be FIELD=VALUE,VALUE,..., such as channels=4,8,16")
    try:
        values = tomllib.loads(f"v = [{listed}]")["v"]
    except (ValueError, RecursionError):
        values = [_value(part.strip()) for part in listed.split(",")]
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
    places = {"": values_text(values)}
    made = build(DeviceConfig, drive, places)
    return made, build(Scenario, {"flows": flows}, places)


def put_field(values: dict[str, Any], model: BaseModel, path: str, name: str, value: Any) -> None:
    """Set what `path` names inside nested groups; one number for a cell's bits is that of all."""
    first, _, rest = path.partition(".")
    known = list(type(model).model_fields)
    if first not in known:
        raise refusal("unknown_key", name, f"no such field; {did_you_mean(first, known)}", name)
    inner = getattr(model, first)
    if not rest:
        by_bit = isinstance(inner, tuple) and first not in ID_FIELDS
        values[first] = (
            (value,) * len(inner) if by_bit and isinstance(value, int | float) else value
        )
    elif isinstance(inner, BaseModel):
        put_field(values[first], inner, rest, name, value)
    else:
        raise refusal("unknown_key", name, f"{first} has no fields of its own", name)
