"""Whether a drive rewards reads that lie close together, or nearly in order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.characterise.estimators.intervals import (
    Z,
    between,
    differs,
    missing,
    ratio,
)
from iojoule.measure.characterise.question import Bench, Estimates, Job
from iojoule.measure.characterise.scope import ScaleName, Scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    def measure(self, bench: Bench, scope: Scope) -> list[Row]:
        """Make the observations."""
        return [bench.run(job) for job in self._jobs(scope)]

    def _jobs(self, scope: Scope) -> Iterator[Job]:
        steps = 4 if scope.scale is ScaleName.QUICK else 10
        count = min(_ORDER_SHARE[scope.scale], scope.area_bytes // REQUEST_BYTES)
        for repeat in range(scope.repeats):
            for window in windows(scope.area_bytes, steps):
                yield Job(
                    f"within {window} {repeat}",
                    Operation.READ,
                    REQUEST_BYTES,
                    queue_depth=_DEPTH,
                    seconds=scope.run_seconds,
                    window_bytes=window,
                )
            for window in scope.permuted_windows:
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

    def answer(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        estimates = _of_windows(_together(evidence.named("within ")))
        lengths = sorted({int(row.label.split()[1]) for row in evidence.named("permuted ")})
        for length in lengths:
            sequential = _one(evidence, f"sequential {length} ")
            for name in ("permuted", "random"):
                other = _one(evidence, f"{name} {length} ")
                estimates[f"{name}_over_sequential_{length}"] = ratio(
                    other[0],
                    other[1],
                    sequential[0],
                    sequential[1],
                    f"throughput of reads of 4 KiB, {name} within {length} over in order, depth "
                    f"{2 * length}",
                )
        return estimates

    def draw(self, axes: Axes, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
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
    return sum(values) / len(values), float(sum(one**2 for one in errors) ** 0.5 / len(errors))


def _one(evidence: Evidence, prefix: str) -> Mean:
    return _mean(evidence.named(prefix))


def _of_windows(found: Mapping[int, Mean]) -> Estimates:
    """The smallest over the largest window, and from which window on all are as fast."""
    method = f"{_WINDOW}: smallest over largest"
    where = f"{_WINDOW}: the least from which on none differs from the largest"
    if len(found) < 2:
        reason = "one window was measured"
        return {
            "smallest_over_largest_window": missing(reason, "1", method),
            "indifferent_window_bytes": missing(reason, "bytes", where),
        }
    sizes = sorted(found)
    last = found[sizes[-1]]
    different = [
        size
        for size in sizes
        if differs(*found[size], *last) and abs(found[size][0] / last[0] - 1) > _LEAST_EFFECT
    ]
    smallest = found[sizes[0]]
    estimates = {
        "smallest_over_largest_window": ratio(*smallest, *last, method),
    }
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
