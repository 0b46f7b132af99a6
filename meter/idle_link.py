"""What another power policy of a SATA link saves in the observed gaps (ALPM).

A link sleeps as soon as nothing is to be sent, so that every gap saves

    (depth of the policy - depth of the present one) (P_idle - P_slumber) g,

with the depths of `model.evaluate.sata_link`. Policies that Linux warns of are not offered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import Evidence, LinkPowerPolicy
from iojoule.meter.idle import Gaps
from iojoule.model.evaluate.bands import Interval
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.sata_link import DEPTH, OFFERED, POLICIES, WAITS

PARTIAL_US = 10
"""Partial ends within 10 us (Serial ATA; `model.evaluate.sata_link.WAITS`)."""


@dataclass(frozen=True)
class LinkOutcome:
    """What a policy does in the observed gaps.

    Attributes:
        policy: In Linux' words.
        saving_watts: Mean saving over the watch against the present policy, 90 % interval.
        wake_us: Longest wait of a command, at the high end of a 90 % interval.
        evidence: What the watts of the sleeping link rest on.
        source: Where from.
    """

    policy: LinkPowerPolicy
    saving_watts: Interval
    wake_us: int
    evidence: Evidence
    source: str


def link_outcomes(
    profile: DeviceProfile, gaps: Gaps, present: LinkPowerPolicy, most_wake_us: int
) -> list[LinkOutcome]:
    """The policies that are offered and the present one, the recommended one first.

    Recommended is what saves most of those that keep the bound of the wake-up, the present one
    where nothing saves more; where none keeps it, the link stays awake.
    Empty where the profile knows no power of the sleeping link.
    """
    power, idle = profile.device_power, profile.idle
    if power is None or idle is None or idle.link is None:
        return []
    awake, slumber, leave = power.idle_watts[0], idle.link.slumber_watts, idle.link.exit_seconds
    depth = max(awake.value - slumber.value, 0.0)
    half = NORMAL_90 * math.hypot(awake.sd, slumber.sd)
    longest_us = math.ceil(1e6 * leave.value * math.exp(NORMAL_90 * leave.sd))
    share = 1.0 if gaps.only_rest else gaps.rest_share

    def wake_us(policy: LinkPowerPolicy) -> int:
        if WAITS[POLICIES.index(policy)]:
            return longest_us
        return PARTIAL_US if DEPTH[POLICIES.index(policy)] else 0

    def outcome(policy: LinkPowerPolicy) -> LinkOutcome:
        deeper = share * (DEPTH[POLICIES.index(policy)] - DEPTH[POLICIES.index(present)])
        ends = [deeper * max(depth + sign * half, 0.0) for sign in (-1, 1)]
        return LinkOutcome(
            policy=policy,
            saving_watts=Interval(deeper * depth, min(ends), max(ends)),
            wake_us=wake_us(policy),
            evidence=slumber.evidence,
            source=slumber.source,
        )

    offered = [LinkPowerPolicy.MAX_PERFORMANCE, *OFFERED]
    rows = [outcome(policy) for policy in dict.fromkeys([present, *offered])]
    within = [row for row in rows if row.wake_us <= most_wake_us]
    # the present policy stands first, and wins where it is equal
    best = max(within, key=lambda row: row.saving_watts.value)
    return [best, *(row for row in rows if row is not best)]
