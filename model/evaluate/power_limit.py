"""What a drive does under a power limit in watts (NVMe Power Limit, feature 23h), at PS0.

A limit is a cap and nothing else: it holds back what would draw more, and leaves alone what draws
less. The power above that of an awake drive without work, B, is proportional to the work
(`model.evaluate.device_power`). So requests that would draw P take

    max(1, (P - B) / (m W - B))

times as long at a limit of W watts, where m is the share of its limit that a drive draws which is
held back by it: controllers keep below. Folding falls faster than the rate
(`device_power.folding`): writes with it are held back less. Runs under a limit tell m
(`datasets.profile.PowerLimit`), or that the drive keeps limits by its power states: a state with a
higher cap is not available under a limit (NVMe Base 2.3, Power Limit). Then a limit does what the
first state within it does.

In one answer every limit stands as one more power state of the profile (`with_limits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import (
    BackgroundWork,
    DevicePower,
    DeviceProfile,
    PowerStateEffect,
    StatePower,
)
from iojoule.model.evaluate.bands import Codes, Floats
from iojoule.model.evaluate.columns import read_column
from iojoule.model.evaluate.device_power import PARAMETERS

SHARE_DRAWN = (1.0, 0.1)
"""Share of its limit that a drive draws which is held back by it, and its sd, where no run showed
it; an assumption."""

STEPS = 4
"""Steps of the false position to what just keeps a limit. The logarithm of what is drawn above B is
convex in that of the rate, so that every step keeps the limit."""

_BASE, _BACKGROUND = PARAMETERS.index("base_watts"), PARAMETERS.index("background_watts")


def share_drawn(profile: DeviceProfile) -> tuple[float, float]:
    """Share of a limit that is drawn by a drive which is held back by it, and its sd."""
    seen = profile.power_limit
    return SHARE_DRAWN if seen is None else (seen.share_drawn.value, seen.share_drawn.sd)


def kept_by_states(profile: DeviceProfile) -> bool:
    """Whether runs showed that the drive keeps limits by its power states."""
    return profile.power_limit is not None and profile.power_limit.kept_by_states


def measured_watts(profile: DeviceProfile) -> list[float]:
    """Limits that runs were under."""
    return profile.power_limit.measured_watts if profile.power_limit is not None else []


def with_limits(profile: DeviceProfile, limits: Iterable[float]) -> DeviceProfile:
    """The profile with one more power state for each limit (`DeviceProfile.limit_states`).

    Args:
        profile: The drive; it is returned as it is where it has these limits already.
        limits: In W, above 0.

    Raises:
        InputError: The drive is no NVMe drive, the profile knows no watts, or a limit is below what
            the drive draws awake or below every cap that it is known to keep (drives refuse such a
            limit).
    """
    wanted = sorted(set(limits))
    if set(wanted) <= set(profile.limit_states.values()):
        return profile
    for watts in wanted:
        _check(profile, watts)
    power = profile.device_power
    assert power is not None
    effects = profile.power_state_effects
    highest = max((effect.power_state for effect in effects), default=0)
    first = max(len(power.cap_watts), len(power.idle_watts), 1 + highest)
    states = {first + place: watts for place, watts in enumerate(wanted)}
    draft = profile.model_copy(update={"limit_states": states})
    acts_as = dict(zip(states, law_states(draft, np.array([*states])).tolist(), strict=True))
    writes = profile.write_state
    if writes is not None:
        works = [*writes.background, *_as_states(writes.background, acts_as)]
        writes = writes.model_copy(update={"background": works})
    return draft.model_copy(
        update={
            "write_state": writes,
            "device_power": _power_of(profile, power, first, states, acts_as),
            "power_state_effects": [*effects, *_as_states(effects, acts_as)],
        }
    )


def _check(profile: DeviceProfile, watts: float) -> None:
    """Raises InputError, as `with_limits` does, for a limit that cannot be asked about."""
    power, name = profile.device_power, profile.model_name
    if profile.interface in ("sata", "sas"):
        raise _refused(
            f"{name} is a {profile.interface.upper()} drive; only NVMe drives take a power limit; "
            "leave it out"
        )
    if power is None:
        raise _refused(
            f"{name}: this profile knows no watts of the drive; measure it with a power meter"
        )
    least, base_watts = _least_cap(profile), power.parameters[_BASE].value
    if watts < least:
        raise _refused(
            f"{watts:g} W: the lowest cap that {name} is known to keep is {least:g} W; "
            "name that or more"
        )
    share, _ = share_drawn(profile)
    if share * watts <= base_watts:
        raise _refused(
            f"{watts:g} W: {name} draws {base_watts:.3g} W awake and without work; "
            f"name a limit above {base_watts / share:.3g} W"
        )


def _power_of(
    profile: DeviceProfile,
    power: DevicePower,
    first: int,
    states: Mapping[int, float],
    acts_as: Mapping[int, int],
) -> DevicePower:
    """The law of power with caps, idle power and base of the states that stand for limits."""
    share, _ = share_drawn(profile)
    caps, idle = (
        [*known, *[known[-1]] * (first - len(known))]
        for known in (list(power.cap_watts), list(power.idle_watts))
    )
    by_states = kept_by_states(profile)
    exactly = {"sd": 0.0}  # no run has to show a state that changes neither base nor background
    as_first = StatePower(
        power_state=1,
        base_watts=power.parameters[_BASE].model_copy(update=exactly),
        background_watts=power.parameters[_BACKGROUND].model_copy(update=exactly),
    )
    of_first = [
        as_first.model_copy(update={"power_state": state})
        for state, other in acts_as.items()
        if other == 0
    ]
    return power.model_copy(
        update={
            "cap_watts": caps
            + [
                caps[acts_as[state]] if by_states else min(share * watts, caps[0])
                for state, watts in states.items()
            ],
            "idle_watts": idle + [idle[other] for other in acts_as.values()],
            "states": [*power.states, *of_first, *_as_states(power.states, acts_as)],
        }
    )


_OfState = TypeVar("_OfState", PowerStateEffect, BackgroundWork, StatePower)


def _as_states(known: Sequence[_OfState], acts_as: Mapping[int, int]) -> list[_OfState]:
    """What is known of power states, for the states that act as these."""
    return [
        part.model_copy(update={"power_state": state})
        for state, other in acts_as.items()
        for part in known
        if part.power_state == other
    ]


def state_within(cap_watts: Sequence[float], watts: float) -> int:
    """The first power state whose cap is within a limit; the last where none is."""
    within = (state for state, cap in enumerate(cap_watts) if cap <= watts)
    return next(within, len(cap_watts) - 1)


def _least_cap(profile: DeviceProfile) -> float:
    """The lowest of the caps of power states and of measured limits, W; 0 where PS0 is alone."""
    assert profile.device_power is not None
    caps = profile.device_power.cap_watts
    states = {effect.power_state for effect in profile.power_state_effects}
    known = [caps[state] for state in states if state < len(caps)]
    return min([*known, *measured_watts(profile)], default=0.0)


def for_questions(profile: DeviceProfile, columns: Mapping[str, Any], rows: int) -> DeviceProfile:
    """The profile with the limits that columns of n questions state.

    Raises:
        InputError: As `with_limits`; the message starts with the row.
    """
    stated, missing = read_column(columns.get("power_limit_watts"), rows)
    rows_of = {float(stated[row]): row for row in np.flatnonzero(~missing)[::-1] if stated[row] > 0}
    for watts, row in sorted(rows_of.items(), key=itemgetter(1)):
        try:
            _check(profile, watts)
        except InputError as error:
            raise InputError(f"row {row + 1}: {error.message}", field=error.field) from None
    return with_limits(profile, rows_of)


def law_states(profile: DeviceProfile, power_state: Codes) -> Codes:
    """The states whose runs say how the drive behaves in these; shape (n,).

    That of a limit is PS0, or the first within the limit where the drive keeps it by its states.
    """
    if not profile.limit_states:
        return power_state
    assert profile.device_power is not None
    caps = profile.device_power.cap_watts
    first = min(profile.limit_states)
    known = {effect.power_state for effect in profile.power_state_effects}
    operational = [0, *sorted(state for state in known if state < min(first, len(caps)))]
    by_states = kept_by_states(profile)
    standing = np.arange(1 + max(*profile.limit_states, *operational))
    for state, watts in profile.limit_states.items():
        within = operational[state_within([caps[each] for each in operational], watts)]
        standing[state] = within if by_states else 0
    return np.asarray(standing[power_state])


def as_first_state(profile: DeviceProfile) -> list[int]:
    """The states that stand for limits and do nothing else to the drive than PS0 does."""
    others = {effect.power_state for effect in profile.power_state_effects}
    return [state for state in profile.limit_states if state not in others]


def state_of_limit(profile: DeviceProfile, watts: float) -> int:
    """The power state that stands for a limit; raises InputError where none does."""
    for state, limit in profile.limit_states.items():
        if limit == watts:
            return state
    raise _refused(f"{watts:g} W: limits are not asked about here; leave power_limit_watts out")


def log_slowed(
    profile: DeviceProfile, limit_watts: Floats, watts: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Log of how much longer work takes under limits, and its sd; 0 where nothing is held back.

    Args:
        profile: It knows its power.
        limit_watts: Shape (n,); 0 or NaN for none.
        watts: What the drive would draw without a limit if work took exp(x) times as long.
    """
    power = profile.device_power
    assert power is not None
    base = power.parameters[_BASE].value
    share, share_sd = share_drawn(profile)
    limited = limit_watts > 0
    room = np.where(limited, share * limit_watts - base, np.inf)

    def beyond(drawn: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(drawn - base, 0.0) / room)

    free = watts(np.zeros(len(limit_watts)))
    beyond_free = np.maximum(beyond(free), 0.0)
    held, slowed = beyond_free > 0.0, beyond_free
    for _ in range(STEPS if held.any() else 0):
        share_of = beyond_free / np.where(held, beyond_free - beyond(watts(slowed)), 1.0)
        slowed = np.where(held, np.minimum(slowed, slowed * share_of), 0.0)
    of_law = power.relative_sd * free / np.where(held, free - base, 1.0)
    of_share = np.where(held, limit_watts * share_sd / room, 0.0)
    return slowed, np.where(held, np.hypot(of_law, of_share), 0.0)


def _refused(message: str) -> InputError:
    return InputError(f"power_limit_watts: {message}", field="power_limit_watts")
