"""The shipped 980 PRO with a write state and idle behaviour of round numbers."""

from __future__ import annotations

from iojoule.datasets.profile import (
    BackgroundWork,
    DeviceProfile,
    IdleBehaviour,
    Parameter,
    StateTransition,
    WorkAfterWrites,
    WriteCache,
    WriteState,
    load_shipped_profile,
)
from iojoule.datasets.vocabulary import Evidence

CACHE = 1e11
RATE = 2e8
SECONDS_PER_BYTE = 2e-10
SETTLE = 0.04
WAKE = 9e-5


def number(value: float, sd: float = 0.0) -> Parameter:
    return Parameter(
        name="n", value=value, sd=sd, unit="1", evidence=Evidence.PUBLISHED, source="made up"
    )


def write_state(sd: float = 0.0) -> WriteState:
    return WriteState(
        cached_bytes=number(0.9 * CACHE, sd * CACHE),
        transition_bytes=number(CACHE, sd * CACHE),
        collecting_bytes_per_second=number(RATE, sd),
        recovery_bytes_per_second_per_byte=number(0.0),
        background_joules_per_byte=number(4e-10),
        background_seconds_after_write={},
        cache=WriteCache(
            capacity_bytes=number(CACHE, sd), static_bytes=number(0.1 * CACHE), bits_per_cell=3
        ),
        background=[
            BackgroundWork(
                power_state=state,
                seconds_per_byte=number(factor * SECONDS_PER_BYTE, sd),
                watts_above_idle=number(watts, sd),
            )
            for state, factor, watts in ((0, 1.0, 2.0), (1, 10.0, 1.5), (2, 80.0, 0.8))
        ],
        random_factor=number(0.8, sd),
    )


def idle_behaviour(share: float = 1.0) -> IdleBehaviour:
    return IdleBehaviour(
        settle_seconds=number(SETTLE, 0.1),
        wake_seconds=number(WAKE, 0.1),
        apst_idle_seconds=number(0.1),
        apst_state=4,
        apst_share=number(share),
        transitions=[
            StateTransition(
                power_state=4, operational=False, entry_seconds=5e-4, exit_seconds=9.5e-3
            )
        ],
        aspm_policy="disabled",
    )


FULL_WORK_JOULES = 3.0 * 4e-10 * CACHE
DELAY = 5.0


def that_runs_full(profile: DeviceProfile) -> DeviceProfile:
    """The drive with work that waits, and thrice as much at once where the cache ran full."""
    state = profile.write_state
    assert state is not None
    known = {
        "full_work_joules": number(FULL_WORK_JOULES),
        "background_delay_seconds": number(DELAY),
        "random_factor": number(1.0),
    }
    return profile.model_copy(update={"write_state": state.model_copy(update=known)})


SEEN_JOULES_PER_BYTE, SEEN_WATTS, SEEN_MOST_JOULES = 5e-10, 1.5, 30.0


def whose_cache_is_not_known(profile: DeviceProfile) -> DeviceProfile:
    """The drive as runs alone know it: what they left behind."""
    seen = WorkAfterWrites(
        joules_per_byte=number(SEEN_JOULES_PER_BYTE, 0.1),
        watts_above_idle=number(SEEN_WATTS, 0.1),
        most_joules=number(SEEN_MOST_JOULES, 3.0),
    )
    return profile.model_copy(update={"write_state": None, "work_after_writes": seen})


def drive(sd: float = 0.0) -> DeviceProfile:
    """The drive; `sd` is how unsure everything about its writes is."""
    known = load_shipped_profile("samsung-980-pro-1tb")
    return known.model_copy(
        update={"write_state": write_state(sd), "idle": idle_behaviour(), "capacity_bytes": 10**12}
    )
