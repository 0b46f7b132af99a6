"""`iojoule workload`: the question to a recommendation, from what is there."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from iojoule.api.application.workloads import Kept, observe_traced, write_profile
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.trace_options import (
    ClassesOption,
    SampleOption,
    SecondsOption,
    StartOption,
    TimeUnitOption,
    TraceFormatOption,
    VolumeOption,
)
from iojoule.api.reports.quantities import digits, quantity, size
from iojoule.datasets.atomic import output_file
from iojoule.datasets.io_summary import (
    IoSummary,
    IoWindow,
    LogHistogram,
    parse_summary,
    write_summary,
)
from iojoule.datasets.vocabulary import Pattern
from iojoule.measure.observe import ObserveRequest
from iojoule.recommender.request import Loop, WorkloadProfile, load_workload, read_text, with_loop
from iojoule.recommender.workloads.day_profile import day_profile, windows_in
from iojoule.recommender.workloads.fio_job import each_fio_job, from_fio_job
from iojoule.recommender.workloads.from_summary import from_summary
from iojoule.recommender.workloads.page_cache import page_cache
from iojoule.recommender.workloads.presets import find_preset
from iojoule.recommender.workloads.sources import (
    SourceKind,
    as_json,
    as_toml,
    open_source,
    summary_of,
)
from iojoule.sim.formats.files import write_file


class _Workload(TyperGroup):
    """`from trace` is a command of two words."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[:2] == ["from", "trace"]:
            args = ["from trace", *args[2:]]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Workload,
    add_completion=False,
    help="Workload profiles from job files, traces, a live drive, and presets.",
    no_args_is_help=True,
)


class Form(StrEnum):
    """Form of a workload profile on standard output."""

    TABLE = "table"
    TOML = "toml"
    JSON = "json"


FormOption = Annotated[
    Form,
    typer.Option("--output", "-o", help="toml and json are what `recommend --workload` takes."),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write the profile there (.toml or .json)."),
]
HistogramsOption = Annotated[
    Path | None,
    typer.Option(
        "--histograms", metavar="FILE.json", help="Write what was seen there (docs/workloads.md)."
    ),
]
LoopOption = Annotated[
    Literal["open", "closed"] | None,
    typer.Option(help="open: the rate is a demand to be met; closed: as fast as the drive can."),
]
PatternOption = Annotated[
    Literal["sequential", "random"] | None,
    typer.Option(help="Order of the addresses where the source does not tell."),
]
GapOption = Annotated[
    float,
    typer.Option(
        "--gap-seconds", min=1e-4, help="Shortest time without a request that parts two bursts."
    ),
]
HoursOption = Annotated[
    str | None,
    typer.Option(metavar="FROM-TO", help="Only what was observed in these hours of the day (UTC)."),
]

PageCacheOption = Annotated[
    str | None,
    typer.Option(
        "--page-cache",
        metavar="SIZE",
        help="Memory that keeps the files of buffered jobs (direct=0), for instance 16GiB.",
    ),
]
ReadAheadOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="With --page-cache: read_ahead_kb of the drive, else 128KiB."
    ),
]


@app.command("from")
def from_(
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    as_: Annotated[
        SourceKind | None, typer.Option("--as", help="What the file is; else its text tells.")
    ] = None,
    drive: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which drive of iostat, sar or Prometheus.")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Section of a fio job file.")] = None,
    each: Annotated[
        bool, typer.Option("--each", help="One profile for each job; --out is then a folder.")
    ] = False,
    loop: LoopOption = None,
    pattern: PatternOption = None,
    gap_seconds: GapOption = 0.01,
    hours: HoursOption = None,
    memory: PageCacheOption = None,
    read_ahead: ReadAheadOption = None,
    out: OutOption = None,
    histograms: HistogramsOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Read a fio job file, a trace, an observation, or counters.

    Traces: fio iolog, blkparse text, MQSim. Counters: iostat -x (text or JSON), sar -d, pg_stat_io
    (psql), Prometheus (query_range of node_exporter), smartctl -x --json.

    What the profile cannot express is named in its notes.
    """
    source = open_source(file, as_)
    if source.kind is SourceKind.FIO_JOB:
        _refuse_summary_options(
            file, histograms=histograms, hours=hours, pattern=pattern, drive=drive
        )
        cache = page_cache(memory, read_ahead)
        profiles = (
            each_fio_job(source.path, cache=cache)
            if each
            else [from_fio_job(source.path, job=job, cache=cache)]
        )
        _emit_all(profiles, each=each, loop=loop, out=out, output=output)
        return
    for name, given in (("--job", job), ("--each", each or None), ("--page-cache", memory)):
        if given is not None:
            raise typer.BadParameter(f"{name}: {file} is a {source.kind}, and not a fio job file")
    summary = summary_of(
        source.path, source.text, source.kind, gap_seconds=gap_seconds, drive=drive
    )
    _answer(summary, loop, pattern, hours, out, histograms, output)


@app.command("from trace")
def from_trace(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Plain, .gz or .zst.")],
    form: TraceFormatOption = None,
    volume: VolumeOption = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="All volumes as one drive, each in a range of its own.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="A profile for each volume; --out is then a folder.")
    ] = False,
    start: StartOption = 0.0,
    seconds: SecondsOption = None,
    sample: SampleOption = 1.0,
    time_unit: TimeUnitOption = None,
    loop: LoopOption = None,
    pattern: PatternOption = None,
    gap_seconds: GapOption = 0.01,
    out: OutOption = None,
    fleet_classes: ClassesOption = None,
    histograms: HistogramsOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Read a block trace of any size; the files are one trace, each volume has its own profile.

    A trace of several volumes lists them.
    """
    from iojoule.api.application import traces
    from iojoule.datasets.traces.read import Selection
    from iojoule.datasets.traces.volumes import survey
    from iojoule.recommender.workloads.demand_classes import demand_classes

    if merge and each:
        raise typer.BadParameter("--merge and --each: choose one")
    if each and (out is None or histograms is not None):
        raise typer.BadParameter("--each needs --out FOLDER, and has no --histograms")
    selection = Selection(tuple(volume or ()), start, seconds, sample=sample, time_unit=time_unit)
    reader = traces.reader_of(files, form, selection)
    seen = survey(reader, gap_seconds)
    if fleet_classes is not None:
        write_file(fleet_classes, demand_classes(seen))
        console.note(f"wrote {fleet_classes}")
    if each and out is not None:
        _make_folder(out)
        for name, file in traces.file_names(seen.volumes).items():
            profile = from_summary(
                seen.summary(name),
                loop=Loop(loop) if loop else None,
                pattern=Pattern(pattern) if pattern else None,
            )
            write_profile(profile, out / f"{file}.toml")
        console.note(f"wrote {len(seen.volumes)} profiles to {out}")
    elif merge and len(seen.volumes) > 1:
        pooled = traces.merged(reader, seen, gap_seconds)
        summary = traces.merged_summary(pooled, len(seen.volumes))
        _answer(summary, loop, pattern, None, out, histograms, output)
        return
    if len(seen.volumes) == 1 and not each:
        summary = seen.summary(traces.only_volume(seen))
        _answer(summary, loop, pattern, None, out, histograms, output)
        return
    if output is not Form.TABLE or histograms is not None or (out is not None and not each):
        traces.only_volume(seen)
    _list_volumes(traces.volume_records(seen))
    for note in seen.notes:
        console.note(note)
    if not each:
        console.note("several volumes: --volume NAME, --merge or --each --out FOLDER give profiles")


VOLUME_TITLES = {
    "volume": "volume",
    "requests": "requests",
    "read_fraction": "reads",
    "requests_per_second": "mean",
    "requests_in_busiest_second": "busiest second",
    "bytes_per_second": "moved",
    "request_bytes": "mean size",
    "touched_bytes": "touched",
    "end_bytes": "ends at",
}


def _list_volumes(records: list[dict[str, Any]]) -> None:
    table = console.new_table(VOLUME_TITLES.values(), title="Volumes")
    for record in records:
        table.add_row(
            *(
                str(record[name])
                if name in ("volume", "requests", "requests_in_busiest_second")
                else quantity(name, record[name])
                for name in VOLUME_TITLES
            )
        )
    console.emit_table(table)


def _refuse_summary_options(file: Path, **given: object) -> None:
    names = [f"--{name}" for name, value in given.items() if value is not None]
    if names:
        raise typer.BadParameter(
            f"{file} is a fio job file, which says what it does: leave {', '.join(names)} out"
        )


def _make_folder(folder: Path) -> None:
    with output_file(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _emit_all(
    profiles: list[WorkloadProfile],
    *,
    each: bool,
    loop: str | None,
    out: Path | None,
    output: Form,
) -> None:
    for profile in (with_loop(one, Loop(loop) if loop else None) for one in profiles):
        if out is not None:
            if each:
                _make_folder(out)
            target = out / f"{profile.name}.toml" if each else out
            write_profile(profile, target)
            console.note(f"wrote {target}")
        _emit(profile, None, output)


@app.command()
def observe(
    drive: Annotated[Path, typer.Argument(metavar="/dev/X", help="The drive; it is not opened.")],
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to watch.")],
    repeat: Annotated[int, typer.Option(min=1, help="How often to watch.")] = 1,
    every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="From one beginning to the next, for --repeat."),
    ] = None,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=1e-4, help="Time between two readings.")
    ] = 0.001,
    blktrace: Annotated[
        bool, typer.Option("--blktrace", help="Trace every request instead, as root.")
    ] = False,
    loop: LoopOption = None,
    pattern: PatternOption = None,
    gap_seconds: GapOption = 0.01,
    out: OutOption = None,
    histograms: HistogramsOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Watch a live drive through the block layer's counters; nothing is changed or slowed down.

    --histograms adds to a file that is there, so that a day becomes a profile of its hours.
    Ctrl-C ends it early; what was seen until then is kept.
    """
    from iojoule.measure.observe import observe

    if blktrace and repeat > 1:
        raise typer.BadParameter("--blktrace traces once: leave --repeat out")
    kept = Kept(histograms)
    interrupted = False
    try:
        if blktrace:
            kept.keep(observe_traced(drive, seconds, gap_seconds))
        else:
            observe(
                ObserveRequest(drive, seconds, interval, gap_seconds, repeat, every), keep=kept.keep
            )
    except KeyboardInterrupt:
        interrupted = True
    if kept.summary is None:
        raise typer.Abort
    _answer(kept.summary, loop, pattern, None, out, None, output)
    if interrupted:
        console.note("interrupted: this is what was seen until then")
        raise typer.Abort


def _answer(
    summary: IoSummary,
    loop: str | None,
    pattern: str | None,
    hours: str | None,
    out: Path | None,
    histograms: Path | None,
    output: Form,
) -> None:
    windows = windows_in(summary, hours) if hours else summary.windows
    if histograms is not None:
        write_summary(summary, histograms)
        console.note(f"wrote {histograms}")
    profile = from_summary(
        summary,
        windows=windows,
        loop=Loop(loop) if loop else None,
        pattern=Pattern(pattern) if pattern else None,
    )
    if out is not None:
        write_profile(profile, out)
        console.note(f"wrote {out}")
    _emit(profile, summary.model_copy(update={"windows": windows}), output)


@app.command()
def day(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="Of observe --histograms.")],
    output: FormatOption = Format.TABLE,
) -> None:
    """Show what the hours of a day look like, from observations at different times."""
    found = day_profile(parse_summary(read_text(file), str(file)))
    records = [hour.model_dump() for hour in found]
    if output is Format.TABLE:
        rates = ("bytes_per_second", "read_fraction", "flushes_per_second", "busy_share")
        records = [
            each
            | {
                name: quantity(name, each[name])
                for name in (*rates, "requests_per_second", "observed_seconds")
            }
            for each in records
        ]
    titles = {
        "hour": "hour (UTC)",
        "observed_seconds": "watched",
        "bytes_per_second": "moved",
        "requests_per_second": "requests/s",
        "read_fraction": "reads",
        "flushes_per_second": "flushes/s",
        "busy_share": "busy",
    }
    console.emit_records(records, output, titles)


@app.command()
def presets(output: FormatOption = Format.TABLE) -> None:
    """List the workload profiles that come along, and where they come from."""
    from iojoule.recommender.workloads.presets import presets

    records = [
        {"preset": one.name, "loop": one.loop, "describes": one.describes, "sources": one.sources}
        for one in presets()
    ]
    if output is not Format.JSON:
        records = [{**each, "sources": "; ".join(each["sources"])} for each in records]
    titles = {"preset": "preset", "loop": "loop", "describes": "what it is"}
    console.emit_records(records, output, titles)


@app.command()
def show(
    what: Annotated[str, typer.Argument(metavar="PRESET|FILE")],
    loop: LoopOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Show a preset or a workload profile; `-o toml` writes a preset out to be changed."""
    path = Path(what)
    profile = load_workload(path) if path.suffix in (".toml", ".json") else find_preset(what)
    _emit(with_loop(profile, Loop(loop) if loop else None), None, output)


def _emit(profile: WorkloadProfile, summary: IoSummary | None, output: Form) -> None:
    if output is Form.TABLE:
        console.emit_table(*parts(profile, summary))
    else:
        console.emit(as_toml(profile) if output is Form.TOML else as_json(profile))


PERCENTS = (1, 50, 90, 99)
_SIZES = ("useful_request_bytes", "request_bytes", "request_bytes_coalescible")


def parts(profile: WorkloadProfile, summary: IoSummary | None) -> list[Any]:
    """Tables and lines in the order they are printed."""
    loop = "closed loop" if profile.as_fast_as_possible else "open loop: a demand to be met"
    table = console.new_table(["field", "value"], title=f"{profile.name} ({loop})")
    for section in ("workload", "current"):
        stated = getattr(profile, section).model_dump(mode="json", exclude_none=True)
        for name, value in stated.items():
            table.add_row(f"{section}.{name}", _shown(name, value))
    if profile.concurrency_max is not None:
        table.add_row("concurrency_max", str(profile.concurrency_max))
    found: list[Any] = [table]
    if summary is not None:
        found += _seen(summary.pooled())
    return found + [f"note: {note}" for note in profile.notes]


def _shown(name: str, value: Any) -> str:
    if name in _SIZES:
        return size(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return quantity("seconds" if "_seconds_p" in name else name, float(value))


def _seen(window: IoWindow) -> list[Any]:
    """Percentiles of gaps and bursts, where there are any, and how long was watched."""
    table = console.new_table(["seen", "how many", *(f"p{each}" for each in PERCENTS)])
    for name, field, histogram in (
        ("gaps", "seconds", window.gaps),
        ("bursts", "bytes", window.bursts),
    ):
        if histogram is not None and histogram.count:
            table.add_row(name, str(histogram.count), *_percentiles(field, histogram))
    lines: list[Any] = ["", table] if table.row_count else []
    if window.seconds is not None:
        busy = window.busy_seconds
        share = "" if busy is None else f", busy {digits(100 * busy / window.seconds)} % of them"
        lines.append(
            f"{window.reads} reads and {window.writes} writes in {digits(window.seconds)} s{share}"
        )
    return lines


def _percentiles(field: str, histogram: LogHistogram) -> list[str]:
    return [quantity(field, histogram.percentile(each)) for each in PERCENTS]
