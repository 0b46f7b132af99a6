"""Write cache size, folding afterwards, and background work after bursts of writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from iojoule.datasets.characteristics import CONFIDENCE, Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.characterise.experiment import Bench, Estimates, Extent, Job, Plot, ScaleName
from iojoule.measure.characterise.intervals import between, estimated, mean_of, missing
from iojoule.measure.recording.statistics import batch_standard_error

Floats = NDArray[np.float64]

FEWEST = 4
"""Bins on either side of a change."""
LEAST_CHANGE = 0.06
"""A smaller change of the mean, as a fraction, is no change of phase."""


@dataclass(frozen=True)
class Change:
    """A change of the mean at `place`, with its 95 % interval."""

    place: float
    low: float
    high: float
    before: float
    before_error: float
    after: float
    after_error: float


def find_drop(written: Floats, rates: Floats) -> Change | None:
    """The fall of the mean that explains the series best; None where none is beyond chance."""
    change = find_change(written, rates)
    return change if change is not None and change.after < change.before else None


def find_change(written: Floats, values: Floats) -> Change | None:
    """The change of the mean that explains the series best; None where none is beyond chance.

    Least squares over every split. The interval holds all splits whose profile likelihood is
    within chi2(1, 95 %) of the best (n log RSS), widened by one bin, since a change anywhere in
    a bin shows at its end. It must beat the constant by the Bayesian criterion with two further
    parameters, 2 log n, at three times its penalty, because values correlate.

    Args:
        places: Bytes written at the end of each bin, shape (n,). Bins are of equal duration.
        values: Mean rate, or watts, in the bin, shape (n,).
    """
    count = len(values)
    if count < 2 * FEWEST + 1:
        return None
    splits = np.arange(FEWEST, count - FEWEST + 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    left = sums[splits - 1]
    right = sums[-1] - left
    misfit = squares[-1] - left**2 / splits - right**2 / (count - splits)
    # a series without any scatter would have no likelihood
    floor = 1e-6 * squares[-1]
    misfit = np.maximum(misfit, floor)
    whole = max(float(squares[-1] - sums[-1] ** 2 / count), floor)
    best = int(np.argmin(misfit))
    split = int(splits[best])
    before, after = float(values[:split].mean()), float(values[split:].mean())
    # two means, a scatter and the place are estimated: with few bins they flatter the fit
    gain = (count - 4) * float(np.log(whole / misfit[best]))
    if gain < 3 * 2 * np.log(count) or abs(after - before) < LEAST_CHANGE * abs(before):
        return None
    near = count * np.log(misfit / misfit[best]) <= float(chi2.ppf(CONFIDENCE, 1))
    inside = splits[near]
    place = _within(written, values, split, before, after)
    return Change(
        place=place,
        low=min(_end(written, inside.min() - 1), place),
        high=max(_end(written, inside.max() + 1), place),
        before=before,
        before_error=batch_standard_error(values[:split]),
        after=after,
        after_error=batch_standard_error(values[split:]),
    )


def _within(written: Floats, values: Floats, split: int, before: float, after: float) -> float:
    """Where in its bin the change lies: the bins around it hold x before + (n - x) after."""
    first, last = max(split - FEWEST + 1, 0), min(split + FEWEST - 1, len(values))
    held, count = float(values[first:last].sum()), last - first
    bins = min(max((held - count * after) / (before - after), 0.0), float(count))
    return _end(written, first + bins)


def _end(written: Floats, bins: float) -> float:
    numbers = np.arange(1, len(written) + 1)
    return float(np.interp(bins, numbers, written))


LASTING_SECONDS = 0.25
"""What lasts less is neither work nor rest."""


@dataclass(frozen=True)
class Housekeeping:
    """Background work after the last write.

    Attributes:
        joules: Above idle, until all is quiet.
        joules_error: Standard error: that of the idle power over the duration.
        watts: Above idle while it works: the mean of the bins, each weighed by its own energy.
        seconds: Until the last work ends; 0 = none was seen.
        at_once: Whether some went on where the writes ended.
        deferred_seconds: Until work begins that followed a rest; None = none did.
    """

    joules: float
    joules_error: float
    watts: float
    seconds: float
    at_once: bool
    deferred_seconds: float | None
    deferred_work_seconds: float | None
    step_seconds: float


def housekeeping(
    seconds: Floats, watts: Floats, idle_watts: float, idle_error: float
) -> Housekeeping:
    """Find the background work in the watts after the last write.

    A bin works where it exceeds idle by 5 % or five standard deviations of the quietest quarter of
    the bins, whichever is more; single bins that disagree with both neighbours follow them.

    Args:
        seconds: End of each bin since the end of the writes, evenly spaced, shape (n,).
        watts: Mean power in it, shape (n,).
    """
    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else 0.0
    quietest = np.sort(watts)[: max(4, len(watts) // 4)]
    scatter = float(quietest.std(ddof=1)) if len(quietest) > 1 else 0.0
    works = watts > idle_watts + max(0.05 * idle_watts, min(5 * scatter, 0.15 * idle_watts))
    lasting = max(1, round(LASTING_SECONDS / step)) if step else 1
    stretches = _stretches(works, lasting)
    working = [(begin, end) for begin, end, busy in stretches if busy]
    if not working:
        return Housekeeping(0.0, idle_error * step, 0.0, 0.0, False, None, None, step)
    until = working[-1][1]
    above = watts[:until] - idle_watts
    spent = float((above * step).sum())
    deferred = next(((begin, end) for begin, end in working if begin >= lasting), None)
    return Housekeeping(
        joules=max(spent, 0.0),
        joules_error=idle_error * until * step + step * idle_watts * 0.05,
        watts=float((above**2).sum() / above.sum()) if spent > 0 else 0.0,
        seconds=until * step,
        at_once=working[0][0] < lasting,
        deferred_seconds=deferred[0] * step if deferred else None,
        deferred_work_seconds=(until - deferred[0]) * step if deferred else None,
        step_seconds=step,
    )


def _stretches(works: NDArray[np.bool_], lasting: int) -> list[tuple[int, int, bool]]:
    """Stretches of work and rest as (begin, end, works); short ones belong to their neighbours."""
    edges = np.flatnonzero(np.diff(works.astype(int))) + 1
    bounds = [0, *edges.tolist(), len(works)]
    stretches = [(a, b, bool(works[a])) for a, b in pairwise(bounds) if b > a]
    while True:
        short = next(
            (
                place
                for place, (begin, end, _) in enumerate(stretches)
                if end - begin < lasting and 0 < place < len(stretches) - 1
            ),
            None,
        )
        if short is None:
            return stretches
        before, _, after = stretches[short - 1 : short + 2]
        stretches[short - 1 : short + 2] = [(before[0], after[1], before[2])]


@dataclass(frozen=True)
class Line:
    """y = start + slope x by weighted least squares."""

    start: float
    start_error: float
    slope: float
    slope_error: float


def fit_line(written: Floats, values: Floats, errors: Floats) -> Line | None:
    """A straight line; None with fewer than two places. Errors grow with what it misses."""
    if len(np.unique(written)) < 2:
        return None
    weight = 1 / np.maximum(errors, 1e-12)
    design = np.column_stack([np.ones_like(written), written]) * weight[:, None]
    normal = np.linalg.inv(design.T @ design)
    start, slope = normal @ design.T @ (values * weight)
    missed = (values - start - slope * written) * weight
    freedom = len(written) - 2
    widening = max(1.0, float(missed @ missed) / freedom) if freedom > 0 else 1.0
    return Line(
        start=float(start),
        start_error=float(np.sqrt(normal[0, 0] * widening)),
        slope=float(slope),
        slope_error=float(np.sqrt(normal[1, 1] * widening)),
    )


_SIZE = (
    "bytes written when the rate falls, so with what the write buffer still takes: one change of "
    "mean, profile-likelihood interval"
)
_POWER = "bytes written when the watts change: before the rate falls the write buffer still fills"
_RATE = "mean rate on this side of the change, batch means"
_SLOW = "mean watts once the rate has fallen, batch means"
_FOLD = "watts above idle after the last write, at 95 % of the energy of the work seen"
_FULL = "energy above idle after the last write that ran the cache full, until all is quiet"
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

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        rows = [bench.quiet("before")]  # what was written earlier may still be in the cache
        for repeat in range(extent.repeats):
            job = Job(
                f"fill {repeat}",
                Operation.WRITE,
                131072,
                queue_depth=32,
                pattern=Pattern.SEQUENTIAL,
                bytes_total=extent.area_bytes,
                trace=True,
                effects=True,
            )
            rows += [bench.run(job), bench.quiet(f"after {repeat}")]
        return rows

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        works = _works_after_filling(evidence)
        drops = [_drop(evidence, row) for row in evidence.named("fill ")]
        known = [drop for drop in drops if drop is not None]
        written = max((row["bytes_written"] for row in evidence.named("fill ")), default=0.0)
        if not known or 2 * len(known) <= len(drops):
            reason = f"the rate does not fall within {written:.4g} bytes written in a row"
            return {
                "cache_bytes": missing(reason, "bytes", _SIZE, low=written),
                "cache_bytes_by_power": missing(reason, "bytes", _POWER, low=written),
                **_fold(works),
            }
        place = float(np.mean([change.place for change in known]))
        low = min(change.low for change in known)
        high = max(change.high for change in known)
        first = known[0]
        return {
            "cache_bytes": between(place, max(low, 0.0), high, "bytes", _SIZE),
            "cache_bytes_by_power": _by_power(evidence, high),
            "write_fast_bytes_per_second": estimated(
                first.before, first.before_error, "bytes/s", _RATE, least=0.0
            ),
            "write_slow_bytes_per_second": estimated(
                first.after, first.after_error, "bytes/s", _RATE, least=0.0
            ),
            "write_slow_watts": _slow_watts(evidence, high),
            **_fold(works),
            "full_work_joules": _full_work(works),
        }

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        for row in evidence.named("fill "):
            written, rates = _series(evidence, row)
            axes.step(written / 2**20, rates / 1e6, where="pre", label=row.label)
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
        written, watts = _series(evidence, row, "watts")
        # what comes after the fall is its consequence
        until = int(np.searchsorted(written, 1.1 * fell_at)) + 2
        change = find_change(written[:until], watts[:until])
        if change is not None and change.place <= fell_at:
            changes.append(change)
    if not changes:
        return missing("the watts do not change before the rate falls", "bytes", _POWER)
    place = float(np.mean([change.place for change in changes]))
    # the dies fill up one after the other, so that the change takes a bin or two
    bin_bytes = max(change.high - change.low for change in changes) / 2
    low = min(change.low for change in changes) - bin_bytes
    high = max(change.high for change in changes) + bin_bytes
    return between(place, max(low, 0.0), high, "bytes", _POWER)


def _slow_watts(evidence: Evidence, fell_at: float) -> Estimate:
    """What the drive draws while it programs its flash as fast as it can."""
    means, errors = [], []
    for row in evidence.named("fill "):
        written, watts = _series(evidence, row, "watts")
        slow = watts[written > fell_at]
        if len(slow) >= FEWEST:
            means.append(float(slow.mean()))
            errors.append(batch_standard_error(slow))
    if not means:
        return missing("no power meter that is fast enough to see it", "W", _SLOW)
    return estimated(*mean_of(means, errors), "W", _SLOW, least=0.0)


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
    written, rates = _series(evidence, row)
    return find_drop(written, rates)


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


def _works_after_filling(evidence: Evidence) -> list[tuple[Housekeeping, bool]]:
    """Work after each fill, and whether all was quiet at its end; none without a fast meter."""
    idle = evidence.row("idle")
    works = []
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
        works.append((work, after.get("quiet") == 1.0))
    return works


def _full_work(works: list[tuple[Housekeeping, bool]]) -> Estimate:
    """Joules of the work that went on at once after the cache ran full."""
    if not works:
        return missing("no power meter that is fast enough to see it", "J", _FULL)
    joules = [work.joules for work, _ in works]
    if not all(quiet for _, quiet in works):
        return missing("idle power was not back in time", "J", _FULL, low=min(joules))
    if not all(work.at_once and work.deferred_seconds is None for work, _ in works):
        # a write buffer that is emptied at once is no such work
        return missing("what there was to do waited for a rest", "J", _FULL)
    # the bin in which the writes ended counts for neither
    error = max(work.joules_error + work.step_seconds * work.watts for work, _ in works)
    low, high = max(min(joules) - error, 0.0), max(joules) + error
    return between(float(np.mean(joules)), low, high, "J", _FULL)


def _fold(works_after: list[tuple[Housekeeping, bool]]) -> Estimates:
    unit = "s"
    if not works_after:
        reason = "no power meter that is fast enough to see it"
        return {
            name: missing(reason, unit, _FOLD) for name in ("fold_seconds", "fold_delay_seconds")
        }
    works = [work for work, _ in works_after]
    if not all(quiet for _, quiet in works_after):
        lowest = min(work.seconds for work in works)
        reason = "idle power was not back within the longest wait"
        return {"fold_seconds": missing(reason, unit, _FOLD, low=lowest)}
    step = max(work.step_seconds for work in works)
    delays = [work.deferred_seconds for work in works if work.deferred_seconds is not None]
    lengths = [work.deferred_work_seconds for work in works if work.deferred_work_seconds]
    if not delays or not lengths:
        reason = "no work began after a rest; `full_work_joules` has what went on at once"
        return {
            name: missing(reason, unit, _FOLD) for name in ("fold_seconds", "fold_delay_seconds")
        }
    return {"fold_seconds": _span(lengths, 2 * step), "fold_delay_seconds": _span(delays, 2 * step)}


def _span(values: list[float], margin: float) -> Estimate:
    value = float(np.mean(values))
    return between(value, max(min(values) - margin, 0.0), max(values) + margin, "s", _FOLD)


_SHARES = {ScaleName.QUICK: (1 / 18, 1 / 6), ScaleName.FULL: (1 / 36, 1 / 18, 1 / 9, 1 / 4)}
"""Of the area: bursts of growing size."""
_ENERGY = "slope of the energy above idle after the last write over the bytes written"
_BEGIN = "from the last write to watts above idle that begin after a rest"
_WATTS = "watts above idle while it works, each moment weighed by its energy"
_TIME = "slope of the time until idle power is back over the bytes written"


class Background:
    """Background work after writes."""

    name = "background"
    title = "Background work after writes"
    purpose = "the energy of a write that no meter sees while it is under way"
    sources = ("thesis 5.1", "003 section 'RW asymmetry'", "002 section 2.2")
    writes = True
    needs_power = True
    needs_controller = False

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        rows = []
        for repeat in range(extent.repeats):
            for number, share in enumerate(_SHARES[extent.scale]):
                job = Job(
                    f"burst {number} {repeat}",
                    Operation.WRITE,
                    65536,
                    queue_depth=16,
                    bytes_total=extent.share_bytes(share),
                    trace=True,
                    effects=True,
                )
                rows += [bench.run(job), bench.quiet(f"after {number} {repeat}")]
        return rows

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        works = _works(evidence)
        if isinstance(works, str):
            return {
                "background_joules_per_byte": missing(works, "J/byte", _ENERGY),
                "background_seconds_per_byte": missing(works, "s/byte", _TIME),
            }
        sizes = np.array([size for size, _ in works])
        joules = np.array([work.joules for _, work in works])
        errors = np.array([max(work.joules_error, 1e-9) for _, work in works])
        seconds = np.array([work.seconds for _, work in works])
        steps = np.array([max(2 * work.step_seconds, 1e-3) for _, work in works])
        energy, time = fit_line(sizes, joules, errors), fit_line(sizes, seconds, steps)
        assert energy is not None
        assert time is not None
        return {
            "background_joules_per_byte": estimated(
                energy.slope, energy.slope_error, "J/byte", _ENERGY, least=0.0
            ),
            "background_seconds_per_byte": estimated(
                time.slope, time.slope_error, "s/byte", _TIME, least=0.0
            ),
            "background_seconds_at_once": estimated(
                time.start, time.start_error, "s", "the same line at no bytes", least=0.0
            ),
            "background_delay_seconds": _delay([work for _, work in works]),
            "background_watts": _working_watts([work for _, work in works]),
        }

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        works = _works(evidence)
        if isinstance(works, str):
            axes.text(0.5, 0.5, works, ha="center", wrap=True)
            return
        sizes = [size / 2**20 for size, _ in works]
        axes.plot(sizes, [work.joules for _, work in works], "o", color="#0072B2", label="energy")
        axes.set_xlabel("written in one burst (MiB)")
        axes.set_ylabel("energy above idle afterwards (J)", color="#0072B2")
        other = axes.twinx()
        other.plot(sizes, [work.seconds for _, work in works], "s", color="#D55E00")
        other.set_ylabel("until idle power is back (s)", color="#D55E00")


def _delay(works: list[Housekeeping]) -> Estimate:
    """From the last write to work that begins after a rest; a burst may be too small for any."""
    delays = [work.deferred_seconds for work in works if work.deferred_seconds is not None]
    if not delays:
        return missing("no work began after a rest", "s", _BEGIN)
    return _span(delays, 2 * max(work.step_seconds for work in works))


def _working_watts(works: list[Housekeeping]) -> Estimate:
    """Watts above idle while the drive works; the longest work says it best."""
    best = max(works, key=lambda work: work.joules)
    if not best.joules:
        return missing("no work was seen", "W", _WATTS)
    seen = [work.watts for work in works if work.joules]
    share = best.joules_error / best.joules
    return between(best.watts, min(seen) * (1.0 - share), max(seen) * (1.0 + share), "W", _WATTS)


def _works(evidence: Evidence) -> list[tuple[float, Housekeeping]] | str:
    """Bytes and work of every burst, or why there is none to be told."""
    idle = evidence.row("idle")
    if idle is None or "power_watts" not in idle.values:
        return "idle power is not known"
    found_work = []
    for row, after in zip(evidence.named("burst "), evidence.named("after "), strict=False):
        since, watts = after_writes(evidence, row)
        if not len(watts):
            return "the power meter is too slow to see it"
        if after.get("quiet") != 1.0:
            continue  # its work is not over, so that it tells only a lower bound
        work = housekeeping(since, watts, idle["power_watts"], idle["power_error_watts"])
        found_work.append((row["bytes_written"], work))
    if len({size for size, _ in found_work}) < 2:
        return "the drive did not come to rest after at least two bursts of different size"
    return found_work
