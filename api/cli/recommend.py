"""`iojoule recommend`: which configurations a workload should use, what they save, how surely."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import (
    CarbonOption,
    ConditionsOption,
    DeviceOption,
    DriveCarbonOption,
    DrivePriceOption,
    FirmwareOption,
    ForOption,
    GenerationOption,
    HorizonOption,
    HostOption,
    PriceOption,
    ProfileOption,
    PueOption,
    ReportOption,
    ServerOption,
    TemperatureOption,
    asked_now,
    asked_of,
    assignments,
    check_report,
    chosen_backend,
    stated_conditions,
)
from iojoule.api.reports import sentences
from iojoule.api.reports.configurations import (
    HEADINGS,
    KNOBS,
    SCOPE_POWER,
    evidence,
    knob,
    setting,
    shown,
    split_knobs,
    target,
)
from iojoule.api.reports.quantities import quantity
from iojoule.datasets.errors import InfeasibleError
from iojoule.recommender.factors import YEARLY
from iojoule.recommender.response import Estimate, MeasureNext, Miss, Recommendation, Row

if TYPE_CHECKING:
    from iojoule.api.application.recommend import RecommendationAnswer
    from iojoule.recommender.request import WorkloadProfile


def recommend(
    ctx: typer.Context,
    workload: Annotated[
        Path,
        typer.Option(
            metavar="FILE|PRESET",
            help="Workload profile (.toml, .json), fio job file, or a preset such as ycsb-a.",
        ),
    ],
    device: DeviceOption = None,
    profile: ProfileOption = None,
    host: HostOption = None,
    job: Annotated[str | None, typer.Option(help="Section of the fio job file.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Replace a field of the workload profile, as sla.latency_p99_ns_max=500000.",
        ),
    ] = None,
    sla: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Instead of the file's: 'p99 < 2 ms, soft device power <= 5 W at 95 %'.",
        ),
    ] = None,
    scope: Annotated[
        Literal["device", "device_cpu", "system"] | None,
        typer.Option(help="Whose energy counts; else as the file says, or device_cpu."),
    ] = None,
    objective: Annotated[
        Literal["watts", "joules_per_useful_gb", "edp", "kwh_per_year", "cost", "co2"] | None,
        typer.Option(help="What is made small; else as the file says, or watts under a demand."),
    ] = None,
    price: PriceOption = None,
    carbon: CarbonOption = None,
    pue: PueOption = None,
    drive_price: DrivePriceOption = None,
    drive_carbon: DriveCarbonOption = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Probability with which each bound holds; else as the file says, or 0.9."
        ),
    ] = None,
    least_saving: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="What a change must save, as 5%; else as the file says, or 2%.",
        ),
    ] = None,
    horizon: HorizonOption = None,
    firmware: FirmwareOption = None,
    pcie_generation: GenerationOption = None,
    temperature: TemperatureOption = None,
    conditions: ConditionsOption = None,
    for_: ForOption = None,
    rows: Annotated[int, typer.Option(min=1, max=50, help="Rows of the Pareto table.")] = 10,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the Pareto front (.svg, .png, .pdf), or its points (.csv)."
        ),
    ] = None,
    report: ReportOption = None,
    measure_plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Write what to measure next as a plan."),
    ] = None,
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Rank the configurations that meet the SLA for the least energy.

    Leaves with exit code 7 where nothing is recommended (`reason_code`); the nearest misses are
    shown.
    """
    if plot is not None:
        from iojoule.api.reports.plots import check_target

        check_target(plot)
    check_report(report)
    backend = chosen_backend(server, device, profile, host)
    from iojoule.api.application.recommend import stated_value, workload_with
    from iojoule.recommender.factors import stated_factors
    from iojoule.recommender.request import parse_seconds
    from iojoule.recommender.sla import parse_sla

    changes: dict[str, Any] = {
        name: stated_value(text) for name, text in assignments(set_ or []).items()
    }
    options: dict[str, Any] = {"scope": scope, "objective": objective, "sla.confidence": confidence}
    if sla is not None:
        options["sla"] = parse_sla(sla, options.pop("sla.confidence")).model_dump(
            exclude_unset=True
        )
    if least_saving is not None:
        options["least_saving_percent"] = stated_value(least_saving.strip().removesuffix("%"))
    if horizon is not None:
        options["horizon_seconds"] = parse_seconds(horizon, "horizon_seconds")
    changes |= {name: value for name, value in options.items() if value is not None}
    stated = stated_factors(price, carbon, pue, drive_price, drive_carbon)
    changes |= {f"factors.{name}": value for name, value in stated.items()}
    asked = stated_conditions(firmware, pcie_generation, temperature, conditions, for_)
    question = workload_with(workload, changes, job=job)
    with backend as computes:
        found = computes.recommend(question, asked)
        sources = computes.sources([found.device]) if report is not None else []
    _emit(found, output, rows)
    if plot is not None:
        from iojoule.api.reports.plots import draw_front

        draw_front(found, plot)
        console.note(f"wrote {plot}")
    if report is not None:
        from iojoule.api.reports import recommendation
        from iojoule.api.reports.report_file import write_report

        request = asked_of(found.device, question, conditions=asked)
        now = asked_now(ctx, "/recommend", request, sources)
        write_report(recommendation.report(found, now), report)
        console.note(f"wrote {report}")
    if measure_plan is not None:
        _write_plan(found, question, measure_plan)
    if found.recommended is None:
        from iojoule.api.reports import sentences

        raise InfeasibleError(
            f"{sentences.why_nothing(found)} The nearest misses are listed: relax a bound, free "
            "more knobs, lower the confidence, or measure what is not known"
        )


def _write_plan(found: RecommendationAnswer, question: WorkloadProfile, path: Path) -> None:
    if found.measure_next is None or not found.measure_next.runs:
        console.note(f"nothing to measure next: {path} is not written")
        return
    from iojoule.api.application.measure_plan import next_plan
    from iojoule.datasets.atomic import write_text_atomically

    write_text_atomically(path, next_plan(found.measure_next, question))
    console.note(f"wrote {path}")


def _emit(found: RecommendationAnswer, output: Format, rows: int) -> None:
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
        return

    if output is Format.CSV:
        emit_csv(found)
    else:
        console.emit_table(*parts(found, rows))


_BROAD = 180
"""On a narrower terminal intervals and second words stand below."""

_BREAK = re.compile(r" (\[|recommended|misses|/ )")


def parts(found: RecommendationAnswer, rows: int) -> Iterator[Any]:
    """What goes to the terminal, from top to bottom: lines and tables."""
    yield found.summary.sentence
    yield f"{found.workload} on {found.model_name} (profile version {found.profile_version})"
    yield from _asked(found)
    if shown(found, rows):
        yield ""
        yield _table(found, rows)
    yield ""
    yield from _verdict(found)
    if found.attribution is not None and found.recommended and found.current:
        yield ""
        best = found.recommended.configuration
        today = found.current.configuration
        yield console.table_of(sentences.knobs(found.attribution, today, best))
        yield from sentences.of_knobs(found.attribution)
    if found.measure_next is not None:
        yield ""
        yield from _measure_next(found.measure_next)
    if found.bounds:
        yield ""
        yield console.table_of(sentences.bounds(found.bounds, found.ranked_by))
        yield from sentences.of_bounds(found.bounds)
    if found.nearest_misses:
        yield ""
        yield from _misses(found.nearest_misses)
        yield from (f"  {line}" for line in sentences.relaxations(found.relaxations))
    yield ""
    yield from _reading(found)


def _asked(found: Recommendation) -> Iterator[str]:
    demand = quantity("demand_bytes_per_second", found.demand_bytes_per_second)
    mode = (
        "as fast as possible" if found.demand_bytes_per_second is None else f"useful work {demand}"
    )
    yield f"{mode}; energy of {SCOPE_POWER[found.scope][1]}; ranked by {target(found)}"
    bounds = [
        sentences.sla_bound(found.sla, name, limit) for name, limit in found.sla.bounds().items()
    ]
    yield f"SLA at {found.confidence:.0%} confidence: {'; '.join(bounds) or 'no bounds'}"
    counts = found.counts
    yield (
        f"{counts.total:,} candidates, {counts.feasible:,} meet the SLA, "
        f"{counts.on_front:,} on the Pareto front"
    )


def _table(found: Recommendation, rows: int) -> Any:
    listed = shown(found, rows)
    everything = [row for _, row in listed]
    fixed, varying = split_knobs([row.configuration for row in everything])
    power, scope = SCOPE_POWER[found.scope]
    columns = {power: f"power ({scope})", "joules_per_useful_gb": "energy per GB"}
    if found.objective.value == "edp":
        columns["edp_joule_seconds"] = "EDP"
    if found.objective in YEARLY:
        columns[YEARLY[found.objective]] = f"{target(found)} a year"
    columns |= {"capacity_bytes_per_second": "capacity", "latency_p99_ns": "p99 latency"}
    headings = ["", *(HEADINGS.get(name, name) for name in varying), *columns.values()]
    table = console.new_table([*headings, "evidence"])
    for mark, row in listed:
        cells = [
            mark,
            *(knob(row.configuration, name) for name in varying),
            *(_estimate(row, name) for name in columns),
            evidence(row, power),
        ]
        if console.width() < _BROAD:
            cells = [_BREAK.sub(r"\n\1", cell) for cell in cells]
        table.add_row(*cells)
    table.caption = (f"All rows: {fixed}. " if fixed else "") + (
        "In brackets: 90 % interval. Evidence: of performance / of power."
    )
    return table


def _estimate(row: Row, name: str) -> str:
    found: Estimate | None = getattr(row, name)
    return "-" if found is None else quantity(name, found.value, found.low, found.high)


def _verdict(found: Recommendation) -> Iterator[str]:
    if found.recommended is None:
        return
    if found.not_taken is not None:
        yield f"Not taken:   {setting(found.not_taken.row.configuration)}"
        if found.not_taken.saving is not None:
            yield from _labelled("", sentences.saving(found.not_taken.saving, found.factors))
    for one in found.preferred_missed:
        yield f"Preferred:   not kept by anything: {sentences.short(one)}"
    if found.current is None:
        yield "Today:       not stated, so no saving is stated"
    else:
        yield f"Today:       {setting(found.current.configuration)}; {sentences.place(found)}"
    if found.action == "change" and found.saving is None:
        yield "Saving:      unknown, the profile has no power for this scope"
    elif found.action == "change" and found.saving is not None:
        yield from _labelled("Saving:", sentences.saving(found.saving, found.factors))
    if found.endurance is not None:
        yield from _labelled("Wear:", sentences.wear(found.endurance, found.factors))
    yield from _labelled("Durability:", sentences.durability(found.durability))


def _measure_next(found: MeasureNext) -> Iterator[str]:
    asked, runs = sentences.measure_next(found)
    yield asked
    yield from (f"  {place}. {run}" for place, run in enumerate(runs, start=1))
    if runs:
        yield f"  {found.command}"


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{label:13}{line}"
        label = ""


def _misses(misses: Sequence[Miss]) -> Iterator[str]:
    yield "Nearest misses"
    for miss in misses:
        yield f"  {setting(miss.row.configuration)}"
        yield from (f"    {sentences.short(one)}" for one in miss.shortfalls)


def _reading(found: Recommendation) -> Iterator[str]:
    yield "Before acting on it"
    yield from (f"  {note}" for note in found.notes)
    if found.defaults_used:
        said = ", ".join(f"{name} = {value}" for name, value in found.defaults_used.items())
        yield f"  defaults taken for what the workload profile leaves out: {said}"


def emit_csv(found: Recommendation) -> None:
    """Write one line per configuration: recommended, front, nearest misses, today's."""
    rows = [("recommended", found.recommended)] if found.recommended else []
    rows += [("pareto", row) for row in found.pareto]
    rows += [("nearest_miss", miss.row) for miss in found.nearest_misses]
    if found.current is not None:
        rows.append(("current", found.current))
    quantities = [name for name in Row.model_fields if name not in _PLAIN]
    header = ["role", *KNOBS, *_PLAIN[1:]]
    for name in quantities:
        header += [name, f"{name}_low", f"{name}_high", f"{name}_evidence"]
    console.emit_csv(header, (_flat(role, row, quantities) for role, row in rows))


_PLAIN = (
    "configuration",
    "concurrency",
    "busy_share",
    "host_bytes_written_per_second",
    "meets_sla",
)


def _flat(role: str, row: Row, quantities: Sequence[str]) -> list[Any]:
    cells: list[Any] = [role, *(getattr(row.configuration, name) for name in KNOBS)]
    cells += [row.concurrency, row.busy_share, row.host_bytes_written_per_second, row.meets_sla]
    for name in quantities:
        one: Estimate | None = getattr(row, name)
        cells += [None] * 4 if one is None else [one.value, one.low, one.high, one.evidence]
    return [str(cell).lower() if isinstance(cell, bool) else cell for cell in cells]
