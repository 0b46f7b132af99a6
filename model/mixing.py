"""Reads and writes that share a drive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import MixedEffect
from iojoule.model.band import NORMAL_90
from iojoule.model.columns import Floats
from iojoule.model.direction import Direction
from iojoule.model.evidence import PUBLISHED
from iojoule.model.frame import PATTERNS, Frame


def mix(
    effects: Sequence[MixedEffect],
    frame: Frame,
    read: Direction,
    write: Direction,
    ready_write: Direction,
) -> Direction:
    """Take turns: the mean latency is weighted by requests, times a published factor.

    Writes that wait for the drive to be ready for another one (`DeviceState.overwriting`) leave
    their slot to reads meanwhile. So a mix takes its turns without that wait, but no less time than
    its writes need with it.

    Args:
        effects: Of mixing, by pattern.
        frame: The questions, n of them.
        read: As if all were reads.
        write: As if all were writes.
        ready_write: Those without such a wait; `write` itself where there is none.
    """
    fraction = frame.read_fraction
    interleaved = (fraction > 0) & (fraction < 1)
    slower, slower_sd, tail, tail_sd = (
        np.take(by_pattern(effects), frame.pattern, axis=1) * interleaved
    )
    reads, writes, ready = (
        share * np.exp(one.log_value["latency"])
        for share, one in (
            (fraction, read),
            (1.0 - fraction, write),
            (1.0 - fraction, ready_write),
        )
    )
    value = {"latency": np.log(np.maximum((reads + ready) * np.exp(slower), writes))}
    half = {}
    own, heavier = (NORMAL_90 * slower_sd) ** 2, (NORMAL_90 * tail_sd) ** 2
    for name in read.half_width:
        half[name] = np.sqrt(
            fraction * read.half_width[name] ** 2
            + (1 - fraction) * write.half_width[name] ** 2
            + own
            + (heavier if name in ("p99", "p999") else 0.0)
        )
    for name in [name for name in read.log_value if name != "latency"]:
        pure = np.where(
            fraction >= 0.5,
            read.log_value[name] - read.log_value["latency"],
            write.log_value[name] - write.log_value["latency"],
        )
        value[name] = value["latency"] + pure + (0.0 if name == "p50" else tail)
    evidence = np.where(
        fraction == 1.0,
        read.evidence,
        np.where(
            fraction == 0.0,
            write.evidence,
            np.maximum(np.maximum(read.evidence, write.evidence), PUBLISHED),
        ),
    )
    return Direction(value, half, evidence.astype(np.intp))


def by_pattern(effects: Sequence[MixedEffect]) -> Floats:
    """Log factor of mixing on latency and its sd, and the same of tails; shape (4, patterns)."""
    factors = np.zeros((4, len(PATTERNS)))
    for effect in effects:
        factors[:, PATTERNS.index(effect.pattern.value)] = (
            np.log(effect.latency_factor.value),
            effect.latency_factor.sd,
            np.log(effect.tail_factor.value),
            effect.tail_factor.sd,
        )
    return factors
