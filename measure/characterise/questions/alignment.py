"""In which units a drive maps and reads its flash: requests that straddle them cost more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.characterise.estimators.boundary import Shifted, find_unit
from iojoule.measure.characterise.question import Bench, Estimates, Job
from iojoule.measure.characterise.scope import ScaleName, Scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    def measure(self, bench: Bench, scope: Scope) -> list[Row]:
        """Make the observations."""
        offsets = _OFFSETS[scope.scale]
        rows = []
        for repeat in range(scope.repeats):
            # the aligned run once more at the end: what drifts shows as its scatter
            for place, offset in enumerate((*offsets, 0)):
                rows.append(bench.run(_read(f"read {place} {repeat}", offset, scope)))
        for repeat in range(scope.repeats):
            for place, offset in enumerate([one for one in offsets if one < WRITE_BYTES]):
                rows.append(bench.run(_write(f"write {place} {repeat}", offset, scope)))
            rows.append(bench.quiet(f"after {repeat}"))
        return rows

    def answer(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        reads = _shifted(evidence.named("read "))
        writes = _shifted(evidence.named("write "))
        return {
            "mapping_unit_bytes": find_unit(writes, WRITE_BYTES, _MAPPING),
            "read_unit_bytes": find_unit(reads, READ_BYTES, _READING),
        }

    def draw(self, axes: Axes, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
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


def _read(label: str, offset: int, scope: Scope) -> Job:
    return Job(
        label,
        Operation.READ,
        READ_BYTES,
        queue_depth=_READ_DEPTH,
        seconds=1.5 * scope.run_seconds,
        offset_bytes=offset,
    )


def _write(label: str, offset: int, scope: Scope) -> Job:
    return Job(
        label,
        Operation.WRITE,
        WRITE_BYTES,
        queue_depth=_WRITE_DEPTH,
        bytes_total=scope.share_bytes(_WRITE_SHARE),
        offset_bytes=offset,
        effects=True,
    )


def _shifted(rows: list[Row]) -> list[Shifted]:
    return [
        Shifted(int(row["offset_bytes"]), row["throughput_bytes_per_second"], row["relative_error"])
        for row in rows
    ]
