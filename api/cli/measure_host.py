"""`iojoule measure host`: what this host costs, found without a drive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.cli import console
from iojoule.api.cli.options import PowerOption, RaplOption
from iojoule.datasets.profile import write_host_profile
from iojoule.measure.host_calibration.session import CalibrationRequest, calibrate, prepare
from iojoule.model.evaluate.quantities import NORMAL_90

if TYPE_CHECKING:
    from iojoule.datasets.profile import HostProfile


def host(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="HOST.json", help="Where the host profile goes."),
    ] = None,
    rapl_root: RaplOption = None,
    power: PowerOption = None,
    minutes: Annotated[float, typer.Option(metavar="N", min=0.1, help="Time to aim at.")] = 5.0,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where a file of 64 MiB may be made and read with real engines; removed after.",
            file_okay=False,
            exists=True,
        ),
    ] = None,
    others_cores: Annotated[
        float,
        typer.Option(metavar="CORES", min=0, help="How busy others may keep this host."),
    ] = 0.1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every step and setting and do nothing.")
    ] = False,
) -> None:
    """Calibrate this host: power by cores, wake-ups, frequency and sleep; core time by engine.

    Needs RAPL counters or a meter at the wall, and no drive. Frequencies and sleep states are set
    where this user may, and put back on every way out.
    """
    prepared = prepare(CalibrationRequest(rapl_root, power or (), minutes, folder, others_cores))
    if dry_run:
        console.emit("\n".join(prepared.commands()) + "\n")
        return
    if out is None:
        raise typer.BadParameter("say where the host profile goes: -o HOST.json")
    plan = prepared.plan
    console.note(f"{len(plan.loads)} loads, about {plan.seconds / 60:.1f} minutes; leave it alone")
    found = calibrate(prepared, console.note)

    write_host_profile(found, out)
    _show(found)
    console.note(f"wrote {out}")


def _show(found: HostProfile) -> None:
    table = console.new_table(["quantity", "value", "90 % interval", "unit", "evidence"])
    clock = found.operation.clock if found.operation else None
    power = found.power
    rows = list(power.parameters)
    if power.dram is not None:
        rows += [power.dram.idle_watts, power.dram.joules_per_byte]
    if clock is not None:
        rows += [clock.reference_hertz, clock.static_share, clock.voltage_floor]
    if found.system is not None:
        rows += [found.system.floor_watts, found.system.slope]
        rows += [found.system.quadratic] if found.system.quadratic else []
    for one in rows:
        half = NORMAL_90 * one.sd
        table.add_row(
            one.name,
            f"{one.value:.4g}",
            f"[{one.value - half:.4g}, {one.value + half:.4g}]",
            one.unit,
            one.evidence.value,
        )
    for path in found.performance.paths if found.performance else []:
        table.add_row(
            f"core time of {path.engine}",
            f"{path.core_time_ns + path.wakeup_ns:.0f} at depth 1, {path.core_time_ns:.0f} deep",
            "",
            "ns",
            path.evidence.value,
        )
    console.emit_table(table, *(f"not found: {gap}" for gap in found.gaps))
