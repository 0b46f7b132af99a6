"""`iojoule devices list|show`: which SSD models are known, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import ServerOption, backend_of
from iojoule.api.reports.quantities import digits

if TYPE_CHECKING:
    from iojoule.api.application.devices import DeviceDetail, ProfileSummary
    from iojoule.datasets.catalogue import Fact

app = typer.Typer(
    add_completion=False,
    help="SSD models: what is published and what is fitted.",
    no_args_is_help=True,
)


@app.command("list")
def list_(server: ServerOption = None, output: FormatOption = Format.TABLE) -> None:
    """List every SSD model and whether a profile predicts its performance and power."""
    with backend_of(server) as computes:
        listed = computes.devices()
    console.emit_records(
        [device.model_dump() for device in listed],
        output,
        {
            "id": "device",
            "model": "model",
            "interface": "interface",
            "drive_class": "class",
            "performance": "performance",
            "power": "power",
        },
    )


@app.command()
def show(
    device: Annotated[str, typer.Argument(metavar="ID", help="Id, model or alias of the drive.")],
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the facts of one SSD model with their sources, and what its profile answers."""
    with backend_of(server) as computes:
        detail = computes.device(device)
    if output is Format.JSON:
        console.emit_json(detail.model_dump(mode="json"))
    elif output is Format.CSV:
        _emit_facts(detail)
    else:
        console.emit_table(*_parts(detail))


def _emit_facts(detail: DeviceDetail) -> None:
    rows: list[tuple[Any, ...]] = [
        (fact.metric, fact.value, fact.unit, fact.source, fact.note) for fact in detail.facts
    ]
    rows += [
        (
            f"declared_max_power_ps{state.index}",
            state.max_power_watts,
            "W",
            state.source,
            detail.declared_power_note,
        )
        for state in detail.power_states
    ]
    console.emit_csv(("metric", "value", "unit", "source", "note"), rows)


def _parts(detail: DeviceDetail) -> Iterator[Any]:
    yield f"{detail.model}  ({detail.id})"
    yield f"{detail.vendor}, {detail.interface}, {detail.drive_class}"
    if detail.note:
        yield detail.note
    if detail.facts:
        yield ""
        yield _facts(detail.facts)
    if detail.power_states:
        yield ""
        yield _power_states(detail)
    yield ""
    if detail.profile is None:
        yield "No profile"
    elif not detail.measured:
        yield "Nobody measured it: answered from its facts"
    if detail.what_to_measure is not None:
        yield f"  {detail.what_to_measure}"
        yield ""
    if detail.profile is not None:
        yield from _profile(detail.profile)


def _facts(facts: tuple[Fact, ...]) -> Any:
    table = console.new_table(("fact", "value", "source", "note"), title="Published facts")
    for fact in facts:
        value = fact.value if isinstance(fact.value, str) else f"{fact.value:,}"
        unit = "" if fact.unit in ("text", "count", "fraction") else f" {fact.unit}"
        table.add_row(fact.metric, f"{value}{unit}", fact.source, fact.note or "")
    return table


def _power_states(detail: DeviceDetail) -> Any:
    table = console.new_table(
        ("state", "declared cap", "serves I/O", "enter", "leave", "source"),
        title=f"Power states ({detail.declared_power_note})",
    )
    for state in sorted(detail.power_states, key=lambda state: state.index):
        table.add_row(
            f"PS{state.index}",
            f"{state.max_power_watts:g} W",
            "yes" if state.operational else "no",
            _microseconds(state.entry_latency_us),
            _microseconds(state.exit_latency_us),
            state.source,
        )
    return table


def _microseconds(value: int | None) -> str:
    if value is None:
        return "unknown"
    return f"{value} µs" if value < 1000 else f"{digits(value / 1000)} ms"


def _profile(profile: ProfileSummary) -> Iterator[Any]:
    yield f"Profile: version {profile.profile_version}, {profile.generator}, host {profile.host_id}"
    states = ", ".join(f"PS{state}" for state in profile.power_states)
    powers = {
        "drive": profile.device_power,
        "CPU": profile.cpu_power,
        "whole system": profile.system_power,
    }
    known = ", ".join(name for name, there in powers.items() if there) or "none"
    yield f"  power states: {states}; power known: {known}"
    yield ""
    fitted = console.new_table(("operation", "pattern", "evidence", "source"), title="Performance")
    for surface in profile.fitted:
        fitted.add_row(surface.operation, surface.pattern, surface.evidence, surface.source)
    yield fitted
    if profile.gaps:
        yield ""
        yield "Gaps"
        yield from (f"  {gap}" for gap in profile.gaps)
    yield ""
    yield "Valid for"
    yield from (f"  {line}" for line in _valid_for(profile))
    yield ""
    defaults = console.new_table(("field", "default", "because"), title="Where left out")
    for default in profile.defaults:
        defaults.add_row(default.field, str(default.value), default.source)
    yield defaults
    yield ""
    sources = console.new_table(("source", "citation", "licence", "rows used"), title="Fitted from")
    for source in profile.sources:
        sources.add_row(source.name, source.citation, source.licence, str(source.rows_used))
    yield sources


def _valid_for(profile: ProfileSummary) -> Iterator[str]:
    valid = profile.valid_for
    yield f"firmware: {', '.join(valid.firmware) or 'unknown'}"
    yield f"PCIe generation: {', '.join(map(str, valid.pcie_generation)) or 'unknown'}"
    yield f"link power management (ASPM): {valid.aspm_policy or 'unknown'}"
    if valid.temperature_celsius is not None:
        low, high = valid.temperature_celsius
        yield f"temperature: {low:g} to {high:g} °C"
    yield from valid.notes
