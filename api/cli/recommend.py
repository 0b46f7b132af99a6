"""`iojoule recommend`: which configurations a workload should use, what they save, how surely."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from iojoule.api.cli import console
from iojoule.api.cli import recommendation_text as text
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
from iojoule.api.reports.configurations import KNOBS
from iojoule.datasets.errors import InfeasibleError
from iojoule.recommender.response import Estimate, Recommendation, Row

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
    settings: Annotated[
        str | None,
        typer.Option(
            metavar="APPLICATION[=VERSION]",
            help="Also as settings to paste: postgresql=17, mysql, mariadb, rocksdb, ceph, qemu, "
            "libvirt or fio.",
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, max=50, help="Rows of the Pareto table; else as many as fit."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also the reasons, what bounds cost, what to measure.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="All columns, whatever the terminal's width.")
    ] = False,
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

    changes: dict[str, Any] = {}
    options: dict[str, Any] = {"scope": scope, "objective": objective, "sla.confidence": confidence}
    if sla is not None:  # first, so that --set can change one of its bounds
        stated = parse_sla(sla, options.pop("sla.confidence"))
        changes["sla"] = stated.model_dump(exclude_unset=True)
    changes |= {name: stated_value(value) for name, value in assignments(set_ or []).items()}
    if least_saving is not None:
        options["least_saving_percent"] = stated_value(least_saving.strip().removesuffix("%"))
    if horizon is not None:
        options["horizon_seconds"] = parse_seconds(horizon, "horizon_seconds")
    changes |= {name: value for name, value in options.items() if value is not None}
    factors = stated_factors(price, carbon, pue, drive_price, drive_carbon)
    changes |= {f"factors.{name}": value for name, value in factors.items()}
    asked = stated_conditions(firmware, pcie_generation, temperature, conditions, for_)
    question = workload_with(workload, changes, job=job)
    with backend as computes:
        found = computes.recommend(question, asked, settings)
        sources = computes.sources([found.device]) if report is not None else []
    command = typed_command(ctx.obj)
    _emit(found, command, output, rows, explain=explain, wide=wide)
    if plot is not None:
        from iojoule.api.reports.plots import draw_front

        draw_front(found, plot)
        console.note(f"wrote {plot}")
    if report is not None:
        from iojoule.api.reports import recommendation
        from iojoule.api.reports.report_file import write_report

        more = {} if settings is None else {"settings": settings}
        request = asked_of(found.device, question, conditions=asked, **more)
        now = asked_now(ctx, "/recommend", request, sources)
        write_report(recommendation.report(found, now), report)
        console.note(f"wrote {report}")
    if measure_plan is not None:
        _write_plan(found, question, measure_plan)
    if found.recommended is None:
        raise InfeasibleError(f"nothing is recommended: {found.reason_code}")


def _write_plan(found: RecommendationAnswer, question: WorkloadProfile, path: Path) -> None:
    if found.measure_next is None or not found.measure_next.runs:
        console.note(f"nothing to measure next: {path} is not written")
        return
    from iojoule.api.application.measure_plan import next_plan
    from iojoule.datasets.atomic import output_file, write_text_atomically

    with output_file(path):
        write_text_atomically(path, next_plan(found.measure_next, question))
    console.note(f"wrote {path}")


def _emit(
    found: RecommendationAnswer,
    command: str,
    output: Format,
    rows: int | None,
    *,
    explain: bool,
    wide: bool,
) -> None:
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
    elif output is Format.CSV:
        emit_csv(found)
    else:
        from iojoule.api.reports.summary import with_command

        summary = with_command(found.summary, found.device, command)
        columns = console.WIDE if wide else console.columns()
        parts: list[Any] = [*text.verdict(summary, console.columns())]
        if explain:
            parts += ["", *text.explained(found, rows or text.ALL_ROWS, columns)]
        elif wide:
            parts += ["", text.table(found, rows or text.ALL_ROWS, columns)]
        else:
            parts += text.brief(found, rows, columns)
        if found.settings is not None:
            parts += ["", *found.settings.text.splitlines()]
        console.emit_table(*parts, wide=wide)


_OF_THE_ANSWER = {"--output": 1, "-o": 1, "--rows": 1, "--report": 1, "--plot": 1}
_OF_THE_ANSWER |= {"--measure-plan": 1, "--explain": 0, "--wide": 0}
"""Options that say how an answer is given -> how many words follow."""


def typed_command(words: Sequence[str]) -> str:
    """The command as it was typed, without the options that say how an answer is given."""
    kept, skip = ["iojoule"], 0
    for word in words:
        if skip:
            skip -= 1
        elif (option := word.partition("=")[0]) in _OF_THE_ANSWER:
            skip = 0 if "=" in word else _OF_THE_ANSWER[option]
        else:
            kept.append(word)
    return shlex.join(kept)


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
