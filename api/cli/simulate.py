"""`iojoule simulate`: what a drive would do under a workload, if it were built or set up so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.application.simulate import (
    Plan,
    document,
    doubts,
    on_front,
    parse_prices,
    plan_runs,
    that_ran,
)
from iojoule.api.cli import console
from iojoule.api.cli.options import (
    DaskOption,
    ServerOption,
    StateOption,
    backend_of,
    refuse,
    refuse_files,
    resources,
)
from iojoule.api.cli.progress import progress
from iojoule.api.cli.trace_options import (
    SampleOption,
    SecondsOption,
    SpeedOption,
    StartOption,
    TimeUnitOption,
    TraceFormatOption,
    VolumeOption,
)
from iojoule.api.reports.quantities import quantity
from iojoule.datasets.errors import InputError
from iojoule.sim.engines import Limits, RunOptions
from iojoule.sim.findings import Severity
from iojoule.sim.formats.files import read_drive, write_file
from iojoule.sim.formats.mqsim_result import write_result_xml
from iojoule.sim.presets import drive_path
from iojoule.sim.result import ENERGY_COMPONENTS, FlowResult, Mode, ScenarioResult
from iojoule.sim.sweep import parse_axis

if TYPE_CHECKING:
    from iojoule.api.application.simulate import Plan
    from iojoule.sim.findings import Finding
    from iojoule.sim.result import ScenarioResult


NS_PER_SECOND = 1e9

MEMORY_MIB = 8192


class ModeChoice(StrEnum):
    """MQSim to the nanosecond, or a drive that works, with energy."""

    COMPAT = "compat"
    PHYSICAL = "physical"


class EngineChoice(StrEnum):
    """The simulator of iojoule, the same with fewer events, or the user's own MQSim."""

    EMBEDDED = "embedded"
    FAST = "fast"
    MQSIM = "mqsim"


class Form(StrEnum):
    """Form of the results: JSON, tables, or MQSim's own layout."""

    JSON = "json"
    TABLE = "table"
    XML = "xml"


DriveOption = Annotated[
    list[str],
    typer.Option(
        "--ssd",
        metavar="FILE|PRESET",
        help="Drive: MQSim's ssdconfig.xml, a .toml, or a preset. May be repeated.",
    ),
]
WorkloadOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--workload", metavar="FILE", help="MQSim's workload.xml or a .toml. May be repeated."
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="Runs at the same time; default 1, and one a core when there are several "
        "configurations.",
    ),
]


_SHARED = frozenset({"ssd", "mode", "output", "max_memory"})
_OF_TRACES = frozenset(
    {"trace_format", "volume", "start", "seconds", "speed", "sample", "time_unit", "wrap"}
)
_OF_REPLAYS = _OF_TRACES | {"trace", "day", "scale", "interval"}


def _check_fits(ctx: typer.Context, *, trace: bool, day: bool, front: bool) -> None:
    """Refuse options that would do nothing beside the others; raises BadParameter, names them."""
    given = {
        name
        for name in ctx.params
        if (source := ctx.get_parameter_source(name)) and source.name == "COMMANDLINE"
    }
    if trace or day:
        _refuse_all(
            ctx, given - _SHARED - _OF_REPLAYS, "does nothing beside --trace or --day; leave it out"
        )
    else:
        _refuse_all(ctx, given & {"interval"}, "needs --trace or --day")
    if not trace:
        _refuse_all(ctx, given & _OF_TRACES, "needs --trace")
    if not day:
        _refuse_all(ctx, given & {"scale"}, "needs --day")
    if not front:
        _refuse_all(ctx, given & {"cost"}, "needs --front")


def _refuse_all(ctx: typer.Context, names: set[str], why: str) -> None:
    for option in ctx.command.params:
        if option.name in names:
            raise typer.BadParameter(f"{option.opts[0]} {why}")


def simulate(
    ctx: typer.Context,
    ssd: DriveOption,
    workload: WorkloadOption = None,
    mode: Annotated[
        ModeChoice | None,
        typer.Option(help="Default: what the drive's file says; MQSim's files mean compat."),
    ] = None,
    engine: Annotated[EngineChoice, typer.Option(help="What simulates.")] = EngineChoice.EMBEDDED,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    state: StateOption = None,
    output: Annotated[
        Form, typer.Option("--output", "-o", help="Form of the results on standard output.")
    ] = Form.JSON,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE,...",
            help="Run every value of a field of the drive (channels=4,8) or of the flows "
            "(flows.queue_depth=1,16); repeated: every combination.",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Run only the I-th of N parts, as one job of an array; with the same --state for "
            "all, the command without --shard then joins them.",
        ),
    ] = None,
    front: Annotated[
        bool,
        typer.Option(
            "--front",
            help="Show only designs that no other beats in joules a request, p99 and cost.",
        ),
    ] = False,
    cost: Annotated[
        str,
        typer.Option(metavar="PART=PRICE,...", help="Of a die, channel, flash_gib and cache_gib."),
    ] = "die=1",
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw IOPS and p99 latency over the one --vary (.svg, .png, .pdf, .csv).",
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where `-o xml` writes a file for each run."),
    ] = None,
    series_step: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Step of time series; 0: none.")
    ] = 0.0,
    max_memory: Annotated[
        int, typer.Option(min=1, metavar="MIB", help="Memory of one run at most.")
    ] = MEMORY_MIB,
    max_wall: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Duration of one run at most; 0: any.")
    ] = 0.0,
    max_simulated: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Simulated time at most; 0: any.")
    ] = 0.0,
    max_events: Annotated[
        int, typer.Option(min=0, metavar="N", help="Simulated events at most; 0: any.")
    ] = 0,
    server: ServerOption = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace", metavar="FILE", help="Replay a block trace instead. May be repeated."
        ),
    ] = None,
    trace_format: TraceFormatOption = None,
    volume: VolumeOption = None,
    start: StartOption = 0.0,
    seconds: SecondsOption = None,
    speed: SpeedOption = 1.0,
    sample: SampleOption = 1.0,
    time_unit: TimeUnitOption = None,
    wrap: Annotated[
        bool, typer.Option("--wrap", help="Fold addresses beyond the drive back by its size.")
    ] = False,
    day: Annotated[
        int | None,
        typer.Option(
            "--day", min=1, metavar="REQUESTS", help="Replay a synthetic day of cloud volumes."
        ),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Simulate a scale model of day and drive, N times smaller at the same load; "
            "default: 1 up to 40 million requests, else about as many are simulated.",
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", min=1e-3, metavar="SECONDS", help="Of the time line.")
    ] = 3600.0,
) -> None:
    """Simulate a drive under a workload, a block trace or a synthetic day.

    JSON goes to standard output and nothing else does: one scenario after the other, the flows in
    the order of the file, times in ns. Everything else that is to be said is on standard error.
    """
    _check_fits(ctx, trace=bool(trace), day=bool(day), front=front)
    if plot is not None:
        _check_plot(plot, one_field=len(vary or []) == len(ssd) == len(workload or []) == 1)
    if trace or day:
        if server or len(ssd) > 1 or (trace and day) or output is Form.XML:
            raise typer.BadParameter(
                "--trace or --day: one of both, one drive, -o json or table; no --server"
            )
        # what reads traces is imported only where one is read
        from iojoule.api.cli.simulate_trace import Replayed, emit_replay

        drive = read_drive(drive_path(ssd[0]))
        replayed = Replayed(
            (drive if mode is None else drive.in_mode(Mode(mode.value))).device,
            interval_seconds=interval,
            limits=Limits(memory_bytes=max_memory << 20),
        )
        answer = (
            replayed.day(day, scale)
            if day
            else replayed.trace(
                trace or [],
                trace_format,
                volumes=tuple(volume or ()),
                start_seconds=start,
                seconds=seconds,
                speed=speed,
                sample=sample,
                time_unit=time_unit,
                wrap=wrap,
            )
        )
        emit_replay(answer, as_json=output is Form.JSON)
        return
    if not workload:
        raise typer.BadParameter("state --workload, --trace or --day")
    if server:
        refuse(
            server,
            mode=mode,
            jobs=jobs,
            dask=dask,
            state=state,
            shard=shard,
            directory=directory,
            engine=engine is not EngineChoice.EMBEDDED,
            series_step=series_step != 0,
            max_memory=max_memory != MEMORY_MIB,
            max_wall=max_wall != 0,
            max_simulated=max_simulated != 0,
            max_events=max_events != 0,
        )
        refuse_files(server, ssd)
        if output is Form.XML:
            raise typer.BadParameter("-o xml: a service tells nothing of queues, as this form does")
    axes = [parse_axis(text) for text in vary or []]
    prices = parse_prices(cost)
    chosen = None if mode is None else Mode(mode.value)
    plan = plan_runs(ssd, workload, chosen, axes)
    _check_xml(plan, output, directory)
    say(plan.findings)
    if (front or plot is not None) and sum(map(len, plan.scenarios)) > 1:
        raise typer.BadParameter("--plot and --front show one scenario; there are several")
    plan, part = _part(plan, shard)
    options = RunOptions(
        limits=Limits(
            memory_bytes=max_memory << 20,
            wall_seconds=max_wall,
            simulated_ns=_nanoseconds(max_simulated),
            events=max_events or None,
        ),
        series_step_ns=_nanoseconds(series_step),
        queues=output is Form.XML,
    )
    place = replace(resources(jobs, dask, state), part=part)
    backend = backend_of(server, resources=place, engine=engine.value, options=options)
    with backend as computes, progress() as watch:
        told = computes.simulate(plan, watch)
    plan, results = that_ran(plan, told, whole=shard is None)
    console.say_left_out("design", [(plan.design(job), reason) for job, reason in plan.left_out])
    for doubt in doubts(results, plan.findings):
        console.warn(doubt)
    if front:
        plan, results = on_front(plan, results, prices)
    _emit(plan, results, output, directory)
    if plot is not None:
        _draw(plan, results, plot)


def _nanoseconds(seconds: float) -> int | None:
    """At least one where any is asked for; None: none is."""
    return max(1, round(seconds * NS_PER_SECOND)) if seconds else None


def _check_plot(path: Path, *, one_field: bool) -> None:
    from iojoule.api.reports.plots import check_target

    check_target(path)
    if not one_field:
        raise typer.BadParameter("--plot shows one --vary of one drive and one workload")


def _draw(plan: Plan, results: Sequence[ScenarioResult], path: Path) -> None:
    """Draw the runs over the one field that is varied."""
    from iojoule.api.reports.plots import draw_runs

    [varied] = [axis.field for axis in plan.axes]
    draw_runs(varied, [job.labels["varied"][varied] for job in plan.jobs], results, path)
    console.note(f"wrote {path}")


def _part(plan: Plan, text: str | None) -> tuple[Plan, str]:
    """The part of the runs that `--shard` names, and how its results are called."""
    if text is None:
        return plan, ""
    found = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", text)
    if found is None or int(found[1]) > int(found[2]):
        raise typer.BadParameter(f"--shard {text}: must be I/N with I from 1 to N, such as 3/16")
    number, of = int(found[1]), int(found[2])
    return replace(plan, jobs=plan.jobs[number - 1 :: of]), f"-{number}-of-{of}"


def say(findings: Iterable[Finding]) -> None:
    """Say what a reader or the table of known defects found, on standard error, alike ones once."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.name, finding.message), []).append(finding)
    for same in alike.values():
        more = f" (and at {len(same) - 1} other places)" if len(same) > 1 else ""
        speak = console.note if same[0].severity is Severity.NOTE else console.warn
        speak(f"{same[0]}{more}")


def _check_xml(plan: Plan, output: Form, directory: Path | None) -> None:
    if directory is not None and output is not Form.XML:
        raise typer.BadParameter("--directory goes with -o xml")
    if output is Form.XML and directory is None and len(plan.jobs) > 1:
        raise typer.BadParameter(
            f"there are {len(plan.jobs)} runs, and -o xml writes one file each; say --directory DIR"
        )


def _emit(plan: Plan, results: list[ScenarioResult], output: Form, directory: Path | None) -> None:
    match output:
        case Form.JSON:
            console.emit_json(document(plan, results))
        case Form.TABLE:
            emit_results(plan, results)
        case Form.XML:
            _emit_xml(plan, results, directory)


def _emit_xml(plan: Plan, results: list[ScenarioResult], directory: Path | None) -> None:
    texts = [
        write_result_xml(result, job.device) for job, result in zip(plan.jobs, results, strict=True)
    ]
    if directory is None:
        console.emit(texts[0])
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for job, text in zip(plan.jobs, texts, strict=True):
            own = f"scenario_{job.number + 1}"
            if not plan.one_configuration:
                own = f"run_{job.run}_{own}"
            path = directory / f"{Path(job.labels['workload']).stem}_{own}.xml"
            write_file(path, text)
            console.emit(f"{path}\n")
    except OSError as error:
        raise InputError(f"{directory}: cannot be written ({error.strerror}); check it") from None


FLOW_TITLES = (
    "flow",
    "serviced",
    "reads",
    "writes",
    "IOPS",
    "bandwidth",
    "mean",
    "p50",
    "p99",
    "p99.9",
    "max",
)
DEVICE_TITLES = (
    "simulated",
    "pages read",
    "programmed",
    "blocks erased",
    "write ampl.",
    "mapping hits",
    "collections",
)
ENERGY_TITLES = ("mean power", "energy")
COMPONENT_TITLES = (
    *(name.replace("_", " ") for name in ENERGY_COMPONENTS),
    "by time alone",
)
RUN_TITLES = ("user time", "events/s")


def emit_results(plan: Plan, results: Sequence[ScenarioResult]) -> None:
    """Write what the flows got and what the drives did."""
    labels = _labels(plan)
    powered = any(result.mode is Mode.PHYSICAL for result in results)
    energy = ENERGY_TITLES if powered else ()
    flows = console.new_table([*labels.values(), *FLOW_TITLES], title="Flows")
    titles = [*labels.values(), *DEVICE_TITLES, *energy, *RUN_TITLES]
    drives = console.new_table(titles, title="Drive")
    parts = console.new_table([*labels.values(), *COMPONENT_TITLES], title="Energy by component")
    for job, result in zip(plan.jobs, results, strict=True):
        own = [_label(job.labels.get(name)) for name in labels]
        for flow in result.flows:
            flows.add_row(*own, *_flow(flow))
        drives.add_row(
            *own, *_drive(result), *(_energy(result) if powered else ()), *_run_cells(result)
        )
        parts.add_row(*own, *_components(result))
    console.emit_table(
        flows,
        "",
        drives,
        *(("", parts) if powered else ()),
        "",
        "Latencies are device response times. Rates are over the time to the last completion.",
    )


def _labels(plan: Plan) -> dict[str, str]:
    """Which labels tell the runs apart, and the headings of their columns."""
    headings = {
        "ssd": "drive",
        "workload": "workload",
        "varied": "varied",
        "scenario": "scenario",
        "cost": "cost",
    }
    return {
        name: heading
        for name, heading in headings.items()
        if len({_label(job.labels.get(name)) for job in plan.jobs}) > 1
    }


def _label(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_label(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _flow(flow: FlowResult) -> Iterator[str]:
    yield flow.name.removeprefix("Host.IO_Flow.")
    yield from (_count(flow.serviced), _count(flow.serviced_read), _count(flow.serviced_write))
    yield quantity("iops", flow.iops).removesuffix("IOPS").strip()
    yield quantity("bytes_per_second", flow.bandwidth_bytes_per_second)
    for latency in (flow.drt_ns, flow.p50_ns, flow.p99_ns, flow.p999_ns, flow.max_drt_ns):
        yield quantity("_ns", latency)


def _drive(result: ScenarioResult) -> Iterator[str]:
    device = result.device
    yield quantity("_ns", result.flows[0].sim_end_ns)
    for count in (device.pages_read, device.pages_programmed, device.blocks_erased):
        yield _count(count)
    amplification = device.write_amplification
    yield "-" if amplification is None else f"{amplification:.2f}"
    queries = device.cmt_queries
    yield f"{100 * device.cmt_hits / queries:.1f} %" if queries else "-"
    yield _count(device.gc_exec)


def _energy(result: ScenarioResult) -> Iterator[str]:
    watts, joules = result.device.power_watts_mean, result.device.energy_joules_total
    yield "unknown" if watts is None else quantity("watts", watts)
    yield "unknown" if joules is None else quantity("joules", joules)


def _components(result: ScenarioResult) -> Iterator[str]:
    joules, physical = result.device.energy_joules or {}, result.device.physical
    for name in ENERGY_COMPONENTS:
        yield quantity("joules", joules[name]) if name in joules else "unknown"
    static = None if physical is None else physical.static_joules
    yield "unknown" if static is None else quantity("joules", sum(static.values()))


def _run_cells(result: ScenarioResult) -> Iterator[str]:
    yield quantity("seconds", result.run_user_seconds)
    spent = result.run_user_seconds
    rate = result.events / spent if result.events and spent else None
    yield quantity("iops", rate).removesuffix("IOPS")


def _count(count: int | None) -> str:
    return "-" if count is None else str(count)
