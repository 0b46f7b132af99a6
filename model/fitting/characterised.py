"""What `iojoule measure characterise` found of writes and gaps, as parts of a recipe."""

from __future__ import annotations

import math

from iojoule.datasets.characteristics import Characteristics, Estimate
from iojoule.datasets.vocabulary import Evidence, Pattern
from iojoule.model.fitting.recipe import (
    AfterWrites,
    CacheSize,
    CollectingRate,
    Figure,
    IdleRecipe,
    WakeSeen,
    WriteStateRecipe,
)

SIGMAS_95 = 1.96
"""Standard deviations on each side of the characteristics' 95 % intervals."""

LEAST_LOG_SD = 0.05
"""A session differs from another by more than a fit within one may say."""

SOURCE = "iojoule measure characterise"


def characterised_writes(found: Characteristics) -> WriteStateRecipe | None:
    """Cache, rate beyond it and work afterwards; None where none of them was found."""
    size = _positive(found.estimate("slc-cache", "cache_bytes"))
    slow = _positive(found.estimate("slc-cache", "write_slow_bytes_per_second"))
    seconds = _positive(found.estimate("background", "background_seconds_per_byte"))
    joules = found.estimate("background", "background_joules_per_byte")
    if size is None and seconds is None and joules is None:
        return None
    return WriteStateRecipe(
        cache=[
            CacheSize(
                bytes=size[0],
                log_sd=size[1],
                evidence=Evidence.MEASURED,
                source=f"{SOURCE}: slc-cache",
            )
        ]
        if size is not None
        else [],
        collecting=[
            CollectingRate(
                pattern=Pattern.SEQUENTIAL,
                bytes_per_second=slow[0],
                log_sd=slow[1],
                source=f"{SOURCE}: slc-cache",
            )
        ]
        if slow is not None
        else [],
        after_writes=[
            AfterWrites(
                bytes_written=1e9,
                seconds=1e9 * seconds[0],
                pattern=Pattern.RANDOM,
                log_sd=seconds[1],
                evidence=Evidence.MEASURED,
                source=f"{SOURCE}: background",
            )
        ]
        if seconds is not None
        else [],
        background_joules_per_byte=_figure(joules, "J/B", "background"),
    )


def characterised_gaps(found: Characteristics) -> IdleRecipe | None:
    """Wake-up from the operational idle state; None where it was not found."""
    wake = _positive(found.estimate("idle", "wake_seconds_ps0"))
    if wake is None:
        return None
    source = f"{SOURCE}: idle"
    return IdleRecipe(wakes=[WakeSeen(seconds=wake[0], log_sd=wake[1], source=source)])


def _positive(one: Estimate | None) -> tuple[float, float] | None:
    """Value and log sd of an estimate; None where it is missing or zero."""
    if one is None or one.value is None or one.low is None or one.high is None or one.value <= 0:
        return None
    low = max(one.low, 1e-3 * one.value)
    return one.value, max(math.log(one.high / low) / (2 * SIGMAS_95), LEAST_LOG_SD)


def _figure(one: Estimate | None, unit: str, question: str) -> Figure | None:
    if one is None or one.value is None or one.low is None or one.high is None:
        return None
    return Figure(
        value=one.value,
        sd=max((one.high - one.low) / (2 * SIGMAS_95), LEAST_LOG_SD * one.value),
        unit=unit,
        source=f"{SOURCE}: {question}",
        evidence=Evidence.MEASURED,
    )
