"""What a drive does under a power limit in watts (NVMe Power Limit, feature 23h), at PS0.

A limit is a cap like that of a power state, so its effect lies between those of states and limits
that are known: with W the cap and B the watts of an awake drive without work, the power above B is
proportional to the work, and log ceiling is taken linearly in log (W - B) from one known cap to the
next, in proportion to W - B beyond the ends. Factors on latency go to 1 at the cap of PS0. That a
limit acts as a state with the same cap is an assumption, as is `BETWEEN_LOG_SD`.

In one answer every limit stands as one more power state of the profile (`with_limits`), so that
all else that is known of states holds for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, Parameter, PowerStateEffect
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.device_power import PARAMETERS

BETWEEN_LOG_SD = 0.15
"""How far a ceiling between known caps may be off, log sd."""

NO_CEILING = 1e15
"""Bytes a second that no drive reaches."""

LEAST_ROOM = 1e-3
"""Of a cap that is at the watts of an awake drive, so that its logarithm exists."""

MEASURE = "measure it: `power_limit_watts` or `power_state` in a plan, then `iojoule fit`"

_DIRECTIONS: tuple[Literal[Operation.READ, Operation.WRITE], ...] = (
    Operation.READ,
    Operation.WRITE,
)


def with_limits(profile: DeviceProfile, limits: Iterable[float]) -> DeviceProfile:
    """The profile with one more power state for each limit (`DeviceProfile.limit_states`).

    A limit at the cap of PS0 or above changes nothing; it gets a state too, without effect.

    Args:
        profile: The drive.
        limits: In W, above 0.

    Raises:
        InputError: The profile knows no watts or no cap below PS0, or a limit is below what the
            drive draws awake.
    """
    wanted = sorted({*limits, *profile.limit_states.values()})
    power = profile.device_power
    if power is None:
        raise _refused(f"{profile.model_name}: this profile knows no watts of the drive; {MEASURE}")
    base = power.parameters[PARAMETERS.index("base_watts")].value
    for watts in wanted:
        if watts <= base:
            raise _refused(
                f"{watts:g} W: {profile.model_name} draws {base:.3g} W awake and without work; "
                "name a limit above that"
            )
    own = [
        effect
        for effect in profile.power_state_effects
        if effect.power_state not in profile.limit_states
    ]
    first = max(
        len(power.cap_watts) - len(profile.limit_states),
        len(power.idle_watts) - len(profile.limit_states),
        1 + max((effect.power_state for effect in own), default=0),
    )
    full = power.cap_watts[0]
    effects = [
        _effect(first + place, operation, watts, anchors, full, base)
        for operation in _DIRECTIONS
        for anchors in [_anchors(profile, own, operation)]
        for place, watts in enumerate(wanted)
    ]
    caps = [*power.cap_watts[:first], *[power.cap_watts[-1]] * (first - len(power.cap_watts))]
    idle = [*power.idle_watts[:first], *[power.idle_watts[-1]] * (first - len(power.idle_watts))]
    limited = power.model_copy(
        update={
            "cap_watts": [*caps, *wanted],
            "idle_watts": [*idle, *[power.idle_watts[0]] * len(wanted)],
        }
    )
    return profile.model_copy(
        update={
            "device_power": limited,
            "power_state_effects": [*own, *effects],
            "limit_states": {first + place: watts for place, watts in enumerate(wanted)},
        }
    )


def state_of_limit(profile: DeviceProfile, watts: float) -> int:
    """The power state that stands for a limit; raises InputError where none does."""
    for state, limit in profile.limit_states.items():
        if limit == watts:
            return state
    raise _refused(f"{watts:g} W: limits are not asked about here; leave power_limit_watts out")


def _refused(message: str) -> InputError:
    return InputError(f"power_limit_watts: {message}", field="power_limit_watts")


def _anchors(
    profile: DeviceProfile, own: Sequence[PowerStateEffect], operation: Operation
) -> list[tuple[float, PowerStateEffect]]:
    """Known caps and their effects, the lowest first; a limit wins over a state of its watts."""
    assert profile.device_power is not None
    caps = profile.device_power.cap_watts
    known = {
        caps[effect.power_state]: effect
        for effect in own
        if effect.operation is operation and 0 < effect.power_state < len(caps)
    }
    known |= {
        one.limit_watts: one.effect
        for one in profile.power_limit_effects
        if one.effect.operation is operation
    }
    if not known:
        raise _refused(
            f"{profile.model_name}: this profile knows no cap below that of PS0; {MEASURE}"
        )
    return sorted(known.items(), key=lambda anchor: anchor[0])


def _effect(
    state: int,
    operation: Literal[Operation.READ, Operation.WRITE],
    watts: float,
    anchors: Sequence[tuple[float, PowerStateEffect]],
    full_watts: float,
    base: float,
) -> PowerStateEffect:
    caps = np.array([cap for cap, _ in anchors])
    effects = [effect for _, effect in anchors]
    place = int(np.abs(np.log(caps / watts)).argmin())
    nearest, known = effects[place], bool(caps[place] == watts)
    if watts >= full_watts:
        return _without_effect(nearest, state)
    room = np.log(watts - base)
    rooms = np.log(np.maximum(caps - base, LEAST_ROOM * caps))

    def between(values: Floats, slope: float) -> float:
        """Positive values at known caps, taken to this one in logs."""
        beyond = min(room - rooms[0], 0.0) + max(room - rooms[-1], 0.0)
        return float(np.exp(np.interp(room, rooms, np.log(values)) + slope * beyond))

    def factor(name: str) -> Parameter:
        """At least 1, as a lower cap never makes a drive faster."""
        values = [max(getattr(effect, name).value, 1.0) for effect in effects]
        below = caps < full_watts
        at = np.append(caps[below], full_watts)
        value = np.exp(np.interp(watts, at, np.append(np.log(values)[below], 0.0)))
        return _said(getattr(nearest, name), float(value), known)

    # what runs scatter may not make a higher cap slower
    bytes_per_second = np.maximum.accumulate(
        [effect.ceiling_bytes_per_second.value for effect in effects]
    )
    each = [effect.ceiling_seconds_per_operation for effect in effects]
    seconds = None
    if nearest.ceiling_seconds_per_operation is not None and None not in each:
        values = np.minimum.accumulate([one.value for one in each if one is not None])
        seconds = _said(nearest.ceiling_seconds_per_operation, between(values, -1.0), known)
    limited = between(bytes_per_second, 1.0)
    return nearest.model_copy(
        update={
            "power_state": state,
            "operation": operation,
            "ceiling_bytes_per_second": _said(nearest.ceiling_bytes_per_second, limited, known),
            "ceiling_seconds_per_operation": seconds,
            "latency_factor": factor("latency_factor"),
            "tail_factor": factor("tail_factor"),
        }
    )


def _without_effect(effect: PowerStateEffect, state: int) -> PowerStateEffect:
    """Of a cap that PS0 has anyway."""
    nothing = {"sd": 0.0, "evidence": Evidence.MEASURED, "source": "the cap of PS0 is no higher"}
    ceiling = effect.ceiling_bytes_per_second.model_copy(update={"value": NO_CEILING, **nothing})
    one = effect.latency_factor.model_copy(update={"value": 1.0, **nothing})
    return PowerStateEffect(
        power_state=state,
        operation=effect.operation,
        ceiling_bytes_per_second=ceiling,
        latency_factor=one,
        tail_factor=one,
    )


def _said(nearest: Parameter, value: float, known: bool) -> Parameter:
    """As the nearest known cap has it; between caps it is less sure, and no measurement."""
    if known:
        return nearest.model_copy(update={"value": value})
    return nearest.model_copy(
        update={
            "value": value,
            "sd": float(np.hypot(nearest.sd, BETWEEN_LOG_SD)),
            "evidence": Evidence.EXTRAPOLATED,
            "source": f"between known caps: {nearest.source}",
        }
    )
