"""A synthetic day of cloud volumes with the statistics of the Alibaba block traces of 2020.

From the traces' published totals (19,676 million requests of 1000 volumes in 30 days, mean size
33.7 kB: the table of github.com/cacheMon/cache_dataset): 7.6 requests/s a volume, which is 650
million in a day, and sizes with that mean. From "An In-Depth Analysis of Cloud Block Storage
Workloads in Large-Scale Production" (Li et al., IISWC 2020), recalled and not read again: three
writes to a read, nine volumes in ten that mostly write, three writes in four of at most 16 KiB,
medians of 1 to 3 requests/s a volume, a fifth of the volumes with peaks of more than 100 times
their mean, and most requests of a volume in few of its blocks.

Assumed, because no source states it: rates of volumes are log-normal (sigma 1.6: the upper tenth
has some 60 % of the requests), a volume bursts in 0.5 to 10 % of the seconds for 4 s on average,
gaps of all volumes together are hyper-exponential with a coefficient of variation of 2.5 (Wajahat
et al., Performance Evaluation 142, 2020, fit two phases), the load of the day is a sine of 40 %
with its peak at 14 h plus noise by the minute, one request in five begins where the volume's last
one ended, addresses follow the eighth power of a uniform draw, and sizes are the same for all
volumes. Sub-second patterns of one volume are therefore not those of the traces.

A day at a scale of n goes by in fast motion: its rates, bursts and sizes of requests are the same,
but it has n times fewer seconds and volumes n times smaller, so that a block is written as often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.traces._native import Day, DayConfig
from iojoule.datasets.traces.read import Batch

REQUESTS = 650_000_000
SECONDS = 86_400
BATCH_ROWS = 1 << 18

SIZES_KIB = (4, 8, 16, 32, 64, 128, 256, 512)
READ_ODDS = (0.42, 0.10, 0.20, 0.10, 0.08, 0.05, 0.030, 0.020)
WRITE_ODDS = (0.50, 0.13, 0.13, 0.09, 0.07, 0.04, 0.025, 0.015)
WRITE_SHARE = 0.75
BLOCK_BYTES = 4096
VOLUME_BYTES_MIN = 1024 * max(SIZES_KIB)


@dataclass(frozen=True)
class SyntheticDay:
    """The day.

    Attributes:
        space_bytes: Of the drive, which the volumes fill.
        requests: About how many in a whole day; their number varies by the noise of a day.
        volumes: How many there are.
        seed: The same seed makes the same requests.
        scale: Of the day; only the part `requests` / `scale` is drawn.
    """

    space_bytes: int
    requests: int = REQUESTS
    volumes: int = 1000
    seed: int = 1
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.volumes <= 100_000 or not 1 <= self.requests <= 10**11:
            raise InputError("a day has 1 to 100,000 volumes and 1 to 10^11 requests")
        if self.scale < 1:
            raise InputError(f"a day at a scale of {self.scale:.4g}: must be 1 or more")
        if self.space_bytes * self.scale / self.volumes < 1 << 20:
            raise InputError(
                f"{self.volumes} volumes on {self.space_bytes} bytes have less than 1 MiB each; "
                "take a larger drive or fewer volumes"
            )
        if self.space_bytes < self.volumes * VOLUME_BYTES_MIN:
            raise InputError(
                f"a day at a scale of {self.scale:.4g} leaves {self.volumes} volumes less than the "
                f"largest request of {VOLUME_BYTES_MIN} bytes each; take a smaller scale"
            )

    def batches(self) -> Iterator[Batch]:
        """The requests in order of arrival; an array is the receiver's own."""
        day = Day(self._config())
        while True:
            arrays = Batch(
                np.empty(BATCH_ROWS, dtype=np.int64),
                np.empty(BATCH_ROWS, dtype=np.int64),
                np.empty(BATCH_ROWS, dtype=np.int64),
                np.empty(BATCH_ROWS, dtype=np.bool_),
                np.empty(BATCH_ROWS, dtype=np.uint32),
            )
            count = day.next(*arrays[:3], arrays.is_write.view(np.uint8), arrays.volume)
            if count:
                yield arrays if count == BATCH_ROWS else arrays.pick(slice(0, count))
            if count < BATCH_ROWS:
                return

    def busiest_second(self) -> float:
        """Expected requests in the busiest second of the day."""
        return Day(self._config()).busiest_second()

    def _config(self) -> DayConfig:
        rng = np.random.default_rng(self.seed)
        rate = rng.lognormal(0.0, 1.6, self.volumes)
        rate *= self.requests / SECONDS / rate.sum()
        space = rng.lognormal(0.0, 1.0, self.volumes)
        least = max(256 / self.scale, VOLUME_BYTES_MIN / BLOCK_BYTES)
        blocks = space / space.sum() * (self.space_bytes // BLOCK_BYTES - least * self.volumes)
        mostly_write = rng.random(self.volumes) < 0.92
        writes = np.where(
            mostly_write, rng.beta(8, 1.6, self.volumes), rng.beta(2, 8, self.volumes)
        )
        minute = np.arange(1440)
        load = 1 + 0.4 * np.sin((minute / 60 - 8) / 24 * 2 * np.pi)
        load *= rng.gamma(25, 1 / 25, len(minute))
        config = DayConfig()
        config.seed = self.seed
        config.slots = SECONDS / self.scale
        config.slots_per_minute = 60 / self.scale
        config.minutes = (load / load.mean()).tolist()
        config.rate = rate.tolist()
        config.burst_time = np.exp(rng.uniform(np.log(0.005), np.log(0.1), self.volumes)).tolist()
        config.write_share = _with_mean(writes, rate, WRITE_SHARE).tolist()
        config.blocks = (blocks + least).astype(np.int64).tolist()
        config.sizes = [1024 * size for size in SIZES_KIB]
        config.read_odds, config.write_odds = list(READ_ODDS), list(WRITE_ODDS)
        return config


def _with_mean(
    shares: np.typing.NDArray[np.float64], weights: np.typing.NDArray[np.float64], mean: float
) -> np.typing.NDArray[np.float64]:
    """Shares with this weighted mean: their odds are scaled by one factor."""
    odds = shares / (1 - shares)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        scaled = np.exp(middle) * odds
        if (scaled / (1 + scaled) * weights).sum() < mean * weights.sum():
            low = middle
        else:
            high = middle
    scaled = np.exp(high) * odds
    result: np.typing.NDArray[np.float64] = scaled / (1 + scaled)
    return result
