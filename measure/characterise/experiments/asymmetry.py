"""Energy asymmetry: cost of a byte and an operation read and written, net of idle."""

from __future__ import annotations

import math
from collections.abc import Mapping

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.characterise.experiment import Bench, Estimates, Extent, Job, Plot
from iojoule.measure.characterise.intervals import estimated, mean_of, missing, ratio

REQUEST_SIZES = (4096, 65536)
_DEPTH = 16
_WRITE_SHARE = 1 / 18
_READ = "watts above idle over the rate of random reads, depth 16"
_WRITE = (
    "joules above idle from the first write until all is quiet again, over what was written: "
    "random writes, depth 16"
)


class Asymmetry:
    """Energy asymmetry of reads and writes."""

    name = "asymmetry"
    title = "Energy of reads and writes"
    purpose = "whether a byte costs more to write than to read, with what follows the write"
    sources = ("003 Observations 2 and 3", "thesis 5.1")
    writes = True
    needs_power = True
    needs_controller = False

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        rows = []
        for repeat in range(extent.repeats):
            for size in REQUEST_SIZES:
                read = Job(
                    f"read {size} {repeat}",
                    Operation.READ,
                    size,
                    queue_depth=_DEPTH,
                    seconds=2 * extent.run_seconds,
                )
                rows.append(bench.run(read))
            for size in REQUEST_SIZES:
                write = Job(
                    f"write {size} {repeat}",
                    Operation.WRITE,
                    size,
                    queue_depth=_DEPTH,
                    bytes_total=extent.share_bytes(_WRITE_SHARE),
                )
                rows += [bench.run(write), bench.quiet(f"after {size} {repeat}")]
        return rows

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        estimates: Estimates = {}
        for size in REQUEST_SIZES:
            costs = {"read": _reads(evidence, size), "write": _writes(evidence, size)}
            for name, cost in costs.items():
                method = _READ if name == "read" else _WRITE
                estimates |= _both(name, size, cost, method)
            both = costs["read"], costs["write"]
            key = f"write_over_read_joules_{size}"
            method = "net joules of a written byte over those of a read one"
            if isinstance(both[0], str) or isinstance(both[1], str):
                estimates[key] = missing("one of the two was not found", "1", method)
            else:
                estimates[key] = ratio(*both[1], *both[0], method)
        return estimates

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        ticks = []
        for place, size in enumerate(REQUEST_SIZES):
            for shift, (name, colour) in enumerate((("read", "#0072B2"), ("write", "#D55E00"))):
                estimate = estimates.get(f"{name}_joules_per_byte_{size}")
                if (
                    estimate is None
                    or estimate.value is None
                    or estimate.low is None
                    or estimate.high is None
                ):
                    continue
                spread = [
                    [1e9 * (estimate.value - estimate.low)],
                    [1e9 * (estimate.high - estimate.value)],
                ]
                axes.bar(3 * place + shift, 1e9 * estimate.value, yerr=spread, color=colour)
                ticks.append((3 * place + shift, f"{name}\n{size // 1024} KiB"))
        axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
        axes.set_ylabel("net of idle (nJ per byte)")


Cost = tuple[float, float] | str
"""Joules per byte and their standard error, or why they are not known."""


def _both(name: str, size: int, cost: Cost, method: str) -> Estimates:
    if isinstance(cost, str):
        return {
            f"{name}_joules_per_byte_{size}": missing(cost, "J/byte", method),
            f"{name}_joules_per_operation_{size}": missing(cost, "J", method),
        }
    value, error = cost
    return {
        f"{name}_joules_per_byte_{size}": estimated(value, error, "J/byte", method),
        f"{name}_joules_per_operation_{size}": estimated(value * size, error * size, "J", method),
    }


def _reads(evidence: Evidence, size: int) -> Cost:
    idle = evidence.row("idle")
    rows = evidence.named(f"read {size} ")
    if idle is None or any("power_watts" not in row.values for row in (idle, *rows)) or not rows:
        return "no power meter said a mean"
    costs = []
    for row in rows:
        rate = row["throughput_bytes_per_second"]
        net = row["power_watts"] - idle["power_watts"]
        error = math.hypot(row["power_error_watts"], idle["power_error_watts"])
        costs.append((net / rate, math.hypot(error / rate, row["relative_error"] * net / rate)))
    return mean_of(*zip(*costs, strict=True))


def _writes(evidence: Evidence, size: int) -> Cost:
    idle = evidence.row("idle")
    rows = evidence.named(f"write {size} ")
    afters = evidence.named(f"after {size} ")
    if idle is None or "power_watts" not in idle.values or not rows:
        return "no power meter said a mean"
    costs = []
    for row, after in zip(rows, afters, strict=False):
        if after.get("quiet") != 1.0:
            return "idle power was not back within the longest wait"
        if "span_joules" not in row.values or "span_joules" not in after.values:
            return "the power meter did not cover it"
        seconds = row["span_seconds"] + after["span_seconds"]
        net = row["span_joules"] + after["span_joules"] - seconds * idle["power_watts"]
        error = math.hypot(
            seconds * idle["power_error_watts"],
            row.values.get("power_error_watts", 0.0) * row["span_seconds"],
        )
        costs.append((net / row["bytes_written"], error / row["bytes_written"]))
    return mean_of(*zip(*costs, strict=True)) if costs else "nothing was written"
