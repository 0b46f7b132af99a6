"""The power law of a drive that nobody measured, from its point in the prior.

The prior knows three powers: idle, the highest while reading and while writing. The law that
`model.evaluate.device_power` evaluates follows from them and from the rates at which they are
drawn. Draws from the prior that break physics are brought back: no power above the declared cap,
none below idle.

How data-centre drives behave under a cap, from what was published of them.

Their lower states limit power and nothing else: reads, which stay below the caps, are neither
slower nor later. Each figure names its finding, so that a profile can be built without it; what
is left of the three then says the same with a wider spread.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from iojoule.datasets.profile import DevicePower, DeviceProfile, Parameter, PowerStateEffect
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.device_power import FOLDING_SHARE, PARAMETERS
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.prior.document import number, six_digits
from iojoule.model.prior.facts import DriveFacts
from iojoule.model.prior.posterior import Posterior
from iojoule.model.prior.surfaces import FACTOR, curve_parameters

Direction = Literal[Operation.READ, Operation.WRITE]

DRAWS = 4000
_SEED = 11

BASE_SHARE = (0.1, 0.4)
"""Base watts less idle over the highest read watts less idle, uniform: 0.3 on the 980 PRO (idle
1.75 W in 000 5.1.1; intercept 2.5 W and 4.3 W at full rate in powersensor3-results)."""

PAGE_READ_JOULES = (1.5e-6, 0.7)
"""Sensing a page of flash and its command: centre and log sd. The 980 PRO's 4 KiB reads and
writes bound it by 3.9 uJ, the P4800X's 8 W at 550 k reads a second by 5 uJ."""

PAGE_PROGRAM_JOULES = {"flash": (4e-6, 0.9), "xpoint": (4e-6, 0.6)}
"""The same for writing 4 KiB through a cache: 0.68 W more than the base at 87 k writes a second on
the 980 PRO (powersensor3-results); 13 W less 5 W at 500 k a second on the P4800X is 16 uJ, bytes
included."""

BACKGROUND_WATTS = (2.0, 1.5)
"""What moving data on the drive's own behalf adds: 2.4 W on the 980 PRO (write series)."""

PAGE_BYTES, LARGE_BYTES = 4096, 131072

STATE_SHARE_SD = {True: 0.4, False: 0.5}
"""Log sd of the rate that a lower cap leaves, by data-centre class: an assumption (see
`state_effects`, which misses the one such drive that was measured by 0.5 and 0.8)."""


@dataclass(frozen=True)
class Draws:
    """Draws of the highest powers, W, and of the law's parameters, shape (DRAWS, 6)."""

    idle: Floats
    read: Floats
    write: Floats
    law: Floats


def draws(posterior: Posterior, drive: DriveFacts) -> Draws:
    """Draw powers and laws that physics allows."""
    random = np.random.default_rng(_SEED)
    mean, covariance = posterior.part(["idle_watts", "read_watts", "write_watts", "cap_watts"])
    root = np.linalg.cholesky(covariance + 1e-10 * np.eye(4))
    idle, read, write, cap = np.exp(mean + random.standard_normal((DRAWS, 4)) @ root.T).T
    limit = np.full(DRAWS, drive.caps_watts[0]) if drive.caps_watts else cap
    idle = np.minimum(idle, 0.8 * limit)
    read = np.clip(read, 1.05 * idle, limit)
    write = np.clip(write, 1.05 * idle, limit)
    share = random.uniform(*BASE_SHARE, DRAWS)
    base = idle + share * (np.minimum(read, write) - idle)
    memory = "xpoint" if drive.xpoint else "flash"
    background = np.exp(np.log(BACKGROUND_WATTS[0]) + 0.6 * random.standard_normal(DRAWS))
    # at full speed writes make the flash fold its cache beside them
    background = np.minimum(background, 0.5 * (write - base) / FOLDING_SHARE)
    written = write - FOLDING_SHARE * background
    columns = [base]
    for flow, most, (joules, log_sd) in (
        ("read_sequential", read, PAGE_READ_JOULES),
        ("write_sequential", written, PAGE_PROGRAM_JOULES[memory]),
    ):
        # joules follow from watts at the rates that the surfaces expect, so that the two agree
        rate = np.exp(curve_parameters(posterior, flow, drive.link_bytes_per_second)[0][3])
        operation = joules * np.exp(log_sd * random.standard_normal(DRAWS))
        operation = np.minimum(operation, 0.5 * (most - base) / rate * LARGE_BYTES)
        columns += [(most - base) / rate - operation / LARGE_BYTES, operation]
    return Draws(idle, read, write, np.stack([*columns, background], axis=1))


def prior_power(posterior: Posterior, drive: DriveFacts, source: str) -> DevicePower:
    """The law with its covariance; evidence is the data sheet."""
    drawn = draws(posterior, drive)
    units = ("W", "J/B", "J", "J/B", "J", "W")
    values, covariance = drawn.law.mean(axis=0), np.cov(drawn.law.T)
    highest = np.maximum(drawn.read, drawn.write)
    caps = drive.caps_watts or [float(np.quantile(highest, 0.99))]

    return DevicePower(
        parameters=[
            number(name, value, float(np.sqrt(covariance[i, i])), unit, source)
            for i, (name, value, unit) in enumerate(zip(PARAMETERS, values, units, strict=True))
        ],
        covariance=[six_digits(row) for row in covariance],
        idle_watts=[
            number(f"idle_watts_ps{state}", drawn.idle.mean(), drawn.idle.std(), "W", source)
            for state in range(len(caps))
        ],
        cap_watts=caps,
        peak_watts=number("peak_watts", min(np.quantile(highest, 0.95), caps[0]), 0.0, "W", source),
        measured_read_operations_per_second_max=0.0,
        measured_bytes_per_second_max=0.0,
        relative_sd=0.05,
        condition="nobody measured this drive's power: expected of drives with its facts",
    )


def power_range(posterior: Posterior, drive: DriveFacts) -> tuple[tuple[float, float], ...]:
    """90 % intervals of the least (idle) and the highest power over all workloads, W.

    As wide as the other intervals of such drives (`surfaces.FACTOR`), and never above the cap.
    """
    drawn = draws(posterior, drive)
    most = drive.caps_watts[0] if drive.caps_watts else np.inf
    ends = []
    for values in (drawn.idle, np.maximum(drawn.read, drawn.write)):
        low, middle, high = np.log(np.quantile(values, [0.05, 0.5, 0.95]))
        low = middle + (low - middle) * FACTOR / NORMAL_90
        high = middle + (high - middle) * FACTOR / NORMAL_90
        ends.append((float(np.exp(low)), float(min(np.exp(high), most))))
    return tuple(ends)


def state_effects(posterior: Posterior, drive: DriveFacts, source: str) -> list[PowerStateEffect]:
    """What lower caps leave: the share of the watts above base that they allow.

    On Xie et al.'s enterprise drive, left out, this gives 0.46 and 0.26 of the sequential writes
    where 0.74 and 0.55 were measured (004 section 3.2.1), reads being hardly touched; on the
    980 PRO a half to a third of it is left (000 5.1.2). Class and interval say so.
    """
    drawn = draws(posterior, drive)
    out = []
    directions: tuple[tuple[Direction, Floats], ...] = (
        (Operation.READ, drawn.read),
        (Operation.WRITE, drawn.write),
    )
    for operation, most in directions:
        flow = f"{operation.value}_sequential"
        rate = np.exp(curve_parameters(posterior, flow, drive.link_bytes_per_second)[0][3])
        base = drawn.law[:, 0]
        for state, cap in enumerate(drive.caps_watts[1:], start=1):
            room = np.clip((cap - base) / np.maximum(most - base, 1e-3), 0.08, 1.0)
            share = float(np.exp(np.log(room).mean())) * (1.0 if drive.datacentre else 0.6)
            sd = float(np.hypot(np.log(room).std(), STATE_SHARE_SD[bool(drive.datacentre)]))
            out.append(
                PowerStateEffect(
                    power_state=state,
                    operation=operation,
                    ceiling_bytes_per_second=number(
                        "ceiling", share * float(rate), sd, "bytes/s", source
                    ),
                    latency_factor=number(
                        "latency_factor", 1.3, 0.4, "1", "assumption: some delay below PS0"
                    ),
                    tail_factor=number(
                        "tail_factor", 3.0, 0.9, "1", "assumption: throttling stretches tails"
                    ),
                )
            )
    return out


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
    effects = [_free(effect, profile, value, sd, source) for effect in profile.power_state_effects]
    return profile.model_copy(update={"power_state_effects": effects})


def _free(
    effect: PowerStateEffect, profile: DeviceProfile, value: float, sd: float, source: str
) -> PowerStateEffect:
    if effect.operation is not Operation.READ:
        return effect

    def published(name: str, number: float, unit: str) -> Parameter:
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
            "ceiling_bytes_per_second": published("ceiling", 2.0 * value * fastest, "bytes/s"),
            "latency_factor": published("latency_factor", value, "1"),
            "tail_factor": published("tail_factor", value, "1"),
        }
    )
