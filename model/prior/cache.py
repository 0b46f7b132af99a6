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
up to 1 TB, from how many dies share the work (`PAST_CACHE`). Cells of two bits need no such cache,
memory without flash has none, and the rated random writes of data-centre drives are those of the
steady state: for these nothing falls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from iojoule.datasets.profile import DevicePower, Parameter, WriteState
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.prior.facts import DriveFacts

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
        name="cached_bytes", value=value, sd=log_sd * value, unit="bytes",
        evidence=Evidence.DATASHEET,
        source="data sheets and fresh drives written full in reviews: 1 to 35 % of the capacity",
    )  # fmt: skip


FOLDING_FROM = 0.9
"""Share of the cache from which the drive folds beside the host's writes (980 PRO series: 0.91)."""

RANDOM_RATE = (0.5, 0.7)
"""Rate of random over that of sequential writes while the drive collects, and its log sd: an
assumption where only sequential writes are known."""

JOULES_SD = 1.0
"""Sd of what folding a byte takes, over its value: what writing it took, an assumption."""


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
        1.14e9, 0.7, True,
        "reviews and data sheets of TLC drives past their cache, a terabyte: 970 EVO 1.2 GB/s "
        "(techgage.com), 970 EVO Plus 1.7 (digit.in, Samsung), A2000 0.48, NV2 0.6, SN580 0.45, "
        "NM800 Pro 2.2 (techpowerup.com)",
    ),
    "QLC": PastCache(
        1.7e8, 0.8, False,
        "QLC drives past their cache: 660p 0.1 GB/s (evantechbook.com), P3 0.1 and P310 0.4 "
        "(pgrid.app), 870 QVO 0.2 (pugetsystems.com)",
    ),
    "unknown": PastCache(
        7e8, 1.1, True, "assumption: flash of three or four bits a cell, three drives in four TLC"
    ),
}  # fmt: skip
"""By bits of a cell. The log sds cover the drives named and the dies that they are built of."""

LINES = {
    "QLC": ("660p", "670p", " p3 ", "qvo", "p5316"),
    "MLC": ("850 pro", "860 pro", "950 pro", "970 pro", "sm961", "p3500", "p3700", "5410s", "9100"),
}
"""Product lines by the cells that articles and data sheets say they have, where the catalogue has
no fact of it: 660p (evantechbook.com), 670p (Tom's Hardware), P3 (pgrid.app), 870 QVO
(pugetsystems.com), P5316, P3500, E 5410s (Intel), 970 PRO (ssdwiki.com), SM961 (legitreviews.com),
9100 (anandtech.com); Samsung's older PRO lines as it sold them ("2-bit MLC"), P3700 as P3500."""

_SIZE = re.compile(r"\b(\d+(?:\.\d+)?)\s?(GB|TB)\b", re.IGNORECASE)


def cell_of(drive: DriveFacts) -> str:
    """Bits of a cell: TLC, QLC, MLC, SLC or unknown."""
    stated = (drive.cell or "").upper()
    for word in ("QLC", "TLC", "MLC", "SLC"):
        if word in stated:
            return word
    name = f" {drive.model.casefold()} "
    return next(
        (word for word, lines in LINES.items() if any(one in name for one in lines)), "unknown"
    )


def capacity_of(drive: DriveFacts) -> int | None:
    """Capacity as the facts or else the model's name say."""
    if drive.capacity_bytes is not None:
        return drive.capacity_bytes
    found = _SIZE.search(drive.model)
    if found is None:
        return None
    return round(float(found[1]) * (1e12 if found[2].upper() == "TB" else 1e9))


def expected_writes(drive: DriveFacts, power: DevicePower | None) -> WriteState | None:
    """What writes do to the state of a drive that nobody measured; None where nothing falls."""
    cell = cell_of(drive)
    if drive.xpoint or drive.datacentre or cell not in PAST_CACHE:
        return None
    capacity, past = capacity_of(drive), PAST_CACHE[cell]
    cache = expected_cache(capacity, 0 if drive.sata else drive.rating.pcie_generation)
    terabytes = (capacity or COMMON_CAPACITY[0]) / 1e12
    sequential = past.bytes_per_second * (min(terabytes, 1.0) if past.by_capacity else 1.0)

    def number(name: str, value: float, sd: float, unit: str, source: str) -> Parameter:
        return Parameter(
            name=name, value=value, sd=sd, unit=unit, evidence=Evidence.DATASHEET, source=source
        )

    joules = power.parameters[3].value if power is not None else 0.0
    return WriteState(
        cached_bytes=number(
            "cached_bytes", FOLDING_FROM * cache.value, FOLDING_FROM * cache.sd, "bytes",
            cache.source,
        ),
        transition_bytes=number(
            "transition_bytes", cache.value, cache.sd, "bytes", cache.source
        ),
        collecting_bytes_per_second=number(
            "collecting_bytes_per_second", RANDOM_RATE[0] * sequential,
            (past.log_sd**2 + RANDOM_RATE[1] ** 2) ** 0.5, "bytes/s, sd relative",
            f"assumption: half of sequential writes; {past.source}",
        ),
        recovery_bytes_per_second_per_byte=number(
            "recovery_bytes_per_second_per_byte", 0.0, 0.0, "1/s", "not known"
        ),
        background_joules_per_byte=number(
            "background_joules_per_byte", joules, JOULES_SD * joules, "J/B",
            "assumption: folding a byte takes what writing it did",
        ),
        background_seconds_after_write={},
        sequential_collecting_bytes_per_second=number(
            "sequential_collecting_bytes_per_second", sequential, past.log_sd,
            "bytes/s, sd relative", past.source,
        ),
    )  # fmt: skip
