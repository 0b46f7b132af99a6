"""What a drive draws idle and in its sleep states: from its profile, its own word, published facts.

A fitted profile wins, then idle power that the drive declares in Identify Controller, then what the
catalogue states or the declared maximum of a sleep state, which is a cap and no measured power.

What a state is declared to draw it draws only while the PCIe link sleeps too. The 980 PRO, the one
drive that was measured so, declares 5 mW and drew 1.2 W of 1.75 W with ASPM off (000 5.1.1), and
within gaps 13 % of that (000 5.1.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iojoule.datasets.catalogue import Drive, PowerState
from iojoule.datasets.measured_drive import DeclaredState
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import Evidence
from iojoule.measure.drive.transition_table import SleepLatency
from iojoule.meter.idle import Rest, Sleep
from iojoule.model.evaluate.bands import Interval
from iojoule.model.evaluate.idle_gaps import apst_share, settle_seconds
from iojoule.model.evaluate.quantities import NORMAL_90

AWAKE_LINK_SHARE = 0.315
"""Share of the declared saving that a sleep state brings while the link stays awake: of the 980
PRO, (1.75 W - 1.2 W) / (1.75 W - 0.005 W) (000 5.1.1)."""

LEAST_SHARE = 0.04
"""Low end of that share: what gaps of 0.5 s brought of it (000 5.1.3). Of idle power that the drive
declares, a mean over 30 s, it is `AWAKE_LINK_SHARE` unless the link is known to stay awake."""

DEEPEST_FACTS = ("sleep_power", "idle_power_apst")
"""Facts of the catalogue about the deepest sleep state, the more exact first."""


State = DeclaredState | PowerState
"""A power state as the drive or the catalogue declares it; None: not reported."""


def rest_of(
    declared: Sequence[State],
    profile: DeviceProfile | None,
    drive: Drive | None,
    link_sleeps: bool | None,
) -> Rest | None:
    """What a drive draws without requests; None where its idle watts are not known.

    States without declared latencies, whose wake-up nobody could bound, are left out.

    Args:
        declared: Its power states.
        profile: Its profile, fitted or expected of its facts.
        drive: Its entry of the catalogue.
        link_sleeps: Whether the PCIe link may enter a substate of L1; None: not known.
    """
    idle = _idle(declared, profile)
    if idle is None:
        return None
    watts, evidence, source = idle
    sleeps: list[Sleep] = []
    sources, weakest = [source], [evidence]
    deepest = max((state.index for state in declared if not state.operational), default=None)
    for state in declared:
        if state.operational or state.entry_latency_us is None or state.exit_latency_us is None:
            continue
        saved, basis, where = _saved(
            state, watts, profile, drive if state.index == deepest else None, link_sleeps
        )
        latency = SleepLatency(state.index, state.entry_latency_us, state.exit_latency_us)
        sleeps.append(Sleep(latency, saved))
        weakest.append(basis)
        sources.append(where)
    power = profile.device_power if profile is not None else None
    base = power.parameters[0].value if power is not None else watts.value
    return Rest(
        awake_watts=max(base, watts.value),
        idle_watts=watts,
        settle_seconds=settle_seconds(profile.idle if profile is not None else None),
        operational=tuple(state.index for state in declared if state.operational),
        sleeps=tuple(sleeps),
        evidence=max(weakest, key=list(Evidence).index),
        sources=tuple(dict.fromkeys(sources)),
    )


def _idle(
    declared: Sequence[State], profile: DeviceProfile | None
) -> tuple[Interval, Evidence, str] | None:
    power = profile.device_power if profile is not None else None
    own = next(
        (
            state.idle_power_watts
            for state in declared
            if state.operational and state.idle_power_watts
        ),
        None,
    )
    if power is not None and power.idle_watts and not (power.is_expected and own):
        fitted = power.idle_watts[0]
        half = NORMAL_90 * fitted.sd
        interval = Interval(fitted.value, max(fitted.value - half, 0.0), fitted.value + half)
        return interval, fitted.evidence, fitted.source
    if own:
        return Interval(own, own, own), Evidence.DATASHEET, "idle power declared by the drive"
    return None


def _saved(
    state: State,
    idle: Interval,
    profile: DeviceProfile | None,
    drive: Drive | None,
    link_sleeps: bool | None,
) -> tuple[Interval, Evidence, str]:
    """Watts that a sleep state saves of idle, at least 0, what they rest on and where from."""
    power = profile.device_power if profile is not None else None
    if power is not None and profile is not None and 0 < state.index < len(power.idle_watts):
        share, share_sd = apst_share(profile.idle) if profile.idle is not None else (1.0, 0.3)
        deep = power.idle_watts[state.index]
        depth = max(idle.value - deep.value, 0.0)
        sd = math.hypot(
            share_sd * depth, share * math.hypot(deep.sd, (idle.high - idle.value) / NORMAL_90)
        )
        half = NORMAL_90 * sd
        value = share * depth
        high = min(value + half, idle.high)
        return Interval(value, max(value - half, 0.0), max(high, value)), deep.evidence, deep.source
    asleep, evidence, source = _declared_watts(state, drive)
    share = AWAKE_LINK_SHARE if link_sleeps is False else 1.0
    sure = link_sleeps or (link_sleeps is None and state.idle_power_watts is not None)
    least = AWAKE_LINK_SHARE if sure else LEAST_SHARE
    depth, low, high = (max(watts - asleep, 0.0) for watts in (idle.value, idle.low, idle.high))
    return Interval(share * depth, least * low, high), evidence, source


def _declared_watts(state: State, drive: Drive | None) -> tuple[float, Evidence, str]:
    if state.idle_power_watts is not None:
        return state.idle_power_watts, Evidence.DATASHEET, "idle power declared by the drive"
    facts = {fact.metric: fact for fact in drive.facts} if drive is not None else {}
    for metric in DEEPEST_FACTS:
        if metric in facts and not isinstance(facts[metric].value, str):
            return float(facts[metric].value), Evidence.PUBLISHED, facts[metric].source
    return state.max_power_watts, Evidence.DATASHEET, "maximum declared for the state"
