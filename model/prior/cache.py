"""The cache for writes of a drive that nobody measured: a share of its flash programmed as SLC.

Data sheets state 42 GB of 1 TB (860 EVO), 114 GB of 1 TB (980 PRO) and 76 GB of 512 GB (660p): 4,
11 and 15 % of the capacity. Their geometric mean is the centre and their spread, and as much
again for caches that grow with the free space, the doubt. None of them was measured by a paper
whose findings are judged.
"""

from __future__ import annotations

from iojoule.datasets.profile import Parameter
from iojoule.datasets.vocabulary import Evidence

FOLDED_SHARE = (0.22, 0.9)
"""Of the rate into the cache, what is left once it is full, and log sd. Data sheets: 300 of 520
MB/s (860 EVO), 400 of 2300 (970 EVO Plus 250 GB), 2000 of 5000 (980 PRO), 100 of 1800 (660p)."""

CAPACITY_SHARE = (0.09, 0.65)
"""Centre, and sd of its logarithm."""

COMMON_CAPACITY = (5e11, 0.8)
"""Where nobody says how large the drive is (`assumptions.toml`)."""


def expected_cache(capacity_bytes: int | None) -> Parameter:
    """Host bytes that the cache takes; `sd` is that of the logarithm times the value."""
    share, log_sd = CAPACITY_SHARE
    capacity = float(capacity_bytes or COMMON_CAPACITY[0])
    if capacity_bytes is None:
        log_sd = float((log_sd**2 + COMMON_CAPACITY[1] ** 2) ** 0.5)
    value = share * capacity
    return Parameter(
        name="cached_bytes", value=value, sd=log_sd * value, unit="bytes",
        evidence=Evidence.DATASHEET,
        source="data sheets: 4 to 15 % of the capacity (860 EVO, 980 PRO, 660p)",
    )  # fmt: skip
