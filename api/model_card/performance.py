"""The card's sections on throughput and latency: saturation curves, power states and mixes."""

from __future__ import annotations

from iojoule.api.documents.content import Block, Section, Table, Text, percent
from iojoule.api.model_card.pictures import saturation_picture
from iojoule.api.words.quantities import digits, quantity, size
from iojoule.datasets.profile import CEILING_COMMANDS, DeviceProfile, Parameter, Surface

OCTAVE_TOLERANCE = 1e-6


def curves_section(profile: DeviceProfile) -> Section:
    """Saturation curves, with the measured points where the profile keeps them."""
    blocks: list[Block] = [
        Text(
            "R(N) = (R0^k + (N / Xmax)^k)^(1/k): mean latency over requests in flight, from the "
            "unloaded latency R0 to the capacity Xmax, with a bend as sharp as k. Figures are of "
            "the drive alone at PS0; the host adds its own, below. A split request counts as "
            "several commands."
        )
    ]
    for surface in profile.surfaces:
        blocks.append(saturation_picture(profile, surface))
        blocks.append(_knots(surface))
        for operation, pattern in _stand_ins(profile, surface):
            blocks.append(Text(f"It also stands in for {pattern} {operation}s, which are unknown."))
    return Section("Saturation curves", tuple(blocks))


def _stand_ins(profile: DeviceProfile, surface: Surface) -> list[tuple[str, str]]:
    """Kinds of work without a surface that this one answers for."""
    found = []
    for operation in ("read", "write"):
        for pattern, other in (("random", "sequential"), ("sequential", "random")):
            reverse = "write" if operation == "read" else "read"
            order = ((operation, pattern), (operation, other), (reverse, pattern), (reverse, other))
            if profile.surface(*order[0]) is not None:
                continue
            stands = next(one for key in order if (one := profile.surface(*key)) is not None)
            if stands is surface:
                found.append((operation, pattern))
    return found


def _knots(surface: Surface) -> Table:
    rows = []
    for place, octave in enumerate(surface.log2_request_bytes):
        capacity = surface.capacity_operations_per_second[place]
        rows.append(
            (
                f"{surface.pattern} {surface.operation}",
                _size(octave),
                quantity("latency_ns", surface.unloaded_latency_ns[place]),
                quantity("iops", capacity),
                quantity("bytes_per_second", capacity * 2**octave),
                digits(surface.sharpness[place]),
            )
        )
    headings = ("workload", "command", "R0", "Xmax", "Xmax in bytes", "k")
    return Table.of(headings, rows, (1, 2, 3, 4, 5))


def _size(octave: float) -> str:
    if abs(octave - round(octave)) < OCTAVE_TOLERANCE:
        return size(2 ** round(octave))
    return f"{digits(2**octave / 1024)} KiB"


def states_section(profile: DeviceProfile) -> Section:
    """What power states below PS0 and mixes do to throughput and latency."""
    blocks: list[Block] = []
    if profile.power_state_effects:
        rows = [
            (
                f"PS{effect.power_state}",
                f"{effect.operation}s",
                quantity("bytes_per_second", effect.ceiling_bytes_per_second.value),
                percent(effect.ceiling_bytes_per_second.sd, 0),
                *_factor(effect.latency_factor),
                *_factor(effect.tail_factor),
                effect.ceiling_bytes_per_second.evidence.value,
                effect.ceiling_bytes_per_second.source,
            )
            for effect in profile.power_state_effects
        ]
        headings = ("state", "of", "ceiling", "sd", "latency x", "sd", "tail x", "sd",
                    "evidence", "source")  # fmt: skip
        blocks.append(Table.of(headings, rows, range(2, 8)))
        blocks.extend(
            Text(
                f"The ceiling of {effect.operation}s at PS{effect.power_state} falls with the "
                f"commands in flight, over {CEILING_COMMANDS}, to the power "
                f"-{digits(deep.value)} +- {digits(deep.sd)} "
                f"({deep.evidence.value}: {deep.source})."
            )
            for effect in profile.power_state_effects
            if (deep := effect.ceiling_depth_exponent) is not None
        )
    else:
        blocks.append(Text("What lower power states do to throughput and latency is not known."))
    if profile.mixed:
        mixes = [
            (one.pattern.value, *_factor(one.latency_factor), *_factor(one.tail_factor),
             one.latency_factor.evidence.value, one.latency_factor.source)
            for one in profile.mixed
        ]  # fmt: skip
        blocks.append(Text("Reads and writes at once, against taking turns:"))
        of_mixes = ("mixes", "latency x", "sd", "tail x", "sd", "evidence", "source")
        blocks.append(Table.of(of_mixes, mixes, range(1, 5)))
    else:
        blocks.append(Text("What mixing reads and writes does is not known."))
    return Section("Power states and mixes", tuple(blocks))


def _factor(parameter: Parameter) -> tuple[str, str]:
    return digits(parameter.value), percent(parameter.sd, 0)
