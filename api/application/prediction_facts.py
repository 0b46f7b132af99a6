"""The facts of a recipe's profile that carry a prediction; a ladder says it by itself."""

from __future__ import annotations

from collections.abc import Iterator

from iojoule.datasets.profile import DeviceProfile, FactUsed, Parameter, path_key
from iojoule.model.evaluate.frame import COMPLETIONS, ENGINES, PATTERNS, Frame

_DRIVE = ("device_power_watts", "system_power_watts")
_CPU = ("cpu_power_watts", "cpu_joules_per_operation", "system_power_watts")
_HOST = ("cpu_utilisation", "context_switches_per_second", "iops_per_core_max")


def carrying_facts(profile: DeviceProfile, frame: Frame, quantity: str) -> list[FactUsed]:
    """What one quantity of a single question rests on, each with its source.

    Args:
        profile: Fitted by a recipe.
        frame: One question.
        quantity: Name of a predicted quantity.
    """
    found: list[FactUsed] = []
    if quantity in _DRIVE:
        found += _numbers(_drive_parameters(profile, frame))
    if quantity in _CPU:
        found += _numbers(_cpu_parameters(profile))
    if quantity == "system_power_watts" and profile.system_power is not None:
        found += _numbers(iter([profile.system_power.floor_watts, profile.system_power.slope]))
    if quantity in _HOST or quantity in _CPU:
        found += list(_path(profile, frame))
    if not found:
        found = list(_performance(profile, frame))
    return found


def _operations(frame: Frame) -> list[str]:
    share = float(frame.read_fraction[0])
    return [name for name, part in (("read", share), ("write", 1.0 - share)) if part > 0]


def _performance(profile: DeviceProfile, frame: Frame) -> Iterator[FactUsed]:
    pattern, state = PATTERNS[int(frame.pattern[0])], int(frame.power_state[0])
    for operation in _operations(frame):
        surface = profile.surface(operation, pattern)
        if surface is None:
            continue
        said = "measured by" if surface.evidence.value == "measured" else "published in"
        yield FactUsed(
            name=f"{pattern} {operation}s",
            value=float(sum(one.scores for one in surface.widths)),
            unit="rows left out",
            source=f"{said} {surface.source}",
        )
        for effect in profile.power_state_effects:
            if effect.power_state == state and effect.operation == operation:
                numbers = [effect.ceiling_bytes_per_second, effect.latency_factor]
                if effect.ceiling_depth_exponent is not None:
                    numbers.append(effect.ceiling_depth_exponent)
                yield from _numbers(iter(numbers))
    known = profile.write_state
    wait = known.overwriting_seconds if known is not None else None
    if wait is not None and pattern == "random" and "write" in _operations(frame):
        filled = bool(frame.fill_fraction[0] > 0.0)
        yield from _numbers(iter([wait] if filled else []))
    if len(_operations(frame)) > 1:
        for mixed in profile.mixed:
            if mixed.pattern == pattern:
                yield from _numbers(iter([mixed.latency_factor]))


def _drive_parameters(profile: DeviceProfile, frame: Frame) -> Iterator[Parameter]:
    power = profile.device_power
    if power is None:
        return
    operations = _operations(frame)
    for one in power.parameters:
        direction = one.name.partition("_")[0]
        if direction not in ("read", "write") or direction in operations:
            yield one


def _cpu_parameters(profile: DeviceProfile) -> Iterator[Parameter]:
    power = profile.host_power
    if power is None:
        return
    yield from power.parameters


def _path(profile: DeviceProfile, frame: Frame) -> Iterator[FactUsed]:
    asked = path_key(
        ENGINES[int(frame.engine[0])],
        COMPLETIONS[int(frame.completion[0])],
        bool(frame.submission_polling[0]),
        "none",
    )
    for path in profile.host.paths:
        polling = path.submission_polling
        if path_key(path.engine.value, path.completion.value, polling, "none") == asked:
            yield FactUsed(
                name="core_time_ns", value=path.core_time_ns, unit="ns", source=path.source
            )


def _numbers(parameters: Iterator[Parameter]) -> list[FactUsed]:
    return [
        FactUsed(name=one.name, value=one.value, unit=one.unit, source=one.source)
        for one in parameters
    ]
