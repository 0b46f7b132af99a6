"""How data-centre drives behave under a cap, from what was published of them.

Their lower states limit power and nothing else: reads, which stay below the caps, are neither
slower nor later. Each figure names its finding, so that a profile can be built without it; what
is left of the three then says the same with a wider spread.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from iojoule.datasets.profile import DeviceProfile, Parameter, PowerStateEffect
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.prior.facts import DriveFacts

READS = {"004-046": 1.0, "004-050": 1.0, "004-051": 1.0}
"""Throughput, mean and 99th percentile of reads below PS0 over PS0, by finding (004 3.2.1)."""

SD = 0.15
"""Log sd of one of them from drive to drive: an assumption."""

LEAST = 2
"""So many figures must be left for them to say anything."""


def with_published_caps(
    profile: DeviceProfile, drive: DriveFacts, without: Collection[str] = ()
) -> DeviceProfile:
    """The profile with reads below PS0 as published of data-centre drives.

    Args:
        profile: Of a drive that nobody measured.
        drive: Its facts; other classes are left as they are.
        without: Findings that must not help.
    """
    known = {fact: figure for fact, figure in READS.items() if fact not in without}
    if not drive.datacentre or len(known) < LEAST:
        return profile
    value = float(np.exp(np.mean(np.log(list(known.values())))))
    sd = SD * float(np.sqrt(1.0 + 1.0 / len(known)))
    source = "004 3.2.1: reads of a data-centre drive are untouched, " + ", ".join(known)
    effects = [_free(one, profile, value, sd, source) for one in profile.power_state_effects]
    return profile.model_copy(update={"power_state_effects": effects})


def _free(
    effect: PowerStateEffect, profile: DeviceProfile, value: float, sd: float, source: str
) -> PowerStateEffect:
    if effect.operation is not Operation.READ:
        return effect

    def told(name: str, number: float, unit: str) -> Parameter:
        return Parameter(
            name=name, value=number, sd=sd, unit=unit, evidence=Evidence.PUBLISHED, source=source
        )

    fastest = max(
        2.0 ** surface.log2_request_bytes[i] * rate
        for surface in profile.surfaces
        if surface.operation is Operation.READ
        for i, rate in enumerate(surface.capacity_operations_per_second)
    )
    return effect.model_copy(
        update={
            "ceiling_bytes_per_second": told("ceiling", 2.0 * value * fastest, "bytes/s"),
            "latency_factor": told("latency_factor", value, "1"),
            "tail_factor": told("tail_factor", value, "1"),
        }
    )
