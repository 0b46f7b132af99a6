"""Writes through the page cache: what the drive sees of them, and what the copy costs.

A buffered write is a copy into memory. The kernel's flusher writes dirty pages later: it merges
neighbouring ones into requests of up to the block layer's limit and keeps the drive's queue full.
So a run long enough to wait for the drive (`balance_dirty_pages`) goes at the drive's rate for
large, deep requests where the pages lie in a row. Scattered ones keep their size; sorting and
depth remain. Direct writes wait for each request instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MERGED_BYTES = 512 * 1024
"""Largest request that the block layer makes of neighbouring pages where the drive allows more, as
the studies' hosts had it: the default of `max_sectors_kb` (BLK_DEF_MAX_SECTORS, Linux
include/linux/blkdev.h) was 512 KiB until "bump BLK_DEF_MAX_SECTORS to 2560" (August 2015) made it
1280, and is 4096 since commit 9b8b84879d4a (June 2025)."""

FLUSH_DEPTH = 32
"""Requests in flight of the flusher: the queue of a SATA drive (NCQ), and what an NVMe drive of
that time needs to be busy."""

COPY_SECONDS_PER_BYTE = 0.25e-9
"""A copy from user memory at 10 GB/s, and about 0.6 us to find, dirty and clean each page of
4 KiB (assumption)."""


def as_flushed(point: Mapping[str, Any], *, disk: bool = False) -> dict[str, Any]:
    """The configuration that reaches the drive, without the column `buffered`.

    The flusher writes the dirty pages of a file in the order of their addresses (write_cache_pages
    in mm/page-writeback.c). Where random writes cover a file that fits into memory no gaps are
    left: to a disk they are sequential. An SSD does not care.

    Reads are left as they are: what a cache already holds is no question of the drive.
    """
    seen = {name: value for name, value in point.items() if name != "buffered"}
    if not point.get("buffered") or seen.get("operation") != "write":
        return seen
    size = int(seen.get("request_bytes", 4096))
    if disk:
        seen["pattern"] = "sequential"
    if seen.get("pattern") == "sequential" or size > MERGED_BYTES:
        seen["request_bytes"] = MERGED_BYTES
    # the flusher's own way down: asynchronous, one thread
    return {**seen, "engine": "libaio", "queue_depth": FLUSH_DEPTH}


def copy_cores(point: Mapping[str, Any], bytes_per_second: float) -> float:
    """Cores' worth of time that copying takes."""
    copies = bool(point.get("buffered")) and point.get("operation") == "write"
    return COPY_SECONDS_PER_BYTE * bytes_per_second if copies else 0.0


def awake_share(requests_awake: Floats, copies: Floats) -> Floats:
    """Share of the time that a package is awake, when requests alone keep it so for a share of it.

    Requests come one by one, and each keeps the package awake beyond its own core time
    (`model.host_power`). A writer who is ahead of the drive copies many pages at a stretch and then
    sleeps for 10 to 200 ms (`balance_dirty_pages` in mm/page-writeback.c of Linux), so copies keep
    it awake for as long as they take and no longer.
    """
    return np.asarray(1.0 - (1.0 - requests_awake) * (1.0 - np.minimum(copies, 1.0)))
