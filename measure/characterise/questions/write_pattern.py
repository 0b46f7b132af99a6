"""Whether data that were written at random are slower to read in order later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.characterise.estimators.intervals import missing, ratio
from iojoule.measure.characterise.question import Bench, Estimates, Job
from iojoule.measure.characterise.questions.locality import permuted
from iojoule.measure.characterise.scope import Scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WRITE_BYTES = 4096
READ_BYTES = 65536
_REGION_SHARE = 1 / 18
_REGION_BYTES_MAX = 1 << 30
"""Requests are replayed one by one from a file; so many suffice beyond any cache of reads."""
_DEPTH = 4
_SPEED = "throughput of reads in order of data written at random over that of data written in order"
_ENERGY = "joules per byte of these reads, gross, in the same order"


class WritePattern:
    """Effect of the write pattern on later reads."""

    name = "write-pattern"
    title = "Effect of the write pattern on later reads"
    purpose = "whether it pays to write in order what will be read in order"
    sources = ("002 sections 5.2 and 6.1",)
    writes = True
    needs_power = False
    needs_controller = False

    def measure(self, bench: Bench, scope: Scope) -> list[Row]:
        """Make the observations."""
        region = min(scope.share_bytes(_REGION_SHARE), _REGION_BYTES_MAX)
        count = region // WRITE_BYTES
        rows = []
        for repeat in range(scope.repeats):
            orders = {"ordered": range(count), "shuffled": permuted(count, count, repeat + 1)}
            for place, (name, order) in enumerate(orders.items()):
                at = place * region
                write = Job(
                    f"write {name} {repeat}",
                    Operation.WRITE,
                    WRITE_BYTES,
                    queue_depth=16,
                    order=order,
                    offset_bytes=at,
                    effects=True,
                )
                rows.append(bench.run(write))
            rows.append(bench.quiet(f"after {repeat}"))
            for place, name in enumerate(orders):
                read = Job(
                    f"read {name} {repeat}",
                    Operation.READ,
                    READ_BYTES,
                    queue_depth=_DEPTH,
                    pattern=Pattern.SEQUENTIAL,
                    bytes_total=region,
                    offset_bytes=place * region,
                    window_bytes=region,
                )
                rows.append(bench.run(read))
        return rows

    def answer(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        ordered, shuffled = evidence.named("read ordered "), evidence.named("read shuffled ")
        return {
            "shuffled_over_ordered": ratio(*_rate(shuffled), *_rate(ordered), _SPEED),
            "shuffled_over_ordered_joules": _joules(ordered, shuffled),
        }

    def draw(self, axes: Axes, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        for place, (name, colour) in enumerate((("ordered", "#009E73"), ("shuffled", "#D55E00"))):
            value, error = _rate(evidence.named(f"read {name} "))
            axes.bar(place, value / 1e6, yerr=1.96 * error / 1e6, color=colour)
        axes.set_xticks([0, 1], ["written in order", "written at random"])
        axes.set_ylabel("reads in order of 64 KiB, depth 4 (MB/s)")


def _rate(rows: list[Row]) -> tuple[float, float]:
    values = [row["throughput_bytes_per_second"] for row in rows]
    errors = [row["relative_error"] * row["throughput_bytes_per_second"] for row in rows]
    return sum(values) / len(values), sum(one**2 for one in errors) ** 0.5 / len(errors)


def _joules(ordered: list[Row], shuffled: list[Row]) -> Estimate:
    if any("power_watts" not in row.values for row in (*ordered, *shuffled)):
        return missing("no power meter", "1", _ENERGY)

    def per_byte(rows: list[Row]) -> tuple[float, float]:
        value = sum(row["power_watts"] / row["throughput_bytes_per_second"] for row in rows)
        worst = max(
            row["relative_error"] + row["power_error_watts"] / row["power_watts"] for row in rows
        )
        return value / len(rows), worst * value / len(rows) / len(rows) ** 0.5

    return ratio(*per_byte(shuffled), *per_byte(ordered), _ENERGY)
