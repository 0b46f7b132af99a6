"""The card's sections on the drive's watts: the law with its points, idle, caps, written bytes."""

from __future__ import annotations

from iojoule.api.documents.content import Block, Section, Table, Text, percent
from iojoule.api.model_card.pictures import power_picture
from iojoule.api.words.quantities import digits, quantity
from iojoule.datasets.profile import DeviceProfile, Parameter, WriteState

UNKNOWN = (
    "Not known: nobody measured or published the power of this drive, so no answer in watts is "
    "given. Attach a power sensor, repeat the sweep, and fit again."
)

_SCALED = {"J/B": (1e9, "nJ/B"), "J": (1e6, "µJ"), "W": (1.0, "W")}
"""Unit -> factor and unit in which a law's parameter is easy to read."""


def power_section(profile: DeviceProfile) -> Section:
    """The linear law, with its points."""
    heading = "The drive's power while it serves"
    law = profile.device_power
    if law is None:
        return Section(heading, (Text(UNKNOWN),))
    rows = [_parameter(one) for one in law.parameters]
    points = profile.assessment.power if profile.assessment else None
    blocks: list[Block] = [
        Text(
            "P = base + energy per byte x bytes/s + energy per command x commands/s, by direction, "
            "+ background while the drive collects; never above the peak of "
            f"{quantity('watts', law.peak_watts.value)} ({law.peak_watts.source}) or the state's "
            f"cap. Known up to {quantity('iops', law.measured_read_operations_per_second_max)} of "
            f"reads and {quantity('bytes_per_second', law.measured_bytes_per_second_max)}; above "
            "that it is extrapolated. The law misses its points by "
            f"{percent(law.relative_sd)} (sd). Condition: {law.condition}."
        ),
        power_picture(profile.device, law, points),
        Table.of(("parameter", "value", "sd", "evidence", "source"), rows, (1, 2)),
    ]
    return Section(heading, tuple(blocks))


def _parameter(one: Parameter) -> tuple[str, ...]:
    factor, unit = _SCALED.get(one.unit, (1.0, one.unit))
    return (
        one.name,
        f"{digits(one.value * factor)} {unit}",
        f"{digits(one.sd * factor)} {unit}",
        one.evidence.value,
        one.source,
    )


def idle_section(profile: DeviceProfile) -> Section:
    """Idle power and declared cap by power state."""
    heading = "Idle power and caps"
    law = profile.device_power
    if law is None or not law.idle_watts:
        return Section(heading, (Text(UNKNOWN),))
    rows = []
    for state in range(max(len(law.idle_watts), len(law.cap_watts))):
        idle = law.idle_watts[state] if state < len(law.idle_watts) else None
        cap = law.cap_watts[state] if state < len(law.cap_watts) else None
        rows.append(
            (
                f"PS{state}",
                quantity("watts", idle.value) if idle else "not known",
                quantity("watts", idle.sd) if idle else "-",
                quantity("watts", cap) if cap is not None else "not known",
                idle.evidence.value if idle else "-",
                idle.source if idle else "-",
            )
        )
    headings = ("state", "idle", "sd", "declared cap", "evidence of idle", "source of idle")
    note = Text("A declared cap is not a measured power.")
    return Section(heading, (Table.of(headings, rows, (1, 2, 3)), note))


def writes_section(profile: DeviceProfile) -> Section:
    """How what was written changes the drive's state."""
    heading = "What written bytes do"
    state = profile.write_state
    if state is None:
        return Section(
            heading,
            (
                Text(
                    "Not known: when the cache is full and how the drive collects. Answers for "
                    "writes hold for the state in which the drive was measured."
                ),
            ),
        )
    named = (
        state.cached_bytes,
        state.transition_bytes,
        state.collecting_bytes_per_second,
        state.recovery_bytes_per_second_per_byte,
        state.background_joules_per_byte,
        *filter(None, (state.overwriting_seconds,)),
        *_of_long_writes(state),
    )
    rows = [
        (one.name, f"{one.value:.4g}", f"{one.sd:.2g}", one.unit, one.evidence.value, one.source)
        for one in named
    ]
    rows += [
        (
            f"background work after writes, PS{index}",
            f"{one.value:.4g}",
            f"{one.sd:.2g}",
            one.unit,
            one.evidence.value,
            one.source,
        )
        for index, one in sorted(state.background_seconds_after_write.items())
    ]
    headings = ("quantity", "value", "sd", "unit", "evidence", "source")
    return Section(heading, (Table.of(headings, rows, (1, 2)),))


def _of_long_writes(state: WriteState) -> list[Parameter]:
    """What is known of random writes past a full cache."""
    known = state.long_writes
    if known is None:
        return []
    every = (getattr(known, name) for name in type(known).model_fields)
    return [one for one in every if isinstance(one, Parameter)]
