"""`iojoule govern`: keep drives within their SLA and a budget of watts as the load changes."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iojoule.api.acting.governing.budget import Budget
    from iojoule.api.acting.governing.loop import Governed, Governor

_HIDDEN = {"metavar": "DIR", "hidden": True}


def govern(
    drive: Annotated[
        list[Path] | None,
        typer.Option("--drive", metavar="/dev/X", help="A whole drive; again for each."),
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[DRIVE=]PROFILE",
            help="File that `iojoule fit` wrote, or a device model, measured on such a drive.",
        ),
    ] = None,
    sla: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML with `sla`, or a workload profile, whose pattern and concurrency_max count.",
        ),
    ] = None,
    budget_watts: Annotated[
        float | None,
        typer.Option(metavar="W", min=0.1, help="What all these drives may draw together."),
    ] = None,
    budget_from: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Service whose fleet planner says the budget (key: IOJOULE_KEY); --budget-watts "
            "holds while it is away for longer than --budget-hold.",
        ),
    ] = None,
    fleet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --budget-from: the fleet file.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --budget-from: these drives' group in it."),
    ] = None,
    budget_hold: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long the last answer holds.")
    ] = 600.0,
    run: Annotated[
        bool, typer.Option("--run", help="Set it; else only say what would be set.")
    ] = False,
    serial: Annotated[
        list[str] | None,
        typer.Option(metavar="SERIAL", help="Agrees to --run on that drive; again for each."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.1, help="Stop after so long; until Ctrl-C if left out."),
    ] = None,
    controller: Annotated[
        list[str] | None,
        typer.Option(metavar="DRIVE=/dev/Y", help="Its NVMe controller, where it is not found."),
    ] = None,
    power: Annotated[
        list[str] | None,
        typer.Option(metavar="DRIVE=SENSOR", help="An instrument that measures a drive."),
    ] = None,
    power_states: Annotated[
        str | None,
        typer.Option(metavar="0,1,...", help="That may be used. Default: all that were measured."),
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="That may be used beside the present one."),
    ] = None,
    best_effort: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CGROUP",
            help="Control group whose bandwidth is limited (io.max) while no setting keeps SLA and "
            "budget; again for each.",
        ),
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help="random or sequential: counters do not tell.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Most requests in flight. Default: 32."),
    ] = None,
    period: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.2, help="Between two decisions.")
    ] = 1.0,
    memory: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.2, help="The most of so long is the next demand."),
    ] = 10.0,
    margin: Annotated[
        float, typer.Option(min=0, max=0.45, help="Share of a bound that forecasts leave free.")
    ] = 0.1,
    saving: Annotated[
        float, typer.Option(min=0, max=1, help="Least share of the watts that a change saves ...")
    ] = 0.02,
    saving_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="... for so long before it is made.")
    ] = 30.0,
    switches: Annotated[
        int, typer.Option(metavar="N", min=2, help="At the most in an hour to save energy.")
    ] = 12,
    hold_off: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Nothing is saved after a breach; doubles."),
    ] = 60.0,
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Only restore what a killed governor has set, and end."),
    ] = False,
) -> None:
    """Keep drives within an SLA and a budget of watts by power state, scheduler and power limit.

    Without --run it only says what it would do. Decisions are JSON lines on standard output: why,
    what was measured, what is predicted of every setting. All settings are restored at the end,
    also by the next start after a kill.
    """
    from iojoule.measure.host.journal import restore_abandoned

    if restore or run:
        for line in restore_abandoned():
            console.note(line)
    if restore:
        return
    if not drive or not profile or sla is None:
        raise typer.BadParameter("--drive, --profile and --sla are needed")
    if (budget_from is None) != (fleet is None and group is None):
        raise typer.BadParameter("--budget-from needs --fleet and --group, and they need it")

    from iojoule.api.acting.governing.files import governed, read_service
    from iojoule.api.acting.governing.law import Rules
    from iojoule.api.acting.governing.loop import Governor, Options

    service = read_service(sla)
    options = Options(
        sla=service.sla,
        rules=Rules(
            margin=margin,
            saving_share=saving,
            saving_seconds=saving_seconds,
            switches=switches,
            hold_off_seconds=hold_off,
        ),
        period_seconds=period,
        memory_seconds=memory,
        pattern=pattern or service.pattern,
        concurrency=concurrency or service.concurrency,
    )
    drives = governed(
        drive,
        profile,
        controllers=controller or (),
        instruments=power or (),
        power_states=_numbers(power_states),
        schedulers=tuple(scheduler or ()),
        best_effort=tuple(best_effort or ()),
    )
    if run:
        _require_consent(drives, serial or ())
    with ExitStack() as stack:
        budget = _budget(stack, budget_watts, budget_from, fleet, group, budget_hold, len(drives))

        def work(state: Any) -> None:
            with Governor(drives, options, budget, state, _log, console.note) as governor:
                try:
                    governor.run(seconds)
                finally:
                    _summarise(governor)

        _guarded(drives, run, work)


def _guarded(drives: Sequence[Governed], run: bool, work: Callable[[Any], None]) -> None:
    """Work until it ends or a signal ends it, which is how a daemon is ended."""
    from iojoule.api.acting.governing.files import only_governor
    from iojoule.measure.host.guard import Interrupted, guarded, signal_handler

    try:
        if run:
            with only_governor(drives):
                device = drives[0].drive.device
                guarded(device, console.note, "settings are restored", work, in_use=True)
        else:
            with signal_handler(console.note):
                work(None)
    except Interrupted:
        return


def _budget(
    stack: ExitStack,
    watts: float | None,
    url: str | None,
    fleet: Path | None,
    group: str | None,
    hold: float,
    drives: int,
) -> Budget:
    from iojoule.api.acting.governing.budget import FixedBudget, FleetShare, PlannedBudget

    if url is None or fleet is None or group is None:
        if url is not None:
            raise typer.BadParameter("--budget-from needs --fleet and --group")
        return FixedBudget(watts)
    if watts is None:
        raise typer.BadParameter(
            "--budget-from needs --budget-watts: what holds while the service is away"
        )
    from iojoule.api.client.client import Client

    client = stack.enter_context(Client(url))
    share = FleetShare(fleet, group, drives)
    return stack.enter_context(
        PlannedBudget(
            share,
            lambda asked: client.fleet_plan(asked).plans,
            watts,
            hold_seconds=hold,
            say=console.note,
        )
    )


def _require_consent(drives: Sequence[Governed], serials: Sequence[str]) -> None:
    from iojoule.measure.errors import UnsafeDriveError

    typed = {one.strip() for one in serials}
    for one in drives:
        if one.drive.serial not in typed:
            raise UnsafeDriveError(
                f"{one.drive.device.path}: to set this, type out the drive's serial number "
                f"(--serial {one.drive.serial})"
            )


def _numbers(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise typer.BadParameter(f"{text}: numbers with commas, as 0,1") from None


def _log(record: dict[str, Any]) -> None:
    console.emit(json.dumps(record, allow_nan=False) + "\n")


def _summarise(governor: Governor) -> None:
    from iojoule.api.acting.governing.loop import summary

    for name, totals in governor.totals.items():
        _log({"reason": "end", **summary(name, totals)})
