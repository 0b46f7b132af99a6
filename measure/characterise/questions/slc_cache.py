"""How much is written fast before the drive slows down, and what it does about it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.characterise.estimators.change_point import Change, find_change, find_drop
from iojoule.measure.characterise.estimators.housekeeping import housekeeping
from iojoule.measure.characterise.estimators.intervals import between, found, missing
from iojoule.measure.characterise.question import Bench, Estimates, Job
from iojoule.measure.characterise.scope import Scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (
    "bytes written when the rate falls, so with what the write buffer still takes: one change of "
    "mean, profile-likelihood interval"
)
_POWER = "bytes written when the watts change: before the rate falls the write buffer still fills"
_RATE = "mean rate on this side of the change, batch means"
_FOLD = "watts above idle after the last write, at 95 % of the energy of the work seen"
_SKIP_BINS = 2
"""The first bins fill the write buffer, the last one is cut."""


class SlcCache:
    """Size of the fast write cache and the time to fold it back."""

    name = "slc-cache"
    title = "Size of the write cache (SLC) and the time to fold it back"
    purpose = "how large a burst of writes may be, and how long the drive works for it afterwards"
    sources = ("002 section 5.4", "thesis 5.1")
    writes = True
    needs_power = False
    needs_controller = False

    def measure(self, bench: Bench, scope: Scope) -> list[Row]:
        """Make the observations."""
        rows = []
        for repeat in range(scope.repeats):
            job = Job(
                f"fill {repeat}",
                Operation.WRITE,
                131072,
                queue_depth=32,
                pattern=Pattern.SEQUENTIAL,
                bytes_total=scope.area_bytes,
                trace=True,
                effects=True,
            )
            rows += [bench.run(job), bench.quiet(f"after {repeat}")]
        return rows

    def answer(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        drops = [_drop(evidence, row) for row in evidence.named("fill ")]
        known = [one for one in drops if one is not None]
        written = max((row["bytes_written"] for row in evidence.named("fill ")), default=0.0)
        if not known or 2 * len(known) <= len(drops):
            reason = f"the rate does not fall within {written:.4g} bytes written in a row"
            return {
                "cache_bytes": missing(reason, "bytes", _SIZE, low=written),
                "cache_bytes_by_power": missing(reason, "bytes", _POWER, low=written),
                **_fold(evidence),
            }
        place = float(np.mean([one.place for one in known]))
        low = min(one.low for one in known)
        high = max(one.high for one in known)
        first = known[0]
        return {
            "cache_bytes": between(place, max(low, 0.0), high, "bytes", _SIZE),
            "cache_bytes_by_power": _by_power(evidence, high),
            "write_fast_bytes_per_second": found(
                first.before, first.before_error, "bytes/s", _RATE, least=0.0
            ),
            "write_slow_bytes_per_second": found(
                first.after, first.after_error, "bytes/s", _RATE, least=0.0
            ),
            **_fold(evidence),
        }

    def draw(self, axes: Axes, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        for row in evidence.named("fill "):
            places, rates = _series(evidence, row)
            axes.step(places / 2**20, rates / 1e6, where="pre", label=row.label)
        size = estimates["cache_bytes"]
        if size.value is not None and size.low is not None and size.high is not None:
            axes.axvline(size.value / 2**20, color="#D55E00")
            axes.axvspan(size.low / 2**20, size.high / 2**20, color="#D55E00", alpha=0.2)
        axes.set_xlabel("written (MiB)")
        axes.set_ylabel("write rate (MB/s)")


def _by_power(evidence: Evidence, fell_at: float) -> Estimate:
    """The flash changes its mode, and its watts, when the cache is full; the host sees it later."""
    changes = []
    for row in evidence.named("fill "):
        places, watts = _series(evidence, row, "watts")
        # what comes after the fall is its consequence
        until = int(np.searchsorted(places, 1.1 * fell_at)) + 2
        change = find_change(places[:until], watts[:until])
        if change is not None and change.place <= fell_at:
            changes.append(change)
    if not changes:
        return missing("the watts do not change before the rate falls", "bytes", _POWER)
    place = float(np.mean([one.place for one in changes]))
    # the dies fill up one after the other, so that the change takes a bin or two
    bin_bytes = max(one.high - one.low for one in changes) / 2
    low = min(one.low for one in changes) - bin_bytes
    high = max(one.high for one in changes) + bin_bytes
    return between(place, max(low, 0.0), high, "bytes", _POWER)


def _series(
    evidence: Evidence, row: Row, what: str = "bytes"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bytes so far, and rate or watts, of every bin while the run wrote."""
    seconds = np.asarray(evidence.series.get(f"{row.label} seconds", ()))
    moved = np.asarray(evidence.series.get(f"{row.label} bytes", ()))
    if len(seconds) < 2:
        return np.empty(0), np.empty(0)
    step = float(np.median(np.diff(seconds)))
    busy = np.flatnonzero(moved > 0)
    if len(busy) < 2 * _SKIP_BINS + 1:
        return np.empty(0), np.empty(0)
    used = slice(int(busy[0]) + _SKIP_BINS, int(busy[-1]) - _SKIP_BINS + 1)
    if what == "bytes":
        return np.cumsum(moved)[used], (moved / step)[used]
    watts = np.asarray(evidence.series.get(f"{row.label} watts", ()))
    return (np.cumsum(moved)[used], watts[used]) if len(watts) else (np.empty(0), np.empty(0))


def _drop(evidence: Evidence, row: Row) -> Change | None:
    places, rates = _series(evidence, row)
    return find_drop(places, rates)


def after_writes(evidence: Evidence, row: Row) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds since the last byte was written, and watts from then on."""
    seconds = np.asarray(evidence.series.get(f"{row.label} seconds", ()))
    moved = np.asarray(evidence.series.get(f"{row.label} bytes", ()))
    watts = np.asarray(evidence.series.get(f"{row.label} watts", ()))
    busy = np.flatnonzero(moved > 0)
    if not len(watts) or not len(busy):
        return np.empty(0), np.empty(0)
    last = int(busy[-1])
    return seconds[last + 1 :] - seconds[last], watts[last + 1 :]


def _fold(evidence: Evidence) -> Estimates:
    """How long after the end of the writes the drive works, from its watts."""
    idle = evidence.one("idle")
    found_work = []
    unit = "s"
    for row, after in zip(evidence.named("fill "), evidence.named("after "), strict=False):
        watts = np.asarray(evidence.series.get(f"{row.label} watts", ()))
        seconds = np.asarray(evidence.series.get(f"{row.label} seconds", ()))
        if idle is None or "power_watts" not in idle.values or not len(watts):
            continue
        since = seconds - (row["span_end_ns"] - row["span_begin_ns"]) * 1e-9
        rest = since > float(np.median(np.diff(seconds)))
        work = housekeeping(
            since[rest], watts[rest], idle["power_watts"], idle["power_error_watts"]
        )
        found_work.append((work, after.get("quiet") == 1.0))
    if not found_work:
        reason = "no power meter that is fast enough to see it"
        return {
            name: missing(reason, unit, _FOLD) for name in ("fold_seconds", "fold_delay_seconds")
        }
    works = [work for work, _ in found_work]
    if not all(quiet for _, quiet in found_work):
        lowest = min(work.seconds for work in works)
        reason = "idle power was not back within the longest wait"
        return {"fold_seconds": missing(reason, unit, _FOLD, low=lowest)}
    step = max(work.step_seconds for work in works)
    delays = [work.deferred_seconds for work in works if work.deferred_seconds is not None]
    lengths = [work.deferred_work_seconds for work in works if work.deferred_work_seconds]
    if not delays or not lengths:
        reason = "no work began after a rest; what followed the writes at once is in `background`"
        return {
            name: missing(reason, unit, _FOLD) for name in ("fold_seconds", "fold_delay_seconds")
        }
    return {
        "fold_seconds": _span(lengths, 2 * step),
        "fold_delay_seconds": _span(delays, 2 * step),
    }


def _span(values: list[float], margin: float) -> Estimate:
    value = float(np.mean(values))
    return between(value, max(min(values) - margin, 0.0), max(values) + margin, "s", _FOLD)
