"""Adds up what fio measured: rates, mean latencies and latency histograms of several jobs.

Rates add. Means are weighted by completed requests. Percentiles of several jobs exist only where
every job brought its histogram (`bins`, json+): histograms add exactly, percentiles do not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from iojoule.datasets.importers.fio_file import Direction, Latency

PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9}
"""The percentiles of the schema, in percent."""


@dataclass(frozen=True)
class Stats:
    """What one direction of one job, or several of them together, achieved.

    Attributes:
        bytes_per_second: Throughput.
        iops: Completed requests per second.
        requests: Completed requests.
        runtime_seconds: The longest runtime of the parts.
        mean_ns: Mean latency from submission to completion; None if it was not measured.
        percentiles_ns: By the names of `PERCENTILES`, as far as fio states them.
        bins: Histogram of latencies: ns -> requests; None where one of the parts has none.
        doubtful: Why percentiles were dropped, if they were.
    """

    bytes_per_second: float
    iops: float
    requests: int
    runtime_seconds: float
    mean_ns: float | None
    percentiles_ns: Mapping[str, float]
    bins: Mapping[float, int] | None
    doubtful: str | None = None


def direction_stats(direction: Direction) -> Stats:
    """Read one direction of one job, whatever version of fio wrote it.

    The mean is that of `lat` (submission plus completion), or of `clat` plus `slat` where `lat`
    was disabled. Percentiles and histogram are those of `lat` where fio was asked for them
    (lat_percentiles), else those of `clat`, which leaves out the submission.
    """
    modern = direction.clat_ns is not None or direction.lat_ns is not None
    scale = 1.0 if modern else 1000.0  # before version 3 in us
    lat = (direction.lat_ns if modern else direction.lat) or Latency()
    clat = (direction.clat_ns if modern else direction.clat) or Latency()
    slat = (direction.slat_ns if modern else direction.slat) or Latency()
    mean = (lat.mean or clat.mean + slat.mean) * scale
    source = lat if lat.bins or lat.percentile else clat
    broken = source is clat and lat.mean > 0 and clat.mean > 1.05 * lat.mean
    doubtful = (
        f"completion latency {clat.mean * scale:.3g} ns exceeds total latency {mean:.3g} ns, so "
        "its percentiles are left out (sqthread_poll does this)"
        if broken
        else None
    )
    bytes_per_second = direction.bw_bytes if direction.bw_bytes else direction.bw * 1024
    return Stats(
        bytes_per_second=bytes_per_second,
        iops=direction.iops,
        requests=direction.total_ios,
        runtime_seconds=direction.runtime / 1000,
        mean_ns=mean or None,
        percentiles_ns={} if broken else _percentiles(source, scale),
        bins=None if broken else _histogram(source, scale),
        doubtful=doubtful,
    )


def together(parts: Sequence[Stats]) -> Stats:
    """What several jobs or directions that ran side by side achieved together."""
    if len(parts) == 1:
        return parts[0]
    requests = sum(part.requests for part in parts)
    known = [part.mean_ns for part in parts if part.mean_ns is not None]
    weighted = sum((part.mean_ns or 0.0) * part.requests for part in parts)
    histograms = [part.bins for part in parts if part.bins is not None]
    bins = merge_bins(histograms) if len(histograms) == len(parts) else None
    return Stats(
        bytes_per_second=sum(part.bytes_per_second for part in parts),
        iops=sum(part.iops for part in parts),
        requests=requests,
        runtime_seconds=max(part.runtime_seconds for part in parts),
        mean_ns=weighted / requests if requests and len(known) == len(parts) else None,
        percentiles_ns=percentiles_of(bins) if bins else {},
        bins=bins,
        doubtful=next((part.doubtful for part in parts if part.doubtful), None),
    )


def merge_bins(histograms: Iterable[Mapping[float, int]]) -> dict[float, int]:
    """Add histograms; exact, because all of fio's bins lie on one grid."""
    total: Counter[float] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(sorted(total.items()))


def percentile(bins: Mapping[float, int], percent: float) -> float:
    """The latency of the first bin up to which `percent` of the requests completed.

    This is fio's own rule (stat.c, calc_clat_percentiles), so one job's histogram gives the
    percentiles that fio printed.
    """
    needed = percent / 100.0 * sum(bins.values())
    seen = 0
    value = math.nan
    for value in sorted(bins):
        seen += bins[value]
        if seen >= needed:
            break
    return value


def percentiles_of(bins: Mapping[float, int]) -> dict[str, float]:
    """The percentiles of the schema from a histogram."""
    return {name: percentile(bins, percent) for name, percent in PERCENTILES.items()}


def _percentiles(latency: Latency, scale: float) -> dict[str, float]:
    bins = _histogram(latency, scale)
    if bins:
        return percentiles_of(bins)
    stated = {float(key): value for key, value in latency.percentile.items()}
    return {
        name: stated[percent] * scale
        for name, percent in PERCENTILES.items()
        if stated.get(percent)
    }


def _histogram(latency: Latency, scale: float) -> dict[float, int] | None:
    counts = dict(latency.bins)
    bits = counts.pop("FIO_IO_U_PLAT_BITS", None)
    for key in ("FIO_IO_U_PLAT_VAL", "FIO_IO_U_PLAT_NR"):
        counts.pop(key, None)
    filled = {int(key): count for key, count in counts.items() if count}
    if not filled:
        return None
    if bits is None:
        return {key * scale: count for key, count in filled.items()}
    return {bin_middle(index, bits) * scale: count for index, count in filled.items()}


def bin_middle(index: int, bits: int) -> float:
    """The latency in the middle of a bin, for versions of fio that number their bins.

    Bins are exact up to 2^(bits+1); above, each power of two holds 2^bits of equal width
    (fio's stat.c, plat_idx_to_val).
    """
    per_octave = 1 << bits
    if index < 2 * per_octave:
        return float(index)
    shift = (index >> bits) - 1
    return float((1 << (shift + bits)) + ((index % per_octave) + 0.5) * (1 << shift))
