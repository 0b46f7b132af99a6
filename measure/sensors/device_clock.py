"""Maps a wrapping device clock with jittery arrivals to CLOCK_MONOTONIC, and counts lost frames.

A frame carries the device's microseconds modulo a wrap (1024), shorter than many gaps, and
arrives in bursts, milliseconds after it was taken. Two facts settle both problems:

* No frame arrives before it was taken, and now and then one arrives almost at once. So the lower
  envelope of arrival minus device time is the offset between the clocks; its slope is their drift
  (the supporting line below all points that is closest to them, an edge of their lower hull).
* The device takes frames at a fixed period. So a gap is a whole number of periods, and few
  numbers of wraps agree with the stamp: at 50 us every 25th. The arrivals only have to tell these
  apart.

Frames after a doubtful gap are held back until the arrivals have settled it, at most `HOLD_NS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

WARM_UP_NS = 250_000_000
"""Frames of so long are gathered before the first is released: offset and period follow."""
HOLD_NS = 600_000_000
LEAST_EVIDENCE_NS = 30_000_000
"""At the end of a stream this much after a gap may settle it; with less it is as short as it can
be."""
JITTER_US = 1.5
"""How far the time between two neighbours may be from the period."""
COARSE_JITTER_US = 4.0
"""The same where the arrivals say that no wrap is missing."""
HIDDEN_WRAPS = 10
"""A lateness of so many wraps that lasts for `HOLD_NS` is a gap that no stamp shows."""
BUCKET_US = 1_000_000.0
BUCKETS = 64
FIT_BUCKETS = 5
MAXIMUM_DRIFT = 500e-6
SLEW = 200e-6
"""How fast the anchor follows a better estimate: it shifts series, it never bends them more."""


@dataclass(frozen=True)
class ReleasedFrames:
    """The oldest frames: times and frames lost before each, int64, shape (n,)."""

    monotonic_ns: NDArray[np.int64]
    lost_before: NDArray[np.int64]


class Envelope:
    """The offset between two clocks, as the lower envelope of lateness; all in microseconds."""

    def __init__(self) -> None:
        self._points: list[tuple[float, float]] = []
        self._bucket: int | None = None
        self._slope = 0.0
        self._at = (0.0, 0.0)

    def add(self, device_us: NDArray[np.int64], difference_us: NDArray[np.float64]) -> None:
        """Take in frames: their device time and arrival minus device time."""
        best = int(np.argmin(difference_us))
        point = (float(device_us[best]), float(difference_us[best]))
        bucket = int(point[0] // BUCKET_US)
        if bucket != self._bucket or not self._points:
            self._bucket = bucket
            self._points = [*self._points[-(BUCKETS - 1) :], point]
        elif point[1] < self._points[-1][1]:
            self._points[-1] = point
        else:
            return
        self._fit()

    def offset(self, device_us: float) -> float:
        """The offset at a device time."""
        x, y = self._at
        return y + self._slope * (device_us - x)

    @property
    def drift(self) -> float:
        """Host seconds that pass per device second, minus one."""
        return self._slope

    def _fit(self) -> None:
        if len(self._points) < FIT_BUCKETS:
            self._slope, self._at = 0.0, min(self._points, key=lambda point: point[1])
            return
        hull = _lower_hull(self._points)
        middle = sum(x for x, _ in self._points) / len(self._points)
        for (x0, y0), (x1, y1) in pairwise(hull):
            if x1 >= middle:
                slope = (y1 - y0) / (x1 - x0)
                self._slope = min(max(slope, -MAXIMUM_DRIFT), MAXIMUM_DRIFT)
                self._at = (x0, y0)
                return


class DeviceClock:
    """Unwraps and anchors the stamps of a stream of frames.

    Stamps count microseconds modulo `wrap_us`; the nominal period holds until frames show their
    own.
    """

    def __init__(self, wrap_us: int, nominal_period_us: float) -> None:
        self.period_us = nominal_period_us
        self._wrap = wrap_us
        self._device = np.empty(0, dtype=np.int64)
        self._arrival = np.empty(0, dtype=np.float64)
        self._doubtful = np.empty(0, dtype=np.bool_)
        self._origin_ns: int | None = None
        self._warm = False
        self._envelope = Envelope()
        self._last_us: int | None = None  # device time of the newest frame, as far as known
        self._released_us: int | None = None
        self._anchor: tuple[float, float] | None = None
        self._late_since: float | None = None
        self._regular_us, self._regular_frames = 0, 0

    @property
    def drift(self) -> float:
        """How much slower the device's clock runs than the host's, as a fraction."""
        return self._envelope.drift

    def add(self, stamps_us: NDArray[np.uint16], arrivals_ns: NDArray[np.int64]) -> None:
        """Add frames: stamps modulo the wrap, arrivals on CLOCK_MONOTONIC, both shape (n,)."""
        if not len(stamps_us):
            return
        if self._origin_ns is None:
            self._origin_ns = int(arrivals_ns[0])
        stamps = stamps_us.astype(np.int64)
        previous = stamps[0] if self._last_us is None else self._last_us
        steps = np.diff(stamps, prepend=previous) % self._wrap
        base = int(stamps[0]) if self._last_us is None else self._last_us
        device = base + np.cumsum(steps)
        doubtful = np.abs(steps - self.period_us) > JITTER_US
        if self._last_us is None:
            doubtful[0] = False
        self._last_us = int(device[-1])
        self._device = np.concatenate([self._device, device])
        self._arrival = np.concatenate([self._arrival, (arrivals_ns - self._origin_ns) / 1e3])
        self._doubtful = np.concatenate([self._doubtful, doubtful])

    def take(self, *, everything: bool = False) -> ReleasedFrames:
        """Release the oldest frames whose time is settled; with `everything` all of them."""
        if not len(self._device) or not (self._warm or self._warm_up(everything)):
            return ReleasedFrames(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        count = self._settle(everything)
        device = self._device[:count]
        timed = ReleasedFrames(self._anchored(device), self._lost(device))
        self._follow(count)
        self._device = self._device[count:]
        self._arrival = self._arrival[count:]
        self._doubtful = self._doubtful[count:]
        return timed

    def _warm_up(self, everything: bool) -> bool:
        if self._arrival[-1] - self._arrival[0] < WARM_UP_NS / 1e3 and not everything:
            return False
        steps = np.diff(self._device)
        if len(steps) >= 20:
            near = steps[np.abs(steps - np.median(steps)) <= JITTER_US]
            self.period_us = float(near.mean())
        self._doubtful[1:] = np.abs(steps - self.period_us) > JITTER_US
        self._envelope.add(self._device, self._arrival - self._device)
        self._warm = True
        return True

    def _settle(self, everything: bool) -> int:
        """Decide as many doubtful gaps as can be; returns how many frames may go."""
        lag = self._lag()
        if self._is_hidden(lag, everything):
            self._shift(0, lag)
        # least lateness of a frame or any after it: what arrived at once has no wraps missing
        least = np.minimum.accumulate(lag[::-1])[::-1]
        decided = 0
        impossible = self._doubtful & ~self._whole_periods()
        while True:
            undecided = self._doubtful[decided:] & (least[decided:] >= self._wrap / 2)
            undecided |= impossible[decided:]
            if not undecided.any():
                return len(self._device)
            place = decided + int(np.argmax(undecided))
            evidence_us = self._arrival[-1] - self._arrival[place]
            if evidence_us < HOLD_NS / 1e3 and not everything:
                return place
            self._shift(place, least, settled=bool(evidence_us >= LEAST_EVIDENCE_NS / 1e3))
            decided = place + 1

    def _whole_periods(self) -> NDArray[np.bool_]:
        """Whether the step to each frame can be a number of periods with no wrap missing."""
        before = self._device[0] if self._released_us is None else self._released_us
        steps = np.diff(self._device, prepend=before)
        periods = np.maximum(np.round(steps / self.period_us), 1.0)
        whole: NDArray[np.bool_] = np.abs(steps - periods * self.period_us) <= COARSE_JITTER_US
        return whole

    def _shift(self, place: int, least: NDArray[np.float64], *, settled: bool = True) -> None:
        """Let the gap before a frame be as long as its lateness, and those after it, say."""
        lag = float(least[place:].min())
        shift = self._missing_wraps(place, lag, settled=settled) * self._wrap
        self._device[place:] += shift
        least[place:] -= shift
        self._last_us = int(self._device[-1])

    def _lag(self) -> NDArray[np.float64]:
        """How late each frame arrived, in microseconds, if no wrap is missing."""
        offset = self._envelope.offset(float(self._device[-1]))
        lag: NDArray[np.float64] = self._arrival - self._device - offset
        return lag

    def _is_hidden(self, lag: NDArray[np.float64], everything: bool) -> bool:
        """Whether all frames have been late for so long that a gap went unseen."""
        if lag.min() < HIDDEN_WRAPS * self._wrap:
            self._late_since = None
            return False
        if self._late_since is None:
            self._late_since = float(self._arrival[0])
        enough_us = HOLD_NS / 1e3 if not everything else HOLD_NS / 5e3
        if self._arrival[-1] - self._late_since < enough_us:
            return False
        self._late_since = None
        return True

    def _missing_wraps(self, place: int, lag: float, *, settled: bool) -> int:
        """Number of wraps that the gap before a frame is longer than its stamps say.

        Where the stream ended before the arrivals could settle it, the shortest possible gap.
        """
        before = self._device[place - 1] if place else self._released_us
        step = float(self._device[place] - (self._device[place] if before is None else before))
        # no frame arrives before it was taken, the envelope is right to within a wrap
        wraps = np.arange(max(int(lag // self._wrap), 0) + 2)
        gaps = step + wraps * self._wrap
        periods = np.maximum(np.round(gaps / self.period_us), 1.0)
        # the period itself is known to a microsecond over all regular frames
        tolerance = JITTER_US + periods / max(self._regular_frames, 1000)
        fits = np.abs(gaps - periods * self.period_us) <= tolerance
        possible = wraps[fits] if fits.any() else wraps
        return int(possible[np.argmin(np.abs(possible * self._wrap - lag)) if settled else 0])

    def _lost(self, device: NDArray[np.int64]) -> NDArray[np.int64]:
        first = device[:1] if self._released_us is None else self._released_us
        steps = np.diff(device, prepend=first)
        lost = np.maximum(np.round(steps / self.period_us).astype(np.int64) - 1, 0)
        regular = np.abs(steps - self.period_us) <= JITTER_US
        self._regular_us += int(steps[regular].sum())
        self._regular_frames += int(np.count_nonzero(regular))
        if self._regular_frames > 1000:
            self.period_us = self._regular_us / self._regular_frames
        if len(device):
            self._released_us = int(device[-1])
        return lost

    def _anchored(self, device: NDArray[np.int64]) -> NDArray[np.int64]:
        """Host time of device times, following the envelope without a jump."""
        if not len(device):
            return np.empty(0, dtype=np.int64)
        end = float(device[-1])
        target = self._envelope.offset(end)
        if self._anchor is None:
            self._anchor = (float(device[0]), self._envelope.offset(float(device[0])))
        begin, offset = self._anchor
        limit = SLEW * (end - begin)
        final = min(max(target, offset - limit), offset + limit)
        self._anchor = (end, final)
        rate = (final - offset) / (end - begin) if end > begin else 0.0
        host_us = device + offset + rate * (device - begin)
        host_ns: NDArray[np.int64] = np.round(host_us * 1e3).astype(np.int64)
        return host_ns + (self._origin_ns or 0)

    def _follow(self, count: int) -> None:
        if count:
            device = self._device[:count]
            self._envelope.add(device, self._arrival[:count] - device)


def _lower_hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lower convex hull of points in order of x (Andrew's monotone chain)."""
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2], hull[-1]
            if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull
