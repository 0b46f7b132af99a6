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
"""

from __future__ import annotations

from iojoule.datasets.profile import Parameter
from iojoule.datasets.vocabulary import Evidence

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
