"""Alignment: the units in which a drive maps and reads its flash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.characterise.experiment import Bench, Estimates, Extent, Job, Plot, ScaleName
from iojoule.measure.characterise.intervals import Z, between, missing

LEAST_COST = 0.06
"""A smaller loss of throughput is not told from none."""


@dataclass(frozen=True)
class ShiftedThroughput:
    """Throughput of requests at an offset from a multiple of their size (0 = aligned).

    `relative_error` is the standard error of the rate.
    """

    offset_bytes: int
    rate: float
    relative_error: float


def find_unit(rows: Sequence[ShiftedThroughput], request_bytes: int, method: str) -> Estimate:
    """The unit U: requests shifted by a multiple of it cost nothing, all others cost the same.

    A request of r bytes, a multiple of U, covers r / U units, shifted by anything else one more. So
    with power-of-two offsets the costs end at U. The least offset shows the cost of straddling;
    another one is costly above half of that, and undecided where half lies within its interval,
    which widens that of the unit. Where even the largest offset costs, U is at least the request.

    Rows of one offset are averaged. Returns the least free offset; the interval begins behind the
    largest that is not.
    """
    offsets = sorted({row.offset_bytes for row in rows})
    if not offsets or offsets[0] != 0 or len(offsets) < 3:
        return missing("too few offsets were measured", "bytes", method)
    aligned = _mean([row for row in rows if row.offset_bytes == 0])
    costs = {
        offset: _cost(_mean([row for row in rows if row.offset_bytes == offset]), aligned)
        for offset in offsets[1:]
    }
    straddling, spread = costs[offsets[1]]
    if straddling < LEAST_COST or straddling - spread < 0:
        return missing(
            f"a shift by {offsets[1]} bytes costs no more than {LEAST_COST:.0%} or chance: the "
            f"unit is no larger than that, or larger than {request_bytes}, or the drive hides it",
            "bytes",
            method,
        )
    half = straddling / 2
    costly = max(
        offset
        for offset, (cost, wide) in costs.items()
        if cost - wide > half or offset == offsets[1]
    )
    free = [
        offset for offset, (cost, wide) in costs.items() if offset > costly and cost + wide < half
    ]
    if not free:
        return missing(
            f"no offset beyond {costly} bytes is free for certain, so the unit is larger; measure "
            "with larger requests, or longer",
            "bytes",
            method,
            low=2 * costly,
        )
    return between(min(free), 2 * costly, min(free), "bytes", method)


def _cost(shifted: tuple[float, float], aligned: tuple[float, float]) -> tuple[float, float]:
    left = shifted[0] / aligned[0]
    return 1 - left, Z * left * (shifted[1] ** 2 + aligned[1] ** 2) ** 0.5


def _mean(rows: Sequence[ShiftedThroughput]) -> tuple[float, float]:
    count = len(rows)
    rate = sum(row.rate for row in rows) / count
    error = sum(row.relative_error**2 for row in rows) ** 0.5 / count
    scatter = max(row.rate for row in rows) - min(row.rate for row in rows)
    # two rows tell little about their scatter, but what they show is not less than half of it
    return rate, max(error, scatter / rate / 2 / count**0.5 if count > 1 else 0.0)


READ_BYTES, WRITE_BYTES = 32768, 16384
_READ_DEPTH, _WRITE_DEPTH = 16, 16
_WRITE_SHARE = 1 / 12
_OFFSETS = {
    ScaleName.QUICK: (0, 512, 2048, 4096, 8192, 16384),
    ScaleName.FULL: (0, 512, 1024, 2048, 4096, 8192, 16384),
}
_MAPPING = "least offset at which writes of 16 KiB lose no throughput against aligned ones"
_READING = "least offset at which reads of 32 KiB lose no throughput against aligned ones"


class Alignment:
    """Native alignment."""

    name = "alignment"
    title = "Native alignment and mapping unit"
    purpose = (
        "which alignment partitions and requests need so that nothing is read or written twice"
    )
    sources = ("002 sections 3.3.4 and 5.5",)
    writes = True
    needs_power = False
    needs_controller = False

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        offsets = _OFFSETS[extent.scale]
        rows = []
        for repeat in range(extent.repeats):
            # the aligned run once more at the end: what drifts shows as its scatter
            for place, offset in enumerate((*offsets, 0)):
                rows.append(bench.run(_read(f"read {place} {repeat}", offset, extent)))
        for repeat in range(extent.repeats):
            for place, offset in enumerate([offset for offset in offsets if offset < WRITE_BYTES]):
                rows.append(bench.run(_write(f"write {place} {repeat}", offset, extent)))
            rows.append(bench.quiet(f"after {repeat}"))
        return rows

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        reads = _shifted(evidence.named("read "))
        writes = _shifted(evidence.named("write "))
        return {
            "mapping_unit_bytes": find_unit(writes, WRITE_BYTES, _MAPPING),
            "read_unit_bytes": find_unit(reads, READ_BYTES, _READING),
        }

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        for prefix, colour in (("read ", "#0072B2"), ("write ", "#D55E00")):
            rows = evidence.named(prefix)
            axes.plot(
                [max(row["offset_bytes"], 256) for row in rows],
                [row["throughput_bytes_per_second"] / 1e6 for row in rows],
                "o",
                color=colour,
                label=prefix.strip(),
            )
        axes.set_xscale("log", base=2)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("bytes behind a multiple of the request (leftmost: aligned)")
        axes.set_ylabel("throughput (MB/s)")
        axes.legend()


def _read(label: str, offset: int, extent: Extent) -> Job:
    return Job(
        label,
        Operation.READ,
        READ_BYTES,
        queue_depth=_READ_DEPTH,
        seconds=1.5 * extent.run_seconds,
        offset_bytes=offset,
    )


def _write(label: str, offset: int, extent: Extent) -> Job:
    return Job(
        label,
        Operation.WRITE,
        WRITE_BYTES,
        queue_depth=_WRITE_DEPTH,
        bytes_total=extent.share_bytes(_WRITE_SHARE),
        offset_bytes=offset,
        effects=True,
    )


def _shifted(rows: list[Row]) -> list[ShiftedThroughput]:
    return [
        ShiftedThroughput(
            int(row["offset_bytes"]), row["throughput_bytes_per_second"], row["relative_error"]
        )
        for row in rows
    ]
