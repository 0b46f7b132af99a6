"""`iojoule idle`: how drives rest, who wakes them, and which table of transitions saves more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import ControllerOption, ProfileOption
from iojoule.api.reports.quantities import digits, quantity

if TYPE_CHECKING:
    from iojoule.api.application.idle import Advice
    from iojoule.meter.idle import Chain
    from iojoule.model.evaluate.bands import Interval

DEFAULT_WAKE_US = 1000
"""Bound of a wake-up where neither it nor an SLA is stated: assumed to be tolerable."""

_LATENCY = re.compile(r"\s*([0-9.]+)\s*(us|ms|s)\s*")
_MICROSECONDS = {"us": 1.0, "ms": 1e3, "s": 1e6}


def idle(
    drive: Annotated[
        Path | None,
        typer.Option(metavar="/dev/X", help="One drive; default: all of the host.", readable=False),
    ] = None,
    controller: ControllerOption = None,
    watch: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long gaps are watched.")
    ] = 10.0,
    wake_latency_max: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Longest wait of a request for the drive to wake, as 500us, 15ms. Default: the "
            "tightest latency bound of --sla, else 1ms.",
        ),
    ] = None,
    sla: Annotated[
        str | None, typer.Option(help="Latency bounds, as for `iojoule recommend`.")
    ] = None,
    profile: ProfileOption = None,
    ask_drive: Annotated[
        bool,
        typer.Option(
            "--ask-drive",
            help="Also read Identify, feature 0Ch and OCP's log C0h: four or five commands, each "
            "may wake the drive.",
        ),
    ] = False,
    write_table: Annotated[
        bool,
        typer.Option("--write-table", help="Set the recommended table of --drive; needs --serial."),
    ] = False,
    serial: Annotated[
        str | None,
        typer.Option(metavar="SERIAL", help="Agrees to --write-table on that drive."),
    ] = None,
    undo: Annotated[
        Path, typer.Option(metavar="FILE", help="Where --write-table writes what takes it back.")
    ] = Path("iojoule-undo.json"),
    sysfs: Annotated[Path, typer.Option(metavar="DIR", help="Root of sysfs.", hidden=True)] = Path(
        "/sys"
    ),
    proc: Annotated[Path, typer.Option(metavar="DIR", help="Root of procfs.", hidden=True)] = Path(
        "/proc"
    ),
    output: FormatOption = Format.TABLE,
) -> None:
    """Show how drives rest, what wakes them, and which APST table would save more.

    Reads files of the kernel only, so that a sleeping drive sleeps on; --ask-drive sends commands.
    """
    from iojoule.api.application.idle import DriveQuery, Question, advise, drives_of
    from iojoule.api.application.profiles import profile_in
    from iojoule.measure.drive.nvme import NvmeController
    from iojoule.measure.host.journal import restore_abandoned
    from iojoule.meter.idle_settings import block_device

    if drive is None and (profile or controller or write_table):
        raise typer.BadParameter("--profile, --controller and --write-table need --drive")
    question = Question(
        watch_seconds=watch,
        most_wake_us=_bound(wake_latency_max, sla),
        profile=profile_in(profile) if profile is not None else None,
        sysfs=sysfs,
        proc=proc,
    )

    if write_table:  # a killed process's settings are not in force
        for line in restore_abandoned():
            console.note(line)
    names = drives_of(drive, sysfs)
    controllers = {}
    for device in (block_device(name, sysfs) for name in names):
        node = controller or device.controller_node()
        if node is not None and (ask_drive or write_table):
            controllers[device.name] = NvmeController(node, device.namespace_id())
    found = advise(names, question, DriveQuery(controllers) if controllers else None)
    for name in sorted({*names} - {one.settings.name for one in found}):
        console.warn(f"{name}: has vanished while it was watched")
    if output is Format.JSON:
        console.emit_json([one.document() for one in found])
    elif output is Format.CSV:
        console.emit_records([_flat(one) for one in found], output, dict.fromkeys(_COLUMNS, ""))
    else:
        if not found:
            console.emit("no drives were found\n")
        for one in found:
            console.emit_table(*_parts(one))
    if write_table:
        assert drive is not None
        _write(found[0], drive, controller, serial, undo)


def _bound(given: str | None, sla: str | None) -> int:
    """Microseconds; raises BadParameter where the text says none."""
    if given is not None:
        match = _LATENCY.fullmatch(given)
        try:
            return round(float(match[1]) * _MICROSECONDS[match[2]]) if match else int(given)
        except ValueError:
            raise typer.BadParameter(
                f"--wake-latency-max {given}: write it as 500us, 15ms or 0.1s"
            ) from None
    if sla is None:
        return DEFAULT_WAKE_US
    from iojoule.recommender.sla import LATENCY_MAXIMA, parse_sla

    bounds = [getattr(parse_sla(sla), name) for name in LATENCY_MAXIMA]
    return round(min((one for one in bounds if one is not None), default=1e6) / 1e3)


def _write(
    advice: Advice, drive: Path, controller: Path | None, serial: str | None, undo: Path
) -> None:
    from iojoule.api.acting.applying import apply, require_consent
    from iojoule.api.application.idle import proposal_of
    from iojoule.measure.campaign.session import inspect_drive
    from iojoule.measure.errors import DriveError

    facts, nvme = inspect_drive(drive, controller)
    if nvme is None:
        raise DriveError(f"{drive}: has no NVMe controller; name it with --controller")
    proposal = proposal_of(advice, facts, nvme)
    require_consent(proposal, serial)
    if not proposal.steps:
        console.note("nothing was set: the recommended table is in force")
        return
    apply(proposal, proposal.steps, str(nvme.node), undo, console.note)
    console.note(
        f"set; `iojoule undo {undo}` takes it back. A reset or a resume of the drive restores the "
        "table of Linux"
    )


def _parts(one: Advice) -> Iterator[Any]:
    settings, watched = one.settings, one.watched
    yield f"{settings.name}: {settings.model or 'unknown model'}"
    table = console.new_table(["what lets it sleep", "now"])
    for name, value in _settings(one):
        table.add_row(name, value)
    yield table
    yield ""
    gaps = watched.gaps
    yield (
        f"watched for {quantity('seconds', gaps.watch_seconds)}: {watched.reads} reads, "
        f"{watched.writes} other requests, {gaps.rest_share:.1%} of the time in "
        f"{len(gaps.seconds)} gaps without I/O"
    )
    if one.asked is not None and one.asked.power_state_changes is not None:
        yield f"the drive counted {one.asked.power_state_changes} changes of its power state"
    if watched.ends:
        yield (
            f"{watched.ends} gaps of 0.1 s or more ended; at {watched.unattributed} of them no "
            "process had moved its counters (write-back, or a process of another user)"
        )
    for waker in watched.wakers[:5]:
        yield (
            f"  {waker.program} ({waker.pid}, {waker.cgroup or '-'}): at {waker.wakes} ends, "
            f"{quantity('bytes', waker.read_bytes)} read, "
            f"{quantity('bytes', waker.write_bytes)} written, whatever the drive"
        )
    for poller in watched.pollers:
        how = "polls" if poller.certain else "may poll"
        yield f"  {poller.program} ({poller.pid}) {how}: {poller.reason}"
    yield ""
    yield from _advice_parts(one)
    yield ""


def _settings(one: Advice) -> Iterator[tuple[str, str]]:
    settings = one.settings
    if settings.interface == "nvme" or one.asked is not None:
        in_force = "unknown" if one.in_force is None else _chain(one.in_force)
        yield "APST table from PS0", f"{in_force} ({one.in_force_source})"
        rule = settings.rule
        groups = (
            f"up to {rule.primary_latency_us} us after {rule.primary_timeout_ms} ms, up to "
            f"{rule.secondary_latency_us} us after {rule.secondary_timeout_ms} ms"
        )
        yield "APST latency tolerance", _or_none(settings.latency_tolerance_us, f" us; {groups}")
        states = ", ".join(f"{name} {'on' if on else 'off'}" for name, on in _aspm(one)) or "none"
        yield "PCIe ASPM", f"policy {settings.link.policy or 'unknown'}; {states}"
    if settings.link_policy is not None:
        yield "SATA link policy", settings.link_policy
    for device in settings.runtime:
        slept, awake = device.suspended_seconds, device.active_seconds
        share = ""
        if slept is not None and awake is not None and slept + awake > 0:
            share = f", suspended {slept / (slept + awake):.1%} of the time"
        state = f"control {device.control}, {device.status}{share}"
        yield f"runtime PM of {device.device}", state
    if settings.rotates and settings.interface == "scsi":
        yield "standby timer", "unknown: ATA has no command that returns it"


def _aspm(one: Advice) -> list[tuple[str, bool]]:
    return sorted(one.settings.link.states.items())


def _advice_parts(one: Advice) -> Iterator[Any]:
    if one.links:
        table = console.new_table(["SATA link policy", "saves", "longest wait"])
        for place, link in enumerate(one.links):
            wait = quantity("latency_ns", 1e3 * link.wake_us) if link.wake_us else "-"
            name = link.policy.value + (" (recommended)" if place == 0 else "")
            table.add_row(name, _saved(link.saving_watts), wait)
        yield table
        yield f"Evidence: {one.links[0].evidence.value} ({one.links[0].source})."
    if one.rest is None or not one.tables:
        yield f"no APST table: {one.reason}"
        return
    against = "the table in force" if one.in_force is not None else "no transitions"
    table = console.new_table(
        ["APST table", f"saves against {against}", "wake-ups", "exit", "longest wait"]
    )
    for place, row in enumerate(one.tables):
        table.add_row(
            _chain(row.chain) + (" (recommended)" if place == 0 else ""),
            _saved(row.saving_watts),
            f"{digits(row.wakes_per_hour)}/h",
            quantity("latency_ns", 1e3 * row.exit_us) if row.chain else "-",
            quantity("latency_ns", 1e3 * row.wake_us) if row.chain else "-",
        )
    yield table
    yield (
        f"Bound of the wait: {quantity('latency_ns', 1e3 * one.most_wake_us)}. Evidence: "
        f"{one.rest.evidence.value} ({'; '.join(one.rest.sources)}). In brackets: 90 % interval."
    )


def _chain(chain: Chain) -> str:
    return ", ".join(f"PS{state} after {wait} ms" for state, wait in chain) or "off"


def _saved(watts: Interval) -> str:
    low, high = _milliwatts(watts.low), _milliwatts(watts.high)
    return f"{_milliwatts(watts.value)} mW [{low}, {high}]"


def _milliwatts(watts: float) -> str:
    return ("-" if watts < 0 else "") + digits(abs(1e3 * watts))


def _or_none(value: object, unit: str) -> str:
    return "none" if value is None else f"{value}{unit}"


_COLUMNS = (
    "drive",
    "model",
    "serial",
    "in_force",
    "recommended",
    "saving_milliwatts",
    "saving_milliwatts_low",
    "saving_milliwatts_high",
    "exit_us",
    "wake_us",
    "wakes_per_hour",
    "rest_share",
    "reason",
)


def _flat(one: Advice) -> dict[str, Any]:
    best = one.best
    saved = best.saving_watts if best is not None else None
    values = (
        one.settings.name,
        one.settings.model,
        one.settings.serial,
        None if one.in_force is None else _chain(one.in_force),
        None if best is None else _chain(best.chain),
        *((None,) * 3 if saved is None else (1e3 * saved.value, 1e3 * saved.low, 1e3 * saved.high)),
        None if best is None else best.exit_us,
        None if best is None else best.wake_us,
        None if best is None else best.wakes_per_hour,
        one.watched.gaps.rest_share,
        one.reason,
    )
    return dict(zip(_COLUMNS, values, strict=True))
