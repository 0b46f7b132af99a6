"""The cache for writes of a drive that nobody measured: a share of its flash programmed as SLC.

Sixteen client drives tell. TechPowerUp's reviews write a fresh drive full and note when the rate
drops (page 6 of each, "write intensive usage"). Up to PCIe 3.0: WD SN570 (12 of 1000 GB), Crucial
P1 (140), Samsung 980 (160), Lexar NM700 (332); beside those as their makers say, Intel 660p (76 of
512, evantechbook.com at its launch) and Samsung 970 EVO Plus (78 of 2000, ssdrive.net). PCIe 4.0:
Kingston NV2 1 TB (88), Samsung 980 PRO (113), Lexar NM710 (156), Team Group MP44S (231), ADATA Atom
50 (280), WD SN580 (341), and of 2 TB MSI M480 Play (200), Lexar NM790 (280) and NM800 Pro (592),
Crucial T500 (700).

Drives without DRAM cache as much as those with it (13 and 16 % in the middle). Newer ones cache
twice as much as older ones, because their cache takes whatever cells are free and is no fixed part
any more. None of these figures is from a paper whose findings are judged.

Past the cache writes go at the pace of the flash itself, which follows from the bits of a cell and,
up to 1 TB, from how many dies share the work (`PAST_CACHE`). Cells of two bits need no such cache
and memory without flash has none. Drives of the data centre have none either, but collect garbage
once they have been written full: what their data sheets rate is what is left then.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from iojoule.datasets.profile import DevicePower, Parameter, WriteState
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.prior.document import number
from iojoule.model.prior.facts import DriveFacts, cell_named
from iojoule.model.prior.posterior import Posterior

FOLDED_SHARE = (0.215, 0.9)
"""Of the rate into the cache, what is left once it is full: geometric mean over the same drives
(0.6 of 2.8 GB/s on the NV2, 0.45 of 4 on the SN580, 2.2 of 3.5 on the NM800 Pro), and log sd."""

CAPACITY_SHARES = {False: (0.09, 1.2), True: (0.19, 0.5)}
"""Geometric mean of the shares and sd of their logarithms, by whether the link is PCIe 4.0 or
later: six older drives, ten newer ones."""

COMMON_SHARE = (0.14, 0.9)
"""Of all sixteen, where nobody says what the link is."""

COMMON_CAPACITY = (5e11, 0.8)
"""Where nobody says how large the drive is (`assumptions.toml`)."""


def expected_cache(capacity_bytes: int | None, generation: int | None = None) -> Parameter:
    """Host bytes that the cache takes; `sd` is that of the logarithm times the value.

    Args:
        capacity_bytes: Of the drive, where it is known.
        generation: Of its PCIe link; 0 for another interface, None where nobody says.
    """
    share, log_sd = COMMON_SHARE if generation is None else CAPACITY_SHARES[generation >= 4]
    capacity = float(capacity_bytes or COMMON_CAPACITY[0])
    if capacity_bytes is None:
        log_sd = float((log_sd**2 + COMMON_CAPACITY[1] ** 2) ** 0.5)
    value = share * capacity
    return Parameter(
        name="cached_bytes",
        value=value,
        sd=log_sd * value,
        unit="bytes",
        evidence=Evidence.DATASHEET,
        source="data sheets and fresh drives written full in reviews: 1 to 35 % of the capacity",
    )


FOLDING_FROM = 0.9
"""Share of the cache from which the drive folds beside the host's writes (980 PRO series: 0.91)."""

RANDOM_RATE = (0.5, 0.7)
"""Rate of random over that of sequential writes while the drive collects, and its log sd: an
assumption where only sequential writes are known."""

JOULES_SD = 1.0
"""Sd of what folding a byte takes, over its value: what writing it took, an assumption."""


RATED_CACHE_SD = 0.35
"""Log sd of a cache whose size is rated: reviews of the 980 PRO found 1.1 and 1.5 times its 114 GB,
of its 250 GB sibling 1.0 and 1.2 times."""

RATED_PAST_SD = 0.25
"""Log sd of a rate past the cache that is rated: an assumption, as of other figures 'up to'."""

FREE_BLOCKS_SD = 0.5
"""Log sd of the free blocks of a drive in use over its capacity: an assumption, half to one."""

PAGE_BYTES = 4096


@dataclass(frozen=True)
class PastCache:
    """Sequential writes past the cache, bytes/s, its log sd and source.

    `by_capacity`: the rate is that of a drive of 1 TB; smaller drives have fewer dies at work.
    """

    bytes_per_second: float
    log_sd: float
    by_capacity: bool
    source: str


PAST_CACHE = {
    "TLC": PastCache(
        1.14e9,
        0.7,
        True,
        "reviews and data sheets of TLC drives past their cache, a terabyte: 970 EVO 1.2 GB/s "
        "(techgage.com), 970 EVO Plus 1.7 (digit.in, Samsung), A2000 0.48, NV2 0.6, SN580 0.45, "
        "NM800 Pro 2.2 (techpowerup.com)",
    ),
    "QLC": PastCache(
        1.7e8,
        0.8,
        False,
        "QLC drives past their cache: 660p 0.1 GB/s (evantechbook.com), P3 0.1 and P310 0.4 "
        "(pgrid.app), 870 QVO 0.2 (pugetsystems.com)",
    ),
    "unknown": PastCache(
        7e8, 1.1, True, "assumption: flash of three or four bits a cell, three drives in four TLC"
    ),
}
"""By bits of a cell. The log sds cover the drives named and the dies that they are built of."""

_SIZE = re.compile(r"\b(\d+(?:\.\d+)?)\s?(GB|TB)\b", re.IGNORECASE)


def cell_of(drive: DriveFacts) -> str:
    """Bits of a cell: TLC, QLC, MLC, SLC or unknown."""
    return cell_named(drive.cell, drive.model)


def capacity_of(drive: DriveFacts) -> int | None:
    """Capacity as the facts or else the model's name say."""
    if drive.capacity_bytes is not None:
        return drive.capacity_bytes
    match = _SIZE.search(drive.model)
    if match is None:
        return None
    return round(float(match[1]) * (1e12 if match[2].upper() == "TB" else 1e9))


def expected_writes(
    posterior: Posterior, drive: DriveFacts, power: DevicePower | None
) -> WriteState | None:
    """What writes do to the state of a drive that nobody measured; None where nothing falls.

    Consumer drives of three or four bits a cell fill a cache. Drives of the data centre write at
    full speed until no block is free and collect garbage beside random writes from then on; their
    sequential writes free whole blocks as they go and do not fall.
    """
    if drive.xpoint:
        return None
    if drive.datacentre:
        return _collecting(posterior, drive)
    cell = cell_of(drive)
    if cell not in PAST_CACHE:
        return None
    capacity, past = capacity_of(drive), PAST_CACHE[cell]
    cache = expected_cache(capacity, 0 if drive.sata else drive.rating.pcie_generation)
    if drive.cache is not None:
        value = float(drive.cache.value)
        cache = number("cached_bytes", value, RATED_CACHE_SD * value, "bytes", drive.cache.source)
    terabytes = (capacity or COMMON_CAPACITY[0]) / 1e12
    sequential = past.bytes_per_second * (min(terabytes, 1.0) if past.by_capacity else 1.0)
    sequential_sd, source = past.log_sd, past.source
    if drive.past_cache is not None:
        sequential, sequential_sd = float(drive.past_cache.value), RATED_PAST_SD
        source = drive.past_cache.source
    random = RANDOM_RATE[0] * sequential
    random_sd = math.hypot(sequential_sd, RANDOM_RATE[1])
    random_source = f"assumption: half of sequential writes; {source}"
    rated = next(
        (
            observation.fact
            for observation in drive.observations
            if observation.kind == "rated_steady_write"
        ),
        None,
    )
    if rated is not None:
        random, random_sd = _steady_random(posterior)
        random_source = rated.source
    joules = power.parameters[3].value if power is not None else 0.0
    return _write_state(
        cache,
        (random, random_sd, random_source),
        (sequential, sequential_sd, source),
        (joules, "assumption: folding a byte takes what writing it did"),
    )


def _collecting(posterior: Posterior, drive: DriveFacts) -> WriteState:
    """Of a drive of the data centre: full speed until all blocks were written once."""
    capacity = posterior.value("capacity_bytes")
    capacity_sd = math.hypot(posterior.sd("capacity_bytes"), FREE_BLOCKS_SD)
    free = number(
        "transition_bytes",
        capacity,
        capacity_sd * capacity,
        "bytes",
        "a purged drive has as many free blocks as its capacity; one in use fewer",
    )
    random, random_sd = _steady_random(posterior)
    rated = next(
        (
            observation.fact
            for observation in drive.observations
            if observation.kind == "rated_steady_write"
        ),
        None,
    )
    source = rated.source if rated is not None else "expected of drives with its facts"
    sequential = posterior.value("write_sequential_bytes_per_second")
    return _write_state(
        free,
        (random, random_sd, source),
        (sequential, posterior.sd("write_sequential_bytes_per_second"), source),
        (0.0, "garbage is collected beside the writes: nothing is left after them"),
    )


def _steady_random(posterior: Posterior) -> tuple[float, float]:
    """Random writes of a drive that has been written full, bytes/s, and their log sd."""
    mean, covariance = posterior.part(["write_random_operations_per_second", "write_steady_share"])
    most = posterior.value("write_sequential_bytes_per_second")
    rate = min(PAGE_BYTES * math.exp(mean.sum()), most)
    return rate, math.sqrt(float(covariance.sum()))


def _write_state(
    cache: Parameter,
    random: tuple[float, float, str],
    sequential: tuple[float, float, str],
    joules: tuple[float, str],
) -> WriteState:
    """As the model takes it; rates as value, log sd and source."""
    return WriteState(
        cached_bytes=number(
            "cached_bytes",
            FOLDING_FROM * cache.value,
            FOLDING_FROM * cache.sd,
            "bytes",
            cache.source,
        ),
        transition_bytes=number("transition_bytes", cache.value, cache.sd, "bytes", cache.source),
        collecting_bytes_per_second=number(
            "collecting_bytes_per_second", *random[:2], "bytes/s, sd relative", random[2]
        ),
        recovery_bytes_per_second_per_byte=number(
            "recovery_bytes_per_second_per_byte", 0.0, 0.0, "1/s", "not known"
        ),
        background_joules_per_byte=number(
            "background_joules_per_byte", joules[0], JOULES_SD * joules[0], "J/B", joules[1]
        ),
        background_seconds_after_write={},
        sequential_collecting_bytes_per_second=number(
            "sequential_collecting_bytes_per_second",
            *sequential[:2],
            "bytes/s, sd relative",
            sequential[2],
        ),
    )
