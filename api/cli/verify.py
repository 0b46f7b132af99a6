"""`iojoule verify`: what a recommendation saves, measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from iojoule.api.cli import console
from iojoule.api.cli.act import RecommendationOption
from iojoule.api.cli.drive_options import (
    ControllerOption,
    DriveOption,
    OverwriteOption,
    PowerOption,
    RaplOption,
    SerialOption,
    ask_serial,
    sensors_of,
)

if TYPE_CHECKING:
    from iojoule.api.acting.answer_file import Answer
    from iojoule.api.acting.verifying import Verification

VERIFICATION_FILE = "verification.json"


def verify(
    recommendation: RecommendationOption,
    workload: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The workload that it was recommended for."),
    ],
    drive: DriveOption,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder of the runs; one that was begun is gone on with."),
    ],
    controller: ControllerOption = None,
    power: PowerOption = None,
    rapl_root: RaplOption = None,
    job: Annotated[str | None, typer.Option(help="Section of the fio job file.")] = None,
    scope: Annotated[
        Literal["device", "device_cpu", "system"] | None,
        typer.Option(help="Whose energy counts; else that of the recommendation."),
    ] = None,
    pairs: Annotated[int, typer.Option(min=4, help="Pairs of runs at the most; made even.")] = 24,
    seconds: Annotated[float, typer.Option(min=1, help="Measured time of a run.")] = 30.0,
    ramp_seconds: Annotated[float, typer.Option(min=0, help="Time before it.")] = 5.0,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="That the interval of the saving holds.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of the order of the runs.")] = 1,
    serial: SerialOption = None,
    overwrite: OverwriteOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every command and do nothing.")
    ] = False,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Measure what a recommendation saves: interleaved runs with and without it.

    The drive must not be in use, as for `iojoule measure`; everything is put back. Leaves with exit
    code 30 where no saving is shown or a bound of the SLA is broken.
    """
    from iojoule.api.acting.answer_file import read_answer
    from iojoule.api.acting.errors import NotProvenError
    from iojoule.api.acting.paired_saving import Trial
    from iojoule.api.acting.proposal import require_model
    from iojoule.api.acting.verifying import (
        Work,
        plan_text,
        require_meters,
        sets_power_states,
        verification,
        way,
    )
    from iojoule.api.cli.campaign_progress import CampaignProgress
    from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions
    from iojoule.measure.campaign.plan import parse_plan
    from iojoule.measure.campaign.session import commands, look, look_at, run_campaign
    from iojoule.measure.errors import CampaignError
    from iojoule.measure.fio import find_fio
    from iojoule.recommender.workload import Scope, load_workload

    answer, question = read_answer(recommendation), load_workload(workload, job=job)
    trial = Trial(pairs + pairs % 2, confidence)
    work = Work(question, Scope(scope) if scope else answer.scope)
    facts, nvme = look_at(drive, controller)
    require_model(answer, facts)
    text = plan_text(
        answer, question, trial, seconds=seconds, ramp_seconds=ramp_seconds,
        power_states=sets_power_states(answer, facts, nvme), seed=seed,
    )  # fmt: skip
    plan = parse_plan(text, "plan.toml")
    opened = look(plan, drive, controller)
    if dry_run:
        console.emit("\n".join(commands(opened, find_fio())) + "\n")
        return
    sensors = sensors_of(power, rapl_root)
    require_meters(work.scope, sensors)
    folder = CampaignFolder(out)
    if folder.exists and folder.plan_text() != text:
        raise CampaignError(f"{out}: holds another campaign; name a new folder with --out")
    if plan.writes and serial is None and not folder.exists:
        serial = ask_serial(facts, "verifying a workload that writes")
    options = CampaignOptions(
        drive=str(drive),
        controller=str(nvme.node) if nvme is not None else None,
        serial=facts.serial,
        sensors=sensors,
        overwrite=overwrite or [],
    )
    with CampaignProgress() as progress:
        run_campaign(
            folder, text, options, typed_serial=serial, say=progress.say, observer=progress,
            resume=folder.exists, way=way(trial, work),
        )  # fmt: skip
    found = verification(folder.records(), answer, trial, work)
    folder.write(VERIFICATION_FILE, found)
    if output is console.Format.JSON:
        console.emit_json(found.model_dump(mode="json"))
    elif output is console.Format.CSV:
        console.emit_records([_flat(found)], output, {})
    else:
        console.emit_table(*_parts(found, answer))
    if not found.holds:
        raise NotProvenError(_why_not(found))


def _parts(found: Verification, answer: Answer) -> Iterator[Any]:
    from iojoule.api.words.configurations import SCOPE_POWER
    from iojoule.api.words.quantities import quantity

    yield f"{answer.workload}: energy of {SCOPE_POWER[found.scope][1]} for the same work"
    if found.saving is not None:
        yield (
            f"saving: {_percent(found.saving)} [{_percent(found.low)}, {_percent(found.high)}] at "
            f"{found.confidence:.0%} confidence, from {found.pairs} pairs: {found.verdict}"
        )
        yield (
            f"before {found.before_joules_per_gb:.4g} J/GB, after "
            f"{found.after_joules_per_gb:.4g} J/GB"
        )
    else:
        yield f"saving: unknown, {found.pairs} pairs are too few"
    if answer.saving is not None:
        said = answer.saving.percent
        yield f"recommended for {said.value:.3g} % [{said.low:.3g}, {said.high:.3g}]"
    if found.bounds:
        yield ""
        table = console.new_table(["with the change", "bound", "measured, 90 % interval", "kept"])
        for one in found.bounds:
            field = one.bound.removesuffix("_min").removesuffix("_max")
            table.add_row(
                field,
                quantity(field, one.limit),
                quantity(field, one.mean, one.low, one.high),
                one.kept,
            )
        yield table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3g} %"


def _flat(found: Verification) -> dict[str, Any]:
    row = found.model_dump(mode="json", exclude={"bounds"})
    return row | {f"{one.bound}_kept": one.kept for one in found.bounds}


def _why_not(found: Verification) -> str:
    if found.broken:
        return f"with the change {' and '.join(found.broken)} is not kept; do not apply it"
    if found.verdict == "costs more":
        return "the change costs more energy for the same work; do not apply it"
    return (
        "no saving is shown; more pairs (--pairs), longer runs (--seconds) or a quieter host would "
        "show a smaller one"
    )
