"""Locality and order of reads, and the effect of the write pattern on later reads."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.characterise.experiment import Bench, Estimates, Extent, Job, Plot, ScaleName
from iojoule.measure.characterise.intervals import Z, between, differs, missing, ratio

REQUEST_BYTES = 4096
_DEPTH = 16
_LEAST_EFFECT = 0.10
_WINDOW = "random reads of 4 KiB, depth 16, within windows of growing size"
_ORDER_SHARE = {ScaleName.QUICK: 1024, ScaleName.FULL: 65536}
"""Requests of one run that is replayed."""


def windows(area_bytes: int, steps: int) -> list[int]:
    """Sizes from 64 KiB to the area, evenly in logarithms, in whole 64 KiB."""
    least = 65536
    if area_bytes <= least:
        return [area_bytes]
    growth = (area_bytes / least) ** (1 / (steps - 1))
    sizes = {int(least * growth**step) // least * least for step in range(steps - 1)}
    return sorted(sizes | {area_bytes})


def permuted(count: int, window: int, seed: int) -> list[int]:
    """0 to count - 1 in order but for stretches of `window`, each shuffled (002, 3.3.3)."""
    source = random.Random(seed)
    order: list[int] = []
    for begin in range(0, count, window):
        stretch = list(range(begin, min(begin + window, count)))
        source.shuffle(stretch)
        order += stretch
    return order


class Locality:
    """Locality and order of reads."""

    name = "locality"
    title = "Locality and order of reads"
    purpose = "whether it pays to keep reads close together or nearly in order"
    sources = ("002 sections 3.3.2, 3.3.3, 5.7 and 5.8",)
    writes = False
    needs_power = False
    needs_controller = False

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        return [bench.run(job) for job in self._jobs(extent)]

    def _jobs(self, extent: Extent) -> Iterator[Job]:
        steps = 4 if extent.scale is ScaleName.QUICK else 10
        count = min(_ORDER_SHARE[extent.scale], extent.area_bytes // REQUEST_BYTES)
        for repeat in range(extent.repeats):
            for window in windows(extent.area_bytes, steps):
                yield Job(
                    f"within {window} {repeat}",
                    Operation.READ,
                    REQUEST_BYTES,
                    queue_depth=_DEPTH,
                    seconds=extent.run_seconds,
                    window_bytes=window,
                )
            for window in extent.permuted_windows:
                orders: dict[str, Sequence[int]] = {
                    "sequential": range(count),
                    "permuted": permuted(count, window, repeat + 1),
                    "random": permuted(count, count, repeat + 1),
                }
                for name, order in orders.items():
                    yield Job(
                        f"{name} {window} {repeat}",
                        Operation.READ,
                        REQUEST_BYTES,
                        # twice the window, as in 002, 3.3.3
                        queue_depth=2 * window,
                        order=order,
                    )

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        estimates = _of_windows(_together(evidence.named("within ")))
        lengths = sorted({int(row.label.split()[1]) for row in evidence.named("permuted ")})
        for length in lengths:
            sequential = _mean(evidence.named(f"sequential {length} "))
            for name in ("permuted", "random"):
                other = _mean(evidence.named(f"{name} {length} "))
                estimates[f"{name}_over_sequential_{length}"] = ratio(
                    *other,
                    *sequential,
                    f"throughput of reads of 4 KiB, {name} within {length} over in order, depth "
                    f"{2 * length}",
                )
        return estimates

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        rows = evidence.named("within ")
        axes.errorbar(
            [row["window_bytes"] / 2**20 for row in rows],
            [row["throughput_bytes_per_second"] / 1e6 for row in rows],
            yerr=[
                Z * row["relative_error"] * row["throughput_bytes_per_second"] / 1e6 for row in rows
            ],
            fmt="o",
            color="#0072B2",
        )
        for prefix, colour in (
            ("sequential ", "#009E73"),
            ("permuted ", "#D55E00"),
            ("random ", "#7F7F7F"),
        ):
            for row in evidence.named(prefix)[:1]:
                axes.axhline(
                    row["throughput_bytes_per_second"] / 1e6,
                    color=colour,
                    linestyle="--",
                    label=prefix + "order",
                )
        axes.set_xscale("log", base=2)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("window (MiB)")
        axes.set_ylabel("random reads of 4 KiB (MB/s)")
        axes.legend()


Mean = tuple[float, float]
"""A throughput and its standard error."""


def _together(rows: Sequence[Row]) -> dict[int, Mean]:
    sizes = sorted({int(row["window_bytes"]) for row in rows})
    return {size: _mean([row for row in rows if row["window_bytes"] == size]) for size in sizes}


def _mean(rows: Sequence[Row]) -> Mean:
    values = [row["throughput_bytes_per_second"] for row in rows]
    errors = [row["relative_error"] * row["throughput_bytes_per_second"] for row in rows]
    return sum(values) / len(values), float(sum(error**2 for error in errors) ** 0.5 / len(errors))


def _of_windows(means: Mapping[int, Mean]) -> Estimates:
    """The smallest over the largest window, and from which window on all are as fast."""
    method = f"{_WINDOW}: smallest over largest"
    where = f"{_WINDOW}: the least from which on none differs from the largest"
    if len(means) < 2:
        reason = "one window was measured"
        return {
            "smallest_over_largest_window": missing(reason, "1", method),
            "indifferent_window_bytes": missing(reason, "bytes", where),
        }
    sizes = sorted(means)
    last = means[sizes[-1]]
    different = [
        size
        for size in sizes
        if differs(*means[size], *last) and abs(means[size][0] / last[0] - 1) > _LEAST_EFFECT
    ]
    smallest = means[sizes[0]]
    estimates = {"smallest_over_largest_window": ratio(*smallest, *last, method)}
    if not different:
        estimates["indifferent_window_bytes"] = missing(
            f"no window differs from the largest by more than {_LEAST_EFFECT:.0%}",
            "bytes",
            where,
            high=sizes[0],
        )
        return estimates
    place = sizes.index(different[-1])
    # it lies between the last that differs and the first that does not
    estimates["indifferent_window_bytes"] = between(
        sizes[place + 1], different[-1], sizes[place + 1], "bytes", where
    )
    return estimates


WRITE_BYTES = 4096
READ_BYTES = 65536
_REGION_SHARE = 1 / 18
_REGION_BYTES_MAX = 1 << 30
"""Requests are replayed one by one from a file; so many suffice beyond any cache of reads."""
_PATTERN_DEPTH = 4
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

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        region = min(extent.share_bytes(_REGION_SHARE), _REGION_BYTES_MAX)
        count = region // WRITE_BYTES
        rows = []
        for repeat in range(extent.repeats):
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
                    queue_depth=_PATTERN_DEPTH,
                    pattern=Pattern.SEQUENTIAL,
                    bytes_total=region,
                    offset_bytes=place * region,
                    window_bytes=region,
                )
                rows.append(bench.run(read))
        return rows

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        ordered, shuffled = evidence.named("read ordered "), evidence.named("read shuffled ")
        return {
            "shuffled_over_ordered": ratio(*_mean(shuffled), *_mean(ordered), _SPEED),
            "shuffled_over_ordered_joules": _joules(ordered, shuffled),
        }

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        for place, (name, colour) in enumerate((("ordered", "#009E73"), ("shuffled", "#D55E00"))):
            value, error = _mean(evidence.named(f"read {name} "))
            axes.bar(place, value / 1e6, yerr=1.96 * error / 1e6, color=colour)
        axes.set_xticks([0, 1], ["written in order", "written at random"])
        axes.set_ylabel("reads in order of 64 KiB, depth 4 (MB/s)")


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
