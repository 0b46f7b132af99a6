"""`iojoule recommend`: which configurations a workload should use, what they save, how surely."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from iojoule.api.cli import console
from iojoule.api.cli.asking import ReportOption, asked_now, asked_of, check_report
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.factors import (
    CarbonOption,
    DriveCarbonOption,
    DrivePriceOption,
    PriceOption,
    PueOption,
)
from iojoule.api.cli.questions import (
    ConditionsOption,
    DeviceOption,
    FirmwareOption,
    ForOption,
    GenerationOption,
    HorizonOption,
    HostOption,
    ProfileOption,
    TemperatureOption,
    assignments,
    chosen_profile,
    stated_conditions,
)
from iojoule.api.cli.server import ServerOption, named, refuse, service, sources_of
from iojoule.datasets.errors import InfeasibleError

if TYPE_CHECKING:
    from iojoule.api.recommendations import RecommendationAnswer
    from iojoule.datasets.profile import DeviceProfile
    from iojoule.datasets.schema import Conditions
    from iojoule.recommender.workload import WorkloadProfile


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
        from iojoule.api.plots.front import check_target

        check_target(plot)
    check_report(report)
    if server:
        refuse(server, profile=profile, host=host)
        chosen = None
    else:
        chosen = chosen_profile(device, profile, host)
    from iojoule.api.recommendations import stated_value, workload_with
    from iojoule.recommender.factors import stated_factors
    from iojoule.recommender.sla_text import parse_sla
    from iojoule.recommender.workload import parse_seconds

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
    if chosen is None:
        with service(server) as client:
            found = client.recommend(named(device), question, conditions=asked)
            sources = sources_of(client, found.device) if report is not None else []
    else:
        found, sources = _answer(chosen, asked, question), chosen.sources
    _emit(found, output, rows)
    if plot is not None:
        from iojoule.api.plots.front import draw_front

        draw_front(found, plot)
        console.note(f"wrote {plot}")
    if report is not None:
        from iojoule.api.reports import recommendation, write_report

        request = asked_of(found.device, question, conditions=asked)
        now = asked_now(ctx, "/recommend", request, sources)
        write_report(recommendation.report(found, now), report)
        console.note(f"wrote {report}")
    if measure_plan is not None:
        _write_plan(found, question, measure_plan)
    if found.recommended is None:
        from iojoule.api.words import sentences

        raise InfeasibleError(
            f"{sentences.why_nothing(found)} The nearest misses are listed: relax a bound, free "
            "more knobs, lower the confidence, or measure what is not known"
        )


def _answer(
    profile: DeviceProfile, conditions: Conditions, question: WorkloadProfile
) -> RecommendationAnswer:
    from iojoule.api.recommendations import answer
    from iojoule.recommender.recommend import Recommender

    return answer(Recommender.under(profile, conditions), question)


def _write_plan(found: RecommendationAnswer, question: WorkloadProfile, path: Path) -> None:
    if found.measure_next is None or not found.measure_next.runs:
        console.note(f"nothing to measure next: {path} is not written")
        return
    from iojoule.api.measure_plans import next_plan
    from iojoule.datasets.atomic import write_text_atomically

    write_text_atomically(path, next_plan(found.measure_next, question))
    console.note(f"wrote {path}")


def _emit(found: RecommendationAnswer, output: Format, rows: int) -> None:
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
        return
    from iojoule.api.cli import answer_table

    if output is Format.CSV:
        answer_table.emit_csv(found)
    else:
        console.emit_table(*answer_table.parts(found, rows))
